//! A plan: a view made simple, and its output cut into pieces.
//!
//! Axes of length 1 are dropped and neighbours merged ([`coalesce`]), so that what is copied at
//! once is as long as it can be. The *output* is cut into [`Piece`]s that fit a cache-sized
//! buffer, so that workers never share a byte. A piece is computed from its number; a plan takes
//! the same few bytes for any tensor.
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

use crate::view::{Axis, View, coalesce, reach};

mod ahead;
mod cost;
mod cut;
mod strided;

pub use ahead::Ahead;
pub use cost::Pattern;
pub use cut::transposed_axis;
use cut::{Boxes, Cut, Ranges};
pub use strided::{Part, Strided};

/// How to copy a view into a contiguous output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Where the first run lies in the input, in bytes.
    offset: u64,
    /// The axes that are left, outermost first, over runs of `run` bytes.
    axes: Vec<Axis>,
    /// Bytes that are contiguous in input and output.
    run: u64,
    /// Bytes of the whole output.
    bytes: u64,
    cut: Cut,
}

/// One piece of a plan: where its bytes come from, and where they go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where its first run lies in the input, in bytes.
    pub input: u64,
    /// The axes inside the piece in the order of its bytes, outermost first.
    pub axes: Vec<Axis>,
    /// Bytes of a run, which is contiguous in input and output.
    pub run: u64,
    /// Where its bytes go.
    pub place: Place,
}

/// Where a piece goes: `rows` ranges of `row_bytes` bytes, `row_stride` bytes apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where the first row begins, in bytes from the beginning of the output.
    pub output: u64,
    /// How many rows there are; 1 for a piece that is one range.
    pub rows: u64,
    /// Bytes a row.
    pub row_bytes: u64,
    /// Bytes from the beginning of a row to that of the next.
    pub row_stride: u64,
}

impl Place {
    /// One contiguous range.
    pub fn range(output: u64, bytes: u64) -> Place {
        Place { output, rows: 1, row_bytes: bytes, row_stride: bytes }
    }

    /// Bytes of all rows together.
    pub fn bytes(&self) -> u64 {
        self.rows * self.row_bytes
    }
}

/// Neighbours further apart than this are read one by one rather than with the gap.
pub const GAP_BYTES: u64 = 64 << 10;

/// Between islands that are further apart than this, nothing is read ahead: more than what
/// kernels commonly do by themselves.
const OCEAN_BYTES: u64 = 1 << 20;

/// The bytes of a piece: half of them and the input's share fit in a level-2 cache.
pub const PIECE_BYTES: u64 = 256 << 10;

/// The sizes of the pieces of a [tiled](Plan::tiled) plan, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Tiling {
    /// A piece that is one range of the output, at most.
    pub piece_bytes: u64,
    /// A piece of several rows, about; its share of the input is as large.
    pub box_bytes: u64,
    /// How much of the input's contiguous axis such a piece takes.
    pub width_bytes: u64,
}

impl Tiling {
    /// For inputs in memory: a few cache lines of the input, long rows of the output.
    pub const MAPPED: Tiling =
        Tiling { piece_bytes: PIECE_BYTES, box_bytes: 1 << 20, width_bytes: 256 };

    /// For inputs that are read by position: fewer, longer reads.
    pub const READ: Tiling = Tiling { width_bytes: 1024, ..Tiling::MAPPED };
}

impl Plan {
    /// Plan the copy of a view, in pieces of at most `piece_bytes` bytes (at least 1), each one
    /// range of the output, in its order.
    ///
    /// `unit` is a number of bytes that no piece may divide, such as the item size where the
    /// byte order is changed on the way. A piece is as long as one unit at least.
    pub fn new(view: &View, unit: u64, piece_bytes: u64) -> Plan {
        let fits = |_: &[Axis], bytes: u64| bytes <= piece_bytes;
        Plan::cut(view, |axes, run| {
            Cut::Ranges(Ranges::choose(axes, run, unit.max(1), piece_bytes.max(1), fits))
        })
    }

    /// As [`new`](Plan::new), for outputs that take bytes in any order: where the axis that is
    /// contiguous in the input is another than the output's last, pieces are boxes of both.
    pub fn tiled(view: &View, unit: u64, tiling: Tiling) -> Plan {
        let mut plan = Plan::new(view, unit, tiling.piece_bytes);
        if plan.bytes > tiling.piece_bytes
            && let Some(boxes) = Boxes::choose(&plan.axes, plan.run, tiling)
        {
            plan.cut = Cut::Boxes(boxes);
        }
        plan
    }

    /// Plan the copy of a view from an input that is read once, from its beginning to its end:
    /// the pieces lie one after the other in the input too, and each reaches over `window` bytes
    /// of it at most. `None` where the view is not to be had in that way.
    pub fn forward(view: &View, unit: u64, window: u64) -> Option<Plan> {
        let span = |axes: &[Axis], run| {
            let reach = reach(axes, run);
            (reach.end - reach.start) as u64
        };
        let mut cut_axis = 0;
        let plan = Plan::cut(view, |axes, run| {
            let fits = |inner: &[Axis], bytes: u64| bytes <= window && span(inner, run) <= window;
            let mut cut = Ranges::choose(axes, run, unit.max(1), window, fits);
            let one_window = cut.chunks == 1 && span(&axes[cut.axis..], run) <= window;
            if let (Some(axis), false) = (axes.get(cut.axis), one_window) {
                let (item, stride) = (span(&axes[cut.axis + 1..], run), axis.stride.unsigned_abs());
                let near = stride <= item + GAP_BYTES;
                let most = if near { (window - item) / stride.max(1) + 1 } else { 1 };
                cut.chunk = cut.chunk.min(most);
                cut.chunks = axis.len.div_ceil(cut.chunk);
            }
            cut_axis = cut.axis;
            Cut::Ranges(cut)
        });
        let mut outer = plan.axes.iter().enumerate().take(cut_axis + 1);
        let ascending = outer.all(|(at, axis)| {
            axis.stride >= 0 && axis.stride as u64 >= span(&plan.axes[at + 1..], plan.run)
        });
        (plan.pieces() <= 1 || ascending).then_some(plan)
    }

    fn cut(view: &View, choose: impl FnOnce(&[Axis], u64) -> Cut) -> Plan {
        let (offset, bytes) = (view.offset(), view.bytes());
        if bytes == 0 {
            return Plan { offset, axes: vec![], run: 0, bytes, cut: Cut::Nothing };
        }
        let (axes, run) = coalesce(view.axes(), view.itemsize());
        let cut = choose(&axes, run);
        Plan { offset, axes, run, bytes, cut }
    }

    /// Bytes of the whole output.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The axes that are left after merging, outermost first.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Bytes that are contiguous in input and output.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// The bytes of the input from the first that is read to the last, where those that are read
    /// are small islands, far apart; or where whole panels are [asked for](Plan::ahead).
    ///
    /// ```
    /// use tslice::{index::{numpy, resolve::resolve}, plan::Plan, shape::Order, view::{Layout, View}};
    /// let shape = [1 << 20, 1024];
    /// let layout = Layout { shape: &shape, item_bits: 32, order: Order::C, offset: 128 };
    /// let scattered = |index| {
    ///     let selection = resolve(&numpy::parse(index).unwrap().expr, &shape, false).unwrap();
    ///     Plan::new(&View::new(&layout, &selection).unwrap(), 1, 1 << 18).scattered()
    /// };
    /// assert_eq!(scattered("1000::-1000, :9"), Some(128..128 + 1000 * 4096 + 36));
    /// assert_eq!(scattered("::100, ::9"), None); // 400 kB apart: reading ahead is faster
    /// assert_eq!(scattered("5"), None);
    /// ```
    pub fn scattered(&self) -> Option<Range<u64>> {
        let span = reach(&self.axes, self.run);
        let first = self.offset as i64;
        let range = (first + span.start) as u64..(first + span.end) as u64;
        if matches!(self.cut, Cut::Boxes(_)) {
            return Some(range);
        }
        let mut axes = self.axes.clone();
        axes.sort_unstable_by_key(|axis| axis.stride.unsigned_abs());
        let mut island = self.run;
        let next = axes.iter().position(|axis| {
            let stride = axis.stride.unsigned_abs();
            let apart = stride > island + OCEAN_BYTES;
            island += if apart { 0 } else { stride * (axis.len - 1) };
            apart
        });
        next.filter(|_| island <= GAP_BYTES).map(|_| range)
    }

    /// The number of pieces.
    pub fn pieces(&self) -> u64 {
        match &self.cut {
            Cut::Nothing => 0,
            Cut::Ranges(ranges) => ranges.pieces(&self.axes),
            Cut::Boxes(boxes) => boxes.pieces(&self.axes),
        }
    }

    /// Piece `number` of `0..pieces()`.
    pub fn piece(&self, number: u64) -> Piece {
        match &self.cut {
            Cut::Nothing => Piece { input: 0, axes: vec![], run: 0, place: Place::range(0, 0) },
            Cut::Ranges(ranges) => ranges.piece(self.offset, &self.axes, self.run, number),
            Cut::Boxes(boxes) => boxes.piece(self.offset, &self.axes, self.run, number),
        }
    }
}
