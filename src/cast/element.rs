//! The types that can be cast: numbers, strings, datetimes and lengths of time.

use crate::dtype::{DType, Endian, NpyType, Scalar, TimeUnit};

/// The most bytes of a string that is cast: a whole one lies in memory beside what it becomes.
pub(super) const MOST_BYTES: u64 = 64 << 10;

/// A type of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Castable {
    Number(Scalar, Endian),
    /// So many bytes.
    Bytes(u32),
    /// So many code points.
    Unicode(u32, Endian),
    Time(TimeKind, Unit, Endian),
}

/// A unit of time in few bytes, since an output keeps a conversion for each of its tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    count: i32,
    /// The place of its name among [`UNITS`].
    number: u8,
}

/// NumPy's names of units; the generic one has none.
const UNITS: [&str; 14] =
    ["", "Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"];

impl Unit {
    /// A unit whose count is no larger than NumPy's may be.
    fn of(unit: TimeUnit) -> Option<Unit> {
        let number = UNITS.iter().position(|name| *name == unit.name)?;
        Some(Unit { count: i32::try_from(unit.count).ok()?, number: number as u8 })
    }

    /// The unit as dtypes have it.
    pub(super) fn time_unit(self) -> TimeUnit {
        let name = UNITS.get(usize::from(self.number)).copied().unwrap_or_default();
        TimeUnit { count: i64::from(self.count), name }
    }
}

/// What a count of units of time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeKind {
    Datetime,
    Timedelta,
}

impl Castable {
    /// The type of elements of a dtype, where they can be cast to something.
    pub(super) fn of(dtype: &DType) -> Option<Castable> {
        match *dtype {
            DType::Scalar(scalar, endian) => Some(Castable::Number(scalar, endian)),
            DType::Npy(NpyType::Bytes(len)) if len > 0 => {
                Some(Castable::Bytes(u32::try_from(len).ok()?))
            }
            DType::Npy(NpyType::Unicode(len, endian)) if len > 0 => {
                Some(Castable::Unicode(u32::try_from(len).ok()?, endian))
            }
            DType::Npy(NpyType::Datetime(endian, unit)) => {
                Some(Castable::Time(TimeKind::Datetime, Unit::of(unit)?, endian))
            }
            DType::Npy(NpyType::Timedelta(endian, unit)) => {
                Some(Castable::Time(TimeKind::Timedelta, Unit::of(unit)?, endian))
            }
            DType::Npy(_) => None,
        }
    }

    pub(super) fn dtype(self) -> DType {
        match self {
            Castable::Number(scalar, endian) => DType::Scalar(scalar, endian),
            Castable::Bytes(len) => DType::Npy(NpyType::Bytes(len.into())),
            Castable::Unicode(len, endian) => DType::Npy(NpyType::Unicode(len.into(), endian)),
            Castable::Time(TimeKind::Datetime, unit, endian) => {
                DType::Npy(NpyType::Datetime(endian, unit.time_unit()))
            }
            Castable::Time(TimeKind::Timedelta, unit, endian) => {
                DType::Npy(NpyType::Timedelta(endian, unit.time_unit()))
            }
        }
    }

    /// The byte order; `Little` where there is none.
    pub(super) fn endian(self) -> Endian {
        match self {
            Castable::Number(_, endian)
            | Castable::Unicode(_, endian)
            | Castable::Time(_, _, endian) => endian,
            Castable::Bytes(_) => Endian::Little,
        }
    }

    pub(super) fn with_endian(self, endian: Endian) -> Castable {
        match self {
            Castable::Number(scalar, _) => Castable::Number(scalar, endian),
            Castable::Bytes(len) => Castable::Bytes(len),
            Castable::Unicode(len, _) => Castable::Unicode(len, endian),
            Castable::Time(kind, unit, _) => Castable::Time(kind, unit, endian),
        }
    }

    pub(super) fn bits(self) -> u64 {
        match self {
            Castable::Number(scalar, _) => scalar.bits(),
            Castable::Bytes(len) => u64::from(len) * 8,
            Castable::Unicode(len, _) => u64::from(len) * 32,
            Castable::Time(..) => 64,
        }
    }

    /// The bytes that are reversed together where the byte order changes.
    pub(super) fn swap_width(self) -> usize {
        match self {
            Castable::Number(..) => self.dtype().swap_width(),
            Castable::Bytes(_) => 1,
            Castable::Unicode(..) => 4,
            Castable::Time(..) => 8,
        }
    }
}
