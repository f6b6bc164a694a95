//! Casts: elements of one type converted to another, as NumPy's `astype` does it, and as the
//! `ml_dtypes` package does for the floats that NumPy lacks. Numbers become other numbers, strings
//! longer or shorter strings of their kind, datetimes and timedeltas those of other units.
//!
//! A number is rounded once, from its exact value to the nearest one, ties to even. What is too
//! large for a float becomes infinite, or NaN where the type has no infinities. From float to
//! integer the fraction is dropped; a number out of the integer's range becomes the nearest end of
//! that range, NaN becomes 0 (C leaves both open). From integer to integer the high bits are
//! dropped, from complex to real the imaginary part. Everything but 0 is true, NaN included.
//!
//! `ml_dtypes` 0.6 rounds float64 and large integers to float32 first, and so twice; here they are
//! rounded once. As there, what lies between the two smallest float8_e8m0fnu becomes the larger
//! one.
//!
//! float4_e2m1fn can be cast to other types, but not the other way. Two of its numbers share a
//! byte, the first in the low bits, as in ONNX and in PyTorch's `float4_e2m1fn_x2`, which
//! `.safetensors` hold.
//!
//! ```
//! use tslice::cast::{Cast, Casting};
//! use tslice::dtype::{DType, Endian, Scalar};
//! let float = DType::Scalar(Scalar::F32, Endian::Little);
//! let bfloat = DType::Scalar(Scalar::BF16, Endian::Big);
//! let cast = Cast::new(&float, &bfloat, Casting::SameKind)?;
//! let mut output = [0; 2];
//! cast.run(&mut 1.005f32.to_le_bytes(), &mut output);
//! assert_eq!(output, [0x3f, 0x81]);
//! assert!(Cast::new(&bfloat, &float, Casting::Safe).is_ok());
//! assert!(Cast::new(&float, &bfloat, Casting::Safe).is_err());
//! # Ok::<(), tslice::cast::CastError>(())
//! ```

use std::fmt;

use crate::dtype::{DType, Endian, NpyType, Scalar, TimeKind, TimeUnit};

mod kernels;
mod number;
mod rules;
mod times;

pub use rules::{Casting, can_cast, result_type};

/// A conversion of elements from one type and byte order to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cast {
    from: Castable,
    to: Castable,
}

/// Why elements cannot be cast.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CastError {
    /// The rule does not allow it.
    #[error("cannot cast from {from} to {to} according to the rule '{casting}'")]
    Refused {
        /// The dtype of the elements.
        from: DType,
        /// The dtype that they were to have.
        to: DType,
        casting: Casting,
    },
    /// A dtype whose elements cannot be cast, or not to those of the other dtype.
    #[error("dtype {0} holds no numbers that can be cast")]
    NotNumbers(DType),
    /// Elements of 6 bits.
    #[error("elements of dtype {0} cannot be cast: it is not settled how they share bytes")]
    PartsOfBytes(DType),
    /// The target has elements smaller than a byte.
    #[error("cannot cast to {0}: its elements are smaller than a byte")]
    ToPartsOfBytes(DType),
    /// Between strings of bytes and strings of code points.
    #[error("cannot cast from {from} to {to}: only text in ASCII could be both, and it may not be")]
    Text {
        /// The dtype of the elements.
        from: DType,
        /// The dtype that they were to have.
        to: DType,
    },
    /// Strings of more than 64 KiB.
    #[error("elements of dtype {0} are too long to be cast: at most {most} bytes can be", most = MOST_BYTES)]
    TooLong(DType),
    /// Units of time between which NumPy has no factor, or none of 64 bits.
    #[error("cannot cast from {from} to {to}: there is no factor of 64 bits between their units")]
    Units {
        /// The dtype of the elements.
        from: DType,
        /// The dtype that they were to have.
        to: DType,
    },
}

impl Cast {
    /// Plan a cast; fails where `casting` does not allow it, or where there is no such conversion.
    pub fn new(from: &DType, to: &DType, casting: Casting) -> Result<Cast, CastError> {
        let element =
            |dtype: &DType| Castable::of(dtype).ok_or_else(|| CastError::NotNumbers(dtype.clone()));
        let cast = Cast { from: element(from)?, to: element(to)? };
        let both = || (from.clone(), to.clone());
        let allowed = match (cast.from.kind, cast.to.kind) {
            (CastKind::Number(ours), CastKind::Number(theirs)) => {
                if theirs.bits() < 8 {
                    return Err(CastError::ToPartsOfBytes(to.clone()));
                }
                if matches!(ours, Scalar::F6E2M3 | Scalar::F6E3M2) {
                    return Err(CastError::PartsOfBytes(from.clone()));
                }
                can_cast(ours, theirs, casting)
            }
            (CastKind::Bytes(_), CastKind::Bytes(_))
            | (CastKind::Unicode(_), CastKind::Unicode(_)) => {
                let is_long = |dtype: &&DType| dtype.item_bits() / 8 > MOST_BYTES;
                if let Some(dtype) = [from, to].into_iter().find(is_long) {
                    return Err(CastError::TooLong(dtype.clone()));
                }
                casting != Casting::Safe || cast.from.bits() <= cast.to.bits()
            }
            (CastKind::Bytes(_), CastKind::Unicode(_))
            | (CastKind::Unicode(_), CastKind::Bytes(_)) => {
                let (from, to) = both();
                return Err(CastError::Text { from, to });
            }
            (CastKind::Time(kind, ours), CastKind::Time(other, theirs)) if kind == other => {
                if !times::convertible(kind, ours, theirs) {
                    let (from, to) = both();
                    return Err(CastError::Units { from, to });
                }
                times::can_cast(kind, ours, theirs, casting)
            }
            (CastKind::Number(_), _) => return Err(CastError::NotNumbers(to.clone())),
            _ => return Err(CastError::NotNumbers(from.clone())),
        };
        if allowed {
            Ok(cast)
        } else {
            let (from, to) = both();
            Err(CastError::Refused { from, to, casting })
        }
    }

    /// Whether elements of a dtype can be cast at all.
    pub fn knows(dtype: &DType) -> bool {
        Castable::of(dtype).is_some()
    }

    pub fn from(self) -> DType {
        self.from.dtype()
    }

    pub fn to(self) -> DType {
        self.to.dtype()
    }

    /// Whether the type stays the same; the byte order may change.
    pub fn keeps_type(self) -> bool {
        self.from.kind == self.to.kind
    }

    #[must_use]
    pub fn with_endian(self, endian: Endian) -> Cast {
        Cast { to: Castable { endian, ..self.to }, ..self }
    }

    #[must_use]
    pub fn of_swapped(self) -> Cast {
        Cast { from: Castable { endian: self.from.endian.swapped(), ..self.from }, ..self }
    }

    #[must_use]
    pub fn to_swapped(self) -> Cast {
        self.with_endian(self.to.endian.swapped())
    }

    /// This cast with the byte order of `dtype` for its results.
    #[must_use]
    pub fn with_order_of(self, dtype: &DType) -> Cast {
        Castable::of(dtype).map_or(self, |element| self.with_endian(element.endian))
    }

    /// The bytes to reverse together if only the byte order changes (1: none); `None` otherwise.
    pub fn swap_width(self) -> Option<usize> {
        let is_same = self.from.endian == self.to.endian;
        let width = if is_same { 1 } else { self.to.swap_width() };
        self.keeps_type().then_some(width)
    }

    fn unit(self) -> u64 {
        8 / self.from.bits().min(8)
    }

    /// Input bytes of one element, or of those that share a byte.
    pub fn input_bytes(self) -> usize {
        (self.unit() * self.from.bits() / 8) as usize
    }

    /// Output bytes of as many elements as [`input_bytes`](Cast::input_bytes) holds.
    pub fn output_bytes(self) -> usize {
        (self.unit() * self.to.bits() / 8) as usize
    }

    /// Cast as many elements as fit into both buffers. `input` serves as scratch space.
    pub fn run(self, input: &mut [u8], output: &mut [u8]) {
        if self.from.endian == Endian::Big {
            swap(input, self.from.swap_width());
        }
        match (self.from.kind, self.to.kind) {
            (CastKind::Number(from), CastKind::Number(to)) => {
                kernels::run(from, to, input, output);
            }
            (CastKind::Time(kind, from), CastKind::Time(_, to)) => {
                times::run(kind, from, to, input, output);
            }
            _ => kernels::fit(self.input_bytes(), self.output_bytes(), input, output),
        }
        if self.to.endian == Endian::Big {
            swap(output, self.to.swap_width());
        }
    }
}

fn swap(bytes: &mut [u8], width: usize) {
    fn reverse<const N: usize>(bytes: &mut [u8]) {
        bytes.as_chunks_mut::<N>().0.iter_mut().for_each(|number| number.reverse());
    }
    match width {
        2 => reverse::<2>(bytes),
        4 => reverse::<4>(bytes),
        8 => reverse::<8>(bytes),
        _ => {}
    }
}

impl fmt::Display for Casting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Casting::Safe => "safe",
            Casting::SameKind => "same-kind",
            Casting::Unsafe => "unsafe",
        })
    }
}

/// The longest string that is cast, in bytes: a whole one lies in memory beside its result.
pub(super) const MOST_BYTES: u64 = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Castable {
    pub(super) kind: CastKind,
    /// `Little` for types without a byte order.
    pub(super) endian: Endian,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CastKind {
    Number(Scalar),
    Bytes(u32),
    Unicode(u32),
    Time(TimeKind, TimeUnit),
}

impl Castable {
    /// `None` for dtypes that cannot be cast to anything.
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

    pub(super) fn swap_width(self) -> usize {
        match self.kind {
            CastKind::Number(_) | CastKind::Bytes(_) => self.dtype().swap_width(),
            CastKind::Unicode(_) => 4,
            CastKind::Time(..) => 8,
        }
    }
}
