//! How much memory there is, and for what: the one place that divides it.
//!
//! Memory is that of the machine or of the control group, the page cache of files included, as a job can
//! use no more without reading something twice. Shares of what is read at the same time add up to less than
//! all of it, since what was written waits there for the disk. Sizes are in bytes.
//!
//! **Who holds what.** A worker holds at most two buffers (256 KiB each, or a box of 2 MiB) or one box of 4 MiB, and
//! for inputs that are read by position one window (1 MiB) and for relayouts one panel, as large as the buffer. Long
//! ranges and their panels take 48 MiB, all workers together, a pipe one window of 4 MiB. A gather holds at most 2^16
//! tuples as offsets; of a mask it holds how many elements are true before each block, 2 MiB at most. Headers are read and
//! written piece by piece (`formats/safetensors/`). A tensor takes its name and
//! some 25 bytes (`format/tensors.rs`), one of the output that is as in the input nothing more
//! (`output/layout.rs`), a member of a `.npz` its name and some 50 bytes. What is kept of neighbours is one
//! range (`Take::push`); ranges with headers between them take 72 bytes each, and go to the executor by thousands
//! (`job/copy.rs`). A map is not memory of the process's own; the kernel drops its pages when it needs them. At the
//! end all threads unmap it (`job/overwrite.rs`): one alone takes about half as long as reading did.

use std::ops::Range;

use crate::plan::{PIECE_BYTES, Tiling};
use crate::runs::Runs;
use crate::source::{Source, memory_bytes};

// From which lengths on another way of reading or writing is the faster one, in bytes. The output is the same
// either way.

/// Longer stretches make no disk faster: bands are no longer than it takes to have such stretches.
const BAND_STRETCH: u64 = 4 << 20;

/// Inputs shorter than this have few pages whatever the memory, and to ask for the memory takes longer than to
/// copy them.
const SMALL: u64 = 64 << 20;

/// A tensor of fewer bytes fits in any memory.
pub(crate) const SHORT_PARAMS: u64 = 16 << 20;

/// Reading a page here and there takes the disk so many times as long as reading it with its neighbours.
pub(crate) const SCATTERED_COST: u64 = 4;

/// Rows of so many bytes, in params that do not fit in memory, are read by themselves.
pub(crate) const LONG_GATHERED_ROW: u64 = 16 << 10;

/// Rows of so many bytes are written to a target by themselves, shorter ones in its order.
pub(crate) const LONG_SCATTERED_ROW: u64 = 64 << 10;

/// Rows of at least this many bytes of a part are read to their places in a join one by one, shorter ones together.
pub(crate) const LONG_JOINED_ROW: u64 = 4 << 10;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    bytes: u64,
}

impl Memory {
    /// That of this process. To ask for it the first time takes longer than to copy little.
    pub(crate) fn of_process() -> Memory {
        Memory { bytes: memory_bytes() }
    }

    /// Whether so many bytes can be read in any order, and stay while as many as that are written.
    pub(crate) fn holds(self, read: u64, written: u64) -> bool {
        read.saturating_add(written) < self.bytes / 4 * 3
    }

    /// Whether so many bytes can be read in any order and stay, where what is written is let go.
    pub(crate) fn keeps(self, read: u64) -> bool {
        read <= self.bytes / 2
    }

    /// The input of all [panels](crate::plan::Panel) that are read and not let go.
    pub(crate) fn panels(self) -> u64 {
        const MOST: u64 = (2 << 30) / 6 * 7;
        (self.bytes / 100 * 66).min(MOST)
    }

    /// The input of one stage of several passes: the next one is read while it is used.
    pub(crate) fn stage(self) -> u64 {
        self.bytes / 8
    }

    /// The input of several passes that is read ahead, where what it becomes takes the other stages.
    pub(crate) fn stages(self) -> u64 {
        2 * self.stage()
    }

    /// A band of a relayout of so many bytes in two passes, and a range of its output. They are no longer than it takes
    /// for a range to have [`BAND_STRETCH`] bytes of each band.
    pub(crate) fn band(self, bytes: u64) -> u64 {
        self.stage().min((bytes as f64 * BAND_STRETCH as f64).sqrt() as u64)
    }

    /// The input of all bands or ranges of such a length that are read and not let go.
    pub(crate) fn bands(self, band: u64) -> u64 {
        self.panels().max(band * 4)
    }

    /// The pages of one box of a relayout without panels.
    pub(crate) fn box_pages(self) -> u64 {
        self.bytes / 8
    }

    /// What kernels read ahead of reads that stay near each other, and that is used up before it is let go.
    pub(crate) fn window(self) -> u64 {
        self.panels() / 2
    }

    /// Rows that are read one by one, ahead of those that are copied.
    pub(crate) fn rows_ahead(self) -> u64 {
        self.bytes / 16
    }
}

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
    let Range { start, end } = runs.file_bounds();
    let mut places = (0..SAMPLES).map(|number| start + (end - 1 - start) / SAMPLES * number);
    let is_there = places.all(|at| source.is_cached(at));
    (!is_there).then_some(room)
}

/// The same of a source of `len` bytes that is not in memory.
pub(crate) fn room_for_panels(len: u64, runs: &Runs) -> Option<u64> {
    // to ask for the memory takes longer than to copy little
    if len < SMALL || runs.bytes() < SMALL / 4 {
        return None;
    }
    let bounds = runs.byte_bounds();
    let span = (bounds.end - bounds.start) as u64;
    let memory = Memory::of_process();
    (!memory.holds(span.min(runs.bytes()), runs.bytes())).then(|| memory.panels())
}
