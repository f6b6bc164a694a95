//! The memory of a job, and the shares into which it is divided. Only this file divides it.
//!
//! "Memory" is the memory of the machine or of the control group, including the page cache: a job can use no more
//! without reading something twice. The shares of inputs that are read at the same time add up to less than all of it,
//! since written bytes wait in memory for the disk. Sizes are in bytes.
//!
//! **Who holds what.** A worker holds at most two buffers (256 KiB each, or a box of 2 MiB) or one box of 4 MiB; for
//! inputs that are read by position also one window (1 MiB), and for relayouts one panel, as large as the buffer. Long
//! ranges and their panels take 48 MiB for all workers together, a pipe one window of 4 MiB. A gather holds at most
//! 2^16 tuples as offsets; of a mask it holds the number of true elements before each block, 2 MiB at most. A reduction
//! holds 20 to 50 MiB of summaries for all workers, and 3 MiB of columns for each. Headers are read and written piece
//! by piece (`formats/safetensors/`). A tensor takes its name, its shape and some 90 bytes (`tensor/tensors.rs`). A
//! tensor of the output that is copied unchanged takes nothing more (`output/layout.rs`). A member of a `.npz` takes
//! its name and some 50 bytes. Neighbouring tensors that are copied form one range (`Take::push`); ranges with headers
//! between them take 72 bytes each, and go to the executor by thousands (`job/copy.rs`). A map is not memory of the
//! process; the kernel drops its pages when it needs them. At the end all threads unmap it (`job/overwrite.rs`): a
//! single thread takes about half as long as reading did.

use std::ops::Range;

use crate::plan::{PIECE_BYTES, Tiling};
use crate::runs::Runs;
use crate::source::{Source, memory_bytes};

// Lengths in bytes from which another way of reading or writing is faster. The output does not depend on them.

/// Longer stretches than this are read no faster on any disk: bands are just so long that they have such stretches.
const BAND_STRETCH: u64 = 4 << 20;

/// Shorter inputs have few pages in any memory, and a look at the memory's size takes longer than the copy.
const SMALL: u64 = 64 << 20;

/// Params of fewer bytes fit in any memory.
pub(crate) const SHORT_PARAMS: u64 = 16 << 20;

/// How many times longer a disk takes for single pages here and there than for neighbouring pages.
pub(crate) const SCATTERED_COST: u64 = 4;

/// The length of rows that are read one by one, from params that do not fit in memory.
pub(crate) const LONG_GATHERED_ROW: u64 = 16 << 10;

/// The length of rows that are written to a target one by one; shorter rows are sorted in the target's order first.
pub(crate) const LONG_SCATTERED_ROW: u64 = 64 << 10;

/// The length of rows of a part that are read one by one into a join; shorter rows are read together.
pub(crate) const LONG_JOINED_ROW: u64 = 4 << 10;

/// The fewest bytes of the summaries of slices, and the most.
const SUMMARIES: [u64; 2] = [20 << 20, 50 << 20];

#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    bytes: u64,
}

impl Memory {
    /// The memory of this process. The first call takes longer than a small copy.
    pub(crate) fn of_process() -> Memory {
        Memory { bytes: memory_bytes() }
    }

    /// Whether `read` bytes can be read in any order, and stay in memory while `written` bytes are written.
    pub(crate) fn holds(self, read: u64, written: u64) -> bool {
        read.saturating_add(written) < self.bytes / 4 * 3
    }

    /// Whether `read` bytes can be read in any order and stay in memory, where written bytes are dropped.
    pub(crate) fn keeps(self, read: u64) -> bool {
        read <= self.bytes / 2
    }

    /// The share for the input of all [panels](crate::plan::Panel) that are read and not dropped.
    pub(crate) fn panels(self) -> u64 {
        const MOST: u64 = (2 << 30) / 6 * 7;
        (self.bytes / 100 * 66).min(MOST)
    }

    /// The share for the input of one stage of several passes: the next stage is read while it is used.
    pub(crate) fn stage(self) -> u64 {
        self.bytes / 8
    }

    /// The share for the input of several passes that is read ahead; the output takes the other stages.
    pub(crate) fn stages(self) -> u64 {
        2 * self.stage()
    }

    /// The length of a band of a relayout of `bytes` bytes in two passes, and of a range of its output: just so long
    /// that a range has [`BAND_STRETCH`] bytes in each band.
    pub(crate) fn band(self, bytes: u64) -> u64 {
        self.stage().min((bytes as f64 * BAND_STRETCH as f64).sqrt() as u64)
    }

    /// The share for the input of all bands, or ranges, of the length `band` that are read and not dropped.
    pub(crate) fn bands(self, band: u64) -> u64 {
        self.panels().max(band * 4)
    }

    /// The share for the pages of one box of a relayout without panels.
    pub(crate) fn box_pages(self) -> u64 {
        self.bytes / 8
    }

    /// The share for kernels' read-ahead of reads that stay near each other: it is used before it is dropped.
    pub(crate) fn window(self) -> u64 {
        self.panels() / 2
    }

    /// The share for rows that are read one by one, ahead of the rows that are copied.
    pub(crate) fn rows_ahead(self) -> u64 {
        self.bytes / 16
    }
}

/// The number of summaries of `bytes` bytes each that are held at a time, where there are `count` slices, and a worker
/// decodes chunks of `chunk` bytes beside them.
pub(crate) fn summaries_at_once(bytes: usize, count: u64, chunk: u64) -> u64 {
    let bytes = bytes as u64;
    let [least, most] = SUMMARIES;
    // a look at the memory's size takes longer than a small reduction
    let room = if count.saturating_mul(bytes) <= least {
        least
    } else {
        let most = most.saturating_sub(chunk.saturating_mul(2));
        (Memory::of_process().bytes / 12).min(most).max(least)
    };
    (room / bytes).max(1)
}

/// The tiling of an output of `bytes` bytes from `source`.
///
/// The pieces of a relayout use a cache line of each page, and neighbouring pieces the other lines. Where memory is
/// short, as in a control group, pieces are smaller, so that a page stays in memory until its last line is used, and is
/// not read again for each.
pub fn tiling(source: &dyn Source, bytes: u64) -> Tiling {
    let tiling = Tiling::of(source.window_limit());
    // a single piece is not tiled, and a look at the memory's size takes longer than to pack it
    if source.window_limit().is_some() || source.len() < SMALL || bytes <= PIECE_BYTES {
        return tiling;
    }
    Tiling { pages_bytes: Memory::of_process().box_pages(), ..tiling }
}

/// The number of samples that tell whether an input is in memory already.
const SAMPLES: u64 = 64;

/// The memory for the input of [panels](crate::plan::Tiling::panel_bytes) of these runs of a source; `None` where
/// panels are useless: input and output fit in memory together, or the input is in memory.
pub fn panel_bytes(source: &dyn Source, runs: &Runs) -> Option<u64> {
    if source.is_remote() {
        return None;
    }
    let room = room_for_panels(source.len(), runs)?;
    let Range { start, end } = runs.file_bounds();
    let mut positions = (0..SAMPLES).map(|number| start + (end - 1 - start) / SAMPLES * number);
    let is_there = positions.all(|at| source.is_cached(at));
    (!is_there).then_some(room)
}

/// [`panel_bytes`] for a source of `len` bytes that is not in memory.
pub(crate) fn room_for_panels(len: u64, runs: &Runs) -> Option<u64> {
    // a look at the memory's size takes longer than a small copy
    if len < SMALL || runs.bytes() < SMALL / 4 {
        return None;
    }
    let bounds = runs.byte_bounds();
    let span = (bounds.end - bounds.start) as u64;
    let memory = Memory::of_process();
    (!memory.holds(span.min(runs.bytes()), runs.bytes())).then(|| memory.panels())
}
