//! The size of a panel of a relayout, where not all fits in memory.
//!
//! A disk is fast where stretches are long: stretches of the input that are read, and stretches of the output that are
//! written. In a given memory, a panel may have long stretches of one kind, or both kinds about as long as the root of
//! the memory. So the shorter kind is lengthened until the memory is used.

use super::boxes::input_order;
use super::{NEAR_BYTES, evenly, stretches};
use crate::os::PAGE;
use crate::runs::{Axis, Runs, dense_bytes};

/// The length of a stretch, in bytes, beyond which no disk is faster.
const LONG: u64 = 128 << 10;

/// The memory of a panel, in bytes, below which there are too few requests to keep a disk busy.
const SMALL: u64 = 32 << 20;

/// The items of each axis in a panel, where `room` bytes of memory hold the input of all panels that are being read. A
/// part of it is left for the beginning of the next panel, unless one item takes more.
pub(super) fn extents(input: &Runs, room: u64) -> Vec<u64> {
    let axes = &input.axes[..];
    let parts = PanelSizes::new(input);
    let most = room / 7 * 6;
    let mut items = vec![1; axes.len()];
    let mut is_full = vec![false; axes.len()];
    loop {
        let read = parts.read(&items);
        let written = parts.written(&items);
        if read.bytes.min(written.bytes) >= LONG && parts.memory(&items) >= SMALL {
            break;
        }
        let open = |stretch: &Stretch| stretch.next.filter(|axis| !is_full[*axis]);
        let (ours, theirs) = (open(&read), open(&written));
        let shorter = if read.bytes < written.bytes { ours.or(theirs) } else { theirs.or(ours) };
        let Some(axis) = shorter else { break };
        let doubled = (items[axis] * 2).min(axes[axis].len);
        let fits = parts.most_items(&items, axis, doubled, most);
        is_full[axis] = fits < doubled || fits == axes[axis].len;
        items[axis] = fits;
    }
    // a whole axis may make a stretch far longer
    let ours = parts.read(&items).next;
    let theirs = parts.written(&items).next;
    for (whole, less) in [(ours, theirs), (theirs, ours)] {
        let (Some(whole), Some(less)) = (whole, less) else { continue };
        let mut others = items.clone();
        (others[whole], others[less]) = (axes[whole].len, 1);
        others[less] = parts.most_items(&others, less, items[less], most);
        if whole != less
            && parts.memory(&others) <= most
            && parts.cost(&others) < parts.cost(&items)
        {
            items = others;
            break;
        }
    }
    let lens = axes.iter().map(|axis| axis.len);
    lens.zip(items).map(|(len, items)| evenly(len, items)).collect()
}

/// The items of each axis in a range of at most `most` bytes of the output; at least one item.
pub(super) fn range_items(input: &Runs, most: u64) -> Vec<u64> {
    let mut left = most / input.run.max(1);
    let mut items = vec![1; input.axes.len()];
    for (axis, items) in input.axes.iter().zip(&mut items).rev() {
        *items = left.clamp(1, axis.len);
        left /= *items;
    }
    items
}

/// The bytes that a disk moves in the time of one request: stretches of this length take twice as long as one long
/// stretch.
const REQUEST: u64 = 64 << 10;

/// The cost of a copy in parts that have `items` items of each axis: bytes that are read and written, and the requests
/// for them, counted as bytes.
pub(super) fn pass_cost(input: &Runs, items: &[u64]) -> f64 {
    let parts = PanelSizes::new(input);
    let all: Vec<u64> = input.axes.iter().map(|axis| axis.len).collect();
    let cost =
        |bytes: u64, stretch: Stretch| bytes as f64 * (1.0 + REQUEST as f64 / stretch.bytes as f64);
    cost(parts.memory(&all), parts.read(items)) + cost(input.bytes(), parts.written(items))
}

/// The sizes of parts of runs, by the items of each axis in a part.
pub(super) struct PanelSizes<'a> {
    input: &'a Runs,
    dense: Runs,
    /// The axes from the fastest to the slowest in the input.
    pub(super) ours: Vec<usize>,
}

impl PanelSizes<'_> {
    pub(super) fn new(input: &Runs) -> PanelSizes<'_> {
        let axes = &input.axes[..];
        let ours = input_order(axes).into_iter().filter(|axis| axes[*axis].stride != 0).collect();
        PanelSizes { input, dense: input.dense(), ours }
    }

    fn read(&self, items: &[u64]) -> Stretch {
        Stretch::of(items, self.input, self.ours.iter().copied())
    }

    fn written(&self, items: &[u64]) -> Stretch {
        Stretch::of(items, &self.dense, (0..items.len()).rev())
    }

    /// About how many disk requests a byte takes, for reading and writing together.
    fn cost(&self, items: &[u64]) -> f64 {
        let of = |stretch: Stretch| 1.0 / stretch.bytes.min(LONG) as f64;
        of(self.read(items)) + of(self.written(items))
    }

    fn memory(&self, items: &[u64]) -> u64 {
        let axes = self.input.axes.iter().zip(items);
        let axes = axes.map(|(axis, len)| Axis { len: *len, ..*axis });
        let axes = axes.filter(|axis| axis.stride != 0).collect();
        let Runs { axes, run, .. } = stretches(Runs { axes, ..*self.input }, NEAR_BYTES);
        dense_bytes(&axes, 1).saturating_mul(run + PAGE)
    }

    /// The most items of `axis`, from `items[axis]` to `up_to`, with which a part takes at most `most` bytes of memory.
    pub(super) fn most_items(&self, items: &[u64], axis: usize, up_to: u64, most: u64) -> u64 {
        let fits = |count: u64| {
            let mut items = items.to_vec();
            items[axis] = count;
            self.memory(&items) <= most
        };
        let mut low = items[axis];
        let mut high = up_to;
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if fits(middle) { low = middle } else { high = middle - 1 }
        }
        low
    }
}

/// A contiguous stretch of a part.
struct Stretch {
    bytes: u64,
    next: Option<usize>,
}

impl Stretch {
    /// The stretch that these items make, by axes from the fastest to the slowest.
    fn of(items: &[u64], runs: &Runs, order: impl Iterator<Item = usize>) -> Stretch {
        let mut bytes = runs.run;
        for axis in order {
            let Axis { len, stride } = runs.axes[axis];
            let stride = stride.unsigned_abs();
            if stride > bytes + NEAR_BYTES {
                return Stretch { bytes, next: None };
            }
            bytes += stride * (items[axis] - 1);
            if items[axis] < len {
                return Stretch { bytes, next: Some(axis) };
            }
        }
        Stretch { bytes: u64::MAX, next: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Panels use the memory: stretches of both kinds are long, or whole.
    #[test]
    fn stretches_are_long() {
        let axis = |len, stride| Axis { len, stride };
        let of = |axes: Vec<Axis>, run, most| {
            let input = Runs { offset: 0, axes, run };
            // a seventh of the room is for the next panel
            let items = extents(&input, most / 6 * 7);
            let parts = PanelSizes::new(&input);
            assert!(parts.memory(&items) <= most);
            (parts.read(&items).bytes, parts.written(&items).bytes, items)
        };
        let transposed = || vec![axis(1 << 14, 4), axis(400_000, 1 << 16)];
        // whole rows of the input, where they are about as long
        let (read, written, items) = of(transposed(), 4, 1 << 30);
        assert!(items[0] == 1 << 14 && read > 1 << 29 && written >= 60 << 10, "{items:?}");
        // the root of the memory, where rows are longer
        let (read, written, items) = of(transposed(), 4, 64 << 20);
        assert!(read >= 8 << 10 && written >= 8 << 10, "{items:?}");
        // no longer than is useful
        let (read, written, items) = of(vec![axis(64, 4), axis(1 << 26, 256)], 4, 2 << 30);
        assert!(read >= 32 << 20 && (LONG..1 << 20).contains(&written), "{items:?}");
        // the axis in the middle makes both kinds longer
        let side = 2830;
        let fortran =
            vec![axis(side, 2), axis(side, 2 * side as i64), axis(400, (2 * side * side) as i64)];
        let (read, written, items) = of(fortran, 2, 512 << 20);
        assert!(
            read >= LONG && written >= LONG && items[0] == side && items[2] == 400,
            "{items:?}"
        );
    }
}
