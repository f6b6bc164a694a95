//! Transposition: items that are close together in the input are far apart in the output, and vice
//! versa.
//!
//! ```text
//!   input    a stretch ──►             output   across ──►
//!   across   a0 a1 a2 a3 ...           row 0    a0 b0 c0 d0 ...
//!     │      b0 b1 b2 b3 ...           row 1    a1 b1 c1 d1 ...
//!     ▼      c0 c1 c2 c3 ...           row 2    a2 b2 c2 d2 ...
//! ```
//!
//! A *stretch* consists of the axes with the short strides: pixels and their channels, a reversed
//! axis, every other item. Each of its items begins a row of the output, wherever that lies; items
//! that are not selected begin none.
//!
//! Squares are transposed in registers (`square.rs`); at the ends of lines they overlap. Items are
//! moved one by one where there are too few for a square, where few of a stretch are selected, and
//! where their size has no squares.

use super::square;
use crate::runs::{Axis, dense_bytes, starts};

/// Bytes of a stretch that are handled before going on across: a few cache lines.
const LINES: usize = 256;

const STRETCH: u64 = 16 << 10;

/// The most bytes of the input that are prefetched while single items are moved.
const AHEAD: usize = 8 << 10;

const LINE: usize = 64;

/// In `rows`: the item is not selected.
const NONE: usize = usize::MAX;

pub(super) struct Transpose {
    /// The offset of each stretch item's row in the output, in bytes from that of the stretch;
    /// [`NONE`] for items that are not selected.
    rows: Vec<usize>,
    /// From the first run of the box to the lowest item of its stretch, in bytes: 0 or less.
    lowest: i64,
    /// Across the stretches, whose items are neighbours in the output.
    across: Axis,
    /// The axes that are neither, in the input and in the output.
    others: (Vec<Axis>, Vec<Axis>),
    /// The outermost axis of a stretch, in input and output. A long one is divided into stretches.
    divided: (Axis, Axis),
    /// The items of that axis per stretch.
    chunk: u64,
    /// Whether too few items of a stretch are selected for squares.
    is_sparse: bool,
    run: usize,
}

/// Which items are handled as one stretch.
struct Stretch {
    /// Its axes, by their place among the outer ones, the shortest stride first.
    axes: Vec<usize>,
    /// Bytes from its lowest item to the end of its highest.
    span: u64,
    items: u64,
    /// Items of its last axis, which may have more than one stretch.
    chunk: u64,
}

/// Whether most items of a range of bytes are left out.
fn is_sparse(span: u64, items: u64, run: u64) -> bool {
    span > items * run * 4
}

impl Stretch {
    /// As many of the axes with the shortest strides as are worth a stretch.
    fn choose(outer: &[Axis], run: u64) -> Stretch {
        let mut stretch = Stretch { axes: Vec::new(), span: run, items: 1, chunk: 1 };
        let mut order: Vec<usize> = (0..outer.len()).collect();
        order.sort_by_key(|&axis| outer[axis].stride.unsigned_abs());
        let moving = |&axis: &usize| outer[axis].stride != 0 && outer[axis].len > 1;
        for axis in order.into_iter().filter(moving) {
            let Stretch { span, items, .. } = stretch;
            let len = outer[axis].len;
            let stride = outer[axis].stride.unsigned_abs();
            let most = STRETCH.saturating_sub(span) / stride + 1;
            let chunk = len.div_ceil(len.div_ceil(most));
            let longer = stride * (chunk - 1) + span;
            // rows do not overlap, and of more than a few cache lines not most items are left out
            let fits = stride.is_multiple_of(run)
                && stride >= span
                && (longer <= LINES as u64 || !is_sparse(longer, items * chunk, run));
            // neighbours alone may be too many for one stretch; large ones are moved one by one as well
            let is_long = chunk < len && (stride > span || run >= 16);
            if !fits || is_long || chunk < 2 {
                break;
            }
            stretch.axes.push(axis);
            stretch = Stretch { span: longer, items: items * chunk, chunk, ..stretch };
        }
        stretch
    }
}

impl Transpose {
    /// `None` where no axis but the last has its items close together, where the last has them
    /// close together too, and where the item size has no kernel.
    pub(super) fn choose(axes: &[Axis], run: u64) -> Option<Transpose> {
        let (&across, outer) = axes.split_last()?;
        let has_kernel = matches!(run, 1..=4 | 6 | 8 | 12 | 16 | 24 | 32);
        if !has_kernel || across.stride.unsigned_abs() <= 16 || across.len < 2 {
            return None;
        }
        let stretch = Stretch::choose(outer, run);
        let divided = *stretch.axes.last()?;
        let bytes_from = |axis: usize| dense_bytes(&axes[axis..], run);
        let there = |axis: usize| Axis { stride: bytes_from(axis + 1) as i64, ..outer[axis] };
        let pick = |is_inside: bool| {
            let axes = (0..outer.len()).filter(|axis| stretch.axes.contains(axis) == is_inside);
            let part = |axis: usize| {
                if is_inside && axis == divided { stretch.chunk } else { outer[axis].len }
            };
            let axes = axes.map(|axis| (axis, part(axis)));
            let (ours, theirs): (Vec<Axis>, Vec<Axis>) = axes
                .map(|(axis, len)| (Axis { len, ..outer[axis] }, Axis { len, ..there(axis) }))
                .unzip();
            (ours, theirs)
        };
        let (ours, theirs) = pick(true);
        let lowest: i64 = ours.iter().map(|axis| axis.stride.min(0) * (axis.len as i64 - 1)).sum();
        let mut rows = vec![NONE; (stretch.span / run) as usize];
        for (at, row) in starts(&ours, -lowest).zip(starts(&theirs, 0)) {
            rows[at as usize / run as usize] = row as usize;
        }
        let divided = (outer[divided], there(divided));
        let others = pick(false);
        let is_sparse = is_sparse(stretch.span, stretch.items, run);
        let chunk = stretch.chunk;
        let run = run as usize;
        Some(Transpose { rows, lowest, across, others, divided, chunk, is_sparse, run })
    }

    /// Transpose the box into `out`; its first run is at position `first` of `input`.
    pub(super) fn pack(
        &self,
        register: Option<Register>,
        input: &[u8],
        first: usize,
        out: &mut [u8],
    ) {
        let (ours, theirs) = self.divided;
        for begin in (0..ours.len).step_by(self.chunk as usize) {
            // the last stretch may overlap the one before it
            let begin = begin.min(ours.len - self.chunk) as i64;
            let first = first as i64 + self.lowest + ours.stride * begin;
            self.stretches(register, input, first, &mut out[(theirs.stride * begin) as usize..]);
        }
    }

    /// Transpose one stretch for each position of the other axes; the lowest item of the first
    /// stretch is at `first`.
    #[inline(never)]
    fn stretches(&self, register: Option<Register>, input: &[u8], first: i64, out: &mut [u8]) {
        match self.run {
            1 => self.wide::<1, 64, 32, 16>(register, input, first, out),
            2 => self.wide::<2, 32, 16, 8>(register, input, first, out),
            3 => self.items::<3>(input, first, out),
            4 => self.wide::<4, 16, 8, 4>(register, input, first, out),
            6 => self.items::<6>(input, first, out),
            8 => self.wide::<8, 8, 4, 2>(register, input, first, out),
            12 => self.items::<12>(input, first, out),
            16 => self.wide::<16, 4, 2, 1>(register, input, first, out),
            24 => self.items::<24>(input, first, out),
            _ => self.items::<32>(input, first, out),
        }
    }

    /// Transpose items of `SIZE` bytes with the widest register for which there are squares: of 64,
    /// 32 or 16 bytes, which hold `IN_64`, `IN_32` or `IN_16` items. `first` is as for
    /// [`stretches`](Transpose::stretches).
    #[allow(unsafe_code)]
    fn wide<const SIZE: usize, const IN_64: usize, const IN_32: usize, const IN_16: usize>(
        &self,
        register: Option<Register>,
        input: &[u8],
        first: i64,
        out: &mut [u8],
    ) {
        let most = self.longest_side();
        match register {
            // SAFETY: a value exists only where the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            Some(Register::Avx512) if most >= IN_64 => unsafe {
                self.avx512::<SIZE, IN_64>(input, first, out);
            },
            // SAFETY: as above; what has AVX-512 has AVX2.
            #[cfg(target_arch = "x86_64")]
            Some(Register::Avx512 | Register::Avx2) if most >= IN_32 => unsafe {
                self.avx2::<SIZE, IN_32>(input, first, out);
            },
            // SAFETY: all processors of these kinds have the instructions.
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            _ if most >= IN_16 && IN_16 > 1 => unsafe {
                self.squares::<square::Narrow, SIZE, IN_16>(input, first, out);
            },
            _ => self.items::<SIZE>(input, first, out),
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw")]
    #[allow(unsafe_code)]
    fn avx512<const SIZE: usize, const SIDE: usize>(
        &self,
        input: &[u8],
        first: i64,
        out: &mut [u8],
    ) {
        // SAFETY: this function has the instructions.
        unsafe { self.squares::<std::arch::x86_64::__m512i, SIZE, SIDE>(input, first, out) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    #[allow(unsafe_code)]
    fn avx2<const SIZE: usize, const SIDE: usize>(&self, input: &[u8], first: i64, out: &mut [u8]) {
        // SAFETY: this function has the instructions.
        unsafe { self.squares::<std::arch::x86_64::__m256i, SIZE, SIDE>(input, first, out) }
    }

    fn longest_side(&self) -> usize {
        if self.is_sparse { 0 } else { self.rows.len().min(self.across.len as usize) }
    }

    pub(super) fn has_squares(&self) -> bool {
        let side = (16 / self.run).max(2);
        self.run.is_power_of_two() && self.run <= 16 && self.longest_side() >= side
    }

    /// # Safety
    /// As for [`square::Vector`].
    #[inline(always)]
    #[allow(unsafe_code)]
    unsafe fn squares<V: square::Vector, const SIZE: usize, const SIDE: usize>(
        &self,
        input: &[u8],
        first: i64,
        out: &mut [u8],
    ) {
        let (ours, theirs) = &self.others;
        let items = self.rows.len();
        let across = self.across.len as usize;
        let stride = self.across.stride;
        let wide = (LINES / SIZE).max(SIDE);
        // Where lines of the output are long, a group fills whole cache lines of it, so that going over
        // all others before the next group costs nothing, and follows each line of the input.
        let line = (LINE / SIZE).max(SIDE);
        let group = if across >= 4 * line { line } else { across };
        for panel in (0..items).step_by(wide) {
            let panel_end = (panel + wide).min(items);
            for group_start in (0..across).step_by(group) {
                let group_end = (group_start + group).min(across);
                // the group that comes next in memory is loaded while this one is transposed
                let next = starts(ours, first).skip(1).chain([first + stride * group as i64]);
                let others = starts(ours, first).zip(starts(theirs, 0)).zip(next);
                for ((at, to), next) in others {
                    let ahead = next + (panel * SIZE) as i64;
                    for line in group_start..group_end {
                        prefetch(input, ahead + stride * line as i64, (panel_end - panel) * SIZE);
                    }
                    // square after square along the rows of the output, so that a line of it is
                    // whole before as many others as share its place in the cache are begun
                    let mut item = panel;
                    while item < panel_end {
                        let first = item.min(items - SIDE);
                        let rows = &self.rows[first..];
                        let mut stretch = group_start;
                        while stretch < group_end {
                            let line = stretch.min(across - SIDE);
                            let at = at + stride * line as i64 + (first * SIZE) as i64;
                            let to = to as usize + line * SIZE;
                            // SAFETY: as of this function.
                            unsafe {
                                square::transpose::<V, SIZE, SIDE>(
                                    input, at, stride, rows, to, out,
                                );
                            }
                            stretch += SIDE;
                        }
                        item += SIDE;
                    }
                }
            }
        }
    }

    fn items<const SIZE: usize>(&self, input: &[u8], first: i64, out: &mut [u8]) {
        let (ours, theirs) = &self.others;
        let rows = self.rows.iter().enumerate().filter(|(_, row)| **row != NONE);
        let items: Vec<(usize, usize)> = rows.map(|(item, &row)| (item * SIZE, row)).collect();
        let stride = self.across.stride;
        let across = self.across.len as usize;
        let stretch = self.rows.len() * SIZE;
        let block = (LINE / SIZE).max(1);
        let next = starts(ours, first).skip(1).chain([first]);
        for ((at, to), next) in starts(ours, first).zip(starts(theirs, 0)).zip(next) {
            if across * stretch <= AHEAD {
                (0..across as i64).for_each(|line| prefetch(input, next + stride * line, stretch));
            }
            let out = &mut out[to as usize..];
            for panel in items.chunk_by(|one, other| one.0 / LINES == other.0 / LINES) {
                for line in (0..across).step_by(block) {
                    let count = block.min(across - line);
                    for &(item, row) in panel {
                        let row = row + line * SIZE;
                        let mut from = at + item as i64 + stride * line as i64;
                        for place in out[row..row + count * SIZE].as_chunks_mut::<SIZE>().0 {
                            place.copy_from_slice(&input[from as usize..from as usize + SIZE]);
                            from += stride;
                        }
                    }
                }
            }
        }
    }
}

/// Prefetch the cache lines of `len` bytes of the input, if all of them are inside.
#[inline(always)]
#[allow(unsafe_code)]
fn prefetch(input: &[u8], at: i64, len: usize) {
    let bytes = usize::try_from(at).ok().and_then(|at| input.get(at..at + len));
    for line in bytes.into_iter().flat_map(|bytes| bytes.chunks(LINE)) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: all processors of this kind have the instruction, which reads nothing.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = line;
    }
}

/// A register and the instructions on its bytes. A value exists only where the machine has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Register {
    #[cfg(target_arch = "aarch64")]
    Neon,
    #[cfg(target_arch = "x86_64")]
    Ssse3,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 with F, BW, VBMI and VBMI2; POPCNT.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Register {
    pub(super) fn widest() -> Option<Register> {
        Register::detected().last()
    }

    /// What this machine has, from the narrowest to the widest.
    pub(super) fn detected() -> impl Iterator<Item = Register> {
        #[cfg(target_arch = "x86_64")]
        let found = [
            is_x86_feature_detected!("ssse3").then_some(Register::Ssse3),
            is_x86_feature_detected!("avx2").then_some(Register::Avx2),
            (is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vbmi")
                && is_x86_feature_detected!("avx512vbmi2")
                && is_x86_feature_detected!("popcnt"))
            .then_some(Register::Avx512),
        ];
        #[cfg(target_arch = "aarch64")]
        let found = [std::arch::is_aarch64_feature_detected!("neon").then_some(Register::Neon)];
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let found: [Option<Register>; 0] = [];
        found.into_iter().flatten()
    }

    /// The names of the instruction sets, as in Linux.
    pub(super) fn instructions(self) -> &'static [&'static str] {
        match self {
            #[cfg(target_arch = "aarch64")]
            Register::Neon => &["neon"],
            #[cfg(target_arch = "x86_64")]
            Register::Ssse3 => &["ssse3"],
            #[cfg(target_arch = "x86_64")]
            Register::Avx2 => &["avx2"],
            #[cfg(target_arch = "x86_64")]
            Register::Avx512 => &["avx512f", "avx512bw", "avx512vbmi", "avx512_vbmi2", "popcnt"],
        }
    }

    pub(super) fn width(self) -> usize {
        match self {
            #[cfg(target_arch = "aarch64")]
            Register::Neon => 16,
            #[cfg(target_arch = "x86_64")]
            Register::Ssse3 => 16,
            #[cfg(target_arch = "x86_64")]
            Register::Avx2 => 32,
            #[cfg(target_arch = "x86_64")]
            Register::Avx512 => 64,
        }
    }
}

/// How many units along an axis one load of a register of `width` bytes collects; each spans `span`
/// bytes in the input and has `bytes` in the output. 0 where one is too long.
pub(super) fn units(width: u64, along: Axis, span: u64, bytes: u64) -> u64 {
    let Some(room) = width.checked_sub(span) else { return 0 };
    let loaded = room.checked_div(along.stride.unsigned_abs()).map_or(width, |more| more + 1);
    loaded.min(width / bytes.max(1)).min(along.len)
}
