//! The element types of Zarr by their names: names of its own in version 3, NumPy's in version 2.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Number, Value, json};

use super::ZarrError;
use crate::dtype::{
    DType, Endian, Field, NpyType, NumberKind, Scalar, Structure, TimeKind, TimeUnit,
};
use crate::element::parse;
use crate::formats::npy;
use crate::tensor::{brief, number};

pub(super) struct ElementType {
    pub(super) dtype: DType,
    /// Whether `zarrs` lacks the type, so that elements are plain bytes to it.
    pub(super) opaque: bool,
}

/// The longest element, in bytes: NumPy has no longer ones.
const MAX_ITEM: u64 = i32::MAX as u64;

impl ElementType {
    /// The element type in the metadata of an array.
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

/// Parse NumPy's type strings and lists of fields; for numbers that NumPy lacks, TensorStore's names.
fn version2(said: &Value) -> Option<ElementType> {
    let of_its_own = || {
        let name = said.as_str()?;
        let scalar = Scalar::ALL.into_iter().find(|scalar| scalar.name() == name)?;
        Some(ElementType { dtype: DType::Scalar(scalar, Endian::Little), opaque: true })
    };
    let Ok(dtype) = npy::json_dtype(said) else { return of_its_own() };
    Some(match dtype {
        // decoded to this machine's byte order, whatever the file's
        DType::Scalar(scalar, _) => known(scalar),
        dtype => ElementType { dtype, opaque: true },
    })
}

fn known(scalar: Scalar) -> ElementType {
    ElementType { dtype: DType::Scalar(scalar, Endian::Little), opaque: false }
}

/// Parse the names of version 3 and of zarr-python.
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
                // `zarrs` knows some floats of one byte, by some of their names
                let opaque = scalar.kind() == NumberKind::Float && scalar.bits() == 8;
                Some(ElementType { opaque, ..known(scalar) })
            }
        },
    }
}

/// Parse consecutive fields without gaps.
fn structure(said: &[Value], depth: usize) -> Option<NpyType> {
    let mut fields: Vec<Field> = Vec::new();
    let mut itemsize = 0u64;
    for field in said {
        let (name, dtype) = match field {
            Value::Array(pair) => (pair.first()?, pair.get(1)?),
            field => (field.get("name")?, field.get("data_type")?),
        };
        let name = name.as_str()?.to_owned();
        let dtype = version3(dtype, depth + 1)?.dtype;
        if name.is_empty() || fields.iter().any(|other| other.name == name) {
            return None;
        }
        let offset = itemsize;
        itemsize = itemsize.checked_add(dtype.item_bits() / 8).filter(|it| *it <= MAX_ITEM)?;
        let shape = Vec::new();
        let nesting = Vec::new();
        fields.push(Field { is_named: true, name, title: None, dtype, shape, nesting, offset });
    }
    (!fields.is_empty()).then(|| NpyType::Structure(Arc::new(Structure { fields, itemsize })))
}

/// The bytes of a fill value from its JSON, as zarr-python reads it; `None` where it does not fit the dtype.
pub(super) fn bytes(fill: &Value, dtype: &DType) -> Option<Vec<u8>> {
    match dtype {
        DType::Scalar(scalar, endian) => {
            let mut bytes = of_scalar(fill, *scalar)?;
            if *endian == Endian::Big {
                bytes.chunks_exact_mut(dtype.swap_width()).for_each(<[u8]>::reverse);
            }
            Some(bytes)
        }
        DType::Npy(npy) => of_npy(fill, npy),
        DType::Blocks(_) => None,
    }
}

/// The little-endian bytes of a number.
fn of_scalar(fill: &Value, scalar: Scalar) -> Option<Vec<u8>> {
    if fill.is_null() {
        // without a fill value, any value will do
        return Some(vec![0; (scalar.bits() / 8) as usize]);
    }
    let dtype = DType::Scalar(scalar, Endian::Little);
    let parsed = |text: &str| parse(text, &dtype).ok();
    match scalar.kind() {
        NumberKind::Bool => match fill {
            Value::Bool(value) => Some(vec![u8::from(*value)]),
            Value::Number(number) => Some(vec![u8::from(number.as_f64() != Some(0.0))]),
            _ => None,
        },
        NumberKind::Unsigned | NumberKind::Signed => match fill {
            Value::Bool(value) => parsed(if *value { "1" } else { "0" }),
            Value::String(text) => parsed(text),
            Value::Number(number) => parsed(&integer(number)?),
            _ => None,
        },
        NumberKind::Float => of_float(fill, scalar),
        NumberKind::Complex => {
            let part = scalar.part()?;
            match fill {
                Value::Array(parts) => match parts.as_slice() {
                    [real, imaginary] => {
                        Some([of_float(real, part)?, of_float(imaginary, part)?].concat())
                    }
                    _ => None,
                },
                real => Some([of_float(real, part)?, of_float(&json!(0), part)?].concat()),
            }
        }
    }
}

/// The text of a number without a fraction.
fn integer(number: &Number) -> Option<String> {
    if number.is_f64() {
        let value = number.as_f64().filter(|value| value.fract() == 0.0 && value.abs() < 1e20)?;
        return Some((value as i128).to_string());
    }
    Some(number.to_string())
}

fn of_float(fill: &Value, scalar: Scalar) -> Option<Vec<u8>> {
    let dtype = DType::Scalar(scalar, Endian::Little);
    let text = match fill {
        Value::Bool(value) => u8::from(*value).to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => match text.strip_prefix("0x") {
            Some(digits) => return of_digits(digits, (scalar.bits() / 8) as usize),
            None => text.to_lowercase().replace("infinity", "inf"),
        },
        _ => return None,
    };
    parse(&text, &dtype).ok()
}

/// The little-endian bytes of hexadecimal digits, which begin with the highest byte.
fn of_digits(digits: &str, len: usize) -> Option<Vec<u8>> {
    let is_hex = digits.len() == 2 * len && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let bits = is_hex.then(|| u64::from_str_radix(digits, 16).ok()).flatten()?;
    Some(bits.to_le_bytes()[..len].to_vec())
}

/// The bytes of an element of a type that only NumPy has.
fn of_npy(fill: &Value, npy: &NpyType) -> Option<Vec<u8>> {
    let len = npy.itemsize() as usize;
    let mut bytes = match (fill, npy) {
        (fill, NpyType::Time(_, endian, _)) if fill.is_null() || fill == "NaT" => {
            in_order(i64::MIN.to_le_bytes().to_vec(), *endian)
        }
        (Value::Null, _) => Vec::new(),
        (Value::Number(number), NpyType::Time(_, endian, _)) => {
            let ticks: i64 = integer(number)?.parse().ok()?;
            in_order(ticks.to_le_bytes().to_vec(), *endian)
        }
        (Value::String(text), NpyType::Unicode(_, endian)) => {
            let char = |char| in_order(u32::from(char).to_le_bytes().to_vec(), *endian);
            text.chars().flat_map(char).collect()
        }
        (Value::String(text), _) => BASE64_STANDARD.decode(text).ok()?,
        (Value::Number(number), _) if number.as_f64() == Some(0.0) => Vec::new(),
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

/// The JSON of an element, from its little-endian bytes, for any reader of version 3.
pub(super) fn said(bytes: &[u8], dtype: &DType) -> Value {
    let float = |bytes: &[u8]| {
        let value = match (bytes.try_into(), bytes.try_into()) {
            (Ok(single), _) => Some(f64::from(f32::from_le_bytes(single))),
            (_, Ok(double)) => Some(f64::from_le_bytes(double)),
            // shorter floats are written as digits, except the most common
            _ => bytes.iter().all(|byte| *byte == 0).then_some(0.0),
        };
        // digits identify the NaN
        value.filter(|value| !value.is_nan() || is_common_nan(bytes)).map(number)
    };
    match dtype {
        DType::Scalar(scalar, _) if scalar.kind() == NumberKind::Float => {
            float(bytes).unwrap_or_else(|| json(bytes, dtype))
        }
        DType::Scalar(scalar, _) if scalar.kind() == NumberKind::Complex => {
            let (real, imaginary) = bytes.split_at(bytes.len() / 2);
            match (float(real), float(imaginary)) {
                (Some(real), Some(imaginary)) => json!([real, imaginary]),
                _ => json(bytes, dtype),
            }
        }
        DType::Npy(NpyType::Bytes(_)) => {
            let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            BASE64_STANDARD.encode(&bytes[..end]).into()
        }
        _ => json(bytes, dtype),
    }
}

/// The JSON of the value of missing elements, as xarray writes it in version 3: a float as the bytes of a double, in
/// base64. xarray opens no store with a plain float, or with netCDF's list.
pub(super) fn of_netcdf(value: &Value, dtype: &DType) -> Option<Value> {
    let value = match value {
        Value::Array(all) if let [only] = all.as_slice() => only,
        value => value,
    };
    let DType::Scalar(scalar, _) = dtype else { return None };
    match scalar.kind() {
        NumberKind::Float => Some(BASE64_STANDARD.encode(of_float(value, Scalar::F64)?).into()),
        NumberKind::Complex => None,
        _ => Some(json(&of_scalar(value, *scalar)?, &DType::Scalar(*scalar, Endian::Little))),
    }
}

fn is_common_nan(bytes: &[u8]) -> bool {
    bytes == f32::NAN.to_le_bytes() || bytes == f64::NAN.to_le_bytes()
}

/// The JSON of an element, from its little-endian bytes, for `zarrs`, which must know the type.
pub(super) fn json(bytes: &[u8], dtype: &DType) -> Value {
    let digits = |bytes: &[u8]| {
        let digits: String = bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect();
        Value::String(format!("0x{digits}"))
    };
    let number = || {
        let mut wide = [0; 8];
        let len = bytes.len().min(8);
        wide[..len].copy_from_slice(&bytes[..len]);
        wide
    };
    match dtype {
        DType::Scalar(scalar, _) => match scalar.kind() {
            NumberKind::Bool => json!(bytes.first() == Some(&1)),
            NumberKind::Unsigned => json!(u64::from_le_bytes(number())),
            NumberKind::Signed => {
                let unused = 64 - 8 * bytes.len().clamp(1, 8) as u32;
                json!(i64::from_le_bytes(number()) << unused >> unused)
            }
            NumberKind::Float => digits(bytes),
            NumberKind::Complex => {
                let (real, imaginary) = bytes.split_at(bytes.len() / 2);
                json!([digits(real), digits(imaginary)])
            }
        },
        DType::Npy(NpyType::Time(..)) => json!(i64::from_le_bytes(number())),
        DType::Npy(NpyType::Unicode(..)) => {
            let chars = bytes.as_chunks::<4>().0.iter().map(|char| u32::from_le_bytes(*char));
            let text: String = chars.map_while(char::from_u32).collect();
            json!(text.trim_end_matches('\0'))
        }
        _ => json!(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_missing_elements_are_those_that_xarray_reads() {
        let of = |value: Value, scalar| of_netcdf(&value, &DType::Scalar(scalar, Endian::Big));
        // from xarray's FillValueCoder
        assert_eq!(of(json!([-9999.0]), Scalar::F32), Some(json!("AAAAAICHw8A=")));
        assert_eq!(of(json!("NaN"), Scalar::F64), Some(json!("AAAAAAAA+H8=")));
        assert_eq!(of(json!([-999]), Scalar::I16), Some(json!(-999)));
        assert_eq!(of(json!(7.0), Scalar::U8), Some(json!(7)));
        assert_eq!(of(json!(true), Scalar::Bool), Some(json!(true)));
        assert_eq!(of(json!("NaN"), Scalar::I16), None);
        assert_eq!(of(json!([1, 2]), Scalar::I16), None);
        assert_eq!(of(json!(1), Scalar::C64), None);
    }

    #[test]
    fn fill_values_are_those_that_zarr_python_reads() {
        let of = |fill: Value, scalar| of_scalar(&fill, scalar);
        assert_eq!(of(json!(-9999.0), Scalar::I16), Some((-9999i16).to_le_bytes().to_vec()));
        assert_eq!(of(json!(false), Scalar::U8), Some(vec![0]));
        assert_eq!(of(json!("42"), Scalar::U8), Some(vec![42]));
        assert_eq!(of(json!(u64::MAX), Scalar::U64), Some(vec![255; 8]));
        assert_eq!(of(Value::Null, Scalar::C64), Some(vec![0; 8]));
        assert_eq!(of(json!(["NaN", 1]), Scalar::C64).unwrap()[4..], 1f32.to_le_bytes());
        assert_eq!(of(json!("0x7fc00001"), Scalar::F32), Some(vec![1, 0, 0xc0, 0x7f]));
        assert_eq!(
            of(json!("-Infinity"), Scalar::F64),
            Some(f64::NEG_INFINITY.to_le_bytes().to_vec())
        );
        assert_eq!(of(json!(0.0), Scalar::F8E4M3), Some(vec![0]));
        let none = [
            (json!(0.5), Scalar::I32),
            (json!(300), Scalar::U8),
            (json!("NaN"), Scalar::I32),
            (json!([1]), Scalar::F32),
            (json!("0x7f"), Scalar::F32),
            (json!("x"), Scalar::F32),
            (json!({}), Scalar::F64),
            (json!(1e300), Scalar::I64),
        ];
        none.into_iter().for_each(|(fill, scalar)| assert_eq!(of(fill, scalar), None));
    }

    #[test]
    fn zarrs_is_told_the_same() {
        let le = |scalar| DType::Scalar(scalar, Endian::Little);
        assert_eq!(json(&(-3i16).to_le_bytes(), &le(Scalar::I16)), json!(-3));
        assert_eq!(json(&i64::MIN.to_le_bytes(), &le(Scalar::I64)), json!(i64::MIN));
        assert_eq!(json(&1.5f32.to_le_bytes(), &le(Scalar::F32)), json!("0x3fc00000"));
        assert_eq!(
            json(&[0; 16], &le(Scalar::C128)),
            json!(["0x0000000000000000", "0x0000000000000000"])
        );
    }
}
