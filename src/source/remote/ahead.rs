//! Requests for files ahead of their use: the chunks of a Zarr array, each of which is a file.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use super::super::open::{OpenError, Opened};
use super::super::{Source, SourceResult, checked_len};
use super::RemoteError;
use super::address::Address;
use super::file::{FirstAnswer, WHOLE_BYTES, begin, opened};
use super::network::{BUDGET, Network, Pending, REQUESTS};
use super::wire::locked;

/// Whole files that are requested ahead, as many at a time as requests and memory allow. As a [`Source`] this
/// has no bytes, but says whether more requests are useful.
pub struct Ahead {
    /// The network, whose connections last from one file to the next.
    network: Arc<Network>,
    state: Mutex<AheadState>,
}

#[derive(Default)]
struct AheadState {
    /// Files to be requested, and the most bytes of each.
    queue: VecDeque<(Address, u64)>,
    begun: HashMap<Address, (u64, Pending<FirstAnswer>)>,
    bytes: u64,
}

impl Ahead {
    pub fn new() -> Result<Ahead, RemoteError> {
        Ok(Ahead { network: Network::get()?, state: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, AheadState> {
        locked(&self.state)
    }

    /// Expect a file to be opened soon, which probably has at most `bytes` bytes.
    pub fn expect(&self, address: &Address, bytes: u64) {
        let mut state = self.lock();
        if !state.begun.contains_key(address) && !state.queue.iter().any(|(it, _)| it == address) {
            state.queue.push_back((address.clone(), bytes.min(WHOLE_BYTES)));
            self.pump(&mut state);
        }
    }

    fn pump(&self, state: &mut AheadState) {
        while let Some((_, bytes)) = state.queue.front()
            && state.begun.len() < REQUESTS
            && (state.bytes + bytes <= BUDGET || state.begun.is_empty())
            && let Some((address, bytes)) = state.queue.pop_front()
        {
            let pending = begin(&self.network, &address, WHOLE_BYTES);
            state.bytes += bytes;
            state.begun.insert(address, (bytes, pending));
        }
    }

    /// Open a file that will be read as a whole, and may be requested already.
    pub fn open_whole(&self, address: &Address) -> Result<Opened, OpenError> {
        let mut state = self.lock();
        state.queue.retain(|(queued, _)| queued != address);
        let begun = state.begun.remove(address);
        let pending = match begun {
            Some((bytes, pending)) => {
                state.bytes -= bytes;
                self.pump(&mut state);
                pending
            }
            None => begin(&self.network, address, WHOLE_BYTES),
        };
        drop(state);
        opened(Arc::clone(&self.network), pending.wait()?)
    }
}

impl Source for Ahead {
    fn len(&self) -> u64 {
        0
    }

    fn window<'a>(&'a self, range: Range<u64>, _: &'a mut Vec<u8>) -> SourceResult<&'a [u8]> {
        checked_len(&range, 0).map(|_| &[][..])
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn is_hungry(&self) -> bool {
        self.lock().queue.len() < REQUESTS
    }
}
