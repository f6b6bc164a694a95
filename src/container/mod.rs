//! Files that hold tensors, whatever their format: opened, chosen from, written, changed.
//!
//! An [`Input`] is opened by [`open`]: `.npy`, `.npz`, `.safetensors`, a sharded checkpoint, raw
//! bytes, a file or a pipe. An [`Output`] has a place, a format (one of [`layout::FORMATS`]) and
//! options. [`write()`] copies what is taken of the one into the other, and [`edit`] changes a file.
//! Errors say which file, which tensor and why ([`ContainerError`]); flags and the words around
//! them are the command line's.

mod align;
mod axes;
mod cast;
pub mod compare;
pub mod edit;
mod element;
mod error;
mod fault;
mod field;
mod file;
mod indices;
mod input;
mod integers;
mod job;
mod join;
pub mod layout;
mod lists;
mod npz;
mod open;
mod options;
mod output;
mod overwrite;
mod parallel;
mod part;
mod pattern;
mod picture;
mod raw;
mod region_reader;
mod rename;
mod select;
mod sharded;
mod single;
mod split;
mod statistics;
mod take;
mod unmap;
mod version;
mod watched;
mod window;

pub use align::{shareable_bytes, shared_bytes};
pub use axes::Axes;
pub use cast::Casts;
pub use element::Element;
pub use error::{Cause, ContainerError, FileName};
pub use fault::{
    EditFault, FieldFault, FormatOption, Given, IntegersFault, JoinFault, LayoutFault, ListFault,
    PartFault, PictureFault, RawFault, ReadFault, SelectFault, ShardsFault, SplitFault,
};
pub use file::{Slice, Tensor, TensorFile, open as open_file};
pub use indices::{IndexTensor, gathered_shape};
pub use input::{Checkpoint, Input, Location, Unreadable};
pub use job::{announced, check, write};
pub use join::{Along, JoinOptions, Joined};
pub use lists::{IndexRules, ListError, Lists, OpenIndex};
pub use open::{OpenOptions, open, open_watched};
pub use options::WriteOptions;
pub use output::{Item, Output, Preparation, Prepared};
pub use part::Parts;
pub use picture::Drawing;
pub use raw::RawLayout;
pub use region_reader::RegionReader;
pub use select::{Select, Selected, SelectedTensors, select};
pub use split::{Cuts, MAX_PARTS, Part, PartNames, Split, SplitOptions};
pub use statistics::statistics;
pub use take::{Gathered, GatheredList, Region, SideBySide, Take, layout as layout_of};
