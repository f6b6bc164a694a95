//! Where an axis is cut, as np.split and np.array_split cut it.

use std::ops::Range;
use std::sync::Arc;

use super::{SplitFault, SplitOptions};
use crate::error::Cause;
use crate::index::resolve::Selection;
use crate::shape::{AskedAxis, normalize_axis};
use crate::tensor::TensorInfo;

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
                let add = |sum: u64, extent: &Extent| match extent {
                    Extent::Share(share) => Some(sum.saturating_add(*share)),
                    Extent::Elements(_) => None,
                };
                let sum = sizes.iter().try_fold(0, add).unwrap_or(WHOLE_AXIS);
                if sum != WHOLE_AXIS {
                    return Err(SplitFault::Shares(sum as f64 / 1e6));
                }
                if let (Some((last, others)), Some(Extent::Share(_))) =
                    (all.split_last_mut(), sizes.last())
                {
                    *last = others.iter().fold(len, |left, size| left.saturating_sub(*size));
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

    /// The lengths of `count` parts.
    fn lens(&self, len: u64, count: u64) -> Vec<u64> {
        let part = |number| self.part(number, len);
        match self {
            // the bounds of other parts follow from their numbers
            Cuts::Sizes(sizes) => sizes.clone(),
            _ => (0..count).map(part).map(|part| part.end - part.start).collect(),
        }
    }

    /// The error that names the shortest and the longest of `count` parts, if the lengths differ.
    pub(crate) fn uneven(&self, len: u64, count: u64) -> Option<SplitFault> {
        let lens = self.lens(len, count);
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

/// The axis of a tensor that is cut.
pub(super) struct CutAxis {
    pub(super) axis: usize,
    len: u64,
    /// The number of parts.
    pub(super) count: u64,
    /// The cuts, in blocks where the axis counts blocks of elements.
    cuts: Arc<Cuts>,
}

impl CutAxis {
    /// The axis `asked` of a selection of a tensor; a negative one counts from the end.
    pub(super) fn new(
        options: &SplitOptions<'_>,
        cuts: &Arc<Cuts>,
        tensor: &TensorInfo,
        selection: &Selection,
        asked: &AskedAxis,
    ) -> Result<CutAxis, Cause> {
        let asked = asked.number(|| tensor.dimension_names(&selection.source_axes()))?;
        let shape = selection.shape();
        let ndim = shape.len();
        let axis = normalize_axis(asked, ndim);
        let axis = axis.ok_or(SplitFault::Axis { axis: asked, ndim })?;
        let len = shape[axis];
        let cuts = match options.index.element_shape(tensor)?[axis].checked_div(len) {
            None | Some(1) => Arc::clone(cuts),
            Some(block) => Arc::new(cuts.of_blocks(block)?),
        };
        let cuts = match *cuts {
            Cuts::SizesOfAxis(_) | Cuts::AtOfAxis(_) => Arc::new(cuts.of_len(len)?),
            _ => cuts,
        };
        let count = cuts.count(len)?;
        if options.squeeze {
            let other = cuts.lens(len, count).into_iter().find(|&len| len != 1);
            other.map_or(Ok(()), |len| Err(SplitFault::Squeeze(len)))?;
        }
        Ok(CutAxis { axis, len, count, cuts })
    }

    /// The positions of a part.
    pub(super) fn part(&self, number: u64) -> Range<u64> {
        self.cuts.part(number, self.len)
    }

    /// The error for parts of different lengths, if there are any.
    pub(super) fn uneven(&self) -> Option<SplitFault> {
        self.cuts.uneven(self.len, self.count)
    }

    /// Check that there are as many texts as parts, where texts name them.
    pub(super) fn check_texts(&self, texts: Option<u64>) -> Result<(), SplitFault> {
        let count = self.count;
        let is_asked = !matches!(*self.cuts, Cuts::Every(_));
        let other = texts.filter(|&texts| texts != count);
        other.map_or(Ok(()), |texts| Err(SplitFault::Texts { count, texts, is_asked }))
    }
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
}
