//! Casts followed by arithmetic: some values become NaN, a factor and a number are applied, NaN is replaced.

use super::kernels::narrow_bf16;
use super::{Cast, vectorized};
use crate::dtype::{DType, Scalar};
use crate::element::FloatFormat;

/// The steps that elements go through; each result is rounded to the cast's dtype.
#[derive(Clone, Debug)]
pub struct Arithmetic {
    /// The first step: to a little-endian float, or to an integer that is scaled, where other steps follow.
    pub cast: Cast,
    /// Values that become NaN.
    pub fills: Vec<f64>,
    pub scale: Option<f64>,
    pub offset: Option<f64>,
    /// The value that replaces NaN, as the last step.
    pub nan: Option<f64>,
}

/// The bytes of a block that is computed at a time: it stays in the first cache.
const BLOCK: usize = 8 << 10;

impl Arithmetic {
    /// Compute as many elements as both buffers hold. `input` serves as scratch space.
    pub fn run(&self, input: &mut [u8], output: &mut [u8]) {
        let count = BLOCK / self.cast.output_bytes();
        let stored = input.chunks_mut(count * self.cast.input_bytes());
        for (stored, block) in stored.zip(output.chunks_mut(count * self.cast.output_bytes())) {
            self.cast.run(stored, block);
            match self.cast.to() {
                DType::Scalar(Scalar::F32, _) => self.singles(block),
                DType::Scalar(Scalar::F64, _) => self.doubles(block),
                DType::Scalar(Scalar::F16, _) => self.halves(block),
                DType::Scalar(Scalar::BF16, _) => self.bfloats(block),
                DType::Scalar(scalar, _) if let Some(format) = FloatFormat::of(scalar) => {
                    self.codes(block, format);
                }
                _ => self.integers(block),
            }
        }
    }

    fn doubles(&self, block: &mut [u8]) {
        let (last, others) = self.fills_apart();
        others.iter().for_each(|fill| mask_doubles(block, *fill));
        match self.factors() {
            Some([scale, offset]) => scale_doubles(block, last, scale, offset),
            None => mask_doubles(block, last),
        }
        if let Some(nan) = self.nan {
            replace_nan_of_doubles(block, nan);
        }
    }

    fn singles(&self, block: &mut [u8]) {
        let exact = |value: f64| Some(value as f32).filter(|single| f64::from(*single) == value);
        let single = |fill: f64| exact(fill).unwrap_or(f32::NAN);
        let (last, others) = self.fills_apart();
        let last = single(last);
        others.iter().for_each(|fill| mask_singles(block, single(*fill)));
        match self.factors().map(|[scale, offset]| (scale, offset, exact(scale), exact(offset))) {
            Some((.., Some(scale), Some(offset))) => scale_singles(block, last, scale, offset),
            Some((scale, offset, ..)) => scale_singles_by_doubles(block, last, scale, offset),
            None => mask_singles(block, last),
        }
        if let Some(nan) = self.nan {
            replace_nan_of_singles(block, nan as f32);
        }
    }

    fn bfloats(&self, block: &mut [u8]) {
        if let Some([scale, offset]) = self.factors() {
            scale_bfloats(block, scale as f32, offset as f32);
        }
        if let Some(nan) = self.nan {
            replace_nan_of_bfloats(block, nan as f32);
        }
    }

    /// Apply the steps to floats of one byte by a table, as there are few codes. Each step is computed in single
    /// precision and rounded, as in `ml_dtypes`.
    fn codes(&self, block: &mut [u8], format: FloatFormat) {
        let rounded = |value: f32| format.value(format.round(value.into()).into()) as f32;
        let result = |code: usize| {
            let mut value = format.value(code as u128) as f32;
            if let Some([scale, offset]) = self.factors() {
                value = rounded(rounded(value * scale as f32) + offset as f32);
            }
            let value = if value.is_nan() { self.nan.unwrap_or(f64::NAN) } else { value.into() };
            if value.is_nan() { format.nan() as u8 } else { format.round(value) as u8 }
        };
        let results: [u8; 256] = std::array::from_fn(result);
        block.iter_mut().for_each(|byte| *byte = results[usize::from(*byte)]);
    }

    /// The last fill, which becomes NaN while elements are scaled, and the other fills. Without fills the last one
    /// is NaN, which equals nothing.
    fn fills_apart(&self) -> (f64, &[f64]) {
        self.fills.split_last().map_or((f64::NAN, &[]), |(last, others)| (*last, others))
    }

    /// The factor and the added number; `None` where there is neither.
    fn factors(&self) -> Option<[f64; 2]> {
        let is_any = self.scale.is_some() || self.offset.is_some();
        is_any.then(|| [self.scale.unwrap_or(1.0), self.offset.unwrap_or(-0.0)])
    }

    /// Scale integers with wrapping arithmetic, as NumPy does.
    fn integers(&self, block: &mut [u8]) {
        let Some(scale) = self.scale else { return };
        let scale = scale as i64;
        match self.cast.to().item_bits() {
            8 => block.iter_mut().for_each(|byte| *byte = byte.wrapping_mul(scale as u8)),
            16 => scale_shorts(block, scale as u16),
            32 => scale_words(block, scale as u32),
            64 => scale_longs(block, scale as u64),
            _ => {}
        }
    }

    fn halves(&self, block: &mut [u8]) {
        for bytes in block.as_chunks_mut::<2>().0 {
            let mut value = half::f16::from_le_bytes(*bytes).to_f64();
            if self.fills.contains(&value) {
                value = f64::NAN;
            }
            let scaled = half::f16::from_f64(value * self.scale.unwrap_or(1.0));
            let moved = half::f16::from_f64(scaled.to_f64() + self.offset.unwrap_or(-0.0));
            let nan = self.nan.filter(|_| moved.is_nan());
            *bytes = nan.map_or(moved, half::f16::from_f64).to_le_bytes();
        }
    }
}

#[inline(always)]
fn widen_bf16(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Declare a loop over elements of a type, of so many bytes each, which replaces the value of each.
macro_rules! each {
    (fn $name:ident($value:ident: $type:ty, $width:literal $(, $arg:ident: $of:ty)*) $body:expr) => {
        vectorized! {
            fn $name(block: &mut [u8] $(, $arg: $of)*) {
                for bytes in block.as_chunks_mut::<$width>().0 {
                    let $value = <$type>::from_le_bytes(*bytes);
                    let value: $type = $body;
                    *bytes = value.to_le_bytes();
                }
            }
        }
    };
}

each!(fn mask_doubles(value: f64, 8, fill: f64) if value == fill { f64::NAN } else { value });
each!(fn mask_singles(value: f32, 4, fill: f32) if value == fill { f32::NAN } else { value });
each! {
    fn scale_doubles(value: f64, 8, fill: f64, scale: f64, offset: f64) {
        let value = if value == fill { f64::NAN } else { value };
        value * scale + offset
    }
}
each! {
    fn scale_singles(value: f32, 4, fill: f32, scale: f32, offset: f32) {
        let value = if value == fill { f32::NAN } else { value };
        value * scale + offset
    }
}
each! {
    fn scale_singles_by_doubles(value: f32, 4, fill: f32, scale: f64, offset: f64) {
        let value = if value == fill { f32::NAN } else { value };
        let scaled = (f64::from(value) * scale) as f32;
        (f64::from(scaled) + offset) as f32
    }
}
each!(fn replace_nan_of_doubles(value: f64, 8, nan: f64) if value.is_nan() { nan } else { value });
each!(fn replace_nan_of_singles(value: f32, 4, nan: f32) if value.is_nan() { nan } else { value });
each! {
    fn scale_bfloats(value: u16, 2, scale: f32, offset: f32) {
        let scaled = narrow_bf16(widen_bf16(value) * scale) as u16;
        narrow_bf16(widen_bf16(scaled) + offset) as u16
    }
}
each! {
    fn replace_nan_of_bfloats(value: u16, 2, nan: f32) {
        if widen_bf16(value).is_nan() { narrow_bf16(nan) as u16 } else { value }
    }
}
each!(fn scale_shorts(value: u16, 2, scale: u16) value.wrapping_mul(scale));
each!(fn scale_words(value: u32, 4, scale: u32) value.wrapping_mul(scale));
each!(fn scale_longs(value: u64, 8, scale: u64) value.wrapping_mul(scale));
