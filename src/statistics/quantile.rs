//! Quantiles and a histogram from counted values.

use super::Statistics;

/// A quantile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantile {
    /// Of which part of the elements: 0.5 is the median.
    pub part: f64,
    /// The value, as np.quantile has it.
    pub value: f64,
    /// How far the value may be from the true one: the width of its bin; 0 where that holds one value.
    pub error: f64,
}

/// A bar of a histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// The smallest value that it stands for.
    pub from: f64,
    /// Where the next one begins; the last bar holds this value too.
    pub to: f64,
    /// How many elements it counts.
    pub count: u64,
}

/// A bin of values.
struct Bin {
    low: f64,
    high: f64,
    count: u64,
}

impl Statistics {
    /// The values that are no NaN, in bins whose ends lie between the smallest and the largest.
    fn sorted(&self) -> Vec<Bin> {
        let Some((least, greatest)) = self.summary.range else { return Vec::new() };
        let least = self.summary.value(&least);
        let greatest = self.summary.value(&greatest);
        let keys = self.summary.keys;
        // keys at the ends may be those of NaN, which these drop
        let bin = |(low, high, count)| Bin {
            low: keys.value(low).max(least),
            high: keys.value(high).min(greatest),
            count,
        };
        self.tally.bins().into_iter().map(bin).collect()
    }

    /// Quantiles of the elements that are no NaN, each between the two elements that are nearest,
    /// as np.quantile has it; NaN without elements.
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

    /// The smallest and the largest finite element, to the width of their bins where there are
    /// infinities too.
    pub fn finite_range(&self) -> Option<(f64, f64)> {
        let bins = self.histogram_bins();
        Some((bins.first()?.low, bins.last()?.high))
    }

    /// The bins of the finite elements.
    fn histogram_bins(&self) -> Vec<Bin> {
        let mut bins = self.sorted();
        for bin in &mut bins {
            (bin.low, bin.high) = (bin.low.max(f64::MIN), bin.high.min(f64::MAX));
        }
        // the bin of an infinity that stands alone has been turned inside out
        bins.retain(|bin| bin.low <= bin.high);
        bins
    }

    /// How the finite elements lie in at most `most` bars of one width; integers are not divided.
    pub fn histogram(&self, most: usize) -> Vec<Bar> {
        let bins = self.histogram_bins();
        let (Some(first), Some(last)) = (bins.first(), bins.last()) else { return Vec::new() };
        let low = first.low;
        let high = last.high;
        let is_integer = !self.summary.is_float();
        let few = is_integer && high - low < most as f64;
        let bars = match low == high {
            true => 1,
            false if few => (high - low) as usize + 1,
            false => most,
        };
        let end = if few { high + 1.0 } else { high };
        // divided first, as the difference of doubles may be infinite
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

/// The value of a rank, and how wide its bin is.
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

// How often which values occur, in bounded memory.
//
// Values are counted by keys of 64 bits whose order is theirs. When there are too many keys, the
// lowest bit of all is dropped, again and again: bins become twice as wide until few enough are left.
// How wide they are in the end follows from the values alone, not from the order or the threads
// that they came in: whoever holds part of the values never has wider bins than all together need.

const MOST_BINS: usize = 1 << 14;

/// The places of the table, a power of two, twice as many as bins.
const PLACES: usize = 2 * MOST_BINS;

/// Counts of values.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    /// Keys and their counts, at the place that a hash of the key names or behind it; a count of 0
    /// is a free place.
    table: Vec<(u64, u64)>,
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
