//! The bytes of an input: opening them, storing a pipe that is read in any order in scratch, and
//! closing.

use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::sync::Arc;

use super::opened::Input;
use super::options::Location;
use crate::error::Error;
use crate::execute::{self, Progress, UNKNOWN, Workers};
use crate::input::Contents;
use crate::runs::Runs;
use crate::source::{
    self, ConcatSource, Forward, IoMode, OpenError, Opened, Source, SourceError, Stream,
};
use crate::tensor::TensorInfo;

pub(crate) enum Bytes {
    /// Bytes that can be read in any order.
    Random(Arc<dyn Source>),
    /// Bytes that can be read once, from front to back.
    Stream(Stream),
}

impl From<Opened> for Bytes {
    fn from(opened: Opened) -> Bytes {
        match opened {
            Opened::Random(source) => Bytes::Random(Arc::from(source)),
            Opened::Forward(stream) => Bytes::Stream(stream),
        }
    }
}

pub(crate) fn open_bytes(location: &Location, io: IoMode) -> Result<Opened, OpenError> {
    match location {
        Location::Stdin => source::open_stdin(io),
        // a name in memory is a tensor already
        Location::Memory => Err(io::Error::from(ErrorKind::NotFound).into()),
        Location::Path(path) => source::open(path, io),
        Location::Remote(address) => source::remote::open(address, io),
    }
}

/// The bytes of an input that is read in any order: a pipe is stored in scratch.
pub(crate) fn seekable(bytes: Opened, progress: &Progress) -> Result<Arc<dyn Source>, SourceError> {
    match bytes {
        Opened::Random(source) => Ok(source.into()),
        Opened::Forward(stream) => Ok(spool_all(stream, progress)?.into()),
    }
}

/// Store all that is left of a pipe of unknown length in scratch.
pub(crate) fn spool_all(
    stream: impl Read,
    progress: &Progress,
) -> Result<Box<dyn Source>, SourceError> {
    progress.scratch.during(UNKNOWN, || source::spool(Watched::new(stream, progress)))
}

/// A stream that counts the bytes read, for a watching thread.
pub(crate) struct Watched<'a, R> {
    stream: R,
    progress: &'a Progress,
}

impl<'a, R: Read> Watched<'a, R> {
    pub(crate) fn new(stream: R, progress: &'a Progress) -> Watched<'a, R> {
        Watched { stream, progress }
    }
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(buf)?;
        self.progress.scratch.add(count as u64);
        Ok(count)
    }
}

impl Input {
    /// Make its bytes readable in any order: what is left of a pipe is copied to scratch.
    pub fn spool(&mut self) -> Result<Arc<dyn Source>, Error> {
        self.spool_watched(&Progress::default())
    }

    /// The bytes of one of its tensors, at their positions, for reading them more than once: those
    /// of a remote file are copied to scratch, too.
    pub fn nearby(
        &mut self,
        tensor: &TensorInfo,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<Arc<dyn Source>, Error> {
        let source = self.spool_watched(progress)?;
        let Range { start, end } = tensor.data();
        if !source.is_remote() || start == end {
            return Ok(source);
        }
        let runs = Runs::contiguous(start, end - start);
        let copied = execute::spool(source.as_ref(), &runs, 1, workers);
        let copied = copied.map_err(|error| match error.into_source() {
            Ok(error) => Error::file(&self.location, error),
            Err(error) => error.into(),
        })?;
        self.at(start, copied)
    }

    /// The bytes, if they can be read in any order.
    pub(crate) fn random(&self) -> Option<Arc<dyn Source>> {
        match &self.bytes {
            Bytes::Random(source) => Some(Arc::clone(source)),
            Bytes::Stream(_) => None,
        }
    }

    /// Bytes that begin at position `start`.
    fn at(&self, start: u64, rest: Box<dyn Source>) -> Result<Arc<dyn Source>, Error> {
        let source = ConcatSource::at(start, rest.into());
        Ok(Arc::new(source.map_err(|error| Error::file(&self.location, error))?))
    }

    /// Store a tensor as [`spool`](Input::spool) does, while another thread watches the progress:
    /// [`Progress::keeping`].
    pub fn spool_watched(&mut self, progress: &Progress) -> Result<Arc<dyn Source>, Error> {
        let stream = match &mut self.bytes {
            Bytes::Random(source) => return Ok(Arc::clone(source)),
            Bytes::Stream(stream) => stream,
        };
        let start = stream.position();
        let left = self.contents.expected_len().saturating_sub(start);
        let rest = progress.scratch.during(left, || source::spool(Watched::new(stream, progress)));
        let rest = rest.map_err(|error| Error::file(&self.location, error))?;
        check_len(&self.location, start + rest.len(), &self.contents)?;
        let source = self.at(start, rest)?;
        self.bytes = Bytes::Random(Arc::clone(&source));
        Ok(source)
    }
}

/// End the reading of a pipe. A pipe that [drains](Stream::drains) is read to the end that its
/// header states, so that a short one is detected. For another one, whose writer would be waited
/// for, it is only checked that nothing follows the last byte of the data, if that byte was read.
pub(crate) fn finish(
    location: &Location,
    stream: &mut Stream,
    contents: &Contents,
) -> Result<(), Error> {
    let rest = contents.expected_len().saturating_sub(stream.position());
    if rest > 0 && !stream.drains {
        return Ok(());
    }
    stream.skip(rest).map_err(|error| failed_stream(location, stream, contents, error))?;
    let io = |error| Error::file(location, source::SourceError::Io(error));
    if !contents.allows_trailing_bytes() && stream.read(&mut [0]).map_err(io)? > 0 {
        // the number of trailing bytes is known only after reading them all
        return check_len(location, stream.position(), contents);
    }
    Ok(())
}

fn check_len(location: &Location, len: u64, contents: &Contents) -> Result<(), Error> {
    contents.check_len(len).map_err(|error| Error::file(location, error))
}

/// The error of a stream; for one that ended too early, the same as for a truncated file.
pub(crate) fn failed_stream(
    location: &Location,
    stream: &Stream,
    contents: &Contents,
    error: SourceError,
) -> Error {
    let ended = matches!(error, SourceError::UnexpectedEnd(_) | SourceError::Truncated);
    match check_len(location, stream.position(), contents) {
        Err(short) if ended && !contents.format.is_raw => short,
        _ => Error::file(location, error),
    }
}
