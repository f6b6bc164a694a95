//! Tensors beside the one that a job is about: the indices of a gather, the value of an assignment.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Cause, Error, FileName};
use crate::execute::{Progress, Workers};
use crate::format::TensorInfo;
use crate::input::{Input, SelectFault};
use crate::job::edit::original::Original;
use crate::region::{GatheredList, IndexTensor, decoded_bytes, decoded_info};
use crate::source::Source;

/// A tensor that is read as a whole, in a file or in memory.
#[derive(Clone)]
pub struct Operand {
    tensor: TensorInfo,
    bytes: OperandBytes,
    file: Option<FileName>,
}

#[derive(Clone)]
enum OperandBytes {
    /// Several tensors of a file may be read; this is the one as it is stored there.
    File {
        input: Arc<Mutex<Input>>,
        stored: TensorInfo,
    },
    There(Arc<dyn Source>),
}

impl From<IndexTensor> for Operand {
    fn from(IndexTensor { info, bytes, file }: IndexTensor) -> Operand {
        Operand { tensor: info, bytes: OperandBytes::There(bytes), file }
    }
}

impl Operand {
    /// The tensor of an input that these patterns (names or globs) mean; without any, the only one.
    pub fn of_input(input: Input, patterns: &[String]) -> Result<Operand, Error> {
        let stored = input.tensor(patterns)?;
        let file = input.location().into();
        Ok(Operand::of_file(Arc::new(Mutex::new(input)), stored, file))
    }

    /// For each of these names of tensors the tensor of an input that is meant for it: the one of that
    /// name, or the only one that there is.
    pub fn for_each(input: Input, names: &[Option<String>]) -> Result<Vec<Operand>, Error> {
        let number = |name: &Option<String>| {
            let name = name.as_deref()?;
            input.contents.tensors.names().position(|other| other == Some(name))
        };
        if let ([None], _) | (_, 1) = (names, input.named_count()) {
            return Ok(vec![Operand::of_input(input, &[])?; names.len()]);
        }
        let mut numbers = Vec::with_capacity(names.len());
        for name in names {
            match (number(name), name) {
                (Some(number), _) => numbers.push(number),
                (None, Some(name)) if names.len() > 1 => {
                    let names = input.contents.tensors.names().flatten().map(str::to_owned);
                    let pattern = name.clone();
                    let names = names.collect();
                    return Err(input.failed(SelectFault::NotFound {
                        pattern,
                        names,
                        links: false,
                    }));
                }
                // one tensor is changed: which one is read has to be said
                _ => return Ok(vec![Operand::of_input(input, &[])?]),
            }
        }
        let tensors: Vec<TensorInfo> =
            numbers.into_iter().map(|number| input.contents.tensors.at(number)).collect();
        let file = FileName::from(input.location());
        let input = Arc::new(Mutex::new(input));
        let of = |tensor| Operand::of_file(Arc::clone(&input), tensor, file.clone());
        Ok(tensors.into_iter().map(of).collect())
    }

    fn of_file(input: Arc<Mutex<Input>>, stored: TensorInfo, file: FileName) -> Operand {
        let tensor = decoded_info(&stored);
        Operand { tensor, bytes: OperandBytes::File { input, stored }, file: Some(file) }
    }

    /// The dtype and the shape of the tensor.
    pub fn tensor(&self) -> &TensorInfo {
        &self.tensor
    }

    /// The file that it lies in; `None` for one in memory.
    pub fn file(&self) -> Option<&FileName> {
        self.file.as_ref()
    }

    pub(super) fn failed(&self, cause: impl Into<Cause>) -> Error {
        Error::of_file(self.file.as_ref(), cause)
    }

    /// The index tensor that it is; a pipe is read to its end, and so is a remote file.
    pub fn into_indices(
        self,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<IndexTensor, Error> {
        let bytes = match self.bytes {
            OperandBytes::File { input, stored } => {
                let mut input = input.lock().unwrap_or_else(PoisonError::into_inner);
                let source = input.nearby(&stored, workers, progress)?;
                decoded_bytes(&stored, source, &input.location().into(), workers, progress)?
            }
            OperandBytes::There(bytes) => bytes,
        };
        Ok(IndexTensor { info: self.tensor, bytes, file: self.file })
    }

    /// Make sure that all of it is there, and stays as it is while `written`, bytes of a file, are
    /// changed. A pipe is read to its end.
    pub(super) fn keep(
        &mut self,
        original: &Original,
        written: &Range<u64>,
        progress: &Progress,
    ) -> Result<GatheredList, Error> {
        let source = match &mut self.bytes {
            OperandBytes::File { input, stored } => {
                let mut input = input.lock().unwrap_or_else(PoisonError::into_inner);
                let source = input.spool_watched(progress)?;
                let workers = original.workers();
                original.keep(&input, stored, written)?;
                decoded_bytes(stored, source, &input.location().into(), workers, progress)?
            }
            OperandBytes::There(source) => Arc::clone(source),
        };
        Ok(GatheredList { source, file: self.file.clone() })
    }
}
