//! The kernel that the others are tested against, and the walk over rows that all share.

use crate::runs::{Axis, starts};

/// Pack as [`pack`](super::pack()) does, run by run: the reference for the tests of the kernels.
pub fn pack_plainly(axes: &[Axis], run: u64, input: &[u8], first: usize, out: &mut [u8]) {
    let run = run as usize;
    each_row(axes, run, first, out, |at, rest| {
        rest[..run].copy_from_slice(&input[at as usize..at as usize + run]);
    });
}

/// Walk along `axes`: call `row` with the input position of each row of `row_bytes` bytes, and
/// with the output from the beginning of the row to the end of all rows.
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
