//! What a plan costs, by arithmetic: what it reads, what it writes, and in which pattern.

use super::Plan;
use super::partition::Partition;
use crate::runs::{Axis, Runs};

/// A read by position of fewer bytes is not faster.
const SHORT_BYTES: u64 = 1 << 10;

/// A cache line, in bytes: the unit in which memory is read.
const LINE_BYTES: u64 = 64;

impl Plan {
    /// Whether other axes are close together in the input than in the output.
    pub fn is_relayout(&self) -> bool {
        matches!(self.partition, Partition::Boxes(_))
    }

    /// About how many bytes of the input must be read, in whole cache lines.
    ///
    /// ```
    /// use tslice::{index::{numpy, resolve::resolve}, plan::Plan, shape::Order, view::{Layout, View}};
    /// let layout = Layout::new(&[1000, 1024], 32, Order::C, 128);
    /// let reads = |index| {
    ///     let expr = numpy::parse(index).unwrap().expr;
    ///     let selection = resolve(&expr, layout.shape, false).unwrap();
    ///     Plan::new(View::new(&layout, &selection).unwrap().runs(), 1, 1 << 18).reads()
    /// };
    /// assert_eq!(reads(":"), 1000 * 4096);
    /// assert_eq!(reads(":, ::2"), 1000 * 4096);
    /// assert_eq!(reads(":, 5"), 1000 * 64);
    /// assert_eq!(reads("7, 5"), 64);
    /// assert_eq!(reads("7:7"), 0);
    /// ```
    pub fn reads(&self) -> u64 {
        if self.bytes() == 0 {
            return 0;
        }
        let mut axes = self.input.axes.clone();
        axes.sort_unstable_by_key(|axis| axis.stride.unsigned_abs());
        let (mut cluster, mut clusters) = (self.input.run, 1u64);
        for axis in axes {
            let stride = axis.stride.unsigned_abs();
            if clusters == 1 && stride <= cluster.next_multiple_of(LINE_BYTES) {
                cluster = cluster.max(stride * (axis.len - 1) + cluster);
            } else {
                clusters = clusters.saturating_mul(axis.len);
            }
        }
        clusters.saturating_mul(cluster.next_multiple_of(LINE_BYTES))
    }

    /// Whether the pieces together need hardly more reads by position than the whole.
    pub(crate) fn reads_once(&self) -> bool {
        let needed = |runs: &Runs| needed_bytes(&runs.in_memory_order().axes, runs.run);
        let pieces = self.pieces();
        pieces <= 1 || {
            let first: u64 = self.piece(0).input.iter().map(needed).sum();
            first.saturating_mul(pieces) <= needed(&self.input).saturating_mul(5) / 4
        }
    }
}

/// How many bytes must be read where axes go from the longest stride to the shortest, those between
/// runs that are close together included.
pub(crate) fn needed_bytes(axes: &[Axis], run: u64) -> u64 {
    axes.iter().rev().filter(|axis| axis.stride != 0).fold(run, |needed, axis| {
        let item = needed.max(axis.stride.unsigned_abs().min(SHORT_BYTES));
        item.saturating_mul(axis.len)
    })
}

/// Whether items that need so many bytes, `stride` bytes apart, are read together with what lies
/// between them: at most half as much again is read then.
pub(crate) fn reads_gap(stride: u64, needed: u64) -> bool {
    stride <= needed.max(SHORT_BYTES).saturating_mul(3) / 2
}
