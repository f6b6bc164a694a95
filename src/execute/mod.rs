//! Executing plans: pack each piece into a buffer and hand it to the sink at its position.
//!
//! There is one copy engine. A job is a list of [`Copy`]s (a source, what to take of it, a place
//! in the output), run by a pool of workers over one counter of pieces, with one first error and
//! one [`Progress`]. A pipe is read by [`run_forward`], in the order of the input.
//!
//! Every worker has a buffer of its own, and every piece bytes of its own in the output: the
//! bytes written do not depend on the number of workers.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::plan::Plan;
use crate::sink::SinkError;
use crate::source::{Source, SourceError};

mod fill;
mod forward;
pub mod pack;
mod parallel;

pub use forward::{WINDOW_BYTES, run_forward};
pub use parallel::run;

/// One copy of a job.
pub struct Copy<'a> {
    /// Where the bytes come from.
    pub source: &'a dyn Source,
    /// Which bytes, in which order.
    pub plan: Plan,
    /// Bytes that change places on the way, to turn the byte order; 1 for none.
    pub swap_width: usize,
    /// Where the result begins in the output, in bytes.
    pub at: u64,
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
    /// The input failed; `copy` tells which of the job's.
    #[error("{error}")]
    Source {
        /// The number of the copy in the job.
        copy: usize,
        /// What went wrong.
        error: SourceError,
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
