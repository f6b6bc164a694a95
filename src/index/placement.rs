//! NumPy's rules for lists: to which shape they are broadcast, and where in the result it stands.
//!
//! Source: NumPy, "Combining advanced and basic indexing". Integers beside a list count as lists of
//! no axes. Where all these items are adjacent, the axes of the lists stand at the place of the
//! first of them; where a slice, an ellipsis (even of no axes) or a new axis separates them, they
//! come first. Taken one by one (np.ix_, zarr's `oindex`), every list stands in its own place.

use std::ops::Range;

use super::selection::{ListBlock, SelectedList};

/// Collects where the lists of an expression stand, item by item.
#[derive(Debug, Default)]
pub(super) struct Placement {
    /// Axes of the result that come from ranges and new axes so far.
    kept: usize,
    /// What was kept before each list.
    lists: Vec<usize>,
    /// What was kept before the first list or integer.
    first: Option<usize>,
    /// Whether something else followed upon a list or an integer.
    gap: bool,
    /// Whether a list or an integer followed upon that.
    separated: bool,
}

impl Placement {
    /// An item that keeps `axes` axes.
    pub(super) fn keep(&mut self, axes: usize) {
        self.kept += axes;
        self.gap |= self.first.is_some();
    }

    /// An integer whose axis goes.
    pub(super) fn integer(&mut self) {
        self.first.get_or_insert(self.kept);
        self.separated |= self.gap;
    }

    /// A list.
    pub(super) fn list(&mut self) {
        self.integer();
        self.lists.push(self.kept);
    }

    /// The axes of the result that the lists become; with `outer`, each list by itself.
    ///
    /// # Errors
    /// The number of the first list whose shape does not fit those before it.
    pub(super) fn blocks(
        &self,
        lists: &[SelectedList],
        outer: bool,
    ) -> Result<Vec<ListBlock>, usize> {
        if outer {
            let block = |(number, (list, &at)): (usize, (&SelectedList, &usize))| ListBlock {
                at,
                shape: list.shape.clone(),
                lists: number..number + 1,
            };
            return Ok(lists.iter().zip(&self.lists).enumerate().map(block).collect());
        }
        let Some(first) = self.first.filter(|_| !lists.is_empty()) else { return Ok(Vec::new()) };
        let mut shape = Vec::new();
        for (number, list) in lists.iter().enumerate() {
            shape = broadcast(&shape, &list.shape).ok_or(number)?;
        }
        let at = if self.separated { 0 } else { first };
        Ok(vec![ListBlock { at, shape, lists: Range { start: 0, end: lists.len() } }])
    }
}

/// The shape to which two shapes are broadcast (NumPy: `broadcast_shapes`).
fn broadcast(one: &[u64], other: &[u64]) -> Option<Vec<u64>> {
    let ndim = one.len().max(other.len());
    let len = |shape: &[u64], axis: usize| match (axis + shape.len()).checked_sub(ndim) {
        Some(own) => shape[own],
        None => 1,
    };
    let joined = |axis| match (len(one, axis), len(other, axis)) {
        (1, len) | (len, 1) => Some(len),
        (len, same) => (len == same).then_some(len),
    };
    (0..ndim).map(joined).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_broadcast_as_in_numpy() {
        // np.broadcast_shapes
        for (one, other, both) in [
            (&[][..], &[][..], Some(vec![])),
            (&[3], &[], Some(vec![3])),
            (&[3, 1], &[4], Some(vec![3, 4])),
            (&[1], &[0], Some(vec![0])),
            (&[2, 3], &[3], Some(vec![2, 3])),
            (&[2, 3], &[2], None),
            (&[0], &[2], None),
        ] {
            assert_eq!(broadcast(one, other), both);
            assert_eq!(broadcast(other, one), both);
        }
    }
}
