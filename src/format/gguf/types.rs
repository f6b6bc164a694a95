//! The types of elements that GGUF has, by their numbers.

use crate::dtype::{BlockType, DType, Endian, Scalar};

/// Types of numbers, as `ggml.h` has them.
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

/// Types whose elements share blocks: the number, the name, how many elements have how many bytes. Numbers that
/// are missing in both tables were taken back.
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

/// The type of this number in a file of that byte order, if there is one.
pub(super) fn dtype(number: u32, endian: Endian) -> Option<DType> {
    if let Some((_, block)) = BLOCKS.iter().find(|(known, _)| *known == number) {
        return Some(DType::Blocks(block));
    }
    let (_, scalar) = NUMBERS.into_iter().find(|(known, _)| *known == number)?;
    Some(DType::Scalar(scalar, if scalar.bits() == 8 { Endian::Little } else { endian }))
}
