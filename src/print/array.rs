//! Brackets, lines and dots: NumPy's `_formatArray`.

use super::element::Formatter;
use super::elements::Elements;
use super::item::{Held, Windowed};
use super::kept::{KeptCursor, Shown};
use super::words::{To, Words};

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
