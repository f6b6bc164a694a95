//! Writing outputs: a file appears under its name complete, or not at all.
//!
//! A [`Sink`] takes bytes, at any position ([`WriteOrder::Any`]) or only in order. A [`Draft`] is one
//! that becomes an output: `commit` consumes it and puts the output in place; dropping it without
//! `commit` leaves the old file.
//! Sinks know nothing of tensors or of command line flags.
//!
//! ```no_run
//! use tslice::sink::{Destination, SinkOptions, create};
//!
//! let sink = create(&Destination::Path("out.npy".into()), SinkOptions { len: Some(4), ..SinkOptions::default() })?;
//! sink.write_at(0, b"\x93NUM")?;
//! sink.commit()?;
//! # Ok::<(), tslice::sink::SinkError>(())
//! ```

use std::fs::File;
use std::ops::Range;
use std::sync::{Arc, Once};

use signal_hook::consts::SIGXFSZ;

use crate::os::is_network;

mod blocks;
mod copy_file;
mod create;
mod error;
mod file;
mod folder;
mod held;
mod in_place;
mod options;
mod parts;
mod placed;
mod resolve;
mod scratch;
mod several;
mod space;
mod spooled;
mod stream;
mod targets;
mod temp_name;
mod writable_map;
mod zip;

pub use blocks::{BLOCK_BYTES, shared_len};
pub use copy_file::CopiedRange;
pub use create::{can_share, check, check_among, create, create_copy, overwritten_file};
pub use error::SinkError;
pub use folder::{FileTree, FolderSink, FolderTree};
pub use held::HeldBytes;
pub use in_place::InPlaceFile;
pub use options::{Destination, SinkOptions};
pub use parts::{
    Begun, Difference, Fingerprint, FixedFrame, InputId, JobRecord, Look, MAX_PARTS, Part,
    PartSink, PartSize, PartsError, PartsStatus, Unchanged, discard, status,
};
pub use placed::{Old, Placed};
pub use resolve::link_target;
pub use scratch::ScratchSink;
pub(crate) use scratch::scratch_fits;
pub use several::SeveralSinks;
pub use stream::StreamSink;
pub use targets::Targets;
pub use writable_map::WritableMap;
pub use zip::{DeflatedZipSink, ZipLayout, ZipSink};

// what tests may expect
#[doc(hidden)]
pub use crate::os::{EXCHANGES_NAMES, UNNAMED_FILES};
#[doc(hidden)]
pub use create::create_named;

/// In which order a sink takes its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOrder {
    /// Any position at any time, from several threads.
    Any,
    /// Ascending and without a gap, one call after the other.
    Ascending,
}

/// What takes the bytes of an output.
pub trait Sink: Send + Sync {
    /// In which order `write_at` may be called.
    fn order(&self) -> WriteOrder {
        WriteOrder::Any
    }

    /// Whether nobody sees any byte of the output before it is put in place. False for streams.
    fn is_atomic(&self) -> bool {
        true
    }

    /// Write `bytes` at `offset`, counted from the beginning of the output. No byte may be
    /// written twice.
    ///
    /// # Errors
    /// [`SinkError::Io`], [`SinkError::BrokenPipe`]; [`SinkError::OutOfOrder`] and
    /// [`SinkError::OutOfBounds`] for a mistake of the caller.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError>;

    /// Let the output have, at `offset`, the blocks of a range of a file, as far as the file system
    /// lets both share them. Returns the part of `range` that need not be written any more, which is
    /// empty where nothing is shared.
    fn share(&self, offset: u64, file: &File, range: Range<u64>) -> Range<u64> {
        let _ = (offset, file);
        range.start..range.start
    }

    /// Begin to bring a range that was written to the disk; with `wait`, do so to the end, and let memory
    /// have it. What is not told stays in memory as long as kernels like.
    ///
    /// # Errors
    /// [`SinkError::Io`]: it cannot be written.
    fn settle(&self, range: Range<u64>, wait: bool) -> Result<(), SinkError> {
        let _ = (range, wait);
        Ok(())
    }

    /// Begin to bring a range into memory that is about to be changed in part.
    fn expect(&self, range: Range<u64>) {
        let _ = range;
    }

    /// The map of the output, if runs of `run` bytes should be written through it instead of
    /// [`write_at`](Sink::write_at). Call [`verify`](Sink::verify) after writing.
    fn mapped(&self, run: u64) -> Option<&WritableMap> {
        let _ = run;
        None
    }

    /// Check that everything written through [`mapped`](Sink::mapped) reached the output.
    ///
    /// # Errors
    /// [`SinkError::Io`] for a full disk, [`SinkError::Truncated`].
    fn verify(&self) -> Result<(), SinkError> {
        Ok(())
    }
}

/// An output that appears when it is complete. Dropping it leaves what stood there before.
pub trait Draft: Sink {
    /// After all elements: write what stands behind them, and check that no byte is missing, so
    /// that [`place`](Draft::place) only has to put the output in place. Called once.
    ///
    /// # Errors
    /// [`SinkError::Incomplete`] if bytes are missing, and those of [`write_at`](Sink::write_at).
    fn seal(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    /// After [`seal`](Draft::seal): close the file, which gets a temporary name to be put in place by.
    /// So there can be more outputs at a time than descriptors. Does nothing where that cannot be.
    ///
    /// # Errors
    /// [`SinkError::Os`].
    fn park(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    /// Put a sealed output in place. What it replaces may be kept, so that it can be taken back; an
    /// output that cannot be, such as a stream, stays.
    ///
    /// # Errors
    /// [`SinkError::AlreadyExists`] if another process created the file meanwhile,
    /// [`SinkError::Os`]. The old file is then still in place.
    fn place(self: Box<Self>, old: Old) -> Result<Placed, SinkError>;

    /// Seal an output and put it in place.
    ///
    /// # Errors
    /// Those of [`seal`](Draft::seal) and [`place`](Draft::place).
    fn commit(mut self: Box<Self>) -> Result<(), SinkError> {
        self.seal()?;
        self.place(Old::Gone)?.keep()
    }
}

/// Turn SIGXFSZ (file size limit, `ulimit -f`) into an error of `write`: with any handler installed,
/// even one that does nothing, the process is not killed.
fn ignore_sigxfsz() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    });
}

/// Wait for the disk where that was asked for, and on network file systems: they may report errors
/// only at `close`, whose result is not checked.
fn sync_file(file: &File, fsync: bool) -> Result<(), SinkError> {
    if fsync || is_network(file) {
        file.sync_all().map_err(SinkError::os("cannot be brought to the disk"))?;
    }
    Ok(())
}
