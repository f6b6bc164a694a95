//! The names of the files of parts.

use std::path::{Path, PathBuf};

use crate::os::name_of;

/// A path with a place for the number of a part: `{}`, or `{:04}` for four digits with leading
/// zeros. There may be several such places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartNames {
    /// The text before each place, and the least number of digits there.
    places: Vec<(Vec<u8>, usize)>,
    rest: Vec<u8>,
}

const DIGITS: usize = 100;

impl PartNames {
    /// Parse a path; `None` if it has no place for a number.
    pub fn parse(path: &Path) -> Option<PartNames> {
        let mut places = Vec::new();
        let mut rest = path.as_os_str().as_encoded_bytes();
        let mut before = Vec::new();
        while let Some(at) = rest.iter().position(|&byte| byte == b'{') {
            let (literal, from) = rest.split_at(at);
            before.extend(literal);
            match place(from) {
                Some((digits, len)) => {
                    places.push((std::mem::take(&mut before), digits));
                    rest = &from[len..];
                }
                None => {
                    before.push(b'{');
                    rest = &from[1..];
                }
            }
        }
        before.extend(rest);
        (!places.is_empty()).then_some(PartNames { places, rest: before })
    }

    /// A place with as many digits as the greatest number of `count` parts, if the first place has
    /// fewer: names would not sort as the parts do.
    pub(super) fn better_place(&self, count: u64) -> Option<String> {
        let needed = count.saturating_sub(1).to_string().len();
        let (_, digits) = self.places.first()?;
        (needed > (*digits).max(1)).then(|| format!("{{:{needed:02}}}"))
    }

    pub fn path(&self, number: u64) -> PathBuf {
        let mut path = Vec::new();
        for (before, digits) in &self.places {
            path.extend(before);
            path.extend(format!("{number:0digits$}").into_bytes());
        }
        path.extend(&self.rest);
        PathBuf::from(name_of(path))
    }
}

/// The digits and the length of a place at the beginning of a text.
fn place(text: &[u8]) -> Option<(usize, usize)> {
    let end = text.iter().position(|&byte| byte == b'}')?;
    let inside = &text[1..end];
    if inside.is_empty() {
        return Some((0, end + 1));
    }
    let digits = std::str::from_utf8(inside.strip_prefix(b":0")?).ok()?;
    let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    let digits = digits.parse().ok().filter(|&digits| all_digits && digits <= DIGITS)?;
    Some((digits, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_in_their_places() {
        let path = |text: &str, number| PartNames::parse(Path::new(text)).unwrap().path(number);
        assert_eq!(path("a-{}.npy", 7), Path::new("a-7.npy"));
        assert_eq!(path("{:04}/{}", 12), Path::new("0012/12"));
        assert_eq!(path("{x}{:02}{:}", 123), Path::new("{x}123{:}"));
        let better =
            |text: &str, count| PartNames::parse(Path::new(text)).unwrap().better_place(count);
        assert_eq!(better("a-{}", 10), None);
        assert_eq!(better("a-{}", 11).as_deref(), Some("{:02}"));
        assert_eq!(better("a-{:02}-{}", 100), None);
        assert_eq!(better("a-{:02}", 101).as_deref(), Some("{:03}"));
        for none in ["a.npy", "{:4}.npy", "{:0x}", "{", "}{", "{:0101}", "{:0+1}"] {
            assert_eq!(PartNames::parse(Path::new(none)), None, "{none}");
        }
    }
}
