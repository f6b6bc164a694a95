//! Elements as text: numbers with the fewest digits that keep their value, and strings.

use std::fmt::{self, Display, Write};

use half::{bf16, f16};

use super::small_float::SmallFloat;
use crate::dtype::Scalar;

/// How numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    /// `nan`, `inf`, `1.0+2.0j`, booleans as 1 and 0: what np.loadtxt reads.
    Plain,
    /// `"NaN"`, `"Infinity"`, `[1.0, 2.0]`, `true`.
    Json,
}

/// Whether [`write_number`] takes numbers of a type.
pub(crate) fn writes_number(scalar: Scalar) -> bool {
    scalar.type_string().is_some() || SmallFloat::of(scalar).is_some()
}

/// Append a little-endian number of a type that [`writes_number`] tells.
///
/// # Errors
/// Any other type.
pub(crate) fn write_number(
    text: &mut String,
    scalar: Scalar,
    bytes: &[u8],
    notation: Notation,
) -> fmt::Result {
    macro_rules! read {
        ($type:ty) => {{
            let mut item = [0; size_of::<$type>()];
            item.copy_from_slice(&bytes[..size_of::<$type>()]);
            <$type>::from_le_bytes(item)
        }};
    }
    match scalar {
        Scalar::Bool if notation == Notation::Json => write!(text, "{}", bytes[0] != 0),
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
            float(text, &shortest(value.to_f64(), same), notation)
        }
        Scalar::BF16 => {
            let value = bf16::from_bits(read!(u16));
            let same = |short: f64| bf16::from_f64(short) == value;
            float(text, &shortest(value.to_f64(), same), notation)
        }
        Scalar::F32 => float(text, &Shortest(read!(f32)), notation),
        Scalar::F64 => float(text, &Shortest(read!(f64)), notation),
        _ => {
            if let Some(part) = scalar.part() {
                return complex(text, part, bytes, notation);
            }
            // exactly: the fewest digits would be one or two, and far off for other readers
            let format = SmallFloat::of(scalar).ok_or(fmt::Error)?;
            float(text, &Shortest(format.decode(u32::from(bytes[0]))), notation)
        }
    }
}

fn complex(text: &mut String, part: Scalar, bytes: &[u8], notation: Notation) -> fmt::Result {
    let (re, im) = bytes.split_at(bytes.len() / 2);
    if notation == Notation::Json {
        text.write_char('[')?;
        write_number(text, part, re, notation)?;
        text.write_str(", ")?;
        write_number(text, part, im, notation)?;
        return text.write_char(']');
    }
    write_number(text, part, re, notation)?;
    let mut imaginary = String::new();
    write_number(&mut imaginary, part, im, notation)?;
    let sign = if imaginary.starts_with('-') { "" } else { "+" };
    write!(text, "{sign}{imaginary}j")
}

/// Append a float; `value` prints as Rust prints floats.
fn float(text: &mut String, value: &dyn Display, notation: Notation) -> fmt::Result {
    let printed = value.to_string();
    text.write_str(match (printed.as_str(), notation) {
        ("NaN", Notation::Json) => "\"NaN\"",
        ("inf", Notation::Json) => "\"Infinity\"",
        ("-inf", Notation::Json) => "\"-Infinity\"",
        ("NaN", Notation::Plain) => "nan",
        (finite, _) => finite,
    })
}

/// Prints a float in Rust's shortest form, with a point or an exponent.
struct Shortest<T>(T);

impl<T: fmt::Debug> Display for Shortest<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// The decimal with the fewest digits for which `same` holds: it rounds to the same float of a
/// narrower type.
fn shortest(value: f64, same: impl Fn(f64) -> bool) -> Shortest<f64> {
    let short = (0..17).find_map(|digits| {
        let short = format!("{value:.digits$e}").parse().ok()?;
        same(short).then_some(short)
    });
    Shortest(short.unwrap_or(value))
}
