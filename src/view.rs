//! A view: the bytes of a tensor that a selection takes, as strided [`Runs`].
//!
//! A [`View`] can only be made by functions that prove that all its bytes lie inside the tensor's
//! data. Offsets count from the beginning of a file, but no file is known here.
//!
//! ```
//! use tslice::index::{numpy, resolve::resolve};
//! use tslice::shape::Order;
//! use tslice::view::{Layout, View};
//! let layout = Layout::new(&[4, 5], 32, Order::C, 128);
//! let selection = resolve(&numpy::parse("1:, ::-2").unwrap().expr, &[4, 5], false).unwrap();
//! let view = View::new(&layout, &selection).unwrap();
//! assert_eq!(view.offset(), 128 + 20 + 16);
//! assert_eq!(view.axes().iter().map(|axis| axis.stride).collect::<Vec<_>>(), [20, -8]);
//! ```

use std::ops::Range;

use crate::index::resolve::{AxisSelection, Selection};
use crate::permutation::Permutation;
use crate::runs::{Axis, Runs, coalesce, span_bytes};
use crate::shape::{self, Order};

/// How a tensor's elements lie in a file.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    /// The shape, in elements.
    pub shape: &'a [u64],
    /// Bits an element.
    pub item_bits: u64,
    /// The order of the elements.
    pub order: Order,
    /// Where the first byte lies in the file.
    pub offset: u64,
    /// The larger items that the elements lie in, where they are fields.
    pub within: Option<Within<'a>>,
}

/// Items of which elements are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within<'a> {
    /// Bytes of an item.
    pub item: u64,
    /// Where its first element begins in it, in bytes.
    pub offset: u64,
    /// The last axes of the shape lie inside an item: their strides, in bytes.
    pub strides: &'a [i64],
}

/// The bytes of a selection, outermost axis first: [`Runs`] whose runs are the items.
///
/// Invariants:
///
/// 1. The product of the lengths and the item size is less than 2^63.
/// 2. Unless that product is 0, its [byte bounds](Runs::byte_bounds) lie inside the tensor that it
///    was made from.
/// 3. Items are whole bytes: a 4-bit tensor has items of one byte or more here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    runs: Runs,
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

impl ViewError {
    /// Elements of `item_bits` bits that do not fill whole bytes.
    pub(crate) fn cuts_byte(item_bits: u64) -> ViewError {
        ViewError::CutsByte { item_bits, multiple: 8 / gcd(item_bits, 8) }
    }
}

impl<'a> Layout<'a> {
    /// Elements that follow each other.
    pub fn new(shape: &'a [u64], item_bits: u64, order: Order, offset: u64) -> Layout<'a> {
        Layout { shape, item_bits, order, offset, within: None }
    }

    /// The strides in [units](Layout::unit_bits), 0 where there are no elements; all bytes can be
    /// counted, and lie within 63 bits.
    pub(crate) fn strides(&self) -> Result<Vec<i64>, ViewError> {
        self.extent()?;
        if self.shape.contains(&0) {
            return Ok(vec![0; self.shape.len()]);
        }
        let (outer, item) = match self.within {
            None => (self.shape, 1),
            Some(within) => {
                (self.shape.split_at(self.shape.len() - within.strides.len()).0, within.item)
            }
        };
        let strides = shape::contiguous_strides(outer, item, self.order);
        let mut strides = strides.ok_or(ViewError::TooLarge)?;
        strides.extend(self.within.map_or(&[][..], |within| within.strides));
        Ok(strides)
    }

    /// From the first byte of the first element to the end of the last, in bytes; 0 where there is
    /// nothing.
    pub(crate) fn extent(&self) -> Result<u64, ViewError> {
        let bytes = shape::byte_count(self.shape, self.item_bits).ok_or(ViewError::TooLarge)?;
        let Some(Within { item, offset, strides }) = self.within.filter(|_| bytes > 0) else {
            return Ok(bytes);
        };
        let (outer, inner) = self.shape.split_at(self.shape.len() - strides.len());
        let axes = inner.iter().zip(strides).map(|(&len, &stride)| Axis { len, stride });
        let span = span_bytes(&axes.collect::<Vec<_>>(), self.item_bits / 8);
        let items = shape::byte_count(outer, item.saturating_mul(8));
        // what is taken of an item must lie in it
        let end = offset.checked_add(span).filter(|&end| end <= item);
        let (Some(items), Some(_)) = (items, end) else { return Err(ViewError::TooLarge) };
        Ok(items - item + span)
    }

    /// Where the first element lies in the file.
    pub(crate) fn start(&self) -> Result<i64, ViewError> {
        let start = self.offset.checked_add(self.within.map_or(0, |within| within.offset));
        start.and_then(|start| i64::try_from(start).ok()).ok_or(ViewError::TooLarge)
    }

    /// The bits that strides are counted in: an element, or a byte for elements within larger items.
    fn unit_bits(&self) -> u64 {
        if self.within.is_some() { 8 } else { self.item_bits }
    }

    /// The units of an element.
    pub(crate) fn item_units(&self) -> u64 {
        if self.within.is_some() { self.item_bits / 8 } else { 1 }
    }

    /// So many units in bytes.
    pub(crate) fn bytes(&self, units: i64) -> Result<i64, ViewError> {
        let bits = i128::from(units) * i128::from(self.unit_bits());
        if bits % 8 != 0 {
            return Err(ViewError::cuts_byte(self.item_bits));
        }
        i64::try_from(bits / 8).map_err(|_| ViewError::TooLarge)
    }

    /// The distance of the first element of a selection from the tensor's first, and its axes, in
    /// units. Axes that integers and lists index have gone; lists stand at their axes' first
    /// positions.
    pub(crate) fn select(&self, selection: &Selection) -> Result<(i64, Vec<Axis>), ViewError> {
        let strides = self.strides()?;
        // positions and bounds stay below the element count, so below 2^63
        let mut first = 0i64;
        let mut axes = Vec::with_capacity(selection.axes.len());
        for pick in &selection.axes {
            match *pick {
                AxisSelection::Index { axis, at } => first += at as i64 * strides[axis],
                AxisSelection::Range { axis, start, step, len } => {
                    if len > 0 {
                        first += start as i64 * strides[axis];
                    }
                    let stride = if len > 1 { step * strides[axis] } else { 0 };
                    axes.push(Axis { len, stride });
                }
                AxisSelection::List { .. } => {}
                AxisSelection::NewAxis => axes.push(Axis { len: 1, stride: 0 }),
            }
        }
        Ok((first, axes))
    }
}

impl View {
    /// The view of `selection`, which must have been resolved against the layout's shape.
    ///
    /// The axes of lists have gone: the view is what the selection takes at their first positions.
    ///
    /// # Errors
    /// [`ViewError`].
    pub fn new(layout: &Layout<'_>, selection: &Selection) -> Result<View, ViewError> {
        let (first, axes) = layout.select(selection)?;
        View::of_axes(layout, first, axes)
    }

    /// A view of a selection, with the axes in another order: those of a transposed result, or of an
    /// output in Fortran order.
    ///
    /// # Errors
    /// [`ViewError`].
    pub fn permuted(
        layout: &Layout<'_>,
        selection: &Selection,
        order: &Permutation,
    ) -> Result<View, ViewError> {
        let (first, axes) = layout.select(selection)?;
        View::of_axes(layout, first, order.permute(&axes))
    }

    /// The view from unit number `first` of the layout on, along axes in units.
    fn of_axes(
        layout: &Layout<'_>,
        mut first: i64,
        mut axes: Vec<Axis>,
    ) -> Result<View, ViewError> {
        let lens: Vec<u64> = axes.iter().map(|axis| axis.len).collect();
        shape::byte_count(&lens, layout.item_bits).ok_or(ViewError::TooLarge)?;
        let is_empty = lens.contains(&0);
        if is_empty {
            first = 0;
            axes.iter_mut().for_each(|axis| axis.stride = 0);
        }
        let run = if layout.item_bits.is_multiple_of(8) {
            layout.item_bits / 8
        } else if is_empty {
            1
        } else {
            // smaller than a byte: whole runs of elements become the items
            let (coalesced, elements) = coalesce(&axes, 1);
            axes = coalesced;
            layout.bytes(elements as i64)? as u64
        };
        for axis in &mut axes {
            axis.stride = layout.bytes(axis.stride)?;
        }
        let offset = layout.start()?.checked_add(layout.bytes(first)?);
        let offset = offset.filter(|&offset| offset >= 0).ok_or(ViewError::TooLarge)?;
        Ok(View { runs: Runs { offset, axes, run } })
    }

    /// The items as runs, not coalesced.
    pub fn runs(&self) -> &Runs {
        &self.runs
    }

    /// Where the first item lies, in bytes from the beginning of the file.
    pub fn offset(&self) -> u64 {
        self.runs.offset as u64
    }

    /// Bytes an item.
    pub fn itemsize(&self) -> u64 {
        self.runs.run
    }

    /// The axes, outermost first.
    pub fn axes(&self) -> &[Axis] {
        &self.runs.axes
    }

    /// The bytes of all items together.
    pub fn bytes(&self) -> u64 {
        self.runs.bytes()
    }

    /// Stretch the items to axes of the lengths `lens`, as NumPy broadcasts the value of an
    /// assignment: axes are matched from the last one on, those of length 1 repeat, missing ones
    /// too; leading axes of length 1 beyond `lens` are dropped. `None` where they do not match.
    #[must_use]
    pub fn broadcast(mut self, lens: &[u64]) -> Option<View> {
        let axes = &mut self.runs.axes;
        let surplus = axes.len().saturating_sub(lens.len());
        if axes.drain(..surplus).any(|axis| axis.len != 1) {
            return None;
        }
        let missing = lens.len() - axes.len();
        axes.splice(..0, std::iter::repeat_n(Axis { len: 1, stride: 0 }, missing));
        for (axis, &len) in axes.iter_mut().zip(lens) {
            match axis.len {
                own if own == len => {}
                1 => *axis = Axis { len, stride: 0 },
                _ => return None,
            }
        }
        Some(self)
    }

    /// This view and another as one, where both are whole ranges of bytes, the other behind this
    /// one.
    #[must_use]
    pub fn followed_by(&self, next: &View) -> Option<View> {
        let (first, next) = (self.range()?, next.range()?);
        let run = next.end.checked_sub(first.start)?;
        let offset = i64::try_from(first.start).ok()?;
        let joins = first.end == next.start && i64::try_from(run).is_ok();
        joins.then_some(View { runs: Runs { offset, axes: Vec::new(), run } })
    }

    /// A view of these bytes in the fewest axes: none where it is one range.
    #[must_use]
    pub fn coalesced(&self) -> View {
        View { runs: self.runs.coalesced() }
    }

    /// The bytes of the file that it is, where it is one range of them in their order.
    pub fn range(&self) -> Option<Range<u64>> {
        let runs = self.runs.coalesced();
        let end = runs.offset.checked_add_unsigned(runs.run)? as u64;
        runs.axes.is_empty().then_some(runs.offset as u64..end)
    }

    /// The views that together are a range of its bytes, one after the other.
    pub fn split(&self, range: Range<u64>) -> Vec<View> {
        let mut views = Vec::new();
        let mut push = |runs| -> Result<(), std::convert::Infallible> {
            views.push(View { runs });
            Ok(())
        };
        let Ok(()) = self.runs.split(range, &mut push);
        views
    }

    /// One item, at `offset`, in place of every item of this view.
    #[must_use]
    pub fn repeating(&self, offset: u64) -> View {
        let axes = self.runs.axes.iter().map(|axis| Axis { stride: 0, ..*axis }).collect();
        View { runs: Runs { offset: offset as i64, axes, run: self.runs.run } }
    }

    /// As many items as this view has, with its lengths, one after the other from `offset` on.
    #[must_use]
    pub fn dense(&self, offset: u64) -> View {
        let mut axes = self.runs.axes.clone();
        let mut stride = self.runs.run as i64;
        for axis in axes.iter_mut().rev() {
            axis.stride = stride;
            stride = stride.saturating_mul(axis.len.max(1) as i64);
        }
        View { runs: Runs { offset: offset as i64, axes, run: self.runs.run } }
    }

    /// This view, of a file whose first `bytes` bytes are gone.
    #[must_use]
    pub fn after(mut self, bytes: u64) -> View {
        self.runs.offset = self.offset().saturating_sub(bytes) as i64;
        self
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
