//! Copying from a pipe: one pass over the input, keeping only what is needed of it.
//!
//! The pieces of a [forward plan](crate::plan::Plan::forward) ascend in the input. The bytes
//! between them are skipped, unread where the operating system can.

use super::buffer::{Buffer, PiecePlaces};
use super::convert::write_rows;
use super::fill::split_first;
use super::pack::pack;
use super::{Conversion, ExecuteError, Progress};
use crate::plan::Plan;
use crate::sink::Sink;
use crate::source::{Forward, SourceError};

/// The most bytes of a pipe that are kept at a time: the window of plans for pipes.
pub const WINDOW_BYTES: u64 = 4 << 20;

/// Run one transfer from a stream, whose position counts from where the plan's offsets do.
///
/// # Errors
/// As [`run`](super::run); an input that ends too early is [`SourceError::Truncated`].
pub fn run_forward(
    stream: &mut dyn Forward,
    plan: &Plan,
    conversion: Conversion,
    sink: &dyn Sink,
    at: u64,
    progress: &Progress,
) -> Result<(), ExecuteError> {
    let (mut window, mut spare) = (Vec::new(), Vec::new());
    for number in 0..plan.pieces() {
        let piece = plan.piece(number);
        let places = PiecePlaces { read: None, written: at + piece.output.offset as u64 };
        let mut buffer = Buffer::take(&mut spare, piece.output.bytes() as usize, places);
        let mut rest = &mut buffer[..];
        for runs in &piece.input {
            let bounds = runs.byte_bounds();
            window.resize((bounds.end - bounds.start) as usize, 0);
            read_window(stream, bounds.start as u64, &mut window)
                .map_err(|error| ExecuteError::Fill { transfer: 0, error: error.into() })?;
            let now = split_first(&mut rest, runs.bytes());
            let first = (runs.offset - bounds.start) as usize;
            pack(&runs.axes, runs.run, &window, first, now);
        }
        let (bytes, rows) = conversion.apply(buffer, piece.output, at, &mut spare);
        write_rows(&bytes, &rows, sink, at, progress)?;
        spare.push(bytes);
    }
    Ok(())
}

/// Read the bytes from position `start` on, which lies at or after the stream's own.
fn read_window(stream: &mut dyn Forward, start: u64, window: &mut [u8]) -> Result<(), SourceError> {
    stream.skip(start.saturating_sub(stream.position()))?;
    stream.read_exact(window).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => SourceError::Truncated,
        _ => SourceError::Io(error),
    })
}
