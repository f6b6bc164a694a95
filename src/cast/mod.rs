//! Casts: elements of one type converted to another, as NumPy's `astype` does it, and as the
//! `ml_dtypes` package does for the floats that NumPy lacks. Numbers become other numbers, strings
//! become longer or shorter strings of their kind, datetimes and timedeltas change their unit.
//!
//! A number is rounded once, from its exact value to the nearest one, ties to even. A number too
//! large for a float becomes infinite, or NaN where the type has no infinities. From float to
//! integer the fraction is dropped; a number out of the integer's range becomes the nearest end of
//! that range, NaN becomes 0 (C leaves both undefined). From integer to integer the high bits are
//! dropped, from complex to real the imaginary part. Everything except 0 is true, NaN included.
//!
//! `ml_dtypes` 0.6 rounds float64 and large integers to float32 first, and so twice; here they are
//! rounded once. As in `ml_dtypes`, a number between the two smallest float8_e8m0fnu becomes the
//! larger one.
//!
//! float4_e2m1fn can be cast to other types, but other types cannot be cast to it. Two of its
//! numbers share a byte, the first in the low bits, as in ONNX and in PyTorch's `float4_e2m1fn_x2`,
//! which `.safetensors` hold.
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

use crate::dtype::{DType, Endian, NpyType, NumberKind as Kind, Scalar, TimeKind, TimeUnit};
use crate::element::{FloatFormat, Specials};

mod arithmetic;
mod doubles;
mod kernels;
mod times;
mod vectors;

pub use arithmetic::Arithmetic;
pub(crate) use doubles::Doubles;
pub(crate) use vectors::vectorized;

/// A conversion of elements from one type and byte order to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cast {
    from: Castable,
    to: Castable,
}

/// Why elements cannot be cast.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CastError {
    /// The rule forbids the cast.
    #[error("cannot cast from {from} to {to} according to the rule '{casting}'")]
    Refused { from: DType, to: DType, casting: Casting },
    /// A dtype whose elements cannot be cast, or not to the other dtype.
    #[error("dtype {0} holds no numbers that can be cast")]
    NotNumbers(DType),
    /// Elements of 6 bits.
    #[error(
        "elements of dtype {0} cannot be cast: no standard defines how they are packed into bytes"
    )]
    PartsOfBytes(DType),
    /// The target has elements smaller than a byte.
    #[error("cannot cast to {0}: its elements are smaller than a byte")]
    ToPartsOfBytes(DType),
    /// Between strings of bytes and strings of code points.
    #[error("cannot cast from {from} to {to}: the text may not be ASCII")]
    Text { from: DType, to: DType },
    /// Strings of more than 64 KiB.
    #[error("elements of dtype {0} are too long to be cast: the limit is {most} bytes", most = MOST_BYTES)]
    TooLong(DType),
    /// Units of time between which NumPy has no factor, or none of 64 bits.
    #[error(
        "cannot cast from {from} to {to}: the factor between their units does not fit into 64 bits"
    )]
    Units { from: DType, to: DType },
}

impl Cast {
    /// Plan a cast; fails where `casting` forbids it, or where no such conversion exists.
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

    /// Whether elements of a dtype can be cast to some other dtype.
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

    /// This cast, with its results in the byte order of `dtype`.
    #[must_use]
    pub fn with_order_of(self, dtype: &DType) -> Cast {
        Castable::of(dtype).map_or(self, |element| self.with_endian(element.endian))
    }

    /// The number of bytes to reverse together if only the byte order changes (1: none); `None`
    /// otherwise.
    pub fn swap_width(self) -> Option<usize> {
        let is_same = self.from.endian == self.to.endian;
        let width = if is_same { 1 } else { self.to.swap_width() };
        self.keeps_type().then_some(width)
    }

    fn unit(self) -> u64 {
        8 / self.from.bits().min(8)
    }

    /// The input bytes of one element, or of the elements that share a byte.
    pub fn input_bytes(self) -> usize {
        (self.unit() * self.from.bits() / 8) as usize
    }

    /// The output bytes of the elements that [`input_bytes`](Cast::input_bytes) holds.
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

/// Reverse the byte order of numbers of `width` bytes.
#[inline(always)]
pub(crate) fn swap(bytes: &mut [u8], width: usize) {
    #[inline(always)]
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

/// The longest string that can be cast, in bytes: a whole string lies in memory beside its result.
pub(super) const MOST_BYTES: u64 = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Castable {
    pub(super) kind: CastKind,
    /// The byte order; `Little` for types without one.
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
    /// The castable form of a dtype; `None` for dtypes that cannot be cast to anything.
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

/// A rule for casts, as in NumPy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Casting {
    /// Only casts that keep every value (and, as in NumPy, from integers of 64 bits to float64).
    Safe,
    /// Casts within a kind or to a wider kind, too: float64 to float32, int64 to float16.
    #[default]
    SameKind,
    /// Every cast.
    Unsafe,
}

/// Whether a rule allows a cast (np.can_cast). Where NumPy lacks one of the types, `Safe` allows
/// casts that keep every value.
pub fn can_cast(from: Scalar, to: Scalar, casting: Casting) -> bool {
    match casting {
        Casting::Unsafe => true,
        Casting::SameKind => from.kind() <= to.kind() || is_safe(from, to),
        Casting::Safe => is_safe(from, to),
    }
}

fn is_safe(from: Scalar, to: Scalar) -> bool {
    match (from.kind(), to.kind()) {
        _ if from == to => true,
        (ours, Kind::Complex) if ours != Kind::Complex => {
            to.part().is_some_and(|part| is_safe(from, part))
        }
        (Kind::Float, Kind::Float) => keeps_floats(from, to),
        (ours, Kind::Float) if !to.is_numpys() => keeps_integers(ours, from, to),
        (Kind::Bool, _) => true,
        (ours, theirs) if ours == theirs => from.bits() <= to.bits(),
        (Kind::Unsigned, Kind::Signed) => from.bits() < to.bits(),
        // an equal width is enough only for 64 bits
        (Kind::Unsigned | Kind::Signed, Kind::Float) => from.bits() < to.bits() || to.bits() == 64,
        _ => false,
    }
}

fn format(scalar: Scalar) -> Option<FloatFormat> {
    if scalar == Scalar::F4 { Some(FloatFormat::F4) } else { FloatFormat::of(scalar) }
}

fn keeps_floats(from: Scalar, to: Scalar) -> bool {
    let (Some(from), Some(to)) = (format(from), format(to)) else { return false };
    // the greatest number lacks the last mantissa bit where this code is NaN
    let is_short = |format: FloatFormat| format.specials == Specials::Last;
    let reaches = to.top > from.top || (to.top == from.top && (is_short(from) || !is_short(to)));
    // the type without a sign has no 0 either
    from.mantissa <= to.mantissa
        && to.least - to.mantissa as i32 <= from.least - from.mantissa as i32
        && reaches
        && (to.infinity().is_some() || from.infinity().is_none())
        && (to.signed || !from.signed)
}

/// Whether a float type of 8 or 16 bits represents every integer (or boolean) of a type.
fn keeps_integers(kind: Kind, from: Scalar, to: Scalar) -> bool {
    let Some(to) = format(to).filter(|to| to.signed) else { return false };
    let bits = match kind {
        Kind::Bool => 1,
        Kind::Signed => from.bits() - 1,
        _ => from.bits(),
    };
    bits <= u64::from(to.mantissa) + 1 && bits as i32 <= to.top
}

// The common dtype of two dtypes: np.result_type, and the additions of `ml_dtypes`.
//
// Parts of it follow no rule: 16-bit floats of two kinds have no common type; float8_e5m2 is a
// float of NumPy's own kind, the other small floats are not.

/// The common dtype of two dtypes (np.result_type), little-endian; `None` where NumPy has none.
pub fn result_type(one: &DType, other: &DType) -> Option<DType> {
    match (one, other) {
        (DType::Scalar(one, _), DType::Scalar(other, _)) => {
            let common = if one.is_numpys() && other.is_numpys() {
                of_numpys(*one, *other)
            } else {
                of_others(*one, *other)
            };
            common.map(|scalar| DType::Scalar(scalar, Endian::Little))
        }
        _ => None,
    }
}

/// The common type of two types of NumPy: the first of the lowest kind to which both cast safely.
fn of_numpys(one: Scalar, other: Scalar) -> Option<Scalar> {
    let holds_both = |to: &Scalar| to.is_numpys() && is_safe(one, *to) && is_safe(other, *to);
    let types = Scalar::ALL.into_iter().filter(holds_both);
    types.min_by_key(|scalar| (scalar.kind(), scalar.bits()))
}

/// The common type of two number types, at least one of which NumPy lacks.
fn of_others(one: Scalar, other: Scalar) -> Option<Scalar> {
    use Scalar::{
        Bool, C64, C128, F4, F6E2M3, F6E3M2, F8E4M3, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F16, F32, F64,
        I8, I16, U8, U16,
    };
    // of two types in this list, the first one
    const ORDER: [Scalar; 6] = [F8E4M3, F8E4M3Fnuz, F8E5M2Fnuz, F6E2M3, F6E3M2, F4];
    if one == other {
        return Some(one);
    }
    let (special, numpys) = match (one.is_numpys(), other.is_numpys()) {
        (false, true) => (one, other),
        (true, false) => (other, one),
        _ if [one, other].iter().all(|scalar| ORDER.contains(scalar)) => {
            return ORDER.into_iter().find(|scalar| [one, other].contains(scalar));
        }
        _ => return None,
    };
    match numpys {
        Bool | I8 | U8 => Some(special),
        F32 | F64 | C64 | C128 => Some(numpys),
        F16 | I16 | U16 if special == F8E5M2 => Some(F32),
        _ if special == F8E5M2 => Some(F64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_two_does_not_matter() {
        for one in Scalar::ALL {
            for other in Scalar::ALL {
                let dtype = |scalar| DType::Scalar(scalar, Endian::Big);
                let common = result_type(&dtype(one), &dtype(other));
                assert_eq!(common, result_type(&dtype(other), &dtype(one)));
                if one == other {
                    assert_eq!(common, Some(DType::Scalar(one, Endian::Little)));
                }
            }
        }
    }

    /// Expected: np.result_type of NumPy 2.4 with ml_dtypes; tests/python/cast_differential.py
    /// asks it for all pairs.
    #[test]
    fn common_types_are_those_of_numpy() {
        use Scalar::*;
        for (one, other, common) in [
            (I64, F32, Some(F64)),
            (I16, F16, Some(F32)),
            (U64, I8, Some(F64)),
            (U8, I8, Some(I16)),
            (U8, I32, Some(I32)),
            (C64, I32, Some(C128)),
            (C64, F16, Some(C64)),
            (C64, F64, Some(C128)),
            (Bool, F8E8M0, Some(F8E8M0)),
            (BF16, F16, None),
            (BF16, I16, None),
            (BF16, F32, Some(F32)),
            (F8E5M2, I16, Some(F32)),
            (F8E5M2, BF16, None),
            (F8E5M2Fnuz, F8E4M3, Some(F8E4M3)),
        ] {
            let dtype = |scalar| DType::Scalar(scalar, Endian::Little);
            assert_eq!(
                result_type(&dtype(one), &dtype(other)),
                common.map(dtype),
                "{one:?} {other:?}"
            );
        }
    }
}
