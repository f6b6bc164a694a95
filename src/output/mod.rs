//! Outputs: where they go, in which format, and the place of every byte.
//!
//! An [`Output`] has a destination, a format (one of [`layout::FORMATS`]) and options. Preparing it gives
//! tensors their places; nothing is written here.

mod chunking;
mod fault;
pub mod layout;
mod metadata;
mod options;
mod prepare;

pub use chunking::{Chunking, ChunkingFault};
pub use fault::{FormatOption, LayoutFault};
pub use metadata::MetadataChange;
pub use options::WriteOptions;
pub use prepare::{Becomes, Output, Preparation, Prepared, Unsaid};
