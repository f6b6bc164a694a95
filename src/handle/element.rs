//! The types that elements have in memory.

use half::{bf16, f16};

use crate::dtype::{Endian, Scalar};

/// The byte order of numbers in memory.
pub(crate) const NATIVE: Endian = match cfg!(target_endian = "big") {
    true => Endian::Big,
    false => Endian::Little,
};

/// A type of numbers that tensors hold, for [`Slice::read`](crate::Slice::read).
pub trait Element: sealed::InMemory + Copy + Send + 'static {
    /// The dtype of the numbers, but for the byte order.
    const SCALAR: Scalar;
}

pub(super) mod sealed {
    /// Elements as bytes in the byte order of the machine.
    pub trait InMemory: Sized {
        /// So many elements of zero; `None` where there is not that much memory.
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

    /// Bytes of a file may be other ones than 0 and 1, which those of a `bool` must not be.
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
