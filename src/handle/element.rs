//! Elements in memory: the types that a slice can be read into, and the sink that they grow in.

use std::sync::{Mutex, PoisonError};

use half::{bf16, f16};

use crate::dtype::{Endian, Scalar};
use crate::sink::{Sink, SinkError, WriteOrder};

/// A type of numbers that tensors hold, for [`Slice::read`](crate::Slice::read).
pub trait Element: Copy + Send + sealed::Sealed + 'static {
    /// The dtype of the numbers, but for the byte order.
    const SCALAR: Scalar;

    /// Append the elements that whole `bytes` are, in that byte order.
    fn decode(bytes: &[u8], endian: Endian, elements: &mut Vec<Self>);
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($element:ty => $scalar:ident),*) => {$(
        impl sealed::Sealed for $element {}

        impl Element for $element {
            const SCALAR: Scalar = Scalar::$scalar;

            fn decode(bytes: &[u8], endian: Endian, elements: &mut Vec<Self>) {
                let items = bytes.as_chunks::<{ size_of::<$element>() }>().0.iter();
                match endian {
                    Endian::Little => elements.extend(items.map(|it| Self::from_le_bytes(*it))),
                    Endian::Big => elements.extend(items.map(|it| Self::from_be_bytes(*it))),
                }
            }
        }
    )*};
}

elements!(
    i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    f16 => F16, bf16 => BF16, f32 => F32, f64 => F64
);

impl sealed::Sealed for bool {}

impl Element for bool {
    const SCALAR: Scalar = Scalar::Bool;

    fn decode(bytes: &[u8], _endian: Endian, elements: &mut Vec<bool>) {
        elements.extend(bytes.iter().map(|&byte| byte != 0));
    }
}

/// A sink that decodes bytes to elements, in order.
pub(crate) struct ElementSink<T> {
    endian: Endian,
    received: Mutex<Received<T>>,
}

/// What an [`ElementSink`] has received so far.
struct Received<T> {
    elements: Vec<T>,
    /// The first bytes of an element whose last bytes have not arrived yet.
    partial: Vec<u8>,
}

impl<T: Element> ElementSink<T> {
    /// A sink with room for `count` elements; `None` where there is not that much memory.
    pub(crate) fn new(endian: Endian, count: usize) -> Option<ElementSink<T>> {
        let (mut elements, partial) = (Vec::new(), Vec::new());
        elements.try_reserve_exact(count).ok()?;
        Some(ElementSink { endian, received: Mutex::new(Received { elements, partial }) })
    }

    /// What it has received.
    pub(crate) fn into_elements(self) -> Vec<T> {
        self.received.into_inner().unwrap_or_else(PoisonError::into_inner).elements
    }
}

impl<T: Element> Sink for ElementSink<T> {
    fn order(&self) -> WriteOrder {
        WriteOrder::Ascending
    }

    fn is_atomic(&self) -> bool {
        true
    }

    fn write_at(&self, _offset: u64, mut bytes: &[u8]) -> Result<(), SinkError> {
        let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        let Received { elements, partial } = &mut *received;
        if !partial.is_empty() {
            let missing = (size_of::<T>() - partial.len()).min(bytes.len());
            partial.extend(&bytes[..missing]);
            bytes = &bytes[missing..];
            if partial.len() < size_of::<T>() {
                return Ok(());
            }
            T::decode(partial, self.endian, elements);
            partial.clear();
        }
        let whole = bytes.len() - bytes.len() % size_of::<T>();
        T::decode(&bytes[..whole], self.endian, elements);
        partial.extend(&bytes[whole..]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_may_arrive_in_parts() {
        let bytes: Vec<u8> = [1.5f32, -2.0, 7.0].iter().flat_map(|it| it.to_be_bytes()).collect();
        for part in 1..=bytes.len() {
            let sink = ElementSink::<f32>::new(Endian::Big, 3).unwrap();
            for (number, bytes) in bytes.chunks(part).enumerate() {
                sink.write_at((number * part) as u64, bytes).unwrap();
            }
            assert_eq!(sink.into_elements(), [1.5, -2.0, 7.0], "parts of {part}");
        }
    }
}
