//! Permutations of axes, as np.transpose takes them.
//!
//! ```
//! use tslice::permutation::Permutation;
//! use tslice::shape::Order;
//! let nchw = Permutation::new(&[0, -1, 1, 2], 4)?;
//! assert_eq!(nchw.permute(&[8, 48, 64, 3]), [8, 3, 48, 64]);
//! assert_eq!(nchw.in_memory(Order::F).permute(&[8, 48, 64, 3]), [64, 48, 3, 8]);
//! assert_eq!(Permutation::reversed(3).permute(&['a', 'b', 'c']), ['c', 'b', 'a']);
//! # Ok::<(), tslice::permutation::PermutationError>(())
//! ```

use crate::shape::{Order, normalize_axis};

/// An order of axes: for each axis of a result, the axis of the source that it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation(Vec<usize>);

/// A permutation for any number of axes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Transposition {
    #[default]
    None,
    /// All axes in reverse order.
    Reversed,
    /// np.transpose's `axes`.
    Axes(Vec<i64>),
}

impl Transposition {
    /// The permutation of `ndim` axes.
    pub fn of_axes(&self, ndim: usize) -> Result<Permutation, PermutationError> {
        match self {
            Transposition::None => Ok(Permutation::identity(ndim)),
            Transposition::Reversed => Ok(Permutation::reversed(ndim)),
            Transposition::Axes(axes) => Permutation::new(axes, ndim),
        }
    }
}

/// Why a list is no permutation of the axes; the messages are NumPy's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PermutationError {
    /// Too few or too many axes.
    #[error("axes don't match array: {given} axes for an array of dimension {ndim}")]
    Count {
        /// The number of axes in the list.
        given: usize,
        /// The number of axes of the array.
        ndim: usize,
    },
    /// The array has no such axis.
    #[error("axis {axis} is out of bounds for array of dimension {ndim}")]
    OutOfBounds {
        axis: i64,
        /// The number of axes of the array.
        ndim: usize,
    },
    /// An axis is listed twice.
    #[error("repeated axis in transpose: {0}")]
    Repeated(i64),
}

impl Permutation {
    /// Make a permutation from np.transpose's `axes`; negative ones count from the end.
    ///
    /// # Errors
    /// [`PermutationError`]: a wrong number of axes, one that is out of bounds, one given twice.
    pub fn new(axes: &[i64], ndim: usize) -> Result<Permutation, PermutationError> {
        if axes.len() != ndim {
            return Err(PermutationError::Count { given: axes.len(), ndim });
        }
        let mut order = Vec::with_capacity(ndim);
        for &axis in axes {
            let counted = normalize_axis(axis, ndim);
            let counted = counted.ok_or(PermutationError::OutOfBounds { axis, ndim })?;
            if order.contains(&counted) {
                return Err(PermutationError::Repeated(axis));
            }
            order.push(counted);
        }
        Ok(Permutation(order))
    }

    /// `axes` must hold each axis once.
    pub(crate) fn of_axes(axes: Vec<usize>) -> Permutation {
        Permutation(axes)
    }

    /// The permutation that keeps every axis in its place.
    pub fn identity(ndim: usize) -> Permutation {
        Permutation((0..ndim).collect())
    }

    /// The permutation that reverses the axes.
    pub fn reversed(ndim: usize) -> Permutation {
        Permutation((0..ndim).rev().collect())
    }

    /// The source axis of each axis of the result.
    pub fn axes(&self) -> &[usize] {
        &self.0
    }

    /// Whether every axis stays in its place.
    pub fn is_identity(&self) -> bool {
        self.0.iter().enumerate().all(|(at, &axis)| at == axis)
    }

    /// This permutation followed by another of its result.
    #[must_use]
    pub(crate) fn then(&self, next: &Permutation) -> Permutation {
        Permutation(next.permute(&self.0))
    }

    /// The source axes from the slowest to the fastest, when the result is stored in `order`.
    #[must_use]
    pub fn in_memory(&self, order: Order) -> Permutation {
        let mut axes = self.0.clone();
        if order == Order::F {
            axes.reverse();
        }
        Permutation(axes)
    }

    /// Reorder `items`, one for each source axis, such as the lengths.
    pub fn permute<T: Clone>(&self, items: &[T]) -> Vec<T> {
        self.0.iter().filter_map(|&axis| items.get(axis).cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_holds_each_axis_once() {
        let message = |axes: &[i64]| Permutation::new(axes, 3).unwrap_err().to_string();
        assert_eq!(message(&[0, 1]), "axes don't match array: 2 axes for an array of dimension 3");
        assert_eq!(message(&[0, 1, 3]), "axis 3 is out of bounds for array of dimension 3");
        assert_eq!(message(&[0, 1, -4]), "axis -4 is out of bounds for array of dimension 3");
        assert_eq!(message(&[0, 1, i64::MIN]).len(), 67);
        assert_eq!(message(&[0, 2, -1]), "repeated axis in transpose: -1");
        assert_eq!(Permutation::new(&[], 0), Ok(Permutation::identity(0)));
        assert_eq!(Permutation::new(&[-1, -2, -3], 3), Ok(Permutation::reversed(3)));
        let turn = Permutation::new(&[1, 2, 0], 3).unwrap();
        assert_eq!(turn.then(&turn).axes(), [2, 0, 1]);
        assert_eq!(turn.then(&turn).then(&turn), Permutation::identity(3));
    }
}
