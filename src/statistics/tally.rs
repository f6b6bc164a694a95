//! How often which values occur, in bounded memory.
//!
//! Values are counted by keys of 64 bits whose order is theirs. When there are too many keys, the
//! lowest bit of all is dropped, again and again: bins become twice as wide until few enough are left.
//! How wide they are in the end follows from the values alone, not from the order or the threads
//! that they came in: whoever holds part of the values never has wider bins than all together need.

/// The most bins.
const MOST_BINS: usize = 1 << 14;

/// The places of the table, a power of two, twice as many as bins.
const PLACES: usize = 2 * MOST_BINS;

/// Counts of values.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    /// Keys and their counts, at the place that a hash of the key names or behind it; a count of 0
    /// is a free place.
    table: Vec<(u64, u64)>,
    /// How many bins there are.
    bins: usize,
    /// How many low bits of keys are dropped.
    dropped: u32,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally { table: vec![(0, 0); PLACES], bins: 0, dropped: 0 }
    }
}

impl Tally {
    /// Count a value by its key.
    #[inline]
    pub(super) fn add(&mut self, key: u64) {
        self.insert(key >> self.dropped, 1);
    }

    #[inline]
    fn insert(&mut self, bin: u64, count: u64) {
        let mut place = (bin.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 49) as usize;
        loop {
            let (found, counted) = &mut self.table[place];
            if *counted > 0 && *found == bin {
                *counted += count;
                return;
            }
            if *counted == 0 {
                (*found, *counted) = (bin, count);
                self.bins += 1;
                if self.bins > MOST_BINS {
                    self.widen(self.dropped + 1);
                }
                return;
            }
            place = (place + 1) % PLACES;
        }
    }

    /// Drop low bits until `dropped` are dropped and few enough bins are left.
    fn widen(&mut self, dropped: u32) {
        while self.dropped < dropped || self.bins > MOST_BINS {
            self.dropped += 1;
            self.bins = 0;
            let old = std::mem::replace(&mut self.table, vec![(0, 0); PLACES]);
            for (bin, count) in old.into_iter().filter(|(_, count)| *count > 0) {
                // never more bins than before, so this does not widen them again
                self.insert(bin >> 1, count);
            }
        }
    }

    /// Add the counts of another one.
    pub(super) fn merge(&mut self, mut other: Tally) {
        self.widen(other.dropped);
        other.widen(self.dropped);
        for (bin, count) in other.table.into_iter().filter(|(_, count)| *count > 0) {
            let more = self.dropped - other.dropped;
            self.insert(bin >> more, count);
        }
    }

    /// The first and the last key of each bin, and its count, in the order of the values.
    pub(super) fn bins(&self) -> Vec<(u64, u64, u64)> {
        let full = self.table.iter().filter(|(_, count)| *count > 0);
        let width = (1u64 << self.dropped) - 1;
        let mut bins: Vec<(u64, u64, u64)> = full
            .map(|&(bin, count)| (bin << self.dropped, (bin << self.dropped) | width, count))
            .collect();
        bins.sort_unstable();
        bins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_do_not_depend_on_the_order() {
        let keys: Vec<u64> =
            (0..60_000u64).map(|it| it.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 20).collect();
        let tally = |keys: &[u64]| {
            let mut tally = Tally::default();
            keys.iter().for_each(|&key| tally.add(key));
            tally
        };
        let whole = tally(&keys);
        assert!(whole.dropped > 0 && whole.bins().len() <= MOST_BINS);
        assert_eq!(whole.bins().iter().map(|(_, _, count)| count).sum::<u64>(), 60_000);
        for at in [1, 100, 20_000, 59_000] {
            let mut merged = tally(&keys[at..]);
            merged.merge(tally(&keys[..at]));
            assert_eq!(merged.bins(), whole.bins());
        }
    }

    #[test]
    fn few_values_are_counted_exactly() {
        let mut tally = Tally::default();
        (0..100_000u64).for_each(|it| tally.add(it % 16_384));
        assert!(tally.dropped == 0);
        assert_eq!(tally.bins()[5], (5, 5, 7));
    }
}
