//! Conversion of stored elements to their dtype: texts with bytes after their end, numbers that use only some of their
//! bits, and floats with fewer bytes.

use super::datatype::{ByteOrder, Class, Datatype, FloatLayout, TextEnd, other_float};
use crate::dtype::Scalar;

/// A part of an element to be changed: consecutive items of `size` bytes each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Repair {
    offset: usize,
    count: usize,
    size: usize,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Text(TextEnd),
    Integer {
        order: ByteOrder,
        is_signed: bool,
        offset: u16,
        precision: u16,
    },
    Float(FloatLayout, Scalar),
    /// An integer of 8 bits that xarray marks as a boolean: all but 0 are true.
    Boolean,
    Parts(Vec<Repair>),
}

impl Repair {
    /// The change that makes booleans of the integers of 8 bits in an element of `size` bytes.
    pub(super) fn booleans(size: u32) -> Repair {
        Repair { offset: 0, count: size as usize, size: 1, kind: Kind::Boolean }
    }

    /// The changes to elements of a type.
    pub(super) fn of(datatype: &Datatype) -> Vec<Repair> {
        let size = datatype.size as usize;
        let one = |kind| vec![Repair { offset: 0, count: 1, size, kind }];
        let several = |base: &Datatype| {
            let parts = Repair::of(base);
            let size = (base.size as usize).max(1);
            let count = datatype.size as usize / size;
            let repair = Repair { offset: 0, count, size, kind: Kind::Parts(parts.clone()) };
            if parts.is_empty() { Vec::new() } else { vec![repair] }
        };
        match &datatype.class {
            // a text of one byte has no end
            Class::Text(TextEnd::Zero) if size < 2 => Vec::new(),
            Class::Text(TextEnd::Padded) => Vec::new(),
            Class::Text(end) => one(Kind::Text(*end)),
            Class::Integer { is_signed, order, offset, precision } => {
                let is_whole = *offset == 0 && usize::from(*precision) == 8 * size;
                let (is_signed, order) = (*is_signed, *order);
                let (offset, precision) = (*offset, *precision);
                let kind = Kind::Integer { order, is_signed, offset, precision };
                if is_whole || size > 8 { Vec::new() } else { one(kind) }
            }
            Class::Float(layout) => match other_float(datatype.size, layout) {
                Some(scalar) if scalar.bits() == 8 * size as u64 => {
                    one(Kind::Float(*layout, scalar))
                }
                _ => Vec::new(),
            },
            Class::Enumeration { base, .. } => Repair::of(base),
            Class::Array { base, .. } | Class::Complex(base) => several(base),
            Class::Compound(members) => {
                let parts = members.iter().flat_map(|member| {
                    let at = usize::try_from(member.offset).unwrap_or(usize::MAX);
                    let parts = Repair::of(&member.datatype).into_iter();
                    parts.map(move |it| Repair { offset: it.offset.saturating_add(at), ..it })
                });
                parts.collect()
            }
            _ => Vec::new(),
        }
    }

    /// Apply all changes to one element.
    pub(super) fn all(repairs: &[Repair], element: &mut [u8]) {
        for Repair { offset, count, size, kind } in repairs {
            let items = element.get_mut(*offset..).unwrap_or_default().chunks_exact_mut(*size);
            for item in items.take(*count) {
                match kind {
                    Kind::Text(end) => end.clear(item),
                    Kind::Integer { order, is_signed, offset, precision } => {
                        in_order(*order, item, |bits| {
                            let above = 64_u32.saturating_sub((*precision).into());
                            let bits = bits.checked_shr((*offset).into()).unwrap_or(0);
                            let bits = bits.checked_shl(above).unwrap_or(0);
                            if *is_signed {
                                (bits as i64).checked_shr(above).unwrap_or(0) as u64
                            } else {
                                bits.checked_shr(above).unwrap_or(0)
                            }
                        })
                    }
                    Kind::Float(layout, scalar) => {
                        in_order(layout.order, item, |bits| bits_as(*scalar, layout.value(bits)))
                    }
                    Kind::Boolean => item.fill(u8::from(item != [0])),
                    Kind::Parts(parts) => Repair::all(parts, item),
                }
            }
        }
    }
}

/// Floats that have fewer bytes in the file than in the dtype in which h5py reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Widening {
    /// The bytes of a float in the file.
    pub(super) stored: usize,
    layout: FloatLayout,
    to: Scalar,
}

impl Widening {
    /// The widening of elements of a type, or of arrays of it, if needed.
    pub(super) fn of(datatype: &Datatype) -> Option<Widening> {
        match &datatype.class {
            Class::Array { base, .. } => Widening::of(base),
            Class::Float(layout) => {
                let (stored, layout) = (datatype.size as usize, *layout);
                let to = other_float(datatype.size, &layout)?;
                (to.bits() > 8 * stored as u64).then_some(Widening { stored, layout, to })
            }
            _ => None,
        }
    }

    /// Widen elements; they keep their byte order.
    pub(super) fn run(&self, stored: &[u8]) -> Vec<u8> {
        let Widening { layout, to, .. } = *self;
        let len = (to.bits() / 8) as usize;
        let mut wider = Vec::with_capacity(stored.len() / self.stored * len);
        for item in stored.chunks_exact(self.stored) {
            let mut whole = [0; 8];
            let start = if layout.order == ByteOrder::Big { len - self.stored } else { 0 };
            whole[start..start + self.stored].copy_from_slice(item);
            in_order(layout.order, &mut whole[..len], |bits| bits_as(to, layout.value(bits)));
            wider.extend(&whole[..len]);
        }
        wider
    }
}

/// The bits of a value in a float type. The mantissa of NaN is all ones, as in the library.
fn bits_as(scalar: Scalar, value: f64) -> u64 {
    if value.is_nan() {
        let all = u64::MAX >> (64 - scalar.bits());
        return if value.is_sign_negative() { all } else { all >> 1 };
    }
    match scalar {
        Scalar::F16 => half::f16::from_f64(value).to_bits().into(),
        Scalar::F32 => (value as f32).to_bits().into(),
        _ => value.to_bits(),
    }
}

/// Change a number of at most 8 bytes.
fn in_order(order: ByteOrder, item: &mut [u8], change: impl FnOnce(u64) -> u64) {
    let mut whole = [0; 8];
    let len = item.len().min(8);
    whole[..len].copy_from_slice(&item[..len]);
    if order == ByteOrder::Big {
        whole[..len].reverse();
    }
    let mut whole = change(u64::from_le_bytes(whole)).to_le_bytes();
    if order == ByteOrder::Big {
        whole[..len].reverse();
    }
    item[..len].copy_from_slice(&whole[..len]);
}
