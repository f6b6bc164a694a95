//! The place where an output grows: whole or not at all.
//!
//! A [`Sink`] takes bytes, at any position ([`WriteOrder::Any`]) or only in order. `commit`
//! consumes it and puts the output in place; dropping it leaves what stood there before.

/// In which order a sink takes its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOrder {
    /// Any position at any time, from several threads.
    Any,
    /// Ascending and without a gap, one call after the other.
    Ascending,
}

/// An output that is being written.
pub trait Sink: Send + Sync {
    /// In which order `write_at` may be called.
    fn order(&self) -> WriteOrder;

    /// Write `bytes` at `offset`, counted from the beginning of the output.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError>;

    /// Put the output in place: every byte of it has been written.
    fn commit(self: Box<Self>) -> Result<(), SinkError>;
}

/// Why an output could not be written.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// The output exists, and was not to be replaced.
    #[error("the file exists")]
    Exists,
    /// The reader of the pipe went away: not worth a message.
    #[error("the pipe was closed by its reader")]
    Closed,
    /// The operating system refused.
    #[error("{0}")]
    Io(std::io::Error),
}
