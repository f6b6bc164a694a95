//! Values to be written into a tensor: they are fitted to the tensor, and written to its bytes.

use std::ops::Range;

use super::super::PlannedTensor;
use super::super::select::Casts;
use super::fit::{EditFault, cast_conversion};
use crate::error::Error;
use crate::execute::{
    Assignment, Conversion, ExecuteError, FillError, Pieces, Progress, StridedSink, Transfer,
    Workers,
};
use crate::gather::{Distribution, GatherError, Indexed, Indices, Options, OutOfRange};
use crate::index::resolve::Selection;
use crate::job::edit::original::{Edit, Original};
use crate::job::inputs::Operand;
use crate::region::{GatheredList, ListError, OpenIndex, layout_of};
use crate::runs::Runs;
use crate::scatter::{Scatter, ScatterError};
use crate::shape::AskedAxis;
use crate::sink::{Sink, SinkError};
use crate::source::Source;
use crate::tensor::{StorageKind, TensorInfo, axis_number};
use crate::view::View;

/// The slice that an index selects of a tensor that is changed.
pub struct EditedSlice<'a> {
    /// The number of the tensor among those that are changed.
    pub(super) target: usize,
    tensor: TensorInfo,
    index: OpenIndex<'a>,
    selection: Selection,
    /// The view of its elements; `None` where lists name them.
    view: Option<View>,
}

pub(super) struct TensorEdit {
    pub(super) tensor: TensorInfo,
    shape: Vec<u64>,
    value: Operand,
    conversion: Conversion,
    written_to: WrittenTo,
    /// The bytes of the value, once they cannot change any more.
    pub(super) spooled: Option<GatheredList>,
}

enum WrittenTo {
    Slice { to: Runs, from: Runs },
    Listed(Box<Listed>),
}

/// The positions of values that are named by lists.
struct Listed {
    scatter: Scatter,
    /// The lists of positions, and an index tensor that becomes the only list.
    lists: Vec<GatheredList>,
    indices: Option<Operand>,
    /// The distribution that puts the values in order first, if the tensor does not fit in memory.
    distribution: Option<Distribution>,
}

pub struct ScatterOptions {
    /// The axis of the positions, one for each element, as in np.put_along_axis; without it, tuples
    /// name slabs.
    pub axis: Option<AskedAxis>,
    pub out_of_range: OutOfRange,
    pub casts: Casts,
}

impl<'a> EditedSlice<'a> {
    /// The slice that an index selects of a tensor, the `target` with this number.
    pub(super) fn new(
        target: usize,
        tensor: TensorInfo,
        index: OpenIndex<'a>,
    ) -> Result<EditedSlice<'a>, Error> {
        let selection = index.resolve(&tensor)?;
        let view = if selection.lists.is_empty() {
            Some(View::new(&layout_of(&tensor)?, &selection)?)
        } else {
            None
        };
        Ok(EditedSlice { target, tensor, index, selection, view })
    }

    pub(super) fn assign(
        self,
        original: &Original,
        value: Operand,
        casts: &Casts,
        broadcast: bool,
    ) -> Result<TensorEdit, Error> {
        let EditedSlice { tensor, index, selection, view: slice, .. } = self;
        let shape = selection.shape();
        let from = fit(&value, slice.as_ref(), &shape, broadcast)?;
        // last, as a cast helps only where the shapes fit
        let conversion = conversion(&value, &tensor, casts)?;
        let written_to = match slice {
            Some(slice) => {
                let (to, from) = Runs::pair_in_memory_order(slice.runs(), from.runs());
                WrittenTo::Slice { to, from }
            }
            None => {
                let (indexed, lists) = index.lists.indexed(&tensor, &selection)?;
                let scatter = Scatter::of(&layout_of(&tensor)?, indexed, from.runs(), conversion)?;
                let written = written(&tensor, scatter.bytes());
                index.lists.files().try_for_each(|(item, input, list)| {
                    let spooled = original.check_spooled(input, list, &written);
                    spooled.map_err(|error| ListError { item, error })
                })?;
                let listed = Listed { scatter, lists, indices: None, distribution: None };
                WrittenTo::Listed(Box::new(listed))
            }
        };
        Ok(TensorEdit { tensor, shape, value, conversion, written_to, spooled: None })
    }
}

impl TensorEdit {
    /// Fit values to the positions that an index tensor names.
    pub(super) fn scatter(
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
        let to = layout_of(&tensor)?;
        let from = layout_of(value.tensor())?;
        let dtype = &indices.tensor().dtype;
        let positions = Indices { dtype, layout: layout_of(indices.tensor())? };
        let out_of_range = options.out_of_range;
        let mut shape = value.tensor().shape.clone();
        let scatter = match &options.axis {
            None => {
                Scatter::new(&to, &positions, &from, out_of_range, conversion).map_err(failed)?
            }
            Some(axis) => {
                let axis = axis_number(&tensor, axis)?;
                let how = Options { negative: true, out_of_range, ..Options::default() };
                let indexed = Indexed::elements(&to, &positions, axis, &how);
                let indexed = indexed.map_err(|error| failed(error.into()))?;
                shape = indexed.shape();
                Scatter::of(&to, indexed, spread(&value, &shape)?.runs(), conversion)?
            }
        };
        let indices = Some(indices);
        let listed = Listed { scatter, lists: Vec::new(), indices, distribution: None };
        let written_to = WrittenTo::Listed(Box::new(listed));
        Ok(TensorEdit { tensor, shape, value, conversion, written_to, spooled: None })
    }

    /// The written slice: its shape, and the dtype of the tensor.
    pub(super) fn planned(&self) -> PlannedTensor {
        PlannedTensor { shape: self.shape.clone(), dtype: self.tensor.dtype.clone() }
    }

    pub(super) fn bytes(&self) -> u64 {
        match &self.written_to {
            WrittenTo::Slice { to, .. } => to.bytes(),
            WrittenTo::Listed(listed) => listed.scatter.bytes(),
        }
    }

    /// Check the value and the positions, while `original` is only read.
    pub(super) fn look(&mut self, original: &Original, progress: &Progress) -> Result<(), Error> {
        let written = written(&self.tensor, self.bytes());
        let TensorEdit { value, written_to, spooled, .. } = self;
        if let WrittenTo::Listed(listed) = written_to
            && let Some(indices) = &mut listed.indices
        {
            listed.lists = vec![indices.keep(original, &written, progress)?];
        }
        *spooled = Some(value.keep(original, &written, progress)?);
        if let WrittenTo::Listed(listed) = written_to {
            listed.look(value, original.workers())?;
        }
        Ok(())
    }

    /// The bytes of scratch needed to write it.
    pub(super) fn temporary_bytes(&self) -> u64 {
        match &self.written_to {
            WrittenTo::Slice { .. } => 0,
            WrittenTo::Listed(listed) => {
                listed.distribution.as_ref().map_or(0, Distribution::temporary_bytes)
            }
        }
    }

    pub(super) fn write(
        &self,
        edit: &Edit<'_>,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<(), Error> {
        let Some(GatheredList { source, file }) = &self.spooled else { return Ok(()) };
        let source = source.as_ref();
        let conversion = self.conversion;
        let run = |source: &dyn Source, pieces: &dyn Pieces, conversion, sink: &dyn Sink| {
            let transfer = Transfer { source, pieces, conversion, at: 0 };
            edit.run(transfer, sink, file.as_ref(), progress)
        };
        let lying = match &self.tensor.storage.kind {
            StorageKind::Reshaped(as_stored) => Some(whole(as_stored)?),
            _ => None,
        };
        let patch = edit.patch(&self.tensor)?;
        let in_c_order = lying.as_ref().map(|view| StridedSink::new(patch, view.runs()));
        let sink: &dyn Sink = in_c_order.as_ref().map_or(patch, |sink| sink);
        let listed = match &self.written_to {
            WrittenTo::Slice { to, from } => {
                let pieces = Assignment::new(to, from, conversion, source);
                return run(source, &pieces, conversion, &StridedSink::new(sink, to));
            }
            WrittenTo::Listed(listed) => listed,
        };
        let Listed { scatter, lists, distribution, .. } = listed.as_ref();
        let positions = scatter.positions(&GatheredList::sources(lists), workers);
        let positions = positions.map_err(|error| GatheredList::failed(lists, error))?;
        let failed = |error| failed(&self.value, lists, error);
        let outcome = if let Some(distribution) = distribution {
            let ordered = scatter
                .distribute(distribution, &positions, source, conversion, workers, progress)
                .map_err(failed)?;
            // the values are converted already
            ordered.write(sink, |sink| {
                run(ordered.source.as_ref(), &ordered.pieces, Conversion::None, sink)
            })
        } else {
            let (pieces, spooled) = scatter.pieces(source, workers).map_err(failed)?;
            let source = spooled.as_deref().unwrap_or(source);
            run(source, &pieces, conversion, &scatter.sink(sink, &positions))
        };
        // the lists were read again: truncated ones are the cause of any other error
        GatheredList::verify_all(lists)?;
        outcome.map_err(|error| of_positions(lists, error))
    }
}

impl Listed {
    /// Check all positions, and choose the order in which the values are written.
    fn look(&mut self, value: &Operand, workers: &Workers) -> Result<(), Error> {
        let sources = GatheredList::sources(&self.lists);
        let looked = self.scatter.check(&sources, workers);
        let chosen = looked.and_then(|()| self.scatter.distribution(&sources, workers));
        self.distribution = chosen.map_err(|error| failed(value, &self.lists, error))?;
        GatheredList::verify_all(&self.lists)
    }
}

fn conversion(value: &Operand, target: &TensorInfo, casts: &Casts) -> Result<Conversion, Error> {
    let dtype = &value.tensor().dtype;
    cast_conversion(dtype, &target.dtype, casts).map_err(|cause| value.failed(cause))
}

/// The range of the target's file that an edit of `bytes` bytes may change.
fn written(tensor: &TensorInfo, bytes: u64) -> Range<u64> {
    let data = tensor.data();
    if bytes > 0 { data } else { data.start..data.start }
}

fn whole(value: &TensorInfo) -> Result<View, Error> {
    Ok(View::new(&layout_of(value)?, &Selection::whole(&value.shape))?)
}

/// The elements of a value as they fit a slice of this shape, which is a view where the index has
/// no lists.
fn fit(
    operand: &Operand,
    slice: Option<&View>,
    shape: &[u64],
    broadcast: bool,
) -> Result<View, Error> {
    let value = operand.tensor();
    let equal = value.shape == shape;
    if !value.dtype.item_bits().is_multiple_of(8) && (equal || broadcast) {
        // items are runs of elements here: axes do not match, but all elements are in one order
        return match slice {
            _ if !equal => Err(operand.failed(EditFault::BroadcastParts(value.dtype.clone()))),
            Some(slice) => Ok(slice.dense(value.data().start)),
            None => whole(value),
        };
    }
    let value = value.shape.clone();
    let slice = shape.to_vec();
    match whole(operand.tensor())?.broadcast(shape) {
        Some(view) if equal || broadcast => Ok(view),
        _ if broadcast => Err(operand.failed(EditFault::NotBroadcast { value, written: slice })),
        stretched => {
            let stretches = stretched.is_some();
            Err(operand.failed(EditFault::Shape { value, slice, stretches }))
        }
    }
}

/// The elements of a value, broadcast to the shape of the written slice.
fn spread(operand: &Operand, shape: &[u64]) -> Result<View, Error> {
    let value = operand.tensor();
    let view = whole(value)?;
    if !value.dtype.item_bits().is_multiple_of(8) && value.shape == shape {
        // axes are runs of elements here; as one follows the other, only their start counts
        return Ok(view);
    }
    let fault = EditFault::NotBroadcast { value: value.shape.clone(), written: shape.to_vec() };
    view.broadcast(shape).ok_or_else(|| operand.failed(fault))
}

/// An error before anything is written: of the lists, or of the value.
fn failed(value: &Operand, lists: &[GatheredList], error: ExecuteError) -> Error {
    match error {
        ExecuteError::Fill { error: FillError::Source(error), .. } => value.failed(error),
        ExecuteError::Fill { error, .. } => GatheredList::failed(lists, error),
        error => of_positions(lists, error.into()),
    }
}

/// The error of lists that could no longer be read while the target was written, or `error`.
fn of_positions(lists: &[GatheredList], error: Error) -> Error {
    let Error { file, tensor, cause } = error;
    let cause = match cause.downcast() {
        Ok(SinkError::Positions(reason)) => match reason.downcast::<FillError>() {
            Ok(error) => return GatheredList::failed(lists, *error),
            Err(reason) => SinkError::Positions(reason).into(),
        },
        Ok(error) => error.into(),
        Err(cause) => cause,
    };
    Error { file, tensor, cause }
}
