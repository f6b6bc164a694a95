//! What takes elements in portions, and can be joined.

use super::summary::Summary;

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
