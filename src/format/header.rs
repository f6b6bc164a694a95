//! What the readers of headers share.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::io::Read;

use super::error::FormatError;
use super::tensors::Contents;
use super::{npy, safetensors};
use crate::shape::byte_count;

/// Append the next `len` bytes to `header`, which grows only with bytes that are really there.
pub(super) fn read_more(
    input: &mut dyn Read,
    header: &mut Vec<u8>,
    len: u64,
) -> Result<(), FormatError> {
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
pub(super) fn data_bytes(shape: &[u64], item_bits: u64) -> Option<u64> {
    let mut filled = shape.iter().filter(|len| **len > 0);
    let count = filled.try_fold(1u64, |product, &len| product.checked_mul(len))?;
    let bytes = byte_count(&[count], item_bits)?;
    Some(if shape.contains(&0) { 0 } else { bytes })
}

/// How many bytes tell a format.
pub const MAGIC_LEN: usize = 9;

/// Read the header of a `.npy` or `.safetensors` from `input`, and nothing after it.
///
/// `file_len` (bytes) is checked against the header; for a pipe, where it is not known, the caller
/// calls [`Contents::check_len`] at the end.
pub fn read_contents(input: &mut dyn Read, file_len: Option<u64>) -> Result<Contents, FormatError> {
    let mut first = Vec::new();
    Read::take(&mut *input, 8).read_to_end(&mut first)?;
    let mut whole = first.as_slice().chain(input);
    let contents = if npy::begins(&first) {
        npy::read(&mut whole)?
    } else if first.len() == 8 {
        safetensors::read(&mut whole)?
    } else if first.is_empty() {
        return Err(FormatError::Empty);
    } else {
        return Err(FormatError::Unrecognised);
    };
    match file_len {
        Some(len) => contents.check_len(len).map(|()| contents),
        None => Ok(contents),
    }
}

/// The first name that is that of one before it.
pub(crate) fn first_repeated<'a>(
    mut names: impl Iterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    // equal hashes first: they take less memory than a set of names
    let hasher = RandomState::new();
    let mut hashes: Vec<u64> = names.clone().map(|name| hasher.hash_one(name)).collect();
    hashes.sort_unstable();
    if hashes.windows(2).all(|two| two[0] != two[1]) {
        return None;
    }
    drop(hashes);
    let mut seen = HashSet::new();
    names.find(|name| !seen.insert(*name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::error::brief;
    use super::*;

    #[test]
    fn empty_axes_do_not_excuse_the_others() {
        assert_eq!(data_bytes(&[3, 0], 32), Some(0));
        assert_eq!(data_bytes(&[1 << 62, 0], 32), None);
        assert_eq!(data_bytes(&[1 << 62], 0), Some(0));
    }

    #[test]
    fn other_files_are_refused() {
        let message = |bytes: &[u8]| read_contents(&mut &*bytes, None).unwrap_err().to_string();
        assert_eq!(message(b""), "the file is empty");
        for other in [&b"PK\x03\x04xxxxxxxx"[..], b"hello", &[0; 100]] {
            assert_eq!(
                message(other),
                "not a .npy, .npz, .safetensors, .pt or .gguf file, nor the index of a sharded checkpoint"
            );
        }
        assert_eq!(
            message(b"\x93NUM"),
            "the file is cut short inside its header: 10 bytes are needed, 4 are there"
        );
    }

    #[test]
    fn messages_stay_short() {
        let long = "\n".repeat(1_000_000);
        assert_eq!(brief(&long), "\\n".repeat(100) + "…");
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

    proptest! {
        #[test]
        fn it_is_the_first_one_that_was_seen(names in prop::collection::vec("[a-d]{0,2}", 0..9)) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let seen = |&at: &usize| names[..at].contains(&names[at]);
            let first = (0..names.len()).find(seen).map(|at| names[at]);
            prop_assert_eq!(first_repeated(names.iter().copied()), first);
        }
    }
}
