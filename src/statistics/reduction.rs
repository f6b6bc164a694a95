//! Reductions: one element of many, as NumPy's functions of these names have it.

use super::summary::{Summary, Sums};
use crate::dtype::{NumberKind, Scalar};
use crate::element::FloatFormat;

/// What becomes of the elements of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is named as NumPy's function
pub enum Reduction {
    Min,
    Max,
    Sum,
    Mean,
    Std,
    Any,
    All,
}

impl Reduction {
    /// The sums that it needs.
    pub fn sums(self) -> Sums {
        match self {
            Reduction::Min | Reduction::Max | Reduction::Any | Reduction::All => Sums::None,
            Reduction::Sum | Reduction::Mean => Sums::Plain,
            Reduction::Std => Sums::Squares,
        }
    }

    /// The type of its result, as NumPy has it; of floats that NumPy lacks, sums are float32.
    pub fn result(self, of: Scalar) -> Scalar {
        let float = if of.is_numpys() { of } else { Scalar::F32 };
        match (self, of.kind()) {
            (Reduction::Min | Reduction::Max, _) => of,
            (Reduction::Any | Reduction::All, _) => Scalar::Bool,
            (_, NumberKind::Float | NumberKind::Complex) => float,
            (Reduction::Sum, NumberKind::Unsigned) => Scalar::U64,
            (Reduction::Sum, _) => Scalar::I64,
            _ => Scalar::F64,
        }
    }

    /// The word of NumPy's message where no element has no result; `None` where it has one.
    pub fn without_identity(self) -> Option<&'static str> {
        match self {
            Reduction::Min => Some("minimum"),
            Reduction::Max => Some("maximum"),
            _ => None,
        }
    }

    /// The result, little-endian, behind `out`.
    pub fn push(self, summary: &Summary, out: &mut Vec<u8>) {
        let result = self.result(summary.scalar);
        let bits = match self {
            Reduction::Min | Reduction::Max => self.extreme(summary),
            Reduction::Any => u64::from(summary.zero < summary.count),
            Reduction::All => u64::from(summary.zero == 0),
            Reduction::Sum if !summary.is_float() => {
                summary.exact_sum().map_or(0, |sum| sum.wrapped())
            }
            Reduction::Sum | Reduction::Mean | Reduction::Std => self.float(summary, result),
        };
        out.extend_from_slice(&bits.to_le_bytes()[..(result.bits() / 8) as usize]);
    }

    /// The bits of the smallest or the largest element; NaN where there is one.
    fn extreme(self, summary: &Summary) -> u64 {
        match (FloatFormat::of(summary.scalar), summary.range) {
            (Some(format), _) if summary.nan > 0 => format.nan() as u64,
            (_, Some((least, greatest))) => match self {
                Reduction::Min => least.bits,
                _ => greatest.bits,
            },
            (_, None) => 0,
        }
    }

    /// The bits of a sum, a mean or a deviation, a float of type `result`.
    fn float(self, summary: &Summary, result: Scalar) -> u64 {
        let special = match self {
            _ if summary.nan > 0 => Some(f64::NAN),
            Reduction::Std if summary.infinite > 0 => Some(f64::NAN),
            _ => infinite_sum(summary),
        };
        let exact = match self {
            Reduction::Std => summary.exact_deviation(),
            Reduction::Mean => summary.exact_mean(),
            _ => summary.exact_sum().map(|sum| sum.divided(1)),
        };
        match (FloatFormat::of(result), special, exact) {
            (_, None, Some(exact)) if result == Scalar::F64 => exact.nearest().to_bits(),
            (Some(format), None, Some(exact)) => u64::from(format.round(exact.odd())),
            // the mean of nothing is none
            (_, special, _) if result == Scalar::F64 => special.unwrap_or(f64::NAN).to_bits(),
            (Some(format), special, _) => u64::from(format.round(special.unwrap_or(f64::NAN))),
            (None, ..) => 0,
        }
    }
}

/// What infinite elements add up to, where there are some.
fn infinite_sum(summary: &Summary) -> Option<f64> {
    let (least, greatest) = summary.range.filter(|_| summary.infinite > 0)?;
    Some(match (summary.value(&least), summary.value(&greatest)) {
        (f64::NEG_INFINITY, f64::INFINITY) => f64::NAN,
        (f64::NEG_INFINITY, _) => f64::NEG_INFINITY,
        _ => f64::INFINITY,
    })
}
