//! A kernel for transpositions: items close together in the input are far apart in the output, and vice versa.
//!
//! ```text
//!   input    a stretch ──►             output   across ──►
//!   across   a0 a1 a2 a3 ...           row 0    a0 b0 c0 d0 ...
//!     │      b0 b1 b2 b3 ...           row 1    a1 b1 c1 d1 ...
//!     ▼      c0 c1 c2 c3 ...           row 2    a2 b2 c2 d2 ...
//! ```
//!
//! A *stretch* consists of the axes with the short strides: pixels and their channels, a reversed axis, every other
//! item. Each selected item of a stretch begins a row of the output.
//!
//! Squares are transposed in registers (`square.rs`); at the ends of lines they overlap. Items are moved one by one
//! where there are too few for a square, where few items of a stretch are selected, and where their size has no
//! squares.

use std::ops::Range;

use super::square;
use crate::runs::{Axis, dense_bytes, starts};
use crate::source::PAGE;

/// The bytes of a stretch that are handled before going on across: a few cache lines.
const WIDE: usize = 256;

/// The most lines in a group, which is handled before its neighbours.
const GROUP: usize = 64;

/// A copy of a group of lines, [`WIDE`] bytes of each, in which lines do not compete for the same cache sets.
type Tile = [u8; WIDE * GROUP];

const STRETCH: u64 = 16 << 10;

/// The most bytes of input that are prefetched while single items are moved.
const AHEAD: usize = 8 << 10;

const LINE: usize = 64;

/// The most lines along several axes.
const MOST_LINES: u64 = 4 << 10;

/// The value in `rows` for an item that is not selected.
const NONE: usize = usize::MAX;

pub(super) struct Transpose {
    /// For each item of a stretch, the offset of its row in the output from the stretch's offset, in bytes; [`NONE`]
    /// for items that are not selected.
    rows: Vec<usize>,
    /// The distance from the first run of the box to the lowest item of its stretch, in bytes: 0 or less.
    lowest: i64,
    across: Lines,
    /// The other axes, neither of stretches nor across, in the input and in the output.
    others: (Vec<Axis>, Vec<Axis>),
    /// The outermost axis of a stretch, in input and output. A long one is divided into stretches.
    divided: (Axis, Axis),
    /// The items of the divided axis in a stretch.
    chunk: u64,
    /// Whether too few items of a stretch are selected for squares.
    is_sparse: bool,
    run: usize,
}

/// The lines of the input whose items are neighbours in the output: along its last axis, or along several short ones.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    len: usize,
    stride: i64,
    /// The offset of each line from the first; empty where the lines form one axis.
    table: Vec<i64>,
}

impl Lines {
    fn new(axes: &[Axis]) -> Option<Lines> {
        let len = dense_bytes(axes, 1) as usize;
        let stride = axes.last()?.stride;
        let table = if axes.len() > 1 { starts(axes, 0).collect() } else { Vec::new() };
        Some(Lines { len, stride, table })
    }

    /// The offset of a line from the first, in bytes of the input.
    #[inline(always)]
    fn at(&self, line: usize) -> i64 {
        self.table.get(line).copied().unwrap_or(self.stride * line as i64)
    }

    /// Copy `bytes` bytes of each of `lines` to rows of the tile; line 0 is at `first`.
    fn copy(&self, input: &[u8], first: i64, lines: Range<usize>, bytes: usize, tile: &mut Tile) {
        for (line, row) in lines.zip(tile.as_chunks_mut::<WIDE>().0) {
            let from = (first + self.at(line)) as usize;
            let (blocks, rest) = input[from..from + bytes].as_chunks::<LINE>();
            for (block, out) in blocks.iter().zip(row.as_chunks_mut().0) {
                *out = *block;
            }
            row[bytes - rest.len()..bytes].copy_from_slice(rest);
        }
    }
}

/// The lines of the input that are needed next. They are prefetched while other lines are transposed, a few before each
/// square: a processor can wait for only some of them beside its work.
struct Ahead<'a> {
    input: &'a [u8],
    first: i64,
    lines: &'a Lines,
    left: Range<usize>,
    bytes: usize,
}

impl Ahead<'_> {
    #[inline(always)]
    fn load(&mut self, lines: usize) {
        let end = (self.left.start + lines).min(self.left.end);
        while self.left.start < end {
            prefetch(self.input, self.first + self.lines.at(self.left.start), self.bytes);
            self.left.start += 1;
        }
    }
}

/// Lines of the input that are transposed before their neighbours.
struct Group<'a> {
    input: &'a [u8],
    first: i64,
    stride: i64,
    len: usize,
}

impl Group<'_> {
    /// Transpose the squares of these lines, which have an item for each of `rows`. Squares along a row of the output
    /// follow each other, so that a cache line of the output is complete before too many others compete for its cache
    /// set.
    ///
    /// # Safety
    /// As for [`square::Vector`].
    #[inline(always)]
    #[allow(unsafe_code)]
    unsafe fn transpose<V: square::Vector, const SIZE: usize, const SIDE: usize>(
        &self,
        rows: &[usize],
        out: &mut [u8],
        mut ahead: Ahead,
    ) {
        let Group { input, first, stride, len } = *self;
        let squares = rows.len().div_ceil(SIDE) * len.div_ceil(SIDE);
        let a_square = ahead.left.len().div_ceil(squares);
        for item in (0..rows.len()).step_by(SIDE) {
            let item = item.min(rows.len() - SIDE);
            let rows = &rows[item..];
            for line in (0..len).step_by(SIDE) {
                let line = line.min(len - SIDE);
                let at = first + stride * line as i64 + (item * SIZE) as i64;
                ahead.load(a_square);
                // SAFETY: the caller knows of the instructions.
                unsafe {
                    square::transpose::<V, SIZE, SIDE>(input, at, stride, rows, line * SIZE, out);
                }
            }
        }
    }
}

/// The items that are handled as one stretch.
struct Stretch {
    /// The axes of the stretch, by their numbers among the outer axes, the shortest stride first.
    axes: Vec<usize>,
    /// The bytes from the lowest item to the end of the highest.
    span: u64,
    items: u64,
    /// The items of the last of these axes, which may have more than one stretch.
    chunk: u64,
}

/// Whether most items of a range of bytes are not selected.
fn is_sparse(span: u64, items: u64, run: u64) -> bool {
    span > items * run * 4
}

impl Stretch {
    /// Choose as many of the axes with the shortest strides as are worth a stretch.
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
            // rows must not overlap, and a stretch of more than a few cache lines must not be sparse
            let fits = stride.is_multiple_of(run)
                && stride >= span
                && (longer <= WIDE as u64 || !is_sparse(longer, items * chunk, run));
            // neighbours alone may be too many for one stretch; large items are moved one by one as fast
            let is_long = chunk < len && (stride > span || run >= 16);
            if !fits || is_long || chunk < 2 {
                break;
            }
            stretch.axes.push(axis);
            stretch = Stretch { span: longer, items: items * chunk, chunk, ..stretch };
        }
        stretch
    }

    /// The number of axes before the axes of the lines: the last axis, and more while the lines are too few for a
    /// square.
    fn before_lines(&self, axes: &[Axis]) -> usize {
        let mut first = axes.len() - 1;
        let mut lines = axes[first].len;
        while lines < LINE as u64 && first > 0 && !self.axes.contains(&(first - 1)) {
            first -= 1;
            lines = lines.saturating_mul(axes[first].len);
        }
        if lines <= MOST_LINES { first } else { axes.len() - 1 }
    }
}

impl Transpose {
    /// The plan for axes; `None` where only the last axis has its items close together, where the last axis has its
    /// items close together too, and where the item size has no kernel.
    pub(super) fn choose(axes: &[Axis], run: u64) -> Option<Transpose> {
        let (&across, outer) = axes.split_last()?;
        let has_kernel = matches!(run, 1..=4 | 6 | 8 | 12 | 16 | 24 | 32);
        if !has_kernel || across.stride.unsigned_abs() <= 16 || across.len < 2 {
            return None;
        }
        let stretch = Stretch::choose(outer, run);
        let divided = *stretch.axes.last()?;
        let outer = &outer[..stretch.before_lines(axes)];
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
        let across = Lines::new(&axes[outer.len()..])?;
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
            // the last stretch may overlap the previous one
            let begin = begin.min(ours.len - self.chunk) as i64;
            let first = first as i64 + self.lowest + ours.stride * begin;
            self.stretches(register, input, first, &mut out[(theirs.stride * begin) as usize..]);
        }
    }

    /// Transpose one stretch for each position of the other axes; the lowest item of the first stretch is at `first`.
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

    /// Transpose items of `SIZE` bytes with the widest register that has squares: of 64, 32 or 16 bytes, which hold
    /// `IN_64`, `IN_32` or `IN_16` items. `first` is as for [`stretches`](Transpose::stretches).
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
            // SAFETY: a value exists only where the machine has the instructions, and AVX-512 includes AVX2.
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
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
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
        if self.is_sparse { 0 } else { self.rows.len().min(self.across.len) }
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
        let lines = &self.across;
        let items = self.rows.len();
        let wide = (WIDE / SIZE).min(items);
        let is_tiled = wide * SIZE >= 2 * LINE || !lines.table.is_empty();
        let group = if is_tiled { GROUP } else { (LINE / SIZE).max(SIDE) };
        let group = if lines.len < 4 * group { GROUP.min(lines.len) } else { group };
        // lines that share pages are loaded by the processor itself, and may be in pages that were not touched yet
        let is_near = is_tiled && lines.table.is_empty() && lines.stride.unsigned_abs() < PAGE;
        let loaded = if is_near { 0 } else { group };
        let mut tile = [0; WIDE * GROUP];
        for panel in (0..items).step_by(wide) {
            let panel = panel.min(items - wide);
            let rows = &self.rows[panel..][..wide];
            let first = first + (panel * SIZE) as i64;
            for begin in (0..lines.len).step_by(group) {
                let begin = begin.min(lines.len - group);
                let mut others = starts(ours, first).zip(starts(theirs, 0));
                let mut now = others.next();
                while let Some((at, to)) = now {
                    now = others.next();
                    let out = &mut out[to as usize + begin * SIZE..];
                    let (next, line) =
                        now.map_or((first, begin + group), |(next, _)| (next, begin));
                    let left = line..(line + loaded).min(lines.len);
                    let ahead = Ahead { input, first: next, lines, left, bytes: wide * SIZE };
                    // two calls, so that the compiler unrolls each
                    if is_tiled {
                        lines.copy(input, at, begin..begin + group, wide * SIZE, &mut tile);
                        let group =
                            Group { input: &tile, first: 0, stride: WIDE as i64, len: group };
                        // SAFETY: the caller knows of the instructions.
                        unsafe { group.transpose::<V, SIZE, SIDE>(rows, out, ahead) };
                    } else {
                        let first = at + lines.at(begin);
                        let group = Group { input, first, stride: lines.stride, len: group };
                        // SAFETY: the caller knows of the instructions.
                        unsafe { group.transpose::<V, SIZE, SIDE>(rows, out, ahead) };
                    }
                }
            }
        }
    }

    fn items<const SIZE: usize>(&self, input: &[u8], first: i64, out: &mut [u8]) {
        let (ours, theirs) = &self.others;
        let rows = self.rows.iter().enumerate().filter(|(_, row)| **row != NONE);
        let items: Vec<(usize, usize)> = rows.map(|(item, &row)| (item * SIZE, row)).collect();
        let across = self.across.len;
        let stretch = self.rows.len() * SIZE;
        let block = (LINE / SIZE).max(1);
        let mut others = starts(ours, first).zip(starts(theirs, 0));
        let mut now = others.next();
        while let Some((at, to)) = now {
            now = others.next();
            if let Some((next, _)) = now.filter(|_| across * stretch <= AHEAD) {
                (0..across).for_each(|line| prefetch(input, next + self.across.at(line), stretch));
            }
            let out = &mut out[to as usize..];
            for panel in items.chunk_by(|one, other| one.0 / WIDE == other.0 / WIDE) {
                for line in (0..across).step_by(block) {
                    let count = block.min(across - line);
                    for &(item, row) in panel {
                        let row = row + line * SIZE;
                        let at = at + item as i64;
                        let targets = out[row..row + count * SIZE].as_chunks_mut::<SIZE>().0;
                        for (target, line) in targets.iter_mut().zip(line..) {
                            let from = (at + self.across.at(line)) as usize;
                            target.copy_from_slice(&input[from..from + SIZE]);
                        }
                    }
                }
            }
        }
    }
}

/// Prefetch the cache lines of `len` bytes of the input, which may lie outside of it.
#[inline(always)]
#[allow(unsafe_code)]
fn prefetch(input: &[u8], at: i64, len: usize) {
    for line in (0..len).step_by(LINE) {
        let line = input.as_ptr().wrapping_offset(at as isize + line as isize);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: all processors of this kind have the instruction, which reads nothing, whatever the address.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(line.cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = line;
    }
}

/// A register and its byte instructions. A value exists only where the machine has them.
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

    /// The registers of this machine, from the narrowest to the widest.
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

/// The number of units along an axis that one load of a register of `width` bytes collects; a unit spans `span` bytes
/// in the input and has `bytes` bytes in the output. 0 where a unit is too long.
pub(super) fn units(width: u64, along: Axis, span: u64, bytes: u64) -> u64 {
    let Some(room) = width.checked_sub(span) else { return 0 };
    let loaded = room.checked_div(along.stride.unsigned_abs()).map_or(width, |more| more + 1);
    loaded.min(width / bytes.max(1)).min(along.len)
}
