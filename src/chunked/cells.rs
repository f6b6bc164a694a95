//! The positions of a selection's items in chunks.

use std::ops::Range;

use crate::runs::index_of;

/// The items of one axis of a selection. They fall into *cells*, the items in one chunk.
#[derive(PartialEq, Eq)]
pub(super) struct Steps {
    pub(super) len: u64,
    /// The axis of the tensor; `None` if all items have the same index.
    pub(super) axis: Option<usize>,
    /// The index of the first item on that axis.
    pub(super) start: u64,
    /// The distance from an index to the next one.
    pub(super) step: i64,
    pub(super) chunk: u64,
}

impl Steps {
    pub(super) fn cells(&self) -> u64 {
        if self.axis.is_none() {
            1
        } else if self.step.unsigned_abs() >= self.chunk {
            self.len
        } else {
            let last = self.start as i64 + self.step * (self.len as i64 - 1);
            (self.start / self.chunk).abs_diff(last as u64 / self.chunk) + 1
        }
    }

    pub(super) fn items(&self, cell: u64) -> Range<u64> {
        let step = self.step.unsigned_abs();
        if self.axis.is_none() {
            return 0..self.len;
        } else if step >= self.chunk {
            return cell..cell + 1;
        }
        // the step from one chunk to the next is `chunk` indices, and less for the first one
        let within = self.start % self.chunk;
        let first = if self.step > 0 { self.chunk - within } else { within + 1 };
        let begun = |cell: u64| match cell {
            0 => 0,
            _ => (first + (cell - 1) * self.chunk).div_ceil(step).min(self.len),
        };
        begun(cell)..begun(cell + 1)
    }

    pub(super) fn most(&self) -> u64 {
        match self.axis {
            Some(_) => self.chunk.div_ceil(self.step.unsigned_abs()).min(self.len),
            None => self.len,
        }
    }
}

/// The bytes of chunks that a box should have, so that there are not too many boxes.
const BOX_WORTH: u64 = 1 << 20;

pub(super) fn most(steps: &Steps, cells: u64) -> u64 {
    steps.most().saturating_mul(cells).min(steps.len)
}

/// The number of rows of the output in which boxes of `cells` cells are written.
fn rows(steps: &[Steps], cells: &[u64]) -> u64 {
    let mut rows = 1u64;
    let mut is_row = true;
    for (steps, &cells) in steps.iter().zip(cells).rev() {
        let items = most(steps, cells);
        if !is_row {
            rows = rows.saturating_mul(items);
        }
        // an axis that the box does not cover ends the row
        is_row &= items == steps.len;
    }
    rows
}

/// Boxes of neighbouring cells: the same number along each axis.
pub(super) struct CellBoxes {
    /// The cells of a box, and the number of boxes, along each axis.
    boxes: Vec<(u64, u64)>,
}

impl CellBoxes {
    pub(super) fn new(steps: &[Steps], cells: &[u64]) -> CellBoxes {
        let boxes = steps.iter().zip(cells);
        let boxes = boxes.map(|(steps, &cells)| (cells, steps.cells().div_ceil(cells)));
        CellBoxes { boxes: boxes.collect() }
    }

    /// Boxes of whole cells; a cell is taken from a chunk of `chunk` bytes. A box has several cells, along the last axes,
    /// if a single cell would be few bytes or many short rows of the output. A row takes as long as decoding `row` bytes.
    /// A box takes at most `most` bytes of chunks, or one chunk.
    pub(super) fn of_long_rows(steps: &[Steps], chunk: u64, row: u64, most: u64) -> CellBoxes {
        let mut cells = vec![1; steps.len()];
        let mut bytes = chunk.max(1);
        for (axis, steps_of_axis) in steps.iter().enumerate().rev() {
            let wanted = rows(steps, &cells).saturating_mul(row).max(BOX_WORTH);
            if wanted <= bytes {
                break;
            }
            let all = steps_of_axis.cells().max(1);
            let some = wanted.div_ceil(bytes).min(most / bytes).clamp(1, all);
            // boxes of about the same length
            cells[axis] = all.div_ceil(all.div_ceil(some));
            bytes = bytes.saturating_mul(cells[axis]);
            if cells[axis] < all {
                break;
            }
        }
        CellBoxes::new(steps, &cells)
    }

    pub(super) fn are_cells(&self) -> bool {
        self.boxes.iter().all(|(cells, _)| *cells == 1)
    }

    pub(super) fn most(&self, steps: &[Steps]) -> Vec<u64> {
        let axes = steps.iter().zip(&self.boxes);
        axes.map(|(steps, (cells, _))| most(steps, *cells)).collect()
    }

    pub(super) fn count(&self) -> u64 {
        self.boxes.iter().map(|(_, count)| count).product()
    }

    pub(super) fn items(&self, steps: &[Steps], number: u64) -> Vec<Range<u64>> {
        let numbers = index_of(self.boxes.iter().map(|&(_, count)| count), number);
        let axes = steps.iter().zip(&self.boxes).zip(numbers);
        let items = |((steps, (cells, _)), number): ((&Steps, &(u64, u64)), u64)| {
            let last = ((number + 1) * cells).min(steps.cells()) - 1;
            steps.items(number * cells).start..steps.items(last).end
        };
        axes.map(items).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn cells_are_the_items_in_one_chunk(
            (len, chunk, step) in (1u64..40, 1u64..12, prop_oneof![-15i64..0, 1i64..16]),
            before in 0u64..30,
        ) {
            let reach = step.unsigned_abs() * (len - 1);
            let start = if step > 0 { before } else { before + reach };
            let steps = Steps { len, axis: Some(0), start, step, chunk };
            let mut expected: Vec<(u64, Range<u64>)> = Vec::new();
            for item in 0..len {
                let at = (start as i64 + step * item as i64) as u64 / chunk;
                match expected.last_mut() {
                    Some((chunk, items)) if *chunk == at => items.end = item + 1,
                    _ => expected.push((at, item..item + 1)),
                }
            }
            let found: Vec<Range<u64>> = (0..steps.cells()).map(|cell| steps.items(cell)).collect();
            prop_assert!(found.iter().all(|items| items.end - items.start <= steps.most()));
            let expected: Vec<Range<u64>> = expected.into_iter().map(|(_, items)| items).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
