//! The order of the rows of a table.

use std::borrow::Cow;
use std::cmp::Ordering;

/// What a row is sorted by.
pub(crate) enum SortKey<'a> {
    /// Texts ascend.
    Text(Cow<'a, str>),
    /// Shapes ascend, the first axis first.
    Shape(Vec<u64>),
    /// Shapes descend.
    LargestShape(Vec<u64>),
    /// Amounts descend.
    Amount(u64),
    /// Numbers descend; what has none comes last.
    Number(Option<f64>),
}

impl SortKey<'_> {
    /// Which of two rows comes first.
    pub(crate) fn order(&self, other: &SortKey<'_>) -> Ordering {
        match (self, other) {
            (SortKey::Text(one), SortKey::Text(other)) => one.cmp(other),
            (SortKey::Shape(one), SortKey::Shape(other)) => one.cmp(other),
            (SortKey::LargestShape(one), SortKey::LargestShape(other)) => other.cmp(one),
            (SortKey::Amount(one), SortKey::Amount(other)) => other.cmp(one),
            (SortKey::Number(Some(one)), SortKey::Number(Some(other))) => other.total_cmp(one),
            (SortKey::Number(one), SortKey::Number(other)) => other.is_some().cmp(&one.is_some()),
            // one column has keys of one kind
            _ => Ordering::Equal,
        }
    }
}

/// Sort rows, which are known by their numbers; those of equal keys stay as they stood. Keys are made
/// when they are compared: there may be a million rows, and no memory for as many keys.
pub(crate) fn sort_rows<'a>(rows: &mut [usize], key: impl Fn(usize) -> SortKey<'a>) {
    rows.sort_by(|&one, &other| key(one).order(&key(other)));
}
