//! PyTorch's `.pt`: the zip archive that torch.save writes since version 1.6, and the older format.
//!
//! ```text
//! model/data.pkl │ model/byteorder │ model/data/0 │ model/data/1 │ ...
//! ```
//!
//! `data.pkl` is a [pickle](super::pickle) of the saved object. The members below `data` are storages: bytes that
//! tensors are views of.
//!
//! A file in the older format has several pickles, and after them the storages. torch.save still writes it with
//! `_use_new_zipfile_serialization=False`:
//!
//! ```text
//! magic number │ version │ system │ object │ keys of the storages │ count, bytes │ count, bytes │ ...
//! ```
//!
//! Before each storage stands the number of its elements, in 8 bytes. The pickle of the object says how many bytes an
//! element of each storage has. All numbers are little-endian, on every machine.

use std::collections::HashMap;
use std::io::Read;
use std::ops::Range;
use std::rc::Rc;

use super::FormatError;
use super::npz::Members;
use super::pickle::machine::{self, Keeps, Made, PickleMachine};
use super::pickle::ops::{PickleOp, PickleOps};
use super::pickle::texts::Decoded;
use super::pickle::value::PickleValue;
use super::pickle::{
    MAX_DECODED, PickleContents, PickleError, StorageRange, StoredBytes, contents,
};
use crate::dtype::Endian;
use crate::error::{Cause, ErrorKind, Fault};
use crate::source::{Reader, Source};
use crate::tensor::brief;

mod distributed;
mod open;
mod output;

pub(crate) use distributed::{FORMAT as DISTRIBUTED, METADATA};
pub(crate) use open::{FORMAT, open};
pub(crate) use output::OUTPUT;

/// The names of two members in the folder of an archive: the pickle, and the byte order.
const PICKLE: &str = "data.pkl";
const BYTE_ORDER: &str = "byteorder";

/// The member that TorchScript has besides a pickle.
const SCRIPT: &str = "constants.pkl";

/// The folder in an archive that torch.save wrote, with its `/`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TorchFolder(String);

impl TorchFolder {
    /// Find the folder that holds the pickle; empty if the pickle is at the top of the archive.
    pub fn find(members: &Members) -> Option<TorchFolder> {
        let folder = |name: &str| {
            let folder = name.strip_suffix(PICKLE)?;
            let inner = folder.strip_suffix('/');
            let is_one = folder.is_empty() || inner.is_some_and(|inner| !inner.contains('/'));
            is_one.then(|| TorchFolder(folder.to_owned()))
        };
        members.iter().find_map(|member| folder(member.name))
    }

    /// Whether the folder is a TorchScript program.
    pub fn is_script(&self, members: &Members) -> bool {
        let script = self.0.clone() + SCRIPT;
        members.iter().any(|member| member.name == script)
    }

    pub fn pickle(&self) -> String {
        self.0.clone() + PICKLE
    }

    /// The member with the byte order; archives of old versions have none.
    pub fn byte_order(&self) -> String {
        self.0.clone() + BYTE_ORDER
    }

    pub fn storage(&self, key: &str) -> String {
        format!("{}data/{key}", self.0)
    }
}

/// Parse the member that names the byte order of the storages.
pub fn byte_order(text: &[u8]) -> Result<Endian, TorchError> {
    match text {
        b"little" => Ok(Endian::Little),
        b"big" => Ok(Endian::Big),
        other => Err(TorchError::ByteOrder(String::from_utf8_lossy(other).into_owned())),
    }
}

/// A fault of a file of torch.save.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TorchError {
    #[error(transparent)]
    Pickle(#[from] PickleError),
    #[error("its byte order is {:?}, neither little nor big", brief(.0))]
    ByteOrder(String),
    #[error("the storages after its pickles are damaged: {0}")]
    Storages(&'static str),
}

impl Fault for TorchError {
    const OF: &'static str = "pytorch";

    fn kind(&self) -> ErrorKind {
        match self {
            TorchError::Pickle(error) => error.kind(),
            TorchError::ByteOrder(_) | TorchError::Storages(_) => ErrorKind::Damaged,
        }
    }
}

/// The error of a pickle that torch.save wrote.
fn of_torch(cause: Cause) -> Cause {
    match cause.downcast::<PickleError>() {
        Ok(error) => TorchError::from(error).into(),
        Err(cause) => cause,
    }
}

/// The magic number of an old file, 0x1950a86a20f9469cfc6c, as a pickle without its first two bytes (the protocol).
const OLD_MAGIC: &[u8] = b"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";

/// The bytes before the magic number from protocol 4 on: an opcode and the length of the rest.
const OLD_FRAME: &[u8] = b"\x95\x0d\0\0\0\0\0\0\0";

/// The only version of the old format.
const OLD_VERSION: i64 = 1001;

/// Whether a file that begins with `first`, which may be short, can be in the older format of torch.save.
pub(crate) fn begins_old(first: &[u8]) -> bool {
    let [0x80, 2..=5, rest @ ..] = first else { return false };
    let as_far = |whole: &[u8]| {
        let len = rest.len().min(whole.len());
        len > 4 && rest[..len] == whole[..len]
    };
    as_far(OLD_MAGIC) || as_far(OLD_FRAME)
}

/// Read a file in the older format of torch.save.
pub fn read_old(
    source: &dyn Source,
    decode: &mut dyn FnMut(Vec<u8>) -> Result<StorageRange, Cause>,
) -> Result<PickleContents, Cause> {
    let mut magic = Vec::new();
    Reader::new(source)
        .take((2 + OLD_FRAME.len() + OLD_MAGIC.len()) as u64)
        .read_to_end(&mut magic)?;
    let behind = magic.get(2..).unwrap_or_default();
    let behind = behind.strip_prefix(OLD_FRAME).unwrap_or(behind);
    if !behind.starts_with(OLD_MAGIC) {
        return Err(FormatError::Unrecognised.into());
    }
    let start = (magic.len() - behind.len() + OLD_MAGIC.len()) as u64;
    let (version, start) = last_value(source, start)?;
    if !matches!(version, Some(PickleValue::Int(OLD_VERSION))) {
        return Err(PickleError::Damaged("its version is unknown").into());
    }
    let (_, object) = last_value(source, start)?;
    let (asked, keys) = reading(source, object, machine::asked)?;
    let machine =
        PickleMachine::new(keys - object, asked, Keeps::Storages, Decoded::new(MAX_DECODED));
    let run = |ops: &mut PickleOps<'_>| machine.run(ops);
    let (mut made, keys) = reading(source, object, run)?;
    let (keys, storages) = reading(source, keys, texts)?;
    let ranges = storage_ranges(source, &keys, &mut made, storages)?;
    let file = |bytes| StorageRange { shard: 0, bytes };
    contents(made, Vec::new(), Endian::Little, &mut |stored| match stored {
        StoredBytes::Storage(key) => Ok(ranges.get(key).cloned().map(file)),
        StoredBytes::Pickle => Ok(Some(file(0..source.len()))),
        StoredBytes::Decoded(bytes) => decode(bytes).map(Some),
    })
}

/// Read the pickle that begins at `start`; return what `read` makes of it, and the position of its end.
fn reading<T>(
    source: &dyn Source,
    start: u64,
    read: impl FnOnce(&mut PickleOps<'_>) -> Result<T, Cause>,
) -> Result<(T, u64), Cause> {
    let mut ops = PickleOps::new(source, start..source.len());
    let read = read(&mut ops)?;
    Ok((read, ops.position()))
}

/// The last plain value that a pickle pushes, and the position of the pickle's end.
fn last_value(source: &dyn Source, start: u64) -> Result<(Option<PickleValue>, u64), Cause> {
    reading(source, start, |ops| {
        let mut last = None;
        loop {
            match ops.next_op()? {
                PickleOp::Stop => return Ok(last),
                PickleOp::Push(value) => last = Some(value),
                _ => {}
            }
        }
    })
}

fn texts(ops: &mut PickleOps<'_>) -> Result<Vec<Rc<str>>, Cause> {
    let mut texts = Vec::new();
    loop {
        match ops.next_op()? {
            PickleOp::Stop => return Ok(texts),
            PickleOp::Push(PickleValue::Text(text)) => texts.push(text),
            _ => {}
        }
    }
}

/// The byte ranges of the storages with these keys. The first storage begins at `start`. After a storage of unknown
/// length no other storage can be found.
fn storage_ranges(
    source: &dyn Source,
    keys: &[Rc<str>],
    made: &mut Made,
    start: u64,
) -> Result<HashMap<Rc<str>, Range<u64>>, Cause> {
    let mut ranges = HashMap::new();
    let mut at = start;
    for key in keys {
        let Some(Some(item)) = made.storages.remove(key) else { break };
        let mut count = [0; 8];
        Reader::at(source, at).read_exact(&mut count).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => Cause::from(TorchError::Storages(SHORT)),
            _ => error.into(),
        })?;
        let len = u64::from_le_bytes(count).checked_mul(item);
        let range = len.and_then(|len| Some(at + 8..(at + 8).checked_add(len)?));
        let range = range.filter(|range| range.end <= source.len());
        let range = range.ok_or(TorchError::Storages(SHORT))?;
        at = range.end;
        ranges.insert(Rc::clone(key), range);
    }
    Ok(ranges)
}

const SHORT: &str = "the file ends too early";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_files_are_told_by_their_first_bytes() {
        assert!(begins_old(b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a"));
        assert!(begins_old(b"\x80\x04\x95\x0d\0\0\0\0\0"));
        assert!(!begins_old(b"\x80\x04\x95\x0e\0\0\0\0\0"));
        assert!(!begins_old(b"\x80\x02}q\0."));
    }
}
