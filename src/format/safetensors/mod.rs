//! Hugging Face's `.safetensors`: named tensors behind one JSON header.
//!
//! ```text
//! length of the JSON (8 bytes, little-endian)
//! {"__metadata__": {..}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ..}
//! data: the tensors without gap or overlap, little-endian, in C order
//! ```
//!
//! The rules are those of the format's document; where they are stricter than the `safetensors`
//! package (which lets the last of two tensors of one name win), the document is followed. That
//! package names the dtypes, and the tests hold this reader and writer against it.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::io::{BufReader, Read, Write};
use std::str;

use ::safetensors::Dtype;
use serde::de::value::StrDeserializer;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::brief::brief;
use super::contents::{Contents, Format};
use super::error::FormatError;
use super::header::{data_bytes, read_more, unrecognised};
use super::tensors::Tensors;
use crate::dtype::{DType, Endian, Scalar};
use crate::shape::{AsList, MAX_NDIM, Order};

mod error;
mod text;

pub use error::SafetensorsError;
use error::{MAX_HEADER, METADATA};
use text::Text;

/// A header, its length included, is a multiple of this many bytes.
const ALIGN: usize = 8;

/// Whether a file that begins with these bytes can be a `.safetensors`.
pub(super) fn begins(first: &[u8]) -> bool {
    let Some((length, rest)) = first.split_first_chunk::<8>() else { return false };
    (2..=MAX_HEADER).contains(&u64::from_le_bytes(*length)) && rest.first() == Some(&b'{')
}

/// The length of the header, where these bytes begin a `.safetensors`.
pub(super) fn header_len(first: &[u8]) -> Option<u64> {
    let (length, _) = first.split_first_chunk::<8>()?;
    begins(first).then(|| 8 + u64::from_le_bytes(*length))
}

/// Read a header, its length included; `input` is left at the data.
///
/// # Errors
/// [`FormatError`], where a rule of the format is broken or a limit passed.
pub fn read(input: &mut dyn Read) -> Result<Contents, FormatError> {
    let mut length = Vec::new();
    read_more(input, &mut length, 8)?;
    let json_len = length.iter().rev().fold(0, |len, &byte| len << 8 | u64::from(byte));
    let mut json = Vec::new();
    input.take(json_len.min(1)).read_to_end(&mut json)?;
    match json.first() {
        Some(b'{') if json_len > MAX_HEADER => {
            return Err(SafetensorsError::TooLong(json_len).into());
        }
        Some(b'{') => {}
        None if (1..=MAX_HEADER).contains(&json_len) => {
            return Err(FormatError::HeaderCutShort { expected: 8 + json_len, found: 8 });
        }
        Some(first) if is_space(*first) && (2..=MAX_HEADER).contains(&json_len) => {
            input.take((json_len - 1).min(MAX_SPACE)).read_to_end(&mut json)?;
            return Err(match json.iter().find(|byte| !is_space(**byte)) {
                Some(b'{') => SafetensorsError::LeadingSpace.into(),
                _ => unrecognised(&length),
            });
        }
        _ => return Err(unrecognised(&length)),
    }
    let whole = &mut json.as_slice().chain(input);
    let mut header = Header { header_len: 8 + json_len, ..Header::default() };
    if json_len <= SHORT {
        let mut json = Vec::new();
        read_more(whole, &mut json, json_len).map_err(behind_length)?;
        let text = str::from_utf8(&json);
        let text = text.map_err(|error| SafetensorsError::Encoding(error.valid_up_to()))?;
        header.parse(serde_json::Deserializer::from_str(text)).map_err(SafetensorsError::from)?;
    } else {
        let mut text = Text::new(whole, json_len);
        let reader = BufReader::with_capacity(64 << 10, &mut text);
        let parsed = header.parse(serde_json::Deserializer::from_reader(reader));
        text.finish().map_err(behind_length)?;
        parsed.map_err(SafetensorsError::from)?;
    }
    Ok(header.contents()?)
}

/// The longest JSON that is read as a whole, in bytes, which takes less time.
const SHORT: u64 = 1 << 20;

/// The error of a text that follows its length.
fn behind_length(error: FormatError) -> FormatError {
    match error {
        FormatError::HeaderCutShort { expected, found } => {
            FormatError::HeaderCutShort { expected: expected + 8, found: found + 8 }
        }
        other => other,
    }
}

/// How far a header is looked for behind white space, in bytes.
const MAX_SPACE: u64 = 4096;

/// Whether JSON takes a byte for white space.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// What the JSON of a header says.
#[derive(Default)]
struct Header {
    /// Bytes before the data.
    header_len: u64,
    metadata: Option<BTreeMap<String, String>>,
    /// The tensors as they stand there.
    tensors: Tensors,
    /// The first tensor, in the order of the data, with which something is wrong.
    misfit: Option<Misfit>,
}

/// A tensor with which something is wrong.
struct Misfit {
    name: String,
    data_offsets: (u64, u64),
    error: SafetensorsError,
}

impl Header {
    /// Read the JSON.
    fn parse<'de, R: serde_json::de::Read<'de>>(
        &mut self,
        mut json: serde_json::Deserializer<R>,
    ) -> serde_json::Result<()> {
        json.deserialize_map(&mut *self)?;
        json.end()
    }

    /// Keep what is said of a tensor.
    fn push(&mut self, name: &str, info: &TensorInfo<'_>) -> Result<(), SafetensorsError> {
        let (scalar, bytes) = item_and_bytes(name, info)?;
        let (begin, shape) = (info.data_offsets.0, &info.shape.lens);
        let offset = self.header_len.checked_add(begin);
        let end = begin.checked_add(bytes).filter(|&end| i64::try_from(end).is_ok());
        let (Some(offset), Some(_)) = (offset, end) else {
            let shape = AsList(shape).to_string();
            return Err(SafetensorsError::TooLarge { tensor: brief(name), shape });
        };
        let dtype = DType::Scalar(scalar, Endian::Little);
        self.tensors.push_parts(Some(name), &dtype, (shape, Order::C), 0, offset);
        Ok(())
    }

    /// The tensors in the order of their bytes, which must follow each other.
    fn contents(self) -> Result<Contents, SafetensorsError> {
        let Header { header_len, metadata, mut tensors, misfit } = self;
        if let Some(name) = tensors.repeated_name() {
            return Err(SafetensorsError::DuplicateName(brief(name)));
        }
        tensors.sort_by_place();
        let mut data_len = 0;
        for (number, tensor) in tensors.iter().enumerate() {
            let name = |number| brief(tensors.name(number).unwrap_or_default());
            let begin = tensor.offset - header_len;
            let end = begin + tensor.bytes;
            if misfit.as_ref().is_some_and(|misfit| misfit.data_offsets <= (begin, end)) {
                break;
            }
            if begin > data_len {
                return Err(SafetensorsError::Hole(data_len, begin, name(number)));
            }
            if begin < data_len {
                let (tensor, before) = (name(number), name(number.saturating_sub(1)));
                return Err(SafetensorsError::Overlap { tensor, before, begin });
            }
            data_len = end;
        }
        if let Some(Misfit { name, data_offsets: (begin, _), error }) = misfit {
            let hole = begin > data_len;
            let hole = hole.then(|| SafetensorsError::Hole(data_len, begin, brief(&name)));
            return Err(hole.unwrap_or(error));
        }
        let metadata = metadata.unwrap_or_default();
        Ok(Contents { format: Format::Safetensors, tensors, metadata, header_len })
    }
}

/// The type of a tensor, and the bytes that shape and offsets agree on.
fn item_and_bytes(name: &str, info: &TensorInfo<'_>) -> Result<(Scalar, u64), SafetensorsError> {
    let tensor = || brief(name);
    let shape = || AsList(&info.shape.lens).to_string();
    let Some((scalar, dtype)) = parse_dtype(&info.dtype) else {
        let dtype = brief(&info.dtype);
        return Err(SafetensorsError::Dtype { tensor: tensor(), dtype });
    };
    if info.shape.ndim > MAX_NDIM {
        return Err(SafetensorsError::TooManyAxes { tensor: tensor(), ndim: info.shape.ndim });
    }
    let Some(bytes) = data_bytes(&info.shape.lens, scalar.bits()) else {
        return Err(SafetensorsError::TooLarge { tensor: tensor(), shape: shape() });
    };
    if !ends_at_byte(&info.shape.lens, scalar.bits()) {
        return Err(SafetensorsError::PartialByte { tensor: tensor(), dtype, shape: shape() });
    }
    let (begin, end) = info.data_offsets;
    if end.checked_sub(begin) != Some(bytes) {
        let (tensor, shape) = (tensor(), shape());
        return Err(SafetensorsError::Size { tensor, dtype, shape, expected: bytes, begin, end });
    }
    Ok((scalar, bytes))
}

/// Whether the bits of a tensor are whole bytes.
fn ends_at_byte(shape: &[u64], item_bits: u64) -> bool {
    shape.iter().fold(item_bits % 8, |rest, &len| rest * (len % 8) % 8) == 0
}

/// What a header says of one tensor.
#[derive(Deserialize)]
struct TensorInfo<'a> {
    #[serde(borrow)]
    dtype: Cow<'a, str>,
    shape: Shape,
    data_offsets: (u64, u64),
}

/// A shape, of which no more lengths are kept than a tensor can have.
struct Shape {
    lens: Vec<u64>,
    ndim: usize,
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

impl<'de> Visitor<'de> for &mut Header {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            if name != METADATA {
                let info = map.next_value().map_err(|error| {
                    let error = brief(&error.to_string());
                    A::Error::custom(format_args!("tensor '{}': {error}", brief(&name)))
                })?;
                if let Err(error) = self.push(&name, &info) {
                    let data_offsets = info.data_offsets;
                    let first = self.misfit.as_ref().map(|misfit| misfit.data_offsets);
                    if first.is_none_or(|first| data_offsets < first) {
                        self.misfit = Some(Misfit { name, data_offsets, error });
                    }
                }
            } else if self.metadata.is_some() {
                return Err(A::Error::custom("'__metadata__' stands there twice"));
            } else {
                let metadata = map.next_value::<Option<Metadata>>().map_err(|error| {
                    let error = brief(&error.to_string());
                    A::Error::custom(format_args!("'{METADATA}': {error}"))
                })?;
                self.metadata = Some(metadata.map(|Metadata(texts)| texts).unwrap_or_default());
            }
        }
        Ok(())
    }
}

/// A map from text to text, no key twice.
#[derive(Default)]
struct Metadata(BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MetadataVisitor;

        impl<'de> Visitor<'de> for MetadataVisitor {
            type Value = Metadata;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut texts = BTreeMap::new();
                while let Some((key, value)) = map.next_entry::<String, String>()? {
                    if texts.contains_key(&key) {
                        let key = brief(&key);
                        return Err(A::Error::custom(format_args!("'{key}' stands there twice")));
                    }
                    texts.insert(key, value);
                }
                Ok(Metadata(texts))
            }
        }

        deserializer.deserialize_map(MetadataVisitor)
    }
}

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

/// The name that the format has for a type: `F32`, `F8_E4M3`; `None` where it lacks the type or
/// its byte order.
pub fn dtype_name(dtype: &DType) -> Option<String> {
    match dtype {
        DType::Scalar(scalar, Endian::Little) => {
            DTYPES.iter().find(|(known, _)| known == scalar).map(|(_, dtype)| dtype.to_string())
        }
        _ => None,
    }
}

/// The type in which elements of a `dtype` are stored, always little-endian; `None` where the
/// format has none.
pub fn stored_dtype(dtype: &DType) -> Option<DType> {
    match dtype {
        DType::Scalar(scalar, _) => {
            let stored = DType::Scalar(*scalar, Endian::Little);
            dtype_name(&stored).map(|_| stored)
        }
        DType::Npy(_) => None,
    }
}

/// The type of that name, as the format spells it.
pub(super) fn scalar(name: &str) -> Option<Scalar> {
    parse_dtype(name).map(|(scalar, _)| scalar)
}

fn parse_dtype(name: &str) -> Option<(Scalar, Dtype)> {
    let name = StrDeserializer::<serde::de::value::Error>::new(name);
    let found = Dtype::deserialize(name).ok()?;
    DTYPES.iter().copied().find(|(_, dtype)| *dtype == found)
}

/// The types of the format.
const DTYPES: [(Scalar, Dtype); 22] = [
    (Scalar::Bool, Dtype::BOOL),
    (Scalar::I8, Dtype::I8),
    (Scalar::I16, Dtype::I16),
    (Scalar::I32, Dtype::I32),
    (Scalar::I64, Dtype::I64),
    (Scalar::U8, Dtype::U8),
    (Scalar::U16, Dtype::U16),
    (Scalar::U32, Dtype::U32),
    (Scalar::U64, Dtype::U64),
    (Scalar::F16, Dtype::F16),
    (Scalar::F32, Dtype::F32),
    (Scalar::F64, Dtype::F64),
    (Scalar::C64, Dtype::C64),
    (Scalar::BF16, Dtype::BF16),
    (Scalar::F8E4M3, Dtype::F8_E4M3),
    (Scalar::F8E5M2, Dtype::F8_E5M2),
    (Scalar::F8E8M0, Dtype::F8_E8M0),
    (Scalar::F8E4M3Fnuz, Dtype::F8_E4M3FNUZ),
    (Scalar::F8E5M2Fnuz, Dtype::F8_E5M2FNUZ),
    (Scalar::F6E2M3, Dtype::F6_E2M3),
    (Scalar::F6E3M2, Dtype::F6_E3M2),
    (Scalar::F4, Dtype::F4),
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(json: &str, data_len: usize) -> Vec<u8> {
        let mut file = (json.len() as u64).to_le_bytes().to_vec();
        file.extend(json.as_bytes());
        file.resize(file.len() + data_len, 0);
        file
    }

    fn message(json: &str) -> String {
        read(&mut file(json, 0).as_slice()).unwrap_err().to_string()
    }

    #[test]
    fn tensors_come_in_the_order_of_their_bytes() {
        let json = r#"{"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},
            "z":{"dtype":"U8","shape":[0],"data_offsets":[4,4]},
            "y":{"dtype":"U8","shape":[3,0],"data_offsets":[4,4]},
            "a":{"dtype":"F4","shape":[2,4],"data_offsets":[0,4]},
            "__metadata__":{"format":"pt"}}  "#;
        let bytes = file(json, 12);
        let mut rest = bytes.as_slice();
        let contents = crate::format::read_contents(&mut rest, Some(bytes.len() as u64)).unwrap();
        assert_eq!(rest.len(), 12);
        let names: Vec<_> = contents.tensors.names().flatten().collect();
        assert_eq!(names, ["a", "z", "y", "b"]);
        assert_eq!(contents.tensors.at(3).offset, contents.header_len + 4);
        assert_eq!(contents.metadata["format"], "pt");
        assert_eq!(contents.expected_len(), bytes.len() as u64);
        assert_eq!(
            contents.check_len(bytes.len() as u64 + 3).unwrap_err().to_string(),
            format!(
                "3 bytes follow the data: the header asks for {} bytes, {} are there",
                bytes.len(),
                bytes.len() + 3
            )
        );
        assert!(contents.check_len(bytes.len() as u64 - 1).is_err());
    }

    #[test]
    fn errors_name_the_tensor() {
        let entry = |name: &str, dtype: &str, shape: &str, offsets: &str| {
            format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}"#)
        };
        let one =
            |dtype, shape, offsets| message(&format!("{{{}}}", entry("a", dtype, shape, offsets)));
        assert_eq!(
            one("F128", "[1]", "[0,16]"),
            "safetensors header: tensor 'a' has the unknown dtype 'F128'"
        );
        assert_eq!(
            one("F32", "[2, 2]", "[0,12]"),
            "safetensors header: tensor 'a' of dtype F32 and shape [2, 2] takes 16 bytes, \
             its data_offsets [0, 12] do not give them"
        );
        assert_eq!(
            one("F4", "[3]", "[0,2]"),
            "safetensors header: tensor 'a' of dtype F4 and shape [3] does not end at a whole byte"
        );
        assert_eq!(
            one("U8", "[4]", "[4,8]"),
            "safetensors header: bytes 0 to 4 of the data belong to no tensor, \
             tensor 'a' begins after them"
        );
        assert!(one("U8", "[-1]", "[0,0]").contains("tensor 'a': invalid value: integer `-1`"));
        assert!(one("U8", "[1.5]", "[0,0]").contains("tensor 'a'"));
        assert!(one("U8", "[9223372036854775807,3]", "[0,1]").contains("larger than 2^63 - 1"));
        let two = |first, second, name| {
            let (first, second) =
                (entry("a", "U8", "[4]", first), entry(name, "U8", "[4]", second));
            message(&format!("{{{first},{second}}}"))
        };
        assert_eq!(
            two("[0,4]", "[2,6]", "b"),
            "safetensors header: tensor 'b' begins at byte 2 of the data, inside tensor 'a'"
        );
        assert_eq!(two("[0,4]", "[4,8]", "a"), "safetensors header: two tensors are named 'a'");
        assert!(message(r#"{"__metadata__":{},"__metadata__":{}}"#).contains("twice"));
        assert!(message(r#"{"__metadata__":{"a":"b","a":"c"}}"#).contains("twice"));
        assert!(message(r#"{"__metadata__":{"a":1}}"#).contains("__metadata__"));
    }

    #[test]
    fn lengths_are_checked_before_anything_is_kept() {
        let mut bytes = file("{}", 0);
        bytes[..8].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(
            read(&mut bytes.as_slice()).unwrap_err().to_string(),
            "safetensors header: 18446744073709551615 bytes long, 100000000 are allowed"
        );
        bytes[..8].copy_from_slice(&MAX_HEADER.to_le_bytes());
        assert_eq!(
            read(&mut bytes.as_slice()).unwrap_err().to_string(),
            "the file is cut short inside its header: 100000008 bytes are needed, 10 are there"
        );
        assert!(read(&mut &bytes[..8]).unwrap_err().to_string().contains("8 are there"));
        assert_eq!(
            message("[]"),
            "not a .npy, .npz or .safetensors file, nor the index of a sharded checkpoint"
        );
    }

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

    #[test]
    fn all_dtypes_have_the_sizes_of_the_package() {
        for (scalar, dtype) in DTYPES {
            assert_eq!(scalar.bits(), dtype.bitsize() as u64);
            assert_eq!(parse_dtype(&dtype.to_string()), Some((scalar, dtype)));
        }
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

        /// Of offsets at random, no more are taken than the package takes.
        #[test]
        fn we_are_as_strict_as_the_package(
            ends in prop::collection::vec((0u64..6, 0u64..6, 0u64..6), 1..4),
        ) {
            let entries: Vec<_> = ends.iter().enumerate().map(|(i, (begin, end, len))| {
                format!(r#""{i}":{{"dtype":"U8","shape":[{len}],"data_offsets":[{begin},{end}]}}"#)
            }).collect();
            let mut bytes = file(&format!("{{{}}}", entries.join(",")), 0);
            let ours = read(&mut bytes.as_slice());
            let end = ends.iter().map(|(_, end, _)| *end).max().unwrap();
            bytes.resize(bytes.len() + end as usize, 0);
            let theirs = ::safetensors::SafeTensors::deserialize(&bytes);
            prop_assert_eq!(ours.is_ok(), theirs.is_ok());
        }
    }
}
