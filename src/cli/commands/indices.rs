//! An index tensor: in a file, or typed on the command line.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use tslice::error::FileName;
use tslice::execute::{Progress, Workers};
use tslice::format::Tensor;
use tslice::gather;
use tslice::index::array;
use tslice::input::{Input, OpenOptions};
use tslice::job::Original;
use tslice::region::IndexTensor;
use tslice::source::Source;

use super::{input, output};
use crate::cli::args::Io;
use crate::cli::report::{Failure, of_flag};

/// An index tensor whose shape is known.
pub(super) struct Indices {
    pub(super) tensor: Tensor,
    /// The file; `None` for indices that were typed.
    pub(super) file: Option<FileName>,
    bytes: Bytes,
    /// Whether no progress is shown.
    quiet: bool,
}

enum Bytes {
    File(Box<Input>),
    Read(Arc<dyn Source>),
}

/// The error of indices that cannot be opened; a list that is typed has brackets.
fn or_list(failure: Failure, path: &Path) -> Failure {
    let list = path.to_str().map(|text| format!("[{text}]"));
    match list.filter(|list| array::parse(list).is_ok()) {
        Some(list) if !path.exists() => {
            failure.hint(format_args!("--indices names a file; a list has brackets: '{list}'"))
        }
        _ => failure,
    }
}

impl Indices {
    /// Open the file, and choose the tensor of that name.
    pub(super) fn open(
        (path, name): (&Path, Option<&String>),
        io: Io,
        quiet: bool,
    ) -> Result<Indices, Failure> {
        let options = OpenOptions { io: io.into(), integers: true, ..OpenOptions::default() };
        let input = input::open_watched(&input::location(path), &options, quiet)
            .map_err(|error| or_list(of_flag("--indices-tensor")(error), path))?;
        let name = name.map_or(&[][..], std::slice::from_ref);
        let tensor = input.tensor(name).map_err(of_flag("--indices-tensor"))?;
        let file = Some(input.location().into());
        Ok(Indices { tensor, file, bytes: Bytes::File(Box::new(input)), quiet })
    }

    /// The indices, where they were typed.
    pub(super) fn typed(
        (path, name): (&Path, Option<&String>),
    ) -> Result<Option<Indices>, Failure> {
        let Some(text) = path.to_str().filter(|text| text.starts_with('[')) else {
            return Ok(None);
        };
        let list = array::parse(text).map_err(|error| {
            Failure::usage(format_args!("--indices: {error}"))
                .at(text, error.span.clone())
                .hint("a file whose name begins with a bracket is reached as ./[...")
        })?;
        if let Some(name) = name {
            let message = format!("--indices-tensor {name} has no effect: the indices are a list");
            return Err(Failure::usage(message));
        }
        let IndexTensor { info: tensor, bytes, file } = IndexTensor::new(&list.values, list.shape);
        let bytes = Bytes::Read(bytes);
        Ok(Some(Indices { tensor, file, bytes, quiet: true }))
    }

    /// What gather needs to know of them.
    pub(super) fn layout(&self) -> gather::Indices<'_> {
        let Tensor { dtype, shape, order, offset, .. } = &self.tensor;
        gather::Indices { dtype, shape, order: *order, offset: *offset }
    }

    /// The indices with their bytes; a pipe is read to its end.
    pub(super) fn into_tensor(self, workers: &Workers) -> Result<IndexTensor, Failure> {
        let bytes = match self.bytes {
            Bytes::File(mut input) => {
                output::spool(&mut input, self.quiet)?;
                input.nearby(&self.tensor, workers, &Progress::default())?
            }
            Bytes::Read(source) => source,
        };
        Ok(IndexTensor { info: self.tensor, bytes, file: self.file })
    }

    /// The same, where `written` are the bytes of the target that are changed.
    pub(super) fn into_kept(
        self,
        target: &Original,
        written: &Range<u64>,
    ) -> Result<Arc<dyn Source>, Failure> {
        match self.bytes {
            Bytes::File(mut input) => {
                output::spool(&mut input, self.quiet)?;
                Ok(target.keep(*input, &self.tensor, written)?)
            }
            Bytes::Read(source) => Ok(source),
        }
    }
}
