//! Statistics of the elements of a tensor, in one pass and bounded memory.
//!
//! [`Statistics`] take elements in any portions, and those of several threads are
//! [merged](Statistics::merge). Nothing depends on how elements were divided: sums are exact and
//! rounded once at the end, and the bins of values are as wide as the values ask for. A [`Summary`] is
//! what they are without the bins, small enough to have one for each of many slices; a [`Reduction`]
//! makes one element of it, or of what is known of complex numbers and times ([`Folded`]).
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

mod complex;
mod exact_sum;
mod quantile;
mod reduction;
mod summary;

pub use complex::ComplexSummary;
pub use quantile::{Bar, Quantile};
pub use reduction::Reduction;
pub use summary::{Extreme, Summary, Sums};

/// Statistics of real numbers.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// All but how the values are distributed.
    pub summary: Summary,
    tally: Tally,
}

impl Statistics {
    /// `None` for elements that are no real numbers of whole bytes.
    pub fn new(scalar: Scalar, endian: Endian) -> Option<Statistics> {
        let summary = Summary::new(scalar, endian, Sums::Squares)?;
        Some(Statistics { summary, tally: Tally::default() })
    }

    /// Take whole elements into account, of which the first is number `first` of the tensor.
    pub fn add(&mut self, bytes: &[u8], first: u64) {
        let Statistics { summary, tally } = self;
        summary.add_with(bytes, first, &mut |key| tally.add(key));
    }

    /// Add the statistics of other elements of the same tensor.
    pub fn merge(&mut self, other: Statistics) {
        self.summary.merge(other.summary);
        self.tally.merge(other.tally);
    }
}

/// What is known of any number of elements, in bounded memory. It does not depend on how they were divided.
pub trait Fold: Clone + Send + Sync {
    /// About how many bytes it takes.
    fn bytes(&self) -> usize;

    /// Take whole elements into account, of which the first is number `first`.
    fn add(&mut self, bytes: &[u8], first: u64);

    /// Add what is known of other elements.
    fn merge(&mut self, other: Self);
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

/// What is known of the elements of a slice that is reduced.
#[derive(Clone, Debug)]
pub enum Folded {
    /// Real numbers; datetimes and lengths of time as the integers that they are, NaT the least one.
    Real(Summary),
    /// Complex numbers.
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
            // elements of one tensor are of one kind
            _ => {}
        }
    }
}

/// How keys are made of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// Of doubles.
    Float,
    /// Of integers that may be negative.
    Signed,
    /// Of those that may not.
    Unsigned,
}

const SIGN: u64 = 1 << 63;

impl Keys {
    /// The key of a double; -0 has that of 0.
    pub(super) fn of_float(value: f64) -> u64 {
        let bits = (value + 0.0).to_bits();
        if bits & SIGN == 0 { bits | SIGN } else { !bits }
    }

    /// The key of an integer, extended to 64 bits.
    pub(super) fn of_integer(self, bits: u64) -> u64 {
        if self == Keys::Signed { bits ^ SIGN } else { bits }
    }

    pub(super) fn value(self, key: u64) -> f64 {
        match self {
            Keys::Float => f64::from_bits(if key & SIGN == 0 { !key } else { key ^ SIGN }),
            Keys::Signed => (key ^ SIGN) as i64 as f64,
            Keys::Unsigned => key as f64,
        }
    }
}
