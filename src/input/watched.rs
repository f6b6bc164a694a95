//! Pipes that are read to their end while somebody watches.

use std::io::{self, Read};

use crate::execute::{Progress, UNKNOWN};
use crate::source::{self, Source, SourceError};

/// Keep all that is left of a pipe, of which nobody knows how much that is.
///
/// # Errors
/// As [`source::spool`].
pub(crate) fn spool_all(
    stream: impl Read,
    progress: &Progress,
) -> Result<Box<dyn Source>, SourceError> {
    progress.kept.during(UNKNOWN, || source::spool(Watched::new(stream, progress)))
}

/// A stream that counts what is read of it.
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
        self.progress.kept.add(count as u64);
        Ok(count)
    }
}
