//! Bytes in memory, for inputs from the command line.

use std::ops::Range;

use super::{Source, SourceError, checked_len};

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
}
