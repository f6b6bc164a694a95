//! Tensors of a file as lazy handles: opened once, sliced, and only then read or written.

use std::path::Path;
use std::sync::Arc;

use crate::cast::{Cast, Casting};
use crate::dtype::DType;
use crate::error::{Cause, ContainerError, Fault};
use crate::execute::{Conversion, Progress, Workers};
use crate::format::{self, Format};
use crate::gather;
use crate::handle::element::{Element, ElementSink};
use crate::index::resolve::Selection;
use crate::index::{IndexExpr, numpy};
use crate::input::take_fields;
use crate::input::{Input, Location};
use crate::input::{OpenOptions, open as open_input};
use crate::job::Writing;
use crate::output::WriteOptions;
use crate::output::{Item, Output};
use crate::permutation::Permutation;
use crate::region::Take;
use crate::region::{IndexRules, Lists};
use crate::region::{IndexTensor, gathered_shape};
use crate::shape::{self, Order};
use crate::sink::Destination;
use crate::source::{IoMode, Source};

/// An opened file, from which tensors are taken. Only its header has been read.
#[derive(Clone)]
pub struct TensorFile {
    file: Arc<File>,
}

/// What all handles of a file share.
struct File {
    input: Input,
    source: Arc<dyn Source>,
}

/// Open a file that holds tensors: `.npy`, `.npz`, `.safetensors`, the index of a sharded
/// checkpoint. A pipe is copied to a temporary file.
///
/// # Errors
/// No such file, no known format, a header that breaks its format's rules; see
/// [`Cause`].
pub fn open(path: impl AsRef<Path>) -> Result<TensorFile, ContainerError> {
    TensorFile::open(&Location::of(path.as_ref()), &OpenOptions::default())
}

impl TensorFile {
    /// Open a file or standard input: raw bytes, a given way of reading, some shards only.
    ///
    /// # Errors
    /// As [`open`].
    pub fn open(location: &Location, options: &OpenOptions) -> Result<TensorFile, ContainerError> {
        let mut input = open_input(location, options)?;
        let source = input.spool()?;
        Ok(TensorFile { file: Arc::new(File { input, source }) })
    }

    /// The format of the file.
    pub fn format(&self) -> Format {
        self.file.input.contents.format
    }

    /// What is known of the file: its header, its metadata.
    pub fn input(&self) -> &Input {
        &self.file.input
    }

    /// All tensors, in the order of the file.
    pub fn tensors(&self) -> impl Iterator<Item = Tensor> + '_ {
        (0..self.file.input.contents.tensors.len()).map(|number| self.handle(number))
    }

    /// The tensor of that name, or the one whose name matches that glob.
    ///
    /// # Errors
    /// [`SelectFault`](crate::input::SelectFault): no such tensor, or several.
    pub fn tensor(&self, name: &str) -> Result<Tensor, ContainerError> {
        self.one(&[name.to_owned()])
    }

    /// The only tensor of the file, such as that of a `.npy`.
    ///
    /// # Errors
    /// [`SelectFault`](crate::input::SelectFault): the file holds none, or several.
    pub fn only(&self) -> Result<Tensor, ContainerError> {
        self.one(&[])
    }

    fn one(&self, patterns: &[String]) -> Result<Tensor, ContainerError> {
        Ok(self.handle(self.file.input.find_one(patterns)?))
    }

    fn handle(&self, number: usize) -> Tensor {
        let info = Arc::new(self.file.input.contents.tensors.at(number));
        Tensor { file: Arc::clone(&self.file), info }
    }
}

/// A tensor of an opened file. Nothing of it is read before a [`Slice`] of it is.
#[derive(Clone)]
pub struct Tensor {
    file: Arc<File>,
    info: Arc<format::Tensor>,
}

impl Tensor {
    /// What the header says of it.
    pub fn info(&self) -> &format::Tensor {
        &self.info
    }

    /// The name of the tensor, where the format has names.
    pub fn name(&self) -> Option<&str> {
        self.info().name.as_deref()
    }

    /// The type of its elements.
    pub fn dtype(&self) -> &DType {
        &self.info().dtype
    }

    /// The shape, in elements.
    pub fn shape(&self) -> &[u64] {
        &self.info().shape
    }

    /// The tensor of a field, where the elements are structures: `x`, `pos.x` for a field of a field; or
    /// several, `x,y`, as a structure without padding.
    ///
    /// # Errors
    /// [`FieldFault`](crate::input::FieldFault): no structured dtype, no such field.
    pub fn field(&self, names: &str) -> Result<Tensor, ContainerError> {
        let file = Arc::clone(&self.file);
        let info = take_fields(&self.info, names);
        let info = info.map_err(|fault| file.input.failed_tensor(&self.info, true, fault))?;
        Ok(Tensor { file, info: Arc::new(info) })
    }

    /// A slice by NumPy's indexing: `"[1, 2:4, None, ..., ::-1]"`, `"[[0, 2], :]"`,
    /// `"[@train.npy]"`. The files of lists are opened now, and read when the slice is.
    ///
    /// # Errors
    /// [`ParseError`](crate::index::numpy::ParseError) for a text that is no index, [`ResolveError`](crate::index::resolve::ResolveError) for one that does not fit
    /// the shape.
    pub fn slice(&self, index: &str) -> Result<Slice, ContainerError> {
        let parsed = numpy::parse(index).map_err(Cause::from)?;
        self.slice_by(&parsed.expr)
    }

    /// A slice by an index that is parsed already, or made of StridedSlice's numbers.
    ///
    /// # Errors
    /// [`ResolveError`](crate::index::resolve::ResolveError) for an index that does not fit the shape.
    pub fn slice_by(&self, index: &IndexExpr) -> Result<Slice, ContainerError> {
        let lists =
            Lists::open(index, IoMode::Auto, &Workers::default()).map_err(|fault| fault.error)?;
        let selection = lists.resolve(index, self.shape(), IndexRules::default())?;
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
    pub fn all(&self) -> Result<Slice, ContainerError> {
        self.slice_by(&IndexExpr::default())
    }

    /// NumPy's `take` along an axis: the slabs at these positions. A negative `axis` counts from
    /// the end; positions out of range are an error of reading or writing.
    ///
    /// # Errors
    /// [`GatherError`](crate::gather::GatherError): indices that are no integers, no such axis.
    pub fn take(
        &self,
        indices: impl Into<IndexTensor>,
        axis: i64,
    ) -> Result<Slice, ContainerError> {
        self.gather(indices, Some(axis), &gather::Options::default())
    }

    /// TensorFlow's `gather_nd`: the slabs at the tuples on the last axis of the indices. The
    /// result has shape `indices.shape[:-1] + shape[N:]` for tuples of N numbers.
    ///
    /// # Errors
    /// [`GatherError`](crate::gather::GatherError): indices that are no integers, tuples longer than the shape.
    pub fn gather_nd(&self, indices: impl Into<IndexTensor>) -> Result<Slice, ContainerError> {
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
    ) -> Result<Slice, ContainerError> {
        let (indices, options) = (indices.into(), options.clone());
        let shape = gathered_shape(self.info(), &indices.info, axis, &options)?;
        let tensor = self.clone();
        let axes = options.transpose.clone().unwrap_or(Permutation::identity(shape.len()));
        let what = What::Gather(Box::new(GatherBy { indices, axis, options }));
        Ok(Slice { tensor, shape, axes, dtype: self.dtype().clone(), cast: None, what })
    }
}

impl From<&Tensor> for IndexTensor {
    fn from(tensor: &Tensor) -> IndexTensor {
        IndexTensor {
            info: tensor.info().clone(),
            bytes: Arc::clone(&tensor.file.source),
            file: Some((&tensor.file.input.location).into()),
        }
    }
}

/// Part of a tensor: a shape, and where its elements come from. Nothing of it has been read.
#[derive(Clone)]
pub struct Slice {
    tensor: Tensor,
    shape: Vec<u64>,
    /// The order of its axes, as they were before it was transposed.
    axes: Permutation,
    /// The type of its elements, and how they become that.
    dtype: DType,
    cast: Option<Cast>,
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
    pub fn cast(&self, dtype: &DType, casting: Casting) -> Result<Slice, ContainerError> {
        let cast = Cast::new(self.tensor.dtype(), dtype, casting)?;
        Ok(Slice { dtype: dtype.clone(), cast: Some(cast), ..self.clone() })
    }

    /// NumPy's `transpose`: the same elements with the axes in another order. Negative axes count
    /// from the end.
    ///
    /// # Errors
    /// [`PermutationError`](crate::permutation::PermutationError) for axes that are not those of the slice, each once.
    pub fn transpose(&self, axes: &[i64]) -> Result<Slice, ContainerError> {
        let axes = Permutation::new(axes, self.shape.len())?;
        let shape = axes.permute(&self.shape);
        Ok(Slice { shape, axes: self.axes.then(&axes), ..self.clone() })
    }

    /// Read the elements into memory, in C order; bytes of the other order are swapped.
    ///
    /// # Errors
    /// [`ReadFault`] for a `T` that is not the dtype or for more elements than memory can hold,
    /// positions out of range, an input that fails or is cut short.
    pub fn read<T: Element>(&self) -> Result<Vec<T>, ContainerError> {
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
        let conversion = self.cast.map_or(Conversion::None, Conversion::Cast);
        let takes = [self.take(Order::C, conversion, 0)?];
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
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), ContainerError> {
        self.write_with(path, &WriteOptions::default())
    }

    /// Write the slice with options: another format, a file that is replaced, a name.
    ///
    /// # Errors
    /// As [`write`](Slice::write), and options that do not apply to the format.
    pub fn write_with(
        &self,
        path: impl AsRef<Path>,
        options: &WriteOptions,
    ) -> Result<(), ContainerError> {
        let destination = Destination::Path(path.as_ref().to_owned());
        let output = Output::new(destination, options.clone())?;
        let (tensor, input) = (self.tensor.info(), &self.tensor.file.input);
        let item = Item {
            name: &output.tensor_name(tensor, &input.location, true),
            dtype: &tensor.dtype,
            shape: self.shape.clone(),
            cast: self.cast,
            part: tensor.part(),
            number: 0,
        };
        let mut prepared = output.prepare(&[item], &input.contents.metadata)?;
        let takes = prepared.places().map(|(to, at)| self.take(options.order, to.conversion, at));
        let mut takes: Vec<Take> = takes.collect::<Result<_, _>>()?;
        prepared.align(input, &mut takes);
        let progress = Progress::default();
        let job = Writing::begin(&output, &prepared, (input, &takes), &progress)?;
        self.copy(&job, &takes)?;
        job.commit()
    }

    fn copy(&self, job: &Writing<'_>, takes: &[Take]) -> Result<(), ContainerError> {
        let File { input, source } = self.tensor.file.as_ref();
        job.copy_random(input, source.as_ref(), takes)
    }

    /// Its bytes on their way to position `at` of an output.
    fn take(&self, order: Order, conversion: Conversion, at: u64) -> Result<Take, ContainerError> {
        let tensor = self.tensor.info();
        let region = match &self.what {
            What::Selection(selection, lists) => {
                lists.region(tensor, selection, &self.axes, order)?
            }
            What::Gather(by) => {
                let GatherBy { indices, axis, options } = by.as_ref();
                let transpose = Some(self.axes.clone());
                let options = gather::Options { order, transpose, ..options.clone() };
                indices.region(tensor, *axis, &options)?
            }
        };
        Ok(Take::new(tensor.part(), region, conversion, at))
    }

    fn failed(&self, fault: ReadFault) -> ContainerError {
        let error = ContainerError::file(&self.tensor.file.input.location, fault);
        match self.tensor.name() {
            Some(name) => error.of_tensor(name),
            None => error,
        }
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
