//! A kernel that interleaves rows far apart in the input into one row, which takes an item of each in
//! turn.
//!
//! ```text
//!   input   R R R R ...       output   R G B R G B R G B R G B ...
//!           G G G G ...
//!           B B B B ...
//! ```
//!
//! Planes that become the channels of pixels are an example: matrices with fewer rows than a square
//! of `square.rs`. One register is loaded from each row; each register of the output gathers its
//! bytes from them, by patterns that are computed once.
//!
//! A row that is not a multiple of a block ends with a block that overlaps the previous one.

use super::pack_plainly;
use super::square::{Narrow, Vector};
use super::transpose::{Register, units};
use crate::runs::{Axis, starts};

const WIDTH: usize = 16;

/// The index that selects no byte: the shuffle yields 0.
const NO_INDEX: u8 = 0x80;

const MOST: u64 = 8;

/// A plan to interleave rows, with the patterns of bytes for it.
pub(super) struct Interleave<'a> {
    outer: &'a [Axis],
    along: Axis,
    /// The axis across the rows, whose items are neighbours in the output.
    across: Axis,
    run: u64,
    /// The items of a row in one register. They form a block, with `block` bytes of output for all
    /// rows.
    items: usize,
    block: usize,
    /// The distance from a block's first item to its lowest byte in the input: 0 or less.
    lowest: i64,
    /// For each stored register and each row, the index of every byte in the loaded register.
    indices: Vec<[u8; WIDTH]>,
}

impl<'a> Interleave<'a> {
    /// The plan for axes; `None` where there are too many rows, or a register has fewer than two
    /// items of a row.
    pub(super) fn choose(axes: &'a [Axis], run: u64) -> Option<Interleave<'a>> {
        let [outer @ .., along, across] = axes else { return None };
        let items = units(WIDTH as u64, *along, run, run);
        if !(2..=MOST).contains(&across.len) || items < 2 {
            return None;
        }
        let block = items * across.len * run;
        if block < WIDTH as u64 {
            return None;
        }
        let items = items as usize;
        let block = block as usize;
        let lowest = along.stride.min(0) * (items as i64 - 1);
        let mut pattern = Interleave {
            outer,
            along: *along,
            across: *across,
            run,
            items,
            block,
            lowest,
            indices: Vec::new(),
        };
        let stores = pattern.stores().flat_map(|to| (0..across.len).map(move |row| (to, row)));
        pattern.indices = stores.map(|(to, row)| pattern.indices(to, row)).collect();
        Some(pattern)
    }

    /// The offsets in a block where registers are stored; the last may overlap the previous one.
    fn stores(&self) -> impl Iterator<Item = usize> + use<> {
        let last = self.block - WIDTH;
        (0..self.block).step_by(WIDTH).map(move |to| to.min(last))
    }

    /// For the register stored at `to`, the indices of its bytes in the loaded register of `row`.
    fn indices(&self, to: usize, row: u64) -> [u8; WIDTH] {
        let run = self.run as usize;
        std::array::from_fn(|at| {
            let number = (to + at) / run;
            let byte = (to + at) % run;
            let item = number as u64 / self.across.len;
            let of = number as u64 % self.across.len;
            let index = self.along.stride * item as i64 - self.lowest + byte as i64;
            if of == row { index as u8 } else { NO_INDEX }
        })
    }

    /// Interleave all rows into `out`; the first run is at position `first` of `input`.
    #[allow(unsafe_code)]
    pub(super) fn pack(&self, _has: Register, input: &[u8], first: usize, out: &mut [u8]) {
        // SAFETY: a register exists only where the machine has the instructions of the narrowest one.
        unsafe {
            match self.across.len {
                2 => self.blocks::<2>(input, first, out),
                3 => self.blocks::<3>(input, first, out),
                4 => self.blocks::<4>(input, first, out),
                5 => self.blocks::<5>(input, first, out),
                6 => self.blocks::<6>(input, first, out),
                7 => self.blocks::<7>(input, first, out),
                _ => self.blocks::<{ MOST as usize }>(input, first, out),
            }
        }
    }

    /// # Safety
    /// The processor must have the instructions.
    #[allow(unsafe_code)]
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "ssse3"))]
    unsafe fn blocks<const ROWS: usize>(&self, input: &[u8], first: usize, out: &mut [u8]) {
        let len = self.along.len as usize;
        let item = self.block / self.items;
        let far = self.across.stride * (ROWS as i64 - 1);
        let back = far.min(0);
        let ahead = far.max(0) + WIDTH as i64;
        let mut row_start = 0;
        for first in starts(self.outer, first as i64) {
            let row = &mut out[row_start..][..len * item];
            row_start += row.len();
            for begin in (0..len).step_by(self.items) {
                let begin = begin.min(len - self.items);
                let at = first + self.along.stride * begin as i64;
                let out = &mut row[begin * item..][..self.block];
                let lowest = at + self.lowest;
                if lowest + back >= 0 && lowest + ahead <= input.len() as i64 {
                    // SAFETY: the caller knows of the instructions.
                    unsafe { self.block::<ROWS>(input, lowest, out) };
                } else {
                    let along = Axis { len: self.items as u64, ..self.along };
                    pack_plainly(&[along, self.across], self.run, input, at as usize, out);
                }
            }
        }
    }

    /// Interleave one block whose lowest byte is at position `at`.
    ///
    /// # Safety
    /// As for [`blocks`](Interleave::blocks).
    #[allow(unsafe_code)]
    #[inline]
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "ssse3"))]
    unsafe fn block<const ROWS: usize>(&self, input: &[u8], at: i64, out: &mut [u8]) {
        // SAFETY: slices have the length of a register; the caller knows of the instructions.
        unsafe {
            let mut rows = [Narrow::load(&[0; WIDTH]); ROWS];
            let mut from = at;
            for row in &mut rows {
                *row = Narrow::load(&input[from as usize..][..WIDTH]);
                from += self.across.stride;
            }
            // the offsets of `stores`, whose iterator is slower here
            let mut to = 0;
            for indices in self.indices.as_chunks::<ROWS>().0 {
                let mut register = Narrow::load(&[0; WIDTH]);
                for (row, indices) in rows.iter().zip(indices) {
                    register = add(register, *row, Narrow::load(indices));
                }
                register.store(&mut out[to.min(self.block - WIDTH)..][..WIDTH]);
                to += WIDTH;
            }
        }
    }
}

/// The register with bytes of `row` added, by their indices `indices`.
///
/// # Safety
/// The processor must have the instructions.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
#[inline]
#[target_feature(enable = "ssse3")]
unsafe fn add(register: Narrow, row: Narrow, indices: Narrow) -> Narrow {
    use std::arch::x86_64::{_mm_or_si128, _mm_shuffle_epi8};
    _mm_or_si128(register, _mm_shuffle_epi8(row, indices))
}

/// The register with bytes of `row` added, by their indices `indices`.
///
/// # Safety
/// The processor must have the instructions.
#[cfg(target_arch = "aarch64")]
#[allow(unsafe_code)]
#[inline]
unsafe fn add(register: Narrow, row: Narrow, indices: Narrow) -> Narrow {
    use std::arch::aarch64::{vorrq_u8, vqtbl1q_u8};
    // SAFETY: all processors of this kind have NEON.
    unsafe { vorrq_u8(register, vqtbl1q_u8(row, indices)) }
}
