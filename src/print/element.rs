//! One element as text, in columns with the others of its array.

use std::fmt::Write;

use super::float::FloatColumn;
use super::item::Item;
use super::number::{is_numpys, write_float, write_small_float};
use super::options::PrintOptions;
use super::strings::{write_bytes, write_unicode, write_void};
use super::words::Words;
use crate::dtype::{DType, Endian, Field, Integers, TimeUnit};
use crate::element::{FloatFormat, Meaning, NAT, write_datetime};

/// Writes the elements of an array, after all of them were [observed](Formatter::observe) and their
/// common form was [decided](Formatter::decide).
#[derive(Clone, Debug)]
pub(super) enum Formatter {
    /// `True` and `False`, in an array with a space before `True`.
    Bool {
        padded: bool,
    },
    /// Integers to the right of a column.
    Integer {
        integers: Integers,
        range: Option<(i128, i128)>,
        width: usize,
    },
    /// Floats in a column, points below each other.
    Float(FloatColumn, Endian),
    /// Real and imaginary parts in columns of their own.
    Complex(Box<(FloatColumn, FloatColumn)>, Endian),
    /// A float as NumPy's scalars print it.
    LoneFloat(FloatFormat, Endian),
    /// A float that NumPy lacks, as `ml_dtypes` prints it.
    Small(FloatFormat, Endian),
    Bytes,
    Unicode(Endian),
    Void,
    /// Datetimes, or lengths of time where there is no unit.
    Time {
        endian: Endian,
        unit: Option<TimeUnit>,
        range: Option<(i64, i64)>,
        nat: bool,
        width: usize,
    },
    Structure(Vec<FieldFormatter>),
}

/// A field of a structure.
#[derive(Clone, Debug)]
pub(super) struct FieldFormatter {
    field: Field,
    threshold: u64,
    edge: u64,
    formatter: Formatter,
}

impl Formatter {
    /// For the elements of an array, or for the one of an array without axes (`alone`); `None` for
    /// a dtype that cannot be printed.
    pub(super) fn new(dtype: &DType, options: &PrintOptions, alone: bool) -> Option<Formatter> {
        Formatter::padded(dtype, options, alone, !alone)
    }

    fn padded(
        dtype: &DType,
        options: &PrintOptions,
        alone: bool,
        padded: bool,
    ) -> Option<Formatter> {
        let column = |format, plus| FloatColumn::new(format, options.precision, plus);
        let time =
            |endian, unit| Formatter::Time { endian, unit, range: None, nat: false, width: 0 };
        if let Some(structure) = dtype.structure() {
            let field = |field: &Field| {
                let padded = padded || !field.shape.is_empty();
                Some(FieldFormatter {
                    formatter: Formatter::padded(&field.dtype, options, alone, padded)?,
                    threshold: options.threshold,
                    edge: options.edge,
                    field: field.clone(),
                })
            };
            let fields = structure.fields.iter().map(field).collect::<Option<_>>()?;
            return Some(Formatter::Structure(fields));
        }
        Some(match Meaning::of(dtype)? {
            Meaning::Bool => Formatter::Bool { padded },
            Meaning::Integer(integers) => Formatter::Integer { integers, range: None, width: 0 },
            Meaning::Float(format, endian) if !is_numpys(format) => {
                Formatter::Small(format, endian)
            }
            Meaning::Float(format, endian) if alone => Formatter::LoneFloat(format, endian),
            Meaning::Float(format, endian) => Formatter::Float(column(format, false), endian),
            Meaning::Complex(format, endian) => {
                let columns = Box::new((column(format, false), column(format, true)));
                Formatter::Complex(columns, endian)
            }
            Meaning::Bytes => Formatter::Bytes,
            Meaning::Unicode(endian) => Formatter::Unicode(endian),
            Meaning::Void => Formatter::Void,
            Meaning::Datetime(endian, unit) => time(endian, Some(unit)),
            Meaning::Timedelta(endian, _) => time(endian, None),
        })
    }

    /// Take an element into account, which begins at a place of what is given.
    pub(super) fn observe<I: Item>(
        &mut self,
        item: &mut I,
        at: u64,
        size: u64,
    ) -> Result<(), I::Error> {
        match self {
            Formatter::Structure(fields) => {
                for FieldFormatter { formatter, field, .. } in fields {
                    if !formatter.observes() {
                        continue;
                    }
                    let size = field.itemsize();
                    for number in 0..field.count() {
                        formatter.observe(item, at + field.offset + number * size, size)?;
                    }
                }
            }
            _ if self.observes() => self.observe_value(item.bytes(at, size)?),
            _ => {}
        }
        Ok(())
    }

    /// Whether elements have to be seen before they are written.
    pub(super) fn observes(&self) -> bool {
        match self {
            Formatter::Structure(fields) => fields.iter().any(|field| field.formatter.observes()),
            Formatter::Integer { .. } | Formatter::Float(..) => true,
            Formatter::Complex(..) | Formatter::Time { .. } => true,
            _ => false,
        }
    }

    /// Take a number or a time into account.
    fn observe_value(&mut self, bytes: &[u8]) {
        match self {
            Formatter::Integer { integers, range, .. } => {
                let value = integers.value(bytes);
                let (least, greatest) = range.unwrap_or((value, value));
                *range = Some((least.min(value), greatest.max(value)));
            }
            Formatter::Float(column, endian) => column.observe(endian.bits(bytes)),
            Formatter::Complex(columns, endian) => {
                let (real, imaginary) = bytes.split_at(bytes.len() / 2);
                columns.0.observe(endian.bits(real));
                columns.1.observe(endian.bits(imaginary));
            }
            Formatter::Time { endian, range, nat, .. } => match endian.bits(bytes) as i64 {
                NAT => *nat = true,
                value => {
                    let (least, greatest) = range.unwrap_or((value, value));
                    *range = Some((least.min(value), greatest.max(value)));
                }
            },
            _ => {}
        }
    }

    /// All elements have been seen: decide how wide they are.
    pub(super) fn decide(&mut self) {
        match self {
            Formatter::Integer { range: Some((least, greatest)), width, .. } => {
                *width = least.to_string().len().max(greatest.to_string().len());
            }
            Formatter::Float(column, _) => column.decide(),
            Formatter::Complex(columns, _) => {
                columns.0.decide();
                columns.1.decide();
            }
            Formatter::Time { unit, range, nat, width, .. } => {
                let bounds = range.iter().flat_map(|&(least, greatest)| [least, greatest]);
                let widths = bounds.map(|value| time(value, unit.as_ref()).len());
                *width = widths.chain(nat.then_some("'NaT'".len())).max().unwrap_or(0);
            }
            Formatter::Structure(fields) => {
                fields.iter_mut().for_each(|field| field.formatter.decide());
            }
            _ => {}
        }
    }

    /// Append an element, which begins at a place of what is given.
    pub(super) fn write<I: Item>(
        &self,
        words: &mut Words<'_, I::Error>,
        item: &mut I,
        at: u64,
        size: u64,
    ) -> Result<(), I::Error> {
        match self {
            Formatter::Bytes => write_bytes(words, item, at..at + size),
            Formatter::Unicode(endian) => write_unicode(words, item, at..at + size, *endian),
            Formatter::Void => write_void(words, item, at..at + size),
            Formatter::Structure(fields) => {
                words.text.push('(');
                for (number, field) in fields.iter().enumerate() {
                    words.text.push_str(if number > 0 { ", " } else { "" });
                    field.write(words, item, at)?;
                }
                words.text.push_str(if fields.len() == 1 { ",)" } else { ")" });
                Ok(())
            }
            _ => {
                self.write_value(&mut words.text, item.bytes(at, size)?);
                Ok(())
            }
        }
    }

    /// Append a number or a time.
    fn write_value(&self, out: &mut String, bytes: &[u8]) {
        // writing to a string cannot fail
        let _ = match self {
            Formatter::Bool { padded } => out.write_str(match (bytes != [0], padded) {
                (true, true) => " True",
                (true, false) => "True",
                (false, _) => "False",
            }),
            Formatter::Integer { integers, width, .. } => {
                write!(out, "{:width$}", integers.value(bytes))
            }
            Formatter::Time { endian, unit, width, .. } => match endian.bits(bytes) as i64 {
                NAT => write!(out, "{:>width$}", "'NaT'"),
                value => write!(out, "{:>width$}", time(value, unit.as_ref())),
            },
            _ => {
                self.write_float(out, bytes);
                Ok(())
            }
        };
    }

    fn write_float(&self, out: &mut String, bytes: &[u8]) {
        match self {
            Formatter::Float(column, endian) => column.write(out, endian.bits(bytes)),
            Formatter::Complex(columns, endian) => {
                let (real, imaginary) = bytes.split_at(bytes.len() / 2);
                columns.0.write(out, endian.bits(real));
                columns.1.write(out, endian.bits(imaginary));
                // the unit stands behind the digits, before the spaces that fill the column
                let end = out.trim_end().len();
                out.insert(end, 'j');
            }
            Formatter::LoneFloat(format, endian) => {
                write_float(out, *format, endian.bits(bytes));
            }
            Formatter::Small(format, endian) => {
                write_small_float(out, *format, endian.bits(bytes));
            }
            _ => {}
        }
    }
}

impl FieldFormatter {
    /// Append the field of a structure that begins at a place.
    fn write<I: Item>(
        &self,
        words: &mut Words<'_, I::Error>,
        item: &mut I,
        at: u64,
    ) -> Result<(), I::Error> {
        let is_long = self.field.count() > self.threshold;
        self.write_items(words, item, at + self.field.offset, &self.field.shape, is_long)
    }

    /// Append the items of a subarray; a shortened one has dots where its axes are long.
    fn write_items<I: Item>(
        &self,
        words: &mut Words<'_, I::Error>,
        item: &mut I,
        at: u64,
        shape: &[u64],
        shortened: bool,
    ) -> Result<(), I::Error> {
        let size = self.field.itemsize();
        let Some((&len, inner)) = shape.split_first() else {
            return self.formatter.write(words, item, at, size);
        };
        let size = inner.iter().product::<u64>() * size;
        let is_long = self.edge.checked_mul(2).is_some_and(|shown| shown < len);
        words.text.push('[');
        let mut number = 0;
        while number < len && words.go_on()? {
            words.text.push_str(if number > 0 { ", " } else { "" });
            if shortened && is_long && number == self.edge {
                words.text.push_str("..., ");
                number = len - self.edge;
            }
            self.write_items(words, item, at + number * size, inner, shortened)?;
            number += 1;
        }
        words.text.push(']');
        Ok(())
    }
}

/// A datetime in quotes, or a bare length of time.
fn time(value: i64, unit: Option<&TimeUnit>) -> String {
    let Some(unit) = unit else { return value.to_string() };
    let mut text = String::from("'");
    write_datetime(&mut text, value, unit);
    text.push('\'');
    text
}
