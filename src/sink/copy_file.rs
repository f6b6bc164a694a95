//! The bytes of one file copied to another, as `cp` does it: shared where the file system can,
//! else moved inside the kernel, holes left as holes.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

use rustix::fs::{
    FallocateFlags, SeekFrom, copy_file_range, fallocate, ftruncate, ioctl_ficlone, seek,
};
use rustix::io::{Errno, retry_on_intr};

use super::SinkError;

/// What is moved at a time where the kernel does not copy by itself, in bytes.
const PIECE: usize = 256 << 10;

/// The most bytes to ask the kernel for in one call, so that a signal is heeded in between.
const STRETCH: u64 = 64 << 20;

/// Make the empty file `to` a copy of the first `len` bytes of `from`.
///
/// # Errors
/// [`SinkError::OriginalTruncated`], since what was cut off looks like a hole; [`SinkError::Copy`].
pub(super) fn copy_file(from: &File, to: &File, len: u64) -> Result<(), SinkError> {
    let outcome = copy_all(from, to, len);
    // whatever a file that was cut short did to the copy, that is the reason
    if from.metadata().map_err(SinkError::Copy)?.len() < len {
        return Err(SinkError::OriginalTruncated);
    }
    outcome.map_err(SinkError::Copy)
}

fn copy_all(from: &File, to: &File, len: u64) -> io::Result<()> {
    if ioctl_ficlone(to, from).is_ok() && to.metadata()?.len() == len {
        return Ok(());
    }
    retry_on_intr(|| ftruncate(to, len))?;
    let mut end = 0;
    while let Some(start) = next_data(from, end, len)? {
        end = match retry_on_intr(|| seek(from, SeekFrom::Hole(start))) {
            Ok(end) => end.min(len),
            Err(_) => len,
        };
        // a full disk is found out before the copying; not every file system can tell
        match retry_on_intr(|| fallocate(to, FallocateFlags::KEEP_SIZE, start, end - start)) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(error) => return Err(error.into()),
        }
        stretch(from, to, start, end)?;
    }
    Ok(())
}

/// Where the next bytes that are no hole begin; `None` where only a hole is left.
fn next_data(file: &File, at: u64, len: u64) -> io::Result<Option<u64>> {
    if at >= len {
        return Ok(None);
    }
    match retry_on_intr(|| seek(file, SeekFrom::Data(at))) {
        Ok(start) => Ok((start < len).then_some(start)),
        Err(Errno::NXIO) => Ok(None),
        // no file system for holes: it is all data
        Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(Some(at)),
        Err(error) => Err(error.into()),
    }
}

fn stretch(from: &File, to: &File, start: u64, end: u64) -> io::Result<()> {
    let mut at = start;
    while at < end {
        let (mut source, mut target) = (at, at);
        let most = (end - at).min(STRETCH) as usize;
        match copy_file_range(from, Some(&mut source), to, Some(&mut target), most) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => at += count as u64,
            Err(Errno::INTR) => {}
            Err(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => return Err(Errno::NOSPC.into()),
            // across file systems, or not at all: by hand, which also finds out what is wrong
            Err(_) => return by_hand(from, to, at, end),
        }
    }
    Ok(())
}

fn by_hand(from: &File, to: &File, mut at: u64, end: u64) -> io::Result<()> {
    let mut buffer = vec![0; PIECE];
    while at < end {
        let piece = &mut buffer[..(end - at).min(PIECE as u64) as usize];
        from.read_exact_at(piece, at)?;
        to.write_all_at(piece, at)?;
        at += piece.len() as u64;
    }
    Ok(())
}
