//! The chosen columns of a table.

use std::collections::VecDeque;

use super::{MAX_ROW, TextPosition};
use crate::formats::text::TextFault;

/// The chosen columns, and their cells in the current row.
#[derive(Clone)]
pub(super) struct ChosenColumns {
    /// The numbers of the columns, in the given order; negative ones count from the end of a row.
    numbers: Vec<i64>,
    /// The columns that count from the beginning, ascending, each with its index in `numbers`.
    ascending: Vec<(u64, usize)>,
    /// The number of these columns that the row has passed.
    passed: usize,
    cells: Vec<String>,
    /// The last cells of the row, as many as negative numbers may mean.
    last: VecDeque<String>,
    reach: u64,
    /// The bytes of all cells held in memory.
    held: usize,
}

impl ChosenColumns {
    pub(super) fn new(numbers: Vec<i64>) -> ChosenColumns {
        let from_start = |(position, &number)| Some((u64::try_from(number).ok()?, position));
        let mut ascending: Vec<_> = (0..).zip(&numbers).filter_map(from_start).collect();
        ascending.sort_unstable();
        let negative = numbers.iter().filter(|&&number| number < 0);
        let reach = negative.map(|number| number.unsigned_abs()).max().unwrap_or(0);
        let cells = vec![String::new(); numbers.len()];
        ChosenColumns {
            numbers,
            ascending,
            passed: 0,
            cells,
            last: VecDeque::new(),
            reach,
            held: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Take the next cell of the row.
    pub(super) fn hold(&mut self, position: TextPosition, text: &str) -> Result<(), TextFault> {
        while let Some(&(number, at)) = self.ascending.get(self.passed)
            && number < position.column
        {
            self.cells[at].clear();
            self.cells[at].push_str(text);
            self.held += text.len();
            self.passed += 1;
        }
        if self.reach > 0 {
            if self.last.len() as u64 == self.reach {
                self.held -= self.last.pop_front().map_or(0, |cell| held(&cell));
            }
            self.last.push_back(text.to_owned());
            self.held += held(text);
        }
        if self.held > MAX_ROW { Err(TextFault::LongCells { position }) } else { Ok(()) }
    }

    /// The chosen columns, from 1, in a row of `found` cells.
    pub(super) fn columns(&self, line: u64, found: u64) -> Result<Vec<u64>, TextFault> {
        let column = |&number: &i64| {
            let start = if number < 0 { found } else { 0 };
            let column = start.checked_add_signed(number).filter(|&column| column < found);
            column.map(|column| column + 1).ok_or(TextFault::NoColumn { line, number, found })
        };
        self.numbers.iter().map(column).collect()
    }

    /// The cells of the chosen columns, in the given order; the row must have them all.
    pub(super) fn cells(&self) -> impl Iterator<Item = &str> {
        self.cells.iter().zip(&self.numbers).map(|(cell, &number)| {
            let back = if number < 0 { number.unsigned_abs() as usize } else { 0 };
            let from_end = self.last.len().checked_sub(back).filter(|_| back > 0);
            from_end.and_then(|at| self.last.get(at)).map_or(cell.as_str(), String::as_str)
        })
    }

    pub(super) fn end_row(&mut self) {
        self.passed = 0;
        self.last.clear();
        self.held = 0;
    }
}

/// The memory of a cell that is a string of its own.
fn held(text: &str) -> usize {
    text.len() + size_of::<String>()
}
