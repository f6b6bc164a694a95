//! Copying a file as `cp` does: by reflink if the file system can, else by `copy_file_range`; holes
//! stay holes.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use rustix::fs::{SeekFrom, ftruncate, seek};
use rustix::io::{Errno, retry_on_intr};

use super::SinkError;
use crate::os;

/// What could not be done.
pub(super) const COPYING: &str = "cannot be copied";

/// Buffer size in bytes for copying by read and write.
const BUFFER: usize = 256 << 10;

/// The most bytes of one `copy_file_range`, so that signals are handled in between.
const MAX_RANGE: u64 = 64 << 20;

/// Make the empty file `to` a copy of the first `len` bytes of `from`. `copied` is told how many more
/// bytes are done.
///
/// # Errors
/// [`SinkError::OriginalTruncated`] if `from` is shorter than `len`, [`SinkError::Os`].
pub(super) fn copy_file(
    from: &File,
    len: u64,
    to: &File,
    copied: &dyn Fn(u64),
) -> Result<(), SinkError> {
    let outcome = copy_all(from, to, len, copied);
    // reported first: the part that was cut off looked like a hole, or like another error
    if from.metadata().map_err(SinkError::os(COPYING))?.len() < len {
        return Err(SinkError::OriginalTruncated);
    }
    outcome.map_err(SinkError::os(COPYING))
}

fn copy_all(from: &File, to: &File, len: u64, copied: &dyn Fn(u64)) -> io::Result<()> {
    if os::clone_file(from, to).is_ok() && to.metadata()?.len() == len {
        return Ok(());
    }
    retry_on_intr(|| ftruncate(to, len))?;
    let mut end = 0;
    while let Some(start) = next_data(from, end, len)? {
        copied(start - end);
        end = match retry_on_intr(|| seek(from, SeekFrom::Hole(start))) {
            Ok(end) => end.min(len),
            Err(_) => len,
        };
        // notice a full disk before copying; not every file system can
        match os::allocate_within(to, start..end) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(error) => return Err(error.into()),
        }
        copy_range(from, to, start..end, copied)?;
    }
    Ok(())
}

/// The start of the next data at or after `at`; `None` if only a hole is left.
fn next_data(file: &File, at: u64, len: u64) -> io::Result<Option<u64>> {
    if at >= len {
        return Ok(None);
    }
    match retry_on_intr(|| seek(file, SeekFrom::Data(at))) {
        Ok(start) => Ok((start < len).then_some(start)),
        Err(Errno::NXIO) => Ok(None),
        // the file system knows no holes: it is all data
        Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(Some(at)),
        Err(error) => Err(error.into()),
    }
}

fn copy_range(
    from: &File,
    to: &File,
    Range { start: mut at, end }: Range<u64>,
    copied: &dyn Fn(u64),
) -> io::Result<()> {
    while at < end {
        match os::copy_range(from, to, at, (end - at).min(MAX_RANGE) as usize) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                at += count as u64;
                copied(count as u64);
            }
            Err(Errno::INTR) => {}
            Err(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => return Err(Errno::NOSPC.into()),
            // not supported here, or a real error, which reading and writing will meet again
            Err(_) => {
                return in_pieces(
                    from,
                    at..end,
                    |error| error,
                    |at, piece| {
                        to.write_all_at(piece, at)?;
                        copied(piece.len() as u64);
                        Ok(())
                    },
                );
            }
        }
    }
    Ok(())
}

/// Read a range of a file, and hand on each piece of it with its position.
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
