//! Jobs: what is done with inputs and outputs.
//!
//! A [`Job`] is checked, described, written, or divided into parts.
//!
//! - [`Copying`] copies a selection of one input to an output, or makes one output of many inputs (joins, merges).
//! - [`Split`] makes several outputs of one input.
//! - [`Editing`] changes a file.
//! - [`Reducing`] makes one element of each slice.
//! - Comparisons, statistics and pictures read a selection once.
//! - [`Parts`] divides an output among processes.

use crate::dtype::DType;
use crate::error::{Error, FileName};
use crate::execute::Progress;
use crate::output::layout::OutputFormat;
use crate::output::{Omission, Prepared};

mod align;
mod along_axes;
mod append;
mod assembly;
mod compare;
mod copy;
mod copying;
mod digest;
mod edit;
mod inputs;
mod join;
mod merge;
mod overwrite;
mod parts;
#[cfg(feature = "cli")]
mod picture;
mod reducing;
mod reindex;
mod rename;
mod select;
mod several;
mod slice;
mod split;
mod statistics;
mod summaries;

pub use along_axes::{AllSlices, AxisFault, Slices, SlicesOptions};
pub use append::{AppendFault, Appending};
pub use compare::{CompareFault, CompareOptions, Compared, Comparing, Differences};
pub(crate) use copy::{Writing, in_scratch};
pub use copy::{network_bytes, temporary_bytes};
pub use copying::Copying;
pub use digest::digests;
pub use edit::{EditFault, EditedSlice, Editing, Original, ScatterOptions};
pub use inputs::Operand;
pub(crate) use join::join_slices;
pub use join::{Along, JoinFault, JoinOptions};
pub(crate) use merge::merge_slices;
pub use merge::{GroupOptions, MergeFault, MergeOptions, NumberedRename, Precedence};
pub use parts::{PartFault, Parts};
#[cfg(feature = "cli")]
pub use picture::{Bound, Drawing, PictureFault};
pub use reducing::{ReduceFault, Reduced, Reducing};
pub use reindex::{ReindexFault, reindex};
pub use rename::NewName;
pub use select::{Axes, Casts, Select, UnusedCast};
pub(crate) use several::{OutputSet, check_outputs, write_outputs};
pub(crate) use slice::HeldSlice;
pub use slice::{GatherOptions, SliceOptions};
pub use split::{
    Cuts, Extent, MAX_PARTS, PartNames, PartsTo, Split, SplitFault, SplitOptions, WHOLE_AXIS,
};
pub use statistics::{Chosen, StatisticsFault, position_of};

// The trait of a job: outputs that are made of inputs.
//
// Slices, gathers, joins and splits take different elements of their inputs. Callers treat them alike: a job is checked,
// described, written, or divided into parts.

/// Outputs that are made of inputs. Nothing is written before [`write`](Job::write).
pub trait Job {
    fn bytes(&self) -> u64;

    /// The number of bytes that [`look`](Job::look) reads.
    fn looked_at(&self) -> Result<u64, Error> {
        Ok(0)
    }

    /// Make the checks that take long, before anything is written. Called once, before
    /// [`describe`](Job::describe) and [`write`](Job::write).
    fn look(&mut self, progress: &Progress) -> Result<(), Error> {
        let _ = progress;
        Ok(())
    }

    /// The number of tensors that a cast of all leaves unchanged, since they hold integers or
    /// booleans.
    fn left_uncast(&self) -> usize {
        0
    }

    /// Make the checks that writing would fail at and that [`look`](Job::look) did not make.
    fn check(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn describe(&mut self) -> Result<Vec<Planned>, Error>;

    /// Attributes and other annotations of inputs that the outputs do not store.
    fn omissions(&self) -> Vec<Omission> {
        Vec::new()
    }

    /// About how many bytes of remote inputs are fetched for the elements.
    fn network_bytes(&mut self) -> Result<u64, Error> {
        Ok(0)
    }

    /// Write the outputs. They are put in place when all are complete; on an error, the previous
    /// files stay.
    fn write(&mut self, progress: &Progress) -> Result<(), Error>;

    /// The job in `count` parts, at least one, which several processes can write.
    fn parts(&mut self, count: u64) -> Result<Parts<'_>, Error> {
        let _ = count;
        Err(PartFault::NotOne.into())
    }
}

pub struct Planned {
    pub destination: FileName,
    pub kind: OutputKind,
    pub format: &'static OutputFormat,
    /// The only tensor of the output, or the number of tensors.
    pub tensors: Result<PlannedTensor, usize>,
    pub bytes: u64,
    /// The size of the file in bytes, if it is known before it is written.
    pub size: Option<u64>,
    /// The most bytes of scratch that are needed to write it.
    pub temporary_bytes: u64,
}

pub enum OutputKind {
    New,
    /// A copy of this file, with the edits applied.
    EditedCopy(FileName),
    /// The target itself, overwritten in place.
    InPlace,
}

pub struct PlannedTensor {
    pub shape: Vec<u64>,
    pub dtype: DType,
}

impl Planned {
    /// The description of an output whose tensors are laid out.
    pub(super) fn new(prepared: &Prepared, temporary_bytes: u64) -> Planned {
        let tensor = prepared.tensors.only();
        let tensor = tensor.map(|only| PlannedTensor { shape: only.shape, dtype: only.dtype });
        Planned {
            destination: FileName::from(&prepared.output.destination),
            kind: OutputKind::New,
            format: prepared.output.format,
            tensors: tensor.ok_or(prepared.tensors.len()),
            bytes: prepared.bytes,
            size: prepared.layout.size(),
            temporary_bytes,
        }
    }
}
