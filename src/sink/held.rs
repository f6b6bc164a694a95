//! Bytes that are kept until it is known how they are written: few of them in memory, many in an
//! unnamed file in `TMPDIR`.

use std::fs::File;

use super::copy_file::in_pieces;
use super::{Sink, SinkError, scratch::ScratchSink};

/// How many bytes are kept in memory.
const FEW: usize = 1 << 20;

/// Bytes that were written one after the other, to be read once.
#[derive(Debug, Default)]
pub struct HeldBytes {
    /// The last of them.
    recent: Vec<u8>,
    /// Where the others are, and how many.
    file: Option<(ScratchSink, File, u64)>,
}

impl HeldBytes {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.recent.is_empty() && self.file.is_none()
    }

    /// All of them, where they are in memory.
    pub fn in_memory(&self) -> Option<&[u8]> {
        self.file.is_none().then_some(&self.recent)
    }

    /// Append bytes.
    ///
    /// # Errors
    /// A temporary file that cannot be written.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        self.recent.extend_from_slice(bytes);
        if self.recent.len() < FEW {
            return Ok(());
        }
        let (sink, file, len) = match self.file.take() {
            Some(file) => file,
            None => {
                let (sink, file) = ScratchSink::new(0)?;
                (sink, file, 0)
            }
        };
        sink.write_at(len, &self.recent)?;
        self.file = Some((sink, file, len + self.recent.len() as u64));
        self.recent.clear();
        Ok(())
    }

    /// Hand all of them on, in pieces.
    ///
    /// # Errors
    /// Those of `pass`; a temporary file that cannot be read.
    pub fn hand_on(
        self,
        pass: &mut dyn FnMut(&[u8]) -> Result<(), SinkError>,
    ) -> Result<(), SinkError> {
        if let Some((_, file, len)) = self.file {
            let unread = SinkError::os("a temporary file cannot be read");
            in_pieces(&file, 0..len, unread, |_, piece| pass(piece))?;
        }
        pass(&self.recent)
    }
}
