//! A view: the bytes of a tensor that a selection takes, as an offset and signed strides.
//!
//! Owns the proof that no byte outside the tensor's data is ever asked for: a [`View`] can only
//! be made by functions that check it. Knows no files; offsets count from the beginning of one.
//!
//! ```
//! use tslice::index::{numpy, resolve::resolve};
//! use tslice::shape::Order;
//! use tslice::view::{Layout, View};
//! let layout = Layout { shape: &[4, 5], item_bits: 32, order: Order::C, offset: 128 };
//! let selection = resolve(&numpy::parse("1:, ::-2").unwrap().expr, &[4, 5], false).unwrap();
//! let view = View::new(&layout, &selection).unwrap();
//! assert_eq!(view.offset(), 128 + 20 + 16);
//! assert_eq!(view.axes().iter().map(|axis| axis.stride).collect::<Vec<_>>(), [20, -8]);
//! ```

use std::ops::Range;

use crate::index::resolve::{AxisSelection, Selection};
use crate::shape::{self, Order};

/// How a tensor's elements lie in a file.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    /// Its shape, in elements.
    pub shape: &'a [u64],
    /// Bits an element.
    pub item_bits: u64,
    /// The order of the elements.
    pub order: Order,
    /// Where the first byte lies in the file.
    pub offset: u64,
}

/// One axis of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Its length, in items.
    pub len: u64,
    /// The distance between neighbours, in bytes; negative where the axis runs backwards.
    pub stride: i64,
}

/// A strided window on bytes, outermost axis first.
///
/// What holds of every view:
///
/// 1. The product of the lengths and the item size is less than 2^63.
/// 2. Unless that product is 0, every byte from `offset` plus all negative reaches to `offset`
///    plus all positive reaches plus the item lies inside the tensor that it was made from.
/// 3. Items are whole bytes: a 4-bit tensor has items of one byte or more here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    offset: u64,
    itemsize: u64,
    axes: Vec<Axis>,
}

/// Why a selection has no view.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// Elements smaller than a byte, and the selection would cut one.
    #[error(
        "the selection cuts a byte: elements have {item_bits} bits here, so runs of them must \
         begin and end on whole bytes (multiples of {multiple} elements)"
    )]
    CutsByte {
        /// Bits an element.
        item_bits: u64,
        /// How many elements fill whole bytes.
        multiple: u64,
    },
    /// The tensor or the selection has 2^63 bytes or more.
    #[error("the tensor is too large: its bytes do not fit in 63 bits")]
    TooLarge,
}

impl View {
    /// The view of `selection`, which must have been resolved against the layout's shape.
    ///
    /// A list of the selection is left out: its axis appears whole, for a gather to pick from.
    pub fn new(layout: &Layout<'_>, selection: &Selection) -> Result<View, ViewError> {
        let counted = shape::byte_count(layout.shape, layout.item_bits);
        counted.ok_or(ViewError::TooLarge)?;
        let empty = layout.shape.contains(&0);
        let strides = if empty {
            vec![0; layout.shape.len()]
        } else {
            shape::contiguous_strides(layout.shape, 1, layout.order).ok_or(ViewError::TooLarge)?
        };
        // In elements first: positions and reaches stay below the element count, so below 2^63.
        let mut first = 0i64;
        let mut axes = Vec::with_capacity(selection.axes.len());
        for selected in &selection.axes {
            match selected {
                AxisSelection::Index { axis, at } => first += *at as i64 * strides[*axis],
                AxisSelection::Range { axis, start, step, len } => {
                    if *len > 0 {
                        first += *start as i64 * strides[*axis];
                    }
                    let stride = if *len > 1 { step * strides[*axis] } else { 0 };
                    axes.push(Axis { len: *len, stride });
                }
                AxisSelection::List { axis, .. } => {
                    axes.push(Axis { len: layout.shape[*axis], stride: strides[*axis] });
                }
                AxisSelection::NewAxis => axes.push(Axis { len: 1, stride: 0 }),
            }
        }
        let lens: Vec<u64> = axes.iter().map(|axis| axis.len).collect();
        shape::byte_count(&lens, layout.item_bits).ok_or(ViewError::TooLarge)?;
        if lens.contains(&0) || empty {
            first = 0;
            axes.iter_mut().for_each(|axis| axis.stride = 0);
        }
        View::from_elements(layout, first, axes)
    }

    /// Turn a view whose strides count elements into one whose strides count bytes.
    fn from_elements(
        layout: &Layout<'_>,
        first: i64,
        mut axes: Vec<Axis>,
    ) -> Result<View, ViewError> {
        let bits = layout.item_bits;
        if bits.is_multiple_of(8) {
            let itemsize = bits / 8;
            let bytes = |elements: i64| elements.checked_mul(itemsize as i64);
            for axis in &mut axes {
                axis.stride = bytes(axis.stride).ok_or(ViewError::TooLarge)?;
            }
            let offset = bytes(first).and_then(|first| layout.offset.checked_add_signed(first));
            return Ok(View { offset: offset.ok_or(ViewError::TooLarge)?, itemsize, axes });
        }
        // Smaller than a byte: whole runs of elements become the items.
        let multiple = 8 / gcd(bits, 8);
        let whole = |elements: i64| {
            let bytes = i128::from(elements) * i128::from(bits);
            let exact = (bytes % 8 == 0).then_some(bytes / 8).ok_or(())?;
            i64::try_from(exact).map_err(|_| ())
        };
        let cut = |()| ViewError::CutsByte { item_bits: bits, multiple };
        if axes.iter().any(|axis| axis.len == 0) {
            return Ok(View { offset: layout.offset, itemsize: 1, axes });
        }
        let (axes, run) = coalesce(&axes, 1);
        let itemsize = whole(run as i64).map_err(cut)? as u64;
        let mut bytes = Vec::with_capacity(axes.len());
        for axis in axes {
            bytes.push(Axis { len: axis.len, stride: whole(axis.stride).map_err(cut)? });
        }
        let offset = layout.offset.checked_add_signed(whole(first).map_err(cut)?);
        Ok(View { offset: offset.ok_or(ViewError::TooLarge)?, itemsize, axes: bytes })
    }

    /// A view of items whose place among other bytes is the caller's to know.
    pub(crate) fn of_bytes(offset: u64, itemsize: u64, axes: Vec<Axis>) -> View {
        View { offset, itemsize, axes }
    }

    /// Where the first item lies, in bytes from the beginning of the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes an item.
    pub fn itemsize(&self) -> u64 {
        self.itemsize
    }

    /// The axes, outermost first.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// The bytes of all items together.
    pub fn bytes(&self) -> u64 {
        if self.axes.iter().any(|axis| axis.len == 0) {
            return 0;
        }
        self.axes.iter().map(|axis| axis.len).product::<u64>() * self.itemsize
    }

    /// The same items with the first axis innermost: what an output in Fortran order holds.
    #[must_use]
    pub fn transposed(mut self) -> View {
        self.axes.reverse();
        self
    }

    /// The same items stretched to axes of the lengths `lens`, as NumPy broadcasts the value of an
    /// assignment: axes are matched from the last one on, those of length 1 repeat, missing ones
    /// too; leading axes of length 1 beyond `lens` are dropped. `None` where they do not match.
    #[must_use]
    pub fn broadcast(mut self, lens: &[u64]) -> Option<View> {
        let surplus = self.axes.len().saturating_sub(lens.len());
        if self.axes.drain(..surplus).any(|axis| axis.len != 1) {
            return None;
        }
        let missing = lens.len() - self.axes.len();
        self.axes.splice(..0, std::iter::repeat_n(Axis { len: 1, stride: 0 }, missing));
        for (axis, &len) in self.axes.iter_mut().zip(lens) {
            match axis.len {
                own if own == len => {}
                1 => *axis = Axis { len, stride: 0 },
                _ => return None,
            }
        }
        Some(self)
    }

    /// One item, at `offset`, in place of every item of this view.
    #[must_use]
    pub fn repeating(&self, offset: u64) -> View {
        let axes = self.axes.iter().map(|axis| Axis { stride: 0, ..*axis }).collect();
        View { offset, itemsize: self.itemsize, axes }
    }

    /// As many items as this view has, with its lengths, one after the other from `offset` on.
    #[must_use]
    pub fn dense(&self, offset: u64) -> View {
        let mut axes = self.axes.clone();
        let mut stride = self.itemsize as i64;
        for axis in axes.iter_mut().rev() {
            axis.stride = stride;
            stride = stride.saturating_mul(axis.len.max(1) as i64);
        }
        View { offset, itemsize: self.itemsize, axes }
    }

    /// The same view of a file whose first `bytes` bytes are gone.
    #[must_use]
    pub fn after(mut self, bytes: u64) -> View {
        self.offset = self.offset.saturating_sub(bytes);
        self
    }
}

/// Drop axes of length 1 and merge neighbours that are one run; `item` and strides in one unit.
///
/// Returns what is left, outermost first, and the length of the contiguous run that each item of
/// the innermost axis has become. No axis may have length 0.
///
/// ```
/// use tslice::view::{Axis, coalesce};
/// // a crop of 3 rows of 4 whole, neighbouring, 8-byte items in rows of 64 bytes
/// let axes = [Axis { len: 3, stride: 64 }, Axis { len: 1, stride: 0 }, Axis { len: 4, stride: 8 }];
/// assert_eq!(coalesce(&axes, 8), (vec![Axis { len: 3, stride: 64 }], 32));
/// ```
pub fn coalesce(axes: &[Axis], item: u64) -> (Vec<Axis>, u64) {
    let mut run = item;
    let mut kept: Vec<Axis> = Vec::with_capacity(axes.len());
    for &axis in axes.iter().rev().filter(|axis| axis.len != 1) {
        match kept.last_mut() {
            None if i64::try_from(run) == Ok(axis.stride) => run *= axis.len,
            Some(inner)
                if i128::from(inner.stride) * i128::from(inner.len) == i128::from(axis.stride) =>
            {
                inner.len *= axis.len;
            }
            _ => kept.push(axis),
        }
    }
    kept.reverse();
    (kept, run)
}

/// The bytes that items of `run` bytes along `axes` touch, as a range around the first item's
/// first byte: the lowest byte is at most 0, the end at least `run`. No axis may have length 0.
pub fn reach(axes: &[Axis], run: u64) -> Range<i64> {
    axes.iter().fold(0..run as i64, |reach, axis| {
        let last = axis.stride * (axis.len as i64 - 1);
        reach.start + last.min(0)..reach.end + last.max(0)
    })
}

pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
