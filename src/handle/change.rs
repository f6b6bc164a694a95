//! Changes of files: values assigned to a tensor, in place or in a copy.

use std::path::Path;

use crate::cast::Cast;
use crate::element;
use crate::error::Error;
use crate::execute::{Progress, Workers};
use crate::gather::OutOfRange;
use crate::handle::file::Tensor;
use crate::handle::index::IntoIndex;
use crate::handle::slice::Slice;
use crate::index::IndexExpr;
use crate::index::resolve::Rules;
use crate::job::{Casts, EditFault, Editing, Job, Operand, Original, ScatterOptions};
use crate::output::WriteOptions;
use crate::region::{IndexTensor, Lists, OpenIndex};
use crate::sink::Destination;

/// The part of a tensor that an index selects, to be changed.
pub struct Editable {
    pub(super) tensor: Tensor,
    pub(super) index: IndexExpr,
    lists: Lists,
}

/// Values and their positions in a file. Nothing has been written.
pub struct Change {
    pub(super) tensor: Tensor,
    elements: ChangedElements,
    values: IndexTensor,
}

enum ChangedElements {
    Selected(IndexExpr, Lists),
    Positions(IndexTensor),
}

impl Tensor {
    /// Select the part of the tensor to change, by NumPy's indexing.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = |name: &str| folder.path().join(name);
    /// # tslice::tensor("", &[2, 2], vec![1u8, 2, 3, 4])?.all().write(path("a.npy"))?;
    /// let target = tslice::open(path("a.npy"))?.only()?;
    /// let value = target.slice("[1]")?;
    /// target.edit("[0]")?.assign(&value)?.write(path("changed.npy"))?;
    /// assert_eq!(tslice::open(path("changed.npy"))?.only()?.all().read::<u8>()?, [3, 4, 3, 4]);
    ///
    /// target.edit("[..., -1]")?.fill(0)?.in_place()?;
    /// assert_eq!(target.all().read::<u8>()?, [1, 0, 3, 0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`slice`](Tensor::slice), but for a text that does not fit the shape: that is an error of
    /// writing.
    pub fn edit(&self, index: impl IntoIndex) -> Result<Editable, Error> {
        let index = index.into_index().map_err(|error| self.named(error))?;
        let lists = Lists::open(&index)?;
        Ok(Editable { tensor: self.clone(), index, lists })
    }

    /// TensorFlow's `tensor_scatter_nd_update`: slabs of `values` at the tuples on the last axis of
    /// `indices`. Of several for one position the last one stands.
    ///
    /// ```no_run
    /// use tslice::IndexTensor;
    ///
    /// let embed = tslice::open("embed.npy")?.only()?;
    /// let rows = tslice::open("rows.npy")?.only()?.all();
    /// embed.scatter(IndexTensor::new(&[3, 0], vec![2, 1]), &rows)?.in_place()?;
    /// # Ok::<(), tslice::Error>(())
    /// ```
    ///
    /// # Errors
    /// Indices or values that cannot be read. What does not fit is an error of writing.
    pub fn scatter(
        &self,
        indices: impl Into<IndexTensor>,
        values: &Slice,
    ) -> Result<Change, Error> {
        let elements = ChangedElements::Positions(indices.into().spooled(&Workers::default())?);
        Ok(Change { tensor: self.clone(), elements, values: (&values.spooled()?).into() })
    }
}

impl Editable {
    /// NumPy's `tensor[index] = value`: the value is broadcast, and cast within its kind. It is
    /// copied to scratch now.
    ///
    /// # Errors
    ///
    /// A value that cannot be read. A value of another kind, or of a shape that does not fit, is an
    /// error of writing.
    pub fn assign(self, value: &Slice) -> Result<Change, Error> {
        let target = self.tensor.dtype();
        let value = match Cast::new(value.dtype(), target, Default::default()) {
            Ok(_) if value.dtype() != target => {
                value.cast(target, Default::default())?.spooled()?
            }
            _ => value.spooled()?,
        };
        Ok(self.of_values((&value).into()))
    }

    /// Assign one number everywhere: `0`, `1.5`, `true`, `"nan"`, `"1+2j"`.
    ///
    /// # Errors
    ///
    /// [`ElementError`](crate::element::ElementError): not a number of the tensor's dtype.
    pub fn fill(self, number: impl ToString) -> Result<Change, Error> {
        let element = element::parse(&number.to_string(), self.tensor.dtype());
        let element = element.map_err(|error| self.tensor.failed(error))?;
        let values = IndexTensor::element(element, self.tensor.dtype());
        Ok(self.of_values(values))
    }

    fn of_values(self, values: IndexTensor) -> Change {
        let Editable { tensor, index, lists } = self;
        Change { tensor, elements: ChangedElements::Selected(index, lists), values }
    }
}

impl Change {
    /// Write a changed copy of the file, in the format of the file. It appears when it is complete.
    ///
    /// # Errors
    ///
    /// [`EditFault`], an index or indices that do not fit, a file that exists or cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.write_with(path, &WriteOptions::default())
    }

    /// Write a changed copy with options: `force`, `fsync` and the threads count.
    pub fn write_with(&self, path: impl AsRef<Path>, options: &WriteOptions) -> Result<(), Error> {
        let copy = Destination::Path(path.as_ref().to_owned());
        self.make(Some(copy), options).map_err(|error| self.tensor.named(error))
    }

    /// Change the file itself: only the selected bytes are touched. All checks come first; a run
    /// that was killed is completed by running it again.
    pub fn in_place(&self) -> Result<(), Error> {
        self.make(None, &WriteOptions::default()).map_err(|error| self.tensor.named(error))
    }

    fn make(&self, copy: Option<Destination>, options: &WriteOptions) -> Result<(), Error> {
        let Change { tensor: Tensor { file, info, .. }, elements, values } = self;
        let location = file.input.location();
        let Some(path) = location.path() else {
            return Err(Error::file(location, EditFault::NotAFile));
        };
        let original = Original::open(path, &file.options, copy, options.clone())?;
        let name: Vec<String> = info.name.iter().cloned().collect();
        let tensor = original.input().tensor(&name)?;
        if tensor != **info {
            return Err(Error::file(location, EditFault::OtherTensor));
        }
        let values = Operand::from(values.clone());
        let mut job = Editing::of(original, tensor)?;
        match elements {
            ChangedElements::Selected(expr, lists) => {
                let index = OpenIndex { expr, rules: Rules::default(), lists };
                let slice = job.slice(0, index)?;
                job.assign(slice, values, &Casts::default(), true)?;
            }
            ChangedElements::Positions(indices) => {
                let axis = None;
                let out_of_range = OutOfRange::Error;
                let options = ScatterOptions { axis, out_of_range, casts: Casts::default() };
                job.scatter(0, indices.clone().into(), values, &options)?;
            }
        }
        let progress = Progress::watched(&options.watcher);
        job.look(&progress)?;
        job.check()?;
        job.write(&progress)
    }
}
