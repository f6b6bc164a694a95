//! How large pieces may be for the input that they are taken from, and its share of the memory.

use super::memory::Memory;
use crate::plan::{PIECE_BYTES, Tiling};
use crate::runs::Runs;
use crate::source::Source;

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
    Tiling { pages_bytes: Memory::of_process().box_pages(), ..tiling }
}

/// In how many places to look whether an input is in memory already.
const SAMPLES: u64 = 64;

/// How much memory the input of [panels](crate::plan::Tiling::panel_bytes) of these runs of a source may take;
/// `None` where panels are of no use: what is read and written fits in memory together, or is there.
pub fn panel_bytes(source: &dyn Source, runs: &Runs) -> Option<u64> {
    if source.request_gap().is_some() {
        return None;
    }
    let room = room_for_panels(source.len(), runs)?;
    let bounds = runs.byte_bounds();
    let (start, end) = (bounds.start as u64, bounds.end as u64);
    let mut places = (0..SAMPLES).map(|number| start + (end - 1 - start) / SAMPLES * number);
    if places.all(|at| source.is_cached(at)) {
        return None;
    }
    Some(room)
}

/// The same of a source of `len` bytes that is not in memory.
pub(super) fn room_for_panels(len: u64, runs: &Runs) -> Option<u64> {
    // to ask for the memory takes longer than to copy little
    if len < SMALL || runs.bytes() < SMALL / 4 {
        return None;
    }
    let bounds = runs.byte_bounds();
    let span = (bounds.end - bounds.start) as u64;
    let memory = Memory::of_process();
    (!memory.holds(span.min(runs.bytes()), runs.bytes())).then(|| memory.panels())
}
