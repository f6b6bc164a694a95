//! Statistics of the elements of a tensor, in one pass and bounded memory.
//!
//! [`Statistics`] take elements in any portions; the statistics of several threads are
//! [merged](Statistics::merge). How elements were divided does not matter: sums are exact and
//! rounded once at the end, and the width of bins follows from the values. A [`Summary`] has no
//! bins, and is small enough for many slices to have one each; a [`Reduction`] turns a summary
//! ([`Folded`]) into one element.
//!
//! ```
//! use tslice::dtype::{Endian, Scalar};
//! use tslice::statistics::Statistics;
//! let mut statistics = Statistics::new(Scalar::F32, Endian::Little).unwrap();
//! let bytes: Vec<u8> = [1.0f32, f32::NAN, 4.0].iter().flat_map(|it| it.to_le_bytes()).collect();
//! statistics.add(&bytes, 0);
//! assert_eq!((statistics.summary.mean(), statistics.summary.deviation()), (Some(2.5), Some(1.5)));
//! assert_eq!((statistics.summary.count, statistics.summary.nan), (3, 1));
//! assert_eq!(statistics.quantiles(&[0.5])[0].value, 2.5);
//! ```

use quantile::Tally;

use crate::dtype::{Endian, Scalar};

mod block;
mod columns;
mod complex;
mod exact_sum;
mod quantile;
mod reduction;
mod summary;

pub use columns::{Columns, Reach};
pub use complex::ComplexSummary;
pub use quantile::{Bar, Quantile};
pub use reduction::Reduction;
pub use summary::{Extreme, Facts, Summary, Sums};

#[derive(Clone, Debug)]
pub struct Statistics {
    pub summary: Summary,
    tally: Tally,
}

impl Statistics {
    pub fn new(scalar: Scalar, endian: Endian) -> Option<Statistics> {
        let summary = Summary::new(scalar, endian, Facts::ALL)?;
        let tally = Tally::of(summary.of.keys);
        Some(Statistics { summary, tally })
    }

    /// Add whole elements; the first has number `first` in the tensor.
    pub fn add(&mut self, bytes: &[u8], first: u64) {
        let Statistics { summary, tally } = self;
        summary.add_counted(bytes, first, Some(tally));
    }

    pub fn merge(&mut self, other: Statistics) {
        self.summary.merge(other.summary);
        self.tally.merge(other.tally);
    }
}

/// A result that elements are folded into, in bounded memory, however they are divided.
pub trait Fold: Clone + Send + Sync {
    fn bytes(&self) -> usize;

    /// Add whole elements; the first has number `first`.
    fn add(&mut self, bytes: &[u8], first: u64);

    fn merge(&mut self, other: Self);

    /// The summaries to which columns of rows are added (two for complex elements), and the bytes
    /// that each column needs until then; `None` where columns cannot give the wanted result.
    fn by_columns(&mut self) -> Option<(&mut [Summary], usize)> {
        None
    }
}

impl Fold for Summary {
    fn bytes(&self) -> usize {
        self.bytes()
    }

    fn add(&mut self, bytes: &[u8], first: u64) {
        self.add(bytes, first);
    }

    fn merge(&mut self, other: Summary) {
        self.merge(other);
    }
}

#[derive(Clone, Debug)]
pub enum Folded {
    /// Real numbers, or times as their stored integers; NaT is the least of these.
    Real(Summary),
    Complex(Box<ComplexSummary>),
}

impl Fold for Folded {
    fn bytes(&self) -> usize {
        match self {
            Folded::Real(summary) => summary.bytes(),
            Folded::Complex(summary) => summary.bytes(),
        }
    }

    fn add(&mut self, bytes: &[u8], first: u64) {
        match self {
            Folded::Real(summary) => summary.add(bytes, first),
            Folded::Complex(summary) => summary.add(bytes, first),
        }
    }

    fn merge(&mut self, other: Folded) {
        match (self, other) {
            (Folded::Real(ours), Folded::Real(theirs)) => ours.merge(theirs),
            (Folded::Complex(ours), Folded::Complex(theirs)) => ours.merge(*theirs),
            // never: the elements of one tensor are of one kind
            _ => {}
        }
    }

    fn by_columns(&mut self) -> Option<(&mut [Summary], usize)> {
        let summaries = match self {
            Folded::Real(summary) => std::slice::from_mut(summary),
            Folded::Complex(summary) => summary.parts_of_sums()?,
        };
        let bytes = Columns::bytes(summaries.first()?)? * summaries.len();
        Some((summaries, bytes))
    }
}

/// Conversion of values to keys of 64 bits that sort as the values do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    Float,
    /// Integers of 64 bits less so many; the key has as many zeros below the integer.
    Signed(u32),
    Unsigned(u32),
}

const SIGN: u64 = 1 << 63;

impl Keys {
    /// The key of a float; -0 has the key of 0.
    #[inline(always)]
    pub(super) fn of_float(value: f64) -> u64 {
        let bits = (value + 0.0).to_bits();
        if bits & SIGN == 0 { bits | SIGN } else { !bits }
    }

    /// The key of `value`, which is not NaN; integers must have less than 53 bits.
    #[inline(always)]
    pub(super) fn of_value(self, value: f64) -> u64 {
        match self {
            Keys::Float => Keys::of_float(value),
            Keys::Signed(_) | Keys::Unsigned(_) => self.of_integer(value as i64 as u64),
        }
    }

    /// The key of an integer extended to 64 bits, with its sign.
    #[inline(always)]
    pub(super) fn of_integer(self, bits: u64) -> u64 {
        match self {
            Keys::Float => bits,
            Keys::Signed(fewer) => bits << fewer ^ SIGN,
            Keys::Unsigned(fewer) => bits << fewer,
        }
    }

    /// The number of low bits that are 0 in all keys.
    pub(super) fn fewer(self) -> u32 {
        match self {
            Keys::Float => 0,
            Keys::Signed(fewer) | Keys::Unsigned(fewer) => fewer,
        }
    }

    pub(super) fn value(self, key: u64) -> f64 {
        match self {
            Keys::Float => f64::from_bits(if key & SIGN == 0 { !key } else { key ^ SIGN }),
            Keys::Signed(fewer) => ((key ^ SIGN) as i64 >> fewer) as f64,
            Keys::Unsigned(fewer) => (key >> fewer) as f64,
        }
    }
}
