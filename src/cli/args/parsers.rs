//! Parsers of values that flags share: sizes in bytes, words, parts, axes.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use tslice::shape::AskedAxis;
use tslice::sink::MAX_PARTS;

/// Parse a size in bytes, such as `5GB`, `1.5 GB`, `500MiB` or `4096`: decimal and binary units, in
/// any case. Fractions of a byte are dropped.
pub(super) fn size(text: &str) -> Result<u64, &'static str> {
    const MISREAD: &str = "bytes are needed, as in 4096, 5GB (1000^3 each) or 500MiB (1024^2 each)";
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let fraction = fraction.get(..MOST_DIGITS).unwrap_or(fraction);
    let digits = format!("{whole}{fraction}");
    let scale = 10u128.pow(fraction.len() as u32);
    let number: u128 = match digits.parse() {
        Ok(number) if !whole.is_empty() && !fraction.is_empty() => number,
        Err(error) if *error.kind() == std::num::IntErrorKind::PosOverflow => {
            return Err(TOO_LARGE);
        }
        _ => return Err(MISREAD),
    };
    let bytes = number.checked_mul(unit_bytes(unit.trim_start()).ok_or(MISREAD)?);
    bytes.and_then(|bytes| u64::try_from(bytes / scale).ok()).ok_or(TOO_LARGE)
}

/// Parse a number or a quotient of two, such as `-273.15` or `1/255`.
pub(super) fn factor(text: &str) -> Result<f64, &'static str> {
    let number = |text: &str| {
        text.trim().parse::<f64>().map_err(|_| "a number is needed, or a quotient as in 1/255")
    };
    match text.split_once('/') {
        Some((dividend, divisor)) => Ok(number(dividend)? / number(divisor)?),
        None => number(text),
    }
}

const TOO_LARGE: &str = "that does not fit into 64 bits";

/// Digits behind the point that count: more could not change a number of bytes.
const MOST_DIGITS: usize = 18;

/// The size of a unit in bytes. `K`, `M` and so on alone are refused, since programs differ on
/// them.
fn unit_bytes(unit: &str) -> Option<u128> {
    let unit = unit.to_ascii_lowercase();
    if matches!(unit.as_str(), "" | "b" | "byte" | "bytes") {
        return Some(1);
    }
    let power = |prefix: &str| "kmgtpe".find(prefix).map(|at| at as u32 + 1);
    match (unit.strip_suffix("ib"), unit.strip_suffix('b')) {
        (Some(prefix), _) if prefix.len() == 1 => Some(1024u128.pow(power(prefix)?)),
        (_, Some(prefix)) if prefix.len() == 1 => Some(1000u128.pow(power(prefix)?)),
        _ => None,
    }
}

/// A word, what the help says of it, and its value.
pub(super) type Choice<T> = (&'static str, &'static str, T);

pub(super) fn one_of<T: Copy + Send + Sync + 'static>(
    choices: impl IntoIterator<Item = Choice<T>>,
) -> impl TypedValueParser<Value = T> {
    let choices = Vec::from_iter(choices);
    let values = choices.iter().map(|(word, about, _)| PossibleValue::new(word).help(about));
    PossibleValuesParser::new(values).try_map(move |typed| {
        let meant = choices.iter().find(|(word, ..)| word.eq_ignore_ascii_case(&typed));
        meant.map(|(.., value)| *value).ok_or("no such word")
    })
}

/// One part of an output: its number, from 0 on, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) index: u64,
    pub(crate) count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartArg {
    One(Part),
    /// Write the part that the scheduler's variables name.
    Auto,
    /// Print a line for each of this many parts.
    Plan(u64),
    Status,
    Discard,
}

pub(super) fn part(text: &str) -> Result<PartArg, String> {
    let split = text.split_once('/');
    match (text, split) {
        ("auto", _) => Ok(PartArg::Auto),
        ("status", _) => Ok(PartArg::Status),
        ("discard", _) => Ok(PartArg::Discard),
        (_, Some(("plan", count))) => Ok(PartArg::Plan(parts(count)?)),
        (_, Some((index, count))) => {
            let count = parts(count)?;
            match number(index) {
                Some(index) if index < count => Ok(PartArg::One(Part { index, count })),
                Some(index) => Err(format!(
                    "part {index} of {count}: parts are numbered from 0 to {}",
                    count - 1
                )),
                None => Err(SYNTAX.to_owned()),
            }
        }
        _ => Err(SYNTAX.to_owned()),
    }
}

const SYNTAX: &str = "I/N is needed (0/4 is the first of four), auto, plan/N, status or discard";

fn parts(text: &str) -> Result<u64, String> {
    let count = number(text).ok_or(SYNTAX)?;
    let possible = (1..=MAX_PARTS).contains(&count);
    possible.then_some(count).ok_or_else(|| format!("from 1 to {MAX_PARTS} parts are possible"))
}

fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

/// An axis, and the name or glob of the tensors that it is for.
#[derive(Clone, Debug)]
pub(crate) struct AxisArg {
    pub(crate) pattern: Option<String>,
    pub(crate) axis: AskedAxis,
}

/// Parse the number of an axis, or the name of a dimension.
pub(super) fn one_axis(text: &str) -> Result<AskedAxis, &'static str> {
    AskedAxis::parse(text).ok_or("an axis is an integer, or the name of a dimension")
}

/// Parse `AXIS` or `NAME=AXIS`; a name may contain a `=` itself.
pub(super) fn axis(text: &str) -> Result<AxisArg, &'static str> {
    let (pattern, axis) = match text.rsplit_once('=') {
        Some((pattern, axis)) => (Some(pattern.to_owned()), axis),
        None => (None, text),
    };
    Ok(AxisArg { pattern, axis: one_axis(axis)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_decimal_and_binary() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            (" 7 B ", 7),
            ("5GB", 5_000_000_000),
            ("500MiB", 500 << 20),
            ("1.5 kB", 1500),
            ("1.3GiB", 1_395_864_371),
            ("2kib", 2048),
            ("16EB", 16_000_000_000_000_000_000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in
            ["", "5G", "GB", "5 gigabytes", "-1", "1.GB", ".5GB", "1e9", "5GBB", "1.2.3", "5xb"]
        {
            assert!(size(text).unwrap_err().starts_with("bytes are needed"), "{text}");
        }
        for text in ["16EiB", "18446744073709551616", &"9".repeat(60), "999999999999EB"] {
            assert_eq!(size(text), Err(TOO_LARGE), "{text}");
        }
    }

    #[test]
    fn parts_are_counted_from_0() {
        assert_eq!(part("3/8"), Ok(PartArg::One(Part { index: 3, count: 8 })));
        assert_eq!(part("0/1"), Ok(PartArg::One(Part { index: 0, count: 1 })));
        assert_eq!(part("plan/7"), Ok(PartArg::Plan(7)));
        assert_eq!(part("auto"), Ok(PartArg::Auto));
        assert_eq!(part("8/8"), Err("part 8 of 8: parts are numbered from 0 to 7".to_owned()));
        for text in ["", "3", "/", "3/", "/8", "-1/8", "+1/8", "a/8", "1/8/9", "Auto", "plan"] {
            assert_eq!(part(text), Err(SYNTAX.to_owned()), "{text}");
        }
        for text in ["0/0", "plan/0", "0/1000001"] {
            assert_eq!(part(text), Err("from 1 to 1000000 parts are possible".to_owned()));
        }
    }
}
