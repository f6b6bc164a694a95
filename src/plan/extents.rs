//! How large a panel of a relayout is, where not all fits in memory.
//!
//! A disk is fast where stretches are long: those of the input that are read, and those of the output
//! that are written. A panel that fits in so much memory may have long ones of either kind, or of both, as long
//! as about the root of that. So the shorter ones are made longer until the memory is used.

use super::piece::evenly;
use super::stretches::{NEAR_BYTES, stretches};
use crate::runs::{Axis, Runs, dense_bytes};

/// A page of a file in memory, in bytes.
pub(super) const PAGE: u64 = 4096;

/// Stretches that are longer, in bytes, make no disk faster.
const LONG: u64 = 128 << 10;

/// Panels that need less memory, in bytes, are read in too few pieces to keep a disk busy.
const SMALL: u64 = 32 << 20;

/// The items of each axis in a panel, where so much memory is for all panels that are read: the pages of the input
/// leave a part of it to the beginning of the next panel, unless one item takes more.
pub(super) fn extents(input: &Runs, room: u64) -> Vec<u64> {
    let (axes, parts) = (&input.axes[..], PanelSizes::new(input));
    let most = room / 7 * 6;
    let mut items = vec![1; axes.len()];
    let mut is_full = vec![false; axes.len()];
    loop {
        let (read, written) = (parts.read(&items), parts.written(&items));
        if read.bytes.min(written.bytes) >= LONG && parts.memory(&items) >= SMALL {
            break;
        }
        let open = |stretch: &Stretch| stretch.next.filter(|axis| !is_full[*axis]);
        let axis = match (open(&read), open(&written)) {
            (Some(ours), Some(_)) if read.bytes < written.bytes => ours,
            (_, Some(theirs)) => theirs,
            (Some(ours), None) => ours,
            (None, None) => break,
        };
        let doubled = (items[axis] * 2).min(axes[axis].len);
        let fits = parts.most_items(&items, axis, doubled, most);
        is_full[axis] = fits < doubled || fits == axes[axis].len;
        items[axis] = fits;
    }
    // a whole axis may make a stretch far longer
    let (ours, theirs) = (parts.read(&items).next, parts.written(&items).next);
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

/// The items of each axis in a range of the output of at most `most` bytes, where one item is no more than that.
pub(super) fn range_items(input: &Runs, most: u64) -> Vec<u64> {
    let mut left = most / input.run.max(1);
    let lens = input.axes.iter().rev().map(|axis| {
        let items = left.clamp(1, axis.len);
        left /= items;
        items
    });
    let mut items: Vec<u64> = lens.collect();
    items.reverse();
    items
}

/// What a disk moves in the time that a request takes, in bytes: stretches as long as this take twice as long as
/// one long one.
const REQUEST: u64 = 64 << 10;

/// What it costs to copy runs in parts that have so many items of each axis: the bytes that are read and written, and
/// the requests for them as bytes.
pub(super) fn pass_cost(input: &Runs, items: &[u64]) -> f64 {
    let parts = PanelSizes::new(input);
    let all: Vec<u64> = input.axes.iter().map(|axis| axis.len).collect();
    let cost =
        |bytes: u64, stretch: Stretch| bytes as f64 * (1.0 + REQUEST as f64 / stretch.bytes as f64);
    cost(parts.memory(&all), parts.read(items)) + cost(input.bytes(), parts.written(items))
}

/// Parts of runs, by the items of each axis that they have.
pub(super) struct PanelSizes<'a> {
    input: &'a Runs,
    dense: Runs,
    /// The axes from the nearest to the farthest, in the input and in the output.
    pub(super) ours: Vec<usize>,
    theirs: Vec<usize>,
}

impl PanelSizes<'_> {
    pub(super) fn new(input: &Runs) -> PanelSizes<'_> {
        let axes = &input.axes[..];
        let ours = input_order(axes).into_iter().filter(|axis| axes[*axis].stride != 0).collect();
        PanelSizes { input, dense: input.dense(), ours, theirs: (0..axes.len()).rev().collect() }
    }

    fn read(&self, items: &[u64]) -> Stretch {
        Stretch::of(items, self.input, &self.ours)
    }

    fn written(&self, items: &[u64]) -> Stretch {
        Stretch::of(items, &self.dense, &self.theirs)
    }

    /// How many requests a byte takes of a disk, about, in both directions.
    fn cost(&self, items: &[u64]) -> f64 {
        let of = |stretch: Stretch| 1.0 / stretch.bytes.min(LONG) as f64;
        of(self.read(items)) + of(self.written(items))
    }

    /// The pages of the input that a part takes.
    fn memory(&self, items: &[u64]) -> u64 {
        let axes = self.input.axes.iter().zip(items);
        let axes = axes.map(|(axis, len)| Axis { len: *len, ..*axis });
        let axes = axes.filter(|axis| axis.stride != 0).collect();
        let Runs { axes, run, .. } = stretches(Runs { axes, ..*self.input }, NEAR_BYTES);
        dense_bytes(&axes, 1).saturating_mul(run + PAGE)
    }

    /// How many items of an axis, up to so many, a part may have that takes at most `most`; no fewer than it has.
    pub(super) fn most_items(&self, items: &[u64], axis: usize, up_to: u64, most: u64) -> u64 {
        let fits = |count: u64| {
            let mut items = items.to_vec();
            items[axis] = count;
            self.memory(&items) <= most
        };
        let (mut low, mut high) = (items[axis], up_to);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if fits(middle) { low = middle } else { high = middle - 1 }
        }
        low
    }
}

/// What is contiguous of a part.
struct Stretch {
    bytes: u64,
    /// The axis that makes it longer.
    next: Option<usize>,
}

impl Stretch {
    /// The stretch that so many items of each axis make, from the nearest axis to the farthest.
    fn of(items: &[u64], runs: &Runs, order: &[usize]) -> Stretch {
        let mut bytes = runs.run;
        for &axis in order {
            let (Axis { len, stride }, items) = (runs.axes[axis], items[axis]);
            let stride = stride.unsigned_abs();
            if stride > bytes + NEAR_BYTES {
                return Stretch { bytes, next: None };
            }
            bytes += stride * (items - 1);
            if items < len {
                return Stretch { bytes, next: Some(axis) };
            }
        }
        Stretch { bytes: u64::MAX, next: None }
    }
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

    /// Panels are as wide and as tall as the memory allows: stretches of both kinds are long, or whole.
    #[test]
    fn stretches_are_long() {
        let axis = |len, stride| Axis { len, stride };
        let of = |axes: Vec<Axis>, run, most| {
            let input = Runs { offset: 0, axes, run };
            // and a seventh of the room is for the panel that comes next
            let (items, parts) = (extents(&input, most / 6 * 7), PanelSizes::new(&input));
            assert!(parts.memory(&items) <= most);
            (parts.read(&items).bytes, parts.written(&items).bytes, items)
        };
        let transposed = || vec![axis(1 << 14, 4), axis(400_000, 1 << 16)];
        // rows of the input as a whole, where that is near
        let (read, written, items) = of(transposed(), 4, 1 << 30);
        assert!(items[0] == 1 << 14 && read > 1 << 29 && written >= 60 << 10, "{items:?}");
        // the root of the memory, where it is not
        let (read, written, items) = of(transposed(), 4, 64 << 20);
        assert!(read >= 8 << 10 && written >= 8 << 10, "{items:?}");
        // no longer than is of use
        let (read, written, items) = of(vec![axis(64, 4), axis(1 << 26, 256)], 4, 2 << 30);
        assert!(read >= 32 << 20 && (LONG..1 << 20).contains(&written), "{items:?}");
        // the axis in the middle makes both longer
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
