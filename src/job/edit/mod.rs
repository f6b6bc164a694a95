//! Files that are changed, in place or in a copy: NumPy's `a[index] = value`, and slices at positions
//! that an index tensor names.
//!
//! 1. [`Original::open`] reads the header (`original`). Everything is checked while the file is only read.
//! 2. [`Editing::slice`] applies an index to one of its tensors, [`Editing::assign`] fits a value to that,
//!    and [`Editing::scatter`] fits values to an index tensor (`tensor_edit`): a job over all files
//!    (`editing`).
//! 3. When it is written, the copy is made first, or the file opened for writing; elements go through
//!    a sink that patches it, and the CRC-32s of an archive come last (`edited_file`).

pub(super) mod conversion;
mod edited_file;
mod editing;
pub(super) mod fault;
pub(super) mod original;
mod tensor_edit;

pub use editing::Editing;
pub use fault::EditFault;
pub use original::Original;
pub use tensor_edit::{EditedSlice, ScatterOptions};
