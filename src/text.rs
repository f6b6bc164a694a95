//! Elements as text: `.csv`, `.txt` and `.json`, written as the elements come.
//!
//! Numbers are as short as they can be and still mean the very same number of their own type;
//! what is in memory is one piece of elements and its text. A line is a row of the last axis; of
//! one axis, each element has a line of its own, as np.savetxt has it.
//!
//! ```text
//! csv   1.5,2.0      txt   1.5 2.0      json   [[1.5, 2.0],
//!       nan,-1.0           nan -1.0            ["NaN", -1.0]]
//! ```

use std::fmt::{self, Display, Write};
use std::io::{Error, ErrorKind};
use std::sync::{Mutex, PoisonError};

use half::{bf16, f16};

use crate::dtype::{DType, Endian, NpyType, Scalar};
use crate::sink::{Sink, SinkError, WriteOrder};

/// A way to write elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Columns parted by commas.
    Csv,
    /// Columns parted by spaces, as np.loadtxt reads them.
    Txt,
    /// Nested lists.
    Json,
}

impl Form {
    /// The most axes it has room for.
    pub fn max_ndim(self) -> usize {
        match self {
            Form::Csv | Form::Txt => 2,
            Form::Json => crate::shape::MAX_NDIM,
        }
    }
}

/// What the bytes of an element mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    Number(Scalar),
    /// Bytes, a text in UTF-8 up to the zeros at its end.
    Bytes(usize),
    /// Code points of 4 bytes, a text up to the zeros at its end.
    Text(usize, Endian),
}

impl Element {
    fn new(dtype: &DType) -> Option<Element> {
        match dtype {
            DType::Scalar(scalar, Endian::Little) => (scalar.bits() >= 8
                && (scalar.type_string().is_some() || *scalar == Scalar::BF16))
                .then_some(Element::Number(*scalar)),
            DType::Scalar(..) => None,
            DType::Npy(NpyType { descr, itemsize }) => {
                let size = usize::try_from(*itemsize).ok().filter(|&size| size > 0)?;
                match descr.as_bytes().get(1..3)? {
                    [_, b'S'] => Some(Element::Bytes(size)),
                    [b'>', b'U'] => Some(Element::Text(size, Endian::Big)),
                    [_, b'U'] => Some(Element::Text(size, Endian::Little)),
                    _ => None,
                }
            }
        }
    }

    fn size(self) -> usize {
        match self {
            Element::Number(scalar) => (scalar.bits() / 8) as usize,
            Element::Bytes(size) | Element::Text(size, _) => size,
        }
    }
}

/// The type in which elements of a `dtype` have to come to be written as text: little-endian.
/// `None` for types that have no text form.
pub fn stored_dtype(dtype: &DType) -> Option<DType> {
    let stored = match dtype {
        DType::Scalar(scalar, _) => DType::Scalar(*scalar, Endian::Little),
        DType::Npy(_) => dtype.clone(),
    };
    Element::new(&stored).map(|_| stored)
}

/// An output that takes the bytes of elements, in order, and passes their text on.
pub struct TextSink {
    inner: Box<dyn Sink>,
    form: Form,
    element: Element,
    shape: Vec<u64>,
    state: Mutex<State>,
}

/// How far a text is.
#[derive(Default)]
struct State {
    /// Bytes of elements that were taken.
    taken: u64,
    /// The beginning of an element of which the end has not come yet.
    partial: Vec<u8>,
    /// Elements that are written.
    count: u64,
    /// Bytes of text that are written.
    written: u64,
}

impl TextSink {
    /// Write a tensor to `inner`; `None` for a dtype that is not of [`stored_dtype`].
    pub fn new(inner: Box<dyn Sink>, form: Form, dtype: &DType, shape: &[u64]) -> Option<TextSink> {
        let element = Element::new(dtype)?;
        let state = Mutex::default();
        Some(TextSink { inner, form, element, shape: shape.to_vec(), state })
    }

    /// Pass text on.
    fn pass(&self, state: &mut State, text: &str) -> Result<(), SinkError> {
        self.inner.write_at(state.written, text.as_bytes())?;
        state.written += text.len() as u64;
        Ok(())
    }

    /// Append element number `at` with what stands before and after it.
    fn append(&self, text: &mut String, bytes: &[u8], at: u64) -> fmt::Result {
        let columns = self.shape.last().copied().unwrap_or(1).max(1);
        match self.form {
            Form::Json => {
                self.json_edge(text, at)?;
                self.value(text, bytes)?;
                let opened = self.edges(at + 1);
                (0..opened).try_for_each(|_| text.write_char(']'))
            }
            Form::Csv | Form::Txt => {
                self.value(text, bytes)?;
                let row_ends = self.shape.len() < 2 || (at + 1).is_multiple_of(columns);
                text.write_char(match self.form {
                    _ if row_ends => '\n',
                    Form::Csv => ',',
                    _ => ' ',
                })
            }
        }
    }

    /// How many lists end before (and begin at) element `at`.
    fn edges(&self, at: u64) -> usize {
        let mut inner = 1;
        let ends = self.shape.iter().rev().take_while(|&&len| {
            inner *= len;
            at.is_multiple_of(inner)
        });
        ends.count()
    }

    /// What stands in a JSON text before element `at`, after the brackets that close before it.
    fn json_edge(&self, text: &mut String, at: u64) -> fmt::Result {
        let begin = self.edges(at);
        match (at, begin) {
            (0, _) => {}
            (_, 0) => text.write_str(", ")?,
            _ => text.write_str(",\n")?,
        }
        (0..begin).try_for_each(|_| text.write_char('['))
    }

    fn value(&self, text: &mut String, bytes: &[u8]) -> fmt::Result {
        let json = self.form == Form::Json;
        match self.element {
            Element::Number(scalar) => number(text, scalar, bytes, json),
            Element::Bytes(_) => {
                let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
                self.string(text, std::str::from_utf8(&bytes[..end]).map_err(|_| fmt::Error)?)
            }
            Element::Text(_, endian) => {
                let points = bytes.as_chunks::<4>().0.iter().map(|&point| match endian {
                    Endian::Little => u32::from_le_bytes(point),
                    Endian::Big => u32::from_be_bytes(point),
                });
                let string: Option<String> = points.map(char::from_u32).collect();
                self.string(text, string.ok_or(fmt::Error)?.trim_end_matches('\0'))
            }
        }
    }

    /// A text among others, in quotes where it has to be.
    fn string(&self, text: &mut String, value: &str) -> fmt::Result {
        let special = |c: char| match self.form {
            Form::Csv => matches!(c, ',' | '"' | '\n' | '\r'),
            _ => c.is_whitespace() || matches!(c, '"' | '#'),
        };
        match self.form {
            Form::Json => text.write_str(&serde_json::to_string(value).map_err(|_| fmt::Error)?),
            Form::Csv if !value.contains(special) => text.write_str(value),
            Form::Txt if !value.is_empty() && !value.contains(special) => text.write_str(value),
            Form::Csv | Form::Txt => write!(text, "\"{}\"", value.replace('"', "\"\"")),
        }
    }

    /// All of the text of a tensor without elements.
    fn nothing(&self, state: &mut State) -> Result<(), SinkError> {
        match (self.form, self.shape.as_slice()) {
            (Form::Json, shape) => {
                self.empty_lists(state, shape)?;
                self.pass(state, "\n")
            }
            (_, &[rows, 0]) => (0..rows).try_for_each(|_| self.pass(state, "\n")),
            _ => Ok(()),
        }
    }

    fn empty_lists(&self, state: &mut State, shape: &[u64]) -> Result<(), SinkError> {
        self.pass(state, "[")?;
        if let Some((&len, inner)) = shape.split_first() {
            for at in 0..len {
                self.pass(state, if at > 0 { ", " } else { "" })?;
                self.empty_lists(state, inner)?;
            }
        }
        self.pass(state, "]")
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
        let size = self.element.size();
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

    fn commit(self: Box<Self>) -> Result<(), SinkError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let count = crate::shape::element_count(&self.shape).unwrap_or(u64::MAX);
        if state.count != count {
            let size = self.element.size() as u64;
            let (written, len) = (state.taken, count.saturating_mul(size));
            return Err(SinkError::Incomplete { written, len });
        }
        match (count, self.form) {
            (0, _) => self.nothing(&mut state)?,
            (_, Form::Json) => self.pass(&mut state, "\n")?,
            _ => {}
        }
        drop(state);
        self.inner.commit()
    }
}

/// A number of a type that [`Element::new`] lets through.
fn number(text: &mut String, scalar: Scalar, bytes: &[u8], json: bool) -> fmt::Result {
    macro_rules! read {
        ($type:ty) => {{
            let mut item = [0; size_of::<$type>()];
            item.copy_from_slice(&bytes[..size_of::<$type>()]);
            <$type>::from_le_bytes(item)
        }};
    }
    match scalar {
        Scalar::Bool if json => write!(text, "{}", bytes[0] != 0),
        Scalar::Bool => text.write_str(if bytes[0] != 0 { "1" } else { "0" }),
        Scalar::I8 => write!(text, "{}", read!(i8)),
        Scalar::I16 => write!(text, "{}", read!(i16)),
        Scalar::I32 => write!(text, "{}", read!(i32)),
        Scalar::I64 => write!(text, "{}", read!(i64)),
        Scalar::U8 => write!(text, "{}", read!(u8)),
        Scalar::U16 => write!(text, "{}", read!(u16)),
        Scalar::U32 => write!(text, "{}", read!(u32)),
        Scalar::U64 => write!(text, "{}", read!(u64)),
        Scalar::F16 => {
            let value = f16::from_bits(read!(u16));
            let same = |short: f64| f16::from_f64(short) == value;
            float(text, &shortest(value.to_f64(), same), json)
        }
        Scalar::BF16 => {
            let value = bf16::from_bits(read!(u16));
            let same = |short: f64| bf16::from_f64(short) == value;
            float(text, &shortest(value.to_f64(), same), json)
        }
        Scalar::F32 => float(text, &Shortest(read!(f32)), json),
        Scalar::F64 => float(text, &Shortest(read!(f64)), json),
        Scalar::C64 | Scalar::C128 => complex(text, scalar, bytes, json),
        _ => Err(fmt::Error),
    }
}

fn complex(text: &mut String, scalar: Scalar, bytes: &[u8], json: bool) -> fmt::Result {
    let part = if scalar == Scalar::C64 { Scalar::F32 } else { Scalar::F64 };
    let (re, im) = bytes.split_at(bytes.len() / 2);
    if json {
        text.write_char('[')?;
        number(text, part, re, json)?;
        text.write_str(", ")?;
        number(text, part, im, json)?;
        return text.write_char(']');
    }
    number(text, part, re, json)?;
    let mut imaginary = String::new();
    number(&mut imaginary, part, im, json)?;
    let sign = if imaginary.starts_with('-') { "" } else { "+" };
    write!(text, "{sign}{imaginary}j")
}

/// Write a float that was printed the way that Rust prints them.
fn float(text: &mut String, value: &dyn Display, json: bool) -> fmt::Result {
    let printed = value.to_string();
    text.write_str(match (printed.as_str(), json) {
        ("NaN", true) => "\"NaN\"",
        ("inf", true) => "\"Infinity\"",
        ("-inf", true) => "\"-Infinity\"",
        ("NaN", false) => "nan",
        (finite, _) => finite,
    })
}

/// A float as Rust's shortest form has it, with a point or an exponent.
struct Shortest<T>(T);

impl<T: fmt::Debug> Display for Shortest<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// The float with the fewest digits that is still the `same` to a narrower type.
fn shortest(value: f64, same: impl Fn(f64) -> bool) -> Shortest<f64> {
    let short = (0..17).find_map(|digits| {
        let short = format!("{value:.digits$e}").parse().ok()?;
        same(short).then_some(short)
    });
    Shortest(short.unwrap_or(value))
}
