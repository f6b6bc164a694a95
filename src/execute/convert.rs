//! What elements go through between the input and the output.
//!
//! Every piece passes here on its way from the packed buffer to the sink, whoever packed it.
//! Pieces are planned in bytes of the input and never divide a [unit](Conversion::unit), so a
//! conversion to another item size is exact for each piece alone: its elements are converted into a
//! second buffer, and the rows of the result are scaled.

use super::Progress;
use super::fill::{Buffer, PiecePlaces};
use super::pack::swap_bytes;
use crate::cast::Cast;
use crate::runs::{Axis, Runs};
use crate::sink::{PreparedWrite, Sink, SinkError};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conversion {
    #[default]
    None,
    SwapBytes {
        /// Bytes that are reversed together, at least 2.
        width: usize,
    },
    Cast(Cast),
}

impl Conversion {
    /// Reverse every `width` bytes; none for a width of 0 or 1.
    pub fn swap_bytes(width: usize) -> Conversion {
        match width {
            0 | 1 => Conversion::None,
            _ => Conversion::SwapBytes { width },
        }
    }

    /// The bytes of the input that are converted together: no piece may divide them.
    pub fn unit(self) -> u64 {
        match self {
            Conversion::None => 1,
            Conversion::SwapBytes { width } => width as u64,
            Conversion::Cast(cast) => cast.input_bytes() as u64,
        }
    }

    /// The bytes that a [unit](Conversion::unit) becomes.
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

    /// The rows of the output that these of the input become.
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

    /// How many times as many bytes come out as go in, rounded up: pieces are made so much smaller,
    /// so that what they become fits into the cache too.
    pub fn expansion(self) -> u64 {
        self.output_unit().div_ceil(self.unit())
    }

    /// How many bytes of the input to convert first, in an output that begins at byte `at` of a file,
    /// so that further pieces of `piece` bytes begin at multiples of what those become. `None` where
    /// that is impossible, or no multiple of the blocks of files.
    pub(crate) fn first_bytes(self, at: u64, piece: u64) -> Option<u64> {
        const FILE_BLOCK: u64 = 4096;
        let whole = self.output_bytes(piece);
        let first = whole - at.checked_rem(whole)?;
        let is_exact = piece.is_multiple_of(self.unit())
            && whole.is_multiple_of(FILE_BLOCK)
            && first.is_multiple_of(self.output_unit());
        is_exact.then(|| self.input_bytes(first))
    }

    /// Convert a packed piece, which goes to `rows` of an output that begins at byte `at`. Returns the same
    /// of the converted bytes; those that have another size take a spare buffer.
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
                let places = PiecePlaces { read: None, written: at + rows.offset as u64 };
                let mut converted = Buffer::take(spare, rows.bytes() as usize, places);
                cast.run(&mut packed, &mut converted);
                spare.push(packed);
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

/// What [`write_rows`] does before it needs its turn.
pub(super) fn prepare_rows<'a>(
    bytes: &'a [u8],
    rows: &Runs,
    sink: &'a dyn Sink,
    at: u64,
) -> Vec<PreparedWrite<'a>> {
    placed_rows(bytes, rows, at).map(|(offset, row)| sink.prepare(offset, row)).collect()
}

/// The rows of a piece, each with its place in the sink.
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
