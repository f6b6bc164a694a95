//! Tensors of a file as lazy handles for programs: opened once, sliced, and only then read or written.

use std::path::Path;

use crate::error::Error;
use crate::output::{Output, WriteOptions};
use crate::sink::Destination;

mod change;
mod debug;
mod file;
mod index;
mod memory;
mod read;
mod slice;
mod write;

pub use change::{Change, Editable};
pub use file::{Tensor, TensorFile, open as open_file};
pub use index::{ELLIPSIS, IntoIndex, NEW_AXIS, step};
#[cfg(feature = "ndarray")]
pub use memory::tensor_of;
pub use memory::{HeldFault, save, tensor};
pub use read::{Element, LoadedTensor, ReadChunks, ReadFault};
pub use slice::Slice;
pub use write::{write_all, write_concatenated, write_merged, write_stacked};

/// The output at a path, with options that its format has.
fn output_at(path: &Path, options: &WriteOptions) -> Result<Output, Error> {
    let output = Output::new(Destination::Path(path.to_owned()), options.clone());
    output.map_err(|error| match error.file {
        Some(_) => error,
        None => Error::file(path, error.cause),
    })
}
