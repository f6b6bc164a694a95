//! Text on its way to the sink, collected so that writes are long.

use crate::sink::{HeldBytes, Sink, SinkError};

/// How much text is collected before it is written, in bytes.
const COLLECTED: usize = 256 << 10;

/// Text that is collected, and where it goes.
pub(super) struct Out<'a> {
    pub(super) text: String,
    sink: &'a dyn Sink,
    /// Bytes of text written.
    written: &'a mut u64,
}

/// Why there is no text.
#[derive(Debug)]
pub(super) enum TextError {
    /// A string that is none.
    NotText,
    /// The sink, or a temporary file, failed.
    Sink(SinkError),
}

impl From<SinkError> for TextError {
    fn from(error: SinkError) -> TextError {
        TextError::Sink(error)
    }
}

impl From<std::fmt::Error> for TextError {
    fn from(_: std::fmt::Error) -> TextError {
        TextError::NotText
    }
}

impl<'a> Out<'a> {
    pub(super) fn new(sink: &'a dyn Sink, written: &'a mut u64) -> Out<'a> {
        Out { text: String::new(), sink, written }
    }

    /// Write what has been collected.
    pub(super) fn pass(&mut self) -> Result<(), SinkError> {
        self.sink.write_at(*self.written, self.text.as_bytes())?;
        *self.written += self.text.len() as u64;
        self.text.clear();
        Ok(())
    }

    /// Write what has been collected, once it is worth a write.
    pub(super) fn pass_long(&mut self) -> Result<(), SinkError> {
        if self.text.len() >= COLLECTED { self.pass() } else { Ok(()) }
    }

    /// Write bytes that were held.
    pub(super) fn pass_held(&mut self, held: HeldBytes) -> Result<(), SinkError> {
        if let Some(Ok(text)) = held.in_memory().map(std::str::from_utf8) {
            self.text.push_str(text);
            return Ok(());
        }
        self.pass()?;
        held.hand_on(&mut |bytes| {
            self.sink.write_at(*self.written, bytes)?;
            *self.written += bytes.len() as u64;
            Ok(())
        })
    }
}
