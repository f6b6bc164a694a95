//! Reading of headers.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufReader, Read};

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::super::FormatError;
use super::json_text::JsonText;
use super::write::scalar;
use super::{FORMAT, MAX_HEADER, METADATA, SafetensorsError, Texts, checked_bytes};
use crate::dtype::{DType, Endian};
use crate::error::Cause;
use crate::formats::header::read_more;
use crate::input::Contents;
use crate::shape::{AsList, MAX_NDIM, Order};
use crate::tensor::{TensorInfo, Tensors, brief, first_repeated};

/// Whether a file that begins with these bytes can be a `.safetensors`.
pub(crate) fn begins(first: &[u8]) -> bool {
    header_len(first).is_some()
}

/// The header's length in bytes, where `first`, of [`MAGIC_LEN`](crate::formats::MAGIC_LEN) bytes,
/// begins a `.safetensors`.
pub(crate) fn header_len(first: &[u8]) -> Option<u64> {
    let (length, rest) = first.split_first_chunk::<8>()?;
    let json_len = u64::from_le_bytes(*length);
    let is_header = (2..=MAX_HEADER).contains(&json_len) && rest.first() == Some(&b'{');
    is_header.then(|| 8 + json_len)
}

/// Read a header, its length included; `input` is then at the data.
pub fn read(input: &mut dyn Read) -> Result<Contents, Cause> {
    let mut first = Vec::new();
    read_more(input, &mut first, 8)?;
    let json_len = Endian::Little.bits(&first) as u64;
    input.take(json_len.min(1)).read_to_end(&mut first)?;
    match first.get(8) {
        Some(b'{') if json_len > MAX_HEADER => {
            return Err(SafetensorsError::TooLong(json_len).into());
        }
        Some(b'{') => {}
        None if (1..=MAX_HEADER).contains(&json_len) => {
            return Err(FormatError::HeaderCutShort { expected: 8 + json_len, found: 8 }.into());
        }
        Some(byte) if is_space(byte) && (2..=MAX_HEADER).contains(&json_len) => {
            input.take((json_len - 1).min(MAX_SPACE)).read_to_end(&mut first)?;
            return Err(match first[8..].iter().find(|byte| !is_space(byte)) {
                Some(b'{') => SafetensorsError::LeadingSpace.into(),
                _ => FormatError::Unrecognised.into(),
            });
        }
        _ => return Err(FormatError::Unrecognised.into()),
    }
    let mut header = ParsedHeader { header_len: 8 + json_len, ..ParsedHeader::default() };
    if json_len <= SHORT {
        read_more(input, &mut first, json_len - 1)?;
        let text = str::from_utf8(&first[8..]);
        let text = text.map_err(|error| SafetensorsError::Encoding(error.valid_up_to()))?;
        header.parse(serde_json::Deserializer::from_str(text)).map_err(SafetensorsError::from)?;
    } else {
        let mut rest = first[8..].chain(input);
        let mut text = JsonText::new(&mut rest, json_len);
        let reader = BufReader::with_capacity(64 << 10, &mut text);
        let parsed = header.parse(serde_json::Deserializer::from_reader(reader));
        text.finish()?;
        parsed.map_err(SafetensorsError::from)?;
    }
    Ok(header.contents()?)
}

/// The longest JSON that is read as a whole, in bytes, which is faster.
const SHORT: u64 = 4 << 20;

/// The most white space, in bytes, that may precede a header.
const MAX_SPACE: u64 = 4096;

/// Whether a byte is white space in JSON.
fn is_space(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

#[derive(Default)]
struct ParsedHeader {
    header_len: u64,
    metadata: Option<BTreeMap<String, String>>,
    /// The tensors in the order of the JSON.
    tensors: Tensors,
    /// The first faulty tensor, in the order of the data.
    faulty: Option<FaultyTensor>,
}

/// A faulty tensor.
struct FaultyTensor {
    name: String,
    data_offsets: (u64, u64),
    error: SafetensorsError,
}

impl ParsedHeader {
    fn parse<'de, R: serde_json::de::Read<'de>>(
        &mut self,
        mut json: serde_json::Deserializer<R>,
    ) -> serde_json::Result<()> {
        json.deserialize_map(&mut *self)?;
        json.end()
    }

    /// Store the tensor that was begun, or its fault.
    fn end_tensor(&mut self, info: &HeaderInfo<'_>) {
        let name = self.tensors.begun();
        match self.described(name, info) {
            Ok(tensor) => self.tensors.set_last(&tensor),
            Err(error) => {
                let name = brief(name);
                let data_offsets = info.data_offsets;
                if self.faulty.as_ref().is_none_or(|first| data_offsets < first.data_offsets) {
                    self.faulty = Some(FaultyTensor { name, data_offsets, error });
                }
                self.tensors.take_back();
            }
        }
    }

    /// The description of a tensor, without its name.
    fn described(&self, name: &str, info: &HeaderInfo<'_>) -> Result<TensorInfo, SafetensorsError> {
        let HeaderInfo { dtype, shape: Shape { lens, ndim }, data_offsets } = info;
        let Some(scalar) = scalar(dtype) else {
            return Err(SafetensorsError::Dtype { tensor: brief(name), dtype: brief(dtype) });
        };
        if *ndim > MAX_NDIM {
            return Err(SafetensorsError::TooManyAxes { tensor: brief(name), ndim: *ndim });
        }
        let bytes = checked_bytes(name, scalar, lens, (*data_offsets).into())?;
        let begin = data_offsets.0;
        let end = begin.checked_add(bytes).filter(|&end| i64::try_from(end).is_ok());
        match self.header_len.checked_add(begin).filter(|_| end.is_some()) {
            Some(offset) => {
                let dtype = DType::Scalar(scalar, Endian::Little);
                Ok(TensorInfo::new(dtype, lens.clone(), Order::C, offset))
            }
            None => {
                let shape = AsList(lens).to_string();
                Err(SafetensorsError::TooLarge { tensor: brief(name), shape })
            }
        }
    }

    /// The tensors in the order of their bytes, which must be contiguous.
    fn contents(self) -> Result<Contents, SafetensorsError> {
        let ParsedHeader { header_len, metadata, mut tensors, faulty } = self;
        if let Some(name) = first_repeated(tensors.names().flatten()) {
            return Err(SafetensorsError::DuplicateName(brief(name)));
        }
        tensors.sort_by_place();
        let mut data_len = 0;
        for (number, tensor) in tensors.iter().enumerate() {
            let name = |number| brief(tensors.name(number).unwrap_or_default());
            let data = tensor.data();
            let begin = data.start - header_len;
            let end = data.end - header_len;
            if faulty.as_ref().is_some_and(|faulty| faulty.data_offsets <= (begin, end)) {
                break;
            }
            if begin > data_len {
                return Err(SafetensorsError::Hole(data_len, begin, name(number)));
            }
            if begin < data_len {
                let tensor = name(number);
                let before = name(number.saturating_sub(1));
                return Err(SafetensorsError::Overlap { tensor, before, begin });
            }
            data_len = end;
        }
        if let Some(FaultyTensor { name, data_offsets: (begin, _), error }) = faulty {
            let hole = begin > data_len;
            let hole = hole.then_some(SafetensorsError::Hole(data_len, begin, name));
            return Err(hole.unwrap_or(error));
        }
        let metadata = metadata.unwrap_or_default().into();
        Ok(Contents { metadata, header_len, ..Contents::of(&FORMAT, tensors) })
    }
}

impl<'de> Visitor<'de> for &mut ParsedHeader {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key_seed(Key(&mut self.tensors))? {
            if key == KeyKind::Tensor {
                let name = || brief(self.tensors.begun());
                let of_tensor = |error| within(format_args!("tensor '{}'", name()), &error);
                let info = map.next_value().map_err(of_tensor)?;
                self.end_tensor(&info);
            } else if self.metadata.is_some() {
                return Err(A::Error::custom("'__metadata__' occurs twice"));
            } else {
                let of_metadata = |error| within(format_args!("'{METADATA}'"), &error);
                let metadata = map.next_value::<Option<Texts>>().map_err(of_metadata)?;
                let texts = metadata.map(|Texts(texts)| texts).unwrap_or_default();
                self.metadata = Some(BTreeMap::from_iter(texts));
            }
        }
        Ok(())
    }
}

/// A key of the header. For a tensor, whose name may be as long as the header, it begins a tensor
/// here.
struct Key<'a>(&'a mut Tensors);

#[derive(PartialEq, Eq)]
enum KeyKind {
    Tensor,
    Metadata,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = KeyKind;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<KeyKind, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = KeyKind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<KeyKind, E> {
        if name == METADATA {
            return Ok(KeyKind::Metadata);
        }
        self.0.begin(Some(name));
        Ok(KeyKind::Tensor)
    }
}

/// An error with the part of the header that it is about.
fn within<E: serde::de::Error>(part: fmt::Arguments<'_>, error: &E) -> E {
    E::custom(format_args!("{part}: {}", brief(&error.to_string())))
}

/// The entry of one tensor in a header.
#[derive(Deserialize)]
pub(super) struct HeaderInfo<'a> {
    #[serde(borrow)]
    pub(super) dtype: Cow<'a, str>,
    pub(super) shape: Shape,
    pub(super) data_offsets: (u64, u64),
}

/// A shape; only as many lengths are stored as a tensor can have.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
        let contents = crate::formats::read_contents(&mut rest, Some(bytes.len() as u64)).unwrap();
        assert_eq!(rest.len(), 12);
        let names: Vec<_> = contents.tensors.names().flatten().collect();
        assert_eq!(names, ["a", "z", "y", "b"]);
        assert_eq!(contents.tensors.at(3).data().start, contents.header_len + 4);
        assert_eq!(contents.metadata.texts["format"], "pt");
        assert_eq!(contents.expected_len(), bytes.len() as u64);
        assert_eq!(
            contents.check_len(bytes.len() as u64 + 3).unwrap_err().to_string(),
            format!(
                "3 bytes follow the data: the header says {} bytes, the file has {}",
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
            let first = entry("a", "U8", "[4]", first);
            let second = entry(name, "U8", "[4]", second);
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
            "the file is cut short inside its header: 100000008 bytes are needed, the file has 10"
        );
        assert!(read(&mut &bytes[..8]).unwrap_err().to_string().contains("the file has 8"));
        assert_eq!(
            message("[]"),
            "not a .npy, .npz, .safetensors, .pt or .gguf file, nor the index of a sharded checkpoint"
        );
    }

    proptest! {
        /// Random offsets are accepted only if the package accepts them.
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
