//! Several files as one source: the bytes of each follow those of the one before.
//!
//! What a sharded checkpoint is read through: one space of positions, so that nothing downstream
//! needs to know of files. No window may reach from one file into the next.
//!
//! ```text
//!   file       0            1      2
//!   position   |0 .. 100    |100   |130 ..
//! ```

use std::ops::Range;

use super::{Advice, Source, SourceError, checked_len};

/// Files one after the other.
#[derive(Default)]
pub struct ConcatSource {
    files: Vec<File>,
    len: u64,
}

struct File {
    name: String,
    /// The position of its first byte.
    start: u64,
    source: Box<dyn Source>,
}

impl ConcatSource {
    /// Append a file, whose `name` errors tell; returns the position of its first byte.
    ///
    /// # Errors
    /// [`SourceError::OutOfBounds`] where positions would no longer fit 63 bits.
    pub fn push(&mut self, name: String, source: Box<dyn Source>) -> Result<u64, SourceError> {
        let (start, count) = (self.len, source.len());
        let end = start.checked_add(count).filter(|&end| i64::try_from(end).is_ok());
        self.len = end.ok_or(SourceError::OutOfBounds { start, end: u64::MAX, len: count })?;
        self.files.push(File { name, start, source });
        Ok(start)
    }

    /// The file that a range lies in, and the range there.
    fn find(&self, range: &Range<u64>) -> Option<(&File, Range<u64>)> {
        let at = self.files.partition_point(|file| file.start <= range.start);
        let file = self.files[..at].last()?;
        Some((file, range.start - file.start..range.end.checked_sub(file.start)?))
    }
}

impl File {
    fn failed(&self, error: SourceError) -> SourceError {
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
                file.source.window(inner, scratch).map_err(|error| file.failed(error))
            }
            None => Ok(&[]),
        }
    }

    fn window_limit(&self) -> Option<u64> {
        self.files.iter().filter_map(|file| file.source.window_limit()).min()
    }

    fn verify(&self) -> Result<(), SourceError> {
        self.files
            .iter()
            .try_for_each(|file| file.source.verify().map_err(|error| file.failed(error)))
    }

    fn advise(&self, range: Range<u64>, advice: Advice) {
        if let Some((file, inner)) = self.find(&range) {
            file.source.advise(inner, advice);
        }
    }
}
