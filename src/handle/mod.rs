//! Tensors of a file as lazy handles for programs: opened once, sliced, and only then read or written.

#[cfg(feature = "ndarray")]
mod arrays;
mod change;
mod element;
mod file;
mod held;
mod index;
mod join;
mod memory;
mod read;
mod slice;

#[cfg(feature = "ndarray")]
pub use arrays::tensor_of;
pub use change::{Change, Editable};
pub use element::Element;
pub use file::{Tensor, TensorFile, open as open_file};
pub use held::{HeldFault, tensor};
pub use index::{ELLIPSIS, IntoIndex, NEW_AXIS, step};
pub use join::{JoinedSlices, concatenate, merge, stack, write_all};
pub use read::{ReadChunks, ReadFault};
pub use slice::Slice;
