//! Conversions of elements between the input and the output.
//!
//! Every packed piece is converted here before the sink gets it. Pieces are planned in bytes of the input
//! and never divide a [unit](Conversion::unit), so a conversion to another item size is exact for each
//! piece alone: its elements are converted into a second buffer, and the rows of the result are scaled.

use super::Progress;
use super::fill::{Buffer, PieceOffsets};
use super::pack::swap_bytes;
use crate::cast::Cast;
use crate::runs::{Axis, Runs};
use crate::sink::{PreparedWrite, Sink, SinkError};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conversion {
    #[default]
    None,
    SwapBytes {
        /// The number of bytes that are reversed together, at least 2.
        width: usize,
    },
    Cast(Cast),
}

impl Conversion {
    /// The conversion that reverses every `width` bytes; none for a width of 0 or 1.
    pub fn swap_bytes(width: usize) -> Conversion {
        match width {
            0 | 1 => Conversion::None,
            _ => Conversion::SwapBytes { width },
        }
    }

    /// The bytes of input that are converted together: no piece may divide them.
    pub fn unit(self) -> u64 {
        match self {
            Conversion::None => 1,
            Conversion::SwapBytes { width } => width as u64,
            Conversion::Cast(cast) => cast.input_bytes() as u64,
        }
    }

    pub fn output_unit(self) -> u64 {
        match self {
            Conversion::Cast(cast) => cast.output_bytes() as u64,
            _ => self.unit(),
        }
    }

    pub fn output_bytes(self, input: u64) -> u64 {
        input / self.unit() * self.output_unit()
    }

    fn output_distance(self, input: i64) -> i64 {
        input / self.unit() as i64 * self.output_unit() as i64
    }

    /// The rows of the output that these rows of the input become.
    pub(super) fn output_runs(self, rows: &Runs) -> Runs {
        let axis = |axis: &Axis| Axis { stride: self.output_distance(axis.stride), ..*axis };
        Runs {
            offset: self.output_distance(rows.offset),
            axes: rows.axes.iter().map(axis).collect(),
            run: self.output_bytes(rows.run),
        }
    }

    pub(crate) fn input_bytes(self, output: u64) -> u64 {
        output / self.output_unit() * self.unit()
    }

    /// The factor by which output is larger than input, rounded up: pieces are smaller by this factor, so
    /// that their output fits in the cache too.
    pub fn expansion(self) -> u64 {
        self.output_unit().div_ceil(self.unit())
    }

    /// The length of the first piece, in input bytes, for an output that begins at byte `at` of a file. Later pieces have
    /// `piece` bytes, and the output of each begins at a multiple of its own length. `None` if this is impossible, or if
    /// the output of a piece is not a whole number of file blocks.
    pub(crate) fn first_bytes(self, at: u64, piece: u64) -> Option<u64> {
        const FILE_BLOCK: u64 = 4096;
        let whole = self.output_bytes(piece);
        let first = whole - at.checked_rem(whole)?;
        let is_exact = piece.is_multiple_of(self.unit())
            && whole.is_multiple_of(FILE_BLOCK)
            && first.is_multiple_of(self.output_unit());
        is_exact.then(|| self.input_bytes(first))
    }

    /// Convert a packed piece that goes to `rows` of an output that begins at byte `at`. Returns the
    /// converted bytes and their rows; a conversion to another item size takes a spare buffer.
    pub(super) fn apply(
        self,
        mut packed: Buffer,
        rows: Runs,
        at: u64,
        spare: &mut Vec<Buffer>,
    ) -> (Buffer, Runs) {
        match self {
            Conversion::None => (packed, rows),
            Conversion::SwapBytes { width } => {
                swap_bytes(&mut packed, width);
                (packed, rows)
            }
            Conversion::Cast(cast) => {
                let rows = self.output_runs(&rows);
                let offsets = PieceOffsets { read: None, written: at + rows.offset as u64 };
                let mut converted = Buffer::take(spare, rows.bytes() as usize, offsets);
                cast.run(&mut packed, &mut converted);
                packed.give_back(spare);
                (converted, rows)
            }
        }
    }
}

/// Write the rows of a piece to an output that begins at byte `at` of the sink.
pub(super) fn write_rows(
    bytes: &[u8],
    rows: &Runs,
    sink: &dyn Sink,
    at: u64,
    progress: &Progress,
) -> Result<(), SinkError> {
    for (offset, row) in placed_rows(bytes, rows, at) {
        sink.write_at(offset, row)?;
    }
    progress.add(bytes.len() as u64);
    Ok(())
}

/// Prepare the writes of [`write_rows`] that do not depend on the order of pieces.
pub(super) fn prepare_rows<'a>(
    bytes: &'a [u8],
    rows: &Runs,
    sink: &'a dyn Sink,
    at: u64,
) -> Vec<PreparedWrite<'a>> {
    placed_rows(bytes, rows, at).map(|(offset, row)| sink.prepare(offset, row)).collect()
}

/// The rows of a piece, each with its offset in the sink.
fn placed_rows<'a>(bytes: &'a [u8], rows: &Runs, at: u64) -> impl Iterator<Item = (u64, &'a [u8])> {
    let row = (rows.run as usize).max(1);
    rows.starts().map(move |offset| at + offset as u64).zip(bytes.chunks_exact(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_behind_the_first_begin_at_blocks() {
        let width_4 = Conversion::swap_bytes(4);
        let width_3 = Conversion::swap_bytes(3);
        let aligned = [(Conversion::None, 128, 1 << 18), (Conversion::None, 5, 1 << 18)];
        let units = [(width_4, 128, 1 << 18), (width_4, 0, 1 << 12), (width_3, 129, 3 << 14)];
        for (conversion, at, piece) in aligned.into_iter().chain(units) {
            let first = conversion.first_bytes(at, piece).unwrap();
            assert!((1..=piece).contains(&first) && first.is_multiple_of(conversion.unit()));
            let second = at + conversion.output_bytes(first);
            assert!(second.is_multiple_of(conversion.output_bytes(piece)), "{conversion:?} {at}");
        }
        for (conversion, at, piece) in [(width_4, 5, 1 << 18), (width_3, 0, 1 << 18)] {
            assert_eq!(conversion.first_bytes(at, piece), None);
        }
        assert_eq!(Conversion::None.first_bytes(0, 1000), None);
    }
}
