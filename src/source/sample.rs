//! Some bytes of a file, by which it is told from another of the same name, size and time.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use crate::os::{Advice, NO_WAIT, advise_file};

/// Bytes of a block.
const BLOCK: u64 = 4096;

/// Bytes at the beginning and blocks behind them, of a single file.
const HEAD: u64 = 64 << 10;
const BLOCKS: u64 = 64;

/// The same of each file, at least, however many there are.
const LEAST_HEAD: u64 = 4 << 10;
const LEAST_BLOCKS: u64 = 4;

/// Hand on bytes of a file that is one of `files`: the first 64 KiB, and 64 blocks of 4 KiB, the
/// last of which is the end of the file. Where there are more files, each has its share of that, and at
/// least 4 KiB and 4 blocks: a job reads the header of each anyway. Which bytes these are depends on the
/// number of files and on the size alone. Returns what the system says of the file.
///
/// # Errors
/// The operating system's; [`ErrorKind::InvalidInput`] for what is no regular file.
pub fn sample(path: &Path, files: usize, take: &mut dyn FnMut(&[u8])) -> io::Result<Metadata> {
    let file = OpenOptions::new().read(true).custom_flags(NO_WAIT).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(ErrorKind::InvalidInput.into());
    }
    let ranges = ranges(found.len(), files as u64);
    // all at once, so that a disk need not wait for each
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

/// What is read of a file of that size.
fn ranges(size: u64, files: u64) -> Vec<Range<u64>> {
    let share = |of_one: u64, least: u64| (of_one / files.max(1)).max(least);
    let head = share(HEAD, LEAST_HEAD).min(size);
    let blocks = share(BLOCKS, LEAST_BLOCKS);
    let rest = size - head;
    let mut ranges = Vec::new();
    ranges.push(0..head);
    if rest <= blocks * BLOCK {
        let starts = (head..size).step_by(BLOCK as usize);
        ranges.extend(starts.map(|start| start..(start + BLOCK).min(size)));
        return ranges;
    }
    // the first begins behind the head, the last a block before the end
    let (span, steps) = (u128::from(rest - BLOCK), u128::from(blocks - 1));
    ranges.extend((0..blocks).map(|number| {
        let start = head + (span * u128::from(number) / steps) as u64;
        start..start + BLOCK
    }));
    ranges
}

/// Read as much as there is.
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
