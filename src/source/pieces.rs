//! Tensors that are stored in pieces, in several other sources, as one source.
//!
//! A tensor here is a box of bytes in C order: its last axis counts the bytes of an element. Each of its pieces is a
//! smaller box in it, and the pieces cover it. A piece is opened when its bytes are read for the first time, so that
//! thousands of files take few descriptors.
//!
//! ```text
//!   a tensor of (4, 6) in two pieces       its bytes in C order
//!   │ 0  1  2 │ 3  4  5 │
//!   │ 6  7  8 │ 9 10 11 │                  0 1 2 of piece 0, 3 4 5 of piece 1, 6 7 8 of piece 0, ..
//! ```

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::{Advice, FileRange, Source, SourceResult, WINDOW, checked_len, read_window};

/// A box in a tensor: where it begins along each axis, and how long it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PieceBox {
    pub(crate) offset: Vec<u64>,
    pub(crate) shape: Vec<u64>,
}

/// The bytes of a piece that is open.
pub(crate) struct OpenedPiece {
    pub(crate) source: Arc<dyn Source>,
    /// The position of its first byte in the source.
    pub(crate) first: u64,
    /// The distance between neighbouring bytes along each axis.
    pub(crate) strides: Vec<u64>,
}

/// A function that opens a piece by its number.
type OpenPiece = Box<dyn Fn(usize) -> SourceResult<OpenedPiece> + Send + Sync>;

/// Tensors in pieces; in the source, the bytes of one tensor follow the bytes of another.
#[derive(Default)]
pub(crate) struct PiecedTensors {
    tensors: Vec<PiecedTensor>,
    len: u64,
    /// The number of pieces of all tensors.
    pieces: usize,
}

pub(crate) struct PiecesSource {
    all: PiecedTensors,
    open: OpenPiece,
    /// The pieces of all tensors.
    opened: Vec<OnceLock<OpenedPiece>>,
}

struct PiecedTensor {
    start: u64,
    /// The strides of the tensor's axes, in bytes, in C order.
    strides: Vec<u64>,
    pieces: Vec<PieceBox>,
    /// The number of the tensor's first piece among the pieces of all tensors.
    number: usize,
}

/// Rows of a piece, each of which is one run of the tensor's bytes.
struct PieceRows<'a> {
    piece: &'a PieceBox,
    strides: &'a [u64],
    /// The rows are counted along the axes before this one.
    axis: usize,
    /// The bytes of a row.
    run: u64,
    count: u64,
}

impl PieceRows<'_> {
    /// The longest rows of a piece that are contiguous in the tensor and, from axis `dense` on, in the piece.
    fn of<'a>(tensor: &'a PiecedTensor, piece: &'a PieceBox, dense: usize) -> PieceRows<'a> {
        let strides = tensor.strides.as_slice();
        let mut axis = piece.shape.len().saturating_sub(1);
        let mut run = piece.shape.last().copied().unwrap_or(1);
        while axis > dense && run == strides[axis - 1] {
            axis -= 1;
            run *= piece.shape[axis];
        }
        let count = piece.shape[..axis].iter().product();
        PieceRows { piece, strides, axis, run, count }
    }

    /// The distance from the first row to a row, with the given strides of the axes that count rows.
    fn distance(&self, row: u64, strides: &[u64], offset: impl Fn(usize) -> u64) -> u64 {
        let mut rest = row;
        let mut distance = 0;
        for axis in (0..self.axis).rev() {
            let len = self.piece.shape[axis];
            distance += (offset(axis) + rest % len) * strides[axis];
            rest /= len;
        }
        distance
    }

    /// The position in the tensor of the first byte of a row.
    fn position(&self, row: u64) -> u64 {
        let inner = (self.axis..self.strides.len())
            .map(|axis| self.piece.offset[axis] * self.strides[axis])
            .sum::<u64>();
        inner + self.distance(row, self.strides, |axis| self.piece.offset[axis])
    }

    /// The first row for which `is_before` is false; it is true for all rows before, and false for all rows after.
    fn first_not(&self, is_before: impl Fn(u64) -> bool) -> u64 {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if is_before(middle) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// The rows that have bytes in a range of the tensor.
    fn within(&self, range: &Range<u64>) -> Range<u64> {
        let first = self.first_not(|row| self.position(row) + self.run <= range.start);
        let end = self.first_not(|row| self.position(row) < range.end);
        first..end
    }

    /// The bytes of a row that are in a range of the tensor, counted from the row's first byte.
    fn clip(&self, position: u64, range: &Range<u64>) -> Range<u64> {
        let start = range.start.saturating_sub(position);
        start..self.run.min(range.end - position)
    }
}

impl OpenedPiece {
    /// The first axis from which on the bytes of the piece are contiguous in its source.
    fn dense(&self, piece: &PieceBox) -> usize {
        let mut bytes = 1;
        let mut axis = piece.shape.len();
        while axis > 0 && (piece.shape[axis - 1] == 1 || self.strides[axis - 1] == bytes) {
            axis -= 1;
            bytes *= piece.shape[axis];
        }
        axis
    }
}

impl PiecedTensors {
    /// Append a tensor of fewer than 2^63 bytes that is covered by `pieces`. Returns the position of its first byte;
    /// `None` if all tensors together are too long.
    pub(crate) fn push(&mut self, shape: &[u64], pieces: Vec<PieceBox>) -> Option<u64> {
        let start = self.len;
        let mut bytes = 1;
        let mut strides = vec![0; shape.len()];
        for (stride, &len) in strides.iter_mut().zip(shape).rev() {
            *stride = bytes;
            bytes = len.checked_mul(bytes)?;
        }
        self.len = start.checked_add(bytes).filter(|&end| i64::try_from(end).is_ok())?;
        let number = self.pieces;
        self.pieces += pieces.len();
        if bytes > 0 {
            self.tensors.push(PiecedTensor { start, strides, pieces, number });
        }
        Some(start)
    }
}

impl PiecesSource {
    /// The source of all tensors; `open` opens a piece by its number among the pieces of all tensors.
    pub(crate) fn new(
        all: PiecedTensors,
        open: impl Fn(usize) -> SourceResult<OpenedPiece> + Send + Sync + 'static,
    ) -> PiecesSource {
        let mut opened = Vec::new();
        opened.resize_with(all.pieces, OnceLock::new);
        PiecesSource { all, open: Box::new(open), opened }
    }

    /// The bytes of a piece; the first call opens it.
    fn piece(&self, number: usize) -> SourceResult<&OpenedPiece> {
        match self.opened[number].get() {
            Some(opened) => Ok(opened),
            None => {
                let opened = (self.open)(number)?;
                Ok(self.opened[number].get_or_init(|| opened))
            }
        }
    }

    /// Visit the pieces that have bytes in a range. `visit` gets the tensor, the piece's number in the tensor, the range
    /// in the tensor, and the position of that range in the range asked for.
    fn visit(
        &self,
        range: Range<u64>,
        mut visit: impl FnMut(&PiecedTensor, usize, &Range<u64>, usize) -> SourceResult<()>,
    ) -> SourceResult<()> {
        let PiecedTensors { tensors, len, .. } = &self.all;
        let first = tensors.partition_point(|tensor| tensor.start <= range.start);
        for (at, tensor) in tensors.iter().enumerate().skip(first.saturating_sub(1)) {
            let end = tensors.get(at + 1).map_or(*len, |next| next.start).min(range.end);
            let start = tensor.start.max(range.start);
            if start >= end {
                break;
            }
            let inner = start - tensor.start..end - tensor.start;
            for (number, piece) in tensor.pieces.iter().enumerate() {
                let rows = PieceRows::of(tensor, piece, 0);
                let Some(last) = rows.count.checked_sub(1) else { continue };
                let is_in = rows.run > 0
                    && rows.position(0) < inner.end
                    && rows.position(last) + rows.run > inner.start;
                if is_in {
                    visit(tensor, number, &inner, (start - range.start) as usize)?;
                }
            }
        }
        Ok(())
    }
}

impl Source for PiecesSource {
    fn len(&self) -> u64 {
        self.all.len
    }

    fn window<'a>(&'a self, range: Range<u64>, scratch: &'a mut Vec<u8>) -> SourceResult<&'a [u8]> {
        read_window(self, range, scratch)
    }

    fn read(&self, range: Range<u64>, scratch: &mut Vec<u8>, out: &mut [u8]) -> SourceResult<()> {
        checked_len(&range, self.all.len)?;
        self.visit(range, |tensor, number, inner, at| {
            let opened = self.piece(tensor.number + number)?;
            let piece = &tensor.pieces[number];
            let dense = opened.dense(piece);
            let rows = PieceRows::of(tensor, piece, dense);
            let within = rows.within(inner);
            let place = |position: u64, clip: &Range<u64>| {
                let start = at + (position + clip.start - inner.start) as usize;
                start..start + (clip.end - clip.start) as usize
            };
            if dense > 0 || within.end - within.start == 1 {
                for row in within {
                    let position = rows.position(row);
                    let clip = rows.clip(position, inner);
                    let first = opened.first + rows.distance(row, &opened.strides, |_| 0);
                    let bytes = first + clip.start..first + clip.end;
                    opened.source.read(bytes, scratch, &mut out[place(position, &clip)])?;
                }
                return Ok(());
            }
            // the rows follow each other in the piece: they are read together
            let Some(last) = within.end.checked_sub(1).filter(|last| *last >= within.start) else {
                return Ok(());
            };
            let base = opened.first;
            let start = rows.clip(rows.position(within.start), inner).start;
            let end = rows.clip(rows.position(last), inner).end;
            let bytes = base + within.start * rows.run + start..base + last * rows.run + end;
            let mut window = opened.source.window(bytes, scratch)?;
            for row in within {
                let position = rows.position(row);
                let place = place(position, &rows.clip(position, inner));
                let (taken, rest) = window.split_at(place.len());
                out[place].copy_from_slice(taken);
                window = rest;
            }
            Ok(())
        })
    }

    fn window_limit(&self) -> Option<u64> {
        Some(WINDOW)
    }

    fn verify(&self) -> SourceResult<()> {
        let mut opened = self.opened.iter().filter_map(OnceLock::get);
        opened.try_for_each(|piece| piece.source.verify())
    }

    fn file_ranges(&self, range: Range<u64>) -> SourceResult<Vec<FileRange>> {
        let mut ranges = Vec::new();
        self.visit(range, |tensor, number, _, _| {
            let source = &self.piece(tensor.number + number)?.source;
            ranges.extend(source.file_ranges(0..source.len())?);
            Ok(())
        })?;
        Ok(ranges)
    }

    fn advise(&self, range: Range<u64>, advice: Advice) {
        // a hint opens nothing, and cannot fail
        let _ = self.visit(range, |tensor, number, inner, _| {
            let Some(opened) = self.opened[tensor.number + number].get() else { return Ok(()) };
            let piece = &tensor.pieces[number];
            if opened.dense(piece) == 0 {
                let rows = PieceRows::of(tensor, piece, 0);
                let within = rows.within(inner);
                let base = opened.first;
                let bytes = base + within.start * rows.run..base + within.end * rows.run;
                opened.source.advise(bytes, advice);
            }
            Ok(())
        });
    }
}

/// A range of a source, as a source of its own.
pub(crate) struct RangeSource {
    pub(crate) source: Arc<dyn Source>,
    /// Must lie in the source.
    pub(crate) range: Range<u64>,
}

impl RangeSource {
    fn shifted(&self, range: &Range<u64>) -> SourceResult<Range<u64>> {
        checked_len(range, self.len())?;
        Ok(range.start + self.range.start..range.end + self.range.start)
    }
}

impl Source for RangeSource {
    fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    fn window<'a>(&'a self, range: Range<u64>, scratch: &'a mut Vec<u8>) -> SourceResult<&'a [u8]> {
        self.source.window(self.shifted(&range)?, scratch)
    }

    fn read(&self, range: Range<u64>, scratch: &mut Vec<u8>, out: &mut [u8]) -> SourceResult<()> {
        self.source.read(self.shifted(&range)?, scratch, out)
    }

    fn window_limit(&self) -> Option<u64> {
        self.source.window_limit()
    }

    fn verify(&self) -> SourceResult<()> {
        self.source.verify()
    }

    fn file_ranges(&self, range: Range<u64>) -> SourceResult<Vec<FileRange>> {
        self.source.file_ranges(self.shifted(&range)?)
    }

    fn advise(&self, range: Range<u64>, advice: Advice) {
        if let Ok(range) = self.shifted(&range) {
            self.source.advise(range, advice);
        }
    }
}
