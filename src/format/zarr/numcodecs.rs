//! Codecs of numcodecs that `zarrs` has not: LZ4, differences of neighbours, and bits.
//!
//! The latter two are filters of elements. Here they are filters of bytes: what they are given lies one element
//! after the other, as they are stored.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use serde_json::{Map, Value};
use zarrs::array::codec::api::{
    BytesToBytesCodecTraits, Codec, CodecError, CodecMetadataOptions, CodecOptions,
    CodecRuntimePluginV2, CodecRuntimePluginV3, CodecTraits, PartialDecoderCapability,
    PartialEncoderCapability, RecommendedConcurrency, register_codec_v2, register_codec_v3,
};
use zarrs::array::{ArrayBytesRaw, BytesRepresentation};
use zarrs::metadata::Configuration;
use zarrs::plugin::{ExtensionName, PluginCreateError, ZarrVersion};

use crate::format::codecs::{self, too_long};

/// Their names in version 2; in version 3 they follow [`PREFIX`].
const NAMES: [&str; 3] = ["lz4", "delta", "packbits"];

const PREFIX: &str = "numcodecs.";

/// Whether a codec is a filter of elements that is undone as one of bytes: it must be the last one of its kind.
pub(super) fn is_filter(name: &str) -> bool {
    matches!(name.trim_start_matches(PREFIX), "delta" | "packbits")
}

/// Let arrays have them.
pub(super) fn register() {
    for name in NAMES {
        register_codec_v2(CodecRuntimePluginV2::new(
            move |found| found == name,
            move |metadata| created(name, metadata.configuration()),
        ));
        register_codec_v3(CodecRuntimePluginV3::new(
            move |found| found.strip_prefix(PREFIX) == Some(name),
            move |metadata| {
                let none = Map::new();
                created(name, metadata.configuration().map_or(&none, |said| said))
            },
        ));
    }
}

fn created(name: &'static str, said: &Map<String, Value>) -> Result<Codec, PluginCreateError> {
    let kind = match name {
        "lz4" => Kind::Lz4,
        "packbits" => Kind::Bits,
        _ => Kind::Differences(Numbers::of(said).map_err(PluginCreateError::Other)?),
    };
    Ok(Codec::BytesToBytes(Arc::new(NumCodec { name, said: said.clone(), kind })))
}

/// A codec that decodes alone.
#[derive(Debug)]
struct NumCodec {
    name: &'static str,
    said: Map<String, Value>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// One block, behind the number of its bytes.
    Lz4,
    /// Each element without the one before it.
    Differences(Numbers),
    /// Booleans in a bit each, behind the number of bits that are left over.
    Bits,
}

impl NumCodec {
    /// The bytes of which these are made, no more than `most`.
    fn undo(&self, encoded: &[u8], most: u64) -> io::Result<Vec<u8>> {
        let early = || io::Error::other("it ends early");
        match &self.kind {
            Kind::Lz4 => {
                let (len, block) = encoded.split_first_chunk().ok_or_else(early)?;
                let len = u32::from_le_bytes(*len);
                if u64::from(len) > most {
                    return Err(too_long());
                }
                let mut out = Vec::new();
                codecs::lz4(block, len as usize, &mut out)?;
                Ok(out)
            }
            Kind::Differences(numbers) => {
                let len = (encoded.len() / numbers.stored.bytes * numbers.made.bytes) as u64;
                if len > most { Err(too_long()) } else { Ok(numbers.summed(encoded)) }
            }
            Kind::Bits => {
                let (left, bits) = encoded.split_first().ok_or_else(early)?;
                let len = (bits.len() * 8).checked_sub((*left).into()).ok_or_else(early)?;
                if len as u64 > most {
                    return Err(too_long());
                }
                let bit = |at: usize| bits[at / 8] >> (7 - at % 8) & 1;
                Ok((0..len).map(bit).collect())
            }
        }
    }
}

/// The elements of which differences were taken, and those as which they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbers {
    made: Number,
    stored: Number,
}

/// A dtype of NumPy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Number {
    bytes: usize,
    is_big: bool,
    kind: NumberKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NumberKind {
    Unsigned,
    Signed,
    Float,
}

impl Numbers {
    fn of(said: &Map<String, Value>) -> Result<Numbers, String> {
        let number = |key: &str| said.get(key).and_then(Value::as_str);
        let parsed = |dtype: &str| {
            let of_no_use = || format!("the codec delta of elements {dtype:?} is not read");
            Number::parse(dtype).ok_or_else(of_no_use)
        };
        let dtype = number("dtype").ok_or("the codec delta does not say its dtype")?;
        let made = parsed(dtype)?;
        let stored = number("astype").map_or(Ok(made), parsed)?;
        let has_floats = [made, stored].iter().any(|number| number.kind == NumberKind::Float);
        if has_floats && (made.kind, made.bytes) != (stored.kind, stored.bytes) {
            return Err("the codec delta of floats as other elements is not read".to_owned());
        }
        Ok(Numbers { made, stored })
    }

    fn summed(self, encoded: &[u8]) -> Vec<u8> {
        let Numbers { made, stored } = self;
        let differences = encoded.chunks_exact(stored.bytes);
        let mut out = Vec::with_capacity(differences.len() * made.bytes);
        match (made.kind, made.bytes) {
            (NumberKind::Float, 4) => {
                let mut sum: Option<f32> = None;
                for bits in differences.map(|bytes| stored.bits(bytes)) {
                    let next = f32::from_bits(bits as u32);
                    let next = sum.map_or(next, |sum| sum + next);
                    made.put(next.to_bits().into(), &mut out);
                    sum = Some(next);
                }
            }
            (NumberKind::Float, _) => {
                let mut sum: Option<f64> = None;
                for bits in differences.map(|bytes| stored.bits(bytes)) {
                    let next = f64::from_bits(bits);
                    let next = sum.map_or(next, |sum| sum + next);
                    made.put(next.to_bits(), &mut out);
                    sum = Some(next);
                }
            }
            _ => {
                let mut sum = 0u64;
                for bits in differences.map(|bytes| stored.bits(bytes)) {
                    sum = sum.wrapping_add(bits);
                    made.put(sum, &mut out);
                }
            }
        }
        out
    }
}

impl Number {
    fn parse(dtype: &str) -> Option<Number> {
        let is_big = dtype.starts_with('>');
        let kind = match dtype.trim_start_matches(['<', '>', '|', '=']) {
            "u1" => (NumberKind::Unsigned, 1),
            "u2" => (NumberKind::Unsigned, 2),
            "u4" => (NumberKind::Unsigned, 4),
            "u8" => (NumberKind::Unsigned, 8),
            "i1" => (NumberKind::Signed, 1),
            "i2" => (NumberKind::Signed, 2),
            "i4" => (NumberKind::Signed, 4),
            "i8" => (NumberKind::Signed, 8),
            "f4" => (NumberKind::Float, 4),
            "f8" => (NumberKind::Float, 8),
            _ => return None,
        };
        Some(Number { bytes: kind.1, is_big, kind: kind.0 })
    }

    /// A number in 64 bits: of a signed one all higher bits are its sign.
    fn bits(self, bytes: &[u8]) -> u64 {
        let add = |all: u64, byte: &u8| all << 8 | u64::from(*byte);
        let bits =
            if self.is_big { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) };
        let above = 64 - 8 * self.bytes as u32;
        match self.kind {
            NumberKind::Signed => ((bits << above) as i64 >> above) as u64,
            _ => bits,
        }
    }

    fn put(self, bits: u64, out: &mut Vec<u8>) {
        let at = out.len();
        out.extend(&bits.to_le_bytes()[..self.bytes]);
        if self.is_big {
            out[at..].reverse();
        }
    }
}

impl ExtensionName for NumCodec {
    fn name(&self, version: ZarrVersion) -> Option<Cow<'static, str>> {
        Some(match version {
            ZarrVersion::V2 => self.name.into(),
            ZarrVersion::V3 => format!("{PREFIX}{}", self.name).into(),
        })
    }
}

impl CodecTraits for NumCodec {
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn configuration(&self, _: ZarrVersion, _: &CodecMetadataOptions) -> Option<Configuration> {
        Some(self.said.clone().into())
    }

    fn partial_decoder_capability(&self) -> PartialDecoderCapability {
        PartialDecoderCapability { partial_read: false, partial_decode: false }
    }

    fn partial_encoder_capability(&self) -> PartialEncoderCapability {
        PartialEncoderCapability { partial_encode: false }
    }
}

impl BytesToBytesCodecTraits for NumCodec {
    fn into_dyn(self: Arc<Self>) -> Arc<dyn BytesToBytesCodecTraits> {
        self
    }

    fn recommended_concurrency(
        &self,
        _: &BytesRepresentation,
    ) -> Result<RecommendedConcurrency, CodecError> {
        Ok(RecommendedConcurrency::new_maximum(1))
    }

    fn encoded_representation(&self, decoded: &BytesRepresentation) -> BytesRepresentation {
        let most = decoded.size().map(|len| match &self.kind {
            Kind::Lz4 => len.saturating_add(len / 255 + 20),
            Kind::Bits => len.div_ceil(8).saturating_add(1),
            Kind::Differences(Numbers { made, stored }) => {
                (len / made.bytes as u64).saturating_mul(stored.bytes as u64)
            }
        });
        most.map_or(BytesRepresentation::UnboundedSize, BytesRepresentation::BoundedSize)
    }

    fn encode<'a>(
        &self,
        _: ArrayBytesRaw<'a>,
        _: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        Err(CodecError::Other(format!("the codec {} is read alone", self.name)))
    }

    fn decode<'a>(
        &self,
        encoded: ArrayBytesRaw<'a>,
        decoded: &BytesRepresentation,
        _: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        let bytes = self.undo(&encoded, decoded.size().unwrap_or(u64::MAX))?;
        Ok(Cow::Owned(bytes))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn undone(name: &'static str, said: Value, encoded: &[u8], most: u64) -> Option<Vec<u8>> {
        let Codec::BytesToBytes(codec) = created(name, said.as_object().unwrap()).unwrap() else {
            return None;
        };
        let most = BytesRepresentation::FixedSize(most);
        let encoded = Cow::Borrowed(encoded);
        Some(codec.decode(encoded, &most, &CodecOptions::default()).ok()?.into_owned())
    }

    #[test]
    fn bytes_are_those_of_numcodecs() {
        // numcodecs.Delta(">i2", "i1") of 5, 4, 300 - 256
        let delta = json!({ "dtype": ">i2", "astype": "|i1" });
        let found = undone("delta", delta.clone(), &[5, 255, 40], 6).unwrap();
        assert_eq!(found, [0, 5, 0, 4, 0, 44]);
        assert_eq!(undone("delta", delta, &[5, 255, 40], 5), None);
        // numcodecs.PackBits() of nine booleans
        let bits = undone("packbits", json!({}), &[7, 0b1010_0000, 0b1000_0000], 9).unwrap();
        assert_eq!(bits, [1, 0, 1, 0, 0, 0, 0, 0, 1]);
        assert_eq!(undone("packbits", json!({}), &[7, 0, 0], 8), None);
        assert_eq!(undone("packbits", json!({}), &[9, 0], 8), None);
        assert_eq!(undone("packbits", json!({}), &[], 8), None);
        assert_eq!(
            undone("lz4", json!({}), &[3, 0, 0, 0, 0x30, b'a', b'b', b'c'], 3).unwrap(),
            b"abc"
        );
        assert_eq!(undone("lz4", json!({}), &[3, 0, 0, 0, 0x30, b'a', b'b', b'c'], 2), None);
        assert_eq!(undone("lz4", json!({}), &[255, 255, 255, 255, 0x30], u64::MAX), None);
    }

    #[test]
    fn differences_of_other_elements_are_refused() {
        for said in
            [json!({}), json!({ "dtype": "<f2" }), json!({ "dtype": "<f4", "astype": "<i2" })]
        {
            assert!(Numbers::of(said.as_object().unwrap()).is_err(), "{said}");
        }
    }
}
