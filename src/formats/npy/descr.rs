//! The `descr` entry of a `.npy` header: from Python literal to [`DType`].
//!
//! The rules come from `numpy.lib.format.descr_to_dtype` and `dtype_to_descr`: `dtype::literal` of
//! the result is what np.save would write after np.load, with padding merged, sizes plain, and
//! names as `repr` spells them.
//!
//! ```text
//! 'f4'  =>  float32        [('x', '>i2'), ('', '|V2'), ('t', 'M8[1s]', 3)]
//!                      =>  [('x', '>i2'), ('', '|V2'), ('t', '<M8[s]', (3,))]
//! ```

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use super::literal::PyLiteral;
use crate::dtype::{DType, Endian, Field, NpyType, Scalar, Structure, TimeKind, TimeUnit};
use crate::shape::{MAX_NDIM, byte_count};
use crate::tensor::brief;

/// The largest item in bytes: NumPy keeps sizes of strings and structures in a C int.
pub(super) const MAX_ITEMSIZE: u64 = i32::MAX as u64;

/// Why a `descr` is not an element type that can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescrError {
    #[error("arrays of Python objects (dtype {0}) are not read: their data is a pickle")]
    Object(String),
    #[error("{0} is not a dtype of NumPy")]
    Unknown(String),
    #[error("the structured dtype is malformed: {0}")]
    Structure(&'static str),
    #[error("the structured dtype has two fields named '{0}'")]
    DuplicateField(String),
    #[error("an item of more than {MAX_ITEMSIZE} bytes")]
    TooLarge,
}

/// Parse a name or type string that NumPy with the `ml_dtypes` package knows (`float32`, `>i2`,
/// `U5`, `bfloat16`, `float8_e4m3fn`), little-endian unless it says otherwise; several parted by commas are the
/// fields `f0`, `f1`, .. of a structure.
///
/// # Errors
/// [`DescrError`] where the text is neither, or means Python objects.
pub fn parse_dtype(text: &str) -> Result<DType, DescrError> {
    let lacking = |scalar: &Scalar| scalar.type_string().is_none() && scalar.name() == text;
    match Scalar::ALL.into_iter().find(lacking) {
        Some(scalar) => Ok(DType::Scalar(scalar, Endian::Little)),
        None if text.contains(',') => {
            let field = |(number, text): (usize, &str)| {
                let both = [format!("f{number}"), text.trim().to_owned()];
                PyLiteral::Tuple(both.map(PyLiteral::Str).into())
            };
            let types = text.strip_suffix(',').unwrap_or(text).split(',');
            parse(&PyLiteral::List(types.enumerate().map(field).collect()))
        }
        None => parse(&PyLiteral::Str(text.to_owned())),
    }
}

/// Parse a type string or a list of fields in JSON, as in `.zarray`.
#[cfg(feature = "zarr")]
pub(crate) fn json_dtype(json: &serde_json::Value) -> Result<DType, DescrError> {
    fn literal(json: &serde_json::Value) -> PyLiteral {
        match json {
            serde_json::Value::String(text) => PyLiteral::Str(text.clone()),
            serde_json::Value::Array(items) => PyLiteral::List(items.iter().map(literal).collect()),
            json => json.as_u64().map_or(PyLiteral::None, |len| PyLiteral::Int(len.into())),
        }
    }
    parse(&literal(json))
}

/// The dtype of a `descr` entry.
pub(crate) fn parse(descr: &PyLiteral) -> Result<DType, DescrError> {
    match descr {
        // an array has no subarrays as elements, except subarrays of one element
        PyLiteral::Tuple(parts) => match parts.as_slice() {
            [base, shape] if subarray_shape(shape)?.iter().all(|&len| len == 1) => parse(base),
            _ => Err(DescrError::Structure("neither a type string nor a list of fields")),
        },
        PyLiteral::Str(text) => parse_type_string(text),
        PyLiteral::List(fields) => structure(fields),
        _ => Err(DescrError::Structure("neither a type string nor a list of fields")),
    }
}

/// Parse a type string of NumPy's array interface, such as `<f4`, `=i8`, `?`, `U5`, `>M8[25s]`, or
/// the name of a type: `float64`, `double`, `datetime64[s]`.
fn parse_type_string(text: &str) -> Result<DType, DescrError> {
    let unknown = || DescrError::Unknown(format!("'{}'", brief(text)));
    let (endian, bare) = match text.split_at_checked(1) {
        Some((">", bare)) => (Endian::Big, bare),
        Some(("<" | "=" | "|", bare)) => (Endian::Little, bare),
        _ => (Endian::Little, text),
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
    let npy = match kind {
        "O" => return Err(DescrError::Object(format!("'{}'", brief(text)))),
        "S" | "U" | "V" => {
            let count = match size {
                "" => 0,
                _ => decimal(size).ok_or_else(unknown)?,
            };
            match kind {
                "S" => NpyType::Bytes(count),
                "U" => NpyType::Unicode(count, endian),
                _ => NpyType::Void(count, text.starts_with(['<', '>']).then_some(endian)),
            }
        }
        "M" | "m" => {
            let unit = size.strip_prefix('8').and_then(parse_unit).ok_or_else(unknown)?;
            let kind = if kind == "M" { TimeKind::Datetime } else { TimeKind::Timedelta };
            NpyType::Time(kind, endian, unit)
        }
        "f" if size == "16" => NpyType::LongDouble(endian),
        "c" if size == "32" => NpyType::ComplexLongDouble(endian),
        _ => return Err(unknown()),
    };
    if npy.itemsize() > MAX_ITEMSIZE {
        return Err(DescrError::TooLarge);
    }
    Ok(DType::Npy(npy))
}

/// NumPy's type strings, with their one-letter codes and other names; a C long has 8 bytes.
const CODES: [(&str, &str, &[&str]); 25] = [
    ("f16", "", &["float128"]),
    ("c32", "", &["complex256"]),
    ("b1", "?", &["bool_"]),
    ("i1", "b", &["byte"]),
    ("i2", "h", &["short"]),
    ("i4", "i", &["intc"]),
    ("i8", "lqpn", &["int", "int_", "long", "longlong", "intp"]),
    ("u1", "B", &["ubyte"]),
    ("u2", "H", &["ushort"]),
    ("u4", "I", &["uintc"]),
    ("u8", "LQPN", &["uint", "ulong", "ulonglong", "uintp"]),
    ("f2", "e", &["half"]),
    ("f4", "f", &["single"]),
    ("f8", "d", &["float", "double"]),
    ("f16", "g", &["longdouble"]),
    ("c8", "F", &["csingle"]),
    ("c16", "D", &["complex", "cdouble"]),
    ("c32", "G", &["clongdouble"]),
    ("U", "", &["str", "str_", "unicode"]),
    ("S", "", &["bytes", "bytes_", "a"]),
    ("S1", "c", &[]),
    ("V", "", &["void"]),
    ("M8", "M", &["datetime64"]),
    ("m8", "m", &["timedelta64"]),
    ("O", "", &["object", "object_"]),
];

/// NumPy's names other than [`Scalar::name`], with their type strings.
pub(crate) fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    CODES.iter().flat_map(|(code, _, names)| names.iter().map(|name| (*name, *code)))
}

/// Replace the name of a type by a type string without byte order; other text is returned
/// unchanged.
fn expand_type_name(name: &str) -> Cow<'_, str> {
    if let Some(scalar) = Scalar::ALL.iter().find(|scalar| scalar.name() == name) {
        return scalar.type_string().unwrap_or(name).into();
    }
    let (name, unit) = name.split_at(name.find('[').unwrap_or(name.len()));
    match names().find(|(known, _)| *known == name) {
        Some((_, code)) if unit.is_empty() => code.into(),
        Some((_, code @ ("M8" | "m8"))) => format!("{code}{unit}").into(),
        _ => format!("{name}{unit}").into(),
    }
}

/// Replace a one-letter code by a type string; other text is returned unchanged.
fn expand_type_code(code: &str) -> &str {
    let known = |letters: &str| code.len() == 1 && letters.contains(code);
    CODES.iter().find(|(_, letters, _)| known(letters)).map_or(code, |(string, ..)| string)
}

fn decimal(digits: &str) -> Option<u64> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// Parse the unit of a datetime, `[25s]`; an empty text is the generic unit.
fn parse_unit(text: &str) -> Option<TimeUnit> {
    if text.is_empty() {
        return Some(TimeUnit::GENERIC);
    }
    let inside = text.strip_prefix('[')?.strip_suffix(']')?;
    let digits = inside.bytes().take_while(u8::is_ascii_digit).count();
    let (factor, unit) = inside.split_at(digits);
    let factor = if factor.is_empty() { 1 } else { factor.parse::<i32>().ok()? };
    match unit {
        "" => None,
        "generic" => Some(TimeUnit::GENERIC),
        "μs" | "µs" => TimeUnit::new(factor, "us"),
        unit => TimeUnit::new(factor, unit),
    }
}

/// Parse the type of a field into a field without a name.
fn item(descr: &PyLiteral) -> Result<Field, DescrError> {
    let dtype = match descr {
        PyLiteral::Str(text) => parse_type_string(text)?,
        PyLiteral::Tuple(parts) => match parts.as_slice() {
            [base, shape] => return subarray(base, &subarray_shape(shape)?),
            _ => return Err(DescrError::Structure("a subarray is not (base, shape)")),
        },
        PyLiteral::List(fields) => structure(fields)?,
        _ => return Err(DescrError::Structure("a field's type is not a string, tuple or list")),
    };
    let name = String::new();
    let shape = Vec::new();
    let nesting = Vec::new();
    Ok(Field { name, is_named: false, title: None, dtype, shape, nesting, offset: 0 })
}

/// Parse a subarray; without axes, the result is its element.
fn subarray(base: &PyLiteral, shape: &[u64]) -> Result<Field, DescrError> {
    let mut item = item(base)?;
    let has_fields = item.nesting.is_empty() && item.dtype.structure().is_some();
    if item.bytes() == 0 && !has_fields {
        // NumPy requires bytes or fields in it, whatever the shape
        return Err(DescrError::Structure("a subarray of items of 0 bytes"));
    }
    if !shape.is_empty() {
        let size = byte_count(shape, item.bytes() * 8);
        size.filter(|&size| size <= MAX_ITEMSIZE).ok_or(DescrError::TooLarge)?;
        item.shape.splice(..0, shape.iter().copied());
        item.nesting.insert(0, shape.len());
    }
    Ok(item)
}

/// Parse a list of fields and compute their offsets; adjacent paddings count as one.
fn structure(literals: &[PyLiteral]) -> Result<DType, DescrError> {
    let mut names = HashSet::new();
    let mut fields: Vec<Field> = Vec::new();
    let mut size = 0u64;
    // the padding between and after the fields; the number of paddings, to name fields without
    // names
    let mut padding = 0u64;
    let mut paddings = 0;
    for literal in literals {
        let (PyLiteral::Tuple(parts) | PyLiteral::List(parts)) = literal else {
            return Err(DescrError::Structure("a field is not a tuple"));
        };
        let (name, base, shape) = match parts.as_slice() {
            [name, base] => (name, base, None),
            [name, base, shape] => (name, base, Some(subarray_shape(shape)?)),
            _ => return Err(DescrError::Structure("a field is not (name, type[, shape])")),
        };
        let (title, spelled) = names_of(name)?;
        let item = match shape {
            None => item(base)?,
            Some(shape) => subarray(base, &shape)?,
        };
        let offset = size;
        size = size.saturating_add(item.bytes());
        // NumPy treats an unnamed field as padding where it is plain bytes, or any subarray
        let pads = !item.nesting.is_empty() || item.dtype.is_void();
        if pads && title.is_none() && spelled.is_empty() && matches!(name, PyLiteral::Str(_)) {
            padding += item.bytes();
        } else {
            paddings += usize::from(std::mem::take(&mut padding) > 0);
            for used in title.into_iter().chain([spelled]) {
                if !names.insert(used) {
                    return Err(DescrError::DuplicateField(brief(used)));
                }
            }
            let is_named = !spelled.is_empty();
            let number = fields.len() + paddings;
            let name = if is_named { spelled.to_owned() } else { format!("f{number}") };
            fields.push(Field { name, is_named, title: title.map(str::to_owned), offset, ..item });
        }
        if size > MAX_ITEMSIZE {
            return Err(DescrError::TooLarge);
        }
    }
    Ok(DType::Npy(NpyType::Structure(Arc::new(Structure { fields, itemsize: size }))))
}

/// Split the names of a field into title (if any) and name.
fn names_of(name: &PyLiteral) -> Result<(Option<&str>, &str), DescrError> {
    match name {
        PyLiteral::Str(name) => Ok((None, name)),
        PyLiteral::Tuple(parts) => match parts.as_slice() {
            [PyLiteral::None, PyLiteral::Str(name)] => Ok((None, name)),
            [PyLiteral::Str(title), PyLiteral::Str(name)] => Ok((Some(title), name)),
            _ => Err(DescrError::Structure("a field's names are not (title, name)")),
        },
        _ => Err(DescrError::Structure("a field's name is not a string")),
    }
}

/// Parse the shape of a subarray: a tuple or list of lengths, or one length.
fn subarray_shape(shape: &PyLiteral) -> Result<Vec<u64>, DescrError> {
    let length = |value: &PyLiteral| match value {
        PyLiteral::Int(length) => {
            u64::try_from(*length).ok().filter(|&length| length <= MAX_ITEMSIZE).ok_or(
                DescrError::Structure("a length of a subarray is negative or beyond 2147483647"),
            )
        }
        _ => Err(DescrError::Structure("a length of a subarray is not an integer")),
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
    use super::super::literal;
    use super::*;

    fn plain(descr: &str) -> Result<(String, u64), DescrError> {
        let dtype = parse(&literal::parse(descr, false).unwrap())?;
        Ok((crate::dtype::literal(&dtype).unwrap(), dtype.item_bits() / 8))
    }

    /// Expected: NumPy 2.4's `dtype_to_descr(descr_to_dtype(descr))`.
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

    /// NumPy 2.4 refuses all of these, except `('<f4', (2,))`, a type that no array can have, and what np.save never
    /// writes: types with commas and counts, and titles that are no strings.
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
            "'<2>i4'", "'(2)'", "'<i4,<i2'", "'2i4'",
            "[((1, 'b'), '<i8')]",
        ] {
            assert!(plain(descr).is_err(), "{descr}");
        }
    }

    fn fields(descr: &str) -> Vec<Field> {
        parse(&literal::parse(descr, false).unwrap()).unwrap().structure().unwrap().fields.clone()
    }

    #[test]
    fn fields_have_the_places_that_numpy_gives_them() {
        let fields = fields(
            "[('x', '>i2'), ('', '|V3'), (('t', 'y'), '<f4', (2, 3)), ('', '<U1'), ('z', [('a', '|S2')])]",
        );
        let places: Vec<_> = fields
            .iter()
            .map(|field| (field.name.as_str(), field.offset, &field.shape[..]))
            .collect();
        assert_eq!(places, [("x", 0, &[][..]), ("y", 5, &[2, 3]), ("f3", 29, &[]), ("z", 33, &[])]);
        assert_eq!(fields[0].dtype, DType::Scalar(Scalar::I16, Endian::Big));
        assert!(fields[1].has_name("t") && fields[1].has_name("y") && !fields[1].has_name("x"));
    }

    #[test]
    fn subarrays_of_subarrays_have_the_axes_of_both() {
        let fields = fields("[('c', ((('<f8', (5,)), (2, 1)), (3,))), ('d', ('i2', (4,)), ())]");
        assert_eq!(
            (&fields[0].shape[..], &fields[0].nesting[..]),
            (&[3, 2, 1, 5][..], &[1, 2, 1][..])
        );
        assert_eq!((fields[0].bytes(), fields[1].offset), (240, 240));
        assert_eq!((&fields[1].shape[..], &fields[1].nesting[..]), (&[4][..], &[1][..]));
    }

    #[test]
    fn units_have_counts() {
        let unit = |text| parse_type_string(text).unwrap();
        let time = |kind, endian, unit| DType::Npy(NpyType::Time(kind, endian, unit));
        let seconds = TimeUnit::new(25, "s").unwrap();
        assert_eq!(unit(">M8[25s]"), time(TimeKind::Datetime, Endian::Big, seconds));
        let generic = TimeUnit::new(1, "").unwrap();
        assert_eq!(unit("<m8"), time(TimeKind::Timedelta, Endian::Little, generic));
    }
}
