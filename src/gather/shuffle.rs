//! Positions of an axis that are computed from their numbers: all in random order, without a list
//! in memory, and all but some.
//!
//! A Feistel network of eight rounds is a permutation of the numbers of an even number of bits. A
//! number beyond the axis goes through it again until it is inside (cycle walking), which is a
//! permutation of the axis. The order depends on the seed and the length alone, and never changes:
//! docs/index.md tells users how to compute it.
//!
//! **Why no package.** None promises that its next version has the same order.

use std::sync::Arc;

use crate::index::resolve::{OtherPositions, Shuffled, Steps};
use crate::runs::{Axis, byte_bounds};

const ROUNDS: u64 = 8;

/// The fewest bits of a half: with fewer, more rounds would be needed to mix them as well.
const LEAST_HALF: u32 = 4;

/// A permutation of the numbers below `len`.
#[derive(Clone, Debug)]
struct Feistel {
    keys: [u64; ROUNDS as usize],
    /// Bits of each half of a number.
    half: u32,
    len: u64,
}

impl Feistel {
    fn new(seed: u64, len: u64) -> Feistel {
        let bits = u64::BITS - len.saturating_sub(1).leading_zeros();
        let key = |round: usize| mix(mix(seed) ^ round as u64);
        Feistel { keys: std::array::from_fn(key), half: bits.div_ceil(2).max(LEAST_HALF), len }
    }

    /// The position with this number in the order.
    fn position(&self, number: u64) -> u64 {
        let mut at = self.permuted(number);
        while at >= self.len {
            at = self.permuted(at);
        }
        at
    }

    fn permuted(&self, number: u64) -> u64 {
        let low = (1 << self.half) - 1;
        let mut left = number >> self.half;
        let mut right = number & low;
        for key in self.keys {
            (left, right) = (right, left ^ mix(key ^ right) & low);
        }
        left << self.half | right
    }
}

/// The finalizer of SplitMix64: each bit of the result depends on all bits of `x`.
fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}

/// Positions of an axis, as byte offsets.
#[derive(Clone, Debug)]
pub(crate) struct ComputedPositions {
    kind: Computed,
    /// The axis of the params, in bytes.
    pub(super) axis: Axis,
    /// The bytes that an axis with a negative stride reaches before the first element: offsets
    /// count from there.
    before: u64,
}

#[derive(Clone, Debug)]
enum Computed {
    Shuffled(Feistel, Steps),
    /// All positions except some: their number, and for each excluded one the number of them before it.
    Others {
        count: u64,
        before: Arc<[u64]>,
    },
}

impl ComputedPositions {
    pub(super) fn shuffled(shuffled: &Shuffled, axis: Axis) -> ComputedPositions {
        let Shuffled { seed, size, taken } = *shuffled;
        ComputedPositions::new(Computed::Shuffled(Feistel::new(seed, size), taken), axis)
    }

    pub(super) fn others(others: &OtherPositions, axis: Axis) -> ComputedPositions {
        let before = others.left_out.iter().zip(0..).map(|(at, number)| at - number).collect();
        ComputedPositions::new(Computed::Others { count: others.count(), before }, axis)
    }

    fn new(kind: Computed, axis: Axis) -> ComputedPositions {
        let before = byte_bounds(&[axis], 0).start.unsigned_abs();
        ComputedPositions { kind, axis, before }
    }

    pub(super) fn count(&self) -> u64 {
        match &self.kind {
            Computed::Shuffled(_, taken) => taken.len,
            Computed::Others { count, .. } => *count,
        }
    }

    /// Read the offsets in bytes of the positions from number `first` on, as many as `out` holds.
    pub(super) fn read(&self, first: u64, out: &mut [u64]) {
        let offset = |position: u64| {
            position.wrapping_mul(self.axis.stride as u64).wrapping_add(self.before)
        };
        match &self.kind {
            Computed::Shuffled(order, Steps { start, step, .. }) => {
                for (number, out) in (first..).zip(out) {
                    let number = start.wrapping_add_signed(step.wrapping_mul(number as i64));
                    *out = offset(order.position(number));
                }
            }
            Computed::Others { before, .. } => {
                let mut excluded = before.partition_point(|before| *before <= first);
                for (number, out) in (first..).zip(out) {
                    while before.get(excluded).is_some_and(|before| *before <= number) {
                        excluded += 1;
                    }
                    *out = offset(number + excluded as u64);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(seed: u64, len: u64) -> Vec<u64> {
        let network = Feistel::new(seed, len);
        (0..len).map(|number| network.position(number)).collect()
    }

    #[test]
    fn the_order_never_changes() {
        assert_eq!(order(42, 10), [5, 8, 4, 0, 2, 7, 6, 1, 9, 3]);
        assert_eq!(order(0, 5), [2, 4, 3, 0, 1]);
        let longest = Feistel::new(u64::MAX, i64::MAX as u64);
        assert_eq!(
            [0, 1, i64::MAX as u64 - 1].map(|number| longest.position(number)),
            [6_158_800_441_072_227_798, 5_709_420_369_003_582_180, 1_848_407_827_011_552_929]
        );
    }

    #[test]
    fn each_position_comes_once() {
        for len in (0..70).chain([255, 256, 257, 1000, 65_536, 70_001]) {
            let mut positions = order(len * 7, len);
            positions.sort_unstable();
            assert!(positions.into_iter().eq(0..len), "{len}");
        }
    }

    /// The deviation of counts from being all equal, in standard deviations of chi-square.
    fn unevenness(counts: &[u64]) -> f64 {
        let cells = counts.len() as f64;
        let expected = counts.iter().sum::<u64>() as f64 / cells;
        let squares = counts.iter().map(|count| (*count as f64 - expected).powi(2) / expected);
        (squares.sum::<f64>() - (cells - 1.0)) / (2.0 * (cells - 1.0)).sqrt()
    }

    #[test]
    fn short_axes_are_well_mixed() {
        for len in 2..=50 {
            let mut at_place = vec![0; (len * len) as usize];
            let mut neighbours = vec![0; (len * (len - 1)) as usize];
            for seed in 0..1000 {
                let order = order(seed, len);
                for (place, position) in (0..).zip(&order) {
                    at_place[(place * len + position) as usize] += 1;
                    let next = order[(place as usize + 1) % order.len()];
                    let distance = (next + len - position) % len - 1;
                    neighbours[(position * (len - 1) + distance) as usize] += 1;
                }
            }
            assert!(unevenness(&at_place) < 5.0, "{len}: {}", unevenness(&at_place));
            assert!(unevenness(&neighbours) < 5.0, "{len}: {}", unevenness(&neighbours));
        }
    }
}
