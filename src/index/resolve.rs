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

pub use super::advanced::ListShape;
use super::advanced::{ListAxes, check_masks, list_shapes, positions};
pub use super::named::resolve_named;
use super::selection::{position, range};
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
        selection.count_blocks(block).map_err(|kind| ResolveError::new(last_taking, kind))?;
    }
    selection.blocks = placement.blocks(&selection.lists, rules.outer)?;
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
    Err(ResolveError::new(item, ResolveErrorKind::TooManyAxes(ndim)))
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
                return Err(ResolveError::new(item, Malformed::SecondEllipsis));
            }
            Item::Ellipsis => 0,
            Item::Slice(SliceItem { step: Some(0), .. })
            | Item::List(List::Shuffle(Shuffle {
                slice: SliceItem { step: Some(0), .. }, ..
            })) => {
                return Err(ResolveError::new(item, Malformed::ZeroStep));
            }
            _ => arrays[item].as_ref().map_or(1, ListShape::axes),
        };
        if indexed > ndim {
            first_too_many.get_or_insert(item);
        }
    }
    match first_too_many {
        Some(item) => {
            Err(ResolveError::new(item, ResolveErrorKind::TooManyIndices { ndim, indexed }))
        }
        None => Ok(ndim - indexed),
    }
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
        let at = position(index, axis, size).map_err(|kind| ResolveError::new(item, kind))?;
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
        let first = self.taken;
        let axes = first..first + array.axes();
        let size = self.shape.get(first).copied().unwrap_or(0);
        let (shape, positions) = array.selected(item, first, size)?;
        self.selection.lists.push(SelectedList { item, axes: axes.clone(), shape, positions });
        self.taken = axes.end;
        self.selection.axes.extend(axes.map(|axis| AxisSelection::List { axis, list }));
        self.placement.list();
        Ok(())
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
            assert_eq!(error, ResolveError::new(1, malformed));
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
