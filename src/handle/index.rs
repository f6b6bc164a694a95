//! Indexes that programs write as numbers: tuples of integers, ranges and lists, one for each axis.
//!
//! They become the same [`IndexExpr`] that texts do.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use crate::error::Error;
use crate::index::{Array, IndexExpr, Item, List, SliceItem, numpy};

/// An index of a tensor: a text in NumPy's notation, a parsed [`IndexExpr`], an item alone, or a tuple of up
/// to eight items. An item is, with NumPy's meaning of negative numbers and of bounds out of range,
///
/// - an integer, which drops its axis;
/// - a range: `2..8`, `..-1`, `3..`, `1..=4`, and `..` for a whole axis;
/// - a range with a [`step`], `step(.., -1)`;
/// - a list of positions or a mask, as an array, a slice or a `Vec` of integers or of `bool`, or a reference to one;
/// - [`NEW_AXIS`] and [`ELLIPSIS`].
///
/// ```
/// use tslice::{ELLIPSIS, IntoIndex, NEW_AXIS, parse_index, step};
///
/// let index = (3, 2..8, .., NEW_AXIS, ELLIPSIS, [0, -1], step(.., -2));
/// assert_eq!(index.into_index()?, parse_index("[3, 2:8, :, None, ..., [0, -1], ::-2]")?.expr);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait IntoIndex {
    /// The index as data.
    fn into_index(self) -> Result<IndexExpr, Error>;
}

/// An axis of length 1 in an index: NumPy's `None`.
pub const NEW_AXIS: Item = Item::NewAxis;

/// All axes that no other item of an index names: NumPy's `...`.
pub const ELLIPSIS: Item = Item::Ellipsis;

/// NumPy's `start:stop:step`: `step(.., 2)` is every second position, `step(.., -1)` all of them backwards, `step(7..2, -1)`
/// those from 7 down to 3.
pub fn step(range: impl Into<SliceItem>, step: i64) -> Item {
    Item::Slice(SliceItem { step: Some(step), ..range.into() })
}

impl IntoIndex for &str {
    fn into_index(self) -> Result<IndexExpr, Error> {
        Ok(numpy::parse(self)?.expr)
    }
}

impl IntoIndex for &String {
    fn into_index(self) -> Result<IndexExpr, Error> {
        self.as_str().into_index()
    }
}

impl IntoIndex for IndexExpr {
    fn into_index(self) -> Result<IndexExpr, Error> {
        Ok(self)
    }
}

impl IntoIndex for &IndexExpr {
    fn into_index(self) -> Result<IndexExpr, Error> {
        Ok(self.clone())
    }
}

impl<T: Into<Item>> IntoIndex for T {
    fn into_index(self) -> Result<IndexExpr, Error> {
        Ok(IndexExpr::new(vec![self.into()]))
    }
}

macro_rules! tuples {
    ($($($item:ident)*;)*) => {$(
        impl<$($item: Into<Item>),*> IntoIndex for ($($item,)*) {
            #[allow(non_snake_case)]
            fn into_index(self) -> Result<IndexExpr, Error> {
                let ($($item,)*) = self;
                Ok(IndexExpr::new(vec![$($item.into()),*]))
            }
        }
    )*};
}

tuples!(; A; A B; A B C; A B C D; A B C D E; A B C D E F; A B C D E F G; A B C D E F G H;);

impl From<SliceItem> for Item {
    fn from(slice: SliceItem) -> Item {
        Item::Slice(slice)
    }
}

impl From<RangeFull> for SliceItem {
    fn from(_: RangeFull) -> SliceItem {
        SliceItem::default()
    }
}

impl From<RangeFull> for Item {
    fn from(range: RangeFull) -> Item {
        Item::Slice(range.into())
    }
}

impl From<&[bool]> for Item {
    fn from(mask: &[bool]) -> Item {
        Item::List(List::Mask(Array { shape: vec![mask.len() as u64], values: mask.to_vec() }))
    }
}

/// The bound after position `last`; `None` after the last possible one.
fn behind(last: i64) -> Option<i64> {
    (last != -1).then(|| last.saturating_add(1))
}

macro_rules! ranges {
    ($range:ty, $bounds:expr) => {
        impl From<$range> for SliceItem {
            fn from(range: $range) -> SliceItem {
                let bounds: fn($range) -> [Option<i64>; 2] = $bounds;
                let [start, stop] = bounds(range);
                SliceItem { start, stop, step: None }
            }
        }

        impl From<$range> for Item {
            fn from(range: $range) -> Item {
                Item::Slice(range.into())
            }
        }
    };
}

macro_rules! lists {
    ($value:ty) => {
        impl From<Vec<$value>> for Item {
            fn from(values: Vec<$value>) -> Item {
                values.as_slice().into()
            }
        }

        impl From<&Vec<$value>> for Item {
            fn from(values: &Vec<$value>) -> Item {
                values.as_slice().into()
            }
        }

        impl<const N: usize> From<[$value; N]> for Item {
            fn from(values: [$value; N]) -> Item {
                values.as_slice().into()
            }
        }

        impl<const N: usize> From<&[$value; N]> for Item {
            fn from(values: &[$value; N]) -> Item {
                values.as_slice().into()
            }
        }
    };
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl From<$integer> for Item {
            fn from(position: $integer) -> Item {
                Item::Integer(bound(position))
            }
        }

        impl From<&[$integer]> for Item {
            fn from(positions: &[$integer]) -> Item {
                let values = positions.iter().map(|position| bound(*position)).collect();
                let shape = vec![positions.len() as u64];
                Item::List(List::Integers(Array { shape, values }))
            }
        }

        ranges!(Range<$integer>, |it| [Some(bound(it.start)), Some(bound(it.end))]);
        ranges!(RangeFrom<$integer>, |it| [Some(bound(it.start)), None]);
        ranges!(RangeTo<$integer>, |it| [None, Some(bound(it.end))]);
        ranges!(RangeInclusive<$integer>, |it| {
            [Some(bound(*it.start())), behind(bound(*it.end()))]
        });
        ranges!(RangeToInclusive<$integer>, |it| [None, behind(bound(it.end))]);
        lists!($integer);
    )*};
}

/// A number as a bound: a number beyond 64 bits becomes the nearest that fits, which is beyond
/// every axis.
fn bound(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

integers!(i32, i64, isize, u32, u64, usize);
lists!(bool);
