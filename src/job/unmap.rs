//! Unmapping an input at the end of a job.
//!
//! To unmap many pages takes about half as long as to bring them in. At the end of the process one
//! thread would do it; here all do.

use std::convert::Infallible;
use std::ops::Range;

use crate::execute::Workers;
use crate::job::parallel;
use crate::source::{Advice, Source, mapped_pages};

/// Fewer mapped pages are left to the end of the process.
const MANY_PAGES: u64 = 16 << 10;

/// What is unmapped in one call, in bytes; more, where that would take many calls.
const RANGE_BYTES: u64 = 64 << 20;
const MOST_RANGES: u64 = 256;

/// Unmap the pages of a source, where they are many: with these workers.
/// They come back if they are read again.
pub(crate) fn unmap(source: &dyn Source, workers: &Workers) {
    let len = source.len();
    if len <= RANGE_BYTES || mapped_pages() < MANY_PAGES {
        return;
    }
    let count = len.div_ceil(range_bytes(len)) as usize;
    let unmapped = parallel::each(count, workers, |number| {
        source.advise(range(len, number as u64), Advice::DontNeed);
        Ok::<(), Infallible>(())
    });
    unmapped.map_or_else(|never| match never {}, drop);
}

fn range_bytes(len: u64) -> u64 {
    RANGE_BYTES.max(len.div_ceil(MOST_RANGES))
}

/// Range `number` of those that make up `len` bytes.
fn range(len: u64, number: u64) -> Range<u64> {
    let bytes = range_bytes(len);
    number * bytes..len.min(number.saturating_add(1).saturating_mul(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_all_bytes_and_not_many() {
        for len in [1, RANGE_BYTES, RANGE_BYTES + 1, 3 << 30, (1 << 40) + 5, u64::MAX] {
            let count = len.div_ceil(range_bytes(len));
            assert!((1..=MOST_RANGES).contains(&count), "{count} of {len}");
            let ends = (0..count).map(|number| range(len, number));
            let end = ends.fold(0, |end, range| {
                assert!(range.start == end && range.end > end, "{range:?} of {len}");
                range.end
            });
            assert_eq!(end, len);
        }
    }
}
