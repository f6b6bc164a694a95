//! The types of elements in HDF5, as h5py reads them.

use std::sync::Arc;

use hdf5_pure::{Datatype, DatatypeByteOrder, EnumMember, FloatingPointLayout};

use super::error::Hdf5Error;
use crate::dtype::{DType, Endian, Field, NpyType, Scalar, Structure};
use crate::format::npy;

/// The type of the elements of a dataset. Where they are arrays, those are more axes of the tensor.
pub(super) struct H5Type {
    pub(super) dtype: DType,
    pub(super) axes: Vec<u64>,
}

/// The deepest structure.
const MAX_NESTING: usize = 16;

impl H5Type {
    /// The counterpart of a type.
    ///
    /// # Errors
    /// [`Hdf5Error::DType`].
    pub(super) fn of(datatype: &Datatype) -> Result<H5Type, Hdf5Error> {
        let Subarray { dtype, shape, .. } = Subarray::of(datatype, 0)?;
        Ok(H5Type { dtype, axes: shape })
    }
}

/// One element, or an array of them.
struct Subarray {
    dtype: DType,
    shape: Vec<u64>,
    nesting: Vec<usize>,
}

impl Subarray {
    fn of(datatype: &Datatype, depth: usize) -> Result<Subarray, Hdf5Error> {
        if depth > MAX_NESTING {
            return Err(unknown("structures deep in structures"));
        }
        let Datatype::Array { base_type, dimensions } = datatype else {
            let dtype = dtype(datatype, depth)?;
            return Ok(Subarray { dtype, shape: Vec::new(), nesting: Vec::new() });
        };
        let inner = Subarray::of(base_type, depth + 1)?;
        let mut shape: Vec<u64> = dimensions.iter().map(|&len| len.into()).collect();
        let nesting = [vec![shape.len()], inner.nesting].concat();
        shape.extend(inner.shape);
        Ok(Subarray { dtype: inner.dtype, shape, nesting })
    }
}

fn dtype(datatype: &Datatype, depth: usize) -> Result<DType, Hdf5Error> {
    match datatype {
        Datatype::FixedPoint { size, byte_order, layout } => {
            if layout.bit_offset != 0 || u32::from(layout.bit_precision) != size.saturating_mul(8) {
                return Err(unknown("integers of a part of their bits"));
            }
            integer(*size, layout.signed, *byte_order)
        }
        Datatype::BitField { size, byte_order, .. } => integer(*size, false, *byte_order),
        Datatype::FloatingPoint { size, byte_order, layout } => {
            let endian = endian(*byte_order)?;
            float(*size, layout, endian).ok_or_else(|| unknown("floats of no known format"))
        }
        Datatype::String { size, .. } => Ok(DType::Npy(NpyType::Bytes((*size).into()))),
        Datatype::Opaque { size, tag } => Ok(opaque((*size).into(), tag)),
        Datatype::Compound { size, members } => {
            let mut fields = Vec::with_capacity(members.len());
            for member in members {
                let Subarray { dtype, shape, nesting } = Subarray::of(&member.datatype, depth + 1)?;
                let (name, offset) = (member.name.clone(), member.byte_offset);
                let is_named = true;
                fields.push(Field { name, is_named, title: None, dtype, shape, nesting, offset });
            }
            fields.sort_by_key(|field| field.offset);
            structure(fields, (*size).into())
        }
        Datatype::Enumeration { base_type, members, .. } => {
            match dtype_of_enum(base_type, depth)? {
                DType::Scalar(Scalar::I8, endian) if is_bool(members) => {
                    Ok(DType::Scalar(Scalar::Bool, endian))
                }
                base => Ok(base),
            }
        }
        Datatype::VariableLength { is_string: true, .. } => Err(unknown("strings of any length")),
        Datatype::VariableLength { .. } => Err(unknown("lists of any length")),
        Datatype::Reference { .. } => Err(unknown("references")),
        _ => Err(unknown("of another class")),
    }
}

fn dtype_of_enum(base: &Datatype, depth: usize) -> Result<DType, Hdf5Error> {
    match base {
        Datatype::FixedPoint { .. } => dtype(base, depth + 1),
        _ => Err(unknown("names of values that are no integers")),
    }
}

fn unknown(what: &str) -> Hdf5Error {
    Hdf5Error::DType(what.to_owned())
}

fn endian(order: DatatypeByteOrder) -> Result<Endian, Hdf5Error> {
    match order {
        DatatypeByteOrder::LittleEndian => Ok(Endian::Little),
        DatatypeByteOrder::BigEndian => Ok(Endian::Big),
        DatatypeByteOrder::Vax => Err(unknown("in the byte order of a VAX")),
    }
}

fn integer(size: u32, signed: bool, order: DatatypeByteOrder) -> Result<DType, Hdf5Error> {
    let scalar = match (size, signed) {
        (1, true) => Scalar::I8,
        (1, false) => Scalar::U8,
        (2, true) => Scalar::I16,
        (2, false) => Scalar::U16,
        (4, true) => Scalar::I32,
        (4, false) => Scalar::U32,
        (8, true) => Scalar::I64,
        (8, false) => Scalar::U64,
        _ => return Err(unknown("integers of another size")),
    };
    // a single byte has no order
    let endian = if size == 1 { Endian::Little } else { endian(order)? };
    Ok(DType::Scalar(scalar, endian))
}

fn float(size: u32, layout: &FloatingPointLayout, endian: Endian) -> Option<DType> {
    if (size, layout.bit_precision, layout.exponent_size, layout.mantissa_size) == (16, 80, 15, 64)
    {
        return Some(DType::Npy(NpyType::LongDouble(endian)));
    }
    let is_whole = layout.bit_offset == 0 && u32::from(layout.bit_precision) == size * 8;
    let parts = (size, layout.exponent_size, layout.mantissa_size, layout.exponent_bias);
    let scalar = match parts {
        _ if !is_whole => return None,
        (2, 5, 10, 15) => Scalar::F16,
        (2, 8, 7, 127) => Scalar::BF16,
        (4, 8, 23, 127) => Scalar::F32,
        (8, 11, 52, 1023) => Scalar::F64,
        _ => return None,
    };
    Some(DType::Scalar(scalar, endian))
}

/// Plain bytes, or what h5py says in the tag that they are (`NUMPY:<M8[s]`).
fn opaque(size: u64, tag: &[u8]) -> DType {
    let named = || {
        let tag = std::str::from_utf8(tag).ok()?.trim_end_matches('\0');
        npy::parse_dtype(tag.strip_prefix("NUMPY:")?).ok()
    };
    let named = named().filter(|dtype| dtype.item_bits() == size.saturating_mul(8));
    named.unwrap_or(DType::Npy(NpyType::Void(size, None)))
}

/// Whether the values are those of h5py's booleans.
fn is_bool(members: &[EnumMember]) -> bool {
    let value =
        |name: &str| members.iter().find(|it| it.name == name).map(|it| it.value.as_slice());
    members.len() == 2 && value("FALSE") == Some(&[0]) && value("TRUE") == Some(&[1])
}

/// Fields at their places; two floats `r` and `i` are a complex number.
fn structure(fields: Vec<Field>, itemsize: u64) -> Result<DType, Hdf5Error> {
    if let [real, imaginary] = fields.as_slice()
        && (real.name.as_str(), imaginary.name.as_str()) == ("r", "i")
        && real.dtype == imaginary.dtype
        && real.shape.is_empty()
        && imaginary.shape.is_empty()
        && real.itemsize() * 2 == itemsize
    {
        match real.dtype {
            DType::Scalar(Scalar::F32, endian) => return Ok(DType::Scalar(Scalar::C64, endian)),
            DType::Scalar(Scalar::F64, endian) => return Ok(DType::Scalar(Scalar::C128, endian)),
            DType::Npy(NpyType::LongDouble(endian)) => {
                return Ok(DType::Npy(NpyType::ComplexLongDouble(endian)));
            }
            _ => {}
        }
    }
    let mut end = 0;
    for (number, field) in fields.iter().enumerate() {
        let is_twice = fields[..number].iter().any(|other| other.name == field.name);
        if field.offset < end || is_twice || field.name.is_empty() {
            return Err(unknown("structures whose members overlap"));
        }
        end = field.offset.saturating_add(field.bytes());
    }
    if fields.is_empty() || end > itemsize {
        return Err(unknown("structures whose members do not fit"));
    }
    Ok(DType::Npy(NpyType::Structure(Arc::new(Structure { fields, itemsize }))))
}
