//! Jobs that copy what is taken of one input to one output: slices, conversions and gathers.

use std::sync::Arc;

use super::overwrite::unmap;
use super::select::Casts;
use super::{Job, Planned};
use crate::dtype::DType;
use crate::error::{Cause, Error};
use crate::execute::{Announced, Progress};
use crate::format::TensorInfo;
use crate::gather;
use crate::index::resolve::Selection;
use crate::input::Input;
use crate::job::align::shared_bytes;
use crate::job::copy::{Writing, announced, check_indices, out_of_core};
use crate::job::overwrite;
use crate::job::parts::{Parts, Taken};
use crate::job::select::{Select, Selected, select};
use crate::output::layout::OutputTensor;
use crate::output::{Becomes, Output, Prepared, Unsaid};
use crate::permutation::{Permutation, Transposition};
use crate::region::{IndexTensor, OpenIndex, Region, Take, gathered_axes, gathered_shape};

/// What is taken of one input, on its way to one output.
pub struct Copying {
    input: Input,
    prepared: Prepared,
    takes: Vec<Take>,
    /// How many tensors a cast leaves as they are.
    left: usize,
}

/// What is taken of the tensors of an input, and what they become.
pub struct SliceOptions<'a> {
    /// Which tensors, and what they are called in the output.
    pub select: Select,
    /// Names of fields, where those are taken in place of structures.
    pub fields: Option<String>,
    /// What is taken of each tensor that is not kept as it is.
    pub index: OpenIndex<'a>,
    /// The order of the axes of the result.
    pub transpose: Transposition,
    /// What the elements are cast to.
    pub casts: Casts,
}

/// How positions are gathered.
pub struct GatherOptions {
    /// The axis that the positions are on; without one, tuples name positions on the first axes.
    pub axis: Option<i64>,
    /// Batch dimensions, positions out of range.
    pub how: gather::Options,
    /// The order of the axes of the result.
    pub transpose: Transposition,
    /// What the elements are cast to.
    pub casts: Casts,
}

impl GatherOptions {
    /// Check that indices of this dtype and shape fit a tensor.
    ///
    /// # Errors
    /// [`GatherError`](crate::gather::GatherError); axes that are not those of the result.
    pub fn check_shapes(&self, tensor: &TensorInfo, indices: &TensorInfo) -> Result<(), Error> {
        self.shape(tensor, indices).map(|_| ())
    }

    /// The shape of the result, and the order of its axes.
    fn shape(
        &self,
        tensor: &TensorInfo,
        indices: &TensorInfo,
    ) -> Result<(Vec<u64>, Permutation), Error> {
        let shape = gathered_shape(tensor, indices, self.axis, &self.how)?;
        let axes = self.transpose.of_axes(shape.len())?;
        Ok((axes.permute(&shape), axes))
    }
}

impl Copying {
    /// Slice, convert, trim: what an index takes of one tensor or several.
    ///
    /// # Errors
    /// Tensors that cannot be chosen, an index that does not fit, dtypes that the output lacks.
    pub fn slice(
        mut input: Input,
        options: &SliceOptions<'_>,
        output: Output,
    ) -> Result<Copying, Error> {
        if options.fields.is_some() {
            let sliced = select(&input, &options.select, &output)?.sliced_numbers();
            input.take_fields(options.fields.as_deref(), &sliced)?;
        }
        let selected = select(&input, &options.select, &output)?;
        let several = selected.sliced() > 1;
        let casts = options.casts.clone().of_several(several);
        let mut left = 0;
        let result = |of: &Selected| -> Result<Sliced, Error> {
            let sliced = slice(of, options, &casts, &output);
            let name = of.tensor.name.as_deref();
            sliced.map_err(|cause| Error::from(cause).of_tensor(name, several))
        };
        let mut dtypes: Vec<DType> = Vec::new();
        let preparation = selected.prepare(|of| {
            let Sliced { becomes, .. } = result(of)?;
            left += usize::from(of.sliced && casts.leaves(&of.tensor.dtype));
            if of.sliced && !dtypes.contains(&of.tensor.dtype) {
                dtypes.push(of.tensor.dtype.clone());
            }
            Ok(becomes)
        })?;
        options.casts.refuse_unused(dtypes.iter().cloned())?;
        let mut prepared = preparation.finish(&input.contents.metadata)?;
        let mut takes = Vec::with_capacity(selected.len());
        // those that are kept are looked at once more, so that nothing is held of each of a million
        for (of, (to, at)) in selected.iter().zip(prepared.places()) {
            Take::new(to.part, result(&of)?.region, to.conversion, at).push(&mut takes);
        }
        prepared.align(&input, &mut takes);
        drop(selected);
        Ok(Copying { input, prepared, takes, left })
    }

    /// Gather: what an index tensor names of one tensor.
    ///
    /// # Errors
    /// Indices that are no integers or do not fit, dtypes that the output lacks.
    pub fn gather(
        input: Input,
        tensor: &TensorInfo,
        indices: &IndexTensor,
        options: &GatherOptions,
        output: Output,
    ) -> Result<Copying, Error> {
        let GatherOptions { axis, how, casts, .. } = options;
        casts.refuse_unused(std::iter::once(tensor.dtype.clone()))?;
        let (shape, axes) = options.shape(tensor, &indices.info)?;
        let of_tensor = gathered_axes(tensor, &indices.info, *axis, how);
        let becomes = axes.permute(&of_tensor);
        let order = output.options.order;
        let how = gather::Options { order, transpose: Some(axes), ..how.clone() };
        let becomes = Becomes { shape, cast: casts.of(&tensor.dtype)?, axes: becomes };
        let region = || Ok(indices.region(tensor, *axis, &how)?);
        let (prepared, takes) = single(&input, tensor, becomes, &output, region)?;
        Ok(Copying { input, prepared, takes, left: 0 })
    }
}

impl Job for Copying {
    fn bytes(&self) -> u64 {
        self.prepared.bytes
    }

    fn left_uncast(&self) -> usize {
        self.left
    }

    fn check(&mut self) -> Result<(), Error> {
        let Output { destination, options, .. } = &self.prepared.output;
        self.prepared.check()?;
        overwrite::check_output(destination, &self.input, &self.takes)?;
        self.takes.iter().try_for_each(|take| check_indices(take, &options.workers, false))
    }

    fn describe(&mut self) -> Result<Vec<Planned>, Error> {
        let shared = shared_bytes(&self.prepared, &self.input, &self.takes);
        let workers = &self.prepared.output.options.workers;
        let out_of_core = out_of_core(&self.input, &self.takes, workers)?;
        Ok(vec![Planned { out_of_core, ..Planned::new(&self.prepared, shared) }])
    }

    fn requests(&mut self) -> Result<Option<Announced>, Error> {
        announced(&self.input, &self.takes)
    }

    fn unsaid(&self) -> Vec<Unsaid> {
        self.prepared.unsaid.clone()
    }

    fn write(&mut self, progress: &Progress) -> Result<(), Error> {
        let Copying { input, prepared, takes, .. } = self;
        let job = Writing::begin(prepared, input, takes, progress)?;
        job.copy(input, takes)?;
        job.commit()?;
        let workers = &prepared.output.options.workers;
        input.random().iter().for_each(|source| unmap(source.as_ref(), workers));
        Ok(())
    }

    fn parts(&mut self, count: u64) -> Result<Parts<'_>, Error> {
        let Copying { input, prepared, takes, .. } = self;
        Parts::new(prepared, Box::new(Taken { input, takes }), count)
    }
}

/// The place of one tensor in an output, and what is taken for it.
pub(crate) fn single(
    input: &Input,
    tensor: &TensorInfo,
    becomes: Becomes,
    output: &Output,
    region: impl FnOnce() -> Result<Arc<dyn Region>, Cause>,
) -> Result<(Prepared, Vec<Take>), Error> {
    let mut prepared = output.prepare(input, tensor, becomes)?;
    let region = region()?;
    let take =
        |(to, at): (OutputTensor, u64)| Take::new(to.part, Arc::clone(&region), to.conversion, at);
    let takes = prepared.places().map(take);
    let mut takes: Vec<Take> = takes.collect();
    prepared.align(input, &mut takes);
    Ok((prepared, takes))
}

/// What becomes of a tensor, and what of it is taken.
struct Sliced {
    becomes: Becomes,
    region: Arc<dyn Region>,
}

/// What becomes of a tensor that is sliced, or only kept.
fn slice(
    Selected { tensor, sliced, .. }: &Selected,
    options: &SliceOptions<'_>,
    casts: &Casts,
    output: &Output,
) -> Result<Sliced, Cause> {
    let order = output.options.order;
    if !sliced {
        let region = <dyn Region>::of_selection(tensor, &Selection::whole(&tensor.shape), order)?;
        return Ok(Sliced { becomes: Becomes::kept(tensor.shape.clone()), region });
    }
    let selection = options.index.resolve(tensor)?;
    let shape = selection.shape();
    let axes = options.transpose.of_axes(shape.len())?;
    let cast = casts.of(&tensor.dtype)?;
    let region = options.index.lists.region(tensor, &selection, &axes, order)?;
    let (shape, axes) = (axes.permute(&shape), axes.permute(&selection.source_axes()));
    Ok(Sliced { becomes: Becomes { shape, cast, axes }, region })
}
