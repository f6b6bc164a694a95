//! Tensors of a file as lazy handles for programs: opened once, sliced, and only then read or written.

mod element;
mod file;

pub use element::Element;
pub use file::{ReadFault, Slice, Tensor, TensorFile, open as open_file};
