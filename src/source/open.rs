//! Opening of inputs: the kind of file decides how it is read.
//!
//! A regular file is mapped or read by position; a block device is read by position; a pipe, a
//! terminal or a socket is a stream. Standard input is treated as the file it was redirected from,
//! from its current offset on.

use std::fs::File;
use std::io;
use std::io::{ErrorKind, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use super::remote::RemoteError;
use super::{MmapSource, PreadSource, Source, Stream};
use crate::os;
use crate::os::fs::{FileType, Stat, fstat};
use crate::os::{Advice, FileExt, advise_file, note_read};
use crate::os::{STDIN, StdStream, closed_at_start};

/// How to read a regular file (`--io`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoMode {
    /// Mapped on local file systems, read by position on network file systems.
    #[default]
    Auto,
    /// Mapped.
    Mmap,
    Read,
}

pub enum Opened {
    Random(Box<dyn Source>),
    /// A stream, which is read once.
    Forward(Stream),
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Opened::Random(source) => write!(f, "Random({} bytes)", source.len()),
            Opened::Forward(stream) => f.debug_tuple("Forward").field(stream).finish(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error("is a directory")]
    IsADirectory,
    #[error("only a regular file can be mapped")]
    NotMappable,
    #[error("not a regular file")]
    NotRegularFile,
    #[error("standard input is closed")]
    StdinClosed,
}

/// Open a file, a pipe or a device by its name.
pub fn open(path: &Path, io: IoMode) -> Result<Opened, OpenError> {
    // Opening these names would start at the first byte of a redirected file.
    if STDIN.iter().any(|name| path == Path::new(name)) {
        return open_stdin(io);
    }
    let file = os::open_to_read(path)?;
    note_read(&file, || path.display().to_string());
    classify(file, io)
}

/// Open a path that must be a regular file, such as a file of a checkpoint. Never waits for the other
/// end of a FIFO.
pub fn open_file(path: &Path, io: IoMode) -> Result<Box<dyn Source>, OpenError> {
    let (file, len) = open_regular_file(path)?;
    Ok(open_regular(file, 0, len, io)?)
}

pub(super) fn open_regular_file(path: &Path) -> Result<(File, u64), OpenError> {
    let file = os::open_at_once(path, false)?;
    note_read(&file, || path.display().to_string());
    let metadata = file.metadata()?;
    match metadata.file_type() {
        kind if kind.is_file() => Ok((file, metadata.len())),
        kind if kind.is_dir() => Err(OpenError::IsADirectory),
        _ => Err(OpenError::NotRegularFile),
    }
}

/// Open standard input. For a regular file, byte 0 is the byte at the current offset, as for any program
/// that reads it.
pub fn open_stdin(io: IoMode) -> Result<Opened, OpenError> {
    if closed_at_start(StdStream::Input) {
        return Err(OpenError::StdinClosed);
    }
    note_read(io::stdin(), || "standard input".to_owned());
    classify(os::duplicate(io::stdin())?, io)
}

fn classify(mut file: File, io: IoMode) -> Result<Opened, OpenError> {
    let stat = fstat(&file).map_err(io::Error::from)?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    if kind.is_dir() {
        return Err(OpenError::IsADirectory);
    }
    if kind.is_file() {
        let base = file.stream_position()?;
        let len = u64::try_from(stat.st_size).unwrap_or(0).saturating_sub(base);
        return Ok(Opened::Random(open_regular(file, base, len, io)?));
    }
    if io == IoMode::Mmap {
        return Err(OpenError::NotMappable);
    }
    if kind.is_block_device() {
        let base = file.stream_position()?;
        let len = file.seek(SeekFrom::End(0))?.saturating_sub(base);
        return Ok(Opened::Random(Box::new(PreadSource::new(file, base, len))));
    }
    Ok(Opened::Forward(file.into()))
}

/// Open `len` bytes of a regular file from `base`. Failure to map it is an error only with
/// [`IoMode::Mmap`].
pub(super) fn open_regular(
    file: File,
    base: u64,
    len: u64,
    io: IoMode,
) -> io::Result<Box<dyn Source>> {
    if io == IoMode::Read || io == IoMode::Auto && os::is_network(&file) {
        return Ok(Box::new(PreadSource::new(file, base, len)));
    }
    match MmapSource::new(file, base, len) {
        Ok(mapped) => Ok(Box::new(mapped)),
        Err((_, Some(error))) if io == IoMode::Mmap => Err(error),
        Err((file, _)) => Ok(Box::new(PreadSource::new(file, base, len))),
    }
}

const SAMPLED_BYTES: u64 = 4096;

/// The sampled bytes at the beginning of a single file, and the number of sampled blocks after them.
const HEAD: u64 = 64 << 10;
const BLOCKS: u64 = 64;

/// The least values of `HEAD` and the number of blocks for each file, however many files there are.
const LEAST_HEAD: u64 = 4 << 10;
const LEAST_BLOCKS: u64 = 4;

/// Pass on a sample of a file that is one of `files`: the first 64 KiB, and 64 blocks of 4 KiB, the last
/// of which is the end of the file. Several files share these numbers, with at least 4 KiB and 4 blocks
/// each: a job reads each header anyway. The sample depends only on the number of files and the size.
/// Returns the status of the file.
pub(crate) fn sample(path: &Path, files: usize, take: &mut dyn FnMut(&[u8])) -> io::Result<Stat> {
    let file = os::open_at_once(path, false)?;
    let found = fstat(&file)?;
    if !FileType::from_raw_mode(found.st_mode).is_file() {
        return Err(ErrorKind::InvalidInput.into());
    }
    let ranges = ranges(u64::try_from(found.st_size).unwrap_or(0), files as u64);
    // all at once, so that a disk need not wait for each block
    for range in ranges.iter().skip(1) {
        advise_file(&file, range.clone(), Advice::WillNeed);
    }
    let mut buffer = vec![0; HEAD as usize];
    for range in ranges {
        let bytes = &mut buffer[..(range.end - range.start) as usize];
        let count = read(&file, bytes, range.start)?;
        take(&bytes[..count]);
    }
    Ok(found)
}

fn ranges(size: u64, files: u64) -> Vec<Range<u64>> {
    let share = |of_one: u64, least: u64| (of_one / files.max(1)).max(least);
    let head = share(HEAD, LEAST_HEAD).min(size);
    let blocks = share(BLOCKS, LEAST_BLOCKS);
    let rest = size - head;
    let mut ranges = Vec::new();
    ranges.push(0..head);
    if rest <= blocks * SAMPLED_BYTES {
        let starts = (head..size).step_by(SAMPLED_BYTES as usize);
        ranges.extend(starts.map(|start| start..(start + SAMPLED_BYTES).min(size)));
        return ranges;
    }
    // the first block follows the head, the last one ends the file
    let span = u128::from(rest - SAMPLED_BYTES);
    let steps = u128::from(blocks - 1);
    ranges.extend((0..blocks).map(|number| {
        let start = head + (span * u128::from(number) / steps) as u64;
        start..start + SAMPLED_BYTES
    }));
    ranges
}

fn read(file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], at + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_lie_within_the_file_and_reach_its_end() {
        for size in [0, 1, 4096, 65_536, 65_537, 327_680, 327_681, 10_000_000, u64::MAX / 2] {
            for files in [0, 1, 7, 1000, u64::MAX] {
                let ranges = ranges(size, files);
                assert!(ranges.iter().all(|it| it.start <= it.end && it.end <= size));
                assert!(ranges.is_sorted_by(|a, b| a.end <= b.start), "{size} {files}");
                assert_eq!(ranges.last().unwrap().end, size);
                assert!(ranges.iter().all(|it| it.end - it.start <= HEAD));
                assert!(ranges.len() as u64 <= 1 + BLOCKS);
            }
        }
        // small files are read whole
        assert_eq!(ranges(327_680, 1).iter().map(|it| it.end - it.start).sum::<u64>(), 327_680);
    }
}
