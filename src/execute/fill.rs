//! The filling of a piece's buffer through windows on the input.
//!
//! A mapped input lends all of a piece's byte bounds at once. An input that is read by position is asked for windows
//! of bounded length, in its own order: a box that spans more, or has long gaps, is divided along its longest stride
//! until each part is worth one read, or is a single run.
//!
//! **Buffers.** A worker packs a piece into a buffer of its own, converts it there ([`Conversion`](super::Conversion):
//! the byte order, or a cast into a second buffer), and writes it with one call. Writing straight from a mapped input
//! was several times slower: the kernel takes page faults while it holds the output file's lock. The buffer is 256 KiB
//! because it shares the second-level cache with its part of the input; pieces of 1 MiB and more halve the rate or
//! worse. Its offset in a page is chosen for each piece: on some processors reads, writes and copies are five to
//! thirty times slower between addresses that lie 1 to 31 bytes apart in their pages (`source/file.rs`).

use std::ops::{Deref, DerefMut, Range};

use super::convert::write_rows;
use super::pack::pack;
use super::{Conversion, ExecuteError, FillError, Pieces, Progress, ReadFrom, VisitRange};
use crate::plan::{Panel, Plan, needed_bytes, reads_gap};
use crate::runs::{Axis, Runs, dense_bytes, span_bytes};
use crate::sink::Sink;
use crate::source::{Advice, Forward, PAGE, STEP, Source, SourceError, is_slow, keep_spare};

impl Pieces for Plan {
    fn bytes(&self) -> u64 {
        self.bytes()
    }

    fn count(&self) -> u64 {
        self.pieces()
    }

    fn output(&self, number: u64) -> Runs {
        self.piece(number).output
    }

    fn fill(&self, number: u64, from: &mut ReadFrom<'_>, out: &mut [u8]) -> Result<(), FillError> {
        let source = from.source;
        if !is_read_ahead(self, source) {
            if number == 0 {
                self.prefetch_first().iter().for_each(|runs| prefetch(runs, source));
            }
            self.prefetch(number).iter().for_each(|runs| prefetch(runs, source));
        }
        match self.piece(number).input.as_slice() {
            [Runs { offset, axes, run }] if axes.is_empty() => {
                let start = *offset as u64;
                Ok(source.read(start..start + run, from.scratch, out)?)
            }
            boxes => Ok(read_boxes(boxes, from, out)?),
        }
    }

    fn needs(&self, number: u64, gap: u64, visit: VisitRange<'_>) -> Result<(), FillError> {
        self.needs(number, gap).iter().for_each(|runs| visit_ranges(runs, visit));
        Ok(())
    }

    fn panel(&self, number: u64) -> Option<Panel> {
        self.panel(number)
    }

    fn work(&self) -> u64 {
        self.bytes().max(self.reads())
    }

    fn range(&self) -> Option<Range<u64>> {
        let Runs { offset, axes, run } = self.input();
        let start = u64::try_from(*offset).ok()?;
        (axes.is_empty() && *run > 0).then_some(start..start + run)
    }

    fn sparse_range(&self) -> Option<Range<u64>> {
        self.sparse_range()
    }
}

/// Whether the kernel by itself reads ahead what pieces need. Then even a look at the page cache does harm: the kernel
/// takes it for a read out of order. A short range needs no prefetch either, since it is one read.
fn is_read_ahead(plan: &Plan, source: &dyn Source) -> bool {
    plan.range().is_some_and(|range| match plan.pieces() {
        1 => range.end - range.start <= ONE_READ,
        _ => source.reads_ahead(range.start),
    })
}

/// The length of a range that a disk reads at once, in bytes.
const ONE_READ: u64 = 64 << 10;

pub(crate) fn visit_ranges(runs: &Runs, visit: VisitRange<'_>) {
    runs.starts().for_each(|at| visit(at as u64..at as u64 + runs.run));
}

const RANGES: u64 = 1 << 17;

/// The number of samples that tell whether a range is in memory already.
const SAMPLES: u64 = 16;

fn prefetch(runs: &Runs, source: &dyn Source) {
    let ranges = dense_bytes(&runs.axes, 1);
    if ranges > RANGES {
        return;
    }
    let sampled = |number: u64| number.is_multiple_of(ranges / SAMPLES + 1) || number == ranges;
    let mut samples = (1..).zip(runs.starts()).filter(|&(number, _)| sampled(number));
    // sample the last byte, since an earlier read may have covered the first bytes
    if samples.all(|(_, at)| source.is_cached(at as u64 + runs.run - 1)) {
        return;
    }
    for at in runs.starts() {
        source.advise(at as u64..at as u64 + runs.run, Advice::WillNeed);
    }
}

/// Split off the first `count` bytes of a buffer's rest.
pub(crate) fn split_first<'b>(rest: &mut &'b mut [u8], count: u64) -> &'b mut [u8] {
    let (first, others) = std::mem::take(rest).split_at_mut(count as usize);
    *rest = others;
    first
}

/// Fill `out` with a range of the dense bytes of `runs` of the source.
pub(crate) fn read_range(
    runs: &Runs,
    range: Range<u64>,
    from: &mut ReadFrom<'_>,
    out: &mut [u8],
) -> Result<(), SourceError> {
    read_boxes(&runs.boxes(range), from, out)
}

/// A range of the dense bytes of `runs` of the source: lent by the source, or copied to `buffer` where they are not
/// contiguous.
pub(crate) fn dense_window<'a>(
    runs: &Runs,
    range: Range<u64>,
    source: &'a dyn Source,
    scratch: &'a mut Vec<u8>,
    buffer: &'a mut Vec<u8>,
) -> Result<&'a [u8], SourceError> {
    if runs.axes.is_empty() {
        let offset = runs.offset as u64;
        return source.window(offset + range.start..offset + range.end, scratch);
    }
    buffer.resize((range.end - range.start) as usize, 0);
    read_range(runs, range, &mut ReadFrom { source, scratch }, buffer)?;
    Ok(buffer)
}

/// Fill `out` with the dense bytes of several runs, one after the other.
pub(crate) fn read_boxes(
    boxes: &[Runs],
    from: &mut ReadFrom<'_>,
    out: &mut [u8],
) -> Result<(), SourceError> {
    let mut rest = out;
    boxes.iter().try_for_each(|runs| {
        let now = split_first(&mut rest, runs.bytes());
        read_runs(runs, from, now)
    })
}

/// Fill `out` with the dense bytes of `runs` of the source.
///
/// An input that is read by position is read in its own order, each stretch once. Where the output has another order,
/// the bytes are reordered in memory.
pub(crate) fn read_runs(
    runs: &Runs,
    from: &mut ReadFrom<'_>,
    out: &mut [u8],
) -> Result<(), SourceError> {
    let Some(limit) = from.source.window_limit() else {
        return read_window(runs, from, out);
    };
    let ordered = runs.in_memory_order();
    if ordered.axes == runs.axes {
        return read_ordered(runs, limit, from, out);
    }
    let mut panel = vec![0; out.len()];
    read_ordered(&ordered, limit, from, &mut panel)?;
    let Runs { axes, run, .. } = runs.packed_in_memory_order();
    pack(&axes, run, &panel, 0, out);
    Ok(())
}

/// Fill `out` as [`read_runs`] does, for axes from the longest stride to the shortest, in windows of at most `limit`
/// bytes.
fn read_ordered(
    runs: &Runs,
    limit: u64,
    from: &mut ReadFrom<'_>,
    out: &mut [u8],
) -> Result<(), SourceError> {
    let Runs { offset, axes, run } = runs;
    let Some((most, (axis, inner))) = part_len(axes, *run, limit).zip(axes.split_first()) else {
        return read_window(runs, from, out);
    };
    let item_bytes = out.len() / axis.len as usize;
    let mut done = 0;
    for part in out.chunks_mut(most as usize * item_bytes) {
        let len = (part.len() / item_bytes) as u64;
        let offset = offset + axis.stride * done;
        let outer = Axis { len, ..*axis };
        let axes = if len == 1 { inner.to_vec() } else { [&[outer], inner].concat() };
        read_ordered(&Runs { offset, axes, run: *run }, limit, from, part)?;
        done += len as i64;
    }
    Ok(())
}

fn read_window(runs: &Runs, from: &mut ReadFrom<'_>, out: &mut [u8]) -> Result<(), SourceError> {
    let bounds = runs.file_bounds();
    let first = (runs.offset as u64 - bounds.start) as usize;
    pack(&runs.axes, runs.run, from.window(bounds)?, first, out);
    Ok(())
}

/// The number of items of the outermost axis to take at a time; `None` for all of them in one window.
fn part_len(axes: &[Axis], run: u64, limit: u64) -> Option<u64> {
    let (axis, inner) = axes.split_first()?;
    let item = span_bytes(inner, run);
    let stride = axis.stride.unsigned_abs();
    let most = match stride {
        0 => return None,
        _ if !reads_gap(stride, needed_bytes(inner, run)) => 1,
        _ => limit.saturating_sub(item) / stride + 1,
    };
    (axis.len == 1 || most < axis.len).then_some(most)
}

/// The distance between the offset of a buffer in its page and the offset of its bytes in the output's page. The input
/// often has the offset of the output; processors delay a load whose address ends like a store before it.
const APART: usize = 512;

/// The bytes of a piece, with free room before them: they begin at an offset in a page that is fast both for the reads
/// into the buffer and for the writes from it (see [`is_slow`]).
#[derive(Default)]
pub(super) struct Buffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
    /// Whether the memory was made elsewhere, and is kept for that.
    is_lent: bool,
}

/// The offsets in files of the bytes of a piece, as far as they are known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PieceOffsets {
    pub(super) read: Option<u64>,
    pub(super) written: u64,
}

impl Buffer {
    /// A buffer of `len` bytes with any content, from the shortest spare buffer that is long enough, so that buffers
    /// for packed pieces do not become as long as buffers for converted ones.
    pub(super) fn take(spare: &mut Vec<Buffer>, len: usize, offsets: PieceOffsets) -> Buffer {
        let needed = len + PAGE as usize + STEP;
        let lens = || spare.iter().map(|buffer| buffer.memory.len()).enumerate();
        let fitting = lens().filter(|(_, has)| *has >= needed).min_by_key(|(_, has)| *has);
        let best = fitting.or_else(|| lens().max_by_key(|(_, has)| *has));
        let mut memory = best.map(|(at, _)| spare.swap_remove(at).memory).unwrap_or_default();
        if memory.len() < needed {
            memory = vec![0; needed];
        }
        let start = offsets.start(memory.as_ptr().addr());
        Buffer { memory, start, len, is_lent: false }
    }

    /// A buffer of bytes that are in memory of their own; they are copied where writes from there would be slow.
    pub(super) fn lent(bytes: Vec<u8>, offsets: PieceOffsets, spare: &mut Vec<Buffer>) -> Buffer {
        let len = bytes.len();
        if !is_slow(bytes.as_ptr().addr(), offsets.written as usize) {
            return Buffer { memory: bytes, start: 0, len, is_lent: true };
        }
        let mut buffer = Buffer::take(spare, len, offsets);
        buffer.copy_from_slice(&bytes);
        keep_spare(bytes);
        buffer
    }

    /// Keep the memory for other pieces.
    pub(super) fn give_back(self, spare: &mut Vec<Buffer>) {
        if self.is_lent { keep_spare(self.memory) } else { spare.push(self) }
    }
}

impl PieceOffsets {
    /// The distance from `address` to a fast start of the buffer: at most a page and a [`STEP`].
    fn start(self, address: usize) -> usize {
        let written = self.written as usize;
        let start = written.wrapping_add(APART).wrapping_sub(address) % PAGE as usize;
        let is_slow = self.read.is_some_and(|read| is_slow(read as usize, address + start));
        if is_slow { start + STEP } else { start }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..][..self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..][..self.len]
    }
}

// Copies from a pipe: one pass over the input.
//
// The pieces of a forward plan ascend in the input. The bytes between them are skipped, without reading them where the
// system can.

/// The most bytes of a pipe held in memory at a time: the window of plans for pipes.
pub const WINDOW_BYTES: u64 = 4 << 20;

/// Run one transfer from a stream. Offsets of the plan are positions of the stream.
pub fn run_forward(
    stream: &mut dyn Forward,
    plan: &Plan,
    conversion: Conversion,
    sink: &dyn Sink,
    at: u64,
    progress: &Progress,
) -> Result<(), ExecuteError> {
    let mut window = Vec::new();
    let mut spare = Vec::new();
    for number in 0..plan.pieces() {
        let piece = plan.piece(number);
        let offsets = PieceOffsets { read: None, written: at + piece.output.offset as u64 };
        let mut buffer = Buffer::take(&mut spare, piece.output.bytes() as usize, offsets);
        let mut rest = &mut buffer[..];
        for runs in &piece.input {
            let bounds = runs.file_bounds();
            window.resize((bounds.end - bounds.start) as usize, 0);
            read_ahead_to(stream, bounds.start, &mut window)?;
            let now = split_first(&mut rest, runs.bytes());
            let first = (runs.offset as u64 - bounds.start) as usize;
            pack(&runs.axes, runs.run, &window, first, now);
        }
        let (bytes, rows) = conversion.apply(buffer, piece.output, at, &mut spare);
        write_rows(&bytes, &rows, sink, at, progress)?;
        bytes.give_back(&mut spare);
    }
    Ok(())
}

/// Read the bytes from position `start`, which must not be before the stream's position.
fn read_ahead_to(
    stream: &mut dyn Forward,
    start: u64,
    window: &mut [u8],
) -> Result<(), SourceError> {
    stream.skip(start.saturating_sub(stream.position()))?;
    stream.read_exact(window).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => SourceError::Truncated,
        _ => SourceError::Io(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_lie_where_they_are_read_and_written_fast() {
        let mut spare = Vec::new();
        for read in (0..PAGE).step_by(5) {
            for written in [0, 1, 16, 31, 128, 4095] {
                let offsets = PieceOffsets { read: Some(read), written };
                let buffer = Buffer::take(&mut spare, 1000, offsets);
                let address = buffer.as_ptr().addr();
                assert_eq!(buffer.len(), 1000);
                assert!(!is_slow(read as usize, address), "{offsets:?}");
                assert!(!is_slow(address, written as usize), "{offsets:?}");
                spare = vec![buffer];
            }
        }
    }

    #[test]
    fn the_shortest_memory_that_will_do_is_taken() {
        let taken =
            |spare: &mut Vec<Buffer>, len| Buffer::take(spare, len, PieceOffsets::default());
        let mut spare: Vec<Buffer> = [100, 5000, 300].map(|len| taken(&mut Vec::new(), len)).into();
        let of_medium = spare[2].memory.as_ptr();
        assert_eq!(taken(&mut spare, 200).memory.as_ptr(), of_medium);
        assert_eq!(spare.len(), 2);
        // where no buffer is long enough, the longest one is replaced
        taken(&mut spare, 9000);
        assert_eq!(spare.len(), 1);
        assert_eq!(spare[0].len, 100);
    }
}
