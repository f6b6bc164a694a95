//! Tensors of a file as lazy handles: opened once, and only then sliced, gathered from or changed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::dtype::DType;
use crate::error::Error;
use crate::format::{self, Format};
use crate::input::{Input, Location, OpenOptions, open as open_input, take_fields};
use crate::region::IndexTensor;
use crate::source::Source;

/// An opened file, from which tensors are taken. Only its header has been read.
#[derive(Clone)]
pub struct TensorFile {
    file: Arc<File>,
}

/// What all handles of a file share.
pub(super) struct File {
    pub(super) input: Input,
    pub(super) source: Arc<dyn Source>,
    /// How it was opened.
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
        Ok(TensorFile { file: Arc::new(File { input, source, options }) })
    }

    /// The format of the file.
    pub fn format(&self) -> Format {
        self.file.input.contents.format
    }

    /// The `__metadata__` of a `.safetensors`; empty for other formats.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.file.input.contents.metadata
    }

    /// All tensors, in the order of the file.
    pub fn tensors(&self) -> impl Iterator<Item = Tensor> + '_ {
        (0..self.file.input.contents.tensors.len()).map(|number| self.handle(number))
    }

    /// The tensor of that name, or the one whose name matches that glob.
    ///
    /// # Errors
    /// [`SelectFault`](crate::input::SelectFault): no such tensor, or several.
    pub fn tensor(&self, name: &str) -> Result<Tensor, Error> {
        self.one(&[name.to_owned()])
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
        Tensor { file: Arc::clone(&self.file), info }
    }
}

/// A tensor of an opened file. Nothing of it is read before a [`Slice`](crate::Slice) of it is.
#[derive(Clone)]
pub struct Tensor {
    pub(super) file: Arc<File>,
    pub(super) info: Arc<format::TensorInfo>,
}

impl Tensor {
    /// What the header says of it.
    pub fn info(&self) -> &format::TensorInfo {
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
    pub fn field(&self, names: &str) -> Result<Tensor, Error> {
        let file = Arc::clone(&self.file);
        let info = take_fields(&self.info, names);
        let info = info.map_err(|fault| file.input.failed_tensor(&self.info, true, fault))?;
        Ok(Tensor { file, info: Arc::new(info) })
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
