//! Packed values: the attributes of the CF conventions that map stored elements to values.
//!
//! `scale_factor` and `add_offset` scale elements, `_FillValue` and `missing_value` mark missing ones, `_Unsigned`
//! gives the signedness of integers. The dtype of the values is chosen as by xarray's `decode_cf`.

#[cfg(feature = "zarr")]
use base64::Engine as _;
#[cfg(feature = "zarr")]
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use super::{
    Annotations, FILL_VALUE, LazyAnnotations, Storage, StorageKind, TensorInfo, number, shortened,
};
use crate::dtype::{DType, Endian, NumberKind, Scalar};
use crate::element::FloatFormat;

pub(crate) const SCALE_FACTOR: &str = "scale_factor";
pub(crate) const ADD_OFFSET: &str = "add_offset";
pub(crate) const MISSING_VALUE: &str = "missing_value";
pub(crate) const UNSIGNED: &str = "_Unsigned";

/// All attributes that pack values.
const PACKING: [&str; 5] = [SCALE_FACTOR, ADD_OFFSET, FILL_VALUE, MISSING_VALUE, UNSIGNED];

/// The conversion of stored elements to values: fills become NaN, then a factor and a number are applied; each result
/// is rounded to the dtype of the values.
#[derive(Clone, Debug, PartialEq)]
pub struct Unpacking {
    /// The dtype in which stored elements are read.
    pub from: DType,
    /// The dtype of the values; little-endian.
    pub to: DType,
    /// The values of missing elements, in the dtype of the values.
    pub fills: Vec<f64>,
    pub scale: Option<f64>,
    pub offset: Option<f64>,
    /// The replacement for NaN, as the last step.
    pub nan: Option<f64>,
}

impl Eq for Unpacking {}

/// A number in an attribute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stated {
    Integer(i128),
    Float(f64),
}

impl Stated {
    pub fn value(self) -> f64 {
        match self {
            Stated::Integer(value) => value as f64,
            Stated::Float(value) => value,
        }
    }

    /// The number as JSON; a word where JSON lacks the number.
    pub(crate) fn json(self) -> Value {
        match self {
            Stated::Integer(value) => match (i64::try_from(value), u64::try_from(value)) {
                (Ok(value), _) => value.into(),
                (_, Ok(value)) => value.into(),
                _ => number(value as f64),
            },
            Stated::Float(value) => number(value),
        }
    }

    fn is_nan(self) -> bool {
        self.value().is_nan()
    }

    /// Whether both are one number, whatever their types.
    fn equals(self, other: Stated) -> bool {
        match (self, other) {
            (Stated::Integer(a), Stated::Integer(b)) => a == b,
            _ => self.value() == other.value(),
        }
    }
}

/// The error for an attribute that packs values but is not a number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("attribute {0} is {1}, not a number")]
pub struct PackingFault(pub &'static str, pub String);

/// The numbers of an attribute, or of each item of a list. Words stand for numbers that JSON lacks; a base64 text holds
/// the bytes of a double, as xarray writes fill values of floats to Zarr.
pub(crate) fn stated(value: &Value) -> Vec<Stated> {
    match value {
        Value::Array(all) => all.iter().flat_map(stated).collect(),
        Value::Number(number) => {
            let integer = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
            let float = number.as_f64().map(Stated::Float);
            integer.map(Stated::Integer).or(float).into_iter().collect()
        }
        Value::Bool(value) => vec![Stated::Integer((*value).into())],
        Value::String(text) => match text.as_str() {
            "NaN" => vec![Stated::Float(f64::NAN)],
            "Infinity" => vec![Stated::Float(f64::INFINITY)],
            "-Infinity" => vec![Stated::Float(f64::NEG_INFINITY)],
            text => double_of_base64(text).map(Stated::Float).into_iter().collect(),
        },
        _ => Vec::new(),
    }
}

#[cfg(feature = "zarr")]
/// The double whose little-endian bytes a base64 text holds.
fn double_of_base64(text: &str) -> Option<f64> {
    let bytes = BASE64_STANDARD.decode(text).ok()?;
    Some(f64::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(not(feature = "zarr"))]
fn double_of_base64(_: &str) -> Option<f64> {
    None
}

/// The fill values in the annotations of a tensor.
pub(crate) struct Fills {
    /// The number of `_FillValue`, or the fill value that masks.
    pub(crate) fill: Vec<Stated>,
    pub(crate) missing: Vec<Stated>,
}

impl Fills {
    pub(crate) fn of(said: &Annotations, dtype: &DType) -> Fills {
        let attribute = |name: &str| said.attributes.get(name).map(stated).unwrap_or_default();
        let mask = said.fill_value.as_deref().filter(|_| said.fill_masks);
        let mask = mask.and_then(|bytes| element(bytes, dtype));
        let fill = mask.map_or_else(|| attribute(FILL_VALUE), |mask| vec![mask]);
        Fills { fill, missing: attribute(MISSING_VALUE) }
    }
}

pub(crate) fn element(bytes: &[u8], dtype: &DType) -> Option<Stated> {
    let DType::Scalar(scalar, endian) = *dtype else { return None };
    if bytes.len() as u64 * 8 != scalar.bits() {
        return None;
    }
    let bits = endian.bits(bytes);
    match scalar.kind() {
        NumberKind::Unsigned | NumberKind::Signed => {
            Some(Stated::Integer(wrapped(bits as i128, scalar)))
        }
        NumberKind::Float => Some(Stated::Float(FloatFormat::of(scalar)?.value(bits))),
        _ => None,
    }
}

/// An integer as a value of a type, with its lowest bits.
fn wrapped(value: i128, scalar: Scalar) -> i128 {
    let unused = 128 - scalar.bits() as u32;
    if scalar.kind() == NumberKind::Signed {
        value << unused >> unused
    } else {
        ((value as u128) << unused >> unused) as i128
    }
}

impl Unpacking {
    /// The unpacking of a tensor with these annotations and this dtype; `None` where its elements are its values.
    pub fn of(said: &Annotations, dtype: &DType) -> Result<Option<Unpacking>, PackingFault> {
        let DType::Scalar(stored, endian) = *dtype else { return Ok(None) };
        let is_float = matches!(stored, Scalar::F16 | Scalar::F32 | Scalar::F64);
        if !is_float && !is_integer(stored) {
            return Ok(None);
        }
        let factor = |name: &'static str| -> Result<Option<f64>, PackingFault> {
            let Some(value) = said.attributes.get(name) else { return Ok(None) };
            match stated(value).as_slice() {
                [only] => Ok(Some(only.value())),
                _ => Err(PackingFault(name, value.to_string())),
            }
        };
        let scale = factor(SCALE_FACTOR)?;
        let offset = factor(ADD_OFFSET)?;
        let read = as_read(said, stored);
        let Fills { mut fill, missing } = Fills::of(said, dtype);
        // a NaN means nothing for integers; for floats it marks missing values already, and decides only on the dtype
        let says = |stated: &[Stated]| {
            !stated.is_empty() && (is_float || stated.iter().any(|it| !it.is_nan()))
        };
        let has_fills = says(&fill) || says(&missing);
        if read != stored {
            for it in &mut fill {
                if let Stated::Integer(value) = *it {
                    *it = Stated::Integer(wrapped(value, read));
                }
            }
        }
        let is_scaled = scale.is_some() || offset.is_some();
        let masks = fill.iter().chain(&missing).any(|it| !it.is_nan());
        if !is_scaled && !masks && read == stored {
            return Ok(None);
        }
        let to = match (is_scaled, !masks) {
            (true, false) => scaled(read, said, true),
            (true, true) if !has_fills => scaled(read, said, false),
            (false, false) => masked(read),
            (_, true) => read,
        };
        let to_float =
            |value: f64| FloatFormat::of(to).map_or(value, |format| format.nearest(value));
        // a number in Zarr has no type of its own, and takes the type of the values
        let rounded = |value: f64| if said.is_hdf5 { value } else { to_float(value) };
        // nor has the fill value that `_Unsigned` changes, in xarray
        let unsigned = |value: f64| if read == stored { value } else { to_float(value) };
        let numbers = |stated: &[Stated]| -> Vec<f64> {
            stated.iter().filter(|it| !it.is_nan()).map(|it| it.value()).collect()
        };
        let fills = numbers(&fill).into_iter().map(unsigned).chain(numbers(&missing)).collect();
        Ok(Some(Unpacking {
            from: DType::Scalar(read, endian),
            to: DType::Scalar(to, Endian::Little),
            fills,
            scale: scale.map(rounded),
            offset: offset.map(rounded),
            nan: None,
        }))
    }
}

/// The type in which elements are read, by `_Unsigned`.
fn as_read(said: &Annotations, stored: Scalar) -> Scalar {
    let word = said.attributes.get(UNSIGNED).and_then(Value::as_str);
    match (word, stored) {
        (Some("true"), Scalar::I8) => Scalar::U8,
        (Some("true"), Scalar::I16) => Scalar::U16,
        (Some("true"), Scalar::I32) => Scalar::U32,
        (Some("true"), Scalar::I64) => Scalar::U64,
        (Some("false"), Scalar::U8) => Scalar::I8,
        (Some("false"), Scalar::U16) => Scalar::I16,
        (Some("false"), Scalar::U32) => Scalar::I32,
        (Some("false"), Scalar::U64) => Scalar::I64,
        _ => stored,
    }
}

/// The type of values that are masked but not scaled.
fn masked(read: Scalar) -> Scalar {
    match read {
        Scalar::F16 | Scalar::F32 | Scalar::F64 => read,
        _ if read.bits() <= 16 => Scalar::F32,
        _ => Scalar::F64,
    }
}

/// The type of scaled values: the type of the scaling numbers, where they are floats of one type that is exact for the
/// elements; for an integer factor of integers, without an offset and NaN, the factor's type; else float64.
fn scaled(read: Scalar, said: &Annotations, has_fills: bool) -> Scalar {
    let is_there = |name: &str| said.attributes.contains_key(name);
    let is_single = |name: &str| said.types.get(name) == Some(&Scalar::F32);
    let is_integer = is_integer(read);
    let all_single = [SCALE_FACTOR, ADD_OFFSET].iter().all(|name| is_single(name));
    let only_scaled = !is_there(ADD_OFFSET) && is_single(SCALE_FACTOR);
    let is_exact = !(is_integer && read.bits() == 32);
    match integer_factor(said) {
        Some(scalar) if is_integer && !has_fills => scalar,
        _ if only_scaled || all_single && is_exact => Scalar::F32,
        _ => Scalar::F64,
    }
}

/// The type of an integer factor, where no offset is added.
fn integer_factor(said: &Annotations) -> Option<Scalar> {
    // a larger factor is not exact as a double
    const MOST: u128 = 1 << 53;
    let scale = said.attributes.get(SCALE_FACTOR)?;
    let [Stated::Integer(factor)] = stated(scale)[..] else { return None };
    let is_alone = !said.attributes.contains_key(ADD_OFFSET);
    // integers of JSON are int64 in Python
    let scalar = said.types.get(SCALE_FACTOR).copied().unwrap_or(Scalar::I64);
    (is_alone && factor.unsigned_abs() <= MOST && is_integer(scalar)).then_some(scalar)
}

fn is_integer(scalar: Scalar) -> bool {
    matches!(scalar.kind(), NumberKind::Signed | NumberKind::Unsigned)
}

impl Annotations {
    /// A description of the packing: `scale_factor 0.01, add_offset 273.15`; `None` where elements are values.
    pub fn packed(&self, dtype: &DType) -> Option<String> {
        if let Ok(None) = Unpacking::of(self, dtype) {
            return None;
        }
        let mask = self.fill_value.as_deref().filter(|_| self.fill_masks);
        let mask = mask.and_then(|bytes| element(bytes, dtype)).map(Stated::json);
        let one = |name: &&str| {
            let mask = mask.as_ref().filter(|_| *name == FILL_VALUE);
            let value = mask.or_else(|| self.attributes.get(*name))?;
            Some(format!("{name} {}", plain(value)))
        };
        Some(PACKING.iter().filter_map(one).collect::<Vec<_>>().join(", "))
    }

    /// Remove packing attributes except a factor, which stays where `keeps` is true of it.
    pub(crate) fn keep_packing(&mut self, keeps: impl Fn(&str) -> bool) {
        self.attributes.retain(|name, _| !PACKING.contains(&name.as_str()) || keeps(name));
        self.reworded.retain(|name| !PACKING.contains(&name.as_str()) || keeps(name));
        self.fill_masks = false;
        self.fill_value = None;
    }

    /// Make the fill value one of the signed integers that `_Unsigned` declares: xarray accepts no other fill value in
    /// a Zarr.
    pub(crate) fn sign_fill(&mut self, dtype: &DType) {
        let DType::Scalar(stored_as, _) = *dtype else { return };
        let read = as_read(self, stored_as);
        let fill = self.attributes.get_mut(FILL_VALUE).filter(|_| read != stored_as);
        if let Some(fill) = fill.filter(|_| read.kind() == NumberKind::Signed)
            && let [Stated::Integer(number)] = stated(fill)[..]
        {
            *fill = Stated::Integer(wrapped(number, read)).json();
        }
    }

    /// The factor and the offset of packed values, where the attributes are numbers.
    pub(crate) fn factors(&self) -> [Option<f64>; 2] {
        [SCALE_FACTOR, ADD_OFFSET].map(|name| {
            let stated = self.attributes.get(name).map(stated)?;
            stated.first().map(|it| it.value())
        })
    }
}

/// The text of an attribute; netCDF stores a list for a single value.
pub(crate) fn plain(value: &Value) -> String {
    match (value, stated(value).as_slice()) {
        (Value::String(text), [Stated::Float(float)]) if text.ends_with('=') => float.to_string(),
        (Value::Array(all), _) if let [only] = all.as_slice() => plain(only),
        (Value::String(text), _) => shortened(text).to_string(),
        (value, _) => shortened(&value.to_string()).to_string(),
    }
}

/// A difference in the meaning of two tensors' elements.
pub(crate) struct Differing {
    /// The attribute, and its text in both tensors.
    pub(crate) name: &'static str,
    pub(crate) values: [String; 2],
    /// Whether the unpacked values have the same meaning.
    pub(crate) is_packing: bool,
}

/// The attributes with the unit of values.
const UNITS: &str = "units";
const CALENDAR: &str = "calendar";

/// The first difference in the meaning of two tensors' elements.
pub(crate) fn differing(both: [(&Annotations, &DType); 2]) -> Option<Differing> {
    let said = |name: &'static str, one: usize| both[one].0.attributes.get(name);
    let text = |name: &'static str, one: usize| said(name, one).map_or("none".to_owned(), plain);
    let found = |name: &'static str, is_packing: bool| {
        Some(Differing { name, values: [0, 1].map(|one| text(name, one)), is_packing })
    };
    let stated_of = |name: &'static str, one: usize, none: f64| -> Vec<Stated> {
        said(name, one).map_or_else(|| vec![Stated::Float(none)], stated)
    };
    let same = |a: &[Stated], b: &[Stated]| {
        let holds = |these: &[Stated], it: &Stated| {
            it.is_nan() || these.iter().any(|other| other.equals(*it))
        };
        a.iter().all(|it| holds(b, it)) && b.iter().all(|it| holds(a, it))
    };
    for (name, none) in [(SCALE_FACTOR, 1.0), (ADD_OFFSET, 0.0)] {
        if !same(&stated_of(name, 0, none), &stated_of(name, 1, none)) {
            return found(name, true);
        }
    }
    let fills = both.map(|(said, dtype)| Fills::of(said, dtype));
    let words = |all: &[Stated]| match all {
        [] => "none".to_owned(),
        all => all.iter().map(|it| plain(&it.json())).collect::<Vec<_>>().join(", "),
    };
    let [a, b] = &fills;
    for (name, a, b) in [(FILL_VALUE, &a.fill, &b.fill), (MISSING_VALUE, &a.missing, &b.missing)] {
        if !same(a, b) {
            return Some(Differing { name, values: [words(a), words(b)], is_packing: true });
        }
    }
    let reads = both.map(|(said, dtype)| match dtype {
        DType::Scalar(scalar, _) => as_read(said, *scalar) != *scalar,
        _ => false,
    });
    if reads[0] != reads[1] {
        return found(UNSIGNED, true);
    }
    let is_said = |name: &'static str| said(name, 0).is_some() && said(name, 1).is_some();
    if is_said(UNITS) && text(UNITS, 0) != text(UNITS, 1) {
        return found(UNITS, false);
    }
    // without a calendar, times use the standard one, which has two names
    let calendar = |one: usize| match text(CALENDAR, one).as_str() {
        "none" | "gregorian" => "standard".to_owned(),
        other => other.to_owned(),
    };
    let counts_time = [0, 1].map(|one| text(UNITS, one).contains(" since "));
    let differs = counts_time.contains(&true) && calendar(0) != calendar(1);
    if differs { found(CALENDAR, false) } else { None }
}

impl TensorInfo {
    /// The tensor of the values that this tensor's elements stand for; `None` where the elements are the values.
    pub(crate) fn unpacked(&self) -> Result<Option<TensorInfo>, PackingFault> {
        let Some(annotated) = &self.annotated else { return Ok(None) };
        let said = annotated.get();
        let Some(unpacking) = Unpacking::of(&said, &self.dtype)? else {
            // a fill value of NaN marks missing values already, and is dropped
            let is_nan = |name: &str| {
                let stated = said.attributes.get(name).map(stated).unwrap_or_default();
                stated.iter().any(|it| it.is_nan())
            };
            let goes = [FILL_VALUE, MISSING_VALUE].into_iter().any(is_nan);
            let annotated = Some(LazyAnnotations::of(said.clone().without_packing()));
            return Ok(goes.then(|| TensorInfo { annotated, ..self.clone() }));
        };
        let dtype = unpacking.to.clone();
        let kind = StorageKind::Packed(self.clone().into(), unpacking.into());
        let storage = Storage { kind, ..self.storage.clone() };
        let annotated = Some(LazyAnnotations::of(said.without_packing()));
        let TensorInfo { name, shape, .. } = self.clone();
        Ok(Some(TensorInfo { name, dtype, shape, storage, annotated }))
    }
}
