//! Codecs that decode no more bytes than a chunk has.
//!
//! The codecs of `zarrs` decode a stream to its end, or trust the length that it names: a hostile chunk of some
//! kilobytes would fill the memory. The codecs here have the same names, decode by themselves, and leave everything
//! else to `zarrs`. Others, which only decode, come from numcodecs, and `zarrs` lacks them, or some of their dtypes:
//! LZ4, a CRC-32, bits, differences of neighbours, and numbers with an offset and a scale. The last three are filters
//! of elements. Here they are filters of bytes: their input is the stored elements, one after the other.

use std::borrow::Cow;
use std::io;
use std::sync::{Arc, Once};

use serde_json::{Map, Value, json};
use zarrs::array::codec::api::{
    BytesToBytesCodecTraits, Codec, CodecError, CodecMetadataOptions, CodecOptions,
    CodecRuntimePluginV2, CodecRuntimePluginV3, CodecTraits, CodecTraitsV2, CodecTraitsV3,
    PartialDecoderCapability, PartialEncoderCapability, RecommendedConcurrency, register_codec_v2,
    register_codec_v3,
};
use zarrs::array::codec::{
    Adler32Codec, BloscCodec, BloscCodecConfiguration, BytesCodec, Bz2Codec, CodecChain,
    Crc32cCodec, Fletcher32Codec, GzipCodec, ZlibCodec, ZstdCodec,
};
use zarrs::array::{ArrayBytesRaw, BytesRepresentation};
use zarrs::metadata::Configuration;
use zarrs::plugin::{
    ExtensionAliasesV2, ExtensionAliasesV3, ExtensionName, PluginCreateError, ZarrVersion,
};

use super::filters::Numbers;
use crate::crc::PiecesCrc;
use crate::formats::codecs::{self, InflateFault, Wanted, Wrapper, inflate, too_long};
use crate::source::keep_spare;

/// The name of blosc as the compressor of a version 2 array, where `zarrs` ignores a codec registered under the usual
/// name.
const BLOSC_V2: &str = "tslice.blosc";

/// Name these codecs in the metadata of a version 2 array.
pub(super) fn name_own(metadata: &mut Value) {
    if let Some(id) = metadata.pointer_mut("/compressor/id").filter(|id| **id == "blosc") {
        *id = BLOSC_V2.into();
    }
}

/// Register these codecs for arrays that are opened from now on.
pub(super) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        add::<GzipCodec>(|bytes, wanted| inflated(Wrapper::Gzip, bytes, wanted));
        add::<ZlibCodec>(|bytes, wanted| inflated(Wrapper::Zlib, bytes, wanted));
        add::<Bz2Codec>(|bytes, wanted| codecs::bzip2(bytes, wanted.most).map(Some));
        add::<ZstdCodec>(|bytes, wanted| codecs::zstd(bytes, wanted).map(Some));
        add::<BloscCodec>(blosc);
        // these decode only whole chunks; `zarrs` takes parts of chunks in shards elsewhere
        add::<Adler32Codec>(|_, _| Ok(None));
        add::<Fletcher32Codec>(|_, _| Ok(None));
        OWN.into_iter().for_each(add_own);
        // a codec that `zarrs` has only in version 3
        register_codec_v2(CodecRuntimePluginV2::new(
            |name| name == "crc32c",
            |metadata| match metadata.configuration().get("location").and_then(Value::as_str) {
                None | Some("end") => Ok(Codec::BytesToBytes(Arc::new(Crc32cCodec::new()))),
                _ => Err(PluginCreateError::Other("a CRC-32C in front of a chunk".to_owned())),
            },
        ));
        register_codec_v2(CodecRuntimePluginV2::new(
            |name| name == BLOSC_V2,
            |_| Ok(BoundedCodec::Zarrs(Arc::new(any_blosc()?), blosc).shared()),
        ));
    });
}

fn add<T>(decode: Decode)
where
    T: CodecTraitsV2 + CodecTraitsV3 + ExtensionAliasesV2 + ExtensionAliasesV3 + 'static,
{
    let bounded = move |codec: Result<Codec, PluginCreateError>| {
        Ok(match codec? {
            Codec::BytesToBytes(inner) => BoundedCodec::Zarrs(inner, decode).shared(),
            codec => codec,
        })
    };
    register_codec_v2(CodecRuntimePluginV2::new(T::matches_name_v2, move |metadata| {
        bounded(<T as CodecTraitsV2>::create(metadata))
    }));
    register_codec_v3(CodecRuntimePluginV3::new(T::matches_name_v3, move |metadata| {
        bounded(<T as CodecTraitsV3>::create(metadata))
    }));
}

/// The names of the codecs that `zarrs` lacks in version 2; in version 3 they follow [`PREFIX`].
const OWN: [&str; 5] = ["lz4", "delta", "packbits", "crc32", "fixedscaleoffset"];

const PREFIX: &str = "numcodecs.";

/// Whether a codec is a filter of elements that is undone on bytes: it must be the last filter of elements.
pub(super) fn is_filter(name: &str) -> bool {
    matches!(name.trim_start_matches(PREFIX), "delta" | "packbits" | "fixedscaleoffset")
}

fn add_own(name: &'static str) {
    register_codec_v2(CodecRuntimePluginV2::new(
        move |found| found == name,
        move |metadata| own(name, metadata.configuration()),
    ));
    register_codec_v3(CodecRuntimePluginV3::new(
        move |found| found.strip_prefix(PREFIX) == Some(name),
        move |metadata| {
            let none = Map::new();
            own(name, metadata.configuration().map_or(&none, |said| said))
        },
    ));
}

fn own(name: &'static str, said: &Map<String, Value>) -> Result<Codec, PluginCreateError> {
    let kind = match name {
        "lz4" => OwnKind::Lz4,
        "packbits" => OwnKind::Bits,
        "crc32" => OwnKind::Crc { is_behind: said.get("location").is_some_and(|it| it == "end") },
        "fixedscaleoffset" => {
            let numbers = Numbers::of(name, said).map_err(PluginCreateError::Other)?;
            let number = |key: &str| said.get(key).and_then(Value::as_f64);
            let (Some(offset), Some(scale)) = (number("offset"), number("scale")) else {
                let reason = "the codec fixedscaleoffset has no offset or scale";
                return Err(PluginCreateError::Other(reason.to_owned()));
            };
            OwnKind::Scaled(numbers, offset, scale)
        }
        _ => {
            let numbers = Numbers::of(name, said).map_err(PluginCreateError::Other)?;
            if numbers.changes_floats() {
                let reason = "the codec delta of floats as other elements is not read";
                return Err(PluginCreateError::Other(reason.to_owned()));
            }
            OwnKind::Differences(numbers)
        }
    };
    Ok(BoundedCodec::Own { name, said: said.clone(), kind }.shared())
}

/// A codec that decodes by itself, with a bounded length.
#[derive(Debug)]
enum BoundedCodec {
    /// A codec of `zarrs`, and the function that decodes instead.
    Zarrs(Arc<dyn BytesToBytesCodecTraits>, Decode),
    Own {
        name: &'static str,
        said: Map<String, Value>,
        kind: OwnKind,
    },
}

#[derive(Debug)]
enum OwnKind {
    /// One block, after its decoded length.
    Lz4,
    /// Bytes with their CRC-32 after them, or before.
    Crc { is_behind: bool },
    /// The differences of consecutive elements.
    Differences(Numbers),
    /// Elements less an offset, multiplied by a scale.
    Scaled(Numbers, f64, f64),
    /// Booleans as bits, after the number of unused bits.
    Bits,
}

/// A function that decodes the wanted bytes; `None` where the codec of `zarrs` can safely decode them.
type Decode = fn(&[u8], Wanted) -> io::Result<Option<Vec<u8>>>;

impl BoundedCodec {
    fn shared(self) -> Codec {
        Codec::BytesToBytes(Arc::new(self))
    }

    fn undo(&self, encoded: &[u8], wanted: Wanted) -> io::Result<Option<Vec<u8>>> {
        match self {
            BoundedCodec::Zarrs(_, decode) => decode(encoded, wanted),
            BoundedCodec::Own { kind, .. } => kind.undo(encoded, wanted.most).map(Some),
        }
    }
}

impl OwnKind {
    /// Decode to at most `most` bytes.
    fn undo(&self, encoded: &[u8], most: u64) -> io::Result<Vec<u8>> {
        let early = || io::Error::other("it ends early");
        match self {
            OwnKind::Lz4 => {
                let (len, block) = encoded.split_first_chunk().ok_or_else(early)?;
                let len = u32::from_le_bytes(*len);
                if u64::from(len) > most {
                    return Err(too_long());
                }
                let mut out = Vec::new();
                codecs::lz4(block, len as usize, &mut out)?;
                Ok(out)
            }
            OwnKind::Crc { is_behind } => {
                let (sum, bytes) = if *is_behind {
                    encoded.split_last_chunk().map(|(bytes, sum)| (sum, bytes)).ok_or_else(early)?
                } else {
                    encoded.split_first_chunk().ok_or_else(early)?
                };
                let crc = PiecesCrc::default();
                crc.add(bytes, 0);
                if crc.get() != u32::from_le_bytes(*sum) {
                    return Err(io::Error::other("its CRC-32 does not match"));
                }
                Ok(bytes.to_vec())
            }
            OwnKind::Differences(numbers) | OwnKind::Scaled(numbers, ..)
                if numbers.made_len(encoded.len()) as u64 > most =>
            {
                Err(too_long())
            }
            OwnKind::Differences(numbers) => Ok(numbers.summed(encoded)),
            OwnKind::Scaled(numbers, offset, scale) => Ok(numbers.scaled(encoded, *offset, *scale)),
            OwnKind::Bits => {
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

    /// The most stored bytes of `len` decoded bytes.
    fn stored_len(&self, len: u64) -> u64 {
        match self {
            OwnKind::Lz4 => len.saturating_add(len / 255 + 20),
            OwnKind::Crc { .. } => len.saturating_add(4),
            OwnKind::Bits => len.div_ceil(8).saturating_add(1),
            OwnKind::Differences(numbers) | OwnKind::Scaled(numbers, ..) => numbers.stored_len(len),
        }
    }
}

/// Decode a stream of blosc to the length in its header, at most `most` bytes.
#[cfg(feature = "hdf5")]
pub(crate) fn blosc_bytes(encoded: &[u8], most: u64) -> io::Result<Vec<u8>> {
    let bytes = match blosc(encoded, Wanted { most, needed: most })? {
        Some(bytes) => bytes,
        None => {
            let inner = any_blosc().map_err(io::Error::other)?;
            let whole = BytesRepresentation::BoundedSize(most);
            let bytes = inner.decode(Cow::Borrowed(encoded), &whole, &CodecOptions::default());
            bytes.map_err(io::Error::other)?.into_owned()
        }
    };
    Ok(bytes)
}

/// The codec blosc for decoding: the header of a chunk names its compressor.
fn any_blosc() -> Result<BloscCodec, PluginCreateError> {
    let any = json!({ "cname": "lz4", "clevel": 5, "shuffle": "noshuffle", "blocksize": 0 });
    let any = serde_json::from_value::<BloscCodecConfiguration>(any);
    BloscCodec::new_with_configuration(
        &any.map_err(|error| PluginCreateError::Other(error.to_string()))?,
    )
}

/// Let the codec of `zarrs` decode where the header's length is within the wanted bytes.
fn blosc(encoded: &[u8], wanted: Wanted) -> io::Result<Option<Vec<u8>>> {
    // the second word is the number of bytes
    let len = encoded.get(4..8).and_then(|word| word.try_into().ok()).map(u32::from_le_bytes);
    match len {
        Some(len) if u64::from(len) <= wanted.most => Ok(None),
        _ => Err(too_long()),
    }
}

fn inflated(wrapper: Wrapper, encoded: &[u8], wanted: Wanted) -> io::Result<Option<Vec<u8>>> {
    let count = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let needed = if wanted.needed < wanted.most { count(wanted.needed) } else { usize::MAX };
    match inflate(wrapper, encoded, needed, count(wanted.most)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(InflateFault::TooLong) => Err(too_long()),
        Err(InflateFault::Damaged) => Err(io::Error::other("its deflated bytes are damaged")),
    }
}

/// The codec of a chain that applies only one of these codecs, to native elements: it can decode just the first bytes
/// of a chunk.
pub(super) fn only_codec(chain: &CodecChain) -> Option<Arc<dyn BytesToBytesCodecTraits>> {
    let [codec] = chain.bytes_to_bytes_codecs() else { return None };
    let elements = chain.array_to_bytes_codec();
    let options = CodecMetadataOptions::default();
    let is_native = elements.as_any().is::<BytesCodec>()
        && elements.configuration(ZarrVersion::V3, &options).is_none_or(|said| {
            said.get("endian").is_none_or(|endian| endian.is_null() || endian == "little")
        });
    let is_plain = cfg!(target_endian = "little") && chain.array_to_array_codecs().is_empty();
    let is_bytes = codec.as_any().downcast_ref().is_some_and(|codec| {
        matches!(
            codec,
            BoundedCodec::Zarrs(..) | BoundedCodec::Own { kind: OwnKind::Crc { .. }, .. }
        )
    });
    (is_native && is_plain && is_bytes).then(|| Arc::clone(codec))
}

/// The first bytes of a chunk by such a codec: at least `needed` bytes of `most`.
pub(super) fn decode_front(
    codec: &dyn BytesToBytesCodecTraits,
    encoded: &[u8],
    needed: u64,
    most: u64,
) -> Result<Vec<u8>, CodecError> {
    let bounded = codec.as_any().downcast_ref::<BoundedCodec>();
    let decoded = bounded.map(|codec| codec.undo(encoded, Wanted { most, needed })).transpose()?;
    match decoded.flatten() {
        Some(bytes) => Ok(bytes),
        None => {
            let whole = BytesRepresentation::FixedSize(most);
            let bytes = codec.decode(Cow::Borrowed(encoded), &whole, &CodecOptions::default())?;
            Ok(bytes.into_owned())
        }
    }
}

impl ExtensionName for BoundedCodec {
    fn name(&self, version: ZarrVersion) -> Option<Cow<'static, str>> {
        match (self, version) {
            (BoundedCodec::Zarrs(inner, _), _) => inner.name(version),
            (BoundedCodec::Own { name, .. }, ZarrVersion::V2) => Some((*name).into()),
            (BoundedCodec::Own { name, .. }, ZarrVersion::V3) => {
                Some(format!("{PREFIX}{name}").into())
            }
        }
    }
}

impl CodecTraits for BoundedCodec {
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn configuration(
        &self,
        version: ZarrVersion,
        options: &CodecMetadataOptions,
    ) -> Option<Configuration> {
        match self {
            BoundedCodec::Zarrs(inner, _) => inner.configuration(version, options),
            BoundedCodec::Own { said, .. } => Some(said.clone().into()),
        }
    }

    fn partial_decoder_capability(&self) -> PartialDecoderCapability {
        PartialDecoderCapability { partial_read: false, partial_decode: false }
    }

    fn partial_encoder_capability(&self) -> PartialEncoderCapability {
        PartialEncoderCapability { partial_encode: false }
    }
}

impl BytesToBytesCodecTraits for BoundedCodec {
    fn into_dyn(self: Arc<Self>) -> Arc<dyn BytesToBytesCodecTraits> {
        self
    }

    fn recommended_concurrency(
        &self,
        decoded: &BytesRepresentation,
    ) -> Result<RecommendedConcurrency, CodecError> {
        match self {
            BoundedCodec::Zarrs(inner, _) => inner.recommended_concurrency(decoded),
            BoundedCodec::Own { .. } => Ok(RecommendedConcurrency::new_maximum(1)),
        }
    }

    fn encoded_representation(&self, decoded: &BytesRepresentation) -> BytesRepresentation {
        let kind = match self {
            BoundedCodec::Zarrs(inner, _) => return inner.encoded_representation(decoded),
            BoundedCodec::Own { kind, .. } => kind,
        };
        match decoded.size() {
            Some(len) => BytesRepresentation::BoundedSize(kind.stored_len(len)),
            None => BytesRepresentation::UnboundedSize,
        }
    }

    fn encode<'a>(
        &self,
        decoded: ArrayBytesRaw<'a>,
        options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        match self {
            BoundedCodec::Zarrs(inner, _) => inner.encode(decoded, options),
            BoundedCodec::Own { name, .. } => {
                Err(CodecError::Other(format!("the codec {name} is read alone")))
            }
        }
    }

    fn decode<'a>(
        &self,
        encoded: ArrayBytesRaw<'a>,
        decoded: &BytesRepresentation,
        options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        let most = decoded.size().unwrap_or(u64::MAX);
        match (self, self.undo(&encoded, Wanted { most, needed: most })?) {
            (BoundedCodec::Zarrs(inner, _), None) => inner.decode(encoded, decoded, options),
            (_, bytes) => {
                if let Cow::Owned(encoded) = encoded {
                    keep_spare(encoded);
                }
                Ok(Cow::Owned(bytes.unwrap_or_default()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use serde_json::json;

    use super::*;

    #[test]
    fn no_more_is_decoded_than_fits() {
        let long = vec![7; 1 << 20];
        let gzip = {
            let mut encoder = flate2::read::GzEncoder::new(&*long, flate2::Compression::fast());
            let mut bytes = Vec::new();
            encoder.read_to_end(&mut bytes).unwrap();
            bytes
        };
        let decode = |most| inflated(Wrapper::Gzip, &gzip, Wanted { most, needed: most });
        assert_eq!(decode(1 << 20).unwrap().unwrap(), long);
        assert!(decode((1 << 20) - 1).unwrap_err().to_string().contains("more than a chunk has"));
    }

    fn undone(name: &'static str, said: Value, encoded: &[u8], most: u64) -> Option<Vec<u8>> {
        let Codec::BytesToBytes(codec) = own(name, said.as_object().unwrap()).unwrap() else {
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
}
