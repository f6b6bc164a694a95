//! An assignment to a file as a job: what is written, and where.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use crate::error::{Error, FileName};
use crate::execute::{
    Assignment, Conversion, ExecuteError, FillError, Progress, StridedSink, Transfer, Workers,
};
use crate::format::TensorInfo;
use crate::gather::{GatherError, Indexed, Indices, Options, OutOfRange};
use crate::index::resolve::Selection;
use crate::input::{self, Location, OpenOptions, ShardsFault};
use crate::job::casts::Casts;
use crate::job::contract::{Job, Made, Planned, PlannedTensor};
use crate::job::edit::conversion::cast_conversion;
use crate::job::edit::fault::EditFault;
use crate::job::edit::original::{Edit, Original};
use crate::job::operand::Operand;
use crate::output::WriteOptions;
use crate::region::{GatheredList, ListError, OpenIndex, layout_of};
use crate::runs::Runs;
use crate::scatter::{Scatter, ScatterError};
use crate::sink::{Destination, SinkError};
use crate::source::OpenError;
use crate::view::View;

/// Values on their way into tensors of files: of one file, or of shards of a checkpoint.
pub struct Editing {
    files: Vec<EditedFile>,
    targets: Vec<Target>,
}

/// A file that is changed.
struct EditedFile {
    original: Original,
    edits: Vec<TensorEdit>,
}

/// A tensor that is changed, and the number of its file.
struct Target {
    file: usize,
    tensor: TensorInfo,
}

/// What an index selects of a tensor that is to be changed.
pub struct EditedSlice<'a> {
    target: usize,
    tensor: TensorInfo,
    index: OpenIndex<'a>,
    selection: Selection,
    /// Where its elements lie; `None` where lists name them.
    view: Option<View>,
}

/// Values on their way into a tensor.
struct TensorEdit {
    tensor: TensorInfo,
    /// The shape of what is written.
    shape: Vec<u64>,
    value: Operand,
    conversion: Conversion,
    place: WrittenTo,
    /// The lists of positions, and an index tensor that becomes the only one.
    lists: Vec<GatheredList>,
    indices: Option<Operand>,
    /// The bytes of the value, once they are known to stay.
    kept: Option<GatheredList>,
}

/// Where values go.
enum WrittenTo {
    /// To ranges of positions, from bytes in the same order.
    Slice { to: Runs, from: Runs },
    /// To positions that lists name.
    Listed(Box<Scatter>),
}

/// How values are scattered.
pub struct ScatterOptions {
    /// One position on this axis for each element, as np.put_along_axis; without one, tuples name
    /// slabs.
    pub axis: Option<i64>,
    /// What becomes of positions out of range.
    pub out_of_range: OutOfRange,
    /// What the values are cast to.
    pub casts: Casts,
}

impl Editing {
    /// Open the tensors that patterns mean, names or globs, in a file or in the shards of a checkpoint:
    /// these are changed in place, or one file in a `copy`.
    ///
    /// # Errors
    /// Those of [`Original::open`], [`SelectFault`](crate::input::SelectFault).
    pub fn open(
        path: &Path,
        open: &OpenOptions,
        copy: Option<Destination>,
        options: WriteOptions,
    ) -> Result<Editing, Error> {
        let of_shards = copy.is_none() && !open.tensors.is_empty();
        if of_shards && path.is_dir() {
            return Editing::of_shards(path, open, &options);
        }
        match Original::open(path, open, copy, options.clone()) {
            Ok(original) => {
                let numbers = original.input().find(&open.tensors)?;
                let tensors = &original.input().contents.tensors;
                let target = |number| Target { file: 0, tensor: tensors.at(number) };
                let targets = numbers.into_iter().map(target).collect();
                Ok(Editing { files: vec![EditedFile::of(original)], targets })
            }
            Err(error) => match error.cause.downcast_ref() {
                Some(EditFault::Sharded) if of_shards => Editing::of_shards(path, open, &options),
                _ => Err(error),
            },
        }
    }

    /// Open those shards of a checkpoint that hold the tensors that patterns mean.
    fn of_shards(
        path: &Path,
        open: &OpenOptions,
        options: &WriteOptions,
    ) -> Result<Editing, Error> {
        let patterns = open.tensors.clone();
        let checkpoint = input::open(&Location::Path(path.to_owned()), open);
        let checkpoint = checkpoint.map_err(|error| match error.cause.downcast_ref() {
            Some(ShardsFault::NoIndex) => Error::file(path, OpenError::IsADirectory),
            _ => error,
        })?;
        let open = OpenOptions { tensors: Vec::new(), ..open.clone() };
        let mut editing = Editing { files: Vec::new(), targets: Vec::new() };
        let mut opened: HashMap<usize, usize> = HashMap::new();
        for number in checkpoint.find(&patterns)? {
            let tensor = checkpoint.contents.tensors.at(number);
            let file = match opened.get(&tensor.part()) {
                Some(&file) => file,
                None => {
                    let FileName::Path(shard) = checkpoint.file_name(&tensor) else {
                        return Err(Error::file(path, EditFault::Remote));
                    };
                    let original = Original::open(&shard, &open, None, options.clone())?;
                    editing.files.push(EditedFile::of(original));
                    opened.insert(tensor.part(), editing.files.len() - 1);
                    editing.files.len() - 1
                }
            };
            let name: Vec<String> = tensor.name.into_iter().collect();
            let tensor = editing.files[file].original.input().tensor(&name)?;
            editing.targets.push(Target { file, tensor });
        }
        Ok(editing)
    }

    /// Change one tensor of a file.
    pub fn of(original: Original, tensor: TensorInfo) -> Editing {
        Editing { files: vec![EditedFile::of(original)], targets: vec![Target { file: 0, tensor }] }
    }

    /// The tensors that are changed.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = &TensorInfo> {
        self.targets.iter().map(|target| &target.tensor)
    }

    /// What an index selects of the tensor of this number.
    ///
    /// # Errors
    /// [`ResolveError`](crate::index::resolve::ResolveError) for an index that does not fit.
    ///
    /// # Panics
    /// If there are not that many.
    pub fn slice<'a>(&self, number: usize, index: OpenIndex<'a>) -> Result<EditedSlice<'a>, Error> {
        let tensor = self.targets[number].tensor.clone();
        let slice = || {
            let selection = index.resolve(&tensor.shape)?;
            let view = match selection.lists.is_empty() {
                true => Some(View::new(&layout_of(&tensor)?, &selection)?),
                false => None,
            };
            Ok((selection, view))
        };
        let (selection, view) = slice().map_err(|error| self.of_target(number, error))?;
        Ok(EditedSlice { target: number, tensor, index, selection, view })
    }

    /// NumPy's `tensor[index] = value`; of values for one position the last one stands. The value has
    /// the shape of the slice, unless it is `broadcast` as NumPy does.
    ///
    /// # Errors
    /// [`EditFault`], [`CastError`](crate::cast::CastError); [`ListError`] for a list of the index that
    /// lies in what is changed.
    pub fn assign(
        &mut self,
        slice: EditedSlice<'_>,
        value: Operand,
        casts: &Casts,
        broadcast: bool,
    ) -> Result<(), Error> {
        let target = slice.target;
        let original = &self.files[self.targets[target].file].original;
        let edit = slice.assign(original, value, casts, broadcast);
        self.add(target, edit)
    }

    /// TensorFlow's TensorScatterUpdate on the tensor of this number: slabs of `value` at the tuples on
    /// the last axis of `indices`; or np.put_along_axis. Of values for one position the last one stands.
    ///
    /// # Errors
    /// [`ScatterError`], [`EditFault`], [`CastError`](crate::cast::CastError).
    ///
    /// # Panics
    /// If there are not that many.
    pub fn scatter(
        &mut self,
        number: usize,
        indices: Operand,
        value: Operand,
        options: &ScatterOptions,
    ) -> Result<(), Error> {
        let tensor = self.targets[number].tensor.clone();
        self.add(number, TensorEdit::scatter(tensor, indices, value, options))
    }

    fn add(&mut self, target: usize, edit: Result<TensorEdit, Error>) -> Result<(), Error> {
        let edit = edit.map_err(|error| self.of_target(target, error))?;
        self.files[self.targets[target].file].edits.push(edit);
        Ok(())
    }

    /// An error of one of the tensors, which is named where there are several.
    fn of_target(&self, target: usize, error: Error) -> Error {
        let name = self.targets[target].tensor.name.as_deref();
        error.of_tensor(name, self.targets.len() > 1)
    }
}

impl EditedFile {
    fn of(original: Original) -> EditedFile {
        EditedFile { original, edits: Vec::new() }
    }
}

impl EditedSlice<'_> {
    /// The tensor that is changed.
    pub fn tensor(&self) -> &TensorInfo {
        &self.tensor
    }

    fn assign(
        self,
        original: &Original,
        value: Operand,
        casts: &Casts,
        broadcast: bool,
    ) -> Result<TensorEdit, Error> {
        let EditedSlice { tensor, index, selection, view: slice, .. } = self;
        let conversion = conversion(&value, &tensor, casts)?;
        let shape = selection.shape();
        let from = fit(&value, slice.as_ref(), &shape, broadcast)?;
        let (place, lists) = match slice {
            Some(slice) => {
                let (to, from) = Runs::pair_in_memory_order(slice.runs(), from.runs());
                (WrittenTo::Slice { to, from }, Vec::new())
            }
            None => {
                let (indexed, lists) = index.lists.indexed(&tensor, &selection)?;
                let scatter = Scatter::of(&layout_of(&tensor)?, indexed, from.runs(), conversion)?;
                let written = written(&tensor, scatter.bytes());
                index.lists.files().try_for_each(|(item, input, list)| {
                    let kept = original.check_kept(input, list, &written);
                    kept.map_err(|error| ListError { item, error })
                })?;
                (WrittenTo::Listed(Box::new(scatter)), lists)
            }
        };
        let (indices, kept) = (None, None);
        Ok(TensorEdit { tensor, shape, value, conversion, place, lists, indices, kept })
    }
}

impl TensorEdit {
    fn scatter(
        tensor: TensorInfo,
        indices: Operand,
        value: Operand,
        options: &ScatterOptions,
    ) -> Result<TensorEdit, Error> {
        let conversion = conversion(&value, &tensor, &options.casts)?;
        let failed = |error: ScatterError| match error {
            ScatterError::Indices(GatherError::NotIntegers(_)) => indices.failed(error),
            error => error.into(),
        };
        let (to, from) = (layout_of(&tensor)?, layout_of(value.tensor())?);
        let dtype = &indices.tensor().dtype;
        let positions = Indices { dtype, layout: layout_of(indices.tensor())? };
        let out_of_range = options.out_of_range;
        let mut shape = value.tensor().shape.clone();
        let scatter = match options.axis {
            None => {
                Scatter::new(&to, &positions, &from, out_of_range, conversion).map_err(failed)?
            }
            Some(axis) => {
                let how = Options { negative: true, out_of_range, ..Options::default() };
                let indexed = Indexed::elements(&to, &positions, axis, &how);
                let indexed = indexed.map_err(|error| failed(error.into()))?;
                shape = indexed.shape();
                Scatter::of(&to, indexed, spread(&value, &shape)?.runs(), conversion)?
            }
        };
        let (place, lists, kept) = (WrittenTo::Listed(Box::new(scatter)), Vec::new(), None);
        let indices = Some(indices);
        Ok(TensorEdit { tensor, shape, value, conversion, place, lists, indices, kept })
    }

    /// Bytes of the elements that are written.
    fn bytes(&self) -> u64 {
        match &self.place {
            WrittenTo::Slice { to, .. } => to.bytes(),
            WrittenTo::Listed(scatter) => scatter.bytes(),
        }
    }

    /// Make sure that all that is read is there and fits, while `original` is only read.
    fn look(&mut self, original: &Original, progress: &Progress) -> Result<(), Error> {
        let written = written(&self.tensor, self.bytes());
        let TensorEdit { value, place, lists, indices, kept, .. } = self;
        if let Some(indices) = indices {
            *lists = vec![indices.keep(original, &written, progress)?];
        }
        *kept = Some(value.keep(original, &written, progress)?);
        if let WrittenTo::Listed(scatter) = place {
            scatter.check(&GatheredList::sources(lists), original.workers()).map_err(|error| {
                match error {
                    ExecuteError::Fill { error, .. } => GatheredList::failed(lists, error),
                    error => error.into(),
                }
            })?;
            GatheredList::verify_all(lists)?;
        }
        Ok(())
    }

    /// Write the values into a file.
    fn write(&self, edit: &Edit, workers: &Workers, progress: &Progress) -> Result<(), Error> {
        let TensorEdit { value, conversion, place, lists, kept, .. } = self;
        let Some(GatheredList { source, file }) = kept else { return Ok(()) };
        let (source, conversion) = (source.as_ref(), *conversion);
        match place {
            WrittenTo::Slice { to, from } => {
                let pieces = &Assignment::new(to, from, conversion, source);
                let transfer = Transfer { source, pieces, conversion, at: 0 };
                let sink = StridedSink::new(edit.patch(), to);
                edit.run(transfer, &sink, file.as_ref(), progress)
            }
            WrittenTo::Listed(scatter) => {
                let positions = scatter.positions(&GatheredList::sources(lists), workers);
                let positions = positions.map_err(|error| GatheredList::failed(lists, error))?;
                let pieces = scatter.pieces(source, workers);
                let (pieces, spooled) = pieces.map_err(|error| match error {
                    ExecuteError::Fill { error: FillError::Source(error), .. } => {
                        value.failed(error)
                    }
                    error => error.into(),
                })?;
                let source = spooled.as_deref().unwrap_or(source);
                let transfer = Transfer { source, pieces: &pieces, conversion, at: 0 };
                let sink = scatter.sink(edit.patch(), &positions);
                let outcome = edit.run(transfer, &sink, file.as_ref(), progress);
                // they were read again: lists that were cut short are the reason for whatever else
                // went wrong
                GatheredList::verify_all(lists)?;
                outcome.map_err(|error| of_positions(lists, error))
            }
        }
    }
}

impl Job for Editing {
    fn bytes(&self) -> u64 {
        self.files.iter().flat_map(|file| &file.edits).map(TensorEdit::bytes).sum()
    }

    fn look(&mut self, progress: &Progress) -> Result<(), Error> {
        let several = self.targets.len() > 1;
        for EditedFile { original, edits } in &mut self.files {
            for edit in edits {
                let looked = edit.look(original, progress);
                looked.map_err(|error| error.of_tensor(edit.tensor.name.as_deref(), several))?;
            }
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), Error> {
        self.files.iter().try_for_each(|file| file.original.check())
    }

    fn describe(&mut self) -> Result<Vec<Planned>, Error> {
        Ok(self.files.iter().map(EditedFile::planned).collect())
    }

    fn write(&mut self, progress: &Progress) -> Result<(), Error> {
        if self.files.iter().flat_map(|file| &file.edits).any(|edit| edit.kept.is_none()) {
            self.look(progress)?;
        }
        let several = self.targets.len() > 1;
        for EditedFile { original, edits } in &mut self.files {
            let workers = original.workers().clone();
            let begun = original.begin(progress)?;
            for edit in edits {
                let written = edit.write(&begun, &workers, progress);
                written.map_err(|error| error.of_tensor(edit.tensor.name.as_deref(), several))?;
            }
            begun.finish()?;
        }
        Ok(())
    }
}

impl EditedFile {
    /// What would be written into it.
    fn planned(&self) -> Planned {
        let EditedFile { original, edits } = self;
        let file = FileName::from(original.input().location());
        let (destination, made) = match original.copy() {
            Some(copy) => (copy.into(), Made::CopyOf(file)),
            None => (file, Made::InPlace),
        };
        let tensors = match edits.as_slice() {
            [TensorEdit { shape, tensor, .. }] => {
                Ok(PlannedTensor { shape: shape.clone(), dtype: tensor.dtype.clone() })
            }
            several => Err(several.len()),
        };
        let bytes = edits.iter().map(TensorEdit::bytes).sum();
        let format = original.format();
        Planned {
            destination,
            made,
            format,
            tensors,
            bytes,
            size: None,
            shared: None,
            out_of_core: None,
        }
    }
}

/// What the elements of a value go through.
fn conversion(value: &Operand, target: &TensorInfo, casts: &Casts) -> Result<Conversion, Error> {
    let dtype = &value.tensor().dtype;
    cast_conversion(dtype, &target.dtype, casts).map_err(|cause| value.failed(cause))
}

/// The bytes of the target's file among which `bytes` are changed.
fn written(tensor: &TensorInfo, bytes: u64) -> Range<u64> {
    let data = tensor.data();
    if bytes > 0 { data } else { data.start..data.start }
}

/// All of a value.
fn whole(value: &TensorInfo) -> Result<View, Error> {
    Ok(View::new(&layout_of(value)?, &Selection::whole(&value.shape))?)
}

/// The elements of a value as they meet a slice of this shape, which is a view where the index has no
/// lists.
fn fit(
    operand: &Operand,
    slice: Option<&View>,
    shape: &[u64],
    broadcast: bool,
) -> Result<View, Error> {
    let value = operand.tensor();
    let equal = value.shape == shape;
    if !value.dtype.item_bits().is_multiple_of(8) && (equal || broadcast) {
        // runs of elements are the items here: axes don't match, but all lies in one order
        return match slice {
            _ if !equal => Err(operand.failed(EditFault::BroadcastParts(value.dtype.clone()))),
            Some(slice) => Ok(slice.dense(value.data().start)),
            None => whole(value),
        };
    }
    let (written, value) = (shape.to_vec(), value.shape.clone());
    match whole(operand.tensor())?.broadcast(shape) {
        Some(view) if equal || broadcast => Ok(view),
        _ if broadcast => Err(operand.failed(EditFault::NotBroadcast { value, written })),
        stretched => {
            let (slice, stretches) = (written, stretched.is_some());
            Err(operand.failed(EditFault::Shape { value, slice, stretches }))
        }
    }
}

/// The elements of a value broadcast to the shape of what is written.
fn spread(operand: &Operand, shape: &[u64]) -> Result<View, Error> {
    let value = operand.tensor();
    let view = whole(value)?;
    if !value.dtype.item_bits().is_multiple_of(8) && value.shape == shape {
        // their axes are runs of elements here; one after the other, only where they begin counts
        return Ok(view);
    }
    let (value, written) = (value.shape.clone(), shape.to_vec());
    let fault = EditFault::NotBroadcast { value, written };
    view.broadcast(shape).ok_or_else(|| operand.failed(fault))
}

/// The error of lists that could not be read any more while the target was written, or another one.
fn of_positions(lists: &[GatheredList], error: Error) -> Error {
    let Error { file, tensor, cause } = error;
    let cause = match cause.downcast() {
        Ok(SinkError::Positions(reason)) => match reason.downcast() {
            Ok(error) => return GatheredList::failed(lists, *error),
            Err(reason) => SinkError::Positions(reason).into(),
        },
        Ok(error) => error.into(),
        Err(cause) => cause,
    };
    Error { file, tensor, cause }
}
