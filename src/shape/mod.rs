//! Shapes and their checked arithmetic: element counts, byte counts, strides, orders of axes, splits and merges
//! of axes.
//!
//! Files and dtypes are not known here, only the size of an item.
//!
//! ```
//! use tslice::shape::{Order, contiguous_strides, element_count};
//! assert_eq!(element_count(&[2, 3, 4]), Some(24));
//! assert_eq!(contiguous_strides(&[2, 3, 4], 8, Order::C), Some(vec![96, 32, 8]));
//! assert_eq!(contiguous_strides(&[2, 3, 4], 8, Order::F), Some(vec![8, 16, 48]));
//! ```
//!
//! A [`Permutation`] is an order of axes, as np.transpose takes it:
//!
//! ```
//! use tslice::shape::{Order, Permutation};
//! let nchw = Permutation::new(&[0, -1, 1, 2], 4)?;
//! assert_eq!(nchw.permute(&[8, 48, 64, 3]), [8, 3, 48, 64]);
//! assert_eq!(nchw.in_memory(Order::F).permute(&[8, 48, 64, 3]), [64, 48, 3, 8]);
//! assert_eq!(Permutation::reversed(3).permute(&['a', 'b', 'c']), ['c', 'b', 'a']);
//! # Ok::<(), tslice::shape::PermutationError>(())
//! ```

use std::fmt;

mod arrangement;
mod axis;
mod pattern;

pub use arrangement::{Arrangement, MemoryAxes};
pub use axis::{AskedAxis, NoDimension, dimension};
pub use pattern::{Pattern, PatternError, PatternErrorKind};

/// The memory order of a tensor's elements: C (last axis fastest) or Fortran (first axis fastest).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Order {
    /// Row-major: the last axis varies fastest.
    #[default]
    C,
    /// Column-major: the first axis varies fastest.
    F,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Order::C => "C",
            Order::F => "F",
        })
    }
}

/// The most axes that a tensor may have, as in NumPy 2.
pub const MAX_NDIM: usize = 64;

/// The number of elements of a shape; `None` above 2^63 - 1. A shape with an axis of length 0 has
/// no elements, however long its other axes.
pub fn element_count(shape: &[u64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    let count = shape.iter().try_fold(1u64, |product, &len| product.checked_mul(len))?;
    (count <= i64::MAX as u64).then_some(count)
}

/// The bytes of the elements of a shape, rounded up to whole bytes; `None` above 2^63 - 1.
pub fn byte_count(shape: &[u64], item_bits: u64) -> Option<u64> {
    let bits = u128::from(element_count(shape)?) * u128::from(item_bits);
    i64::try_from(bits.div_ceil(8)).ok().map(|bytes| bytes as u64)
}

/// The strides of a contiguous tensor, in the unit of `item` (1, or the bytes or bits of an
/// element). `None` where one exceeds 2^63 - 1. As in NumPy, axes of length 0 count as length 1.
pub fn contiguous_strides(shape: &[u64], item: u64, order: Order) -> Option<Vec<i64>> {
    let mut strides = vec![0i64; shape.len()];
    let mut stride = item;
    for step in 0..shape.len() {
        let axis = match order {
            Order::C => shape.len() - 1 - step,
            Order::F => step,
        };
        strides[axis] = i64::try_from(stride).ok()?;
        if step + 1 < shape.len() {
            stride = stride.checked_mul(shape[axis].max(1))?;
        }
    }
    Some(strides)
}

/// The number of an axis; a negative `axis` counts from the end. `None` where it is out of bounds (NumPy:
/// `normalize_axis_index`).
pub fn normalize_axis(axis: i64, ndim: usize) -> Option<usize> {
    let from_start = if axis < 0 { axis.checked_add(i64::try_from(ndim).ok()?)? } else { axis };
    usize::try_from(from_start).ok().filter(|&axis| axis < ndim)
}

/// Displays a shape as a tuple, like NumPy: `()`, `(5,)`, `(5, 6)`; with `{:#}` as in NumPy's
/// messages about broadcasting: `(5,6)`.
pub struct AsTuple<'a>(pub &'a [u64]);

impl fmt::Display for AsTuple<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [only] => write!(f, "({only},)"),
            shape if f.alternate() => write!(f, "({})", join(shape, ",")),
            shape => write!(f, "({})", join(shape, ", ")),
        }
    }
}

/// Displays a shape as a list, like TensorFlow and safetensors: `[]`, `[5]`, `[5, 6]`.
pub struct AsList<'a>(pub &'a [u64]);

impl fmt::Display for AsList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", join(self.0, ", "))
    }
}

fn join(shape: &[u64], between: &str) -> String {
    shape.iter().map(u64::to_string).collect::<Vec<_>>().join(between)
}

/// The new shape of a reshape, as in np.reshape: one length may follow from the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewShape(Vec<Option<u64>>);

/// Why a list of lengths is not a valid new shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NewShapeError {
    #[error("can only specify one unknown dimension")]
    TwoUnknown,
    #[error("a length is 0 or more, or -1 for one computed from the others, not {0}")]
    Negative(i64),
    #[error("maximum supported dimension is {MAX_NDIM}, found {0}")]
    TooManyAxes(usize),
}

/// The error where a new shape has another number of elements; the message is NumPy's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot reshape array of size {size} into shape {shape}")]
pub struct ReshapeError {
    pub size: u64,
    pub shape: NewShape,
}

impl NewShape {
    /// Make a new shape from lengths; one of them may be -1.
    ///
    /// # Errors
    /// [`NewShapeError`]: a second length of -1, one below that, too many.
    pub fn new(lens: &[i64]) -> Result<NewShape, NewShapeError> {
        if lens.len() > MAX_NDIM {
            return Err(NewShapeError::TooManyAxes(lens.len()));
        }
        if let Some(&len) = lens.iter().find(|&&len| len < -1) {
            return Err(NewShapeError::Negative(len));
        }
        if lens.iter().filter(|&&len| len == -1).count() > 1 {
            return Err(NewShapeError::TwoUnknown);
        }
        Ok(NewShape(lens.iter().map(|&len| u64::try_from(len).ok()).collect()))
    }

    /// The lengths of this shape for the elements of a tensor of the shape `from`.
    ///
    /// # Errors
    /// [`ReshapeError`]: the number of elements differs.
    pub fn of(&self, from: &[u64]) -> Result<Vec<u64>, ReshapeError> {
        let size = element_count(from).unwrap_or(u64::MAX);
        let known: Vec<u64> = self.0.iter().copied().flatten().collect();
        let count = element_count(&known).filter(|count| match count {
            0 => size == 0 && known.len() == self.0.len(),
            _ if known.len() == self.0.len() => *count == size,
            _ => size.is_multiple_of(*count),
        });
        let misfit = || ReshapeError { size, shape: self.clone() };
        let unknown = size / count.ok_or_else(misfit)?.max(1);
        Ok(self.0.iter().map(|len| len.unwrap_or(unknown)).collect())
    }
}

/// Displays the shape as NumPy's message does, which omits a leading -1.
impl fmt::Display for NewShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lens = self.0.iter().skip_while(|len| len.is_none());
        let lens = lens.map(|len| len.map_or("newaxis".to_owned(), |len| len.to_string()));
        let comma = if self.0.len() == 1 { "," } else { "" };
        write!(f, "({}{comma})", lens.collect::<Vec<_>>().join(","))
    }
}

/// An order of axes: for each axis of a result, the axis of the source that it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation(Vec<usize>);

/// A change of the order of axes, for any shape.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Transposition {
    #[default]
    None,
    /// All axes in reverse order.
    Reversed,
    /// np.transpose's `axes`.
    Axes(Vec<AskedAxis>),
    /// A pattern of einops' rearrange.
    Pattern(Pattern),
}

/// Why a [`Transposition`] does not fit a shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArrangeError {
    #[error("transpose: {0}")]
    Permutation(#[from] PermutationError),
    #[error("transpose: {0}")]
    Dimension(#[from] NoDimension),
    #[error("rearrange: {0}")]
    Pattern(#[from] PatternError),
}

impl Transposition {
    /// Whether axes are given by name.
    pub fn has_names(&self) -> bool {
        let is_name = |axis: &AskedAxis| matches!(axis, AskedAxis::Name(_));
        matches!(self, Transposition::Axes(axes) if axes.iter().any(is_name))
    }

    /// Apply the transposition to a shape; its axes may have names.
    pub fn of(&self, shape: &[u64], names: &[Option<String>]) -> Result<Arrangement, ArrangeError> {
        let order = match self {
            Transposition::None => Permutation::identity(shape.len()),
            Transposition::Reversed => Permutation::reversed(shape.len()),
            Transposition::Axes(axes) => {
                let axes = axes.iter().map(|axis| axis.number(|| names.to_vec()));
                Permutation::new(&axes.collect::<Result<Vec<_>, _>>()?, shape.len())?
            }
            Transposition::Pattern(pattern) => return Ok(pattern.of(shape)?),
        };
        Ok(Arrangement::permuted(&order, shape))
    }
}

/// Why a list is no permutation of the axes; the messages are NumPy's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PermutationError {
    /// Too few or too many axes.
    #[error("axes don't match array: {given} axes for an array of dimension {ndim}")]
    Count { given: usize, ndim: usize },
    /// The array has no such axis.
    #[error("axis {axis} is out of bounds for array of dimension {ndim}")]
    OutOfBounds { axis: i64, ndim: usize },
    /// An axis is listed twice.
    #[error("repeated axis in transpose: {0}")]
    Repeated(i64),
}

impl Permutation {
    /// Make a permutation from np.transpose's `axes`; negative ones count from the end.
    ///
    /// # Errors
    /// [`PermutationError`]: a wrong number of axes, an axis out of bounds, an axis given twice.
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

    /// The permutation back to the order of the source axes.
    pub(crate) fn inverse(&self) -> Permutation {
        let mut axes = vec![0; self.0.len()];
        self.0.iter().enumerate().for_each(|(at, &axis)| axes[axis] = at);
        Permutation(axes)
    }

    /// This permutation, followed by `next`.
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
    fn counts_are_checked() {
        assert_eq!(element_count(&[]), Some(1));
        assert_eq!(element_count(&[u64::MAX, 0, u64::MAX]), Some(0));
        assert_eq!(element_count(&[1 << 32, 1 << 31]), None);
        assert_eq!(element_count(&[(1 << 63) - 1]), Some((1 << 63) - 1));
        assert_eq!(byte_count(&[3], 4), Some(2));
        assert_eq!(byte_count(&[1 << 62], 16), None);
    }

    #[test]
    fn strides_skip_empty_axes() {
        assert_eq!(contiguous_strides(&[2, 0, 3], 4, Order::C), Some(vec![12, 12, 4]));
        assert_eq!(contiguous_strides(&[], 4, Order::C), Some(vec![]));
        assert_eq!(contiguous_strides(&[4, 1 << 62], 8, Order::C), None);
    }

    #[test]
    fn shapes_print_as_tuples_and_lists() {
        assert_eq!(AsTuple(&[]).to_string(), "()");
        assert_eq!(AsTuple(&[5]).to_string(), "(5,)");
        assert_eq!(AsTuple(&[5, 6]).to_string(), "(5, 6)");
        assert_eq!(format!("{:#} {:#}", AsTuple(&[5, 6]), AsTuple(&[5])), "(5,6) (5,)");
        assert_eq!(AsList(&[5, 6]).to_string(), "[5, 6]");
    }

    #[test]
    fn new_shapes_are_of_as_many_elements() {
        let shape = |lens: &[i64]| NewShape::new(lens).unwrap();
        assert_eq!(shape(&[2, -1, 3]).of(&[12]), Ok(vec![2, 2, 3]));
        assert_eq!(shape(&[]).of(&[1, 1]), Ok(vec![]));
        assert_eq!(shape(&[5, -1]).of(&[0, 3]), Ok(vec![5, 0]));
        assert_eq!(shape(&[0, 7]).of(&[3, 0]), Ok(vec![0, 7]));
        let message = |lens: &[i64], from: &[u64]| shape(lens).of(from).unwrap_err().to_string();
        for (lens, told) in [
            (&[5][..], "(5,)"),
            (&[5, 7], "(5,7)"),
            (&[5, -1], "(5,newaxis)"),
            (&[-1, 5], "(5)"),
            (&[0, -1], "(0,newaxis)"),
            (&[], "()"),
            (&[1 << 40, 1 << 40], "(1099511627776,1099511627776)"),
        ] {
            assert_eq!(
                message(lens, &[3, 4]),
                format!("cannot reshape array of size 12 into shape {told}")
            );
        }
        assert!(shape(&[0, -1]).of(&[0]).is_err());
        assert_eq!(NewShape::new(&[-1, 2, -1]), Err(NewShapeError::TwoUnknown));
        assert_eq!(NewShape::new(&[-2]), Err(NewShapeError::Negative(-2)));
        assert_eq!(NewShape::new(&[1; 65]), Err(NewShapeError::TooManyAxes(65)));
    }

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
