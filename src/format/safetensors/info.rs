//! What a header says of one tensor, and whether it agrees with itself.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};

use super::dtypes::scalar;
use super::error::SafetensorsError;
use crate::dtype::Scalar;
use crate::format::brief::brief;
use crate::format::header::data_bytes;
use crate::shape::{AsList, MAX_NDIM};

/// What a header says of one tensor.
#[derive(Deserialize)]
pub(super) struct HeaderInfo<'a> {
    #[serde(borrow)]
    pub(super) dtype: Cow<'a, str>,
    pub(super) shape: Shape,
    pub(super) data_offsets: (u64, u64),
}

/// A shape, of which no more lengths are kept than a tensor can have.
pub(super) struct Shape {
    pub(super) lens: Vec<u64>,
    pub(super) ndim: usize,
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ShapeVisitor;

        impl<'de> Visitor<'de> for ShapeVisitor {
            type Value = Shape;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sequence")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Shape, A::Error> {
                let mut shape = Shape { lens: Vec::new(), ndim: 0 };
                while let Some(len) = seq.next_element()? {
                    shape.ndim += 1;
                    if shape.ndim <= MAX_NDIM {
                        shape.lens.push(len);
                    }
                }
                Ok(shape)
            }
        }

        deserializer.deserialize_seq(ShapeVisitor)
    }
}

/// The type of a tensor, and the bytes that shape and offsets agree on.
pub(super) fn item_and_bytes(
    name: &str,
    info: &HeaderInfo<'_>,
) -> Result<(Scalar, u64), SafetensorsError> {
    let HeaderInfo { dtype, shape: Shape { lens, ndim }, data_offsets } = info;
    let Some(scalar) = scalar(dtype) else {
        let (tensor, dtype) = (brief(name), brief(dtype));
        return Err(SafetensorsError::Dtype { tensor, dtype });
    };
    if *ndim > MAX_NDIM {
        return Err(SafetensorsError::TooManyAxes { tensor: brief(name), ndim: *ndim });
    }
    Ok((scalar, checked_bytes(name, scalar, lens, (*data_offsets).into())?))
}

/// The bytes that type, shape and offsets agree on.
pub(super) fn checked_bytes(
    name: &str,
    scalar: Scalar,
    lens: &[u64],
    offsets: [u64; 2],
) -> Result<u64, SafetensorsError> {
    let (tensor, shape) = (|| brief(name), || AsList(lens).to_string());
    let dtype = scalar.safetensors_name().unwrap_or(scalar.name());
    let Some(bytes) = data_bytes(lens, scalar.bits()) else {
        return Err(SafetensorsError::TooLarge { tensor: tensor(), shape: shape() });
    };
    if !ends_at_byte(lens, scalar.bits()) {
        return Err(SafetensorsError::PartialByte { tensor: tensor(), dtype, shape: shape() });
    }
    let [begin, end] = offsets;
    if end.checked_sub(begin) != Some(bytes) {
        let (tensor, shape) = (tensor(), shape());
        return Err(SafetensorsError::Size { tensor, dtype, shape, expected: bytes, begin, end });
    }
    Ok(bytes)
}

/// Whether the bits of a tensor are whole bytes.
pub(super) fn ends_at_byte(shape: &[u64], item_bits: u64) -> bool {
    shape.iter().fold(item_bits % 8, |rest, &len| rest * (len % 8) % 8) == 0
}
