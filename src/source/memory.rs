//! Bytes in memory, for inputs from the command line.

use std::fs::File;
use std::ops::Range;

use super::{Advice, FileRange, Source, SourceError, checked_len};

/// A source that lends bytes it owns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemorySource(pub Vec<u8>);

impl Source for MemorySource {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn window<'a>(
        &'a self,
        range: Range<u64>,
        _scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], SourceError> {
        let count = checked_len(&range, self.len())?;
        let start = range.start as usize;
        Ok(&self.0[start..start + count])
    }

    fn window_limit(&self) -> Option<u64> {
        None
    }

    fn places(&self, _range: Range<u64>) -> Result<Vec<FileRange>, SourceError> {
        Ok(Vec::new())
    }

    fn request_gap(&self) -> Option<u64> {
        None
    }

    fn file_end(&self, _at: u64) -> u64 {
        self.len()
    }

    fn is_hungry(&self) -> bool {
        false
    }

    fn verify(&self) -> Result<(), SourceError> {
        Ok(())
    }

    fn file(&self, _range: Range<u64>) -> Option<(&File, u64)> {
        None
    }

    fn is_cached(&self, _at: u64) -> bool {
        true
    }

    fn reads_ahead(&self, _at: u64) -> bool {
        true
    }

    fn advise(&self, _range: Range<u64>, _advice: Advice) {}
}
