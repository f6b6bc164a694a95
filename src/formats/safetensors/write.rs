//! Writing of headers.

use std::collections::BTreeMap;

use ::safetensors::Dtype;
use ::safetensors::tensor::TensorInfo;
use serde::de::value::{Error as NoDtype, StrDeserializer};
use serde::{Deserialize, Serialize};

use super::{MAX_HEADER, METADATA, SafetensorsError, checked_bytes};
use crate::dtype::{DType, Endian, Scalar};
use crate::error::Cause;
use crate::formats::FormatError;
use crate::shape::MAX_NDIM;
use crate::tensor::{brief, first_repeated};

/// The alignment of a header's length, its length field included, in bytes.
const ALIGN: u64 = 8;

/// The header of a file that holds these tensors in order, each given by name, dtype, shape and
/// number of bytes; equal arguments give equal bytes.
pub fn header(
    tensors: &[(&str, &DType, &[u64], u64)],
    metadata: &BTreeMap<String, String>,
) -> Result<Vec<u8>, Cause> {
    if let Some(twice) = first_repeated(tensors.iter().map(|(name, ..)| *name)) {
        return Err(SafetensorsError::DuplicateName(brief(twice)).into());
    }
    let mut text = HeaderText::new(metadata, 0)?;
    for &(name, dtype, shape, bytes) in tensors {
        text.push(name, dtype, shape, bytes)?;
    }
    let len = text.finish()?;
    let mut header = text.take();
    header[..8].copy_from_slice(&json_len(len).to_le_bytes());
    Ok(header)
}

/// The length of a header of `len` bytes after `bytes` spaces are added to its JSON; `None` if the
/// format does not allow it.
pub fn longer(len: u64, bytes: u64) -> Option<u64> {
    let longer = len.checked_add(bytes).filter(|&longer| json_len(longer) <= MAX_HEADER);
    longer.filter(|_| bytes.is_multiple_of(ALIGN))
}

/// The bytes of JSON, spaces included, in a header of `len` bytes.
fn json_len(len: u64) -> u64 {
    len.saturating_sub(8)
}

/// A header that is written tensor by tensor, and passed on piece by piece. The caller makes sure
/// that names are unique.
pub struct HeaderText {
    text: Vec<u8>,
    taken: u64,
    /// The intended length, in bytes.
    len: u64,
    is_first: bool,
    /// The start of the next tensor in the data, in bytes.
    begin: u64,
}

impl HeaderText {
    /// A header without tensors, of `len` bytes at the end, or as short as possible where `len` is
    /// 0: then the length field at its beginning is still wrong.
    pub fn new(metadata: &BTreeMap<String, String>, len: u64) -> Result<HeaderText, Cause> {
        let mut text = json_len(len).to_le_bytes().to_vec();
        text.push(b'{');
        if !metadata.is_empty() {
            write_json(&mut text, METADATA)?;
            text.push(b':');
            write_json(&mut text, metadata)?;
        }
        Ok(HeaderText { text, taken: 0, len, is_first: metadata.is_empty(), begin: 0 })
    }

    /// Add a tensor of `bytes` bytes after the previous ones.
    pub fn push(
        &mut self,
        name: &str,
        dtype: &DType,
        shape: &[u64],
        bytes: u64,
    ) -> Result<(), Cause> {
        let (scalar, dtype) = known(dtype).ok_or_else(|| FormatError::Unsupported {
            dtype: dtype.clone(),
            format: "safetensors",
        })?;
        if name == METADATA {
            return Err(SafetensorsError::ReservedName.into());
        }
        if shape.len() > MAX_NDIM {
            let ndim = shape.len();
            return Err(SafetensorsError::TooManyAxes { tensor: brief(name), ndim }.into());
        }
        let begin = self.begin;
        let end = begin.saturating_add(bytes);
        checked_bytes(name, scalar, shape, [begin, end])?;
        let info = TensorInfo {
            dtype,
            shape: shape.iter().map(|&len| in_memory(len, name)).collect::<Result<_, _>>()?,
            data_offsets: (in_memory(begin, name)?, in_memory(end, name)?),
        };
        let text = &mut self.text;
        if !std::mem::replace(&mut self.is_first, false) {
            text.push(b',');
        }
        write_json(text, name)?;
        text.push(b':');
        write_json(text, &info)?;
        self.begin = end;
        Ok(())
    }

    /// Add the end, and return the header's length in bytes.
    pub fn finish(&mut self) -> Result<u64, Cause> {
        self.text.push(b'}');
        let len = self.taken + self.text.len() as u64;
        let len = len.next_multiple_of(ALIGN).max(self.len);
        if json_len(len) > MAX_HEADER {
            return Err(SafetensorsError::TooLong(json_len(len)).into());
        }
        self.text.resize((len - self.taken) as usize, b' ');
        Ok(len)
    }

    /// The number of bytes that were not passed on yet.
    pub fn pending(&self) -> usize {
        self.text.len()
    }

    /// Pass on the bytes that were not passed on yet.
    pub fn take(&mut self) -> Vec<u8> {
        self.taken += self.text.len() as u64;
        std::mem::take(&mut self.text)
    }
}

fn write_json<T: Serialize + ?Sized>(
    text: &mut Vec<u8>,
    value: &T,
) -> Result<(), SafetensorsError> {
    Ok(serde_json::to_writer(text, value)?)
}

/// A size or position as the `safetensors` package counts it; an error only on machines of 32 bits.
fn in_memory(number: u64, name: &str) -> Result<usize, SafetensorsError> {
    let too_large =
        || SafetensorsError::TooLarge { tensor: brief(name), shape: format!("[.., {number}, ..]") };
    usize::try_from(number).map_err(|_| too_large())
}

/// The scalar of a dtype in the format, which is little-endian.
fn known(dtype: &DType) -> Option<(Scalar, Dtype)> {
    let DType::Scalar(scalar, Endian::Little) = *dtype else { return None };
    Some((scalar, dtype_of(scalar)?))
}

/// The type in the `safetensors` package.
pub(crate) fn dtype_of(scalar: Scalar) -> Option<Dtype> {
    let name = StrDeserializer::<NoDtype>::new(scalar.safetensors_name()?);
    Dtype::deserialize(name).ok()
}

/// The type in which elements of a `dtype` are stored, always little-endian; `None` where the format
/// lacks the type.
pub fn stored_dtype(dtype: &DType) -> Option<DType> {
    let DType::Scalar(scalar, _) = *dtype else { return None };
    scalar.safetensors_name().map(|_| DType::Scalar(scalar, Endian::Little))
}

/// The type of a name, as the format spells it.
pub(crate) fn scalar(name: &str) -> Option<Scalar> {
    Scalar::ALL.into_iter().find(|scalar| scalar.safetensors_name() == Some(name))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::super::ends_at_byte;
    use super::super::read::read;
    use super::*;
    use crate::dtype::{Endian, Scalar};
    use crate::tensor::data_bytes;

    #[test]
    fn writing_refuses_what_reading_would() {
        let little = DType::Scalar(Scalar::F4, Endian::Little);
        let big = DType::Scalar(Scalar::F32, Endian::Big);
        let none = BTreeMap::new();
        let refused = |tensors: &[(&str, &DType, &[u64], u64)]| {
            header(tensors, &none).unwrap_err().to_string()
        };
        assert!(refused(&[("a", &little, &[3], 2)]).contains("whole byte"));
        assert!(refused(&[("a", &little, &[2], 2)]).contains("takes 1 bytes"));
        assert!(refused(&[("a", &big, &[2], 8)]).contains(">f4"));
        assert!(refused(&[(METADATA, &little, &[2], 1)]).contains("__metadata__"));
        assert!(refused(&[("a", &little, &[2], 1), ("a", &little, &[2], 1)]).contains("named 'a'"));
        assert_eq!(header(&[], &none).unwrap(), b"\x08\0\0\0\0\0\0\0{}      ");
        let name = "n".repeat(MAX_HEADER as usize);
        assert!(refused(&[(&name, &little, &[2], 1)]).contains("are allowed"));
    }

    fn any_tensors() -> impl Strategy<Value = Vec<(String, DType, Vec<u64>, u64)>> {
        let known: Vec<Scalar> =
            Scalar::ALL.into_iter().filter(|scalar| scalar.safetensors_name().is_some()).collect();
        let tensor =
            (any::<String>(), prop::sample::select(known), prop::collection::vec(0u64..5, 0..4));
        prop::collection::vec(tensor, 0..6).prop_map(|tensors| {
            let mut names = HashSet::new();
            tensors
                .into_iter()
                .filter(|(name, scalar, shape)| {
                    ends_at_byte(shape, scalar.bits()) && names.insert(name.clone())
                })
                .map(|(name, scalar, shape)| {
                    let bytes = data_bytes(&shape, scalar.bits()).unwrap();
                    (name, DType::Scalar(scalar, Endian::Little), shape, bytes)
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn headers_are_read_back_by_us_and_by_the_package(
            tensors in any_tensors(),
            metadata in prop::collection::btree_map(any::<String>(), any::<String>(), 0..3),
            more in 0u64..512,
        ) {
            let refs: Vec<_> =
                tensors.iter().map(|(n, d, s, b)| (n.as_str(), d, s.as_slice(), *b)).collect();
            let mut bytes = header(&refs, &metadata).unwrap();
            prop_assert_eq!(bytes.len() as u64 % ALIGN, 0);
            let len = longer(bytes.len() as u64, more * 8).unwrap();
            prop_assert_eq!((longer(len, 7), longer(len, MAX_HEADER)), (None, None));
            let mut text = HeaderText::new(&metadata, len).unwrap();
            let mut pieces = text.take();
            for (name, dtype, shape, bytes) in &refs {
                text.push(name, dtype, shape, *bytes).unwrap();
                pieces.extend(text.take());
            }
            prop_assert_eq!(text.finish().unwrap(), len);
            pieces.extend(text.take());
            bytes.resize(len as usize, b' ');
            bytes[..8].copy_from_slice(&(len - 8).to_le_bytes());
            prop_assert_eq!(&pieces, &bytes);
            let contents = read(&mut bytes.as_slice()).unwrap();
            bytes.resize(contents.expected_len() as usize, 0);
            let theirs = ::safetensors::SafeTensors::deserialize(&bytes).unwrap();

            prop_assert_eq!(&contents.metadata.texts, &metadata);
            prop_assert_eq!(contents.tensors.len(), tensors.len());
            prop_assert_eq!(theirs.len(), tensors.len());
            for (name, dtype, shape, bytes) in &tensors {
                let ours = contents.tensors.iter().find(|t| t.name.as_ref() == Some(name)).unwrap();
                prop_assert_eq!((&ours.dtype, &ours.shape, ours.bytes()), (dtype, shape, *bytes));
                let view = theirs.tensor(name).unwrap();
                let (scalar, theirs) = known(dtype).unwrap();
                prop_assert_eq!(view.dtype(), theirs);
                prop_assert_eq!(Some(theirs.to_string()), scalar.safetensors_name().map(str::to_owned));
                prop_assert_eq!(view.data().len() as u64, *bytes);
            }
        }
    }

    #[test]
    fn all_dtypes_have_the_sizes_of_the_package() {
        for scalar in Scalar::ALL {
            let Some(name) = scalar.safetensors_name() else { continue };
            let dtype: Dtype = serde_json::from_value(name.into()).unwrap();
            assert_eq!(scalar.bits(), dtype.bitsize() as u64);
            assert_eq!(dtype.to_string(), name);
        }
    }
}
