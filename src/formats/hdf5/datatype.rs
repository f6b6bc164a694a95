//! The datatypes of the format, parsed from messages, and the dtypes in which h5py reads them.

use std::collections::HashSet;
use std::sync::Arc;

use super::file::{Cursor, H5File, Hdf5Error, damaged};
use super::repair::Widening;
use crate::dtype::{DType, Endian, Field, NpyType, Scalar, Structure};
use crate::formats::npy;

const MAX_NESTING: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
    Vax,
}

/// A datatype, whose elements have `size` bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Datatype {
    pub(super) size: u32,
    pub(super) class: Class,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// An integer of `precision` bits, with `offset` bits below it.
    Integer {
        is_signed: bool,
        order: ByteOrder,
        offset: u16,
        precision: u16,
    },
    Float(FloatLayout),
    Text(TextEnd),
    Opaque {
        tag: Vec<u8>,
    },
    Compound(Vec<Member>),
    /// A reference to an object, or to a region.
    Reference {
        is_object: bool,
    },
    Enumeration {
        base: Box<Datatype>,
        members: Vec<Enumerator>,
    },
    /// A variable-length list, or a variable-length text.
    List {
        is_text: bool,
        base: Box<Datatype>,
    },
    Array {
        base: Box<Datatype>,
        shape: Vec<u64>,
    },
    Complex(Box<Datatype>),
    Time,
    Other(u8),
}

/// The end of a fixed-length text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextEnd {
    /// At the first zero.
    Zero,
    /// Before the zeros that pad it.
    Padded,
    /// Before the blanks that pad it.
    Blanks,
}

impl TextEnd {
    /// Fill the bytes after a text with zeros.
    pub(super) fn clear(self, text: &mut [u8]) {
        let end = match self {
            TextEnd::Zero => text.iter().position(|byte| *byte == 0),
            TextEnd::Padded => None,
            TextEnd::Blanks => {
                text.iter().rposition(|byte| *byte != b' ').map_or(Some(0), |last| Some(last + 1))
            }
        };
        if let Some(end) = end {
            text[end..].fill(0);
        }
    }
}

/// The name of an enumeration's value, and the bytes of the value.
pub(super) type Enumerator = (Vec<u8>, Vec<u8>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) name: Vec<u8>,
    pub(super) offset: u64,
    pub(super) datatype: Datatype,
}

/// The bit fields of a float.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FloatLayout {
    pub(super) order: ByteOrder,
    pub(super) offset: u16,
    pub(super) precision: u16,
    pub(super) exponent: (u8, u8),
    pub(super) mantissa: (u8, u8),
    pub(super) bias: u32,
    pub(super) sign: u8,
    /// Whether the leading bit of the mantissa is one, and not stored.
    pub(super) is_implied: bool,
}

impl FloatLayout {
    /// Read the layout of a float, after its byte order and `bits`.
    fn read(input: &mut Cursor<'_>, order: ByteOrder, bits: u32) -> Result<FloatLayout, Hdf5Error> {
        Ok(FloatLayout {
            order,
            offset: input.u16()?,
            precision: input.u16()?,
            exponent: (input.u8()?, input.u8()?),
            mantissa: (input.u8()?, input.u8()?),
            bias: input.u32()?,
            sign: (bits >> 8) as u8,
            is_implied: bits >> 4 & 3 == 2,
        })
    }

    pub(super) fn value(self, bits: u64) -> f64 {
        let part = |start: u8, len: u8| bits >> start.min(63) & ((1u64 << len.min(63)) - 1);
        let exponent = part(self.exponent.0, self.exponent.1);
        let mantissa = part(self.mantissa.0, self.mantissa.1);
        let is_last = exponent + 1 == 1 << self.exponent.1.min(63);
        let scale = exponent.max(1) as i32 - self.bias as i32 - i32::from(self.mantissa.1);
        let first = if exponent == 0 { 0 } else { 1u64 << self.mantissa.1.min(63) };
        let size = match (is_last, mantissa) {
            (true, 0) => f64::INFINITY,
            (true, _) => f64::NAN,
            // each factor is a normal float where the product is a float
            _ => {
                (first + mantissa) as f64
                    * f64::powi(2.0, scale / 2)
                    * f64::powi(2.0, scale - scale / 2)
            }
        };
        if part(self.sign, 1) == 1 { -size } else { size }
    }
}

impl Datatype {
    pub(super) fn parse(file: &H5File, message: &[u8]) -> Result<Datatype, Hdf5Error> {
        Datatype::read(&mut file.cursor(message), 0)
    }

    fn read(input: &mut Cursor<'_>, depth: usize) -> Result<Datatype, Hdf5Error> {
        if depth > MAX_NESTING {
            return Err(damaged("its datatype has over 32 levels"));
        }
        let first = input.u8()?;
        let version = first >> 4;
        let class = first & 15;
        let bits = input.uint(3)? as u32;
        let size = input.u32()?;
        let base = |input: &mut Cursor<'_>| Datatype::read(input, depth + 1).map(Box::new);
        let order = match (bits & 1, bits >> 6 & 1) {
            (0, _) => ByteOrder::Little,
            (_, 0) => ByteOrder::Big,
            _ => ByteOrder::Vax,
        };
        let class = match class {
            0 | 4 => {
                let order = if bits & 1 == 0 { ByteOrder::Little } else { ByteOrder::Big };
                let (offset, precision) = (input.u16()?, input.u16()?);
                let is_signed = class == 0 && bits & 8 != 0;
                Class::Integer { is_signed, order, offset, precision }
            }
            1 => Class::Float(FloatLayout::read(input, order, bits)?),
            2 => {
                input.skip(2)?;
                Class::Time
            }
            3 => Class::Text(match bits & 15 {
                0 => TextEnd::Zero,
                2 => TextEnd::Blanks,
                _ => TextEnd::Padded,
            }),
            5 => Class::Opaque { tag: input.take((bits & 0xff) as usize)?.to_vec() },
            6 => Class::Compound(members(input, version, size, bits & 0xffff, depth)?),
            7 => Class::Reference { is_object: bits & 15 == 0 },
            8 => {
                let base = base(input)?;
                let members = enumerators(input, version, bits & 0xffff, base.size)?;
                Class::Enumeration { base, members }
            }
            9 => Class::List { is_text: bits & 15 == 1, base: base(input)? },
            10 => {
                let rank = input.u8()?;
                input.skip(if version < 3 { 3 } else { 0 })?;
                let shape = input.uints(rank, 4)?;
                input.skip(if version < 3 { 4 * usize::from(rank) } else { 0 })?;
                Class::Array { base: base(input)?, shape }
            }
            11 => Class::Complex(base(input)?),
            other => Class::Other(other),
        };
        Ok(Datatype { size, class })
    }
}

/// Read a name, which ends with a zero; before version 3 it is padded to a multiple of 8 bytes.
fn name(input: &mut Cursor<'_>, version: u8) -> Result<Vec<u8>, Hdf5Error> {
    let name = input.until_zero()?;
    let is_padded = version < 3;
    input.skip(if is_padded {
        (name.len() + 1).next_multiple_of(8) - name.len() - 1
    } else {
        0
    })?;
    Ok(name.to_vec())
}

/// Read the names and values of an enumeration: all names, then all values, of `size` bytes each.
fn enumerators(
    input: &mut Cursor<'_>,
    version: u8,
    count: u32,
    size: u32,
) -> Result<Vec<Enumerator>, Hdf5Error> {
    let names = (0..count).map(|_| name(input, version)).collect::<Result<Vec<_>, _>>()?;
    names.into_iter().map(|name| Ok((name, input.take(size as usize)?.to_vec()))).collect()
}

fn members(
    input: &mut Cursor<'_>,
    version: u8,
    size: u32,
    count: u32,
    depth: usize,
) -> Result<Vec<Member>, Hdf5Error> {
    let mut members = Vec::new();
    for _ in 0..count {
        let name = name(input, version)?;
        let wide = if version < 3 { 4 } else { size.max(1).ilog2() / 8 + 1 };
        let offset = input.uint(wide as usize)?;
        let mut shape = Vec::new();
        if version == 1 {
            let rank = input.u8()?;
            input.skip(11)?;
            for axis in 0..4 {
                let len = input.u32()?;
                if axis < rank {
                    shape.push(u64::from(len));
                }
            }
        }
        let mut datatype = Datatype::read(input, depth + 1)?;
        if !shape.is_empty() {
            let count =
                shape.iter().try_fold(u64::from(datatype.size), |all, len| all.checked_mul(*len));
            let size = count.and_then(|count| u32::try_from(count).ok());
            let size = size.ok_or_else(|| damaged("a member of its datatype is too large"))?;
            datatype = Datatype { size, class: Class::Array { base: Box::new(datatype), shape } };
        }
        members.push(Member { name, offset, datatype });
    }
    Ok(members)
}

/// The element type of a dataset. Elements that are arrays give the tensor more axes.
pub(super) struct H5Type {
    pub(super) dtype: DType,
    pub(super) axes: Vec<u64>,
    /// Fields without an equivalent dtype, each with the reason. The structure omits them.
    pub(super) left_out: Vec<(String, Hdf5Error)>,
    /// The conversion of stored elements to a dtype of more bytes, if any.
    pub(super) widening: Option<Widening>,
}

impl H5Type {
    pub(super) fn of(datatype: &Datatype) -> Result<H5Type, Hdf5Error> {
        let mut left_out = Vec::new();
        let Subarray { dtype, shape, .. } = Subarray::of(datatype, "", &mut left_out)?;
        Ok(H5Type { dtype, axes: shape, left_out, widening: Widening::of(datatype) })
    }
}

/// A single element, or an array of elements.
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

/// The dtype of a type that is not an array. Fields without an equivalent are added to `left_out`, by their paths, which
/// begin with `within`.
fn dtype(
    datatype: &Datatype,
    within: &str,
    left_out: &mut Vec<(String, Hdf5Error)>,
) -> Result<DType, Hdf5Error> {
    let size = datatype.size;
    match &datatype.class {
        Class::Integer { offset, precision, .. }
            if *precision == 0
                || u32::from(*offset) + u32::from(*precision) > size.saturating_mul(8) =>
        {
            Err(unknown("integers whose bits do not fit"))
        }
        Class::Integer { is_signed, order, .. } => integer(size, *is_signed, *order),
        Class::Float(layout) => {
            let endian = endian(layout.order)?;
            let other = || other_float(size, layout).map(|it| DType::Scalar(it, endian));
            float(size, layout, endian)
                .or_else(other)
                .ok_or_else(|| unknown("floats of an unknown format"))
        }
        Class::Text(_) => Ok(DType::Npy(NpyType::Bytes(size.into()))),
        Class::Opaque { tag } => Ok(opaque(size.into(), tag)),
        Class::Compound(members) => structure(members, size.into(), within, left_out),
        Class::Complex(base) => {
            let part = dtype(base, within, left_out)?;
            let complex = complex(&part).filter(|_| u64::from(size) * 4 == part.item_bits());
            complex.ok_or_else(|| unknown("complex numbers of an unknown format"))
        }
        Class::Enumeration { base, members } => match (&base.class, dtype(base, within, left_out)?)
        {
            (Class::Integer { .. }, DType::Scalar(Scalar::I8 | Scalar::U8, endian))
                if is_bool(members) =>
            {
                Ok(DType::Scalar(Scalar::Bool, endian))
            }
            (Class::Integer { .. }, base) => Ok(base),
            _ => Err(unknown("enumerations that are not integers")),
        },
        Class::List { is_text: true, .. } => Err(unknown("strings of variable length (vlen)")),
        Class::List { .. } => Err(unknown("elements of variable length (vlen)")),
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

/// The shortest float of at least `size` bytes that has all values of a layout: h5py reads it as this type.
pub(super) fn other_float(size: u32, layout: &FloatLayout) -> Option<Scalar> {
    let FloatLayout { exponent, mantissa, bias, sign, is_implied, order, .. } = *layout;
    let ends = |(start, len): (u8, u8)| u32::from(start) + u32::from(len);
    let is_inside =
        [ends(exponent), ends(mantissa), u32::from(sign) + 1].iter().all(|end| *end <= size * 8);
    let is_known =
        is_implied && is_inside && order != ByteOrder::Vax && (2..=11).contains(&exponent.1);
    let endian = endian(order).ok()?;
    if !is_known || !(1..=8).contains(&size) || float(size, layout, endian).is_some() {
        return None;
    }
    let bias = i64::from(bias);
    let floats =
        [(Scalar::F16, 10, -14, 16), (Scalar::F32, 23, -126, 128), (Scalar::F64, 52, -1022, 1024)];
    let fits = |&(scalar, bits, least, most): &(Scalar, u8, i64, i64)| {
        scalar.bits() >= u64::from(size) * 8
            && mantissa.1 <= bits
            && (1i64 << exponent.1) - bias - 1 <= most
            && 1 - bias >= least
    };
    floats.iter().find(|it| fits(it)).map(|(scalar, ..)| *scalar)
}

/// Plain bytes, or the type in h5py's tag (`NUMPY:<M8[s]`).
fn opaque(size: u64, tag: &[u8]) -> DType {
    let named = || {
        let tag = std::str::from_utf8(tag).ok()?.trim_end_matches('\0');
        npy::parse_dtype(tag.strip_prefix("NUMPY:")?).ok()
    };
    let named = named().filter(|dtype| dtype.item_bits() == size.saturating_mul(8));
    named.unwrap_or(DType::Npy(NpyType::Void(size, None)))
}

/// Whether an enumeration is a boolean, as h5py and R write it.
fn is_bool(members: &[Enumerator]) -> bool {
    let value = |name: &[u8]| members.iter().find(|it| it.0 == name).map(|it| it.1.as_slice());
    members.len() == 2 && value(b"FALSE") == Some(&[0]) && value(b"TRUE") == Some(&[1])
}

/// The complex type with two parts of this type.
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

/// The complex type of a structure, if its only fields are two floats `r` and `i`.
fn complex_of_fields(fields: &[Field], itemsize: u64) -> Option<DType> {
    let [real, imaginary] = fields else { return None };
    let is_complex = (real.name.as_str(), imaginary.name.as_str()) == ("r", "i")
        && real.dtype == imaginary.dtype
        && real.shape.is_empty()
        && imaginary.shape.is_empty()
        && (real.offset, imaginary.offset) == (0, real.itemsize())
        && real.itemsize() * 2 == itemsize;
    if is_complex { complex(&real.dtype) } else { None }
}

/// A structure with the fields at their offsets, without fields that have no equivalent. Two floats `r` and `i` are
/// a complex number.
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
                Ok(read) if Widening::of(&member.datatype).is_none() => read,
                other => {
                    // a field has no room for wider elements
                    let error =
                        other.err().unwrap_or_else(|| unknown("floats of an unknown format"));
                    left_out.push((path, error.clone()));
                    reason = Some(error);
                    continue;
                }
            };
        let offset = member.offset;
        let is_named = true;
        fields.push(Field { name, is_named, title: None, dtype, shape, nesting, offset });
    }
    if let (true, Some(error)) = (fields.is_empty(), reason) {
        return Err(error);
    }
    fields.sort_by_key(|field| field.offset);
    if let Some(complex) = complex_of_fields(&fields, itemsize) {
        return Ok(complex);
    }
    let mut end = 0;
    let mut names = HashSet::new();
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
