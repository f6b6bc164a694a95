//! Casts: elements of one number type converted to another, as NumPy's `astype` does it, and the
//! `ml_dtypes` package for the floats that NumPy lacks.
//!
//! A number is rounded once, from its exact value, to the nearest one, ties to even. What is too
//! large for a float becomes infinite, or NaN where the type has no infinities. From float to
//! integer the fraction is dropped; a number that the integer type cannot hold becomes its nearest
//! end, NaN becomes 0 (C leaves both open). From integer to integer the high bits are dropped. From
//! complex to real the imaginary part is dropped. Everything but 0 is true, NaN included.
//!
//! `ml_dtypes` 0.6 rounds float64 and large integers to float32 first, and so twice; numbers are rounded
//! once here. Numbers between the two least ones of float8_e8m0fnu become the upper one, as there.
//!
//! float4_e2m1fn can be cast to other types, not others to it. Two of its numbers lie in a byte, the
//! first one in the low bits, as in PyTorch's `float4_e2m1fn_x2`, which `.safetensors` hold, and in ONNX.
//!
//! ```
//! use tslice::cast::{Cast, Casting};
//! use tslice::dtype::{DType, Endian, Scalar};
//! let float = DType::Scalar(Scalar::F32, Endian::Little);
//! let bfloat = DType::Scalar(Scalar::BF16, Endian::Big);
//! let cast = Cast::new(&float, &bfloat, Casting::SameKind)?;
//! let mut output = [0; 2];
//! cast.run(&mut 1.005f32.to_le_bytes(), &mut output);
//! assert_eq!(output, [0x3f, 0x81]);
//! assert!(Cast::new(&bfloat, &float, Casting::Safe).is_ok());
//! assert!(Cast::new(&float, &bfloat, Casting::Safe).is_err());
//! # Ok::<(), tslice::cast::CastError>(())
//! ```

use std::fmt;

use crate::dtype::{DType, Endian, Scalar};

mod kernels;
mod number;
mod promotion;
mod rounding;
mod rules;

pub use promotion::result_type;
pub use rules::{Casting, can_cast};

/// A conversion of elements from one number type to another; byte orders are those of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cast {
    from: (Scalar, Endian),
    to: (Scalar, Endian),
}

/// Why elements cannot be cast.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CastError {
    /// The rule does not allow it.
    #[error("cannot cast from {from} to {to} according to the rule '{casting}'")]
    Refused {
        /// The dtype of the elements.
        from: DType,
        /// The dtype that they were to have.
        to: DType,
        /// The rule.
        casting: Casting,
    },
    /// A dtype whose elements are no numbers, or not known to be any.
    #[error("dtype {0} holds no numbers that can be cast")]
    NotNumbers(DType),
    /// Elements of 6 bits.
    #[error("elements of dtype {0} cannot be cast: it is not settled how they share bytes")]
    PartsOfBytes(DType),
    /// Elements that would be smaller than a byte.
    #[error("cannot cast to {0}: its elements are smaller than a byte")]
    ToPartsOfBytes(DType),
}

impl Cast {
    /// A cast that a rule allows.
    ///
    /// # Errors
    /// [`CastError`]: the rule does not allow it; a dtype that is no number, or of parts of bytes.
    pub fn new(from: &DType, to: &DType, casting: Casting) -> Result<Cast, CastError> {
        let cast = Cast { from: number(from)?, to: number(to)? };
        if cast.to.0.bits() < 8 {
            return Err(CastError::ToPartsOfBytes(to.clone()));
        }
        if matches!(cast.from.0, Scalar::F6E2M3 | Scalar::F6E3M2) {
            return Err(CastError::PartsOfBytes(from.clone()));
        }
        if can_cast(cast.from.0, cast.to.0, casting) {
            Ok(cast)
        } else {
            Err(CastError::Refused { from: from.clone(), to: to.clone(), casting })
        }
    }

    /// The dtype of the elements before.
    pub fn from(self) -> DType {
        DType::Scalar(self.from.0, self.from.1)
    }

    /// The dtype of the elements afterwards.
    pub fn to(self) -> DType {
        DType::Scalar(self.to.0, self.to.1)
    }

    /// Whether the elements stay of one number type, in another byte order at most.
    pub fn keeps_type(self) -> bool {
        self.from.0 == self.to.0
    }

    /// The cast to elements of this byte order instead.
    #[must_use]
    pub fn with_endian(self, endian: Endian) -> Cast {
        Cast { to: (self.to.0, endian), ..self }
    }

    /// The cast from elements of the other byte order instead.
    #[must_use]
    pub fn of_swapped(self) -> Cast {
        Cast { from: (self.from.0, other(self.from.1)), ..self }
    }

    /// This cast, to elements of the other byte order.
    #[must_use]
    pub fn to_swapped(self) -> Cast {
        Cast { to: (self.to.0, other(self.to.1)), ..self }
    }

    /// This cast, to elements of the byte order of a dtype.
    #[must_use]
    pub fn with_order_of(self, dtype: &DType) -> Cast {
        match dtype {
            DType::Scalar(_, endian) => self.with_endian(*endian),
            DType::Npy(_) => self,
        }
    }

    /// Where the elements stay of one type: the bytes that are reversed together, 1 where none are.
    pub fn swap_width(self) -> Option<usize> {
        let width = if self.from.1 == self.to.1 { 1 } else { self.to().swap_width() };
        self.keeps_type().then_some(width)
    }

    /// The elements that are cast together, because they share a byte.
    fn unit(self) -> u64 {
        8 / self.from.0.bits().min(8)
    }

    /// Bytes before of an element, or of those that share a byte.
    pub fn input_bytes(self) -> usize {
        (self.unit() * self.from.0.bits() / 8) as usize
    }

    /// Bytes afterwards of as many elements.
    pub fn output_bytes(self) -> usize {
        (self.unit() * self.to.0.bits() / 8) as usize
    }

    /// Cast as many elements as both hold. What `input` holds afterwards is not defined.
    pub fn run(self, input: &mut [u8], output: &mut [u8]) {
        if self.from.1 == Endian::Big {
            swap(input, self.from());
        }
        kernels::run(self.from.0, self.to.0, input, output);
        if self.to.1 == Endian::Big {
            swap(output, self.to());
        }
    }
}

fn other(endian: Endian) -> Endian {
    match endian {
        Endian::Little => Endian::Big,
        Endian::Big => Endian::Little,
    }
}

/// The number type of a dtype.
fn number(dtype: &DType) -> Result<(Scalar, Endian), CastError> {
    match dtype {
        DType::Scalar(scalar, endian) => Ok((*scalar, *endian)),
        DType::Npy(_) => Err(CastError::NotNumbers(dtype.clone())),
    }
}

/// Reverse the bytes of each number.
fn swap(bytes: &mut [u8], dtype: DType) {
    fn reverse<const N: usize>(bytes: &mut [u8]) {
        bytes.as_chunks_mut::<N>().0.iter_mut().for_each(|number| number.reverse());
    }
    match dtype.swap_width() {
        2 => reverse::<2>(bytes),
        4 => reverse::<4>(bytes),
        8 => reverse::<8>(bytes),
        _ => {}
    }
}

impl fmt::Display for Casting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Casting::Safe => "safe",
            Casting::SameKind => "same-kind",
            Casting::Unsafe => "unsafe",
        })
    }
}
