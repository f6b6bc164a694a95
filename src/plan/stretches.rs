//! What a disk reads at a time: runs with the short gaps between them.

use crate::runs::{Runs, coalesce, span_bytes};

/// Stretches of a panel nearer than this are prefetched with the gap between them, in bytes.
pub(super) const NEAR_BYTES: u64 = 16 << 10;

/// The bytes of runs in ascending ranges, those with gaps of at most `near` bytes in one.
pub(crate) fn stretches(runs: Runs, near: u64) -> Runs {
    let Runs { offset, axes, run } = runs.ascending();
    let (mut axes, mut run) = coalesce(&axes, run);
    while let Some(next) = axes.pop_if(|axis| axis.stride as u64 <= run + near) {
        run = span_bytes(&[next], run);
    }
    Runs { offset, axes, run }
}
