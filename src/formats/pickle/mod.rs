//! Pickles of Python, as far as tensors of PyTorch and arrays of NumPy are in them.
//!
//! A pickle is a program for a small machine, which makes the object that was saved. The machine here knows what makes
//! tensors and arrays, and the dicts, lists and tuples that they are in. It runs and imports nothing: what any other
//! class or function makes is opaque, and tensors in its arguments and its state are found.
//!
//! A pickle may be a file of its own, a member of PyTorch's `.pt`, or what follows the header of a `.npy`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use arrays::ArrayObjects;
use machine::{Keeps, Made, PickleMachine};
use names::FoundTensor;
use ops::PickleOps;
use tensors::TorchTensor;
use texts::{BytesLocation, Decoded};
use value::PickleValue;

use super::FormatError;
use super::npz::NpzError;
use crate::dtype::Endian;
use crate::error::{Cause, ErrorKind, Fault};
use crate::shape::AsTuple;
use crate::source::Source;
use crate::tensor::{TensorInfo, Tensors, brief, first_repeated};

mod arrays;
mod calls;
mod dtypes;
pub(super) mod globals;
pub(super) mod items;
pub(super) mod machine;
mod names;
mod open;
pub(super) mod ops;
mod tensors;
pub(super) mod texts;
pub(super) mod value;

pub(crate) use open::{FORMAT, input_of, open_all, open_objects};

/// The longest pickle that is read, in bytes, besides the elements in it. Of a million tensors, each has about a
/// hundred beside its name.
const MAX_PICKLE: u64 = 256_000_000;

/// The most bytes of elements that are decoded.
pub(super) const MAX_DECODED: usize = 64_000_000;

/// The bytes of a storage in the input.
#[derive(Clone, Debug)]
pub struct StorageRange {
    /// The number of the shard that holds it.
    pub shard: usize,
    /// The range of the bytes, counted through all shards.
    pub bytes: Range<u64>,
}

#[derive(Debug, Default)]
pub struct PickleContents {
    /// The tensors, in the order in which they stand in the object.
    pub tensors: Tensors,
    /// The tensors that cannot be read, by name, and the reasons.
    pub unreadable: Vec<(String, PickleError)>,
    /// The classes and functions that are not known, by name.
    pub opaque: Vec<String>,
    /// The object in words.
    what: String,
    /// How many bytes of elements were decoded.
    pub(super) decoded_len: usize,
    /// The position behind the pickle.
    end: u64,
}

impl PickleContents {
    /// The contents, or an error that names the object, if nothing in it is an array or a tensor.
    pub(super) fn with_tensors(self) -> Result<PickleContents, PickleError> {
        if !self.tensors.is_empty() || !self.unreadable.is_empty() {
            return Ok(self);
        }
        let PickleContents { mut what, opaque, .. } = self;
        for (number, name) in opaque.iter().take(MAX_NAMED).enumerate() {
            what += if number == 0 { "; it names " } else { ", " };
            what += name;
        }
        if let Some(more) = opaque.len().checked_sub(MAX_NAMED).filter(|more| *more > 0) {
            what += &format!(" and {more} more");
        }
        Err(PickleError::NoTensors(what))
    }
}

/// The most classes and functions that an error names.
const MAX_NAMED: usize = 3;

/// Bytes that hold tensors.
pub enum StoredBytes<'a> {
    /// The storage of this name.
    Storage(&'a str),
    /// The source of the pickle.
    Pickle,
    /// Bytes that were decoded.
    Decoded(Vec<u8>),
}

/// A function that finds the bytes in the input; `None` if they are not there, [`NpzError::Member`] of a storage
/// that cannot be read.
pub type LocateBytes<'a> =
    &'a mut dyn FnMut(StoredBytes<'_>) -> Result<Option<StorageRange>, Cause>;

/// A pickle in a range of a source.
pub struct Pickle<'s> {
    pub source: &'s dyn Source,
    pub range: Range<u64>,
    /// The byte order of storages.
    pub endian: Endian,
    /// Whether its object is one that np.save wrote: tensors in an array of Python objects are found.
    pub is_array: bool,
    /// The most bytes of elements that are decoded.
    pub most_decoded: usize,
}

impl<'s> Pickle<'s> {
    pub fn new(source: &'s dyn Source, range: Range<u64>) -> Pickle<'s> {
        let endian = Endian::Little;
        Pickle { source, range, endian, is_array: false, most_decoded: MAX_DECODED }
    }

    /// Read the object of the pickle.
    pub fn read(self, locate: LocateBytes<'_>) -> Result<PickleContents, Cause> {
        let Pickle { source, range, endian, is_array, most_decoded } = self;
        let len = range.end.saturating_sub(range.start);
        let ops = || PickleOps::new(source, range.clone());
        let asked = machine::asked(&mut ops())?;
        let decoded = Decoded::new(most_decoded);
        let machine = PickleMachine::new(len, asked, Keeps::Nothing, decoded);
        let mut ops = ops();
        let mut made = machine.run(&mut ops)?;
        let end = ops.position();
        let what = made.object.described(&made.shared);
        let axes = if is_array { made.enter_array() } else { Vec::new() };
        Ok(PickleContents { what, end, ..contents(made, axes, endian, locate)? })
    }
}

impl Made {
    /// Go from an array of Python objects to these, and return its axes; from one without axes to its only object.
    fn enter_array(&mut self) -> Vec<u64> {
        let PickleValue::Array(array) = &self.object else { return Vec::new() };
        let Some(ArrayObjects { shape, list }) = array.objects() else { return Vec::new() };
        let axes = shape.to_vec();
        let inner = match list {
            PickleValue::Shared(at) if axes.is_empty() => {
                let first = self.shared.get(*at).and_then(|list| list.items().next());
                first.map_or(PickleValue::Plain, |item| item.value)
            }
            list => list.clone(),
        };
        self.object = inner;
        axes
    }
}

/// The tensors in what a pickle made.
pub(super) fn contents(
    made: Made,
    axes: Vec<u64>,
    endian: Endian,
    locate: LocateBytes<'_>,
) -> Result<PickleContents, Cause> {
    let Made { object, shared, opaque, decoded, .. } = made;
    let decoded_len = decoded.len();
    let mut array_bytes = ArrayBytes { decoded: Some(decoded), ranges: [None, None] };
    let mut tensors = Tensors::default();
    let mut unreadable = Vec::new();
    names::visit_tensors(object, axes, shared, &mut |name, tensor| {
        let placed = match tensor {
            Ok(FoundTensor::Torch(tensor)) => {
                placed(&tensor, endian, locate)?.map_err(PickleError::from)
            }
            Ok(FoundTensor::Numpy(array)) => {
                let (StorageRange { shard, bytes }, start) =
                    array_bytes.locate(array.location, locate)?;
                Ok(array.at(start).placed(shard, bytes.start))
            }
            Err(error) => Err(error),
        };
        match placed {
            Ok(tensor) => tensors.push(&TensorInfo { name: name.map(str::to_owned), ..tensor }),
            Err(error) => unreadable.push((name.unwrap_or_default().to_owned(), error)),
        }
        Ok(())
    })?;
    let twice = |name, count| (name, PickleError::Twice(count));
    let (tensors, unreadable) = named_once(tensors, unreadable, |(name, _)| name, twice);
    let opaque = opaque.into_iter().collect();
    Ok(PickleContents { tensors, unreadable, opaque, decoded_len, ..PickleContents::default() })
}

/// The bytes of arrays in the input: those in the pickle, and decoded ones.
struct ArrayBytes {
    decoded: Option<Vec<u8>>,
    ranges: [Option<StorageRange>; 2],
}

impl ArrayBytes {
    /// Find these bytes in the input, and return the position of the first byte.
    fn locate(
        &mut self,
        bytes: BytesLocation,
        locate: LocateBytes<'_>,
    ) -> Result<(StorageRange, u64), Cause> {
        let (number, start) = match bytes {
            BytesLocation::Pickle(start) => (0, start),
            BytesLocation::Decoded(start) => (1, start),
            BytesLocation::Undecoded => return Err(ops::damaged("its elements are not text")),
        };
        let placed = match self.ranges[number].clone() {
            Some(placed) => placed,
            None => {
                let stored = match number {
                    0 => StoredBytes::Pickle,
                    _ => StoredBytes::Decoded(self.decoded.take().unwrap_or_default()),
                };
                locate(stored)?.ok_or(FormatError::Unrecognised)?
            }
        };
        self.ranges[number] = Some(placed.clone());
        Ok((placed, start))
    }
}

/// A tensor of an object, with the position of its storage.
fn placed(
    tensor: &TorchTensor<'_>,
    endian: Endian,
    locate: LocateBytes<'_>,
) -> Result<Result<TensorInfo, TensorFault>, Cause> {
    let key = tensor.key;
    let range = match locate(StoredBytes::Storage(key)) {
        Err(cause) => match cause.downcast()? {
            error @ NpzError::Member { .. } => return Ok(Err(error.into())),
            error => return Err(error.into()),
        },
        Ok(range) => range,
    };
    Ok(match range {
        Some(StorageRange { shard, bytes }) => tensor
            .place(0..bytes.end.saturating_sub(bytes.start), endian)
            .map(|it| it.placed(shard, bytes.start)),
        // an empty storage is not in the file
        None if tensor.whole == 0 => tensor.place(0..0, endian),
        None => Err(TensorFault::NoStorage(key.to_string())),
    })
}

/// Keep names that occur once; tensors or unreadable ones that share a name become one that cannot
/// be read.
pub(super) fn named_once<U>(
    tensors: Tensors,
    mut unreadable: Vec<U>,
    name_of: impl Fn(&U) -> &str,
    twice: impl Fn(String, usize) -> U,
) -> (Tensors, Vec<U>) {
    let names = || {
        let names = tensors.names().map(Option::unwrap_or_default);
        names.chain(unreadable.iter().map(&name_of))
    };
    if first_repeated(names()).is_none() {
        return (tensors, unreadable);
    }
    let mut counts: HashMap<String, usize> = HashMap::new();
    for name in names() {
        *counts.entry(name.to_owned()).or_default() += 1;
    }
    counts.retain(|_, count| *count > 1);
    let is_one = |name: &str| !counts.contains_key(name);
    let once = tensors.iter().filter(|it| is_one(it.name.as_deref().unwrap_or_default()));
    let once: Tensors = once.collect();
    unreadable.retain(|it| is_one(name_of(it)));
    unreadable.extend(counts.into_iter().map(|(name, count)| twice(name, count)));
    unreadable.sort_by(|one, other| name_of(one).cmp(name_of(other)));
    (once, unreadable)
}

/// A fault of a pickle, or of an object in it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PickleError {
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
    /// An object without arrays or tensors, in words.
    #[error("a pickle without arrays, which holds {0}")]
    NoTensors(String),
    #[error("opcode {0:#04x} of its pickle is not supported")]
    Opcode(u8),
    #[error(
        "joblib wrote it, with elements between the instructions of the pickle, which is not read"
    )]
    Joblib,
    #[error(
        "its storage is a pickle of its own, as pickle.dump writes it: only torch.save is read"
    )]
    Nested,
    #[error("its arrays lie in buffers outside of the pickle (protocol 5, out of band)")]
    OutOfBand,
    #[error("the file calls `{0}` with invalid arguments")]
    Arguments(&'static str),
    #[error("it is marked as conjugated or negated: its values are not the stored elements")]
    Lazy,
    #[error("its dtype {0} is not supported")]
    DType(Cow<'static, str>),
    /// A dtype that is not understood.
    #[error("{0}")]
    Elements(String),
    #[error("arrays of Python objects are not read")]
    Objects,
    #[error("its elements are written as text, of which at most {0} bytes are decoded")]
    Undecoded(usize),
    #[error("{0} tensors of the file have this name")]
    Twice(usize),
    #[error("the names of its tensors have more than {0} bytes")]
    Names(usize),
    /// A tensor that is not in its storage.
    #[error(transparent)]
    Tensor(#[from] TensorFault),
}

impl Fault for PickleError {
    fn kind(&self) -> ErrorKind {
        match self {
            PickleError::DType(_) => ErrorKind::DType,
            PickleError::NoTensors(_)
            | PickleError::Opcode(_)
            | PickleError::Joblib
            | PickleError::Nested
            | PickleError::OutOfBand
            | PickleError::Lazy => ErrorKind::Unsupported,
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
    #[error("its storage should have {said} bytes, and has {found}")]
    ShortStorage { said: u64, found: u64 },
    #[error("its shape, strides and offset exceed its storage of {0} bytes")]
    Outside(u64),
    #[error("shape {} has 2^63 bytes or more", AsTuple(.0))]
    TooLarge(Vec<u64>),
}
