//! A sink that takes nothing.

use crate::sink::{Sink, SinkError, WriteOrder};

/// A sink that takes nothing, as `/dev/null`: for jobs that only look.
pub(crate) struct NullSink;

impl Sink for NullSink {
    fn order(&self) -> WriteOrder {
        WriteOrder::Any
    }

    fn write_at(&self, _offset: u64, _bytes: &[u8]) -> Result<(), SinkError> {
        Ok(())
    }

    fn commit(self: Box<Self>) -> Result<(), SinkError> {
        Ok(())
    }
}
