//! Blocks that two files share: XFS, btrfs and bcachefs store bytes once that several files have,
//! until one of them changes its own.

use std::fs::File;
use std::ops::Range;

use rustix::fs::fstatvfs;

/// The shortest block in bytes that is looked for: that of pages, and of all these file systems
/// as they are commonly made.
pub const BLOCK_BYTES: u64 = 4096;

/// The blocks of a file's file system, in bytes: only whole ones can be shared.
pub(super) fn block_bytes(file: &File) -> u64 {
    let size = fstatvfs(file).map_or(0, |it| it.f_bsize);
    size.max(BLOCK_BYTES)
}

/// The whole blocks in a range of a file, where those at position `at` of another begin at the same
/// place; empty where there are none.
pub(super) fn whole_blocks(range: &Range<u64>, at: u64, block: u64) -> Range<u64> {
    let start = range.start.checked_next_multiple_of(block).unwrap_or(u64::MAX);
    let end = range.end / block * block;
    match range.start % block == at % block && start < end {
        true => start..end,
        false => range.start..range.start,
    }
}

/// How many bytes of a range of a file can be shared with another that has them at position `at`, in
/// blocks of [`BLOCK_BYTES`].
pub fn shared_len(range: &Range<u64>, at: u64) -> u64 {
    let blocks = whole_blocks(range, at, BLOCK_BYTES);
    blocks.end - blocks.start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blocks_at_one_place_are_whole() {
        let blocks = |start, end, at| whole_blocks(&(start..end), at, 4096);
        assert_eq!(blocks(128, 12_288 + 128, 128), 4096..12_288);
        assert_eq!(blocks(0, 4096, 8192), 0..4096);
        assert!(blocks(128, 12_288, 136).is_empty());
        assert!(blocks(1, 8191, 1).is_empty());
        assert!(blocks(u64::MAX - 1, u64::MAX, u64::MAX - 1).is_empty());
    }
}
