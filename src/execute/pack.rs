//! The kernels: copy strided runs into a contiguous buffer.
//!
//! Everything here works on slices in memory and knows no files. Positions are bytes from the
//! beginning of `input`; they were proven to lie inside when the view was made, and are checked
//! again by the slices.
//!
//! ```
//! use tslice::execute::pack::pack;
//! use tslice::view::Axis;
//! let mut out = [0; 3];
//! pack(&[Axis { len: 3, stride: -2 }], 1, b"abcdef", 5, &mut out);
//! assert_eq!(&out, b"fdb");
//! ```

use crate::view::Axis;

/// Copy the runs of `run` bytes that lie along `axes` (outermost first), the first at position
/// `first` of `input`, to `out`, which they fill exactly.
pub fn pack(axes: &[Axis], run: u64, input: &[u8], first: usize, out: &mut [u8]) {
    let Some((inner, outer)) = axes.split_last() else {
        out.copy_from_slice(&input[first..first + run as usize]);
        return;
    };
    let row_bytes = inner.len as usize * run as usize;
    let mut counters = vec![0; outer.len()];
    let mut at = first as i64;
    for row in out.chunks_exact_mut(row_bytes) {
        pack_row(inner.stride, run as usize, input, at, row);
        for (counter, axis) in counters.iter_mut().zip(outer).rev() {
            at += axis.stride;
            *counter += 1;
            if *counter < axis.len {
                break;
            }
            at -= axis.stride * axis.len as i64;
            *counter = 0;
        }
    }
}

/// Copy one row of runs, `stride` bytes apart.
fn pack_row(stride: i64, run: usize, input: &[u8], at: i64, row: &mut [u8]) {
    match run {
        1 => pack_items::<1>(stride, input, at, row),
        2 => pack_items::<2>(stride, input, at, row),
        4 => pack_items::<4>(stride, input, at, row),
        8 => pack_items::<8>(stride, input, at, row),
        16 => pack_items::<16>(stride, input, at, row),
        _ => {
            let mut at = at;
            for item in row.chunks_exact_mut(run) {
                item.copy_from_slice(&input[at as usize..at as usize + run]);
                at += stride;
            }
        }
    }
}

/// A row of items whose size the compiler knows: moves instead of calls.
fn pack_items<const SIZE: usize>(stride: i64, input: &[u8], mut at: i64, row: &mut [u8]) {
    for item in row.as_chunks_mut::<SIZE>().0 {
        item.copy_from_slice(&input[at as usize..at as usize + SIZE]);
        at += stride;
    }
}

/// Reverse each group of `width` bytes: the other byte order.
pub fn swap_bytes(bytes: &mut [u8], width: usize) {
    match width {
        0 | 1 => {}
        2 => bytes.as_chunks_mut::<2>().0.iter_mut().for_each(|item| item.reverse()),
        4 => bytes.as_chunks_mut::<4>().0.iter_mut().for_each(|item| item.reverse()),
        8 => bytes.as_chunks_mut::<8>().0.iter_mut().for_each(|item| item.reverse()),
        _ => bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse),
    }
}
