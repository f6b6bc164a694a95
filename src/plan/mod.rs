//! A plan: a coalesced view, and its output divided into pieces.
//!
//! The view's runs are made as long as possible ([`Runs::coalesced`]). The *output* is divided into [`Piece`]s that
//! fit a cache-sized buffer, so that workers never share a byte. A piece is computed from its number; a plan takes the
//! same few bytes for any tensor.
//!
//! ```text
//!   output   |piece 0       |piece 1       |piece 2   |     contiguous, ascending
//!             ││││││││││││││ ││││││││││││││
//!   input   ··█·█·█·█·█·█·█···█·█·█·█·█·█·█···            runs, `stride` apart
//! ```
//!
//! In a relayout, an axis other than the last is contiguous in the input. Its pieces are [boxes](Plan::tiled) of several
//! rows of the output, so that both input and output are used in whole cache lines.
//!
//! Kinds of plans:
//!
//! - *ranges* (`Plan::new`): each piece is one range of the output, about 256 KiB. In a file
//!   (`Tiling::first_bytes`, for a gather of short rows `GatherPieces::divided`) pieces end at multiples of
//!   256 KiB, wherever rows end: a write that begins and ends within pages takes a third longer, since it
//!   touches some of them twice and the page cache holds the others in smaller units.
//! - *forward* (`Plan::forward`): for pipes, pieces that also lie one after the other in the input, each
//!   within a window of 4 MiB; `None` where the view does not run forward, and the pipe is spooled.

use std::ops::Range;

use boxes::Boxes;

use crate::runs::{Axis, Runs, coalesce, dense_bytes, distance, span_bytes};
use crate::view::View;

mod bands;
mod boxes;
mod panels;
mod reading;

pub(crate) use bands::{Bands, OnePass};
pub use reading::{Reading, TOUCHED_GAP, Way};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The input, coalesced; no axes and a run of 0 bytes where it is empty.
    input: Runs,
    partition: Partition,
    /// The most bytes of a panel's input, where panels are read ahead.
    panel_bytes: Option<u64>,
}

/// The distance, in bytes, beyond which neighbours are read one by one, without the gap between them.
pub(crate) const GAP_BYTES: u64 = 64 << 10;

impl Plan {
    /// Plan a copy of runs, such as the runs of a view, in pieces of at most `piece_bytes` bytes (at least 1). Each
    /// piece is one range of the output, and the pieces ascend.
    ///
    /// No piece divides `unit` bytes, such as the item size where elements are converted on the way. A piece has at
    /// least one unit.
    pub fn new(runs: &Runs, unit: u64, piece_bytes: u64) -> Plan {
        let fits = |_: &[Axis], bytes: u64| bytes <= piece_bytes;
        Plan::partitioned(runs, |input| {
            Partition::Ranges(Ranges::choose(input, unit.max(1), piece_bytes.max(1), fits))
        })
    }

    /// Plan a copy like [`new`](Plan::new), in pieces of exactly `piece_bytes` bytes where this divides no unit: sinks
    /// that compress have blocks of such lengths.
    pub(crate) fn in_blocks(runs: &Runs, unit: u64, piece_bytes: u64) -> Plan {
        if !piece_bytes.is_multiple_of(unit.max(1)) {
            return Plan::new(runs, unit, piece_bytes);
        }
        Plan::partitioned(runs, |input| {
            Partition::Cuts(PieceCuts::new(input.bytes(), piece_bytes, piece_bytes))
        })
    }

    /// Plan a copy like [`new`](Plan::new) of an input that is read by position, in the shortest pieces, of lengths in
    /// `sizes`, that read about each byte once; `None` where no such length does.
    pub(crate) fn reading_once(runs: &Runs, unit: u64, sizes: Range<u64>) -> Option<Plan> {
        let longest = sizes.end.max(sizes.start);
        std::iter::successors(Some(sizes.start.max(1)), |bytes| bytes.checked_mul(2))
            .take_while(|bytes| *bytes <= longest)
            .map(|bytes| Plan::new(runs, unit, bytes))
            .find(Plan::reads_once)
    }

    /// Plan a copy to an output that takes bytes in any order. Where the fastest axes of input and output differ,
    /// pieces are boxes of both.
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

    /// This plan, read ahead in [panels](Plan::panel) whose input takes at most `panel_bytes` bytes of memory.
    #[must_use]
    pub(crate) fn in_panels(self, panel_bytes: Option<u64>) -> Plan {
        Plan { panel_bytes, ..self }
    }

    /// Plan a copy of a view from an input that is read once, from beginning to end: the pieces ascend in the input
    /// too, and each spans at most `window` bytes of it. `None` where the view does not ascend.
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

    pub fn bytes(&self) -> u64 {
        self.input.bytes()
    }

    pub fn input(&self) -> &Runs {
        &self.input
    }

    /// The range from the first byte that is read to the last. `None` unless the reads are sparse (far apart, with more
    /// unused bytes than used bytes) or whole panels are [prefetched](Plan::prefetch).
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
        let range = self.input.file_bounds();
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
        // kernels may read megabytes ahead of a byte, and past the end of what is needed too
        let gap = next.map(|axis| axis.stride.unsigned_abs() - cluster);
        gap.filter(|&gap| gap >= cluster).map(|_| range)
    }

    pub fn pieces(&self) -> u64 {
        match &self.partition {
            Partition::Ranges(ranges) => ranges.pieces(&self.input.axes),
            Partition::Cuts(cuts) => cuts.pieces(),
            Partition::Boxes(boxes) => boxes.pieces(&self.input.axes),
        }
    }

    pub fn piece(&self, number: u64) -> Piece {
        match &self.partition {
            Partition::Ranges(ranges) => ranges.piece(&self.input, number),
            Partition::Cuts(cuts) => cuts.piece(&self.input, number),
            Partition::Boxes(boxes) => boxes.piece(&self.input, number),
        }
    }
}

/// The number of dense bytes of `runs` to write at a time: as many whole rows as fit in a cache-sized buffer, and
/// always a multiple of `unit` bytes, which must divide the items.
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The bytes of the piece in the input: several runs where the piece begins or ends within a row.
    pub input: Vec<Runs>,
    /// The position of the bytes in the output, in the order of `input`.
    pub output: Runs,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panel {
    pub pieces: u64,
    pub input: Vec<Runs>,
    /// The memory for the input of all panels that are being read, in bytes.
    pub room: u64,
}

/// The bytes of a piece: half of them, and the input's share, fit in a level-2 cache.
pub const PIECE_BYTES: u64 = 256 << 10;

/// The length of gaps, in bytes, that exceeds the usual read-ahead of kernels.
pub(super) const READAHEAD_BYTES: u64 = 128 << 10;

/// The sizes of the pieces of a [tiled](Plan::tiled) plan, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Tiling {
    /// The most bytes of a piece that is one range of the output. Rows of a box, each of which is one write, have this
    /// length where possible.
    pub piece_bytes: u64,
    /// The most bytes of the first piece, where pieces are ranges that may divide rows, so that the others begin at
    /// block boundaries of a file. The others have `piece_bytes`.
    pub first_bytes: Option<u64>,
    pub box_bytes: u64,
    /// The length of the stretches of the input that a box takes.
    pub width_bytes: u64,
    /// The most bytes of pages that a box's input may lie in: other boxes need the rest of these pages.
    pub pages_bytes: u64,
    /// The most memory for the input of a panel, where not all fits in memory. Panels are then [read
    /// ahead](Plan::panel) and dropped as a whole.
    pub panel_bytes: Option<u64>,
}

impl Tiling {
    /// The tiling for mapped inputs: stretches of one cache line, which leaves room for long rows of the output. File
    /// systems take one write of a file at a time: short rows cost more there than wide stretches save in packing.
    pub const MAPPED: Tiling = Tiling {
        piece_bytes: PIECE_BYTES,
        first_bytes: None,
        box_bytes: 4 << 20,
        width_bytes: 64,
        pages_bytes: u64::MAX,
        panel_bytes: None,
    };

    pub const READ: Tiling = Tiling { width_bytes: 2 << 10, ..Tiling::MAPPED };

    /// The tiling for a source with this [limit of windows](crate::source::Source::window_limit).
    pub fn of(window_limit: Option<u64>) -> Tiling {
        if window_limit.is_some() { Tiling::READ } else { Tiling::MAPPED }
    }

    /// This tiling for pieces that become `by` times as large in a conversion.
    #[must_use]
    pub fn divided(self, by: u64) -> Tiling {
        Tiling { piece_bytes: self.piece_bytes / by, box_bytes: self.box_bytes / by, ..self }
    }
}

/// The length of chunks, at most `most`, that divide `len` evenly, or nearly so.
pub(super) fn evenly(len: u64, most: u64) -> u64 {
    len.div_ceil(len.div_ceil(most))
}

/// The distance of stretches, in bytes, below which a panel prefetches them together with the gap.
pub(super) const NEAR_BYTES: u64 = 16 << 10;

/// The ascending ranges of runs; ranges with gaps of at most `near` bytes are joined.
pub(crate) fn stretches(runs: Runs, near: u64) -> Runs {
    let Runs { offset, axes, run } = runs.ascending();
    let (mut axes, mut run) = coalesce(&axes, run);
    while let Some(next) = axes.pop_if(|axis| axis.stride as u64 <= run + near) {
        run = span_bytes(&[next], run);
    }
    Runs { offset, axes, run }
}

/// The length, in bytes, below which a read by position is not faster.
const SHORT_BYTES: u64 = 1 << 10;

/// A cache line, in bytes: the unit in which memory is read.
const LINE_BYTES: u64 = 64;

impl Plan {
    pub fn is_relayout(&self) -> bool {
        matches!(self.partition, Partition::Boxes(_))
    }

    /// About how many bytes of the input are read, in whole cache lines.
    pub fn reads(&self) -> u64 {
        if self.bytes() == 0 {
            return 0;
        }
        let mut axes = self.input.axes.clone();
        axes.sort_unstable_by_key(|axis| axis.stride.unsigned_abs());
        let mut cluster = self.input.run;
        let mut clusters = 1u64;
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

    /// Whether the pieces together need hardly more reads by position than the whole input.
    pub(crate) fn reads_once(&self) -> bool {
        let needed = |runs: &Runs| needed_bytes(&runs.in_memory_order().axes, runs.run);
        let pieces = self.pieces();
        pieces <= 1 || {
            let first: u64 = self.piece(0).input.iter().map(needed).sum();
            first.saturating_mul(pieces) <= needed(&self.input).saturating_mul(5) / 4
        }
    }
}

/// The bytes that must be read for axes from the longest stride to the shortest, small gaps between runs included.
pub(crate) fn needed_bytes(axes: &[Axis], run: u64) -> u64 {
    axes.iter().rev().filter(|axis| axis.stride != 0).fold(run, |needed, axis| {
        let item = needed.max(axis.stride.unsigned_abs().min(SHORT_BYTES));
        item.saturating_mul(axis.len)
    })
}

/// Whether items that need `needed` bytes, `stride` bytes apart, are read together with the gaps: at most half as much
/// again is read then.
pub(crate) fn reads_gap(stride: u64, needed: u64) -> bool {
    stride <= needed.max(SHORT_BYTES).saturating_mul(3) / 2
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Partition {
    Ranges(Ranges),
    Cuts(PieceCuts),
    Boxes(Boxes),
}

/// Pieces that are ranges of the output of equal length, except the first and the last, and may divide rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PieceCuts {
    /// The bytes of all pieces, the most bytes of the first piece, and the bytes of any other.
    bytes: u64,
    first: u64,
    step: u64,
}

impl PieceCuts {
    /// Divide `bytes` bytes after the first `first` bytes, and then every `step` bytes; both at least 1.
    pub(crate) fn new(bytes: u64, first: u64, step: u64) -> PieceCuts {
        PieceCuts { bytes, first: first.max(1), step: step.max(1) }
    }

    pub(crate) fn pieces(&self) -> u64 {
        match self.bytes {
            0 => 0,
            bytes => 1 + bytes.saturating_sub(self.first).div_ceil(self.step),
        }
    }

    pub(crate) fn range(&self, number: u64) -> Range<u64> {
        let end = self.first + number * self.step;
        let start = if number == 0 { 0 } else { end - self.step };
        start..end.min(self.bytes)
    }

    pub(super) fn piece(&self, input: &Runs, number: u64) -> Piece {
        let range = self.range(number);
        let output = Runs::contiguous(range.start, range.end - range.start);
        Piece { input: input.boxes(range), output }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ranges {
    /// The divided axis; `axes.len()` for the run itself.
    pub(super) axis: usize,
    /// The items of that axis in a piece (bytes, of the run), and the pieces along it.
    pub(super) chunk: u64,
    pub(super) chunks: u64,
    /// The output bytes of one item of that axis.
    inner: u64,
}

impl Ranges {
    /// Divide the outermost axis whose item (its inner axes and their bytes) fits in a piece.
    pub(super) fn choose(
        input: &Runs,
        unit: u64,
        piece_bytes: u64,
        fits: impl Fn(&[Axis], u64) -> bool,
    ) -> Ranges {
        let Runs { axes, run, .. } = input;
        let mut inner = *run;
        let mut divided = None;
        for (at, axis) in axes.iter().enumerate().rev() {
            if !fits(&axes[at + 1..], inner) {
                break;
            }
            divided = Some((at, axis.len, inner, 1));
            inner = inner.saturating_mul(axis.len);
        }
        let (axis, len, inner, unit) = divided.unwrap_or((axes.len(), *run, 1, unit));
        let most = (piece_bytes / inner / unit * unit).max(unit);
        let chunk = evenly(len, most).next_multiple_of(unit).min(len);
        Ranges { axis, chunk, chunks: len.div_ceil(chunk), inner }
    }

    pub(super) fn pieces(&self, axes: &[Axis]) -> u64 {
        dense_bytes(&axes[..self.axis], self.chunks)
    }

    pub(super) fn piece(&self, input: &Runs, number: u64) -> Piece {
        let Ranges { axis, chunk, chunks, inner } = *self;
        let (outer, divided) = input.axes.split_at(axis);
        let whole = divided.first().map_or(input.run, |axis| axis.len);
        let first = number % chunks * chunk;
        let len = chunk.min(whole - first);
        let outer_item = number / chunks;
        let output = Runs::contiguous((outer_item * whole + first) * inner, len * inner);
        let mut offset = input.offset + distance(outer, outer_item);
        let mut axes = divided.to_vec();
        let mut run = input.run;
        match axes.first_mut() {
            Some(axis) => {
                offset += first as i64 * axis.stride;
                axis.len = len;
            }
            None => {
                offset += first as i64;
                run = len;
            }
        }
        Piece { input: vec![Runs { offset, axes, run }], output }
    }
}
