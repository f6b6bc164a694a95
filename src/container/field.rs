//! Fields of structured dtypes: one, with axes of its own where it has some, or several side by side.

use std::fmt::Write;

use super::error::Cause;
use super::fault::FieldFault;
use super::take::{Region, SideBySide};
use crate::dtype::{DType, NpyType};
use crate::format::Tensor;
use crate::format::npy::{self, Field, NpyKind};
use crate::index::resolve::Selection;
use crate::permutation::Permutation;
use crate::runs::Axis;
use crate::shape::{AsTuple, Order, contiguous_strides};
use crate::view::{FieldLayout, Layout, View};

/// What is taken of each item of a structured tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields {
    dtype: DType,
    shape: Vec<u64>,
    /// The fields in the order of the result, one for one field.
    parts: Vec<FieldLayout>,
}

impl Fields {
    /// The field of that name, `a.b` for a field of a field; or those of several names, `x,y`, put
    /// side by side to a structure without padding, as NumPy's `repack_fields(a[['x', 'y']])`. A
    /// field whose own name holds a dot or a comma comes first.
    ///
    /// # Errors
    /// [`FieldFault`]: no structured dtype, no such field, one that is named twice.
    pub fn of(tensor: &Tensor, names: &str) -> Result<Fields, FieldFault> {
        let fields = structure(&tensor.dtype)?;
        if let Some(field) = fields.iter().find(|field| field.name == names) {
            return Fields::one(tensor, std::slice::from_ref(field));
        }
        if names.contains(',') {
            return Fields::several(tensor, &fields, names);
        }
        let mut path: Vec<Field> = Vec::new();
        let mut fields = fields;
        for name in names.split('.') {
            if let Some(outer) = path.last() {
                fields = structure(&outer.dtype)?;
            }
            path.push(find(&fields, name)?.clone());
        }
        Fields::one(tensor, &path)
    }

    /// A field, reached through others.
    fn one(tensor: &Tensor, path: &[Field]) -> Result<Fields, FieldFault> {
        let mut shape = tensor.shape.clone();
        let mut part = FieldLayout::default();
        let mut dtype = &tensor.dtype;
        for field in path {
            dtype = &field.dtype;
            part.offset += field.offset;
            part.bytes = dtype.item_bits() / 8;
            let strides = contiguous_strides(&field.shape, part.bytes, Order::C);
            let strides = strides.ok_or_else(|| FieldFault::NotStructured(tensor.dtype.clone()))?;
            let axes = field.shape.iter().zip(strides);
            part.axes.extend(axes.map(|(&len, stride)| Axis { len, stride }));
            shape.extend(&field.shape);
        }
        Ok(Fields { dtype: dtype.clone(), shape, parts: vec![part] })
    }

    /// Several fields of the outermost structure.
    fn several(tensor: &Tensor, fields: &[Field], names: &str) -> Result<Fields, FieldFault> {
        let mut parts = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        let (mut descr, mut itemsize) = (String::from("["), 0);
        for name in names.split(',').map(str::trim) {
            let field = find(fields, name)?;
            if seen.contains(&name) {
                return Err(FieldFault::Twice(name.to_owned()));
            }
            seen.push(name);
            let count: u64 = field.shape.iter().product();
            let bytes = field.dtype.item_bits() / 8 * count;
            parts.push(FieldLayout { offset: field.offset, bytes, axes: Vec::new() });
            itemsize += bytes;
            let separator = if descr.len() > 1 { ", " } else { "" };
            let literal = npy::descr_literal(&field.dtype);
            let literal = literal.ok_or_else(|| FieldFault::NotStructured(field.dtype.clone()))?;
            // writing to a string cannot fail
            let _ = write!(descr, "{separator}({}, {literal}", npy::string_literal(name));
            if !field.shape.is_empty() {
                let _ = write!(descr, ", {}", AsTuple(&field.shape));
            }
            descr.push(')');
        }
        descr.push(']');
        let dtype = DType::Npy(NpyType { descr, itemsize });
        Ok(Fields { dtype, shape: tensor.shape.clone(), parts })
    }

    /// The dtype of the result.
    pub fn dtype(&self) -> &DType {
        &self.dtype
    }

    /// The shape of the result: that of the tensor, and the axes that the field itself has.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The bytes of a selection of the result, its axes in the order `axes`, in the memory order of
    /// the output.
    ///
    /// # Errors
    /// [`FieldFault::List`] for a selection with a list; [`Cause::View`].
    pub fn region(
        &self,
        tensor: &Tensor,
        selection: &Selection,
        (axes, order): (&Permutation, Order),
    ) -> Result<Region, Cause> {
        if !selection.lists.is_empty() {
            return Err(FieldFault::List.into());
        }
        let in_memory = axes.in_memory(order);
        let layout = Layout { shape: &tensor.shape, ..super::layout_of(tensor) };
        let view = |part| View::of_field(&layout, part, selection, &in_memory);
        if let [part] = self.parts.as_slice() {
            return Ok(Region::View(view(part)?));
        }
        Ok(Region::Fields(SideBySide::new(self.parts.iter().map(view).collect::<Result<_, _>>()?)))
    }
}

fn structure(dtype: &DType) -> Result<Vec<Field>, FieldFault> {
    let kind = match dtype {
        DType::Npy(npy) => NpyKind::of(npy),
        DType::Scalar(..) => None,
    };
    match kind {
        Some(NpyKind::Structure(fields)) => Ok(fields),
        _ => Err(FieldFault::NotStructured(dtype.clone())),
    }
}

fn find<'a>(fields: &'a [Field], name: &str) -> Result<&'a Field, FieldFault> {
    fields.iter().find(|field| field.name == name).ok_or_else(|| FieldFault::NotFound {
        name: name.to_owned(),
        names: fields.iter().map(|field| field.name.clone()).collect(),
    })
}
