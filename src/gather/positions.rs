//! The positions that an index tensor names, as byte offsets, read in pieces.
//!
//! [`Positions`] knows where the index tensor lies in its file and which axes its numbers index;
//! [`Positions::read`] turns any range of tuples into offsets from the first element. Only those
//! tuples are held in memory. Gather reads from these offsets, scatter writes to them.
//!
//! [`OutOfRange`] says what happens to a number that is no position of its axis.

use std::fmt;
use std::ops::Range;

use super::GatherError;
use crate::dtype::{DType, Endian, Integers};
use crate::execute::{BadPosition, FillError, ReadFrom, read_range};
use crate::permutation::Permutation;
use crate::runs::{Axis, Runs, byte_bounds, unravel_index};
use crate::shape;
use crate::source::{Source, SourceError};
use crate::view::{Layout, ViewError};

/// The offset of a tuple that names no position, where [`OutOfRange::Drop`] allows that.
pub const DROPPED: u64 = u64::MAX;

/// What becomes of a number that is no position of its axis, a negative one included.
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

/// An index tensor: where its numbers lie in a file.
#[derive(Clone, Debug)]
pub struct Indices<'a> {
    /// The type of the numbers, which must be integers.
    pub dtype: &'a DType,
    /// The shape of the indices, and where each number lies.
    pub layout: Layout<'a>,
}

impl Indices<'_> {
    /// The number of an index tensor without axes; `None` where it has some, or holds no integers.
    ///
    /// # Errors
    /// The source's.
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

/// The tuples of an index tensor, and what they mean.
#[derive(Clone)]
pub struct Positions {
    integers: Integers,
    ravel: Ravel,
    /// The axes of the params that the numbers of a tuple index, in bytes.
    pub(super) indexed: Vec<Axis>,
    /// How far those of them that run backwards lead before the first element: offsets count from
    /// there, so that none is negative.
    pub(super) before: u64,
    out_of_range: OutOfRange,
    /// Whether -1 is the last position of an axis.
    negative: bool,
    /// The shape along which the tuples lie.
    pub(super) shape: Vec<u64>,
    /// The axes of the tuples from the slowest to the fastest, as tuples are numbered.
    numbering: Permutation,
    /// How many tuples there are.
    pub(super) count: u64,
    /// The numbers, tuple after tuple in the order in which they are numbered: the axes of the
    /// tuples and that of the numbers in one, not coalesced.
    numbers: Runs,
    /// The same, coalesced.
    pub(super) coalesced: Runs,
    context: ErrorContext,
}

/// All that tells positions apart, the same in every process: not the function.
impl fmt::Debug for Positions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Positions { integers, indexed, out_of_range, negative, numbering, numbers, .. } = self;
        (integers, indexed, out_of_range, negative, numbering, numbers).fmt(f)
    }
}

/// What the numbers index, for error messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ErrorContext {
    /// A tensor of this shape, whose batch axes are indexed by the tuple's own place.
    Params { shape: Vec<u64>, batch_dims: usize },
    /// One axis, by its number.
    Axis(usize),
    /// The axes from `axis` on, by list number `list` of an index, which is its item `item`.
    List { list: usize, item: usize, axis: usize },
}

impl Positions {
    /// The tuples on the last axis of `indices`, which index the axes of `params` after the first
    /// `batch_dims`: the positions of gather_nd and of scatter.
    ///
    /// # Errors
    /// [`GatherError`]: no integers, a shape or a number of batch axes that does not fit.
    pub fn nd(
        params: &Layout<'_>,
        indices: &Indices<'_>,
        batch_dims: usize,
        out_of_range: OutOfRange,
    ) -> Result<Positions, GatherError> {
        let Some((&count, shape)) = indices.layout.shape.split_last() else {
            return Err(GatherError::NoTuples);
        };
        check_batch(params.shape, indices.layout.shape, batch_dims, 1)?;
        let left = params.shape.len() - batch_dims;
        let count = usize::try_from(count).ok().filter(|&count| count <= left);
        let count = count.ok_or_else(|| GatherError::LongTuples {
            indices: indices.layout.shape.to_vec(),
            params: params.shape.to_vec(),
            batch_dims,
        })?;
        let axes = batch_dims..batch_dims + count;
        let context = ErrorContext::Params { shape: params.shape.to_vec(), batch_dims };
        Positions::new(indices, shape, indexed_axes(params, axes)?, out_of_range, context)
    }

    /// Each number of `indices` by itself, as a position on one axis of `params`.
    pub(super) fn along(
        params: &Layout<'_>,
        indices: &Indices<'_>,
        axis: usize,
        out_of_range: OutOfRange,
    ) -> Result<Positions, GatherError> {
        let indexed = indexed_axes(params, axis..axis + 1)?;
        Positions::new(
            indices,
            indices.layout.shape,
            indexed,
            out_of_range,
            ErrorContext::Axis(axis),
        )
    }

    /// A list of an index, as positions on these axes of `params`, negative ones counting from the
    /// end. Tuples lie on its last axis, where there are; else each number is a position.
    pub(super) fn listed(
        params: &Layout<'_>,
        indices: &Indices<'_>,
        axes: Range<usize>,
        list: usize,
        item: usize,
        has_tuples: bool,
    ) -> Result<Positions, GatherError> {
        let context = ErrorContext::List { list, item, axis: axes.start };
        let indexed = indexed_axes(params, axes)?;
        let shape = match indices.layout.shape {
            [shape @ .., _] if has_tuples => shape,
            shape => shape,
        };
        let positions = Positions::new(indices, shape, indexed, OutOfRange::Error, context)?;
        // NumPy casts an index array to its signed 64-bit integers, but not a single number
        let wraps = !indices.layout.shape.is_empty() && !has_tuples;
        let integers = if wraps { positions.integers.wrapped() } else { positions.integers };
        Ok(Positions { integers, ..positions }.with_negative(true))
    }

    fn new(
        indices: &Indices<'_>,
        shape: &[u64],
        indexed: Vec<Axis>,
        out_of_range: OutOfRange,
        context: ErrorContext,
    ) -> Result<Positions, GatherError> {
        let integers = Integers::new(indices.dtype)
            .ok_or_else(|| GatherError::NotIntegers(indices.dtype.to_string()))?;
        let count = shape::element_count(shape).ok_or(ViewError::TooLarge)?;
        let (offset, axes) = (indices.layout.start()?, indices.layout.axes()?);
        let empty = indexed.iter().position(|axis| axis.len == 0);
        if let (Some(axis), true) = (empty, count > 0)
            && matches!(out_of_range, OutOfRange::Clip | OutOfRange::Wrap)
        {
            return Err(GatherError::EmptyAxis(match context {
                ErrorContext::Params { batch_dims, .. } => batch_dims + axis,
                ErrorContext::Axis(axis) => axis,
                ErrorContext::List { axis: first, .. } => first + axis,
            }));
        }
        let numbers = Runs { offset, axes, run: integers.width as u64 };
        Ok(Positions {
            integers,
            ravel: kernel(integers, indexed.len(), false),
            before: byte_bounds(&indexed, 0).start.unsigned_abs(),
            indexed,
            out_of_range,
            negative: false,
            shape: shape.to_vec(),
            numbering: Permutation::identity(shape.len()),
            count,
            coalesced: numbers.coalesced(),
            numbers,
            context,
        })
    }

    /// These positions, where negative numbers count from the end of their axis, or do not.
    #[must_use]
    pub fn with_negative(self, negative: bool) -> Positions {
        let ravel = kernel(self.integers, self.indexed.len(), negative);
        Positions { negative, ravel, ..self }
    }

    /// The same positions, numbered with the axes of their shape in that order, the last one
    /// fastest.
    #[must_use]
    pub(super) fn numbered(mut self, numbering: Permutation) -> Positions {
        let ndim = self.shape.len();
        let mut axes = self.numbers.axes.split_off(ndim);
        let mut own = self.numbers.axes.clone();
        for (axis, &was) in self.numbers.axes.iter().zip(self.numbering.axes()) {
            own[was] = *axis;
        }
        self.numbers.axes = numbering.permute(&own);
        self.numbers.axes.append(&mut axes);
        self.coalesced = self.numbers.coalesced();
        self.numbering = numbering;
        self
    }

    /// Whether tuples are numbered in the order of the indices.
    pub(super) fn is_in_their_order(&self) -> bool {
        self.numbering.is_identity()
    }

    /// The same positions of a file that holds nothing but the numbers, tuple after tuple.
    #[must_use]
    pub(super) fn in_order(self) -> Positions {
        Positions { coalesced: Runs::contiguous(0, self.bytes()), ..self }
    }

    /// Bytes that the numbers take in their file.
    pub fn bytes(&self) -> u64 {
        self.count * self.tuple_bytes() as u64
    }

    /// Read the tuples from number `first` on from the indices' file, as many as `out` holds: the
    /// offset of each in bytes from the first of all elements that they can name, or [`DROPPED`].
    ///
    /// # Errors
    /// [`FillError::Position`] for the first bad one where that is an error,
    /// [`FillError::Indices`] where the file failed.
    pub fn read(&self, first: u64, source: &dyn Source, out: &mut [u64]) -> Result<(), FillError> {
        if self.indexed.is_empty() || out.is_empty() {
            out.fill(0);
            return Ok(());
        }
        let range = first..first + out.len() as u64;
        let (mut raw, mut scratch) = (Vec::new(), Vec::new());
        let raw = self
            .raw(&range, source, &mut raw, &mut scratch)
            .map_err(|error| FillError::Indices { list: 0, error })?;
        if !(self.ravel)(raw, &self.indexed, out) {
            return self.read_each(first, raw, out);
        }
        if self.before > 0 {
            out.iter_mut().for_each(|offset| *offset = offset.wrapping_add(self.before));
        }
        Ok(())
    }

    /// The tuples of a range, one after the other.
    fn raw<'a>(
        &self,
        range: &Range<u64>,
        source: &'a dyn Source,
        buffer: &'a mut Vec<u8>,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], SourceError> {
        let tuple_bytes = self.tuple_bytes() as u64;
        let bytes = range.start * tuple_bytes..range.end * tuple_bytes;
        if self.coalesced.axes.is_empty() {
            let offset = self.coalesced.offset as u64;
            return source.window(offset + bytes.start..offset + bytes.end, scratch);
        }
        buffer.resize((bytes.end - bytes.start) as usize, 0);
        read_range(&self.coalesced, bytes, &mut ReadFrom { source, scratch }, buffer)?;
        Ok(buffer)
    }

    /// Ravel each tuple by itself: some number is no position.
    #[cold]
    fn read_each(&self, first: u64, raw: &[u8], out: &mut [u64]) -> Result<(), FillError> {
        for (at, tuple) in raw.chunks_exact(self.tuple_bytes()).enumerate() {
            let numbers = tuple.chunks_exact(self.integers.width);
            let mut offset = Some(self.before);
            for (raw, axis) in numbers.zip(&self.indexed) {
                let number = self.counted(self.integers.value(raw), axis.len);
                let position = self.out_of_range.position(number, axis.len);
                let place = |(offset, at): (u64, u64)| {
                    offset.wrapping_add(at.wrapping_mul(axis.stride as u64))
                };
                offset = offset.zip(position).map(place);
            }
            if offset.is_none() && self.out_of_range == OutOfRange::Error {
                return Err(FillError::Position(self.bad(first + at as u64, tuple)));
            }
            out[at] = offset.unwrap_or(DROPPED);
        }
        Ok(())
    }

    /// A number on an axis of length `len`, counted from the beginning where it can be.
    fn counted(&self, number: i128, len: u64) -> i128 {
        let len = i128::from(len);
        if self.negative && (-len..0).contains(&number) { number + len } else { number }
    }

    fn bad(&self, number: u64, tuple: &[u8]) -> BadPosition {
        let mut at = vec![0; self.shape.len()];
        let axes = self.numbering.axes().iter().rev();
        let lens = axes.clone().map(|&axis| self.shape[axis]);
        for (&axis, index) in axes.zip(unravel_index(lens, number)) {
            at[axis] = index;
        }
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
                let raw = tuple.chunks_exact(self.integers.width);
                let numbers = raw.map(|raw| self.integers.value(raw)).zip(&self.indexed);
                let mut bad = (0..).zip(numbers).filter(|(_, (number, axis))| {
                    !(0..i128::from(axis.len)).contains(&self.counted(*number, axis.len))
                });
                let nowhere = Axis { len: 0, stride: 0 };
                let (place, (number, of)) = bad.next().unwrap_or((0, (0, &nowhere)));
                let (list, item) = (*list, *item);
                BadPosition::Listed { list, item, at, number, axis: axis + place, len: of.len }
            }
        }
    }

    pub(super) fn tuple_bytes(&self) -> usize {
        self.indexed.len() * self.integers.width
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
            OutOfRange::Error | OutOfRange::Drop => None,
        }
    }
}

/// Some axes of a tensor, in bytes.
pub(super) fn indexed_axes(
    params: &Layout<'_>,
    axes: Range<usize>,
) -> Result<Vec<Axis>, GatherError> {
    let strides = params.strides()?;
    let indexed = |axis: usize| {
        let len = params.shape[axis];
        // where there is one position only, the stride does not matter
        let stride = if len > 1 { params.bytes(strides[axis])? } else { 0 };
        Ok(Axis { len, stride })
    };
    axes.map(indexed).collect()
}

/// How many batch axes a number means; a negative one counts from the rank of the indices, in a
/// gather along an axis.
///
/// # Errors
/// [`GatherError::NegativeBatchDims`]. Source: TensorFlow's GatherV2.
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
    match (0..batch_dims).find(|&axis| params[axis] != indices[axis]) {
        Some(axis) => Err(GatherError::BatchShape {
            params: params.to_vec(),
            indices: indices.to_vec(),
            axis,
        }),
        None => Ok(()),
    }
}

// From raw index numbers to byte offsets: one multiplication and one comparison a number.
//
// What NumPy calls `ravel_multi_index`. A tuple of numbers lies together, one number for each axis
// that it indexes. The kernels are compiled for each width and byte order of the numbers and, up
// to four, for how many make a tuple; they only notice *that* a number is out of range. Which one,
// and what happens then, the caller finds out with `Integers::value`.

/// Writes the offset of each tuple of `raw` to `out`, from the axes that its numbers index, of
/// lengths below 2^63; those before the first element wrap around. False where some number is no
/// position of its axis, and the offsets mean nothing then.
pub(super) type Ravel = fn(raw: &[u8], axes: &[Axis], out: &mut [u64]) -> bool;

/// The kernel for tuples of `count` numbers, of which negative ones count from the end where
/// `negative` is set.
pub(super) fn kernel(integers: Integers, count: usize, negative: bool) -> Ravel {
    if negative && integers.signed {
        chosen::<true>(integers, count)
    } else {
        chosen::<false>(integers, count)
    }
}

fn chosen<const NEGATIVE: bool>(integers: Integers, count: usize) -> Ravel {
    match (integers.width, integers.signed, integers.endian) {
        (1, true, _) => by_count::<i8, 1, NEGATIVE>(count),
        (1, false, _) => by_count::<u8, 1, NEGATIVE>(count),
        (2, true, Endian::Little) => by_count::<i16, 2, NEGATIVE>(count),
        (2, true, Endian::Big) => by_count::<Swapped<i16>, 2, NEGATIVE>(count),
        (2, false, Endian::Little) => by_count::<u16, 2, NEGATIVE>(count),
        (2, false, Endian::Big) => by_count::<Swapped<u16>, 2, NEGATIVE>(count),
        (4, true, Endian::Little) => by_count::<i32, 4, NEGATIVE>(count),
        (4, true, Endian::Big) => by_count::<Swapped<i32>, 4, NEGATIVE>(count),
        (4, false, Endian::Little) => by_count::<u32, 4, NEGATIVE>(count),
        (4, false, Endian::Big) => by_count::<Swapped<u32>, 4, NEGATIVE>(count),
        (_, true, Endian::Little) => by_count::<i64, 8, NEGATIVE>(count),
        (_, true, Endian::Big) => by_count::<Swapped<i64>, 8, NEGATIVE>(count),
        (_, false, Endian::Little) => by_count::<u64, 8, NEGATIVE>(count),
        (_, false, Endian::Big) => by_count::<Swapped<u64>, 8, NEGATIVE>(count),
    }
}

fn by_count<W: RavelWord<B>, const B: usize, const NEGATIVE: bool>(count: usize) -> Ravel {
    match count {
        1 => ravel::<W, B, 1, NEGATIVE>,
        2 => ravel::<W, B, 2, NEGATIVE>,
        3 => ravel::<W, B, 3, NEGATIVE>,
        4 => ravel::<W, B, 4, NEGATIVE>,
        _ => ravel_any::<W, B, NEGATIVE>,
    }
}

/// A number as a position: negative ones count from the end, without a branch.
fn counted<const NEGATIVE: bool>(number: u64, len: u64) -> u64 {
    match NEGATIVE {
        true => number.wrapping_add(len & ((number as i64) >> 63) as u64),
        false => number,
    }
}

fn ravel<W: RavelWord<B>, const B: usize, const N: usize, const NEGATIVE: bool>(
    raw: &[u8],
    axes: &[Axis],
    out: &mut [u64],
) -> bool {
    let Some(axes) = axes.first_chunk::<N>() else { return false };
    let tuples = raw.as_chunks::<B>().0.as_chunks::<N>().0;
    let mut inside = true;
    for (out, tuple) in out.iter_mut().zip(tuples) {
        let mut offset = 0u64;
        for (&number, axis) in tuple.iter().zip(axes) {
            let number = counted::<NEGATIVE>(W::wide(number), axis.len);
            inside &= number < axis.len;
            // the sum is right where all numbers are inside
            offset = offset.wrapping_add(number.wrapping_mul(axis.stride as u64));
        }
        *out = offset;
    }
    inside
}

/// The same for any count of numbers, 0 included.
fn ravel_any<W: RavelWord<B>, const B: usize, const NEGATIVE: bool>(
    raw: &[u8],
    axes: &[Axis],
    out: &mut [u64],
) -> bool {
    let numbers = raw.as_chunks::<B>().0;
    out.fill(0);
    let mut inside = true;
    for (place, axis) in axes.iter().enumerate() {
        let numbers = numbers.iter().skip(place).step_by(axes.len());
        for (out, &number) in out.iter_mut().zip(numbers) {
            let number = counted::<NEGATIVE>(W::wide(number), axis.len);
            inside &= number < axis.len;
            *out = out.wrapping_add(number.wrapping_mul(axis.stride as u64));
        }
    }
    inside
}

/// A number of `B` bytes as a file holds it.
trait RavelWord<const B: usize> {
    /// Its value in 64 bits; negative ones become larger than any length of an axis.
    fn wide(bytes: [u8; B]) -> u64;
}

/// A number with its most significant byte first.
struct Swapped<T>(T);

macro_rules! words {
    ($($integer:ty, $bytes:literal;)*) => {$(
        impl RavelWord<$bytes> for $integer {
            #[inline]
            fn wide(bytes: [u8; $bytes]) -> u64 {
                // sign-extending where the type is signed
                <$integer>::from_le_bytes(bytes) as i64 as u64
            }
        }

        impl RavelWord<$bytes> for Swapped<$integer> {
            #[inline]
            fn wide(bytes: [u8; $bytes]) -> u64 {
                <$integer>::from_be_bytes(bytes) as i64 as u64
            }
        }
    )*};
}

words! { i8, 1; u8, 1; i16, 2; u16, 2; i32, 4; u32, 4; i64, 8; u64, 8; }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::{DType, Scalar};

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

    fn raw(value: i128, width: usize, endian: Endian) -> Vec<u8> {
        let mut bytes = value.to_le_bytes()[..width].to_vec();
        if endian == Endian::Big {
            bytes.reverse();
        }
        bytes
    }

    #[test]
    fn every_type_is_read_exactly() {
        let types = [
            (Scalar::I8, i128::from(i8::MIN), i128::from(i8::MAX)),
            (Scalar::I16, i128::from(i16::MIN), i128::from(i16::MAX)),
            (Scalar::I32, i128::from(i32::MIN), i128::from(i32::MAX)),
            (Scalar::I64, i128::from(i64::MIN), i128::from(i64::MAX)),
            (Scalar::U8, 0, i128::from(u8::MAX)),
            (Scalar::U16, 0, i128::from(u16::MAX)),
            (Scalar::U32, 0, i128::from(u32::MAX)),
            (Scalar::U64, 0, i128::from(u64::MAX)),
        ];
        for (scalar, low, high) in types {
            for endian in [Endian::Little, Endian::Big] {
                let integers = Integers::new(&DType::Scalar(scalar, endian)).unwrap();
                for value in [low, 1, 100, high] {
                    let raw = raw(value, integers.width, endian);
                    assert_eq!(integers.value(&raw), value);
                    for count in 1..6 {
                        let axes = vec![Axis { len: i64::MAX as u64, stride: 1 }; count];
                        let (mut out, tuple) = ([7], raw.repeat(count));
                        let inside = kernel(integers, count, false)(&tuple, &axes, &mut out);
                        assert_eq!(inside, (0..i128::from(i64::MAX)).contains(&value));
                        if inside && value < 1 << 40 {
                            assert_eq!(i128::from(out[0]), value * count as i128);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn other_types_are_no_indices() {
        for scalar in [Scalar::Bool, Scalar::F32, Scalar::C64, Scalar::BF16, Scalar::F4] {
            assert_eq!(Integers::new(&DType::Scalar(scalar, Endian::Little)), None);
        }
    }
}
