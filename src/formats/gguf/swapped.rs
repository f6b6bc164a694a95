//! Blocks of a big-endian file, whose numbers of several bytes are swapped when they are read: so a
//! block has the same bytes in every file.

use super::GgufTensorFault;
use crate::dtype::{BlockType, DType};
use crate::source::{Source, SourceError};
use crate::tensor::{Chunks, StorageKind, TensorInfo};

/// Numbers of several bytes in a block: their beginning and end, and the bytes of each.
type Numbers = (usize, usize, usize);

/// The numbers of several bytes in the blocks of each type, from `ggml-common.h`. Types are left
/// out in which programs read the same bytes as numbers of several widths.
const NUMBERS: [(&str, &[Numbers]); 18] = [
    ("Q4_0", &[(0, 2, 2)]),
    ("Q4_1", &[(0, 4, 2)]),
    ("Q5_0", &[(0, 2, 2)]),
    ("Q5_1", &[(0, 4, 2)]),
    ("Q8_0", &[(0, 2, 2)]),
    ("Q2_K", &[(80, 84, 2)]),
    ("Q3_K", &[(108, 110, 2)]),
    ("Q4_K", &[(0, 4, 2)]),
    ("Q5_K", &[(0, 4, 2)]),
    ("Q6_K", &[(208, 210, 2)]),
    ("Q8_K", &[(0, 4, 4), (260, 292, 2)]),
    ("IQ4_NL", &[(0, 2, 2)]),
    ("IQ4_XS", &[(0, 4, 2)]),
    ("TQ1_0", &[(52, 54, 2)]),
    ("TQ2_0", &[(64, 66, 2)]),
    ("MXFP4", &[]),
    ("NVFP4", &[]),
    ("Q1_0", &[(0, 2, 2)]),
];

/// The most bytes of a chunk of whole rows.
const CHUNK: u64 = 256 << 10;

/// Adjacent blocks, in chunks of several.
#[derive(Debug)]
struct SwappedBlocks {
    block: &'static BlockType,
    numbers: &'static [Numbers],
    /// The position of the first block in the input.
    start: u64,
    shape: Vec<u64>,
    chunk: Vec<u64>,
}

impl Chunks for SwappedBlocks {
    fn chunk_shape(&self) -> &[u64] {
        &self.chunk
    }

    fn decode(
        &self,
        at: &[u64],
        _needed: u64,
        source: &dyn Source,
    ) -> Result<Vec<u8>, SourceError> {
        let mut first = 0;
        let mut count = 1;
        for ((&at, &len), &chunk) in at.iter().zip(&self.shape).zip(&self.chunk) {
            first = first * len + at * chunk;
            count *= chunk.min(len - at * chunk);
        }
        let size = self.block.bytes;
        let mut blocks = vec![0; (count * size) as usize];
        let start = self.start + first * size;
        source.read(start..start + count * size, &mut Vec::new(), &mut blocks)?;
        for block in blocks.chunks_exact_mut(size as usize) {
            for &(begin, end, width) in self.numbers {
                block[begin..end].chunks_exact_mut(width).for_each(<[u8]>::reverse);
            }
        }
        Ok(blocks)
    }
}

impl TensorInfo {
    /// This tensor of a big-endian file, at its position in the input.
    pub(crate) fn with_little_blocks(mut self) -> Result<TensorInfo, GgufTensorFault> {
        let DType::Blocks(block) = self.dtype else { return Ok(self) };
        let known = NUMBERS.iter().find(|(name, _)| *name == block.name);
        let &(_, numbers) = known.ok_or(GgufTensorFault::BigEndian(block.name))?;
        let mut chunk = vec![1; self.shape.len()];
        let mut most = (CHUNK / block.bytes).max(1);
        for (chunk, &len) in chunk.iter_mut().zip(&self.shape).rev() {
            *chunk = len.clamp(1, most);
            most = if *chunk < len { 1 } else { most / *chunk };
            if most <= 1 {
                break;
            }
        }
        let start = self.storage.data.start;
        let shape = self.shape.clone();
        let blocks = SwappedBlocks { block, numbers, start, shape, chunk };
        self.storage.kind = StorageKind::Chunks(std::sync::Arc::new(blocks));
        Ok(self)
    }
}
