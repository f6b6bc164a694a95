//! Cut pieces out of tensor files of any size: `.npy`, `.npz`, `.safetensors`, sharded checkpoints.
//!
//! Opening a file reads its header. A tensor is a handle, and so is a slice of it; bytes move when
//! a slice is written or read into memory: in parallel, and only those that are needed.
//!
//! # Examples
//!
//! Open a checkpoint, slice a tensor by NumPy's notation, and write the slice to a file of its own:
//!
//! ```no_run
//! let file = tslice::open("model.safetensors")?;
//! let rows = file.tensor("embed.weight")?.slice("[:32000]")?;
//! rows.write("embed.npy")?;
//! # Ok::<(), tslice::Error>(())
//! ```
//!
//! See what a file holds:
//!
//! ```no_run
//! for tensor in tslice::open("model.safetensors.index.json")?.tensors() {
//!     println!("{} {} {:?}", tensor.name().unwrap_or("-"), tensor.dtype(), tensor.shape());
//! }
//! # Ok::<(), tslice::Error>(())
//! ```
//!
//! Read a slice into memory. The type must be that of the file, half floats are those of the
//! `half` crate, and the byte order does not matter. An index is a text or numbers:
//!
//! ```no_run
//! let file = tslice::open("model.safetensors")?;
//! let bias: Vec<f32> = file.tensor("bias")?.all().read()?;
//! let column: Vec<half::bf16> = file.tensor("embed.weight")?.slice((.., 0))?.read()?;
//! # Ok::<(), tslice::Error>(())
//! ```
//!
//! Gather rows by position, from memory or from another file, and replace what was there:
//!
//! ```no_run
//! use tslice::WriteOptions;
//!
//! let embed = tslice::open("model.safetensors")?.tensor("embed.weight")?;
//! embed.take([17, 3, 17], 0)?.write("three.npy")?;
//! let tokens = tslice::open("tokens.npy")?.only()?;
//! embed.take(&tokens, 0)?.write_with("vectors.npy", &WriteOptions::default().force(true))?;
//! # Ok::<(), tslice::Error>(())
//! ```
//!
//! Join slices, cut one in files that appear together, make one file of several tensors, and assign to a file:
//!
//! ```no_run
//! use tslice::Cuts;
//!
//! let a = tslice::open("a.npy")?.only()?.all();
//! let b = tslice::open("b.npy")?.only()?.slice("[10:]")?;
//! tslice::write_concatenated("both.npy", &[a.clone(), b], 0, &Default::default())?;
//! tslice::write_all("a-{}.npy", &a.split(0, &Cuts::Parts(4))?, &Default::default())?;
//! let tensors = [a, tslice::open("c.npy")?.only()?.all()];
//! tslice::write_merged("both.safetensors", &tensors, &Default::default())?;
//!
//! let target = tslice::open("target.npy")?.only()?;
//! target.edit("[..., -1]")?.fill(0)?.in_place()?;
//! # Ok::<(), tslice::Error>(())
//! ```
//!
//! The same as programs stand in `examples/`. All of it is what the command-line program runs.
//! `tslice = { version = "0.1", default-features = false }` leaves out the packages that only that
//! program needs.
//!
//! The modules are hidden, and no part of the library's surface: what a program needs of them is
//! named here. ARCHITECTURE.md tells how they work together.

// Public for the command-line program, the tests and the benchmarks only: these modules may change
// with every version.
#[doc(hidden)]
pub mod cast;
#[doc(hidden)]
pub mod chunked;
#[doc(hidden)]
pub mod compare;
#[doc(hidden)]
pub mod digest;
#[doc(hidden)]
pub mod dtype;
#[doc(hidden)]
pub mod element;
#[doc(hidden)]
pub mod error;
#[doc(hidden)]
pub mod execute;
#[doc(hidden)]
pub mod formats;
#[doc(hidden)]
pub mod gather;
#[doc(hidden)]
pub mod handle;
#[doc(hidden)]
pub mod index;
#[doc(hidden)]
pub mod input;
#[doc(hidden)]
pub mod job;
#[doc(hidden)]
pub mod join;
#[doc(hidden)]
pub mod output;
#[doc(hidden)]
#[cfg(feature = "cli")]
pub mod picture;
#[doc(hidden)]
pub mod plan;
#[doc(hidden)]
pub mod print;
#[doc(hidden)]
pub mod region;
#[doc(hidden)]
pub mod runs;
#[doc(hidden)]
pub mod scatter;
#[doc(hidden)]
pub mod shape;
#[doc(hidden)]
pub mod sink;
#[doc(hidden)]
pub mod source;
#[doc(hidden)]
pub mod statistics;
#[doc(hidden)]
pub mod tensor;
#[doc(hidden)]
pub mod view;

mod crc;
mod os;

pub use cast::{CastError, Casting};
pub use dtype::{BlockType, DType, Endian, Field, NpyType, Scalar, Structure, TimeKind, TimeUnit};
pub use error::{Cause, Error, ErrorKind, FileName};
pub use execute::{ExecuteError, FillError, Workers};
pub use formats::{FormatError, NameError, outputs as output_formats, parse_dtype};
pub use gather::{GatherError, Options as GatherOptions, OutOfRange};
#[cfg(feature = "ndarray")]
pub use handle::tensor_of;
pub use handle::{
    Change, ELLIPSIS, Editable, Element, HeldFault, IntoIndex, LoadedTensor, NEW_AXIS, ReadChunks,
    ReadFault, Slice, Tensor, TensorFile, open_file as open, save, step, tensor, write_all,
    write_concatenated, write_merged, write_stacked,
};
pub use index::numpy::{ParseError, parse as parse_index};
pub use index::resolve::ResolveError;
pub use index::strided_slice::{StridedSlice, StridedSliceError};
pub use index::{Array, FileRef, IndexExpr, Item, List, Shuffle, SliceItem, SpannedExpr};
pub use input::{
    FieldFault, Format, LengthFault, Location, Missing, MissingChunks, Notes, OpenOptions,
    PlainText, RawLayout, ReadAs, ReadAsFault, SelectFault, UseOfIndex,
};
pub use job::{Cuts, EditFault, Extent, JoinFault, MergeFault, SplitFault};
pub use output::layout::OutputFormat;
pub use output::{Chunking, LayoutFault, MetadataChange, WriteOptions};
pub use region::IndexTensor;
pub use shape::{Order, Permutation, PermutationError};
pub use sink::SinkError;
pub use source::remote::Address;
pub use source::{IoMode, SourceError};
pub use tensor::{ChunkCodec, Chunks, Storage, StorageKind, StoredChunks, TensorInfo};

#[cfg(not(any(unix, windows)))]
compile_error!("tslice needs a Unix system or Windows");

/// Compiles the program in docs/library.md.
#[cfg(doctest)]
#[doc = include_str!("../docs/library.md")]
struct LibraryPage;
