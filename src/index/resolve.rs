//! Applies an index expression to a shape: which positions of which axes, in which order.
//!
//! All arithmetic has 128 bits, so that no bound, step or length overflows. A [`Selection`] holds
//! the positions selected on each source axis and the shape of the result; bytes and strides are
//! not known here. The rules and the messages are NumPy's.
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

use std::sync::Arc;

use super::list::ListAxes;
pub use super::named::resolve_named;
use super::selection::{position, range, steps};
use super::{IndexExpr, Item, List, Malformed, Shuffle, SliceItem};
use crate::shape::MAX_NDIM;

pub use super::selection::{
    AxisSelection, ListBlock, ListPositions, OtherPositions, ResolveError, ResolveErrorKind,
    SelectedList, Selection, Shuffled, Steps,
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// An integer keeps its axis, with length 1, and counts as a slice when the axes of lists are
    /// placed. It must still be in range.
    pub keepdims: bool,
    /// Outer indexing, as np.ix_: each list is taken along its own axis. A mask must have one axis.
    pub outer: bool,
    /// Whether items for dimensions that a tensor does not have are skipped, if items have names.
    pub passes_over: bool,
    /// The number of elements in a block, if the last axis is stored in blocks. The index counts
    /// elements and must take whole blocks; the selection counts blocks.
    pub block: Option<u64>,
}

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

/// Apply `expr`, which must not name files, to a shape with axis lengths below 2^63.
pub fn resolve(expr: &IndexExpr, shape: &[u64], keepdims: bool) -> Result<Selection, ResolveError> {
    resolve_with(expr, shape, Rules { keepdims, ..Rules::default() }, &[])
}

/// Apply an expression to a shape; `files` are the contents of its lists' files, in order.
///
/// Of several errors it reports the one that NumPy reports: first shapes of masks, then integers,
/// then shapes of lists, then their positions.
pub fn resolve_with(
    expr: &IndexExpr,
    shape: &[u64],
    rules: Rules,
    files: &[ListShape],
) -> Result<Selection, ResolveError> {
    if expr.is_named() {
        return resolve_named(expr, shape, &[], Rules { passes_over: false, ..rules }, files);
    }
    let arrays = list_shapes(expr, rules, files)?;
    let ellipsis_len = ellipsis_len(expr, &arrays, shape.len())?;
    check_masks(expr, &arrays, shape, ellipsis_len)?;
    let selection = Selection::default();
    let placement = ListAxes::default();
    let mut resolver = Resolver { shape, rules, selection, placement, taken: 0 };
    let mut last_taking = 0;
    for (item, wanted) in expr.items.iter().enumerate() {
        let taken = resolver.taken;
        match wanted {
            Item::NewAxis => resolver.new_axis(),
            Item::Ellipsis => resolver.whole_axes(ellipsis_len),
            Item::Slice(slice) => resolver.slice(*slice),
            Item::Integer(index) => resolver.integer(item, *index)?,
            Item::List(_) => match &arrays[item] {
                Some(ListShape::Integer(index)) => resolver.integer(item, *index)?,
                Some(list) => resolver.list(item, list)?,
                None => {}
            },
        }
        if resolver.taken > taken {
            last_taking = item;
        }
    }
    if !expr.items.contains(&Item::Ellipsis) {
        resolver.whole_axes(ellipsis_len);
    }
    let Resolver { mut selection, placement, .. } = resolver;
    selection.source_shape = shape.to_vec();
    if let Some(block) = rules.block {
        selection.count_blocks(block).map_err(|kind| fault(last_taking, kind))?;
    }
    selection.blocks = placement
        .blocks(&selection.lists, rules.outer)
        .map_err(|number| not_broadcast(&selection.lists, number))?;
    check_ndim(expr, selection.shape().len())?;
    for number in 0..selection.lists.len() {
        selection.lists[number].positions = positions(expr, &selection, number)?;
    }
    Ok(selection)
}

fn check_ndim(expr: &IndexExpr, ndim: usize) -> Result<(), ResolveError> {
    if ndim <= MAX_NDIM {
        return Ok(());
    }
    let adds = |item: &Item| matches!(item, Item::NewAxis | Item::List(_));
    let item = expr.items.iter().rposition(adds).unwrap_or(0);
    Err(fault(item, ResolveErrorKind::TooManyAxes(ndim)))
}

/// List `number` is the first whose shape does not broadcast with those before it.
fn not_broadcast(lists: &[SelectedList], number: usize) -> ResolveError {
    let shapes = lists.iter().flat_map(|list| {
        // NumPy counts a mask as one list an axis
        std::iter::repeat_n(list.shape.clone(), list.axes.len().max(1))
    });
    fault(lists[number].item, ResolveErrorKind::Broadcast(shapes.collect()))
}

fn fault(item: usize, kind: impl Into<ResolveErrorKind>) -> ResolveError {
    ResolveError { item, value: None, kind: kind.into(), before: Box::default() }
}

impl ListShape {
    fn axes(&self) -> usize {
        match self {
            ListShape::Integer(_)
            | ListShape::Integers(_)
            | ListShape::Shuffle(_)
            | ListShape::Others(_) => 1,
            ListShape::Mask { shape, .. } => shape.len(),
        }
    }
}

/// The shapes of the items that are lists; `None` for other items.
fn list_shapes(
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
            List::File(_) => {
                files.next().cloned().ok_or_else(|| fault(item, ResolveErrorKind::NotOpened))?
            }
        };
        match array {
            ListShape::Mask { shape, .. } if rules.outer && shape.len() != 1 => {
                Err(fault(item, ResolveErrorKind::OuterMask(shape.len())))
            }
            array => Ok(Some(array)),
        }
    };
    expr.items.iter().enumerate().map(array).collect()
}

/// The number of axes of the ellipsis. Also checks the rules of [`IndexExpr`].
fn ellipsis_len(
    expr: &IndexExpr,
    arrays: &[Option<ListShape>],
    ndim: usize,
) -> Result<usize, ResolveError> {
    let mut indexed = 0;
    let mut first_too_many = None;
    let mut ellipsis = false;
    for (item, wanted) in expr.items.iter().enumerate() {
        indexed += match wanted {
            Item::NewAxis => 0,
            Item::Ellipsis if std::mem::replace(&mut ellipsis, true) => {
                return Err(fault(item, Malformed::SecondEllipsis));
            }
            Item::Ellipsis => 0,
            Item::Slice(SliceItem { step: Some(0), .. })
            | Item::List(List::Shuffle(Shuffle {
                slice: SliceItem { step: Some(0), .. }, ..
            })) => {
                return Err(fault(item, Malformed::ZeroStep));
            }
            _ => arrays[item].as_ref().map_or(1, ListShape::axes),
        };
        if indexed > ndim {
            first_too_many.get_or_insert(item);
        }
    }
    match first_too_many {
        Some(item) => Err(fault(item, ResolveErrorKind::TooManyIndices { ndim, indexed })),
        None => Ok(ndim - indexed),
    }
}

fn check_masks(
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
                        return Err(fault(item, ResolveErrorKind::MaskShape { axis, size, mask }));
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

struct Resolver<'a> {
    shape: &'a [u64],
    rules: Rules,
    selection: Selection,
    placement: ListAxes,
    taken: usize,
}

impl Resolver<'_> {
    fn next(&mut self) -> (usize, u64) {
        let axis = self.taken;
        self.taken += 1;
        (axis, self.shape.get(axis).copied().unwrap_or(0))
    }

    fn slice(&mut self, slice: SliceItem) {
        let (axis, size) = self.next();
        self.selection.axes.push(range(slice, axis, size));
        self.placement.keep(1);
    }

    fn new_axis(&mut self) {
        self.selection.axes.push(AxisSelection::NewAxis);
        self.placement.keep(1);
    }

    fn whole_axes(&mut self, count: usize) {
        // an ellipsis of no axes separates lists too
        self.placement.keep(0);
        (0..count).for_each(|_| self.slice(SliceItem::default()));
    }

    fn integer(&mut self, item: usize, index: i64) -> Result<(), ResolveError> {
        let (axis, size) = self.next();
        let at = position(index, axis, size).map_err(|kind| fault(item, kind))?;
        if self.rules.keepdims {
            let one = AxisSelection::Range { axis, start: at, step: 1, len: 1 };
            self.selection.axes.push(one);
            self.placement.keep(1);
        } else {
            self.selection.axes.push(AxisSelection::Index { axis, at });
            self.placement.integer();
        }
        Ok(())
    }

    /// Add a list, whose positions are filled in later.
    fn list(&mut self, item: usize, array: &ListShape) -> Result<(), ResolveError> {
        let list = self.selection.lists.len();
        let axes = self.taken..self.taken + array.axes();
        let (shape, positions) = match array {
            ListShape::Integer(_) => (Vec::new(), ListPositions::Integers),
            ListShape::Integers(shape) => (shape.clone(), ListPositions::Integers),
            ListShape::Mask { count, .. } => (vec![*count], ListPositions::Mask),
            ListShape::Shuffle(Shuffle { seed, slice }) => {
                let size = self.shape.get(self.taken).copied().unwrap_or(0);
                let taken = steps(*slice, size);
                let shuffled = Shuffled { seed: *seed, size, taken };
                (vec![taken.len], ListPositions::Shuffle(shuffled))
            }
            ListShape::Others(left_out) => {
                let axis = self.taken;
                let size = self.shape.get(axis).copied().unwrap_or(0);
                let at = |(value, &index): (usize, &i64)| {
                    let at = position(index, axis, size);
                    at.map_err(|kind| ResolveError { value: Some(value), ..fault(item, kind) })
                };
                let left_out = left_out.iter().enumerate().map(at);
                let mut left_out = left_out.collect::<Result<Vec<u64>, _>>()?;
                left_out.sort_unstable();
                left_out.dedup();
                let others = OtherPositions { size, left_out: left_out.into() };
                (vec![others.count()], ListPositions::Others(others))
            }
        };
        self.selection.lists.push(SelectedList { item, axes: axes.clone(), shape, positions });
        self.selection.axes.extend(axes.map(|axis| AxisSelection::List { axis, list }));
        self.taken += array.axes();
        self.placement.list();
        Ok(())
    }
}

/// The positions of a typed list; the positions of a list in a file stay unknown.
fn positions(
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

#[cfg(test)]
mod tests {
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
        let step = Item::Slice(SliceItem { step: Some(0), ..SliceItem::default() });
        for (pair, malformed) in [
            ([Item::NewAxis, step], Malformed::ZeroStep),
            ([Item::Ellipsis, Item::Ellipsis], Malformed::SecondEllipsis),
        ] {
            let error = resolve(&IndexExpr::new(pair.into()), &[2, 2], false).unwrap_err();
            assert_eq!(error, fault(1, malformed));
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

    #[test]
    fn keepdims_keeps_axes_in_their_places() {
        let expr = numpy::parse("-1, :, [0, 2], 1").unwrap().expr;
        let selection = resolve(&expr, &[2, 3, 4, 5], true).unwrap();
        assert_eq!(selection.shape(), [1, 3, 2, 1]);
        assert_eq!(selection.blocks[0].at, 2);
        assert_eq!(selection.axes[0], AxisSelection::Range { axis: 0, start: 1, step: 1, len: 1 });
        assert!(resolve(&expr, &[2, 3, 4, 1], true).is_err());
    }

    #[test]
    fn the_whole_is_what_the_empty_expression_selects() {
        for shape in [&[][..], &[7], &[0], &[1, 0, i64::MAX as u64], &[2; MAX_NDIM]] {
            assert_eq!(Selection::whole(shape), resolved("", shape));
        }
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
}
