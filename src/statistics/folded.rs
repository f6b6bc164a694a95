//! What is known of elements of any kind that is reduced.

use super::complex::ComplexSummary;
use super::fold::Fold;
use super::summary::Summary;

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
