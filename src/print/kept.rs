//! Which elements of an array are shown: all, or those at both ends of every long axis.

use std::ops::Range;

use super::elements::Elements;
use super::item::LARGE;

/// The shown elements as ranges of element numbers, ascending.
#[derive(Clone)]
pub(super) struct Kept {
    /// The axes that ranges are counted along, outermost first: length and items at each end.
    axes: Vec<(u64, u64)>,
    /// The index of the next range on each axis, counted among the shown items.
    index: Vec<u64>,
    /// The elements of one item of the last counted axis.
    block: u64,
    done: bool,
}

impl Kept {
    /// Of an array with elements; axes longer than `2 * edge` are shown at their ends only.
    pub(super) fn new(shape: &[u64], edge: Option<u64>) -> Kept {
        let edge = edge.unwrap_or(u64::MAX);
        let is_long = |len: u64| edge.checked_mul(2).is_some_and(|shown| shown < len);
        let counted = shape.iter().rposition(|&len| is_long(len)).map_or(0, |last| last + 1);
        let axes = shape[..counted].iter().map(|&len| (len, if is_long(len) { edge } else { len }));
        let block = shape[counted..].iter().product();
        Kept { axes: axes.collect(), index: vec![0; counted], block, done: false }
    }
}

impl Iterator for Kept {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        if self.done {
            return None;
        }
        let Some((&(len, edge), outer)) = self.axes.split_last() else {
            self.done = true;
            return Some(0..self.block);
        };
        // on the last counted axis, which is long, index 0 is the beginning and 1 the end
        let last = self.index.len() - 1;
        let mut first = 0;
        for (&(len, edge), &index) in outer.iter().zip(&self.index) {
            let position = if index < edge { index } else { len - (2 * edge - index) };
            first = first * len + position;
        }
        let start = if self.index[last] == 0 { 0 } else { len - edge };
        let start = (first * len + start) * self.block;
        self.done = true;
        for (at, &(len, edge)) in self.axes.iter().enumerate().rev() {
            self.index[at] += 1;
            let shown = if at == last { 2 } else { len.min(edge.saturating_mul(2)) };
            if self.index[at] < shown {
                self.done = false;
                break;
            }
            self.index[at] = 0;
        }
        Some(start..start + edge * self.block)
    }
}

/// The shown elements, one after the other.
pub(super) struct KeptCursor {
    kept: Kept,
    itemsize: u64,
    /// What of the present range is not in the block.
    range: Range<u64>,
    block: Vec<u8>,
    /// How many elements the block holds, and how many have been taken of them.
    held: u64,
    taken: u64,
}

/// An element that is shown.
pub(super) enum Shown<'a> {
    /// Its bytes.
    Held(&'a [u8]),
    /// The number of one that is too large to be held.
    Large(u64),
}

impl KeptCursor {
    pub(super) fn new(kept: Kept, itemsize: u64) -> KeptCursor {
        KeptCursor { kept, itemsize, range: 0..0, block: Vec::new(), held: 0, taken: 0 }
    }

    /// The next element; `None` after the last one.
    pub(super) fn next<E>(
        &mut self,
        elements: &mut Elements<'_, E>,
    ) -> Result<Option<Shown<'_>>, E> {
        if self.taken == self.held {
            if self.range.is_empty() {
                match self.kept.next() {
                    Some(range) => self.range = range,
                    None => return Ok(None),
                }
            }
            if self.itemsize > LARGE {
                return Ok(self.range.next().map(Shown::Large));
            }
            let most = LARGE.checked_div(self.itemsize).unwrap_or(LARGE);
            let count = most.min(self.range.end - self.range.start);
            let bytes = (count * self.itemsize) as usize;
            self.block.resize(bytes, 0);
            elements(self.range.start * self.itemsize, &mut self.block)?;
            self.range.start += count;
            (self.held, self.taken) = (count, 0);
        }
        let start = (self.taken * self.itemsize) as usize;
        self.taken += 1;
        Ok(self.block.get(start..start + self.itemsize as usize).map(Shown::Held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(shape: &[u64], edge: Option<u64>) -> Vec<u64> {
        Kept::new(shape, edge).flatten().collect()
    }

    #[test]
    fn long_axes_are_shown_at_their_ends() {
        assert_eq!(numbers(&[5], Some(2)), [0, 1, 3, 4]);
        assert_eq!(numbers(&[4], Some(2)), [0, 1, 2, 3]);
        assert_eq!(numbers(&[5, 2], Some(1)), [0, 1, 8, 9]);
        assert_eq!(numbers(&[2, 3], Some(1)), [0, 2, 3, 5]);
        assert_eq!(numbers(&[3, 1, 3], Some(1)), [0, 2, 6, 8]);
        assert_eq!(numbers(&[3, 4], None), (0..12).collect::<Vec<_>>());
        assert_eq!(
            numbers(&[2, 7, 2], Some(3)),
            [
                0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 22, 23, 24, 25, 26,
                27
            ]
        );
    }
}
