//! Transposition: one axis is contiguous in the input, another in the output.
//!
//! ```text
//!   input    along ──►                 output   across ──►
//!   across   a0 a1 a2 a3 ...           along    a0 b0 c0 d0 ...
//!     │      b0 b1 b2 b3 ...             │      a1 b1 c1 d1 ...
//!     ▼      c0 c1 c2 c3 ...             ▼      a2 b2 c2 d2 ...
//! ```
//!
//! Squares of one register's width are transposed in registers; the squares go along the input's
//! cache lines, so that each line is used up while it is in the cache. What no square covers is moved
//! item by item.

use crate::runs::Axis;

/// Bytes of the input that a walk along it uses before it goes on across: a few cache lines.
const LINES: usize = 256;

/// A matrix of items to be transposed.
#[derive(Clone, Copy)]
pub(super) struct Matrix {
    /// The items that are neighbours in the input, ascending or descending.
    pub(super) along: Axis,
    /// Bytes from one item to the next along that axis in the output.
    pub(super) along_out: usize,
    /// The items that are neighbours in the output.
    pub(super) across: Axis,
}

impl Matrix {
    /// Transpose items of `SIZE` bytes, the first at position `at` of `input`, to `out`.
    pub(super) fn transpose<const SIZE: usize>(&self, input: &[u8], at: i64, out: &mut [u8]) {
        let side = 16 / SIZE;
        let (along, across) = (self.along.len as usize, self.across.len as usize);
        let squares = if self.along.stride == SIZE as i64 && side > 1 {
            (along / side * side, across / side * side)
        } else {
            (0, 0)
        };
        for panel in (0..squares.0).step_by(LINES / SIZE) {
            let panel_end = (panel + LINES / SIZE).min(squares.0);
            // a cache line of each output row at a time, so that each is written once
            for rows in (0..squares.1).step_by(4 * side) {
                let rows_end = (rows + 4 * side).min(squares.1);
                for item in (panel..panel_end).step_by(side) {
                    for row in (rows..rows_end).step_by(side) {
                        let from = self.place(at, item, row);
                        let to = item * self.along_out + row * SIZE;
                        let strides = (self.across.stride, self.along_out);
                        square::<SIZE>(input, from, out, to, strides);
                    }
                }
            }
        }
        self.items::<SIZE>(input, at, 0..squares.0, squares.1..across, out);
        self.items::<SIZE>(input, at, squares.0..along, 0..across, out);
    }

    /// Move a part of the matrix item by item.
    fn items<const SIZE: usize>(
        &self,
        input: &[u8],
        at: i64,
        along: std::ops::Range<usize>,
        across: std::ops::Range<usize>,
        out: &mut [u8],
    ) {
        for item in along {
            for row in across.clone() {
                let from = self.place(at, item, row) as usize;
                let to = item * self.along_out + row * SIZE;
                out[to..to + SIZE].copy_from_slice(&input[from..from + SIZE]);
            }
        }
    }

    fn place(&self, at: i64, along: usize, across: usize) -> i64 {
        at + self.along.stride * along as i64 + self.across.stride * across as i64
    }
}

/// Transpose a square of `16 / SIZE` rows of 16 bytes, the first at `from` of `input`, to rows the
/// first of which is at `to` of `out`; `strides` are those of the rows there and here.
fn square<const SIZE: usize>(
    input: &[u8],
    from: i64,
    out: &mut [u8],
    to: usize,
    strides: (i64, usize),
) {
    let side = 16 / SIZE;
    let mut rows = [[0; 16]; 16];
    for (number, row) in rows[..side].iter_mut().enumerate() {
        row.copy_from_slice(&input[(from + strides.0 * number as i64) as usize..][..16]);
    }
    // Interleaving the first half of the rows with the second, as often as 2 divides their
    // number, is a transposition.
    let mut stage = 1;
    while stage < side {
        let halves = rows;
        for pair in 0..side / 2 {
            let (a, b) = (&halves[pair], &halves[pair + side / 2]);
            rows[2 * pair] = interleave::<SIZE, 0>(a, b);
            rows[2 * pair + 1] = interleave::<SIZE, 8>(a, b);
        }
        stage *= 2;
    }
    for (number, row) in rows[..side].iter().enumerate() {
        out[to + strides.1 * number..][..16].copy_from_slice(row);
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
