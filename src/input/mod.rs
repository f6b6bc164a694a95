//! Files that hold tensors, whatever their format: recognised, opened, and chosen from.
//!
//! An [`Input`] is opened by [`open`](fn@open): `.npy`, `.npz`, `.safetensors`, `.pt`, `.gguf`, a sharded checkpoint,
//! text, raw bytes, a file or a pipe. It knows nothing of outputs.

mod archive;
mod bytes;
mod choose;
mod field;
mod folder;
mod gguf;
mod glob;
#[cfg(feature = "hdf5")]
mod hdf5;
mod open;
mod opened;
mod options;
pub(crate) mod raw;
mod seen;
mod sharded;
mod text;
mod torch;
mod zarr;

pub(crate) use archive::{DeflatedMember, StoredMember, Summed};
pub(crate) use bytes::{Bytes, failed_stream, finish, first_bytes};
pub use choose::SelectFault;
pub(crate) use choose::positions as find;
pub use field::{FieldFault, ReadAs, ReadAsFault, UnusedReadAs};
pub(crate) use field::{read_as, take_fields};
pub use folder::{SmallFile, SmallFiles, is_in_folder, remote_folder, small_files};
pub(crate) use folder::{natural, old_shards, single_file};
pub use gguf::GgufSplitFault;
pub(crate) use glob::{CarryError, Grouping, Groups};
pub use glob::{GroupFault, PartNaming, Pattern, PatternError};
pub(crate) use open::unrecognised;
pub(crate) use open::{RecognisedFile, recognise};
pub use open::{open, open_watched};
pub use opened::{
    Absent, BadMember, Checkpoint, Input, Missing, MissingTensor, PartFile, Unreadable,
};
pub use options::{Location, MissingChunks, Notes, OpenOptions, UseOfIndex};
pub use raw::{Given, RawFault, RawLayout};
pub use seen::{CutBlocks, Seen};
pub use sharded::ShardsFault;
pub use text::{CellRemedy, IntegersFault, ROUNDED, TextFault, TextOptions, TextPlace};
pub(crate) use zarr::is_folder as is_zarr_folder;
