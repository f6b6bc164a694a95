//! GGUF, the format of llama.cpp's models: versions 2 and 3, in either byte order.
//!
//! ```text
//! GGUF │ version │ number of tensors │ of metadata │ key, type, value ... │
//!   name, number of axes, lengths (the last axis first), type, offset ... │ padding │ data
//! ```
//!
//! Tensors begin at multiples of the alignment behind the header. Those of quantised types are blocks of
//! elements along the last axis ([`BlockType`](crate::dtype::BlockType)), of which nothing here says what is
//! in them. The format is described in ggml's `docs/gguf.md`.

use crate::dtype::{DType, Endian};
use crate::format::error::FormatError;
use crate::format::header::data_bytes;
use crate::format::repeated::first_repeated;
use crate::format::tensor::TensorInfo;
use crate::format::tensors::Tensors;
use crate::shape::{MAX_NDIM, Order};
use crate::source::Source;

mod error;
mod metadata;
mod read;
mod types;

pub use error::{GgufError, GgufTensorFault};
pub use metadata::{GgufMetadata, MetadataError, MetadataValue};

use read::HeaderReader;

const MAGIC: &[u8] = b"GGUF";

/// What tensors begin at multiples of, where the metadata say nothing.
const ALIGNMENT: u64 = 32;

/// The most bytes of all names together: as long as the header of a `.safetensors` may be.
const MOST_NAMES: u64 = 100_000_000;

/// Whether a file that begins with these bytes is one. The name of a column may begin with the same
/// letters, and has no version behind them.
pub(crate) fn begins(first: &[u8]) -> bool {
    let version = first.strip_prefix(MAGIC).and_then(|rest| rest.first_chunk::<4>());
    version.is_some_and(|version| version.contains(&0))
}

/// What the header of a file says.
#[derive(Clone, Debug)]
pub struct GgufHeader {
    /// The tensors, in the order of their bytes.
    pub tensors: Tensors,
    /// What else it says.
    pub metadata: GgufMetadata,
    /// Which of several files it is; `None` for one alone.
    pub split: Option<SplitPlace>,
}

/// One of several files that together are a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitPlace {
    /// Which one, from 0 on.
    pub number: u64,
    /// How many there are.
    pub count: u64,
    /// How many tensors all of them have, where that is said.
    pub tensors: Option<u64>,
}

impl GgufHeader {
    /// Read the header of a file.
    ///
    /// # Errors
    /// [`GgufError`]; [`FormatError::HeaderCutShort`] and [`FormatError::CutShort`] for a file that is
    /// shorter than it says.
    pub fn read(source: &dyn Source) -> Result<GgufHeader, FormatError> {
        let mut reader = HeaderReader::at(source, MAGIC.len() as u64, Endian::Little);
        let mut version = reader.u32()?;
        if version & 0xffff == 0 {
            (version, reader.endian) = (version.swap_bytes(), Endian::Big);
        }
        if !matches!(version, 2 | 3) {
            return Err(GgufError::Version(version).into());
        }
        let (count, metadata_count) = (reader.u64()?, reader.u64()?);
        let (metadata, known) = GgufMetadata::read(&mut reader, metadata_count)?;
        let alignment = known.alignment.unwrap_or(ALIGNMENT);
        let mut tensors = Tensors::default();
        let mut names = 0;
        for _ in 0..count {
            let tensor = tensor(&mut reader, alignment)?;
            names += tensor.name.as_deref().map_or(0, str::len) as u64;
            if names > MOST_NAMES {
                return Err(GgufError::Long { what: "names of tensors", most: MOST_NAMES }.into());
            }
            tensors.push(&tensor);
        }
        if let Some(name) = first_repeated(tensors.names().map(Option::unwrap_or_default)) {
            return Err(GgufError::Twice { what: "of its tensors", name: name.to_owned() }.into());
        }
        // the header lies in the file, so that its length has less than 64 bits
        let data = reader.position().next_multiple_of(alignment);
        let mut placed: Tensors = tensors.iter().map(|tensor| tensor.placed(0, data)).collect();
        let end = placed.iter().map(|tensor| tensor.data().end).max();
        if let Some(expected) = end.filter(|&end| end > source.len()) {
            return Err(FormatError::CutShort { expected, found: source.len() });
        }
        placed.sort_by_place();
        let split = match known.split {
            [number, Some(count), tensors] if count > 1 => {
                Some(SplitPlace { number: number.unwrap_or(0), count, tensors })
            }
            _ => None,
        };
        Ok(GgufHeader { tensors: placed, metadata, split })
    }
}

/// The next tensor, with its place behind the header.
fn tensor(reader: &mut HeaderReader<'_>, alignment: u64) -> Result<TensorInfo, FormatError> {
    let name = String::from_utf8(reader.text(MOST_NAMES, "names of tensors")?);
    let name = name.map_err(|_| GgufError::NotUtf8("a tensor"))?;
    let failed = |fault| FormatError::from(GgufError::Tensor { name: name.clone(), fault });
    let ndim = reader.u32()?;
    if ndim as usize > MAX_NDIM {
        return Err(failed(GgufTensorFault::Axes(ndim)));
    }
    let mut shape = (0..ndim).map(|_| reader.u64()).collect::<Result<Vec<u64>, _>>()?;
    shape.reverse();
    let (number, offset) = (reader.u32()?, reader.u64()?);
    let dtype = types::dtype(number, reader.endian);
    let dtype = dtype.ok_or_else(|| failed(GgufTensorFault::Type(number)))?;
    if let DType::Blocks(block) = dtype {
        let (len, elements, name) =
            (shape.last().copied().unwrap_or(1), block.elements, block.name);
        if !len.is_multiple_of(elements) || shape.is_empty() {
            return Err(failed(GgufTensorFault::PartOfBlock { len, block: elements, name }));
        }
        // what may be too large is the shape in elements
        if data_bytes(&shape, 8).is_none() {
            return Err(failed(GgufTensorFault::TooLarge(shape)));
        }
        shape.iter_mut().rev().take(1).for_each(|len| *len /= elements);
    }
    if data_bytes(&shape, dtype.item_bits()).is_none() {
        return Err(failed(GgufTensorFault::TooLarge(shape)));
    }
    if !offset.is_multiple_of(alignment) {
        return Err(failed(GgufTensorFault::Unaligned { offset, alignment }));
    }
    let tensor = TensorInfo::new(dtype, shape, Order::C, offset);
    Ok(TensorInfo { name: Some(name), ..tensor })
}
