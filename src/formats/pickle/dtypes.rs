//! Dtypes of NumPy in a pickle: `dtype('f4', False, True)`, then the state.
//!
//! ```text
//! (3, '<', None, None, None, -1, -1, 0)                                   a number, a text, a time
//! (3, '|', None, ('a', 'b'), {'a': (dtype, 0), 'b': (dtype, 4)}, 8, 1, 16)     a structure
//! (3, '|', (dtype, (2, 3)), None, None, 24, 4, 8)                             a subarray
//! ```

use std::cell::OnceCell;
use std::collections::HashMap;

use super::PickleError;
use super::globals::{ArrayCall, ElementType, Global};
use super::items::{PickleItem, SharedKind, SharedValue};
use super::value::PickleValue;
use crate::dtype::{DType, Endian};
use crate::formats::npy::{self, DescrError, PyLiteral};

/// The most values of the literal of a structure.
const MAX_LITERAL: usize = 10_000;

/// A dtype of NumPy, which gets its byte order, its fields or its axes after it was made.
#[derive(Debug)]
pub(crate) struct ArrayDType {
    name: PickleValue,
    built: OnceCell<Result<BuiltDType, PickleError>>,
}

#[derive(Clone, Debug)]
struct BuiltDType {
    /// The dtype; `None` for a subarray, which is the type of fields alone.
    dtype: Option<DType>,
    /// The literal of a `.npy` header, if there is one.
    literal: Option<PyLiteral>,
    /// How many values the literal has.
    values: usize,
    /// The bytes of an element.
    size: u64,
}

impl ArrayDType {
    pub(crate) fn new(name: PickleValue) -> ArrayDType {
        ArrayDType { name, built: OnceCell::new() }
    }

    /// Set the state, which is `(version, byte order, array, names, fields, size, alignment, flags[, unit])`. Returns the
    /// number of values that were made.
    pub(crate) fn build(&self, state: &PickleValue, shared: &[SharedValue]) -> usize {
        let mut values = 1;
        let built = self.built(state.items().unwrap_or_default(), shared, &mut values);
        // if the state is set twice, the first one stays
        let _ = self.built.set(built);
        values
    }

    fn built(
        &self,
        state: &[PickleValue],
        shared: &[SharedValue],
        values: &mut usize,
    ) -> Result<BuiltDType, PickleError> {
        let wrong = || ArrayCall::DType.wrong();
        let [_, PickleValue::Text(order), array, names, fields, size, _, _, unit @ ..] = state
        else {
            return Err(wrong());
        };
        match (array, names) {
            (PickleValue::None, PickleValue::None) => self.plain(order, unit),
            (PickleValue::None, names) => {
                let PickleValue::Shared(at) = fields else { return Err(wrong()) };
                let fields = shared.get(*at).filter(|it| it.kind == SharedKind::Dict);
                let names = names.items().ok_or_else(wrong)?;
                let fields = fields.ok_or_else(wrong)?;
                structure(names, fields, size.count().ok_or_else(wrong)?, values)
            }
            (array, _) => {
                let [PickleValue::ArrayDType(base), shape] = array.items().unwrap_or_default()
                else {
                    return Err(wrong());
                };
                let shape = match shape {
                    PickleValue::Int(_) => vec![shape.count().ok_or_else(wrong)?],
                    shape => shape.axes().ok_or_else(wrong)?,
                };
                *values += base.values() + shape.len() + 1;
                subarray(base.get()?, &shape, *values)
            }
        }
    }

    fn plain(&self, order: &str, unit: &[PickleValue]) -> Result<BuiltDType, PickleError> {
        let wrong = || ArrayCall::DType.wrong();
        let name = match &self.name {
            PickleValue::Text(name) => name,
            PickleValue::Global(Global::DType(ElementType::Known(scalar))) => {
                let is_big = order == ">" && scalar.bits() > 8;
                let endian = if is_big { Endian::Big } else { Endian::Little };
                let size = scalar.bits() / 8;
                let dtype = Some(DType::Scalar(*scalar, endian));
                return Ok(BuiltDType { dtype, literal: None, values: 1, size });
            }
            _ => return Err(PickleError::DType("a class of another package".into())),
        };
        let unit = match unit {
            [unit] if name.starts_with(['M', 'm']) => {
                let [_, of] = unit.items().ok_or_else(wrong)? else { return Err(wrong()) };
                let [unit, count, ..] = of.items().ok_or_else(wrong)? else { return Err(wrong()) };
                let unit = match unit {
                    PickleValue::Bytes(unit) => unit.key.as_deref(),
                    PickleValue::Text(unit) => Some(&**unit),
                    _ => None,
                };
                match (unit, count.count()) {
                    (Some("generic"), Some(_)) => String::new(),
                    (Some(unit), Some(count)) => format!("[{count}{unit}]"),
                    _ => return Err(wrong()),
                }
            }
            _ => String::new(),
        };
        let text = format!("{order}{name}{unit}");
        let dtype = npy::parse_dtype(&text).map_err(of_descr)?;
        let size = dtype.item_bits() / 8;
        let literal = Some(PyLiteral::Str(text));
        Ok(BuiltDType { dtype: Some(dtype), literal, values: 1, size })
    }

    /// How many values its literal has.
    pub(crate) fn values(&self) -> usize {
        self.built.get().and_then(|built| built.as_ref().ok()).map_or(1, |built| built.values)
    }

    /// The bytes that it takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<ArrayDType>() + self.name.bytes() + 4 * size_of::<PyLiteral>() * self.values()
    }

    pub(crate) fn dtype(&self) -> Result<DType, PickleError> {
        let dtype = match self.built.get() {
            Some(built) => built.as_ref().map_err(Clone::clone)?.dtype.clone(),
            None => self.get()?.dtype,
        };
        dtype.ok_or_else(|| ArrayCall::DType.wrong())
    }

    fn get(&self) -> Result<BuiltDType, PickleError> {
        match self.built.get() {
            Some(built) => built.clone(),
            None => self.plain("=", &[]),
        }
    }
}

fn of_descr(error: DescrError) -> PickleError {
    match error {
        DescrError::Object(_) => PickleError::Objects,
        error => PickleError::Elements(error.to_string()),
    }
}

/// The type of fields that are arrays.
fn subarray(base: BuiltDType, shape: &[u64], values: usize) -> Result<BuiltDType, PickleError> {
    let size = shape.iter().try_fold(base.size, |size, len| size.checked_mul(*len));
    let size = size.ok_or_else(|| ArrayCall::DType.wrong())?;
    let shape = shape.iter().map(|&len| PyLiteral::Int(len.into())).collect();
    let literal = base.literal.map(|base| PyLiteral::Tuple(vec![base, PyLiteral::Tuple(shape)]));
    Ok(BuiltDType { dtype: None, literal, values, size })
}

/// The type of items of `size` bytes with fields, whose types and offsets are in a dict.
fn structure(
    names: &[PickleValue],
    fields: &SharedValue,
    size: u64,
    values: &mut usize,
) -> Result<BuiltDType, PickleError> {
    let wrong = || ArrayCall::DType.wrong();
    let unlike = |what: &'static str| PickleError::DType(what.into());
    let of_name = |PickleItem { key, value }| match key {
        Some(PickleValue::Text(name)) => Some((name, value)),
        _ => None,
    };
    let fields: HashMap<_, _> = fields.items().filter_map(of_name).collect();
    let padding = |len: u64| {
        let parts = [String::new(), format!("|V{len}")].map(PyLiteral::Str);
        PyLiteral::Tuple(parts.into())
    };
    let mut literals = Vec::new();
    let mut end = 0;
    for name in names {
        let PickleValue::Text(name) = name else { return Err(wrong()) };
        let field = fields.get(name).and_then(PickleValue::items);
        let Some([PickleValue::ArrayDType(dtype), offset, title @ ..]) = field else {
            return Err(wrong());
        };
        *values += dtype.values() + 4 + name.len() / size_of::<PyLiteral>();
        if *values > MAX_LITERAL {
            return Err(unlike("a structure of too many fields"));
        }
        let dtype = dtype.get()?;
        let offset = offset.count().ok_or_else(wrong)?;
        match offset.checked_sub(end) {
            None => return Err(unlike("a structure whose fields overlap or are out of order")),
            Some(0) => {}
            Some(gap) => literals.push(padding(gap)),
        }
        end = offset.checked_add(dtype.size).ok_or_else(wrong)?;
        let spelled = PyLiteral::Str(name.to_string());
        let spelled = match title {
            [PickleValue::Text(title)] => {
                *values += title.len() / size_of::<PyLiteral>();
                PyLiteral::Tuple(vec![PyLiteral::Str(title.to_string()), spelled])
            }
            _ => spelled,
        };
        let Some(literal) = dtype.literal else {
            return Err(unlike("a structure with fields of another package"));
        };
        literals.push(PyLiteral::Tuple(vec![spelled, literal]));
    }
    match size.checked_sub(end) {
        None => return Err(wrong()),
        Some(0) => {}
        Some(gap) => literals.push(padding(gap)),
    }
    let literal = PyLiteral::List(literals);
    let dtype = npy::literal_dtype(&literal).map_err(of_descr)?;
    Ok(BuiltDType { dtype: Some(dtype), literal: Some(literal), values: *values, size })
}
