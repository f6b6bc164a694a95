//! Files that hold tensors, whatever their format: recognised, opened, and chosen from.
//!
//! An [`Input`] is opened by [`open`](fn@open): `.npy`, `.npz`, `.safetensors`, `.pt`, `.gguf`, a sharded checkpoint,
//! text, raw bytes, a file or a pipe. It knows nothing of outputs.

mod archive;
mod checked;
mod field;
mod folder;
mod gguf;
mod glob;
#[cfg(feature = "hdf5")]
mod hdf5;
mod integers;
mod location;
mod notes;
mod npz;
mod open;
mod opened;
mod parsed;
mod pattern;
pub(crate) mod raw;
mod read_as;
mod sharded;
pub(crate) mod single;
mod text;
mod torch;
mod watched;
mod zarr;
mod zip;

pub(crate) use checked::{StoredMember, Summed};
pub use field::FieldFault;
pub(crate) use field::take_fields;
pub use folder::{SmallFile, SmallFiles, is_in_folder, remote_folder, small_files};
pub(crate) use folder::{old_shards, single_file};
pub use gguf::GgufSplitFault;
pub use glob::PatternError;
pub(crate) use glob::{CarryError, Pattern};
pub use integers::IntegersFault;
pub use location::Location;
pub use notes::Notes;
pub use open::{MissingChunks, OpenOptions, UseOfIndex, open, open_watched};
pub(crate) use open::{RecognisedFile, recognise};
pub use opened::{
    Absent, BadMember, Checkpoint, Input, Missing, MissingTensor, PartFile, Unreadable,
    UnreadableCause,
};
pub(crate) use opened::{Bytes, DeflatedMember, GgufPart};
pub(crate) use parsed::{failed_source, failed_stream, finish};
pub use pattern::SelectFault;
pub(crate) use pattern::find;
pub use raw::{Given, RawFault, RawLayout};
pub(crate) use read_as::read_as;
pub use read_as::{ReadAs, ReadAsFault};
pub use sharded::ShardsFault;
pub use single::{InGzip, in_gzip};
pub use text::{TextFault, TextOptions, TextPlace};
pub(crate) use zarr::is_folder as is_zarr_folder;
