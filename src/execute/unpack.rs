//! The kernels in the other direction: lay a contiguous buffer out as strided runs.
//!
//! The inverse of [`pack`](super::pack::pack), over the same axes. The output is shared with other
//! threads and processes, each of which writes other runs of it: it is given as cells, and no byte
//! between the runs is written or read.
//!
//! ```
//! use std::cell::Cell;
//! use tslice::execute::unpack::unpack;
//! use tslice::runs::Axis;
//! let mut output = *b"......";
//! let cells = Cell::from_mut(&mut output[..]).as_slice_of_cells();
//! unpack(&[Axis { len: 3, stride: -2 }], 1, b"fdb", cells, 5);
//! assert_eq!(&output, b".b.d.f");
//! ```

use std::cell::Cell;

use crate::runs::{Axis, starts};

/// Copy the bytes of `input`, run after run of `run` bytes, to where the runs lie along `axes`
/// (outermost first), the first at position `first` of `output`.
pub fn unpack(axes: &[Axis], run: u64, input: &[u8], output: &[Cell<u8>], first: usize) {
    let Some((inner, outer)) = axes.split_last() else {
        set(&output[first..first + run as usize], input);
        return;
    };
    let row_bytes = inner.len as usize * run as usize;
    for (at, row) in starts(outer, first as i64).zip(input.chunks_exact(row_bytes)) {
        unpack_row(inner.stride, run as usize, row, output, at);
    }
}

/// Call `write` with the position of each run and its bytes.
///
/// # Errors
/// The first of `write`'s.
pub(crate) fn each_run<E>(
    axes: &[Axis],
    run: u64,
    input: &[u8],
    first: i64,
    mut write: impl FnMut(i64, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let runs = input.chunks_exact(run as usize);
    starts(axes, first).zip(runs).try_for_each(|(at, bytes)| write(at, bytes))
}

/// Copy one row of runs, `stride` bytes apart.
fn unpack_row(stride: i64, run: usize, row: &[u8], output: &[Cell<u8>], at: i64) {
    match run {
        1 => unpack_items::<1>(stride, row, output, at),
        2 => unpack_items::<2>(stride, row, output, at),
        4 => unpack_items::<4>(stride, row, output, at),
        8 => unpack_items::<8>(stride, row, output, at),
        16 => unpack_items::<16>(stride, row, output, at),
        _ => {
            let mut at = at;
            for item in row.chunks_exact(run) {
                set(&output[at as usize..at as usize + run], item);
                at += stride;
            }
        }
    }
}

/// A row of items whose size the compiler knows: moves instead of calls.
fn unpack_items<const SIZE: usize>(stride: i64, row: &[u8], output: &[Cell<u8>], mut at: i64) {
    for item in row.as_chunks::<SIZE>().0 {
        set(&output[at as usize..at as usize + SIZE], item);
        at += stride;
    }
}

#[inline(always)]
fn set(to: &[Cell<u8>], from: &[u8]) {
    for (to, &from) in to.iter().zip(from) {
        to.set(from);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::execute::pack::pack;
    use crate::runs::{byte_bounds, coalesce};

    /// Boxes whose runs do not overlap, as those of a basic index.
    fn boxes() -> impl Strategy<Value = (Vec<Axis>, u64)> {
        let run = prop_oneof![Just(1u64), Just(2), Just(4), Just(8), Just(16), 1u64..40];
        let axis = (1u64..6, 1u64..4, any::<bool>());
        (prop::collection::vec(axis, 0..5), run).prop_map(|(inner_first, run)| {
            let mut extent = run as i64;
            let mut axes = vec![];
            for (len, spread, backwards) in inner_first {
                let stride = extent * spread as i64;
                extent = stride * len as i64;
                axes.push(Axis { len, stride: if backwards { -stride } else { stride } });
            }
            axes.reverse();
            coalesce(&axes, run)
        })
    }

    proptest! {
        #[test]
        fn packing_what_was_unpacked_gives_it_back((axes, run) in boxes(), seed in any::<u8>()) {
            let span = byte_bounds(&axes, run);
            let count = axes.iter().fold(run, |bytes, axis| bytes * axis.len);
            let input: Vec<u8> = (0..count).map(|at| (at as u8).wrapping_mul(7) ^ seed | 1).collect();
            let mut output = vec![0; (span.end - span.start) as usize];
            let first = -span.start;
            unpack(&axes, run, &input, Cell::from_mut(&mut output[..]).as_slice_of_cells(), first as usize);
            // every byte that is not part of a run is still 0, as none of the input is
            prop_assert_eq!(output.iter().filter(|&&byte| byte != 0).count() as u64, count);
            let mut packed = vec![0; input.len()];
            pack(&axes, run, &output, first as usize, &mut packed);
            prop_assert_eq!(&packed, &input);
            let mut written = vec![0; output.len()];
            each_run(&axes, run, &input, first, |at, bytes| {
                written[at as usize..][..bytes.len()].copy_from_slice(bytes);
                Ok::<(), ()>(())
            }).unwrap();
            prop_assert_eq!(written, output);
        }
    }
}
