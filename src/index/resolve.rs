//! Applies an index expression to a shape: which positions of which axes, in which order.
//!
//! Computes in 128 bits, so that no bound, step or length overflows. Knows no bytes and no strides:
//! a [`Selection`] holds the positions selected on each source axis and the shape of the result.
//! The rules and the error messages are NumPy's.
//!
//! ```
//! use tslice::index::{numpy, resolve::{AxisSelection, resolve}};
//! let expr = numpy::parse("2, ..., 4:1:-2").unwrap().expr;
//! let selection = resolve(&expr, &[3, 8, 5], false).unwrap();
//! assert_eq!(selection.shape(), [8, 2]);
//! assert_eq!(selection.axes[0], AxisSelection::Index { axis: 0, at: 2 });
//! assert_eq!(selection.axes[2], AxisSelection::Range { axis: 2, start: 4, step: -2, len: 2 });
//! let error = resolve(&numpy::parse("0, 9").unwrap().expr, &[4, 5], false).unwrap_err();
//! assert_eq!(error.to_string(), "index 9 is out of bounds for axis 1 with size 5");
//! ```

use super::{IndexExpr, Item, Malformed, Slice};
use crate::shape::MAX_NDIM;

/// What an expression selects from a tensor of one shape; all positions are in bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// One for each axis of the source and each new axis, in the order of the expression, with the
    /// ellipsis expanded; the source axes are in ascending order.
    pub axes: Vec<AxisSelection>,
    /// The shape of the source.
    pub source_shape: Vec<u64>,
    list_output_axis: Option<usize>,
}

/// What is selected on one axis of the source, or a new axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AxisSelection {
    /// One position; the result has no such axis.
    Index {
        /// Axis of the source.
        axis: usize,
        /// Position, less than the axis' length.
        at: u64,
    },
    /// The positions `start`, `start + step`, ..., `len` of them.
    Range {
        /// Axis of the source.
        axis: usize,
        /// First position; 0 if `len` is 0.
        start: u64,
        /// Distance between positions; 1 if `len` is less than 2.
        step: i64,
        /// Number of positions.
        len: u64,
    },
    /// A new axis of length 1.
    NewAxis,
    /// Positions in any order. [`Selection::list_output_axis`] is the axis of the result.
    List {
        /// Axis of the source.
        axis: usize,
        /// Positions, each less than the axis' length.
        positions: Vec<u64>,
    },
}

/// An expression that does not fit a shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct ResolveError {
    /// The index of the wrong item in the expression.
    pub item: usize,
    /// What is wrong with it.
    pub kind: ResolveErrorKind,
}

/// Why an expression does not fit a shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveErrorKind {
    /// An integer, alone or in a list, is out of range for its axis.
    #[error("index {index} is out of bounds for axis {axis} with size {size}")]
    OutOfBounds {
        /// The integer as written.
        index: i64,
        /// Axis of the source.
        axis: usize,
        /// Length of that axis.
        size: u64,
    },
    /// More items than axes; the error is at the first item too many.
    #[error("too many indices for array: array is {ndim}-dimensional, but {indexed} were indexed")]
    TooManyIndices {
        /// Axes of the source.
        ndim: usize,
        /// Items that need an axis.
        indexed: usize,
    },
    /// More axes than NumPy allows; the error is at the last new axis.
    #[error("number of dimensions must be within [0, {MAX_NDIM}], indexing result would have {0}")]
    TooManyAxes(usize),
    /// The expression breaks a rule that parsing checks.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// Apply `expr` to a tensor of `shape`, with axis lengths up to 2^63 - 1.
///
/// With `keepdims` an integer keeps its axis, with length 1. It must still be in range. For NumPy's
/// rule on where the axis of a list goes it then counts as a slice, so the axes of the result keep
/// the order of the source axes.
///
/// # Errors
/// [`ResolveError`]: an integer out of range, more items than axes, a result of more than 64 axes,
/// or an expression that breaks a rule of [`IndexExpr`].
pub fn resolve(expr: &IndexExpr, shape: &[u64], keepdims: bool) -> Result<Selection, ResolveError> {
    let ellipsis_len = ellipsis_len(expr, shape.len())?;
    let mut axes = Vec::with_capacity(expr.items.len() + ellipsis_len);
    let mut source_axes = shape.iter().copied().enumerate();
    let mut has_ellipsis = false;
    for (item, wanted) in expr.items.iter().enumerate() {
        let fault = |kind| ResolveError { item, kind };
        match wanted {
            Item::NewAxis => axes.push(AxisSelection::NewAxis),
            Item::Ellipsis => {
                axes.extend(source_axes.by_ref().take(ellipsis_len).map(whole_axis));
                has_ellipsis = true;
            }
            _ => {
                let Some((axis, size)) = source_axes.next() else { break };
                axes.push(select(wanted, axis, size, keepdims).map_err(fault)?);
            }
        }
    }
    if !has_ellipsis {
        axes.extend(source_axes.map(whole_axis));
    }
    let selection = Selection {
        axes,
        source_shape: shape.to_vec(),
        list_output_axis: list_output_axis(expr, ellipsis_len, keepdims),
    };
    match selection.shape().len() {
        0..=MAX_NDIM => Ok(selection),
        ndim => {
            let item = expr.items.iter().rposition(|item| *item == Item::NewAxis).unwrap_or(0);
            Err(ResolveError { item, kind: ResolveErrorKind::TooManyAxes(ndim) })
        }
    }
}

impl Selection {
    /// The shape of the result, with the axis of a list where NumPy puts it.
    pub fn shape(&self) -> Vec<u64> {
        let mut shape = Vec::with_capacity(self.axes.len());
        let mut list_len = 0;
        for axis in &self.axes {
            match axis {
                AxisSelection::Index { .. } => {}
                AxisSelection::Range { len, .. } => shape.push(*len),
                AxisSelection::NewAxis => shape.push(1),
                AxisSelection::List { positions, .. } => list_len = positions.len() as u64,
            }
        }
        if let Some(axis) = self.list_output_axis {
            shape.insert(axis.min(shape.len()), list_len);
        }
        shape
    }

    /// The axis of the result that the list becomes; the other axes are in the order of
    /// [`Selection::axes`].
    ///
    /// Source: NumPy, "Combining advanced and basic indexing". If there is a list, integers count
    /// as lists of one. If all these items are adjacent, the axis goes to the place of the first of
    /// them; if a slice, an ellipsis (even of no axes) or a new axis separates them, it goes first.
    pub fn list_output_axis(&self) -> Option<usize> {
        self.list_output_axis
    }

    /// Whether the result holds every element of the source, in the same order. Its shape may still
    /// differ by axes of length 1. Always false for a selection with a list.
    pub fn is_whole(&self) -> bool {
        self.axes.iter().all(|axis| match *axis {
            AxisSelection::Index { axis, .. } => self.source_shape.get(axis) == Some(&1),
            AxisSelection::Range { axis, start, step, len } => {
                start == 0 && step == 1 && self.source_shape.get(axis) == Some(&len)
            }
            AxisSelection::NewAxis => true,
            AxisSelection::List { .. } => false,
        })
    }
}

/// How many axes the ellipsis stands for. Also checks the rules of [`IndexExpr`].
fn ellipsis_len(expr: &IndexExpr, ndim: usize) -> Result<usize, ResolveError> {
    let (mut indexed, mut first_too_many) = (0, 0);
    let (mut ellipsis, mut list) = (false, false);
    for (item, wanted) in expr.items.iter().enumerate() {
        let fault = |kind: Malformed| Err(ResolveError { item, kind: kind.into() });
        match wanted {
            Item::NewAxis => continue,
            Item::Ellipsis if std::mem::replace(&mut ellipsis, true) => {
                return fault(Malformed::SecondEllipsis);
            }
            Item::Ellipsis => continue,
            Item::List(_) if std::mem::replace(&mut list, true) => {
                return fault(Malformed::SecondList);
            }
            Item::Slice(Slice { step: Some(0), .. }) => return fault(Malformed::ZeroStep),
            _ => {}
        }
        if indexed == ndim {
            first_too_many = item;
        }
        indexed += 1;
    }
    ndim.checked_sub(indexed).ok_or(ResolveError {
        item: first_too_many,
        kind: ResolveErrorKind::TooManyIndices { ndim, indexed },
    })
}

fn whole_axis((axis, size): (usize, u64)) -> AxisSelection {
    range(Slice::default(), axis, size)
}

/// What an item selects on its axis.
fn select(
    item: &Item,
    axis: usize,
    size: u64,
    keepdims: bool,
) -> Result<AxisSelection, ResolveErrorKind> {
    let position = |index: i64| position(index, axis, size);
    Ok(match item {
        Item::Integer(index) => match position(*index)? {
            start if keepdims => AxisSelection::Range { axis, start, step: 1, len: 1 },
            at => AxisSelection::Index { axis, at },
        },
        Item::List(indices) => {
            let positions = indices.iter().map(|&index| position(index)).collect::<Result<_, _>>();
            AxisSelection::List { axis, positions: positions? }
        }
        Item::Slice(slice) => range(*slice, axis, size),
        Item::Ellipsis | Item::NewAxis => AxisSelection::NewAxis,
    })
}

/// The position of an integer; a negative one counts from the end.
fn position(index: i64, axis: usize, size: u64) -> Result<u64, ResolveErrorKind> {
    let wrapped = i128::from(index) + if index < 0 { i128::from(size) } else { 0 };
    match u64::try_from(wrapped) {
        Ok(at) if at < size => Ok(at),
        _ => Err(ResolveErrorKind::OutOfBounds { index, axis, size }),
    }
}

/// A slice, by the rules of Python's `slice.indices`; its step is not 0.
fn range(slice: Slice, axis: usize, size: u64) -> AxisSelection {
    let size = i128::from(size);
    let step = i128::from(slice.step.unwrap_or(1));
    // Bounds are clamped to the axis and one past its end in the direction of the step.
    let (lowest, highest) = if step < 0 { (-1, size - 1) } else { (0, size) };
    let (first, last) = if step < 0 { (highest, lowest) } else { (lowest, highest) };
    let clamped = |bound: i64| {
        let bound = i128::from(bound);
        (if bound < 0 { bound + size } else { bound }).clamp(lowest, highest)
    };
    let start = slice.start.map_or(first, clamped);
    let stop = slice.stop.map_or(last, clamped);
    let distance = if step < 0 { start - stop } else { stop - start };
    let len = match distance {
        // Rounded up: an incomplete last step still has a position at its start.
        1.. => (distance - 1) / step.abs() + 1,
        _ => 0,
    };
    // The casts are lossless: positions and lengths are within the axis, and so is a step that is
    // used.
    AxisSelection::Range {
        axis,
        start: if len > 0 { start as u64 } else { 0 },
        step: if len > 1 { step as i64 } else { 1 },
        len: len as u64,
    }
}

/// The axis of the result that a list becomes; see [`Selection::list_output_axis`].
fn list_output_axis(expr: &IndexExpr, ellipsis_len: usize, keepdims: bool) -> Option<usize> {
    expr.items.iter().find(|item| matches!(item, Item::List(_)))?;
    let is_advanced = |item: &Item| match item {
        Item::List(_) => true,
        Item::Integer(_) => !keepdims,
        _ => false,
    };
    let first = expr.items.iter().position(is_advanced)?;
    let last = expr.items.iter().rposition(is_advanced)?;
    if !expr.items[first..=last].iter().all(is_advanced) {
        return Some(0);
    }
    let axes_of = |item: &Item| if *item == Item::Ellipsis { ellipsis_len } else { 1 };
    Some(expr.items[..first].iter().map(axes_of).sum())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::index::{numpy, tests::slices};

    fn resolved(text: &str, shape: &[u64]) -> Selection {
        resolve(&numpy::parse(text).unwrap().expr, shape, false).unwrap()
    }

    fn error(text: &str, shape: &[u64]) -> (usize, String) {
        let error = resolve(&numpy::parse(text).unwrap().expr, shape, false).unwrap_err();
        (error.item, error.to_string())
    }

    #[test]
    fn axes_come_in_the_order_of_the_expression() {
        let selection = resolved("1, None, ..., ::-2", &[2, 3, 4, 5]);
        let expected = [
            AxisSelection::Index { axis: 0, at: 1 },
            AxisSelection::NewAxis,
            AxisSelection::Range { axis: 1, start: 0, step: 1, len: 3 },
            AxisSelection::Range { axis: 2, start: 0, step: 1, len: 4 },
            AxisSelection::Range { axis: 3, start: 4, step: -2, len: 3 },
        ];
        assert_eq!(selection.axes, expected);
        assert_eq!(selection.shape(), [1, 3, 4, 3]);
        assert_eq!(resolved("", &[]).shape(), [0u64; 0]);
    }

    #[test]
    fn errors_are_worded_as_in_numpy() {
        assert_eq!(
            error("None, 0, 9", &[4, 5]),
            (2, "index 9 is out of bounds for axis 1 with size 5".into())
        );
        assert_eq!(
            error("..., -1", &[4, 0]),
            (1, "index -1 is out of bounds for axis 1 with size 0".into())
        );
        assert_eq!(
            error("[[0, -6, 7]]", &[5]),
            (0, "index -6 is out of bounds for axis 0 with size 5".into())
        );
        assert_eq!(
            error("9, None, 1, ..., 2", &[4, 5]),
            (4, "too many indices for array: array is 2-dimensional, but 3 were indexed".into())
        );
        assert_eq!(
            error(&"None,".repeat(62), &[3, 4, 5]),
            (
                61,
                "number of dimensions must be within [0, 64], indexing result would have 65".into()
            )
        );
        assert_eq!(resolved(&"None,".repeat(61), &[3, 4, 5]).shape().len(), 64);
        assert_eq!(error(&"0,".repeat(100_000), &[1]).0, 1);
    }

    #[test]
    fn expressions_made_by_hand_are_checked_too() {
        let step = Item::Slice(Slice { step: Some(0), ..Slice::default() });
        for (pair, malformed) in [
            ([Item::NewAxis, step], Malformed::ZeroStep),
            ([Item::Ellipsis, Item::Ellipsis], Malformed::SecondEllipsis),
            ([Item::List(vec![]), Item::List(vec![0])], Malformed::SecondList),
        ] {
            let error = resolve(&IndexExpr { items: pair.into() }, &[2, 2], false).unwrap_err();
            assert_eq!(error, ResolveError { item: 1, kind: malformed.into() });
        }
    }

    #[test]
    fn nothing_overflows() {
        let longest = i64::MAX as u64;
        assert_eq!(
            resolved("::-9223372036854775807, -1, -9223372036854775807", &[longest; 3]).axes,
            [
                AxisSelection::Range { axis: 0, start: longest - 1, step: 1, len: 1 },
                AxisSelection::Index { axis: 1, at: longest - 1 },
                AxisSelection::Index { axis: 2, at: 0 },
            ]
        );
        assert_eq!(
            resolved("::-1, ::9223372036854775806, 1::9223372036854775806", &[longest; 3]).axes,
            [
                AxisSelection::Range { axis: 0, start: longest - 1, step: -1, len: longest },
                AxisSelection::Range { axis: 1, start: 0, step: i64::MAX - 1, len: 2 },
                AxisSelection::Range { axis: 2, start: 1, step: 1, len: 1 },
            ]
        );
        assert_eq!(resolved(":", &[u64::MAX]).shape(), [u64::MAX]);
        assert!(error("-9223372036854775808", &[longest]).1.contains("out of bounds"));
    }

    #[test]
    fn a_list_lands_where_numpy_puts_it() {
        // From NumPy 2.4.6: np.zeros((2, 3, 4, 5))[text].shape
        for (text, axis, shape) in [
            (":, [0, 1], ...", 1, vec![2, 2, 4, 5]),
            (":, 0, [0, 1]", 1, vec![2, 2, 5]),
            (":, [0, 1], 0", 1, vec![2, 2, 5]),
            ("0, :, [0, 1]", 0, vec![2, 3, 5]),
            (":, 0, None, [0, 1]", 0, vec![2, 2, 1, 5]),
            (":, [0, 1], ..., 0, 0", 0, vec![2, 2]),
            ("None, ..., 0, [0, 1, 2]", 3, vec![1, 2, 3, 3]),
            ("..., [], :", 2, vec![2, 3, 0, 5]),
            ("0, [0, 1], 0, 0", 0, vec![2]),
        ] {
            let selection = resolved(text, &[2, 3, 4, 5]);
            assert_eq!(selection.shape(), shape, "{text}");
            assert_eq!(selection.list_output_axis(), Some(axis), "{text}");
        }
        assert_eq!(resolved("0", &[2]).list_output_axis(), None);
    }

    #[test]
    fn keepdims_keeps_axes_in_their_places() {
        let expr = numpy::parse("-1, :, [0, 2], 1").unwrap().expr;
        let selection = resolve(&expr, &[2, 3, 4, 5], true).unwrap();
        assert_eq!(selection.shape(), [1, 3, 2, 1]);
        assert_eq!(selection.list_output_axis(), Some(2));
        assert_eq!(selection.axes[0], AxisSelection::Range { axis: 0, start: 1, step: 1, len: 1 });
        assert!(resolve(&expr, &[2, 3, 4, 1], true).is_err());
    }

    #[test]
    fn the_whole_is_known() {
        for text in ["", "...", ":, None, ::1", "::-1, 0:9, :99", ":, ..., 0:"] {
            assert!(resolved(text, &[1, 4, 5]).is_whole(), "{text}");
        }
        assert!(resolved("0, :, -1", &[1, 4, 1]).is_whole());
        for text in ["0, 0", ":, ::-1", ":, 1:", ":, :, ::2", "[[0]]"] {
            assert!(!resolved(text, &[1, 4, 5]).is_whole(), "{text}");
        }
    }

    /// Python's `slice.indices` and `range`, one position at a time.
    fn naive(slice: Slice, len: i128) -> Vec<i128> {
        let step = i128::from(slice.step.unwrap_or(1));
        let wrap = |bound: i64| i128::from(bound) + if bound < 0 { len } else { 0 };
        let (mut at, stop) = if step > 0 {
            (
                slice.start.map_or(0, |start| wrap(start).max(0)),
                slice.stop.map_or(len, |stop| wrap(stop).min(len)),
            )
        } else {
            (
                slice.start.map_or(len - 1, |start| wrap(start).min(len - 1)),
                slice.stop.map_or(-1, |stop| wrap(stop).max(-1)),
            )
        };
        let mut positions = Vec::new();
        while if step > 0 { at < stop } else { at > stop } {
            positions.push(at);
            at += step;
        }
        positions
    }

    proptest! {
        #[test]
        fn ranges_are_pythons(slice in slices(), len in 0..9u64) {
            let AxisSelection::Range { start, step, len: count, .. } = range(slice, 0, len) else {
                return Err(TestCaseError::fail("not a range"));
            };
            let positions: Vec<_> =
                (0..i128::from(count)).map(|i| i128::from(start) + i * i128::from(step)).collect();
            prop_assert_eq!(positions, naive(slice, len.into()));
        }

        #[test]
        fn long_ranges_stay_inside(slice in slices(), len in any::<i64>()) {
            let len = len.unsigned_abs() >> 1;
            let AxisSelection::Range { start, step, len: count, .. } = range(slice, 0, len) else {
                return Err(TestCaseError::fail("not a range"));
            };
            prop_assert!(count <= len);
            if count > 0 {
                let last = i128::from(start) + (i128::from(count) - 1) * i128::from(step);
                prop_assert!(start < len && (0..i128::from(len)).contains(&last));
            }
        }
    }
}
