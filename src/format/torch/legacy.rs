//! What torch.save wrote before version 1.6, and writes today where it is asked to: pickles one after the
//! other, and behind them the storages.
//!
//! ```text
//! magic number │ version │ system │ object │ keys of the storages │ count, bytes │ count, bytes │ ...
//! ```
//!
//! Each of the first five is a pickle. A storage has the number of its elements, of 8 bytes, in front of
//! it; the bytes of an element stand in the object, at the places where the storage is named. All numbers
//! are little-endian, on every machine.

use std::collections::HashMap;
use std::io::{Read, Take};
use std::ops::Range;
use std::rc::Rc;

use super::machine::{Made, PickleMachine};
use super::ops::{PickleOp, PickleOps};
use super::value::PickleValue;
use super::{MAX_PICKLE, StoragePlace, TorchContents, TorchError, contents, machine};
use crate::dtype::Endian;
use crate::format::error::FormatError;
use crate::source::{Reader, Source};

/// The number that comes first, 0x1950a86a20f9469cfc6c, as a pickle without its protocol.
const MAGIC: &[u8] = b"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";

/// What stands before it from protocol 4 on: an opcode and the length of the rest.
const FRAME: &[u8] = b"\x95\x0d\0\0\0\0\0\0\0";

/// The only version that there was.
const VERSION: i64 = 1001;

/// Whether a file that begins with these bytes, few or many, may be one of an old torch.save.
pub(crate) fn begins(first: &[u8]) -> bool {
    let [0x80, 2..=5, rest @ ..] = first else { return false };
    let as_far = |whole: &[u8]| {
        let len = rest.len().min(whole.len());
        len > 4 && rest[..len] == whole[..len]
    };
    as_far(MAGIC) || as_far(FRAME)
}

/// What is in a file of an old torch.save.
pub fn read_old(source: &dyn Source) -> Result<TorchContents, FormatError> {
    let mut magic = Vec::new();
    Reader::new(source).take((2 + FRAME.len() + MAGIC.len()) as u64).read_to_end(&mut magic)?;
    let behind = magic.get(2..).unwrap_or_default();
    let behind = behind.strip_prefix(FRAME).unwrap_or(behind);
    if !behind.starts_with(MAGIC) {
        return Err(FormatError::Unrecognised);
    }
    let start = (magic.len() - behind.len() + MAGIC.len()) as u64;
    let (version, start) = last_value(source, start)?;
    if !matches!(version, Some(PickleValue::Int(VERSION))) {
        return Err(TorchError::Damaged("its version is unknown").into());
    }
    let (_, object) = last_value(source, start)?;
    let (asked, keys) = reading(source, object, machine::asked)?;
    let machine = PickleMachine::new(keys - object, asked, true);
    let run = |ops: &mut PickleOps<_>| machine.run(ops);
    let (mut made, keys) = reading(source, object, run)?;
    let (keys, storages) = reading(source, keys, texts)?;
    let places = places(source, &keys, &mut made, storages)?;
    contents(made, Endian::Little, &mut |key| {
        let bytes = places.get(key).cloned();
        Ok(bytes.map(|bytes| StoragePlace { part: 0, bytes }))
    })
}

/// Read a pickle that begins there, and say where it ends.
fn reading<'s, T>(
    source: &'s dyn Source,
    start: u64,
    read: impl FnOnce(&mut PickleOps<Take<Reader<'s>>>) -> Result<T, FormatError>,
) -> Result<(T, u64), FormatError> {
    let mut ops = PickleOps(Reader::at(source, start).take(MAX_PICKLE));
    let read = read(&mut ops);
    match ops.0.limit() {
        0 if matches!(read, Err(FormatError::Torch(TorchError::Damaged(_)))) => {
            Err(TorchError::Long { len: source.len() - start, most: MAX_PICKLE }.into())
        }
        left => Ok((read?, start + (MAX_PICKLE - left))),
    }
}

/// The last plain value of a pickle.
fn last_value(source: &dyn Source, start: u64) -> Result<(Option<PickleValue>, u64), FormatError> {
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

/// The texts of a list.
fn texts(ops: &mut PickleOps<Take<Reader<'_>>>) -> Result<Vec<Rc<str>>, FormatError> {
    let mut texts = Vec::new();
    loop {
        match ops.next_op()? {
            PickleOp::Stop => return Ok(texts),
            PickleOp::Push(PickleValue::Text(text)) => texts.push(text),
            _ => {}
        }
    }
}

/// Where the storages with these keys lie, of which the first begins at `start`. Those behind one whose
/// elements are of unknown length cannot be found.
fn places(
    source: &dyn Source,
    keys: &[Rc<str>],
    made: &mut Made,
    start: u64,
) -> Result<HashMap<Rc<str>, Range<u64>>, FormatError> {
    let mut places = HashMap::new();
    let mut at = start;
    for key in keys {
        let Some(Some(item)) = made.storages.remove(key) else { break };
        let mut count = [0; 8];
        Reader::at(source, at).read_exact(&mut count).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => FormatError::from(TorchError::Storages(SHORT)),
            _ => error.into(),
        })?;
        let len = u64::from_le_bytes(count).checked_mul(item);
        let place = len.and_then(|len| Some(at + 8..(at + 8).checked_add(len)?));
        let place = place.filter(|place| place.end <= source.len());
        let place = place.ok_or(TorchError::Storages(SHORT))?;
        at = place.end;
        places.insert(Rc::clone(key), place);
    }
    Ok(places)
}

const SHORT: &str = "the file ends too early";
