//! Reading ahead in a source whose bytes are read in the order of another tensor's chunks.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::runs::Runs;
use crate::source::{Advice, Source};

/// The stretches of a source that were read ahead already, a bit for each. For a system that reads ahead by itself,
/// every row of a chunk is a new beginning, for which it may read megabytes.
pub(super) struct ReadAhead(Vec<AtomicU64>);

/// The bytes of a stretch.
const STRETCH: u64 = 128 << 10;

impl ReadAhead {
    /// For contiguous bytes of a source on this machine: elsewhere every read is a request.
    pub(super) fn new(source: &dyn Source, runs: &Runs) -> Option<ReadAhead> {
        if source.is_remote() || !runs.axes.is_empty() {
            return None;
        }
        source.advise(0..source.len(), Advice::Random);
        let words = source.len().div_ceil(STRETCH * u64::from(u64::BITS));
        Some(ReadAhead((0..words).map(|_| AtomicU64::new(0)).collect()))
    }

    /// Read the stretches of a range ahead that were not before.
    pub(super) fn expect(&self, range: Range<u64>, source: &dyn Source) {
        for number in range.start / STRETCH..range.end.div_ceil(STRETCH) {
            let bit = 1 << (number % u64::from(u64::BITS));
            let Some(word) = self.0.get((number / u64::from(u64::BITS)) as usize) else { break };
            if word.load(Ordering::Relaxed) & bit == 0
                && word.fetch_or(bit, Ordering::Relaxed) & bit == 0
            {
                let end = (number + 1) * STRETCH;
                source.advise(number * STRETCH..end.min(source.len()), Advice::WillNeed);
            }
        }
    }
}
