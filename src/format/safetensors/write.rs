//! Headers that are written.

use std::collections::{BTreeMap, HashSet};
use std::io::Write;

use serde::Serialize;

use super::dtypes::dtype_name;
use super::error::{MAX_HEADER, METADATA, SafetensorsError};
use super::info::{Shape, TensorInfo, item_and_bytes};
use crate::dtype::DType;
use crate::format::brief::brief;
use crate::format::error::FormatError;

/// A header, its length included, is a multiple of this many bytes.
const ALIGN: usize = 8;

/// The header of a file that holds these tensors, each a name, dtype, shape and number of bytes,
/// one after the other in this order; the same bytes for the same arguments.
///
/// # Errors
/// Those of [`HeaderText`]; a name that is given twice.
pub fn header(
    tensors: &[(&str, &DType, &[u64], u64)],
    metadata: &BTreeMap<String, String>,
) -> Result<Vec<u8>, FormatError> {
    let mut seen = HashSet::with_capacity(tensors.len());
    if let Some((twice, ..)) = tensors.iter().find(|(name, ..)| !seen.insert(*name)) {
        return Err(SafetensorsError::DuplicateName(brief(twice)).into());
    }
    let mut header = HeaderText::new(metadata)?;
    for &(name, dtype, shape, bytes) in tensors {
        header.push(name, dtype, shape, bytes)?;
    }
    header.finish()
}

/// A header that is written tensor by tensor. That no name comes twice is left to the caller.
pub struct HeaderText {
    bytes: Vec<u8>,
    /// Where the next tensor begins in the data, in bytes.
    begin: u64,
}

impl HeaderText {
    /// A header without tensors.
    ///
    /// # Errors
    /// [`FormatError`], if the metadata cannot be written.
    pub fn new(metadata: &BTreeMap<String, String>) -> Result<HeaderText, FormatError> {
        let mut bytes = vec![0; 8];
        bytes.push(b'{');
        if !metadata.is_empty() {
            write_json(&mut bytes, METADATA)?;
            bytes.push(b':');
            write_json(&mut bytes, metadata)?;
        }
        Ok(HeaderText { bytes, begin: 0 })
    }

    /// Add a tensor, which takes so many `bytes` behind those before it.
    ///
    /// # Errors
    /// [`FormatError`]: a dtype that the format lacks or that is not little-endian (see
    /// [`stored_dtype`]), a name that is reserved, a number of bytes that is not that of dtype and
    /// shape.
    pub fn push(
        &mut self,
        name: &str,
        dtype: &DType,
        shape: &[u64],
        bytes: u64,
    ) -> Result<(), FormatError> {
        let spelled = dtype_name(dtype).ok_or_else(|| FormatError::Unsupported {
            dtype: dtype.clone(),
            format: "safetensors",
        })?;
        if name == METADATA {
            return Err(SafetensorsError::ReservedName.into());
        }
        let (begin, end) = (self.begin, self.begin.saturating_add(bytes));
        let lens = Shape { lens: shape.to_vec(), ndim: shape.len() };
        let info = TensorInfo { dtype: spelled.into(), shape: lens, data_offsets: (begin, end) };
        item_and_bytes(name, &info)?;
        let header = &mut self.bytes;
        if header.len() > 9 {
            header.push(b',');
        }
        write_json(header, name)?;
        write!(header, ":{{\"dtype\":\"{}\",\"shape\":[", info.dtype)?;
        for (axis, len) in shape.iter().enumerate() {
            write!(header, "{}{len}", if axis > 0 { "," } else { "" })?;
        }
        write!(header, "],\"data_offsets\":[{begin},{end}]}}")?;
        self.begin = end;
        Ok(())
    }

    /// The header, its length included.
    ///
    /// # Errors
    /// [`SafetensorsError::TooLong`].
    pub fn finish(self) -> Result<Vec<u8>, FormatError> {
        let mut header = self.bytes;
        header.push(b'}');
        header.resize(header.len().next_multiple_of(ALIGN), b' ');
        let json_len = header.len() as u64 - 8;
        if json_len > MAX_HEADER {
            return Err(SafetensorsError::TooLong(json_len).into());
        }
        header[..8].copy_from_slice(&json_len.to_le_bytes());
        Ok(header)
    }
}

/// Make a header longer by so many bytes, a multiple of 8, as spaces behind its JSON. False if the
/// format does not allow it.
pub fn grow(header: &mut Vec<u8>, bytes: u64) -> bool {
    let len = header.len() as u64 + bytes;
    let json_len = len.saturating_sub(8);
    if !bytes.is_multiple_of(ALIGN as u64) || header.len() < 8 || json_len > MAX_HEADER {
        return false;
    }
    header.resize(len as usize, b' ');
    header[..8].copy_from_slice(&json_len.to_le_bytes());
    true
}

fn write_json<T: Serialize + ?Sized>(
    header: &mut Vec<u8>,
    value: &T,
) -> Result<(), SafetensorsError> {
    Ok(serde_json::to_writer(header, value)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::{Endian, Scalar};
    use crate::format::header::data_bytes;
    use crate::format::safetensors::dtypes::DTYPES;
    use crate::format::safetensors::info::ends_at_byte;
    use crate::format::safetensors::read::read;
    use proptest::prelude::*;

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
    }

    fn any_tensors() -> impl Strategy<Value = Vec<(String, DType, Vec<u64>, u64)>> {
        let tensor = (
            any::<String>(),
            prop::sample::select(&DTYPES[..]),
            prop::collection::vec(0u64..5, 0..4),
        );
        prop::collection::vec(tensor, 0..6).prop_map(|tensors| {
            let mut names = HashSet::new();
            tensors
                .into_iter()
                .filter(|(name, (scalar, _), shape)| {
                    ends_at_byte(shape, scalar.bits()) && names.insert(name.clone())
                })
                .map(|(name, (scalar, _), shape)| {
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
            longer in 0u64..512,
        ) {
            let refs: Vec<_> =
                tensors.iter().map(|(n, d, s, b)| (n.as_str(), d, s.as_slice(), *b)).collect();
            let mut bytes = header(&refs, &metadata).unwrap();
            prop_assert!(grow(&mut bytes, longer * 8));
            prop_assert!(!grow(&mut bytes, 7) && !grow(&mut bytes, MAX_HEADER));
            prop_assert_eq!(bytes.len() % ALIGN, 0);
            let contents = read(&mut bytes.as_slice()).unwrap();
            bytes.resize(contents.expected_len() as usize, 0);
            let theirs = ::safetensors::SafeTensors::deserialize(&bytes).unwrap();

            prop_assert_eq!(&contents.metadata, &metadata);
            prop_assert_eq!(contents.tensors.len(), tensors.len());
            prop_assert_eq!(theirs.len(), tensors.len());
            for (name, dtype, shape, bytes) in &tensors {
                let ours = contents.tensors.iter().find(|t| t.name.as_ref() == Some(name)).unwrap();
                prop_assert_eq!((&ours.dtype, &ours.shape, ours.bytes), (dtype, shape, *bytes));
                let view = theirs.tensor(name).unwrap();
                prop_assert_eq!(Some(view.dtype().to_string()), dtype_name(dtype));
                prop_assert_eq!(view.data().len() as u64, *bytes);
            }
        }
    }
}
