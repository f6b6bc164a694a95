//! A sink that writes elements as text: `.csv`, `.txt` and `.json`.
//!
//! Numbers have the fewest digits that keep their value in their own type. Memory holds one piece
//! of elements and its text. In csv and txt a line is a row of the last axis; a tensor of one axis
//! has one element a line, as np.savetxt writes it.
//!
//! A structure is an object in json. In csv and txt each of its values has a column, those of nested
//! fields and of subarrays too, in the order in which np.loadtxt reads them; there is no line of names.
//! A point in time is a text in ISO 8601, as np.datetime_as_string has it, a length of time the number
//! of its units.
//!
//! ```text
//! csv   1.5,2.0      txt   1.5 2.0      json   [[1.5, 2.0],
//!       nan,-1.0           nan -1.0            ["NaN", -1.0]]
//! ```

use std::fmt::{self, Write};
use std::io::{Error, ErrorKind};
use std::sync::{Mutex, PoisonError};

use crate::dtype::DType;
use crate::format::TextFormat;
use crate::format::text::TextValue;
use crate::sink::{Placed, Sink, SinkError, WriteOrder};

mod value;

use value::{write_columns, write_json};

/// How much text is written at a time where there are no elements, in bytes.
const COLLECTED: usize = 64 << 10;

/// A sink that takes the bytes of elements in order and writes their text to another sink.
pub struct TextSink {
    inner: Box<dyn Sink>,
    format: TextFormat,
    value: TextValue,
    /// Bytes of an element.
    itemsize: usize,
    shape: Vec<u64>,
    state: Mutex<State>,
    sealed: bool,
}

/// How far the text has been written.
#[derive(Default)]
struct State {
    /// Bytes of elements received.
    taken: u64,
    /// The first bytes of an element whose last bytes have not arrived yet.
    partial: Vec<u8>,
    /// Elements written.
    count: u64,
    /// Bytes of text written.
    written: u64,
}

impl TextSink {
    /// Write a tensor as text to `inner`; `None` for a dtype other than those that
    /// [`stored_dtype`](crate::format::text::stored_dtype) gives for text.
    pub fn new(
        inner: Box<dyn Sink>,
        format: TextFormat,
        dtype: &DType,
        shape: &[u64],
    ) -> Option<TextSink> {
        let (value, shape) = (TextValue::of(dtype)?, shape.to_vec());
        let itemsize = usize::try_from(dtype.item_bits() / 8).ok().filter(|&size| size > 0)?;
        let state = Mutex::default();
        Some(TextSink { inner, format, value, itemsize, shape, state, sealed: false })
    }

    /// Write text to the inner sink.
    fn pass(&self, state: &mut State, text: &str) -> Result<(), SinkError> {
        self.inner.write_at(state.written, text.as_bytes())?;
        state.written += text.len() as u64;
        Ok(())
    }

    /// Append element number `at` with the brackets and separators around it.
    fn append(&self, text: &mut String, bytes: &[u8], at: u64) -> fmt::Result {
        match self.format {
            TextFormat::Json => {
                self.json_edge(text, at)?;
                write_json(text, &self.value, bytes)?;
                let opened = self.edges(at + 1);
                (0..opened).try_for_each(|_| text.write_char(']'))
            }
            TextFormat::Csv | TextFormat::Txt => {
                let form = (self.format, self.columns() == 1 && self.value.columns() == 1);
                write_columns(text, form, &self.value, bytes)?;
                let row_ends = (at + 1).is_multiple_of(self.columns().max(1));
                text.write_char(match self.format {
                    _ if row_ends => '\n',
                    TextFormat::Csv => ',',
                    _ => ' ',
                })
            }
        }
    }

    /// Elements in a row of csv or txt.
    fn columns(&self) -> u64 {
        match self.shape.as_slice() {
            [_, columns] => *columns,
            _ => 1,
        }
    }

    /// How many JSON lists begin at element `at` (as many end before it).
    fn edges(&self, at: u64) -> usize {
        let mut inner = 1;
        let ends = self.shape.iter().rev().take_while(|&&len| {
            inner *= len;
            at.is_multiple_of(inner)
        });
        ends.count()
    }

    /// The separator and the opening brackets before element `at`.
    fn json_edge(&self, text: &mut String, at: u64) -> fmt::Result {
        let begin = self.edges(at);
        match (at, begin) {
            (0, _) => {}
            (_, 0) => text.write_str(", ")?,
            _ => text.write_str(",\n")?,
        }
        (0..begin).try_for_each(|_| text.write_char('['))
    }

    /// Write the whole text of a tensor without elements.
    fn nothing(&self, state: &mut State) -> Result<(), SinkError> {
        let mut text = String::new();
        match self.format {
            TextFormat::Json => {
                self.empty_lists(state, &mut text, &self.shape)?;
                text.push('\n');
            }
            format => {
                for _ in 0..format.empty_rows(&self.shape) {
                    text.push('\n');
                    self.pass_collected(state, &mut text)?;
                }
            }
        }
        self.pass(state, &text)
    }

    fn empty_lists(
        &self,
        state: &mut State,
        text: &mut String,
        shape: &[u64],
    ) -> Result<(), SinkError> {
        text.push('[');
        if let Some((&len, inner)) = shape.split_first() {
            for at in 0..len {
                text.push_str(if at > 0 { ", " } else { "" });
                self.empty_lists(state, text, inner)?;
            }
        }
        text.push(']');
        self.pass_collected(state, text)
    }

    /// Write what has been collected, once it is worth a write.
    fn pass_collected(&self, state: &mut State, text: &mut String) -> Result<(), SinkError> {
        if text.len() >= COLLECTED {
            self.pass(state, text)?;
            text.clear();
        }
        Ok(())
    }
}

impl Sink for TextSink {
    fn order(&self) -> WriteOrder {
        WriteOrder::Ascending
    }

    fn is_atomic(&self) -> bool {
        self.inner.is_atomic()
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if offset != state.taken {
            return Err(SinkError::OutOfOrder { expected: state.taken, offset });
        }
        state.taken += bytes.len() as u64;
        let size = self.itemsize;
        let mut all = std::mem::take(&mut state.partial);
        let bytes = if all.is_empty() {
            bytes
        } else {
            all.extend(bytes);
            &all
        };
        let (elements, partial) = bytes.split_at(bytes.len() / size * size);
        let mut text = String::new();
        for element in elements.chunks_exact(size) {
            let at = state.count;
            self.append(&mut text, element, at).map_err(|_| {
                let message = format!("element {at} is no text (S in UTF-8, U in code points)");
                SinkError::Io(Error::new(ErrorKind::InvalidData, message))
            })?;
            state.count += 1;
        }
        state.partial = partial.to_vec();
        self.pass(&mut state, &text)
    }

    fn seal(&mut self) -> Result<(), SinkError> {
        if std::mem::replace(&mut self.sealed, true) {
            return Ok(());
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let count = crate::shape::element_count(&self.shape).unwrap_or(u64::MAX);
        if state.count != count {
            let size = self.itemsize as u64;
            let (written, len) = (state.taken, count.saturating_mul(size));
            return Err(SinkError::Incomplete { written, len });
        }
        match (count, self.format) {
            (0, _) => self.nothing(&mut state)?,
            (_, TextFormat::Json) => self.pass(&mut state, "\n")?,
            _ => {}
        }
        drop(state);
        self.inner.seal()
    }

    fn park(&mut self) -> Result<(), SinkError> {
        self.inner.park()
    }

    fn commit(mut self: Box<Self>) -> Result<(), SinkError> {
        self.seal()?;
        self.inner.commit()
    }

    fn place(mut self: Box<Self>) -> Result<Placed, SinkError> {
        self.seal()?;
        self.inner.place()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::dtype::{Endian, Scalar};

    /// What was written, and in how many writes.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<(Vec<u8>, usize)>>);

    impl Sink for Written {
        fn order(&self) -> WriteOrder {
            WriteOrder::Ascending
        }

        fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
            let mut written = self.0.lock().unwrap();
            assert_eq!(offset, written.0.len() as u64);
            written.0.extend_from_slice(bytes);
            written.1 += 1;
            Ok(())
        }

        fn commit(self: Box<Self>) -> Result<(), SinkError> {
            Ok(())
        }
    }

    /// The text of a tensor without elements, and the number of writes.
    fn empty(format: TextFormat, shape: &[u64]) -> (String, usize) {
        let (written, dtype) = (Written::default(), DType::Scalar(Scalar::F32, Endian::Little));
        let sink = TextSink::new(Box::new(written.clone()), format, &dtype, shape).unwrap();
        Box::new(sink).commit().unwrap();
        let (text, writes) = written.0.lock().unwrap().clone();
        (String::from_utf8(text).unwrap(), writes)
    }

    #[test]
    fn rows_without_elements_are_written_together() {
        for (format, shape, expected, rows) in [
            (TextFormat::Csv, &[3, 0][..], "\n\n\n", 3),
            (TextFormat::Txt, &[0, 3], "", 0),
            (TextFormat::Csv, &[0], "", 0),
            (TextFormat::Json, &[0, u64::MAX], "[]\n", 1),
            (TextFormat::Json, &[2, 0], "[[], []]\n", 3),
            (TextFormat::Json, &[2, 1, 0], "[[[]], [[]]]\n", 5),
        ] {
            assert_eq!(empty(format, shape).0, expected, "{shape:?}");
            assert_eq!(format.empty_rows(shape), rows, "{shape:?}");
        }
        assert_eq!(TextFormat::Json.empty_rows(&[1 << 40, 1 << 40, 0]), u64::MAX);
        assert_eq!(TextFormat::Csv.empty_rows(&[1 << 40, 1]), 0);
        let (text, writes) = empty(TextFormat::Csv, &[1_000_000, 0]);
        assert!(text == "\n".repeat(1_000_000) && writes < 20, "{writes}");
        let (text, writes) = empty(TextFormat::Json, &[1000, 1000, 0]);
        let rows: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(rows, serde_json::json!(vec![vec![[0; 0]; 1000]; 1000]));
        assert!(writes < 100, "{writes}");
    }
}
