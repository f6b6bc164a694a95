//! Numbers that doubles hold, compared in loops of vectors: most pairs are the same for sure, or differ for sure.

use super::element::{Rule, round};
use crate::cast::{Doubles, vectorized};
use crate::dtype::{DType, NumberKind, Scalar};
use crate::element::FloatFormat;

/// Numbers that are compared at once.
pub(super) const GROUP: usize = 1024;

/// The tolerance of a [`Rule`], or none, for numbers that doubles hold. The rule rounds what it computes: pairs that are
/// nearer to the tolerance than that are left to it.
#[derive(Clone, Copy)]
pub(super) struct Closeness {
    doubles: [Doubles; 2],
    absolute: f64,
    relative: f64,
    /// What the rule may round of the tolerance, and what rounding takes of the smallest.
    slack: f64,
    lost: f64,
}

impl Closeness {
    /// `None` for elements that doubles do not hold.
    pub(super) fn new(rule: Rule, a: &DType, b: &DType) -> Option<Closeness> {
        let (absolute, relative) = rule.tolerance.unwrap_or_default();
        let of = |dtype: &DType| match *dtype {
            DType::Scalar(Scalar::I64 | Scalar::U64, _) => None,
            DType::Scalar(scalar, endian) if scalar.kind() != NumberKind::Complex => {
                let is_whole = scalar.bits() >= 8;
                Doubles::new(scalar, endian).ok().filter(|_| is_whole).map(|it| (scalar, it))
            }
            _ => None,
        };
        let (ours, of_a) = of(a)?;
        let (theirs, of_b) = of(b)?;
        let format = FloatFormat::of(ours).filter(|_| ours == theirs);
        let rounded = |value: f64| format.map_or(value, |format| round(value, format));
        // four times what two roundings take, and more than half of the smallest number
        let (slack, lost) = match format {
            _ if rule.tolerance.is_none() => (0.0, 0.0),
            Some(FloatFormat::HALF) => (2f64.powi(-7), 2f64.powi(-22)),
            Some(FloatFormat::SINGLE) => (2f64.powi(-20), 2f64.powi(-140)),
            _ => (2f64.powi(-49), 0.0),
        };
        let doubles = [of_a, of_b];
        Some(Closeness {
            doubles,
            absolute: rounded(absolute),
            relative: rounded(relative),
            slack,
            lost,
        })
    }
}

/// How far the numbers of a group are apart: 0 where they are the same, NaN where only the rule can say.
pub(super) struct Distances {
    pub(super) absolute: [f64; GROUP],
    /// Divided by the second number.
    pub(super) relative: [f64; GROUP],
}

/// What is known of a group.
pub(super) struct Group {
    pub(super) differing: u64,
    /// Whether only the rule can say of some.
    pub(super) unsure: bool,
    /// The largest distances of those that differ.
    pub(super) absolute: f64,
    pub(super) relative: f64,
}

impl Default for Distances {
    fn default() -> Distances {
        Distances { absolute: [0.0; GROUP], relative: [0.0; GROUP] }
    }
}

impl Distances {
    /// Measure at most [`GROUP`] pairs.
    pub(super) fn measure(&mut self, close: &Closeness, a: &[u8], b: &[u8]) -> Group {
        measure(self, close, a, b)
    }
}

/// Numbers whose results are folded side by side, so that none waits for the one before.
const LANES: usize = 8;

vectorized! {
    fn measure(distances: &mut Distances, close: &Closeness, a: &[u8], b: &[u8]) -> Group {
        let Distances { absolute, relative } = distances;
        let others = close.doubles[1].read(b, relative);
        let values = close.doubles[0].read(a, absolute);
        for (value, other) in values.iter_mut().zip(others) {
            let distance = (*value - *other).abs();
            let limit = close.absolute + close.relative * other.abs();
            let least = limit * (1.0 - close.slack) - close.lost;
            let most = limit * (1.0 + close.slack) + close.lost;
            // of infinities and NaN too the rule says what they are
            let is_sure = distance > most && distance < f64::INFINITY;
            let is_same = value == other || distance <= least && distance < f64::INFINITY;
            let unsure = if is_sure { distance } else { f64::NAN };
            let apart = if is_same { 0.0 } else { unsure };
            *value = apart;
            *other = if apart > 0.0 { apart / other.abs() } else { 0.0 };
        }
        let mut differing = [0.0; LANES];
        let mut unsure = [0.0; LANES];
        let mut largest = [0.0; LANES];
        let mut largest_relative = [0.0; LANES];
        let groups = absolute.as_chunks::<LANES>().0.iter().zip(relative.as_chunks::<LANES>().0);
        for (absolute, relative) in groups {
            for lane in 0..LANES {
                let (apart, of_other) = (absolute[lane], relative[lane]);
                differing[lane] += if apart > 0.0 { 1.0 } else { 0.0 };
                unsure[lane] += if apart.is_nan() { 1.0 } else { 0.0 };
                largest[lane] = if apart > largest[lane] { apart } else { largest[lane] };
                let most = largest_relative[lane];
                largest_relative[lane] = if of_other > most { of_other } else { most };
            }
        }
        Group {
            differing: differing.iter().sum::<f64>() as u64,
            unsure: unsure.iter().sum::<f64>() > 0.0,
            absolute: largest.into_iter().fold(0.0, f64::max),
            relative: largest_relative.into_iter().fold(0.0, f64::max),
        }
    }
}
