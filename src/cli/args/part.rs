//! The value of --part.

use tslice::sink::{MAX_PARTS, Part};

/// What to do with the parts of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartArg {
    /// Write one.
    One(Part),
    /// Write the one that the scheduler's variables name.
    Auto,
    /// Print a line for each of so many.
    Plan(u64),
    /// Say which are missing.
    Status,
    /// Remove what was begun.
    Discard,
}

/// Understand the value.
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

/// A number of parts.
fn parts(text: &str) -> Result<u64, String> {
    let count = number(text).ok_or(SYNTAX)?;
    let possible = (1..=MAX_PARTS).contains(&count);
    possible.then_some(count).ok_or_else(|| format!("from 1 to {MAX_PARTS} parts are possible"))
}

/// Digits alone.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

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
