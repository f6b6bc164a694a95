//! Codecs that make no more bytes than a chunk has.
//!
//! Those of `zarrs` make as many as a stream goes on to, or says that it would: a hostile chunk of some kilobytes
//! would fill the memory. These take their place under the same names, decode by themselves, and leave all else to
//! them.

use std::borrow::Cow;
use std::io::{self, Read};
use std::sync::{Arc, Once};

use zarrs::array::codec::api::{
    BytesToBytesCodecTraits, Codec, CodecError, CodecMetadataOptions, CodecOptions,
    CodecRuntimePluginV2, CodecRuntimePluginV3, CodecTraits, CodecTraitsV2, CodecTraitsV3,
    PartialDecoderCapability, PartialEncoderCapability, RecommendedConcurrency, register_codec_v2,
    register_codec_v3,
};
use zarrs::array::codec::{BloscCodec, Bz2Codec, GzipCodec, ZlibCodec, ZstdCodec};
use zarrs::array::{ArrayBytesRaw, BytesRepresentation};
use zarrs::metadata::Configuration;
use zarrs::plugin::{
    ExtensionAliasesV2, ExtensionAliasesV3, ExtensionName, PluginCreateError, ZarrVersion,
};

/// Let arrays that are opened from now on have these codecs.
pub(super) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        add::<GzipCodec>(|bytes, most| take(flate2::read::GzDecoder::new(bytes), bytes, most));
        add::<ZlibCodec>(|bytes, most| take(flate2::read::ZlibDecoder::new(bytes), bytes, most));
        add::<Bz2Codec>(|bytes, most| take(bzip2::read::BzDecoder::new(bytes), bytes, most));
        add::<ZstdCodec>(|bytes, most| match most <= reserved(bytes, most) {
            // in one call, which is faster
            true => zstd::bulk::decompress(bytes, most as usize).map(Some),
            false => take(zstd::Decoder::new(bytes)?, bytes, most),
        });
        add::<BloscCodec>(|bytes, most| {
            // the number of bytes is the second word of its header
            let len = bytes.get(4..8).and_then(|word| word.try_into().ok()).map(u32::from_le_bytes);
            match len {
                Some(len) if u64::from(len) <= most => Ok(None),
                _ => Err(too_long()),
            }
        });
    });
}

/// Decodes to so many bytes at most; `None` where the codec of `zarrs` does no harm with these.
type Decode = fn(&[u8], u64) -> io::Result<Option<Vec<u8>>>;

/// The bytes that are reserved for what so many become, before it is known how many that are: most streams
/// become at most a thousand times as long.
fn reserved(encoded: &[u8], most: u64) -> u64 {
    most.min((encoded.len() as u64).saturating_mul(1 << 10))
}

fn take(decoder: impl Read, encoded: &[u8], most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::with_capacity(reserved(encoded, most) as usize);
    decoder.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_long()) } else { Ok(Some(bytes)) }
}

fn too_long() -> io::Error {
    io::Error::other("it decodes to more than a chunk has")
}

fn add<T>(decode: Decode)
where
    T: CodecTraitsV2 + CodecTraitsV3 + ExtensionAliasesV2 + ExtensionAliasesV3 + 'static,
{
    let bounded = move |codec: Result<Codec, PluginCreateError>| {
        Ok(match codec? {
            Codec::BytesToBytes(inner) => {
                Codec::BytesToBytes(Arc::new(BoundedCodec { inner, decode }))
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
}

impl ExtensionName for BoundedCodec {
    fn name(&self, version: ZarrVersion) -> Option<Cow<'static, str>> {
        self.inner.name(version)
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
        self.inner.configuration(version, options)
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
        match (self.decode)(&encoded, most)? {
            Some(bytes) => Ok(Cow::Owned(bytes)),
            None => self.inner.decode(encoded, decoded, options),
        }
    }
}

#[cfg(test)]
mod tests {
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
        let decode = |most| take(flate2::read::GzDecoder::new(&*gzip), &gzip, most);
        assert_eq!(decode(1 << 20).unwrap().unwrap(), long);
        assert!(decode((1 << 20) - 1).unwrap_err().to_string().contains("more than a chunk has"));
        // what is not known to be short is not reserved
        assert_eq!(reserved(&gzip, 1 << 60), gzip.len() as u64 * 1024);
    }
}
