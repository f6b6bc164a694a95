//! Several sources as one: the bytes of each follow those of the one before.
//!
//! Sharded checkpoints and archives with deflated members are read through this: offsets count
//! through all files, so that the code downstream knows of one source only. A window must lie inside
//! one file.
//!
//! ```text
//!   file       0            1      2
//!   position   |0 .. 100    |100   |130 ..
//! ```

use std::fs::File;
use std::ops::Range;

use super::{Advice, FileRange, Source, SourceError, checked_len};

/// Named sources, concatenated.
#[derive(Default)]
pub struct ConcatSource {
    files: Vec<NamedSource>,
    len: u64,
    /// The shortest limit of them, which is asked for with every piece of a job.
    window_limit: Option<u64>,
    /// The longest gap that one of them would rather read than ask again.
    request_gap: Option<u64>,
}

struct NamedSource {
    name: String,
    /// The offset of its first byte.
    start: u64,
    source: Box<dyn Source>,
}

impl ConcatSource {
    /// Append a source; errors in it name it by `name`. Returns the offset of its first byte.
    ///
    /// # Errors
    /// [`SourceError::OutOfBounds`] if offsets would exceed 63 bits.
    pub fn push(&mut self, name: String, source: Box<dyn Source>) -> Result<u64, SourceError> {
        let (start, count) = (self.len, source.len());
        let end = start.checked_add(count).filter(|&end| i64::try_from(end).is_ok());
        self.len = end.ok_or(SourceError::OutOfBounds { start, end: u64::MAX, len: count })?;
        self.window_limit = self.window_limit.into_iter().chain(source.window_limit()).min();
        self.request_gap = self.request_gap.max(source.request_gap());
        self.files.push(NamedSource { name, start, source });
        Ok(start)
    }

    /// The file that holds a range, and the range relative to that file.
    fn find(&self, range: &Range<u64>) -> Option<(&NamedSource, Range<u64>)> {
        let at = self.files.partition_point(|file| file.start <= range.start);
        let file = self.files[..at].last()?;
        Some((file, range.start - file.start..range.end.checked_sub(file.start)?))
    }
}

impl ConcatSource {
    /// The files that hold a range, and the range relative to each.
    fn parts(&self, range: Range<u64>) -> impl Iterator<Item = (&NamedSource, Range<u64>)> {
        let first =
            self.files.partition_point(|file| file.start + file.source.len() <= range.start);
        let files = self.files[first..].iter().take_while(move |file| file.start < range.end);
        files.filter_map(move |file| {
            let start = range.start.max(file.start);
            let end = range.end.min(file.start + file.source.len());
            (start < end).then(|| (file, start - file.start..end - file.start))
        })
    }
}

impl NamedSource {
    fn name_error(&self, error: SourceError) -> SourceError {
        SourceError::File { name: self.name.clone(), error: Box::new(error) }
    }
}

impl Source for ConcatSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn window<'a>(
        &'a self,
        range: Range<u64>,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], SourceError> {
        if checked_len(&range, self.len)? == 0 {
            return Ok(&[]);
        }
        match self.find(&range) {
            Some((file, inner)) => {
                file.source.window(inner, scratch).map_err(|error| file.name_error(error))
            }
            None => Ok(&[]),
        }
    }

    fn read(
        &self,
        range: Range<u64>,
        scratch: &mut Vec<u8>,
        out: &mut [u8],
    ) -> Result<(), SourceError> {
        match self.find(&range) {
            Some((file, inner)) => {
                file.source.read(inner, scratch, out).map_err(|error| file.name_error(error))
            }
            None => {
                Err(SourceError::OutOfBounds { start: range.start, end: range.end, len: self.len })
            }
        }
    }

    fn window_limit(&self) -> Option<u64> {
        self.window_limit
    }

    fn request_gap(&self) -> Option<u64> {
        self.request_gap
    }

    fn file_end(&self, at: u64) -> u64 {
        let next = self.files.partition_point(|file| file.start <= at);
        self.files.get(next).map_or(self.len, |file| file.start)
    }

    fn is_hungry(&self) -> bool {
        self.files.iter().any(|file| file.source.is_hungry())
    }

    fn verify(&self) -> Result<(), SourceError> {
        self.files
            .iter()
            .try_for_each(|file| file.source.verify().map_err(|error| file.name_error(error)))
    }

    fn places(&self, range: Range<u64>) -> Result<Vec<FileRange>, SourceError> {
        let mut places = Vec::new();
        for (file, inner) in self.parts(range) {
            places.extend(file.source.places(inner).map_err(|error| file.name_error(error))?);
        }
        Ok(places)
    }

    fn file(&self, range: Range<u64>) -> Option<(&File, u64)> {
        let (file, inner) = self.find(&range)?;
        file.source.file(inner)
    }

    fn is_cached(&self, at: u64) -> bool {
        self.parts(at..at.saturating_add(1)).all(|(file, inner)| file.source.is_cached(inner.start))
    }

    fn reads_ahead(&self, at: u64) -> bool {
        self.parts(at..at.saturating_add(1))
            .all(|(file, inner)| file.source.reads_ahead(inner.start))
    }

    fn advise(&self, range: Range<u64>, advice: Advice) {
        for (file, inner) in self.parts(range) {
            file.source.advise(inner, advice);
        }
    }
}
