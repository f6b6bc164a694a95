//! Blocks of numbers as doubles, for loops that become vectors.

use super::kernels::widen_f16;
use super::{Cast, CastError, Casting};
use crate::dtype::{DType, Endian, Scalar};

/// A reader of real numbers of one type as float64, which is exact except for integers of 64 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doubles {
    scalar: Scalar,
    endian: Endian,
    cast: Cast,
}

impl Doubles {
    pub(crate) fn new(scalar: Scalar, endian: Endian) -> Result<Doubles, CastError> {
        let double = DType::Scalar(Scalar::F64, Endian::Little);
        let cast = Cast::new(&DType::Scalar(scalar, endian), &double, Casting::Unsafe)?;
        Ok(Doubles { scalar, endian, cast })
    }

    pub(crate) fn size(self) -> usize {
        self.cast.input_bytes()
    }

    /// The values of at most `N` elements.
    #[inline(always)]
    pub(crate) fn read<'a, const N: usize>(
        self,
        bytes: &[u8],
        values: &'a mut [f64; N],
    ) -> &'a mut [f64] {
        macro_rules! filled {
            ($value:expr) => {
                return filled(values, bytes.as_chunks().0, $value)
            };
        }
        match self.scalar {
            Scalar::U8 => filled!(|[byte]: [u8; 1]| byte.into()),
            Scalar::I8 => filled!(|[byte]: [u8; 1]| byte.cast_signed().into()),
            Scalar::Bool => filled!(|[byte]: [u8; 1]| (byte != 0).into()),
            _ => {}
        }
        if self.endian == Endian::Little {
            match self.scalar {
                Scalar::F64 => filled!(f64::from_le_bytes),
                Scalar::F32 => filled!(|bytes| f32::from_le_bytes(bytes).into()),
                Scalar::F16 => filled!(|bytes| widen_f16(u16::from_le_bytes(bytes)).into()),
                Scalar::BF16 => filled!(|[low, high]| f32::from_le_bytes([0, 0, low, high]).into()),
                Scalar::I32 => filled!(|bytes| i32::from_le_bytes(bytes).into()),
                Scalar::I16 => filled!(|bytes| i16::from_le_bytes(bytes).into()),
                Scalar::U32 => filled!(|bytes| u32::from_le_bytes(bytes).into()),
                Scalar::U16 => filled!(|bytes| u16::from_le_bytes(bytes).into()),
                _ => {}
            }
        }
        let mut input = [[0; 8]; N];
        let mut output = [[0; 8]; N];
        let output = &mut output[..bytes.len() / self.size()];
        let input = &mut input.as_flattened_mut()[..bytes.len()];
        input.copy_from_slice(bytes);
        self.cast.run(input, output.as_flattened_mut());
        filled(values, output, f64::from_le_bytes)
    }
}

#[inline(always)]
fn filled<'a, const SIZE: usize>(
    values: &'a mut [f64],
    items: &[[u8; SIZE]],
    value: impl Fn([u8; SIZE]) -> f64,
) -> &'a mut [f64] {
    let values = &mut values[..items.len()];
    values.iter_mut().zip(items).for_each(|(to, &item)| *to = value(item));
    values
}
