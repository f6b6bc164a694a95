//! Slices as lazy handles: read into memory, or written.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::cast::{Cast, Casting};
use crate::dtype::DType;
use crate::error::{Cause, Error, Fault};
use crate::execute::{Conversion, Progress, Workers};
use crate::format::{self, Tensors};
use crate::gather;
use crate::handle::element::{Element, ElementSink};
use crate::handle::file::{File, Tensor};
use crate::index::resolve::Rules;
use crate::index::resolve::Selection;
use crate::index::{IndexExpr, numpy};
use crate::input::OpenOptions;
use crate::job::{Cuts, SplitFault, Writing, in_scratch, single};
use crate::output::{Output, Prepared, WriteOptions};
use crate::permutation::Permutation;
use crate::region::{IndexTensor, Lists, Region, Take, gathered_shape};
use crate::shape::{self, Order};
use crate::sink::Destination;

/// Part of a tensor: a shape, and where its elements come from. Nothing of it has been read.
#[derive(Clone)]
pub struct Slice {
    pub(super) tensor: Tensor,
    pub(super) shape: Vec<u64>,
    /// The order of its axes, as they were before it was transposed.
    axes: Permutation,
    /// The type of its elements, and how they become that.
    dtype: DType,
    pub(super) cast: Option<Cast>,
    what: What,
}

/// Which elements.
#[derive(Clone)]
enum What {
    /// An index, whose lists may lie in files.
    Selection(Selection, Lists),
    Gather(Box<GatherBy>),
}

/// Those that an index tensor names, along an axis or as tuples.
#[derive(Clone)]
struct GatherBy {
    indices: IndexTensor,
    axis: Option<i64>,
    options: gather::Options,
}

impl Tensor {
    /// A slice by NumPy's indexing: `"[1, 2:4, None, ..., ::-1]"`, `"[[0, 2], :]"`,
    /// `"[@train.npy]"`. The files of lists are opened now, and read when the slice is.
    ///
    /// # Errors
    /// [`ParseError`](crate::index::numpy::ParseError) for a text that is no index, [`ResolveError`](crate::index::resolve::ResolveError) for one that does not fit
    /// the shape.
    pub fn slice(&self, index: &str) -> Result<Slice, Error> {
        let parsed = numpy::parse(index).map_err(Cause::from)?;
        self.slice_by(&parsed.expr)
    }

    /// A slice by an index that is parsed already, or made of StridedSlice's numbers.
    ///
    /// # Errors
    /// [`ResolveError`](crate::index::resolve::ResolveError) for an index that does not fit the shape.
    pub fn slice_by(&self, index: &IndexExpr) -> Result<Slice, Error> {
        let lists = Lists::open(index)?;
        let selection = lists.resolve_of(index, self.info(), Rules::default())?;
        let (tensor, shape) = (self.clone(), selection.shape());
        let axes = Permutation::identity(shape.len());
        let dtype = self.dtype().clone();
        Ok(Slice {
            tensor,
            shape,
            axes,
            dtype,
            cast: None,
            what: What::Selection(selection, lists),
        })
    }

    /// The whole tensor, as a slice.
    ///
    /// # Errors
    /// Those of [`slice_by`](Tensor::slice_by); none, for the shapes of files.
    pub fn all(&self) -> Result<Slice, Error> {
        self.slice_by(&IndexExpr::default())
    }

    /// NumPy's `take` along an axis: the slabs at these positions. A negative `axis` counts from
    /// the end; positions out of range are an error of reading or writing.
    ///
    /// # Errors
    /// [`GatherError`](crate::gather::GatherError): indices that are no integers, no such axis.
    pub fn take(&self, indices: impl Into<IndexTensor>, axis: i64) -> Result<Slice, Error> {
        self.gather(indices, Some(axis), &gather::Options::default())
    }

    /// TensorFlow's `gather_nd`: the slabs at the tuples on the last axis of the indices. The
    /// result has shape `indices.shape[:-1] + shape[N:]` for tuples of N numbers.
    ///
    /// # Errors
    /// [`GatherError`](crate::gather::GatherError): indices that are no integers, tuples longer than the shape.
    pub fn gather_nd(&self, indices: impl Into<IndexTensor>) -> Result<Slice, Error> {
        self.gather(indices, None, &gather::Options::default())
    }

    /// Gather along an axis or, without one, by tuples: with batch dimensions, or another treatment
    /// of positions out of range.
    ///
    /// # Errors
    /// As [`take`](Tensor::take) and [`gather_nd`](Tensor::gather_nd).
    pub fn gather(
        &self,
        indices: impl Into<IndexTensor>,
        axis: Option<i64>,
        options: &gather::Options,
    ) -> Result<Slice, Error> {
        let (indices, options) = (indices.into(), options.clone());
        let shape = gathered_shape(self.info(), &indices.info, axis, &options)?;
        let tensor = self.clone();
        let axes = options.transpose.clone().unwrap_or(Permutation::identity(shape.len()));
        let what = What::Gather(Box::new(GatherBy { indices, axis, options }));
        Ok(Slice { tensor, shape, axes, dtype: self.dtype().clone(), cast: None, what })
    }
}

impl Slice {
    /// The shape, in elements.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The type of its elements.
    pub fn dtype(&self) -> &DType {
        &self.dtype
    }

    /// NumPy's `astype`: the same elements converted to another number type. A slice is cast once:
    /// of several casts the last one counts.
    ///
    /// # Errors
    /// [`CastError`](crate::cast::CastError) for a cast that `casting` does not allow, and for types that are no numbers.
    pub fn cast(&self, dtype: &DType, casting: Casting) -> Result<Slice, Error> {
        let cast = Cast::new(self.tensor.dtype(), dtype, casting)?;
        Ok(Slice { dtype: dtype.clone(), cast: Some(cast), ..self.clone() })
    }

    /// NumPy's `split` and `array_split`: the slice cut along an axis, of which a negative one counts from
    /// the end. Of a slice made of lists, a copy in a temporary file is cut.
    ///
    /// ```no_run
    /// use tslice::internals::job::Cuts;
    ///
    /// let embed = tslice::open("model.safetensors")?.tensor("embed.weight")?;
    /// let parts = embed.all()?.split(0, &Cuts::Parts(4))?;
    /// tslice::write_all("embed-{}.npy", &parts, &Default::default())?;
    /// # Ok::<(), tslice::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SplitFault`](crate::job::SplitFault): no such axis, parts that do not fit its length.
    pub fn split(&self, axis: i64, cuts: &Cuts) -> Result<Vec<Slice>, Error> {
        let ndim = self.shape.len();
        let at = shape::normalize_axis(axis, ndim).ok_or(SplitFault::Axis { axis, ndim })?;
        let count = cuts.count(self.shape[at])?;
        let parts = (0..count).map(|number| self.narrowed(at, cuts.part(number, self.shape[at])));
        match parts.collect() {
            Some(parts) => Ok(parts),
            None => self.spooled()?.all()?.split(axis, cuts),
        }
    }

    /// A range of positions on an axis; `None` of lists, and of an axis that is new.
    fn narrowed(&self, axis: usize, range: Range<u64>) -> Option<Slice> {
        let What::Selection(selection, lists) = &self.what else { return None };
        let len = range.end - range.start;
        let start = if len == 0 { 0 } else { range.start };
        let selection = selection.narrowed(*self.axes.axes().get(axis)?, start, len)?;
        let what = What::Selection(selection, lists.clone());
        let mut shape = self.shape.clone();
        shape[axis] = len;
        Some(Slice { shape, what, ..self.clone() })
    }

    /// NumPy's `transpose`: the same elements with the axes in another order. Negative axes count
    /// from the end.
    ///
    /// # Errors
    /// [`PermutationError`](crate::permutation::PermutationError) for axes that are not those of the slice, each once.
    pub fn transpose(&self, axes: &[i64]) -> Result<Slice, Error> {
        let axes = Permutation::new(axes, self.shape.len())?;
        let shape = axes.permute(&self.shape);
        Ok(Slice { shape, axes: self.axes.then(&axes), ..self.clone() })
    }

    /// Read the elements into memory, in C order; bytes of the other order are swapped.
    ///
    /// # Errors
    /// [`ReadFault`] for a `T` that is not the dtype or for more elements than memory can hold,
    /// positions out of range, an input that fails or is cut short.
    pub fn read<T: Element>(&self) -> Result<Vec<T>, Error> {
        let endian = match &self.dtype {
            DType::Scalar(scalar, endian) if *scalar == T::SCALAR => *endian,
            dtype => {
                let asked = T::SCALAR.name();
                return Err(self.failed(ReadFault::DType { asked, dtype: dtype.clone() }));
            }
        };
        let count = shape::element_count(&self.shape).and_then(|it| usize::try_from(it).ok());
        let count = count.ok_or_else(|| self.failed(ReadFault::TooLarge))?;
        let sink = ElementSink::<T>::new(endian, count);
        let sink = sink.ok_or_else(|| self.failed(ReadFault::TooLarge))?;
        let takes = [self.take()?];
        let progress = Progress::default();
        let job = Writing::into_sink(&sink, &takes, &Workers::default(), &progress)?;
        self.copy(&job, &takes)?;
        drop(job);
        Ok(sink.into_elements())
    }

    /// Write the slice to a new file, whose name tells the format: `.npy`, `.npz`, `.safetensors`,
    /// `.bin`, `.csv`, `.txt`, `.json`. The file appears when it is complete.
    ///
    /// # Errors
    /// A file that exists or cannot be written, a dtype that the format lacks, positions out of
    /// range, an input that fails or is cut short.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.write_with(path, &WriteOptions::default())
    }

    /// Write the slice with options: another format, a file that is replaced, a name.
    ///
    /// # Errors
    /// As [`write`](Slice::write), and options that do not apply to the format.
    pub fn write_with(&self, path: impl AsRef<Path>, options: &WriteOptions) -> Result<(), Error> {
        let destination = Destination::Path(path.as_ref().to_owned());
        let output = Output::new(destination, options.clone())?;
        let (prepared, takes) = self.prepare(&output)?;
        let progress = Progress::default();
        let input = &self.tensor.file.input;
        let job = Writing::begin(&prepared, input, &takes, &progress)?;
        self.copy(&job, &takes)?;
        job.commit()
    }

    /// The slice in a temporary file, as a tensor of its own: for what is read more than once, and comes
    /// through a network or from positions here and there.
    ///
    /// # Errors
    /// Positions out of range, an input that fails or is cut short, no space for the file.
    pub(crate) fn spooled(&self) -> Result<Tensor, Error> {
        let takes = [self.take()?];
        let own = format::TensorInfo::new(self.dtype.clone(), self.shape.clone(), Order::C, 0);
        let tensor = format::TensorInfo { name: self.tensor.info().name.clone(), ..own };
        let mut tensors = Tensors::default();
        tensors.push(&tensor);
        let (location, workers) = (&self.tensor.file.input.location, Workers::default());
        let copy = |job: &Writing<'_>| self.copy(job, &takes);
        let mut input = in_scratch(location, tensors, tensor.bytes(), &takes, &workers, copy)?;
        let (source, options) = (input.spool()?, OpenOptions::default());
        Ok(Tensor { file: Arc::new(File { input, source, options }), info: Arc::new(tensor) })
    }

    /// The place of the slice in an output, and what is taken for it.
    pub(super) fn prepare(&self, output: &Output) -> Result<(Prepared, Vec<Take>), Error> {
        let (input, order) = (&self.tensor.file.input, output.options.order);
        let region = || self.region(order);
        single(input, self.tensor.info(), self.shape.clone(), self.cast, output, region)
    }

    pub(super) fn copy(&self, job: &Writing<'_>, takes: &[Take]) -> Result<(), Error> {
        let File { input, source, .. } = self.tensor.file.as_ref();
        job.copy_random(input, source.as_ref(), takes)
    }

    /// The elements of the slice, cast and in C order, on their way to memory or a file of their own.
    fn take(&self) -> Result<Take, Error> {
        let conversion = self.cast.map_or(Conversion::None, Conversion::Cast);
        Ok(Take::new(self.tensor.info().part(), self.region(Order::C)?, conversion, 0))
    }

    /// The bytes of the slice, in this memory order, before they are cast.
    pub(super) fn region(&self, order: Order) -> Result<Arc<dyn Region>, Cause> {
        let tensor = self.tensor.info();
        match &self.what {
            What::Selection(selection, lists) => lists.region(tensor, selection, &self.axes, order),
            What::Gather(by) => {
                let GatherBy { indices, axis, options } = by.as_ref();
                let transpose = Some(self.axes.clone());
                let options = gather::Options { order, transpose, ..options.clone() };
                Ok(indices.region(tensor, *axis, &options)?)
            }
        }
    }

    fn failed(&self, fault: ReadFault) -> Error {
        self.tensor.file.input.failed_tensor(self.tensor.info(), true, fault)
    }
}

/// Why a slice cannot be read into memory.
#[derive(Debug, thiserror::Error)]
pub enum ReadFault {
    /// The elements are of another type.
    #[error("the elements are of dtype {dtype}, and {asked} was asked for")]
    DType {
        /// The type that was asked for.
        asked: &'static str,
        /// The type that they have.
        dtype: DType,
    },
    /// More elements than memory can hold.
    #[error("the elements do not fit into memory")]
    TooLarge,
}

impl Fault for ReadFault {}
