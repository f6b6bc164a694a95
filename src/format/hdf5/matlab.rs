//! Arrays of MATLAB 7.3, whose attributes say what their elements are.

use super::attributes::Own;
use super::error::{Hdf5Error, damaged};
use crate::dtype::{DType, Endian, Scalar};
use crate::format::TensorInfo;
use crate::shape::Order;

/// Make of a tensor what its attributes say; notes tell what was made. `stored` are the elements of an empty array:
/// its shape.
///
/// # Errors
/// [`Hdf5Error::NoFields`], [`Hdf5Error::Damaged`]: an empty array whose shape cannot be read.
pub(super) fn apply(
    tensor: &mut TensorInfo,
    own: &Own,
    stored: &[u8],
    notes: &mut Vec<String>,
) -> Result<(), Hdf5Error> {
    let Some(class) = own.matlab_class.as_deref() else { return Ok(()) };
    let dtype = match class {
        "logical" => Some(Scalar::Bool),
        "char" => Some(Scalar::U16),
        "double" => Some(Scalar::F64),
        "single" => Some(Scalar::F32),
        "int8" => Some(Scalar::I8),
        "uint8" => Some(Scalar::U8),
        "int16" => Some(Scalar::I16),
        "uint16" => Some(Scalar::U16),
        "int32" => Some(Scalar::I32),
        "uint32" => Some(Scalar::U32),
        "int64" => Some(Scalar::I64),
        "uint64" => Some(Scalar::U64),
        _ => None,
    };
    if own.matlab_empty {
        let lengths = stored.chunks_exact((tensor.dtype.item_bits() as usize / 8).max(1));
        let lengths =
            lengths.map(|len| len.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)));
        let shape: Vec<u64> = lengths.collect();
        if !shape.contains(&0) && class == "struct" {
            return Err(Hdf5Error::NoFields);
        }
        if !shape.contains(&0) {
            return Err(damaged("it is an empty MATLAB array of no shape"));
        }
        let dtype =
            dtype.map_or(tensor.dtype.clone(), |dtype| DType::Scalar(dtype, Endian::Little));
        let name = tensor.name.take();
        *tensor = TensorInfo { name, ..TensorInfo::new(dtype, shape, Order::C, 0) };
        notes.push(format!("empty MATLAB array of class {class}: what is stored is its shape"));
        return Ok(());
    }
    match (class, &tensor.dtype) {
        ("logical", DType::Scalar(Scalar::U8 | Scalar::I8, _)) => {
            tensor.dtype = DType::Scalar(Scalar::Bool, Endian::Little);
            notes.push("MATLAB logical: stored as uint8, read as bool".to_owned());
        }
        ("char", DType::Scalar(Scalar::U8 | Scalar::U16 | Scalar::U32, _)) => {
            notes.push("MATLAB char: the code units of a text".to_owned());
        }
        _ => {}
    }
    Ok(())
}
