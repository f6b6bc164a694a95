//! The space that a file takes on the disk.

use std::fs::File;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use super::SinkError;
use super::blocks::{block_bytes, whole_blocks};
use crate::os::clone_range;

/// The space of a file that is being written: allocated before the first write, unless blocks were
/// shared by then.
#[derive(Debug, Default)]
pub(super) struct Space {
    /// What came of the allocation, once it was made or done without.
    made: OnceLock<rustix::io::Result<()>>,
    /// The blocks of its file system, in bytes.
    block: OnceLock<u64>,
    /// Whether sharing was tried in vain.
    refused: AtomicBool,
}

impl Space {
    /// Allocate it by `reserve`, unless that was done or blocks are shared.
    pub(super) fn make(
        &self,
        reserve: impl FnOnce() -> rustix::io::Result<()>,
    ) -> Result<(), SinkError> {
        let made = self.made.get_or_init(reserve);
        made.map_err(SinkError::os("cannot be made room for"))
    }

    /// Let the file, of `len` bytes, have the whole blocks in a range of `from` that is to stand at
    /// position `at`. The range of `from` that the file has now; empty where blocks cannot be shared.
    pub(super) fn share(
        &self,
        file: &File,
        len: u64,
        at: u64,
        from: &File,
        range: Range<u64>,
    ) -> Range<u64> {
        let nothing = range.start..range.start;
        if self.refused.load(Ordering::Relaxed) {
            return nothing;
        }
        let block = *self.block.get_or_init(|| block_bytes(file));
        let blocks = whole_blocks(&range, at, block);
        let count = blocks.end - blocks.start;
        let at = at.saturating_add(blocks.start - range.start);
        if count == 0 || at.checked_add(count).is_none_or(|end| end > len) {
            return nothing;
        }
        match clone_range(from, &blocks, file, at) {
            Ok(()) => {
                // what is not shared is a hole until it is written
                self.made.get_or_init(|| Ok(()));
                blocks
            }
            Err(error) => {
                let never = [Errno::OPNOTSUPP, Errno::NOTTY, Errno::NOSYS].contains(&error);
                self.refused.fetch_or(never, Ordering::Relaxed);
                nothing
            }
        }
    }
}
