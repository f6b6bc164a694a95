//! Executing plans: pack each piece into a buffer and hand it to the sink at its position.
//!
//! There is one copy engine. A job is a list of [copies](struct@Copy) (a source, what to take of
//! it, a place in the output), run by a pool of workers over one counter of pieces, with one first error and
//! one [`Progress`]. What to take is anything that makes [`Pieces`]: a strided [`Plan`], or
//! positions to gather. A pipe is read by [`run_forward`], in the order of the input.
//!
//! Every worker has a buffer of its own, and every piece bytes of its own in the output: the
//! bytes written do not depend on the number of workers. Nor does the error: of several, the one
//! of the first piece is reported.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::gather::BadPosition;
use crate::plan::Place;
#[cfg(doc)]
use crate::plan::Plan;
use crate::sink::SinkError;
use crate::source::{Source, SourceError};

mod assign;
mod fill;
mod forward;
pub mod pack;
mod parallel;
pub mod unpack;

pub(crate) use assign::write_part;
pub use assign::{Assignment, Spread};
pub(crate) use fill::fill_box;
pub use forward::{WINDOW_BYTES, run_forward};
pub use parallel::run;

/// One copy of a job.
pub struct Copy<'a> {
    /// Where the bytes come from.
    pub source: &'a dyn Source,
    /// Which bytes, in which order.
    pub pieces: &'a dyn Pieces,
    /// Bytes that change places on the way, to turn the byte order; 1 for none.
    pub swap_width: usize,
    /// Where the result begins in the output, in bytes.
    pub at: u64,
}

/// Something that fills an output piece by piece, each piece known by its number alone.
pub trait Pieces: Sync {
    /// Bytes of the whole output.
    fn bytes(&self) -> u64;

    /// The number of pieces.
    fn count(&self) -> u64;

    /// Where piece `number` of `0..count()` goes; pieces share no byte of the output. Where the
    /// sink takes bytes in order, pieces must come in the order of the output.
    fn place(&self, number: u64) -> Place;

    /// Fill `out` with the bytes of a piece, row after row; `scratch` is for what must be read.
    ///
    /// # Errors
    ///
    /// What kept the bytes from being had.
    fn fill(
        &self,
        number: u64,
        source: &dyn Source,
        scratch: &mut Vec<u8>,
        out: &mut [u8],
    ) -> Result<(), FillError>;

    /// About how many bytes are moved, read or written: what tells whether workers pay.
    fn work(&self) -> u64 {
        self.bytes()
    }

    /// The bytes of the input that are only visited here and there, where that is so: to read
    /// ahead in them would fetch what nobody asked for.
    fn scattered(&self) -> Option<Range<u64>> {
        None
    }
}

/// Why a piece could not be filled.
#[derive(Debug, thiserror::Error)]
pub enum FillError {
    /// The input failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The input that holds indices failed.
    #[error(transparent)]
    Indices(SourceError),
    /// An index is no position of its axis.
    #[error(transparent)]
    Position(#[from] BadPosition),
}

/// How far a job is, for whoever watches it from another thread.
#[derive(Debug, Default)]
pub struct Progress {
    written: AtomicU64,
}

impl Progress {
    /// The bytes of output written so far.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Why a job stopped.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// A piece could not be filled; `copy` tells whose.
    #[error("{error}")]
    Fill {
        /// The number of the copy in the job.
        copy: usize,
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
        /// Its reason.
        message: String,
    },
}
