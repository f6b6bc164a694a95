//! What plans are divided into.

use crate::runs::Runs;

/// One piece of a plan: where its bytes come from, and where they go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The bytes of the piece in the input: several runs where it begins or ends within a row.
    pub input: Vec<Runs>,
    /// Where the bytes go: as many, in the same order.
    pub output: Runs,
}

/// Consecutive pieces that are read together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panel {
    /// How many pieces.
    pub pieces: u64,
    /// What they need of the input, in ascending ranges.
    pub input: Vec<Runs>,
    /// How much memory the input of all panels that are read may take, in bytes.
    pub room: u64,
}

/// The bytes of a piece: half of them and the input's share fit in a level-2 cache.
pub const PIECE_BYTES: u64 = 256 << 10;

/// Gaps longer than this, in bytes, are longer than what kernels commonly read ahead.
pub(super) const READAHEAD_BYTES: u64 = 128 << 10;

/// The sizes of the pieces of a [tiled](super::Plan::tiled) plan, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Tiling {
    /// A piece that is one range of the output, at most. Rows of a piece of several, each of which is
    /// a write, are as long where that is possible.
    pub piece_bytes: u64,
    /// Where such pieces may divide rows, to begin where a block of a file does: the length of the
    /// first one, the others having `piece_bytes`.
    pub first_bytes: Option<u64>,
    /// A piece of several rows, at most.
    pub box_bytes: u64,
    /// How long the stretches of the input are that such a piece uses up.
    pub width_bytes: u64,
    /// The pages of the input that such a piece may lie in, in bytes: other pieces need the rest of them.
    pub pages_bytes: u64,
    /// Where not all fits in memory: the most of it that the input of a panel takes. Panels are then
    /// [read ahead](super::Plan::panel) and left behind as a whole.
    pub panel_bytes: Option<u64>,
}

impl Tiling {
    /// For inputs in memory: one cache line of the input, which leaves room for long rows of the output.
    /// File systems take one write of a file at a time: short rows cost more there than wide stretches
    /// save while packing.
    pub const MAPPED: Tiling = Tiling {
        piece_bytes: PIECE_BYTES,
        first_bytes: None,
        box_bytes: 2 << 20,
        width_bytes: 64,
        pages_bytes: u64::MAX,
        panel_bytes: None,
    };

    /// For inputs that are read by position: fewer, longer reads.
    pub const READ: Tiling = Tiling { width_bytes: 2 << 10, ..Tiling::MAPPED };

    /// For a source with this [limit of windows](crate::source::Source::window_limit).
    pub fn of(window_limit: Option<u64>) -> Tiling {
        if window_limit.is_some() { Tiling::READ } else { Tiling::MAPPED }
    }

    /// The tiling for pieces that become `by` times as large when they are converted.
    #[must_use]
    pub fn divided(self, by: u64) -> Tiling {
        let (piece_bytes, box_bytes) = (self.piece_bytes / by, self.box_bytes / by);
        Tiling { piece_bytes, box_bytes, ..self }
    }
}

/// The length of chunks of at most `most` that divide `len` evenly, or nearly so.
pub(super) fn evenly(len: u64, most: u64) -> u64 {
    len.div_ceil(len.div_ceil(most))
}
