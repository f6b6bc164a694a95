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

mod complex;
mod exact_sum;
mod fold;
mod folded;
mod key;
mod quantile;
mod quotient;
mod reduction;
mod summary;
mod tally;

use crate::dtype::{Endian, Scalar};
pub use complex::ComplexSummary;
pub use fold::Fold;
pub use folded::Folded;
pub use quantile::{Bar, Quantile};
pub use reduction::Reduction;
pub use summary::{Extreme, Summary, Sums};
use tally::Tally;

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
