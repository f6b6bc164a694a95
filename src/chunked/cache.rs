//! Decoded chunks that are kept for the pieces that follow.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::source::SourceError;

/// The bytes of the chunks that are kept. A chunk that is longer is kept alone.
pub(super) const CACHE_BYTES: u64 = 48 << 20;

/// The chunks that were decoded last. Workers that want the same one wait for the first of them.
#[derive(Default)]
pub(super) struct Cache {
    chunks: Mutex<DecodedChunks>,
    /// How many pieces have been filled from them.
    filled: AtomicU64,
}

/// A decoded chunk; none yet where a worker decodes it, or failed to.
type ChunkSlot = Arc<Mutex<Option<Arc<Vec<u8>>>>>;

#[derive(Default)]
struct DecodedChunks {
    slots: HashMap<Vec<u64>, ChunkSlot>,
    /// The chunks that were decoded, the oldest first, and the bytes of each.
    oldest: VecDeque<(Vec<u64>, u64)>,
    bytes: u64,
}

impl Cache {
    /// A chunk that is kept or, if it is not, decoded now.
    ///
    /// # Errors
    /// Those of `decode`.
    pub(super) fn get(
        &self,
        at: &[u64],
        decode: impl FnOnce() -> Result<Vec<u8>, SourceError>,
    ) -> Result<Arc<Vec<u8>>, SourceError> {
        let lock = || self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = Arc::clone(lock().slots.entry(at.to_vec()).or_default());
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(chunk) = slot.as_ref() {
            return Ok(Arc::clone(chunk));
        }
        let chunk = Arc::new(decode()?);
        *slot = Some(Arc::clone(&chunk));
        lock().keep(at, chunk.len() as u64);
        Ok(chunk)
    }

    /// Note that one of `count` pieces is filled; with the last one all chunks are let go.
    pub(super) fn filled(&self, count: u64) {
        if self.filled.fetch_add(1, Ordering::AcqRel) + 1 == count {
            *self.chunks.lock().unwrap_or_else(PoisonError::into_inner) = DecodedChunks::default();
        }
    }
}

impl DecodedChunks {
    /// Keep a chunk, and let go of the oldest ones.
    fn keep(&mut self, at: &[u64], bytes: u64) {
        self.oldest.push_back((at.to_vec(), bytes));
        self.bytes += bytes;
        while self.bytes > CACHE_BYTES && self.oldest.len() > 1 {
            let Some((at, bytes)) = self.oldest.pop_front() else { break };
            self.slots.remove(&at);
            self.bytes -= bytes;
        }
    }
}
