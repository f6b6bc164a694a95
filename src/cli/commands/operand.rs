//! A tensor in a file other than the command's main one: the value of `assign`, the indices of
//! `gather`.

use std::path::Path;

use tslice::error::Error;
use tslice::execute::Workers;
use tslice::index::list::parse as parse_list;
use tslice::input::{OpenOptions, PlainText};
use tslice::job::Operand;
use tslice::region::IndexTensor;
use tslice::source::IoMode;
use tslice::tensor::Scaling;

use super::index::misread;
use super::{input, tensors};
use crate::cli::report::{Failure, of_flag};

/// A tensor in another file, which `flag` chooses by its name.
pub(super) struct NamedTensor<'a> {
    pub(super) path: &'a Path,
    pub(super) flag: &'a str,
    pub(super) name: Option<&'a String>,
    /// The threads that parse a text.
    pub(super) workers: &'a Workers,
    /// Whether packed values are unpacked.
    pub(super) unpack: bool,
    /// The scaling of elements afterwards.
    pub(super) scaling: Option<Scaling>,
}

impl NamedTensor<'_> {
    /// Open the file, and find the tensor for each of `names`: as asked, of that name, or the only one.
    pub(super) fn for_each(
        &self,
        names: &[Option<String>],
        io: IoMode,
        quiet: bool,
    ) -> Result<Vec<Operand>, Failure> {
        if self.name.is_some() {
            return Ok(vec![self.open(io, PlainText::Unknown, quiet)?; names.len()]);
        }
        let workers = self.workers.clone();
        let unpack = self.unpack;
        let options = OpenOptions { io, workers, unpack, ..OpenOptions::default() };
        let opened = input::open_watched(&input::location(self.path), &options, quiet);
        let operands = opened.and_then(|input| {
            let tensors = &input.contents().tensors;
            let meant: Vec<usize> = match tensors.len() {
                1 => vec![0],
                _ => names.iter().flatten().filter_map(|name| tensors.number_of(name)).collect(),
            };
            tensors::note_packed(tensors::of_numbers(&input, &meant));
            Operand::for_each(input, names)
        });
        let scaled = operands.and_then(|all| all.into_iter().map(|it| self.scaled(it)).collect());
        scaled.map_err(of_flag(self.flag))
    }

    pub(super) fn open(
        &self,
        io: IoMode,
        plain_text: PlainText,
        quiet: bool,
    ) -> Result<Operand, Failure> {
        let workers = self.workers.clone();
        let unpack = self.unpack;
        let options = OpenOptions { io, plain_text, workers, unpack, ..OpenOptions::default() };
        let opened = input::open_watched(&input::location(self.path), &options, quiet);
        let name = self.name.map_or(&[][..], std::slice::from_ref);
        let operand = opened.and_then(|input| {
            tensors::note_packed(tensors::of_numbers(&input, &input.find(name)?));
            Operand::of_input(input, name)
        });
        operand.and_then(|operand| self.scaled(operand)).map_err(of_flag(self.flag))
    }

    fn scaled(&self, operand: Operand) -> Result<Operand, Error> {
        match &self.scaling {
            Some(scaling) => operand.scaled(scaling),
            None => Ok(operand),
        }
    }

    pub(super) fn typed(&self) -> Result<Option<Operand>, Failure> {
        let Some(text) = self.path.to_str().filter(|text| text.starts_with('[')) else {
            return Ok(None);
        };
        let list = parse_list(text).map_err(|error| {
            misread("--indices", text)(error)
                .hint("a file whose name begins with a bracket is reached as ./[...")
        })?;
        if let Some(name) = self.name {
            let message = format!("--indices-tensor {name} has no effect: the indices are a list");
            return Err(Failure::usage(message));
        }
        Ok(Some(IndexTensor::new(&list.values, list.shape).into()))
    }

    /// Read the indices from the file; if that fails, hint at a list typed without brackets.
    pub(super) fn indices(&self, io: IoMode, quiet: bool) -> Result<Operand, Failure> {
        let list = self.path.to_str().map(|text| format!("[{text}]"));
        let list = list.filter(|list| parse_list(list).is_ok() && !self.path.exists());
        let hint =
            list.map(|list| format!("--indices names a file; a list has brackets: '{list}'"));
        self.open(io, PlainText::Integers, quiet).map_err(|failure| failure.hint_if(hint))
    }
}
