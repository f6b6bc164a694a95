//! What later pieces need of the input, so that a disk can begin to read it.
//!
//! Ranges of the output need the input roughly in order: some megabytes ahead are enough. Boxes
//! of a relayout need short stretches from all over the input; those of many neighbouring boxes, a
//! *panel*, are long stretches when they are read together.

use super::Plan;
use super::partition::Partition;
use crate::runs::{Runs, coalesce, span_bytes};

/// How far before its use a range is prefetched, in bytes of the input.
const AHEAD_BYTES: u64 = 32 << 20;

/// The longest range to prefetch at once; what is spread wider is left to the kernel's readahead.
const RANGE_BYTES: u64 = 32 << 20;

/// Stretches nearer than this are prefetched with the gap between them, in bytes.
const NEAR_BYTES: u64 = 16 << 10;

impl Plan {
    /// What to prefetch when piece `number` begins: the ranges, all ascending, that a later piece
    /// or the next panel needs.
    pub fn prefetch(&self, number: u64) -> Option<Runs> {
        match &self.partition {
            Partition::Empty => None,
            Partition::Ranges(_) => {
                let bytes = self.stretches(number).bytes().max(1);
                let later = number.saturating_add((AHEAD_BYTES / bytes).max(1));
                let later = (later < self.pieces()).then(|| self.stretches(later));
                later.filter(|it| it.run <= RANGE_BYTES)
            }
            Partition::Boxes(boxes) => {
                let (panel, _) = boxes.panel(&self.input, number)?;
                self.panel(number + panel)
            }
        }
    }

    /// What to prefetch before the first piece.
    pub fn prefetch_first(&self) -> Option<Runs> {
        match &self.partition {
            Partition::Empty => None,
            Partition::Ranges(_) => {
                let first = self.stretches(0);
                if !first.axes.is_empty() {
                    return Some(first);
                }
                let last = (AHEAD_BYTES / first.run.max(1)).min(self.pieces() - 1);
                let (first, later) = (first.byte_bounds(), self.stretches(last).byte_bounds());
                let whole = range(first.start.min(later.start)..first.end.max(later.end));
                (whole.run <= 2 * AHEAD_BYTES).then_some(whole)
            }
            Partition::Boxes(_) => self.panel(0),
        }
    }

    /// What a piece needs.
    fn stretches(&self, number: u64) -> Runs {
        stretches(self.piece(number).input)
    }

    /// What a panel needs that begins with that piece.
    fn panel(&self, number: u64) -> Option<Runs> {
        let Partition::Boxes(boxes) = &self.partition else { return None };
        if number >= self.pieces() {
            return None;
        }
        let (_, panel) = boxes.panel(&self.input, number)?;
        Some(stretches(panel))
    }
}

/// The bytes of runs in ascending ranges, those near each other in one.
fn stretches(runs: Runs) -> Runs {
    let Runs { mut offset, mut axes, run } = runs;
    for axis in &mut axes {
        offset += axis.stride.min(0) * (axis.len as i64 - 1);
        axis.stride = axis.stride.abs();
    }
    axes.sort_by_key(|axis| std::cmp::Reverse(axis.stride));
    let (mut axes, mut run) = coalesce(&axes, run);
    while let Some(near) = axes.pop_if(|axis| axis.stride as u64 <= run + NEAR_BYTES) {
        run = span_bytes(&[near], run);
    }
    Runs { offset, axes, run }
}

fn range(bytes: std::ops::Range<i64>) -> Runs {
    Runs { offset: bytes.start, axes: Vec::new(), run: (bytes.end - bytes.start) as u64 }
}
