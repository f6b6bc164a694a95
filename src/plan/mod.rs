//! A plan: a view coalesced, and its output divided into pieces.
//!
//! The view's runs are made as long as they can be ([`Runs::coalesced`]). The *output* is divided
//! into [`Piece`]s that fit a cache-sized buffer, so that workers never share a byte. A piece is
//! computed from its number; a plan takes the same few bytes for any tensor.
//!
//! ```text
//!   output   |piece 0       |piece 1       |piece 2   |     contiguous, ascending
//!             ││││││││││││││ ││││││││││││││
//!   input   ··█·█·█·█·█·█·█···█·█·█·█·█·█·█···            runs, `stride` apart
//! ```
//!
//! Where another axis than the last one is contiguous in the input (a relayout), pieces are
//! [boxes](Plan::tiled) of several rows of the output instead, so that input and output both are
//! used by whole cache lines.

use std::ops::Range;

use crate::runs::{Axis, Runs, span_bytes};
use crate::view::View;

mod bands;
mod boxes;
mod cost;
mod extents;
mod partition;
mod piece;
mod prefetch;
mod reading;
mod stretches;

pub(crate) use bands::{Bands, OnePass};
use boxes::Boxes;
pub(crate) use cost::{needed_bytes, reads_gap};
pub(crate) use partition::PieceCuts;
use partition::{Partition, Ranges};
use piece::READAHEAD_BYTES;
pub use piece::{PIECE_BYTES, Panel, Piece, Tiling};
pub use reading::{Reading, TOUCHED_GAP, Way};
pub(crate) use stretches::stretches;

/// How to copy a view into a contiguous output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The input, coalesced; no axes and a run of 0 where there are no bytes.
    input: Runs,
    partition: Partition,
    /// The most that a panel takes, where it is read ahead.
    panel_bytes: Option<u64>,
}

/// Neighbours further apart than this, in bytes, are read one by one rather than with the gap.
pub(crate) const GAP_BYTES: u64 = 64 << 10;

impl Plan {
    /// Plan the copy of runs, such as those of a view, in pieces of at most `piece_bytes` bytes (at least 1), each one
    /// range of the output, in its order.
    ///
    /// `unit` is a number of bytes that no piece may divide, such as the item size where elements
    /// are converted on the way. A piece is as long as one unit at least.
    pub fn new(runs: &Runs, unit: u64, piece_bytes: u64) -> Plan {
        let fits = |_: &[Axis], bytes: u64| bytes <= piece_bytes;
        Plan::partitioned(runs, |input| {
            Partition::Ranges(Ranges::choose(input, unit.max(1), piece_bytes.max(1), fits))
        })
    }

    /// As [`new`](Plan::new) of an input that is read by position, in pieces as short as will do to
    /// read about each byte once, of lengths in the range `sizes`; `None` where those do not do.
    pub(crate) fn reading_once(runs: &Runs, unit: u64, sizes: Range<u64>) -> Option<Plan> {
        let (least, longest) = (sizes.start.max(1), sizes.end.max(sizes.start));
        let sizes = std::iter::successors(Some(least), |bytes| bytes.checked_mul(2));
        let plans = sizes.take_while(|bytes| *bytes <= longest);
        let mut plans = plans.map(|bytes| Plan::new(runs, unit, bytes));
        plans.find(Plan::reads_once)
    }

    /// Plan for outputs that take bytes in any order, unlike those of [`new`](Plan::new): where other
    /// axes are close together in the input than in the output, pieces are boxes of both.
    pub fn tiled(runs: &Runs, unit: u64, tiling: Tiling) -> Plan {
        let mut plan = match tiling.first_bytes {
            Some(first) => Plan::partitioned(runs, |input| {
                Partition::Cuts(PieceCuts::new(input.bytes(), first, tiling.piece_bytes))
            }),
            None => Plan::new(runs, unit, tiling.piece_bytes),
        };
        if plan.bytes() > tiling.piece_bytes
            && let Some(boxes) = Boxes::choose(&plan.input, tiling)
        {
            plan.partition = Partition::Boxes(boxes);
        }
        plan.panel_bytes = tiling.panel_bytes;
        plan
    }

    /// The same, read ahead in [panels](Plan::panel) that take so many bytes of memory.
    #[must_use]
    pub(crate) fn in_panels(self, room: u64) -> Plan {
        Plan { panel_bytes: Some(room), ..self }
    }

    /// Plan the copy of a view from an input that is read once, from its beginning to its end:
    /// the pieces ascend in the input too, and each spans at most `window` bytes of it. `None`
    /// where the view does not ascend.
    pub fn forward(view: &View, unit: u64, window: u64) -> Option<Plan> {
        let mut divided = 0;
        let plan = Plan::partitioned(view.runs(), |input| {
            let Runs { axes, run, .. } = input;
            let fits =
                |inner: &[Axis], bytes: u64| bytes <= window && span_bytes(inner, *run) <= window;
            let mut ranges = Ranges::choose(input, unit.max(1), window, fits);
            let one_window = ranges.chunks == 1 && span_bytes(&axes[ranges.axis..], *run) <= window;
            if let (Some(axis), false) = (axes.get(ranges.axis), one_window) {
                let item = span_bytes(&axes[ranges.axis + 1..], *run);
                let stride = axis.stride.unsigned_abs();
                let near = stride <= item + GAP_BYTES;
                let most = if near { (window - item) / stride.max(1) + 1 } else { 1 };
                ranges.chunk = ranges.chunk.min(most);
                ranges.chunks = axis.len.div_ceil(ranges.chunk);
            }
            divided = ranges.axis;
            Partition::Ranges(ranges)
        });
        let Runs { axes, run, .. } = &plan.input;
        let ascending = axes.iter().enumerate().take(divided + 1).all(|(at, axis)| {
            axis.stride >= 0 && axis.stride as u64 >= span_bytes(&axes[at + 1..], *run)
        });
        (plan.pieces() <= 1 || ascending).then_some(plan)
    }

    /// The same plan with panels of ranges, whose input takes at most so much memory.
    #[must_use]
    pub(crate) fn with_panels(self, panel_bytes: Option<u64>) -> Plan {
        Plan { panel_bytes, ..self }
    }

    fn partitioned(runs: &Runs, choose: impl FnOnce(&Runs) -> Partition) -> Plan {
        if runs.bytes() == 0 {
            let input = Runs { offset: runs.offset, axes: vec![], run: 0 };
            let partition = Partition::Cuts(PieceCuts::new(0, 1, 1));
            return Plan { input, partition, panel_bytes: None };
        }
        let input = runs.coalesced();
        let partition = choose(&input);
        Plan { input, partition, panel_bytes: None }
    }

    /// Bytes of the whole output.
    pub fn bytes(&self) -> u64 {
        self.input.bytes()
    }

    /// The input, coalesced.
    pub fn input(&self) -> &Runs {
        &self.input
    }

    /// The bytes of the input from the first that is read to the last, where those that are read
    /// are far apart, with more unused bytes between them than used ones, or where whole panels are
    /// [prefetched](Plan::prefetch).
    ///
    /// ```
    /// use tslice::{index::{numpy, resolve::resolve}, plan::Plan, shape::Order, view::{Layout, View}};
    /// let shape = [1 << 20, 1024];
    /// let layout = Layout::new(&shape, 32, Order::C, 128);
    /// let sparse_range = |index| {
    ///     let selection = resolve(&numpy::parse(index).unwrap().expr, &shape, false).unwrap();
    ///     Plan::new(View::new(&layout, &selection).unwrap().runs(), 1, 1 << 18).sparse_range()
    /// };
    /// assert_eq!(sparse_range("1000::-1000, :9"), Some(128..128 + 1000 * 4096 + 36));
    /// assert_eq!(sparse_range("::30, ::9"), None); // 120 kB apart: reading ahead is faster
    /// assert_eq!(sparse_range("::99"), Some(128..128 + 1_048_510 * 4096)); // rows far apart
    /// assert_eq!(sparse_range("5"), None);
    /// ```
    pub fn sparse_range(&self) -> Option<Range<u64>> {
        let bounds = self.input.byte_bounds();
        let range = bounds.start as u64..bounds.end as u64;
        if self.is_relayout() {
            return Some(range);
        }
        let mut axes = self.input.axes.clone();
        axes.sort_unstable_by_key(|axis| axis.stride.unsigned_abs());
        let mut cluster = self.input.run;
        let next = axes.iter().find(|axis| {
            let stride = axis.stride.unsigned_abs();
            let apart = stride > cluster + READAHEAD_BYTES;
            cluster += if apart { 0 } else { stride * (axis.len - 1) };
            apart
        });
        // kernels may read megabytes ahead of a byte, behind the end of what is needed too
        let gap = next.map(|axis| axis.stride.unsigned_abs() - cluster);
        gap.filter(|&gap| gap >= cluster).map(|_| range)
    }

    /// The number of pieces.
    pub fn pieces(&self) -> u64 {
        match &self.partition {
            Partition::Ranges(ranges) => ranges.pieces(&self.input.axes),
            Partition::Cuts(cuts) => cuts.pieces(),
            Partition::Boxes(boxes) => boxes.pieces(&self.input.axes),
        }
    }

    /// Piece `number` of `0..pieces()`.
    pub fn piece(&self, number: u64) -> Piece {
        match &self.partition {
            Partition::Ranges(ranges) => ranges.piece(&self.input, number),
            Partition::Cuts(cuts) => cuts.piece(&self.input, number),
            Partition::Boxes(boxes) => boxes.piece(&self.input, number),
        }
    }
}

/// How many dense bytes of `runs` to write at a time: as many whole rows as fit a cache-sized
/// buffer, and in any case a multiple of `unit` bytes, which must divide the items.
pub(crate) fn row_piece_bytes(runs: &Runs, unit: u64) -> u64 {
    let mut row = unit.max(1);
    let mut inner = runs.run;
    for axis in runs.axes.iter().rev() {
        if inner > PIECE_BYTES || inner == 0 {
            break;
        }
        row = inner;
        inner = inner.saturating_mul(axis.len);
    }
    (PIECE_BYTES / row * row).max(row)
}
