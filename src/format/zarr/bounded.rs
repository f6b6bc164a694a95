//! Codecs that make no more bytes than a chunk has.
//!
//! Those of `zarrs` make as many as a stream goes on to, or says that it would: a hostile chunk of some kilobytes
//! would fill the memory. These take their place under the same names, decode by themselves, and leave all else to
//! them.

use std::borrow::Cow;
use std::io;
use std::sync::{Arc, Once};

use serde_json::{Value, json};
use zarrs::array::codec::api::{
    BytesToBytesCodecTraits, Codec, CodecError, CodecMetadataOptions, CodecOptions,
    CodecRuntimePluginV2, CodecRuntimePluginV3, CodecTraits, CodecTraitsV2, CodecTraitsV3,
    PartialDecoderCapability, PartialEncoderCapability, RecommendedConcurrency, register_codec_v2,
    register_codec_v3,
};
use zarrs::array::codec::{
    Adler32Codec, Adler32CodecConfiguration, BloscCodec, BloscCodecConfiguration, BytesCodec,
    Bz2Codec, CodecChain, Crc32cCodec, Fletcher32Codec, GzipCodec, ZlibCodec, ZstdCodec,
};
use zarrs::array::{ArrayBytesRaw, BytesRepresentation};
use zarrs::metadata::Configuration;
use zarrs::plugin::{
    ExtensionAliasesV2, ExtensionAliasesV3, ExtensionName, PluginCreateError, ZarrVersion,
};

use super::numcodecs;
use crate::crc::PiecesCrc;
use crate::format::codecs::{self, Wanted, too_long};
use crate::format::inflated::{InflateFault, Wrapper, inflate};
use crate::format::spare;

/// The name of blosc as the compressor of an array of version 2, where `zarrs` takes its own, whatever is registered
/// under the usual name.
const BLOSC_V2: &str = "tslice.blosc";

/// Let an array of version 2 have these codecs.
pub(super) fn name_own(metadata: &mut Value) {
    if let Some(id) = metadata.pointer_mut("/compressor/id").filter(|id| **id == "blosc") {
        *id = BLOSC_V2.into();
    }
}

/// Let arrays that are opened from now on have these codecs.
pub(super) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        add::<GzipCodec>(|bytes, wanted| inflated(Wrapper::Gzip, bytes, wanted));
        add::<ZlibCodec>(|bytes, wanted| inflated(Wrapper::Zlib, bytes, wanted));
        add::<Bz2Codec>(|bytes, wanted| codecs::bzip2(bytes, wanted.most).map(Some));
        add::<ZstdCodec>(|bytes, wanted| codecs::zstd(bytes, wanted).map(Some));
        add::<BloscCodec>(blosc);
        numcodecs::register();
        // only whole chunks are decoded by these: parts of them, in shards, are cut by `zarrs` in other places
        add::<Adler32Codec>(|_, _| Ok(None));
        add::<Fletcher32Codec>(|_, _| Ok(None));
        // what `zarrs` has not: a sum that is another than the one it has in the same place
        register_codec_v2(CodecRuntimePluginV2::new(
            |name| name == "crc32",
            |metadata| {
                let location = metadata.configuration().get("location").cloned();
                checked(location.as_ref())
            },
        ));
        register_codec_v2(CodecRuntimePluginV2::new(
            |name| name == "crc32c",
            |metadata| match metadata.configuration().get("location").and_then(Value::as_str) {
                None | Some("end") => Ok(Codec::BytesToBytes(Arc::new(Crc32cCodec::new()))),
                _ => Err(PluginCreateError::Other("a CRC-32C in front of a chunk".to_owned())),
            },
        ));
        register_codec_v3(CodecRuntimePluginV3::new(
            |name| name == "numcodecs.crc32",
            |metadata| checked(metadata.configuration().and_then(|all| all.get("location"))),
        ));
        register_codec_v2(CodecRuntimePluginV2::new(
            |name| name == BLOSC_V2,
            |_| {
                let inner = Arc::new(any_blosc()?);
                Ok(Codec::BytesToBytes(Arc::new(BoundedCodec { inner, decode: blosc, own: None })))
            },
        ));
    });
}

/// The codec of a CRC-32 in front of the bytes, or behind them.
fn checked(location: Option<&Value>) -> Result<Codec, PluginCreateError> {
    let any = serde_json::from_value::<Adler32CodecConfiguration>(json!({}));
    let any = any.map_err(|error| PluginCreateError::Other(error.to_string()))?;
    let inner = Arc::new(Adler32Codec::new_with_configuration(&any)?);
    let location = location.and_then(Value::as_str).unwrap_or("start");
    let decode: Decode = match location {
        "end" => |bytes, _| match bytes.split_last_chunk() {
            Some((bytes, sum)) => without_sum(bytes, *sum),
            None => Err(io::Error::other("it ends early")),
        },
        _ => |bytes, _| match bytes.split_first_chunk() {
            Some((sum, bytes)) => without_sum(bytes, *sum),
            None => Err(io::Error::other("it ends early")),
        },
    };
    let own = Some(("numcodecs.crc32", json!({ "location": location })));
    Ok(Codec::BytesToBytes(Arc::new(BoundedCodec { inner, decode, own })))
}

fn without_sum(bytes: &[u8], sum: [u8; 4]) -> io::Result<Option<Vec<u8>>> {
    let crc = PiecesCrc::default();
    crc.add(bytes, 0);
    match crc.get() == u32::from_le_bytes(sum) {
        true => Ok(Some(bytes.to_vec())),
        false => Err(io::Error::other("its CRC-32 is another one")),
    }
}

/// Decodes as many bytes as are wanted; `None` where the codec of `zarrs` does no harm with these.
type Decode = fn(&[u8], Wanted) -> io::Result<Option<Vec<u8>>>;

/// The bytes of a stream of blosc, as many as its header says and no more than `most`.
///
/// # Errors
/// A damaged stream, or one of more bytes.
#[cfg(feature = "hdf5")]
pub(in crate::format) fn blosc_bytes(encoded: &[u8], most: u64) -> io::Result<Vec<u8>> {
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

/// The codec blosc: what a chunk was encoded by is in its own header.
fn any_blosc() -> Result<BloscCodec, PluginCreateError> {
    let any = json!({ "cname": "lz4", "clevel": 5, "shuffle": "noshuffle", "blocksize": 0 });
    let any = serde_json::from_value::<BloscCodecConfiguration>(any);
    BloscCodec::new_with_configuration(
        &any.map_err(|error| PluginCreateError::Other(error.to_string()))?,
    )
}

/// Leave it to the codec of `zarrs` where the header says that it makes no more bytes than are wanted.
fn blosc(encoded: &[u8], wanted: Wanted) -> io::Result<Option<Vec<u8>>> {
    // the number of bytes is the second word
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

/// The codec of a chain that does nothing but one of these, to elements as they are in memory: it decodes the first
/// bytes of a chunk alone.
pub(super) fn only_codec(chain: &CodecChain) -> Option<Arc<dyn BytesToBytesCodecTraits>> {
    let [codec] = chain.bytes_to_bytes_codecs() else { return None };
    let elements = chain.array_to_bytes_codec();
    let options = CodecMetadataOptions::default();
    let is_native = elements.as_any().is::<BytesCodec>()
        && elements.configuration(ZarrVersion::V3, &options).is_none_or(|said| {
            said.get("endian").is_none_or(|endian| endian.is_null() || endian == "little")
        });
    let is_plain = cfg!(target_endian = "little") && chain.array_to_array_codecs().is_empty();
    let is_own = codec.as_any().is::<BoundedCodec>();
    (is_native && is_plain && is_own).then(|| Arc::clone(codec))
}

/// The first bytes of a chunk by such a codec: at least `needed` of `most`.
pub(super) fn decode_front(
    codec: &dyn BytesToBytesCodecTraits,
    encoded: &[u8],
    needed: u64,
    most: u64,
) -> Result<Vec<u8>, CodecError> {
    let bounded = codec.as_any().downcast_ref::<BoundedCodec>();
    let decoded =
        bounded.map(|codec| (codec.decode)(encoded, Wanted { most, needed })).transpose()?;
    match decoded.flatten() {
        Some(bytes) => Ok(bytes),
        None => {
            let whole = BytesRepresentation::FixedSize(most);
            let bytes = codec.decode(Cow::Borrowed(encoded), &whole, &CodecOptions::default())?;
            Ok(bytes.into_owned())
        }
    }
}

fn add<T>(decode: Decode)
where
    T: CodecTraitsV2 + CodecTraitsV3 + ExtensionAliasesV2 + ExtensionAliasesV3 + 'static,
{
    let bounded = move |codec: Result<Codec, PluginCreateError>| {
        Ok(match codec? {
            Codec::BytesToBytes(inner) => {
                Codec::BytesToBytes(Arc::new(BoundedCodec { inner, decode, own: None }))
            }
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

/// A codec whose decoder is another one.
#[derive(Debug)]
struct BoundedCodec {
    inner: Arc<dyn BytesToBytesCodecTraits>,
    decode: Decode,
    /// The name and configuration, where they are not those of the other one.
    own: Option<(&'static str, Value)>,
}

impl ExtensionName for BoundedCodec {
    fn name(&self, version: ZarrVersion) -> Option<Cow<'static, str>> {
        match self.own {
            Some((name, _)) => Some(name.into()),
            None => self.inner.name(version),
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
        match &self.own {
            Some((_, configuration)) => configuration.as_object().cloned().map(Into::into),
            None => self.inner.configuration(version, options),
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
        self.inner.recommended_concurrency(decoded)
    }

    fn encoded_representation(&self, decoded: &BytesRepresentation) -> BytesRepresentation {
        self.inner.encoded_representation(decoded)
    }

    fn encode<'a>(
        &self,
        decoded: ArrayBytesRaw<'a>,
        options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        self.inner.encode(decoded, options)
    }

    fn decode<'a>(
        &self,
        encoded: ArrayBytesRaw<'a>,
        decoded: &BytesRepresentation,
        options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        let most = decoded.size().unwrap_or(u64::MAX);
        match (self.decode)(&encoded, Wanted { most, needed: most })? {
            Some(bytes) => {
                if let Cow::Owned(encoded) = encoded {
                    spare::give(encoded);
                }
                Ok(Cow::Owned(bytes))
            }
            None => self.inner.decode(encoded, decoded, options),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

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
}
