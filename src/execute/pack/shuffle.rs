//! A kernel for short runs close together: one load, one byte shuffle and one store move many of
//! them.
//!
//! A *unit* repeats along one axis at a constant distance: it is a run, or a few runs along inner
//! axes (the channels of a pixel). The units that lie in one register, a *block*, are collected at
//! once; the pattern of bytes is the same in each block, so it is computed once. This covers
//! every-other columns, reversed rows, channel picks and channel flips.
//!
//! ```text
//! unit of 3 channels, reversed       load  R G B R G B R G B R G B R G B ·
//!                                 shuffle  2 1 0 5 4 3 8 7 6 ...
//!                                   store  B G R B G R B G R B G R B G R ·   next store at the ·
//! ```
//!
//! A row that is not a multiple of a block ends with a block that overlaps the previous one.
//!
//! Registers have 64 bytes with AVX-512 VBMI, 32 with AVX2, and 16 with SSSE3 and NEON. Without any
//! of them, the parent module copies run by run.

use std::ops::Range;

use super::transpose::{Register, units};
use super::{each_row, pack_plainly};
use crate::runs::{Axis, byte_bounds, dense_bytes, span_bytes};

const WIDEST: usize = 64;

/// A plan to collect units along one axis, with the pattern of bytes for it.
pub(super) struct Shuffle<'a> {
    outer: &'a [Axis],
    along: Axis,
    inside: &'a [Axis],
    run: u64,
    /// The output bytes of a unit.
    unit: usize,
    units: usize,
    /// The distance from a block's first unit to its lowest byte in the input: 0 or less.
    lowest: i64,
    /// For each byte of a stored register, its index in the loaded one.
    indices: [u8; WIDEST],
    register: Register,
}

/// The blocks of a row, at least one. All but the last are evenly spaced.
#[derive(Clone, Copy)]
struct Blocks {
    /// The position where the first block is loaded, and the distance of blocks in the input.
    first: i64,
    step: i64,
    /// The distance of blocks in the output, where the first is stored at the beginning.
    block: usize,
    /// The number of blocks before the last.
    count: usize,
    /// The positions where the last block is loaded and stored.
    last: (i64, usize),
}

impl Blocks {
    /// Call `one` for each block, with the `width` bytes to load and the `width` bytes to store.
    #[inline(always)]
    fn each(self, width: usize, input: &[u8], out: &mut [u8], one: impl Fn(&[u8], &mut [u8])) {
        let mut from = self.first;
        for number in 0..self.count {
            one(&input[from as usize..][..width], &mut out[self.block * number..][..width]);
            from += self.step;
        }
        one(&input[self.last.0 as usize..][..width], &mut out[self.last.1..][..width]);
    }
}

/// A pattern of bytes in a register.
///
/// # Safety
/// The methods may only be called where the processor has the register's instructions.
#[allow(unsafe_code)]
trait ShufflePattern: Sized {
    const WIDTH: usize;

    unsafe fn new(indices: &[u8; WIDEST]) -> Self;

    /// For each block load a register, shuffle it, and store it whole.
    unsafe fn shuffle(&self, input: &[u8], blocks: Blocks, out: &mut [u8]);
}

impl<'a> Shuffle<'a> {
    /// The plan with the most bytes per block; `None` where no block has two runs.
    pub(super) fn choose(register: Register, axes: &'a [Axis], run: u64) -> Option<Shuffle<'a>> {
        let width = register.width() as u64;
        let mut best = None;
        let mut unit = run;
        for (axis, along) in axes.iter().enumerate().rev() {
            let spans = span_bytes(&axes[axis + 1..], run);
            if spans.max(unit) > width {
                break;
            }
            let units = units(width, *along, spans, unit);
            // of equal blocks, the blocks along the outer axis: a row has more of them
            if units * unit >= 2 * run && best.is_none_or(|(_, _, bytes)| units * unit >= bytes) {
                best = Some((axis, unit, units * unit));
            }
            unit *= along.len;
        }
        let (axis, unit, bytes) = best?;
        let outer = &axes[..axis];
        let along = axes[axis];
        let inside = &axes[axis + 1..];
        let units = bytes / unit;
        let back = along.stride.min(0) * (units as i64 - 1);
        let lowest = byte_bounds(inside, run).start + back;
        let indices = indices(along.stride, inside, run, units, lowest);
        let unit = unit as usize;
        let units = units as usize;
        Some(Shuffle { outer, along, inside, run, unit, units, lowest, indices, register })
    }

    pub(super) fn block_bytes(&self) -> usize {
        self.unit * self.units
    }

    /// Collect all rows into `out`; the first run is at position `first` of `input`.
    #[allow(unsafe_code)]
    pub(super) fn pack(&self, input: &[u8], first: usize, out: &mut [u8]) {
        match self.register {
            // SAFETY: a value exists only where the machine has its instructions.
            #[cfg(target_arch = "aarch64")]
            Register::Neon => unsafe { self.rows::<arm::Neon>(input, first, out) },
            // SAFETY: a value exists only where the machine has its instructions.
            #[cfg(target_arch = "x86_64")]
            Register::Ssse3 => unsafe { self.rows::<x86::Ssse3>(input, first, out) },
            // SAFETY: a value exists only where the machine has its instructions.
            #[cfg(target_arch = "x86_64")]
            Register::Avx2 => unsafe { self.rows::<x86::Avx2>(input, first, out) },
            // SAFETY: a value exists only where the machine has its instructions.
            #[cfg(target_arch = "x86_64")]
            Register::Avx512 => unsafe { self.rows::<x86::Avx512>(input, first, out) },
        }
    }

    /// Collect the rows. The last store of a row may reach into the next one, which is written
    /// later.
    ///
    /// # Safety
    /// As for [`ShufflePattern`].
    #[allow(unsafe_code)]
    unsafe fn rows<P: ShufflePattern>(&self, input: &[u8], first: usize, out: &mut [u8]) {
        // SAFETY: the caller knows of the instructions.
        let indices = unsafe { P::new(&self.indices) };
        let len = self.along.len as usize;
        let step = self.along.stride * self.units as i64;
        let block = self.block_bytes();
        let last = len - self.units;
        let last_load = self.along.stride * last as i64;
        let last_store = last * self.unit;
        // how far the loads and stores of a row reach, from the lowest byte of its first block
        let loaded = last_load.max(0) as usize + P::WIDTH;
        let stored = last_store + P::WIDTH;
        let count = (len - 1) / self.units;
        each_row(self.outer, len * self.unit, first, out, |at, out| {
            let first = at + self.lowest;
            if first as usize + loaded <= input.len() && stored <= out.len() {
                let last = (first + last_load, last_store);
                // SAFETY: the caller knows of the instructions.
                return unsafe {
                    indices.shuffle(input, Blocks { first, step, block, count, last }, out)
                };
            }
            let fitting = self.fitting(P::WIDTH, input.len(), first, out.len());
            self.plainly(input, at, 0..fitting.start * self.units, out);
            if let Some(count) = fitting.len().checked_sub(1) {
                let first = first + step * fitting.start as i64;
                let out = &mut out[block * fitting.start..];
                let last = (first + step * count as i64, block * count);
                // SAFETY: the caller knows of the instructions.
                unsafe { indices.shuffle(input, Blocks { first, step, block, count, last }, out) };
            }
            self.plainly(input, at, fitting.end * self.units..len, out);
        });
    }

    /// The blocks of a row whose loads of `width` bytes end inside the input, and whose stores end
    /// inside the output. `start` is the position of the first block's lowest byte.
    fn fitting(&self, width: usize, input: usize, start: i64, out: usize) -> Range<usize> {
        let step = self.along.stride * self.units as i64;
        let block = self.block_bytes();
        let blocks = self.along.len as usize / self.units;
        let last = input as i64 - width as i64;
        let too_far = (start - last).max(0) as u64;
        let (from, to) = match step {
            _ if last < 0 => (0, 0),
            1.. => (0, ((last - start).div_euclid(step) + 1).clamp(0, blocks as i64) as usize),
            0 => (0, if start <= last { blocks } else { 0 }),
            _ => (too_far.div_ceil(step.unsigned_abs()) as usize, blocks),
        };
        let to = to.min((out + block).saturating_sub(width) / block);
        from.min(to)..to
    }

    fn plainly(&self, input: &[u8], at: i64, units: Range<usize>, out: &mut [u8]) {
        let out = &mut out[units.start * self.unit..units.end * self.unit];
        for (unit, out) in units.zip(out.chunks_exact_mut(self.unit)) {
            let at = at + self.along.stride * unit as i64;
            pack_plainly(self.inside, self.run, input, at as usize, out);
        }
    }
}

/// For each byte of a block, its index in the loaded register.
fn indices(stride: i64, inside: &[Axis], run: u64, units: u64, lowest: i64) -> [u8; WIDEST] {
    let mut numbered = [0; WIDEST];
    for (index, number) in numbered.iter_mut().zip(0..) {
        *index = number;
    }
    let mut indices = [0; WIDEST];
    let unit = dense_bytes(inside, run) as usize;
    for (index, number) in indices.chunks_exact_mut(unit).zip(0..units as i64) {
        pack_plainly(inside, run, &numbered, (stride * number - lowest) as usize, index);
    }
    indices
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Blocks, ShufflePattern, WIDEST};

    pub(super) struct Ssse3(__m128i);

    impl ShufflePattern for Ssse3 {
        const WIDTH: usize = 16;

        #[inline(always)]
        unsafe fn new(indices: &[u8; WIDEST]) -> Self {
            // SAFETY: `indices` is longer than a register; no alignment is needed.
            Ssse3(unsafe { _mm_loadu_si128(indices.as_ptr().cast()) })
        }

        #[target_feature(enable = "ssse3")]
        unsafe fn shuffle(&self, input: &[u8], blocks: Blocks, out: &mut [u8]) {
            blocks.each(Self::WIDTH, input, out, |from, to| {
                // SAFETY: both slices are as long as a register, and need no alignment.
                unsafe {
                    let loaded = _mm_loadu_si128(from.as_ptr().cast());
                    _mm_storeu_si128(to.as_mut_ptr().cast(), _mm_shuffle_epi8(loaded, self.0));
                }
            });
        }
    }

    /// AVX2 shuffles only within each half of a register, so bytes that stay in their half, and
    /// bytes from the other half, are shuffled separately.
    pub(super) struct Avx2 {
        near: __m256i,
        far: __m256i,
    }

    impl ShufflePattern for Avx2 {
        const WIDTH: usize = 32;

        #[inline(always)]
        unsafe fn new(indices: &[u8; WIDEST]) -> Self {
            // an index with the highest bit gives 0
            let mut near = [0x80; 32];
            let mut far = [0x80; 32];
            for (at, &index) in indices[..32].iter().enumerate() {
                let same_half = usize::from(index) / 16 == at / 16;
                *(if same_half { &mut near[at] } else { &mut far[at] }) = index % 16;
            }
            // SAFETY: both are as long as a register.
            unsafe {
                let near = _mm256_loadu_si256(near.as_ptr().cast());
                Avx2 { near, far: _mm256_loadu_si256(far.as_ptr().cast()) }
            }
        }

        #[target_feature(enable = "avx2")]
        unsafe fn shuffle(&self, input: &[u8], blocks: Blocks, out: &mut [u8]) {
            blocks.each(Self::WIDTH, input, out, |from, to| {
                // SAFETY: both slices are as long as a register, and need no alignment.
                unsafe {
                    let loaded = _mm256_loadu_si256(from.as_ptr().cast());
                    let swapped = _mm256_permute2x128_si256::<1>(loaded, loaded);
                    let shuffled = _mm256_or_si256(
                        _mm256_shuffle_epi8(loaded, self.near),
                        _mm256_shuffle_epi8(swapped, self.far),
                    );
                    _mm256_storeu_si256(to.as_mut_ptr().cast(), shuffled);
                }
            });
        }
    }

    pub(super) struct Avx512(__m512i);

    impl ShufflePattern for Avx512 {
        const WIDTH: usize = 64;

        #[inline(always)]
        unsafe fn new(indices: &[u8; WIDEST]) -> Self {
            // SAFETY: `indices` is as long as a register.
            Avx512(unsafe { _mm512_loadu_si512(indices.as_ptr().cast()) })
        }

        #[target_feature(enable = "avx512f,avx512vbmi")]
        unsafe fn shuffle(&self, input: &[u8], blocks: Blocks, out: &mut [u8]) {
            blocks.each(Self::WIDTH, input, out, |from, to| {
                // SAFETY: both slices are as long as a register, and need no alignment.
                unsafe {
                    let loaded = _mm512_loadu_si512(from.as_ptr().cast());
                    _mm512_storeu_si512(
                        to.as_mut_ptr().cast(),
                        _mm512_permutexvar_epi8(self.0, loaded),
                    );
                }
            });
        }
    }
}

#[cfg(target_arch = "aarch64")]
#[allow(unsafe_code)]
mod arm {
    use std::arch::aarch64::*;

    use super::{Blocks, ShufflePattern, WIDEST};

    pub(super) struct Neon(uint8x16_t);

    impl ShufflePattern for Neon {
        const WIDTH: usize = 16;

        #[inline(always)]
        unsafe fn new(indices: &[u8; WIDEST]) -> Self {
            // SAFETY: `indices` is longer than a register.
            Neon(unsafe { vld1q_u8(indices.as_ptr()) })
        }

        #[target_feature(enable = "neon")]
        unsafe fn shuffle(&self, input: &[u8], blocks: Blocks, out: &mut [u8]) {
            blocks.each(Self::WIDTH, input, out, |from, to| {
                // SAFETY: both slices are as long as a register, and need no alignment.
                unsafe {
                    let loaded = vld1q_u8(from.as_ptr());
                    vst1q_u8(to.as_mut_ptr(), vqtbl1q_u8(loaded, self.0));
                }
            });
        }
    }
}
