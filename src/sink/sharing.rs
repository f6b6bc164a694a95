//! A copy of a file as `cp` makes it: by reflink if the file system can, else by `copy_file_range`; holes stay
//! holes.
//!
//! **Shared blocks.** XFS, btrfs and bcachefs let two files share blocks. A range of an input file that is copied
//! unchanged to one range of the output is shared: before a job's first piece, `execute/mod.rs` asks the source for its
//! file, and the sink to share the file's blocks (`Sink::share`). The bytes before the first whole block and after the
//! last are copied. Ranges below 64 KiB are copied too. So are outputs that need each byte: text, and `.npz`, whose
//! directory has a CRC-32 of each member. An output that may share blocks gets its space at its first write, and its
//! headers are written last.
//!
//! Only bytes with equal offsets in a block can be shared. A `.npy` header is as long as np.save writes it, mostly 128
//! bytes in input and output. A `.safetensors` header is padded with spaces (up to 4088), so that most bytes have the
//! same offset in a block as in the input (`job/align.rs`), if this shares 1 MiB or more. It is padded on every file
//! system, so that one command writes the same bytes anywhere.

use std::fs::File;
use std::io;
use std::io::ErrorKind;
use std::iter;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{SinkError, SinkResult};
use crate::os;
use crate::os::fs::{fstatvfs, ftruncate};
use crate::os::io::{Errno, retry_on_intr};
use crate::os::{FileExt, clone_range};

pub(super) const COPYING: &str = "cannot be copied";

/// The buffer for copies by read and write, in bytes.
const BUFFER: usize = 256 << 10;

/// The most bytes of one `copy_file_range`, so that signals are handled in between.
const MAX_RANGE: u64 = 64 << 20;

/// The most bytes of one write. Linux takes pages of 2 MiB for longer ones; a virtual machine that gives free pages of
/// this size back to its host waits for each of them, and is up to four times slower.
const WRITE_BYTES: usize = 1 << 20;

/// A range of a file, copied to position `at` of another file; earlier bytes there are not copied.
#[derive(Debug)]
pub struct CopiedRange<'a> {
    pub file: &'a File,
    pub range: Range<u64>,
    /// The position of the range's first byte in the copy.
    pub at: u64,
}

impl CopiedRange<'_> {
    pub(super) fn len(&self) -> u64 {
        self.in_copy(self.range.end)
    }

    pub(super) fn is_from_the_start(&self) -> bool {
        self.range.start == 0 && self.at == 0
    }

    /// The position in the copy of a byte of the file.
    fn in_copy(&self, position: u64) -> u64 {
        position - self.range.start + self.at
    }
}

/// Make the empty file `to` a copy of a range of another. `copied` is called with the number of bytes copied
/// since its last call.
pub(super) fn copy_file(from: &CopiedRange<'_>, to: &File, copied: &dyn Fn(u64)) -> SinkResult<()> {
    let outcome = copy_all(from, to, copied);
    // checked first: a truncated file looks like a hole, or causes another error
    if os::file_len(from.file).map_err(SinkError::os(COPYING))? < from.range.end {
        return Err(SinkError::OriginalTruncated);
    }
    outcome.map_err(SinkError::os(COPYING))
}

fn copy_all(from: &CopiedRange<'_>, to: &File, copied: &dyn Fn(u64)) -> io::Result<()> {
    let CopiedRange { file, ref range, at } = *from;
    let is_whole = from.is_from_the_start();
    if is_whole && os::clone_file(file, to).is_ok() && to.metadata()?.len() == from.len() {
        return Ok(());
    }
    retry_on_intr(|| ftruncate(to, from.len()))?;
    let blocks = whole_blocks(range, at, block_bytes(to));
    let can_share = !is_whole && !blocks.is_empty();
    let is_shared =
        can_share && os::clone_range(file, &blocks, to, from.in_copy(blocks.start)).is_ok();
    let shared = if is_shared { blocks } else { range.start..range.start };
    copied(shared.end - shared.start);
    copy_data(from, range.start..shared.start, to, copied)?;
    copy_data(from, shared.end..range.end, to, copied)
}

/// Copy a part of the range, without its holes.
fn copy_data(
    from: &CopiedRange<'_>,
    part: Range<u64>,
    to: &File,
    copied: &dyn Fn(u64),
) -> io::Result<()> {
    let mut end = part.start;
    while let Some(start) = next_data(from.file, end, part.end)? {
        copied(start - end);
        end = match os::next_hole(from.file, start) {
            Ok(end) => end.min(part.end),
            Err(_) => part.end,
        };
        // notice a full disk before copying; not every file system can
        match os::allocate_within(to, from.in_copy(start)..from.in_copy(end)) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(error) => return Err(error.into()),
        }
        copy_range(from, start..end, to, copied)?;
    }
    Ok(())
}

/// The start of the next data at or after `at`; `None` if only a hole follows.
fn next_data(file: &File, at: u64, len: u64) -> io::Result<Option<u64>> {
    if at >= len {
        return Ok(None);
    }
    match os::next_data(file, at) {
        Ok(start) => Ok((start < len).then_some(start)),
        Err(Errno::NXIO) => Ok(None),
        // a file system without holes: all is data
        Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(Some(at)),
        Err(error) => Err(error.into()),
    }
}

fn copy_range(
    from: &CopiedRange<'_>,
    Range { start: mut at, end }: Range<u64>,
    to: &File,
    copied: &dyn Fn(u64),
) -> io::Result<()> {
    while at < end {
        let most = (end - at).min(MAX_RANGE) as usize;
        match os::copy_range(from.file, at, to, from.in_copy(at), most) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                at += count as u64;
                copied(count as u64);
            }
            Err(Errno::INTR) => {}
            Err(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => return Err(Errno::NOSPC.into()),
            // not supported, or a real error: then reading or writing fails too
            Err(_) => {
                return in_pieces(
                    from.file,
                    at..end,
                    |error| error,
                    |at, piece| {
                        to.write_all_at(piece, from.in_copy(at))?;
                        copied(piece.len() as u64);
                        Ok(())
                    },
                );
            }
        }
    }
    Ok(())
}

/// Read a range of a file, and pass on each piece with its position.
pub(super) fn in_pieces<E>(
    file: &File,
    range: Range<u64>,
    unread: impl Fn(io::Error) -> E,
    mut take: impl FnMut(u64, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut buffer = vec![0; BUFFER];
    let mut at = range.start;
    while at < range.end {
        let piece = &mut buffer[..(range.end - at).min(BUFFER as u64) as usize];
        file.read_exact_at(piece, at).map_err(&unread)?;
        take(at, piece)?;
        at += piece.len() as u64;
    }
    Ok(())
}

/// The shortest block considered, in bytes: the block of pages, and of all these file systems with default
/// settings.
pub const BLOCK_BYTES: u64 = 4096;

/// The block size of a file's file system, in bytes: only whole blocks can be shared.
pub(super) fn block_bytes(file: &File) -> u64 {
    let size = fstatvfs(file).map_or(0, |it| it.f_bsize);
    size.max(BLOCK_BYTES)
}

/// The bytes of a range that fill whole blocks both in their file and at position `at` of another file; empty if there
/// are none.
fn whole_blocks(range: &Range<u64>, at: u64, block: u64) -> Range<u64> {
    let start = range.start.checked_next_multiple_of(block).unwrap_or(u64::MAX);
    let end = range.end / block * block;
    let is_aligned = range.start % block == at % block;
    if is_aligned && start < end { start..end } else { range.start..range.start }
}

fn is_zero(bytes: &[u8]) -> bool {
    // so many bytes at a time are examined by vector instructions
    bytes.chunks(256).all(|some| some.iter().fold(0, |all, byte| all | byte) == 0)
}

/// The space of a file being written: allocated before the first write, unless blocks were shared by then.
#[derive(Debug, Default)]
pub(super) struct Space {
    /// The result of the allocation, once it was made or skipped.
    made: OnceLock<os::io::Result<()>>,
    block: OnceLock<u64>,
    refused: AtomicBool,
    keeps_holes: AtomicBool,
}

impl Space {
    /// Allocate the space by `reserve`, unless this was done or blocks are shared.
    pub(super) fn make(&self, reserve: impl FnOnce() -> os::io::Result<()>) -> SinkResult<()> {
        let made = self.made.get_or_init(reserve);
        made.map_err(SinkError::os("cannot be made room for"))
    }

    /// Allocate nothing, and write no blocks of zeros, unless the space is allocated already.
    pub(super) fn keep_holes(&self) {
        self.keeps_holes.store(self.made.get_or_init(|| Ok(())).is_ok(), Ordering::Relaxed);
    }

    pub(super) fn keeps_holes(&self) -> bool {
        self.keeps_holes.load(Ordering::Relaxed)
    }

    /// Write bytes at a position, without the blocks of zeros of a file with holes.
    pub(super) fn write(&self, file: &File, at: u64, bytes: &[u8]) -> io::Result<()> {
        if !self.keeps_holes() {
            let mut writes = bytes.chunks(WRITE_BYTES).zip((at..).step_by(WRITE_BYTES));
            return writes.try_for_each(|(bytes, at)| file.write_all_at(bytes, at));
        }
        let first = (at.next_multiple_of(BLOCK_BYTES) - at).min(bytes.len() as u64) as usize;
        let (first, blocks) = bytes.split_at(first);
        let mut stored = 0..0;
        for block in iter::once(first).chain(blocks.chunks(BLOCK_BYTES as usize)) {
            let end = stored.end + block.len();
            if is_zero(block) {
                file.write_all_at(&bytes[stored.clone()], at + stored.start as u64)?;
                stored = end..end;
            } else {
                stored.end = end;
            }
        }
        file.write_all_at(&bytes[stored.clone()], at + stored.start as u64)
    }

    /// Let the file, of `len` bytes, share the whole blocks in a range of `from`, at position `at`. Returns the
    /// shared range of `from`; empty where blocks cannot be shared.
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
                // bytes that are not shared are a hole until they are written
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_zeros_are_holes() {
        let mut file = tempfile::tempfile().unwrap();
        let space = Space::default();
        space.keep_holes();
        let mut expected = vec![0; 3 << 20];
        for (at, len) in [(100, 5), (70_000, 9000), (1 << 20, 1), ((2 << 20) - 3, 6)] {
            expected[at..at + len].fill(7);
        }
        file.set_len(expected.len() as u64).unwrap();
        for (number, piece) in expected.chunks(100_003).enumerate() {
            space.write(&file, number as u64 * 100_003, piece).unwrap();
        }
        let mut found = Vec::new();
        io::Read::read_to_end(&mut file, &mut found).unwrap();
        assert!(found == expected);
        assert!(std::os::unix::fs::MetadataExt::blocks(&file.metadata().unwrap()) < 2000);
    }

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
