//! One element read from a cell of a table, as np.loadtxt does.

use std::num::IntErrorKind;

use super::float::FloatFormat;
use super::parse::{ElementError, parse};
use crate::dtype::{DType, Endian, Integers, NpyType, Scalar};

/// A reader of cells as elements of a dtype.
///
/// Floats are read as by Python's `float()`, without underscores, and rounded to a double and then
/// to the dtype, so that too large numbers become infinite. Integers are decimal and must fit;
/// unsigned integers have no minus sign. A boolean is an integer (true if not 0), or the word TRUE
/// or FALSE. Complex numbers are `1`, `2j`, `1+2j` or `(1+2j)`. Strings are cut at the dtype's
/// length.
#[derive(Clone, Debug)]
pub(crate) struct CellReader {
    dtype: DType,
    kind: CellKind,
}

#[derive(Clone, Copy, Debug)]
enum CellKind {
    Bool,
    Integer(Integers),
    Float(FloatNumber),
    Complex(FloatNumber),
    Bytes(usize),
    Unicode(usize, Endian),
}

impl CellReader {
    /// The reader for a dtype; `None` for dtypes that cannot be read from cells.
    pub(crate) fn of(dtype: &DType) -> Option<CellReader> {
        let float = |scalar: Scalar, endian| {
            let width = (scalar.bits() / 8) as usize;
            FloatFormat::of(scalar).map(|format| FloatNumber { format, width, endian })
        };
        let length = |len: u64| usize::try_from(len).ok().filter(|&len| len > 0);
        let kind = match *dtype {
            DType::Scalar(Scalar::Bool, _) => CellKind::Bool,
            DType::Scalar(scalar, endian) => match (Integers::new(dtype), scalar.part()) {
                (Some(integers), _) => CellKind::Integer(integers),
                (None, Some(part)) => CellKind::Complex(float(part, endian)?),
                (None, None) => CellKind::Float(float(scalar, endian)?),
            },
            DType::Npy(NpyType::Bytes(len)) => CellKind::Bytes(length(len)?),
            DType::Npy(NpyType::Unicode(len, endian)) => CellKind::Unicode(length(len)?, endian),
            DType::Npy(_) | DType::Blocks(_) => return None,
        };
        Some(CellReader { dtype: dtype.clone(), kind })
    }

    pub(crate) fn dtype(&self) -> &DType {
        &self.dtype
    }

    /// Whether every text is a valid element.
    pub(crate) fn are_strings(&self) -> bool {
        matches!(self.kind, CellKind::Bytes(_) | CellKind::Unicode(..))
    }

    /// Whether elements are numbers of a type that has NaN.
    pub(crate) fn hold_nan(&self) -> bool {
        !self.are_strings() && self.push("nan", &mut Vec::new()).is_some()
    }

    /// Whether a cell holds a number of any kind, even if it does not fit this dtype.
    pub(crate) fn is_number(&self, cell: &str) -> bool {
        let widest = DType::Scalar(Scalar::C128, Endian::Little);
        let is_range = |error| matches!(error, ElementError::Range { .. });
        self.push(cell, &mut Vec::new()).is_some()
            || complex(trimmed(cell)).is_some()
            || parse(trimmed(cell), &widest).map_or_else(is_range, |_| true)
    }

    /// Append the bytes of an element. Returns `None`, and appends nothing, where the cell is not
    /// an element.
    pub(crate) fn push(&self, cell: &str, out: &mut Vec<u8>) -> Option<()> {
        match self.kind {
            CellKind::Bool => {
                let cell = trimmed(cell);
                let is_word = |word: &str| cell.eq_ignore_ascii_case(word);
                let value = match cell.parse::<i64>() {
                    Ok(number) => number != 0,
                    Err(_) if is_word("true") => true,
                    Err(_) if is_word("false") => false,
                    Err(_) => return None,
                };
                out.push(u8::from(value));
            }
            CellKind::Integer(integers) => {
                let cell = trimmed(cell);
                let short = cell.parse::<i64>().map(i128::from);
                let value = short.or_else(|_| cell.parse()).ok()?;
                let (least, greatest) = integers.range();
                // np.loadtxt reads no minus sign before unsigned integers, not even in -0
                let is_signed = least == 0 && cell.starts_with('-');
                if is_signed || !(least..=greatest).contains(&value) {
                    return None;
                }
                put(out, &value.to_le_bytes()[..integers.width], integers.endian);
            }
            CellKind::Float(float) => float.push(trimmed(cell).parse().ok()?, out)?,
            CellKind::Complex(float) => {
                let [real, imaginary] = complex(trimmed(cell))?;
                let start = out.len();
                let pushed = float.push(real, out).and_then(|()| float.push(imaginary, out));
                if pushed.is_none() {
                    out.truncate(start);
                    return None;
                }
            }
            CellKind::Bytes(len) => {
                let start = out.len();
                for char in cell.chars().take(len) {
                    match u8::try_from(u32::from(char)) {
                        Ok(byte) => out.push(byte),
                        Err(_) => {
                            out.truncate(start);
                            return None;
                        }
                    }
                }
                out.resize(start + len, 0);
            }
            CellKind::Unicode(len, endian) => {
                let start = out.len();
                for char in cell.chars().take(len) {
                    put(out, &u32::from(char).to_le_bytes(), endian);
                }
                out.resize(start + 4 * len, 0);
            }
        }
        Some(())
    }

    pub(crate) fn refusal(&self, cell: &str, shown: &str) -> ElementError {
        let text = shown.to_owned();
        let dtype = self.dtype.to_string();
        let is_long = |error: &IntErrorKind| {
            matches!(error, IntErrorKind::PosOverflow | IntErrorKind::NegOverflow)
        };
        let (kind, too_large) = match self.kind {
            CellKind::Integer(_) | CellKind::Bool => {
                let parsed = trimmed(cell).parse::<i128>();
                let fits = parsed.as_ref().map_or_else(|error| is_long(error.kind()), |_| true);
                ("an integer", fits)
            }
            CellKind::Float(_) => ("a real number", trimmed(cell).parse::<f64>().is_ok()),
            CellKind::Complex(_) => ("a number", complex(trimmed(cell)).is_some()),
            CellKind::Bytes(_) | CellKind::Unicode(..) => ("Latin-1", false),
        };
        let range = match self.kind {
            CellKind::Integer(integers) => {
                let (least, greatest) = integers.range();
                format!(", which holds {least} to {greatest}")
            }
            _ => String::new(),
        };
        match too_large {
            true => ElementError::Range { text, dtype, range },
            false if self.are_strings() || self.is_number(cell) => {
                ElementError::Kind { text, kind, dtype }
            }
            false => ElementError::NotANumber(text),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct FloatNumber {
    format: FloatFormat,
    width: usize,
    endian: Endian,
}

impl FloatNumber {
    /// Append the nearest float; `None` where the format has only NaN for a number.
    fn push(self, value: f64, out: &mut Vec<u8>) -> Option<()> {
        let bits = self.format.bits(value);
        if !value.is_nan() && self.width < 8 && self.format.value(u128::from(bits)).is_nan() {
            return None;
        }
        put(out, &bits.to_le_bytes()[..self.width], self.endian);
        Some(())
    }
}

fn put(out: &mut Vec<u8>, bytes: &[u8], endian: Endian) {
    match endian {
        Endian::Little => out.extend_from_slice(bytes),
        Endian::Big => out.extend(bytes.iter().rev()),
    }
}

/// Strip the white space that Python's `str.strip` strips.
pub(crate) fn trimmed(cell: &str) -> &str {
    if let [first, .., last] = cell.as_bytes()
        && first.is_ascii_graphic()
        && last.is_ascii_graphic()
    {
        return cell;
    }
    cell.trim_matches(|char: char| char.is_whitespace() || ('\x1c'..='\x1f').contains(&char))
}

/// Parse `1`, `2j`, `1+2j` or `1+-2j`, with or without brackets, into real and imaginary part.
fn complex(text: &str) -> Option<[f64; 2]> {
    let bare = text.strip_prefix('(').map(|text| text.strip_suffix(')'));
    let text = trimmed(bare.unwrap_or(Some(text))?);
    let (first, rest) = real(text)?;
    match rest {
        "" => return Some([first, 0.0]),
        "j" => return Some([0.0, first]),
        _ => {}
    }
    let signed = match rest.strip_prefix('+') {
        Some(rest) => rest,
        None => rest.starts_with('-').then_some(rest)?,
    };
    let (second, rest) = real(signed)?;
    (rest == "j").then_some([first, second])
}

/// Split a text into the float at its beginning, and the rest.
fn real(text: &str) -> Option<(f64, &str)> {
    let bytes = text.as_bytes();
    let digits = |at: usize| {
        let count = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        at + count
    };
    let begin = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let word = ["infinity", "inf", "nan"].into_iter().find(|word| {
        text.get(begin..begin + word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word))
    });
    let end = match word {
        Some(word) => begin + word.len(),
        None => {
            let mut end = digits(begin);
            if bytes.get(end) == Some(&b'.') {
                end = digits(end + 1);
            }
            if matches!(bytes.get(end), Some(b'e' | b'E')) {
                let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
                let past = end + 1 + sign;
                let exponent = if past <= bytes.len() { digits(past) } else { past };
                end = if exponent > past { exponent } else { end };
            }
            end
        }
    };
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(scalar: Scalar, cell: &str) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let cells = CellReader::of(&DType::Scalar(scalar, Endian::Little)).unwrap();
        cells.push(cell, &mut out).map(|()| out)
    }

    /// Expected: the numbers that np.loadtxt reads.
    #[test]
    fn numbers_are_those_of_loadtxt() {
        let double =
            |cell| read(Scalar::F64, cell).map(|it| f64::from_le_bytes(it.try_into().unwrap()));
        for (cell, value) in [
            ("+1", Some(1.0)),
            (" .5\t", Some(0.5)),
            ("1.", Some(1.0)),
            ("1e400", Some(f64::INFINITY)),
            ("-Infinity", Some(f64::NEG_INFINITY)),
            ("\u{a0}1e-5\x1c", Some(1e-5)),
            ("1_0", None),
            ("0x10", None),
            ("1e", None),
            (".", None),
            ("", None),
            ("nan(1)", None),
            ("1\0", None),
        ] {
            assert_eq!(double(cell), value, "{cell:?}");
        }
        assert!(double("-nan").unwrap().is_nan());
        assert_eq!(read(Scalar::F16, "1e6"), Some(vec![0, 0x7c]));
        assert_eq!(read(Scalar::F8E4M3, "1e6"), None);
        assert_eq!(read(Scalar::I8, "-128"), Some(vec![0x80]));
        for cell in ["128", "1.0", "1e2", "1_0", "- 1", ""] {
            assert_eq!(read(Scalar::I8, cell), None, "{cell:?}");
        }
        let halves = CellReader::of(&DType::Scalar(Scalar::F16, Endian::Little)).unwrap();
        assert!(halves.is_number("1+-2j") && !halves.is_number("x"));
        assert_eq!(read(Scalar::I8, "-0"), Some(vec![0]));
        assert_eq!(read(Scalar::U8, "+7"), Some(vec![7]));
        assert_eq!(read(Scalar::U8, "-0"), None);
        for (cell, value) in [("-3", Some(1)), ("0", Some(0)), ("True", Some(1)), ("0.0", None)] {
            assert_eq!(read(Scalar::Bool, cell), value.map(|it| vec![it]), "{cell:?}");
        }
    }

    #[test]
    fn complex_numbers_are_those_of_loadtxt() {
        for (cell, value) in [
            ("1+2j", Some([1.0, 2.0])),
            ("(1+2j)", Some([1.0, 2.0])),
            ("( 1e5-1e-5j )", Some([1e5, -1e-5])),
            ("1+-2j", Some([1.0, -2.0])),
            ("1++2j", Some([1.0, 2.0])),
            ("2j", Some([0.0, 2.0])),
            ("(1)", Some([1.0, 0.0])),
            ("inf-infj", Some([f64::INFINITY, f64::NEG_INFINITY])),
            ("1+j", None),
            ("j", None),
            ("1 +2j", None),
            ("(1+2j", None),
            ("1+2J", None),
            ("1--2j", None),
            ("1nanj", None),
            ("1e+j", None),
            ("1e", None),
            ("()", None),
            ("1+2", None),
        ] {
            assert_eq!(complex(cell), value, "{cell:?}");
        }
    }

    #[test]
    fn strings_are_cut_at_their_length() {
        let read = |dtype, cell: &str| {
            let mut out = Vec::new();
            CellReader::of(&DType::Npy(dtype)).unwrap().push(cell, &mut out).map(|()| out)
        };
        assert_eq!(read(NpyType::Bytes(2), "é"), Some(vec![0xe9, 0]));
        assert_eq!(read(NpyType::Bytes(2), "€"), None);
        let big = NpyType::Unicode(1, Endian::Big);
        assert_eq!(read(big, "€uro"), Some(vec![0, 0, 0x20, 0xac]));
    }
}
