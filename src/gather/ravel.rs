//! From raw index numbers to byte offsets: one multiplication and one comparison a number.
//!
//! NumPy calls it `ravel_multi_index`. A tuple is a sequence of numbers, one for each axis that it
//! indexes. The kernels are compiled for each width and byte order of the numbers and for tuples of
//! up to four; they only notice *that* a number is out of range. The caller finds the number, and
//! what happens then, with `Integers::value`.

use crate::dtype::{Endian, Integers};
use crate::runs::Axis;

/// A kernel that writes the offset of each tuple of `raw` to `out`. `axes` are the indexed axes,
/// with lengths below 2^63; offsets before the first element wrap around. It returns false if some
/// number is not a position of its axis; the offsets are then meaningless.
pub(super) type Ravel = fn(raw: &[u8], axes: &[Axis], out: &mut [u64]) -> bool;

/// The kernel for tuples of `count` numbers; negative ones count from the end if `negative` is set.
pub(super) fn kernel(integers: Integers, count: usize, negative: bool) -> Ravel {
    match (negative && integers.signed, integers.endian) {
        (false, Endian::Little) => chosen::<false, false>(integers, count),
        (false, Endian::Big) => chosen::<false, true>(integers, count),
        (true, Endian::Little) => chosen::<true, false>(integers, count),
        (true, Endian::Big) => chosen::<true, true>(integers, count),
    }
}

fn chosen<const NEGATIVE: bool, const BIG: bool>(integers: Integers, count: usize) -> Ravel {
    match (integers.width, integers.signed) {
        (1, true) => by_count::<i8, 1, NEGATIVE, BIG>(count),
        (1, false) => by_count::<u8, 1, NEGATIVE, BIG>(count),
        (2, true) => by_count::<i16, 2, NEGATIVE, BIG>(count),
        (2, false) => by_count::<u16, 2, NEGATIVE, BIG>(count),
        (4, true) => by_count::<i32, 4, NEGATIVE, BIG>(count),
        (4, false) => by_count::<u32, 4, NEGATIVE, BIG>(count),
        (_, true) => by_count::<i64, 8, NEGATIVE, BIG>(count),
        (_, false) => by_count::<u64, 8, NEGATIVE, BIG>(count),
    }
}

fn by_count<W: RavelWord<B>, const B: usize, const NEGATIVE: bool, const BIG: bool>(
    count: usize,
) -> Ravel {
    match count {
        1 => ravel::<W, B, 1, NEGATIVE, BIG>,
        2 => ravel::<W, B, 2, NEGATIVE, BIG>,
        3 => ravel::<W, B, 3, NEGATIVE, BIG>,
        4 => ravel::<W, B, 4, NEGATIVE, BIG>,
        _ => ravel_any::<W, B, NEGATIVE, BIG>,
    }
}

/// A number as a position; negative ones count from the end, without a branch.
fn counted<const NEGATIVE: bool>(number: u64, len: u64) -> u64 {
    if NEGATIVE { number.wrapping_add(len & ((number as i64) >> 63) as u64) } else { number }
}

fn ravel<W: RavelWord<B>, const B: usize, const N: usize, const NEGATIVE: bool, const BIG: bool>(
    raw: &[u8],
    axes: &[Axis],
    out: &mut [u64],
) -> bool {
    let Some(axes) = axes.first_chunk::<N>() else { return false };
    let tuples = raw.as_chunks::<B>().0.as_chunks::<N>().0;
    let mut inside = true;
    for (out, tuple) in out.iter_mut().zip(tuples) {
        let mut offset = 0u64;
        for (&number, axis) in tuple.iter().zip(axes) {
            let number = counted::<NEGATIVE>(W::wide::<BIG>(number), axis.len);
            inside &= number < axis.len;
            // the sum is correct if all numbers are in range
            offset = offset.wrapping_add(number.wrapping_mul(axis.stride as u64));
        }
        *out = offset;
    }
    inside
}

/// The kernel for tuples of any number of numbers, also 0.
fn ravel_any<W: RavelWord<B>, const B: usize, const NEGATIVE: bool, const BIG: bool>(
    raw: &[u8],
    axes: &[Axis],
    out: &mut [u64],
) -> bool {
    let numbers = raw.as_chunks::<B>().0;
    out.fill(0);
    let mut inside = true;
    for (place, axis) in axes.iter().enumerate() {
        let numbers = numbers.iter().skip(place).step_by(axes.len());
        for (out, &number) in out.iter_mut().zip(numbers) {
            let number = counted::<NEGATIVE>(W::wide::<BIG>(number), axis.len);
            inside &= number < axis.len;
            *out = out.wrapping_add(number.wrapping_mul(axis.stride as u64));
        }
    }
    inside
}

/// A number of `B` bytes as a file holds it.
trait RavelWord<const B: usize> {
    /// The value in 64 bits, of bytes in big-endian order if `BIG` is set; negative ones become larger than any length
    /// of an axis.
    fn wide<const BIG: bool>(bytes: [u8; B]) -> u64;
}

macro_rules! words {
    ($($integer:ty, $bytes:literal;)*) => {$(
        impl RavelWord<$bytes> for $integer {
            #[inline]
            fn wide<const BIG: bool>(bytes: [u8; $bytes]) -> u64 {
                let number = <$integer>::from_le_bytes(bytes);
                let number = if BIG { number.swap_bytes() } else { number };
                // sign-extending where the type is signed
                number as i64 as u64
            }
        }
    )*};
}

words! { i8, 1; u8, 1; i16, 2; u16, 2; i32, 4; u32, 4; i64, 8; u64, 8; }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::{DType, Scalar};

    fn raw(value: i128, width: usize, endian: Endian) -> Vec<u8> {
        let mut bytes = value.to_le_bytes()[..width].to_vec();
        if endian == Endian::Big {
            bytes.reverse();
        }
        bytes
    }

    #[test]
    fn every_type_is_read_exactly() {
        let types = [
            (Scalar::I8, i128::from(i8::MIN), i128::from(i8::MAX)),
            (Scalar::I16, i128::from(i16::MIN), i128::from(i16::MAX)),
            (Scalar::I32, i128::from(i32::MIN), i128::from(i32::MAX)),
            (Scalar::I64, i128::from(i64::MIN), i128::from(i64::MAX)),
            (Scalar::U8, 0, i128::from(u8::MAX)),
            (Scalar::U16, 0, i128::from(u16::MAX)),
            (Scalar::U32, 0, i128::from(u32::MAX)),
            (Scalar::U64, 0, i128::from(u64::MAX)),
        ];
        for (scalar, low, high) in types {
            for endian in [Endian::Little, Endian::Big] {
                let integers = Integers::new(&DType::Scalar(scalar, endian)).unwrap();
                for value in [low, 1, 100, high] {
                    let raw = raw(value, integers.width, endian);
                    assert_eq!(integers.value(&raw), value);
                    for count in 1..6 {
                        let axes = vec![Axis { len: i64::MAX as u64, stride: 1 }; count];
                        let mut out = [7];
                        let tuple = raw.repeat(count);
                        let inside = kernel(integers, count, false)(&tuple, &axes, &mut out);
                        assert_eq!(inside, (0..i128::from(i64::MAX)).contains(&value));
                        if inside && value < 1 << 40 {
                            assert_eq!(i128::from(out[0]), value * count as i128);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn other_types_are_no_indices() {
        for scalar in [Scalar::Bool, Scalar::F32, Scalar::C64, Scalar::BF16, Scalar::F4] {
            assert_eq!(Integers::new(&DType::Scalar(scalar, Endian::Little)), None);
        }
    }
}
