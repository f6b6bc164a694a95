//! The slot of a tensor in the output, and what is wanted of each member: all of it, or
//! what lies in one part of the output.

use std::ops::Range;

use super::members::JoinedTensor;
use crate::execute::Conversion;
use crate::output::layout::OutputTensor;
use crate::shape::Order;

/// The bytes of a tensor in the output: rows, in which the rows of its members stand side by side.
pub(crate) struct Slot<'a> {
    /// The position of the first element, in bytes.
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    pub(crate) conversion: Conversion,
    item_bits: u64,
    /// How the members are joined; `None` for a single member.
    join: Option<&'a JoinedTensor>,
    /// The number of elements in a row of each position on the joined axis.
    inner: u64,
    rows: u64,
    /// The bytes of a row.
    pub(crate) row: u64,
    /// The wanted bytes, whole elements.
    window: Range<u64>,
    pub(crate) bands: Vec<Band>,
}

impl<'a> Slot<'a> {
    /// The slot of a tensor that begins at `start`, and what a range of the output wants of it. An
    /// element at the end of the range belongs to the next range.
    pub(crate) fn new(
        tensor: &OutputTensor,
        start: u64,
        range: &Range<u64>,
        join: Option<&'a JoinedTensor>,
        order: Order,
    ) -> Slot<'a> {
        let bytes = tensor.bytes;
        let item_bits = tensor.dtype.item_bits();
        let unit = if item_bits.is_multiple_of(8) { (item_bits / 8).max(1) } else { 1 };
        let cut = |at: u64| match at.saturating_sub(start).min(bytes) {
            all if all == bytes => all,
            at => at - at % unit,
        };
        let window = cut(range.start)..cut(range.end);
        let (rows, inner) = join.map_or((1, 0), |join| join.rows_and_inner(order));
        let row = bytes.checked_div(rows).unwrap_or(0);
        let bands = bands(window.clone(), row);
        let conversion = tensor.conversion;
        Slot { start, bytes, conversion, item_bits, join, inner, rows, row, window, bands }
    }

    /// The wanted bytes.
    pub(crate) fn window(&self) -> Range<u64> {
        self.window.clone()
    }

    /// Whether the rows of the members alternate in the tensor.
    pub(crate) fn alternates(&self) -> bool {
        self.rows > 1
    }

    /// The cell of a member in a band.
    pub(crate) fn cell(&self, member: usize, band: &Band) -> Option<Cell> {
        let Some(join) = self.join else { return band.cell(&(0..self.bytes), self.row) };
        let range = join.range(member);
        // the whole output has fewer than 2^63 bytes
        let bytes = |at: u64| {
            (u128::from(at) * u128::from(self.inner) * u128::from(self.item_bits) / 8) as u64
        };
        band.cell(&(bytes(range.start)..bytes(range.end)), self.row)
    }

    /// The cells of a member, one for each band that it contributes to.
    pub(crate) fn cells(&self, member: usize) -> impl Iterator<Item = Cell> + '_ {
        self.bands.iter().filter_map(move |band| self.cell(member, band))
    }
}

// A range of a joined tensor's bytes, and what each input gives to it.
//
// Along the joined axis the tensor has rows; a row of it holds a row of each input. A range of its
// bytes is at most three rectangles, called bands: the end of a row, whole rows, and the beginning
// of a row. What an input gives to a band is one range of its own bytes.
//
// ```text
//           input 0   input 1   input 2
//   row 0   .......   ....###   #######    a stretch of one row
//   row 1   #######   #######   #######    whole rows
//   row 2   #######   #######   #######
//   row 3   ###....   .......   .......    a stretch of one row
// ```

/// A stretch of one row, or several whole rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Band {
    rows: Range<u64>,
    columns: Range<u64>,
}

/// The contribution of an input to a band.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    /// The range of the input's bytes, with its rows one after the other.
    pub(crate) dense: Range<u64>,
    /// The position of the first row, from the beginning of the tensor.
    pub(crate) at: u64,
    /// The number of rows, and the bytes of each.
    pub(crate) rows: u64,
    pub(crate) run: u64,
}

/// The bands of a range of the bytes of rows of `row` bytes.
fn bands(range: Range<u64>, row: u64) -> Vec<Band> {
    if range.is_empty() || row == 0 {
        return Vec::new();
    }
    let mut first = range.start / row;
    let skipped = range.start % row;
    let end = range.end / row;
    let rest = range.end % row;
    let one = |number: u64, columns| Band { rows: number..number + 1, columns };
    if first == end {
        return vec![one(first, skipped..rest)];
    }
    let mut bands = Vec::new();
    if skipped > 0 {
        bands.push(one(first, skipped..row));
        first += 1;
    }
    if first < end {
        bands.push(Band { rows: first..end, columns: 0..row });
    }
    if rest > 0 {
        bands.push(one(end, 0..rest));
    }
    bands
}

impl Band {
    /// The contribution of an input that has these bytes of each row of `row` bytes; `None` for
    /// nothing.
    pub(crate) fn cell(&self, input: &Range<u64>, row: u64) -> Option<Cell> {
        let columns = self.columns.start.max(input.start)..self.columns.end.min(input.end);
        if columns.is_empty() {
            return None;
        }
        let in_input = |at: u64, column: u64| at * (input.end - input.start) + column - input.start;
        Some(Cell {
            dense: in_input(self.rows.start, columns.start)
                ..in_input(self.rows.end - 1, columns.end),
            at: self.rows.start * row + columns.start,
            rows: self.rows.end - self.rows.start,
            run: columns.end - columns.start,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The cells of any range name each of its bytes once, with the byte of the input.
        #[test]
        fn cells_are_the_bytes_of_the_range(
            lens in prop::collection::vec(0u64..5, 1..6),
            rows in 0u64..5,
            ends in (0u64..100, 0u64..100),
        ) {
            let row: u64 = lens.iter().sum();
            let cut = |end: u64| end.min(row * rows);
            let range = cut(ends.0.min(ends.1))..cut(ends.0.max(ends.1));
            // for each byte of the joined tensor, the input and the position in it
            let mut joined = Vec::new();
            for number in 0..rows {
                for (input, &len) in lens.iter().enumerate() {
                    joined.extend((0..len).map(|at| (input, number * len + at)));
                }
            }
            let mut found = vec![None; joined.len()];
            for band in bands(range.clone(), row) {
                let mut start = 0;
                for (input, len) in lens.iter().enumerate() {
                    if let Some(cell) = band.cell(&(start..start + len), row) {
                        prop_assert_eq!(cell.dense.end - cell.dense.start, cell.rows * cell.run);
                        for (number, byte) in cell.dense.clone().enumerate() {
                            let down = number as u64 / cell.run;
                            let right = number as u64 % cell.run;
                            let slot = &mut found[(cell.at + down * row + right) as usize];
                            prop_assert_eq!(slot.replace((input, byte)), None);
                        }
                    }
                    start += len;
                }
            }
            for (at, (found, joined)) in found.into_iter().zip(joined).enumerate() {
                prop_assert_eq!(found, range.contains(&(at as u64)).then_some(joined));
            }
        }
    }
}
