//! The network that all open remote files share: its thread, the client, and the memory for bytes on
//! their way.
//!
//! Requests wait in a queue, in the order in which the job reads. As many run at a time as stay within
//! [`BUDGET`] together; a request that a worker waits for does not wait for memory. Each request fills
//! a block:
//!
//! ```text
//!   queue  ── pump ──►  blocks on their way  ──►  blocks that are here  ── window ──►  worker
//!                       (at most REQUESTS)        (go when both ends were read)
//! ```
//!
//! The thread ends with the last file.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak, mpsc};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use super::fetch::fetch;
use super::requests::{NEAR, REQUEST_BYTES};
use super::stores::{Located, patience};
use super::wire::{Wire, locked};
use super::{RemoteError, RemoteVersion};

/// The memory for bytes that are on their way or not used yet, for all files together.
pub(super) const BUDGET: u64 = 24 << 20;

/// The bytes of blocks that stay after they were read at both ends: a worker may still need the middle.
const SPARE: u64 = 4 << 20;

/// The memory beyond the budget for requests that workers wait for.
const DEMANDED: u64 = 8 << 20;

pub(super) const REQUESTS: usize = 32;

/// The memory that a block takes beside its data, in bytes.
const BLOCK_BYTES: u64 = 256;

/// The shortest request that was not announced, in bytes.
const UNANNOUNCED: u64 = 4 << 10;

/// The number of unannounced reads whose ends are remembered.
const TRAILS: usize = 8;

/// The network of all open files, so that memory and requests have one bound.
static OPEN: Mutex<Weak<Network>> = Mutex::new(Weak::new());

/// The bytes of responses since the first of the open files was opened. `None` while no remote file is open.
pub fn received() -> Option<u64> {
    let network = locked(&OPEN).upgrade()?;
    Some(network.shared.received.load(Ordering::Relaxed))
}

pub(super) struct Network {
    pub(super) wire: Wire,
    shared: Arc<SharedState>,
    next_file: AtomicU64,
    /// Ends the thread when it is dropped.
    _stop: oneshot::Sender<()>,
}

struct SharedState {
    state: Mutex<NetworkState>,
    news: Condvar,
    /// The bytes of all responses.
    received: AtomicU64,
    runtime: Handle,
}

type BlockKey = (u64, u64);

#[derive(Default)]
struct NetworkState {
    queue: VecDeque<RangeRequest>,
    blocks: BTreeMap<BlockKey, Block>,
    /// Blocks whose bytes were all read, the oldest first.
    done: VecDeque<BlockKey>,
    /// Blocks that were read at both ends, the oldest first, and their bytes. Some may be done or dropped already.
    passed: VecDeque<BlockKey>,
    passed_bytes: u64,
    used: u64,
    running: usize,
    /// The ends of unannounced reads, and the length to request if they continue there.
    trails: VecDeque<(BlockKey, u64)>,
}

pub(super) struct RemoteFile {
    number: u64,
    at: Located,
    pub(super) version: RemoteVersion,
}

struct RangeRequest {
    file: Arc<RemoteFile>,
    range: Range<u64>,
}

#[derive(Default)]
struct Block {
    end: u64,
    data: Vec<u8>,
    running: bool,
    error: Option<RemoteError>,
    /// Whether the first byte was read, and whether the last byte was read.
    ends: (bool, bool),
    read: u64,
    state: Use,
    is_wanted: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Use {
    /// The block was not read to its end yet, or has not come.
    #[default]
    Needed,
    /// The block was read at both ends. A worker may still need the middle; where ranges have gaps
    /// between them, no more is read.
    Passed,
    Done,
}

impl Block {
    fn cost(&self, start: u64) -> u64 {
        self.end - start + BLOCK_BYTES
    }
}

impl Network {
    /// The network, started where no file is open yet.
    pub(super) fn get() -> Result<Arc<Network>, RemoteError> {
        let mut open = locked(&OPEN);
        if let Some(network) = open.upgrade() {
            return Ok(network);
        }
        let network = Arc::new(Network::begin()?);
        *open = Arc::downgrade(&network);
        Ok(network)
    }

    fn begin() -> Result<Network, RemoteError> {
        let failed = |error: std::io::Error| {
            RemoteError::Configuration(format!(
                "the thread for the network does not start: {error}"
            ))
        };
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            // for the look-up of host names
            .max_blocking_threads(4)
            .build()
            .map_err(failed)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        thread::Builder::new()
            .name("network".to_owned())
            .spawn(move || {
                // an error means that the other end was dropped, which ends the thread
                let _ = runtime.block_on(stopped);
                runtime.shutdown_background();
            })
            .map_err(failed)?;
        let shared = SharedState {
            state: Mutex::default(),
            news: Condvar::new(),
            received: AtomicU64::new(0),
            runtime: handle,
        };
        Ok(Network {
            wire: Wire::new(patience()?)?,
            shared: Arc::new(shared),
            next_file: AtomicU64::new(0),
            _stop: stop,
        })
    }

    /// Run a future on the network's thread. It must end by itself.
    pub(super) fn start<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, RemoteError>> + Send + 'static,
    ) -> Pending<T> {
        let (done, outcome) = mpsc::channel();
        self.shared.runtime.spawn(async move {
            // an error means that nobody waits for it any more
            let _ = done.send(work.await);
        });
        Pending(outcome)
    }

    /// Run a future on this thread, with the connections of the network's.
    pub(super) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.shared.runtime.block_on(work)
    }

    pub(super) fn received(&self, bytes: u64) {
        self.shared.received.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn open(
        &self,
        at: Located,
        version: RemoteVersion,
        first: Vec<u8>,
    ) -> Arc<RemoteFile> {
        let number = self.next_file.fetch_add(1, Ordering::Relaxed);
        self.received(first.len() as u64);
        if !first.is_empty() {
            let end = first.len() as u64;
            let block = Block { end, data: first, ..Block::default() };
            let mut state = self.shared.lock();
            state.used += block.cost(0);
            state.blocks.insert((number, 0), block);
            state.trails.push_front(((number, end), end));
        }
        Arc::new(RemoteFile { number, at, version })
    }

    pub(super) fn close(&self, &RemoteFile { number, .. }: &RemoteFile) {
        let mut state = self.shared.lock();
        let state = &mut *state;
        state.queue.retain(|request| request.file.number != number);
        let keys: Vec<BlockKey> =
            state.blocks.range((number, 0)..=(number, u64::MAX)).map(|(key, _)| *key).collect();
        keys.into_iter().for_each(|key| state.remove(key));
        state.done.retain(|key| key.0 != number);
        state.passed.retain(|key| key.0 != number);
        state.trails.retain(|(key, _)| key.0 != number);
        self.shared.pump(state);
    }

    pub(super) fn is_hungry(&self) -> bool {
        let state = self.shared.lock();
        let queued_bytes: u64 = state.queue.iter().map(|it| it.range.end - it.range.start).sum();
        queued_bytes < BUDGET && state.queue.len() < 4 * REQUESTS
    }

    /// Put a range in the queue; with `at_once`, before all others and as one request.
    pub(super) fn announce(&self, file: &Arc<RemoteFile>, range: Range<u64>, at_once: bool) {
        let mut state = self.shared.lock();
        let range = state.missing((file.number, range.start), range.end);
        if range.is_empty() {
            return;
        }
        let request = RangeRequest { file: Arc::clone(file), range };
        if at_once {
            state.queue.push_front(request);
        } else {
            state.queue.push_back(request);
        }
        self.shared.pump(&mut state);
    }

    /// Copy the bytes from `start`, when they have come.
    pub(super) fn read(
        &self,
        file: &Arc<RemoteFile>,
        start: u64,
        out: &mut [u8],
    ) -> Result<(), RemoteError> {
        let end = start + out.len() as u64;
        let mut state = self.shared.lock();
        let mut at = start;
        while at < end {
            self.shared.demand(&mut state, file, at..end);
            match state.take((file.number, at), &mut out[(at - start) as usize..])? {
                0 => state = self.shared.wait(state),
                count => at += count as u64,
            }
        }
        self.shared.pump(&mut state);
        Ok(())
    }
}

/// A result that the network's thread will send.
pub(super) struct Pending<T>(mpsc::Receiver<Result<T, RemoteError>>);

impl<T> Pending<T> {
    pub(super) fn wait(self) -> Result<T, RemoteError> {
        let ended = |_| Err(RemoteError::Network("the network thread ended".to_owned()));
        self.0.recv().unwrap_or_else(ended)
    }
}

impl SharedState {
    fn lock(&self) -> MutexGuard<'_, NetworkState> {
        locked(&self.state)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, NetworkState>) -> MutexGuard<'s, NetworkState> {
        let waited = self.news.wait_timeout(state, Duration::from_secs(1));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn pump(self: &Arc<Self>, state: &mut NetworkState) {
        while state.running < REQUESTS
            && let Some(request) = state.queue.front()
        {
            let needed = request.range.end - request.range.start + BLOCK_BYTES;
            if !state.make_space(needed) {
                return;
            }
            if let Some(request) = state.queue.pop_front() {
                self.begin(state, request);
            }
        }
    }

    fn demand(
        self: &Arc<Self>,
        state: &mut NetworkState,
        file: &Arc<RemoteFile>,
        range: Range<u64>,
    ) {
        let number = file.number;
        let mut at = range.start;
        while at < range.end {
            if let Some((_, block)) = state.block((number, at)) {
                at = block.end;
                continue;
            }
            let queued = state
                .queue
                .iter()
                .position(|it| it.file.number == number && it.range.contains(&at));
            let request = match queued.and_then(|place| state.queue.remove(place)) {
                Some(request) => request,
                None => {
                    let end = at + state.unannounced((number, at), range.end - at);
                    let range = at..end.min(file.version.len);
                    RangeRequest { file: Arc::clone(file), range }
                }
            };
            at = request.range.end;
            let needed = request.range.end - request.range.start;
            if !state.make_space(needed) && state.used > BUDGET + DEMANDED {
                state.evict_any(needed);
            }
            self.begin(state, request);
        }
    }

    /// Send a request for the part of a range that is not on its way already.
    fn begin(self: &Arc<Self>, state: &mut NetworkState, request: RangeRequest) {
        let RangeRequest { file, range } = request;
        let range = state.missing((file.number, range.start), range.end);
        if range.is_empty() {
            return;
        }
        let key = (file.number, range.start);
        let data = Vec::with_capacity((range.end - range.start) as usize);
        let block = Block { end: range.end, data, running: true, ..Block::default() };
        state.used += block.cost(range.start);
        state.running += 1;
        state.blocks.insert(key, block);
        let shared = Arc::clone(self);
        self.runtime.spawn(async move {
            let mut take = |bytes: &[u8]| shared.receive(key, bytes);
            let outcome = fetch(&file.at, &file.version, range, &mut take).await;
            shared.end(key, outcome.err());
        });
    }

    /// Add bytes to a block; returns false if nobody wants them any more.
    fn receive(&self, key: BlockKey, bytes: &[u8]) -> bool {
        self.received.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let mut state = self.lock();
        let Some(block) = state.blocks.get_mut(&key) else { return false };
        block.data.extend_from_slice(bytes);
        drop(state);
        self.news.notify_all();
        true
    }

    fn end(self: &Arc<Self>, key: BlockKey, error: Option<RemoteError>) {
        let mut state = self.lock();
        state.running -= 1;
        if let Some(block) = state.blocks.get_mut(&key) {
            block.running = false;
            block.error = error;
        }
        state.note_use(key);
        self.pump(&mut state);
        drop(state);
        self.news.notify_all();
    }
}

impl NetworkState {
    fn block(&self, (number, at): BlockKey) -> Option<(BlockKey, &Block)> {
        let (key, block) = self.blocks.range((number, 0)..=(number, at)).next_back()?;
        (at < block.end).then_some((*key, block))
    }

    /// Copy the bytes from a position, as far as they have come; returns their number, 0 for none yet.
    fn take(&mut self, (number, at): BlockKey, out: &mut [u8]) -> Result<usize, RemoteError> {
        let last = self.blocks.range_mut((number, 0)..=(number, at)).next_back();
        let Some((&key, block)) = last.filter(|(_, block)| at < block.end) else { return Ok(0) };
        let offset = (at - key.1) as usize;
        let here = &block.data[offset.min(block.data.len())..];
        let count = here.len().min(out.len());
        block.is_wanted = count == 0;
        if count == 0 {
            return block.error.clone().map_or(Ok(0), Err);
        }
        out[..count].copy_from_slice(&here[..count]);
        // where ranges have gaps between them, a request may begin or end in a gap
        block.ends.0 |= offset as u64 <= NEAR;
        block.ends.1 |= at + count as u64 + NEAR >= block.end;
        block.read += count as u64;
        self.note_use(key);
        Ok(count)
    }

    /// List a block that is not needed any more, or probably not.
    fn note_use(&mut self, key: BlockKey) {
        let Some(block) = self.blocks.get_mut(&key) else { return };
        let cost = block.cost(key.1);
        let state = match block.ends {
            (true, true) if block.running => return,
            (true, true) if block.read >= block.end - key.1 => Use::Done,
            (true, true) => Use::Passed,
            _ => return,
        };
        match (std::mem::replace(&mut block.state, state), state) {
            (before, now) if before == now => {}
            (_, Use::Passed) => {
                self.passed.push_back(key);
                self.passed_bytes += cost;
            }
            (before, _) => {
                self.done.push_back(key);
                self.passed_bytes -= if before == Use::Passed { cost } else { 0 };
            }
        }
    }

    /// The part of a range without a block: from its first such byte to the next block.
    fn missing(&self, (number, start): BlockKey, end: u64) -> Range<u64> {
        let mut at = start;
        while let Some((_, block)) = self.block((number, at)) {
            at = block.end;
        }
        let at = at.min(end);
        let next = self.blocks.range((number, at)..(number, end)).next();
        at..next.map_or(end, |(key, _)| key.1)
    }

    /// The length to request where `needed` bytes were not announced: more with each read that
    /// continues the previous one.
    fn unannounced(&mut self, (number, at): BlockKey, needed: u64) -> u64 {
        let trail = self.trails.iter().position(|(key, _)| *key == (number, at));
        let more = trail.and_then(|place| self.trails.remove(place)).map_or(0, |(_, more)| more);
        let len = needed.max(more).clamp(UNANNOUNCED, REQUEST_BYTES);
        let end = self.missing((number, at), at + len).end;
        self.trails.push_front(((number, end), (2 * len).min(REQUEST_BYTES)));
        self.trails.truncate(TRAILS);
        end - at
    }

    /// Drop blocks that were read until `needed` bytes are free; returns whether they are.
    fn make_space(&mut self, needed: u64) -> bool {
        while self.used + needed > BUDGET {
            let is_spare = self.passed_bytes <= SPARE;
            let passed = || if is_spare { None } else { self.passed.pop_front() };
            let Some(key) = self.done.pop_front().or_else(passed) else { return false };
            // another block may have the key by now
            if self.blocks.get(&key).is_some_and(|block| block.state != Use::Needed) {
                self.remove(key);
            }
        }
        true
    }

    fn evict_any(&mut self, needed: u64) {
        let idle = self.blocks.iter().filter(|(_, block)| !block.running && !block.is_wanted);
        let idle: Vec<BlockKey> = idle.map(|(key, _)| *key).collect();
        for key in idle {
            if self.used + needed <= BUDGET {
                return;
            }
            self.remove(key);
        }
    }

    fn remove(&mut self, key: BlockKey) {
        if let Some(block) = self.blocks.remove(&key) {
            self.used -= block.cost(key.1);
            if block.state == Use::Passed {
                self.passed_bytes -= block.cost(key.1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request of ranges that are near each other may end in a gap, of which nothing is read.
    #[test]
    fn blocks_go_that_end_in_a_gap() {
        let mut state = NetworkState::default();
        for number in 1..4 {
            let end = REQUEST_BYTES;
            let block = Block { end, data: vec![7; end as usize], ..Block::default() };
            state.used += block.cost(0);
            state.blocks.insert((number, 0), block);
            for at in [10, end - 100] {
                assert_eq!(state.take((number, at), &mut [0; 10]).unwrap(), 10);
            }
        }
        assert!(state.make_space(BUDGET - SPARE) && state.blocks.len() < 3);
    }

    /// Bytes that come later would belong to a new block of the same key.
    #[test]
    fn blocks_stay_that_are_on_their_way() {
        let mut state = NetworkState::default();
        let len = 2 * SPARE;
        let block =
            Block { end: len, data: vec![7; len as usize], running: true, ..Block::default() };
        state.used += block.cost(0);
        state.blocks.insert((1, 0), block);
        assert_eq!(state.take((1, 0), &mut vec![0; len as usize]).unwrap(), len as usize);
        assert!(!state.make_space(BUDGET));
        state.blocks.get_mut(&(1, 0)).unwrap().running = false;
        state.note_use((1, 0));
        assert!(state.make_space(BUDGET) && state.blocks.is_empty() && state.passed_bytes == 0);
    }
}
