//! A range of a joined tensor's bytes, and what each input gives to it.
//!
//! Along the joined axis the tensor has rows; a row of it holds a row of each input. A range of its
//! bytes is at most three rectangles, called bands: the end of a row, whole rows, and the beginning
//! of a row. What an input gives to a band is one range of its own bytes.
//!
//! ```text
//!           input 0   input 1   input 2
//!   row 0   .......   ....###   #######    a stretch of one row
//!   row 1   #######   #######   #######    whole rows
//!   row 2   #######   #######   #######
//!   row 3   ###....   .......   .......    a stretch of one row
//! ```

use std::ops::Range;

/// A stretch of one row, or several whole rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Band {
    rows: Range<u64>,
    /// Bytes of each row.
    columns: Range<u64>,
}

/// What an input gives to a band.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    /// Of the input's own bytes, those of its rows one after the other.
    pub(super) dense: Range<u64>,
    /// Where its first row goes, from the beginning of the tensor.
    pub(super) at: u64,
    /// How many rows it has there, and the bytes of each.
    pub(super) rows: u64,
    pub(super) run: u64,
}

/// The bands of a range of the bytes of rows of `row` bytes.
pub(super) fn bands(range: Range<u64>, row: u64) -> Vec<Band> {
    if range.is_empty() || row == 0 {
        return Vec::new();
    }
    let (mut first, skipped) = (range.start / row, range.start % row);
    let (end, rest) = (range.end / row, range.end % row);
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
    /// What an input gives to it that takes these bytes of each row of `row` bytes; `None` for
    /// nothing.
    pub(super) fn cell(&self, input: &Range<u64>, row: u64) -> Option<Cell> {
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
            // input and its own byte, of each byte of the joined tensor
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
                            let (down, right) = (number as u64 / cell.run, number as u64 % cell.run);
                            let place = &mut found[(cell.at + down * row + right) as usize];
                            prop_assert_eq!(place.replace((input, byte)), None);
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
