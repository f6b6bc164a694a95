//! Dtypes as NumPy writes them: the `descr` that np.save writes, and the names that NumPy shows.
//!
//! ```text
//! float32  =>  '<f4'        a structure  =>  [('x', '>i2'), ('', '|V2'), ('t', '<M8[s]', (3,))]
//! ```

use std::fmt;
use std::fmt::Write;

use super::{DType, Endian, Field, NpyType, Structure, TimeKind, TimeUnit};
use crate::shape::AsTuple;

/// The `descr` of a dtype as np.save writes it; `None` for floats that NumPy lacks.
pub fn literal(dtype: &DType) -> Option<String> {
    let mut out = String::new();
    write_literal(&mut out, dtype).ok().map(|()| out)
}

fn write_literal(out: &mut String, dtype: &DType) -> fmt::Result {
    match dtype {
        DType::Npy(NpyType::Structure(structure)) => write_structure(out, structure),
        DType::Npy(npy) => {
            out.push('\'');
            write_type_string(out, npy)?;
            out.write_char('\'')
        }
        DType::Blocks(_) => Err(fmt::Error),
        DType::Scalar(scalar, endian) => {
            let order = if scalar.bits() == 8 { '|' } else { order(*endian) };
            write!(out, "'{order}{}'", scalar.type_string().ok_or(fmt::Error)?)
        }
    }
}

fn order(endian: Endian) -> char {
    match endian {
        Endian::Little => '<',
        Endian::Big => '>',
    }
}

/// Append the type string, or the list of fields of a structure.
fn write_type_string(out: &mut String, npy: &NpyType) -> fmt::Result {
    match *npy {
        NpyType::Bytes(len) => write!(out, "|S{len}"),
        NpyType::Unicode(len, endian) => write!(out, "{}U{len}", order(endian)),
        NpyType::Void(len, endian) => write!(out, "{}V{len}", endian.map_or('|', order)),
        NpyType::Time(kind, endian, unit) => {
            let kind = if kind == TimeKind::Datetime { 'M' } else { 'm' };
            write!(out, "{}{kind}8{unit}", order(endian))
        }
        NpyType::LongDouble(endian) => write!(out, "{}f16", order(endian)),
        NpyType::ComplexLongDouble(endian) => write!(out, "{}c32", order(endian)),
        NpyType::Structure(ref structure) => write_structure(out, structure),
    }
}

impl fmt::Display for TimeUnit {
    /// `[25s]`, without a count of 1; nothing for the generic unit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.count, self.name()) {
            (_, "") => Ok(()),
            (1, name) => write!(f, "[{name}]"),
            (count, name) => write!(f, "[{count}{name}]"),
        }
    }
}

/// Append the list of fields, with the padding between and after them as unnamed fields.
fn write_structure(out: &mut String, structure: &Structure) -> fmt::Result {
    out.push('[');
    let start = out.len();
    let separate = |out: &mut String| out.push_str(if out.len() > start { ", " } else { "" });
    let pad = |out: &mut String, bytes: u64| -> fmt::Result {
        if bytes > 0 {
            separate(out);
            write!(out, "('', '|V{bytes}')")?;
        }
        Ok(())
    };
    let mut end = 0;
    for field in &structure.fields {
        pad(out, field.offset.saturating_sub(end))?;
        separate(out);
        write_field(out, field)?;
        end = field.offset.saturating_add(field.bytes());
    }
    pad(out, structure.itemsize.saturating_sub(end))?;
    out.write_char(']')
}

fn write_field(out: &mut String, field: &Field) -> fmt::Result {
    out.push('(');
    let name = if field.is_named { field.name.as_str() } else { "" };
    match &field.title {
        None => write_str(out, name),
        Some(title) => {
            out.push('(');
            write_str(out, title);
            out.push_str(", ");
            write_str(out, name);
            out.push(')');
        }
    }
    out.push_str(", ");
    write_subarray(out, field, &field.nesting, &field.shape)?;
    out.write_char(')')
}

/// Append `type, shape`, where the type may itself be such a pair; only the type where there is no shape.
fn write_subarray(
    out: &mut String,
    field: &Field,
    nesting: &[usize],
    shape: &[u64],
) -> fmt::Result {
    let Some((&ndim, nesting)) = nesting.split_first() else {
        return write_literal(out, &field.dtype);
    };
    let (own, inner) = shape.split_at_checked(ndim).ok_or(fmt::Error)?;
    if nesting.is_empty() {
        write_literal(out, &field.dtype)?;
    } else {
        out.push('(');
        write_subarray(out, field, nesting, inner)?;
        out.push(')');
    }
    write!(out, ", {}", AsTuple(own))
}

impl fmt::Display for DType {
    /// NumPy's name: `float32`, `>i2`, `bfloat16`, `|S5`, `[('x', '<f4')]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DType::Scalar(scalar, Endian::Big) if self.swap_width() > 1 => {
                write!(f, ">{}", scalar.type_string().unwrap_or(scalar.name()))
            }
            DType::Scalar(scalar, _) => f.write_str(scalar.name()),
            DType::Blocks(block) => f.write_str(block.name),
            DType::Npy(npy) => {
                let mut text = String::new();
                // fails only for a field of a type that NumPy lacks; no structure has such a field
                let _ = write_type_string(&mut text, npy);
                f.write_str(&text)
            }
        }
    }
}

/// Writes a string as Python's `repr` does, one code point at a time, so that the string need not
/// be held in memory. The choice of quotes decides what is escaped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodePoints {
    quote: char,
}

impl CodePoints {
    /// `single` and `double` say which quotation marks the string contains.
    pub(crate) fn new(single: bool, double: bool) -> CodePoints {
        CodePoints { quote: if single && !double { '"' } else { '\'' } }
    }

    pub(crate) fn quote(self) -> char {
        self.quote
    }

    /// Append a code point; one that is not a character, such as a lone surrogate, is escaped.
    pub(crate) fn write(self, out: &mut String, code: u32) {
        match char::from_u32(code) {
            Some('\\') => out.push_str("\\\\"),
            Some('\n') => out.push_str("\\n"),
            Some('\r') => out.push_str("\\r"),
            Some('\t') => out.push_str("\\t"),
            Some(char) if char == self.quote => out.extend(['\\', char]),
            Some(char) if is_printable(char) => out.push(char),
            // writing to a string cannot fail
            _ => {
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }

    pub(crate) fn write_byte(self, out: &mut String, byte: u8) {
        match byte {
            0..=0x7f => self.write(out, byte.into()),
            // writing to a string cannot fail
            _ => drop(write!(out, "\\x{byte:02x}")),
        }
    }
}

/// Append a string as Python's `repr` spells it.
pub(crate) fn write_str(out: &mut String, text: &str) {
    let points = CodePoints::new(text.contains('\''), text.contains('"'));
    out.push(points.quote());
    text.chars().for_each(|char| points.write(out, u32::from(char)));
    out.push(points.quote());
}

/// Whether Python's `str.isprintable` is true for a character: it is a space, or outside the Unicode
/// categories of control, format, private, surrogate and unassigned characters and separators.
///
/// ```
/// use tslice::dtype::is_printable;
/// assert!(is_printable('é') && is_printable(' ') && !is_printable('\u{9b}') && !is_printable('\u{202e}'));
/// ```
pub fn is_printable(char: char) -> bool {
    match char {
        ' '..='~' => true,
        '\0'..='\x7f' => false,
        _ => {
            // The standard library escapes these categories in the debug form of a string. It also escapes
            // combining characters at the beginning of the string, so a letter stands there.
            let mut behind_a_letter = [b'a'; 5];
            let len = char.encode_utf8(&mut behind_a_letter[1..]).len() + 1;
            std::str::from_utf8(&behind_a_letter[..len])
                .is_ok_and(|text| text.escape_debug().nth(1) == Some(char))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scalar;
    use super::*;

    #[test]
    fn types_print_as_numpy_names_them() {
        let scalar = |scalar, endian| DType::Scalar(scalar, endian).to_string();
        assert_eq!(scalar(Scalar::F32, Endian::Little), "float32");
        assert_eq!(scalar(Scalar::F32, Endian::Big), ">f4");
        assert_eq!(scalar(Scalar::C128, Endian::Big), ">c16");
        assert_eq!(scalar(Scalar::U8, Endian::Big), "uint8");
        assert_eq!(scalar(Scalar::BF16, Endian::Big), ">bfloat16");
        assert_eq!(DType::Npy(NpyType::Bytes(5)).to_string(), "|S5");
        let unit = |count, name| {
            NpyType::Time(TimeKind::Timedelta, Endian::Big, TimeUnit::new(count, name).unwrap())
        };
        assert_eq!(DType::Npy(unit(25, "s")).to_string(), ">m8[25s]");
        assert_eq!(DType::Npy(unit(1, "")).to_string(), ">m8");
    }
}
