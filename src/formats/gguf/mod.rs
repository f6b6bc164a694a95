//! GGUF, the format of llama.cpp's models: versions 2 and 3, in either byte order.
//!
//! ```text
//! GGUF │ version │ number of tensors │ of metadata │ key, type, value ... │
//!   name, number of axes, lengths (the last axis first), type, offset ... │ padding │ data
//! ```
//!
//! Tensors begin at multiples of the alignment after the header. Tensors of quantised types are blocks of
//! elements along the last axis ([`BlockType`](crate::dtype::BlockType)), whose contents are not decoded.
//! The format is described in ggml's `docs/gguf.md`.
//!
//! The items of a quantised tensor are its blocks, and its shape counts blocks, so that everything after the
//! index moves them like other items of bytes. An index counts elements: `OpenIndex::resolve` applies it to
//! the shape in elements, and turns the last axis of the selection into one of blocks, or reports an error.

use std::io::Write;

use super::headed::PIECE;
use super::header::HeaderReader;
use crate::dtype::{BlockType, DType, Endian, Scalar};
use crate::error::{Cause, ErrorKind, Fault};
use crate::input::LengthFault;
use crate::shape::{AsTuple, MAX_NDIM, Order};
use crate::source::Source;
use crate::tensor::{TensorInfo, Tensors, brief, data_bytes, first_repeated};

mod metadata;
mod open;
mod output;
mod swapped;

pub use metadata::{GgufMetadata, MetadataError, MetadataValue};
pub(crate) use open::FORMAT;
pub use open::GgufSplitFault;
pub(crate) use output::OUTPUT;

const MAGIC: &[u8] = b"GGUF";

/// The alignment of tensors, if the metadata have none.
const ALIGNMENT: u64 = 32;

/// The most bytes of all names together: the longest header of a `.safetensors`.
const MOST_NAMES: u64 = 100_000_000;

/// Whether a file that begins with these bytes is GGUF. A text may begin with the same letters, and
/// has no version after them.
pub(crate) fn begins(first: &[u8]) -> bool {
    let version = first.strip_prefix(MAGIC).and_then(|rest| rest.first_chunk::<4>());
    version.is_some_and(|version| version.contains(&0))
}

/// The contents of a file's header.
#[derive(Clone, Debug)]
pub struct GgufHeader {
    /// The tensors, in the order of their bytes.
    pub tensors: Tensors,
    /// The metadata.
    pub metadata: GgufMetadata,
    pub endian: Endian,
    /// The number in a split model; `None` for a single file.
    pub split: Option<SplitNumber>,
}

/// The number of a file of a split model, and the counts that it states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitNumber {
    /// The number of the file, from 0 on.
    pub number: u64,
    pub count: u64,
    /// The number of tensors in all files, if it is stated.
    pub tensors: Option<u64>,
}

impl GgufHeader {
    pub fn read(source: &dyn Source) -> Result<GgufHeader, Cause> {
        let mut reader = HeaderReader::at(source, MAGIC.len() as u64, Endian::Little);
        let mut version = reader.u32()?;
        if version & 0xffff == 0 {
            (version, reader.endian) = (version.swap_bytes(), Endian::Big);
        }
        if !matches!(version, 2 | 3) {
            return Err(GgufError::Version(version).into());
        }
        let count = reader.u64()?;
        let metadata_count = reader.u64()?;
        let (metadata, split) = GgufMetadata::read(&mut reader, metadata_count)?;
        let alignment = metadata.alignment;
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
        // the header is in the file, so that its length has less than 64 bits
        let data = reader.position().next_multiple_of(alignment);
        let mut placed: Tensors = tensors.iter().map(|tensor| tensor.placed(0, data)).collect();
        let end = placed.iter().map(|tensor| tensor.data().end).max();
        if let Some(expected) = end.filter(|&end| end > source.len()) {
            return Err(LengthFault::CutShort { expected, found: source.len() }.into());
        }
        placed.sort_by_place();
        let split = match split {
            [number, Some(count), tensors] if count > 1 => {
                Some(SplitNumber { number: number.unwrap_or(0), count, tensors })
            }
            _ => None,
        };
        Ok(GgufHeader { tensors: placed, metadata, endian: reader.endian, split })
    }
}

/// The next tensor, with its offset after the header.
fn tensor(reader: &mut HeaderReader<'_>, alignment: u64) -> Result<TensorInfo, Cause> {
    let name = String::from_utf8(reader.text(MOST_NAMES, "names of tensors")?);
    let name = name.map_err(|_| GgufError::NotUtf8("a tensor"))?;
    let failed = |fault| Cause::from(GgufError::Tensor { name: name.clone(), fault });
    let ndim = reader.u32()?;
    if ndim as usize > MAX_NDIM {
        return Err(failed(GgufTensorFault::Axes(ndim)));
    }
    let mut shape = (0..ndim).map(|_| reader.u64()).collect::<Result<Vec<u64>, _>>()?;
    shape.reverse();
    let number = reader.u32()?;
    let offset = reader.u64()?;
    let dtype = dtype(number, reader.endian);
    let dtype = dtype.ok_or_else(|| failed(GgufTensorFault::Type(number)))?;
    if let DType::Blocks(block) = dtype {
        let len = shape.last().copied().unwrap_or(1);
        let elements = block.elements;
        let name = block.name;
        if !len.is_multiple_of(elements) || shape.is_empty() {
            return Err(failed(GgufTensorFault::PartOfBlock { len, block: elements, name }));
        }
        // the shape in elements may be too large
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

/// A fault of a `.gguf` header.
#[derive(Debug, thiserror::Error)]
pub enum GgufError {
    #[error("version {0} is not read, only 2 and 3 are")]
    Version(u32),
    #[error("its {what} have more than {most} bytes")]
    Long { what: &'static str, most: u64 },
    #[error("the name of {0} is not UTF-8")]
    NotUtf8(&'static str),
    #[error("two {what} are named {:?}", brief(.name))]
    Twice { what: &'static str, name: String },
    #[error("metadata {:?} has a value of the unknown type {number}", brief(.key))]
    ValueType { key: String, number: u32 },
    #[error("metadata {:?} has lists nested deeper than {most} levels", brief(.key))]
    Deep { key: String, most: u32 },
    #[error("metadata {key:?} must be {what}")]
    Value { key: &'static str, what: &'static str },
    #[error("tensor {:?}: {fault}", brief(.name))]
    Tensor { name: String, fault: GgufTensorFault },
}

impl Fault for GgufError {
    const OF: &'static str = "gguf";

    fn kind(&self) -> ErrorKind {
        if let GgufError::Version(_) = self { ErrorKind::Unsupported } else { ErrorKind::Damaged }
    }
}

/// Why the header of a tensor is invalid.
#[derive(Debug, thiserror::Error)]
pub enum GgufTensorFault {
    #[error("its elements have the unknown type {0}")]
    Type(u32),
    #[error("it has {0} axes, and at most {MAX_NDIM} are possible")]
    Axes(u32),
    #[error("shape {} has 2^63 bytes or more", AsTuple(.0))]
    TooLarge(Vec<u64>),
    #[error("its rows have {len} elements, not a multiple of the block size {block} of {name}")]
    PartOfBlock { len: u64, block: u64, name: &'static str },
    #[error("blocks of {0} in big-endian order are not read")]
    BigEndian(&'static str),
    #[error("it begins at byte {offset} of the data, not a multiple of {alignment}")]
    Unaligned { offset: u64, alignment: u64 },
}

impl HeaderReader<'_> {
    /// Skip `len` bytes, which are numbers of `width` bytes each; with an output, pass them on little-endian.
    fn copy(
        &mut self,
        len: u64,
        width: usize,
        out: &mut Option<&mut dyn Write>,
    ) -> Result<(), MetadataError> {
        let Some(out) = out else { return Ok(self.skip(len)?) };
        let mut piece = vec![0; len.min(PIECE as u64) as usize];
        let mut left = len;
        while left > 0 {
            let numbers = &mut piece[..left.min(PIECE as u64) as usize];
            self.read(numbers)?;
            if self.endian == Endian::Big {
                numbers.chunks_exact_mut(width).for_each(<[u8]>::reverse);
            }
            out.write_all(numbers)?;
            left -= numbers.len() as u64;
        }
        Ok(())
    }

    fn u32(&mut self) -> Result<u32, Cause> {
        Ok(self.number(4)? as u32)
    }

    fn u64(&mut self) -> Result<u64, Cause> {
        self.number(8)
    }

    /// The bytes of a text, after their number, which is at most `most`.
    fn text(&mut self, most: u64, what: &'static str) -> Result<Vec<u8>, Cause> {
        let len = self.u64()?;
        self.check(len)?;
        if len > most {
            return Err(GgufError::Long { what, most }.into());
        }
        self.bytes(len)
    }
}

/// The numbers of types, from `ggml.h`.
const NUMBERS: [(u32, Scalar); 8] = [
    (0, Scalar::F32),
    (1, Scalar::F16),
    (24, Scalar::I8),
    (25, Scalar::I16),
    (26, Scalar::I32),
    (27, Scalar::I64),
    (28, Scalar::F64),
    (30, Scalar::BF16),
];

/// Types of blocks: the number, the name, and the elements and bytes of a block. Numbers that are
/// in neither table were withdrawn.
static BLOCKS: [(u32, BlockType); 26] = [
    (2, block("Q4_0", 32, 18)),
    (3, block("Q4_1", 32, 20)),
    (6, block("Q5_0", 32, 22)),
    (7, block("Q5_1", 32, 24)),
    (8, block("Q8_0", 32, 34)),
    (9, block("Q8_1", 32, 40)),
    (10, block("Q2_K", 256, 84)),
    (11, block("Q3_K", 256, 110)),
    (12, block("Q4_K", 256, 144)),
    (13, block("Q5_K", 256, 176)),
    (14, block("Q6_K", 256, 210)),
    (15, block("Q8_K", 256, 292)),
    (16, block("IQ2_XXS", 256, 66)),
    (17, block("IQ2_XS", 256, 74)),
    (18, block("IQ3_XXS", 256, 98)),
    (19, block("IQ1_S", 256, 50)),
    (20, block("IQ4_NL", 32, 18)),
    (21, block("IQ3_S", 256, 110)),
    (22, block("IQ2_S", 256, 82)),
    (23, block("IQ4_XS", 256, 136)),
    (29, block("IQ1_M", 256, 56)),
    (34, block("TQ1_0", 256, 54)),
    (35, block("TQ2_0", 256, 66)),
    (39, block("MXFP4", 32, 17)),
    (40, block("NVFP4", 64, 36)),
    (41, block("Q1_0", 128, 18)),
];

const fn block(name: &'static str, elements: u64, bytes: u64) -> BlockType {
    BlockType { name, elements, bytes }
}

/// The number of a type, if there is one.
pub(super) fn type_number(dtype: &DType) -> Option<u32> {
    match dtype {
        DType::Blocks(block) => {
            BLOCKS.iter().find(|(_, known)| known.name == block.name).map(|(number, _)| *number)
        }
        DType::Scalar(scalar, _) => {
            NUMBERS.iter().find(|(_, known)| known == scalar).map(|(number, _)| *number)
        }
        DType::Npy(_) => None,
    }
}

/// The type of this number in a file of that byte order, if there is one.
pub(super) fn dtype(number: u32, endian: Endian) -> Option<DType> {
    if let Some((_, block)) = BLOCKS.iter().find(|(known, _)| *known == number) {
        return Some(DType::Blocks(block));
    }
    let (_, scalar) = NUMBERS.into_iter().find(|(known, _)| *known == number)?;
    Some(DType::Scalar(scalar, if scalar.bits() == 8 { Endian::Little } else { endian }))
}
