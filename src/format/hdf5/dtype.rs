//! The types of elements in HDF5, as h5py reads them.

use std::collections::HashSet;
use std::sync::Arc;

use super::datatype::{ByteOrder, Class, Datatype, FloatLayout, Member};
use super::error::Hdf5Error;
use crate::dtype::{DType, Endian, Field, NpyType, Scalar, Structure};
use crate::format::npy;

/// The type of the elements of a dataset. Where they are arrays, those are more axes of the tensor.
pub(super) struct H5Type {
    pub(super) dtype: DType,
    pub(super) axes: Vec<u64>,
    /// The fields that have no counterpart, each with the reason: the structure is without them.
    pub(super) left_out: Vec<(String, Hdf5Error)>,
}

impl H5Type {
    /// The counterpart of a type.
    ///
    /// # Errors
    /// [`Hdf5Error::DType`].
    pub(super) fn of(datatype: &Datatype) -> Result<H5Type, Hdf5Error> {
        let mut left_out = Vec::new();
        let Subarray { dtype, shape, .. } = Subarray::of(datatype, "", &mut left_out)?;
        Ok(H5Type { dtype, axes: shape, left_out })
    }
}

/// One element, or an array of them.
struct Subarray {
    dtype: DType,
    shape: Vec<u64>,
    nesting: Vec<usize>,
}

impl Subarray {
    fn of(
        datatype: &Datatype,
        within: &str,
        left_out: &mut Vec<(String, Hdf5Error)>,
    ) -> Result<Subarray, Hdf5Error> {
        let Class::Array { base, shape } = &datatype.class else {
            let dtype = dtype(datatype, within, left_out)?;
            return Ok(Subarray { dtype, shape: Vec::new(), nesting: Vec::new() });
        };
        let inner = Subarray::of(base, within, left_out)?;
        let mut shape = shape.clone();
        let nesting = [vec![shape.len()], inner.nesting].concat();
        shape.extend(inner.shape);
        Ok(Subarray { dtype: inner.dtype, shape, nesting })
    }
}

/// The dtype of a type that is no array; fields without a counterpart are added to `left_out`, under their
/// names after `within`.
fn dtype(
    datatype: &Datatype,
    within: &str,
    left_out: &mut Vec<(String, Hdf5Error)>,
) -> Result<DType, Hdf5Error> {
    let size = datatype.size;
    match &datatype.class {
        Class::Integer { is_whole: false, .. } => Err(unknown("integers of a part of their bits")),
        Class::Integer { is_signed, order, .. } => integer(size, *is_signed, *order),
        Class::Float(layout) => {
            let endian = endian(layout.order)?;
            float(size, layout, endian).ok_or_else(|| unknown("floats of no known format"))
        }
        Class::Text => Ok(DType::Npy(NpyType::Bytes(size.into()))),
        Class::Opaque { tag } => Ok(opaque(size.into(), tag)),
        Class::Compound(members) => structure(members, size.into(), within, left_out),
        Class::Complex(base) => {
            let part = dtype(base, within, left_out)?;
            let complex = complex(&part).filter(|_| u64::from(size) * 4 == part.item_bits());
            complex.ok_or_else(|| unknown("complex numbers of no known format"))
        }
        Class::Enumeration { base, members } => match (&base.class, dtype(base, within, left_out)?)
        {
            (Class::Integer { .. }, DType::Scalar(Scalar::I8, endian)) if is_bool(members) => {
                Ok(DType::Scalar(Scalar::Bool, endian))
            }
            (Class::Integer { .. }, base) => Ok(base),
            _ => Err(unknown("names of values that are no integers")),
        },
        Class::List { is_text: true, .. } => Err(unknown("strings of any length")),
        Class::List { .. } => Err(unknown("lists of any length")),
        Class::Reference { .. } => Err(unknown("references")),
        Class::Time => Err(unknown("times")),
        Class::Array { .. } | Class::Other(_) => Err(unknown("of another class")),
    }
}

fn unknown(what: &str) -> Hdf5Error {
    Hdf5Error::DType(what.to_owned())
}

fn endian(order: ByteOrder) -> Result<Endian, Hdf5Error> {
    match order {
        ByteOrder::Little => Ok(Endian::Little),
        ByteOrder::Big => Ok(Endian::Big),
        ByteOrder::Vax => Err(unknown("in the byte order of a VAX")),
    }
}

fn integer(size: u32, signed: bool, order: ByteOrder) -> Result<DType, Hdf5Error> {
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

fn float(size: u32, layout: &FloatLayout, endian: Endian) -> Option<DType> {
    let FloatLayout { offset: 0, precision, exponent, mantissa: (0, mantissa), .. } = *layout
    else {
        return None;
    };
    // mantissa, exponent, sign
    let is_in_order = exponent.0 == mantissa && u16::from(layout.sign) + 1 == precision;
    let parts = (size, precision, exponent.1, mantissa, layout.bias, layout.is_implied);
    let scalar = match parts {
        _ if !is_in_order => return None,
        (16, 80, 15, 64, 16383, false) => return Some(DType::Npy(NpyType::LongDouble(endian))),
        (2, 16, 5, 10, 15, true) => Scalar::F16,
        (2, 16, 8, 7, 127, true) => Scalar::BF16,
        (4, 32, 8, 23, 127, true) => Scalar::F32,
        (8, 64, 11, 52, 1023, true) => Scalar::F64,
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
fn is_bool(members: &[(Vec<u8>, Vec<u8>)]) -> bool {
    let value = |name: &[u8]| members.iter().find(|it| it.0 == name).map(|it| it.1.as_slice());
    members.len() == 2 && value(b"FALSE") == Some(&[0]) && value(b"TRUE") == Some(&[1])
}

/// Two floats as one number.
fn complex(part: &DType) -> Option<DType> {
    match *part {
        DType::Scalar(Scalar::F32, endian) => Some(DType::Scalar(Scalar::C64, endian)),
        DType::Scalar(Scalar::F64, endian) => Some(DType::Scalar(Scalar::C128, endian)),
        DType::Npy(NpyType::LongDouble(endian)) => {
            Some(DType::Npy(NpyType::ComplexLongDouble(endian)))
        }
        _ => None,
    }
}

/// Fields at their places, but for those without a counterpart; two floats `r` and `i` are a complex number.
fn structure(
    members: &[Member],
    itemsize: u64,
    within: &str,
    left_out: &mut Vec<(String, Hdf5Error)>,
) -> Result<DType, Hdf5Error> {
    let mut fields = Vec::with_capacity(members.len());
    let mut reason = None;
    for member in members {
        let name = String::from_utf8_lossy(&member.name).into_owned();
        let path = if within.is_empty() { name.clone() } else { format!("{within}.{name}") };
        let Subarray { dtype, shape, nesting } =
            match Subarray::of(&member.datatype, &path, left_out) {
                Ok(read) => read,
                Err(error) => {
                    left_out.push((path, error.clone()));
                    reason = Some(error);
                    continue;
                }
            };
        let (offset, is_named) = (member.offset, true);
        fields.push(Field { name, is_named, title: None, dtype, shape, nesting, offset });
    }
    if let (true, Some(error)) = (fields.is_empty(), reason) {
        return Err(error);
    }
    fields.sort_by_key(|field| field.offset);
    if let [real, imaginary] = fields.as_slice()
        && (real.name.as_str(), imaginary.name.as_str()) == ("r", "i")
        && real.dtype == imaginary.dtype
        && real.shape.is_empty()
        && imaginary.shape.is_empty()
        && (real.offset, imaginary.offset) == (0, real.itemsize())
        && real.itemsize() * 2 == itemsize
        && let Some(complex) = complex(&real.dtype)
    {
        return Ok(complex);
    }
    let (mut end, mut names) = (0, HashSet::new());
    for field in &fields {
        let is_twice = !names.insert(field.name.as_str());
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
