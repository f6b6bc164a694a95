//! Datasets of HDF5 files: what they are, where their bytes lie, and how their chunks are decoded.
//!
//! Superblock, objects and the indexes of chunks are read by the `hdf5-pure` package, which is Rust alone:
//! no library of C with a lock that all threads share, and no memory that a damaged file could reach. It
//! reads through the input's own [`Source`]. Elements that lie one after the other are found by their
//! offset in the file; chunks are read by theirs, and decoded here.
//!
//! ```text
//!   superblock ─► groups ─► a dataset: dtype, shape ─► contiguous: an offset in the file
//!                                                   ─► chunks: offsets, filters
//!                                                   ─► compact, never written: by the package's reader
//! ```

mod chunks;
mod dtype;
mod error;
mod filters;
mod scale_offset;

use std::sync::Arc;

use hdf5_pure::{Dataset, File, FormatError as PureError, Group, Layout};

use super::brief::brief;
use super::guarded::guarded;
use super::tensor::{Storage, StorageKind, TensorInfo};
use crate::format::Chunks;
use crate::shape::{Order, byte_count};
use crate::source::Source;
use chunks::{H5Chunks, H5Whole};
use dtype::H5Type;
pub(crate) use error::Hdf5Error;

/// The first bytes of a file, at 0 or behind a user block of 512 bytes or a power of 2 times as many.
pub(crate) const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";

/// The deepest group, and how many groups and datasets there may be: a group may lie in itself.
const MAX_DEPTH: usize = 100;
const MAX_OBJECTS: usize = 1_000_000;

/// A dataset: its path without the first `/`, and what it is as a tensor.
pub(crate) struct H5Dataset {
    pub(crate) path: String,
    pub(crate) tensor: Result<TensorInfo, Hdf5Error>,
}

/// All datasets of a file, in the order of their paths. Links to other files are not followed.
///
/// # Errors
/// [`Hdf5Error`]: no file of HDF5, damaged groups.
pub(crate) fn datasets(source: &Arc<dyn Source>) -> Result<Vec<H5Dataset>, Hdf5Error> {
    guarded(|| all(source)).map_err(Hdf5Error::Damaged)?
}

fn all(source: &Arc<dyn Source>) -> Result<Vec<H5Dataset>, Hdf5Error> {
    let file = File::from_source(FileBytes(Arc::clone(source))).map_err(damaged)?;
    let (mut found, mut objects) = (Vec::new(), 0);
    let mut groups: Vec<(String, usize, Group)> = vec![(String::new(), 0, file.root())];
    while let Some((path, depth, group)) = groups.pop() {
        for (name, dataset) in group.iter_datasets().map_err(damaged)? {
            objects += 1;
            let tensor = guarded(|| tensor(&dataset, source.len())).map_err(Hdf5Error::Damaged);
            let tensor = tensor.flatten();
            found.push(H5Dataset { path: format!("{path}{name}"), tensor });
        }
        for (name, inner) in group.iter_groups().map_err(damaged)? {
            objects += 1;
            groups.push((format!("{path}{name}/"), depth + 1, inner));
        }
        if depth >= MAX_DEPTH || objects > MAX_OBJECTS {
            return Err(Hdf5Error::Endless);
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// The tensor that a dataset of a file of that length is.
fn tensor(dataset: &Dataset, file_len: u64) -> Result<TensorInfo, Hdf5Error> {
    let H5Type { dtype, axes } = H5Type::of(&dataset.datatype().map_err(damaged)?)?;
    let rows = dataset.shape().map_err(damaged)?;
    let mut shape = rows.clone();
    shape.extend(&axes);
    let item = dtype.item_bits() / 8;
    let bytes = byte_count(&shape, item * 8).ok_or(Hdf5Error::TooLarge)?;
    let mut tensor = TensorInfo::new(dtype, shape.clone(), Order::C, 0);
    let chunks: Arc<dyn Chunks> = match dataset.layout().map_err(damaged)? {
        Layout::Virtual => return Err(Hdf5Error::Virtual),
        Layout::Contiguous { address: Some(address), size } => {
            let end = address.checked_add(size).filter(|end| *end <= file_len);
            if end.is_none() || size < bytes {
                return Err(Hdf5Error::CutShort);
            }
            tensor.storage.data = address..address + bytes;
            return Ok(tensor);
        }
        Layout::Contiguous { address: None, size } if size < bytes => {
            return Err(Hdf5Error::Damaged("it has no elements, or they lie elsewhere".to_owned()));
        }
        Layout::Chunked { mut chunk_shape, .. } if chunk_shape.len() == rows.len() => {
            chunk_shape.extend(&axes);
            let filters = dataset.filter_pipeline();
            filters::check(&filters)?;
            Arc::new(H5Chunks::new(dataset.clone(), shape, chunk_shape, item, filters)?)
        }
        Layout::Chunked { .. } => {
            return Err(Hdf5Error::Damaged("its chunks have another number of axes".to_owned()));
        }
        // compact, or never written
        _ => Arc::new(H5Whole::new(dataset.clone(), shape, item)),
    };
    tensor.storage = Storage { part: 0, data: 0..0, kind: StorageKind::Chunks(chunks) };
    Ok(tensor)
}

/// The bytes of a file, to the package.
struct FileBytes(Arc<dyn Source>);

impl hdf5_pure::Source for FileBytes {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), PureError> {
        let length = out.len() as u64;
        let end = offset.checked_add(length).ok_or(PureError::OffsetOverflow { offset, length })?;
        let read = self.0.read(offset..end, &mut Vec::new(), out);
        read.map_err(|error| PureError::Source(error.to_string()))
    }
}

fn damaged(error: hdf5_pure::Error) -> Hdf5Error {
    Hdf5Error::Damaged(brief(&error.to_string()))
}
