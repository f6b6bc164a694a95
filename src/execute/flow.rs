//! The flow of a job that does not fit in memory: the input is read ahead of the workers and dropped behind them, and
//! the output is written to the disk as it grows.
//!
//! Two threads help the workers. The reader requests the input of each [`Panel`](crate::plan::Panel), in the order of
//! the file, and waits until earlier panels are packed and their memory is free. The writer sends written pieces to
//! the disk, and drops their pages from memory when they are there. So the kernel need not choose what to drop, often
//! what is needed next, and nobody waits for a whole memory of unwritten bytes.
//!
//! Ranges of a map are read in large pages, with gaps up to such a page between them (`Advice::Load`): single pages
//! cost a processor more than they cost a fast disk. A page that a row of the output shares with a row written and
//! dropped long before is read ahead too (`Sink::expect`): a worker would wait for each.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::fill::visit_ranges;
use super::{JobPieces, Transfer};
use crate::runs::{Runs, dense_bytes};
use crate::sink::{Sink, SinkError};
use crate::source::{Advice, PAGE};

/// The number of helper threads of a flow.
pub(super) const HELPERS: usize = 2;

/// The fraction (1 / 10) of the room that written bytes may take before they are sent to the disk, and again while they
/// are sent.
const UNWRITTEN_PART: u64 = 10;

/// The fraction of the room that is sent to the disk together: consecutive pieces of the output become one request.
const TOGETHER_PART: u64 = 32;

/// The fraction of the room that the workers' buffers may take in addition. More workers would push the input out of
/// memory.
const BUFFERS_PART: u64 = 8;

/// The bytes of a panel that are requested at a time: its beginning, where there is no room for the whole panel yet.
const STEP: u64 = 32 << 20;

pub(super) struct Flow<'a> {
    job: &'a JobPieces<'a>,
    sink: &'a dyn Sink,
    /// The memory for the input of panels, in bytes.
    room: u64,
    joined: AtomicUsize,
    state: Mutex<FlowState>,
    /// Wakes the helpers: pieces were written.
    written: Condvar,
    /// Wakes the workers: more input is ready, or output is on its way. So a piece wakes two threads, not all.
    moved: Condvar,
}

#[derive(Default)]
struct FlowState {
    /// The number of the first piece whose input was not requested yet.
    ready: u64,
    /// Requested panels, in order; and panels whose pieces are all written.
    open: VecDeque<OpenPanel>,
    spent: Vec<OpenPanel>,
    /// The bytes of input in memory.
    held: u64,
    /// Written pieces that are not on their way to the disk, and their bytes.
    written: Vec<WrittenPiece>,
    unwritten: u64,
    done: u64,
    is_over: bool,
}

struct OpenPanel {
    transfer: usize,
    pieces: Range<u64>,
    left: u64,
    input: Vec<Runs>,
    bytes: u64,
}

struct WrittenPiece {
    number: u64,
    rows: Runs,
    at: u64,
}

impl<'a> Flow<'a> {
    /// A flow at its beginning; `None` where no transfer has panels.
    pub(super) fn new(job: &'a JobPieces<'a>, sink: &'a dyn Sink) -> Option<Flow<'a>> {
        let rooms = job.transfers.iter().filter_map(|it| Some(it.pieces.panel(0)?.room));
        let room = rooms.max()?;
        Some(Flow {
            job,
            sink,
            room,
            joined: AtomicUsize::new(0),
            state: Mutex::default(),
            written: Condvar::new(),
            moved: Condvar::new(),
        })
    }

    /// The number of workers whose two buffers each fit in memory; at least two.
    pub(super) fn most_workers(&self) -> usize {
        let filled = self.job.transfers.iter().filter(|transfer| transfer.pieces.count() > 0);
        let longest = filled.map(|transfer| transfer.pieces.output(0).bytes()).max().unwrap_or(0);
        let most = self.room / BUFFERS_PART / (2 * longest).max(1);
        usize::try_from(most).unwrap_or(usize::MAX).max(2)
    }

    /// Take a number as a thread of the flow: 0 reads ahead, 1 writes behind, the others work.
    pub(super) fn join(&self) -> usize {
        self.joined.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn read_ahead(&self) {
        let mut next = 0;
        let JobPieces { transfers, starts, count } = self.job;
        while next < *count {
            let (transfer, local) = self.job.find(next);
            let Transfer { source, pieces, .. } = &transfers[transfer];
            let Some(panel) = pieces.panel(local) else {
                // pieces without a panel are read when they are packed
                next = starts.get(transfer + 1).map_or(*count, |&start| start);
                self.state().ready = next;
                self.moved.notify_all();
                continue;
            };
            let pieces = next..next + panel.pieces.max(1);
            let loaded = source.load_unit().and_then(|unit| merged(&panel.input, unit, self.room));
            let (input, advice) = match loaded {
                Some(ranges) => (ranges, Advice::Load),
                None => (panel.input, Advice::WillNeed),
            };
            let mut is_over = false;
            ranges(&input, &mut |range| {
                for start in range.clone().step_by(STEP as usize) {
                    let step = start..range.end.min(start + STEP);
                    is_over = is_over || !self.make_room(step.end - step.start);
                    if !is_over {
                        source.advise(step, advice);
                    }
                }
            });
            if is_over {
                return;
            }
            self.expect_row_ends(pieces.clone());
            let bytes = input.iter().map(Runs::bytes).sum();
            next = pieces.end;
            let left = pieces.end - pieces.start;
            let mut state = self.state();
            state.open.push_back(OpenPanel { transfer, pieces, left, input, bytes });
            state.ready = next;
            drop(state);
            self.moved.notify_all();
        }
    }

    /// Read again the pages that a row of the output shares with the next row, which may have been written and
    /// dropped long before: the writers would wait for each such page.
    fn expect_row_ends(&self, pieces: Range<u64>) {
        for number in pieces {
            let (transfer, local) = self.job.find(number);
            let Transfer { pieces, at, .. } = &self.job.transfers[transfer];
            let rows = pieces.output(local);
            if rows.axes.is_empty() {
                return;
            }
            for start in rows.starts() {
                let end = at + start as u64 + rows.run;
                if !end.is_multiple_of(PAGE) {
                    self.sink.expect(end..end + 1);
                }
            }
        }
    }

    /// Wait until there is memory for `bytes` more bytes of input; returns false where the job is over.
    fn make_room(&self, bytes: u64) -> bool {
        let mut state = self.state();
        loop {
            for OpenPanel { transfer, input, bytes, .. } in std::mem::take(&mut state.spent) {
                drop(state);
                let source = self.job.transfers[transfer].source;
                ranges(&input, &mut |range| source.advise(range, Advice::Evict));
                state = self.state();
                state.held -= bytes;
            }
            if state.is_over {
                return false;
            }
            // only panels whose pieces are written free memory
            if state.open.is_empty() || state.held.saturating_add(bytes) <= self.room {
                state.held += bytes;
                return true;
            }
            if state.spent.is_empty() {
                state = wait(&self.written, state);
            }
        }
    }

    /// Send written pieces to the disk, and drop them from memory.
    pub(super) fn write_behind(&self) -> Result<(), (u64, SinkError)> {
        let mut begun = VecDeque::new();
        let mut bytes = 0;
        loop {
            let mut state = self.state();
            while !state.is_over && state.unwritten <= self.room / TOGETHER_PART {
                state = wait(&self.written, state);
            }
            if state.is_over {
                return Ok(());
            }
            let written = std::mem::take(&mut state.written);
            state.unwritten = 0;
            drop(state);
            self.moved.notify_all();
            // an error of any of these pieces is reported for the first one
            let number = written.iter().map(|piece| piece.number).min().unwrap_or(0);
            let settle = |range: &Range<u64>, wait| {
                let settled = self.sink.settle(range.clone(), wait);
                settled.map_err(|error| (number, error))
            };
            for range in joined(&written) {
                settle(&range, false)?;
                bytes += range.end - range.start;
                begun.push_back(range);
            }
            while bytes > self.room / UNWRITTEN_PART
                && let Some(first) = begun.pop_front()
            {
                settle(&first, true)?;
                bytes -= first.end - first.start;
            }
        }
    }

    pub(super) fn is_ready(&self, number: u64) -> bool {
        let state = self.state();
        number < state.ready || state.is_over
    }

    pub(super) fn wait_for(&self, number: u64) {
        let mut state = self.state();
        while number >= state.ready && !state.is_over {
            state = wait(&self.moved, state);
        }
    }

    /// Note that the rows of piece `number` are written, for an output at offset `at` of the sink. Waits where too
    /// many bytes are not on their way to the disk.
    pub(super) fn wrote(&self, number: u64, rows: Runs, at: u64) {
        let mut state = self.state();
        state.done += 1;
        state.is_over |= state.done == self.job.count;
        state.unwritten += rows.bytes();
        state.written.push(WrittenPiece { number, rows, at });
        if let Some(at) = state.open.iter().position(|open| open.pieces.contains(&number)) {
            state.open[at].left -= 1;
            if state.open[at].left == 0 {
                let spent = state.open.remove(at);
                state.spent.extend(spent);
            }
        }
        self.written.notify_all();
        if state.is_over {
            self.moved.notify_all();
        }
        while state.unwritten > self.room / UNWRITTEN_PART && !state.is_over {
            state = wait(&self.moved, state);
        }
    }

    /// End reading and writing: a piece failed.
    pub(super) fn end(&self) {
        self.state().is_over = true;
        self.written.notify_all();
        self.moved.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, FlowState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wait<'s>(changed: &Condvar, state: MutexGuard<'s, FlowState>) -> MutexGuard<'s, FlowState> {
    changed.wait(state).unwrap_or_else(PoisonError::into_inner)
}

fn joined(written: &[WrittenPiece]) -> Vec<Range<u64>> {
    let mut all: Vec<Range<u64>> = Vec::new();
    for WrittenPiece { rows, at, .. } in written {
        let rows = rows.starts().map(|start| at + start as u64..at + start as u64 + rows.run);
        all.extend(rows);
    }
    merge(all, 1)
}

fn merge(mut ranges: Vec<Range<u64>>, unit: u64) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, range| {
        let is_near = next.start < range.end + unit;
        if is_near {
            range.end = range.end.max(next.end);
        }
        is_near
    });
    ranges
}

/// The most ranges of a panel that are merged.
const RANGES: u64 = 1 << 17;

/// The ranges of a panel; ranges less than `unit` bytes apart are merged. `None` where the gaps make single requests
/// faster, or exceed the room.
fn merged(input: &[Runs], unit: u64, room: u64) -> Option<Vec<Runs>> {
    let count: u64 = input.iter().map(|runs| dense_bytes(&runs.axes, 1)).sum();
    if count > RANGES {
        return None;
    }
    let mut all = Vec::with_capacity(count as usize);
    ranges(input, &mut |range| all.push(range));
    let needed: u64 = all.iter().map(|range| range.end - range.start).sum();
    let merged = merge(all, unit).into_iter();
    let merged: Vec<Runs> =
        merged.map(|range| Runs::contiguous(range.start, range.end - range.start)).collect();
    let read: u64 = merged.iter().map(Runs::bytes).sum();
    let units = (merged.len() as u64).saturating_sub(2) * unit;
    (read <= room && read + units <= needed * 2).then_some(merged)
}

fn ranges(runs: &[Runs], visit: &mut dyn FnMut(Range<u64>)) {
    runs.iter().for_each(|runs| visit_ranges(runs, visit));
}

#[cfg(test)]
mod tests {
    use super::super::{Conversion, ExecuteError, Pieces, Progress, Workers, run};
    use super::*;
    use crate::plan::{Plan, Tiling};
    use crate::runs::Axis;
    use crate::sink::WriteOrder;
    use crate::source::{Source, SourceError};

    /// A source of bytes that counts the bytes in memory.
    struct Watched {
        bytes: Vec<u8>,
        /// The bytes that are requested and not dropped, the maximum of this number, and all requested bytes.
        held: Mutex<[u64; 3]>,
        unit: Option<u64>,
    }

    impl Source for Watched {
        fn len(&self) -> u64 {
            self.bytes.len() as u64
        }

        fn window<'a>(
            &'a self,
            range: Range<u64>,
            _: &'a mut Vec<u8>,
        ) -> Result<&'a [u8], SourceError> {
            Ok(&self.bytes[range.start as usize..range.end as usize])
        }

        fn load_unit(&self) -> Option<u64> {
            self.unit
        }

        fn advise(&self, range: Range<u64>, advice: Advice) {
            let bytes = range.end - range.start;
            let mut held = self.held.lock().unwrap();
            match advice {
                Advice::WillNeed | Advice::Load => {
                    assert!(advice == Advice::WillNeed || self.unit.is_some());
                    let now = held[0] + bytes;
                    *held = [now, held[1].max(now), held[2] + bytes];
                }
                Advice::Evict => held[0] -= bytes,
                _ => {}
            }
        }
    }

    /// An output that counts the bytes sent to the disk, and fails on demand.
    struct Kept {
        bytes: Mutex<Vec<u8>>,
        settled: Mutex<[u64; 2]>,
        /// Offsets of pages that are expected to be written in part.
        expected: Mutex<Vec<u64>>,
        order: WriteOrder,
        fails: Option<fn() -> SinkError>,
    }

    impl Sink for Kept {
        fn order(&self) -> WriteOrder {
            self.order
        }

        fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
            let mut all = self.bytes.lock().unwrap();
            all[offset as usize..][..bytes.len()].copy_from_slice(bytes);
            Ok(())
        }

        fn settle(&self, range: Range<u64>, wait: bool) -> Result<(), SinkError> {
            if let Some(error) = self.fails {
                return Err(error());
            }
            self.settled.lock().unwrap()[usize::from(wait)] += range.end - range.start;
            Ok(())
        }

        fn expect(&self, range: Range<u64>) {
            self.expected.lock().unwrap().push(range.start);
        }
    }

    /// Copy a matrix of 4-byte items, transposed or with every other column, with panels in `room` bytes.
    fn copy(
        axes: Vec<Axis>,
        room: u64,
        threads: usize,
        sink: impl Fn(u64) -> Kept,
    ) -> (Watched, Kept, Plan, Result<(), ExecuteError>) {
        let first = Runs { offset: 0, axes, run: 4 };
        let runs = Runs { offset: 128 - first.byte_bounds().start, ..first };
        let end = runs.byte_bounds().end as u64;
        let bytes = (0..end).map(|at| ((at * 2_654_435_761) >> 13) as u8).collect();
        // most kinds of copies, with and without large units
        let unit = room.is_power_of_two().then_some(16 << 10);
        let source = Watched { bytes, held: Mutex::default(), unit };
        let tiling = Tiling { panel_bytes: Some(room), ..Tiling::MAPPED };
        let plan = Plan::tiled(&runs, 1, tiling);
        let sink = sink(plan.bytes());
        let transfer =
            Transfer { source: &source, pieces: &plan, conversion: Conversion::None, at: 0 };
        let workers = Workers::new(threads);
        let outcome = run(&[transfer], &sink, &workers, &Progress::default());
        (source, sink, plan, outcome)
    }

    fn sink(order: WriteOrder, fails: Option<fn() -> SinkError>) -> impl Fn(u64) -> Kept {
        move |len| Kept {
            bytes: Mutex::new(vec![0; len as usize]),
            settled: Mutex::default(),
            expected: Mutex::default(),
            order,
            fails,
        }
    }

    fn axes(list: [(u64, i64); 2]) -> Vec<Axis> {
        list.map(|(len, stride)| Axis { len, stride }).to_vec()
    }

    #[test]
    fn panels_are_read_once_and_let_go() {
        let transposed = axes([(1024, 4), (900, 4096)]);
        let skipping = axes([(900, -(24 << 10)), (1024, 8)]);
        for axes in [transposed, skipping] {
            for (threads, room) in [(1, 1 << 20), (2, 512 << 10), (4, 3 << 20), (4, 64 << 20)] {
                let any = sink(WriteOrder::Any, None);
                let (source, sink, plan, outcome) = copy(axes.clone(), room, threads, any);
                outcome.unwrap();
                let [_, most, all] = *source.held.lock().unwrap();
                assert!(most <= room, "{most} of {room}");
                assert!(all >= plan.bytes() && all < plan.bytes() * 21 / 10, "{all}");
                let settled = *sink.settled.lock().unwrap();
                assert!(settled[1] <= settled[0] && settled[0] <= plan.bytes());
                if room < 1 << 20 {
                    assert!(settled[1] > plan.bytes() / 2, "{settled:?}");
                }
                // the ends of all rows of boxes that share a page with the next row
                let pieces = (0..plan.pieces()).map(|number| plan.piece(number).output);
                let boxes = pieces.filter(|rows| !rows.axes.is_empty());
                let ends = boxes.flat_map(|rows| {
                    rows.starts().map(move |at| at as u64 + rows.run).collect::<Vec<_>>()
                });
                let mut ends: Vec<u64> = ends.filter(|end| end % PAGE != 0).collect();
                let mut waited_for = sink.expected.into_inner().unwrap();
                ends.sort_unstable();
                waited_for.sort_unstable();
                assert!(waited_for == ends);
                let starts: Vec<i64> = plan.input().starts().collect();
                let run = plan.input().run as usize;
                let expected: Vec<u8> = starts
                    .iter()
                    .flat_map(|at| source.bytes[*at as usize..][..run].iter().copied())
                    .collect();
                assert!(sink.bytes.into_inner().unwrap() == expected);
            }
        }
    }

    #[test]
    fn ranges_are_merged_where_little_lies_between_them() {
        let runs = |len, stride| Runs { offset: 100, axes: vec![Axis { len, stride }], run: 1000 };
        assert_eq!(
            merged(&[runs(50, 1900)], 4096, 1 << 20),
            Some(vec![Runs::contiguous(100, 49 * 1900 + 1000)])
        );
        assert_eq!(merged(&[runs(50, 4000)], 4096, 1 << 20), None);
        // few ranges, in any order, each read as a unit
        let apart = [Runs::contiguous(90_000, 8192), Runs::contiguous(0, 8192)];
        assert_eq!(
            merged(&apart, 4096, 1 << 20),
            Some([1, 0].map(|at: usize| apart[at].clone()).to_vec())
        );
        // more than the room
        assert_eq!(merged(&[runs(50, 1900)], 4096, 90_000), None);
        assert_eq!(merged(&[runs(RANGES + 1, 1900)], 4096, 1 << 20), None);
    }

    #[test]
    fn outputs_in_order_have_panels_too() {
        let ascending = sink(WriteOrder::Ascending, None);
        let (.., outcome) = copy(axes([(900, -(24 << 10)), (1024, 8)]), 1 << 20, 3, ascending);
        outcome.unwrap();
    }

    #[test]
    fn what_cannot_be_brought_to_the_disk_ends_the_job() {
        for threads in [1, 4] {
            let failing = sink(WriteOrder::Any, Some(|| SinkError::Truncated));
            let (.., outcome) = copy(axes([(1024, 4), (900, 4096)]), 1 << 20, threads, failing);
            assert!(matches!(outcome, Err(ExecuteError::Sink(SinkError::Truncated))));
        }
    }

    #[test]
    fn who_panics_behind_the_workers_ends_the_job() {
        let panics = sink(WriteOrder::Any, Some(|| panic!("a test")));
        let (.., outcome) = copy(axes([(1024, 4), (900, 4096)]), 1 << 20, 2, panics);
        assert!(matches!(outcome, Err(ExecuteError::Panicked)));
    }

    #[test]
    fn pieces_without_panels_need_none() {
        let runs = Runs { offset: 0, axes: axes([(1024, 4), (64, 4096)]), run: 4 };
        assert!(Pieces::panel(&Plan::tiled(&runs, 1, Tiling::MAPPED), 0).is_none());
    }
}
