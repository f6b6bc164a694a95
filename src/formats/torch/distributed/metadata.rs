//! The metadata of a distributed checkpoint: a pickle of the classes of `torch.distributed.checkpoint.metadata`.
//!
//! ```text
//! Metadata
//!   state_dict_metadata: {name: TensorStorageMetadata(properties, size, chunks) or BytesStorageMetadata}
//!     properties: (dtype, layout, ..)              chunks: [ChunkStorageMetadata(offsets, sizes)]
//!   storage_data: {MetadataIndex(fqn, offset, index): _StorageInfo(relative_path, offset, length)}
//! ```
//!
//! Classes are not looked at: an object is recognised by the names of its attributes. They are read from the state of
//! the object, whether it is a dict or a tuple with a dict.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use crate::dtype::{DType, Endian};
use crate::error::Cause;
use crate::formats::pickle::globals::{ElementType, Global};
use crate::formats::pickle::items::{PickleItem, SharedKind, SharedValue};
use crate::formats::pickle::machine::{self, Keeps, Made, PickleMachine};
use crate::formats::pickle::ops::{PickleOps, damaged};
use crate::formats::pickle::texts::Decoded;
use crate::formats::pickle::value::PickleValue;
use crate::formats::pickle::{MAX_DECODED, PickleError};
use crate::formats::torch::TorchError;
use crate::source::{PieceBox, Source};

/// The contents of a checkpoint, as its metadata say.
#[derive(Debug, Default)]
pub(super) struct Metadata {
    pub(super) tensors: Vec<DescribedTensor>,
    /// The names of objects that are not tensors.
    pub(super) objects: Vec<String>,
    /// The paths of the files, relative to the folder.
    pub(super) files: Vec<String>,
}

#[derive(Debug)]
pub(super) struct DescribedTensor {
    pub(super) name: String,
    pub(super) dtype: Result<DType, TorchError>,
    pub(super) shape: Vec<u64>,
    pub(super) pieces: Vec<DescribedPiece>,
}

#[derive(Debug)]
pub(super) struct DescribedPiece {
    /// The piece's box in the tensor, in elements.
    pub(super) in_tensor: PieceBox,
    pub(super) stored: StoredPiece,
}

/// The number of the file that holds a piece, and the bytes in the file.
#[derive(Clone, Debug)]
pub(super) struct StoredPiece {
    pub(super) file: usize,
    pub(super) bytes: Range<u64>,
}

/// All shared values of a pickle, by their numbers.
struct Values(Vec<SharedValue>);

impl Values {
    fn shared(&self, value: &PickleValue) -> Option<&SharedValue> {
        let PickleValue::Shared(at) = value else { return None };
        self.0.get(*at)
    }

    fn items(&self, value: &PickleValue, kind: SharedKind) -> impl Iterator<Item = PickleItem> {
        let shared = self.shared(value).filter(|it| it.kind == kind);
        shared.into_iter().flat_map(SharedValue::items)
    }

    /// The values of an object's attributes with these names.
    fn attributes<const N: usize>(
        &self,
        object: &PickleValue,
        names: [&str; N],
    ) -> [Option<PickleValue>; N] {
        let mut found = [const { None }; N];
        for state in self.items(object, SharedKind::Object).filter(|it| it.key.is_none()) {
            for PickleItem { key, value } in self.items(&state.value, SharedKind::Dict) {
                let Some(PickleValue::Text(key)) = key else { continue };
                if let Some(at) = names.iter().position(|name| **name == *key) {
                    found[at] = Some(value);
                }
            }
        }
        found
    }
}

pub(super) fn read(source: &dyn Source) -> Result<Metadata, Cause> {
    let ops = || PickleOps::new(source, 0..source.len());
    let asked = machine::asked(&mut ops())?;
    let machine = PickleMachine::new(source.len(), asked, Keeps::Values, Decoded::new(MAX_DECODED));
    let Made { object, shared, .. } = machine.run(&mut ops())?;
    let values = Values(shared);
    let [tensors, stored] = values.attributes(&object, ["state_dict_metadata", "storage_data"]);
    let (Some(tensors), Some(stored)) = (tensors, stored) else {
        return Err(damaged("it is not the metadata of a distributed checkpoint"));
    };
    let mut metadata = Metadata::default();
    let stored = stored_pieces(&values, &stored, &mut metadata.files)?;
    for PickleItem { key, value } in values.items(&tensors, SharedKind::Dict) {
        let Some(PickleValue::Text(name)) = key else {
            return Err(damaged("the name of a tensor is not a text"));
        };
        let [properties, size, chunks] =
            values.attributes(&value, ["properties", "size", "chunks"]);
        let (Some(size), Some(chunks)) = (size, chunks) else {
            metadata.objects.push(name.to_string());
            continue;
        };
        let shape = size.axes().ok_or_else(|| damaged("a shape is not a tuple of lengths"))?;
        let dtype = dtype(&values, properties);
        let piece = |chunk: PickleItem| {
            let [offset, shape] = values.attributes(&chunk.value, ["offsets", "sizes"]);
            let axes = |it: Option<PickleValue>| it.and_then(|it| it.axes());
            let (Some(offset), Some(shape)) = (axes(offset), axes(shape)) else {
                return Err(damaged("a chunk has no offsets or no sizes"));
            };
            match stored.get(&(Rc::clone(&name), offset.clone())) {
                Some(stored) => {
                    let in_tensor = PieceBox { offset, shape };
                    Ok(DescribedPiece { in_tensor, stored: stored.clone() })
                }
                None => Err(damaged("it does not say where a chunk is stored")),
            }
        };
        let pieces: Result<_, Cause> = values.items(&chunks, SharedKind::List).map(piece).collect();
        let name = name.to_string();
        metadata.tensors.push(DescribedTensor { name, dtype, shape, pieces: pieces? });
    }
    Ok(metadata)
}

/// Stored pieces, by the name of the tensor and the piece's offset in the tensor.
type StoredPieces = HashMap<(Rc<str>, Vec<u64>), StoredPiece>;

fn stored_pieces(
    values: &Values,
    stored: &PickleValue,
    files: &mut Vec<String>,
) -> Result<StoredPieces, Cause> {
    let mut numbers: HashMap<Rc<str>, usize> = HashMap::new();
    let mut pieces = HashMap::new();
    for PickleItem { key, value } in values.items(stored, SharedKind::Dict) {
        let index = key.map(|key| values.attributes(&key, ["fqn", "offset"]));
        let Some([Some(PickleValue::Text(name)), offset]) = index else {
            return Err(damaged("a piece has no name"));
        };
        // objects have no offset
        let Some(offset) = offset.and_then(|offset| offset.axes()) else { continue };
        let attributes = ["relative_path", "offset", "length", "transform_descriptors"];
        let [file, start, len, transform] = values.attributes(&value, attributes);
        if !matches!(transform, None | Some(PickleValue::None | PickleValue::Empty(_))) {
            return Err(damaged("its pieces are transformed, which is not read"));
        }
        let count = |it: Option<PickleValue>| it.and_then(|it| it.count());
        let (Some(PickleValue::Text(file)), Some(start), Some(len)) =
            (file, count(start), count(len))
        else {
            return Err(damaged("it does not say where a piece is stored"));
        };
        let end = start.checked_add(len).ok_or_else(|| damaged("a piece is too long"))?;
        let file = *numbers.entry(file).or_insert_with_key(|file| {
            files.push(file.to_string());
            files.len() - 1
        });
        pieces.insert((name, offset), StoredPiece { file, bytes: start..end });
    }
    Ok(pieces)
}

/// The dtype of a tensor: the first item in the state of its properties, or in older versions their attribute
/// `dtype`.
fn dtype(values: &Values, properties: Option<PickleValue>) -> Result<DType, TorchError> {
    let of_state = |properties: &PickleValue| {
        let states = values.items(properties, SharedKind::Object).filter(|it| it.key.is_none());
        states.filter_map(|state| state.value.items()?.first().cloned()).next()
    };
    let dtype = properties.as_ref().and_then(|properties| {
        let [named] = values.attributes(properties, ["dtype"]);
        named.or_else(|| of_state(properties))
    });
    match dtype {
        Some(PickleValue::Global(Global::DType(ElementType::Known(scalar)))) => {
            Ok(DType::Scalar(scalar, Endian::Little))
        }
        Some(PickleValue::Global(Global::DType(other))) => {
            Err(PickleError::DType(other.unnamed().unwrap_or("unknown").into()).into())
        }
        _ => Err(PickleError::DType("none that is known".into()).into()),
    }
}
