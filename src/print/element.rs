//! One element as text, in columns with the others of its array.

use std::fmt::Write;

use super::float::FloatColumn;
use super::item::Item;
use super::number::{integer, write_float, write_small_float};
use super::options::PrintOptions;
use super::strings::{write_bytes, write_unicode, write_void};
use super::words::Words;
use crate::dtype::{DType, Endian, Field, NpyType, Scalar, TimeUnit};
use crate::element::{FloatFormat, NAT, SmallFloat, write_datetime};

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
        scalar: Scalar,
        endian: Endian,
        range: Option<(i128, i128)>,
        width: usize,
    },
    /// Floats in a column, points below each other.
    Float(Endian, FloatColumn),
    /// Real and imaginary parts in columns of their own.
    Complex(Endian, Box<(FloatColumn, FloatColumn)>),
    /// A float as NumPy's scalars print it.
    LoneFloat(Endian, FloatFormat),
    /// A float that NumPy lacks, as `ml_dtypes` prints it.
    Small(Scalar, Endian),
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
        let float = |endian, format| match alone {
            true => Formatter::LoneFloat(endian, format),
            false => Formatter::Float(endian, column(format, false)),
        };
        let complex = |endian, format| {
            Formatter::Complex(endian, Box::new((column(format, false), column(format, true))))
        };
        let time =
            |endian, unit| Formatter::Time { endian, unit, range: None, nat: false, width: 0 };
        Some(match dtype {
            &DType::Scalar(scalar, endian) => match scalar {
                Scalar::Bool => Formatter::Bool { padded },
                Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => {
                    Formatter::Integer { scalar, endian, range: None, width: 0 }
                }
                Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => {
                    Formatter::Integer { scalar, endian, range: None, width: 0 }
                }
                Scalar::F16 => float(endian, FloatFormat::Half),
                Scalar::F32 => float(endian, FloatFormat::Single),
                Scalar::F64 => float(endian, FloatFormat::Double),
                Scalar::C64 => complex(endian, FloatFormat::Single),
                Scalar::C128 => complex(endian, FloatFormat::Double),
                _ => SmallFloat::of(scalar).map(|_| Formatter::Small(scalar, endian))?,
            },
            DType::Npy(npy) => match *npy {
                NpyType::Bytes(_) => Formatter::Bytes,
                NpyType::Unicode(_, endian) => Formatter::Unicode(endian),
                NpyType::Void(..) => Formatter::Void,
                NpyType::Datetime(endian, unit) => time(endian, Some(unit)),
                NpyType::Timedelta(endian, _) => time(endian, None),
                NpyType::LongDouble(endian) => float(endian, FloatFormat::Extended),
                NpyType::ComplexLongDouble(endian) => complex(endian, FloatFormat::Extended),
                NpyType::Structure(ref structure) => {
                    let field = |field: &Field| {
                        let padded = padded || !field.shape.is_empty();
                        Some(FieldFormatter {
                            formatter: Formatter::padded(&field.dtype, options, alone, padded)?,
                            threshold: options.threshold,
                            edge: options.edge,
                            field: field.clone(),
                        })
                    };
                    Formatter::Structure(structure.fields.iter().map(field).collect::<Option<_>>()?)
                }
            },
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
            Formatter::Integer { scalar, endian, range, .. } => {
                let value = integer(*scalar, endian.bits(bytes));
                let (least, greatest) = range.unwrap_or((value, value));
                *range = Some((least.min(value), greatest.max(value)));
            }
            Formatter::Float(endian, column) => column.observe(endian.bits(bytes)),
            Formatter::Complex(endian, columns) => {
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
            Formatter::Float(_, column) => column.decide(),
            Formatter::Complex(_, columns) => {
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
            Formatter::Integer { scalar, endian, width, .. } => {
                write!(out, "{:width$}", integer(*scalar, endian.bits(bytes)))
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
            Formatter::Float(endian, column) => column.write(out, endian.bits(bytes)),
            Formatter::Complex(endian, columns) => {
                let (real, imaginary) = bytes.split_at(bytes.len() / 2);
                columns.0.write(out, endian.bits(real));
                columns.1.write(out, endian.bits(imaginary));
                // the unit stands behind the digits, before the spaces that fill the column
                let end = out.trim_end().len();
                out.insert(end, 'j');
            }
            Formatter::LoneFloat(endian, format) => {
                write_float(out, *format, endian.bits(bytes));
            }
            Formatter::Small(scalar, endian) => {
                write_small_float(out, *scalar, endian.bits(bytes) as u32);
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
