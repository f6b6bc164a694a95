//! Where the tensors of a join go in the output, and which part of them is wanted: all, or what
//! lies in one part of the output.

use std::ops::Range;

use super::bands::{Band, Cell, bands};
use super::inputs::{ChosenPart, JoinTarget, Joined};
use super::tensor::JoinedTensor;
use crate::error::Error;
use crate::execute::Conversion;
use crate::index::resolve::Selection;
use crate::input::Input;
use crate::output::Prepared;
use crate::output::layout::OutputTensor;
use crate::region::{Region, Take};
use crate::shape::Order;

/// Where a tensor goes.
#[derive(Clone)]
pub(super) struct Place {
    /// Its number among those of the output.
    pub(super) target: usize,
    /// Bytes of all its elements, and bits of one.
    pub(super) bytes: u64,
    pub(super) item_bits: u64,
    /// The position of its first element, in bytes.
    pub(super) start: u64,
    /// The bytes of it that are wanted, whole elements.
    pub(super) window: Range<u64>,
    pub(super) conversion: Conversion,
}

impl Place {
    /// How many bytes are wanted.
    pub(super) fn bytes(&self) -> u64 {
        self.window.end - self.window.start
    }
}

/// The places of all tensors, of which a range of the output is wanted. An element at the end of
/// the range belongs to the next one.
pub(super) fn places(prepared: &Prepared, range: &Range<u64>) -> Vec<Place> {
    let place = |(target, (entry, start)): (usize, (OutputTensor, u64))| {
        let (bytes, item_bits) = (entry.bytes, entry.dtype.item_bits());
        let unit = if item_bits.is_multiple_of(8) { (item_bits / 8).max(1) } else { 1 };
        let cut = |at: u64| match at.saturating_sub(start).min(bytes) {
            all if all == bytes => all,
            at => at - at % unit,
        };
        let window = cut(range.start)..cut(range.end);
        Place { target, bytes, item_bits, start, window, conversion: entry.conversion }
    };
    prepared.places().enumerate().map(place).collect()
}

/// The places of all tensors, of which all is wanted.
pub(super) fn whole(prepared: &Prepared) -> Vec<Place> {
    places(prepared, &(0..u64::MAX))
}

/// Where a tensor goes that is joined.
pub(super) struct JoinedPlace<'a> {
    pub(super) place: &'a Place,
    join: &'a JoinedTensor,
    /// Its number among those that are joined.
    pub(super) at: usize,
    /// The elements of a row that each position on the joined axis has.
    inner: u64,
    /// Bytes of a row.
    pub(super) row: u64,
    /// What is wanted.
    pub(super) bands: Vec<Band>,
}

impl<'a> JoinedPlace<'a> {
    pub(super) fn new(place: &'a Place, join: &'a JoinedTensor, at: usize, order: Order) -> Self {
        let (rows, inner) = join.rows_and_inner(order);
        let row = place.bytes.checked_div(rows).unwrap_or(0);
        let bands = bands(place.window.clone(), row);
        JoinedPlace { place, join, at, inner, row, bands }
    }

    /// What an input gives to a band.
    pub(super) fn cell(&self, number: usize, band: &Band) -> Option<Cell> {
        let range = self.join.range(number);
        let bytes = |at: u64| bytes_of(at * self.inner, self.place.item_bits);
        band.cell(&(bytes(range.start)..bytes(range.end)), self.row)
    }

    /// Whether anything is wanted of an input.
    pub(super) fn needs(&self, number: usize) -> bool {
        self.bands.iter().any(|band| self.cell(number, band).is_some())
    }
}

impl Joined<'_> {
    /// Those of these tensors that are joined.
    pub(super) fn joined<'p>(&'p self, places: &'p [Place]) -> Vec<JoinedPlace<'p>> {
        let mut before = 0;
        let number = |target: &JoinTarget| {
            before += usize::from(target.join.is_some());
            before
        };
        let numbers: Vec<usize> = self.tensors.iter().map(number).collect();
        let place = |place: &'p Place| {
            let join = self.tensors[place.target].join.as_ref()?;
            Some(JoinedPlace::new(place, join, numbers[place.target] - 1, self.order))
        };
        places.iter().filter_map(place).collect()
    }

    /// A tensor that is taken once.
    pub(super) fn take_kept(&self, place: &Place) -> Result<Take, Error> {
        let first = self.first();
        let tensor = &first.contents.tensors.at(self.tensors[place.target].number);
        let selection = Selection::whole(&tensor.shape);
        let region = <dyn Region>::of_selection(tensor, &selection, self.order);
        let region = region.map_err(|cause| first.failed_tensor(tensor, true, cause))?;
        Ok(Take::new(tensor.part(), region, place.conversion, place.start))
    }

    /// What is taken of an input, at the beginning of the tensor's place.
    pub(super) fn take_joined(
        &self,
        input: &Input,
        chosen: &ChosenPart,
        place: &Place,
    ) -> Result<Take, Error> {
        let tensor = &input.contents.tensors.at(chosen.number);
        let region = self.options.index.region(tensor, &chosen.selection, self.order);
        let region = region.map_err(|cause| input.failed_tensor(tensor, false, cause))?;
        let conversion = chosen.step.conversion(place.conversion);
        Ok(Take::new(tensor.part(), region, conversion, place.start))
    }
}

/// So many elements in bytes.
pub(super) fn bytes_of(elements: u64, item_bits: u64) -> u64 {
    // the whole output has fewer than 2^63 bytes
    (u128::from(elements) * u128::from(item_bits) / 8) as u64
}
