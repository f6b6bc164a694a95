//! The `descr` entry of a `.npy` header: from Python literal to [`DType`] and back.
//!
//! Number types become scalars; every other fixed-size type keeps its literal, in the form that
//! np.save would write after np.load: padding merged, sizes plain, names as `repr` spells them.
//! The rules are those of `numpy.lib.format.descr_to_dtype` and `dtype_to_descr`.
//!
//! ```text
//! 'f4'  =>  float32        [('x', '>i2'), ('', '|V2'), ('t', 'M8[1s]', 3)]
//!                      =>  [('x', '>i2'), ('', '|V2'), ('t', '<M8[s]', (3,))]
//! ```

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write;

use super::comma;
use super::error::{DescrError, MAX_ITEMSIZE};
use super::literal::{self, PyLiteral, write_str};
use crate::dtype::{DType, Endian, NpyType, Scalar};
use crate::format::brief::brief;
use crate::shape::{AsTuple, MAX_NDIM, byte_count};

/// The type that a `descr` stands for.
pub(super) fn parse(descr: &PyLiteral) -> Result<DType, DescrError> {
    match descr {
        PyLiteral::Str(text) if comma::is_comma_string(text) => match comma::expand(text)? {
            // what is left is no comma string again
            PyLiteral::Str(text) => parse_type_string(&text),
            fields => parse(&fields),
        },
        // an array has no subarrays for elements, but for those that are one element
        PyLiteral::Tuple(parts) => match parts.as_slice() {
            [base, shape] if subarray_shape(shape)?.iter().all(|&len| len == 1) => parse(base),
            _ => Err(DescrError::Structure("neither a type string nor a list of fields")),
        },
        PyLiteral::Str(text) => parse_type_string(text),
        PyLiteral::List(_) => {
            let mut spelled = String::new();
            let FieldItem { size, .. } = spell(descr, &mut spelled)?;
            Ok(DType::Npy(NpyType { descr: spelled, itemsize: size }))
        }
        _ => Err(DescrError::Structure("neither a type string nor a list of fields")),
    }
}

/// The literal of a type that `.npy` has; `None` for the floats that NumPy lacks.
pub(super) fn literal(dtype: &DType) -> Option<String> {
    match dtype {
        DType::Scalar(scalar, endian) => {
            let order = match endian {
                _ if scalar.bits() == 8 => '|',
                Endian::Little => '<',
                Endian::Big => '>',
            };
            scalar.type_string().map(|kind| format!("'{order}{kind}'"))
        }
        DType::Npy(npy) => Some(npy.descr.clone()),
    }
}

/// The type of a type string of NumPy's array interface: `<f4`, `=i8`, `?`, `U5`, `>M8[25s]`; or of
/// a type's name: `float64`, `double`, `datetime64[s]`.
pub(super) fn parse_type_string(text: &str) -> Result<DType, DescrError> {
    let unknown = || DescrError::Unknown(format!("'{}'", brief(text)));
    let (endian, order, bare) = match text.split_at_checked(1) {
        Some((">", bare)) => (Endian::Big, '>', bare),
        Some(("<" | "=" | "|", bare)) => (Endian::Little, '<', bare),
        _ => (Endian::Little, '<', text),
    };
    let bare = if bare.len() == text.len() { expand_type_name(bare) } else { bare.into() };
    let bare = expand_type_code(&bare);
    if let Some(scalar) = Scalar::ALL.into_iter().find(|s| s.type_string() == Some(bare)) {
        return Ok(DType::Scalar(scalar, if scalar.bits() == 8 { Endian::Little } else { endian }));
    }
    let (kind, size) = match bare.split_at_checked(1).ok_or_else(unknown)? {
        ("a", size) if !size.is_empty() => ("S", size), // NumPy's old letter for byte strings
        other => other,
    };
    let (spelled, itemsize) = match kind {
        "O" => return Err(DescrError::Object(format!("'{}'", brief(text)))),
        "S" | "U" | "V" => {
            let count = match size {
                "" => 0,
                _ => decimal(size).ok_or_else(unknown)?,
            };
            let itemsize = if kind == "U" { count.saturating_mul(4) } else { count };
            if itemsize > MAX_ITEMSIZE {
                return Err(DescrError::TooLarge);
            }
            // `<V2` is how files of bfloat16 are told from other items of two bytes: it stays.
            let order = match kind {
                "U" => order,
                "V" if text.starts_with(['<', '>']) => order,
                _ => '|',
            };
            (format!("{order}{kind}{count}"), itemsize)
        }
        "M" | "m" => {
            let unit = size.strip_prefix('8').and_then(parse_unit).ok_or_else(unknown)?;
            (format!("{order}{kind}8{unit}"), 8)
        }
        "f" if size == "16" => (format!("{order}f16"), 16),
        "c" if size == "32" => (format!("{order}c32"), 32),
        _ => return Err(unknown()),
    };
    Ok(DType::Npy(NpyType { descr: format!("'{spelled}'"), itemsize }))
}

/// NumPy's names of types, on a platform where a C long has 8 bytes, with their type strings.
pub(in crate::format) const NAMES: [(&str, &str); 52] = [
    ("bool", "b1"),
    ("int8", "i1"),
    ("int16", "i2"),
    ("int32", "i4"),
    ("int64", "i8"),
    ("uint8", "u1"),
    ("uint16", "u2"),
    ("uint32", "u4"),
    ("uint64", "u8"),
    ("float16", "f2"),
    ("float32", "f4"),
    ("float64", "f8"),
    ("float128", "f16"),
    ("complex64", "c8"),
    ("complex128", "c16"),
    ("complex256", "c32"),
    ("bool_", "b1"),
    ("byte", "i1"),
    ("short", "i2"),
    ("intc", "i4"),
    ("int", "i8"),
    ("int_", "i8"),
    ("long", "i8"),
    ("longlong", "i8"),
    ("intp", "i8"),
    ("ubyte", "u1"),
    ("ushort", "u2"),
    ("uintc", "u4"),
    ("uint", "u8"),
    ("ulong", "u8"),
    ("ulonglong", "u8"),
    ("uintp", "u8"),
    ("half", "f2"),
    ("single", "f4"),
    ("float", "f8"),
    ("double", "f8"),
    ("longdouble", "f16"),
    ("csingle", "c8"),
    ("complex", "c16"),
    ("cdouble", "c16"),
    ("clongdouble", "c32"),
    ("str", "U"),
    ("str_", "U"),
    ("unicode", "U"),
    ("bytes", "S"),
    ("bytes_", "S"),
    ("a", "S"),
    ("void", "V"),
    ("datetime64", "M8"),
    ("timedelta64", "m8"),
    ("object", "O"),
    ("object_", "O"),
];

/// A name as a type string without a byte order; other text as it is.
fn expand_type_name(name: &str) -> Cow<'_, str> {
    let (name, unit) = name.split_at(name.find('[').unwrap_or(name.len()));
    match NAMES.iter().find(|(known, _)| *known == name) {
        Some((_, code)) if unit.is_empty() => (*code).into(),
        Some((_, code @ ("M8" | "m8"))) => format!("{code}{unit}").into(),
        _ => format!("{name}{unit}").into(),
    }
}

/// NumPy's one-letter codes, on a platform where a C long has 8 bytes.
fn expand_type_code(code: &str) -> &str {
    match code {
        "?" => "b1",
        "b" => "i1",
        "h" => "i2",
        "i" => "i4",
        "l" | "q" | "p" | "n" => "i8",
        "B" => "u1",
        "H" => "u2",
        "I" => "u4",
        "L" | "Q" | "P" | "N" => "u8",
        "e" => "f2",
        "f" => "f4",
        "d" => "f8",
        "g" => "f16",
        "F" => "c8",
        "D" => "c16",
        "G" => "c32",
        "c" => "S1",
        "M" => "M8",
        "m" => "m8",
        _ => code,
    }
}

fn decimal(digits: &str) -> Option<u64> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// The unit of a datetime, `[25s]`, in plain form: without a factor of 1, and nothing for none.
fn parse_unit(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some(String::new());
    }
    let inside = text.strip_prefix('[')?.strip_suffix(']')?;
    let digits = inside.bytes().take_while(u8::is_ascii_digit).count();
    let (factor, unit) = inside.split_at(digits);
    let factor = if factor.is_empty() { 1 } else { factor.parse::<i32>().ok()? };
    match (factor, unit) {
        (_, "generic") => Some(String::new()),
        (1, "Y" | "M" | "W" | "D" | "h" | "m" | "s" | "ms" | "us" | "ns" | "ps" | "fs" | "as") => {
            Some(format!("[{unit}]"))
        }
        (_, "Y" | "M" | "W" | "D" | "h" | "m" | "s" | "ms" | "us" | "ns" | "ps" | "fs" | "as") => {
            Some(format!("[{factor}{unit}]"))
        }
        (1, "μs" | "µs") => Some("[us]".to_owned()),
        (_, "μs" | "µs") => Some(format!("[{factor}us]")),
        _ => None,
    }
}

/// What the fields around it need to know of an item.
struct FieldItem {
    /// Bytes.
    size: u64,
    /// Whether NumPy takes it for padding where it has no name: plain bytes, or any subarray.
    pads: bool,
    /// Whether it is a structure.
    has_fields: bool,
}

/// Append the literal of a type in its plain form.
fn spell(descr: &PyLiteral, out: &mut String) -> Result<FieldItem, DescrError> {
    match descr {
        PyLiteral::Str(text) if comma::is_comma_string(text) => spell(&comma::expand(text)?, out),
        PyLiteral::Str(text) => {
            let dtype = parse_type_string(text)?;
            let spelled = literal(&dtype).ok_or_else(|| DescrError::Unknown(brief(text)))?;
            out.push_str(&spelled);
            let pads = spelled.as_bytes().get(2) == Some(&b'V');
            Ok(FieldItem { size: dtype.item_bits() / 8, pads, has_fields: false })
        }
        PyLiteral::Tuple(parts) => match parts.as_slice() {
            [base, shape] => {
                let shape = subarray_shape(shape)?;
                if shape.is_empty() {
                    return spell(base, out).and_then(filled);
                }
                out.push('(');
                let item = spell_subarray(base, &shape, out)?;
                out.push(')');
                Ok(item)
            }
            _ => Err(DescrError::Structure("a subarray is not (base, shape)")),
        },
        PyLiteral::List(fields) => spell_structure(fields, out),
        _ => Err(DescrError::Structure("a field's type is no string, tuple or list")),
    }
}

/// Append `base, shape`.
fn spell_subarray(
    base: &PyLiteral,
    shape: &[u64],
    out: &mut String,
) -> Result<FieldItem, DescrError> {
    let item = spell(base, out).and_then(filled)?;
    // Writing to a String cannot fail.
    let _ = write!(out, ", {}", AsTuple(shape));
    let size = byte_count(shape, item.size * 8).filter(|&size| size <= MAX_ITEMSIZE);
    Ok(FieldItem { size: size.ok_or(DescrError::TooLarge)?, pads: true, has_fields: false })
}

/// An item that may stand in a subarray: NumPy wants bytes or fields in it, whatever the shape.
fn filled(item: FieldItem) -> Result<FieldItem, DescrError> {
    if item.size > 0 || item.has_fields {
        Ok(item)
    } else {
        Err(DescrError::Structure("a subarray of items of 0 bytes"))
    }
}

/// Append the list of fields, neighbouring paddings made one.
fn spell_structure(fields: &[PyLiteral], out: &mut String) -> Result<FieldItem, DescrError> {
    let mut names = HashSet::new();
    let mut size = 0u64;
    let mut padding = 0u64;
    out.push('[');
    let start = out.len();
    for field in fields {
        let (PyLiteral::Tuple(parts) | PyLiteral::List(parts)) = field else {
            return Err(DescrError::Structure("a field is no tuple"));
        };
        let (name, base, shape) = match parts.as_slice() {
            [name, base] => (name, base, Vec::new()),
            [name, base, shape] => (name, base, subarray_shape(shape)?),
            _ => return Err(DescrError::Structure("a field is not (name, type[, shape])")),
        };
        let expanded = match base {
            PyLiteral::Str(text) if comma::is_comma_string(text) => Some(comma::expand(text)?),
            _ => None,
        };
        let base = expanded.as_ref().unwrap_or(base);
        // A type that is itself (base, shape) is the same as one with a shape beside it.
        let (base, shape) = flatten(base, shape)?;

        let before = out.len();
        let title_and_name = names_of(name)?;
        write_padding(out, start, padding);
        separate(out, start);
        out.push('(');
        write_names(out, title_and_name);
        out.push_str(", ");
        let item = match (parts.len(), shape.as_slice()) {
            (2, []) => spell(base, out)?,
            (_, []) => spell(base, out).and_then(filled)?,
            (_, shape) => spell_subarray(base, shape, out)?,
        };
        out.push(')');

        if matches!(title_and_name, (None, "")) && matches!(name, PyLiteral::Str(_)) && item.pads {
            out.truncate(before);
            padding += item.size;
        } else {
            padding = 0;
            let (title, name) = title_and_name;
            // titles that are no strings are no names of fields
            let title = title.and_then(|title| match title {
                PyLiteral::Str(title) => Some(title.as_str()),
                _ => None,
            });
            for used in title.into_iter().chain([name]) {
                if !names.insert(used) {
                    return Err(DescrError::DuplicateField(brief(used)));
                }
            }
        }
        size = size.saturating_add(item.size);
        if size > MAX_ITEMSIZE {
            return Err(DescrError::TooLarge);
        }
    }
    write_padding(out, start, padding);
    out.push(']');
    Ok(FieldItem { size, pads: false, has_fields: true })
}

fn flatten(base: &PyLiteral, shape: Vec<u64>) -> Result<(&PyLiteral, Vec<u64>), DescrError> {
    let mut base = base;
    let mut shape = shape;
    while let (true, PyLiteral::Tuple(parts)) = (shape.is_empty(), base) {
        let [inner, inner_shape] = parts.as_slice() else {
            return Err(DescrError::Structure("a subarray is not (base, shape)"));
        };
        (base, shape) = (inner, subarray_shape(inner_shape)?);
    }
    Ok((base, shape))
}

/// The title, where there is one, and the name of a field.
fn names_of(name: &PyLiteral) -> Result<(Option<&PyLiteral>, &str), DescrError> {
    match name {
        PyLiteral::Str(name) => Ok((None, name)),
        PyLiteral::Tuple(parts) => match parts.as_slice() {
            [PyLiteral::None, PyLiteral::Str(name)] => Ok((None, name)),
            [title, PyLiteral::Str(name)] => Ok((Some(title), name)),
            _ => Err(DescrError::Structure("a field's names are not (title, name)")),
        },
        _ => Err(DescrError::Structure("a field's name is no string")),
    }
}

fn write_names(out: &mut String, (title, name): (Option<&PyLiteral>, &str)) {
    match title {
        None => write_str(out, name),
        Some(title) => {
            out.push('(');
            literal::write(out, title);
            out.push_str(", ");
            write_str(out, name);
            out.push(')');
        }
    }
}

fn separate(out: &mut String, start: usize) {
    if out.len() > start {
        out.push_str(", ");
    }
}

fn write_padding(out: &mut String, start: usize, bytes: u64) {
    if bytes > 0 {
        separate(out, start);
        // Writing to a String cannot fail.
        let _ = write!(out, "('', '|V{bytes}')");
    }
}

/// The shape of a subarray: a tuple or list of lengths, or one length.
fn subarray_shape(shape: &PyLiteral) -> Result<Vec<u64>, DescrError> {
    let length = |value: &PyLiteral| match value {
        PyLiteral::Int(length) => {
            u64::try_from(*length).ok().filter(|&length| length <= MAX_ITEMSIZE).ok_or(
                DescrError::Structure("a length of a subarray is negative or beyond 2147483647"),
            )
        }
        _ => Err(DescrError::Structure("a length of a subarray is no integer")),
    };
    match shape {
        PyLiteral::Tuple(lengths) | PyLiteral::List(lengths) if lengths.len() > MAX_NDIM => {
            Err(DescrError::Structure("a subarray has more than 64 axes"))
        }
        PyLiteral::Tuple(lengths) | PyLiteral::List(lengths) => {
            lengths.iter().map(length).collect()
        }
        _ => Ok(vec![length(shape)?]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(descr: &str) -> Result<(String, u64), DescrError> {
        let dtype = parse(&literal::parse(descr, false).unwrap())?;
        Ok((super::literal(&dtype).unwrap(), dtype.item_bits() / 8))
    }

    /// Each line is what NumPy 2.4 prints for `dtype_to_descr(descr_to_dtype(descr))`.
    #[test]
    fn descriptions_become_those_of_np_save() {
        for (descr, expected, itemsize) in [
            ("'>b1'", "'|b1'", 1),
            ("'=f4'", "'<f4'", 4),
            ("'|i4'", "'<i4'", 4),
            ("'?'", "'|b1'", 1),
            ("'uint8'", "'|u1'", 1),
            ("'complex64'", "'<c8'", 8),
            ("'float128'", "'<f16'", 16),
            ("'>l'", "'>i8'", 8),
            ("'S05'", "'|S5'", 5),
            ("'U'", "'<U0'", 0),
            ("'>U3'", "'>U3'", 12),
            ("'V'", "'|V0'", 0),
            ("'c'", "'|S1'", 1),
            ("'a5'", "'|S5'", 5),
            ("'G'", "'<c32'", 32),
            ("'M8'", "'<M8'", 8),
            ("'M8[1s]'", "'<M8[s]'", 8),
            ("'>m8[25s]'", "'>m8[25s]'", 8),
            ("'M8[3generic]'", "'<M8'", 8),
            ("'M8[μs]'", "'<M8[us]'", 8),
            ("'<i4,<i2'", "[('f0', '<i4'), ('f1', '<i2')]", 6),
            ("'i4,'", "[('f0', '<i4')]", 4),
            ("'1i4'", "'<i4'", 4),
            (
                "'2i4, (2,3)>f8 ,=M8[s] '",
                "[('f0', '<i4', (2,)), ('f1', '>f8', (2, 3)), ('f2', '<M8[s]')]",
                64,
            ),
            ("[('a', '<i4,|u1', 2)]", "[('a', [('f0', '<i4'), ('f1', '|u1')], (2,))]", 10),
            ("[('a', '3i4')]", "[('a', '<i4', (3,))]", 12),
            ("[((b'a\\n', 'b'), '<i8')]", "[((b'a\\n', 'b'), '<i8')]", 8),
            ("[(((1, (True,)), 'b'), '<i8')]", "[(((1, (True,)), 'b'), '<i8')]", 8),
            ("[]", "[]", 0),
            ("[('a', [], 1)]", "[('a', [], (1,))]", 0),
            ("[('', '|V0')]", "[]", 0),
            (
                "[('a', '<i4'), ('', '|V1'), ('', '|V2'), ('b', 'i1')]",
                "[('a', '<i4'), ('', '|V3'), ('b', '|i1')]",
                8,
            ),
            ("[('', '<f4')]", "[('', '<f4')]", 4),
            ("[('', '<f4', (2,))]", "[('', '|V8')]", 8),
            ("[('a', '<f4', ())]", "[('a', '<f4')]", 4),
            ("[('a', '<f4', 1)]", "[('a', '<f4', (1,))]", 4),
            ("[('a', ('<f4', (2,)))]", "[('a', '<f4', (2,))]", 8),
            ("[('a', ('<f4', (2,)), (3,))]", "[('a', ('<f4', (2,)), (3,))]", 24),
            ("[(('t', 'n'), '<f4')]", "[(('t', 'n'), '<f4')]", 4),
            ("[((None, 'n'), '<f4')]", "[('n', '<f4')]", 4),
            ("[(('t', ''), 'V4')]", "[(('t', ''), '|V4')]", 4),
            (
                "[('a', [('b', '|V2'), ('', 'V3')], (2,)), ('', '|V1')]",
                "[('a', [('b', '|V2'), ('', '|V3')], (2,)), ('', '|V1')]",
                11,
            ),
            ("[['a', 'S0'], ('b', 'U0')]", "[('a', '|S0'), ('b', '<U0')]", 0),
        ] {
            assert_eq!(plain(descr), Ok((expected.to_owned(), itemsize)), "{descr}");
        }
    }

    #[test]
    fn voids_keep_their_byte_order() {
        assert_eq!(plain("'<V2'"), Ok(("'<V2'".to_owned(), 2)));
        assert_eq!(plain("[('a', '<V2')]"), Ok(("[('a', '<V2')]".to_owned(), 2)));
    }

    #[test]
    fn objects_are_refused_at_any_depth() {
        for descr in ["'O'", "'|O'", "'O8'", "[('a', [('b', '|O', (2,))])]"] {
            assert!(matches!(plain(descr), Err(DescrError::Object(_))), "{descr}");
        }
    }

    /// NumPy 2.4 refuses each of them, but `('<f4', (2,))`, a type that no array can have.
    #[rustfmt::skip] // one a line would hide the sense
    #[test]
    fn what_numpy_refuses_is_refused() {
        for descr in [
            "'f3'", "'i16'", "''", "'<'", "' f4'", "'f4 '", "'?1'", "'b2'", "'M4'", "'M8[]'",
            "'M8[-1s]'", "'M8[2147483648s]'", "'M8[ns'", "'M8[ns]x'", "'S-1'", "'S1_0'",
            "'S2147483648'", "'U536870912'", "'f1'", "'é'", "3", "None", "[('a',)]",
            "[('a', '<f4', (2,), 1)]", "[(1, '<f4')]", "['a']", "[('a', '<f4'), ('a', '<f4')]",
            "[(('n', 'n'), '<f4')]", "[(('t', 'n'), '<f4'), ('t', '<f4')]",
            "[('a', '<f4', (-1,))]", "[('a', '<f4', (True,))]", "[('a', '<f4', (2147483648,))]",
            "[('a', 'V2147483647'), ('b', 'V5')]", "[('a', '<f4', (536870912,))]",
            "('<f4', (2,))", "'<a'", "[('a', 'S0', (2,))]", "[('a', 'U', ())]",
            "[('a', ('<f4', (0,)), 2)]", "',i4'", "'i4,,i2'", "'i4, (2i2'", "'i4;i2'", "'3i4'",
            "'<2>i4'", "'(2)'", "[(b'a', '<i8')]", "b'<i4'",
        ] {
            assert!(plain(descr).is_err(), "{descr}");
        }
    }
}
