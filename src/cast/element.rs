//! The types that can be cast: numbers, strings, datetimes and lengths of time.

use crate::dtype::{DType, Endian, NpyType, Scalar, TimeKind, TimeUnit};

/// The most bytes of a string that is cast: a whole one lies in memory beside what it becomes.
pub(super) const MOST_BYTES: u64 = 64 << 10;

/// A type of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Castable {
    pub(super) kind: CastKind,
    /// `Little` where there is none.
    pub(super) endian: Endian,
}

/// A type of elements in any byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CastKind {
    Number(Scalar),
    /// So many bytes.
    Bytes(u32),
    /// So many code points.
    Unicode(u32),
    Time(TimeKind, TimeUnit),
}

impl Castable {
    /// The type of elements of a dtype, where they can be cast to something.
    pub(super) fn of(dtype: &DType) -> Option<Castable> {
        let (kind, endian) = match *dtype {
            DType::Scalar(scalar, endian) => (CastKind::Number(scalar), endian),
            DType::Npy(NpyType::Bytes(len)) if len > 0 => {
                (CastKind::Bytes(u32::try_from(len).ok()?), Endian::Little)
            }
            DType::Npy(NpyType::Unicode(len, endian)) if len > 0 => {
                (CastKind::Unicode(u32::try_from(len).ok()?), endian)
            }
            DType::Npy(NpyType::Time(kind, endian, unit)) => (CastKind::Time(kind, unit), endian),
            DType::Npy(_) | DType::Blocks(_) => return None,
        };
        Some(Castable { kind, endian })
    }

    pub(super) fn dtype(self) -> DType {
        match self.kind {
            CastKind::Number(scalar) => DType::Scalar(scalar, self.endian),
            CastKind::Bytes(len) => DType::Npy(NpyType::Bytes(len.into())),
            CastKind::Unicode(len) => DType::Npy(NpyType::Unicode(len.into(), self.endian)),
            CastKind::Time(kind, unit) => DType::Npy(NpyType::Time(kind, self.endian, unit)),
        }
    }

    pub(super) fn bits(self) -> u64 {
        self.dtype().item_bits()
    }

    /// The bytes that are reversed together where the byte order changes.
    pub(super) fn swap_width(self) -> usize {
        match self.kind {
            CastKind::Number(_) | CastKind::Bytes(_) => self.dtype().swap_width(),
            CastKind::Unicode(_) => 4,
            CastKind::Time(..) => 8,
        }
    }
}
