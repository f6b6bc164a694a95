//! Slices read into memory.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use half::{bf16, f16};
use sealed::InMemory;

use crate::cast::{Cast, Casting};
use crate::dtype::{DType, Endian, Scalar};
use crate::error::{Error, ErrorKind, Fault};
use crate::execute::pack::swap_bytes;
use crate::execute::{Conversion, ExecuteError, Progress};
use crate::formats::FormatError;
use crate::formats::safetensors::dtype_of;
use crate::handle::file::File;
use crate::handle::slice::Slice;
use crate::input::Input;
use crate::job::Writing;
use crate::region::Take;
use crate::shape;
use crate::sink::{Sink, SinkError};
use crate::source::Source;

impl Slice {
    /// Read the elements into memory, in C order and native byte order. Elements of a void type of
    /// the size of `T`, as bfloat16 has in a `.npy`, are read as little-endian numbers.
    ///
    /// # Errors
    ///
    /// [`ReadFault`] for a `T` that is not the dtype or for more elements than memory can hold,
    /// positions out of range, an input that fails or is cut short.
    pub fn read<T: Element>(&self) -> Result<Vec<T>, Error> {
        let count = self.count().and_then(|count| usize::try_from(count).ok());
        let elements = count.and_then(T::zeroes);
        let mut elements = elements.ok_or_else(|| self.failed(ReadFault::TooLarge))?;
        self.read_into(&mut elements)?;
        Ok(elements)
    }

    /// Read the elements into memory that there is, of as many elements as the slice has. After an error it may hold some of
    /// them.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("a.npy");
    /// # tslice::tensor("", &[2, 2], vec![1u8, 2, 3, 4])?.all().write(&path)?;
    /// let tensor = tslice::open(path)?.only()?;
    /// let mut column = [0u8; 2];
    /// for number in 0..2 {
    ///     tensor.slice((.., number))?.read_into(&mut column)?;
    ///     assert_eq!(column, [1 + number as u8, 3 + number as u8]);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`read`](Slice::read); [`ReadFault::Count`] for another number of elements.
    pub fn read_into<T: Element>(&self, elements: &mut [T]) -> Result<(), Error> {
        let dtype = self.dtype().clone();
        let asked = T::SCALAR.name();
        let conversion = match (&dtype, self.cast) {
            (DType::Scalar(scalar, endian), None) if *scalar == T::SCALAR => match *endian {
                NATIVE => Conversion::None,
                _ => Conversion::swap_bytes(size_of::<T>()),
            },
            (DType::Scalar(scalar, endian), Some(cast)) if *scalar == T::SCALAR => match *endian {
                NATIVE => Conversion::Cast(cast),
                _ => {
                    let native = DType::Scalar(T::SCALAR, NATIVE);
                    let cast = Cast::new(self.tensor.dtype(), &native, Casting::Unsafe);
                    Conversion::Cast(cast.map_err(|error| self.failed(error))?)
                }
            },
            // as a `.npy` stores bfloat16 and 8-bit floats, little-endian
            (void, None) if void.is_void() && void.item_bits() == 8 * size_of::<T>() as u64 => {
                match NATIVE {
                    Endian::Little => Conversion::None,
                    Endian::Big => Conversion::swap_bytes(size_of::<T>()),
                }
            }
            _ => return Err(self.failed(ReadFault::DType { asked, dtype })),
        };
        let given = elements.len() as u64;
        let has = self.count();
        match has {
            Some(has) if has == given => {}
            Some(has) => return Err(self.failed(ReadFault::Count { given, has })),
            None => return Err(self.failed(ReadFault::TooLarge)),
        }
        T::fill(elements, |bytes| self.fill(bytes, conversion))
    }

    /// Read the bytes of the elements into memory, whatever the dtype, in C order and in the byte order of the
    /// [dtype](Slice::dtype).
    pub fn read_bytes(&self) -> Result<Vec<u8>, Error> {
        let bytes = shape::byte_count(self.shape(), self.dtype().item_bits());
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let zeroes = bytes.and_then(<u8 as InMemory>::zeroes);
        let mut bytes = zeroes.ok_or_else(|| self.failed(ReadFault::TooLarge))?;
        self.fill(&mut bytes, self.conversion())?;
        Ok(bytes)
    }

    /// Read the slice into memory as the `safetensors` package takes tensors.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("a.npy");
    /// # use tslice::dtype::{DType, Endian, Scalar};
    /// # let big = DType::Scalar(Scalar::I16, Endian::Big);
    /// # let header = tslice::formats::npy::header(&big, &[2], Default::default())?;
    /// # std::fs::write(&path, [&header[..], &[0, 1, 2, 0]].concat())?;
    /// let tensor = tslice::open(path)?.only()?.all().load()?;
    /// let bytes = safetensors::serialize([("a", tensor)], None)?;
    /// let read = safetensors::SafeTensors::deserialize(&bytes)?;
    /// assert_eq!(read.tensor("a")?.data(), [1, 0, 0, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`read`](Slice::read); a dtype that the format lacks.
    pub fn load(&self) -> Result<LoadedTensor, Error> {
        let dtype = match self.dtype() {
            DType::Scalar(scalar, _) => dtype_of(*scalar),
            _ => None,
        };
        let Some(dtype) = dtype else {
            let dtype = self.dtype().clone();
            return Err(self.failed(FormatError::Unsupported { dtype, format: "safetensors" }));
        };
        let lens = self.shape().iter().map(|&len| usize::try_from(len));
        let shape = lens.collect::<Result<_, _>>().map_err(|_| self.failed(ReadFault::TooLarge))?;
        let mut bytes = self.read_bytes()?;
        if matches!(self.dtype(), DType::Scalar(_, Endian::Big)) {
            swap_bytes(&mut bytes, self.dtype().swap_width());
        }
        Ok(LoadedTensor { dtype, shape, bytes })
    }

    /// Read the slice in chunks of `len` positions along an axis, of which a negative one counts from the end; the last
    /// chunk may be shorter, and a `len` of 0 is 1. While one is used, the next one is read. Of a slice made of lists, a copy in a temporary file is
    /// read so.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("a.npy");
    /// # tslice::tensor("", &[3, 2], vec![1u8, 2, 3, 4, 5, 6])?.all().write(&path)?;
    /// let tensor = tslice::open(path)?.only()?;
    /// let chunks = tensor.all().read_chunks::<u8>(0, 2)?;
    /// assert_eq!(chunks.collect::<Result<Vec<_>, _>>()?, [vec![1, 2, 3, 4], vec![5, 6]]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`SplitFault`](crate::SplitFault): no such axis; a copy that cannot be made. An error of reading is the last
    /// item.
    pub fn read_chunks<T: Element>(&self, axis: i64, len: u64) -> Result<ReadChunks<T>, Error> {
        let at = self.axis(axis)?;
        let axis_len = self.shape()[at];
        let len = len.max(1);
        let count = axis_len.div_ceil(len);
        let whole = match self.narrowed(at, 0..0) {
            Some(_) => self.clone(),
            None => self.spooled()?.all(),
        };
        let (sender, chunks) = sync_channel(0);
        let read = move || {
            for number in 0..count {
                let start = number * len;
                let range = start..axis_len.min(start.saturating_add(len));
                let Some(chunk) = whole.narrowed(at, range) else { return };
                let chunk = chunk.read();
                let is_last = chunk.is_err();
                // the receiver is gone
                if sender.send(chunk).is_err() || is_last {
                    return;
                }
            }
        };
        let started = thread::Builder::new().spawn(read);
        started.map_err(|error| {
            let message = error.to_string();
            self.failed(ExecuteError::Threads { threads: 1, message })
        })?;
        Ok(ReadChunks { chunks, left: count })
    }

    fn count(&self) -> Option<u64> {
        shape::element_count(self.shape())
    }

    fn fill(&self, bytes: &mut [u8], conversion: Conversion) -> Result<(), Error> {
        let takes = [self.take_as(conversion)?];
        let File { input, source, .. } = self.tensor.file.as_ref();
        if let Some(range) = plain(input, source.as_ref(), &takes[0]) {
            let read = source.read(range, &mut Vec::new(), bytes);
            return read.map_err(|error| self.tensor.named(Error::file(&input.location, error)));
        }
        let sink = MemorySink::new(bytes);
        let progress = Progress::default();
        let copied = Writing::into_sink(&sink, &takes, &self.tensor.workers, &progress);
        copied.and_then(|job| self.copy(&job, &takes)).map_err(|error| self.tensor.named(error))
    }
}

/// The fewest bytes that several threads read, in pieces.
pub(super) const AT_ONCE: u64 = 256 << 10;

/// The range of the file that a take is, if one read is all that is needed: planning more for a row
/// is not worth it.
fn plain(input: &Input, source: &dyn Source, take: &Take) -> Option<Range<u64>> {
    let is_checked = !(input.container.stored.is_empty() && input.container.deflated.is_empty());
    if is_checked || take.conversion != Conversion::None || source.is_remote() {
        return None;
    }
    let range = take.region.strided()?.range()?;
    (range.end - range.start <= AT_ONCE).then_some(range)
}

/// An iterator over the chunks of a slice: [`Slice::read_chunks`].
pub struct ReadChunks<T> {
    chunks: Receiver<Result<Vec<T>, Error>>,
    pub(super) left: u64,
}

impl<T> Iterator for ReadChunks<T> {
    type Item = Result<Vec<T>, Error>;

    fn next(&mut self) -> Option<Result<Vec<T>, Error>> {
        self.left = self.left.checked_sub(1)?;
        // the sender ends early only if it panics
        let chunk = self.chunks.recv().unwrap_or_else(|_| Err(ExecuteError::Panicked.into()));
        if chunk.is_err() {
            self.left = 0;
        }
        Some(chunk)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, usize::try_from(self.left).ok())
    }
}

/// A slice in memory, in C order and little-endian: a tensor for `safetensors::serialize`.
#[derive(Clone, Debug)]
pub struct LoadedTensor {
    dtype: ::safetensors::Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl ::safetensors::View for LoadedTensor {
    fn dtype(&self) -> ::safetensors::Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }

    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

/// Why a slice cannot be read into memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadFault {
    /// The elements have another type.
    #[error("the elements have dtype {dtype}, not {asked}")]
    DType {
        /// The requested type.
        asked: &'static str,
        /// The dtype of the elements.
        dtype: DType,
    },
    /// The memory has room for another number of elements.
    #[error("there is memory for {given} elements, and the slice has {has}")]
    Count {
        /// The number of elements that the memory has room for.
        given: u64,
        has: u64,
    },
    /// More elements than memory can hold.
    #[error("the elements do not fit into memory")]
    TooLarge,
}

impl Fault for ReadFault {
    fn kind(&self) -> ErrorKind {
        match self {
            ReadFault::DType { .. } => ErrorKind::DType,
            ReadFault::Count { .. } | ReadFault::TooLarge => ErrorKind::Invalid,
        }
    }
}

/// The bytes under one lock: as many as a piece usually has, so that threads do not wait for each
/// other.
const STRETCH: usize = 256 << 10;

pub(super) struct MemorySink<'a> {
    stretches: Vec<Mutex<&'a mut [u8]>>,
    len: u64,
}

impl<'a> MemorySink<'a> {
    pub(super) fn new(bytes: &'a mut [u8]) -> MemorySink<'a> {
        let len = bytes.len() as u64;
        MemorySink { stretches: bytes.chunks_mut(STRETCH).map(Mutex::new).collect(), len }
    }
}

impl Sink for MemorySink<'_> {
    fn write_at(&self, offset: u64, mut bytes: &[u8]) -> Result<(), SinkError> {
        let count = bytes.len() as u64;
        let len = self.len;
        if offset.checked_add(count).is_none_or(|end| end > len) {
            return Err(SinkError::OutOfBounds { offset, count, len });
        }
        let mut number = offset as usize / STRETCH;
        let mut at = offset as usize % STRETCH;
        while !bytes.is_empty() {
            let mut stretch = self.stretches[number].lock().unwrap_or_else(PoisonError::into_inner);
            let now = &mut stretch[at..];
            let (first, rest) = bytes.split_at(bytes.len().min(now.len()));
            now[..first.len()].copy_from_slice(first);
            (number, at, bytes) = (number + 1, 0, rest);
        }
        Ok(())
    }
}

pub(crate) const NATIVE: Endian =
    if cfg!(target_endian = "big") { Endian::Big } else { Endian::Little };

/// A type of numbers that tensors hold, for [`Slice::read`](crate::Slice::read).
pub trait Element: sealed::InMemory + Copy + Send + 'static {
    /// The dtype of the numbers, without the byte order.
    const SCALAR: Scalar;
}

pub(super) mod sealed {
    /// Elements as bytes in the byte order of the machine.
    pub trait InMemory: Sized {
        /// `count` elements of zero; `None` if memory is too small.
        fn zeroes(count: usize) -> Option<Vec<Self>>;

        /// Let `fill` overwrite all bytes of elements.
        fn fill<R>(elements: &mut [Self], fill: impl FnOnce(&mut [u8]) -> R) -> R;

        /// The bytes of elements.
        fn bytes(elements: &[Self]) -> &[u8];
    }
}

macro_rules! elements {
    ($($element:ty => $scalar:ident),*) => {$(
        impl Element for $element {
            const SCALAR: Scalar = Scalar::$scalar;
        }

        impl sealed::InMemory for $element {
            fn zeroes(count: usize) -> Option<Vec<Self>> {
                <Self as zerocopy::FromZeros>::new_vec_zeroed(count).ok()
            }

            fn fill<R>(elements: &mut [Self], fill: impl FnOnce(&mut [u8]) -> R) -> R {
                fill(zerocopy::IntoBytes::as_mut_bytes(elements))
            }

            fn bytes(elements: &[Self]) -> &[u8] {
                zerocopy::IntoBytes::as_bytes(elements)
            }
        }
    )*};
}

elements!(
    i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    f16 => F16, bf16 => BF16, f32 => F32, f64 => F64
);

impl Element for bool {
    const SCALAR: Scalar = Scalar::Bool;
}

impl sealed::InMemory for bool {
    fn zeroes(count: usize) -> Option<Vec<bool>> {
        <bool as zerocopy::FromZeros>::new_vec_zeroed(count).ok()
    }

    /// Bytes of a file may be other than 0 and 1, which bytes of a `bool` must not be.
    fn fill<R>(elements: &mut [bool], fill: impl FnOnce(&mut [u8]) -> R) -> R {
        let mut bytes = vec![0; elements.len()];
        let outcome = fill(&mut bytes);
        elements.iter_mut().zip(bytes).for_each(|(element, byte)| *element = byte != 0);
        outcome
    }

    fn bytes(elements: &[bool]) -> &[u8] {
        zerocopy::IntoBytes::as_bytes(elements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_arrive_in_any_order() {
        let bytes: Vec<u8> = (0..3 * STRETCH as u32).map(|at| (at % 251) as u8).collect();
        for part in [1 << 10, 100_000, STRETCH, STRETCH + 1, bytes.len()] {
            let mut memory = vec![0; bytes.len()];
            let sink = MemorySink::new(&mut memory);
            for (number, part_bytes) in bytes.chunks(part).enumerate().rev() {
                sink.write_at((number * part) as u64, part_bytes).unwrap();
            }
            assert!(matches!(sink.write_at(sink.len, &[0]), Err(SinkError::OutOfBounds { .. })));
            sink.write_at(sink.len, &[]).unwrap();
            drop(sink);
            assert!(memory == bytes, "parts of {part}");
        }
    }
}
