//! The positions that a list names, as byte offsets, read in pieces.
//!
//! A list is an index tensor ([`Positions`]), the true elements of a mask ([`MaskPositions`]), or a
//! random order that is computed ([`ComputedPositions`]). Any range of its tuples becomes offsets
//! from the first element; only the offsets of a block are held in memory. Gather reads from these
//! offsets, scatter writes to them. [`OutOfRange`] says what happens to a number that is not a
//! position of its axis.
//!
//! Blocks follow the order in which tuples are numbered. If the numbers lie in another order in a
//! file that is read by position, each block would read most of the file: then the numbers are put
//! in order in scratch first.

use std::fmt;
use std::ops::Range;

use super::mask::MaskPositions;
use super::ravel::{Ravel, kernel};
use super::shuffle::ComputedPositions;
use super::{GatherError, Options};
use crate::dtype::{DType, Integers};
use crate::execute::{BadPosition, ExecuteError, FillError, Workers, dense_window, look, spool};
use crate::plan::Plan;
use crate::runs::{Axis, Runs, byte_bounds, index_of};
use crate::shape::{self, Permutation};
use crate::source::{Source, SourceError};
use crate::view::{Layout, ViewError};

/// The offset of a tuple that names no position, if [`OutOfRange::Drop`] allows that.
pub const DROPPED: u64 = u64::MAX;

/// The treatment of a number that is not a position of its axis, also of a negative one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutOfRange {
    /// An error that names the first such number.
    #[default]
    Error,
    /// The tuple names no position, its offset is [`DROPPED`]: gather puts zeros there (JAX's
    /// `mode='fill'`), scatter skips it (`mode='drop'`).
    Drop,
    /// The nearest position: 0 for a negative one (NumPy's take with `mode='clip'`).
    Clip,
    /// The remainder, never negative (NumPy's take with `mode='wrap'`).
    Wrap,
}

/// An index tensor: the numbers in a file.
#[derive(Clone, Debug)]
pub struct Indices<'a> {
    /// The type of the numbers, which must be integers.
    pub dtype: &'a DType,
    /// The shape of the indices, and the location of each number.
    pub layout: Layout<'a>,
}

impl Indices<'_> {
    pub(super) fn integers(&self) -> Result<Integers, GatherError> {
        let dtype = self.dtype;
        Integers::new(dtype).ok_or_else(|| GatherError::NotIntegers(dtype.to_string()))
    }

    /// The number of an index tensor without axes; `None` if it has axes, or no integers.
    pub fn only(&self, source: &dyn Source) -> Result<Option<i128>, SourceError> {
        let is_one = self.layout.shape.is_empty();
        let Some(integers) = Integers::new(self.dtype).filter(|_| is_one) else {
            return Ok(None);
        };
        let start = self.layout.offset();
        let range = start..start.saturating_add(integers.width as u64);
        let mut scratch = Vec::new();
        let value = integers.value(source.window(range, &mut scratch)?);
        source.verify()?;
        Ok(Some(value))
    }
}

#[derive(Clone)]
pub(crate) struct Positions {
    integers: Integers,
    ravel: Ravel,
    /// The axes of the params that the numbers of a tuple index, in bytes.
    pub(super) indexed: Vec<Axis>,
    /// The bytes that axes with negative strides reach before the first element: offsets count from
    /// there, so that none is negative.
    pub(super) before: u64,
    out_of_range: OutOfRange,
    /// Whether -1 is the last position of an axis.
    negative: bool,
    /// The shape of the axes of the tuples.
    pub(super) shape: Vec<u64>,
    /// The axes of the tuples from the slowest to the fastest, in the order of numbering.
    numbering: Permutation,
    pub(super) count: u64,
    /// The numbers, tuple after tuple in the order of numbering: the axes of the tuples and the
    /// axis of the numbers, not coalesced.
    numbers: Runs,
    pub(super) coalesced: Runs,
    context: ErrorContext,
}

/// The fields that tell positions apart, the same in every process: without the function.
impl fmt::Debug for Positions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Positions { integers, indexed, out_of_range, negative, numbering, numbers, .. } = self;
        (integers, indexed, out_of_range, negative, numbering, numbers).fmt(f)
    }
}

/// The indexed tensor or axes, for error messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ErrorContext {
    /// A tensor of this shape, whose batch axes are indexed by the tuple's own position.
    Params {
        shape: Vec<u64>,
        batch_dims: usize,
    },
    Axis(usize),
    /// The axes from `axis` on, by list number `list` of an index, which is item `item`.
    List {
        list: usize,
        item: usize,
        axis: usize,
    },
}

impl ErrorContext {
    fn first_axis(&self) -> usize {
        match self {
            ErrorContext::Params { batch_dims, .. } => *batch_dims,
            ErrorContext::Axis(axis) | ErrorContext::List { axis, .. } => *axis,
        }
    }
}

impl Positions {
    /// Tuples of numbers that index the axes `indexed` of the params, in bytes. The tuples are
    /// along `shape`, the first axes of `layout`; the numbers of each are along the next axis, if
    /// there is one.
    pub(super) fn new(
        layout: &Layout<'_>,
        integers: Integers,
        shape: &[u64],
        indexed: Vec<Axis>,
        options: &Options,
        context: ErrorContext,
    ) -> Result<Positions, GatherError> {
        let Options { out_of_range, negative, .. } = *options;
        let count = shape::element_count(shape).ok_or(ViewError::TooLarge)?;
        let offset = layout.start()?;
        let axes = layout.axes()?;
        if count > 0
            && matches!(out_of_range, OutOfRange::Clip | OutOfRange::Wrap)
            && let Some(empty) = indexed.iter().position(|axis| axis.len == 0)
        {
            return Err(GatherError::EmptyAxis(empty + context.first_axis()));
        }
        let numbers = Runs { offset, axes, run: integers.width as u64 };
        Ok(Positions {
            integers,
            ravel: kernel(integers, indexed.len(), negative),
            before: byte_bounds(&indexed, 0).start.unsigned_abs(),
            indexed,
            out_of_range,
            negative,
            shape: shape.to_vec(),
            numbering: Permutation::identity(shape.len()),
            count,
            coalesced: numbers.coalesced(),
            numbers,
            context,
        })
    }

    /// Number the positions with the axes of their shape in that order, the last one fastest.
    fn numbered(mut self, numbering: Permutation) -> Positions {
        let ndim = self.shape.len();
        let mut axes = self.numbers.axes.split_off(ndim);
        let own = self.numbering.inverse().permute(&self.numbers.axes);
        self.numbers.axes = numbering.permute(&own);
        self.numbers.axes.append(&mut axes);
        self.coalesced = self.numbers.coalesced();
        self.numbering = numbering;
        self
    }

    fn bytes(&self) -> u64 {
        self.count * self.tuple_bytes() as u64
    }

    /// Read the tuples from number `first` on from the indices' file, as many as `out` holds: the
    /// offset of each in bytes from the first of all elements that they can name, or [`DROPPED`].
    fn read(&self, first: u64, source: &dyn Source, out: &mut [u64]) -> Result<(), FillError> {
        if self.indexed.is_empty() || out.is_empty() {
            out.fill(0);
            return Ok(());
        }
        let tuple_bytes = self.tuple_bytes() as u64;
        let mut raw = Vec::new();
        let mut scratch = Vec::new();
        let bytes = first * tuple_bytes..(first + out.len() as u64) * tuple_bytes;
        let raw = dense_window(&self.coalesced, bytes, source, &mut scratch, &mut raw)?;
        if !(self.ravel)(raw, &self.indexed, out) {
            return self.read_each(first, raw, out);
        }
        if self.before > 0 {
            out.iter_mut().for_each(|offset| *offset = offset.wrapping_add(self.before));
        }
        Ok(())
    }

    /// Ravel each tuple separately, as some number is not a position.
    #[cold]
    fn read_each(&self, first: u64, raw: &[u8], out: &mut [u64]) -> Result<(), FillError> {
        for (at, tuple) in raw.chunks_exact(self.tuple_bytes()).enumerate() {
            let numbers = tuple.chunks_exact(self.integers.width);
            let mut offset = Some(self.before);
            for (raw, axis) in numbers.zip(&self.indexed) {
                let number = self.counted(self.integers.value(raw), axis.len);
                let position = self.out_of_range.position(number, axis.len);
                let combined = |(offset, at): (u64, u64)| {
                    offset.wrapping_add(at.wrapping_mul(axis.stride as u64))
                };
                offset = offset.zip(position).map(combined);
            }
            if offset.is_none() && self.out_of_range == OutOfRange::Error {
                return Err(FillError::Position(self.bad(first + at as u64, tuple)));
            }
            out[at] = offset.unwrap_or(DROPPED);
        }
        Ok(())
    }

    /// A number on an axis of length `len`, counted from the beginning if possible.
    fn counted(&self, number: i128, len: u64) -> i128 {
        let len = i128::from(len);
        if self.negative && (-len..0).contains(&number) { number + len } else { number }
    }

    fn bad(&self, number: u64, tuple: &[u8]) -> BadPosition {
        let lens = self.numbering.permute(&self.shape);
        let at = self.numbering.inverse().permute(&index_of(lens.into_iter(), number));
        let numbers = tuple.chunks_exact(self.integers.width).map(|raw| self.integers.value(raw));
        match &self.context {
            ErrorContext::Params { shape, batch_dims } => {
                let batch = at[..*batch_dims].iter().map(|&at| i128::from(at));
                let tuple = batch.chain(numbers).collect();
                BadPosition::Tuple { at, tuple, params: shape.clone() }
            }
            ErrorContext::Axis(_) => BadPosition::Number {
                at,
                number: numbers.sum(),
                len: self.indexed.first().map_or(0, |axis| axis.len),
                negative: self.negative,
            },
            ErrorContext::List { list, item, axis } => {
                let mut bad =
                    (0..).zip(numbers.zip(&self.indexed)).filter(|(_, (number, axis))| {
                        !(0..i128::from(axis.len)).contains(&self.counted(*number, axis.len))
                    });
                let nowhere = Axis { len: 0, stride: 0 };
                let (nth, (number, of)) = bad.next().unwrap_or((0, (0, &nowhere)));
                let list = *list;
                let item = *item;
                BadPosition::Listed { list, item, at, number, axis: axis + nth, len: of.len }
            }
        }
    }

    fn tuple_bytes(&self) -> usize {
        self.indexed.len() * self.integers.width
    }
}

impl OutOfRange {
    /// The position on an axis of length `len` that a number names.
    fn position(self, number: i128, len: u64) -> Option<u64> {
        let exact = u64::try_from(number).ok().filter(|&position| position < len);
        let len = i128::from(len);
        match self {
            _ if exact.is_some() => exact,
            OutOfRange::Clip => u64::try_from(number.clamp(0, (len - 1).max(0))).ok(),
            OutOfRange::Wrap => u64::try_from(number.checked_rem_euclid(len)?).ok(),
            OutOfRange::Error | OutOfRange::Drop => None,
        }
    }
}

pub(super) fn indexed_axes(
    params: &Layout<'_>,
    axes: Range<usize>,
) -> Result<Vec<Axis>, GatherError> {
    let strides = params.strides()?;
    let indexed = |axis: usize| {
        let len = params.shape[axis];
        // with one position only, the stride does not matter
        let stride = if len > 1 { params.bytes(strides[axis])? } else { 0 };
        Ok(Axis { len, stride })
    };
    axes.map(indexed).collect()
}

/// The number of batch axes; a negative one counts from the rank of the indices, in a gather along
/// an axis (TensorFlow's GatherV2).
pub fn count_batch_dims(batch_dims: i64, indices: &[u64]) -> Result<usize, GatherError> {
    let counted = if batch_dims < 0 { batch_dims + indices.len() as i64 } else { batch_dims };
    usize::try_from(counted)
        .map_err(|_| GatherError::NegativeBatchDims { batch_dims, indices: indices.to_vec() })
}

/// Check the batch dimensions, which exclude the last axis of params and the last `own` of indices.
pub(super) fn check_batch(
    params: &[u64],
    indices: &[u64],
    batch_dims: usize,
    own: usize,
) -> Result<(), GatherError> {
    for (what, shape, own) in [("indices", indices, own), ("params", params, 1)] {
        let most = shape.len().saturating_sub(own);
        if batch_dims > most {
            let shape = shape.to_vec();
            return Err(GatherError::BatchDims { batch_dims, most, what, shape });
        }
    }
    if let Some(axis) = (0..batch_dims).find(|&axis| params[axis] != indices[axis]) {
        let params = params.to_vec();
        let indices = indices.to_vec();
        return Err(GatherError::BatchShape { params, indices, axis });
    }
    Ok(())
}

/// A list of tuples, each one position in the params.
#[derive(Clone, Debug)]
pub(crate) enum Tuples {
    Numbers(Positions),
    Mask(MaskPositions),
    Computed(ComputedPositions),
}

impl Tuples {
    pub(super) fn count(&self) -> u64 {
        match self {
            Tuples::Numbers(positions) => positions.count,
            Tuples::Mask(positions) => positions.count(),
            Tuples::Computed(positions) => positions.count(),
        }
    }

    /// The axes of the params that they index, in bytes.
    pub(super) fn indexed(&self) -> &[Axis] {
        match self {
            Tuples::Numbers(positions) => &positions.indexed,
            Tuples::Mask(positions) => &positions.axes,
            Tuples::Computed(positions) => std::slice::from_ref(&positions.axis),
        }
    }

    /// Number the tuples with these axes of their shape last, from the slowest to the fastest.
    pub(super) fn numbered(self, fastest: &[usize]) -> Tuples {
        // others have one axis
        let Tuples::Numbers(positions) = self else { return self };
        let slowest = (0..positions.shape.len()).filter(|dim| !fastest.contains(dim));
        let order = Permutation::of_axes(slowest.chain(fastest.iter().copied()).collect());
        Tuples::Numbers(positions.numbered(order))
    }

    pub(super) fn is_in_their_order(&self) -> bool {
        match self {
            Tuples::Numbers(positions) => positions.numbering.is_identity(),
            Tuples::Mask(_) | Tuples::Computed(_) => true,
        }
    }
}

/// The number of tuples whose offsets are computed at a time: they stay in a level-1 cache.
pub(super) const TUPLES_AT_ONCE: usize = 2048;

/// Tuples with the source of their list, read in blocks.
pub(super) struct TupleReader<'a> {
    list: usize,
    pub(super) tuples: Tuples,
    pub(super) given: &'a dyn Source,
    /// The numbers in order, if they are not so in the source.
    spooled: Option<Box<dyn Source>>,
    pub(super) held: Option<Vec<u64>>,
}

const CHECKED_TUPLES: u64 = 1 << 14;

impl<'a> TupleReader<'a> {
    /// Read list number `list` from that source; `workers` put the numbers in order, if necessary.
    pub(super) fn new(
        list: usize,
        tuples: Tuples,
        given: &'a dyn Source,
        workers: &Workers,
    ) -> Result<TupleReader<'a>, FillError> {
        let mut reader = TupleReader { list, tuples, given, spooled: None, held: None };
        let Tuples::Numbers(positions) = &mut reader.tuples else { return Ok(reader) };
        let numbers = &positions.coalesced;
        let tuple = positions.tuple_bytes() as u64;
        let once = || Plan::new(numbers, tuple, TUPLES_AT_ONCE as u64 * tuple).reads_once();
        if given.window_limit().is_none() || positions.bytes() == 0 || once() {
            return Ok(reader);
        }
        let spooled = spool(given, numbers, tuple, workers).map_err(|error| {
            let error = error.into_source();
            let error = error.unwrap_or_else(|it| std::io::Error::other(it.to_string()).into());
            FillError::Indices { list, error }
        });
        reader.spooled = Some(spooled?);
        positions.coalesced = Runs::contiguous(0, positions.bytes());
        Ok(reader)
    }

    pub(super) fn hold(&mut self, workers: &Workers) -> Result<(), FillError> {
        if !self.tuples.is_in_their_order() {
            // first in the order of the indices, in which bad positions are reported
            let ordered = self.tuples.clone().numbered(&[]);
            TupleReader::new(self.list, ordered, self.given, workers)?.all()?;
        }
        self.held = Some(self.all()?);
        Ok(())
    }

    fn all(&self) -> Result<Vec<u64>, FillError> {
        let mut positions = vec![0; self.tuples.count() as usize];
        for (number, block) in positions.chunks_mut(TUPLES_AT_ONCE).enumerate() {
            self.read((number * TUPLES_AT_ONCE) as u64, block)?;
        }
        Ok(positions)
    }

    /// Check all tuples with these workers. Those of masks, and computed ones, need no check.
    pub(super) fn check(&self, workers: &Workers) -> Result<(), ExecuteError> {
        let Tuples::Numbers(positions) = &self.tuples else { return Ok(()) };
        let count = positions.count;
        let bytes = positions.bytes();
        // without numbers there is nothing to check
        let pieces = if bytes == 0 { 0 } else { count.div_ceil(CHECKED_TUPLES) };
        look(self.given, pieces, bytes, workers, |number, _| {
            let first = number * CHECKED_TUPLES;
            self.read(first, &mut vec![0; CHECKED_TUPLES.min(count - first) as usize])
        })
    }

    /// Read the tuples from number `first` on, as many as `out` holds: the offset of each in bytes
    /// from the first of all elements that they can name.
    pub(super) fn read(&self, first: u64, out: &mut [u64]) -> Result<(), FillError> {
        if let Some(held) = &self.held {
            out.copy_from_slice(&held[first as usize..][..out.len()]);
            return Ok(());
        }
        let read = match &self.tuples {
            Tuples::Numbers(positions) => positions.read(first, self.source(), out),
            Tuples::Mask(positions) => positions.read(first, self.source(), out),
            Tuples::Computed(positions) => {
                positions.read(first, out);
                Ok(())
            }
        };
        read.map_err(|error| error.of_list(self.list))
    }

    pub(super) fn verify(&self) -> Result<(), FillError> {
        self.source().verify().map_err(|error| FillError::Indices { list: self.list, error })
    }

    fn source(&self) -> &dyn Source {
        self.spooled.as_deref().unwrap_or(self.given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clip_and_wrap_are_numpys_at_any_size() {
        for (number, len, clipped, wrapped) in [
            (-1, 5, 0, 4),
            (5, 5, 4, 0),
            (7, 5, 4, 2),
            (i128::from(i64::MIN), 7, 0, 6),
            (i128::from(i64::MAX), 7, 6, 0),
            (i128::from(u64::MAX), 7, 6, 1),
            (-8, 1 << 62, 0, (1 << 62) - 8),
            (3, 5, 3, 3),
        ] {
            assert_eq!(OutOfRange::Clip.position(number, len), Some(clipped));
            assert_eq!(OutOfRange::Wrap.position(number, len), Some(wrapped));
        }
        assert_eq!(OutOfRange::Drop.position(-1, 5), None);
        assert_eq!(OutOfRange::Wrap.position(0, 0), None);
    }
}
