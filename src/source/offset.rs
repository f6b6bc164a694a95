//! The rest of a file, at the positions that its bytes have in the whole file.

use std::fs::File;
use std::ops::Range;

use super::{Advice, FileRange, Source, SourceError};

/// A source whose first `start` bytes are missing: byte 0 of `rest` stands at position `start`.
///
/// What is left of a pipe after its header was read is one, so that positions from the header
/// need no correction.
pub struct OffsetSource {
    start: u64,
    rest: Box<dyn Source>,
}

impl OffsetSource {
    /// Let byte 0 of `rest` stand at position `start`.
    pub fn new(start: u64, rest: Box<dyn Source>) -> OffsetSource {
        OffsetSource { start, rest }
    }

    /// A range of positions as a range of `rest`.
    fn inner(&self, range: &Range<u64>) -> Option<Range<u64>> {
        Some(range.start.checked_sub(self.start)?..range.end.checked_sub(self.start)?)
    }
}

impl Source for OffsetSource {
    fn len(&self) -> u64 {
        self.start.saturating_add(self.rest.len())
    }

    fn window<'a>(
        &'a self,
        range: Range<u64>,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], SourceError> {
        match self.inner(&range) {
            Some(inner) => self.rest.window(inner, scratch),
            None => {
                let Range { start, end } = range;
                Err(SourceError::OutOfBounds { start, end, len: self.len() })
            }
        }
    }

    fn read(
        &self,
        range: Range<u64>,
        scratch: &mut Vec<u8>,
        out: &mut [u8],
    ) -> Result<(), SourceError> {
        match self.inner(&range) {
            Some(inner) => self.rest.read(inner, scratch, out),
            None => {
                let Range { start, end } = range;
                Err(SourceError::OutOfBounds { start, end, len: self.len() })
            }
        }
    }

    fn window_limit(&self) -> Option<u64> {
        self.rest.window_limit()
    }

    fn request_gap(&self) -> Option<u64> {
        self.rest.request_gap()
    }

    fn file_end(&self, at: u64) -> u64 {
        self.start.saturating_add(self.rest.file_end(at.saturating_sub(self.start)))
    }

    fn is_hungry(&self) -> bool {
        self.rest.is_hungry()
    }

    fn verify(&self) -> Result<(), SourceError> {
        self.rest.verify()
    }

    fn places(&self, range: Range<u64>) -> Result<Vec<FileRange>, SourceError> {
        let Range { start, end } = range;
        self.rest.places(start.saturating_sub(self.start)..end.saturating_sub(self.start))
    }

    fn file(&self, range: Range<u64>) -> Option<(&File, u64)> {
        self.rest.file(self.inner(&range)?)
    }

    fn is_cached(&self, at: u64) -> bool {
        at.checked_sub(self.start).is_none_or(|at| self.rest.is_cached(at))
    }

    fn reads_ahead(&self, at: u64) -> bool {
        at.checked_sub(self.start).is_some_and(|at| self.rest.reads_ahead(at))
    }

    fn advise(&self, range: Range<u64>, advice: Advice) {
        if let Some(inner) = self.inner(&range) {
            self.rest.advise(inner, advice);
        }
    }
}
