//! Bytes that can be read once, or from far away only: copied to a temporary file, or read to their end.

use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use crate::error::Error;
use crate::execute::{self, ExecuteError, FillError, Progress, Workers};
use crate::format::{Contents, Format, TensorInfo};
use crate::input::watched::Watched;
use crate::input::{Bytes, Input, Location};
use crate::runs::Runs;
use crate::source::{self, ConcatSource, Forward, Source, SourceError, Stream};

impl Input {
    /// Make sure that its bytes can be read in any order: what is left of a pipe is copied to a
    /// temporary file.
    ///
    /// # Errors
    /// A pipe that fails or ends before its tensors do, a temporary file that cannot be written.
    pub fn spool(&mut self) -> Result<Arc<dyn Source>, Error> {
        self.spool_watched(&Progress::default())
    }

    /// The bytes of one of its tensors, at their positions, for who reads them more than once: those
    /// of a remote file are copied to a temporary file too.
    ///
    /// # Errors
    /// As [`spool`](Input::spool).
    pub fn nearby(
        &mut self,
        tensor: &TensorInfo,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<Arc<dyn Source>, Error> {
        let source = self.spool_watched(progress)?;
        let Range { start, end } = tensor.data();
        if source.request_gap().is_none() || start == end {
            return Ok(source);
        }
        let runs = Runs::contiguous(start, end - start);
        let copied =
            execute::spool(source.as_ref(), &runs, 1, workers).map_err(|error| match error {
                ExecuteError::Fill { error: FillError::Source(error), .. } => {
                    failed_source(&self.location, error)
                }
                error => error.into(),
            })?;
        self.at(start, copied)
    }

    /// Bytes of which the first stands at position `start`.
    fn at(&self, start: u64, rest: Box<dyn Source>) -> Result<Arc<dyn Source>, Error> {
        let source = ConcatSource::at(start, rest.into());
        Ok(Arc::new(source.map_err(|error| failed_source(&self.location, error))?))
    }

    /// Keep a tensor as [`spool`](Input::spool) does, where another thread watches how far it is:
    /// [`Progress::keeping`].
    ///
    /// # Errors
    /// As [`spool`](Input::spool).
    pub fn spool_watched(&mut self, progress: &Progress) -> Result<Arc<dyn Source>, Error> {
        let stream = match &mut self.bytes {
            Bytes::Random(source) => return Ok(Arc::clone(source)),
            Bytes::Stream(stream) => stream,
        };
        let start = stream.position();
        progress.kept.begin(self.contents.expected_len().saturating_sub(start));
        let rest = source::spool(Watched::new(stream, progress));
        progress.kept.begin(0);
        let rest = rest.map_err(|error| failed_source(&self.location, error))?;
        check_len(&self.location, start + rest.len(), &self.contents)?;
        let source = self.at(start, rest)?;
        self.bytes = Bytes::Random(Arc::clone(&source));
        Ok(source)
    }
}

/// No more of a pipe is needed. One that [drains](Stream::drains) is read to the end of what its format
/// promises, so that a short one is found out; of another one, whose writer would be waited for, only
/// that nothing follows the last byte of the data is looked at, where that was needed.
pub(crate) fn finish(
    location: &Location,
    stream: &mut Stream,
    contents: &Contents,
) -> Result<(), Error> {
    let rest = contents.expected_len().saturating_sub(stream.position());
    if rest > 0 && !stream.drains() {
        return Ok(());
    }
    stream.skip(rest).map_err(|error| failed_stream(location, stream, contents, error))?;
    let io = |error| Error::file(location, source::SourceError::Io(error));
    if !contents.allows_trailing_bytes() && stream.read(&mut [0]).map_err(io)? > 0 {
        // how many follow is known only to whoever reads them all
        return check_len(location, stream.position(), contents);
    }
    Ok(())
}

fn check_len(location: &Location, len: u64, contents: &Contents) -> Result<(), Error> {
    contents.check_len(len).map_err(|error| Error::file(location, error))
}

/// The error of a stream; of one that ended too early, the same as of a file that is cut short.
pub(crate) fn failed_stream(
    location: &Location,
    stream: &Stream,
    contents: &Contents,
    error: SourceError,
) -> Error {
    let ended = matches!(error, SourceError::UnexpectedEnd(_) | SourceError::Truncated);
    match check_len(location, stream.position(), contents) {
        Err(short) if ended && contents.format != Format::Raw => short,
        _ => failed_source(location, error),
    }
}

/// The error of the bytes of an input.
pub(crate) fn failed_source(location: &Location, error: SourceError) -> Error {
    Error::file(location, error)
}
