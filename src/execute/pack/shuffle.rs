//! Short runs close together: one load, one byte shuffle, one store for many of them.
//!
//! A *unit* is what repeats along one axis at a constant distance: a run, or a few runs along the
//! axes inside of it (the channels of a pixel). As many units as lie in one register are
//! collected at once; the pattern of bytes is the same in each block, so it is computed once.
//! Every-other columns, reversed rows, channel picks and channel flips are all this.
//!
//! ```text
//! unit of 3 channels, reversed       load  R G B R G B R G B R G B R G B ·
//!                                 shuffle  2 1 0 5 4 3 8 7 6 ...
//!                                   store  B G R B G R B G R B G R B G R ·   next store at the ·
//! ```
//!
//! Registers have 64 bytes with AVX-512 VBMI, 32 with AVX2, and 16 with SSSE3 and NEON. Without any of
//! them, the moves of the parent module do the work.

use super::plain::pack_plainly;
use super::register::Register;
use crate::runs::{Axis, byte_bounds, dense_bytes, span_bytes};

/// The widest register, in bytes.
const WIDEST: usize = 64;

/// A pattern to collect along one axis.
pub(super) struct Shuffle<'a> {
    /// The number of the axis along which units repeat; those after it are inside a unit.
    axis: usize,
    /// Units along the axis, and the distance between them.
    along: Axis,
    inside: &'a [Axis],
    run: u64,
    /// Bytes of output a unit.
    unit: usize,
    /// Units that one register collects.
    units: usize,
    /// From a block's first unit to the lowest byte that the block needs.
    lowest: i64,
    /// For each byte of a stored register, the place in the loaded one.
    places: [u8; WIDEST],
    register: Register,
}

impl<'a> Shuffle<'a> {
    /// The best pattern for these axes; `None` where none collects two runs at once.
    pub(super) fn choose(register: Register, axes: &'a [Axis], run: u64) -> Option<Shuffle<'a>> {
        let width = register.width() as u64;
        let (mut best, mut unit) = (None, run);
        for (axis, along) in axes.iter().enumerate().rev() {
            let spans = span_bytes(&axes[axis + 1..], run);
            if spans > width || unit > width {
                break;
            }
            let distance = along.stride.unsigned_abs();
            let loaded = (width - spans).checked_div(distance).map_or(width, |more| more + 1);
            let units = loaded.min(width / unit).min(along.len);
            if units * unit >= 2 * run && best.is_none_or(|(_, _, bytes)| units * unit > bytes) {
                best = Some((axis, unit, units * unit));
            }
            unit *= along.len;
        }
        let (axis, unit, bytes) = best?;
        let (along, inside) = (axes[axis], &axes[axis + 1..]);
        let units = bytes / unit;
        let back = along.stride.min(0) * (units as i64 - 1);
        let lowest = byte_bounds(inside, run).start + back;
        let places = places(along.stride, inside, run, units, lowest);
        let (unit, units) = (unit as usize, units as usize);
        Some(Shuffle { axis, along, inside, run, unit, units, lowest, places, register })
    }

    /// The axis along which [`row`](Self::row) goes; those before it are the caller's.
    pub(super) fn axis(&self) -> usize {
        self.axis
    }

    /// Bytes of output a row.
    pub(super) fn row_bytes(&self) -> usize {
        self.along.len as usize * self.unit
    }

    /// Collect the row whose first unit is at position `at` to the beginning of `out`; bytes of
    /// `out` behind the row may be overwritten with anything.
    pub(super) fn row(&self, input: &[u8], at: i64, out: &mut [u8]) {
        let width = self.register.width();
        let step = self.along.stride * self.units as i64;
        let block = self.unit * self.units;
        let blocks = self.along.len as usize / self.units;
        // The blocks whose loads end inside the input, and whose stores end inside the output.
        let start = at + self.lowest;
        let last = input.len() as i64 - width as i64;
        let fit = (out.len() + block).saturating_sub(width) / block;
        let (from, to) = if last < 0 {
            (0, 0)
        } else if step > 0 {
            (0, ((last - start).div_euclid(step) + 1).clamp(0, blocks as i64) as usize)
        } else if step < 0 {
            (
                (start - last).max(0).div_euclid(-step) as usize
                    + usize::from((start - last).max(0) % -step != 0),
                blocks,
            )
        } else {
            (0, if start <= last { blocks } else { 0 })
        };
        let to = to.min(fit);
        let from = from.min(to);
        self.plainly(input, at, 0..from * self.units, out);
        let first = start + step * from as i64;
        let stored = &mut out[from * block..];
        self.register.shuffle(input, first, step, stored, block, to - from, &self.places);
        self.plainly(input, at, to * self.units..self.along.len as usize, out);
    }

    /// The units of a range, one by one.
    fn plainly(&self, input: &[u8], at: i64, units: std::ops::Range<usize>, out: &mut [u8]) {
        let out = &mut out[units.start * self.unit..units.end * self.unit];
        for (unit, out) in units.zip(out.chunks_exact_mut(self.unit)) {
            let at = at + self.along.stride * unit as i64;
            pack_plainly(self.inside, self.run, input, at as usize, out);
        }
    }
}

/// Where in a loaded register each byte of the collected units lies.
fn places(stride: i64, inside: &[Axis], run: u64, units: u64, lowest: i64) -> [u8; WIDEST] {
    let mut numbered = [0; WIDEST];
    for (place, number) in numbered.iter_mut().zip(0..) {
        *place = number;
    }
    let mut places = [0; WIDEST];
    let unit = dense_bytes(inside, run) as usize;
    for (place, number) in places.chunks_exact_mut(unit).zip(0..units as i64) {
        pack_plainly(inside, run, &numbered, (stride * number - lowest) as usize, place);
    }
    places
}

/// The loop of each register.
impl Register {
    /// Shuffle `count` registers, loaded at `first` and every `step` bytes from there, and store
    /// each whole, `block` bytes apart.
    #[allow(unsafe_code)]
    #[allow(clippy::too_many_arguments)]
    fn shuffle(
        self,
        input: &[u8],
        first: i64,
        step: i64,
        out: &mut [u8],
        block: usize,
        count: usize,
        places: &[u8; WIDEST],
    ) {
        match self {
            // SAFETY: a value exists only where the machine has the instructions.
            #[cfg(target_arch = "aarch64")]
            Register::Neon => unsafe { arm::neon(input, first, step, out, block, count, places) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Register::Ssse3 => unsafe { x86::ssse3(input, first, step, out, block, count, places) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Register::Avx2 => unsafe { x86::avx2(input, first, step, out, block, count, places) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Register::Avx512 => unsafe {
                x86::avx512(input, first, step, out, block, count, places);
            },
        }
    }
}

/// The loops; every load and store is from a slice of a whole register's length.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86 {
    use std::arch::x86_64::*;

    use super::WIDEST;

    #[target_feature(enable = "ssse3")]
    pub(super) fn ssse3(
        input: &[u8],
        first: i64,
        step: i64,
        out: &mut [u8],
        block: usize,
        count: usize,
        places: &[u8; WIDEST],
    ) {
        // SAFETY: `places` is longer than a register.
        let places = unsafe { _mm_loadu_si128(places.as_ptr().cast()) };
        for number in 0..count {
            let from = &input[(first + step * number as i64) as usize..][..16];
            let to = &mut out[block * number..][..16];
            // SAFETY: both slices are as long as a register, and need no alignment.
            unsafe {
                let loaded = _mm_loadu_si128(from.as_ptr().cast());
                _mm_storeu_si128(to.as_mut_ptr().cast(), _mm_shuffle_epi8(loaded, places));
            }
        }
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn avx2(
        input: &[u8],
        first: i64,
        step: i64,
        out: &mut [u8],
        block: usize,
        count: usize,
        places: &[u8; WIDEST],
    ) {
        // Bytes do not leave their half of a register: those that stay in theirs, and those that come
        // from the other one, are shuffled by themselves. A place with the highest bit gives 0.
        let (mut near, mut far) = ([0x80; 32], [0x80; 32]);
        for (at, &place) in places[..32].iter().enumerate() {
            let same_half = usize::from(place) / 16 == at / 16;
            *(if same_half { &mut near[at] } else { &mut far[at] }) = place % 16;
        }
        // SAFETY: both are as long as a register.
        let (near, far) = unsafe {
            (_mm256_loadu_si256(near.as_ptr().cast()), _mm256_loadu_si256(far.as_ptr().cast()))
        };
        for number in 0..count {
            let from = &input[(first + step * number as i64) as usize..][..32];
            let to = &mut out[block * number..][..32];
            // SAFETY: both slices are as long as a register, and need no alignment.
            unsafe {
                let loaded = _mm256_loadu_si256(from.as_ptr().cast());
                let swapped = _mm256_permute2x128_si256::<1>(loaded, loaded);
                let shuffled = _mm256_or_si256(
                    _mm256_shuffle_epi8(loaded, near),
                    _mm256_shuffle_epi8(swapped, far),
                );
                _mm256_storeu_si256(to.as_mut_ptr().cast(), shuffled);
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512vbmi")]
    pub(super) fn avx512(
        input: &[u8],
        first: i64,
        step: i64,
        out: &mut [u8],
        block: usize,
        count: usize,
        places: &[u8; WIDEST],
    ) {
        // SAFETY: `places` is as long as a register.
        let places = unsafe { _mm512_loadu_si512(places.as_ptr().cast()) };
        for number in 0..count {
            let from = &input[(first + step * number as i64) as usize..][..64];
            let to = &mut out[block * number..][..64];
            // SAFETY: both slices are as long as a register, and need no alignment.
            unsafe {
                let loaded = _mm512_loadu_si512(from.as_ptr().cast());
                _mm512_storeu_si512(
                    to.as_mut_ptr().cast(),
                    _mm512_permutexvar_epi8(places, loaded),
                );
            }
        }
    }
}

/// The same for aarch64.
#[cfg(target_arch = "aarch64")]
#[allow(unsafe_code)]
mod arm {
    use std::arch::aarch64::*;

    use super::WIDEST;

    #[target_feature(enable = "neon")]
    pub(super) fn neon(
        input: &[u8],
        first: i64,
        step: i64,
        out: &mut [u8],
        block: usize,
        count: usize,
        places: &[u8; WIDEST],
    ) {
        // SAFETY: `places` is longer than a register.
        let places = unsafe { vld1q_u8(places.as_ptr()) };
        for number in 0..count {
            let from = &input[(first + step * number as i64) as usize..][..16];
            let to = &mut out[block * number..][..16];
            // SAFETY: both slices are as long as a register, and need no alignment.
            unsafe { vst1q_u8(to.as_mut_ptr(), vqtbl1q_u8(vld1q_u8(from.as_ptr()), places)) };
        }
    }
}
