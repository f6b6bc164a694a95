//! Bytes that need not be copied: the file system lets the output have the input's blocks.
//!
//! What goes from one range of a file to one range of the output, as it is, is shared as far as it
//! has the same place in a block of both; the bytes before the first whole block and behind the last
//! are copied.

use super::{Conversion, ExecuteError, Progress, Transfer};
use crate::sink::Sink;

/// Shorter ranges are copied, in bytes: a record of shared blocks costs about as much.
pub const SHARED_BYTES: u64 = 64 << 10;

/// Share what can be shared of transfer number `index`. True if all of it is in the output then.
pub(super) fn share(
    index: usize,
    transfer: &Transfer<'_>,
    sink: &dyn Sink,
    progress: &Progress,
) -> Result<bool, ExecuteError> {
    let Transfer { source, pieces, conversion, at } = transfer;
    let range = pieces.range().filter(|range| range.end - range.start >= SHARED_BYTES);
    let Some(range) = range.filter(|_| *conversion == Conversion::None) else { return Ok(false) };
    let Some((file, start)) = source.file(range.clone()) else { return Ok(false) };
    let end = start + (range.end - range.start);
    let shared = sink.share(*at, file, start..end);
    if shared.is_empty() {
        return Ok(false);
    }
    progress.add(shared.end - shared.start);
    for rest in [start..shared.start, shared.end..end] {
        let skipped = rest.start - start;
        let from = range.start + skipped..range.start + skipped + (rest.end - rest.start);
        let mut scratch = Vec::new();
        let bytes = source.window(from, &mut scratch);
        let bytes =
            bytes.map_err(|error| ExecuteError::Fill { transfer: index, error: error.into() })?;
        sink.write_at(at + skipped, bytes)?;
        progress.add(bytes.len() as u64);
    }
    Ok(true)
}
