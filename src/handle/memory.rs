//! Tensors whose elements are in memory; arrays of the package `ndarray`.

use std::marker::PhantomData;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

#[cfg(feature = "ndarray")]
use ndarray::{ArrayBase, ArrayD, Data, Dimension, IxDyn};

#[cfg(feature = "ndarray")]
use super::read::ReadFault;
use super::read::{Element, NATIVE};
#[cfg(feature = "ndarray")]
use super::slice::Slice;
use crate::dtype::DType;
use crate::error::{Error, Fault, FileName};
use crate::execute::Workers;
use crate::formats::raw;
use crate::handle::file::{File, Tensor};
use crate::input::{Contents, Input, Location, OpenOptions};
use crate::output::WriteOptions;
use crate::shape;
use crate::shape::Order;
use crate::source::{MemorySource, Source, SourceError, checked_len};
use crate::tensor::{TensorInfo, Tensors};

/// A tensor of elements in memory, in C order: to be joined, merged or assigned beside tensors of files. The
/// name is the one that it has in files of several tensors.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = |name: &str| folder.path().join(name);
/// let weight = tslice::tensor("weight", &[2, 2], vec![1f32, 2.0, 3.0, 4.0])?;
/// let steps = tslice::tensor("steps", &[], vec![7i64])?;
/// let both = [weight.all(), steps.all()];
/// tslice::write_merged(path("model.safetensors"), &both, &Default::default())?;
///
/// let target = tslice::open(path("model.safetensors"))?.tensor("weight")?;
/// let value = tslice::tensor("", &[2], vec![8f32, 9.0])?;
/// target.edit((.., 0))?.assign(&value.all())?.in_place()?;
/// assert_eq!(target.all().read::<f32>()?, [8.0, 2.0, 9.0, 4.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`HeldFault`]: another number of elements than the shape has.
pub fn tensor<T: Element + Sync>(
    name: &str,
    shape: &[u64],
    elements: Vec<T>,
) -> Result<Tensor, Error> {
    let info = described::<T>(name, shape, elements.len())?;
    let source = Arc::new(HeldElements(elements, PhantomData));
    Ok(Tensor::held(&Location::Memory, info, source, Workers::default()))
}

/// Write elements in memory, in C order, to a new file, whose name tells the format: NumPy's `save`. They are not
/// copied.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("a.npy");
/// tslice::save(&path, &[2, 2], &[1f32, 2.0, 3.0, 4.0], &Default::default())?;
/// assert_eq!(tslice::open(&path)?.only()?.slice(1)?.read::<f32>()?, [3.0, 4.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`HeldFault`]: another number of elements than the shape has; those of [`Slice::write_with`].
pub fn save<T: Element + Sync>(
    path: impl AsRef<Path>,
    shape: &[u64],
    elements: &[T],
    options: &WriteOptions,
) -> Result<(), Error> {
    let info = described::<T>("", shape, elements.len())?;
    let workers = options.workers.clone();
    // the elements, which live shorter, are given to the job alone
    let nothing = Arc::new(MemorySource::default());
    let tensor = Tensor::held(&Location::Memory, info, nothing, workers);
    tensor.all().write_of(&HeldElements(elements, PhantomData), path.as_ref(), options)
}

fn described<T: Element>(name: &str, shape: &[u64], given: usize) -> Result<TensorInfo, Error> {
    let given = given as u64;
    if shape::element_count(shape) != Some(given) {
        let fault = HeldFault { given, shape: shape.to_vec() };
        return Err(Error::file(FileName::Memory, fault));
    }
    let dtype = DType::Scalar(T::SCALAR, NATIVE);
    let name = Some(name.to_owned()).filter(|name| !name.is_empty());
    Ok(TensorInfo { name, ..TensorInfo::new(dtype, shape.to_vec(), Order::C, 0) })
}

impl Tensor {
    /// A tensor whose bytes are the whole source; `location` is named in errors.
    pub(super) fn held(
        location: &Location,
        info: TensorInfo,
        source: Arc<dyn Source>,
        workers: Workers,
    ) -> Tensor {
        let mut tensors = Tensors::default();
        tensors.push(&info);
        let contents = Contents::of(&raw::FORMAT, tensors);
        let input = Input::of_source(location, Arc::clone(&source), contents);
        let file = Arc::new(File { input, source, options: OpenOptions::default() });
        Tensor { file, info: Arc::new(info), workers }
    }
}

/// Elements that are owned or borrowed.
struct HeldElements<T, V>(V, PhantomData<T>);

impl<T: Element + Sync, V: AsRef<[T]> + Send + Sync> Source for HeldElements<T, V> {
    fn len(&self) -> u64 {
        T::bytes(self.0.as_ref()).len() as u64
    }

    fn window<'a>(
        &'a self,
        range: Range<u64>,
        _scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], SourceError> {
        let count = checked_len(&range, self.len())?;
        let start = range.start as usize;
        Ok(&T::bytes(self.0.as_ref())[start..start + count])
    }
}

/// Elements in memory whose number does not fit the shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{given} elements do not fit shape {}", shape::AsTuple(shape))]
pub struct HeldFault {
    /// The number of elements.
    pub given: u64,
    /// The shape, in elements.
    pub shape: Vec<u64>,
}

impl Fault for HeldFault {}

#[cfg(feature = "ndarray")]
impl Slice {
    /// Read the elements into a new array of the shape of the slice, in C order.
    ///
    /// ```
    /// use ndarray::{array, Ix2};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = |name: &str| folder.path().join(name);
    /// let table = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
    /// tslice::tensor_of("table", &table.t())?.all().write(path("table.npy"))?;
    ///
    /// let columns = tslice::open(path("table.npy"))?.only()?.slice("[::-1]")?;
    /// let columns = columns.read_array::<f64>()?.into_dimensionality::<Ix2>()?;
    /// assert_eq!(columns, array![[3.0, 6.0], [2.0, 5.0], [1.0, 4.0]]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_array<T: Element>(&self) -> Result<ArrayD<T>, Error> {
        let too_large = || Error::file(FileName::Memory, ReadFault::TooLarge);
        let axes = self.shape().iter().map(|&len| usize::try_from(len));
        let shape: Vec<usize> = axes.collect::<Result<_, _>>().map_err(|_| too_large())?;
        ArrayD::from_shape_vec(IxDyn(&shape), self.read()?).map_err(|_| too_large())
    }
}

/// A tensor with the elements of an array or a view of any memory order, which are copied:
/// as [`tensor`](crate::tensor).
#[cfg(feature = "ndarray")]
pub fn tensor_of<T, S, D>(name: &str, array: &ArrayBase<S, D>) -> Result<Tensor, Error>
where
    T: Element + Sync,
    S: Data<Elem = T>,
    D: Dimension,
{
    let shape: Vec<u64> = array.shape().iter().map(|&len| len as u64).collect();
    tensor(name, &shape, array.iter().copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_in_memory_is_sliced_joined_and_written_as_any_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.npy");
        let tensor = tensor("a", &[2, 3], vec![1i16, 2, 3, 4, 5, 6]).unwrap();
        let last = tensor.slice((.., -1)).unwrap();
        assert_eq!(last.read::<i16>().unwrap(), [3, 6]);
        assert_eq!(tensor.take([1, 1], 0).unwrap().read::<i16>().unwrap(), [4, 5, 6, 4, 5, 6]);
        let slices = [tensor.all(), tensor.slice("[::-1]").unwrap()];
        crate::handle::write_concatenated(&path, &slices, 1, &WriteOptions::default()).unwrap();
        let both = crate::handle::open_file(&path).unwrap().only().unwrap();
        let expected = [1, 2, 3, 4, 5, 6, 4, 5, 6, 1, 2, 3];
        assert_eq!(both.all().read::<i16>().unwrap(), expected);
        assert_eq!(tensor.all().read_chunks::<i16>(0, 1).unwrap().count(), 2);
    }

    #[test]
    fn what_is_no_tensor_is_told() {
        let error = tensor("a", &[2, 2], vec![1u8; 3]).map(drop).unwrap_err();
        assert_eq!(error.to_string(), "a tensor in memory: 3 elements do not fit shape (2, 2)");
        assert!(tensor("a", &[u64::MAX, 2], vec![1u8; 3]).is_err());
        // a tensor in memory cannot be changed, and is not a file
        let held = tensor("a", &[1], vec![1u8]).unwrap();
        assert!(held.edit(0).unwrap().fill(0).unwrap().in_place().is_err());
        let bools = tensor("", &[2], vec![true, false]).unwrap();
        assert_eq!(bools.all().read::<bool>().unwrap(), [true, false]);
    }

    #[cfg(feature = "ndarray")]
    #[test]
    fn arrays_of_any_order_are_tensors_and_come_back() {
        use ndarray::{Array, array, s};

        let cube = Array::from_iter(0..24i32).into_shape_with_order((2, 3, 4)).unwrap();
        let view = cube.slice(s![.., ..;-2, 1..]);
        let tensor = tensor_of("cube", &view.permuted_axes([2, 0, 1])).unwrap();
        assert_eq!(tensor.shape(), [3, 2, 2]);
        let back = tensor.all().read_array::<i32>().unwrap();
        let expected = cube.slice(s![.., ..;-2, 1..]).permuted_axes([2, 0, 1]).into_dyn();
        assert_eq!(back, expected);
        let number = tensor_of("n", &ndarray::arr0(7u8)).unwrap();
        assert_eq!(number.all().read_array::<u8>().unwrap(), ndarray::arr0(7u8).into_dyn());
        let none = tensor_of("none", &Array::<f32, _>::zeros((0, 3))).unwrap();
        assert_eq!(none.all().read_array::<f32>().unwrap().shape(), [0, 3]);
        let rows = tensor_of("rows", &array![[1, 2], [3, 4]]).unwrap();
        assert!(rows.all().read_array::<u8>().is_err());
    }
}
