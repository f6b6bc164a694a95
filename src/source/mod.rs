//! The bytes of an input, wherever they come from.
//!
//! Two kinds: a [`Source`] gives any range at any time (a mapped file, a file read by position,
//! a spooled pipe); a pipe as it comes can only go forward. This room opens inputs and knows
//! nothing of tensors.

use std::ops::Range;

/// Bytes that can be had in any order, by several threads at once.
pub trait Source: Send + Sync {
    /// The number of bytes there are.
    fn len(&self) -> u64;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of `range`, which must lie inside `0..len()`; mapped sources lend their own,
    /// others read into `scratch`.
    fn window<'a>(
        &'a self,
        range: Range<u64>,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], SourceError>;

    /// The longest range in bytes that should be asked for in one window where only a part of it
    /// is used; `None` where asking costs nothing (a map).
    fn window_limit(&self) -> Option<u64>;

    /// Whether everything that was lent so far was really there: an input that another process
    /// cut short while it was mapped is found out here. To be asked after the last window, and
    /// before a result is put in place.
    fn verify(&self) -> Result<(), SourceError>;
}

/// Why bytes of an input could not be had.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The operating system refused.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The input became shorter while it was being read.
    #[error("the file was cut short while it was being read")]
    Shrunk,
}
