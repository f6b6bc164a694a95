//! A file that is changed, and the tensors that are read for it, by the flags of `assign`, `scatter` and
//! `gather`.

use std::path::Path;

use tslice::error::Error;
use tslice::execute::Workers;
use tslice::index::array;
use tslice::input::OpenOptions;
use tslice::job::{Casts, Editing, Operand};
use tslice::output::WriteOptions;
use tslice::region::IndexTensor;
use tslice::source::IoMode;

use super::index::misread;
use super::{input, output};
use crate::cli::args::{EditArgs, InputArgs};
use crate::cli::report::{Failure, of_flag};

/// Open the file that is to be changed, as is needed for what is to be done with it.
pub(super) fn open(
    path: &Path,
    from: &InputArgs,
    to: &EditArgs,
    workers: &Workers,
) -> Result<Editing, Failure> {
    if path == Path::new("-") {
        return Err(Failure::usage("TARGET must be a file, not standard input"));
    }
    let copy = to.place.output.as_deref().map(output::target);
    if let (Some(copy), false) = (&copy, to.dry_run) {
        output::refuse_terminal(copy)?;
    }
    let mut options = WriteOptions::default().force(to.force).fsync(to.fsync).workers(workers);
    options.metadata = output::metadata(&to.metadata)?;
    if to.place.in_place && options.metadata.is_any() {
        let message = "--metadata, --metadata-from and --no-metadata are for a copy, -o FILE: in place \
                       a header stays as it is";
        return Err(Failure::usage(message));
    }
    Ok(Editing::open(path, &input::options(from, None)?, copy, options)?)
}

/// The names of the tensors that are changed.
pub(super) fn names(job: &Editing) -> Vec<Option<String>> {
    job.tensors().map(|tensor| tensor.name.clone()).collect()
}

/// Refuse a cast that no value needs.
pub(super) fn refuse_unused(casts: &Casts, values: &[Operand]) -> Result<(), Failure> {
    let dtypes = values.iter().map(|value| value.tensor().dtype.clone());
    Ok(casts.refuse_unused(dtypes).map_err(Error::from)?)
}

/// A tensor of a file, chosen by the name that a flag gave.
pub(super) struct NamedTensor<'a> {
    pub(super) path: &'a Path,
    pub(super) flag: &'a str,
    pub(super) name: Option<&'a String>,
}

impl NamedTensor<'_> {
    /// Open the file, and find what is meant for each of these tensors: the one that was asked for, that
    /// of the same name, or the only one.
    pub(super) fn for_each(
        &self,
        names: &[Option<String>],
        io: IoMode,
        quiet: bool,
    ) -> Result<Vec<Operand>, Failure> {
        if self.name.is_some() {
            return Ok(vec![self.open(io, false, quiet)?; names.len()]);
        }
        let options = OpenOptions { io, two_sums: true, ..OpenOptions::default() };
        let opened = input::open_watched(&input::location(self.path), &options, quiet);
        let operands = opened.and_then(|input| Operand::for_each(input, names));
        operands.map_err(of_flag(self.flag))
    }

    /// Open the file; integers as text are an index tensor where `integers` are needed.
    pub(super) fn open(&self, io: IoMode, integers: bool, quiet: bool) -> Result<Operand, Failure> {
        let options = OpenOptions { io, integers, two_sums: true, ..OpenOptions::default() };
        let opened = input::open_watched(&input::location(self.path), &options, quiet);
        let name = self.name.map_or(&[][..], std::slice::from_ref);
        let operand = opened.and_then(|input| Operand::of_input(input, name));
        operand.map_err(of_flag(self.flag))
    }

    /// The indices, where they were typed.
    pub(super) fn typed(&self) -> Result<Option<Operand>, Failure> {
        let Some(text) = self.path.to_str().filter(|text| text.starts_with('[')) else {
            return Ok(None);
        };
        let list = array::parse(text).map_err(|error| {
            misread("--indices", text)(error)
                .hint("a file whose name begins with a bracket is reached as ./[...")
        })?;
        if let Some(name) = self.name {
            let message = format!("--indices-tensor {name} has no effect: the indices are a list");
            return Err(Failure::usage(message));
        }
        Ok(Some(IndexTensor::new(&list.values, list.shape).into()))
    }

    /// The indices in the file; a list that is typed has brackets.
    pub(super) fn indices(&self, io: IoMode, quiet: bool) -> Result<Operand, Failure> {
        let list = self.path.to_str().map(|text| format!("[{text}]"));
        let list = list.filter(|list| array::parse(list).is_ok() && !self.path.exists());
        let hint =
            list.map(|list| format!("--indices names a file; a list has brackets: '{list}'"));
        self.open(io, true, quiet).map_err(|failure| failure.hint_if(hint))
    }
}
