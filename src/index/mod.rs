//! Index expressions: which part of a tensor to select, as data.
//!
//! NumPy's text ([`numpy`]) and StridedSlice's numbers ([`strided_slice`]) are two notations for a
//! list of [`Item`]s; nothing after parsing depends on the notation. [`resolve`] applies an
//! expression to a shape. Bytes and files are not known here.
//!
//! ```
//! use tslice::index::{numpy, resolve::resolve};
//! let parsed = numpy::parse("1, ..., ::-2").unwrap();
//! let selection = resolve(&parsed.expr, &[4, 5, 6], false).unwrap();
//! assert_eq!(selection.shape(), [5, 3]);
//! ```

mod advanced;
mod comparison;
mod lexer;
pub mod list;
mod named;
pub mod numpy;
pub mod resolve;
mod selection;
pub mod strided_slice;

pub use comparison::{Comparison, Number, Sign};
pub use list::{Array, FileRef, List, Shuffle};

/// One item of an index expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// One position on an axis, which is dropped; a negative value counts from the end.
    Integer(i64),
    /// A range of positions on an axis.
    Slice(SliceItem),
    /// All axes that no other item indexes.
    Ellipsis,
    /// A new axis of length 1.
    NewAxis,
    /// Positions in any order, or a mask: NumPy's advanced indexing.
    List(List),
}

/// Python's `start:stop:step`, each part optional.
///
/// Bounds past 64 bits are stored as the nearest 64-bit value, which selects the same elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SliceItem {
    /// First position; negative values count from the end.
    pub start: Option<i64>,
    /// One past the last position, in the direction of the step.
    pub stop: Option<i64>,
    /// Distance between positions, at least -(2^63 - 1) and not 0. `None` means 1.
    pub step: Option<i64>,
}

/// A whole index expression, in the order of its items: at most one ellipsis, no step of 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexExpr {
    pub items: Vec<Item>,
    /// The dimension of each item, if items have names (`time=0`); empty if they are in the order
    /// of the axes.
    pub names: Vec<String>,
}

impl IndexExpr {
    /// Items in the order of the axes.
    pub fn new(items: Vec<Item>) -> IndexExpr {
        IndexExpr { items, names: Vec::new() }
    }

    pub(crate) fn is_named(&self) -> bool {
        !self.names.is_empty()
    }
}

/// An index expression with its NumPy text and the position of each item in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpannedExpr {
    pub expr: IndexExpr,
    pub text: String,
    /// The byte range of each item of `expr` in `text`.
    pub spans: Vec<std::ops::Range<usize>>,
}

/// A broken rule of [`IndexExpr`], whatever the shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("slice step cannot be zero")]
    ZeroStep,
    #[error("an index can only have a single ellipsis ('...')")]
    SecondEllipsis,
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::option;
    use proptest::prelude::*;

    use super::{
        Array, Comparison, FileRef, IndexExpr, Item, List, Number, Shuffle, Sign, SliceItem,
    };

    /// Integers near 0, near the ends of 64 bits, and anywhere.
    pub(crate) fn integers() -> impl Strategy<Value = i64> {
        let ends = prop_oneof![Just(i64::MIN), Just(-i64::MAX), Just(i64::MAX), Just(i64::MAX - 1)];
        prop_oneof![8 => -7..8i64, 1 => ends, 1 => any::<i64>()]
    }

    pub(crate) fn slices() -> impl Strategy<Value = SliceItem> {
        let step = integers().prop_map(|step| if step == 0 { 1 } else { step.max(-i64::MAX) });
        (option::of(integers()), option::of(integers()), option::of(step))
            .prop_map(|(start, stop, step)| SliceItem { start, stop, step })
    }

    /// Nested lists of one to three levels; an empty list has no type.
    fn lists() -> impl Strategy<Value = List> {
        let shape = prop::collection::vec(1..4u64, 0..3).prop_flat_map(|outer| {
            (0..4u64).prop_map(move |inner| [outer.clone(), vec![inner]].concat())
        });
        let integers = shape.clone().prop_flat_map(|shape| {
            let count = shape.iter().product::<u64>() as usize;
            (prop::collection::vec(integers(), count), any::<bool>()).prop_map(
                move |(values, others)| {
                    let array = Array { shape: shape.clone(), values };
                    if others { List::Others(array) } else { List::Integers(array) }
                },
            )
        });
        let masks = shape.prop_flat_map(|shape| {
            let shape: Vec<u64> = shape.into_iter().map(|len| len.max(1)).collect();
            let count = shape.iter().product::<u64>() as usize;
            prop::collection::vec(any::<bool>(), count)
                .prop_map(move |values| List::Mask(Array { shape: shape.clone(), values }))
        });
        let word = r#"[a-c,"'#\[\]() \\é.:/=!<>-]{1,5}"#;
        let number = prop_oneof![
            any::<i64>().prop_map(|value| Number::Integer(value.into())),
            any::<f64>().prop_map(|value| Number::Float(value.to_bits())),
        ];
        let sign = prop_oneof![
            Just(Sign::Equal),
            Just(Sign::Different),
            Just(Sign::Less),
            Just(Sign::LessOrEqual),
            Just(Sign::Greater),
            Just(Sign::GreaterOrEqual),
        ];
        let comparison =
            option::of((sign, number).prop_map(|(sign, number)| Comparison { sign, number }));
        let files = (word, option::of(word), any::<bool>(), comparison).prop_map(
            |(path, name, opposite, comparison)| {
                List::File(FileRef { path, name, opposite, comparison })
            },
        );
        let shuffles = (any::<u64>(), slices())
            .prop_map(|(seed, slice)| List::Shuffle(Shuffle { seed, slice }));
        prop_oneof![2 => integers, 2 => masks, 1 => files, 1 => shuffles]
    }

    /// Valid expressions of up to 8 items.
    pub(crate) fn expressions() -> impl Strategy<Value = IndexExpr> {
        let item = prop_oneof![
            integers().prop_map(Item::Integer),
            slices().prop_map(Item::Slice),
            Just(Item::NewAxis),
            Just(Item::Ellipsis),
            lists().prop_map(Item::List),
        ];
        prop::collection::vec(item, 0..8).prop_map(|mut items| {
            let mut ellipsis = false;
            items.retain(|item| match item {
                Item::Ellipsis => !std::mem::replace(&mut ellipsis, true),
                _ => true,
            });
            IndexExpr::new(items)
        })
    }
}
