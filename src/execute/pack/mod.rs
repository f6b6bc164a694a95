//! The kernels that copy strided runs into a contiguous buffer.
//!
//! They work on slices in memory. Positions are bytes from the beginning of `input`; the view
//! proved that they are inside, and slicing checks them again. [`pack`] chooses one per piece:
//!
//! - short runs close together are collected by byte shuffles, many at once (`shuffle.rs`);
//! - a few rows are interleaved, item by item, by byte shuffles too (`interleave.rs`);
//! - where an axis other than the last is contiguous, matrices are transposed (`transpose.rs`);
//! - the rest, long runs and short ones far apart, is copied run by run.
//!
//! [`pack_plainly`] is the reference for the tests of the kernels.
//!
//! ```
//! use tslice::execute::pack::pack;
//! use tslice::runs::Axis;
//! let mut out = [0; 3];
//! pack(&[Axis { len: 3, stride: -2 }], 1, b"abcdef", 5, &mut out);
//! assert_eq!(&out, b"fdb");
//! ```

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use interleave::Interleave;
use shuffle::Shuffle;
use transpose::{Register, Transpose};

use crate::runs::{Axis, starts};
use crate::source::is_slow;

mod compress;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod interleave;
mod shuffle;
mod square;
#[cfg(test)]
mod tests;
mod transpose;

pub(crate) use compress::{can_compress, compress};

/// Copy the runs of `run` bytes along `axes` (outermost first) to `out`, which they fill exactly;
/// the first run is at position `first` of `input`.
pub fn pack(axes: &[Axis], run: u64, input: &[u8], first: usize, out: &mut [u8]) {
    pack_with(Register::widest(), axes, run, input, first, out);
}

/// [`pack`] with the kernels of one register; without one, with the kernels of every processor.
fn pack_with(
    register: Option<Register>,
    axes: &[Axis],
    run: u64,
    input: &[u8],
    first: usize,
    out: &mut [u8],
) {
    let shuffle = register.and_then(|register| Shuffle::choose(register, axes, run));
    let transpose = || Transpose::choose(axes, run);
    let shuffle = shuffle.filter(|shuffle| {
        // a few items a block: a square has more
        shuffle.block_bytes() >= 16 || transpose().is_none_or(|transpose| !transpose.has_squares())
    });
    if let Some(shuffle) = shuffle {
        return shuffle.pack(input, first, out);
    }
    let transpose = transpose();
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    if let Some(register) = register
        && !transpose.as_ref().is_some_and(Transpose::has_squares)
        && let Some(interleave) = Interleave::choose(axes, run)
    {
        return interleave.pack(register, input, first, out);
    }
    match transpose {
        Some(transpose) => transpose.pack(register, input, first, out),
        None => pack_runs(axes, run, input, first, out),
    }
}

fn pack_runs(axes: &[Axis], run: u64, input: &[u8], first: usize, out: &mut [u8]) {
    let (inner, outer) = match axes.split_last() {
        Some((inner, outer)) => (*inner, outer),
        None => (Axis { len: 1, stride: 0 }, axes),
    };
    let run = run as usize;
    let stride = inner.stride;
    let row_bytes = inner.len as usize * run;
    match run {
        1 => each_row(outer, row_bytes, first, out, items::<1>(input, stride, row_bytes)),
        2 => each_row(outer, row_bytes, first, out, items::<2>(input, stride, row_bytes)),
        4 => each_row(outer, row_bytes, first, out, items::<4>(input, stride, row_bytes)),
        8 => each_row(outer, row_bytes, first, out, items::<8>(input, stride, row_bytes)),
        16 => each_row(outer, row_bytes, first, out, items::<16>(input, stride, row_bytes)),
        3 => each_row(outer, row_bytes, first, out, pairs::<2>(input, stride, run, row_bytes)),
        5..8 => each_row(outer, row_bytes, first, out, pairs::<4>(input, stride, run, row_bytes)),
        9..16 => each_row(outer, row_bytes, first, out, pairs::<8>(input, stride, run, row_bytes)),
        17..=32 => {
            each_row(outer, row_bytes, first, out, pairs::<16>(input, stride, run, row_bytes))
        }
        33..=64 => {
            each_row(outer, row_bytes, first, out, pairs::<32>(input, stride, run, row_bytes))
        }
        65..=128 => {
            each_row(outer, row_bytes, first, out, pairs::<64>(input, stride, run, row_bytes))
        }
        _ => each_row(outer, row_bytes, first, out, |mut at, rest| {
            for item in rest[..row_bytes].chunks_exact_mut(run) {
                copy_run(item, &input[at as usize..at as usize + run]);
                at += stride;
            }
        }),
    }
}

/// Copy a row of items whose size the compiler knows, so that it emits moves instead of calls.
fn items<const SIZE: usize>(
    input: &[u8],
    stride: i64,
    row_bytes: usize,
) -> impl FnMut(i64, &mut [u8]) {
    move |mut at, rest| {
        for item in rest[..row_bytes].as_chunks_mut::<SIZE>().0 {
            item.copy_from_slice(&input[at as usize..at as usize + SIZE]);
            at += stride;
        }
    }
}

/// Copy a row of runs of `HALF` to 2 * `HALF` bytes, with two moves each, which may overlap.
fn pairs<const HALF: usize>(
    input: &[u8],
    stride: i64,
    run: usize,
    row_bytes: usize,
) -> impl FnMut(i64, &mut [u8]) {
    move |mut at, rest| {
        let mut to = 0;
        while to < row_bytes {
            let from = &input[at as usize..][..run];
            let item = &mut rest[to..][..run];
            if let (Some(from), Some(item)) = (from.first_chunk(), item.first_chunk_mut::<HALF>()) {
                *item = *from;
            }
            if let (Some(from), Some(item)) = (from.last_chunk(), item.last_chunk_mut::<HALF>()) {
                *item = *from;
            }
            at += stride;
            to += run;
        }
    }
}

/// The instruction sets that the kernels use on this machine.
pub fn instructions() -> Vec<&'static str> {
    Register::detected().flat_map(Register::instructions).copied().collect()
}

/// Swap the byte order: reverse each group of `width` bytes.
pub fn swap_bytes(bytes: &mut [u8], width: usize) {
    match width {
        0 | 1 => {}
        2 => bytes.as_chunks_mut::<2>().0.iter_mut().for_each(|item| item.reverse()),
        4 => bytes.as_chunks_mut::<4>().0.iter_mut().for_each(|item| item.reverse()),
        8 => bytes.as_chunks_mut::<8>().0.iter_mut().for_each(|item| item.reverse()),
        _ => bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse),
    }
}

/// The length above which C libraries copy by other instructions (see [`is_slow`]).
const SHORT: usize = 1024;

/// Copy one run. A run of a few cache lines is copied without a call, in blocks of 64 bytes; the
/// last block may overlap the previous one.
fn copy_run(to: &mut [u8], from: &[u8]) {
    const BLOCK: usize = 64;
    let len = to.len();
    if len > SHORT && is_slow(from.as_ptr().addr(), to.as_ptr().addr()) {
        let shorts = to.chunks_mut(SHORT).zip(from.chunks(SHORT));
        return shorts.for_each(|(to, from)| to.copy_from_slice(from));
    }
    if !(BLOCK..=512).contains(&len) || from.len() != len {
        return to.copy_from_slice(from);
    }
    for (to, from) in to.as_chunks_mut::<BLOCK>().0.iter_mut().zip(from.as_chunks::<BLOCK>().0) {
        *to = *from;
    }
    if let (Some(to), Some(from)) = (to.last_chunk_mut::<BLOCK>(), from.last_chunk::<BLOCK>()) {
        *to = *from;
    }
}

/// Copy runs one by one, as [`pack`](pack()) does: the reference for the tests of the kernels.
pub fn pack_plainly(axes: &[Axis], run: u64, input: &[u8], first: usize, out: &mut [u8]) {
    let run = run as usize;
    each_row(axes, run, first, out, |at, rest| {
        rest[..run].copy_from_slice(&input[at as usize..at as usize + run]);
    });
}

/// Call `row` with the input position of each row of `row_bytes` bytes along `axes`, and with the
/// output from the row's beginning.
pub(super) fn each_row(
    axes: &[Axis],
    row_bytes: usize,
    first: usize,
    out: &mut [u8],
    mut row: impl FnMut(i64, &mut [u8]),
) {
    let mut done = 0;
    for at in starts(axes, first as i64) {
        row(at, &mut out[done..]);
        done += row_bytes;
    }
}

#[cfg(test)]
mod inline_tests {
    use super::*;
    use crate::source::PAGE;

    #[test]
    fn runs_are_copied_between_any_places() {
        let input: Vec<u8> = (0..3 * PAGE as usize).map(|at| (at % 251) as u8).collect();
        let mut output = vec![0; input.len()];
        for len in [0, 1, 63, 64, 200, 512, 513, SHORT, SHORT + 1, 5000] {
            for from in [0, 1, 17, 128] {
                for to in (0..80).chain([PAGE as usize - 31, PAGE as usize - 1]) {
                    output.fill(0);
                    copy_run(&mut output[to..to + len], &input[from..from + len]);
                    assert_eq!(output[to..to + len], input[from..from + len], "{len} {from} {to}");
                    assert!(output[..to].iter().chain(&output[to + len..]).all(|&byte| byte == 0));
                }
            }
        }
    }
}
