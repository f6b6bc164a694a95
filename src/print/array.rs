//! Brackets, lines and dots: NumPy's `_formatArray`.

use std::ops::Range;

use super::Elements;
use super::element::{Formatter, Held, LARGE, To, Windowed, Words};

/// What stands between elements of a line.
const SEPARATOR: char = ' ';

/// Writes an array that has axes and elements.
pub(super) struct ArrayWriter<'a, 'w, E> {
    pub(super) shape: &'a [u64],
    /// How many items of a long axis are shown at each end.
    pub(super) edge: Option<u64>,
    pub(super) formatter: &'a Formatter,
    /// Bytes an element.
    pub(super) size: u64,
    pub(super) cursor: KeptCursor,
    pub(super) elements: &'a mut Elements<'a, E>,
    pub(super) write: &'w mut dyn FnMut(&str) -> Result<(), E>,
}

impl<E> ArrayWriter<'_, '_, E> {
    /// Write it in lines of at most `width` characters, where elements allow.
    pub(super) fn write(&mut self, width: usize) -> Result<(), E> {
        // every axis needs a character for its closing bracket, so the width may become negative
        self.axis(0, 1, width as i64)
    }

    /// Write the items of one axis, of which lines after the first are indented by `indent`.
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

    /// Write the elements of the last axis, with dots before number `dots`.
    fn row(&mut self, shown: u64, dots: u64, indent: usize, width: i64) -> Result<(), E> {
        let mut line = Line { text: String::new(), len: indent, indent, width };
        for item in 0..shown {
            if item == dots {
                line.add("...", self.write)?;
                line.separate();
            }
            match self.cursor.next(self.elements)? {
                None => break,
                Some(Shown::Held(bytes)) => {
                    let mut words = Words::new(To::Held);
                    let Ok(()) = self.formatter.write(&mut words, &mut Held(bytes));
                    let Ok((_, word)) = words.end();
                    line.add(&word, self.write)?;
                }
                Some(Shown::Large(number)) => self.large(number, &mut line)?,
            }
            if item + 1 < shown {
                line.separate();
            }
        }
        (self.write)(&line.text)
    }
}

impl<E> ArrayWriter<'_, '_, E> {
    /// Write an element whose text is not held: first it is counted.
    fn large(&mut self, number: u64, line: &mut Line) -> Result<(), E> {
        let mut item = Windowed::new(self.elements, number, self.size);
        let mut words = Words::new(To::Counted(0));
        self.formatter.write(&mut words, &mut item)?;
        let (len, _) = words.end()?;
        line.make_room(len, self.write)?;
        (self.write)(&line.text)?;
        line.text.clear();
        let mut words = Words::new(To::Written(self.write));
        self.formatter.write(&mut words, &mut item)?;
        words.end()?;
        line.len += len;
        Ok(())
    }
}

/// The line that is being filled.
struct Line {
    text: String,
    /// Its length in characters; the indent counts, also where brackets stand in its place.
    len: usize,
    indent: usize,
    width: i64,
}

impl Line {
    /// Add a word, on a new line where it does not fit and would fit better there.
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

    /// Begin a new line where a word of so many characters does not fit.
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
