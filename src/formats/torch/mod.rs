//! PyTorch's `.pt`: the zip archive that torch.save writes since version 1.6, and what it wrote before.
//!
//! ```text
//! model/data.pkl │ model/byteorder │ model/data/0 │ model/data/1 │ ...
//! ```
//!
//! `data.pkl` is a pickle, a program for a small machine, which makes the object that was saved; the members
//! below `data` are storages, bytes that tensors are views of. The machine here knows what makes tensors,
//! and the dicts, lists and tuples that they are in. It runs and imports nothing: what any other class or
//! function makes is opaque, and tensors in its arguments and its state are found.
//!
//! Before 1.6 torch.save wrote, and writes today where it is asked to, pickles one after the other, and behind them the
//! storages:
//!
//! ```text
//! magic number │ version │ system │ object │ keys of the storages │ count, bytes │ count, bytes │ ...
//! ```
//!
//! A storage has the number of its elements, of 8 bytes, in front of it; the bytes of an element stand in the object,
//! at the places where the storage is named. All numbers are little-endian, on every machine.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Read;
use std::ops::Range;
use std::rc::Rc;

use arrays::BytesPlace;
use machine::{Keeps, Made, PickleMachine};
use names::FoundTensor;
use ops::{PickleOp, PickleOps};
use value::{PickleValue, TorchTensor};

use super::FormatError;
use super::npz::{Members, NpzError};
use crate::dtype::Endian;
use crate::error::{Cause, ErrorKind, Fault};
use crate::shape::AsTuple;
use crate::source::{Reader, Source};
use crate::tensor::{TensorInfo, Tensors, brief, first_repeated};

mod arrays;
mod distributed;
mod machine;
mod names;
mod open;
mod ops;
mod output;
mod value;

pub(crate) use distributed::{FORMAT as DISTRIBUTED, METADATA};
pub(crate) use open::{FORMAT, open};
pub(crate) use output::OUTPUT;

/// The longest pickle that is read, in bytes, besides the elements in it. Of a million tensors, each has about a
/// hundred beside its name.
const MAX_PICKLE: u64 = 256_000_000;

/// The name of the pickle, and of the byte order, behind that of the folder.
const PICKLE: &str = "data.pkl";
const BYTE_ORDER: &str = "byteorder";

/// What TorchScript has beside a pickle.
const SCRIPT: &str = "constants.pkl";

/// The folder in an archive that torch.save wrote, with its `/`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TorchFolder(String);

impl TorchFolder {
    /// The folder with a pickle in it; empty where that lies in none.
    pub fn find(members: &Members) -> Option<TorchFolder> {
        let folder = |name: &str| {
            let folder = name.strip_suffix(PICKLE)?;
            let inner = folder.strip_suffix('/');
            let is_one = folder.is_empty() || inner.is_some_and(|inner| !inner.contains('/'));
            is_one.then(|| TorchFolder(folder.to_owned()))
        };
        members.iter().find_map(|member| folder(member.name))
    }

    /// Whether it is one of TorchScript, which is a program.
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

/// The byte order of the storages, by the text of its member.
pub fn byte_order(text: &[u8]) -> Result<Endian, TorchError> {
    match text {
        b"little" => Ok(Endian::Little),
        b"big" => Ok(Endian::Big),
        other => Err(TorchError::ByteOrder(String::from_utf8_lossy(other).into_owned())),
    }
}

/// Where a storage lies in the input.
#[derive(Clone, Debug)]
pub struct StoragePlace {
    /// The part of the input that holds it.
    pub part: usize,
    /// The range of the bytes, counted through all parts.
    pub bytes: Range<u64>,
}

#[derive(Debug, Default)]
pub struct TorchContents {
    /// The tensors, in the order in which they stand in the object.
    pub tensors: Tensors,
    /// Those that cannot be read, by name, and why.
    pub unreadable: Vec<(String, TorchError)>,
    /// The classes and functions that are not known, by name.
    pub opaque: Vec<String>,
}

/// Bytes that hold tensors.
pub enum StoredBytes<'a> {
    /// The storage of this name.
    Storage(&'a str),
    /// The source of the pickle.
    Pickle,
    /// These, which were decoded.
    Decoded(Vec<u8>),
}

/// Where bytes lie in the input, if there are such; [`NpzError::Member`] of a storage that cannot be read.
pub type PlaceBytes<'a> = &'a mut dyn FnMut(StoredBytes<'_>) -> Result<Option<StoragePlace>, Cause>;

/// What is in the object of a pickle, which is the range `pickle` of `source`.
pub fn read(
    source: &dyn Source,
    pickle: Range<u64>,
    endian: Endian,
    place: PlaceBytes<'_>,
) -> Result<TorchContents, Cause> {
    let len = pickle.end.saturating_sub(pickle.start);
    let ops = || PickleOps::new(source, pickle.clone());
    let asked = machine::asked(&mut ops())?;
    let made = PickleMachine::new(len, asked, Keeps::Nothing).run(&mut ops())?;
    contents(made, endian, place)
}

/// The tensors in what a pickle made.
fn contents(made: Made, endian: Endian, place: PlaceBytes<'_>) -> Result<TorchContents, Cause> {
    let Made { object, shared, opaque, decoded, .. } = made;
    let mut array_bytes = ArrayBytes { decoded: Some(decoded), places: [None, None] };
    let mut tensors = Tensors::default();
    let mut unreadable = Vec::new();
    names::visit_tensors(object, shared, &mut |name, tensor| {
        let placed = match tensor {
            Ok(FoundTensor::Torch(tensor)) => {
                placed(&tensor, endian, place)?.map_err(TorchError::from)
            }
            Ok(FoundTensor::Numpy(array)) => {
                let (StoragePlace { part, bytes }, start) =
                    array_bytes.place(array.place, place)?;
                Ok(array.at(start).placed(part, bytes.start))
            }
            Err(error) => Err(error),
        };
        match placed {
            Ok(tensor) => tensors.push(&TensorInfo { name: name.map(str::to_owned), ..tensor }),
            Err(error) => unreadable.push((name.unwrap_or_default().to_owned(), error)),
        }
        Ok(())
    })?;
    let names = tensors.names().map(Option::unwrap_or_default);
    let names = names.chain(unreadable.iter().map(|(name, _)| name.as_str()));
    if first_repeated(names).is_some() {
        (tensors, unreadable) = named_once(&tensors, unreadable);
    }
    Ok(TorchContents { tensors, unreadable, opaque: opaque.into_iter().collect() })
}

/// Where the elements of arrays lie in the input: those in the pickle, and those that were decoded.
struct ArrayBytes {
    decoded: Option<Vec<u8>>,
    places: [Option<StoragePlace>; 2],
}

impl ArrayBytes {
    /// Where such bytes lie, and the position of these among them.
    fn place(
        &mut self,
        bytes: BytesPlace,
        place: PlaceBytes<'_>,
    ) -> Result<(StoragePlace, u64), Cause> {
        let (number, start) = match bytes {
            BytesPlace::Pickle(start) => (0, start),
            BytesPlace::Decoded(start) => (1, start),
            BytesPlace::Undecoded => return Err(ops::damaged("its elements are no text")),
        };
        let placed = match self.places[number].clone() {
            Some(placed) => placed,
            None => {
                let stored = match number {
                    0 => StoredBytes::Pickle,
                    _ => StoredBytes::Decoded(self.decoded.take().unwrap_or_default()),
                };
                place(stored)?.ok_or(FormatError::Unrecognised)?
            }
        };
        self.places[number] = Some(placed.clone());
        Ok((placed, start))
    }
}

/// A tensor of an object, where its storage lies.
fn placed(
    tensor: &TorchTensor<'_>,
    endian: Endian,
    place: PlaceBytes<'_>,
) -> Result<Result<TensorInfo, TensorFault>, Cause> {
    let key = tensor.key;
    let place = match place(StoredBytes::Storage(key)) {
        Err(cause) => match cause.downcast()? {
            error @ NpzError::Member { .. } => return Ok(Err(error.into())),
            error => return Err(error.into()),
        },
        Ok(place) => place,
    };
    Ok(match place {
        Some(StoragePlace { part, bytes }) => tensor
            .place(0..bytes.end.saturating_sub(bytes.start), endian)
            .map(|it| it.placed(part, bytes.start)),
        // nothing is stored of nothing
        None if tensor.whole == 0 => tensor.place(0..0, endian),
        None => Err(TensorFault::NoStorage(key.to_string())),
    })
}

/// What is left of tensors, and of those that cannot be read, where several of one name become one that
/// cannot be.
fn named_once(
    tensors: &Tensors,
    unreadable: Vec<(String, TorchError)>,
) -> (Tensors, Vec<(String, TorchError)>) {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let names = tensors.names().map(Option::unwrap_or_default);
    for name in names.chain(unreadable.iter().map(|(name, _)| name.as_str())) {
        *counts.entry(name).or_default() += 1;
    }
    counts.retain(|_, count| *count > 1);
    let is_one = |name: &str| !counts.contains_key(name);
    let once = tensors.iter().filter(|it| is_one(it.name.as_deref().unwrap_or_default()));
    let once: Tensors = once.collect();
    let mut left: Vec<_> = unreadable.iter().filter(|(name, _)| is_one(name)).cloned().collect();
    let twice = counts.iter().map(|(name, count)| ((*name).to_owned(), TorchError::Twice(*count)));
    left.extend(twice);
    left.sort_by(|(one, _), (other, _)| one.cmp(other));
    (once, left)
}

/// What is wrong with a file of torch.save.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TorchError {
    #[error("its pickle is damaged: {0}")]
    Damaged(&'static str),
    #[error("its pickle has more than {0} bytes")]
    Long(u64),
    #[error("its pickle makes more than {0} objects")]
    Many(usize),
    #[error("its pickle makes objects that take more than {} MiB of memory", .0 >> 20)]
    Large(usize),
    #[error("its objects are nested deeper than {0} levels")]
    Deep(usize),
    #[error("opcode {0:#04x} of its pickle is not read")]
    Opcode(u8),
    #[error("the file calls `{0}` with arguments that it does not take")]
    Arguments(&'static str),
    #[error("it is marked as conjugated or negated, so that its elements are not those stored")]
    Lazy,
    #[error("its dtype is {0}, which is not read")]
    DType(Cow<'static, str>),
    /// What is no dtype, or one of objects.
    #[error("{0}")]
    Elements(String),
    #[error("its elements are written as text, of which at most {0} bytes are decoded")]
    Undecoded(usize),
    #[error("{0} tensors of the file have this name")]
    Twice(usize),
    #[error("the names of its tensors have more than {0} bytes")]
    Names(usize),
    #[error("its byte order is {:?}, neither little nor big", brief(.0))]
    ByteOrder(String),
    /// A tensor that is not in its storage.
    #[error(transparent)]
    Tensor(#[from] TensorFault),
    #[error("what follows its pickles are no storages: {0}")]
    Storages(&'static str),
}

impl Fault for TorchError {
    const OF: &'static str = "pytorch";

    fn kind(&self) -> ErrorKind {
        match self {
            TorchError::DType(_) => ErrorKind::DType,
            TorchError::Opcode(_) | TorchError::Lazy => ErrorKind::Unsupported,
            _ => ErrorKind::Damaged,
        }
    }
}

/// Why a tensor cannot be where a pickle says.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TensorFault {
    #[error("its storage, {:?}, is not in the file", brief(.0))]
    NoStorage(String),
    #[error("its storage cannot be read: {0}")]
    Member(#[from] NpzError),
    #[error("its storage is said to have {said} bytes, and has {found}")]
    ShortStorage { said: u64, found: u64 },
    #[error("its shape, strides and offset lead out of its storage of {0} bytes")]
    Outside(u64),
    #[error("shape {} has 2^63 bytes or more", AsTuple(.0))]
    TooLarge(Vec<u64>),
}

/// The number that an old file begins with, 0x1950a86a20f9469cfc6c, as a pickle without its protocol.
const OLD_MAGIC: &[u8] = b"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";

/// What stands before the magic number from protocol 4 on: an opcode and the length of the rest.
const OLD_FRAME: &[u8] = b"\x95\x0d\0\0\0\0\0\0\0";

/// The only version of the old format.
const OLD_VERSION: i64 = 1001;

/// Whether a file that begins with these bytes, few or many, may be one of an old torch.save.
pub(crate) fn begins_old(first: &[u8]) -> bool {
    let [0x80, 2..=5, rest @ ..] = first else { return false };
    let as_far = |whole: &[u8]| {
        let len = rest.len().min(whole.len());
        len > 4 && rest[..len] == whole[..len]
    };
    as_far(OLD_MAGIC) || as_far(OLD_FRAME)
}

/// What is in a file of an old torch.save.
pub fn read_old(
    source: &dyn Source,
    decode: &mut dyn FnMut(Vec<u8>) -> Result<StoragePlace, Cause>,
) -> Result<TorchContents, Cause> {
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
        return Err(TorchError::Damaged("its version is unknown").into());
    }
    let (_, object) = last_value(source, start)?;
    let (asked, keys) = reading(source, object, machine::asked)?;
    let machine = PickleMachine::new(keys - object, asked, Keeps::Storages);
    let run = |ops: &mut PickleOps<'_>| machine.run(ops);
    let (mut made, keys) = reading(source, object, run)?;
    let (keys, storages) = reading(source, keys, texts)?;
    let places = places(source, &keys, &mut made, storages)?;
    let file = |bytes| StoragePlace { part: 0, bytes };
    contents(made, Endian::Little, &mut |stored| match stored {
        StoredBytes::Storage(key) => Ok(places.get(key).cloned().map(file)),
        StoredBytes::Pickle => Ok(Some(file(0..source.len()))),
        StoredBytes::Decoded(bytes) => decode(bytes).map(Some),
    })
}

/// Read a pickle that begins there, and say where it ends.
fn reading<T>(
    source: &dyn Source,
    start: u64,
    read: impl FnOnce(&mut PickleOps<'_>) -> Result<T, Cause>,
) -> Result<(T, u64), Cause> {
    let mut ops = PickleOps::new(source, start..source.len());
    let read = read(&mut ops)?;
    Ok((read, ops.position()))
}

/// The last plain value of a pickle.
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

/// Where the storages with these keys lie, of which the first begins at `start`. Those behind one whose
/// elements are of unknown length cannot be found.
fn places(
    source: &dyn Source,
    keys: &[Rc<str>],
    made: &mut Made,
    start: u64,
) -> Result<HashMap<Rc<str>, Range<u64>>, Cause> {
    let mut places = HashMap::new();
    let mut at = start;
    for key in keys {
        let Some(Some(item)) = made.storages.remove(key) else { break };
        let mut count = [0; 8];
        Reader::at(source, at).read_exact(&mut count).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => Cause::from(TorchError::Storages(SHORT)),
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
