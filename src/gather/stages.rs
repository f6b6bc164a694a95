//! Reading ahead of rows in stages.
//!
//! A stage is some rows after each other that lie, in any order, in a few ranges of a source, which fit a
//! share of the memory. While the rows of one stage are copied, the ranges of the next are read, as far as
//! the rows are; those of stages that are over are let go. So each byte is read from the disk once, in
//! long stretches. Nothing here can fail or change a byte.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::source::{Advice, Source};

/// What is asked for in one call, in bytes.
const CHUNK: u64 = 1 << 20;

/// The ranges of a stage, by its number.
type StageRanges = Box<dyn Fn(usize) -> Vec<Range<u64>> + Send + Sync>;

/// Where stages begin and what they need, and how far that was asked for.
pub(super) struct Stages {
    /// The first row of each stage, none of which is empty, and behind the last one.
    first_rows: Vec<u64>,
    ranges: StageRanges,
    asked: Mutex<Asked>,
    /// So many stages were asked for in full.
    whole: AtomicUsize,
}

/// How far stages were asked for, and let go.
#[derive(Default)]
struct Asked {
    /// The number of the stage, and what is left of it, the first range last.
    stage: usize,
    left: Vec<Range<u64>>,
    /// The bytes of all its ranges, and of those asked for.
    bytes: u64,
    done: u64,
    /// So many stages were let go.
    gone: usize,
}

impl Stages {
    /// Stages that begin at these rows, the last of which is behind all; `ranges` says what each needs.
    pub(super) fn new(
        first_rows: Vec<u64>,
        ranges: impl Fn(usize) -> Vec<Range<u64>> + Send + Sync + 'static,
    ) -> Stages {
        let (ranges, asked, whole) = (Box::new(ranges), Mutex::default(), AtomicUsize::new(0));
        let stages = Stages { first_rows, ranges, asked, whole };
        stages.begin(&mut stages.asked(), 0);
        stages
    }

    /// Called before rows from `row` on are copied.
    pub(super) fn before(&self, row: u64, source: &dyn Source) {
        let stage = self.first_rows.partition_point(|&first| first <= row).saturating_sub(1);
        let Some(&[first, end]) =
            self.first_rows.get(stage..stage + 2).and_then(|it| it.first_chunk())
        else {
            return;
        };
        // what this row needs must be on its way; what is ahead of it one worker asks for
        let asked = match self.whole.load(Ordering::Acquire) > stage {
            true => self.asked.try_lock().ok(),
            false => Some(self.asked()),
        };
        let Some(mut asked) = asked else { return };
        let part = |bytes: u64| {
            (u128::from(bytes) * u128::from(row - first) / u128::from(end - first)) as u64
        };
        while asked.stage <= stage || asked.stage == stage + 1 && asked.done < part(asked.bytes) {
            if !self.ask(&mut asked, source) {
                break;
            }
        }
        // a worker that is still at the last rows of an earlier stage brings their pages back
        if part(4) > 0 {
            while asked.gone < stage {
                (self.ranges)(asked.gone)
                    .into_iter()
                    .for_each(|it| source.advise(it, Advice::Evict));
                asked.gone += 1;
            }
        }
    }

    /// Ask for what comes next; false where nothing is left.
    fn ask(&self, asked: &mut Asked, source: &dyn Source) -> bool {
        let Some(range) = asked.left.pop() else {
            let next = asked.stage + 1;
            if next < self.first_rows.len() {
                self.begin(asked, next);
                self.whole.store(next, Ordering::Release);
            }
            return next + 1 < self.first_rows.len();
        };
        let end = range.end.min(range.start.saturating_add(CHUNK));
        source.advise(range.start..end, Advice::WillNeed);
        asked.done += end - range.start;
        if end < range.end {
            asked.left.push(end..range.end);
        }
        true
    }

    /// Begin with a stage, if there is one of that number.
    fn begin(&self, asked: &mut Asked, stage: usize) {
        let is_one = stage + 1 < self.first_rows.len();
        let mut left = if is_one { (self.ranges)(stage) } else { Vec::new() };
        left.retain(|range| !range.is_empty());
        left.reverse();
        let bytes = left.iter().map(|range| range.end - range.start).sum();
        *asked = Asked { stage, left, bytes, done: 0, gone: asked.gone };
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::SourceError;

    /// A source that notes what it is told.
    #[derive(Default)]
    struct Told(Mutex<Vec<(Advice, Range<u64>)>>);

    impl Source for Told {
        fn len(&self) -> u64 {
            u64::MAX
        }

        fn window<'a>(
            &'a self,
            _: Range<u64>,
            _: &'a mut Vec<u8>,
        ) -> Result<&'a [u8], SourceError> {
            Err(SourceError::Truncated)
        }

        fn advise(&self, range: Range<u64>, advice: Advice) {
            self.0.lock().unwrap().push((advice, range));
        }
    }

    #[test]
    fn each_range_is_asked_for_once_in_time_and_let_go() {
        let ranges = |stage: usize| {
            let start = stage as u64 * 10 * CHUNK;
            vec![start..start + 3 * CHUNK, start..start, start + 5 * CHUNK..start + 8 * CHUNK + 1]
        };
        let (stages, told) = (Stages::new(vec![0, 100, 101, 300], ranges), Told::default());
        let asked = |advice: Advice| {
            let told = told.0.lock().unwrap();
            let ranges = told.iter().filter(|(it, _)| *it == advice);
            ranges.map(|(_, range)| range.clone()).collect::<Vec<_>>()
        };
        let mut before = 0;
        for row in 0..300 {
            stages.before(row, &told);
            let ranges = asked(Advice::WillNeed);
            assert!(ranges.is_sorted_by(|a, b| a.end <= b.start), "{ranges:?}");
            let done: u64 = ranges.iter().map(|range| range.end - range.start).sum();
            let each = 6 * CHUNK + 1;
            // all of its own stage, and as much of the next one
            let (own, next) = match row {
                0..100 => (1, each * row / 100),
                100 => (2, 0),
                _ => (3, 0),
            };
            assert!(
                done >= own * each + next && done <= own * each + next + CHUNK,
                "{row}: {done}"
            );
            assert!(done >= before);
            before = done;
        }
        assert_eq!(asked(Advice::Evict), [ranges(0), ranges(1)].concat());
    }
}
