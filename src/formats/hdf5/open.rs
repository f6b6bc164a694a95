//! A file of HDF5 as one input: datasets are tensors, named by their paths.

use crate::error::Error;
use crate::formats::hdf5;
use crate::formats::hdf5::SIGNATURE;
use crate::input::{Container, Contents, Format, Input, RecognisedFile, Unreadable, seekable};
use crate::source::Source;

/// HDF5, with netCDF 4.
pub(crate) static FORMAT: Format = Format {
    is_in: follows_user_block,
    has_links: true,
    ..Format::new("hdf5", |first| first.starts_with(SIGNATURE), open)
};

/// Whether a file begins with a user block, and HDF5 follows it.
fn follows_user_block(source: &dyn Source) -> bool {
    if source.is_remote() {
        // a request for each possible offset is too much
        return false;
    }
    let starts = std::iter::successors(Some(512u64), |start| start.checked_mul(2));
    let mut scratch = Vec::new();
    starts.take_while(|start| start.saturating_add(8) <= source.len()).any(|start| {
        source.window(start..start + 8, &mut scratch).is_ok_and(|bytes| bytes == SIGNATURE)
    })
}

/// Read the list of datasets. A pipe is copied to a scratch file.
fn open(file: RecognisedFile<'_>) -> Result<Input, Error> {
    let RecognisedFile { location, bytes, options, progress } = file;
    let bytes = seekable(bytes, progress)?;
    let found = hdf5::contents(&bytes, location.path(), options.io);
    // a file cut short in the meantime is the reason for any fault of its content
    bytes.verify()?;
    let found = found?;
    let input = Input::of_source(location, bytes, Contents::of(&FORMAT, found.tensors));
    let unreadable = Unreadable::all(found.unreadable);
    Ok(Input { container: Container { unreadable, ..input.container }, ..input })
}
