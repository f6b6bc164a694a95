//! Pieces of a relayout: boxes that are short along some axes and long along others.
//!
//! In a relayout the axes that are close together in the input are others than those that are close
//! together in the output. A box takes enough of both: whole stretches of the input, each used up
//! by this one box, and long rows of the output.
//!
//! ```text
//!   input  a0 b0 c0 d0 | e0 ...      output  a0 a1 a2 a3 | a4 ...
//!          a1 b1 c1 d1 | e1                  b0 b1 b2 b3 | b4
//!          a2 b2 c2 d2 | e2                  c0 c1 c2 c3 | c4
//!          a3 b3 c3 d3 | e3                  d0 d1 d2 d3 | d4
//!          ------------+                     ------------+
//! ```

use super::piece::{Piece, Tiling, evenly};
use crate::runs::{Axis, Runs, span_bytes, unravel_index};

/// The most of the input that a panel may need, in bytes.
const PANEL_BYTES: u64 = 32 << 20;

/// A page of a file in memory, in bytes.
const PAGE: u64 = 4096;

/// The boxes of a plan, all alike but for those at the ends of axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Boxes {
    /// The items of each axis in a box.
    chunks: Vec<u64>,
    /// The axes in the order in which boxes are counted: from the shortest stride in the input to
    /// the longest, so that neighbouring boxes lie side by side in the input.
    order: Vec<usize>,
}

impl Boxes {
    /// Boxes of those sizes; `None` where ranges of the output serve as well.
    pub(super) fn choose(input: &Runs, tiling: Tiling) -> Option<Boxes> {
        let (axes, run) = (&input.axes[..], input.run);
        let order = input_order(axes);
        if common_bytes(axes, run, &order) >= tiling.width_bytes {
            return None;
        }
        let mut boxes = Boxes { chunks: vec![1; axes.len()], order };
        boxes.widen(axes, run, tiling.width_bytes);
        let box_bytes = tiling.box_bytes.min(boxes.within_pages(axes, run, tiling.pages_bytes));
        let tiling = Tiling { box_bytes, ..tiling };
        if boxes.lengthen(axes, run, tiling) > 1 {
            for axis in boxes.order.clone() {
                if !boxes.grow(axes, run, axis, tiling.box_bytes) {
                    break;
                }
            }
        }
        Some(boxes)
    }

    /// Take axes in the input's order until the stretch that they make is `width` bytes long. What
    /// is shorter is taken whole: neighbouring boxes would read the same stretch.
    fn widen(&mut self, axes: &[Axis], run: u64, width: u64) {
        let mut stretch = run;
        for &axis in self.order.iter().filter(|&&axis| axes[axis].stride != 0) {
            let Axis { len, stride } = axes[axis];
            let stride = stride.unsigned_abs();
            let most = width.saturating_sub(stretch) / stride + 1;
            self.chunks[axis] = most.min(len);
            if most < len {
                return;
            }
            stretch += stride * (len - 1);
        }
    }

    /// How large boxes may be whose stretches lie in so many bytes of pages. Stretches that share a page
    /// take a part of it each.
    fn within_pages(&self, axes: &[Axis], run: u64, pages_bytes: u64) -> u64 {
        let is_moved =
            |&axis: &usize| axes[axis].stride != 0 && axes[axis].len > 1 && self.chunks[axis] == 1;
        let next = self.order.iter().copied().find(is_moved);
        let apart = next.map_or(PAGE, |axis| axes[axis].stride.unsigned_abs());
        let stretch = self.bytes(run);
        (pages_bytes / apart.min(PAGE)).saturating_mul(stretch).max(stretch)
    }

    /// Take axes in the output's order until its rows are long enough. Returns the number of rows.
    fn lengthen(&mut self, axes: &[Axis], run: u64, tiling: Tiling) -> u64 {
        let mut row = run;
        for axis in (0..axes.len()).rev() {
            let others = self.bytes(run) / self.chunks[axis];
            let most = tiling.box_bytes.min(tiling.piece_bytes.saturating_mul(others) / row);
            if !self.grow(axes, run, axis, most) {
                return others / row;
            }
            row = row.saturating_mul(axes[axis].len);
        }
        1
    }

    /// Take as much more of an axis as fits boxes of `most` bytes; whether it is taken whole.
    fn grow(&mut self, axes: &[Axis], run: u64, axis: usize, most: u64) -> bool {
        let (len, bytes) = (axes[axis].len, self.bytes(run));
        let chunk = &mut self.chunks[axis];
        *chunk = evenly(len, (most / (bytes / *chunk)).clamp(1, len)).max(*chunk);
        *chunk == len
    }

    /// Bytes of a whole box.
    fn bytes(&self, run: u64) -> u64 {
        self.chunks.iter().fold(run, |bytes, chunk| bytes.saturating_mul(*chunk))
    }

    /// How many boxes lie along an axis.
    fn along(&self, axes: &[Axis], axis: usize) -> u64 {
        axes[axis].len.div_ceil(self.chunks[axis])
    }

    pub(super) fn pieces(&self, axes: &[Axis]) -> u64 {
        (0..axes.len()).map(|axis| self.along(axes, axis)).product()
    }

    pub(super) fn piece(&self, input: &Runs, number: u64) -> Piece {
        let mut items = vec![0..0; input.axes.len()];
        for (axis, index) in self.unravel(&input.axes, number) {
            let first = index * self.chunks[axis];
            items[axis] = first..(first + self.chunks[axis]).min(input.axes[axis].len);
        }
        let part = |of: &Runs| of.part(&items).coalesced();
        Piece { input: vec![part(input)], output: part(&input.dense()) }
    }

    /// Each axis with the index along it of box `number`.
    fn unravel(&self, axes: &[Axis], number: u64) -> impl Iterator<Item = (usize, u64)> {
        let counts = self.order.iter().map(|&axis| self.along(axes, axis));
        self.order.iter().copied().zip(unravel_index(counts, number))
    }

    /// Where a panel begins with box `number`: the number of its boxes, and all that they need. A
    /// panel is as many consecutive boxes as need long stretches of the input.
    pub(super) fn panel(&self, input: &Runs, number: u64) -> Option<(u64, Runs)> {
        let axes = &input.axes[..];
        let mut panel = Runs { axes: Vec::new(), ..input.clone() };
        let (mut count, mut bytes, mut room) = (1, self.bytes(input.run), true);
        for (axis, index) in self.unravel(axes, number) {
            let (Axis { len, stride }, chunk) = (axes[axis], self.chunks[axis]);
            let along = self.along(axes, axis);
            let most = if room { (PANEL_BYTES / bytes).clamp(1, along) } else { 1 };
            if room && !index.is_multiple_of(most) {
                return None;
            }
            let boxes = most.min(along - index);
            let first = index * chunk;
            panel.offset += first as i64 * stride;
            panel.axes.push(Axis { len: (boxes * chunk).min(len - first), stride });
            count *= boxes;
            bytes = bytes.saturating_mul(most);
            room &= most == along;
        }
        Some((count, panel))
    }
}

/// The axes from the shortest stride in the input to the longest.
fn input_order(axes: &[Axis]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..axes.len()).rev().collect();
    order.sort_by_key(|&axis| axes[axis].stride.unsigned_abs());
    order
}

/// How far the innermost axes that are in the same order in input and output reach in the input,
/// in bytes; `u64::MAX` where all axes are.
fn common_bytes(axes: &[Axis], run: u64, order: &[usize]) -> u64 {
    // what is repeated lies where it lies, in whatever order it is written
    let moving = |axis: &usize| axes[*axis].stride != 0;
    let ours = order.iter().copied().filter(moving);
    let theirs = (0..axes.len()).rev().filter(moving);
    let mut common = Vec::new();
    for (ours, theirs) in ours.zip(theirs) {
        if ours != theirs {
            return span_bytes(&common, run);
        }
        common.push(axes[ours]);
    }
    u64::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stretches of each box lie in few enough pages, whether they share them or not, and boxes are
    /// as large as that allows.
    #[test]
    fn boxes_lie_in_few_pages() {
        let axis = |len, stride| Axis { len, stride };
        let (close, far) = (axis(4096, 3072), axis(1024, 3072 << 12));
        for (axes, stretch, apart) in [
            (vec![axis(768, 4), close, far], 64, 3072),
            (vec![axis(1 << 14, 4), axis(1 << 14, 1 << 16)], 64, PAGE),
            (vec![axis(1 << 14, -4), axis(1 << 14, -(1 << 13))], 64, PAGE),
            (vec![axis(64, 200), axis(1 << 14, 1 << 16)], 4, 200),
        ] {
            let input = Runs { offset: 1 << 40, axes, run: 4 };
            for pages_bytes in [1 << 20, 4 << 20, 8 << 20] {
                let tiling = Tiling { pages_bytes, ..Tiling::MAPPED };
                let boxes = Boxes::choose(&input, tiling).unwrap();
                let pages = boxes.bytes(input.run) / stretch * apart;
                assert!(
                    (pages_bytes / 3..=pages_bytes).contains(&pages),
                    "{boxes:?} {pages_bytes}"
                );
            }
        }
    }
}
