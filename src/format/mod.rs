//! Headers of tensor files, read and written. Element data is not touched here.
//!
//! A format is detected by its first bytes, not by a file name. [`read_contents`] consumes exactly
//! the header of a reader, so that a pipe is at its data afterwards. Memory grows with the bytes that
//! are really there, not with the lengths that a header claims. Messages of [`FormatError`] don't
//! name the file: the caller adds the path.
//!
//! ```
//! use tslice::dtype::{DType, Endian, Scalar};
//! use tslice::format::{npy, read_contents};
//! use tslice::shape::Order;
//!
//! let dtype = DType::Scalar(Scalar::F32, Endian::Little);
//! let mut file = npy::header(&dtype, &[2, 3], Order::C)?;
//! file.extend([0; 24]);
//! let contents = read_contents(&mut file.as_slice(), Some(file.len() as u64))?;
//! assert_eq!(contents.tensors[0].shape, [2, 3]);
//! # Ok::<(), tslice::format::FormatError>(())
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};

use crate::dtype::DType;
use crate::shape::{Order, byte_count};

pub mod npy;
pub mod npz;
pub mod safetensors;
pub mod shards;
pub mod text;

pub use text::TextFormat;

/// One tensor of an input: its type, its shape, and the range of its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its name, if the format names tensors.
    pub name: Option<String>,
    /// The type of its elements.
    pub dtype: DType,
    /// Its shape, in elements.
    pub shape: Vec<u64>,
    /// The order of its elements in the file.
    pub order: Order,
    /// Number of the part of the input that holds its bytes: a shard, or a deflated member (from
    /// 1 on); 0 if the input is one file.
    pub part: usize,
    /// Offset of its first byte in the input, in bytes. For an input of several parts this counts
    /// through all of them, as [`ConcatSource`](crate::source::ConcatSource) does.
    pub offset: u64,
    /// Bytes of its elements: the product of shape and item size, rounded up to whole bytes.
    pub bytes: u64,
}

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// NumPy's `.npy`.
    Npy,
    /// NumPy's `.npz`.
    Npz,
    /// Hugging Face's `.safetensors`.
    Safetensors,
    /// A checkpoint of several `.safetensors` and an index.
    Sharded,
    /// Bytes without a header.
    Raw,
    /// Text, for output only.
    Text(TextFormat),
}

/// What the header of a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The format of the file.
    pub format: Format,
    /// The tensors, in the order of their bytes in the file.
    pub tensors: Vec<Tensor>,
    /// `__metadata__` of a `.safetensors`; empty elsewhere.
    pub metadata: BTreeMap<String, String>,
    /// Bytes of the header; the data begin after it.
    pub header_len: u64,
}

/// How many bytes [`detect`] looks at.
pub const MAGIC_LEN: usize = 9;

/// What a file is, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A `.npy`, for [`read_contents`].
    Npy,
    /// A `.safetensors`, for [`read_contents`].
    Safetensors,
    /// A zip archive.
    Zip,
    /// A JSON object.
    Json,
}

/// What a file is, by its first [`MAGIC_LEN`] bytes, or all if it has fewer.
pub fn detect(first: &[u8]) -> Option<FileKind> {
    if npy::begins(first) {
        Some(FileKind::Npy)
    } else if [b"PK\x03\x04", b"PK\x05\x06"].iter().any(|magic| first.starts_with(*magic)) {
        Some(FileKind::Zip)
    } else if let [b'{', b'"' | b'}' | b' ' | b'\n' | b'\r' | b'\t', ..] = first {
        Some(FileKind::Json)
    } else {
        safetensors::begins(first).then_some(FileKind::Safetensors)
    }
}

/// Read the header of a `.npy` or `.safetensors` from `input`, and nothing after it.
///
/// `file_len` (bytes) is checked against the header; for a pipe, where it is not known, the caller
/// calls [`Contents::check_len`] at the end.
///
/// # Errors
/// [`FormatError`]: an unknown format, a header that breaks the rules of its format, a file shorter
/// (or, for `.safetensors`, longer) than its header says, a read error.
pub fn read_contents(input: &mut dyn Read, file_len: Option<u64>) -> Result<Contents, FormatError> {
    let mut first = Vec::new();
    Read::take(&mut *input, 8).read_to_end(&mut first)?;
    let mut whole = first.as_slice().chain(input);
    let contents = if npy::begins(&first) {
        npy::read(&mut whole)?
    } else if first.len() == 8 {
        safetensors::read(&mut whole)?
    } else {
        return Err(unrecognised(&first));
    };
    match file_len {
        Some(len) => contents.check_len(len).map(|()| contents),
        None => Ok(contents),
    }
}

impl Contents {
    /// The length of the file in bytes by its header.
    pub fn expected_len(&self) -> u64 {
        self.tensors.last().map_or(self.header_len, |last| last.offset + last.bytes)
    }

    /// Whether bytes after the data are ignored, as np.load does, or an error, as in safetensors.
    pub fn allows_trailing_bytes(&self) -> bool {
        self.format != Format::Safetensors
    }

    /// Compare the length of the file (bytes) with [`Contents::expected_len`].
    ///
    /// # Errors
    /// [`FormatError::CutShort`], or [`FormatError::TrailingBytes`] if those are not allowed.
    pub fn check_len(&self, len: u64) -> Result<(), FormatError> {
        let expected = self.expected_len();
        if len < expected {
            Err(FormatError::CutShort { expected, found: len })
        } else if len > expected && !self.allows_trailing_bytes() {
            Err(FormatError::TrailingBytes { expected, found: len })
        } else {
            Ok(())
        }
    }
}

impl Format {
    /// Whether a file of this format can hold several tensors.
    pub fn holds_several(self) -> bool {
        match self {
            Format::Npy | Format::Raw | Format::Text(_) => false,
            Format::Npz | Format::Safetensors | Format::Sharded => true,
        }
    }

    /// Whether a file of this format names its tensors.
    pub fn names_tensors(self) -> bool {
        self.holds_several()
    }

    /// Whether a file of this format can hold elements in Fortran order.
    pub fn has_orders(self) -> bool {
        matches!(self, Format::Npy | Format::Npz | Format::Raw)
    }

    /// The dtype, with byte order, that elements of `dtype` have in a file of this format.
    ///
    /// `.npy` holds every dtype; floats that NumPy lacks become the void types of `ml_dtypes`.
    /// `.safetensors` is always little-endian: if the byte order differs from that of `dtype`, the
    /// caller must swap the bytes.
    ///
    /// # Errors
    /// [`FormatError::Unsupported`] if the format has no such type.
    pub fn stored_dtype(self, dtype: &DType) -> Result<DType, FormatError> {
        match self {
            Format::Npy | Format::Npz => npy::stored_dtype(dtype),
            Format::Safetensors | Format::Sharded => safetensors::stored_dtype(dtype),
            Format::Raw => Some(dtype.clone()),
            Format::Text(_) => text::stored_dtype(dtype),
        }
        .ok_or_else(|| FormatError::Unsupported { dtype: dtype.to_string(), format: self })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Npy => "npy",
            Format::Npz => "npz",
            Format::Safetensors => "safetensors",
            Format::Sharded => "sharded safetensors",
            Format::Raw => "raw",
            Format::Text(TextFormat::Csv) => "csv",
            Format::Text(TextFormat::Txt) => "txt",
            Format::Text(TextFormat::Json) => "json",
        })
    }
}

/// Why a header cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The reader failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file has no bytes.
    #[error("the file is empty")]
    Empty,
    /// The file is of no known format.
    #[error("{0}not a .npy or .safetensors file")]
    Unrecognised(&'static str),
    /// The file ends before its header does. Lengths in bytes.
    #[error(
        "the file is cut short inside its header: {expected} bytes are needed, {found} are there"
    )]
    HeaderCutShort {
        /// Bytes that the header takes, as far as is known.
        expected: u64,
        /// Bytes that there are.
        found: u64,
    },
    /// The file ends before its data does. Lengths in bytes.
    #[error("the file is cut short: its header asks for {expected} bytes, {found} are there")]
    CutShort {
        /// Length of the file by its header.
        expected: u64,
        /// Length of the file.
        found: u64,
    },
    /// The file goes on after its data. Lengths in bytes.
    #[error("{} bytes follow the data: the header asks for {expected} bytes, {found} are there",
        .found - .expected)]
    TrailingBytes {
        /// Length of the file by its header.
        expected: u64,
        /// Length of the file.
        found: u64,
    },
    /// A `.npy` header is invalid or not supported.
    #[error("npy header: {0}")]
    Npy(#[from] npy::NpyError),
    /// A `.safetensors` header is invalid or not supported.
    #[error("safetensors header: {0}")]
    Safetensors(#[from] safetensors::SafetensorsError),
    /// A `.npz` archive cannot be read.
    #[error("npz: {0}")]
    Npz(#[from] npz::NpzError),
    /// The index of a sharded checkpoint is invalid.
    #[error("checkpoint index: {0}")]
    Shards(#[from] shards::ShardsError),
    /// The format has no such type.
    #[error("dtype {dtype} has no counterpart in the {format} format")]
    Unsupported {
        /// The type's name.
        dtype: String,
        /// The format it was meant for.
        format: Format,
    },
}

/// The error for an unknown format, which names some well-known ones.
fn unrecognised(first: &[u8]) -> FormatError {
    const OTHERS: [(&[u8], &str); 5] = [
        (b"PK", "a zip archive (.npz?), "),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file, "),
        (b"\x1f\x8b", "a gzip file, "),
        (b"GGUF", "a GGUF file, "),
        (b"{", "a JSON text, "),
    ];
    if first.is_empty() {
        return FormatError::Empty;
    }
    let known = OTHERS.iter().find(|(magic, _)| first.starts_with(magic));
    FormatError::Unrecognised(known.map_or("", |(_, name)| name))
}

/// Text of a file for a message: control characters escaped, at most 200 characters.
fn brief(text: &str) -> String {
    const MOST: usize = 200;
    let mut brief = String::new();
    for char in text.chars().take(MOST) {
        if char.is_control() {
            brief.extend(char.escape_default());
        } else {
            brief.push(char);
        }
    }
    if text.chars().nth(MOST).is_some() {
        brief.push('…');
    }
    brief
}

/// Append the next `len` bytes to `header`, which grows only with bytes that are really there.
fn read_more(input: &mut dyn Read, header: &mut Vec<u8>, len: u64) -> Result<(), FormatError> {
    let expected = header.len() as u64 + len;
    input.take(len).read_to_end(header)?;
    match header.len() as u64 {
        found if found < expected => Err(FormatError::HeaderCutShort { expected, found }),
        _ => Ok(()),
    }
}

/// The bytes of a tensor, rounded up to whole ones; `None` if they exceed 2^63 - 1.
///
/// As in NumPy, the product of the other axes must fit even if an axis has length 0.
fn data_bytes(shape: &[u64], item_bits: u64) -> Option<u64> {
    let filled: Vec<u64> = shape.iter().copied().filter(|&len| len > 0).collect();
    let bytes = byte_count(&filled, item_bits)?;
    Some(if filled.len() < shape.len() { 0 } else { bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::{Endian, NpyType, Scalar};
    use proptest::prelude::*;

    fn little(scalar: Scalar) -> DType {
        DType::Scalar(scalar, Endian::Little)
    }

    #[test]
    fn other_files_are_named() {
        let message = |bytes: &[u8]| read_contents(&mut &*bytes, None).unwrap_err().to_string();
        assert_eq!(message(b""), "the file is empty");
        assert_eq!(
            message(b"PK\x03\x04xxxxxxxx"),
            "a zip archive (.npz?), not a .npy or .safetensors file"
        );
        assert_eq!(message(b"hello"), "not a .npy or .safetensors file");
        assert_eq!(message(&[0; 100]), "not a .npy or .safetensors file");
        assert_eq!(
            message(b"\x93NUM"),
            "the file is cut short inside its header: 10 bytes are needed, 4 are there"
        );
    }

    #[test]
    fn stored_types_follow_the_format() {
        let big = DType::Scalar(Scalar::F64, Endian::Big);
        assert_eq!(Format::Npy.stored_dtype(&big).unwrap(), big);
        assert_eq!(Format::Safetensors.stored_dtype(&big).unwrap(), little(Scalar::F64));
        let stored = Format::Npy.stored_dtype(&little(Scalar::BF16)).unwrap();
        assert_eq!(stored, DType::Npy(NpyType { descr: "'<V2'".into(), itemsize: 2 }));
        let stored = Format::Npy.stored_dtype(&little(Scalar::F8E5M2)).unwrap();
        assert_eq!(stored, DType::Npy(NpyType { descr: "'|V1'".into(), itemsize: 1 }));
        assert_eq!(
            Format::Npy.stored_dtype(&little(Scalar::F4)).unwrap_err().to_string(),
            "dtype float4_e2m1fn has no counterpart in the npy format"
        );
        assert_eq!(
            Format::Safetensors.stored_dtype(&little(Scalar::C128)).unwrap_err().to_string(),
            "dtype complex128 has no counterpart in the safetensors format"
        );
    }

    #[test]
    fn messages_stay_short() {
        let long = "\n".repeat(1_000_000);
        assert_eq!(brief(&long), "\\n".repeat(200) + "…");
        for json in [
            format!(
                r#"{{"{}":{{"dtype":"U8","shape":[],"data_offsets":[1,2]}}}}"#,
                "x".repeat(5000)
            ),
            format!(
                r#"{{"a":{{"dtype":"{}","shape":[],"data_offsets":[0,1]}}}}"#,
                "x".repeat(5000)
            ),
            format!(r#"{{"a":{{"dtype":"U8","shape":"{}"}}}}"#, "x".repeat(5000)),
            format!(r#"{{"__metadata__":"{}"}}"#, "\\n".repeat(5000)),
        ] {
            let mut file = (json.len() as u64).to_le_bytes().to_vec();
            file.extend(json.bytes());
            let message = read_contents(&mut file.as_slice(), None).unwrap_err().to_string();
            assert!(message.len() < 600 && !message.contains('\n'), "{message}");
        }
        let text = format!("{{'descr':'{}','fortran_order':False,'shape':()}}", "x".repeat(5000));
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((text.len() as u16).to_le_bytes());
        file.extend(text.bytes());
        let message = read_contents(&mut file.as_slice(), None).unwrap_err().to_string();
        assert!(message.len() < 600, "{message}");
    }

    #[test]
    fn empty_axes_do_not_excuse_the_others() {
        assert_eq!(data_bytes(&[3, 0], 32), Some(0));
        assert_eq!(data_bytes(&[1 << 62, 0], 32), None);
        assert_eq!(data_bytes(&[1 << 62], 0), Some(0));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), which in 0..4) {
            let mut file: Vec<u8> = match which {
                0 => vec![],
                1 => b"\x93NUMPY\x01\x00\x40\x00".to_vec(),
                2 => b"\x93NUMPY\x03\x00\x40\x00\x00\x00".to_vec(),
                _ => b"\x20\0\0\0\0\0\0\0{".to_vec(),
            };
            file.extend(bytes);
            let _ = read_contents(&mut file.as_slice(), Some(file.len() as u64));
        }
    }
}
