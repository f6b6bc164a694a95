//! The positions that an index tensor names, as byte offsets, read in pieces.
//!
//! [`Positions`] knows the index tensor's place in its file and the axes that its numbers speak
//! of; [`Positions::read`] turns any range of tuples into offsets from the first element. Nothing
//! is held but the tuples that are asked for. Gather reads from these offsets, scatter writes to
//! them.
//!
//! What happens to a number that is no position of its axis, [`OutOfRange`] says. The words of
//! [`BadPosition`] are TensorFlow's.

use std::fmt;
use std::ops::Range;

use super::merge::{Column, Integers, Merge};
use super::{GatherError, check_batch, element_strides, whole_bytes};
use crate::dtype::DType;
use crate::execute::{FillError, fill_box};
use crate::shape::{self, AsList, Order, contiguous_strides};
use crate::source::{Source, SourceError};
use crate::view::{Axis, Layout, ViewError, coalesce};

/// The offset of a tuple that names no position, where that is no error.
pub const NOWHERE: u64 = u64::MAX;

/// What becomes of a number that is no position of its axis, a negative one included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutOfRange {
    /// An error that names the first such number.
    #[default]
    Error,
    /// The tuple stands for nothing: its offset is [`NOWHERE`].
    Nowhere,
    /// The nearest position: 0 for a negative one (NumPy's take with `mode='clip'`).
    Clip,
    /// The remainder, never negative (NumPy's take with `mode='wrap'`).
    Wrap,
}

/// An index tensor: where its numbers lie in a file.
#[derive(Clone, Copy, Debug)]
pub struct Indices<'a> {
    /// The type of the numbers, which must be integers.
    pub dtype: &'a DType,
    /// Its shape, in elements.
    pub shape: &'a [u64],
    /// The order of its elements.
    pub order: Order,
    /// Where its first byte lies in the file.
    pub offset: u64,
}

/// The tuples of an index tensor, and what they mean.
#[derive(Clone, Debug)]
pub struct Positions {
    integers: Integers,
    merge: Merge,
    columns: Vec<Column>,
    out_of_range: OutOfRange,
    /// The shape along which the tuples lie.
    shape: Vec<u64>,
    /// Whether tuples are numbered with the first axis fastest.
    order: Order,
    count: u64,
    /// Where the first number lies in the file, in bytes.
    offset: u64,
    /// The axes of the tuples in the order of their numbers; strides in bytes.
    axes: Vec<Axis>,
    /// The same, with neighbours merged.
    merged: Vec<Axis>,
    /// The axis of the numbers in a tuple.
    tuple: Axis,
    /// Whether all tuples lie one after the other.
    contiguous: bool,
    words: Words,
}

/// What a message says that the numbers index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Words {
    /// All of a tensor of this shape; so many of its first axes by the place of the tuple itself.
    Params { shape: Vec<u64>, batch_dims: usize },
    /// This axis.
    Axis(usize),
}

impl Positions {
    /// The tuples on the last axis of `indices`, which speak of the axes of `params` after the
    /// first `batch_dims`: the positions of gather_nd and of scatter.
    ///
    /// # Errors
    /// [`GatherError`]: no integers, a shape or a number of batch axes that does not fit.
    pub fn nd(
        params: &Layout<'_>,
        indices: &Indices<'_>,
        batch_dims: usize,
        out_of_range: OutOfRange,
    ) -> Result<Positions, GatherError> {
        let Some((&count, shape)) = indices.shape.split_last() else {
            return Err(GatherError::NoTuples);
        };
        check_batch(params.shape, indices.shape, batch_dims, 1)?;
        let left = params.shape.len() - batch_dims;
        let count = usize::try_from(count).ok().filter(|&count| count <= left);
        let count = count.ok_or_else(|| GatherError::LongTuples {
            indices: indices.shape.to_vec(),
            params: params.shape.to_vec(),
            batch_dims,
        })?;
        let axes = batch_dims..batch_dims + count;
        let words = Words::Params { shape: params.shape.to_vec(), batch_dims };
        Positions::new(indices, shape, columns(params, axes)?, out_of_range, words)
    }

    /// Each number of `indices` by itself, as a position on one axis of `params`.
    pub(super) fn along(
        params: &Layout<'_>,
        indices: &Indices<'_>,
        axis: usize,
        out_of_range: OutOfRange,
    ) -> Result<Positions, GatherError> {
        let columns = columns(params, axis..axis + 1)?;
        Positions::new(indices, indices.shape, columns, out_of_range, Words::Axis(axis))
    }

    fn new(
        indices: &Indices<'_>,
        shape: &[u64],
        columns: Vec<Column>,
        out_of_range: OutOfRange,
        words: Words,
    ) -> Result<Positions, GatherError> {
        let integers = Integers::new(indices.dtype)
            .ok_or_else(|| GatherError::NotIntegers(indices.dtype.to_string()))?;
        let count = shape::element_count(shape).ok_or(ViewError::TooLarge)?;
        let nothing = count == 0 || columns.is_empty();
        let strides = if nothing {
            vec![0; indices.shape.len()]
        } else {
            contiguous_strides(indices.shape, integers.width as u64, indices.order)
                .ok_or(ViewError::TooLarge)?
        };
        let axes = shape.iter().zip(&strides).map(|(&len, &stride)| Axis { len, stride });
        let axes: Vec<Axis> = axes.collect();
        let empty = columns.iter().position(|column| column.len == 0);
        if let (Some(axis), true) = (empty, count > 0)
            && matches!(out_of_range, OutOfRange::Clip | OutOfRange::Wrap)
        {
            return Err(GatherError::EmptyAxis(match words {
                Words::Params { batch_dims, .. } => batch_dims + axis,
                Words::Axis(axis) => axis,
            }));
        }
        let tuple = match strides.get(shape.len()) {
            Some(&stride) => Axis { len: columns.len() as u64, stride },
            None => Axis { len: 1, stride: integers.width as i64 },
        };
        let mut positions = Positions {
            integers,
            merge: integers.merge(columns.len()),
            columns,
            out_of_range,
            shape: shape.to_vec(),
            order: Order::C,
            count,
            offset: indices.offset,
            merged: Vec::new(),
            axes,
            tuple,
            contiguous: false,
            words,
        };
        positions.merge_axes();
        Ok(positions)
    }

    fn merge_axes(&mut self) {
        self.merged = merged(&self.axes);
        let mut all = self.merged.clone();
        all.push(self.tuple);
        self.contiguous = coalesce(&all, self.integers.width as u64).0.is_empty();
    }

    /// The same positions, numbered in another order of their axes.
    #[must_use]
    pub fn numbered(mut self, order: Order) -> Positions {
        if order != self.order {
            self.axes.reverse();
            self.merge_axes();
            self.order = order;
        }
        self
    }

    /// How many tuples there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The shape along which the tuples lie.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Bytes that the numbers take in their file.
    pub fn bytes(&self) -> u64 {
        self.count * self.tuple_bytes() as u64
    }

    /// How many numbers a tuple has.
    pub(super) fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Read the tuples from number `first` on from the indices' file, as many as `out` holds: the
    /// offset of each in bytes from the first element, or [`NOWHERE`].
    ///
    /// # Errors
    /// [`FillError::Position`] for the first bad one where that is an error,
    /// [`FillError::Indices`] where the file failed.
    pub fn read(&self, first: u64, source: &dyn Source, out: &mut [u64]) -> Result<(), FillError> {
        if self.columns.is_empty() || out.is_empty() {
            out.fill(0);
            return Ok(());
        }
        let range = first..first + out.len() as u64;
        let (mut raw, mut scratch) = (Vec::new(), Vec::new());
        let raw = self.raw(&range, source, &mut raw, &mut scratch).map_err(FillError::Indices)?;
        if (self.merge)(raw, &self.columns, out) { Ok(()) } else { self.settle(first, raw, out) }
    }

    /// The tuples of a range, one after the other.
    fn raw<'a>(
        &self,
        range: &Range<u64>,
        source: &'a dyn Source,
        buffer: &'a mut Vec<u8>,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], SourceError> {
        let tuple_bytes = self.tuple_bytes();
        let item = self.integers.width as u64;
        if self.contiguous {
            let start = self.offset + range.start * tuple_bytes as u64;
            let end = self.offset + range.end * tuple_bytes as u64;
            return source.window(start..end, scratch);
        }
        buffer.resize((range.end - range.start) as usize * tuple_bytes, 0);
        let mut out = buffer.as_mut_slice();
        let mut at = range.start;
        while at < range.end {
            // as many neighbours along the innermost axis as there are
            let (mut rest, mut first) = (at, self.offset as i64);
            for axis in self.merged.iter().rev() {
                first += (rest % axis.len) as i64 * axis.stride;
                rest /= axis.len;
            }
            let inner = self.merged.last().copied().unwrap_or(Axis { len: 1, stride: 0 });
            let len = (inner.len - at % inner.len).min(range.end - at);
            let (axes, run) = coalesce(&[Axis { len, ..inner }, self.tuple], item);
            let (now, later) = out.split_at_mut(len as usize * tuple_bytes);
            fill_box(&axes, run, first, source, scratch, now)?;
            out = later;
            at += len;
        }
        Ok(buffer)
    }

    /// Work out each tuple by itself: some number is no position.
    #[cold]
    fn settle(&self, first: u64, raw: &[u8], out: &mut [u64]) -> Result<(), FillError> {
        for (at, tuple) in raw.chunks_exact(self.tuple_bytes()).enumerate() {
            let numbers = tuple.chunks_exact(self.integers.width);
            let mut offset = Some(0);
            for (raw, column) in numbers.zip(&self.columns) {
                let position = self.out_of_range.position(self.integers.value(raw), column.len);
                offset = offset.zip(position).map(|(offset, at)| offset + at * column.stride);
            }
            if offset.is_none() && self.out_of_range == OutOfRange::Error {
                return Err(FillError::Position(self.bad(first + at as u64, tuple)));
            }
            out[at] = offset.unwrap_or(NOWHERE);
        }
        Ok(())
    }

    fn bad(&self, number: u64, tuple: &[u8]) -> BadPosition {
        let mut at = vec![0; self.shape.len()];
        let mut rest = number;
        let mut place = |axis: usize| {
            at[axis] = rest % self.shape[axis];
            rest /= self.shape[axis];
        };
        match self.order {
            Order::C => (0..self.shape.len()).rev().for_each(&mut place),
            Order::F => (0..self.shape.len()).for_each(&mut place),
        }
        let numbers = tuple.chunks_exact(self.integers.width).map(|raw| self.integers.value(raw));
        match &self.words {
            Words::Params { shape, batch_dims } => {
                let batch = at[..*batch_dims].iter().map(|&at| i128::from(at));
                let tuple = batch.chain(numbers).collect();
                BadPosition::Tuple { at, tuple, params: shape.clone() }
            }
            Words::Axis(_) => BadPosition::Number {
                at,
                number: numbers.sum(),
                len: self.columns.first().map_or(0, |column| column.len),
            },
        }
    }

    fn tuple_bytes(&self) -> usize {
        self.columns.len() * self.integers.width
    }
}

impl OutOfRange {
    /// The position on an axis of length `len` that a number stands for.
    fn position(self, number: i128, len: u64) -> Option<u64> {
        let exact = u64::try_from(number).ok().filter(|&position| position < len);
        let len = i128::from(len);
        match self {
            _ if exact.is_some() => exact,
            OutOfRange::Clip => u64::try_from(number.clamp(0, (len - 1).max(0))).ok(),
            OutOfRange::Wrap => u64::try_from(number.checked_rem_euclid(len)?).ok(),
            OutOfRange::Error | OutOfRange::Nowhere => None,
        }
    }
}

/// Axes without those of length 1, and with neighbours merged that go on at one stride.
fn merged(axes: &[Axis]) -> Vec<Axis> {
    let mut merged: Vec<Axis> = Vec::with_capacity(axes.len());
    for &axis in axes.iter().filter(|axis| axis.len != 1) {
        match merged.last_mut() {
            Some(last) if axis.len > 0 && last.stride == axis.stride * axis.len as i64 => {
                *last = Axis { len: last.len * axis.len, ..axis };
            }
            _ => merged.push(axis),
        }
    }
    merged
}

/// The columns for some axes of a tensor.
fn columns(params: &Layout<'_>, axes: Range<usize>) -> Result<Vec<Column>, GatherError> {
    let strides = element_strides(params)?;
    let column = |axis: usize| {
        let len = params.shape[axis];
        // where there is one position only, the stride does not matter
        let stride = if len > 1 { whole_bytes(strides[axis], params.item_bits)? } else { 0 };
        Ok(Column { len, stride: stride.unsigned_abs() })
    };
    axes.map(column).collect()
}

/// A number in an index tensor that is no position of its axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadPosition {
    /// In a tuple.
    Tuple {
        /// The place of the tuple in the index tensor.
        at: Vec<u64>,
        /// Its numbers, those of batch axes before them.
        tuple: Vec<i128>,
        /// The shape that it does not index.
        params: Vec<u64>,
    },
    /// By itself.
    Number {
        /// Its place in the index tensor.
        at: Vec<u64>,
        /// The number.
        number: i128,
        /// The length of its axis.
        len: u64,
    },
}

impl fmt::Display for BadPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (BadPosition::Tuple { at, .. } | BadPosition::Number { at, .. }) = self;
        f.write_str("indices")?;
        if !at.is_empty() {
            let at: Vec<String> = at.iter().map(u64::to_string).collect();
            write!(f, "[{}]", at.join(","))?;
        }
        match self {
            BadPosition::Tuple { tuple, params, .. } => {
                // Debug of a list of integers is Python's notation
                write!(f, " = {tuple:?} does not index into params of shape {}", AsList(params))
            }
            BadPosition::Number { number, len, .. } => {
                write!(f, " = {number} is not in [0, {len})")
            }
        }
    }
}

impl std::error::Error for BadPosition {}

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
        assert_eq!(OutOfRange::Nowhere.position(-1, 5), None);
        assert_eq!(OutOfRange::Wrap.position(0, 0), None);
    }

    #[test]
    fn bad_positions_speak_tensorflows_words() {
        let tuple = BadPosition::Tuple { at: vec![1, 0], tuple: vec![3, 0], params: vec![3, 4] };
        assert_eq!(
            tuple.to_string(),
            "indices[1,0] = [3, 0] does not index into params of shape [3, 4]"
        );
        let number = BadPosition::Number { at: vec![1, 0], number: -1, len: 3 };
        assert_eq!(number.to_string(), "indices[1,0] = -1 is not in [0, 3)");
        let scalar = BadPosition::Number { at: vec![], number: 5, len: 3 };
        assert_eq!(scalar.to_string(), "indices = 5 is not in [0, 3)");
    }
}
