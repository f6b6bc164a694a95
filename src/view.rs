//! A view: the bytes of a tensor that a selection takes, as strided [`Runs`].
//!
//! A [`View`] can only be made by functions that prove that all its bytes lie inside the tensor's
//! data. Offsets count from the beginning of a file, but no file is known here.
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
use crate::permutation::Permutation;
use crate::runs::{Axis, Runs, coalesce, span_bytes};
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

impl Layout<'_> {
    /// The strides in elements, 0 where there are no elements; all bytes can be counted.
    pub(crate) fn strides(&self) -> Result<Vec<i64>, ViewError> {
        shape::byte_count(self.shape, self.item_bits).ok_or(ViewError::TooLarge)?;
        if self.shape.contains(&0) {
            return Ok(vec![0; self.shape.len()]);
        }
        shape::contiguous_strides(self.shape, 1, self.order).ok_or(ViewError::TooLarge)
    }

    /// So many elements in bytes.
    pub(crate) fn bytes(&self, elements: i64) -> Result<i64, ViewError> {
        let bits = i128::from(elements) * i128::from(self.item_bits);
        if bits % 8 != 0 {
            return Err(ViewError::cuts_byte(self.item_bits));
        }
        i64::try_from(bits / 8).map_err(|_| ViewError::TooLarge)
    }

    /// The first element of a selection and its axes, in elements. Axes that integers and lists index
    /// have gone; lists stand at their axes' first positions.
    pub(crate) fn select(&self, selection: &Selection) -> Result<(i64, Vec<Axis>), ViewError> {
        Ok(select(selection, &self.strides()?))
    }
}

/// Where a field lies in each item of a tensor, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldLayout {
    /// Where it begins in the item.
    pub offset: u64,
    /// The size of one element of it.
    pub bytes: u64,
    /// The axes of its elements; none for a single one.
    pub axes: Vec<Axis>,
}

/// The distance of the first element of a selection from the tensor's first, and its axes, in the
/// unit of the strides.
fn select(selection: &Selection, strides: &[i64]) -> (i64, Vec<Axis>) {
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
    (first, axes)
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

    /// The same with the axes of the result in another order: those of a transposed result, or of
    /// an output in Fortran order.
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

    /// The view of a field of whole items, for a selection that was resolved against the shape of
    /// the layout followed by the axes of the field, its axes in the order `order`.
    ///
    /// # Errors
    /// [`ViewError`].
    pub fn of_field(
        layout: &Layout<'_>,
        field: &FieldLayout,
        selection: &Selection,
        order: &Permutation,
    ) -> Result<View, ViewError> {
        let item = layout.item_bits / 8;
        let shape: Vec<u64> =
            layout.shape.iter().copied().chain(field.axes.iter().map(|axis| axis.len)).collect();
        let is_empty = shape.contains(&0);
        // all of the field lies in its item, and all items lie in the tensor
        let end = if is_empty { 0 } else { field.offset + span_bytes(&field.axes, field.bytes) };
        let size = shape::byte_count(layout.shape, layout.item_bits);
        if end > item || size.is_none() {
            return Err(ViewError::TooLarge);
        }
        let mut strides = match is_empty {
            true => vec![0; layout.shape.len()],
            false => shape::contiguous_strides(layout.shape, item, layout.order)
                .ok_or(ViewError::TooLarge)?,
        };
        strides.extend(field.axes.iter().map(|axis| if is_empty { 0 } else { axis.stride }));
        let (mut first, axes) = select(selection, &strides);
        let mut axes = order.permute(&axes);
        if axes.iter().any(|axis| axis.len == 0) {
            first = 0;
            axes.iter_mut().for_each(|axis| axis.stride = 0);
        }
        let offset = layout.offset.checked_add(field.offset);
        let offset = offset.and_then(|offset| offset.checked_add_signed(first));
        let offset = offset.and_then(|offset| i64::try_from(offset).ok());
        let offset = offset.ok_or(ViewError::TooLarge)?;
        Ok(View { runs: Runs { offset, axes, run: field.bytes } })
    }

    /// The view from element number `first` of the layout on, along axes in elements.
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
        let offset = layout.offset.checked_add_signed(layout.bytes(first)?);
        let offset = offset.and_then(|offset| i64::try_from(offset).ok());
        Ok(View { runs: Runs { offset: offset.ok_or(ViewError::TooLarge)?, axes, run } })
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

    /// The same items stretched to axes of the lengths `lens`, as NumPy broadcasts the value of an
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

    /// The same view of a file whose first `bytes` bytes are gone.
    #[must_use]
    pub fn after(mut self, bytes: u64) -> View {
        self.runs.offset = self.offset().saturating_sub(bytes) as i64;
        self
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
