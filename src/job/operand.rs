//! Tensors beside the one that a job is about: the indices of a gather, the value of an assignment.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Cause, Error, FileName};
use crate::execute::{Progress, Workers};
use crate::format::TensorInfo;
use crate::input::Input;
use crate::job::edit::original::Original;
use crate::region::{GatheredList, IndexTensor};
use crate::source::Source;

/// A tensor that is read as a whole, in a file or in memory.
pub struct Operand {
    tensor: TensorInfo,
    bytes: OperandBytes,
    file: Option<FileName>,
}

enum OperandBytes {
    File(Box<Input>),
    There(Arc<dyn Source>),
}

impl From<IndexTensor> for Operand {
    fn from(IndexTensor { info, bytes, file }: IndexTensor) -> Operand {
        Operand { tensor: info, bytes: OperandBytes::There(bytes), file }
    }
}

impl Operand {
    /// The tensor of an input that these patterns (names or globs) mean; without any, the only one.
    ///
    /// # Errors
    /// [`SelectFault`](crate::input::SelectFault).
    pub fn of_input(input: Input, patterns: &[String]) -> Result<Operand, Error> {
        let (tensor, file) = (input.tensor(patterns)?, Some(input.location().into()));
        Ok(Operand { tensor, bytes: OperandBytes::File(Box::new(input)), file })
    }

    /// The dtype and the shape of the tensor.
    pub fn tensor(&self) -> &TensorInfo {
        &self.tensor
    }

    /// The file that it lies in; `None` for one in memory.
    pub fn file(&self) -> Option<&FileName> {
        self.file.as_ref()
    }

    /// An error that is about it.
    pub(super) fn failed(&self, cause: impl Into<Cause>) -> Error {
        Error::of_file(self.file.as_ref(), cause)
    }

    /// The index tensor that it is; a pipe is read to its end, and so is a remote file.
    ///
    /// # Errors
    /// An input that cannot be read, a temporary file that cannot be written.
    pub fn into_indices(
        self,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<IndexTensor, Error> {
        let bytes = match self.bytes {
            OperandBytes::File(mut input) => input.nearby(&self.tensor, workers, progress)?,
            OperandBytes::There(bytes) => bytes,
        };
        Ok(IndexTensor { info: self.tensor, bytes, file: self.file })
    }

    /// Make sure that all of it is there, and stays as it is while `written`, bytes of a file, are
    /// changed. A pipe is read to its end.
    ///
    /// # Errors
    /// Those of [`Original::keep`].
    pub(super) fn keep(
        &mut self,
        original: &Original,
        written: &Range<u64>,
        progress: &Progress,
    ) -> Result<GatheredList, Error> {
        let source = match &mut self.bytes {
            OperandBytes::File(input) => {
                let source = input.spool_watched(progress)?;
                original.keep(input, &self.tensor, written)?;
                source
            }
            OperandBytes::There(source) => Arc::clone(source),
        };
        Ok(GatheredList { source, file: self.file.clone() })
    }
}
