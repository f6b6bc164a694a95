//! Pieces of a relayout: boxes that are short along some axes and long along others.
//!
//! In a relayout, the fastest axes of the input are not the fastest axes of the output. A box takes enough of both:
//! whole stretches of the input, which no other box needs, and long rows of the output.
//!
//! ```text
//!   input  a0 b0 c0 d0 | e0 ...      output  a0 a1 a2 a3 | a4 ...
//!          a1 b1 c1 d1 | e1                  b0 b1 b2 b3 | b4
//!          a2 b2 c2 d2 | e2                  c0 c1 c2 c3 | c4
//!          a3 b3 c3 d3 | e3                  d0 d1 d2 d3 | d4
//!          ------------+                     ------------+
//! ```
//!
//! A box takes axes in the input's order until a stretch is a cache line long (a few KiB, where the input is read by
//! position). Then it takes axes in the output's order until its rows, each of which is one write, are 256 KiB long, or
//! the box has 4 MiB: unaligned rows of 64 KiB are written at half the rate of longer rows. Where rows stay below a
//! third of 256 KiB, stretches are two cache lines long, and the box has up to 8 MiB. A box whose rows follow each
//! other in the output is a single write: it has up to 8 MiB, and stretches of up to four cache lines. Small outputs
//! have boxes of half as many bytes, so that all processors have work. Boxes share no stretch, but neighbours share
//! pages: the pages of a box take at most an eighth of the memory (`execute/memory.rs`), so that each page is read once.
//!
//! Where input and output together exceed the memory, and the input is not in memory yet, boxes are counted panel by
//! panel. The pages of the input that a panel needs fit in a little more than half of the memory, beside the beginning
//! of the next panel; stretches are about as long as the root of that memory, or whole rows. Where requests for such
//! short stretches cost more than a second pass, there are two passes (`plan/bands.rs`).

use std::ops::Range;

use super::panels::extents;
use super::{Piece, Tiling, evenly};
use crate::os::PAGE;
use crate::runs::{Axis, Runs, span_bytes, unravel_index};

/// The length of wide stretches, in bytes. Stretches longer than a cache line are read at up to twice the rate: fewer
/// pages are looked up, and processors read ahead in each.
const WIDE_BYTES: u64 = 256;

/// The most bytes of input that a panel may need, where all of the input fits in memory.
const PANEL_BYTES: u64 = 32 << 20;

/// Outputs of fewer boxes have smaller ones.
const BOXES: u64 = 64;

/// The boxes of a plan, all of one shape except at the ends of axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Boxes {
    chunks: Vec<u64>,
    /// The number of boxes along each axis of a panel.
    panel: Vec<u64>,
    /// The axes in the order in which boxes, and panels, are counted: from the shortest stride in the input to the
    /// longest, so that consecutive ones are neighbours in the input; of the output, where panels are read ahead.
    order: Vec<usize>,
}

struct BoxRange {
    /// The number of the first box, and the count of boxes.
    start: u64,
    count: u64,
    boxes: Vec<Range<u64>>,
}

impl Boxes {
    /// The boxes for a tiling; `None` where ranges of the output are as good.
    pub(super) fn choose(input: &Runs, tiling: Tiling) -> Option<Boxes> {
        let axes = &input.axes[..];
        let run = input.run;
        let order = input_order(axes);
        if common_bytes(axes, run, &order) >= tiling.width_bytes {
            return None;
        }
        let half = tiling.box_bytes / 2;
        let box_bytes = (input.bytes() / BOXES).clamp(half, tiling.box_bytes);
        let tiling = Tiling { box_bytes, ..tiling };
        let ones = || vec![1; axes.len()];
        let mut boxes = Boxes { chunks: ones(), panel: ones(), order };
        let Some(panel_bytes) = tiling.panel_bytes else {
            boxes.enlarge(axes, run, tiling);
            boxes.gather(axes, run);
            return Some(boxes);
        };
        let extents = extents(input, panel_bytes);
        let within: Vec<Axis> =
            axes.iter().zip(&extents).map(|(axis, len)| Axis { len: *len, ..*axis }).collect();
        boxes.enlarge_with(&within, run, Tiling { pages_bytes: u64::MAX, ..tiling });
        for (at, extent) in extents.into_iter().enumerate() {
            boxes.panel[at] = extent.div_ceil(boxes.chunks[at]);
        }
        // consecutive panels are neighbours in the output, where they share pages; and so are consecutive boxes, so
        // that rows become long: all input of a panel is in memory
        boxes.order = (0..axes.len()).rev().collect();
        Some(boxes)
    }

    /// Choose the size of boxes. Best are the widest stretches with which a box is one range of the output, so one
    /// write. Otherwise stretches are as the tiling says, or twice as wide where rows are short anyway. Boxes of wide
    /// stretches may be twice as large, as a worker does not hold a second box while it waits.
    fn enlarge(&mut self, axes: &[Axis], run: u64, tiling: Tiling) {
        let most = 2 * tiling.box_bytes;
        let with = |width_bytes, box_bytes| {
            let mut boxes = self.clone();
            boxes.enlarge_with(axes, run, Tiling { width_bytes, box_bytes, ..tiling });
            boxes
        };
        let width = tiling.width_bytes;
        let wide = [WIDE_BYTES, WIDE_BYTES / 2].into_iter().filter(|wide| *wide > width);
        let range = wide.clone().chain([width]).map(|width| with(width, most)).find(|boxes| {
            let bytes = boxes.bytes(run);
            bytes <= most && boxes.row_bytes(axes, run) == bytes
        });
        let usual = || with(width, tiling.box_bytes);
        let is_long = |boxes: &Boxes| boxes.row_bytes(axes, run) >= tiling.piece_bytes / 3;
        let wide = || wide.min().map(|width| with(width, most));
        let chosen = range.or_else(|| Some(usual()).filter(is_long)).or_else(wide);
        *self = chosen.unwrap_or_else(usual);
    }

    /// The length of a box's contiguous ranges of the output, in bytes.
    fn row_bytes(&self, axes: &[Axis], run: u64) -> u64 {
        let mut row = run;
        for (axis, chunk) in axes.iter().zip(&self.chunks).rev() {
            row = row.saturating_mul(*chunk);
            if *chunk < axis.len {
                break;
            }
        }
        row
    }

    fn enlarge_with(&mut self, axes: &[Axis], run: u64, tiling: Tiling) {
        self.widen(axes, run, tiling.width_bytes);
        let box_bytes = tiling.box_bytes.min(self.within_pages(axes, run, tiling.pages_bytes));
        let tiling = Tiling { box_bytes, ..tiling };
        if self.lengthen(axes, run, tiling) > 1 {
            for axis in self.order.clone() {
                if !self.grow(axes, run, axis, tiling.box_bytes) {
                    break;
                }
            }
        }
    }

    /// Make panels of consecutive boxes, enough of them to need long stretches of the input.
    fn gather(&mut self, axes: &[Axis], run: u64) {
        let mut bytes = self.bytes(run);
        for axis in self.order.clone() {
            let along = self.along(axes, axis);
            self.panel[axis] = (PANEL_BYTES / bytes).clamp(1, along);
            bytes = bytes.saturating_mul(self.panel[axis]);
            if self.panel[axis] < along {
                break;
            }
        }
    }

    /// Take axes in the input's order until a stretch is `width` bytes long. A shorter axis is taken whole: otherwise
    /// neighbouring boxes would read the same stretch.
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

    /// The size of boxes, in bytes, whose stretches lie in at most `pages_bytes` bytes of pages. Stretches that share a
    /// page divide its bytes.
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

    /// Take as much more of an axis as fits in boxes of `most` bytes; returns whether the axis is taken whole.
    fn grow(&mut self, axes: &[Axis], run: u64, axis: usize, most: u64) -> bool {
        let len = axes[axis].len;
        let bytes = self.bytes(run);
        let chunk = &mut self.chunks[axis];
        *chunk = evenly(len, (most / (bytes / *chunk)).clamp(1, len)).max(*chunk);
        *chunk == len
    }

    fn bytes(&self, run: u64) -> u64 {
        self.chunks.iter().fold(run, |bytes, chunk| bytes.saturating_mul(*chunk))
    }

    fn along(&self, axes: &[Axis], axis: usize) -> u64 {
        axes[axis].len.div_ceil(self.chunks[axis])
    }

    pub(super) fn pieces(&self, axes: &[Axis]) -> u64 {
        (0..axes.len()).map(|axis| self.along(axes, axis)).product()
    }

    pub(super) fn piece(&self, input: &Runs, number: u64) -> Piece {
        let axes = &input.axes[..];
        let BoxRange { start, boxes, .. } = self.boxes_around(axes, number);
        let counts = self.order.iter().map(|&axis| boxes[axis].end - boxes[axis].start);
        let indices = unravel_index(counts, number - start);
        let mut items = vec![0..0; axes.len()];
        for (&axis, index) in self.order.iter().zip(indices) {
            let at = boxes[axis].start + index;
            items[axis] = self.items(axes, axis, at..at + 1);
        }
        let part = |of: &Runs| of.part(&items).coalesced();
        Piece { input: vec![part(input)], output: part(&input.dense()) }
    }

    fn items(&self, axes: &[Axis], axis: usize, boxes: Range<u64>) -> Range<u64> {
        let chunk = self.chunks[axis];
        boxes.start * chunk..(boxes.end * chunk).min(axes[axis].len)
    }

    /// The panel that contains box `number`. Panels at the ends of axes are smaller.
    fn boxes_around(&self, axes: &[Axis], number: u64) -> BoxRange {
        let mut boxes = vec![0..0; axes.len()];
        // the boxes of one index along the outer panel axes, and of the panel's range along the others
        let mut start = 0;
        let mut count = self.pieces(axes);
        for &axis in self.order.iter().rev() {
            let along = self.along(axes, axis);
            count /= along;
            let first = (number - start) / count / self.panel[axis] * self.panel[axis];
            start += first * count;
            boxes[axis] = first..(first + self.panel[axis]).min(along);
            count *= boxes[axis].end - first;
        }
        BoxRange { start, count, boxes }
    }

    /// The panel that begins with box `number`, if one does: the bytes of all its boxes, and the number of the box
    /// after them.
    pub(super) fn panel(&self, input: &Runs, number: u64) -> Option<(Piece, u64)> {
        let axes = &input.axes[..];
        let BoxRange { start, count, boxes } = self.boxes_around(axes, number);
        let items = boxes.into_iter().enumerate().map(|(axis, it)| self.items(axes, axis, it));
        let items: Vec<_> = items.collect();
        let output = input.dense().part(&items).coalesced();
        let panel = Piece { input: vec![input.part(&items)], output };
        (start == number).then_some((panel, start + count))
    }
}

/// The span of the innermost axes that have the same order in input and output: their bytes in the input. `u64::MAX`
/// where all axes have the same order.
fn common_bytes(axes: &[Axis], run: u64, order: &[usize]) -> u64 {
    // a repeated axis lies still in the input, in whatever order it is written
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

/// The axes from the shortest stride in the input to the longest.
pub(super) fn input_order(axes: &[Axis]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..axes.len()).rev().collect();
    order.sort_by_key(|&axis| axes[axis].stride.unsigned_abs());
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stretches of each box lie in few enough pages, whether they share them or not, and boxes are
    /// as large as that allows.
    #[test]
    fn boxes_lie_in_few_pages() {
        let axis = |len, stride| Axis { len, stride };
        let close = axis(4096, 3072);
        let far = axis(1024, 3072 << 12);
        for (axes, is_dense, apart) in [
            (vec![axis(768, 4), close, far], true, 3072),
            (vec![axis(1 << 14, 4), axis(1 << 14, 1 << 16)], true, PAGE),
            (vec![axis(1 << 14, -4), axis(1 << 14, -(1 << 13))], true, PAGE),
            (vec![axis(64, 200), axis(1 << 14, 1 << 16)], false, 200),
        ] {
            let input = Runs { offset: 1 << 40, axes, run: 4 };
            for pages_bytes in [1 << 20, 4 << 20, 8 << 20] {
                let tiling = Tiling { pages_bytes, ..Tiling::MAPPED };
                let boxes = Boxes::choose(&input, tiling).unwrap();
                let stretch = if is_dense { boxes.chunks[0] } else { 1 } * input.run;
                let pages = boxes.bytes(input.run) / stretch * apart;
                assert!(
                    (pages_bytes / 3..=pages_bytes).contains(&pages),
                    "{boxes:?} {pages_bytes}"
                );
            }
        }
    }

    /// Boxes have stretches of several cache lines where each box remains one range of the output, and where rows are
    /// short anyway.
    #[test]
    fn boxes_have_wide_stretches() {
        let chunks = |rows: u64, columns: u64, size: u64| {
            let axis = |len, stride: u64| Axis { len, stride: stride as i64 };
            let axes = vec![axis(columns, size), axis(rows, columns * size)];
            let input = Runs { offset: 128, axes, run: size };
            Boxes::choose(&input, Tiling::MAPPED).unwrap().chunks
        };
        assert_eq!(chunks(11_585, 11_584, 4), [64, 11_585]);
        assert_eq!(chunks(1 << 15, 1 << 15, 1), [256, 1 << 15]);
        assert_eq!(chunks(1 << 15, 1 << 15, 4), [64, 1 << 15]);
        // rows of 64 KiB in boxes of either size, and rows that are long enough
        assert_eq!(chunks(1 << 20, 1 << 10, 1), [128, 1 << 16]);
        assert_eq!(chunks(1 << 20, 1 << 10, 4), [16, 1 << 16]);
        // a small output
        assert_eq!(chunks(1 << 15, 1 << 10, 4), [32, 1 << 15]);
    }

    /// Every box is in one panel, every byte of the output in one box, and the input of a panel fits in its memory and
    /// covers the input of its boxes.
    #[test]
    fn panels_hold_all_boxes_once() {
        let axis = |len, stride| Axis { len, stride };
        for axes in [
            vec![axis(300, 4), axis(517, 1200)],
            vec![axis(7, -2), axis(31, 14), axis(90, -434)],
            vec![axis(64, 4), axis(5, 0), axis(2000, 1 << 14)],
            vec![axis(40, 44_000), axis(3, 4), axis(333, 12)],
            vec![axis(33, 8), axis(17, 40_000), axis(29, 1000)],
        ] {
            let run = if axes[0].stride == -2 { 2 } else { 4 };
            let input = Runs { offset: 1 << 20, axes, run };
            for most in [50_000, 300_000, 1 << 30] {
                let tiling = Tiling { panel_bytes: Some(most), box_bytes: 9000, ..Tiling::MAPPED };
                let boxes = Boxes::choose(&input, tiling).unwrap();
                let mut seen = vec![false; input.bytes() as usize];
                let mut number = 0;
                let pieces = boxes.pieces(&input.axes);
                while number < pieces {
                    let (panel, next) = boxes.panel(&input, number).unwrap();
                    let needs = panel.input[0].byte_bounds();
                    for piece in (number..next).map(|number| boxes.piece(&input, number)) {
                        let bounds = piece.input[0].byte_bounds();
                        assert!(needs.start <= bounds.start && bounds.end <= needs.end);
                        for at in piece.output.starts() {
                            for byte in
                                &mut seen[at as usize..at as usize + piece.output.run as usize]
                            {
                                assert!(!*byte);
                                *byte = true;
                            }
                        }
                    }
                    assert!((number + 1..next).all(|inside| boxes.panel(&input, inside).is_none()));
                    number = next;
                }
                assert!(seen.into_iter().all(|byte| byte));
            }
        }
    }
}
