//! What plans are divided into.

use crate::runs::Runs;

/// One piece of a plan: where its bytes come from, and where they go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its bytes in the input.
    pub input: Runs,
    /// Where they go.
    pub output: OutputRows,
}

/// Where a piece goes in the output: `rows` ranges of `row_bytes` bytes, `row_stride` bytes apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputRows {
    /// Where the first row begins, in bytes from the beginning of the output.
    pub offset: u64,
    /// How many rows there are; 1 for a piece that is one range.
    pub rows: u64,
    /// Bytes a row.
    pub row_bytes: u64,
    /// Bytes from the beginning of a row to that of the next.
    pub row_stride: u64,
}

impl OutputRows {
    /// One contiguous range.
    pub fn range(offset: u64, bytes: u64) -> OutputRows {
        OutputRows { offset, rows: 1, row_bytes: bytes, row_stride: bytes }
    }

    /// Bytes of all rows together.
    pub fn bytes(&self) -> u64 {
        self.rows * self.row_bytes
    }
}

/// The bytes of a piece: half of them and the input's share fit in a level-2 cache.
pub const PIECE_BYTES: u64 = 256 << 10;

/// The sizes of the pieces of a [tiled](super::Plan::tiled) plan, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Tiling {
    /// A piece that is one range of the output, at most.
    pub piece_bytes: u64,
    /// A piece of several rows, about; its share of the input is as large.
    pub box_bytes: u64,
    /// How much of the input's contiguous axis such a piece takes.
    pub width_bytes: u64,
}

impl Tiling {
    /// For inputs in memory: a few cache lines of the input, long rows of the output.
    pub const MAPPED: Tiling =
        Tiling { piece_bytes: PIECE_BYTES, box_bytes: 1 << 20, width_bytes: 256 };

    /// For inputs that are read by position: fewer, longer reads.
    pub const READ: Tiling = Tiling { width_bytes: 1024, ..Tiling::MAPPED };
}
