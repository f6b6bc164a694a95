//! A sink that takes nothing.

use crate::sink::{Sink, SinkError};

/// A sink that takes nothing, as `/dev/null`: for jobs that only look.
pub(crate) struct NullSink;

impl Sink for NullSink {
    fn write_at(&self, _offset: u64, _bytes: &[u8]) -> Result<(), SinkError> {
        Ok(())
    }
}
