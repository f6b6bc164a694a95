//! The brackets, line breaks and dots of an array: NumPy's `_formatArray`.

use std::convert::Infallible;
use std::ops::Range;

use super::Elements;
use super::element::{Formatter, LARGE, To, Words};

const SEPARATOR: char = ' ';

/// A writer of an array with at least one axis and one element.
pub(super) struct ArrayWriter<'a, 'w, E> {
    pub(super) shape: &'a [u64],
    /// The number of items shown at each end of a long axis; `None` shows all.
    pub(super) edge: Option<u64>,
    pub(super) formatter: &'a Formatter,
    pub(super) cursor: ShownCursor,
    pub(super) elements: &'a mut Elements<'a, E>,
    pub(super) write: &'w mut dyn FnMut(&str) -> Result<(), E>,
}

impl<E> ArrayWriter<'_, '_, E> {
    /// Write the array in lines of at most `width` characters, unless a single element is longer.
    pub(super) fn write(&mut self, width: usize) -> Result<(), E> {
        // each axis takes a character for its closing bracket, so the width may become negative
        self.axis(0, 1, width as i64)
    }

    /// Write the items of one axis; lines after the first are indented by `indent`.
    fn axis(&mut self, axis: usize, indent: usize, width: i64) -> Result<(), E> {
        (self.write)("[")?;
        let len = self.shape[axis];
        let edge = self.edge.filter(|&edge| edge.checked_mul(2).is_some_and(|both| both < len));
        let dots = edge.unwrap_or(len);
        let shown = edge.map_or(len, |edge| 2 * edge);
        if axis + 1 == self.shape.len() {
            self.row(shown, dots, indent, width - 1)?;
        } else {
            let between = "\n".repeat(self.shape.len() - axis - 1) + &" ".repeat(indent);
            for item in 0..shown {
                if item == dots {
                    (self.write)(&format!("{between}..."))?;
                }
                if item > 0 {
                    (self.write)(&between)?;
                }
                self.axis(axis + 1, indent + 1, width - 1)?;
            }
        }
        (self.write)("]")
    }

    /// Write the `shown` elements of the last axis, with dots before element `dots`.
    fn row(&mut self, shown: u64, dots: u64, indent: usize, width: i64) -> Result<(), E> {
        let mut line = Line { text: String::new(), len: indent, indent, width };
        for item in 0..shown {
            if item == dots {
                line.add("...", self.write)?;
                line.separate();
            }
            let Some(bytes) = self.cursor.next(self.elements)? else { break };
            if bytes.len() as u64 > LARGE {
                write_large(self.formatter, bytes, &mut line, self.write)?;
            } else {
                let mut words = Words::<Infallible>::new(To::Held);
                let Ok(()) = self.formatter.write(&mut words, bytes);
                let Ok((_, word)) = words.end();
                line.add(&word, self.write)?;
            }
            if item + 1 < shown {
                line.separate();
            }
        }
        (self.write)(&line.text)
    }
}

/// Write an element whose text is not held in memory: a first pass counts its length, which may
/// break the line.
fn write_large<E>(
    formatter: &Formatter,
    bytes: &[u8],
    line: &mut Line,
    write: &mut dyn FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let mut words = Words::<Infallible>::new(To::Counted(0));
    let Ok(()) = formatter.write(&mut words, bytes);
    let Ok((len, _)) = words.end();
    line.make_room(len, write)?;
    write(&line.text)?;
    line.text.clear();
    let mut words = Words::new(To::Written(write));
    formatter.write(&mut words, bytes)?;
    words.end()?;
    line.len += len;
    Ok(())
}

struct Line {
    text: String,
    /// The length in characters, with the indent; the first line has brackets instead of an indent.
    len: usize,
    indent: usize,
    width: i64,
}

impl Line {
    fn add<E>(
        &mut self,
        word: &str,
        write: &mut dyn FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let len = word.chars().count();
        self.make_room(len, write)?;
        self.text.push_str(word);
        self.len += len;
        Ok(())
    }

    /// Break the line if a word of `len` characters does not fit, unless the line is empty.
    fn make_room<E>(
        &mut self,
        len: usize,
        write: &mut dyn FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        if (self.len + len) as i64 > self.width && self.len > self.indent {
            write(self.text.trim_end())?;
            write("\n")?;
            self.text = " ".repeat(self.indent);
            self.len = self.indent;
        }
        Ok(())
    }

    fn separate(&mut self) {
        self.text.push(SEPARATOR);
        self.len += 1;
    }
}

/// Iterates over the shown elements, as ascending ranges of element numbers.
#[derive(Clone)]
pub(super) struct ShownElements {
    /// The axes along which ranges are counted, outermost first: length, and items at each end.
    axes: Vec<(u64, u64)>,
    /// The index of the next range on each axis, among the shown items.
    index: Vec<u64>,
    block: u64,
    done: bool,
}

impl ShownElements {
    /// The shown elements of an array that is not empty; of axes longer than `2 * edge` only the
    /// ends.
    pub(super) fn new(shape: &[u64], edge: Option<u64>) -> ShownElements {
        let edge = edge.unwrap_or(u64::MAX);
        let is_long = |len: u64| edge.checked_mul(2).is_some_and(|shown| shown < len);
        let counted = shape.iter().rposition(|&len| is_long(len)).map_or(0, |last| last + 1);
        let axes = shape[..counted].iter().map(|&len| (len, if is_long(len) { edge } else { len }));
        let block = shape[counted..].iter().product();
        ShownElements { axes: axes.collect(), index: vec![0; counted], block, done: false }
    }
}

impl Iterator for ShownElements {
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

/// A reader of the shown elements in order, a block at a time.
pub(super) struct ShownCursor {
    shown: ShownElements,
    itemsize: u64,
    /// The rest of the current range, after the block.
    range: Range<u64>,
    block: Vec<u8>,
    /// The number of elements in the block, and how many have been returned.
    held: u64,
    taken: u64,
}

impl ShownCursor {
    pub(super) fn new(shown: ShownElements, itemsize: u64) -> ShownCursor {
        ShownCursor { shown, itemsize, range: 0..0, block: Vec::new(), held: 0, taken: 0 }
    }

    pub(super) fn next<E>(&mut self, elements: &mut Elements<'_, E>) -> Result<Option<&[u8]>, E> {
        if self.taken == self.held {
            if self.range.is_empty() {
                match self.shown.next() {
                    Some(range) => self.range = range,
                    None => return Ok(None),
                }
            }
            let most = LARGE.checked_div(self.itemsize).unwrap_or(LARGE).max(1);
            let count = most.min(self.range.end - self.range.start);
            let bytes = (count * self.itemsize) as usize;
            self.block.resize(bytes, 0);
            elements(self.range.start * self.itemsize, &mut self.block)?;
            self.range.start += count;
            (self.held, self.taken) = (count, 0);
        }
        let start = (self.taken * self.itemsize) as usize;
        self.taken += 1;
        Ok(self.block.get(start..start + self.itemsize as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(shape: &[u64], edge: Option<u64>) -> Vec<u64> {
        ShownElements::new(shape, edge).flatten().collect()
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
