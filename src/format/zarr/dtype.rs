//! The types of elements by their names in Zarr: in version 3 names of its own, in version 2 NumPy's.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};
use std::sync::Arc;

use super::error::ZarrError;
use crate::dtype::{DType, Endian, Field, NpyType, Scalar, Structure, TimeKind, TimeUnit};
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

/// NumPy's type strings, and lists of fields.
fn version2(said: &Value) -> Option<ElementType> {
    let dtype = npy::json_dtype(said).ok()?;
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
            None => Scalar::ALL.into_iter().find(|scalar| scalar.name() == name).map(known),
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

/// Make the elements plain bytes in the metadata of an array.
///
/// # Errors
/// [`ZarrError::Fill`]; [`ZarrError::Metadata`] for codecs that would have to know their parts.
pub(super) fn hide(metadata: &mut Value, dtype: &DType) -> Result<(), ZarrError> {
    let bytes = dtype.item_bits() / 8;
    let fill = fill_bytes(metadata.get("fill_value").unwrap_or(&Value::Null), dtype);
    let fill = fill.ok_or_else(|| ZarrError::Fill(dtype.to_string()))?;
    if metadata.get("codecs").is_some_and(swaps) {
        let reason = "elements of several parts in big-endian order are not read";
        return Err(ZarrError::Metadata(reason.to_owned()));
    }
    let Some(entries) = metadata.as_object_mut() else { return Ok(()) };
    entries.insert("fill_value".to_owned(), json!(fill));
    match entries.contains_key("data_type") {
        true => entries.insert("data_type".to_owned(), json!(format!("r{}", bytes * 8))),
        false => entries.insert("dtype".to_owned(), json!(format!("|V{bytes}"))),
    };
    Ok(())
}

/// Whether one of these codecs stores elements, those of the index of a shard aside, in big-endian order.
fn swaps(codecs: &Value) -> bool {
    let in_map = |map: &Map<String, Value>| {
        let is_big = map.get("endian").is_some_and(|endian| endian == "big");
        is_big || map.iter().any(|(key, value)| key != "index_codecs" && swaps(value))
    };
    match codecs {
        Value::Array(all) => all.iter().any(swaps),
        Value::Object(map) => in_map(map),
        _ => false,
    }
}

/// The bytes of the elements of chunks that are not stored.
fn fill_bytes(fill: &Value, dtype: &DType) -> Option<Vec<u8>> {
    let DType::Npy(npy) = dtype else { return None };
    let len = npy.itemsize() as usize;
    let mut bytes = match (fill, npy) {
        (fill, NpyType::Time(_, endian, _)) if fill.is_null() || fill == "NaT" => {
            in_order(i64::MIN.to_le_bytes().to_vec(), *endian)
        }
        (Value::Null, _) => Vec::new(),
        (Value::Number(number), NpyType::Time(_, endian, _)) => {
            in_order(number.as_i64()?.to_le_bytes().to_vec(), *endian)
        }
        (Value::String(text), NpyType::Unicode(_, endian)) => {
            let char = |char| in_order(u32::from(char).to_le_bytes().to_vec(), *endian);
            text.chars().flat_map(char).collect()
        }
        (Value::String(text), _) => BASE64_STANDARD.decode(text).ok()?,
        (Value::Number(number), _) if number.as_i64() == Some(0) => Vec::new(),
        _ => return None,
    };
    if bytes.len() > len {
        return None;
    }
    bytes.resize(len, 0);
    Some(bytes)
}

fn in_order(mut bytes: Vec<u8>, endian: Endian) -> Vec<u8> {
    if endian == Endian::Big {
        bytes.reverse();
    }
    bytes
}
