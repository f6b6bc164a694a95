//! A cache of decoded chunks, for the pieces that follow.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::source::{SourceError, drop_spare, keep_spare};

/// The bytes of the chunks that are cached. A longer chunk is cached alone.
pub(super) const CACHE_BYTES: u64 = 48 << 20;

/// The chunks that were decoded last. Workers that want a chunk that is being decoded wait for it.
pub(crate) struct Cache {
    chunks: Mutex<DecodedChunks>,
    /// The bytes above which the oldest chunks are dropped.
    most: u64,
    filled: AtomicU64,
}

type ChunkSlot = Arc<Mutex<Option<Arc<ChunkBytes>>>>;

/// The elements of a chunk, in memory that is reused for other chunks.
pub(super) struct ChunkBytes(pub(super) Vec<u8>);

impl Deref for ChunkBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for ChunkBytes {
    fn drop(&mut self) {
        keep_spare(std::mem::take(&mut self.0));
    }
}

#[derive(Default)]
struct DecodedChunks {
    slots: HashMap<Vec<u64>, ChunkSlot>,
    /// The decoded chunks, the oldest first, and the bytes of each.
    oldest: VecDeque<(Vec<u64>, u64)>,
    bytes: u64,
    /// Chunks that are read ahead, and not decoded yet.
    expected: HashSet<Vec<u64>>,
}

impl Cache {
    /// A cache of so many bytes.
    pub(crate) fn of_bytes(most: u64) -> Cache {
        Cache { chunks: Mutex::default(), most, filled: AtomicU64::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, DecodedChunks> {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decode a chunk that is not cached, if no other worker does so, and it still `is_wanted`:
    /// nobody drops it before that is answered. A damaged chunk is decoded again by the worker that
    /// [gets](Cache::get) it, so that the error is that of the first piece that needs it.
    pub(super) fn prepare(
        &self,
        at: &[u64],
        is_wanted: impl FnOnce() -> bool,
        decode: impl FnOnce() -> Result<Vec<u8>, SourceError>,
    ) {
        let slot = ChunkSlot::default();
        let mut chunk = slot.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let slots = &mut self.lock().slots;
            if slots.contains_key(at) || !is_wanted() {
                return;
            }
            slots.insert(at.to_vec(), Arc::clone(&slot));
        }
        drop(self.fill(at, &mut chunk, decode));
    }

    /// Note that a chunk will be decoded; false if that was noted already, or it is cached.
    pub(super) fn expect(&self, at: &[u64]) -> bool {
        let mut chunks = self.lock();
        !chunks.slots.contains_key(at) && chunks.expected.insert(at.to_vec())
    }

    /// Whether a chunk is cached, and not still being decoded.
    pub(super) fn is_ready(&self, at: &[u64]) -> bool {
        let slot = self.lock().slots.get(at).map(Arc::clone);
        slot.is_some_and(|slot| slot.try_lock().is_ok_and(|chunk| chunk.is_some()))
    }

    /// Whether a chunk is cached, or some worker decodes it.
    pub(super) fn is_known(&self, at: &[u64]) -> bool {
        self.lock().slots.contains_key(at)
    }

    pub(super) fn has_room(&self, bytes: u64) -> bool {
        self.lock().bytes.saturating_add(bytes) <= CACHE_BYTES
    }

    pub(super) fn let_go(&self, at: &[u64]) {
        let mut chunks = self.lock();
        chunks.slots.remove(at);
        if let Some(number) = chunks.oldest.iter().position(|(cached, _)| cached == at)
            && let Some((_, bytes)) = chunks.oldest.remove(number)
        {
            chunks.bytes -= bytes;
        }
    }

    /// A chunk from the cache, or decoded now.
    pub(super) fn get(
        &self,
        at: &[u64],
        decode: impl FnOnce() -> Result<Vec<u8>, SourceError>,
    ) -> Result<Arc<ChunkBytes>, SourceError> {
        let slot = Arc::clone(self.lock().slots.entry(at.to_vec()).or_default());
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(chunk) = slot.as_ref() {
            return Ok(Arc::clone(chunk));
        }
        self.fill(at, &mut slot, decode)
    }

    fn fill(
        &self,
        at: &[u64],
        slot: &mut Option<Arc<ChunkBytes>>,
        decode: impl FnOnce() -> Result<Vec<u8>, SourceError>,
    ) -> Result<Arc<ChunkBytes>, SourceError> {
        let chunk = Arc::new(ChunkBytes(decode()?));
        *slot = Some(Arc::clone(&chunk));
        self.lock().keep(at, chunk.len() as u64, self.most);
        Ok(chunk)
    }

    /// Note that one of `count` pieces is filled; with the last one all chunks are dropped.
    pub(super) fn filled(&self, count: u64) {
        if self.filled.fetch_add(1, Ordering::AcqRel) + 1 == count {
            self.let_go_of_all();
        }
    }

    fn let_go_of_all(&self) {
        *self.lock() = DecodedChunks::default();
        drop_spare();
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        self.let_go_of_all();
    }
}

impl DecodedChunks {
    /// Cache a chunk, and drop the oldest ones as long as there are more than `most` bytes.
    fn keep(&mut self, at: &[u64], bytes: u64, most: u64) {
        self.expected.remove(at);
        self.oldest.push_back((at.to_vec(), bytes));
        self.bytes += bytes;
        while self.bytes > most && self.oldest.len() > 1 {
            let Some((at, bytes)) = self.oldest.pop_front() else { break };
            self.slots.remove(&at);
            self.bytes -= bytes;
        }
    }
}
