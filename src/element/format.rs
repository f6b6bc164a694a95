//! Elements as text: numbers with the fewest digits that keep their value, and strings.

use std::fmt::{self, Write};

use super::float::FloatFormat;
use super::meaning::Meaning;

/// How numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    /// `nan`, `inf`, `1.0+2.0j`, booleans as 1 and 0: what np.loadtxt reads.
    Plain,
    /// `"NaN"`, `"Infinity"`, `[1.0, 2.0]`, `true`.
    Json,
}

/// Append a number.
///
/// # Errors
/// What is no number.
pub(crate) fn write_number(
    text: &mut String,
    meaning: &Meaning,
    bytes: &[u8],
    notation: Notation,
) -> fmt::Result {
    match *meaning {
        Meaning::Bool if notation == Notation::Json => write!(text, "{}", bytes != [0]),
        Meaning::Bool => text.write_str(if bytes != [0] { "1" } else { "0" }),
        Meaning::Integer(integers) => match integers.value(bytes) {
            value if integers.signed => write!(text, "{}", value as i64),
            value => write!(text, "{}", value as u64),
        },
        Meaning::Float(format, endian) => write_float(text, format, endian.bits(bytes), notation),
        Meaning::Complex(format, endian) => {
            let (re, im) = bytes.split_at(bytes.len() / 2);
            let (re, im) = (endian.bits(re), endian.bits(im));
            if notation == Notation::Json {
                text.write_char('[')?;
                write_float(text, format, re, notation)?;
                text.write_str(", ")?;
                write_float(text, format, im, notation)?;
                return text.write_char(']');
            }
            write_float(text, format, re, notation)?;
            let mut imaginary = String::new();
            write_float(&mut imaginary, format, im, notation)?;
            let sign = if imaginary.starts_with('-') { "" } else { "+" };
            write!(text, "{sign}{imaginary}j")
        }
        _ => Err(fmt::Error),
    }
}

/// Append a float with the fewest digits that keep its value; those of 8 bits exactly, as one or two
/// digits would be far off for other readers.
fn write_float(
    text: &mut String,
    format: FloatFormat,
    bits: u128,
    notation: Notation,
) -> fmt::Result {
    match format.mantissa {
        23 => float(text, &f32::from_bits(bits as u32), notation),
        7 | 10 => {
            let same = |short: f64| u128::from(format.round(short)) == bits;
            float(text, &shortest(format.value(bits), same), notation)
        }
        _ => float(text, &format.value(bits), notation),
    }
}

/// Append a float in Rust's shortest form, with a point or an exponent.
fn float(text: &mut String, value: &dyn fmt::Debug, notation: Notation) -> fmt::Result {
    let printed = format!("{value:?}");
    text.write_str(match (printed.as_str(), notation) {
        ("NaN", Notation::Json) => "\"NaN\"",
        ("inf", Notation::Json) => "\"Infinity\"",
        ("-inf", Notation::Json) => "\"-Infinity\"",
        ("NaN", Notation::Plain) => "nan",
        (finite, _) => finite,
    })
}

/// The decimal with the fewest digits for which `same` holds: it rounds to the same float of a
/// narrower type.
fn shortest(value: f64, same: impl Fn(f64) -> bool) -> f64 {
    let short = (0..17).find_map(|digits| {
        let short = format!("{value:.digits$e}").parse().ok()?;
        same(short).then_some(short)
    });
    short.unwrap_or(value)
}
