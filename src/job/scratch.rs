//! What is copied to a temporary file, to be an input itself.

use crate::error::Error;
use crate::execute::{Progress, Workers};
use crate::format::{Contents, Format, Tensors};
use crate::input::{Input, Location};
use crate::job::copy::Writing;
use crate::region::Take;
use crate::sink::ScratchSink;
use crate::source::{self, PreadSource};

/// An input of these tensors, which `copy` writes to a temporary file of so many bytes; `location` is
/// named in errors.
pub(crate) fn in_scratch(
    location: &Location,
    tensors: Tensors,
    bytes: u64,
    takes: &[Take],
    workers: &Workers,
    copy: impl FnOnce(&Writing<'_>) -> Result<(), Error>,
) -> Result<Input, Error> {
    let (sink, file) = ScratchSink::new(bytes)?;
    let progress = Progress::default();
    copy(&Writing::into_sink(&sink, takes, workers, &progress)?)?;
    let bytes = source::Opened::Random(Box::new(PreadSource::new(file, 0, bytes)));
    Ok(Input::of_file(location, bytes, Contents::of(Format::Raw, tensors)))
}
