//! A view: the bytes of a tensor that a selection takes, as strided [`Runs`].
//!
//! A [`View`] is made only by functions that prove that all its bytes lie inside the tensor's data.
//! Offsets count from the beginning of a file, but files are not known here.
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
use crate::runs::{Axis, Runs, coalesce, split_axes};
use crate::shape::{self, MemoryAxes, Order, Permutation};

/// The position of a tensor's elements in a file.
#[derive(Clone, Debug)]
pub struct Layout<'a> {
    pub shape: &'a [u64],
    /// Bits per element.
    pub item_bits: u64,
    offset: u64,
    /// The distance between neighbours along each axis, in [units](Layout::unit_bits); `None` past
    /// 63 bits.
    strides: Option<Vec<i64>>,
    /// The range of the file that all elements must lie in.
    data: Range<u64>,
}

/// The bytes of a selection: [`Runs`] whose runs are the items, outermost axis first.
///
/// Invariants:
///
/// 1. The product of the lengths and the item size is less than 2^63.
/// 2. Unless that product is 0, the [byte bounds](Runs::byte_bounds) lie inside the tensor's data.
/// 3. Items are whole bytes: a 4-bit tensor has items of one byte or more here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    runs: Runs,
}

/// Why a selection has no view.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// The selection would divide a byte that elements share.
    #[error(
        "the selection cuts a byte: elements have {item_bits} bits here, so runs of them must \
         begin and end on whole bytes (multiples of {multiple} elements)"
    )]
    CutsByte {
        item_bits: u64,
        /// The number of elements that fill whole bytes.
        multiple: u64,
    },
    #[error("the tensor is too large: its bytes do not fit in 63 bits")]
    TooLarge,
    #[error("the strides of the tensor lead out of its bytes")]
    Outside,
    /// The elements have no offsets in the file, and the operation needs them.
    #[error("the tensor is stored in chunks, which are not changed")]
    InChunks,
}

impl ViewError {
    pub(crate) fn cuts_byte(item_bits: u64) -> ViewError {
        ViewError::CutsByte { item_bits, multiple: 8 / gcd(item_bits, 8) }
    }
}

impl<'a> Layout<'a> {
    /// The layout of contiguous elements from byte `offset` of the file.
    pub fn new(shape: &'a [u64], item_bits: u64, order: Order, offset: u64) -> Layout<'a> {
        let unit = if item_bits.is_multiple_of(8) { item_bits / 8 } else { 1 };
        let bytes = shape::byte_count(shape, item_bits);
        let strides = match bytes {
            Some(0) => Some(vec![0; shape.len()]),
            _ => shape::contiguous_strides(shape, unit, order),
        };
        let data = offset..offset.saturating_add(bytes.unwrap_or(0));
        Layout { shape, item_bits, offset, strides, data }
    }

    /// The layout of elements of whole bytes inside the range `data` of the file: the first element
    /// is at byte `offset`, neighbours along each axis are `strides` bytes apart. Strides may be
    /// negative.
    pub fn strided(
        shape: &'a [u64],
        item_bits: u64,
        offset: u64,
        mut strides: Vec<i64>,
        data: Range<u64>,
    ) -> Layout<'a> {
        if shape::byte_count(shape, item_bits) == Some(0) {
            strides.fill(0); // they lead nowhere, whatever they are
        }
        let fit = strides.len() == shape.len() && item_bits.is_multiple_of(8);
        Layout { shape, item_bits, offset, strides: fit.then_some(strides), data }
    }

    /// The strides in [units](Layout::unit_bits), after checking that all elements lie in the data.
    pub(crate) fn strides(&self) -> Result<&[i64], ViewError> {
        self.bounds()?;
        self.strides.as_deref().ok_or(ViewError::TooLarge)
    }

    /// The range of the file from the lowest byte of an element to the end of the highest; empty
    /// without elements.
    ///
    /// All views rest on this proof: it adds up, in 128 bits, how far each axis leads in both
    /// directions.
    pub(crate) fn bounds(&self) -> Result<Range<u64>, ViewError> {
        let bytes = shape::byte_count(self.shape, self.item_bits).ok_or(ViewError::TooLarge)?;
        let strides = self.strides.as_ref().ok_or(ViewError::TooLarge)?;
        if bytes == 0 {
            return Ok(self.offset..self.offset);
        }
        // the product of the lengths is less than 2^63, so nothing overflows
        let mut low = 0i128;
        let mut high = 0i128;
        for (&len, &stride) in self.shape.iter().zip(strides) {
            let last = i128::from(stride) * i128::from(len - 1);
            low += last.min(0);
            high += last.max(0);
        }
        let bytes = if self.item_bits.is_multiple_of(8) {
            low..high + i128::from(self.item_bits / 8)
        } else {
            // small elements follow each other, and the last byte may have room for more
            0..i128::from(bytes)
        };
        let offset = i128::from(self.offset);
        let start = offset + bytes.start;
        let end = offset + bytes.end;
        if start < i128::from(self.data.start) || end > i128::from(self.data.end) {
            return Err(ViewError::Outside);
        }
        match (u64::try_from(start), i64::try_from(end)) {
            (Ok(start), Ok(end)) => Ok(start..end as u64),
            _ => Err(ViewError::TooLarge),
        }
    }

    /// The offset of the first element in the file, in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn start(&self) -> Result<i64, ViewError> {
        i64::try_from(self.offset).map_err(|_| ViewError::TooLarge)
    }

    /// The unit of strides in bits: a byte, or an element smaller than a byte.
    fn unit_bits(&self) -> u64 {
        if self.item_bits.is_multiple_of(8) { 8 } else { self.item_bits }
    }

    pub(crate) fn item_units(&self) -> u64 {
        self.item_bits / self.unit_bits()
    }

    pub(crate) fn bytes(&self, units: i64) -> Result<i64, ViewError> {
        let bits = i128::from(units) * i128::from(self.unit_bits());
        if bits % 8 != 0 {
            return Err(ViewError::cuts_byte(self.item_bits));
        }
        i64::try_from(bits / 8).map_err(|_| ViewError::TooLarge)
    }

    /// All axes, with strides in bytes.
    pub(crate) fn axes(&self) -> Result<Vec<Axis>, ViewError> {
        let axes = self.shape.iter().zip(self.strides()?);
        axes.map(|(&len, &stride)| Ok(Axis { len, stride: self.bytes(stride)? })).collect()
    }

    /// The distance from the tensor's first element to the selection's first, and the axes of the
    /// selection, both in units. Axes indexed by integers or lists are dropped; lists are taken at
    /// position 0 of their axes.
    pub(crate) fn select(&self, selection: &Selection) -> Result<(i64, Vec<Axis>), ViewError> {
        let strides = self.strides()?;
        // positions and bounds are below the element count, so below 2^63
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
    /// The view of `selection`, which must have been resolved for the layout's shape. Axes of lists
    /// are dropped: the view is what the selection takes at position 0 of the lists.
    pub fn new(layout: &Layout<'_>, selection: &Selection) -> Result<View, ViewError> {
        let (first, axes) = layout.select(selection)?;
        View::of_axes(layout, first, axes)
    }

    /// The view of `selection` with the axes in another order, for a transposed result or an output
    /// in Fortran order.
    pub fn permuted(
        layout: &Layout<'_>,
        selection: &Selection,
        order: &Permutation,
    ) -> Result<View, ViewError> {
        let (first, axes) = layout.select(selection)?;
        View::of_axes(layout, first, order.permute(&axes))
    }

    /// The view of `selection` with the axes split and in another order.
    pub fn arranged(
        layout: &Layout<'_>,
        selection: &Selection,
        axes: &MemoryAxes,
    ) -> Result<View, ViewError> {
        let Some(splits) = axes.splits() else {
            return View::permuted(layout, selection, axes.order());
        };
        let (first, whole) = layout.select(selection)?;
        View::of_axes(layout, first, axes.order().permute(&split_axes(&whole, splits)))
    }

    /// The view from unit `first` of the layout, along axes in units.
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
            // elements smaller than a byte: whole runs of elements become the items
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

    pub fn runs(&self) -> &Runs {
        &self.runs
    }

    /// The offset of the first item in the file, in bytes.
    pub fn offset(&self) -> u64 {
        self.runs.offset as u64
    }

    pub fn itemsize(&self) -> u64 {
        self.runs.run
    }

    pub fn axes(&self) -> &[Axis] {
        &self.runs.axes
    }

    pub fn bytes(&self) -> u64 {
        self.runs.bytes()
    }

    /// Broadcast to axes of the lengths `lens`, as NumPy does with the value of an assignment: axes
    /// are matched from the last; missing axes and axes of length 1 repeat; leading axes of length
    /// 1 beyond `lens` are dropped. `None` where the lengths do not match.
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

    /// Join two contiguous views, if `next` begins where this one ends.
    #[must_use]
    pub fn followed_by(&self, next: &View) -> Option<View> {
        let first = self.range()?;
        let next = next.range()?;
        let run = next.end.checked_sub(first.start)?;
        let offset = i64::try_from(first.start).ok()?;
        let joins = first.end == next.start && i64::try_from(run).is_ok();
        joins.then_some(View { runs: Runs { offset, axes: Vec::new(), run } })
    }

    /// This view with the fewest axes, and unchanged bytes; no axes where they are contiguous.
    #[must_use]
    pub fn coalesced(&self) -> View {
        View { runs: self.runs.coalesced() }
    }

    /// The range of the file that the view takes, where the bytes are contiguous and in order.
    pub fn range(&self) -> Option<Range<u64>> {
        let runs = self.runs.coalesced();
        let end = runs.offset.checked_add_unsigned(runs.run)? as u64;
        runs.axes.is_empty().then_some(runs.offset as u64..end)
    }

    /// Divide a range of the dense bytes into views, in order.
    pub fn split(&self, range: Range<u64>) -> Vec<View> {
        let mut views = Vec::new();
        let mut push = |runs| -> Result<(), std::convert::Infallible> {
            views.push(View { runs });
            Ok(())
        };
        let Ok(()) = self.runs.split(range, &mut push);
        views
    }

    /// A contiguous view from `offset`, of the same lengths and item size.
    #[must_use]
    pub fn dense(&self, offset: u64) -> View {
        View { runs: Runs { offset: offset as i64, ..self.runs.dense() } }
    }

    /// This view in a file whose first `bytes` bytes are removed.
    #[must_use]
    pub fn after(mut self, bytes: u64) -> View {
        self.runs.offset = self.offset().saturating_sub(bytes) as i64;
        self
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
