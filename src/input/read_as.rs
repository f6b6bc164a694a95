//! Elements that are read as another dtype of the same size, without changing a byte: NumPy's `view`.

use std::sync::Arc;

use crate::dtype::{DType, Field, NpyType};
use crate::error::{Error, Fault};
use crate::format::TensorInfo;
use crate::input::Input;
use crate::input::pattern::find;

/// What the elements of tensors are read as that the input says to be something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadAs {
    /// The dtype.
    pub dtype: DType,
    /// Names or globs of the tensors; empty for all.
    pub tensors: Vec<String>,
    /// Fields that are taken afterwards ([`Input::take_fields`]): the dtype is that of their elements.
    pub fields: Option<String>,
}

/// Elements cannot be read as another dtype, whose elements are not as long.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "as {given}: its elements have {} bits, those of the file's {theirs} {}",
    given.item_bits(),
    theirs.item_bits()
)]
pub struct ReadAsFault {
    /// The dtype that was given.
    pub given: DType,
    /// The dtype of the file.
    pub theirs: DType,
}

impl Fault for ReadAsFault {}

impl Input {
    /// Read elements as what they are said to be. A name that no tensor has is told by who chooses tensors.
    pub(crate) fn read_as(&mut self, other: &ReadAs) -> Result<(), Error> {
        let ReadAs { dtype, tensors, fields } = other;
        let own = &self.contents.tensors;
        let count = own.len();
        let mut numbers: Vec<usize> = match tensors.is_empty() || own.names().any(|it| it.is_none())
        {
            true => (0..count).collect(),
            false => {
                let names = || own.names().map(Option::unwrap_or_default);
                let of = |pattern| find(names(), std::slice::from_ref(pattern)).unwrap_or_default();
                tensors.iter().flat_map(of).collect()
            }
        };
        numbers.sort_unstable();
        numbers.dedup();
        let excluded = self.excluded().unwrap_or_default();
        numbers.retain(|number| excluded.binary_search(number).is_err());
        for number in numbers {
            let mut tensor = self.contents.tensors.at(number);
            let read = match fields.as_deref() {
                Some(names) => fields_as(&tensor.dtype, names, dtype).map(|it| tensor.dtype = it),
                None => read_as(&mut tensor, dtype),
            };
            read.map_err(|fault| self.failed_tensor(&tensor, count > 1, fault))?;
            Arc::make_mut(&mut self.contents.tensors).replace(number, &tensor);
        }
        Ok(())
    }
}

/// Read the elements of a tensor as another dtype of the same size.
pub(crate) fn read_as(tensor: &mut TensorInfo, given: &DType) -> Result<(), ReadAsFault> {
    tensor.dtype = viewed(&tensor.dtype, given)?;
    Ok(())
}

fn viewed(theirs: &DType, given: &DType) -> Result<DType, ReadAsFault> {
    match theirs.item_bits() == given.item_bits() {
        true => Ok(given.clone()),
        false => Err(ReadAsFault { given: given.clone(), theirs: theirs.clone() }),
    }
}

/// A structure in which the elements of fields are another dtype; fields that it lacks are told by who takes
/// them.
fn fields_as(dtype: &DType, names: &str, given: &DType) -> Result<DType, ReadAsFault> {
    let Some(structure) = dtype.structure() else { return Ok(dtype.clone()) };
    let mut structure = structure.clone();
    let is_one = structure.fields.iter().any(|field| field.has_name(names));
    let (names, inner) = match names.split_once('.') {
        Some((name, inner)) if !is_one && !names.contains(',') => (vec![name], Some(inner)),
        _ if is_one => (vec![names], None),
        _ => (names.split(',').map(str::trim).collect(), None),
    };
    let is_meant = |field: &&mut Field| names.iter().any(|name| field.has_name(name));
    for field in structure.fields.iter_mut().filter(is_meant) {
        field.dtype = match inner {
            Some(inner) => fields_as(&field.dtype, inner, given)?,
            None => viewed(&field.dtype, given)?,
        };
    }
    Ok(DType::Npy(NpyType::Structure(Arc::new(structure))))
}
