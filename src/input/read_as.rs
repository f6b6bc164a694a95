//! Elements that are read as another dtype of the same size, without changing a byte: NumPy's `view`.

use std::sync::Arc;

use crate::dtype::DType;
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
    pub(crate) fn read_as(&mut self, ReadAs { dtype, tensors }: &ReadAs) -> Result<(), Error> {
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
        for number in numbers {
            let mut tensor = self.contents.tensors.at(number);
            let read = read_as(&mut tensor, dtype);
            read.map_err(|fault| self.failed_tensor(&tensor, count > 1, fault))?;
            Arc::make_mut(&mut self.contents.tensors).replace(number, &tensor);
        }
        Ok(())
    }
}

/// Read the elements of a tensor as another dtype of the same size.
pub(crate) fn read_as(tensor: &mut TensorInfo, given: &DType) -> Result<(), ReadAsFault> {
    if tensor.dtype.item_bits() != given.item_bits() {
        let (given, theirs) = (given.clone(), tensor.dtype.clone());
        return Err(ReadAsFault { given, theirs });
    }
    tensor.dtype = given.clone();
    Ok(())
}
