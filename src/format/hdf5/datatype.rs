//! The datatypes of the format, as messages say them.

use super::error::{Hdf5Error, damaged};
use super::file::{Cursor, H5File};

/// The deepest datatype.
const MAX_NESTING: usize = 32;

/// The order of bytes.
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

/// What the bytes of an element are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// `is_whole`: all bits are the number's.
    Integer {
        is_signed: bool,
        order: ByteOrder,
        is_whole: bool,
    },
    Float(FloatLayout),
    Text,
    Opaque {
        tag: Vec<u8>,
    },
    Compound(Vec<Member>),
    /// A reference to an object, or another one.
    Reference {
        is_object: bool,
    },
    Enumeration {
        base: Box<Datatype>,
        members: Vec<(Vec<u8>, Vec<u8>)>,
    },
    /// A list of any length, or a text.
    List {
        is_text: bool,
        base: Box<Datatype>,
    },
    Array {
        base: Box<Datatype>,
        shape: Vec<u64>,
    },
    /// Two numbers.
    Complex(Box<Datatype>),
    Time,
    /// A class that is not known.
    Other(u8),
}

/// A member of a compound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) name: Vec<u8>,
    pub(super) offset: u64,
    pub(super) datatype: Datatype,
}

/// Where the parts of a float are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FloatLayout {
    pub(super) order: ByteOrder,
    pub(super) offset: u16,
    pub(super) precision: u16,
    pub(super) exponent: (u8, u8),
    pub(super) mantissa: (u8, u8),
    pub(super) bias: u32,
    /// The bit of the sign.
    pub(super) sign: u8,
    /// Whether the first bit of the mantissa is one, and not stored.
    pub(super) is_implied: bool,
}

impl Datatype {
    /// The datatype of a message.
    ///
    /// # Errors
    /// [`Hdf5Error::Damaged`].
    pub(super) fn parse(file: &H5File, message: &[u8]) -> Result<Datatype, Hdf5Error> {
        Datatype::read(&mut file.cursor(message), 0)
    }

    fn read(input: &mut Cursor<'_>, depth: usize) -> Result<Datatype, Hdf5Error> {
        if depth > MAX_NESTING {
            return Err(damaged("its datatype has over 32 levels"));
        }
        let first = input.u8()?;
        let (version, class, bits) = (first >> 4, first & 15, input.uint(3)? as u32);
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
                let (offset, precision) = (input.u16()?, u32::from(input.u16()?));
                let is_whole = offset == 0 && precision == size.saturating_mul(8);
                Class::Integer { is_signed: class == 0 && bits & 8 != 0, order, is_whole }
            }
            1 => Class::Float(FloatLayout {
                order,
                offset: input.u16()?,
                precision: input.u16()?,
                exponent: (input.u8()?, input.u8()?),
                mantissa: (input.u8()?, input.u8()?),
                bias: input.u32()?,
                sign: (bits >> 8) as u8,
                is_implied: bits >> 4 & 3 == 2,
            }),
            2 => {
                input.skip(2)?;
                Class::Time
            }
            3 => Class::Text,
            5 => Class::Opaque { tag: input.take((bits & 0xff) as usize)?.to_vec() },
            6 => Class::Compound(members(input, version, size, bits & 0xffff, depth)?),
            7 => Class::Reference { is_object: bits & 15 == 0 },
            8 => {
                let base = base(input)?;
                let count = (bits & 0xffff) as usize;
                let names =
                    (0..count).map(|_| name(input, version)).collect::<Result<Vec<_>, _>>()?;
                let values = names.into_iter().map(|name| {
                    Ok::<_, Hdf5Error>((name, input.take(base.size as usize)?.to_vec()))
                });
                let members = values.collect::<Result<_, _>>()?;
                Class::Enumeration { base, members }
            }
            9 => Class::List { is_text: bits & 15 == 1, base: base(input)? },
            10 => {
                let rank = input.u8()?;
                input.skip(if version < 3 { 3 } else { 0 })?;
                let lengths = (0..rank).map(|_| Ok(u64::from(input.u32()?)));
                let shape = lengths.collect::<Result<Vec<_>, Hdf5Error>>()?;
                input.skip(if version < 3 { 4 * usize::from(rank) } else { 0 })?;
                Class::Array { base: base(input)?, shape }
            }
            11 => Class::Complex(base(input)?),
            other => Class::Other(other),
        };
        Ok(Datatype { size, class })
    }
}

/// A name, which ends with a zero; before version 3 it has a multiple of 8 bytes with it.
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
