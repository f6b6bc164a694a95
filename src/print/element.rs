//! One element as text, aligned with the other elements of its array.

use std::convert::Infallible;
use std::fmt::Write;

use super::PrintOptions;
use super::float::FloatColumn;
use super::scalar::{
    is_numpys, write_bytes, write_float, write_small_float, write_unicode, write_void,
};
use crate::dtype::{
    DType, Endian, Integers, Shortened, Step, TimeKind, TimeUnit, walk, walk_shortened,
};
use crate::element::{FloatFormat, Meaning, NAT, write_datetime};

/// A writer of an array's elements, after all were observed and their common form was decided.
#[derive(Clone, Debug)]
pub(super) struct Formatter {
    dtype: DType,
    parts: Vec<Form>,
    shortened: Shortened,
    /// Whether the element is the only one of an array without axes.
    alone: bool,
}

/// How one part of each element is written.
#[derive(Clone, Debug)]
enum Form {
    Bool,
    Integer {
        integers: Integers,
        range: Option<(i128, i128)>,
        width: usize,
    },
    /// Floats in a column, with their points below each other.
    Float(FloatColumn, Endian),
    Complex(Box<(FloatColumn, FloatColumn)>, Endian),
    LoneFloat(FloatFormat, Endian),
    /// A float that NumPy lacks, as `ml_dtypes` prints it.
    Small(FloatFormat, Endian),
    Bytes,
    Unicode(Endian),
    Void,
    /// A datetime; without a unit, a length of time.
    Time {
        endian: Endian,
        unit: Option<TimeUnit>,
        range: Option<(i64, i64)>,
        nat: bool,
        width: usize,
    },
}

impl Formatter {
    /// The formatter of a dtype; `None` if the dtype cannot be printed.
    pub(super) fn new(dtype: &DType, options: &PrintOptions, alone: bool) -> Option<Formatter> {
        let parts = dtype.leaves().into_iter().map(|dtype| Form::new(dtype, options, alone));
        let shortened = Shortened { threshold: options.threshold, edge: options.edge };
        Some(Formatter {
            dtype: dtype.clone(),
            parts: parts.collect::<Option<_>>()?,
            shortened,
            alone,
        })
    }

    pub(super) fn observe(&mut self, item: &[u8]) {
        if self.dtype.structure().is_none()
            && let [form] = self.parts.as_mut_slice()
            && form.observes()
        {
            return form.observe(item);
        }
        let parts = &mut self.parts;
        let Ok(()) = walk::<Infallible>(&self.dtype, &mut |step| {
            if let Step::Leaf { dtype, number, offset, count } = step
                && let Some(form) = parts.get_mut(number).filter(|form| form.observes())
            {
                let size = (dtype.item_bits() / 8) as usize;
                let items = &item[offset as usize..][..count as usize * size];
                items.chunks_exact(size).for_each(|item| form.observe(item));
            }
            Ok(())
        });
    }

    pub(super) fn observes(&self) -> bool {
        self.parts.iter().any(Form::observes)
    }

    pub(super) fn decide(&mut self) {
        self.parts.iter_mut().for_each(Form::decide);
    }

    pub(super) fn write<E>(&self, words: &mut Words<'_, E>, item: &[u8]) -> Result<(), E> {
        if let Some(form) = self.parts.first().filter(|_| self.dtype.structure().is_none()) {
            return form.write(words, item, self.alone);
        }
        self.write_structure(words, item)
    }

    fn write_structure<E>(&self, words: &mut Words<'_, E>, item: &[u8]) -> Result<(), E> {
        // the number of fields so far in each open structure, and whether a separator comes next
        let mut fields = Vec::new();
        let mut parted = false;
        let mut lists = 0;
        // `None` stops the walk where no more is wanted
        let written = walk_shortened(&self.dtype, Some(self.shortened), &mut |step| {
            let separator = if parted { ", " } else { "" };
            parted = !matches!(step, Step::Structure | Step::List);
            match step {
                Step::Structure => {
                    words.text.extend([separator, "("]);
                    fields.push(0);
                }
                Step::Field(_) => {
                    fields.last_mut().into_iter().for_each(|count| *count += 1);
                    parted = !separator.is_empty();
                }
                Step::EndStructure => {
                    words.text.push_str(if fields.pop() == Some(1) { ",)" } else { ")" });
                }
                Step::List => {
                    words.text.extend([separator, "["]);
                    lists += 1;
                }
                Step::Gap => words.text.extend([separator, "..."]),
                Step::EndList => {
                    words.text.push(']');
                    lists -= 1;
                }
                Step::Leaf { dtype, number, offset, count } => {
                    let Some(form) = self.parts.get(number) else { return Ok(()) };
                    let size = (dtype.item_bits() / 8) as usize;
                    let is_alone = self.alone && lists == 0;
                    for at in 0..count as usize {
                        if lists > 0 && !words.go_on().map_err(Some)? {
                            return Err(None);
                        }
                        words.text.push_str(if at > 0 { ", " } else { separator });
                        let item = &item[offset as usize + at * size..][..size];
                        form.write(words, item, is_alone).map_err(Some)?;
                    }
                }
            }
            Ok(())
        });
        written.or_else(|stop| stop.map_or(Ok(()), Err))
    }
}

impl Form {
    fn new(dtype: &DType, options: &PrintOptions, alone: bool) -> Option<Form> {
        let column = |format, plus| FloatColumn::new(format, options.precision, plus);
        Some(match Meaning::of(dtype)? {
            Meaning::Bool => Form::Bool,
            Meaning::Integer(integers) => Form::Integer { integers, range: None, width: 0 },
            Meaning::Float(format, endian) if !is_numpys(format) => Form::Small(format, endian),
            Meaning::Float(format, endian) if alone => Form::LoneFloat(format, endian),
            Meaning::Float(format, endian) => Form::Float(column(format, false), endian),
            Meaning::Complex(format, endian) => {
                Form::Complex(Box::new((column(format, false), column(format, true))), endian)
            }
            Meaning::Bytes => Form::Bytes,
            Meaning::Unicode(endian) => Form::Unicode(endian),
            Meaning::Void => Form::Void,
            Meaning::Time(kind, endian, unit) => {
                let unit = (kind == TimeKind::Datetime).then_some(unit);
                Form::Time { endian, unit, range: None, nat: false, width: 0 }
            }
        })
    }

    fn observes(&self) -> bool {
        let is_number = matches!(self, Form::Integer { .. } | Form::Float(..) | Form::Complex(..));
        is_number || matches!(self, Form::Time { .. })
    }

    fn observe(&mut self, bytes: &[u8]) {
        match self {
            Form::Integer { integers, range, .. } => {
                let value = integers.value(bytes);
                let (least, greatest) = range.unwrap_or((value, value));
                *range = Some((least.min(value), greatest.max(value)));
            }
            Form::Float(column, endian) => column.observe(endian.bits(bytes)),
            Form::Complex(columns, endian) => {
                let (real, imaginary) = bytes.split_at(bytes.len() / 2);
                columns.0.observe(endian.bits(real));
                columns.1.observe(endian.bits(imaginary));
            }
            Form::Time { endian, range, nat, .. } => match endian.bits(bytes) as i64 {
                NAT => *nat = true,
                value => {
                    let (least, greatest) = range.unwrap_or((value, value));
                    *range = Some((least.min(value), greatest.max(value)));
                }
            },
            _ => {}
        }
    }

    fn decide(&mut self) {
        match self {
            Form::Integer { range: Some((least, greatest)), width, .. } => {
                *width = least.to_string().len().max(greatest.to_string().len());
            }
            Form::Float(column, _) => column.decide(),
            Form::Complex(columns, _) => {
                columns.0.decide();
                columns.1.decide();
            }
            Form::Time { unit, range, nat, width, .. } => {
                let bounds = range.iter().flat_map(|&(least, greatest)| [least, greatest]);
                let widths = bounds.map(|value| time(value, *unit).len());
                *width = widths.chain(nat.then_some("'NaT'".len())).max().unwrap_or(0);
            }
            _ => {}
        }
    }

    fn write<E>(&self, words: &mut Words<'_, E>, bytes: &[u8], alone: bool) -> Result<(), E> {
        match self {
            Form::Bytes => return write_bytes(words, bytes),
            Form::Unicode(endian) => return write_unicode(words, bytes, *endian),
            Form::Void => return write_void(words, bytes),
            _ => {}
        }
        let out = &mut words.text;
        // writing to a string cannot fail
        match self {
            Form::Bytes | Form::Unicode(_) | Form::Void => {}
            Form::Bool => out.push_str(match (bytes != [0], alone) {
                (true, true) => "True",
                (true, false) => " True",
                (false, _) => "False",
            }),
            Form::Integer { integers, width, .. } => {
                let _ = write!(out, "{:width$}", integers.value(bytes));
            }
            Form::Time { endian, unit, width, .. } => {
                let text = match endian.bits(bytes) as i64 {
                    NAT => "'NaT'".to_owned(),
                    value => time(value, *unit),
                };
                let _ = write!(out, "{text:>width$}");
            }
            Form::Float(column, endian) => column.write(out, endian.bits(bytes)),
            Form::Complex(columns, endian) => {
                let (real, imaginary) = bytes.split_at(bytes.len() / 2);
                columns.0.write(out, endian.bits(real));
                columns.1.write(out, endian.bits(imaginary));
                // the `j` follows the digits, before the spaces that fill the column
                let end = out.trim_end().len();
                out.insert(end, 'j');
            }
            Form::LoneFloat(format, endian) => write_float(out, *format, endian.bits(bytes)),
            Form::Small(format, endian) => write_small_float(out, *format, endian.bits(bytes)),
        }
        Ok(())
    }
}

/// Format a datetime in quotes, or a length of time as a bare number.
fn time(value: i64, unit: Option<TimeUnit>) -> String {
    let Some(unit) = unit else { return value.to_string() };
    let mut text = String::from("'");
    write_datetime(&mut text, value, unit);
    text.push('\'');
    text
}

/// The size of an element, in bytes, above which its text is not held in memory.
pub(super) const LARGE: u64 = 64 << 10;

/// A buffer of text that passes it on in large pieces.
pub(super) struct Words<'a, E> {
    pub(super) text: String,
    to: To<'a, E>,
}

pub(super) type WriteText<'a, E> = dyn FnMut(&str) -> Result<(), E> + 'a;

pub(super) enum To<'a, E> {
    Held,
    /// Text whose characters are only counted.
    Counted(usize),
    Written(&'a mut WriteText<'a, E>),
    /// Text that is held up to this many characters.
    Cut(usize),
}

const COLLECTED: usize = 64 << 10;

impl<'a, E> Words<'a, E> {
    pub(super) fn new(to: To<'a, E>) -> Words<'a, E> {
        Words { text: String::new(), to }
    }

    /// Pass on the text if there is enough; returns `false` if no more is wanted.
    pub(super) fn go_on(&mut self) -> Result<bool, E> {
        if let To::Cut(most) = self.to {
            return Ok(self.text.len() <= 4 * most);
        }
        if self.text.len() >= COLLECTED {
            self.hand_on()?;
        }
        Ok(true)
    }

    fn hand_on(&mut self) -> Result<(), E> {
        match &mut self.to {
            To::Held | To::Cut(_) => return Ok(()),
            To::Counted(count) => *count += self.text.chars().count(),
            To::Written(write) => write(&self.text)?,
        }
        self.text.clear();
        Ok(())
    }

    /// The number of characters, if they were counted, and the text.
    pub(super) fn end(mut self) -> Result<(usize, String), E> {
        self.hand_on()?;
        let count = if let To::Counted(count) = self.to { count } else { 0 };
        if let To::Cut(most) = self.to
            && let Some((end, _)) = self.text.char_indices().nth(most)
        {
            self.text.truncate(end);
            self.text.push_str("...");
        }
        Ok((count, self.text))
    }
}
