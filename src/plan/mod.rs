//! A plan: a view made simple, and its output cut into pieces.
//!
//! Axes of length 1 are dropped and neighbours merged ([`coalesce`]), so that what is copied at
//! once is as long as it can be. The *output* is cut into [`Piece`]s that fit a cache-sized
//! buffer: each is one contiguous range of output bytes, so that workers never share a byte.
//! A piece is computed from its number; a plan takes the same few bytes for any tensor.
//!
//! ```text
//!   output   |piece 0       |piece 1       |piece 2   |     contiguous, ascending
//!             ││││││││││││││ ││││││││││││││
//!   input   ··█·█·█·█·█·█·█···█·█·█·█·█·█·█···            runs, `stride` apart
//! ```

use crate::view::{Axis, View, coalesce, reach};

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
    /// The axis that is cut (`axes.len()` for the run itself), and its length in a piece.
    cut: Cut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    axis: usize,
    /// Items of the cut axis (bytes, of the run) in a piece.
    chunk: u64,
    /// Pieces along the cut axis.
    chunks: u64,
    /// Bytes of output an item of the cut axis.
    inner: u64,
}

/// One piece of a plan: a contiguous range of the output, and where its bytes come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where its first run lies in the input, in bytes.
    pub input: u64,
    /// Where its bytes go in the output, in bytes from the beginning of the view's output.
    pub output: u64,
    /// The axes inside the piece, outermost first, over runs of `run` bytes.
    pub axes: Vec<Axis>,
    /// Bytes that are contiguous in input and output.
    pub run: u64,
    /// Bytes of the piece.
    pub bytes: u64,
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

/// The bytes of a piece: half of them and the input's share fit in a level-2 cache.
pub const PIECE_BYTES: u64 = 256 << 10;

impl Plan {
    /// Plan the copy of a view, in pieces of at most `piece_bytes` bytes (at least 1).
    ///
    /// `unit` is a number of bytes that no piece may divide, such as the item size where the
    /// byte order is changed on the way. A piece is as long as one unit at least.
    pub fn new(view: &View, unit: u64, piece_bytes: u64) -> Plan {
        let fits = |_: &[Axis], bytes: u64| bytes <= piece_bytes;
        Plan::cut(view, |axes, run| Cut::choose(axes, run, unit.max(1), piece_bytes.max(1), fits))
    }

    /// Plan the copy of a view from an input that is read once, from its beginning to its end:
    /// the pieces lie one after the other in the input too, and each reaches over `window` bytes
    /// of it at most. `None` where the view is not to be had in that way.
    pub fn forward(view: &View, unit: u64, window: u64) -> Option<Plan> {
        let span = |axes: &[Axis], run| {
            let reach = reach(axes, run);
            (reach.end - reach.start) as u64
        };
        let plan = Plan::cut(view, |axes, run| {
            let fits = |inner: &[Axis], bytes: u64| bytes <= window && span(inner, run) <= window;
            let mut cut = Cut::choose(axes, run, unit.max(1), window, fits);
            let one_window = cut.chunks == 1 && span(&axes[cut.axis..], run) <= window;
            if let (Some(axis), false) = (axes.get(cut.axis), one_window) {
                let (item, stride) = (span(&axes[cut.axis + 1..], run), axis.stride.unsigned_abs());
                let near = stride <= item + GAP_BYTES;
                let most = if near { (window - item) / stride.max(1) + 1 } else { 1 };
                cut.chunk = cut.chunk.min(most);
                cut.chunks = axis.len.div_ceil(cut.chunk);
            }
            cut
        });
        let outer = plan.axes.iter().enumerate().take(plan.cut.axis + 1);
        let ascending = outer.map(|(at, axis)| {
            axis.stride >= 0 && axis.stride as u64 >= span(&plan.axes[at + 1..], plan.run)
        });
        (plan.pieces() <= 1 || ascending.into_iter().all(|holds| holds)).then_some(plan)
    }

    fn cut(view: &View, choose: impl FnOnce(&[Axis], u64) -> Cut) -> Plan {
        let bytes = view.bytes();
        if bytes == 0 {
            let cut = Cut { axis: 0, chunk: 0, chunks: 0, inner: 0 };
            return Plan { offset: view.offset(), axes: vec![], run: 0, bytes, cut };
        }
        let (axes, run) = coalesce(view.axes(), view.itemsize());
        let cut = choose(&axes, run);
        Plan { offset: view.offset(), axes, run, bytes, cut }
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

    /// The number of pieces.
    pub fn pieces(&self) -> u64 {
        if self.bytes == 0 {
            return 0;
        }
        self.axes.iter().take(self.cut.axis).map(|axis| axis.len).product::<u64>() * self.cut.chunks
    }

    /// Piece `number` of `0..pieces()`, in the order of the output.
    pub fn piece(&self, number: u64) -> Piece {
        let Cut { axis: at, chunk, chunks, inner } = self.cut;
        let whole = if at < self.axes.len() { self.axes[at].len } else { self.run };
        let first = number % chunks * chunk;
        let len = chunk.min(whole - first);
        let mut rest = number / chunks;
        let output = (rest * whole + first) * inner;
        let mut input = self.offset as i64;
        for axis in self.axes[..at.min(self.axes.len())].iter().rev() {
            input += (rest % axis.len) as i64 * axis.stride;
            rest /= axis.len;
        }
        let (mut axes, mut run) = (Vec::new(), self.run);
        if at < self.axes.len() {
            input += first as i64 * self.axes[at].stride;
            axes.extend_from_slice(&self.axes[at..]);
            axes[0].len = len;
        } else {
            input += first as i64;
            run = len;
        }
        Piece { input: input as u64, output, axes, run, bytes: len * inner }
    }
}

impl Cut {
    /// Cut the outermost axis one of whose items (its inner axes and their bytes) fits a piece.
    fn choose(
        axes: &[Axis],
        run: u64,
        unit: u64,
        piece_bytes: u64,
        fits: impl Fn(&[Axis], u64) -> bool,
    ) -> Cut {
        let mut inner = run;
        let mut cut = None;
        for (at, axis) in axes.iter().enumerate().rev() {
            if !fits(&axes[at + 1..], inner) {
                break;
            }
            cut = Some((at, axis.len, inner, 1));
            inner = inner.saturating_mul(axis.len);
        }
        let (axis, len, inner, unit) = cut.unwrap_or((axes.len(), run, 1, unit));
        let most = (piece_bytes / inner / unit * unit).max(unit);
        // even pieces, of whole units
        let chunk = len.div_ceil(len.div_ceil(most)).next_multiple_of(unit).min(len);
        Cut { axis, chunk, chunks: len.div_ceil(chunk), inner }
    }
}
