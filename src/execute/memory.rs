//! How much memory there is, and for what: the one place that divides it.
//!
//! Memory is that of the machine or of the control group, the page cache of files included, as a job can
//! use no more without reading something twice. Shares of what is read at the same time add up to less than
//! all of it, since what was written waits there for the disk. Sizes are in bytes.

use crate::source::memory_bytes;

/// Longer stretches, in bytes, make no disk faster.
const BAND_STRETCH: u64 = 4 << 20;

/// What a job may hold in memory.
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
