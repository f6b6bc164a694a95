//! Executing plans: fill a buffer with each piece and write it to the sink at its position.
//!
//! There is one engine. A job is a list of [`Transfer`]s (a source, what to take of it, a place in
//! the output), [run] by a pool of workers over one counter of pieces, with one first error and one
//! [`Progress`]. What to take is anything that implements [`Pieces`]: a strided [`Plan`], or
//! positions to gather. What elements go through on the way is a [`Conversion`]. A pipe is read by
//! [`run_forward`], in the order of the input.
//!
//! Every worker has a buffer of its own, and every piece bytes of its own in the output: neither the bytes
//! written nor the error, which is that of the first piece, depend on the number of workers.

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
mod relayout;

pub(crate) use assign::write_range;
pub use assign::{Assignment, StridedSink, unpack};
pub use clip::Clipped;
pub(crate) use clip::{needs_of_pieces, read_pieces};
pub use computed::Computed;
pub use convert::Conversion;
pub use feed::{Announced, announced};
pub use fill::{WINDOW_BYTES, run_forward};
pub(crate) use fill::{dense_window, read_range, read_runs, split_first, visit_ranges};
pub(crate) use memory::{
    LONG_GATHERED_ROW, LONG_JOINED_ROW, LONG_SCATTERED_ROW, Memory, SCATTERED_COST, SHORT_PARAMS,
    room_for_panels,
};
pub use memory::{panel_bytes, tiling};
#[doc(hidden)]
pub use parallel::use_own_threads_only;
pub(crate) use parallel::{NullSink, UNKNOWN, look};
pub use parallel::{Progress, Workers, run};
pub(crate) use relayout::{TwoPasses, fill_scratch, ordered, unspooled};
pub use relayout::{in_order, spool, spool_pieces};
pub(crate) use relayout::{spool_all, spool_sparse};

/// One part of a job: bytes of one source, on their way to one place in the output.
pub struct Transfer<'a> {
    pub source: &'a dyn Source,
    pub pieces: &'a dyn Pieces,
    pub conversion: Conversion,
    /// Where the result begins in the output, in bytes.
    pub at: u64,
}

impl Transfer<'_> {
    /// The position in a file of the bytes that become these rows; `None` where they are not one range of one.
    fn file_offset(&self, rows: &Runs) -> Option<u64> {
        let range = self.pieces.range()?;
        let start = range.start + u64::try_from(rows.offset).ok()?;
        let (_, at) = self.source.file(start..start + rows.bytes())?;
        Some(at)
    }
}

/// A source, with memory for what must be read of it.
pub struct ReadFrom<'a> {
    pub source: &'a dyn Source,
    pub scratch: &'a mut Vec<u8>,
}

impl ReadFrom<'_> {
    /// The bytes of a range of the source, as [`Source::window`] has them.
    pub fn window(&mut self, range: Range<u64>) -> Result<&[u8], SourceError> {
        self.source.window(range, self.scratch)
    }
}

/// Who is told ranges of an input.
pub type VisitRange<'a> = &'a mut dyn FnMut(Range<u64>);

/// Jobs below this are done by the calling thread: starting a pool takes longer.
const POOL_BYTES: u64 = 2 << 20;

/// Something that fills an output piece by piece, each piece computed from its number.
pub trait Pieces: Sync {
    fn bytes(&self) -> u64;

    fn count(&self) -> u64;

    /// Where piece `number` of `0..count()` goes; pieces share no byte of the output. Where the
    /// sink takes bytes in order, pieces must come in the order of the output.
    fn output(&self, number: u64) -> Runs;

    /// Fill `out` with the bytes of a piece, row after row.
    fn fill(&self, number: u64, from: &mut ReadFrom<'_>, out: &mut [u8]) -> Result<(), FillError>;

    /// The ranges of the input that a piece needs, in the order in which it reads them, for inputs
    /// that must be asked for each: `visit` gets them, those at most `gap` bytes apart perhaps as
    /// one. What a piece shares with those before it may be left out. A hint: a piece that says
    /// nothing is filled all the same.
    fn needs(&self, number: u64, gap: u64, visit: VisitRange<'_>) -> Result<(), FillError> {
        let _ = (number, gap, visit);
        Ok(())
    }

    /// The panel that begins with a piece: pieces whose input is read ahead of them as a whole, because not all
    /// of it fits in memory. `None` where no panel begins there.
    fn panel(&self, number: u64) -> Option<Panel> {
        let _ = number;
        None
    }

    /// About how many bytes are moved, read or written: more than a few MB are worth a pool.
    fn work(&self) -> u64 {
        self.bytes()
    }

    /// Whether its bytes come from a disk, and each piece is short: more workers than cores are of use
    /// then, most of which wait.
    fn waits_for_disk(&self, source: &dyn Source) -> bool {
        let range = self.range().filter(|range| range.end - range.start >= POOL_BYTES);
        range.is_some_and(|range| !source.is_cached(range.start.midpoint(range.end)))
    }

    /// The range of the input that the output is, byte for byte; `None` where it is not one range, or
    /// not known to be. Pieces of one are [read](Source::read), not looked at through a map.
    fn range(&self) -> Option<Range<u64>> {
        None
    }

    /// The range of the input of which only few bytes, far apart, are used, so that reading ahead in
    /// it would be wasted.
    fn sparse_range(&self) -> Option<Range<u64>> {
        None
    }
}

/// Why a job stopped.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// A piece could not be filled.
    #[error("{error}")]
    Fill {
        /// The number of its transfer in the job.
        transfer: usize,
        /// What went wrong.
        error: FillError,
    },
    /// The output failed.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// The operating system gave no threads.
    #[error("cannot start {threads} threads: {message}")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// What the operating system said.
        message: String,
    },
    /// A worker panicked, which is a bug; its own message has been printed by then.
    #[error("a worker stopped unexpectedly: this is a bug")]
    Panicked,
}

impl ExecuteError {
    /// The error of an input, where that is the reason.
    pub(crate) fn into_source(self) -> Result<SourceError, ExecuteError> {
        match self {
            ExecuteError::Fill { error: FillError::Source(error), .. } => Ok(error),
            error => Err(error),
        }
    }
}

/// The error of the first transfer, or the only one.
impl From<FillError> for ExecuteError {
    fn from(error: FillError) -> ExecuteError {
        ExecuteError::Fill { transfer: 0, error }
    }
}

/// The error of the input of the first transfer, or the only one.
impl From<SourceError> for ExecuteError {
    fn from(error: SourceError) -> ExecuteError {
        FillError::from(error).into()
    }
}

/// Why a piece could not be filled.
#[derive(Debug, thiserror::Error)]
pub enum FillError {
    /// The input failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// An input that holds indices failed.
    #[error("{error}")]
    Indices {
        /// Which one, where there are several.
        list: usize,
        /// What went wrong.
        error: SourceError,
    },
    /// An index is no position of its axis.
    #[error(transparent)]
    Position(#[from] BadPosition),
}

impl FillError {
    /// The same, of a source that is list number `list` of several.
    pub(crate) fn of_list(self, list: usize) -> FillError {
        match self {
            FillError::Source(error) => FillError::Indices { list, error },
            error => error,
        }
    }
}

/// A number in an index tensor that is no position of its axis. The words are TensorFlow's; those of a list
/// in an index are NumPy's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadPosition {
    /// In a tuple.
    Tuple {
        /// The place of the tuple in the index tensor.
        at: Vec<u64>,
        /// The numbers of the tuple, those of batch axes before them.
        tuple: Vec<i128>,
        /// The shape that it does not index.
        params: Vec<u64>,
    },
    /// By itself.
    Number {
        /// The place of the number in the index tensor.
        at: Vec<u64>,
        number: i128,
        /// The length of its axis.
        len: u64,
        /// Whether negative numbers that count from the end are positions.
        negative: bool,
    },
    /// In a list of an index.
    Listed {
        /// The number of the list among those of the index.
        list: usize,
        /// The number of the list's item in the index.
        item: usize,
        /// The place of the number in the list.
        at: Vec<u64>,
        number: i128,
        /// The axis that it indexes.
        axis: usize,
        /// The length of that axis.
        len: u64,
    },
}

impl BadPosition {
    /// Whether it would be a position if negative numbers counted from the end.
    pub fn counts_from_the_end(&self) -> bool {
        let fits =
            |(&number, &len): (&i128, &u64)| number >= -i128::from(len) && number < i128::from(len);
        match self {
            BadPosition::Tuple { tuple, params, .. } => tuple.iter().zip(params).all(fits),
            BadPosition::Number { number, len, .. } => fits((number, len)),
            // they do count from the end
            BadPosition::Listed { .. } => false,
        }
    }

    /// Whether the indices are one flat list, which fits the first axis: then each number by
    /// itself may be meant.
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

// Bytes that need not be copied: the file system lets the output have the input's blocks.
//
// What goes from one range of a file to one range of the output, as it is, is shared as far as it
// has the same place in a block of both; the bytes before the first whole block and behind the last
// are copied.

/// Shorter ranges are copied, in bytes: a record of shared blocks costs about as much.
pub const SHARED_BYTES: u64 = 64 << 10;

/// Share what can be shared of transfer number `index`. True if all of it is in the output then.
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
