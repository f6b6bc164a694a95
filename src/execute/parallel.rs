//! A job: workers that take pieces by number from one counter until none is left.
//!
//! The counter keeps the workers near each other, so that the input is read and the output grows
//! roughly from the beginning to the end. Where the sink takes bytes in order only, each worker waits for
//! its piece's turn with the packed buffer in hand: memory stays at one buffer a worker, and packing
//! overlaps writing.
//!
//! **Which error is reported.** That of the piece with the lowest number. Numbers are handed out in order,
//! so when a piece fails, all before it are taken already; they are finished, and a failure among them
//! takes precedence. A panic is a failure of its piece: no worker waits for a turn that never comes.
//!
//! A file takes one write at a time: a worker that has packed a box, which needs many, packs one more
//! while another worker writes. A plain range that is not in memory has at least eight workers, most of which
//! wait for the disk. Jobs of less than 2 MiB run on the calling thread, since starting a pool takes longer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use super::convert::{prepare_rows, write_rows};
use super::feed::Feed;
use super::fill::{Buffer, PiecePlaces};
use super::flow::{Flow, HELPERS};
use super::{Conversion, ExecuteError, FillError, POOL_BYTES, Pieces, ReadFrom, Transfer, share};
use crate::runs::Runs;
use crate::sink::{Sink, SinkError, WriteOrder};
use crate::source::{Advice, Source};

/// So many packed pieces of a worker may wait to be written.
const WAITING: usize = 2;

/// The fewest workers where the input is not in memory: most wait for the disk while others write.
const COLD: usize = 8;

/// Run every transfer of a job. On an error the output is not complete: drop the sink. Where a sink takes bytes in order, transfers must stand in the order of their places in the
/// output, without a gap.
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
    let mut pieces = 0;
    let mut starts = Vec::with_capacity(transfers.len());
    for (transfer, shared) in transfers.iter().zip(&shared) {
        starts.push(pieces);
        pieces += if *shared { 0 } else { transfer.pieces.count() };
    }
    let copied = transfers.iter().zip(&shared).filter(|(_, shared)| !**shared);
    let copied = copied.map(|(transfer, _)| transfer);
    let work: u64 = copied.clone().map(|transfer| transfer.pieces.work()).sum();
    let feed = Feed::new(transfers, &starts, pieces);
    let small = pieces <= 1 || work < POOL_BYTES;
    // small jobs don't even ask how many cores there are, which takes longer than they do
    let flow = if small { None } else { Flow::new(transfers, &starts, pieces, sink) };
    let count = match workers.asked {
        _ if small => 1,
        0 if flow.is_none() && wait_for_disk(copied) => COLD.max(workers.count()),
        _ => workers.count(),
    };
    let count = count.min(usize::try_from(pieces).unwrap_or(usize::MAX));
    let count = flow.as_ref().map_or(count, |flow| count.min(flow.most_workers()));
    let job = Run {
        transfers,
        sink,
        progress,
        starts: &starts,
        pieces,
        feed: feed.as_ref(),
        flow: flow.as_ref(),
        next: AtomicU64::new(0),
        writers: AtomicU64::new(0),
        outcome: Mutex::default(),
        turns: (0..count).map(|_| Condvar::new()).collect(),
    };
    job.run(workers, count)
}

/// Run a job that writes nothing: `look` at each of `0..count` numbers of pieces, which read about so many bytes of
/// the source in all.
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

/// A sink that takes nothing, as `/dev/null`.
pub(crate) struct NullSink;

impl Sink for NullSink {
    fn write_at(&self, _offset: u64, _bytes: &[u8]) -> Result<(), SinkError> {
        Ok(())
    }
}

/// Whether one of the transfers waits for the disk, and the others do or are ranges. Other pieces may be
/// long, and each worker holds one.
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
    transfers: &'a [Transfer<'a>],
    sink: &'a dyn Sink,
    progress: &'a Progress,
    /// The number of the first piece of each transfer, and of all pieces.
    starts: &'a [u64],
    pieces: u64,
    feed: Option<&'a Feed<'a>>,
    flow: Option<&'a Flow<'a>>,
    next: AtomicU64,
    writers: AtomicU64,
    outcome: Mutex<Outcome>,
    /// One for each worker: those that wait have numbers that follow each other, so that a turn wakes nobody but
    /// the worker whose it is.
    turns: Vec<Condvar>,
}

#[derive(Default)]
struct Worker {
    /// Pieces that are to be written, in the order of their numbers.
    packed: Vec<Packed>,
    spare: Vec<Buffer>,
    /// What must be read to pack a piece.
    scratch: Vec<u8>,
}

/// A piece as the output has it.
struct Packed {
    number: u64,
    bytes: Buffer,
    /// Where its rows go, from the beginning of the output of its transfer.
    rows: Runs,
    /// Where that begins in the sink.
    at: u64,
}

/// How far the output in order is, and the error of the first piece that met one.
#[derive(Default)]
struct Outcome {
    /// The number of the piece that is to be written next, where the order matters.
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
            let is_over = number >= self.pieces;
            // a panic is an error too, or the workers that wait for this piece would wait for ever
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

    /// Take pieces, read ahead of those who do, or bring to the disk what they have written.
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
        // or the workers would wait for ever for what is not read or written any more
        if catch_unwind(part).is_err() {
            self.fail(0, ExecuteError::Panicked);
        }
    }

    /// End the job with the error of a piece. Pieces before it have been taken already, and may yet report theirs.
    fn fail(&self, number: u64, error: ExecuteError) {
        self.next.store(self.pieces, Ordering::Relaxed);
        let mut outcome = self.outcome();
        if outcome.error.as_ref().is_none_or(|(first, _)| number < *first) {
            outcome.error = Some((number, error));
        }
        drop(outcome);
        self.turns.iter().for_each(Condvar::notify_all);
        self.flow.iter().for_each(|flow| flow.end());
    }

    /// Wait until the input of a piece is on its way. The panel may wait for what a worker has in hand.
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
        // A file takes one write at a time. A piece of several rows needs many: rather pack another
        // one than wait in between for those of another worker.
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
        let index = self.starts.partition_point(|&start| start <= number) - 1;
        let transfer = &self.transfers[index];
        let local = number - self.starts[index];
        let rows = transfer.pieces.output(local);
        let Transfer { source, pieces, conversion, at } = transfer;
        let places =
            PiecePlaces { read: transfer.file_offset(&rows), written: at + rows.offset as u64 };
        let mut bytes = Buffer::take(spare, rows.bytes() as usize, places);
        pieces
            .fill(local, &mut ReadFrom { source: *source, scratch }, &mut bytes)
            .map_err(|error| ExecuteError::Fill { transfer: index, error })?;
        let (bytes, rows) = conversion.apply(bytes, rows, *at, spare);
        packed.push(Packed { number, bytes, rows, at: *at });
        Ok(())
    }

    /// Write the piece that was packed when those before it are written.
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
        worker.spare.push(bytes);
        Ok(())
    }

    fn write(&self, worker: &mut Worker) -> Result<(), ExecuteError> {
        for Packed { number, bytes, rows, at } in worker.packed.drain(..) {
            write_rows(&bytes, &rows, self.sink, at, self.progress)?;
            self.flow.iter().for_each(|flow| flow.wrote(number, rows.clone(), at));
            worker.spare.push(bytes);
        }
        Ok(())
    }

    /// Wait until all pieces before `number` are written; false where an error ended the job.
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

// The threads of a run: one pool, made when it is first needed, kept for all that follows. Only here rayon is
// known. A run is many jobs: a join copies each large input by itself, checks come before copies, pictures are
// painted in bands. Each starts as many threads as it has use for, and a small job none; those that were started
// for one wait for the next.

/// How many threads may work, and those that do. Clones share them.
///
/// Jobs that run at the same time never wait for each other's threads: the second one has its own.
///
/// ```
/// let workers = tslice::execute::Workers::new(4);
/// assert_eq!(workers.count(), 4);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Workers {
    /// 0 stands for as many as there are cores.
    asked: usize,
    /// The pool, where no job has it.
    idle: Arc<Mutex<Option<ThreadPool>>>,
}

impl Workers {
    /// At most so many; 0 stands for as many as there are cores. None is started yet.
    pub fn new(threads: usize) -> Workers {
        Workers { asked: threads, idle: Arc::default() }
    }

    pub fn count(&self) -> usize {
        // the system is asked once, which takes as long as packing a small piece
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

    /// A pool of at least `count` threads. One that is too small at least doubles, so that few are made
    /// where jobs grow.
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

/// Keep packages from starting a thread for each core: what runs in parallel here has threads of its own. Only a
/// program may decide that for its process, in the thread that it begins with.
pub fn use_own_threads_only() {
    let _ = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global();
}

impl From<usize> for Workers {
    fn from(threads: usize) -> Workers {
        Workers::new(threads)
    }
}

/// How far a job is, to be watched from another thread.
#[derive(Debug, Default)]
pub struct Progress {
    written: AtomicU64,
    /// Bytes that are read beforehand: pipes that are kept, masks that are counted.
    pub(crate) kept: Stage,
    /// Bytes of a file that are copied, to be changed then.
    pub(crate) copied: Stage,
}

/// Something that is done before anything is written.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    done: AtomicU64,
    /// How many bytes there are; 0 while nothing is done.
    total: AtomicU64,
}

/// The bytes of a pipe that does not say how many it has.
pub(crate) const UNKNOWN: u64 = u64::MAX;

impl Progress {
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// While a pipe is read to its end, or a mask is counted: the bytes read so far, and how many there
    /// will be, where that is known.
    pub fn keeping(&self) -> Option<(u64, Option<u64>)> {
        let (done, total) = self.kept.now()?;
        Some((done, (total != UNKNOWN).then_some(total)))
    }

    /// While a file is copied, before the copy is changed: the bytes copied so far, and how many there are.
    pub fn copying(&self) -> Option<(u64, u64)> {
        self.copied.now()
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Stage {
    pub(crate) fn during<T>(&self, total: u64, work: impl FnOnce() -> T) -> T {
        let begin = |total| {
            self.done.store(0, Ordering::Relaxed);
            self.total.store(total, Ordering::Relaxed);
        };
        begin(total);
        let made = work();
        begin(0);
        made
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    fn now(&self) -> Option<(u64, u64)> {
        let total = self.total.load(Ordering::Relaxed);
        (total > 0).then(|| (self.done.load(Ordering::Relaxed), total))
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
                // far longer than it takes, so that a job that never ends fails the test
                let outcome = outcome.recv_timeout(Duration::from_secs(60)).unwrap();
                assert!(matches!(outcome, Err(ExecuteError::Panicked)), "{outcome:?}");
            }
        }
    }

    /// The threads that so many workers of a job were.
    fn threads(workers: &Workers, count: usize) -> HashSet<ThreadId> {
        let all = Barrier::new(count);
        let seen = Mutex::new(HashSet::new());
        let note = || {
            seen.lock().unwrap().insert(thread::current().id());
            // until all are there, so that no thread is two workers
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
}
