//! What elements go through between the input and the output.
//!
//! Every piece passes here on its way from the packed buffer to the sink, whoever packed it: the
//! place of a cast. Pieces are planned in bytes of the input and never divide a
//! [unit](Conversion::unit), so a conversion to another item size is exact for each piece alone: it
//! is a variant of [`Conversion`], its elements are converted to another buffer in
//! [`Conversion::apply`], and the rows of the result are scaled there.

use super::Progress;
use super::pack::swap_bytes;
use crate::runs::Runs;
use crate::sink::{Sink, SinkError};

/// What is done to elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conversion {
    /// Nothing: bytes are copied.
    #[default]
    None,
    /// Nothing, and no piece divides elements: for sinks that look at them.
    Whole {
        /// Bytes an element, at least 1.
        width: usize,
    },
    /// The other byte order.
    SwapBytes {
        /// Bytes that are reversed together, at least 2.
        width: usize,
    },
}

impl Conversion {
    /// Reverse every `width` bytes; none for a width of 0 or 1.
    pub fn swap_bytes(width: usize) -> Conversion {
        match width {
            0 | 1 => Conversion::None,
            _ => Conversion::SwapBytes { width },
        }
    }

    /// The bytes of the input that are converted together: no piece may divide them.
    pub fn unit(self) -> u64 {
        match self {
            Conversion::None => 1,
            Conversion::Whole { width } | Conversion::SwapBytes { width } => width as u64,
        }
    }

    /// Convert the packed bytes of a piece, which goes to `rows`.
    pub(super) fn apply(self, packed: &mut [u8], rows: Runs) -> Converted<'_> {
        match self {
            Conversion::None | Conversion::Whole { .. } => {}
            Conversion::SwapBytes { width } => swap_bytes(packed, width),
        }
        Converted { bytes: packed, rows }
    }
}

/// The bytes of a piece as the output has them.
pub(super) struct Converted<'a> {
    bytes: &'a [u8],
    rows: Runs,
}

impl Converted<'_> {
    /// Write the rows to an output that begins at byte `at` of the sink.
    pub(super) fn write(
        &self,
        sink: &dyn Sink,
        at: u64,
        progress: &Progress,
    ) -> Result<(), SinkError> {
        let rows = self.rows.starts().zip(self.bytes.chunks_exact((self.rows.run as usize).max(1)));
        for (offset, row) in rows {
            sink.write_at(at + offset as u64, row)?;
        }
        progress.add(self.bytes.len() as u64);
        Ok(())
    }
}
