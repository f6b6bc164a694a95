//! NumPy's advanced indexing: lists and masks applied to a shape, and the position of their axes in the result.
//!
//! Source: NumPy, "Combining advanced and basic indexing". An integer beside a list counts as a list
//! without axes. Where all these items are adjacent, the axes of the lists take the position of the
//! first item; where a slice, an ellipsis (even of no axes) or a new axis separates them, they come
//! first. With outer indexing (np.ix_, zarr's `oindex`) every list keeps its own position.

use std::sync::Arc;

use super::resolve::Rules;
use super::selection::{
    ListBlock, ListPositions, OtherPositions, ResolveError, ResolveErrorKind, SelectedList,
    Selection, Shuffled, position, steps,
};
use super::{IndexExpr, Item, List, Shuffle};

/// The properties of a list that the shape of the result depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListShape {
    /// An array without axes, which is an integer to NumPy.
    Integer(i64),
    Integers(Vec<u64>),
    Mask {
        shape: Vec<u64>,
        count: u64,
    },
    Shuffle(Shuffle),
    /// All positions except these.
    Others(Arc<[i64]>),
}

impl ListShape {
    pub(super) fn axes(&self) -> usize {
        match self {
            ListShape::Mask { shape, .. } => shape.len(),
            _ => 1,
        }
    }

    /// The shape of the list, and its positions as far as they are known, along the axes from `axis` on, which has
    /// length `size`; `item` is the number of the list's item.
    pub(super) fn selected(
        &self,
        item: usize,
        axis: usize,
        size: u64,
    ) -> Result<(Vec<u64>, ListPositions), ResolveError> {
        Ok(match self {
            ListShape::Integer(_) => (Vec::new(), ListPositions::Integers),
            ListShape::Integers(shape) => (shape.clone(), ListPositions::Integers),
            ListShape::Mask { count, .. } => (vec![*count], ListPositions::Mask),
            ListShape::Shuffle(Shuffle { seed, slice }) => {
                let taken = steps(*slice, size);
                let shuffled = Shuffled { seed: *seed, size, taken };
                (vec![taken.len], ListPositions::Shuffle(shuffled))
            }
            ListShape::Others(left_out) => {
                let at = |(value, &index): (usize, &i64)| {
                    let at = position(index, axis, size);
                    at.map_err(|kind| ResolveError {
                        value: Some(value),
                        ..ResolveError::new(item, kind)
                    })
                };
                let left_out = left_out.iter().enumerate().map(at);
                let mut left_out = left_out.collect::<Result<Vec<u64>, _>>()?;
                left_out.sort_unstable();
                left_out.dedup();
                let others = OtherPositions { size, left_out: left_out.into() };
                (vec![others.count()], ListPositions::Others(others))
            }
        })
    }
}

/// The shapes of the items that are lists; `None` for other items.
pub(super) fn list_shapes(
    expr: &IndexExpr,
    rules: Rules,
    files: &[ListShape],
) -> Result<Vec<Option<ListShape>>, ResolveError> {
    let mut files = files.iter();
    let array = |(item, wanted): (usize, &Item)| {
        let Item::List(list) = wanted else { return Ok(None) };
        let array = match list {
            List::Integers(array) => ListShape::Integers(array.shape.clone()),
            List::Mask(array) => ListShape::Mask {
                shape: array.shape.clone(),
                count: array.values.iter().filter(|&&value| value).count() as u64,
            },
            List::Shuffle(shuffle) => ListShape::Shuffle(*shuffle),
            List::Others(array) => ListShape::Others(array.values.as_slice().into()),
            List::File(_) => files
                .next()
                .cloned()
                .ok_or_else(|| ResolveError::new(item, ResolveErrorKind::NotOpened))?,
        };
        match array {
            ListShape::Mask { shape, .. } if rules.outer && shape.len() != 1 => {
                Err(ResolveError::new(item, ResolveErrorKind::OuterMask(shape.len())))
            }
            array => Ok(Some(array)),
        }
    };
    expr.items.iter().enumerate().map(array).collect()
}

/// Check that masks have the lengths of the axes that they index.
pub(super) fn check_masks(
    expr: &IndexExpr,
    arrays: &[Option<ListShape>],
    shape: &[u64],
    ellipsis_len: usize,
) -> Result<(), ResolveError> {
    let mut axis = 0;
    for (item, (wanted, array)) in expr.items.iter().zip(arrays).enumerate() {
        match (wanted, array) {
            (_, Some(ListShape::Mask { shape: mask, .. })) => {
                for &mask in mask {
                    let size = shape[axis];
                    if size != mask {
                        let fault = ResolveErrorKind::MaskShape { axis, size, mask };
                        return Err(ResolveError::new(item, fault));
                    }
                    axis += 1;
                }
            }
            (Item::Ellipsis, _) => axis += ellipsis_len,
            (Item::NewAxis, _) => {}
            _ => axis += 1,
        }
    }
    Ok(())
}

/// List `number` is the first whose shape does not broadcast with those before it.
fn not_broadcast(lists: &[SelectedList], number: usize) -> ResolveError {
    let shapes = lists.iter().flat_map(|list| {
        // NumPy counts a mask as one list an axis
        std::iter::repeat_n(list.shape.clone(), list.axes.len().max(1))
    });
    ResolveError::new(lists[number].item, ResolveErrorKind::Broadcast(shapes.collect()))
}

/// The positions of a typed list; the positions of a list in a file stay unknown.
pub(super) fn positions(
    expr: &IndexExpr,
    selection: &Selection,
    number: usize,
) -> Result<ListPositions, ResolveError> {
    let list = &selection.lists[number];
    let axis = list.axes.start;
    match expr.items.get(list.item) {
        Some(Item::List(List::Integers(_))) if selection.lists_are_empty() => {
            Ok(ListPositions::Known(Arc::from([])))
        }
        Some(Item::List(List::Integers(array))) => {
            let size = selection.source_shape[axis];
            let positions = array.values.iter().enumerate().map(|(value, &index)| {
                position(index, axis, size).map_err(|kind| {
                    let in_file = |list: &&SelectedList| list.positions == ListPositions::Integers;
                    let lists = selection.lists[..number].iter().filter(in_file).cloned().collect();
                    let source_shape = selection.source_shape.clone();
                    let before =
                        Box::new(Selection { source_shape, lists, ..Selection::default() });
                    ResolveError { item: list.item, value: Some(value), kind, before }
                })
            });
            Ok(ListPositions::Known(positions.collect::<Result<_, _>>()?))
        }
        Some(Item::List(List::Mask(array))) => {
            let is_true = array.values.iter().enumerate().filter(|&(_, &value)| value);
            let mut tuples = Vec::new();
            for (at, _) in is_true {
                let mut rest = at as u64;
                let start = tuples.len();
                for &len in array.shape.iter().rev() {
                    tuples.push(rest % len);
                    rest /= len;
                }
                tuples[start..].reverse();
            }
            Ok(ListPositions::Known(tuples.into()))
        }
        _ => Ok(list.positions.clone()),
    }
}

/// The positions of the lists of an expression, found item by item.
#[derive(Debug, Default)]
pub(super) struct ListAxes {
    /// Axes of the result from ranges and new axes so far.
    axes: usize,
    /// The value of `axes` at each list.
    lists: Vec<usize>,
    /// The value of `axes` at the first list or integer.
    first: Option<usize>,
    /// Whether another item has followed the first list or integer.
    gap: bool,
    /// Whether a list or an integer has followed after a gap.
    separated: bool,
}

impl ListAxes {
    pub(super) fn keep(&mut self, axes: usize) {
        self.axes += axes;
        self.gap |= self.first.is_some();
    }

    pub(super) fn integer(&mut self) {
        self.first.get_or_insert(self.axes);
        self.separated |= self.gap;
    }

    pub(super) fn list(&mut self) {
        self.integer();
        self.lists.push(self.axes);
    }

    /// The blocks of axes of the lists; with `outer`, one for each list.
    pub(super) fn blocks(
        &self,
        lists: &[SelectedList],
        outer: bool,
    ) -> Result<Vec<ListBlock>, ResolveError> {
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
            shape = broadcast(&shape, &list.shape).ok_or_else(|| not_broadcast(lists, number))?;
        }
        let at = if self.separated { 0 } else { first };
        Ok(vec![ListBlock { at, shape, lists: 0..lists.len() }])
    }
}

/// The broadcast shape of two shapes (NumPy: `broadcast_shapes`); `None` if they do not fit.
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
    use super::super::resolve::{resolve, resolve_with};
    use super::super::selection::AxisSelection;
    use super::*;
    use crate::index::numpy;

    fn resolved(text: &str, shape: &[u64]) -> Selection {
        resolve(&numpy::parse(text).unwrap().expr, shape, false).unwrap()
    }

    fn error(text: &str, shape: &[u64]) -> (usize, String) {
        let error = resolve(&numpy::parse(text).unwrap().expr, shape, false).unwrap_err();
        (error.item, error.to_string())
    }

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
            assert_eq!(selection.blocks[0].at, axis, "{text}");
        }
        assert_eq!(resolved("0", &[2]).blocks, []);
    }

    #[test]
    fn lists_are_broadcast_and_masks_are_their_nonzero() {
        // From NumPy 2.4.6: np.zeros((2, 3, 4, 5))[text].shape
        for (text, shape) in [
            ("[0, 1], [0, 2]", vec![2, 4, 5]),
            ("[[0], [1]], [0, 2, 1]", vec![2, 3, 4, 5]),
            ("[0, 1], :, [0, 2]", vec![2, 3, 5]),
            (":, [0, 1], [[0], [1], [2]], ...", vec![2, 3, 2, 5]),
            (":, [True, False, True]", vec![2, 2, 4, 5]),
            ("[[True, False, True], [False, False, True]]", vec![3, 4, 5]),
            (":, [0, 1], [True, False, True, False]", vec![2, 2, 5]),
            (":, [], [9]", vec![2, 0, 5]),
        ] {
            assert_eq!(resolved(&format!("{text},"), &[2, 3, 4, 5]).shape(), shape, "{text}");
        }
        let selection = resolved("[[[True, False, True], [False, False, True]]]", &[2, 3]);
        assert_eq!(selection.lists[0].axes, 0..2);
        assert_eq!(
            selection.lists[0].positions,
            ListPositions::Known(Arc::from([0, 0, 0, 2, 1, 2]))
        );
    }

    #[test]
    fn errors_of_lists_come_in_numpys_order() {
        let message = |text: &str| error(text, &[3, 4]).1;
        assert_eq!(
            message("[True, False], 9"),
            "boolean index did not match indexed array along axis 0; size of axis is 3 but size of \
             corresponding boolean axis is 2"
        );
        assert_eq!(message("[9, 9, 9], 9"), "index 9 is out of bounds for axis 1 with size 4");
        assert_eq!(
            message("[9, 0], [0, 1, 2]"),
            "shape mismatch: indexing arrays could not be broadcast together with shapes (2,) (3,)"
        );
        assert_eq!(message("[0], [0, -5]"), "index -5 is out of bounds for axis 1 with size 4");
        assert_eq!(message("[[True]], 0"), error("0, 0, 0", &[3, 4]).1);
        assert_eq!(resolved("[], [9]", &[3, 4]).shape(), [0]);
        assert!(message("[], 9").contains("index 9"));
        assert_eq!(message("@a.npy"), ResolveErrorKind::NotOpened.to_string());
    }

    #[test]
    fn outer_takes_lists_one_by_one() {
        let outer = |text: &str, shape: &[u64]| {
            let expr = numpy::parse(text).unwrap().expr;
            resolve_with(&expr, shape, Rules { outer: true, ..Rules::default() }, &[])
        };
        let selection = outer("[0, 1], 1, :2, [True, False, True, True, False]", &[2, 3, 4, 5]);
        assert_eq!(selection.unwrap().shape(), [2, 2, 3]);
        assert_eq!(outer("[[[0, 1]], [2]]", &[2, 3]).unwrap().shape(), [1, 2, 1]);
        let error = outer("[[[True, True, True]]]", &[1, 3]).unwrap_err();
        assert_eq!(error.kind, ResolveErrorKind::OuterMask(2));
    }

    #[test]
    fn what_is_in_files_is_said_by_the_caller() {
        let expr = numpy::parse("@a.npy, :, @b.npy").unwrap().expr;
        let mask = ListShape::Mask { shape: vec![2], count: 1 };
        let files = [ListShape::Integers(vec![3, 1]), mask];
        let selection = resolve_with(&expr, &[7, 8, 2], Rules::default(), &files).unwrap();
        assert_eq!(selection.shape(), [3, 1, 8]);
        assert_eq!(selection.lists[0].positions, ListPositions::Integers);
        assert_eq!(selection.lists[1].positions, ListPositions::Mask);
    }

    #[test]
    fn an_array_without_axes_is_an_integer() {
        // From NumPy 2.4.6: np.zeros((3, 4, 5))[text], with np.array(9) or np.array(-1) for the file
        let with = |text: &str, index: i64| {
            let files = [ListShape::Integer(index)];
            let expr = numpy::parse(text).unwrap().expr;
            resolve_with(&expr, &[3, 4, 5], Rules::default(), &files)
        };
        for text in
            ["[], @i", "[9, 9, 9], @i", "[False, False, False], @i", "[7, 8], @i, [1, 2, 3]"]
        {
            let error = with(text, 9).unwrap_err();
            assert_eq!(
                error.to_string(),
                "index 9 is out of bounds for axis 1 with size 4",
                "{text}"
            );
            assert_eq!((error.item, error.value), (1, None));
        }
        for (text, shape) in
            [("@i", vec![4, 5]), ("[], @i", vec![0, 5]), ("[1, 2], None, @i", vec![2, 1, 5])]
        {
            assert_eq!(with(text, -1).unwrap().shape(), shape, "{text}");
        }
        assert_eq!(with("..., @i", -1).unwrap().axes[2], AxisSelection::Index { axis: 2, at: 4 });
    }
}
