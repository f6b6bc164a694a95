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
//! Registers have 64 bytes with AVX-512 VBMI and 16 with SSSE3, detected at run time. Without
//! either, the moves of the parent module do the work.

use super::plain::pack_plainly;
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
        self.register.run(input, first, step, stored, block, to - from, &self.places);
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

/// A register, with the instructions that shuffle its bytes. A value exists only where the machine
/// has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Register {
    #[cfg(target_arch = "x86_64")]
    Ssse3,
    #[cfg(target_arch = "x86_64")]
    Avx512Vbmi,
}

impl Register {
    /// The widest that this machine has.
    pub(super) fn widest() -> Option<Register> {
        Register::avx512vbmi().or_else(Register::ssse3)
    }

    /// 64 bytes, where the machine has them.
    pub(super) fn avx512vbmi() -> Option<Register> {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512vbmi") && is_x86_feature_detected!("avx512f") {
            return Some(Register::Avx512Vbmi);
        }
        None
    }

    /// 16 bytes, where the machine has them.
    pub(super) fn ssse3() -> Option<Register> {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("ssse3") {
            return Some(Register::Ssse3);
        }
        None
    }

    /// Bytes a register.
    pub(super) fn width(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Register::Ssse3 => 16,
            #[cfg(target_arch = "x86_64")]
            Register::Avx512Vbmi => 64,
        }
    }

    /// Shuffle `count` registers, loaded at `first` and every `step` bytes from there, and store
    /// each whole, `block` bytes apart.
    #[allow(unsafe_code)]
    #[allow(clippy::too_many_arguments)]
    fn run(
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
            // SAFETY: `ssse3` and `avx512vbmi` alone make values, after finding the instructions.
            #[cfg(target_arch = "x86_64")]
            Register::Ssse3 => unsafe { x86::ssse3(input, first, step, out, block, count, places) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Register::Avx512Vbmi => unsafe {
                x86::avx512vbmi(input, first, step, out, block, count, places);
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

    #[target_feature(enable = "avx512f,avx512vbmi")]
    pub(super) fn avx512vbmi(
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
