//! Quantiles and histograms, from counts of values.

use super::block::BLOCK;
use super::{Keys, Statistics};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantile {
    /// The fraction of elements up to the quantile: 0.5 for the median.
    pub part: f64,
    /// The value, interpolated as by np.quantile.
    pub value: f64,
    /// The greatest error of `value`: the width of its bin, or 0 if the bin holds a single value.
    pub error: f64,
}

/// A bar of a histogram: the values from `from`, and below `to`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    pub from: f64,
    pub to: f64,
    pub count: u64,
}

/// The values from `low` to `high`, both included.
struct Bin {
    low: f64,
    high: f64,
    count: u64,
}

impl Statistics {
    /// The bins of all values except NaN, ascending, between the smallest and the largest element.
    fn sorted(&self) -> Vec<Bin> {
        let Some((least, greatest)) = self.summary.range else { return Vec::new() };
        let least = self.summary.value(&least);
        let greatest = self.summary.value(&greatest);
        let keys = self.summary.of.keys;
        // the ends of a bin may be keys of NaN, which `max` and `min` drop
        let bin = |(low, high, count)| Bin {
            low: keys.value(low).max(least),
            high: keys.value(high).min(greatest),
            count,
        };
        self.tally.bins().into_iter().map(bin).collect()
    }

    /// Quantiles of the elements except NaN, interpolated as by np.quantile; NaN without elements.
    pub fn quantiles(&self, parts: &[f64]) -> Vec<Quantile> {
        let bins = self.sorted();
        let count: u64 = bins.iter().map(|bin| bin.count).sum();
        let quantile = |&part: &f64| {
            let position = part.clamp(0.0, 1.0) * count.saturating_sub(1) as f64;
            let below = position.floor();
            let above = position.ceil();
            let (a, error) = at_rank(&bins, below as u64);
            let (b, other) = at_rank(&bins, above as u64);
            let along = position - below;
            let value = if along == 0.0 || a == b {
                a
            } else if along >= 0.5 {
                b - (b - a) * (1.0 - along)
            } else {
                a + (b - a) * along
            };
            Quantile { part, value, error: error.max(other) }
        };
        parts.iter().map(quantile).collect()
    }

    /// The smallest and the largest finite element; where infinities exist, up to the width of a bin.
    pub fn finite_range(&self) -> Option<(f64, f64)> {
        let bins = self.histogram_bins();
        Some((bins.first()?.low, bins.last()?.high))
    }

    fn histogram_bins(&self) -> Vec<Bin> {
        let mut bins = self.sorted();
        for bin in &mut bins {
            (bin.low, bin.high) = (bin.low.max(f64::MIN), bin.high.min(f64::MAX));
        }
        // clipping turned bins that hold only infinities inside out
        bins.retain(|bin| bin.low <= bin.high);
        bins
    }

    /// Count the finite elements in at most `most` bars of equal width; few integers get one bar each.
    pub fn histogram(&self, most: usize) -> Vec<Bar> {
        let bins = self.histogram_bins();
        let (Some(first), Some(last)) = (bins.first(), bins.last()) else { return Vec::new() };
        let low = first.low;
        let high = last.high;
        let is_integer = !self.summary.is_float();
        let few = is_integer && high - low < most as f64;
        let bars = if low == high {
            1
        } else if few {
            (high - low) as usize + 1
        } else {
            most
        };
        let end = if few { high + 1.0 } else { high };
        // divided first: the difference of two doubles may be infinite
        let width = end / bars as f64 - low / bars as f64;
        let edge = |bar: usize| if bar == bars { end } else { low + width * bar as f64 };
        let mut found: Vec<Bar> =
            (0..bars).map(|bar| Bar { from: edge(bar), to: edge(bar + 1), count: 0 }).collect();
        for bin in bins {
            let middle = bin.low / 2.0 + bin.high / 2.0;
            let mut bar = ((middle - low) / width) as usize;
            bar = bar.min(bars - 1);
            found[bar].count += bin.count;
        }
        found
    }
}

fn at_rank(bins: &[Bin], rank: u64) -> (f64, f64) {
    let mut before = 0;
    for bin in bins {
        if rank < before + bin.count {
            if bin.low == bin.high {
                return (bin.low, 0.0);
            }
            let along = ((rank - before) as f64 + 0.5) / bin.count as f64;
            let value = bin.low * (1.0 - along) + bin.high * along;
            return (value, bin.high - bin.low);
        }
        before += bin.count;
    }
    (f64::NAN, 0.0)
}

// Counts of values, in bounded memory.
//
// Values are counted by keys of 64 bits that sort as the values do. When there are too many keys, the lowest
// bit of all keys is dropped, again and again: bins become twice as wide until few enough remain. Their width
// follows from the values alone, not from their order or the threads: a part of the values never needs wider
// bins than all of them.

const MOST_BINS: usize = 1 << 14;

/// The slots of the hash table: a power of two, twice the number of bins, which leaves room for another
/// block.
const SLOTS: usize = 2 * MOST_BINS;

/// The number of high bits of a key that select the page of its bin: sign and exponent of a float.
const PAGE_BITS: u32 = 12;

/// The number of dropped bits from which bins are counted on pages; a page has at most 2^10 bins then.
const PAGES_FROM: u32 = u64::BITS - PAGE_BITS - 10;

/// The number of dropped bits that always leaves few enough bins.
const MOST_DROPPED: u32 = u64::BITS - PAGE_BITS;

/// Counts of values by keys whose low bits are dropped.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    bins: usize,
    dropped: u32,
    counts: Counts,
}

const NO_PAGE: u32 = u32::MAX;

#[derive(Clone, Debug)]
enum Counts {
    /// The counts of keys that lie close together, from the bin `first`.
    Close { first: u64, counts: Vec<u64> },
    /// A hash table with open addressing: keys without the dropped bits, and their counts. A count of 0 marks
    /// a free slot.
    Hashed(Vec<(u64, u64)>),
    /// For each value of the [`PAGE_BITS`], the start of its page in `counts`, or [`NO_PAGE`].
    Paged { pages: Box<[u32; 1 << PAGE_BITS]>, counts: Vec<u64> },
}

impl Tally {
    pub(super) fn of(keys: Keys) -> Tally {
        Tally::dropping(keys.fewer().min(MOST_DROPPED))
    }

    fn dropping(dropped: u32) -> Tally {
        let counts = if dropped < PAGES_FROM {
            Counts::Close { first: 0, counts: Vec::new() }
        } else {
            Counts::Paged { pages: Box::new([NO_PAGE; 1 << PAGE_BITS]), counts: Vec::new() }
        };
        Tally { bins: 0, dropped, counts }
    }

    /// Add the keys of a block, each with its count.
    pub(super) fn add(&mut self, keys: impl Iterator<Item = (u64, u64)>) {
        let mut left = Vec::new();
        self.count(keys, &mut left);
        while !left.is_empty() {
            self.make_room(&left);
            let keys = std::mem::take(&mut left);
            self.count(keys.into_iter(), &mut left);
        }
        if self.bins > MOST_BINS {
            self.widen(self.dropped + 1);
        }
    }

    /// Count keys; keys without room are put in `left`.
    fn count(&mut self, keys: impl Iterator<Item = (u64, u64)>, left: &mut Vec<(u64, u64)>) {
        let dropped = self.dropped;
        self.bins += match &mut self.counts {
            Counts::Close { first, counts } => {
                let first = *first;
                count_at(counts, keys, left, |key| (key >> dropped).wrapping_sub(first))
            }
            Counts::Hashed(table) => {
                let mut bins = 0;
                for (key, more) in keys {
                    let counted = hashed(table, key >> dropped);
                    bins += usize::from(*counted == 0);
                    *counted += more;
                }
                bins
            }
            Counts::Paged { pages, counts } => {
                let within = (1 << (u64::BITS - PAGE_BITS - dropped)) - 1;
                let begins = |key: u64| u64::from(pages[(key >> (u64::BITS - PAGE_BITS)) as usize]);
                count_at(counts, keys, left, |key| begins(key) | key >> dropped & within)
            }
        };
    }

    /// Make room for keys, at least one, or for those close to the first key.
    fn make_room(&mut self, keys: &[(u64, u64)]) {
        let dropped = self.dropped;
        match &mut self.counts {
            Counts::Close { first, counts } if counts.is_empty() => {
                counts.resize(SLOTS, 0);
                *first = (keys[0].0 >> dropped).saturating_sub(SLOTS as u64 / 2);
            }
            Counts::Paged { pages, counts } => {
                let size = 1 << (u64::BITS - PAGE_BITS - dropped);
                for (key, _) in keys {
                    let page = &mut pages[(key >> (u64::BITS - PAGE_BITS)) as usize];
                    if *page == NO_PAGE {
                        *page = counts.len() as u32;
                        counts.resize(counts.len() + size, 0);
                    }
                }
            }
            Counts::Close { .. } | Counts::Hashed(_) => {
                let counted = self.full();
                self.bins = 0;
                self.counts = Counts::Hashed(vec![(0, 0); SLOTS]);
                self.count(counted.into_iter(), &mut Vec::new());
            }
        }
    }

    /// The first key of each bin, and its count, in any order.
    fn full(&self) -> Vec<(u64, u64)> {
        let mut full = Vec::with_capacity(self.bins);
        match &self.counts {
            Counts::Close { first, counts } => {
                let bins = (0..).zip(counts).filter(|(_, count)| **count > 0);
                full.extend(bins.map(|(at, &count)| ((first + at) << self.dropped, count)));
            }
            Counts::Hashed(table) => {
                full.extend(table.iter().map(|&(bin, count)| (bin << self.dropped, count)));
            }
            Counts::Paged { pages, counts } => {
                let size = 1 << (u64::BITS - PAGE_BITS - self.dropped);
                let pages = (0u64..).zip(pages.iter()).filter(|(_, begins)| **begins != NO_PAGE);
                for (page, &begins) in pages {
                    let counts = &counts[begins as usize..][..size];
                    let first = page << (u64::BITS - PAGE_BITS);
                    full.extend(
                        (0u64..)
                            .zip(counts)
                            .map(|(at, &count)| (first | at << self.dropped, count)),
                    );
                }
            }
        }
        full.retain(|(_, count)| *count > 0);
        full
    }

    /// Drop at least `dropped` low bits, until few enough bins remain.
    fn widen(&mut self, dropped: u32) {
        if self.dropped >= dropped {
            return;
        }
        let mut old = self.full();
        old.sort_unstable();
        let differ = |dropped: u32| {
            old.windows(2).filter(move |it| it[0].0 >> dropped != it[1].0 >> dropped)
        };
        let is_enough = |dropped: &u32| differ(*dropped).count() < MOST_BINS;
        *self = Tally::dropping((dropped..MOST_DROPPED).find(is_enough).unwrap_or(MOST_DROPPED));
        self.add(old.into_iter());
    }

    pub(super) fn merge(&mut self, other: Tally) {
        self.widen(other.dropped);
        other.full().chunks(BLOCK).for_each(|keys| self.add(keys.iter().copied()));
    }

    /// The first key, the last key and the count of each bin, ascending.
    pub(super) fn bins(&self) -> Vec<(u64, u64, u64)> {
        let width = (1u64 << self.dropped) - 1;
        let full = self.full().into_iter();
        let mut bins: Vec<(u64, u64, u64)> =
            full.map(|(key, count)| (key, key | width, count)).collect();
        bins.sort_unstable();
        bins
    }
}

/// Count keys in slots; keys beyond the last slot are put in `left`. Returns how many slots were free.
#[inline]
fn count_at(
    counts: &mut [u64],
    keys: impl Iterator<Item = (u64, u64)>,
    left: &mut Vec<(u64, u64)>,
    slot: impl Fn(u64) -> u64,
) -> usize {
    let mut bins = 0;
    for (key, more) in keys {
        match counts.get_mut(slot(key) as usize) {
            Some(counted) => {
                bins += usize::from(*counted == 0);
                *counted += more;
            }
            None => left.push((key, more)),
        }
    }
    bins
}

/// The count of a bin in a hash table that has room.
#[inline]
fn hashed(table: &mut [(u64, u64)], bin: u64) -> &mut u64 {
    let mut slot = (bin.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 49) as usize;
    while table[slot].1 > 0 && table[slot].0 != bin {
        slot = (slot + 1) % SLOTS;
    }
    table[slot].0 = bin;
    &mut table[slot].1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_do_not_depend_on_the_order() {
        let keys: Vec<u64> =
            (0..60_000u64).map(|it| it.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 20).collect();
        let tally = |keys: &[u64]| {
            let mut tally = Tally::of(Keys::Float);
            keys.chunks(BLOCK).for_each(|keys| tally.add(keys.iter().map(|&key| (key, 1))));
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
        let mut tally = Tally::of(Keys::Float);
        (0..100_000u64).for_each(|it| tally.add(std::iter::once((it % 16_384, 1))));
        assert!(tally.dropped == 0);
        assert_eq!(tally.bins()[5], (5, 5, 7));
    }
}
