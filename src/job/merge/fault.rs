//! Why inputs cannot be merged.

use crate::error::{Fault, FileName};
use crate::format::shortened;

/// Why inputs have no union. The error names the file of the input at fault.
#[derive(Debug, thiserror::Error)]
pub enum MergeFault {
    /// Two inputs have a tensor of one name.
    #[error("tensor {:?} is in {first} too", shortened(name))]
    Twice {
        /// The name, in the output.
        name: String,
        /// The input that has it first.
        first: FileName,
    },
    /// Two inputs have a text of metadata under one key.
    #[error(
        "metadata {:?} is {:?}, and {:?} in {first}",
        shortened(key),
        shortened(value),
        shortened(other)
    )]
    Metadata {
        /// The key.
        key: String,
        /// The text of the input at fault.
        value: String,
        /// The text of an earlier input.
        other: String,
        /// The input that has the other text.
        first: FileName,
    },
}

impl Fault for MergeFault {}
