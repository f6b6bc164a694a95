//! Executing plans: fill a buffer with each piece and write it to the sink at its position.
//!
//! There is one engine. A job is a list of [`Transfer`]s (a source, what to take of it, a place in
//! the output), [run] by a pool of workers over one counter of pieces, with one first error and one
//! [`Progress`]. What to take is anything that implements [`Pieces`]: a strided [`Plan`], or
//! positions to gather. What elements go through on the way is a [`Conversion`]. A pipe is read by
//! [`run_forward`], in the order of the input.
//!
//! Every worker has a buffer of its own, and every piece bytes of its own in the output: the
//! bytes written do not depend on the number of workers. Nor does the error: of several, the one
//! of the first piece is reported.

use std::ops::Range;

use crate::plan::Panel;
#[cfg(doc)]
use crate::plan::Plan;
use crate::runs::Runs;
use crate::source::{Source, SourceError};

mod assign;
mod buffer;
mod clip;
mod convert;
mod error;
mod feed;
mod fill;
mod flow;
mod forward;
mod memory;
mod out_of_core;
pub mod pack;
mod parallel;
mod progress;
mod relayout;
mod share;
mod tiling;
mod two_passes;
pub mod unpack;
mod workers;

pub(crate) use assign::write_runs;
pub use assign::{Assignment, StridedSink};
pub use clip::Clipped;
pub(crate) use clip::{needs_of_pieces, read_pieces};
pub use convert::Conversion;
pub use error::{BadPosition, ExecuteError, FillError};
pub use feed::{Announced, announced};
pub(crate) use fill::{read_range, read_runs, split_first, visit_ranges};
pub use forward::{WINDOW_BYTES, run_forward};
pub(crate) use memory::Memory;
pub use out_of_core::{CopyStep, OutOfCore};
pub use parallel::run;
pub use progress::Progress;
pub(crate) use progress::UNKNOWN;
pub(crate) use relayout::{KeptSink, unspooled};
pub use relayout::{in_order, spool, spool_pieces};
pub use share::SHARED_BYTES;
pub use tiling::{panel_bytes, tiling};
pub(crate) use two_passes::TwoPasses;
pub use workers::Workers;

/// One part of a job: bytes of one source, on their way to one place in the output.
pub struct Transfer<'a> {
    /// Where the bytes come from.
    pub source: &'a dyn Source,
    /// Which bytes, in which order.
    pub pieces: &'a dyn Pieces,
    /// What the elements go through on the way.
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
    /// The source.
    pub source: &'a dyn Source,
    /// The memory, whatever it holds.
    pub scratch: &'a mut Vec<u8>,
}

impl ReadFrom<'_> {
    /// The bytes of a range of the source, as [`Source::window`] has them.
    ///
    /// # Errors
    /// The source's.
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
    /// Bytes of the whole output.
    fn bytes(&self) -> u64;

    /// The number of pieces.
    fn count(&self) -> u64;

    /// Where piece `number` of `0..count()` goes; pieces share no byte of the output. Where the
    /// sink takes bytes in order, pieces must come in the order of the output.
    fn output(&self, number: u64) -> Runs;

    /// Fill `out` with the bytes of a piece, row after row.
    ///
    /// # Errors
    /// [`FillError`]: the source failed, or an index names no position.
    fn fill(&self, number: u64, from: &mut ReadFrom<'_>, out: &mut [u8]) -> Result<(), FillError>;

    /// The ranges of the input that a piece needs, in the order in which it reads them, for inputs
    /// that must be asked for each: `visit` gets them, those at most `gap` bytes apart perhaps as
    /// one. What a piece shares with those before it may be left out. A hint: a piece that says
    /// nothing is filled all the same.
    ///
    /// # Errors
    /// [`FillError`]: an index names no position, or cannot be read.
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
