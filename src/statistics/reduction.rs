//! Reductions of many elements to one, as by NumPy's functions of these names.

use super::Folded;
use super::complex::ComplexSummary;
use super::exact_sum::Quotient;
use super::summary::{Facts, Summary, Sums};
use crate::dtype::{DType, Endian, NpyType, NumberKind, Scalar, TimeKind};
use crate::element::FloatFormat;

/// A function of NumPy that reduces elements to one.
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

/// NaT, as its stored integer.
const NAT: u64 = i64::MIN as u64;

impl Reduction {
    pub fn name(self) -> &'static str {
        match self {
            Reduction::Min => "min",
            Reduction::Max => "max",
            Reduction::Sum => "sum",
            Reduction::Mean => "mean",
            Reduction::Std => "std",
            Reduction::Any => "any",
            Reduction::All => "all",
        }
    }

    fn facts(self) -> Facts {
        let nothing = Facts { extremes: false, zeros: false, sums: Sums::None };
        match self {
            Reduction::Min | Reduction::Max => Facts { extremes: true, ..nothing },
            Reduction::Any | Reduction::All => Facts { zeros: true, ..nothing },
            Reduction::Sum | Reduction::Mean => Facts { sums: Sums::Plain, ..nothing },
            Reduction::Std => Facts { sums: Sums::Squares, ..nothing },
        }
    }

    /// Make the empty summary that this reduction needs; `None` if it is not defined for the dtype.
    pub fn of(self, dtype: &DType) -> Option<Folded> {
        match *dtype {
            DType::Scalar(scalar, endian) => match scalar.kind() {
                NumberKind::Complex => {
                    let summary = ComplexSummary::new(scalar, endian, self.facts())?;
                    Some(Folded::Complex(Box::new(summary)))
                }
                _ => Summary::new(scalar, endian, self.facts()).map(Folded::Real),
            },
            DType::Npy(NpyType::Time(kind, endian, _)) => match (kind, self) {
                (_, Reduction::Std) => None,
                // the sum of two dates is not a date
                (TimeKind::Datetime, Reduction::Sum | Reduction::Mean) => None,
                // the smallest value shows whether there is a NaT
                _ => {
                    let facts = Facts { extremes: true, ..self.facts() };
                    Summary::new(Scalar::I64, endian, facts).map(Folded::Real)
                }
            },
            DType::Npy(_) | DType::Blocks(_) => None,
        }
    }

    /// The dtype of the result, as in NumPy; sums and means of floats that NumPy lacks are float32.
    pub fn result(self, of: &DType) -> DType {
        match (self, of) {
            (Reduction::Any | Reduction::All, _) => DType::Scalar(Scalar::Bool, Endian::Little),
            (_, &DType::Scalar(scalar, _)) => DType::Scalar(self.scalar(scalar), Endian::Little),
            (_, &DType::Npy(NpyType::Time(kind, _, unit))) => {
                DType::Npy(NpyType::Time(kind, Endian::Little, unit))
            }
            (_, other) => other.clone(),
        }
    }

    fn scalar(self, of: Scalar) -> Scalar {
        let float = if of.is_numpys() { of } else { Scalar::F32 };
        match (self, of.kind()) {
            (Reduction::Min | Reduction::Max, _) => of,
            (Reduction::Any | Reduction::All, _) => Scalar::Bool,
            (Reduction::Std, NumberKind::Complex) => of.part().unwrap_or(of),
            (_, NumberKind::Float | NumberKind::Complex) => float,
            (Reduction::Sum, NumberKind::Unsigned) => Scalar::U64,
            (Reduction::Sum, _) => Scalar::I64,
            _ => Scalar::F64,
        }
    }

    /// The name of this reduction in NumPy's message, if it has no result for no elements.
    pub fn without_identity(self) -> Option<&'static str> {
        match self {
            Reduction::Min => Some("minimum"),
            Reduction::Max => Some("maximum"),
            _ => None,
        }
    }

    /// Append the result to `out`, little-endian; `dtype` is the dtype of the elements.
    pub fn push(self, dtype: &DType, folded: &Folded, out: &mut Vec<u8>) {
        match (folded, dtype) {
            (Folded::Complex(summary), _) => self.push_complex(summary, out),
            (Folded::Real(summary), DType::Npy(_)) => self.push_time(summary, out),
            (Folded::Real(summary), _) => self.push_real(summary, out),
        }
    }

    fn push_real(self, summary: &Summary, out: &mut Vec<u8>) {
        let result = self.scalar(summary.of.scalar);
        let bits = match self {
            Reduction::Min | Reduction::Max => self.extreme(summary),
            Reduction::Any => u64::from(summary.zero < summary.count),
            Reduction::All => u64::from(summary.zero == 0),
            Reduction::Sum if !summary.is_float() => summary.wrapped_sum(),
            Reduction::Sum | Reduction::Mean | Reduction::Std => self.float(summary, result),
        };
        push_bits(bits, result, out);
    }

    /// Append a time. NaT is the least integer, so the minimum shows whether there is one.
    fn push_time(self, summary: &Summary, out: &mut Vec<u8>) {
        let has_nat = summary.range.is_some_and(|(least, _)| least.bits == NAT);
        let bits = match self {
            Reduction::Any | Reduction::All => return self.push_real(summary, out),
            _ if has_nat => NAT,
            Reduction::Mean => match (summary.wrapped_sum(), i64::try_from(summary.count)) {
                (NAT, _) | (_, Ok(0) | Err(_)) => NAT,
                // np.mean drops the remainder
                (sum, Ok(count)) => (sum as i64 / count) as u64,
            },
            _ => return self.push_real(summary, out),
        };
        push_bits(bits, Scalar::I64, out);
    }

    fn push_complex(self, summary: &ComplexSummary, out: &mut Vec<u8>) {
        let [real, imaginary] = &summary.parts;
        let part = real.of.scalar;
        let extreme = summary.nan.or_else(|| {
            let (least, greatest) = summary.range?;
            Some(if self == Reduction::Min { least } else { greatest })
        });
        let specials = |part: &Summary| part.nan + part.infinite > 0;
        let of_part = |part: &Summary, other: &Summary| match self {
            // np.mean divides by a complex number, which turns this into NaN
            Reduction::Mean if specials(other) => float(part.of.scalar, Some(f64::NAN), None),
            _ => self.float(part, part.of.scalar),
        };
        match self {
            Reduction::Any => out.push(u8::from(summary.zero < summary.count())),
            Reduction::All => out.push(u8::from(summary.zero == 0)),
            Reduction::Std => push_bits(float(part, None, summary.exact_deviation()), part, out),
            Reduction::Min | Reduction::Max => {
                let bits = extreme.map_or([0; 2], |element| element.bits);
                bits.into_iter().for_each(|bits| push_bits(bits, part, out));
            }
            Reduction::Sum | Reduction::Mean => {
                push_bits(of_part(real, imaginary), part, out);
                push_bits(of_part(imaginary, real), part, out);
            }
        }
    }

    /// The bits of the smallest or the largest element; NaN if there is one.
    fn extreme(self, summary: &Summary) -> u64 {
        match (FloatFormat::of(summary.of.scalar), summary.range) {
            (Some(format), _) if summary.nan > 0 => format.nan() as u64,
            (_, Some((least, greatest))) => match self {
                Reduction::Min => least.bits,
                _ => greatest.bits,
            },
            (_, None) => 0,
        }
    }

    /// The bits of a sum, a mean or a deviation, as a float of type `result`.
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
        float(result, special, exact)
    }
}

/// The bits of the special value, else of the exact value, else of NaN, the mean of no elements.
fn float(result: Scalar, special: Option<f64>, exact: Option<Quotient>) -> u64 {
    let Some(format) = FloatFormat::of(result) else { return 0 };
    format.bits(match (special, exact) {
        (None, Some(exact)) if result == Scalar::F64 => exact.nearest(),
        (None, Some(exact)) => exact.odd(),
        (special, _) => special.unwrap_or(f64::NAN),
    })
}

fn push_bits(bits: u64, result: Scalar, out: &mut Vec<u8>) {
    out.extend_from_slice(&bits.to_le_bytes()[..(result.bits() / 8) as usize]);
}

fn infinite_sum(summary: &Summary) -> Option<f64> {
    let (least, greatest) = summary.range.filter(|_| summary.infinite > 0)?;
    Some(match (summary.value(&least), summary.value(&greatest)) {
        (f64::NEG_INFINITY, f64::INFINITY) => f64::NAN,
        (f64::NEG_INFINITY, _) => f64::NEG_INFINITY,
        _ => f64::INFINITY,
    })
}
