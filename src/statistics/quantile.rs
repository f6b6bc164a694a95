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
        let (least, greatest) = (self.summary.value(&least), self.summary.value(&greatest));
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
            let (below, above) = (position.floor(), position.ceil());
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
        let (low, high) = (first.low, last.high);
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
