//! A job that reduces tensors along axes: an element for each slice.

use std::sync::Arc;

use super::{Job, Planned};
use crate::dtype::DType;
use crate::error::{Error, Fault};
use crate::execute::{Progress, StridedSink, Workers};
use crate::input::{Input, SelectFault};
use crate::job::along_axes::{AxisFault, SliceOrder, Slices, SlicesOptions};
use crate::job::copy::{Writing, check_indices};
use crate::job::{in_scratch, overwrite};
use crate::output::{Omission, Output, Prepared, TensorChange};
use crate::region::Take;
use crate::runs::{Axis, Runs};
use crate::shape::{AskedAxis, Order, contiguous_strides};
use crate::sink::Sink;
use crate::statistics::{Folded, Reduction};
use crate::tensor::{
    ADD_OFFSET, Annotations, LazyAnnotations, SCALE_FACTOR, TensorInfo, Tensors, UNSIGNED,
};

/// The number of slices whose elements a thread makes at a time.
const ROUNDED: usize = 1 << 10;

/// Tensors of one input that are reduced, and written to one output.
pub struct Reducing {
    input: Input,
    prepared: Prepared,
    slices: Vec<Slices>,
    how: Reduction,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReduceFault {
    /// The minimum or maximum of no elements; the message is NumPy's.
    #[error("zero-size array to reduction operation {0} which has no identity")]
    NoIdentity(&'static str),
    /// The function does not support this dtype.
    #[error("np.{} is not supported for dtype {dtype}", how.name())]
    DType { how: Reduction, dtype: DType },
}

impl Fault for ReduceFault {}

/// The annotations of a result, from the tensor's annotations. Packing is changed to fit the result, which is computed
/// from stored (packed) elements.
fn reduced(mut said: Annotations, how: Reduction) -> Annotations {
    let [scale, offset] = said.factors();
    let is_signed_otherwise = said.attributes.contains_key(UNSIGNED);
    let (scales, moves) = match how {
        Reduction::Min | Reduction::Max => return said,
        _ if is_signed_otherwise => (false, false),
        Reduction::Mean => (true, true),
        Reduction::Sum => (offset.is_none_or(|offset| offset == 0.0), false),
        Reduction::Std => (scale.is_some_and(|scale| scale > 0.0), false),
        Reduction::Any | Reduction::All => (false, false),
    };
    said.keep_packing(|name| name == SCALE_FACTOR && scales || name == ADD_OFFSET && moves);
    said
}

impl Reducing {
    /// Reduce the tensors with these numbers; with `keepdims`, reduced axes stay with length 1.
    pub fn new(
        mut input: Input,
        numbers: &[usize],
        options: &SlicesOptions<'_>,
        how: Reduction,
        keepdims: bool,
        output: &Output,
    ) -> Result<Reducing, Error> {
        if numbers.len() > 1 && output.options.name.is_some() {
            return Err(SelectFault::OneName.into());
        }
        // some outputs take elements in order only
        let in_order = output.destination().is_stream() || output.format().is_text;
        let order = match output.options.order {
            _ if !in_order && !output.options.deflate => SliceOrder::Memory,
            Order::C => SliceOrder::Positions,
            Order::F => SliceOrder::Reversed,
        };
        let slices = Slices::all(&mut input, numbers, options, order, how)?;
        let mut preparation = output.begin_preparing(Arc::default(), None)?;
        preparation.add_groups(&input.contents.tensors);
        for (at, (of, &number)) in slices.iter().zip(numbers).enumerate() {
            let tensor = input.contents.tensors.at(number);
            let named = |error: Error| error.of_tensor(tensor.name.as_deref(), numbers.len() > 1);
            check(of, how, options.axes).map_err(named)?;
            let dtype = how.result(&of.chosen.dtype);
            let name = output.tensor_name(&tensor, &input.location, true);
            let annotated =
                tensor.annotated.as_ref().map(|said| LazyAnnotations::of(reduced(said.get(), how)));
            let tensor = TensorInfo { dtype, annotated, ..tensor };
            let shape = of.shape(keepdims);
            let axes = of.source_axes(keepdims);
            preparation.push(name, &tensor, at, TensorChange { shape, cast: None, axes })?;
        }
        let mut prepared = preparation.finish(&input.contents.metadata)?;
        // packing does not apply to the reduced values
        prepared.omissions.retain(|it| !matches!(it, Omission::Packed { .. }));
        Ok(Reducing { input, prepared, slices, how })
    }

    /// Refuse an output that overwrites what is read, and bad indices.
    fn check_inputs(&self, takes: &[Take]) -> Result<(), Error> {
        let Output { destination, options, .. } = &self.prepared.output;
        overwrite::check(
            destination,
            [&self.input],
            takes.iter().flat_map(|it| it.region.lists()),
        )?;
        takes.iter().try_for_each(|take| check_indices(take, &options.workers, false))
    }
}

fn takes(slices: &[Slices]) -> Vec<Take> {
    slices.iter().map(|slices| slices.chosen.take(0)).collect()
}

fn selected_bytes(slices: &[Slices]) -> u64 {
    slices.iter().map(|slices| slices.chosen.bytes()).sum()
}

fn check(slices: &Slices, how: Reduction, axes: Option<&[AskedAxis]>) -> Result<(), Error> {
    if let (Reduction::Mean | Reduction::Std, Some(&[AskedAxis::Number(axis)]), 0) =
        (how, axes, slices.reduced.len())
    {
        // np.mean and np.std are stricter than other reductions with arrays without axes
        return Err(AxisFault::OutOfBounds { axis, ndim: 0 }.into());
    }
    nothing(slices, how)?;
    match how.without_identity() {
        Some(name) if slices.is_empty() => Err(ReduceFault::NoIdentity(name).into()),
        _ => Ok(()),
    }
}

/// The result for no elements.
fn nothing(slices: &Slices, how: Reduction) -> Result<Folded, ReduceFault> {
    let dtype = &slices.chosen.dtype;
    how.of(dtype).ok_or_else(|| ReduceFault::DType { how, dtype: dtype.clone() })
}

/// Tensors of one input that are reduced to be printed.
pub struct Reduced {
    input: Input,
    slices: Vec<Slices>,
    how: Reduction,
    results: Tensors,
    bytes: u64,
}

impl Reduced {
    /// Reduce the tensors with these numbers; with `keepdims`, reduced axes stay with length 1.
    pub fn new(
        mut input: Input,
        numbers: &[usize],
        options: &SlicesOptions<'_>,
        how: Reduction,
        keepdims: bool,
    ) -> Result<Reduced, Error> {
        let slices = Slices::all(&mut input, numbers, options, SliceOrder::Memory, how)?;
        let mut results = Tensors::default();
        let mut bytes = 0;
        for (of, &number) in slices.iter().zip(numbers) {
            let name = input.contents.tensors.at(number).name;
            check(of, how, options.axes)
                .map_err(|error| error.of_tensor(name.as_deref(), numbers.len() > 1))?;
            let dtype = how.result(&of.chosen.dtype);
            let result = TensorInfo::new(dtype, of.shape(keepdims), Order::C, bytes);
            bytes = bytes.saturating_add(result.bytes());
            results.push(&TensorInfo { name, ..result });
        }
        Ok(Reduced { input, slices, how, results, bytes })
    }

    pub fn bytes(&self) -> u64 {
        selected_bytes(&self.slices)
    }

    /// The results, in scratch, as an input.
    pub fn into_input(self, workers: &Workers, progress: &Progress) -> Result<Input, Error> {
        let Reduced { mut input, slices, how, results, bytes } = self;
        let takes = takes(&slices);
        takes.iter().try_for_each(|take| check_indices(take, workers, false))?;
        if slices.len() > 1 {
            input.spool_watched(progress)?;
        }
        let location = input.location.clone();
        let offsets: Vec<ResultOffset> = (0..results.len())
            .map(|number| {
                let result = results.at(number);
                ResultOffset { at: result.data().start, itemsize: result.dtype.item_bits() / 8 }
            })
            .collect();
        in_scratch(&location, results, bytes, &takes, workers, |job| {
            let results = Results { slices: &slices, how, order: Order::C, workers };
            results.write(&mut input, job, offsets, progress)
        })
    }
}

/// The position of the first element of a result, and the bytes of an element.
struct ResultOffset {
    at: u64,
    itemsize: u64,
}

/// The results of slices for an output with this order of elements.
struct Results<'a> {
    slices: &'a [Slices],
    how: Reduction,
    order: Order,
    workers: &'a Workers,
}

impl Results<'_> {
    fn write(
        &self,
        input: &mut Input,
        job: &Writing<'_>,
        offsets: impl IntoIterator<Item = ResultOffset>,
        progress: &Progress,
    ) -> Result<(), Error> {
        for (slices, ResultOffset { at, itemsize }) in self.slices.iter().zip(offsets) {
            let target = target(slices, at, itemsize, self.order);
            let sink = StridedSink::new(job.sink(), &target);
            let empty = nothing(slices, self.how)?;
            let dtype = &slices.chosen.dtype;
            let mut written = 0;
            slices.summaries(input, &empty, self.workers, progress, |_, band| {
                for part in rounded(self.how, dtype, band, self.workers)? {
                    let done = sink.write_at(written, &part);
                    done.map_err(|error| job.failed_sink(error))?;
                    written += part.len() as u64;
                }
                Ok::<(), Error>(())
            })?;
        }
        Ok(())
    }
}

impl Job for Reducing {
    fn bytes(&self) -> u64 {
        selected_bytes(&self.slices)
    }

    fn check(&mut self) -> Result<(), Error> {
        self.prepared.check()?;
        self.check_inputs(&takes(&self.slices))
    }

    fn describe(&mut self) -> Result<Vec<Planned>, Error> {
        Ok(vec![Planned::new(&self.prepared, 0)])
    }

    fn omissions(&self) -> Vec<Omission> {
        self.prepared.omissions.clone()
    }

    fn write(&mut self, progress: &Progress) -> Result<(), Error> {
        self.check_inputs(&takes(&self.slices))?;
        let Reducing { input, prepared, slices, how } = self;
        if slices.len() > 1 {
            input.spool_watched(progress)?;
        }
        let Output { options, .. } = &prepared.output;
        let job = Writing::of_output(prepared, false, &[], progress)?;
        let results =
            Results { slices, how: *how, order: options.order, workers: &options.workers };
        let offsets = prepared
            .tensor_offsets()
            .map(|(to, at)| ResultOffset { at, itemsize: to.dtype.item_bits() / 8 });
        results.write(input, &job, offsets, progress)?;
        job.commit()
    }
}

/// The positions of the elements of slices, in the order of the slices.
fn target(slices: &Slices, at: u64, itemsize: u64, order: Order) -> Runs {
    let strides = contiguous_strides(&slices.shape(false), itemsize, order).unwrap_or_default();
    let axis =
        |(axis, &len): (usize, &u64)| Axis { len, stride: strides.get(axis).copied().unwrap_or(0) };
    let axes = slices.staying().zip(slices.lens()).map(axis).collect();
    Runs { offset: at as i64, axes, run: itemsize }.coalesced()
}

fn rounded(
    how: Reduction,
    dtype: &DType,
    band: &[Folded],
    workers: &Workers,
) -> Result<Vec<Vec<u8>>, Error> {
    let parts: Vec<&[Folded]> = band.chunks(ROUNDED).collect();
    workers.each(parts.len(), |number| {
        let mut out = Vec::new();
        parts[number].iter().for_each(|folded| how.push(dtype, folded, &mut out));
        Ok(out)
    })
}
