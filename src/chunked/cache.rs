//! Decoded chunks that are kept for the pieces that follow.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::source::SourceError;
use crate::tensor::{drop_spare, keep_spare};

/// The bytes of the chunks that are kept. A chunk that is longer is kept alone.
pub(super) const CACHE_BYTES: u64 = 48 << 20;

/// The chunks that were decoded last. Workers that want the same one wait for the first of them.
pub(super) struct Cache {
    chunks: Mutex<DecodedChunks>,
    /// The oldest ones are let go where there are more bytes than these.
    most: u64,
    filled: AtomicU64,
}

type ChunkSlot = Arc<Mutex<Option<Arc<ChunkBytes>>>>;

/// The elements of a chunk, in memory that others are decoded in afterwards.
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
    /// The chunks that were decoded, the oldest first, and the bytes of each.
    oldest: VecDeque<(Vec<u64>, u64)>,
    bytes: u64,
    /// Chunks that are read ahead, and were not decoded yet.
    expected: HashSet<Vec<u64>>,
}

impl Cache {
    pub(super) fn of_last() -> Cache {
        Cache::new(CACHE_BYTES)
    }

    /// Keep chunks until they are [let go](Cache::let_go).
    pub(super) fn of_all() -> Cache {
        Cache::new(u64::MAX)
    }

    fn new(most: u64) -> Cache {
        Cache { chunks: Mutex::default(), most, filled: AtomicU64::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, DecodedChunks> {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decode a chunk that is not kept, if no other worker does so, and it `is_wanted` still: nobody lets go of
    /// it before that is answered. One that is damaged is decoded again by who [gets](Cache::get) it, so that the
    /// error is that of the first piece that needs it.
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

    /// Note that a chunk will be decoded; false if it is noted already, or kept.
    pub(super) fn expect(&self, at: &[u64]) -> bool {
        let mut chunks = self.lock();
        !chunks.slots.contains_key(at) && chunks.expected.insert(at.to_vec())
    }

    /// Whether a chunk is kept, and no worker still decodes it.
    pub(super) fn is_ready(&self, at: &[u64]) -> bool {
        let slot = self.lock().slots.get(at).map(Arc::clone);
        slot.is_some_and(|slot| slot.try_lock().is_ok_and(|chunk| chunk.is_some()))
    }

    pub(super) fn has_room(&self, bytes: u64) -> bool {
        self.lock().bytes.saturating_add(bytes) <= CACHE_BYTES
    }

    pub(super) fn let_go(&self, at: &[u64]) {
        let mut chunks = self.lock();
        chunks.slots.remove(at);
        if let Some(place) = chunks.oldest.iter().position(|(kept, _)| kept == at)
            && let Some((_, bytes)) = chunks.oldest.remove(place)
        {
            chunks.bytes -= bytes;
        }
    }

    /// A chunk that is kept or, if it is not, decoded now.
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
        place: &mut Option<Arc<ChunkBytes>>,
        decode: impl FnOnce() -> Result<Vec<u8>, SourceError>,
    ) -> Result<Arc<ChunkBytes>, SourceError> {
        let chunk = Arc::new(ChunkBytes(decode()?));
        *place = Some(Arc::clone(&chunk));
        self.lock().keep(at, chunk.len() as u64, self.most);
        Ok(chunk)
    }

    /// Note that one of `count` pieces is filled; with the last one all chunks are let go.
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
    /// Keep a chunk, and let go of the oldest ones where there are more bytes than `most`.
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
