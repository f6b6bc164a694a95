//! What a type that only `.npy` has means: strings, datetimes, long doubles, and the fields of a
//! structure with their places.
//!
//! ```
//! use tslice::dtype::DType;
//! use tslice::format::npy::{self, NpyKind};
//! let DType::Npy(npy) = npy::parse_dtype("<U3").unwrap() else { panic!("a scalar") };
//! assert!(matches!(NpyKind::of(&npy), Some(NpyKind::Unicode(..))));
//! ```

use super::descr;
use super::literal::{self, PyLiteral};
use crate::dtype::{DType, Endian, NpyType};
use crate::element::TimeUnit;

/// What the bytes of an element mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NpyKind {
    /// `S`: bytes, padded with zeros.
    Bytes,
    /// `U`: code points of 4 bytes, padded with zeros.
    Unicode(Endian),
    /// `V`: bytes without a meaning.
    Void,
    /// `M8`: a point in time, as an `i64` of so many units since 1970; the least one is NaT.
    Datetime(Endian, TimeUnit),
    /// `m8`: a length of time; the least one is NaT.
    Timedelta(Endian, TimeUnit),
    /// `f16`: the x87 float of 80 bits, in 16 bytes.
    LongDouble(Endian),
    /// `c32`: two of them.
    ComplexLongDouble(Endian),
    /// Fields, in their order; padding is left out.
    Structure(Vec<Field>),
}

/// A field of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name; `f0`, `f1`, ... where the header has none.
    pub name: String,
    /// Its title as a Python literal, where it has one.
    pub title: Option<String>,
    /// The type of an element of it.
    pub dtype: DType,
    /// The shape of a subarray; empty for one element.
    pub shape: Vec<u64>,
    /// Where it begins in the structure, in bytes.
    pub offset: u64,
}

impl Field {
    /// Whether that is its name, or its title.
    pub fn is_named(&self, name: &str) -> bool {
        self.name == name
            || self
                .title
                .as_ref()
                .is_some_and(|title| *title == spelled(&PyLiteral::Str(name.to_owned())))
    }

    /// Its bytes, those of all its elements.
    pub fn bytes(&self) -> u64 {
        self.shape.iter().fold(self.dtype.item_bits() / 8, |bytes, &len| bytes.saturating_mul(len))
    }
}

impl NpyKind {
    /// What the type means; `None` for a description that [`parse_dtype`](super::parse_dtype) and
    /// the header's reader do not make.
    pub fn of(npy: &NpyType) -> Option<NpyKind> {
        match literal::parse(&npy.descr, false).ok()? {
            PyLiteral::Str(text) => of_type_string(&text),
            PyLiteral::List(fields) => structure(&fields).map(NpyKind::Structure),
            _ => None,
        }
    }
}

fn of_type_string(text: &str) -> Option<NpyKind> {
    let (order, rest) = text.split_at_checked(1)?;
    let endian = if order == ">" { Endian::Big } else { Endian::Little };
    let (kind, size) = rest.split_at_checked(1)?;
    Some(match kind {
        "S" => NpyKind::Bytes,
        "U" => NpyKind::Unicode(endian),
        "V" => NpyKind::Void,
        "M" => NpyKind::Datetime(endian, time_unit(size.strip_prefix('8')?)?),
        "m" => NpyKind::Timedelta(endian, time_unit(size.strip_prefix('8')?)?),
        "f" => NpyKind::LongDouble(endian),
        "c" => NpyKind::ComplexLongDouble(endian),
        _ => return None,
    })
}

/// `[25s]`, or nothing for the generic unit.
fn time_unit(text: &str) -> Option<TimeUnit> {
    if text.is_empty() {
        return Some(TimeUnit { count: 1, name: String::new() });
    }
    let inside = text.strip_prefix('[')?.strip_suffix(']')?;
    let name = inside.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let digits = &inside[..inside.len() - name.len()];
    let count = if digits.is_empty() { 1 } else { digits.parse().ok()? };
    Some(TimeUnit { count, name: name.to_owned() })
}

fn structure(fields: &[PyLiteral]) -> Option<Vec<Field>> {
    let (mut found, mut offset) = (Vec::new(), 0u64);
    for (number, field) in fields.iter().enumerate() {
        let PyLiteral::Tuple(parts) = field else { return None };
        let (name, base, shape) = match parts.as_slice() {
            [name, base] => (name, base, Vec::new()),
            [name, base, PyLiteral::Tuple(shape)] => (name, base, lengths(shape)?),
            _ => return None,
        };
        let (title, name) = match name {
            PyLiteral::Str(name) => (None, name),
            PyLiteral::Tuple(names) => match names.as_slice() {
                [title, PyLiteral::Str(name)] => (Some(title), name),
                _ => return None,
            },
            _ => return None,
        };
        let dtype = descr::parse(base).ok()?;
        let is_void = |npy: &NpyType| npy.descr.get(2..3) == Some("V");
        let is_padding =
            name.is_empty() && title.is_none() && matches!(&dtype, DType::Npy(npy) if is_void(npy));
        let count = shape.iter().try_fold(1u64, |count, &len| count.checked_mul(len))?;
        let bytes = (dtype.item_bits() / 8).checked_mul(count)?;
        if !is_padding {
            let name = if name.is_empty() { format!("f{number}") } else { name.clone() };
            let title = title.map(spelled);
            found.push(Field { name, title, dtype, shape, offset });
        }
        offset = offset.checked_add(bytes)?;
    }
    Some(found)
}

/// A value as Python's `repr` spells it.
fn spelled(value: &PyLiteral) -> String {
    let mut text = String::new();
    literal::write(&mut text, value);
    text
}

fn lengths(shape: &[PyLiteral]) -> Option<Vec<u64>> {
    let length = |len: &PyLiteral| match len {
        PyLiteral::Int(len) => u64::try_from(*len).ok(),
        _ => None,
    };
    shape.iter().map(length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Scalar;

    fn of(descr: &str) -> NpyKind {
        NpyKind::of(&NpyType { descr: descr.into(), itemsize: 0 }).unwrap()
    }

    #[test]
    fn fields_have_the_places_that_numpy_gives_them() {
        let NpyKind::Structure(fields) = of(
            "[('x', '>i2'), ('', '|V3'), (('t', 'y'), '<f4', (2, 3)), ('', '<U1'), ('z', [('a', '|S2')])]",
        ) else {
            panic!("no structure")
        };
        let places: Vec<_> = fields
            .iter()
            .map(|field| (field.name.as_str(), field.offset, &field.shape[..]))
            .collect();
        assert_eq!(places, [("x", 0, &[][..]), ("y", 5, &[2, 3]), ("f3", 29, &[]), ("z", 33, &[])]);
        assert_eq!(fields[0].dtype, DType::Scalar(Scalar::I16, Endian::Big));
    }

    #[test]
    fn units_have_counts() {
        let unit = |count, name: &str| TimeUnit { count, name: name.into() };
        assert_eq!(of("'>M8[25s]'"), NpyKind::Datetime(Endian::Big, unit(25, "s")));
        assert_eq!(of("'<m8'"), NpyKind::Timedelta(Endian::Little, unit(1, "")));
    }
}
