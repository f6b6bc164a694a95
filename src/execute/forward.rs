//! Copying from a pipe: one pass over the input, keeping only what is needed of it.
//!
//! The pieces of a [forward plan](crate::plan::Plan::forward) lie one after the other in the
//! input. The bytes between them are skipped, unread where the operating system can.

use super::pack::{pack, swap_bytes};
use super::{ExecuteError, Progress};
use crate::plan::Plan;
use crate::sink::Sink;
use crate::source::{Forward, SourceError};
use crate::view::reach;

/// The most bytes of a pipe that are kept at a time: the window of plans for pipes.
pub const WINDOW_BYTES: u64 = 4 << 20;

/// Run one copy from a stream, whose position counts from where the plan's offsets do.
///
/// # Errors
///
/// As [`run`](super::run); an input that ends too early is [`SourceError::Truncated`].
pub fn run_forward(
    stream: &mut dyn Forward,
    plan: &Plan,
    swap_width: usize,
    sink: &dyn Sink,
    at: u64,
    progress: &Progress,
) -> Result<(), ExecuteError> {
    let (mut window, mut buffer) = (Vec::new(), Vec::new());
    for number in 0..plan.pieces() {
        let piece = plan.piece(number);
        let span = reach(&piece.axes, piece.run);
        let start = (piece.input as i64 + span.start) as u64;
        window.resize((span.end - span.start) as usize, 0);
        buffer.resize(piece.place.bytes() as usize, 0);
        read_window(stream, start, &mut window)
            .map_err(|error| ExecuteError::Fill { copy: 0, error: error.into() })?;
        pack(&piece.axes, piece.run, &window, -span.start as usize, &mut buffer);
        swap_bytes(&mut buffer, swap_width);
        sink.write_at(at + piece.place.output, &buffer)?;
        progress.add(piece.place.bytes());
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
