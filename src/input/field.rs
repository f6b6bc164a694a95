//! Fields of structured dtypes: one in place of the items, or several side by side.
//!
//! A tensor whose fields are taken is a tensor like any other, with the dtype of the field, its axes
//! behind those of the items, and longer strides: `region` tells where its
//! elements lie.

use std::sync::Arc;

use crate::dtype::{DType, Field, NpyType, Structure};
use crate::error::{ContainerError, Fault};
use crate::format::{Fields, Tensor};
use crate::input::opened::Input;
use crate::shape::{MAX_NDIM, Order, contiguous_strides};

impl Input {
    /// Take fields of the tensors with these numbers in place of their items: the field of a name or
    /// title, `a.b` for a field of a field; or those of several names, `x,y`, put side by side to a
    /// structure without padding, as NumPy's `repack_fields(a[['x', 'y']])`; with a comma behind it,
    /// `x,`, one name makes such a structure too. A field whose own name holds a dot or a comma comes
    /// first.
    ///
    /// # Errors
    /// [`FieldFault`]: no structured dtype, no such field, one that is named twice.
    pub fn take_fields(&mut self, names: &str, numbers: &[usize]) -> Result<(), ContainerError> {
        for &number in numbers {
            let Some(tensor) = self.contents.tensors.get(number) else { continue };
            let fields = take_fields(&tensor, names);
            let several = numbers.len() > 1;
            let fields = fields.map_err(|fault| self.failed_tensor(&tensor, several, fault))?;
            Arc::make_mut(&mut self.contents.tensors).replace(number, &fields);
        }
        Ok(())
    }
}

/// The tensor that fields of another one are, as [`Input::take_fields`].
pub(crate) fn take_fields(tensor: &Tensor, names: &str) -> Result<Tensor, FieldFault> {
    let fields = structure(&tensor.dtype)?;
    let mut path = vec![];
    if let Some(field) = fields.iter().find(|field| field.has_name(names)) {
        path.push(field);
    } else if names.contains(',') {
        return several(tensor, fields, names);
    } else {
        let mut fields = fields;
        for name in names.split('.') {
            if let Some(Field { dtype, .. }) = path.last().copied() {
                fields = structure(dtype)?;
            }
            path.push(find(fields, name, Field::has_name)?);
        }
    }
    one(tensor, &path)
}

/// A field, reached through others.
fn one(tensor: &Tensor, path: &[&Field]) -> Result<Tensor, FieldFault> {
    let (mut shape, mut strides) = (tensor.shape.clone(), Vec::new());
    let (mut dtype, mut offset) = (&tensor.dtype, 0);
    for field in path {
        dtype = &field.dtype;
        offset += field.offset;
        let own = contiguous_strides(&field.shape, bytes(dtype), Order::C);
        strides.extend(own.ok_or_else(|| FieldFault::NotStructured(tensor.dtype.clone()))?);
        shape.extend(&field.shape);
    }
    if shape.len() > MAX_NDIM {
        return Err(FieldFault::TooManyAxes(shape.len()));
    }
    let part = offset..offset + path.last().map_or(0, |field| field.bytes());
    let fields = Some(Fields { item: bytes(&tensor.dtype), parts: Vec::from([part]), strides });
    Ok(Tensor { dtype: dtype.clone(), shape, fields, ..tensor.clone() })
}

/// Several fields of the outermost structure. As in NumPy, these have no other names than their
/// own, and keep their titles.
fn several(tensor: &Tensor, fields: &[Field], names: &str) -> Result<Tensor, FieldFault> {
    let mut parts = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    let mut packed = Structure { fields: Vec::new(), itemsize: 0 };
    // as in a tuple of Python, a comma makes one name a list
    for name in names.strip_suffix(',').unwrap_or(names).split(',').map(str::trim) {
        let field = find(fields, name, |field, name| field.name == name)?;
        if seen.contains(&name) {
            return Err(FieldFault::Twice(name.to_owned()));
        }
        seen.push(name);
        parts.push(field.offset..field.offset + field.bytes());
        packed.fields.push(Field { offset: packed.itemsize, is_named: true, ..field.clone() });
        packed.itemsize += field.bytes();
    }
    let dtype = DType::Npy(NpyType::Structure(Arc::new(packed)));
    let fields = Some(Fields { item: bytes(&tensor.dtype), parts, strides: Vec::new() });
    Ok(Tensor { dtype, fields, ..tensor.clone() })
}

fn bytes(dtype: &DType) -> u64 {
    dtype.item_bits() / 8
}

fn structure(dtype: &DType) -> Result<&[Field], FieldFault> {
    match dtype.structure() {
        Some(structure) => Ok(&structure.fields),
        None => Err(FieldFault::NotStructured(dtype.clone())),
    }
}

fn find<'a>(
    fields: &'a [Field],
    name: &str,
    is_it: impl Fn(&Field, &str) -> bool,
) -> Result<&'a Field, FieldFault> {
    let found = fields.iter().find(|field| is_it(field, name));
    found.ok_or_else(|| FieldFault::NotFound {
        name: name.to_owned(),
        names: fields.iter().map(|field| field.name.clone()).collect(),
    })
}

/// Why fields cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldFault {
    /// The elements have no fields.
    #[error("dtype {0} has no fields")]
    NotStructured(DType),
    /// No field has that name.
    #[error("no field is named {name:?}; the fields are {}", names.join(", "))]
    NotFound {
        /// The name.
        name: String,
        /// The names that there are.
        names: Vec<String>,
    },
    /// A field is named twice.
    #[error("the field {0:?} is named twice")]
    Twice(String),
    /// The axes of the items and those of the field together are too many.
    #[error("the field would have {0} axes, and at most {max} are possible", max = crate::shape::MAX_NDIM)]
    TooManyAxes(usize),
}

impl Fault for FieldFault {}
