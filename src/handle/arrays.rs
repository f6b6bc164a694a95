//! Arrays of the package `ndarray`: slices read into new ones, and tensors made of views.

use ndarray::{ArrayBase, ArrayD, Data, Dimension, IxDyn};

use super::read::Element;
use crate::error::{Error, FileName};
use crate::handle::file::Tensor;
use crate::handle::held::tensor;
use crate::handle::read::ReadFault;
use crate::handle::slice::Slice;

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
    ///
    /// # Errors
    /// As [`read`](Slice::read).
    pub fn read_array<T: Element>(&self) -> Result<ArrayD<T>, Error> {
        let too_large = || Error::file(FileName::Memory, ReadFault::TooLarge);
        let axes = self.shape().iter().map(|&len| usize::try_from(len));
        let shape: Vec<usize> = axes.collect::<Result<_, _>>().map_err(|_| too_large())?;
        ArrayD::from_shape_vec(IxDyn(&shape), self.read()?).map_err(|_| too_large())
    }
}

/// A tensor with the elements of an array or a view of any memory order, which are copied:
/// as [`tensor`](crate::tensor).
///
/// # Errors
/// None that an array of a program reaches.
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
    use ndarray::{Array, array, s};

    #[test]
    fn arrays_of_any_order_are_tensors_and_come_back() {
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
