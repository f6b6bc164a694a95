//! The effect of a transpose or einops' rearrange on a shape: axes are split, reordered and merged.
//!
//! Only splits and the order concern bytes: a split axis becomes two axes with other strides. Merged axes are
//! neighbours already: merging changes only the shape of the result.

use super::{Order, Permutation, element_count};

/// How the axes of a source become the axes of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrangement {
    /// For each axis of the source, the lengths of the parts that it is split into: at least one.
    splits: Vec<Vec<u64>>,
    /// For each axis of the result, the numbers of its parts, counted through all axes of the source.
    groups: Vec<Vec<usize>>,
    shape: Vec<u64>,
}

/// The axes of a result in memory order, slowest first: axes of the source, or parts of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryAxes {
    /// The `splits` of the [`Arrangement`]; empty where no axis is split.
    splits: Vec<Vec<u64>>,
    /// The source part at each memory axis.
    order: Permutation,
}

impl Arrangement {
    /// Parts of length 1 may be in no group. `None` where a merged axis is too long.
    pub(super) fn new(splits: Vec<Vec<u64>>, groups: Vec<Vec<usize>>) -> Option<Arrangement> {
        let lens = splits.concat();
        let merged = |group: &Vec<usize>| {
            let lens: Vec<u64> = group.iter().map(|&part| lens[part]).collect();
            element_count(&lens)
        };
        let shape = groups.iter().map(merged).collect::<Option<_>>()?;
        Some(Arrangement { splits, groups, shape })
    }

    /// An arrangement that only reorders the axes of a shape.
    pub(super) fn permuted(order: &Permutation, shape: &[u64]) -> Arrangement {
        Arrangement {
            splits: shape.iter().map(|&len| vec![len]).collect(),
            groups: order.axes().iter().map(|&axis| vec![axis]).collect(),
            shape: order.permute(shape),
        }
    }

    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The order of the axes; `None` where an axis is split or merged.
    pub fn permutation(&self) -> Option<Permutation> {
        let only = |group: &Vec<usize>| if let [only] = group[..] { Some(only) } else { None };
        let axes: Option<Vec<usize>> = self.groups.iter().map(only).collect();
        let axes = axes.filter(|axes| axes.len() == self.splits.len())?;
        self.splits.iter().all(|parts| parts.len() == 1).then(|| Permutation::of_axes(axes))
    }

    /// The known facts of each axis of the result that is a whole axis of the source; `known` holds
    /// them for each source axis, such as its number in a tensor.
    pub fn of_whole_axes<T: Clone>(&self, known: &[Option<T>]) -> Vec<Option<T>> {
        let mut first = 0;
        let mut wholes = Vec::with_capacity(self.splits.len());
        for parts in &self.splits {
            wholes.push((first..first + parts.len()).collect::<Vec<usize>>());
            first += parts.len();
        }
        let of = |group| known.get(wholes.iter().position(|whole| whole == group)?)?.clone();
        self.groups.iter().map(of).collect()
    }

    /// This arrangement, and then another order of the result's axes.
    pub(crate) fn then(mut self, next: &Permutation) -> Arrangement {
        self.groups = next.permute(&self.groups);
        self.shape = next.permute(&self.shape);
        self
    }

    /// The arrangement with axis `axis` of the source counted in blocks of `block` elements; `None` where it would
    /// cut a block.
    pub(crate) fn in_blocks(mut self, axis: usize, block: u64) -> Option<Arrangement> {
        let last = self.splits.get_mut(axis)?.last_mut()?;
        if !last.is_multiple_of(block) {
            return None;
        }
        *last /= block;
        Arrangement::new(self.splits, self.groups)
    }

    /// The axes of the result as it is stored in `order`. Parts that stay neighbours become one axis.
    pub fn in_memory(&self, order: Order) -> MemoryAxes {
        let mut groups: Vec<&Vec<usize>> = self.groups.iter().collect();
        if order == Order::F {
            groups.reverse();
        }
        let mut sequence: Vec<usize> = groups.into_iter().flatten().copied().collect();
        let parts: usize = self.splits.iter().map(Vec::len).sum();
        // parts in no group have length 1
        sequence.extend((0..parts).filter(|part| !self.groups.iter().any(|it| it.contains(part))));
        let mut follows = vec![false; parts];
        sequence.windows(2).for_each(|pair| follows[pair[1]] = pair[1] == pair[0] + 1);
        let mut splits = Vec::with_capacity(self.splits.len());
        let mut numbers = Vec::with_capacity(parts);
        let mut count = 0;
        for lens in &self.splits {
            let mut joined: Vec<u64> = Vec::with_capacity(lens.len());
            for &len in lens {
                match joined.last_mut() {
                    // the length of the whole axis fits in 64 bits, and so does the length of a part
                    Some(last) if follows[numbers.len()] => *last = last.saturating_mul(len),
                    _ => {
                        joined.push(len);
                        count += 1;
                    }
                }
                numbers.push(count - 1);
            }
            splits.push(joined);
        }
        let mut order: Vec<usize> = sequence.into_iter().map(|part| numbers[part]).collect();
        order.dedup();
        if splits.iter().all(|parts| parts.len() == 1) {
            splits.clear();
        }
        MemoryAxes { splits, order: Permutation::of_axes(order) }
    }
}

impl MemoryAxes {
    /// For each axis of the source, the lengths of its parts; `None` where no axis is split.
    pub fn splits(&self) -> Option<&[Vec<u64>]> {
        Some(self.splits.as_slice()).filter(|splits| !splits.is_empty())
    }

    /// The part of the source's axes at each memory axis.
    pub fn order(&self) -> &Permutation {
        &self.order
    }
}

impl From<Permutation> for MemoryAxes {
    fn from(order: Permutation) -> MemoryAxes {
        MemoryAxes { splits: Vec::new(), order }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Pattern;
    use super::*;

    #[test]
    fn parts_that_stay_together_are_one() {
        let axes = |pattern: &str, shape: &[u64], order| {
            let arranged = Pattern::parse(pattern).unwrap().of(shape).unwrap();
            let MemoryAxes { splits, order } = arranged.in_memory(order);
            (splits, order.axes().to_vec())
        };
        let whole = |order: &[usize]| (vec![], order.to_vec());
        assert_eq!(axes("(a=2 b) c -> a b c", &[6, 5], Order::C), whole(&[0, 1]));
        assert_eq!(axes("(a=2 b) c -> c (a b)", &[6, 5], Order::C), whole(&[1, 0]));
        assert_eq!(axes("a 1 ... -> (...) a", &[6, 1, 5, 4], Order::C), whole(&[2, 3, 0, 1]));
        let split = |splits: &[&[u64]], order: &[usize]| {
            (splits.iter().map(|lens| lens.to_vec()).collect::<Vec<_>>(), order.to_vec())
        };
        assert_eq!(
            axes("(a=2 b) c -> b a c", &[6, 5], Order::C),
            split(&[&[2, 3], &[5]], &[1, 0, 2])
        );
        assert_eq!(
            axes("(a=2 b=3 c) d -> (b c) (d a)", &[30, 7], Order::C),
            split(&[&[2, 15], &[7]], &[1, 2, 0])
        );
        // merged axes are one axis of the output, and their parts keep their order
        assert_eq!(axes("(a=2 b=3 c) d -> (b c) (d a)", &[30, 7], Order::F), whole(&[1, 0]));
        assert_eq!(axes("(a=2 b) -> a b", &[6], Order::F), split(&[&[2, 3]], &[1, 0]));
    }

    #[test]
    fn whole_axes_are_known() {
        let arranged = Pattern::parse("(a=2 b) c d 1 -> d (a b) c=").unwrap_err();
        assert_eq!(arranged.kind.to_string(), "lengths are written on the left");
        let arranged = Pattern::parse("(a=2 b) (c=1 d) e 1 -> (e) 1 (a b) d c").unwrap();
        let arranged = arranged.of(&[6, 5, 7, 1]).unwrap();
        assert_eq!(arranged.shape(), [7, 1, 6, 5, 1]);
        let known = [Some(0), Some(1), None, Some(3)];
        assert_eq!(arranged.of_whole_axes(&known), [None, None, Some(0), None, None]);
        assert_eq!(arranged.permutation(), None);
    }
}
