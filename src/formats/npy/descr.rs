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
use super::{DescrError, MAX_ITEMSIZE, literal};
use crate::dtype::{DType, Endian, Field, NpyType, Scalar, Structure, TimeKind, TimeUnit};
use crate::shape::{MAX_NDIM, byte_count};
use crate::tensor::brief;

pub(super) fn parse(descr: &PyLiteral) -> Result<DType, DescrError> {
    match descr {
        PyLiteral::Str(text) if is_comma_string(text) => match expand(text)? {
            // the rest is not a comma string again
            PyLiteral::Str(text) => parse_type_string(&text),
            fields => parse(&fields),
        },
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
        PyLiteral::Str(text) if is_comma_string(text) => return item(&expand(text)?),
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
            // only titles that are strings name a field
            let text = title.and_then(|title| match title {
                PyLiteral::Str(title) => Some(title.as_str()),
                _ => None,
            });
            for used in text.into_iter().chain([spelled]) {
                if !names.insert(used) {
                    return Err(DescrError::DuplicateField(brief(used)));
                }
            }
            let is_named = !spelled.is_empty();
            let number = fields.len() + paddings;
            let name = if is_named { spelled.to_owned() } else { format!("f{number}") };
            fields.push(Field { name, is_named, title: title.map(written), offset, ..item });
        }
        if size > MAX_ITEMSIZE {
            return Err(DescrError::TooLarge);
        }
    }
    Ok(DType::Npy(NpyType::Structure(Arc::new(Structure { fields, itemsize: size }))))
}

fn written(title: &PyLiteral) -> String {
    let mut text = String::new();
    literal::write(&mut text, title);
    text
}

/// Split the names of a field into title (if any) and name.
fn names_of(name: &PyLiteral) -> Result<(Option<&PyLiteral>, &str), DescrError> {
    match name {
        PyLiteral::Str(name) => Ok((None, name)),
        PyLiteral::Tuple(parts) => match parts.as_slice() {
            [PyLiteral::None, PyLiteral::Str(name)] => Ok((None, name)),
            [title, PyLiteral::Str(name)] => Ok((Some(title), name)),
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

// Types with commas or counts in their string: `'<i4,<i2'`, `'2i4, (2,3)f8'`.
//
// They are another spelling of a list of fields named `f0`, `f1` and so on. The rules come from
// NumPy's `_check_for_commastring` and `numpy._core._internal._commastring`.
//
// ```text
// '2i4, >f8'  =>  [('f0', 'i4', 2), ('f1', '>f8')]
// ```

/// Whether NumPy reads a type string as such a list (`_check_for_commastring`).
fn is_comma_string(text: &str) -> bool {
    let bare = text.strip_prefix(['<', '>', '=', '|']).unwrap_or(text);
    let mut depth = 0;
    let mut outside = |char| {
        depth += match char {
            '[' => 1,
            ']' => -1,
            _ => 0,
        };
        char == ',' && depth == 0
    };
    bare.starts_with(|first: char| first.is_ascii_digit())
        || bare.starts_with("()")
        || text.chars().any(&mut outside)
}

/// Expand a comma string into a list of fields; without a comma, into its only type.
fn expand(text: &str) -> Result<PyLiteral, DescrError> {
    let unknown = || DescrError::Unknown(format!("'{}'", brief(text)));
    let mut items: Vec<(PyLiteral, Option<PyLiteral>)> = Vec::new();
    let mut rest = text;
    let mut is_list = false;
    while !rest.is_empty() {
        let (item, after) = comma_item(rest).ok_or_else(unknown)?;
        items.push(item);
        rest = after;
        if !rest.trim_end().is_empty() {
            rest = rest.trim_start().strip_prefix(',').ok_or_else(unknown)?.trim_start();
            is_list = true;
        } else {
            rest = "";
        }
    }
    if is_list {
        let field = |(at, (base, shape)): (usize, (PyLiteral, Option<PyLiteral>))| {
            let name = PyLiteral::Str(format!("f{at}"));
            PyLiteral::Tuple([Some(name), Some(base), shape].into_iter().flatten().collect())
        };
        return Ok(PyLiteral::List(items.into_iter().enumerate().map(field).collect()));
    }
    match items.pop().ok_or_else(unknown)? {
        (base, None) => Ok(base),
        (base, Some(shape)) => Ok(PyLiteral::Tuple(vec![base, shape])),
    }
}

/// Split off the first item: a byte order, a count or a shape, a byte order again, and a type.
/// Returns the type, the shape, and the rest.
fn comma_item(text: &str) -> Option<((PyLiteral, Option<PyLiteral>), &str)> {
    let split = |text: &'_ str, in_part: &dyn Fn(char) -> bool| {
        text.find(|char| !in_part(char)).unwrap_or(text.len())
    };
    let order = |char: char| matches!(char, '<' | '>' | '=' | '|');
    let bare = text.strip_prefix(order).unwrap_or(text);
    let first = &text[..text.len() - bare.len()];

    let spaces = split(bare, &|char| char == ' ');
    let open = spaces + usize::from(bare[spaces..].starts_with('('));
    let numbers = open + split(&bare[open..], &|char| matches!(char, ' ' | ',' | '0'..='9'));
    let close = numbers + usize::from(bare[numbers..].starts_with(')'));
    let count = close + split(&bare[close..], &|char| char == ' ');
    let (count, bare) = bare.split_at(count);

    let typed = bare.strip_prefix(order).unwrap_or(bare);
    let second = &bare[..bare.len() - typed.len()];
    let mut end = split(typed, &|char| char.is_ascii_alphanumeric() || matches!(char, '.' | '?'));
    if let Some(unit) = typed[end..].strip_prefix('[') {
        let len = split(unit, &|char| char.is_ascii_alphanumeric() || matches!(char, ',' | '.'));
        end += if unit[len..].starts_with(']') { len + 2 } else { 0 };
    }
    let (name, rest) = typed.split_at(end);

    let order = match (first, second) {
        (order, "") | ("", order) => order,
        (first, second) if native(first) == native(second) => native(first),
        _ => return None,
    };
    let order = if order == ">" { order } else { "" };
    let base = PyLiteral::Str(format!("{order}{name}"));
    let shape = match count {
        "" => None,
        count if count.trim().is_empty() => return None,
        count => Some(literal::parse(&format!("({count})"), false).ok()?),
    };
    Some(((base, shape), rest))
}

/// Replace `=`, the machine's byte order, by `<`.
fn native(order: &str) -> &str {
    if order == "=" { "<" } else { order }
}

#[cfg(test)]
mod tests {
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

    /// NumPy 2.4 refuses all of these, except `('<f4', (2,))`, a type that no array can have.
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
