//! The types of elements by their names in Zarr: in version 3 names of its own, in version 2 NumPy's.

use std::sync::Arc;

use serde_json::Value;

use super::error::ZarrError;
use crate::dtype::{
    DType, Endian, Field, NpyType, NumberKind, Scalar, Structure, TimeKind, TimeUnit,
};
use crate::format::brief::brief;
use crate::format::npy;

/// The type of the elements of an array.
pub(super) struct ElementType {
    pub(super) dtype: DType,
    /// Whether `zarrs` has no such type, so that the elements are plain bytes to it.
    pub(super) opaque: bool,
}

/// The longest element, in bytes: NumPy has no longer ones.
const MAX_ITEM: u64 = i32::MAX as u64;

impl ElementType {
    /// The type by the metadata of an array.
    pub(super) fn of(metadata: &Value) -> Result<ElementType, ZarrError> {
        let (said, found) = match metadata.get("data_type") {
            Some(said) => (said, version3(said, 0)),
            None => {
                let said = metadata.get("dtype").unwrap_or(&Value::Null);
                (said, version2(said))
            }
        };
        let bytes = |it: &ElementType| it.dtype.item_bits() / 8;
        let found = found.filter(|it| it.dtype.item_bits() % 8 == 0);
        let found = found.filter(|it| (1..=MAX_ITEM).contains(&bytes(it)));
        found.ok_or_else(|| ZarrError::DType(brief(&said.to_string())))
    }
}

/// NumPy's type strings, and lists of fields; of numbers that NumPy has not, the names that TensorStore writes.
fn version2(said: &Value) -> Option<ElementType> {
    let of_its_own = || {
        let name = said.as_str()?;
        let scalar = Scalar::ALL.into_iter().find(|scalar| scalar.name() == name)?;
        Some(ElementType { dtype: DType::Scalar(scalar, Endian::Little), opaque: true })
    };
    let Ok(dtype) = npy::json_dtype(said) else { return of_its_own() };
    Some(match dtype {
        // decoded in the order of this machine, whatever that of the file
        DType::Scalar(scalar, _) => known(scalar),
        dtype => ElementType { dtype, opaque: true },
    })
}

fn known(scalar: Scalar) -> ElementType {
    ElementType { dtype: DType::Scalar(scalar, Endian::Little), opaque: false }
}

/// The names of version 3 and of zarr-python.
fn version3(said: &Value, depth: usize) -> Option<ElementType> {
    let name = said.as_str().or_else(|| said.get("name")?.as_str())?;
    let number = |key: &str| said.pointer(&format!("/configuration/{key}"))?.as_u64();
    let of = |opaque: bool, npy: NpyType| Some(ElementType { dtype: DType::Npy(npy), opaque });
    let time = |kind: TimeKind| {
        let unit = said.pointer("/configuration/unit")?.as_str()?;
        let unit = if unit == "generic" { "" } else { unit };
        let count = i32::try_from(number("scale_factor")?).ok().filter(|count| *count > 0)?;
        of(false, NpyType::Time(kind, Endian::Little, TimeUnit::new(count, unit)?))
    };
    match name {
        "numpy.datetime64" => time(TimeKind::Datetime),
        "numpy.timedelta64" => time(TimeKind::Timedelta),
        "fixed_length_utf32" => {
            of(false, NpyType::Unicode(number("length_bytes")? / 4, Endian::Little))
        }
        "null_terminated_bytes" => of(true, NpyType::Bytes(number("length_bytes")?)),
        "raw_bytes" => of(true, NpyType::Void(number("length_bytes")?, None)),
        "structured" | "struct" if depth < 8 => {
            of(true, structure(said.pointer("/configuration/fields")?.as_array()?, depth)?)
        }
        _ => match name.strip_prefix('r').and_then(|bits| bits.parse::<u64>().ok()) {
            Some(bits) => of(true, NpyType::Void(bits / 8, None)),
            None => {
                let scalar = Scalar::ALL.into_iter().find(|scalar| scalar.name() == name)?;
                // of floats of a byte `zarrs` knows some, by some of their names
                let opaque = scalar.kind() == NumberKind::Float && scalar.bits() == 8;
                Some(ElementType { opaque, ..known(scalar) })
            }
        },
    }
}

/// Fields one after the other, without gaps.
fn structure(said: &[Value], depth: usize) -> Option<NpyType> {
    let mut fields: Vec<Field> = Vec::new();
    let mut itemsize = 0u64;
    for field in said {
        let (name, dtype) = match field {
            Value::Array(pair) => (pair.first()?, pair.get(1)?),
            field => (field.get("name")?, field.get("data_type")?),
        };
        let (name, dtype) = (name.as_str()?.to_owned(), version3(dtype, depth + 1)?.dtype);
        if name.is_empty() || fields.iter().any(|other| other.name == name) {
            return None;
        }
        let offset = itemsize;
        itemsize = itemsize.checked_add(dtype.item_bits() / 8).filter(|it| *it <= MAX_ITEM)?;
        let (shape, nesting) = (Vec::new(), Vec::new());
        fields.push(Field { is_named: true, name, title: None, dtype, shape, nesting, offset });
    }
    (!fields.is_empty()).then(|| NpyType::Structure(Arc::new(Structure { fields, itemsize })))
}
