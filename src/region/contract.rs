//! What a region of a tensor answers, whatever kind it is.
//!
//! Copies, comparisons, statistics, parts and the library's handles know no more of a region than
//! this. A new way of finding the bytes of a tensor is one more implementation.

use std::ops::Range;
use std::sync::Arc;

use crate::error::Error;
use crate::execute::{Conversion, ExecuteError, FillError, OutOfCore, Pieces, Progress, Workers};
use crate::plan::{Plan, Reading};
use crate::region::list::{Gathered, GatheredList};
use crate::source::Source;
use crate::view::View;

/// Bytes of one tensor, in the order of the output.
pub trait Region: Send + Sync {
    /// How many bytes.
    fn bytes(&self) -> u64;

    /// What it is to the executor.
    ///
    /// # Errors
    /// What must be read or put in order first cannot be: an index tensor, or a tensor that is read
    /// in another order than it is written.
    fn pieces<'a>(&'a self, by: &ReadBy<'_>) -> Result<RegionPieces<'a>, ExecuteError>;

    /// A range of its bytes, in one region or in several that follow each other.
    fn within(&self, range: Range<u64>) -> Vec<Arc<dyn Region>>;

    /// Add all that decides which bytes of its tensor it is, but for the content of files.
    ///
    /// # Errors
    /// Typed indices that cannot be read.
    fn identify(&self, add: &mut dyn FnMut(&[u8])) -> Result<(), Error>;

    /// The plan of its [pieces](Region::pieces) where it does not fit in memory; `None` where it does, or is
    /// there.
    ///
    /// # Errors
    /// An index tensor that cannot be read.
    fn out_of_core(&self, by: &ReadBy<'_>) -> Result<Option<OutOfCore>, ExecuteError> {
        let _ = by;
        Ok(None)
    }

    /// About how many bytes of the input are read, in whole cache lines, where no piece divides
    /// `unit` bytes.
    fn reads(&self, unit: u64) -> u64 {
        let _ = unit;
        self.bytes()
    }

    /// How it is read in one pass of a stream that begins at position `start`, in windows of at most
    /// `window` bytes; `None` where that cannot be.
    fn forward(&self, start: u64, unit: u64, window: u64) -> Option<Plan> {
        let _ = (start, unit, window);
        None
    }

    /// What can be said of how it is read; `None` where that is not known.
    fn reading(&self) -> Option<Reading> {
        None
    }

    /// The ranges of positions that it is, where it is nothing else.
    fn strided(&self) -> Option<&View> {
        None
    }

    /// What is gathered; of several fields, what is of the first, since the index tensors of all are
    /// one.
    fn gathered(&self) -> Option<&Gathered> {
        None
    }
}

/// How the bytes of a region are read.
#[derive(Clone, Copy)]
pub struct ReadBy<'a> {
    /// The bytes of the tensor's file.
    pub source: &'a dyn Source,
    /// What elements go through.
    pub conversion: Conversion,
    /// No piece divides so many bytes.
    pub unit: u64,
    /// Where the bytes go.
    pub to: ReadFor,
    /// Who puts in order what must be in order first.
    pub workers: &'a Workers,
    /// How far that is.
    pub progress: &'a Progress,
}

/// What the bytes of a region are read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFor {
    /// To this position of an output that takes bytes in any order.
    Position(u64),
    /// To memory, piece by piece.
    Memory,
    /// To an output that takes bytes in order only.
    Stream,
}

/// The pieces of a region, and the source that they are of, where that is not the tensor's own.
pub struct RegionPieces<'a> {
    /// The pieces.
    pub pieces: Box<dyn Pieces + 'a>,
    /// A temporary copy, in the order of the output.
    pub copied: Option<Box<dyn Source>>,
}

impl dyn Region + '_ {
    /// The index tensors.
    pub fn lists(&self) -> &[GatheredList] {
        self.gathered().map_or(&[], |gathered| &gathered.lists)
    }

    /// Check that the index tensors were not cut short while they were read.
    pub(crate) fn verify_lists(&self) -> Result<(), Error> {
        GatheredList::verify_all(self.lists())
    }

    /// The error of index tensors that are bad, or could not be read.
    pub(crate) fn failed_fill(&self, error: FillError) -> Error {
        GatheredList::failed(self.lists(), error)
    }
}
