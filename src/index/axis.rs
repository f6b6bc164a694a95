//! What an integer or a slice selects on one axis. Computes in 128 bits, so that nothing overflows.

use super::SliceItem;
use super::selection::{AxisSelection, ResolveErrorKind};

/// The position of an integer; a negative one counts from the end.
pub(super) fn position(index: i64, axis: usize, size: u64) -> Result<u64, ResolveErrorKind> {
    let wrapped = i128::from(index) + if index < 0 { i128::from(size) } else { 0 };
    match u64::try_from(wrapped) {
        Ok(at) if at < size => Ok(at),
        _ => Err(ResolveErrorKind::OutOfBounds { index, axis, size }),
    }
}

/// A slice, by the rules of Python's `slice.indices`; its step is not 0.
pub(super) fn range(slice: SliceItem, axis: usize, size: u64) -> AxisSelection {
    let size = i128::from(size);
    let step = i128::from(slice.step.unwrap_or(1));
    // Bounds are clamped to the axis and one past its end in the direction of the step.
    let (lowest, highest) = if step < 0 { (-1, size - 1) } else { (0, size) };
    let (first, last) = if step < 0 { (highest, lowest) } else { (lowest, highest) };
    let clamped = |bound: i64| {
        let bound = i128::from(bound);
        (if bound < 0 { bound + size } else { bound }).clamp(lowest, highest)
    };
    let start = slice.start.map_or(first, clamped);
    let stop = slice.stop.map_or(last, clamped);
    let distance = if step < 0 { start - stop } else { stop - start };
    let len = match distance {
        // Rounded up: an incomplete last step still has a position at its start.
        1.. => (distance - 1) / step.abs() + 1,
        _ => 0,
    };
    // The casts are lossless: positions and lengths are within the axis, and so is a step that is
    // used.
    AxisSelection::Range {
        axis,
        start: if len > 0 { start as u64 } else { 0 },
        step: if len > 1 { step as i64 } else { 1 },
        len: len as u64,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::index::tests::slices;

    /// Python's `slice.indices` and `range`, one position at a time.
    fn naive(slice: SliceItem, len: i128) -> Vec<i128> {
        let step = i128::from(slice.step.unwrap_or(1));
        let wrap = |bound: i64| i128::from(bound) + if bound < 0 { len } else { 0 };
        let (mut at, stop) = if step > 0 {
            (
                slice.start.map_or(0, |start| wrap(start).max(0)),
                slice.stop.map_or(len, |stop| wrap(stop).min(len)),
            )
        } else {
            (
                slice.start.map_or(len - 1, |start| wrap(start).min(len - 1)),
                slice.stop.map_or(-1, |stop| wrap(stop).max(-1)),
            )
        };
        let mut positions = Vec::new();
        while if step > 0 { at < stop } else { at > stop } {
            positions.push(at);
            at += step;
        }
        positions
    }

    proptest! {
        #[test]
        fn ranges_are_pythons(slice in slices(), len in 0..9u64) {
            let AxisSelection::Range { start, step, len: count, .. } = range(slice, 0, len) else {
                return Err(TestCaseError::fail("not a range"));
            };
            let positions: Vec<_> =
                (0..i128::from(count)).map(|i| i128::from(start) + i * i128::from(step)).collect();
            prop_assert_eq!(positions, naive(slice, len.into()));
        }

        #[test]
        fn long_ranges_stay_inside(slice in slices(), len in any::<i64>()) {
            let len = len.unsigned_abs() >> 1;
            let AxisSelection::Range { start, step, len: count, .. } = range(slice, 0, len) else {
                return Err(TestCaseError::fail("not a range"));
            };
            prop_assert!(count <= len);
            if count > 0 {
                let last = i128::from(start) + (i128::from(count) - 1) * i128::from(step);
                prop_assert!(start < len && (0..i128::from(len)).contains(&last));
            }
        }
    }
}
