//! Values on their way into a tensor: how they fit it, and how its bytes are written.

use std::ops::Range;

use super::super::PlannedTensor;
use super::super::select::Casts;
use super::{EditFault, cast_conversion};
use crate::error::Error;
use crate::execute::{
    Assignment, Conversion, ExecuteError, FillError, OutOfCore, Progress, StridedSink, Transfer,
    Workers,
};
use crate::format::{TensorInfo, npz};
use crate::gather::{Distribution, GatherError, Indexed, Indices, Options, OutOfRange};
use crate::index::resolve::{AxisSelection, SelectedList, Selection};
use crate::job::edit::original::{Edit, Original};
use crate::job::operand::Operand;
use crate::region::{GatheredList, ListError, OpenIndex, layout_of};
use crate::runs::Runs;
use crate::scatter::{Scatter, ScatterError};
use crate::shape::AsTuple;
use crate::sink::SinkError;
use crate::view::View;

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
pub(super) struct TensorEdit {
    tensor: TensorInfo,
    /// The shape of what is written.
    shape: Vec<u64>,
    value: Operand,
    conversion: Conversion,
    place: WrittenTo,
    /// Which elements are written, in words that no other build has another way.
    elements: String,
    /// The lists of positions, and an index tensor that becomes the only one.
    lists: Vec<GatheredList>,
    indices: Option<Operand>,
    /// The bytes of the value, once they are known to stay.
    kept: Option<GatheredList>,
    /// How the values are put in order first, where the tensor does not fit in memory.
    distribution: Option<Distribution>,
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

impl<'a> EditedSlice<'a> {
    /// What an index selects of a tensor, the `target` of this number.
    pub(super) fn new(
        target: usize,
        tensor: TensorInfo,
        index: OpenIndex<'a>,
    ) -> Result<EditedSlice<'a>, Error> {
        let selection = index.resolve(&tensor)?;
        let view = match selection.lists.is_empty() {
            true => Some(View::new(&layout_of(&tensor)?, &selection)?),
            false => None,
        };
        Ok(EditedSlice { target, tensor, index, selection, view })
    }

    /// The number of the tensor among those that are changed.
    pub(super) fn target(&self) -> usize {
        self.target
    }

    /// The tensor that is changed.
    pub fn tensor(&self) -> &TensorInfo {
        &self.tensor
    }

    /// Fit a value to it.
    pub(super) fn assign(
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
        let elements = in_words(&selection);
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
        let (indices, kept, distribution) = (None, None, None);
        Ok(TensorEdit {
            tensor,
            shape,
            value,
            conversion,
            place,
            elements,
            lists,
            indices,
            kept,
            distribution,
        })
    }
}

impl TensorEdit {
    /// Fit values to positions that an index tensor names.
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
        let (to, from) = (layout_of(&tensor)?, layout_of(value.tensor())?);
        let dtype = &indices.tensor().dtype;
        let positions = Indices { dtype, layout: layout_of(indices.tensor())? };
        let out_of_range = options.out_of_range;
        let mut shape = value.tensor().shape.clone();
        let indexed = &indices.tensor().shape;
        let by = match options.axis {
            Some(axis) => format!("elements along axis {axis}"),
            None => "tuples".to_owned(),
        };
        let beyond = match out_of_range {
            OutOfRange::Error => "refused",
            OutOfRange::Drop => "dropped",
            OutOfRange::Clip => "clipped",
            OutOfRange::Wrap => "wrapped",
        };
        let elements = format!("{by}, lists of shape {}, {beyond}; ", AsTuple(indexed));
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
        let (indices, distribution) = (Some(indices), None);
        Ok(TensorEdit {
            tensor,
            shape,
            value,
            conversion,
            place,
            elements,
            lists,
            indices,
            kept,
            distribution,
        })
    }

    /// The tensor's name.
    pub(super) fn name(&self) -> Option<&str> {
        self.tensor.name.as_deref()
    }

    /// Where its first element lies in the file, in bytes.
    pub(super) fn start(&self) -> u64 {
        self.tensor.data().start
    }

    /// Whether all that is read is known to stay.
    pub(super) fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// What is written: its shape, and the dtype of the tensor.
    pub(super) fn planned(&self) -> PlannedTensor {
        PlannedTensor { shape: self.shape.clone(), dtype: self.tensor.dtype.clone() }
    }

    /// Bytes of the elements that are written.
    pub(super) fn bytes(&self) -> u64 {
        match &self.place {
            WrittenTo::Slice { to, .. } => to.bytes(),
            WrittenTo::Listed(scatter) => scatter.bytes(),
        }
    }

    /// Whether all elements of the tensor are written, whatever they were.
    pub(super) fn is_whole(&self) -> bool {
        match &self.place {
            WrittenTo::Slice { to, .. } => to.bytes() == self.tensor.bytes(),
            WrittenTo::Listed(_) => false,
        }
    }

    /// Which bytes are written, as a text that differs for others, and is the same in every build: a killed run
    /// may be completed by another one. Lists in files count by the files' names.
    pub(super) fn places(&self) -> Result<String, Error> {
        let mut text = self.elements.clone();
        for list in &self.lists {
            text.extend(list.path().map(|path| path.to_string_lossy()));
            list.identify(&mut |bytes| {
                text.push_str(&npz::mark(bytes).to_string());
            })?;
        }
        Ok(text)
    }

    /// Make sure that all that is read is there and fits, while `original` is only read.
    pub(super) fn look(&mut self, original: &Original, progress: &Progress) -> Result<(), Error> {
        let written = written(&self.tensor, self.bytes());
        let TensorEdit { value, place, lists, indices, kept, distribution, .. } = self;
        if let Some(indices) = indices {
            *lists = vec![indices.keep(original, &written, progress)?];
        }
        *kept = Some(value.keep(original, &written, progress)?);
        if let WrittenTo::Listed(scatter) = place {
            let (sources, workers) = (GatheredList::sources(lists), original.workers());
            let looked = scatter.check(&sources, workers);
            let chosen = looked.and_then(|()| scatter.distribution(&sources, workers));
            *distribution = chosen.map_err(|error| failed(value, lists, error))?;
            GatheredList::verify_all(lists)?;
        }
        Ok(())
    }

    /// How it is written, where the tensor does not fit in memory.
    pub(super) fn plan(&self) -> Option<OutOfCore> {
        self.distribution.as_ref().map(Distribution::out_of_core)
    }

    /// Write the values into a file.
    pub(super) fn write(
        &self,
        edit: &Edit,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<(), Error> {
        let TensorEdit { value, conversion, place, lists, kept, distribution, .. } = self;
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
                let failed = |error| failed(value, lists, error);
                let distributed = distribution.as_ref().map(|of| {
                    scatter.distribute(of, &positions, source, conversion, workers, progress)
                });
                let outcome = match distributed.transpose().map_err(failed)? {
                    Some(kept) => kept.write(edit.patch(), |sink| {
                        let (source, pieces) = (kept.source.as_ref(), &kept.pieces);
                        let conversion = Conversion::None;
                        let transfer = Transfer { source, pieces, conversion, at: 0 };
                        edit.run(transfer, sink, file.as_ref(), progress)
                    }),
                    None => {
                        let (pieces, spooled) = scatter.pieces(source, workers).map_err(failed)?;
                        let source = spooled.as_deref().unwrap_or(source);
                        let transfer = Transfer { source, pieces: &pieces, conversion, at: 0 };
                        let sink = scatter.sink(edit.patch(), &positions);
                        edit.run(transfer, &sink, file.as_ref(), progress)
                    }
                };
                // they were read again: lists that were cut short are the reason for whatever else
                // went wrong
                GatheredList::verify_all(lists)?;
                outcome.map_err(|error| of_positions(lists, error))
            }
        }
    }
}

/// What an index selects: `of (5, 4), range 0 2 1 4, list 1; list 1 to 2 of shape (3,); `.
fn in_words(selection: &Selection) -> String {
    let mut text = format!("of {}", AsTuple(&selection.source_shape));
    for axis in &selection.axes {
        text += &match axis {
            AxisSelection::Index { axis, at } => format!(", index {axis} {at}"),
            AxisSelection::Range { axis, start, step, len } => {
                format!(", range {axis} {start} {step} {len}")
            }
            AxisSelection::NewAxis => ", new".to_owned(),
            AxisSelection::List { axis, .. } => format!(", list {axis}"),
        };
    }
    text += "; ";
    for SelectedList { axes, shape, .. } in &selection.lists {
        text += &format!("list {} to {} of shape {}; ", axes.start, axes.end, AsTuple(shape));
    }
    text
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

/// An error before anything is written: of the lists, or of the value.
fn failed(value: &Operand, lists: &[GatheredList], error: ExecuteError) -> Error {
    match error {
        ExecuteError::Fill { error: FillError::Source(error), .. } => value.failed(error),
        ExecuteError::Fill { error, .. } => GatheredList::failed(lists, error),
        error => of_positions(lists, error.into()),
    }
}

/// The error of lists that could not be read any more while the target was written, or another one.
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
