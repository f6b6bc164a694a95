//! Elements cast, then computed with: some values made NaN, a factor and a number applied.

use super::{Cast, vectorized};
use crate::dtype::{DType, Scalar};

/// What elements go through; each result is rounded to the dtype that the cast gives.
#[derive(Clone, Debug)]
pub struct Arithmetic {
    /// To a little-endian float of 16, 32 or 64 bits, where anything follows.
    pub cast: Cast,
    /// Values that become NaN.
    pub fills: Vec<f64>,
    pub scale: Option<f64>,
    pub offset: Option<f64>,
}

/// Bytes that are computed with together: they stay in the first cache.
const BLOCK: usize = 8 << 10;

impl Arithmetic {
    /// Compute as many elements as both buffers hold. `input` serves as scratch space.
    pub fn run(&self, input: &mut [u8], output: &mut [u8]) {
        self.cast.run(input, output);
        for block in output.chunks_mut(BLOCK) {
            match self.cast.to() {
                DType::Scalar(Scalar::F32, _) => self.singles(block),
                DType::Scalar(Scalar::F64, _) => self.doubles(block),
                DType::Scalar(Scalar::F16, _) => self.halves(block),
                _ => {}
            }
        }
    }

    fn doubles(&self, block: &mut [u8]) {
        self.fills.iter().for_each(|fill| mask_doubles(block, *fill));
        if self.scale.is_some() || self.offset.is_some() {
            scale_doubles(block, self.scale.unwrap_or(1.0), self.offset.unwrap_or(-0.0));
        }
    }

    fn singles(&self, block: &mut [u8]) {
        let exact = |value: f64| Some(value as f32).filter(|single| f64::from(*single) == value);
        self.fills
            .iter()
            .filter_map(|fill| exact(*fill))
            .for_each(|fill| mask_singles(block, fill));
        if self.scale.is_none() && self.offset.is_none() {
            return;
        }
        let scale = self.scale.unwrap_or(1.0);
        let offset = self.offset.unwrap_or(-0.0);
        match (exact(scale), exact(offset)) {
            (Some(scale), Some(offset)) => scale_singles(block, scale, offset),
            _ => scale_singles_by_doubles(block, scale, offset),
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
            *bytes = moved.to_le_bytes();
        }
    }
}

vectorized! {
    fn mask_doubles(block: &mut [u8], fill: f64) {
        for bytes in block.as_chunks_mut::<8>().0 {
            let value = f64::from_le_bytes(*bytes);
            *bytes = if value == fill { f64::NAN } else { value }.to_le_bytes();
        }
    }
}

vectorized! {
    fn mask_singles(block: &mut [u8], fill: f32) {
        for bytes in block.as_chunks_mut::<4>().0 {
            let value = f32::from_le_bytes(*bytes);
            *bytes = if value == fill { f32::NAN } else { value }.to_le_bytes();
        }
    }
}

vectorized! {
    fn scale_doubles(block: &mut [u8], scale: f64, offset: f64) {
        for bytes in block.as_chunks_mut::<8>().0 {
            *bytes = (f64::from_le_bytes(*bytes) * scale + offset).to_le_bytes();
        }
    }
}

vectorized! {
    fn scale_singles(block: &mut [u8], scale: f32, offset: f32) {
        for bytes in block.as_chunks_mut::<4>().0 {
            *bytes = (f32::from_le_bytes(*bytes) * scale + offset).to_le_bytes();
        }
    }
}

vectorized! {
    fn scale_singles_by_doubles(block: &mut [u8], scale: f64, offset: f64) {
        for bytes in block.as_chunks_mut::<4>().0 {
            let scaled = (f64::from(f32::from_le_bytes(*bytes)) * scale) as f32;
            *bytes = ((f64::from(scaled) + offset) as f32).to_le_bytes();
        }
    }
}
