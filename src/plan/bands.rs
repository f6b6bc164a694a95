//! A relayout in two passes, for a memory so small that one pass would read short stretches.
//!
//! The first pass takes *bands* of the input, one after the other. A band is as long as a share of the memory allows, and
//! is written to a scratch file in the order of the output. The second pass takes ranges of the output, each as long as a
//! share of the memory. Such a range has one stretch in each band. For N items, and shares of S items, stretches have about
//! S²/N items; in one pass they have about the root of S.
//!
//! ```text
//!   input  a0 b0 c0 d0      scratch  a0 a1 b0 b1 c0 c1 d0 d1      output  a0 a1 a2 a3 a4
//!          a1 b1 c1 d1               a2 a3 b2 b3 c2 c3 d2 d3              b0 b1 b2 b3 b4
//!          a2 b2 c2 d2               a4 b4 c4 d4                          c0 c1 c2 c3 c4
//!          a3 b3 c3 d3                                                    d0 d1 d2 d3 d4
//!          a4 b4 c4 d4
//! ```

use std::ops::Range;

use super::panels::{PanelSizes, extents, pass_cost, range_items};
use super::{NEAR_BYTES, stretches};
use crate::runs::{Axis, Runs};

/// The bands of a relayout, and the position of the output in the scratch file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bands {
    /// The input in the order of the scratch file: bands of one length, and then a shorter rest of the divided axis.
    pub(crate) input: Vec<Runs>,
    /// The output in the order of its rows, as offsets in the scratch file. Each row is divided as `input` is: its
    /// first part is in the first of these runs, the rest in the second.
    scratch: Vec<Runs>,
    rows: u64,
}

/// The way to copy runs in one pass, whose cost is compared with two passes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OnePass {
    /// Panels whose input takes at most so many bytes of memory.
    Panels(u64),
    InOrder,
}

impl Bands {
    /// The bands of coalesced runs, where two passes are faster than one. A band, and a range of the output, takes at
    /// most `share` bytes of memory.
    pub(crate) fn choose(input: &Runs, share: u64, instead: OnePass) -> Option<Bands> {
        let bands = Bands::new(input, share)?;
        let one = match instead {
            OnePass::Panels(most) => pass_cost(input, &extents(input, most)),
            OnePass::InOrder => pass_cost(input, &range_items(input, share)),
        };
        let [first, second] = [&bands.input[0], &bands.scratch[0]];
        let two = pass_cost(first, &extents(first, share))
            + pass_cost(second, &range_items(second, share));
        (two < one).then_some(bands)
    }

    /// Divide the axis whose inner axes, in the input's order, fit in a share of the memory.
    fn new(input: &Runs, share: u64) -> Option<Bands> {
        let axes = &input.axes[..];
        let parts = PanelSizes::new(input);
        let mut items = vec![1; axes.len()];
        let mut far = parts.ours.iter().copied();
        let divided = far.find(|&axis| {
            items[axis] = parts.most_items(&items, axis, axes[axis].len, share);
            items[axis] < axes[axis].len
        })?;
        let mut farthest: Vec<usize> = far.collect();
        farthest.reverse();
        // the inner axes in the order of the output
        let near = |axis: &usize| parts.ours.contains(axis) && !farthest.contains(axis);
        let nearest: Vec<usize> = (0..axes.len()).filter(near).collect();

        let rows = axes[..divided].iter().map(|axis| axis.len).product();
        let mut bands = Bands { input: Vec::new(), scratch: Vec::new(), rows };
        let mut scratch_bytes = 0;
        let Axis { len, stride } = axes[divided];
        let whole_bands = len - len % items[divided];
        for part in [0..whole_bands, whole_bands..len] {
            let band = items[divided].min(part.end - part.start);
            if band == 0 {
                continue;
            }
            let whole =
                |axis: usize| if axis == divided { part.clone() } else { 0..axes[axis].len };
            let of = input.part(&(0..axes.len()).map(whole).collect::<Vec<_>>());
            // the divided axis becomes two: its bands, and their items
            let far = Axis { len: (part.end - part.start) / band, stride: stride * band as i64 };
            let near = Axis { len: band, stride };
            let outer = farthest.iter().map(|&axis| (axis, of.axes[axis]));
            let inner = nearest
                .iter()
                .map(|&axis| (axis, if axis == divided { near } else { of.axes[axis] }));
            let order: Vec<(usize, Axis)> = outer.chain([(divided, far)]).chain(inner).collect();
            let input = Runs { axes: order.iter().map(|(_, axis)| *axis).collect(), ..of };
            let mut lies: Vec<Vec<Axis>> = vec![Vec::new(); axes.len()];
            for ((axis, _), lie) in order.iter().zip(input.dense().axes) {
                lies[*axis].push(lie);
            }
            // repeated items are stored once
            for (lie, axis) in lies.iter_mut().zip(axes).filter(|(lie, _)| lie.is_empty()) {
                lie.push(Axis { stride: 0, ..*axis });
            }
            bands.scratch.push(Runs { offset: scratch_bytes, axes: lies.concat(), run: input.run });
            scratch_bytes += input.bytes() as i64;
            bands.input.push(input);
        }
        Some(bands)
    }

    pub(crate) fn scratch_bytes(&self) -> u64 {
        self.input.iter().map(Runs::bytes).sum()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.scratch.iter().map(Runs::bytes).sum()
    }

    /// The position of a range of the output in the scratch file.
    pub(crate) fn part(&self, range: Range<u64>) -> Vec<Runs> {
        let mut found = Vec::new();
        let row = (self.bytes() / self.rows).max(1);
        let step = if self.scratch.len() == 1 { self.rows } else { 1 };
        let mut at = range.start / row / step * step;
        while at * row < range.end {
            for number in 0..self.scratch.len() {
                let of_row = at * row..(at + step) * row;
                let part = range.start.max(of_row.start)..range.end.min(of_row.end);
                self.scratch_range(number, part, &mut found);
            }
            at += step;
        }
        found
    }

    /// The stretches of the scratch file that a range of the output needs, ascending; for whole rows, where rows are
    /// short.
    pub(crate) fn needs(&self, range: Range<u64>) -> Vec<Runs> {
        let row = (self.bytes() / self.rows).max(1);
        let is_short = row <= (range.end - range.start) / 16;
        let whole = range.start / row * row..range.end.next_multiple_of(row);
        let range = if is_short { whole } else { range };
        let mut found = Vec::new();
        (0..self.scratch.len())
            .for_each(|number| self.scratch_range(number, range.clone(), &mut found));
        found.into_iter().map(|runs| stretches(runs, NEAR_BYTES)).collect()
    }

    /// Append the part of a range of the output that `scratch[number]` holds.
    fn scratch_range(&self, number: usize, range: Range<u64>, found: &mut Vec<Runs>) {
        let share = |runs: &Runs| runs.bytes() / self.rows;
        let row: u64 = self.scratch.iter().map(share).sum();
        let own = share(&self.scratch[number]);
        let before: u64 = self.scratch[..number].iter().map(share).sum();
        let cut = |at: u64| at / row * own + (at % row).saturating_sub(before).min(own);
        found.extend(self.scratch[number].boxes(cut(range.start)..cut(range.end)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The scratch file holds every run once, each range of the output is found in it, and prefetches name what is
    /// read.
    #[test]
    fn the_output_is_found_in_the_bands() {
        let axis = |len, stride| Axis { len, stride };
        let mut divided = [0; 2];
        for axes in [
            vec![axis(100, 4), axis(300, 400)],
            vec![axis(97, 4), axis(301, 400)],
            vec![axis(97, -8), axis(301, 1000)],
            vec![axis(20, 4), axis(7, 80 * 31), axis(31, 80)],
            vec![axis(7, 80 * 31), axis(20, 4), axis(31, 80)],
            vec![axis(31, 80), axis(7, -80 * 31), axis(20, 4)],
            vec![axis(20, 4), axis(3, 0), axis(217, 80)],
            vec![axis(2, 0), axis(13, 4), axis(5, 0), axis(9, 52), axis(17, 468 * 2)],
        ] {
            let first = Runs { offset: 0, axes, run: 4 };
            let runs = Runs { offset: 64 - first.byte_bounds().start, ..first };
            for share in [5000, 9000, 30_000] {
                let Some(bands) = Bands::new(&runs, share) else { continue };
                divided[bands.scratch.len() - 1] += 1;
                let scratch: Vec<i64> = bands.input.iter().flat_map(Runs::starts).collect();
                assert_eq!(scratch.len() as u64 * 4, bands.scratch_bytes());
                let found = |part: &[Runs]| {
                    let starts = part.iter().flat_map(Runs::starts);
                    starts.map(|at| scratch[at as usize / 4]).collect::<Vec<_>>()
                };
                let all: Vec<i64> = runs.starts().collect();
                let end = bands.bytes();
                assert_eq!(end, all.len() as u64 * 4);
                for range in [0..end, 0..4, end - 4..end, 36..1204, end / 8 * 4 - 400..end - 8] {
                    let part = bands.part(range.clone());
                    let from = range.start as usize / 4;
                    let to = range.end as usize / 4;
                    assert_eq!(found(&part), all[from..to], "{runs:?} {share} {range:?}");
                    let needs = bands.needs(range);
                    let covers = |at: i64| {
                        let near =
                            |start: i64, run: u64| start <= at && at + 4 <= start + run as i64;
                        needs.iter().any(|it| it.starts().any(|start| near(start, it.run)))
                    };
                    assert!(part.iter().flat_map(Runs::starts).all(covers));
                }
            }
        }
        assert!(divided.iter().all(|count| *count > 3), "{divided:?}");
    }

    /// Two passes are chosen only where one pass would read or write short stretches.
    #[test]
    fn the_cheaper_way_is_taken() {
        let axis = |len, stride| Axis { len, stride };
        let transposed =
            Runs { offset: 128, axes: vec![axis(1 << 14, 4), axis(1 << 15, 1 << 16)], run: 4 };
        let choose = |runs: &Runs, most: u64, one| Bands::choose(runs, most / 4, one).is_some();
        assert!(choose(&transposed, 150 << 20, OnePass::Panels(150 << 20)));
        assert!(!choose(&transposed, 2 << 30, OnePass::Panels(2 << 30)));
        assert!(choose(&transposed, 1 << 30, OnePass::InOrder));
        // pixels and their channels are near each other in any order
        let images = vec![axis(10_000, 196_608), axis(3, 1), axis(65_536, 3)];
        let images = Runs { offset: 128, axes: images, run: 1 };
        assert!(!choose(&images, 150 << 20, OnePass::Panels(150 << 20)));
        assert!(!choose(&images, 150 << 20, OnePass::InOrder));
        // a few long rows are read in one pass
        let wide = Runs { offset: 128, axes: vec![axis(1 << 23, 4), axis(64, 1 << 25)], run: 4 };
        assert!(!choose(&wide, 150 << 20, OnePass::Panels(150 << 20)));
        let crop = Runs { offset: 128, axes: vec![axis(1 << 15, 1 << 16)], run: 1 << 15 };
        assert!(!choose(&crop, 150 << 20, OnePass::InOrder));
    }
}
