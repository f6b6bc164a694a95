//! The types that can be cast: numbers, strings, datetimes and lengths of time.

use crate::dtype::{DType, Endian, NpyType, Scalar, TimeUnit};

/// The most bytes of a string that is cast: a whole one lies in memory beside what it becomes.
pub(super) const MOST_BYTES: u64 = 64 << 10;

/// A type of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    Number(Scalar, Endian),
    /// So many bytes.
    Bytes(u64),
    /// So many code points.
    Unicode(u64, Endian),
    Time(TimeKind, TimeUnit, Endian),
}

/// What a count of units of time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeKind {
    Datetime,
    Timedelta,
}

impl Element {
    /// The type of elements of a dtype, where they can be cast to something.
    pub(super) fn of(dtype: &DType) -> Option<Element> {
        match *dtype {
            DType::Scalar(scalar, endian) => Some(Element::Number(scalar, endian)),
            DType::Npy(NpyType::Bytes(len)) if len > 0 => Some(Element::Bytes(len)),
            DType::Npy(NpyType::Unicode(len, endian)) if len > 0 => {
                Some(Element::Unicode(len, endian))
            }
            DType::Npy(NpyType::Datetime(endian, unit)) => {
                Some(Element::Time(TimeKind::Datetime, unit, endian))
            }
            DType::Npy(NpyType::Timedelta(endian, unit)) => {
                Some(Element::Time(TimeKind::Timedelta, unit, endian))
            }
            DType::Npy(_) => None,
        }
    }

    pub(super) fn dtype(self) -> DType {
        match self {
            Element::Number(scalar, endian) => DType::Scalar(scalar, endian),
            Element::Bytes(len) => DType::Npy(NpyType::Bytes(len)),
            Element::Unicode(len, endian) => DType::Npy(NpyType::Unicode(len, endian)),
            Element::Time(TimeKind::Datetime, unit, endian) => {
                DType::Npy(NpyType::Datetime(endian, unit))
            }
            Element::Time(TimeKind::Timedelta, unit, endian) => {
                DType::Npy(NpyType::Timedelta(endian, unit))
            }
        }
    }

    /// The byte order; `Little` where there is none.
    pub(super) fn endian(self) -> Endian {
        match self {
            Element::Number(_, endian)
            | Element::Unicode(_, endian)
            | Element::Time(_, _, endian) => endian,
            Element::Bytes(_) => Endian::Little,
        }
    }

    pub(super) fn with_endian(self, endian: Endian) -> Element {
        match self {
            Element::Number(scalar, _) => Element::Number(scalar, endian),
            Element::Bytes(len) => Element::Bytes(len),
            Element::Unicode(len, _) => Element::Unicode(len, endian),
            Element::Time(kind, unit, _) => Element::Time(kind, unit, endian),
        }
    }

    pub(super) fn bits(self) -> u64 {
        match self {
            Element::Number(scalar, _) => scalar.bits(),
            Element::Bytes(len) => len.saturating_mul(8),
            Element::Unicode(len, _) => len.saturating_mul(32),
            Element::Time(..) => 64,
        }
    }

    /// The bytes that are reversed together where the byte order changes.
    pub(super) fn swap_width(self) -> usize {
        match self {
            Element::Number(..) => self.dtype().swap_width(),
            Element::Bytes(_) => 1,
            Element::Unicode(..) => 4,
            Element::Time(..) => 8,
        }
    }
}
