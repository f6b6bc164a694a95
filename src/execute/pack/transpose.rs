//! Transposition: items that are close together in the input are far apart in the output, and the
//! other way round.
//!
//! ```text
//!   input    a stretch ──►             output   across ──►
//!   across   a0 a1 a2 a3 ...           row 0    a0 b0 c0 d0 ...
//!     │      b0 b1 b2 b3 ...           row 1    a1 b1 c1 d1 ...
//!     ▼      c0 c1 c2 c3 ...           row 2    a2 b2 c2 d2 ...
//! ```
//!
//! A *stretch* is made of the axes with the short strides: pixels and their channels, a reversed
//! axis, every other item. Each of its items begins a row of the output, wherever that lies; items
//! of the stretch that are not selected begin none.
//!
//! Squares of one register's width are transposed in registers, those of one cache line of each
//! output row after each other. What no square covers, and items of other sizes, are moved one by
//! one in the same order.

use crate::runs::{Axis, dense_bytes, starts};

/// Bytes of a stretch that are used up before going on across: a few cache lines.
const LINES: usize = 256;

/// The longest stretch, in bytes.
const STRETCH: u64 = 16 << 10;

/// A cache line, in bytes.
const LINE: usize = 64;

/// No row: the item is not selected.
const NONE: usize = usize::MAX;

/// A box that is transposed.
pub(super) struct Transpose {
    /// Where the row of each item of a stretch begins in the output, in bytes from that of the
    /// stretch; [`NONE`] for items that are not selected.
    rows: Vec<usize>,
    /// From the first run of the box to the lowest item of its stretch, in bytes: 0 or less.
    lowest: i64,
    /// The stretches, whose items are neighbours in the output.
    across: Axis,
    /// The other axes, in the input and in the output.
    others: (Vec<Axis>, Vec<Axis>),
    run: usize,
}

impl Transpose {
    /// `None` where items are not close together in the input, or are close together along the last
    /// axis too, or where their size has no kernel.
    pub(super) fn choose(axes: &[Axis], run: u64) -> Option<Transpose> {
        let (&across, outer) = axes.split_last()?;
        let has_kernel = matches!(run, 1..=4 | 6 | 8 | 12 | 16 | 24 | 32);
        if !has_kernel || across.stride.unsigned_abs() <= 16 || across.len < 2 {
            return None;
        }
        let (mut span, mut items) = (run, 1);
        let mut inside = Vec::new();
        let mut order: Vec<usize> = (0..outer.len()).collect();
        order.sort_by_key(|&axis| outer[axis].stride.unsigned_abs());
        for axis in order.into_iter().filter(|&axis| outer[axis].stride != 0) {
            let (len, stride) = (outer[axis].len, outer[axis].stride.unsigned_abs());
            let longer = stride.saturating_mul(len - 1).saturating_add(span);
            // rows do not overlap, and a quarter of the items at least is selected
            let fits = stride.is_multiple_of(run) && stride >= span && longer <= STRETCH;
            if !fits || longer > items * len * run * 4 {
                break;
            }
            inside.push(axis);
            (span, items) = (longer, items * len);
        }
        if items < 2 {
            return None;
        }
        let bytes_from = |axis: usize| dense_bytes(&axes[axis..], run);
        let there = |axis: usize| Axis { stride: bytes_from(axis + 1) as i64, ..outer[axis] };
        let pick = |is_inside: bool| {
            let axes = (0..outer.len()).filter(|axis| inside.contains(axis) == is_inside);
            let (ours, theirs): (Vec<Axis>, Vec<Axis>) =
                axes.map(|axis| (outer[axis], there(axis))).unzip();
            (ours, theirs)
        };
        let (ours, theirs) = pick(true);
        let lowest: i64 = ours.iter().map(|axis| axis.stride.min(0) * (axis.len as i64 - 1)).sum();
        let mut rows = vec![NONE; (span / run) as usize];
        for (at, row) in starts(&ours, -lowest).zip(starts(&theirs, 0)) {
            rows[at as usize / run as usize] = row as usize;
        }
        Some(Transpose { rows, lowest, across, others: pick(false), run: run as usize })
    }

    /// Transpose the box whose first run is at position `first` of `input` to `out`.
    pub(super) fn pack(&self, input: &[u8], first: usize, out: &mut [u8]) {
        let (ours, theirs) = &self.others;
        for (at, to) in starts(ours, first as i64 + self.lowest).zip(starts(theirs, 0)) {
            let out = &mut out[to as usize..];
            match self.run {
                1 => self.matrix::<1>(input, at, out),
                2 => self.matrix::<2>(input, at, out),
                3 => self.matrix::<3>(input, at, out),
                4 => self.matrix::<4>(input, at, out),
                6 => self.matrix::<6>(input, at, out),
                8 => self.matrix::<8>(input, at, out),
                12 => self.matrix::<12>(input, at, out),
                16 => self.matrix::<16>(input, at, out),
                24 => self.matrix::<24>(input, at, out),
                _ => self.matrix::<32>(input, at, out),
            }
        }
    }

    /// Transpose items of `SIZE` bytes, the lowest of the first stretch at `at`.
    fn matrix<const SIZE: usize>(&self, input: &[u8], at: i64, out: &mut [u8]) {
        let side = 16 / SIZE.min(16);
        let across = self.across.len as usize;
        let squares = if SIZE.is_power_of_two() && (2..=16).contains(&side) {
            (self.rows.len() / side * side, across / side * side)
        } else {
            (0, 0)
        };
        let block = (LINE / SIZE).max(1);
        for panel in (0..self.rows.len()).step_by((LINES / SIZE).max(1)) {
            let panel_end = (panel + (LINES / SIZE).max(1)).min(self.rows.len());
            let squares_end = panel_end.min(squares.0).max(panel);
            for line in (0..across).step_by(block) {
                let line_end = (line + block).min(across);
                let whole_end = line_end.min(squares.1).max(line);
                for item in (panel..squares_end).step_by(side) {
                    for stretch in (line..whole_end).step_by(side) {
                        self.square::<SIZE>(input, at, item, stretch, out);
                    }
                }
                self.items::<SIZE>(input, at, panel..squares_end, whole_end..line_end, out);
                self.items::<SIZE>(input, at, squares_end..panel_end, line..line_end, out);
            }
        }
    }

    /// Move the items of some stretches one by one.
    #[inline(always)]
    fn items<const SIZE: usize>(
        &self,
        input: &[u8],
        at: i64,
        items: std::ops::Range<usize>,
        stretches: std::ops::Range<usize>,
        out: &mut [u8],
    ) {
        if stretches.is_empty() {
            return;
        }
        for item in items.filter(|&item| self.rows[item] != NONE) {
            let to = self.rows[item] + stretches.start * SIZE;
            let row = &mut out[to..to + stretches.len() * SIZE];
            let mut from = self.place::<SIZE>(at, item, stretches.start);
            for place in row.as_chunks_mut::<SIZE>().0 {
                place.copy_from_slice(&input[from as usize..from as usize + SIZE]);
                from += self.across.stride;
            }
        }
    }

    /// Transpose a square of `16 / SIZE` stretches of 16 bytes.
    #[inline(always)]
    fn square<const SIZE: usize>(
        &self,
        input: &[u8],
        at: i64,
        item: usize,
        stretch: usize,
        out: &mut [u8],
    ) {
        let side = 16 / SIZE;
        let mut from = self.place::<SIZE>(at, item, stretch);
        let mut square = [[0; 16]; 16];
        for row in &mut square[..side] {
            row.copy_from_slice(&input[from as usize..][..16]);
            from += self.across.stride;
        }
        // Interleaving the first half of the rows with the second, as often as 2 divides their
        // number, is a transposition.
        let mut stage = 1;
        while stage < side {
            let halves = square;
            for pair in 0..side / 2 {
                let (a, b) = (&halves[pair], &halves[pair + side / 2]);
                square[2 * pair] = interleave::<SIZE, 0>(a, b);
                square[2 * pair + 1] = interleave::<SIZE, 8>(a, b);
            }
            stage *= 2;
        }
        for (row, &to) in square[..side].iter().zip(&self.rows[item..item + side]) {
            if to != NONE {
                out[to + stretch * SIZE..][..16].copy_from_slice(row);
            }
        }
    }

    #[inline(always)]
    fn place<const SIZE: usize>(&self, at: i64, item: usize, stretch: usize) -> i64 {
        at + (item * SIZE) as i64 + self.across.stride * stretch as i64
    }
}

/// Items of 8 bytes of `a` and `b` in turn, those from byte `FROM` on. The compiler knows this as
/// one instruction.
#[inline(always)]
fn interleave<const SIZE: usize, const FROM: usize>(a: &[u8; 16], b: &[u8; 16]) -> [u8; 16] {
    std::array::from_fn(|at| {
        let from = if (at / SIZE).is_multiple_of(2) { a } else { b };
        from[FROM + at / SIZE / 2 * SIZE + at % SIZE]
    })
}
