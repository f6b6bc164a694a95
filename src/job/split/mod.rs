//! One input as several outputs: NumPy's split and array_split, to files that appear together, or
//! to tensors of one file (`by_name`).
//!
//! 1. [`Cuts`] say where the axis is cut, [`PartNames`] how the files are named (`outputs`).
//!
//! 2. [`Split::check`] prepares every output and makes all the checks that writing would fail at,
//!    before the first one is begun.
//!
//! 3. [`Split::write`] copies a slice for each part, all in one job, to outputs that are put in
//!    place together at the end ([`SeveralSinks`](crate::sink::SeveralSinks)).

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::error::{ErrorKind, Fault};
use crate::os::name_of;

mod by_name;
mod outputs;

pub(crate) use outputs::{OutputSet, check_outputs, write_outputs};
pub use outputs::{PartsTo, Split, SplitOptions};

/// The most parts of an axis: each is a file, and takes memory until the set is complete.
pub const MAX_PARTS: u64 = 100_000;

/// The cuts of an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cuts {
    /// Into this number of parts, at least 1, of lengths that differ by 1 at most, the longer ones
    /// first (np.array_split).
    Parts(u64),
    /// Into parts of these lengths.
    Sizes(Vec<u64>),
    /// Before these positions (np.split), with the rules of Python's slices: negative ones count
    /// from the end, and all are clamped.
    At(Vec<i64>),
    /// Into parts of this length, at least 1; the last one may be shorter.
    Every(u64),
    /// Into parts of these lengths, some of which are shares of the axis; the last part takes what
    /// rounding leaves.
    SizesOfAxis(Vec<Extent>),
    /// Before these positions, some of which are shares of the axis.
    AtOfAxis(Vec<Extent>),
}

/// A length or a position along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Elements(i64),
    /// A share of the axis in millionths of a percent, rounded down to whole elements.
    Share(u64),
}

/// The whole axis, in millionths of a percent.
pub const WHOLE_AXIS: u64 = 100_000_000;

impl Extent {
    fn of(self, len: u64) -> i64 {
        match self {
            Extent::Elements(elements) => elements,
            // no more than the axis, which fits
            Extent::Share(share) => {
                (u128::from(len) * u128::from(share.min(WHOLE_AXIS)) / u128::from(WHOLE_AXIS))
                    as i64
            }
        }
    }
}

impl Cuts {
    /// The cuts of an axis of this length in elements alone.
    pub(crate) fn of_len(&self, len: u64) -> Result<Cuts, SplitFault> {
        match self {
            Cuts::SizesOfAxis(sizes) => {
                let size = |extent: &Extent| u64::try_from(extent.of(len)).unwrap_or(0);
                let mut all: Vec<u64> = sizes.iter().map(size).collect();
                let share = |extent: &Extent| match extent {
                    Extent::Share(share) => Some(*share),
                    Extent::Elements(_) => None,
                };
                let shares: Option<Vec<u64>> = sizes.iter().map(share).collect();
                let sum = shares
                    .map_or(WHOLE_AXIS, |shares| shares.into_iter().fold(0, u64::saturating_add));
                if sum != WHOLE_AXIS {
                    return Err(SplitFault::Shares(sum as f64 / 1e6));
                }
                if let (Some((last, others)), Some(Extent::Share(_))) =
                    (all.split_last_mut(), sizes.last())
                {
                    let others = others.iter().fold(0, |sum: u64, size| sum.saturating_add(*size));
                    *last = len.saturating_sub(others);
                }
                Ok(Cuts::Sizes(all))
            }
            Cuts::AtOfAxis(at) => Ok(Cuts::At(at.iter().map(|extent| extent.of(len)).collect())),
            cuts => Ok(cuts.clone()),
        }
    }

    /// The number of parts that an axis is cut into.
    pub(crate) fn count(&self, len: u64) -> Result<u64, SplitFault> {
        let count = match self {
            Cuts::Parts(count) => (*count).max(1),
            Cuts::Sizes(sizes) => {
                let sum = sizes.iter().map(|&size| u128::from(size)).sum();
                if sum != u128::from(len) {
                    return Err(SplitFault::Sizes { sum, len });
                }
                sizes.len() as u64
            }
            Cuts::At(positions) => positions.len() as u64 + 1,
            // np.split of no elements gives one empty part
            Cuts::Every(size) => len.div_ceil((*size).max(1)).max(1),
            Cuts::SizesOfAxis(_) | Cuts::AtOfAxis(_) => return self.of_len(len)?.count(len),
        };
        if count > MAX_PARTS {
            Err(SplitFault::Parts { count, most: MAX_PARTS })
        } else {
            Ok(count)
        }
    }

    /// The cuts of an axis that counts blocks of `block` elements: numbers count elements, and must
    /// be whole blocks.
    pub(crate) fn of_blocks(&self, block: u64) -> Result<Cuts, SplitFault> {
        let whole = |number: u64| match number.checked_div(block) {
            Some(blocks) if blocks * block == number => Ok(blocks),
            _ => Err(SplitFault::PartOfBlock { number, block }),
        };
        // no more than before, so that it fits
        let at = |&at: &i64| Ok(whole(at.unsigned_abs())? as i64 * at.signum());
        let extent = |extent: &Extent| match extent {
            Extent::Elements(elements) => Ok(Extent::Elements(at(elements)?)),
            share => Ok(*share),
        };
        let extents = |all: &[Extent]| all.iter().map(extent).collect::<Result<Vec<_>, _>>();
        Ok(match self {
            Cuts::Parts(count) => Cuts::Parts(*count),
            Cuts::Sizes(sizes) => {
                Cuts::Sizes(sizes.iter().map(|&size| whole(size)).collect::<Result<_, _>>()?)
            }
            Cuts::At(positions) => Cuts::At(positions.iter().map(at).collect::<Result<_, _>>()?),
            Cuts::Every(size) => Cuts::Every(whole(*size)?),
            Cuts::SizesOfAxis(sizes) => Cuts::SizesOfAxis(extents(sizes)?),
            Cuts::AtOfAxis(positions) => Cuts::AtOfAxis(extents(positions)?),
        })
    }

    /// The error that names the shortest and the longest of `count` parts, if the lengths differ.
    pub(crate) fn uneven(&self, len: u64, count: u64) -> Option<SplitFault> {
        let sized = |number| {
            let part = self.part(number, len);
            part.end - part.start
        };
        let lens: Vec<u64> = match self {
            // the bounds of other parts follow from their numbers
            Cuts::Sizes(sizes) => sizes.clone(),
            _ => (0..count).map(sized).collect(),
        };
        let shortest = *lens.iter().min()?;
        let longest = *lens.iter().max()?;
        (shortest < longest).then_some(SplitFault::Uneven { len, count, shortest, longest })
    }

    /// The positions of part `number` of `0..count(len)`.
    pub(crate) fn part(&self, number: u64, len: u64) -> Range<u64> {
        match self {
            Cuts::Parts(count) => {
                let count = (*count).max(1);
                let size = len / count;
                let longer = len % count;
                let start = number * size + number.min(longer);
                start..start + size + u64::from(number < longer)
            }
            Cuts::Sizes(sizes) => {
                let start = sizes.iter().take(number as usize).sum();
                start..start + sizes.get(number as usize).copied().unwrap_or(0)
            }
            Cuts::At(positions) => {
                let clamped = |position: i64| match position {
                    0.. => (position as u64).min(len),
                    _ => len.saturating_sub(position.unsigned_abs()),
                };
                let number = number as usize;
                let before = number.checked_sub(1).and_then(|before| positions.get(before));
                let start = before.map_or(0, |&position| clamped(position));
                let end = positions.get(number).map_or(len, |&position| clamped(position));
                start..end.max(start)
            }
            Cuts::Every(size) => {
                let start = number * (*size).max(1);
                start..len.min(start + (*size).max(1))
            }
            Cuts::SizesOfAxis(_) | Cuts::AtOfAxis(_) => {
                self.of_len(len).map_or(0..0, |cuts| cuts.part(number, len))
            }
        }
    }
}

/// Why an input cannot be split.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SplitFault {
    /// File names without a place for the part's number.
    #[error("the name has no {{}} for the number of the part")]
    NoPlace,
    /// The result has no such axis.
    #[error("axis {axis} is out of bounds for array of dimension {ndim}")]
    Axis {
        /// The axis that was asked for.
        axis: i64,
        /// How many axes there are.
        ndim: usize,
    },
    /// Lengths that do not add up to the length of the axis.
    #[error("the sizes of the parts add up to {sum}, and the axis has size {len}")]
    Sizes {
        /// The sum of the lengths.
        sum: u128,
        /// The length of the axis.
        len: u64,
    },
    /// Lengths that are all shares of the axis, and do not add up to it.
    #[error("the sizes of the parts add up to {0}% of the axis, not to 100%")]
    Shares(f64),
    /// Cuts within blocks of elements.
    #[error(
        "the axis is stored in blocks of {block} elements: a cut at {number} would divide a block"
    )]
    PartOfBlock {
        /// A length or a position.
        number: u64,
        /// Elements of a block.
        block: u64,
    },
    /// More parts than can be made.
    #[error("the axis would be cut into {count} parts, and at most {most} are possible")]
    Parts {
        /// The number of parts.
        count: u64,
        /// How many there can be.
        most: u64,
    },
    /// Parts of different lengths, where equal lengths are required.
    #[error(
        "the axis has size {len}, and its {count} parts have sizes from {shortest} to {longest}"
    )]
    Uneven {
        /// The length of the axis.
        len: u64,
        /// The number of parts.
        count: u64,
        /// The length of the shortest part.
        shortest: u64,
        /// The length of the longest one.
        longest: u64,
    },
    /// A number of parts that is not the number of texts that name them.
    #[error("the axis would be cut into {count} parts, and the list in the name has {texts} texts")]
    Texts {
        /// The number of parts.
        count: u64,
        /// The number of texts.
        texts: u64,
        /// Whether the user asked for this number of parts, whatever is cut.
        is_asked: bool,
    },
    /// The axis is to be dropped, but this part does not have exactly one position.
    #[error("a part has size {0} along the axis, and only size 1 can be dropped")]
    Squeeze(u64),
    /// Tensors that would be cut into different numbers of parts.
    #[error("the axis would be cut into {count} parts, and tensor {first_name:?} into {first}")]
    Counts {
        /// The number of parts.
        count: u64,
        /// The name of the first tensor.
        first_name: String,
        /// The number of its parts.
        first: u64,
    },
}

impl Fault for SplitFault {
    fn kind(&self) -> ErrorKind {
        if let SplitFault::Axis { .. } = self { ErrorKind::Index } else { ErrorKind::Invalid }
    }
}

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

    fn parts(cuts: &Cuts, len: u64) -> Vec<Range<u64>> {
        (0..cuts.count(len).unwrap()).map(|number| cuts.part(number, len)).collect()
    }

    #[test]
    fn parts_are_those_of_numpy() {
        assert_eq!(parts(&Cuts::Parts(3), 8), [0..3, 3..6, 6..8]);
        assert_eq!(parts(&Cuts::Parts(4), 2), [0..1, 1..2, 2..2, 2..2]);
        assert_eq!(parts(&Cuts::Sizes(vec![2, 0, 3]), 5), [0..2, 2..2, 2..5]);
        assert_eq!(parts(&Cuts::At(vec![2, 5]), 4), [0..2, 2..4, 4..4]);
        assert_eq!(parts(&Cuts::At(vec![3, 1, -9]), 4), [0..3, 3..3, 1..1, 0..4]);
        assert_eq!(parts(&Cuts::At(vec![-1]), 4), [0..3, 3..4]);
        assert_eq!(parts(&Cuts::Every(3), 7), [0..3, 3..6, 6..7]);
        assert_eq!(parts(&Cuts::Every(3), 0), vec![0..0; 1]);
        assert_eq!(Cuts::Every(7).count(7 * MAX_PARTS).unwrap(), MAX_PARTS);
        for cuts in [Cuts::Every(7), Cuts::Parts(MAX_PARTS + 1)] {
            let fault = cuts.count(7 * MAX_PARTS + 1).unwrap_err();
            assert!(matches!(fault, SplitFault::Parts { count, .. } if count == MAX_PARTS + 1));
        }
        let uneven = |cuts: Cuts, len| cuts.uneven(len, cuts.count(len).unwrap()).is_some();
        assert!(uneven(Cuts::Parts(4), 10) && uneven(Cuts::Every(3), 10));
        assert!(uneven(Cuts::Sizes(vec![4, 6]), 10) && uneven(Cuts::At(vec![4]), 10));
        assert!(!uneven(Cuts::Parts(5), 10) && !uneven(Cuts::Every(2), 10));
        assert!(!uneven(Cuts::Sizes(vec![5, 5]), 10) && !uneven(Cuts::At(vec![5]), 10));
        let share = |percent: u64| Extent::Share(percent * WHOLE_AXIS / 100);
        let sizes = |all: &[u64]| Cuts::SizesOfAxis(all.iter().map(|it| share(*it)).collect());
        assert_eq!(parts(&sizes(&[70, 20, 10]), 9), [0..6, 6..7, 7..9]);
        assert!(matches!(sizes(&[70, 20]).count(10).unwrap_err(), SplitFault::Shares(90.0)));
        let mixed = Cuts::SizesOfAxis(vec![Extent::Elements(4), share(50)]);
        assert_eq!(parts(&mixed, 10), [0..4, 4..10]);
        let at = Cuts::AtOfAxis(vec![share(80), Extent::Elements(-1)]);
        assert_eq!(parts(&at, 10), [0..8, 8..9, 9..10]);
        let fault = Cuts::Sizes(vec![2, 2]).count(5).unwrap_err();
        assert!(matches!(fault, SplitFault::Sizes { sum: 4, len: 5 }));
    }

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
