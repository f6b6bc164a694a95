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
//! # Ok::<(), tslice::ContainerError>(())
//! ```
//!
//! See what a file holds:
//!
//! ```no_run
//! for tensor in tslice::open("model.safetensors.index.json")?.tensors() {
//!     println!("{} {} {:?}", tensor.name().unwrap_or("-"), tensor.dtype(), tensor.shape());
//! }
//! # Ok::<(), tslice::ContainerError>(())
//! ```
//!
//! Read a slice into memory. The type must be that of the file, half floats are those of the
//! `half` crate, and the byte order does not matter:
//!
//! ```no_run
//! let file = tslice::open("model.safetensors")?;
//! let bias: Vec<f32> = file.tensor("bias")?.all()?.read()?;
//! let column: Vec<half::bf16> = file.tensor("embed.weight")?.slice("[..., 0]")?.read()?;
//! # Ok::<(), tslice::ContainerError>(())
//! ```
//!
//! Gather rows by position, from memory or from another file, and replace what was there:
//!
//! ```no_run
//! use tslice::WriteOptions;
//!
//! let embed = tslice::open("model.safetensors")?.tensor("embed.weight")?;
//! embed.take(&[17, 3, 17], 0)?.write("three.npy")?;
//! let tokens = tslice::open("tokens.npy")?.only()?;
//! embed.take(&tokens, 0)?.write_with("vectors.npy", &WriteOptions::default().force(true))?;
//! # Ok::<(), tslice::ContainerError>(())
//! ```
//!
//! Join slices, cut one in files that appear together, and assign to a file:
//!
//! ```no_run
//! use tslice::job::Cuts;
//!
//! let a = tslice::open("a.npy")?.only()?.all()?;
//! let b = tslice::open("b.npy")?.only()?.slice("[10:]")?;
//! tslice::concatenate(&[a.clone(), b], 0).write("both.npy")?;
//! tslice::write_all("a-{}.npy", &a.split(0, &Cuts::Parts(4))?, &Default::default())?;
//!
//! let target = tslice::open("target.npy")?.only()?;
//! target.edit("[..., -1]")?.fill(0)?.in_place()?;
//! # Ok::<(), tslice::ContainerError>(())
//! ```
//!
//! The same as programs stand in `examples/`. All of it is what the command-line program runs.
//! `tslice = { version = "0.1", default-features = false }` leaves out the packages that only that
//! program needs.
//!
//! # Modules
//!
//! The program is one pipe, and nothing flows back:
//!
//! ```text
//! command line ─► IndexExpr ─► Selection ─► View ─► Plan ─► execute ─► Sink
//!   (cli)         (index)      (resolve)    (view)  (plan)  (pack)     (file, stdout)
//!                     input gives the tensor: its bytes (source), dtype, shape (format) ▲
//! ```
//!
//! The modules below stand in that order. The core opens no files and knows no paths: that is for
//! `source`, `sink`, [`input`] and [`job`]. The library prints nothing and knows no flags.

pub mod index;

pub mod cast;
pub mod dtype;
pub mod element;
pub mod gather;
pub mod permutation;
pub mod runs;
pub mod shape;
pub mod view;

pub mod plan;

pub mod execute;

pub mod join;
pub mod scatter;

mod crc;
mod os;
pub mod sink;
pub mod source;

pub mod chunked;
pub mod compare;
pub mod format;
pub mod picture;
pub mod print;
pub mod statistics;
pub mod text;

pub mod error;
pub mod handle;
pub mod input;
pub mod job;
pub mod output;
pub mod region;

pub use error::ContainerError;
pub use handle::{Change, Editable, JoinedSlices, concatenate, stack, write_all};
pub use handle::{Element, Slice, Tensor, TensorFile, open_file as open};
pub use output::WriteOptions;
pub use region::IndexTensor;

/// The program in docs/library.md, which is compiled.
#[cfg(doctest)]
#[doc = include_str!("../docs/library.md")]
struct LibraryPage;
