//! Files that hold tensors, whatever their format: their contents, and choosing tensors by name.
//!
//! An [`Input`] is what a format opens: its [`Contents`] by the header, and its bytes, in a file or
//! a pipe. It knows no format, and nothing of outputs.

mod bytes;
mod checkpoint;
mod choose;
mod contents;
mod field;
mod folder;
mod format;
mod glob;
mod members;
mod opened;
mod options;
mod raw;
mod text_options;
mod transform;

pub(crate) use bytes::{Bytes, Watched, failed_stream, finish, open_bytes, seekable, spool_all};
pub(crate) use checkpoint::Listed;
pub use checkpoint::ShardIndex;
pub use choose::SelectFault;
pub(crate) use choose::positions as find;
pub(crate) use contents::TypedMetadata;
pub use contents::{Contents, LengthFault, Metadata};
pub use field::{FieldFault, ReadAs, ReadAsFault, UnusedReadAs};
pub(crate) use field::{asked_names, read_as, take_fields};
pub use folder::{SmallFile, SmallFiles, is_in_folder, remote_folder, small_files};
pub(crate) use folder::{folder_of, names_in, natural};
pub use format::Format;
pub(crate) use format::RecognisedFile;
pub(crate) use glob::{CarryError, Grouping, Groups};
pub use glob::{GroupFault, PartNaming, Pattern, PatternError};
pub(crate) use members::{DeflatedMember, StoredMember, Summed};
pub(crate) use opened::Container;
pub use opened::{
    Absent, BadMember, Checkpoint, Input, Missing, MissingTensor, ShardFile, Unreadable,
};
pub use options::{Location, MissingChunks, Notes, OpenOptions, PlainText, UseOfIndex};
pub use raw::{RawFault, RawLayout, RawOption};
pub use text_options::{TextFormat, TextOptions};
pub use transform::{CutBlocks, Transform};
