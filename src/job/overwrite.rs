//! Files that would be read while they are overwritten.
//!
//! An output with a name appears when it is complete, and may replace its own input. Two kinds of
//! outputs overwrite bytes as they are written: a descriptor of a file (`>> a.npy`, `1<> a.npy`,
//! `/dev/fd/3`), and a file that is changed in place. They may not overlap what is read. Files are
//! compared by device and inode, so that other names, hard links and standard input count.

use std::convert::Infallible;
use std::ops::Range;

use super::edit::EditFault;
use crate::error::{Error, FileName, InputIsOutput};
use crate::execute::Workers;
use crate::input::{Bytes, Input};
use crate::region::GatheredList;
use crate::sink;
use crate::sink::{Destination, InPlaceFile, SinkError};
use crate::source::{Advice, FileId, Source, SourceError, mapped_pages};
use crate::tensor::TensorInfo;

/// Refuse an output that is a descriptor of a file that is also read, as an input or a list of positions.
pub(crate) fn check<'a>(
    destination: &Destination,
    inputs: impl IntoIterator<Item = &'a Input>,
    lists: impl IntoIterator<Item = &'a GatheredList>,
) -> Result<(), Error> {
    let Some(output) = overwritten(destination)? else { return Ok(()) };
    inputs.into_iter().try_for_each(|input| check_input(output, input))?;
    for list in lists {
        if let Some(file) = &list.file {
            check_source(output, list.source.as_ref(), || file.clone())?;
        }
    }
    Ok(())
}

pub(crate) fn overwrites(destination: &Destination) -> Result<bool, Error> {
    overwritten(destination).map(|file| file.is_some())
}

/// Refuse an output that overwrites this file, if an input reads it.
pub(crate) fn check_input(output: FileId, input: &Input) -> Result<(), Error> {
    match &input.bytes {
        Bytes::Random(source) => check_source(output, source.as_ref(), || file_of(input, output)),
        _ => Ok(()),
    }
}

/// The file whose bytes an output overwrites while it is written, if there is one.
pub(crate) fn overwritten(destination: &Destination) -> Result<Option<FileId>, Error> {
    let found = sink::overwritten_file(destination);
    found.map_err(|error: SinkError| Error::file(destination, error))
}

fn check_source(
    output: FileId,
    source: &dyn Source,
    name: impl Fn() -> FileName,
) -> Result<(), Error> {
    let ranges = source.file_ranges(0..source.len());
    let ranges = ranges.map_err(|error| Error::file(name(), error))?;
    if ranges.iter().any(|range| range.file == output) {
        return Err(Error::file(name(), InputIsOutput));
    }
    Ok(())
}

/// The name of the file of an input that is `file`: for a sharded checkpoint, one of several.
fn file_of(input: &Input, file: FileId) -> FileName {
    let is_in = |tensor: &TensorInfo| {
        let Bytes::Random(source) = &input.bytes else { return false };
        let ranges = source.file_ranges(tensor.data());
        ranges.is_ok_and(|ranges| ranges.iter().any(|range| range.file == file))
    };
    let tensor = input.contents.tensors.iter().find(is_in);
    tensor.map_or((&input.location).into(), |tensor| input.file_name(&tensor))
}

/// Refuse to change bytes of `file` in place that are also read as elements of `tensor`: a killed run could not be
/// completed by running it again. `written` is the range of the file that is changed.
pub(crate) fn check_in_place(
    file: &InPlaceFile,
    written: &Range<u64>,
    input: &Input,
    tensor: &TensorInfo,
    source: &dyn Source,
) -> Result<(), Error> {
    let failed = |error: SourceError| Error::file(&input.location, error);
    let ranges = source.file_ranges(tensor.data()).map_err(failed)?;
    let id = file.id().map_err(|error| Error::file(input.file_name(tensor), error))?;
    if id.is_some_and(|id| ranges.iter().any(|range| range.overlaps(id, written))) {
        return Err(Error::file(input.file_name(tensor), EditFault::Overlap));
    }
    Ok(())
}

// Unmapping an input at the end of a job.
//
// Unmapping many pages takes about half as long as reading them. At the end of the process one thread would unmap them;
// here all threads do.

/// The number of mapped pages below which they are left to the end of the process.
const MANY_PAGES: u64 = 16 << 10;

/// The bytes that are unmapped in one call; more, where that would take many calls.
const RANGE_BYTES: u64 = 64 << 20;
const MOST_RANGES: u64 = 256;

/// Unmap the pages of a source with these workers, if there are many. Pages come back if they are
/// read again.
pub(crate) fn unmap(source: &dyn Source, workers: &Workers) {
    let len = source.len();
    if len <= RANGE_BYTES || mapped_pages() < MANY_PAGES {
        return;
    }
    let count = len.div_ceil(range_bytes(len)) as usize;
    let unmapped = workers.each(count, |number| {
        source.advise(range(len, number as u64), Advice::DontNeed);
        Ok::<(), Infallible>(())
    });
    unmapped.map_or_else(|never| match never {}, drop);
}

fn range_bytes(len: u64) -> u64 {
    RANGE_BYTES.max(len.div_ceil(MOST_RANGES))
}

fn range(len: u64, number: u64) -> Range<u64> {
    let bytes = range_bytes(len);
    number * bytes..len.min(number.saturating_add(1).saturating_mul(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_all_bytes_and_not_many() {
        for len in [1, RANGE_BYTES, RANGE_BYTES + 1, 3 << 30, (1 << 40) + 5, u64::MAX] {
            let count = len.div_ceil(range_bytes(len));
            assert!((1..=MOST_RANGES).contains(&count), "{count} of {len}");
            let ends = (0..count).map(|number| range(len, number));
            let end = ends.fold(0, |end, range| {
                assert!(range.start == end && range.end > end, "{range:?} of {len}");
                range.end
            });
            assert_eq!(end, len);
        }
    }
}
