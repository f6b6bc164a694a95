//! Why a header cannot be read or written.

use std::borrow::Cow;
use std::{fmt, io};

use super::foreign::Foreign;
use super::gguf::GgufError;
use super::npy::NpyError;
use super::npz::{MemberFault, NpzError};
use super::safetensors::SafetensorsError;
use super::shards::ShardsError;
use super::torch::TorchError;
use crate::dtype::DType;

pub use crate::dtype::is_printable;

/// The extensions of the files that are recognised by how they begin.
const EXTENSIONS: &str = ".npy, .npz, .safetensors, .pt or .gguf";

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
    #[error("not a {EXTENSIONS} file, nor the index of a sharded checkpoint")]
    Unrecognised,
    /// The file is of a kind that is known, and not read.
    #[error("{kind}, {why}", kind = .0, why = .0.not_read())]
    Foreign(Foreign),
    /// The file ends before its header does. Lengths in bytes.
    #[error(
        "the file is cut short inside its header: {expected} bytes are needed, {found} are there"
    )]
    HeaderCutShort {
        /// Bytes that the header takes, as far as is known.
        expected: u64,
        found: u64,
    },
    /// The file ends before its data does. Lengths in bytes.
    #[error("the file is cut short: its header asks for {expected} bytes, {found} are there")]
    CutShort { expected: u64, found: u64 },
    /// The file goes on after its data. Lengths in bytes.
    #[error("{} bytes follow the data: the header asks for {expected} bytes, {found} are there",
        .found - .expected)]
    TrailingBytes { expected: u64, found: u64 },
    /// A `.npy` header is invalid or not supported.
    #[error("npy header: {0}")]
    Npy(#[from] NpyError),
    /// A `.safetensors` header is invalid or not supported.
    #[error("safetensors header: {0}")]
    Safetensors(#[from] SafetensorsError),
    /// A `.npz` archive cannot be read.
    #[error("zip: {0}")]
    Npz(#[from] NpzError),
    /// A member of an archive cannot be read.
    #[error(transparent)]
    Member(#[from] MemberFault),
    /// A file of torch.save cannot be read.
    #[error("pytorch: {0}")]
    Torch(#[from] TorchError),
    /// A file of HDF5, or a dataset of it, cannot be read.
    #[cfg(feature = "hdf5")]
    #[error("hdf5: {0}")]
    Hdf5(#[from] super::hdf5::Hdf5Error),
    /// An array of Zarr cannot be read.
    #[cfg(feature = "zarr")]
    #[error("zarr: {0}")]
    Zarr(#[from] super::zarr::ZarrError),
    /// A `.gguf` cannot be read.
    #[error("gguf: {0}")]
    Gguf(#[from] GgufError),
    /// The index of a sharded checkpoint is invalid.
    #[error("checkpoint index: {0}")]
    Shards(#[from] ShardsError),
    /// The format has no such type.
    #[error("dtype {dtype} has no counterpart in the {format} format")]
    Unsupported { dtype: DType, format: &'static str },
}

// Text of files in messages: shortened, and printable.
//
// What is printable is one rule everywhere, that of Python's `str.isprintable`: no control character
// reaches a terminal, no mark turns the direction of a line, and nothing is invisible. NumPy's print
// has it for strings.

/// The most characters of a text that messages show.
const MOST: usize = 200;

/// A text of any length, such as the name of a tensor, for a message that quotes it: its first 200
/// characters.
pub fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MOST) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// The same, printable; escapes may not make it longer either.
pub(super) fn brief(text: &str) -> String {
    shortened(&printable(&shortened(text))).into_owned()
}

/// A text on one line, with escapes (`\n`, `\u{202e}`) for all characters that are not printable.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_printable) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        if is_printable(char) { shown.push(char) } else { shown.extend(char.escape_default()) }
    }
    Cow::Owned(shown)
}

/// Append JSON, whose characters that are not printable stand in strings, where escapes (`\u202e`) say
/// the same.
pub fn write_printable_json(out: &mut dyn fmt::Write, json: &str) -> fmt::Result {
    if json.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return out.write_str(json);
    }
    for part in json.split_inclusive(|char| !is_printable(char)) {
        match part.char_indices().next_back().filter(|&(_, last)| !is_printable(last)) {
            None => out.write_str(part)?,
            Some((at, last)) => {
                out.write_str(&part[..at])?;
                for unit in last.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}")?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_printable_is_escaped() {
        let name = "a\u{9b}\u{85}\u{7f}\u{202e}\u{2028}\u{200d}\u{e000}\u{1b}\n\u{e0001}é\u{301} z";
        let shown = "a\\u{9b}\\u{85}\\u{7f}\\u{202e}\\u{2028}\\u{200d}\\u{e000}\\u{1b}\\n\\u{e0001}é\u{301} z";
        assert_eq!(printable(name), shown);
        assert_eq!(brief(name), shown);
        assert!(matches!(printable(shown), Cow::Borrowed(_)));
    }

    #[test]
    fn all_characters_are_escaped_or_printable() {
        for char in '\0'..=char::MAX {
            let text = String::from(char);
            let shown = printable(&text);
            assert!(shown.chars().all(is_printable), "{char:?}");
            assert_eq!(shown == text, is_printable(char), "{char:?}");
            // control and surrogate-like categories that no version of Unicode makes printable
            if char.is_control() || char.is_whitespace() && char != ' ' {
                assert!(!is_printable(char), "{char:?}");
            }
            if char.is_alphanumeric() {
                assert!(is_printable(char), "{char:?}");
            }
        }
    }

    #[test]
    fn json_means_the_same_and_is_printable() {
        for char in '\0'..=char::MAX {
            let text = format!("{char}a{char}");
            let mut json = String::new();
            write_printable_json(&mut json, &serde_json::to_string(&text).unwrap()).unwrap();
            assert!(json.chars().all(is_printable), "{char:?}");
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }
}
