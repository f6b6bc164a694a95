//! Attributes that pack values, carried over to an output that has attributes.

use serde_json::{Map, Value};

use crate::cast::{Cast, Casting};
use crate::dtype::{DType, Endian, Scalar};
use crate::execute::Conversion;
use crate::tensor::{
    Annotations, FILL_VALUE, MISSING_VALUE, Stated, UNSIGNED, element, plain, stated,
};

/// The bytes of an element after a conversion; `None` where the bytes are not an element of the dtype.
pub(super) fn converted(
    mut bytes: Vec<u8>,
    from: &DType,
    conversion: Conversion,
    to: &DType,
) -> Option<Vec<u8>> {
    let size = |dtype: &DType| (dtype.item_bits() / 8) as usize;
    let (old, new) = (size(from), size(to));
    if old == 0 || bytes.len() != old {
        return None;
    }
    match conversion {
        Conversion::None => {}
        Conversion::SwapBytes { width } => bytes.chunks_mut(width).for_each(<[u8]>::reverse),
        Conversion::Cast(cast) => {
            let mut elements = bytes.repeat(cast.input_bytes().div_ceil(old));
            elements.truncate(cast.input_bytes());
            bytes = vec![0; cast.output_bytes()];
            cast.run(&mut elements, &mut bytes);
        }
    }
    bytes.truncate(new);
    (bytes.len() == new).then_some(bytes)
}

/// Carry over fill values: a fill value that masks becomes an attribute, and fill values are converted like the
/// elements. Returns the attributes that no longer hold, each with its value.
pub(super) fn follow(
    said: &mut Annotations,
    from: &DType,
    conversion: Conversion,
    to: &DType,
) -> Vec<String> {
    let masks = std::mem::take(&mut said.fill_masks);
    let mask = said.fill_value.as_deref().filter(|_| masks);
    if let Some(mask) = mask.and_then(|bytes| element(bytes, from)) {
        said.attributes.insert(FILL_VALUE.to_owned(), mask.json());
    }
    let is_cast = matches!(conversion, Conversion::Cast(cast) if !cast.keeps_type());
    if !is_cast {
        said.sign_fill(from);
        return Vec::new();
    }
    let mut dropped = Vec::new();
    let mut attributes = Map::new();
    for (name, value) in std::mem::take(&mut said.attributes) {
        let is_fill = [FILL_VALUE, MISSING_VALUE].contains(&name.as_str());
        let value = match stated(&value).as_slice() {
            _ if name == UNSIGNED => Err(value),
            [] => Ok(value),
            all if is_fill => {
                let cast = |it: &Stated| cast_fill(*it, from, conversion, to).map(Stated::json);
                let cast: Vec<Value> = all.iter().filter_map(cast).collect();
                match (cast.as_slice(), all.len()) {
                    ([only], 1) => Ok(only.clone()),
                    (some, count) if some.len() == count => Ok(Value::Array(cast)),
                    _ => Err(value),
                }
            }
            _ => Ok(value),
        };
        match value {
            Ok(value) => {
                attributes.insert(name, value);
            }
            Err(value) => dropped.push(format!("{name} {}", plain(&value))),
        }
    }
    said.attributes = attributes;
    dropped
}

/// A fill value after a conversion, where the new dtype can hold it.
fn cast_fill(fill: Stated, from: &DType, conversion: Conversion, to: &DType) -> Option<Stated> {
    let bytes = converted(bytes_of(fill, from)?, from, conversion, to)?;
    let held = element(&bytes, to)?;
    let (old, new) = (fill.value(), held.value());
    let is_near = match held {
        Stated::Integer(_) => (old - new).abs() < 1.0,
        Stated::Float(_) => new.is_finite() == old.is_finite() && (new != 0.0 || old == 0.0),
    };
    (is_near || old.is_nan() && new.is_nan()).then_some(held)
}

/// The bytes of a number as an element of a dtype.
fn bytes_of(number: Stated, dtype: &DType) -> Option<Vec<u8>> {
    let (scalar, mut bytes) = match number {
        Stated::Float(value) => (Scalar::F64, value.to_le_bytes()),
        Stated::Integer(value) => match (i64::try_from(value), u64::try_from(value)) {
            (Ok(value), _) => (Scalar::I64, value.to_le_bytes()),
            (_, Ok(value)) => (Scalar::U64, value.to_le_bytes()),
            _ => return None,
        },
    };
    let cast = Cast::new(&DType::Scalar(scalar, Endian::Little), dtype, Casting::Unsafe).ok()?;
    let mut element = vec![0; cast.output_bytes()];
    cast.run(&mut bytes, &mut element);
    Some(element)
}
