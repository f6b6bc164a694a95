//! Tensors of a file as lazy handles for programs: opened once, sliced, and only then read or written.

mod change;
mod element;
mod file;
mod join;
mod slice;

pub use change::{Change, Editable};
pub use element::Element;
pub use file::{Tensor, TensorFile, open as open_file};
pub use join::{JoinedSlices, concatenate, stack, write_all};
pub use slice::{ReadFault, Slice};
