//! Execution of a job: workers take pieces by number from one counter until none is left.
//!
//! The counter keeps the workers near each other, so that the input is read, and the output grows, roughly from
//! beginning to end. Where the sink takes bytes only in order, each worker holds its packed buffer until its
//! piece's turn: memory stays at one buffer a worker, and packing overlaps writing.
//!
//! **Which error is reported.** The error of the piece with the lowest number. Numbers are handed out in order, so
//! when a piece fails, all earlier pieces are taken already; they are finished, and an error among them takes
//! precedence. A panic is a failure of its piece: no worker waits for a turn that never comes.
//!
//! A file takes one write at a time: a worker that has packed a box, which needs many writes, packs one more while
//! another worker writes. A plain range that is not in memory has at least eight workers, most of which wait for
//! the disk. Jobs of less than 2 MiB run on the calling thread, since starting a pool takes longer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use super::convert::{prepare_rows, write_rows};
use super::feed::Feed;
use super::fill::{Buffer, PieceOffsets};
use super::flow::{Flow, HELPERS};
use super::{
    Conversion, ExecuteError, FillError, JobPieces, POOL_BYTES, Pieces, Progress, ReadFrom,
    Transfer, share,
};
use crate::runs::Runs;
use crate::sink::{Sink, SinkError, WriteOrder};
use crate::source::{Advice, Source};

/// The most packed pieces of a worker that wait to be written.
const WAITING: usize = 2;

/// The fewest workers where the input is not in memory: most wait for the disk while others write.
const COLD: usize = 8;

/// Run every transfer of a job. After an error the output is incomplete: drop the sink. Where a sink takes bytes in
/// order, transfers must be in the order of the output, without a gap.
pub fn run(
    transfers: &[Transfer<'_>],
    sink: &dyn Sink,
    workers: &Workers,
    progress: &Progress,
) -> Result<(), ExecuteError> {
    for transfer in transfers {
        if let Some(range) = transfer.pieces.sparse_range() {
            transfer.source.advise(range, Advice::Random);
        }
    }
    if transfers.iter().any(|transfer| transfer.source.has_holes()) {
        sink.keep_holes();
    }
    let mut shared = Vec::with_capacity(transfers.len());
    for (index, transfer) in transfers.iter().enumerate() {
        shared.push(share(index, transfer, sink, progress)?);
    }
    let job = &JobPieces::new(transfers, &shared);
    let copied = transfers.iter().zip(&shared).filter(|(_, shared)| !**shared);
    let copied = copied.map(|(transfer, _)| transfer);
    let work: u64 = copied.clone().map(|transfer| transfer.pieces.work()).sum();
    let feed = Feed::new(job);
    let small = job.count <= 1 || work < POOL_BYTES;
    // small jobs don't ask for the number of cores, which takes longer than the job
    let flow = if small { None } else { Flow::new(job, sink) };
    let count = match workers.asked {
        _ if small => 1,
        0 if flow.is_none() && wait_for_disk(copied) => COLD.max(workers.count()),
        _ => workers.count(),
    };
    let count = count.min(usize::try_from(job.count).unwrap_or(usize::MAX));
    let count = flow.as_ref().map_or(count, |flow| count.min(flow.most_workers()));
    let run = Run {
        job,
        sink,
        progress,
        feed: feed.as_ref(),
        flow: flow.as_ref(),
        next: AtomicU64::new(0),
        writers: AtomicU64::new(0),
        outcome: Mutex::default(),
        turns: (0..count).map(|_| Condvar::new()).collect(),
    };
    run.run(workers, count)
}

/// Run a job that writes nothing: `look` at each piece number of `0..count`; all together read about `bytes` bytes
/// of the source.
pub(crate) fn look(
    source: &dyn Source,
    count: u64,
    bytes: u64,
    workers: &Workers,
    look: impl Fn(u64, &mut ReadFrom<'_>) -> Result<(), FillError> + Sync,
) -> Result<(), ExecuteError> {
    let pieces = &Looks { count, bytes, look };
    let transfer = Transfer { source, pieces, conversion: Conversion::None, at: 0 };
    run(&[transfer], &NullSink, workers, &Progress::default())
}

struct Looks<F> {
    count: u64,
    bytes: u64,
    look: F,
}

impl<F: Fn(u64, &mut ReadFrom<'_>) -> Result<(), FillError> + Sync> Pieces for Looks<F> {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn output(&self, _number: u64) -> Runs {
        Runs::contiguous(0, 0)
    }

    fn fill(&self, number: u64, from: &mut ReadFrom<'_>, _: &mut [u8]) -> Result<(), FillError> {
        (self.look)(number, from)
    }
}

/// A sink that discards its bytes, like `/dev/null`.
pub(crate) struct NullSink;

impl Sink for NullSink {
    fn write_at(&self, _offset: u64, _bytes: &[u8]) -> Result<(), SinkError> {
        Ok(())
    }
}

/// Whether a transfer waits for the disk, and the others do too or are plain ranges. Other pieces may be long, and
/// each worker holds one.
fn wait_for_disk<'a>(copied: impl Iterator<Item = &'a Transfer<'a>>) -> bool {
    let mut some = false;
    for Transfer { source, pieces, .. } in copied {
        let waits = pieces.waits_for_disk(*source);
        if !waits && pieces.range().is_none() {
            return false;
        }
        some |= waits;
    }
    some
}

struct Run<'a> {
    job: &'a JobPieces<'a>,
    sink: &'a dyn Sink,
    progress: &'a Progress,
    feed: Option<&'a Feed<'a>>,
    flow: Option<&'a Flow<'a>>,
    next: AtomicU64,
    writers: AtomicU64,
    outcome: Mutex<Outcome>,
    /// One condition for each worker: waiting workers have consecutive numbers, so that a turn wakes only its
    /// worker.
    turns: Vec<Condvar>,
}

#[derive(Default)]
struct Worker {
    /// Packed pieces to be written, in the order of their numbers.
    packed: Vec<Packed>,
    spare: Vec<Buffer>,
    /// A buffer for the reads of a piece.
    scratch: Vec<u8>,
}

/// A piece in the form of the output.
struct Packed {
    number: u64,
    bytes: Buffer,
    /// The rows, as offsets from the beginning of the transfer's output.
    rows: Runs,
    /// The offset of the transfer's output in the sink.
    at: u64,
}

/// The progress of an output in order, and the error of the first piece that failed.
#[derive(Default)]
struct Outcome {
    /// The number of the piece to be written next, where the order matters.
    turn: u64,
    error: Option<(u64, ExecuteError)>,
}

impl Run<'_> {
    fn run(self, workers: &Workers, count: usize) -> Result<(), ExecuteError> {
        let threads = count + self.flow.map_or(0, |_| HELPERS);
        if threads <= 1 {
            self.work();
        } else {
            let started = workers.broadcast(threads, || self.take_part());
            started
                .map_err(|error| ExecuteError::Threads { threads, message: error.to_string() })?;
        }
        let outcome = self.outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
        outcome.error.map_or(Ok(()), |(_, error)| Err(error))
    }

    fn work(&self) {
        let mut worker = Worker::default();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let is_over = number >= self.job.count;
            // a panic is an error too, or the workers that wait for this piece would wait forever
            let step = AssertUnwindSafe(|| {
                if is_over {
                    return self.write(&mut worker);
                }
                self.feed.iter().for_each(|feed| feed.before(number));
                self.wait_for_input(number, &mut worker)?;
                self.piece(number, &mut worker)
            });
            let outcome = catch_unwind(step).unwrap_or(Err(ExecuteError::Panicked));
            if let Err(error) = outcome {
                return self.fail(number, error);
            }
            if is_over {
                return;
            }
        }
    }

    /// Work, or be a helper of the flow: read ahead of the workers, or write to the disk behind them.
    fn take_part(&self) {
        let Some(flow) = self.flow else { return self.work() };
        let part = AssertUnwindSafe(|| match flow.join() {
            0 => flow.read_ahead(),
            1 => {
                if let Err((number, error)) = flow.write_behind() {
                    self.fail(number, error.into());
                }
            }
            _ => self.work(),
        });
        // otherwise the workers would wait forever for this helper
        if catch_unwind(part).is_err() {
            self.fail(0, ExecuteError::Panicked);
        }
    }

    /// End the job with the error of a piece. Earlier pieces are taken already, and may still report an error.
    fn fail(&self, number: u64, error: ExecuteError) {
        self.next.store(self.job.count, Ordering::Relaxed);
        let mut outcome = self.outcome();
        if outcome.error.as_ref().is_none_or(|(first, _)| number < *first) {
            outcome.error = Some((number, error));
        }
        drop(outcome);
        self.turns.iter().for_each(Condvar::notify_all);
        self.flow.iter().for_each(|flow| flow.end());
    }

    /// Wait until the input of a piece is on its way. The worker writes its packed pieces before, as the panel may
    /// wait for them.
    fn wait_for_input(&self, number: u64, worker: &mut Worker) -> Result<(), ExecuteError> {
        match self.flow {
            Some(flow) if !flow.is_ready(number) => {
                self.write(worker)?;
                flow.wait_for(number);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Pack a piece, and write it, now or with the next one.
    fn piece(&self, number: u64, worker: &mut Worker) -> Result<(), ExecuteError> {
        self.pack(number, worker)?;
        if self.sink.order() == WriteOrder::Ascending {
            return self.write_in_turn(number, worker);
        }
        // A file takes one write at a time. A piece of several rows needs many writes: better pack another piece
        // than wait for another worker between them.
        let is_box = worker.packed.last().is_some_and(|piece| !piece.rows.axes.is_empty());
        let is_busy = self.writers.load(Ordering::Relaxed) > 0;
        if is_box && is_busy && worker.packed.len() < WAITING {
            return Ok(());
        }
        self.writers.fetch_add(1, Ordering::Relaxed);
        let outcome = self.write(worker);
        self.writers.fetch_sub(1, Ordering::Relaxed);
        outcome
    }

    fn pack(&self, number: u64, worker: &mut Worker) -> Result<(), ExecuteError> {
        let Worker { packed, spare, scratch } = worker;
        let (index, local) = self.job.find(number);
        let transfer = &self.job.transfers[index];
        let rows = transfer.pieces.output(local);
        let Transfer { source, pieces, conversion, at } = transfer;
        let offsets =
            PieceOffsets { read: transfer.file_offset(&rows), written: at + rows.offset as u64 };
        let failed = |error| ExecuteError::Fill { transfer: index, error };
        let owned = if rows.bytes() > 0 { pieces.owned(local, *source) } else { Ok(None) };
        let bytes = match owned.map_err(failed)? {
            Some(owned) => Buffer::lent(owned, offsets, spare),
            None => {
                let mut bytes = Buffer::take(spare, rows.bytes() as usize, offsets);
                let from = &mut ReadFrom { source: *source, scratch };
                pieces.fill(local, from, &mut bytes).map_err(failed)?;
                bytes
            }
        };
        let (bytes, rows) = conversion.apply(bytes, rows, *at, spare);
        packed.push(Packed { number, bytes, rows, at: *at });
        Ok(())
    }

    /// Write the packed piece after all earlier pieces.
    fn write_in_turn(&self, number: u64, worker: &mut Worker) -> Result<(), ExecuteError> {
        let Some(Packed { bytes, rows, at, .. }) = worker.packed.pop() else { return Ok(()) };
        let prepared = prepare_rows(&bytes, &rows, self.sink, at);
        if !self.wait_for_turn(number) {
            return Ok(());
        }
        prepared.into_iter().try_for_each(|write| write())?;
        self.progress.add(bytes.len() as u64);
        self.flow.iter().for_each(|flow| flow.wrote(number, rows.clone(), at));
        self.outcome().turn += 1;
        self.turn_of(number + 1).notify_all();
        bytes.give_back(&mut worker.spare);
        Ok(())
    }

    fn write(&self, worker: &mut Worker) -> Result<(), ExecuteError> {
        for Packed { number, bytes, rows, at } in worker.packed.drain(..) {
            write_rows(&bytes, &rows, self.sink, at, self.progress)?;
            self.flow.iter().for_each(|flow| flow.wrote(number, rows.clone(), at));
            bytes.give_back(&mut worker.spare);
        }
        Ok(())
    }

    /// Wait until all pieces before `number` are written; returns false where an error ended the job.
    fn wait_for_turn(&self, number: u64) -> bool {
        let mut outcome = self.outcome();
        while outcome.turn != number && outcome.error.is_none() {
            outcome = self.turn_of(number).wait(outcome).unwrap_or_else(PoisonError::into_inner);
        }
        outcome.error.is_none()
    }

    fn turn_of(&self, number: u64) -> &Condvar {
        &self.turns[(number % self.turns.len() as u64) as usize]
    }

    fn outcome(&self) -> MutexGuard<'_, Outcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// The threads of a run: one pool, started when it is first needed and used by all jobs. Only this file knows rayon.
// A run has many jobs: a join copies each large input by itself, checks precede copies, pictures are painted in
// bands. Each job starts as many threads as it can use, a small job none; idle threads wait for the next job.

/// The number of threads that may work, and their pool. Clones share the pool.
///
/// Jobs that run at the same time never wait for each other's threads: the second job has its own.
///
/// ```
/// let workers = tslice::execute::Workers::new(4);
/// assert_eq!(workers.count(), 4);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Workers {
    /// The number of threads; 0 for the number of cores.
    asked: usize,
    /// The pool, while no job uses it.
    idle: Arc<Mutex<Option<ThreadPool>>>,
}

impl Workers {
    /// At most `threads` threads; 0 for the number of cores. None is started yet.
    pub fn new(threads: usize) -> Workers {
        Workers { asked: threads, idle: Arc::default() }
    }

    pub fn count(&self) -> usize {
        // the system is asked once: the call takes as long as packing a small piece
        static CORES: OnceLock<usize> = OnceLock::new();
        match self.asked {
            0 => *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from)),
            asked => asked,
        }
    }

    /// Call `work` in `count` threads at the same time, and wait for all of them.
    pub(crate) fn broadcast(
        &self,
        count: usize,
        work: impl Fn() + Sync,
    ) -> Result<(), ThreadPoolBuildError> {
        let pool = self.take(count)?;
        pool.broadcast(|thread| {
            if thread.index() < count {
                work();
            }
        });
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let threads =
            |pool: &Option<ThreadPool>| pool.as_ref().map(ThreadPool::current_num_threads);
        let pool = Some(pool);
        if threads(&idle) < threads(&pool) {
            *idle = pool;
        }
        Ok(())
    }

    /// Call `work` with each number of `0..count`, from several threads, and return the results in the order of the
    /// numbers. After an error no further numbers are begun, but all smaller ones are completed, so that the error of
    /// the smallest number is returned.
    pub(crate) fn each<T: Send, E: Send>(
        &self,
        count: usize,
        work: impl Fn(usize) -> Result<T, E> + Sync,
    ) -> Result<Vec<T>, E> {
        let next = AtomicUsize::new(0);
        let results = Mutex::new(Vec::with_capacity(count));
        let worker = || loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let result = work(number);
            if result.is_err() {
                next.store(count, Ordering::Relaxed);
            }
            results.lock().unwrap_or_else(PoisonError::into_inner).push((number, result));
        };
        let threads = self.count().min(count);
        // without more threads this one does all the work
        if threads <= 1 || self.broadcast(threads, worker).is_err() {
            worker();
        }
        let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.sort_unstable_by_key(|(number, _)| *number);
        results.into_iter().map(|(_, result)| result).collect()
    }

    /// A pool of at least `count` threads. A pool that is too small is replaced by one at least twice as large, so
    /// that few are made while jobs grow.
    fn take(&self, count: usize) -> Result<ThreadPool, ThreadPoolBuildError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
        let threads = idle.as_ref().map_or(0, ThreadPool::current_num_threads);
        match idle {
            Some(pool) if threads >= count => Ok(pool),
            small => {
                drop(small);
                let threads = count.max(self.count().min(2 * threads));
                ThreadPoolBuilder::new().num_threads(threads).build()
            }
        }
    }
}

/// Keep packages from starting a thread for each core: this program has threads of its own. Only a program may
/// decide this for its process, in its first thread.
pub fn use_own_threads_only() {
    let _ = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global();
}

impl From<usize> for Workers {
    fn from(threads: usize) -> Workers {
        Workers::new(threads)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::{Barrier, mpsc};
    use std::thread;
    use std::thread::ThreadId;
    use std::time::Duration;

    use super::*;
    use crate::source::MemorySource;

    const BYTES: u64 = 256 << 10;

    struct PanickingPieces;

    impl Pieces for PanickingPieces {
        fn bytes(&self) -> u64 {
            self.count() * BYTES
        }

        fn count(&self) -> u64 {
            64
        }

        fn output(&self, number: u64) -> Runs {
            Runs::contiguous(number * BYTES, BYTES)
        }

        fn fill(
            &self,
            number: u64,
            _from: &mut ReadFrom<'_>,
            _out: &mut [u8],
        ) -> Result<(), FillError> {
            assert_ne!(number, 3, "a bug, for this test");
            Ok(())
        }
    }

    struct Nowhere(WriteOrder);

    impl Sink for Nowhere {
        fn order(&self) -> WriteOrder {
            self.0
        }

        fn write_at(&self, _offset: u64, _bytes: &[u8]) -> Result<(), SinkError> {
            Ok(())
        }
    }

    #[test]
    fn a_panic_ends_the_job_with_an_error() {
        for order in [WriteOrder::Ascending, WriteOrder::Any] {
            for threads in [1, 2, 4] {
                let (done, outcome) = mpsc::channel();
                thread::spawn(move || {
                    let source = MemorySource(Vec::new());
                    let pieces = PanickingPieces;
                    let conversion = Conversion::None;
                    let transfer = Transfer { source: &source, pieces: &pieces, conversion, at: 0 };
                    let outcome = run(
                        &[transfer],
                        &Nowhere(order),
                        &Workers::new(threads),
                        &Progress::default(),
                    );
                    done.send(outcome)
                });
                // far longer than the job takes, so that a job that never ends fails the test
                let outcome = outcome.recv_timeout(Duration::from_secs(60)).unwrap();
                assert!(matches!(outcome, Err(ExecuteError::Panicked)), "{outcome:?}");
            }
        }
    }

    /// The threads that ran as workers of a job.
    fn threads(workers: &Workers, count: usize) -> HashSet<ThreadId> {
        let all = Barrier::new(count);
        let seen = Mutex::new(HashSet::new());
        let note = || {
            seen.lock().unwrap().insert(thread::current().id());
            // until all threads are here, so that no thread is two workers
            all.wait();
        };
        workers.broadcast(count, note).unwrap();
        seen.into_inner().unwrap()
    }

    #[test]
    fn jobs_share_threads() {
        let workers = Workers::new(4);
        let first = threads(&workers, 4);
        assert_eq!(first.len(), 4);
        for count in [4, 1, 3, 2, 4] {
            let again = threads(&workers.clone(), count);
            assert!(again.len() == count && again.is_subset(&first), "{count}");
        }
    }

    #[test]
    fn pools_grow_in_few_steps() {
        let workers = Workers::new(100);
        let mut all = HashSet::new();
        (1..=100).for_each(|count| all.extend(threads(&workers, count)));
        assert!(all.len() < 300, "{}", all.len());
    }

    #[test]
    fn a_job_inside_another_has_threads_of_its_own() {
        let workers = Workers::new(2);
        let inner = Mutex::new(0);
        let work = || *inner.lock().unwrap() += threads(&workers, 2).len();
        workers.broadcast(2, work).unwrap();
        assert_eq!(inner.into_inner().unwrap(), 4);
    }

    #[test]
    fn results_come_in_order_and_the_first_error_counts() {
        for threads in [1, 3, 200] {
            let workers = &Workers::new(threads);
            let all: Result<Vec<usize>, usize> = workers.each(100, Ok);
            assert_eq!(all, Ok((0..100).collect()));
            let failing = |number| if number % 7 == 6 { Err(number) } else { Ok(()) };
            assert_eq!(workers.each(100, failing), Err(6));
        }
        assert_eq!(Workers::new(4).each(0, Ok::<usize, ()>), Ok(vec![]));
    }
}
