//! Jobs: what is done with inputs and outputs.
//!
//! A [`Job`] is checked, described, written, or divided in parts. [`Copying`] takes what an index or an
//! index tensor names of one input to an output, [`Joining`] and [`Merging`] make one output of many inputs,
//! [`Split`] several of one; [`Editing`] changes a file, [`Reducing`] makes one element of each slice of one.
//! Comparisons, statistics and pictures read a selection once. [`Parts`] divides an output among processes.

mod align;
mod axes;
mod casts;
mod chosen;
mod compare;
mod comparing;
mod contract;
mod copy;
mod copying;
mod edit;
mod inputs;
mod join;
mod merge;
mod operand;
mod overwrite;
mod parallel;
mod parts;
#[cfg(feature = "cli")]
mod picture;
mod reducing;
mod reindex;
mod rename;
mod scratch;
mod select;
mod slices;
mod split;
mod statistics;
mod unmap;
mod version;

pub use align::{shareable_bytes, shared_bytes};
pub use axes::Axes;
pub use casts::{Casts, UnusedCast};
pub use chosen::{Chosen, place};
pub use comparing::{CompareFault, CompareOptions, Compared, Comparing, Differences};
pub use contract::{Job, Made, Planned, PlannedTensor};
pub(crate) use copy::Writing;
pub use copy::{announced, out_of_core};
pub(crate) use copying::single;
pub use copying::{Copying, GatherOptions, SliceOptions};
pub use edit::{EditFault, EditedSlice, Editing, Original, ScatterOptions};
pub use join::{Along, JoinFault, JoinOptions, Joining};
pub(crate) use join::{JoinedSlice, join_slices};
pub(crate) use merge::merge_slices;
pub use merge::{MergeFault, MergeOptions, Merging, NumberedRename, Wins};
pub use operand::Operand;
pub use parts::{PartFault, Parts};
#[cfg(feature = "cli")]
pub use picture::{Bound, Drawing, PictureFault};
pub use reducing::{ReduceFault, Reduced, Reducing};
pub use reindex::{ReindexFault, reindex};
pub(crate) use scratch::in_scratch;
pub use select::{Select, Selected, SelectedTensors, select};
pub use slices::{AllSlices, AxisFault, Slices, SlicesOptions};
pub use split::{Cuts, MAX_PARTS, PartNames, Split, SplitFault, SplitOptions};
pub(crate) use split::{Together, check_together, write_together};
pub use statistics::StatisticsFault;
