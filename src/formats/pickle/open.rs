//! A pickle as one input: arrays are tensors by their paths in the object.
//!
//! Pickles of protocols 2 to 5 begin with their protocol. Those of protocols 0 and 1 are texts that may begin as any
//! other: a file is one if all of it is a pickle, and names a class or a function.

use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use super::ops::{PickleOp, PickleOps};
use super::{Pickle, PickleContents, PickleError, StorageRange, StoredBytes};
use crate::error::{Cause, Error};
use crate::formats::archive::Archive;
use crate::formats::torch;
use crate::input::{
    Container, Contents, Format, Input, Location, OpenOptions, RecognisedFile, Unreadable, seekable,
};
use crate::source::{Advice, Reader, Source};

/// Pickles of Python, of all protocols.
pub(crate) static FORMAT: Format =
    Format { is_in: is_unmarked, ..Format::new("pickle", begins, open) };

/// Whether a file that begins with these bytes is a pickle of protocol 2 to 5 with something in it: a frame, a class,
/// a list, a dict, a tuple, a text.
fn begins(first: &[u8]) -> bool {
    let [0x80, protocol, op, ..] = first else { return false };
    let is_frame = *protocol >= 4 && matches!(op, 0x95 | 0x8c);
    let is_value = matches!(op, b'c' | b']' | b'}' | b'(' | b')' | b'X');
    (2..=5).contains(protocol) && (is_frame || is_value) && !torch::begins_old(first)
}

/// Whether a file is a pickle of protocol 0 or 1 that may hold arrays.
fn is_unmarked(source: &dyn Source) -> bool {
    let mut first = [0];
    let begun = Reader::new(source).read_exact(&mut first);
    if begun.is_err() || !matches!(first[0], b'(' | b']' | b'}' | b')' | b'c') {
        return false;
    }
    let mut ops = PickleOps::new(source, 0..source.len());
    let mut has_names = false;
    loop {
        match ops.next_op() {
            Ok(PickleOp::Stop) => return has_names && ops.position() == source.len(),
            Ok(PickleOp::Global { .. } | PickleOp::Instance { .. }) => has_names = true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}

/// Find the arrays in the object. A pipe is copied to a temporary file.
fn open(file: RecognisedFile<'_>) -> Result<Input, Error> {
    let RecognisedFile { location, bytes, options, progress } = file;
    open_all(location, seekable(bytes, progress)?, options)
}

/// Find the arrays in the object of a file.
pub(crate) fn open_all(
    location: &Location,
    bytes: Arc<dyn Source>,
    options: &OpenOptions,
) -> Result<Input, Error> {
    let all = 0..bytes.len();
    let (input, end) = open_range(location, bytes, all.clone(), false)?;
    if end < all.end {
        let behind = all.end - end;
        options
            .notes
            .add(format_args!("{location}: {behind} bytes behind its pickle are not read"));
    }
    Ok(input)
}

/// Find the arrays in an array of Python objects, whose pickle begins at position `start` of a file of np.save.
pub(crate) fn open_objects(
    location: &Location,
    bytes: Arc<dyn Source>,
    start: u64,
) -> Result<Input, Error> {
    let range = start..bytes.len();
    Ok(open_range(location, bytes, range, true)?.0)
}

fn open_range(
    location: &Location,
    bytes: Arc<dyn Source>,
    range: Range<u64>,
    is_array: bool,
) -> Result<(Input, u64), Error> {
    if bytes.is_remote() {
        bytes.advise(range.clone(), Advice::Sequential);
    }
    let mut archive = Archive::new(Arc::clone(&bytes))?;
    let pickle = Pickle { is_array, ..Pickle::new(bytes.as_ref(), range) };
    let found = pickle.read(&mut |stored| match stored {
        StoredBytes::Storage(_) => Ok(None),
        StoredBytes::Pickle => Ok(Some(StorageRange { shard: 0, bytes: 0..bytes.len() })),
        StoredBytes::Decoded(decoded) => archive.place_decoded(decoded).map(Some),
    });
    // a file cut short in the meantime is the reason for whatever it seems to say
    bytes.verify()?;
    let found = found?.with_tensors()?;
    let end = found.end;
    let into_input = |contents| archive.into_input(location, contents);
    Ok((input_of(&FORMAT, found, Cause::from, into_input), end))
}

/// The input with the tensors of a pickle. Its errors are errors of `format`.
pub(crate) fn input_of<E: Into<Cause>>(
    format: &'static Format,
    found: PickleContents,
    error_of: impl Fn(PickleError) -> E,
    input: impl FnOnce(Contents) -> Input,
) -> Input {
    let PickleContents { tensors, unreadable, opaque, .. } = found;
    let input = input(Contents::of(format, tensors));
    let unreadable = unreadable.into_iter().map(|(name, error)| (name, error_of(error)));
    let unreadable = Unreadable::all(unreadable);
    Input { container: Container { unreadable, opaque, ..input.container }, ..input }
}
