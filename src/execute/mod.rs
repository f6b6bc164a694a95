//! The executor of plans: it fills a buffer with each piece and writes it to the sink at its offset.
//!
//! There is one engine. A job is a list of [`Transfer`]s: a source, the pieces to take from it, and an offset in the
//! output. A pool of workers [runs](run) it over one counter of pieces, with one first error and one [`Progress`]. The
//! pieces are anything that implements [`Pieces`]: a strided [`Plan`], or positions to
//! gather. A [`Conversion`] changes elements on the way. A pipe is read by [`run_forward`], in the order of the
//! input.
//!
//! Every worker has its own buffer, and every piece has its own bytes in the output. The error of a job is the error of
//! its first faulty piece. So neither the written bytes nor the error depend on the number of workers.

use std::fmt;
use std::ops::Range;

use crate::plan::Panel;
#[cfg(doc)]
use crate::plan::Plan;
use crate::runs::Runs;
use crate::shape::AsList;
use crate::sink::{Sink, SinkError};
use crate::source::{Source, SourceError};

mod assign;
mod clip;
mod computed;
mod convert;
mod feed;
mod fill;
mod flow;
mod memory;
pub mod pack;
mod parallel;
mod progress;
mod relayout;

pub(crate) use assign::write_range;
pub use assign::{Assignment, StridedSink, unpack};
pub use clip::Clipped;
pub(crate) use clip::{needs_of_pieces, read_pieces};
pub use computed::Computed;
pub use convert::Conversion;
pub use fill::{WINDOW_BYTES, run_forward};
pub(crate) use fill::{dense_window, read_range, read_runs, split_first, visit_ranges};
pub(crate) use memory::{
    LONG_GATHERED_ROW, LONG_JOINED_ROW, LONG_SCATTERED_ROW, Memory, SCATTERED_COST, SHORT_PARAMS,
    room_for_panels, summaries_at_once,
};
pub use memory::{panel_bytes, tiling};
#[doc(hidden)]
pub use parallel::use_own_threads_only;
pub(crate) use parallel::{NullSink, look};
pub use parallel::{Workers, run};
pub(crate) use progress::UNKNOWN;
pub use progress::{Progress, Watcher};
pub(crate) use relayout::{TwoPasses, fill_scratch, ordered, spool_sparse, unspooled};
pub use relayout::{in_order, spool, spool_pieces};

/// One part of a job: bytes of one source, and their offset in the output.
pub struct Transfer<'a> {
    pub source: &'a dyn Source,
    pub pieces: &'a dyn Pieces,
    pub conversion: Conversion,
    /// The offset of the result in the output, in bytes.
    pub at: u64,
}

impl Transfer<'_> {
    /// The file offset of the bytes that become these rows; `None` where they are not one range of a file.
    fn file_offset(&self, rows: &Runs) -> Option<u64> {
        let range = self.pieces.range()?;
        let start = range.start + u64::try_from(rows.offset).ok()?;
        let (_, at) = self.source.file(start..start + rows.bytes())?;
        Some(at)
    }
}

/// A source, with a buffer for bytes that it cannot lend.
pub struct ReadFrom<'a> {
    pub source: &'a dyn Source,
    pub scratch: &'a mut Vec<u8>,
}

impl ReadFrom<'_> {
    /// A range of the source, as by [`Source::window`].
    pub fn window(&mut self, range: Range<u64>) -> Result<&[u8], SourceError> {
        self.source.window(range, self.scratch)
    }
}

/// A visitor of ranges of an input.
pub type VisitRange<'a> = &'a mut dyn FnMut(Range<u64>);

/// The size of jobs below which the calling thread does the work: starting a pool takes longer.
const POOL_BYTES: u64 = 2 << 20;

/// The pieces of all transfers of a job, numbered in one order.
struct JobPieces<'a> {
    transfers: &'a [Transfer<'a>],
    /// The number of the first piece of each transfer.
    starts: Vec<u64>,
    count: u64,
}

impl<'a> JobPieces<'a> {
    /// The pieces of transfers, but those that are `shared` and not copied.
    fn new(transfers: &'a [Transfer<'a>], shared: &[bool]) -> JobPieces<'a> {
        let mut count = 0;
        let mut starts = Vec::with_capacity(transfers.len());
        for (transfer, shared) in transfers.iter().zip(shared) {
            starts.push(count);
            count += if *shared { 0 } else { transfer.pieces.count() };
        }
        JobPieces { transfers, starts, count }
    }

    /// The transfer of a piece, and the number of the piece in it.
    fn find(&self, number: u64) -> (usize, u64) {
        let transfer = self.starts.partition_point(|&start| start <= number) - 1;
        (transfer, number - self.starts[transfer])
    }
}

/// A division of an output into pieces; each piece is computed from its number.
pub trait Pieces: Sync {
    fn bytes(&self) -> u64;

    fn count(&self) -> u64;

    /// The rows of piece `number` of `0..count()` in the output; pieces share no byte of it. Where the sink
    /// takes bytes in order, pieces must come in the order of the output.
    fn output(&self, number: u64) -> Runs;

    /// Fill `out` with the bytes of a piece, row after row.
    fn fill(&self, number: u64, from: &mut ReadFrom<'_>, out: &mut [u8]) -> Result<(), FillError>;

    /// The bytes of a piece in memory of their own, if they come in one: then [`fill`](Pieces::fill) would only copy
    /// them. The memory is kept for reuse afterwards.
    fn owned(&self, number: u64, source: &dyn Source) -> Result<Option<Vec<u8>>, FillError> {
        let _ = (number, source);
        Ok(None)
    }

    /// Call `visit` with the ranges of the input that a piece needs, in the order of its reads, for inputs that
    /// make requests. Ranges at most `gap` bytes apart may be joined; ranges shared with earlier pieces may be
    /// omitted. A hint: a piece without ranges is filled all the same.
    fn needs(&self, number: u64, gap: u64, visit: VisitRange<'_>) -> Result<(), FillError> {
        let _ = (number, gap, visit);
        Ok(())
    }

    /// The panel that begins with piece `number`: pieces whose input is read ahead as a whole, because not all
    /// of it fits in memory. `None` where no panel begins there.
    fn panel(&self, number: u64) -> Option<Panel> {
        let _ = number;
        None
    }

    /// About how many bytes are moved, read or written: more than a few MB are worth a pool.
    fn work(&self) -> u64 {
        self.bytes()
    }

    /// Whether the bytes come from a disk, and each piece is short: then more workers than cores help, most of
    /// which wait.
    fn waits_for_disk(&self, source: &dyn Source) -> bool {
        let range = self.range().filter(|range| range.end - range.start >= POOL_BYTES);
        range.is_some_and(|range| !source.is_cached(range.start.midpoint(range.end)))
    }

    /// The range of the input that equals the output, byte for byte; `None` where there is none, or it is
    /// unknown. Pieces of such a range are [read](Source::read), not accessed through a map.
    fn range(&self) -> Option<Range<u64>> {
        None
    }

    /// The range of the input of which only few bytes, far apart, are used, so that read-ahead in it would be
    /// wasted.
    fn sparse_range(&self) -> Option<Range<u64>> {
        None
    }
}

/// Why a job stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecuteError {
    /// A piece could not be filled.
    #[error("{error}")]
    Fill {
        /// The number of the transfer in the job.
        transfer: usize,
        #[source]
        error: FillError,
    },
    /// The output failed.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// The operating system refused to start threads.
    #[error("cannot start {threads} threads: {message}")]
    Threads {
        threads: usize,
        /// The message of the operating system.
        message: String,
    },
    /// A worker panicked, which is a bug; the message of the panic is printed already.
    #[error("a worker stopped unexpectedly: this is a bug")]
    Panicked,
}

impl ExecuteError {
    /// The error of an input, where it is the reason; otherwise this error.
    pub(crate) fn into_source(self) -> Result<SourceError, ExecuteError> {
        match self {
            ExecuteError::Fill { error: FillError::Source(error), .. } => Ok(error),
            error => Err(error),
        }
    }
}

/// A [`FillError`] of the first or only transfer.
impl From<FillError> for ExecuteError {
    fn from(error: FillError) -> ExecuteError {
        ExecuteError::Fill { transfer: 0, error }
    }
}

/// A [`SourceError`] of the input of the first or only transfer.
impl From<SourceError> for ExecuteError {
    fn from(error: SourceError) -> ExecuteError {
        FillError::from(error).into()
    }
}

/// Why a piece could not be filled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FillError {
    /// The input failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// An input that holds indices failed.
    #[error("{error}")]
    Indices {
        /// The number of the input, where there are several.
        list: usize,
        #[source]
        error: SourceError,
    },
    /// An index is not a position of its axis.
    #[error(transparent)]
    #[doc(hidden)]
    Position(#[from] BadPosition),
}

impl FillError {
    /// This error for a source that is list number `list` of several.
    pub(crate) fn of_list(self, list: usize) -> FillError {
        match self {
            FillError::Source(error) => FillError::Indices { list, error },
            error => error,
        }
    }
}

/// A number in an index tensor that is not a position of its axis. The message is TensorFlow's, or NumPy's for
/// a list in an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadPosition {
    /// A number in a tuple.
    Tuple {
        /// The index of the tuple in the index tensor.
        at: Vec<u64>,
        /// The numbers of the tuple, after the numbers of the batch axes.
        tuple: Vec<i128>,
        /// The shape that the tuple does not index.
        params: Vec<u64>,
    },
    /// A single number.
    Number {
        /// The index of the number in the index tensor.
        at: Vec<u64>,
        number: i128,
        /// The length of the indexed axis.
        len: u64,
        /// Whether negative numbers count from the end.
        negative: bool,
    },
    /// A number in a list of an index.
    Listed {
        /// The number of the list among the lists of the index.
        list: usize,
        /// The number of the index's item that the list is.
        item: usize,
        /// The index of the number in the list.
        at: Vec<u64>,
        number: i128,
        axis: usize,
        /// The length of the indexed axis.
        len: u64,
    },
}

impl BadPosition {
    /// Whether the number would be a position if negative numbers counted from the end.
    pub fn counts_from_the_end(&self) -> bool {
        let fits =
            |(&number, &len): (&i128, &u64)| number >= -i128::from(len) && number < i128::from(len);
        match self {
            BadPosition::Tuple { tuple, params, .. } => tuple.iter().zip(params).all(fits),
            BadPosition::Number { number, len, .. } => fits((number, len)),
            // negative numbers in lists do count from the end
            BadPosition::Listed { .. } => false,
        }
    }

    /// Whether the indices are one flat list that fits the first axis: then each number may be meant as an
    /// index by itself.
    pub fn fits_first_axis(&self) -> bool {
        let BadPosition::Tuple { at, tuple, params } = self else { return false };
        let len = params.first().map_or(0, |&len| i128::from(len));
        at.is_empty() && tuple.iter().all(|number| (0..len).contains(number))
    }
}

impl fmt::Display for BadPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = match self {
            BadPosition::Tuple { at, .. } | BadPosition::Number { at, .. } => {
                f.write_str("indices")?;
                at
            }
            BadPosition::Listed { at, .. } => {
                f.write_str(if at.is_empty() { "" } else { "at " })?;
                at
            }
        };
        if !at.is_empty() {
            let at: Vec<String> = at.iter().map(u64::to_string).collect();
            write!(f, "[{}]", at.join(","))?;
        }
        match self {
            BadPosition::Tuple { tuple, params, .. } => {
                // Debug of a list of integers is Python's notation
                write!(f, " = {tuple:?} does not index into params of shape {}", AsList(params))
            }
            BadPosition::Number { number, len, negative, .. } => {
                let least = if *negative { -i128::from(*len) } else { 0 };
                write!(f, " = {number} is not in [{least}, {len})")
            }
            BadPosition::Listed { number, axis, len, .. } => {
                let colon = if at.is_empty() { "" } else { ": " };
                write!(f, "{colon}index {number} is out of bounds for axis {axis} with size {len}")
            }
        }
    }
}

impl std::error::Error for BadPosition {}

// Bytes that need no copy: the file system lets the output share the input's blocks.
//
// A range of a file that goes unchanged to a range of the output is shared in whole blocks, where both have the
// same offset in a block; the bytes before the first whole block and after the last are copied.

/// The length, in bytes, below which ranges are copied: a record of shared blocks costs about as much.
pub const SHARED_BYTES: u64 = 64 << 10;

/// Share the blocks of transfer number `index`. Returns true if its whole output is done.
pub(super) fn share(
    index: usize,
    transfer: &Transfer<'_>,
    sink: &dyn Sink,
    progress: &Progress,
) -> Result<bool, ExecuteError> {
    let Transfer { source, pieces, conversion, at } = transfer;
    let range = pieces.range().filter(|range| range.end - range.start >= SHARED_BYTES);
    let Some(range) = range.filter(|_| *conversion == Conversion::None) else { return Ok(false) };
    let Some((file, start)) = source.file(range.clone()) else { return Ok(false) };
    let end = start + (range.end - range.start);
    let shared = sink.share(*at, file, start..end);
    if shared.is_empty() {
        return Ok(false);
    }
    progress.add(shared.end - shared.start);
    for rest in [start..shared.start, shared.end..end] {
        let skipped = rest.start - start;
        let from = range.start + skipped..range.start + skipped + (rest.end - rest.start);
        let mut scratch = Vec::new();
        let bytes = source.window(from, &mut scratch);
        let bytes =
            bytes.map_err(|error| ExecuteError::Fill { transfer: index, error: error.into() })?;
        sink.write_at(at + skipped, bytes)?;
        progress.add(bytes.len() as u64);
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_positions_speak_tensorflows_words() {
        let tuple = BadPosition::Tuple { at: vec![1, 0], tuple: vec![3, 0], params: vec![3, 4] };
        assert_eq!(
            tuple.to_string(),
            "indices[1,0] = [3, 0] does not index into params of shape [3, 4]"
        );
        let number = BadPosition::Number { at: vec![1, 0], number: -1, len: 3, negative: false };
        assert_eq!(number.to_string(), "indices[1,0] = -1 is not in [0, 3)");
        let scalar = BadPosition::Number { at: vec![], number: 5, len: 3, negative: false };
        assert_eq!(scalar.to_string(), "indices = 5 is not in [0, 3)");
        let further = BadPosition::Number { at: vec![2], number: -4, len: 3, negative: true };
        assert_eq!(further.to_string(), "indices[2] = -4 is not in [-3, 3)");
    }

    #[test]
    fn what_would_be_right_is_known() {
        let tuple = |at: &[u64], tuple: &[i128]| BadPosition::Tuple {
            at: at.to_vec(),
            tuple: tuple.to_vec(),
            params: vec![5, 4],
        };
        assert!(tuple(&[0], &[0, -4]).counts_from_the_end());
        assert!(!tuple(&[0], &[0, -5]).counts_from_the_end());
        assert!(tuple(&[], &[0, 4]).fits_first_axis());
        assert!(!tuple(&[], &[5, 0]).fits_first_axis() && !tuple(&[0], &[0, 4]).fits_first_axis());
    }
}
