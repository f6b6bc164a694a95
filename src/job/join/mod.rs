//! Several inputs as one output: NumPy's concatenate and stack, for files of one tensor and for
//! tensors of one name in files of several.
//!
//! 1. [`Joined::open`] reads the header of every input, several at a time, and checks that all
//!    fit together (`inputs`). Few inputs stay open; of many only the length along the joined axis
//!    is kept, and they are opened again when they are copied.
//! 2. Tensors that are taken once are compared, byte for byte (`same`).
//! 3. All is copied batch by batch: as many inputs as may be open at a time (`write`, `batch`). What a range of
//!    the output has of each input is arithmetic (`place`).
//!
//! `join` is a maker of pieces too. It cuts the *output*, and fills each piece from all the inputs
//! that it touches: with rows of 32 bytes in each of a thousand files, what is written is still 256 KiB
//! long. The inputs of a batch are one `ConcatSource`. A batch is as many neighbouring inputs as 64
//! descriptors allow; of a larger number each batch is a stretch of every row, and headers are read
//! twice, to find all shapes and when the batch is copied, so that nothing but a length is kept for each
//! input in between (`job/inputs.rs`). What one part of the output (`--part`) has of a tensor is at most
//! three bands of rows, and what an input gives to a band is one range of its own bytes; the undivided
//! tensor is one band. Parts of 1 MiB and more of a single row are plain copies; a part in another layout
//! than the output, or one with a list in `--index`, goes through `StridedSink`. An output that takes bytes
//! in order only, and would be written by batches in turns, is put together in a temporary file first.

use batch::{Batch, JoinedPart, PartStep, through_scratch};
use inputs::{Joined, JoinedTensor};
use place::{JoinedPlace, Place, whole};

use super::copy::Writing;
use super::copying::{Copying, HeldSlice};
use super::edit::conversion;
use super::inputs::InputRef;
use super::overwrite;
use crate::cast::{Cast, Casting};
use crate::dtype::DType;
use crate::error::{Cause, Error, Fault};
use crate::execute::Progress;
use crate::input::Location;
use crate::output::{Becomes, Output};
use crate::shape::AsTuple;
use crate::sink::WriteOrder;
use crate::tensor::{Annotated, Differing, TensorInfo, differing, shortened};

pub(super) mod batch;
pub(super) mod inputs;
pub(super) mod place;
mod same;
mod write;

pub use inputs::{Along, JoinOptions};

/// Why inputs do not fit together. The error names the file of the input at fault.
#[derive(Debug, thiserror::Error)]
pub enum JoinFault {
    /// There are no inputs.
    #[error("at least one input is needed")]
    Nothing,
    /// Standard input is named twice.
    #[error("standard input can be only one of the inputs")]
    StdinTwice,
    /// The result has no such axis.
    #[error("axis {axis} is out of bounds for array of dimension {ndim}")]
    Axis {
        /// The axis that was asked for.
        axis: i64,
        /// How many axes there are.
        ndim: usize,
    },
    /// A tensor without axes has none to be joined along.
    #[error("zero-dimensional arrays cannot be concatenated")]
    NoAxes,
    /// Another shape than that of the first input.
    #[error(
        "{} has shape {}, which does not fit shape {} of {}: {}",
        called(*number, names), AsTuple(shape), AsTuple(first), called(0, names),
        match axis {
            _ if shape.len() != first.len() => "they need as many axes".to_owned(),
            Some(axis) => format!("they may differ along axis {axis} only"),
            None => "they must be equal".to_owned(),
        }
    )]
    Shape {
        /// The number of the input, from 0.
        number: usize,
        /// The shape of the input, after an index.
        shape: Vec<u64>,
        /// The shape of the first input.
        first: Vec<u64>,
        /// The axis along which they may differ.
        axis: Option<usize>,
        /// The names of the two, where tensors are joined whatever input they are of.
        names: Option<[String; 2]>,
    },
    /// Another dtype than that of the first input.
    #[error("{} has dtype {dtype}, {} has {first}", called(*number, names), called(0, names))]
    DType {
        /// The number of the input, from 0.
        number: usize,
        /// The dtype of the input.
        dtype: DType,
        /// The dtype of the first input.
        first: DType,
        /// The dtype that both can be cast to (np.result_type), where there is one.
        common: Option<DType>,
        /// The names of the two, where tensors are joined whatever input they are of.
        names: Option<[String; 2]>,
    },
    /// Elements that mean other values than those of the first input.
    #[error(
        "{} has {attribute} {}, {} has {}",
        called(*number, names), values[1], called(0, names), values[0]
    )]
    Meaning {
        /// The number of the input, from 0.
        number: usize,
        /// What differs.
        attribute: &'static str,
        /// What the first input says, and the other one.
        values: Box<[String; 2]>,
        /// Whether unpacked values can be joined.
        is_packing: bool,
        /// The names of the two, where tensors are joined whatever input they are of.
        names: Option<[String; 2]>,
    },
    /// A tensor of the first input is missing.
    #[error("input {number} has no tensor {name:?}, which input 0 has")]
    Missing {
        /// The number of the input, from 0.
        number: usize,
        /// The name.
        name: String,
    },
    /// A tensor that the first input does not have.
    #[error("input {number} has a tensor {name:?}, which input 0 does not have")]
    Surplus {
        /// The number of the input, from 0.
        number: usize,
        /// The name.
        name: String,
    },
    /// A tensor that is to be taken once differs.
    #[error("input {number} has other bytes than input 0, so that it cannot be taken once")]
    Differs {
        /// The number of the input, from 0.
        number: usize,
    },
    /// Elements smaller than a byte, and a part would not begin on a whole byte.
    #[error(
        "{} has {item_bits}-bit elements that do not fill whole bytes here", called(*number, names)
    )]
    CutsByte {
        /// The number of the input, from 0.
        number: usize,
        /// Bits an element.
        item_bits: u64,
        /// Its name and that of the first, where tensors are joined whatever input they are of.
        names: Option<[String; 2]>,
    },
    /// An input is not what it was when its header was read first.
    #[error("the file was changed while it was being read")]
    Changed,
}

impl Fault for JoinFault {}

/// What an input is called or, where tensors have names, that of the first or of the other one.
fn called(number: usize, names: &Option<[String; 2]>) -> String {
    match (names, number) {
        (None, _) => format!("input {number}"),
        (Some([first, _]), 0) => format!("{:?}", shortened(first)),
        (Some([_, other]), _) => format!("{:?}", shortened(other)),
    }
}

impl JoinFault {
    /// The same of tensors of one space of names: the first, and the one at fault.
    pub(crate) fn of_tensors(mut self, both: [&str; 2]) -> JoinFault {
        if let JoinFault::Shape { names, .. }
        | JoinFault::Meaning { names, .. }
        | JoinFault::DType { names, .. }
        | JoinFault::CutsByte { names, .. } = &mut self
        {
            *names = Some(both.map(str::to_owned));
        }
        self
    }
}

impl<'a> Copying<'a> {
    /// NumPy's concatenate and stack: read the headers of all inputs, check that they fit together, and give
    /// the tensors of the output their places.
    pub fn join(
        locations: &'a [Location],
        options: JoinOptions<'a>,
        output: Output,
    ) -> Result<Copying<'a>, Error> {
        let several = output.format.holds_several;
        let joined = Joined::open(locations, options, &output);
        let joined = joined.map_err(|error| error.of_several(several))?;
        let left = joined.check_casts()?;
        let prepared = joined.prepare(&output)?;
        Ok(Copying::new(prepared, joined, left))
    }
}

/// Write slices to an output, side by side along an axis.
pub(crate) fn join_slices(
    slices: &[HeldSlice<'_>],
    axis: i64,
    along: Along,
    output: &Output,
) -> Result<(), Error> {
    let first = slices.first().ok_or(JoinFault::Nothing)?;
    let mut join = JoinedTensor::new(first.becomes.shape.clone(), axis, along)?;
    let mut steps = vec![PartStep::AsFirst(1)];
    for (number, slice) in slices.iter().enumerate().skip(1) {
        let failed = |cause| slice.input.failed_tensor(slice.tensor, true, cause);
        join.push(join.fit(number, &slice.becomes.shape).map_err(|fault| failed(fault.into()))?)?;
        steps.push(step(number, slice, first).map_err(failed)?);
    }
    let order = output.options.order;
    let item_bits = first.tensor.dtype.item_bits();
    if let Some(number) = join.cut_byte(slices.len(), item_bits, order) {
        return Err(JoinFault::CutsByte { number, item_bits, names: None }.into());
    }
    let Becomes { cast, axes, .. } = first.becomes.clone();
    let becomes = Becomes { shape: join.result(), cast, axes: join.axes(axes) };
    let prepared = output.prepare(first.input, first.tensor, becomes)?;
    let copy = |job: &Writing<'_>, place: &Place| -> Result<(), Error> {
        let mut batch = Batch::default();
        for (number, (slice, step)) in slices.iter().zip(&steps).enumerate() {
            let take = slice.take(step.conversion(place.conversion), place.start);
            let input = batch.push(InputRef::Borrowed(slice.input))?;
            batch.push_part(0, number, input, JoinedPart { take, step: *step });
        }
        batch.copy(job, &[JoinedPlace::new(place, &join, 0, order)])
    };
    let lists = slices.iter().flat_map(|slice| slice.region.lists());
    overwrite::check(&output.destination, slices.iter().map(|slice| slice.input), lists)?;
    let progress = Progress::default();
    for place in &whole(&prepared) {
        let takes = slices.iter().zip(&steps);
        let takes =
            takes.map(|(slice, step)| slice.take(step.conversion(place.conversion), place.start));
        let job = Writing::of_output(&prepared, true, &Vec::from_iter(takes), &progress)?;
        let in_order = job.sink().order() == WriteOrder::Ascending;
        if in_order && join.rows_and_inner(order).0 > 1 {
            through_scratch(&job, place, &output.options.workers, copy)?;
        } else {
            copy(&job, place)?;
        }
        job.commit()?;
    }
    Ok(())
}

fn dtype(slice: &HeldSlice<'_>) -> DType {
    slice.becomes.cast.map_or_else(|| slice.tensor.dtype.clone(), Cast::to)
}

/// Refuse elements that mean other values than those of the first part.
pub(crate) fn check_meaning(
    number: usize,
    tensor: &TensorInfo,
    first: &TensorInfo,
) -> Result<(), JoinFault> {
    if tensor.annotated.is_none() && first.annotated.is_none() {
        return Ok(());
    }
    let said = |of: &TensorInfo| of.annotated.as_ref().map(Annotated::get).unwrap_or_default();
    let both = [(&said(first), &first.dtype), (&said(tensor), &tensor.dtype)];
    match differing(both) {
        None => Ok(()),
        Some(Differing { name: attribute, values, is_packing }) => {
            let values = Box::new(values);
            Err(JoinFault::Meaning { number, attribute, values, is_packing, names: None })
        }
    }
}

/// What the elements of a slice go through, beside those of the first one.
fn step(number: usize, slice: &HeldSlice<'_>, first: &HeldSlice<'_>) -> Result<PartStep, Cause> {
    check_meaning(number, slice.tensor, first.tensor)?;
    let ours = dtype(slice);
    let theirs = dtype(first);
    if conversion(&ours, &theirs).is_err() {
        let common = None;
        let names = None;
        return Err(JoinFault::DType { number, dtype: ours, first: theirs, common, names }.into());
    }
    let plain = PartStep::as_first(&slice.tensor.dtype, &first.tensor.dtype);
    let cast = match (slice.becomes.cast, first.becomes.cast, plain) {
        (None, None, Some(step)) => return Ok(step),
        (Some(cast), ..) => cast,
        _ => Cast::new(&slice.tensor.dtype, &theirs, Casting::Unsafe)?,
    };
    Ok(PartStep::own(cast, &first.tensor.dtype))
}
