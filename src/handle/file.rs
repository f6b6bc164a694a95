//! Tensors of a file as lazy handles: opened once, and only then sliced, gathered from or changed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::dtype::DType;
use crate::error::{Cause, Error};
use crate::execute::Workers;
use crate::formats::open as open_input;
use crate::input::{Format, Input, Location, Missing, OpenOptions, read_as, take_fields};
use crate::region::IndexTensor;
use crate::shape;
use crate::source::Source;
use crate::tensor::TensorInfo;

/// An opened file, from which tensors are taken. Only its header has been read.
#[derive(Clone)]
pub struct TensorFile {
    file: Arc<File>,
    workers: Workers,
}

/// The data that all handles of a file share.
pub(super) struct File {
    pub(super) input: Input,
    pub(super) source: Arc<dyn Source>,
    pub(super) options: OpenOptions,
}

/// Open a file that holds tensors: `.npy`, `.npz`, `.safetensors`, the index of a sharded
/// checkpoint. A pipe is copied to a temporary file.
///
/// # Errors
/// No such file, no known format, a header that breaks its format's rules; see
/// [`Cause`](crate::error::Cause).
pub fn open(path: impl AsRef<Path>) -> Result<TensorFile, Error> {
    TensorFile::open(&Location::of(path.as_ref()), &OpenOptions::default())
}

impl TensorFile {
    /// Open a file or standard input: raw bytes, a given way of reading, some shards only.
    ///
    /// # Errors
    /// As [`open`].
    pub fn open(location: &Location, options: &OpenOptions) -> Result<TensorFile, Error> {
        let mut input = open_input(location, options)?;
        let source = input.spool()?;
        let options = options.clone();
        let file = Arc::new(File { input, source, options });
        Ok(TensorFile { file, workers: Workers::default() })
    }

    /// This file, with slices that are read by at most `count` threads together; 0 means one a
    /// core, the default. Reads of less than 2 MiB use only the caller's thread; writing has [an
    /// option](crate::WriteOptions::threads) of its own.
    #[must_use]
    pub fn threads(&self, count: usize) -> TensorFile {
        TensorFile { file: Arc::clone(&self.file), workers: Workers::new(count) }
    }

    pub(super) fn input(&self) -> &Input {
        &self.file.input
    }

    /// The format of the file.
    pub fn format(&self) -> &'static Format {
        self.file.input.contents.format
    }

    /// The `__metadata__` of a `.safetensors`; empty for other formats.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.file.input.contents.metadata.texts
    }

    /// All tensors of the file, in its order. Of a checkpoint of several files some may be
    /// [missing](TensorFile::missing).
    pub fn tensors(&self) -> impl Iterator<Item = Tensor> + '_ {
        (0..self.file.input.contents.tensors.len()).map(|number| self.handle(number))
    }

    /// Tensors that an index lists and that are missing, and missing files whose tensors are not
    /// known. A program that must have all tensors refuses a file that misses any.
    pub fn missing(&self) -> impl Iterator<Item = Missing<'_>> {
        self.file.input.missing()
    }

    /// The tensor of that name, or the only tensor whose name matches that glob.
    ///
    /// # Errors
    ///
    /// [`SelectFault`](crate::input::SelectFault): no such tensor, or several.
    pub fn tensor(&self, name: &str) -> Result<Tensor, Error> {
        let Input { contents, exclude, .. } = &self.file.input;
        match contents.tensors.number_of(name).filter(|_| exclude.is_empty()) {
            Some(number) => Ok(self.handle(number)),
            None => self.one(&[name.to_owned()]),
        }
    }

    /// The only tensor of the file, such as that of a `.npy`.
    ///
    /// # Errors
    /// [`SelectFault`](crate::input::SelectFault): the file holds none, or several.
    pub fn only(&self) -> Result<Tensor, Error> {
        self.one(&[])
    }

    fn one(&self, patterns: &[String]) -> Result<Tensor, Error> {
        Ok(self.handle(self.file.input.find_one(patterns)?))
    }

    fn handle(&self, number: usize) -> Tensor {
        let info = Arc::new(self.file.input.contents.tensors.at(number));
        Tensor { file: Arc::clone(&self.file), info, workers: self.workers.clone() }
    }
}

/// A tensor of an opened file. Nothing of it is read before a [`Slice`](crate::Slice) of it is.
#[derive(Clone)]
pub struct Tensor {
    pub(super) file: Arc<File>,
    pub(super) info: Arc<TensorInfo>,
    pub(super) workers: Workers,
}

impl Tensor {
    /// The description of the tensor in the header.
    pub fn info(&self) -> &TensorInfo {
        &self.info
    }

    /// The name of the tensor, if the format has names.
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

    /// The number of elements, where a block counts as one.
    pub fn len(&self) -> u64 {
        shape::element_count(self.shape()).unwrap_or(u64::MAX)
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of the elements as they are read: a compressed tensor has fewer in its file.
    pub fn nbytes(&self) -> u64 {
        self.info().bytes()
    }

    /// The tensor of a field of structures: `x`, `pos.x` for a field of a field; or several, `x,y`,
    /// as a structure without padding.
    ///
    /// # Errors
    ///
    /// [`FieldFault`](crate::input::FieldFault): no structured dtype, no such field.
    pub fn field(&self, names: &str) -> Result<Tensor, Error> {
        let info = take_fields(&self.info, names).map_err(|fault| self.failed(fault))?;
        Ok(Tensor { info: Arc::new(info), ..self.clone() })
    }

    /// A tensor of the elements as another dtype of the same size, without changing a byte: NumPy's `view`. So `V2`, as which
    /// a `.npy` holds bfloat16, becomes numbers.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("a.npy");
    /// # tslice::tensor("", &[2], vec![1.5f32, 0.0])?.all().write(&path)?;
    /// let tensor = tslice::open(path)?.only()?;
    /// let bits = tensor.view(&tslice::parse_dtype("uint32")?)?;
    /// assert_eq!(bits.all().read::<u32>()?, [1.5f32.to_bits(), 0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ReadAsFault`](crate::input::ReadAsFault): a dtype of another size.
    pub fn view(&self, dtype: &DType) -> Result<Tensor, Error> {
        let mut info = self.info().clone();
        read_as(&mut info, dtype).map_err(|fault| self.failed(fault))?;
        Ok(Tensor { info: Arc::new(info), ..self.clone() })
    }

    pub(super) fn failed(&self, cause: impl Into<Cause>) -> Error {
        self.file.input.failed_tensor(&self.info, true, cause)
    }

    /// The error, about this file unless it names another one.
    pub(super) fn named(&self, error: Error) -> Error {
        match error.file {
            Some(_) => error,
            None => self.failed(error.cause),
        }
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
