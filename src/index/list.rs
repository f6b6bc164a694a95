//! Lists and masks as items of an index: NumPy's advanced indexing, as data.
//!
//! A list is typed, or lies in a file that is only named here: whoever resolves the expression says
//! what is in it.

use std::fmt;

/// An item that is an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum List {
    /// Positions on one axis in any order, negative ones counting from the end.
    Integers(Array<i64>),
    /// The positions where it is true, on as many axes as it has.
    Mask(Array<bool>),
    /// An integer or boolean tensor of a file.
    File(FileRef),
}

/// An array of typed values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Array<T> {
    /// The length of the lists at each depth.
    pub shape: Vec<u64>,
    /// The values, in C order.
    pub values: Vec<T>,
}

/// A tensor of a file, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRef {
    /// The file; `-` is standard input.
    pub path: String,
    /// The name of the tensor, in a file of several.
    pub name: Option<String>,
    /// Whether the opposite of the mask in it is meant.
    pub opposite: bool,
}

impl FileRef {
    /// Whether it is standard input.
    pub fn is_stdin(&self) -> bool {
        self.path == "-"
    }
}

/// Characters that end a word of a [`FileRef`] that is not quoted, besides white space.
pub(super) const DELIMITERS: &[u8] = b",[]()#";

impl fmt::Display for FileRef {
    /// `@FILE#NAME`, quoted where that is needed; `~@FILE` for an opposite.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.opposite { "~@" } else { "@" })?;
        word(f, &self.path)?;
        match &self.name {
            Some(name) => f.write_str("#").and_then(|()| word(f, name)),
            None => Ok(()),
        }
    }
}

fn word(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let plain = |byte: u8| !byte.is_ascii_whitespace() && !DELIMITERS.contains(&byte);
    if !text.is_empty() && !text.starts_with(['"', '\'']) && text.bytes().all(plain) {
        return f.write_str(text);
    }
    write!(f, "\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

impl fmt::Display for List {
    /// NumPy's notation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            List::Integers(array) => {
                nested(f, &array.shape, &array.values, &|f, v| write!(f, "{v}"))
            }
            List::Mask(array) => nested(f, &array.shape, &array.values, &|f, v| {
                f.write_str(if *v { "True" } else { "False" })
            }),
            List::File(file) => write!(f, "{file}"),
        }
    }
}

/// A way to print one value.
type Print<'a, T> = &'a dyn Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result;

fn nested<T>(
    f: &mut fmt::Formatter<'_>,
    shape: &[u64],
    values: &[T],
    print: Print<'_, T>,
) -> fmt::Result {
    let Some((&len, inner)) = shape.split_first() else {
        return values.first().map_or(Ok(()), |value| print(f, value));
    };
    f.write_str("[")?;
    let each = inner.iter().product::<u64>() as usize;
    for number in 0..len as usize {
        if number > 0 {
            f.write_str(", ")?;
        }
        nested(f, inner, values.get(number * each..).unwrap_or_default(), print)?;
    }
    f.write_str("]")
}
