//! Jobs: what is done with inputs and outputs.
//!
//! [`write()`] copies what is taken of an input to an output, [`Joined`] makes one output of many inputs,
//! [`Split`] several of one; [`Original`] is a file that is changed. Comparisons, statistics and pictures
//! read a selection once. [`Parts`] divides an output among processes.

mod align;
mod axes;
mod casts;
mod compare;
mod copy;
mod edit;
mod edit_fault;
mod join;
mod overwrite;
mod parallel;
mod parts;
mod picture;
mod rename;
mod select;
mod split;
mod statistics;
mod unmap;
mod version;

pub use align::{shareable_bytes, shared_bytes};
pub use axes::Axes;
pub use casts::Casts;
pub use compare::{Comparison, Leader, compare, is_pipe};
pub(crate) use copy::Job;
pub use copy::{announced, check, write};
pub use edit::{Edit, EditMode, EditOptions, Original, cast_conversion};
pub use edit_fault::EditFault;
pub use join::{Along, JoinFault, JoinOptions, Joined};
pub use parts::{PartFault, Parts};
pub use picture::{Drawing, PictureFault};
pub use select::{Select, Selected, SelectedTensors, select};
pub use split::{Cuts, MAX_PARTS, Part, PartNames, Split, SplitFault, SplitOptions};
pub use statistics::statistics;
