//! Slices as lazy handles: read into memory, or written.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::file::File;
use super::output_at;
use super::read::AT_ONCE;
use crate::cast::{Cast, Casting};
use crate::dtype::DType;
use crate::error::{Cause, Error};
use crate::execute::{Conversion, Progress, Workers};
use crate::gather::{self, GatherError};
use crate::handle::file::Tensor;
use crate::handle::index::IntoIndex;
use crate::index::resolve::{Rules, Selection};
use crate::input::{Location, OpenOptions};
use crate::job::{Cuts, SplitFault, Writing, in_scratch};
use crate::output::{Output, Prepared, TensorChange, WriteOptions};
use crate::region::{GatheredTensor, IndexTensor, Lists, Region, Take, gathered_axes};
use crate::shape::{self, Order, Permutation};
use crate::source::{MemorySource, Source};
use crate::tensor::{Storage, StorageKind, TensorInfo, Tensors};

/// A part of a tensor: a shape, and the source of its elements. Nothing of it has been read.
#[derive(Clone)]
pub struct Slice {
    pub(super) tensor: Tensor,
    pub(super) shape: Vec<u64>,
    /// The axes in their order before a transposition.
    axes: Permutation,
    /// The type of its elements, and the conversion to it.
    dtype: DType,
    pub(super) cast: Option<Cast>,
    taken_by: SliceKind,
}

#[derive(Clone)]
enum SliceKind {
    /// An index, whose lists may lie in files.
    Selection(Selection, Lists),
    Gather(Box<GatherBy>),
}

/// Elements named by an index tensor, along an axis or as tuples.
#[derive(Clone)]
struct GatherBy {
    indices: IndexTensor,
    axis: Option<i64>,
    options: gather::Options,
    /// The elements in C order, and the order of their axes for that.
    region: Arc<dyn Region>,
    axes: Permutation,
}

impl Tensor {
    /// A slice by NumPy's indexing, as text or as numbers: `"[1, 2:4, None, ..., ::-1]"`,
    /// `"[[0, 2], :]"`, `"[@train.npy]"`; `(1, 2..4, .., -1)`. The files of lists are opened now,
    /// and read when the slice is.
    ///
    /// # Errors
    ///
    /// [`ParseError`](crate::index::numpy::ParseError) for a text that is not an index,
    /// [`ResolveError`](crate::index::resolve::ResolveError) for one that does not fit the shape.
    pub fn slice(&self, index: impl IntoIndex) -> Result<Slice, Error> {
        let selected = || {
            let index = index.into_index()?;
            let lists = Lists::open(&index)?;
            let selection = lists.resolve_of(&index, self.info(), Rules::default())?;
            Ok(self.selected(selection, lists))
        };
        selected().map_err(|error| self.named(error))
    }

    /// The whole tensor, as a slice.
    pub fn all(&self) -> Slice {
        self.selected(Selection::whole(self.shape()), Lists::default())
    }

    fn selected(&self, selection: Selection, lists: Lists) -> Slice {
        let tensor = self.clone();
        let shape = selection.shape();
        let axes = Permutation::identity(shape.len());
        let dtype = self.dtype().clone();
        let taken_by = SliceKind::Selection(selection, lists);
        Slice { tensor, shape, axes, dtype, cast: None, taken_by }
    }

    /// NumPy's `take` along an axis: the slabs at these positions, a list of integers of any type,
    /// or another tensor. Negative positions count from the end, and so does a negative `axis`;
    /// positions out of range are an error of reading or writing.
    ///
    /// # Errors
    ///
    /// [`GatherError`](crate::gather::GatherError): indices that are not integers, no such axis.
    pub fn take(&self, indices: impl Into<IndexTensor>, axis: i64) -> Result<Slice, Error> {
        let indices = indices.into();
        match self.only_slab(&indices, axis) {
            Some(slab) => Ok(slab),
            None => {
                let options = gather::Options { negative: true, ..gather::Options::default() };
                self.gather(indices, Some(axis), &options)
            }
        }
    }

    /// The slab at the single position of a list, as a range, which is read faster; `None` if the
    /// position is not in range from 0 on.
    fn only_slab(&self, indices: &IndexTensor, axis: i64) -> Option<Slice> {
        let at = shape::normalize_axis(axis, self.shape().len())?;
        let given = indices.only_value()?;
        let len = self.shape()[at];
        let position = if given < 0 { len.checked_add_signed(given)? } else { given as u64 };
        let is_inside = position < len && self.dtype().blocks().is_none();
        is_inside.then(|| self.all().narrowed(at, position..position + 1)).flatten()
    }

    /// TensorFlow's `gather_nd`: the slabs at the tuples on the last axis of the indices. The
    /// result has shape `indices.shape[:-1] + shape[N:]` for tuples of N numbers.
    ///
    /// # Errors
    ///
    /// [`GatherError`](crate::gather::GatherError): indices that are not integers, tuples longer
    /// than the shape.
    pub fn gather_nd(&self, indices: impl Into<IndexTensor>) -> Result<Slice, Error> {
        self.gather(indices, None, &gather::Options::default())
    }

    /// Gather along an axis or, without one, by tuples: with batch dimensions, or another treatment
    /// of positions out of range.
    pub fn gather(
        &self,
        indices: impl Into<IndexTensor>,
        axis: Option<i64>,
        options: &gather::Options,
    ) -> Result<Slice, Error> {
        let indices = indices.into().decoded(&Workers::default(), &Progress::default())?;
        let options = gather::Options { order: Order::C, ..options.clone() };
        let gathered = indices.gathered(self.info(), axis, &options);
        let GatheredTensor { shape, region } = gathered.map_err(|error| self.failed(error))?;
        let tensor = self.clone();
        let axes = options.transpose.clone().unwrap_or(Permutation::identity(shape.len()));
        let by = GatherBy { indices, axis, options, region, axes: axes.clone() };
        let taken_by = SliceKind::Gather(Box::new(by));
        Ok(Slice { tensor, shape, axes, dtype: self.dtype().clone(), cast: None, taken_by })
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

    /// This slice under another name, for files of several tensors.
    #[must_use]
    pub fn named(&self, name: impl Into<String>) -> Slice {
        let info = TensorInfo { name: Some(name.into()), ..self.tensor.info().clone() };
        let tensor = Tensor { info: Arc::new(info), ..self.tensor.clone() };
        Slice { tensor, ..self.clone() }
    }

    /// NumPy's `astype`: the same elements converted to another number type. A slice is cast once:
    /// of several casts the last one counts.
    ///
    /// # Errors
    ///
    /// [`CastError`](crate::cast::CastError) for a cast that `casting` does not allow, and for
    /// types that are not numbers.
    pub fn cast(&self, dtype: &DType, casting: Casting) -> Result<Slice, Error> {
        let cast = Cast::new(self.tensor.dtype(), dtype, casting);
        let cast = cast.map_err(|error| self.failed(error))?;
        Ok(Slice { dtype: dtype.clone(), cast: Some(cast), ..self.clone() })
    }

    /// A slice of the slice, as [`Tensor::slice`]. Of a slice made of lists or positions, a copy in a temporary file
    /// is sliced.
    ///
    /// ```no_run
    /// let photos = tslice::open("photos.npy")?.only()?;
    /// let crops = photos.slice((.., 16..32, 20..44))?;
    /// let first: Vec<u8> = crops.slice(0)?.read()?;
    /// # Ok::<(), tslice::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::slice`]; what keeps the copy from being made.
    pub fn slice(&self, index: impl IntoIndex) -> Result<Slice, Error> {
        self.of_own(|tensor| tensor.slice(index))
    }

    /// NumPy's `take` of the slice, as [`Tensor::take`].
    pub fn take(&self, indices: impl Into<IndexTensor>, axis: i64) -> Result<Slice, Error> {
        self.of_own(|tensor| tensor.take(indices, axis))
    }

    /// The slice that `make` takes of this slice as a tensor: one with strides if this slice is
    /// ranges, otherwise a copy in scratch.
    fn of_own(&self, make: impl FnOnce(&Tensor) -> Result<Slice, Error>) -> Result<Slice, Error> {
        if let Some(block) = self.dtype.blocks() {
            // the axis of blocks is known for tensors only
            let axis = self.shape.len().saturating_sub(1);
            return Err(self.failed(GatherError::InBlocks { axis, block: block.elements }));
        }
        let region = self.region(Order::C).map_err(|cause| self.failed(cause))?;
        let from = self.tensor.info();
        let Some(view) = region.strided().filter(|_| from.dtype.item_bits().is_multiple_of(8))
        else {
            return make(&self.spooled()?);
        };
        let first = view.offset() - from.data().start;
        let strides = view.axes().iter().map(|axis| axis.stride).collect();
        let kind = StorageKind::Strided { first, strides, ranges: Vec::new() };
        let storage = Storage { kind, ..from.storage.clone() };
        let info = TensorInfo { shape: self.shape.clone(), storage, ..from.clone() };
        let made = make(&Tensor { info: Arc::new(info), ..self.tensor.clone() })?;
        Ok(Slice { dtype: self.dtype.clone(), cast: self.cast, ..made })
    }

    /// NumPy's `split` and `array_split`: the slice cut along an axis, of which a negative one counts from
    /// the end. Of a slice made of lists, a copy in a temporary file is cut.
    ///
    /// ```no_run
    /// use tslice::job::Cuts;
    ///
    /// let embed = tslice::open("model.safetensors")?.tensor("embed.weight")?;
    /// let parts = embed.all().split(0, &Cuts::Parts(4))?;
    /// tslice::write_all("embed-{}.npy", &parts, &Default::default())?;
    /// # Ok::<(), tslice::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SplitFault`](crate::job::SplitFault): no such axis, parts that do not fit its length.
    pub fn split(&self, axis: i64, cuts: &Cuts) -> Result<Vec<Slice>, Error> {
        let at = self.axis(axis)?;
        let count = cuts.count(self.shape[at]).map_err(|fault| self.failed(fault))?;
        let parts = (0..count).map(|number| self.narrowed(at, cuts.part(number, self.shape[at])));
        match parts.collect() {
            Some(parts) => Ok(parts),
            None => self.spooled()?.all().split(axis, cuts),
        }
    }

    /// The number of an axis; a negative axis counts from the end.
    pub(super) fn axis(&self, axis: i64) -> Result<usize, Error> {
        let ndim = self.shape.len();
        shape::normalize_axis(axis, ndim)
            .ok_or_else(|| self.failed(SplitFault::Axis { axis, ndim }))
    }

    /// A range of positions on an axis; `None` for lists, and for a new axis.
    pub(super) fn narrowed(&self, axis: usize, range: Range<u64>) -> Option<Slice> {
        let SliceKind::Selection(selection, lists) = &self.taken_by else { return None };
        let len = range.end - range.start;
        let start = if len == 0 { 0 } else { range.start };
        let selection = selection.narrowed(*self.axes.axes().get(axis)?, start, len)?;
        let taken_by = SliceKind::Selection(selection, lists.clone());
        let mut shape = self.shape.clone();
        shape[axis] = len;
        Some(Slice { shape, taken_by, ..self.clone() })
    }

    /// NumPy's `transpose`: the same elements with the axes in another order. Negative axes count
    /// from the end.
    ///
    /// # Errors
    ///
    /// [`PermutationError`](crate::shape::PermutationError) for axes that are not those of the
    /// slice, each once.
    pub fn transpose(&self, axes: &[i64]) -> Result<Slice, Error> {
        let axes = Permutation::new(axes, self.shape.len()).map_err(|error| self.failed(error))?;
        let shape = axes.permute(&self.shape);
        Ok(Slice { shape, axes: self.axes.then(&axes), ..self.clone() })
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
        self.write_of(self.tensor.file.source.as_ref(), path.as_ref(), options)
    }

    /// Write the slice of a tensor whose bytes are in `source`.
    pub(super) fn write_of(
        &self,
        source: &dyn Source,
        path: &Path,
        options: &WriteOptions,
    ) -> Result<(), Error> {
        let (prepared, takes) = self.prepare(&output_at(path, options)?)?;
        let progress = Progress::watched(&options.watcher);
        let input = &self.tensor.file.input;
        let job = Writing::begin(&prepared, input, &takes, &progress)?;
        let copied = job.copy_random(input, source, &takes);
        copied.map_err(|error| self.tensor.named(error))?;
        job.commit()
    }

    /// The slice as a tensor, for repeated reading: the tensor itself, if it is in memory and not
    /// cast, or a copy, in memory or, if it is large, in scratch.
    pub(crate) fn spooled(&self) -> Result<Tensor, Error> {
        let Tensor { file, info, workers } = &self.tensor;
        let is_whole = match &self.taken_by {
            SliceKind::Selection(selection, _) => *selection == Selection::whole(&info.shape),
            SliceKind::Gather(_) => false,
        };
        let location = &file.input.location;
        let is_held = *location == Location::Memory && self.cast.is_none();
        if is_held && is_whole && self.axes.is_identity() {
            return Ok(self.tensor.clone());
        }
        let own = TensorInfo::new(self.dtype.clone(), self.shape.clone(), Order::C, 0);
        let tensor = TensorInfo { name: info.name.clone(), ..own };
        if self.nbytes() <= AT_ONCE {
            let source = Arc::new(MemorySource(self.read_bytes()?));
            return Ok(Tensor::held(location, tensor, source, workers.clone()));
        }
        let takes = [self.take_as(self.conversion())?];
        let mut tensors = Tensors::default();
        tensors.push(&tensor);
        let workers = workers.clone();
        let copy = |job: &Writing<'_>| self.copy(job, &takes);
        let mut input = in_scratch(location, tensors, tensor.bytes(), &takes, &workers, copy)?;
        let source = input.spool()?;
        let options = OpenOptions::default();
        Ok(Tensor {
            file: Arc::new(File { input, source, options }),
            info: Arc::new(tensor),
            workers,
        })
    }

    /// The layout of an output with the slice, and what is taken for it.
    pub(super) fn prepare(&self, output: &Output) -> Result<(Prepared, Vec<Take>), Error> {
        let input = &self.tensor.file.input;
        let mut prepared = output.prepare(input, self.tensor.info(), self.change())?;
        let region = self.region(output.options.order)?;
        let offsets = prepared.tensor_offsets();
        let takes =
            offsets.map(|(to, at)| Take::new(to.shard, Arc::clone(&region), to.conversion, at));
        let mut takes = Vec::from_iter(takes);
        prepared.align(input, &mut takes);
        Ok((prepared, takes))
    }

    pub(super) fn change(&self) -> TensorChange {
        let axes = match &self.taken_by {
            SliceKind::Selection(selection, _) => selection.source_axes(),
            SliceKind::Gather(by) => {
                gathered_axes(self.tensor.info(), &by.indices.info, by.axis, &by.options)
            }
        };
        TensorChange { shape: self.shape.clone(), cast: self.cast, axes: self.axes.permute(&axes) }
    }

    pub(super) fn copy(&self, job: &Writing<'_>, takes: &[Take]) -> Result<(), Error> {
        let File { input, source, .. } = self.tensor.file.as_ref();
        let copied = job.copy_random(input, source.as_ref(), takes);
        copied.map_err(|error| self.tensor.named(error))
    }

    /// The conversion of elements on their way to memory or a file of their own.
    pub(super) fn conversion(&self) -> Conversion {
        self.cast.map_or(Conversion::None, Conversion::Cast)
    }

    pub(super) fn take_as(&self, conversion: Conversion) -> Result<Take, Error> {
        let region = self.region(Order::C).map_err(|cause| self.failed(cause))?;
        Ok(Take::new(self.tensor.info().shard(), region, conversion, 0))
    }

    /// The region of the slice, in this memory order, before it is cast.
    pub(super) fn region(&self, order: Order) -> Result<Arc<dyn Region>, Cause> {
        let tensor = self.tensor.info();
        match &self.taken_by {
            SliceKind::Selection(selection, lists) => {
                lists.region(tensor, selection, &self.axes.in_memory(order).into())
            }
            SliceKind::Gather(by) => {
                let GatherBy { indices, axis, options, .. } = by.as_ref();
                if order == Order::C && self.axes == by.axes {
                    return Ok(Arc::clone(&by.region));
                }
                let transpose = Some(self.axes.clone());
                let options = gather::Options { order, transpose, ..options.clone() };
                Ok(indices.gathered(tensor, *axis, &options)?.region)
            }
        }
    }

    pub(super) fn failed(&self, cause: impl Into<Cause>) -> Error {
        self.tensor.failed(cause)
    }

    /// The name of its tensor, or the name that it was [given](Slice::named).
    pub fn name(&self) -> Option<&str> {
        self.tensor.name()
    }

    /// The number of elements.
    pub fn len(&self) -> u64 {
        shape::element_count(&self.shape).unwrap_or(u64::MAX)
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of the elements, as they are [read](Slice::read_bytes).
    pub fn nbytes(&self) -> u64 {
        shape::byte_count(&self.shape, self.dtype.item_bits()).unwrap_or(u64::MAX)
    }
}
