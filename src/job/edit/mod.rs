//! Files that are changed, in place or in a copy: NumPy's `a[index] = value`, and slices at positions
//! that an index tensor names.
//!
//! 1. [`Original::open`] reads the header (`original`). Everything is checked while the file is only read.
//! 2. [`Original::slice`] applies an index to one of its tensors; [`EditedSlice::assign`] fits a value to
//!    that, and [`Editing::scatter`] fits values to an index tensor (`editing`): a job.
//! 3. When it is written, the copy is made first, or the file opened for writing; elements go through
//!    a sink that patches it.

pub(super) mod conversion;
mod editing;
pub(super) mod fault;
pub(super) mod original;

pub use editing::{EditedSlice, Editing, ScatterOptions};
pub use fault::EditFault;
pub use original::Original;
