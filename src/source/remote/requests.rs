//! Merging of a sequence of reads to requests.
//!
//! A request costs a round trip, so that reading a short gap is cheaper than another request.
//! Consecutive ranges become one request where at most [`GAP`] bytes lie between them. Requests are cut
//! at [`REQUEST_BYTES`], so that several run side by side, and a failed one loses little.
//!
//! ```text
//!   ranges    ▓▓▓ ▓▓  ▓▓                ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
//!   requests  └────────┘                └─────────┘└────────┘
//! ```

use std::ops::Range;

/// The longest gap that is read, in bytes: a request costs a few milliseconds, in which as much comes.
pub const GAP: u64 = 128 << 10;

/// The longest gap between ranges that are announced as one, in bytes: there may be a range for each
/// element.
pub const NEAR: u64 = 4 << 10;

/// The longest request for elements, in bytes.
pub const REQUEST_BYTES: u64 = 2 << 20;

/// A merger of ranges, which are given in the order of the reads.
#[derive(Clone, Debug, Default)]
pub struct Merger {
    open: Range<u64>,
    /// A row before the open request that becomes part of it if the bytes between them come next.
    row: Range<u64>,
    file_end: u64,
}

impl Merger {
    /// Add a range of the file that ends at `file_end`. `emit` gets the requests that no later range
    /// can extend.
    pub fn push(&mut self, mut range: Range<u64>, file_end: u64, emit: &mut dyn FnMut(Range<u64>)) {
        if file_end != self.file_end {
            self.flush(emit);
            self.file_end = file_end;
        }
        if self.precedes(&range) {
            return;
        }
        if !self.row.is_empty() {
            emit(std::mem::replace(&mut self.open, std::mem::take(&mut self.row)));
            if self.precedes(&range) {
                return;
            }
        }
        while range.start < range.end {
            let most = self.open.start.saturating_add(REQUEST_BYTES);
            if is_near(&self.open, &range) && (range.start < most || range.end <= self.open.end) {
                let end = range.end.min(most).max(self.open.end);
                self.open.end = end;
                range.start = range.start.max(end);
            } else {
                self.flush(emit);
                self.open = range.start..range.end.min(range.start.saturating_add(REQUEST_BYTES));
                range.start = self.open.end;
            }
        }
    }

    /// Take a range before the open request, or one that continues the row before it, if it fits.
    fn precedes(&mut self, range: &Range<u64>) -> bool {
        let row = if self.row.is_empty() {
            range.clone()
        } else if is_near(&self.row, range) {
            self.row.start..range.end.max(self.row.end)
        } else {
            return false;
        };
        let fits = row.start < self.open.start
            && row.end <= self.open.end
            && self.open.end - row.start <= REQUEST_BYTES;
        if range.is_empty() || self.open.is_empty() || !fits {
            return false;
        }
        if is_near(&row, &self.open) {
            self.open.start = row.start;
            self.row = 0..0;
        } else {
            self.row = row;
        }
        true
    }

    pub fn flush(&mut self, emit: &mut dyn FnMut(Range<u64>)) {
        for request in [&mut self.open, &mut self.row].map(std::mem::take) {
            if !request.is_empty() {
                emit(request);
            }
        }
    }
}

/// Whether a range begins in another one, or so soon after it that the gap is read.
fn is_near(range: &Range<u64>, next: &Range<u64>) -> bool {
    !range.is_empty() && range.start <= next.start && next.start <= range.end.saturating_add(GAP)
}

#[cfg(test)]
mod tests {
    // a list of a single range is intended
    #![allow(clippy::single_range_in_vec_init)]

    use super::*;
    use proptest::prelude::*;

    fn requests(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
        let mut merger = Merger::default();
        let mut all = Vec::new();
        ranges.iter().for_each(|range| merger.push(range.clone(), 1 << 50, &mut |it| all.push(it)));
        merger.flush(&mut |it| all.push(it));
        all
    }

    #[test]
    fn near_ranges_are_one_request_and_far_ones_are_not() {
        let gap = GAP;
        let most = REQUEST_BYTES;
        assert_eq!(requests(&[0..10, 10..20, 30..40]), [0..40]);
        assert_eq!(requests(&[0..10, 10 + gap..20 + gap]), [0..20 + gap]);
        assert_eq!(requests(&[0..10, 11 + gap..20 + gap]), [0..10, 11 + gap..20 + gap]);
        assert_eq!(
            requests(&[5..5 + 2 * most + 1]),
            [5..5 + most, 5 + most..5 + 2 * most, 5 + 2 * most..6 + 2 * most]
        );
        // backwards, and again
        assert_eq!(requests(&[100..110, 50..90, 0..10]), [0..110]);
        assert_eq!(requests(&[most..2 * most, 0..most]), [most..2 * most, 0..most]);
        assert_eq!(requests(&[0..100, 10..20, 90..120]), [0..120]);
        assert_eq!(requests(&[7..7]), []);
    }

    /// Pieces of an output end at blocks of its file, wherever the rows of the input do.
    #[test]
    fn rows_of_a_reversed_axis_are_one_request_wherever_pieces_end() {
        let row = 240_000;
        let rows = 40;
        let piece = 256 << 10;
        let mut ranges = Vec::new();
        for number in 0..rows {
            let mut at = number * row;
            let end = (number + 1) * row;
            while at < end {
                let next = end.min((at / piece + 1) * piece);
                let start = (rows - 1 - number) * row;
                ranges.push(start + at % row..start + at % row + next - at);
                at = next;
            }
        }
        let each = REQUEST_BYTES / row * row;
        let all = requests(&ranges);
        assert_eq!(all.len() as u64, (rows * row).div_ceil(each));
        assert_eq!(all[0], rows * row - each..rows * row);
        // a row that is too far away is a request of its own
        let gap = GAP;
        let far = 3 * GAP;
        assert_eq!(
            requests(&[far..far + 9, 0..5, far + 9..far + 20]),
            [far..far + 9, 0..5, far + 9..far + 20]
        );
        assert_eq!(requests(&[far..far + 9, 0..5, 5..10]), [far..far + 9, 0..10]);
        assert_eq!(requests(&[far..far + 9, 0..5, 5 + gap..far]), [0..far + 9]);
    }

    #[test]
    fn a_request_is_of_one_file() {
        let mut merger = Merger::default();
        let mut all = Vec::new();
        for (range, end) in [(0..10, 20), (12..20, 20), (20..30, 90), (15..18, 20)] {
            merger.push(range, end, &mut |it| all.push(it));
        }
        merger.flush(&mut |it| all.push(it));
        assert_eq!(all, [0..20, 20..30, 15..18]);
    }

    proptest! {
        #[test]
        fn every_byte_is_requested_and_no_request_is_too_long(
            steps in prop::collection::vec((0u64..400_000, 0u64..3_000_000), 0..50)
        ) {
            let mut at = 0;
            let ranges: Vec<Range<u64>> = steps.into_iter().map(|(gap, len)| {
                let start = at + gap;
                at = start + len;
                start..at
            }).collect();
            let all = requests(&ranges);
            prop_assert!(all.iter().all(|it| it.end - it.start <= REQUEST_BYTES));
            prop_assert!(all.is_sorted_by(|a, b| a.end <= b.start));
            let inside = |from: u64, to: u64| -> u64 {
                all.iter().map(|it| it.end.min(to).saturating_sub(it.start.max(from))).sum()
            };
            for range in &ranges {
                prop_assert_eq!(inside(range.start, range.end), range.end - range.start);
            }
            // only gaps are read beyond the needed bytes
            let needed: u64 = ranges.iter().map(|it| it.end - it.start).sum();
            let read: u64 = all.iter().map(|it| it.end - it.start).sum();
            prop_assert!(read <= needed + ranges.len() as u64 * GAP);
        }

        #[test]
        fn every_byte_is_requested_in_any_order(
            ranges in prop::collection::vec((0u64..3_000_000, 0u64..300_000), 0..50)
        ) {
            let ranges: Vec<_> = ranges.into_iter().map(|(at, len)| at..at + len).collect();
            let mut all = requests(&ranges);
            prop_assert!(all.iter().all(|it| it.start < it.end && it.end - it.start <= REQUEST_BYTES));
            all.sort_unstable_by_key(|it| it.start);
            for range in ranges {
                let end = all.iter().fold(range.start, |at, it| {
                    if it.start <= at { at.max(it.end) } else { at }
                });
                prop_assert!(range.is_empty() || range.end <= end);
            }
        }
    }
}
