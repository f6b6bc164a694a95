//! Comparison of numbers that doubles hold, in vector loops, which decide most pairs: surely equal, or surely
//! different.

use super::element::{Rule, round};
use crate::cast::{Doubles, vectorized};
use crate::dtype::{DType, NumberKind, Scalar};
use crate::element::FloatFormat;

/// The number of pairs compared at a time.
pub(super) const GROUP: usize = 1024;

/// The tolerance of a [`Rule`] for numbers that doubles hold. The rule rounds its results: it decides the pairs
/// that are too near to the tolerance for these loops.
#[derive(Clone, Copy)]
pub(super) struct Closeness {
    doubles: [Doubles; 2],
    absolute: f64,
    relative: f64,
    /// The relative and the absolute rounding error of the rule's results.
    slack: f64,
    lost: f64,
}

impl Closeness {
    /// The closeness of elements; `None` where doubles do not hold them.
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
        // four times the error of two roundings, and more than half of the smallest number
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

/// The distances of a group's pairs: 0 for equal numbers, NaN where only the rule can decide.
pub(super) struct Distances {
    pub(super) absolute: [f64; GROUP],
    /// Distances divided by the second number.
    pub(super) relative: [f64; GROUP],
}

/// The result for a group.
#[derive(Default)]
pub(super) struct Group {
    pub(super) differing: u64,
    /// Whether only the rule can decide some pairs.
    pub(super) unsure: bool,
    /// The largest distances of surely different pairs.
    pub(super) absolute: f64,
    pub(super) relative: f64,
}

impl Default for Distances {
    fn default() -> Distances {
        Distances { absolute: [0.0; GROUP], relative: [0.0; GROUP] }
    }
}

/// The number of results that are folded side by side, so that no addition waits for another.
const LANES: usize = 8;

vectorized! {
    /// Measure at most [`GROUP`] pairs.
    pub(super) fn measure(distances: &mut Distances, close: &Closeness, a: &[u8], b: &[u8]) -> Group {
        let Distances { absolute, relative } = distances;
        let others = close.doubles[1].read(b, relative);
        let values = close.doubles[0].read(a, absolute);
        let limit = |other: f64| close.absolute + close.relative * other.abs();
        let is_same = |value: f64, other: f64| {
            let distance = (value - other).abs();
            let least = limit(other) * (1.0 - close.slack) - close.lost;
            // without branches, which would keep the loops from becoming vectors
            (value == other) | (distance <= least) & (distance < f64::INFINITY)
        };
        let mut any = 0;
        for (value, other) in values.iter().zip(&*others) {
            any |= u64::from(!is_same(*value, *other));
        }
        if any == 0 {
            return Group::default();
        }
        let count = values.len();
        for (value, other) in values.iter_mut().zip(others) {
            let distance = (*value - *other).abs();
            let most = limit(*other) * (1.0 + close.slack) + close.lost;
            // the rule decides on infinities and NaN, too
            let is_sure = distance > most && distance < f64::INFINITY;
            let unsure = if is_sure { distance } else { f64::NAN };
            let apart = if is_same(*value, *other) { 0.0 } else { unsure };
            *value = apart;
            *other = if apart > 0.0 { apart / other.abs() } else { 0.0 };
        }
        // the loop takes whole groups
        absolute[count..].fill(0.0);
        relative[count..].fill(0.0);
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
