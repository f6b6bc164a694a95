//! Copies that are changed: of the bytes of a file, or of all tensors of a checkpoint in a folder.

use std::fs::File;
use std::io::ErrorKind;
use std::sync::Arc;

use crate::error::{Error, FileName};
use crate::execute::Progress;
use crate::formats::raw;
use crate::input::Input;
use crate::job::copy::Writing;
use crate::job::inputs::source_of;
use crate::output::layout::OutputTensor;
use crate::output::{LayoutFault, Output, Prepared, TensorChange, WriteOptions};
use crate::region::{Region, Take};
use crate::shape::Order;
use crate::sink::{BLOCK_BYTES, CopiedRange, Destination, Draft, InPlaceFile, Sink, SinkError};
use crate::tensor::TensorInfo;
use crate::{formats, sink};

/// A copy of a file's bytes.
pub(super) struct CopiedFile {
    pub(super) destination: Destination,
    pub(super) file: File,
    /// The length of the file in bytes when its header was read.
    pub(super) len: u64,
    /// The new header of the copy, if it changes.
    pub(super) header: Option<CopiedHeader>,
}

/// A folder of a checkpoint with all tensors of the input.
pub(super) struct CopiedFolder {
    pub(super) prepared: Prepared,
    takes: Vec<Take>,
}

impl CopiedFile {
    pub(super) fn begin(
        &self,
        name: &FileName,
        options: &WriteOptions,
        progress: &Progress,
    ) -> Result<(Box<dyn Draft>, InPlaceFile), Error> {
        let CopiedFile { destination: target, file, len, header } = self;
        let add = |bytes| progress.copied.add(bytes);
        let (from, at) = header.as_ref().map_or((0, 0), |header| (header.old, header.new));
        let original = CopiedRange { file, range: from..*len, at };
        let copy = || sink::create_copy(target, options.sink(), &original, &add);
        let copied = progress.copied.during(*len, copy);
        let (copy, patch) = copied.map_err(|error| match error {
            SinkError::OriginalTruncated => Error::file(name.clone(), error),
            error => failed_sink(target.into(), error),
        })?;
        if let Some(CopiedHeader { prepared, .. }) = header {
            let written = prepared.layout.write_headers(&|at, bytes| patch.write_at(at, bytes));
            written.map_err(|error| failed_sink(target.into(), error))?;
        }
        Ok((copy, patch))
    }
}

impl CopiedFolder {
    /// Lay out each tensor of `input` in a copy. Afterwards `input` describes the tensors of the copy: the number of the
    /// file, and the position in the file.
    pub(super) fn of(input: &mut Input, output: &Output) -> Result<CopiedFolder, Error> {
        // a copy must have all tensors of the input
        input.note_unreadable(input.contents.tensors.len()..input.named_count())?;
        let mut prepared = prepare_unchanged(input, output, false)?;
        let whole = |number: usize, to: &OutputTensor, at: u64| {
            let tensor = input.contents.tensors.at(number);
            let region = <dyn Region>::whole(&tensor, Order::C)?;
            Ok(Take::new(to.shard, region, to.conversion, at))
        };
        let offsets = prepared.tensor_offsets().enumerate();
        let takes = offsets.map(|(number, (to, at))| whole(number, &to, at));
        let mut takes = takes.collect::<Result<Vec<Take>, Error>>()?;
        takes.sort_by_key(|take| take.at);
        prepared.align(input, &mut takes);
        // each tensor by its offset in its file of the copy
        let files = prepared.layout.shared_files();
        let placed = prepared.tensor_offsets().map(|(to, at)| {
            let file = files.partition_point(|&start| start <= at).saturating_sub(1);
            let start = files.get(file).copied().unwrap_or_default();
            let tensor = TensorInfo::new(to.dtype, to.shape, Order::C, at - start);
            TensorInfo { name: Some(to.name), ..tensor.placed(file, 0) }
        });
        let placed = placed.collect();
        input.contents.tensors = Arc::new(placed);
        Ok(CopiedFolder { prepared, takes })
    }

    /// Copy all elements into the folder, which is not put in place yet.
    pub(super) fn copy<'a>(
        &'a mut self,
        input: &Input,
        progress: &'a Progress,
    ) -> Result<Option<Box<dyn Draft + 'a>>, Error> {
        let takes = std::mem::take(&mut self.takes);
        let job = Writing::begin(&self.prepared, input, &takes, progress)?;
        job.copy_random(input, source_of(input)?.as_ref(), &takes)?;
        job.into_draft()
    }
}

/// An output with all tensors of an input, unchanged.
fn prepare_unchanged(input: &Input, output: &Output, keeps_order: bool) -> Result<Prepared, Error> {
    let tensors = &input.contents.tensors;
    let mut preparation = output.begin_preparing(Arc::clone(tensors), input.checkpoint())?;
    preparation.keeps_order = keeps_order;
    for (number, tensor) in tensors.iter().enumerate() {
        let name = output.tensor_name(&tensor, &input.location, false);
        let change = TensorChange::unchanged(tensor.shape.clone());
        preparation.push(name, &tensor, number, change)?;
    }
    preparation.finish(&input.contents.metadata)
}

/// The header of a copy with other metadata than the original.
pub(super) struct CopiedHeader {
    prepared: Prepared,
    /// The positions where the elements begin in the original, and in the copy.
    old: u64,
    new: u64,
}

impl CopiedHeader {
    /// Make the header for a copy of `input`, and move the tensors of `input` to their
    /// offsets in the copy.
    pub(super) fn of(
        input: &mut Input,
        copy: &Destination,
        options: &WriteOptions,
    ) -> Result<CopiedHeader, Error> {
        let format = formats::of_plain(input.contents.format).unwrap_or(&raw::OUTPUT);
        let output = Output::new(copy.clone(), options.clone().format(format))?;
        let mut prepared = prepare_unchanged(input, &output, true)?;
        let old = input.contents.header_len;
        let start = |prepared: &Prepared| prepared.layout.starts().next().map_or(0, |(_, at)| at);
        // the elements keep their offset in a block, so that blocks can be shared
        let short = start(&prepared);
        let more = match old.checked_sub(short) {
            Some(more) => more,
            None => (short - old).next_multiple_of(BLOCK_BYTES) - (short - old),
        };
        prepared.layout.grow(&|_| more.next_multiple_of(8));
        let new = start(&prepared);
        let moved = new.checked_sub(old).ok_or(LayoutFault::TooLarge)?;
        let placed = input.contents.tensors.iter().map(|tensor| tensor.placed(0, moved));
        input.contents.tensors = Arc::new(placed.collect());
        Ok(CopiedHeader { prepared, old, new })
    }
}

/// The error of writing the file. A full disk is reported as a full disk, whichever step failed.
pub(super) fn failed_sink(name: FileName, error: SinkError) -> Error {
    let error = match error {
        SinkError::Os { error, .. } if error.kind() == ErrorKind::StorageFull => {
            SinkError::Io(error)
        }
        error => error,
    };
    Error::file(name, error)
}
