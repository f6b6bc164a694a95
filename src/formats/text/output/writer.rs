//! A sink that writes elements as text: `.csv`, `.tsv`, `.txt` and `.json`.
//!
//! Numbers have the fewest digits that keep their value in their own type. An element is written when all its
//! bytes have come. In csv, tsv and txt a line is a row of the last axis; a tensor of one axis has one element a
//! line, as by np.savetxt.
//!
//! A structure is an object in json. In csv, tsv and txt each value of a structure has a column, including values
//! in nested fields and subarrays, in the order in which np.loadtxt reads them; there is no line of names. A point
//! in time is a text in ISO 8601, as by np.datetime_as_string, a length of time the number of its units.
//!
//! ```text
//! csv   1.5,2.0      txt   1.5 2.0      json   [[1.5, 2.0],
//!       nan,-1.0           nan -1.0            ["NaN", -1.0]]
//! ```

use std::io::{Error, ErrorKind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Style, write_element, write_value};
use crate::dtype::DType;
use crate::element::Meaning;
use crate::formats::text::{columns, stored_dtype};
use crate::input::TextFormat;
use crate::sink::{Draft, PlacedOutputs, PreparedWrite, Replaced, Sink, SinkError, WriteOrder};

/// A sink that takes the bytes of elements in order and writes their text to another sink.
pub(super) struct TextSink {
    inner: Box<dyn Draft>,
    format: TextFormat,
    dtype: DType,
    shape: Vec<u64>,
    /// The meaning of elements that are numbers or times.
    meaning: Option<Meaning>,
    /// Whether a terminal shows the text, which would obey codes in strings.
    is_shown: bool,
    state: Mutex<TextState>,
}

/// The progress of the text.
#[derive(Default)]
struct TextState {
    taken: u64,
    /// The first bytes of an incomplete element.
    begun: Vec<u8>,
    count: u64,
    written: u64,
}

impl TextSink {
    /// A sink that writes a tensor as text to `inner`; `None` for a dtype that [`stored_dtype`] does not return.
    pub(super) fn new(
        inner: Box<dyn Draft>,
        format: TextFormat,
        dtype: &DType,
        shape: &[u64],
        is_shown: bool,
    ) -> Option<TextSink> {
        stored_dtype(dtype)?;
        let state = Mutex::default();
        let meaning = Meaning::of(dtype)
            .filter(|meaning| !matches!(meaning, Meaning::Bytes | Meaning::Unicode(_)));
        Some(TextSink {
            inner,
            format,
            dtype: dtype.clone(),
            shape: shape.to_vec(),
            meaning,
            is_shown,
            state,
        })
    }

    /// The text of whole numbers or times, with the brackets and separators around each; `None` for other
    /// elements.
    fn numbers(&self, offset: u64, bytes: &[u8]) -> Option<String> {
        let meaning = self.meaning.as_ref()?;
        let size = self.dtype.item_bits() / 8;
        let mut text = String::with_capacity(2 * bytes.len());
        for (number, item) in (offset / size..).zip(bytes.chunks_exact(size as usize)) {
            self.begin_element(&mut text, number);
            write_value(&mut text, meaning, self.format, item).ok()?;
            self.end_element(&mut text, number);
        }
        Some(text)
    }

    /// Write the text of `bytes` bytes of elements, in order.
    fn write_numbers(&self, offset: u64, bytes: u64, text: &str) -> Result<(), SinkError> {
        let mut state = self.in_turn(offset)?;
        state.taken += bytes;
        state.count += bytes / (self.dtype.item_bits() / 8);
        self.inner.write_at(state.written, text.as_bytes())?;
        state.written += text.len() as u64;
        Ok(())
    }

    /// Write any elements, or parts of elements, one by one.
    fn write_elements(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        let mut state = self.in_turn(offset)?;
        let TextState { taken, begun, count, written } = &mut *state;
        *taken += bytes.len() as u64;
        let mut out = Out::new(self.inner.as_ref(), written);
        out.is_shown = self.is_shown;
        let outcome = self.elements(count, begun, bytes, &mut out);
        outcome.map_err(|error| match error {
            TextError::Sink(error) => error,
            TextError::NotText => {
                let message = format!("element {count} is not text (S in UTF-8, U in code points)");
                SinkError::Io(Error::new(ErrorKind::InvalidData, message))
            }
        })?;
        out.pass()
    }

    fn in_turn(&self, offset: u64) -> Result<MutexGuard<'_, TextState>, SinkError> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if offset == state.taken {
            return Ok(state);
        }
        Err(SinkError::OutOfOrder { expected: state.taken, offset })
    }

    /// Write elements, with the brackets and separators around each.
    fn elements(
        &self,
        count: &mut u64,
        begun: &mut Vec<u8>,
        bytes: &[u8],
        out: &mut Out<'_>,
    ) -> Result<(), TextError> {
        let alone = self.columns() == 1 && columns(&self.dtype) == 1;
        let style = Style { format: self.format, alone };
        let size = (self.dtype.item_bits() / 8) as usize;
        let mut write = |element: &[u8]| {
            self.begin_element(&mut out.text, *count);
            write_element(&self.dtype, style, element, out)?;
            self.end_element(&mut out.text, *count);
            *count += 1;
            Ok::<(), TextError>(())
        };
        let lacking = if begun.is_empty() { 0 } else { (size - begun.len()).min(bytes.len()) };
        let (end, bytes) = bytes.split_at(lacking);
        begun.extend_from_slice(end);
        if begun.len() == size {
            write(begun)?;
            begun.clear();
        }
        let mut elements = bytes.chunks_exact(size);
        elements.by_ref().try_for_each(&mut write)?;
        begun.extend_from_slice(elements.remainder());
        Ok(())
    }

    /// Append the text between element `at` and the next one.
    fn end_element(&self, text: &mut String, at: u64) {
        let end = at + 1;
        match self.format {
            TextFormat::Json => (0..self.edges(end)).for_each(|_| text.push(']')),
            _ if end.is_multiple_of(self.columns().max(1)) => text.push('\n'),
            TextFormat::Csv => text.push(','),
            TextFormat::Tsv => text.push('\t'),
            TextFormat::Txt => text.push(' '),
        }
    }

    /// The number of elements in a row of csv or txt.
    fn columns(&self) -> u64 {
        match self.shape.as_slice() {
            [_, columns] => *columns,
            _ => 1,
        }
    }

    /// The number of JSON lists that begin at element `at` (as many end before it).
    fn edges(&self, at: u64) -> usize {
        let mut inner = 1;
        let ends = self.shape.iter().rev().take_while(|&&len| {
            inner *= len;
            at.is_multiple_of(inner)
        });
        ends.count()
    }

    /// Append the JSON before element `at`: the separator and the opening brackets.
    fn begin_element(&self, text: &mut String, at: u64) {
        if self.format != TextFormat::Json {
            return;
        }
        let begin = self.edges(at);
        text.push_str(match (at, begin) {
            (0, _) => "",
            (_, 0) => ", ",
            _ => ",\n",
        });
        (0..begin).for_each(|_| text.push('['));
    }

    /// Write the whole text of a tensor without elements.
    fn nothing(&self, out: &mut Out<'_>) -> Result<(), SinkError> {
        match self.format {
            TextFormat::Json => {
                self.empty_lists(out, &self.shape)?;
                out.text.push('\n');
            }
            format => {
                for _ in 0..format.empty_rows(&self.shape) {
                    out.text.push('\n');
                    out.pass_long()?;
                }
            }
        }
        Ok(())
    }

    fn empty_lists(&self, out: &mut Out<'_>, shape: &[u64]) -> Result<(), SinkError> {
        out.text.push('[');
        if let Some((&len, inner)) = shape.split_first() {
            for at in 0..len {
                out.text.push_str(if at > 0 { ", " } else { "" });
                self.empty_lists(out, inner)?;
            }
        }
        out.text.push(']');
        out.pass_long()
    }
}

impl Sink for TextSink {
    fn order(&self) -> WriteOrder {
        WriteOrder::Ascending
    }

    fn is_atomic(&self) -> bool {
        self.inner.is_atomic()
    }

    fn prepare<'a>(&'a self, offset: u64, bytes: &'a [u8]) -> PreparedWrite<'a> {
        let size = self.dtype.item_bits() / 8;
        let begun = (offset.next_multiple_of(size) - offset).min(bytes.len() as u64) as usize;
        let (end, bytes) = bytes.split_at(begun);
        let (whole, begin) = bytes.split_at(bytes.len() - bytes.len() % size as usize);
        let at = offset + end.len() as u64;
        let text = self.numbers(at, whole);
        Box::new(move || {
            self.write_elements(offset, end)?;
            match text {
                Some(text) => self.write_numbers(at, whole.len() as u64, &text)?,
                None => self.write_elements(at, whole)?,
            }
            self.write_elements(at + whole.len() as u64, begin)
        })
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        self.prepare(offset, bytes)()
    }
}

impl Draft for TextSink {
    fn seal(&mut self) -> Result<(), SinkError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let count = crate::shape::element_count(&self.shape).unwrap_or(u64::MAX);
        if state.count != count {
            let size = self.dtype.item_bits() / 8;
            let len = count.saturating_mul(size);
            return Err(SinkError::Incomplete { written: state.taken, len });
        }
        let mut out = Out::new(self.inner.as_ref(), &mut state.written);
        match (count, self.format) {
            (0, _) => self.nothing(&mut out)?,
            (_, TextFormat::Json) => out.text.push('\n'),
            _ => {}
        }
        out.pass()?;
        drop(state);
        self.inner.seal()
    }

    fn park(&mut self) -> Result<(), SinkError> {
        self.inner.park()
    }

    fn place(self: Box<Self>, replaced: Replaced) -> Result<PlacedOutputs, SinkError> {
        self.inner.place(replaced)
    }
}

/// The bytes of text that are collected before a write.
const COLLECTED: usize = 256 << 10;

/// Collected text, and its destination.
pub(super) struct Out<'a> {
    pub(super) text: String,
    sink: &'a dyn Sink,
    written: &'a mut u64,
    /// Whether a terminal shows the text.
    pub(super) is_shown: bool,
}

#[derive(Debug)]
pub(super) enum TextError {
    NotText,
    /// The sink, or a scratch file, failed.
    Sink(SinkError),
}

impl From<SinkError> for TextError {
    fn from(error: SinkError) -> TextError {
        TextError::Sink(error)
    }
}

impl From<std::fmt::Error> for TextError {
    fn from(_: std::fmt::Error) -> TextError {
        TextError::NotText
    }
}

impl<'a> Out<'a> {
    pub(super) fn new(sink: &'a dyn Sink, written: &'a mut u64) -> Out<'a> {
        Out { text: String::new(), sink, written, is_shown: false }
    }

    pub(super) fn pass(&mut self) -> Result<(), SinkError> {
        self.sink.write_at(*self.written, self.text.as_bytes())?;
        *self.written += self.text.len() as u64;
        self.text.clear();
        Ok(())
    }

    /// Write the collected text, once it is worth a write.
    pub(super) fn pass_long(&mut self) -> Result<(), SinkError> {
        if self.text.len() >= COLLECTED { self.pass() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::dtype::{Endian, Scalar};

    /// The written bytes, and the number of writes.
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
    }

    impl Draft for Written {
        fn place(self: Box<Self>, _: Replaced) -> Result<PlacedOutputs, SinkError> {
            Ok(PlacedOutputs::default())
        }
    }

    /// The text of a tensor without elements, and the number of writes.
    fn empty(format: TextFormat, shape: &[u64]) -> (String, usize) {
        let written = Written::default();
        let dtype = DType::Scalar(Scalar::F32, Endian::Little);
        let sink = TextSink::new(Box::new(written.clone()), format, &dtype, shape, false).unwrap();
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

    /// The text of elements that come in portions of `portion` bytes.
    fn by(portion: usize, format: TextFormat, dtype: &DType, bytes: &[u8]) -> String {
        let written = Written::default();
        let count = bytes.len() as u64 / (dtype.item_bits() / 8);
        let sink =
            TextSink::new(Box::new(written.clone()), format, dtype, &[count], false).unwrap();
        let mut at = 0;
        for portion in bytes.chunks(portion) {
            sink.write_at(at, portion).unwrap();
            at += portion.len() as u64;
        }
        Box::new(sink).commit().unwrap();
        String::from_utf8(written.0.lock().unwrap().0.clone()).unwrap()
    }

    #[test]
    fn numbers_together_are_those_one_by_one() {
        for dtype in ["f2", "f4", "c16", "?", "i1", "u8", "M8[s]", "m8[D]", "S8"] {
            let dtype = crate::formats::npy::parse_dtype(dtype).unwrap();
            let size = dtype.item_bits() / 8;
            let bytes: Vec<u8> = (0..24 * size).map(|at| (at * 7 % 120) as u8 & !0x80).collect();
            for shape in [&[24][..], &[8, 3], &[2, 3, 4], &[1, 24], &[24, 1]] {
                for format in [TextFormat::Json, TextFormat::Csv, TextFormat::Tsv] {
                    let alone = written(format, &dtype, shape, &bytes, TextSink::write_elements);
                    let together = written(format, &dtype, shape, &bytes, TextSink::write_at);
                    assert_eq!(together, alone, "{dtype:?} {shape:?}");
                }
            }
        }
    }

    /// The text of elements that are written in portions, which may divide elements.
    fn written(
        format: TextFormat,
        dtype: &DType,
        shape: &[u64],
        bytes: &[u8],
        write: impl Fn(&TextSink, u64, &[u8]) -> Result<(), SinkError>,
    ) -> String {
        let written = Written::default();
        let sink = TextSink::new(Box::new(written.clone()), format, dtype, shape, false).unwrap();
        let mut at = 0;
        for portion in bytes.chunks(27) {
            write(&sink, at, portion).unwrap();
            at += portion.len() as u64;
        }
        Box::new(sink).commit().unwrap();
        String::from_utf8(written.0.lock().unwrap().0.clone()).unwrap()
    }

    #[test]
    fn elements_may_arrive_in_any_portions() {
        let dtype = crate::formats::npy::dtype_of_descr(
            "[('a', 'S5', 2), ('b', '>U3'), ('c', '<f4', (2, 1)), ('d', '<M8[D]'), ('e', 'S0'), ('f', 'S4')]",
        );
        assert_eq!(stored_dtype(&dtype).as_ref(), Some(&dtype));
        let mut bytes = Vec::new();
        for text in ["a\0,é", "", "\u{1f600}", "\"b\" "] {
            let mut strings = [0; 10];
            strings[..text.len()].copy_from_slice(text.as_bytes());
            bytes.extend(strings);
            let mut points: Vec<u8> =
                text.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect();
            points.resize(12, 0);
            bytes.extend(points);
            bytes.extend([1.5f32, f32::NAN].iter().flat_map(|it| it.to_le_bytes()));
            bytes.extend(i64::MIN.to_le_bytes());
            bytes.extend(b"wxyz");
        }
        for format in [TextFormat::Json, TextFormat::Csv, TextFormat::Txt] {
            let whole = by(usize::MAX, format, &dtype, &bytes);
            for portion in 1..=bytes.len() {
                assert_eq!(by(portion, format, &dtype, &bytes), whole, "{portion}");
            }
            if format == TextFormat::Csv {
                let line = "\"a\0,é\",,\"a\0,\",1.5,nan,NaT,,wxyz\n";
                assert!(whole.starts_with(line), "{whole}");
            }
        }
    }
}
