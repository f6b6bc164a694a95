//! One element parsed from the text of a number, exactly for its dtype.

use super::float::{FloatFormat, rounded_to_odd};
use crate::dtype::{DType, Endian, Integers, Scalar};

/// Why a text cannot become an element of a dtype.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ElementError {
    #[error("'{0}' is not a number")]
    NotANumber(String),
    #[error("'{text}' is not {kind}, as dtype {dtype} requires")]
    Kind { text: String, kind: &'static str, dtype: String },
    #[error("{text} does not fit into dtype {dtype}{range}")]
    Range {
        text: String,
        dtype: String,
        /// The end of the message: ", which holds 0 to 255", or empty.
        range: String,
    },
    #[error("an element of dtype {0} cannot be written as a number")]
    Unsupported(String),
}

/// Parse a number into the bytes of one element of `dtype`, in its byte order.
///
/// Integers are written as in Python (`-3`, `1_000`, `0xff`) and must fit. Floats are rounded once,
/// from the decimal text to the nearest value, ties to even; infinity is `inf`, and a number that
/// would become infinite is refused. Complex numbers are `1+2j`, booleans `true`, `false`, `1` or
/// `0`.
pub fn parse(text: &str, dtype: &DType) -> Result<Vec<u8>, ElementError> {
    let number = NumberText { text: text.trim_ascii(), dtype };
    number.check()?;
    let DType::Scalar(scalar, endian) = dtype else {
        return Err(ElementError::Unsupported(dtype.to_string()));
    };
    let mut bytes = match scalar {
        Scalar::Bool => vec![u8::from(number.boolean()?)],
        _ => match (scalar.part(), Integers::new(dtype)) {
            (Some(part), _) => {
                let (real, imaginary) = number.parts().map_err(|_| number.kind("a number"))?;
                [number.float(&real, part)?, number.float(&imaginary, part)?].concat()
            }
            (None, Some(integers)) => number.integer(integers)?,
            (None, None) => number.float(&number.real()?, *scalar)?,
        },
    };
    if *endian == Endian::Big {
        bytes.chunks_exact_mut(dtype.swap_width()).for_each(<[u8]>::reverse);
    }
    Ok(bytes)
}

struct NumberText<'a> {
    text: &'a str,
    dtype: &'a DType,
}

struct Real {
    negative: bool,
    /// The absolute value for `str::parse`: `nan`, `inf`, or ASCII digits with optional point and
    /// exponent.
    magnitude: String,
}

impl Real {
    fn is_finite(&self) -> bool {
        !matches!(self.magnitude.as_str(), "nan" | "inf")
    }
}

impl NumberText<'_> {
    /// Refuse a text that is not a number of any kind, so that this error does not depend on the
    /// dtype.
    fn check(&self) -> Result<(), ElementError> {
        match self.text {
            "true" | "True" | "false" | "False" => Ok(()),
            _ => self.parts().map(drop),
        }
    }

    fn real(&self) -> Result<Real, ElementError> {
        self.decimal(self.text).map_err(|_| self.kind("a real number"))
    }

    fn boolean(&self) -> Result<bool, ElementError> {
        match self.text {
            "true" | "True" | "1" => Ok(true),
            "false" | "False" | "0" => Ok(false),
            _ => Err(self.kind("true, false, 1 or 0")),
        }
    }

    fn integer(&self, integers: Integers) -> Result<Vec<u8>, ElementError> {
        let (negative, digits) = signed(self.text);
        let literal = integer_literal(digits).ok_or_else(|| self.kind("an integer"))?;
        let value = literal.map(|value| if negative { -value } else { value });
        let (least, greatest) = integers.range();
        match value.filter(|value| (least..=greatest).contains(value)) {
            Some(value) => Ok(value.to_le_bytes()[..integers.width].to_vec()),
            None => Err(self.out_of_range(format!(", which holds {least} to {greatest}"))),
        }
    }

    /// Split `1`, `2j`, `1+2j` or `(1+2j)` into real and imaginary part.
    fn parts(&self) -> Result<(Real, Real), ElementError> {
        let bare = self.text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
        let text = bare.unwrap_or(self.text);
        let zero = || Real { negative: false, magnitude: "0".into() };
        let Some(text) = text.strip_suffix(['j', 'J']) else {
            return Ok((self.decimal(text)?, zero()));
        };
        // the sign of the imaginary part: the last sign outside an exponent
        let bytes = text.as_bytes();
        let hex = |at: usize| !text[..at].to_ascii_lowercase().contains("0x");
        let sign = (1..bytes.len()).rev().find(|&at| {
            matches!(bytes[at], b'+' | b'-') && !(matches!(bytes[at - 1], b'e' | b'E') && hex(at))
        });
        match sign {
            Some(at) => Ok((self.decimal(&text[..at])?, self.decimal(&text[at..])?)),
            None => Ok((zero(), self.decimal(text)?)),
        }
    }

    fn decimal(&self, text: &str) -> Result<Real, ElementError> {
        let (negative, rest) = signed(text);
        let magnitude = match rest.to_ascii_lowercase().as_str() {
            "nan" => "nan".to_owned(),
            "inf" | "infinity" => "inf".to_owned(),
            rest => match integer_literal(rest) {
                Some(Some(value)) => value.to_string(),
                _ => float_literal(rest).ok_or_else(|| self.not_a_number())?,
            },
        };
        Ok(Real { negative, magnitude })
    }

    fn float(&self, real: &Real, scalar: Scalar) -> Result<Vec<u8>, ElementError> {
        let text = &real.magnitude;
        let value: f64 = text.parse().map_err(|_| self.not_a_number())?;
        let overflow = || self.out_of_range(largest(scalar));
        if real.is_finite() && value.is_infinite() {
            return Err(overflow());
        }
        let format = FloatFormat::of(scalar)
            .ok_or_else(|| ElementError::Unsupported(self.dtype.to_string()))?;
        let sign = if real.negative { -1.0 } else { 1.0 };
        let is_rounded = scalar != Scalar::F64 && real.is_finite() && value > 0.0;
        let value = if is_rounded { rounded_to_odd(text, value) } else { value };
        let bits = format.bits(value.copysign(sign));
        let nearest = format.value(u128::from(bits));
        if nearest.is_nan() != value.is_nan() || nearest.is_infinite() && real.is_finite() {
            return Err(overflow());
        }
        Ok(bits.to_le_bytes()[..scalar.bits() as usize / 8].to_vec())
    }

    fn not_a_number(&self) -> ElementError {
        ElementError::NotANumber(self.text.to_owned())
    }

    fn kind(&self, kind: &'static str) -> ElementError {
        ElementError::Kind { text: self.text.into(), kind, dtype: self.dtype.to_string() }
    }

    fn out_of_range(&self, range: String) -> ElementError {
        ElementError::Range { text: self.text.into(), dtype: self.dtype.to_string(), range }
    }
}

/// The end of the message for a float that is too large.
fn largest(scalar: Scalar) -> String {
    let format = FloatFormat::of(scalar).filter(|format| format.signed);
    let largest = format.map(|format| format.value(format.greatest()));
    match largest {
        Some(value) if value < 1e6 => format!(", whose largest finite value is {value}"),
        Some(value) => format!(", whose largest finite value is {value:.5e}"),
        None => String::new(),
    }
}

fn signed(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// Check digits with single underscores between them, as in Python, and remove the underscores.
fn grouped(text: &str, radix: u32) -> Option<String> {
    let whole = text
        .split('_')
        .all(|group| !group.is_empty() && group.chars().all(|digit| digit.is_digit(radix)));
    whole.then(|| text.replace('_', ""))
}

/// Parse a Python integer literal without a sign; `Some(None)` if it does not fit in an `i128`.
fn integer_literal(text: &str) -> Option<Option<i128>> {
    let lower = text.to_ascii_lowercase();
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = lower.strip_prefix(prefix) {
            let digits = grouped(digits.strip_prefix('_').unwrap_or(digits), radix)?;
            return Some(i128::from_str_radix(&digits, radix).ok());
        }
    }
    Some(grouped(text, 10)?.parse().ok())
}

/// Check a Python float literal without a sign, and remove its underscores.
fn float_literal(text: &str) -> Option<String> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let part = |text: &str| if text.is_empty() { Some(String::new()) } else { grouped(text, 10) };
    let whole = part(whole)?;
    let fraction = part(fraction)?;
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut bare = format!("{whole}.{fraction}");
    if let Some(exponent) = exponent {
        let (negative, digits) = signed(exponent);
        bare.push_str(if negative { "e-" } else { "e" });
        bare.push_str(&grouped(digits, 10)?);
    }
    Some(bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(text: &str, scalar: Scalar) -> Option<u64> {
        let bytes = parse(text, &DType::Scalar(scalar, Endian::Little)).ok()?;
        Some(bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte)))
    }

    #[test]
    fn integers_must_be_integers_and_fit() {
        assert_eq!(bits("255", Scalar::U8), Some(255));
        assert_eq!(bits("0x_ff", Scalar::U8), Some(255));
        assert_eq!(bits("-128", Scalar::I8), Some(0x80));
        assert_eq!(bits("+1_000", Scalar::I16), Some(1000));
        assert_eq!(bits("18446744073709551615", Scalar::U64), Some(u64::MAX));
        for text in
            ["300", "-1", "1.5", "1e2", "nan", "", "1__0", "_1", "1_", "9".repeat(99).as_str()]
        {
            assert_eq!(bits(text, Scalar::U8), None, "{text}");
        }
        let error = |text| parse(text, &DType::Scalar(Scalar::U8, Endian::Little)).unwrap_err();
        assert_eq!(
            error("300").to_string(),
            "300 does not fit into dtype uint8, which holds 0 to 255"
        );
        assert_eq!(error("1.5").to_string(), "'1.5' is not an integer, as dtype uint8 requires");
        assert_eq!(error("two").to_string(), "'two' is not a number");
    }

    #[test]
    fn floats_are_the_nearest_ones_ties_to_even() {
        assert_eq!(bits("65519.999999999999999999999", Scalar::F16), Some(0x7bff));
        // a tie in half precision, and texts so close to it that they round to one double
        let tie = "1.00048828125";
        assert_eq!(bits(tie, Scalar::F16), Some(0x3c00));
        assert_eq!(
            bits(&format!("{tie}000000000000000000000000000001"), Scalar::F16),
            Some(0x3c01)
        );
        assert_eq!(bits("1.00146484375", Scalar::F16), Some(0x3c02));
        assert_eq!(bits("1.001464843749999999999999999999", Scalar::F16), Some(0x3c01));
        assert_eq!(bits("-0", Scalar::F32), Some(0x8000_0000));
        assert_eq!(bits("-nan", Scalar::BF16), Some(0xffc0));
        assert_eq!(bits("1_0.5e-0_1", Scalar::F64), Some(1.05f64.to_bits()));
        assert_eq!(bits("0x10", Scalar::F32), Some(u64::from(16f32.to_bits())));
    }

    #[test]
    fn infinity_is_only_what_is_called_so() {
        for (text, scalar) in [
            ("65520", Scalar::F16),
            ("1e6", Scalar::F16),
            ("-1e6", Scalar::F16),
            ("3.4e38", Scalar::BF16),
            ("61440", Scalar::F8E5M2),
            ("3.4028236e38", Scalar::F32),
            ("1e400", Scalar::F64),
            ("1+1e39j", Scalar::C64),
        ] {
            let error = parse(text, &DType::Scalar(scalar, Endian::Little)).unwrap_err();
            assert!(matches!(error, ElementError::Range { .. }), "{text}: {error}");
        }
        assert_eq!(bits("inf", Scalar::F16), Some(0x7c00));
        assert_eq!(bits("-Infinity", Scalar::F16), Some(0xfc00));
        assert_eq!(bits("inf", Scalar::F64), Some(0x7ff0_0000_0000_0000));
        let error = |scalar| {
            parse("1e999", &DType::Scalar(scalar, Endian::Little)).unwrap_err().to_string()
        };
        let says = "1e999 does not fit into dtype float16, whose largest finite value is 65504";
        assert_eq!(error(Scalar::F16), says);
        assert!(error(Scalar::BF16).ends_with("is 3.38953e38"), "{}", error(Scalar::BF16));
        assert!(error(Scalar::F8E5M2).ends_with("is 57344"));
        assert!(error(Scalar::F8E4M3).ends_with("is 448"));
    }

    /// Whether a text is a number does not depend on the dtype.
    #[test]
    fn no_number_is_the_same_error_for_every_dtype() {
        for scalar in Scalar::ALL {
            let parse = |text| parse(text, &DType::Scalar(scalar, Endian::Little));
            for text in ["x", "", "1__0", "tru", "1+j"] {
                let not_a_number = ElementError::NotANumber(text.to_owned());
                assert_eq!(parse(text), Err(not_a_number), "{scalar:?}");
            }
            for text in ["true", "1", "1.5", "1+2j", "inf", "nan"] {
                let result = parse(text);
                assert!(!matches!(result, Err(ElementError::NotANumber(_))), "{scalar:?} {text}");
            }
        }
    }

    /// Expected: the codes of `ml_dtypes`.
    #[test]
    fn eight_bits_round_as_ml_dtypes_do() {
        let codes = |text| {
            [Scalar::F8E4M3, Scalar::F8E5M2, Scalar::F8E8M0, Scalar::F8E4M3Fnuz, Scalar::F8E5M2Fnuz]
                .map(|scalar| bits(text, scalar))
        };
        assert_eq!(codes("nan"), [0x7f, 0x7e, 0xff, 0x80, 0x80].map(Some));
        assert_eq!(codes("-0.0"), [Some(0x80), Some(0x80), None, Some(0), Some(0)]);
        assert_eq!(codes("inf"), [None, Some(0x7c), None, None, None]);
        assert_eq!(codes("464"), [Some(0x7e), Some(0x5f), Some(0x88), None, Some(0x63)]);
        assert_eq!(codes("480"), [None, Some(0x60), Some(0x88), None, Some(0x64)]);
        assert_eq!(codes("61440"), [None, None, Some(0x8f), None, None]);
        assert_eq!(codes("247.9"), [0x77, 0x5c, 0x87, 0x7f, 0x60].map(Some));
        assert_eq!(codes("3"), [0x44, 0x42, 0x81, 0x4c, 0x46].map(Some));
        assert_eq!(codes("1.4"), [0x3b, 0x3e, 0x7f, 0x43, 0x42].map(Some));
        assert_eq!(codes("1e-40"), [0, 0, 0, 0, 0].map(Some));
    }

    #[test]
    fn complex_numbers_have_two_parts() {
        let parts = |text| {
            let bytes = parse(text, &DType::Scalar(Scalar::C64, Endian::Big)).ok()?;
            let part = |at: usize| f32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
            Some((part(0), part(4)))
        };
        assert_eq!(parts("1+2j"), Some((1.0, 2.0)));
        assert_eq!(parts("(-1.5e+3-2E-1j)"), Some((-1500.0, -0.2)));
        assert_eq!(parts("-3j"), Some((0.0, -3.0)));
        assert_eq!(parts("7"), Some((7.0, 0.0)));
        assert_eq!(parts("inf-infj"), Some((f32::INFINITY, f32::NEG_INFINITY)));
        assert_eq!(parts("1+j"), None);
        assert_eq!(parts("1+2"), None);
    }

    #[test]
    fn booleans_are_named() {
        assert_eq!(bits("true", Scalar::Bool), Some(1));
        assert_eq!(bits("0", Scalar::Bool), Some(0));
        assert_eq!(bits("2", Scalar::Bool), None);
    }
}
