//! How large pieces may be for the input that they are taken from, and the memory that there is.

use crate::plan::{PIECE_BYTES, Tiling};
use crate::source::{Source, memory_bytes};

/// The part of the memory that the pages of one box may take. Those of the next panel are read ahead
/// meanwhile, and what was written waits for the disk.
const PART: u64 = 8;

/// Inputs shorter than this, in bytes, have few pages whatever the memory.
const SMALL: u64 = 64 << 20;

/// How an output of so many bytes, taken from that source, is tiled.
///
/// The pieces of a relayout use a cache line of each page, and those beside them the others. Where
/// memory is short, as in a control group, pieces are smaller, so that a page stays until its last line
/// was used and is not read again for each.
pub fn tiling(source: &dyn Source, bytes: u64) -> Tiling {
    let tiling = Tiling::of(source.window_limit());
    // one piece is not tiled, and asking for the memory takes longer than to pack it
    if source.window_limit().is_some() || source.len() < SMALL || bytes <= PIECE_BYTES {
        return tiling;
    }
    Tiling { pages_bytes: memory_bytes() / PART, ..tiling }
}
