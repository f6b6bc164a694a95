//! Lists and masks as items of an index: NumPy's advanced indexing, as data.
//!
//! A list is typed, or is a tensor of a file that is only named here; the code that resolves the
//! expression looks up what it holds.

use std::fmt;
use std::ops::Range;

use super::selection::{ListBlock, SelectedList};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum List {
    /// Positions on one axis in any order; negative values count from the end.
    Integers(Array<i64>),
    /// The positions where the mask is true, on as many axes as the mask has.
    Mask(Array<bool>),
    /// An integer or boolean tensor of a file.
    File(FileRef),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Array<T> {
    /// The lengths of the axes; `values` are in C order.
    pub shape: Vec<u64>,
    pub values: Vec<T>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRef {
    /// The path; `-` is standard input.
    pub path: String,
    /// The name of the tensor, for files of several.
    pub name: Option<String>,
    /// Whether the mask is to be inverted (`~`).
    pub opposite: bool,
}

impl FileRef {
    pub fn is_stdin(&self) -> bool {
        self.path == "-"
    }
}

/// Characters that, besides white space, end an unquoted word of a [`FileRef`].
pub(super) const DELIMITERS: &[u8] = b",[]()#";

impl fmt::Display for FileRef {
    /// `@FILE#NAME`, quoted where needed; `~@FILE` for an inverted mask.
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

// NumPy's rules for lists: the shape to which they are broadcast, and where its axes stand in the
// result.
//
// Source: NumPy, "Combining advanced and basic indexing". An integer beside a list counts as a list
// without axes. Where all these items are adjacent, the axes of the lists stand in place of the
// first item; where a slice, an ellipsis (even of no axes) or a new axis separates them, they come
// first. With outer indexing (np.ix_, zarr's `oindex`) every list stands in its own place.

/// Tracks where the lists of an expression stand, item by item.
#[derive(Debug, Default)]
pub(super) struct Placement {
    /// Axes of the result from ranges and new axes so far.
    kept: usize,
    /// The value of `kept` at each list.
    lists: Vec<usize>,
    /// The value of `kept` at the first list or integer.
    first: Option<usize>,
    /// Whether another item has followed the first list or integer.
    gap: bool,
    /// Whether a list or an integer has followed after such a gap.
    separated: bool,
}

impl Placement {
    pub(super) fn keep(&mut self, axes: usize) {
        self.kept += axes;
        self.gap |= self.first.is_some();
    }

    pub(super) fn integer(&mut self) {
        self.first.get_or_insert(self.kept);
        self.separated |= self.gap;
    }

    pub(super) fn list(&mut self) {
        self.integer();
        self.lists.push(self.kept);
    }

    /// The blocks of axes that the lists become; with `outer`, one for each list. The error is the
    /// number of the first list whose shape does not broadcast with those before it.
    pub(super) fn blocks(
        &self,
        lists: &[SelectedList],
        outer: bool,
    ) -> Result<Vec<ListBlock>, usize> {
        if outer {
            let block = |(number, (list, &at)): (usize, (&SelectedList, &usize))| ListBlock {
                at,
                shape: list.shape.clone(),
                lists: number..number + 1,
            };
            return Ok(lists.iter().zip(&self.lists).enumerate().map(block).collect());
        }
        let Some(first) = self.first.filter(|_| !lists.is_empty()) else { return Ok(Vec::new()) };
        let mut shape = Vec::new();
        for (number, list) in lists.iter().enumerate() {
            shape = broadcast(&shape, &list.shape).ok_or(number)?;
        }
        let at = if self.separated { 0 } else { first };
        Ok(vec![ListBlock { at, shape, lists: Range { start: 0, end: lists.len() } }])
    }
}

/// The broadcast shape of two (NumPy: `broadcast_shapes`); `None` where they do not fit.
fn broadcast(one: &[u64], other: &[u64]) -> Option<Vec<u64>> {
    let ndim = one.len().max(other.len());
    let len = |shape: &[u64], axis: usize| match (axis + shape.len()).checked_sub(ndim) {
        Some(own) => shape[own],
        None => 1,
    };
    let joined = |axis| match (len(one, axis), len(other, axis)) {
        (1, len) | (len, 1) => Some(len),
        (len, same) => (len == same).then_some(len),
    };
    (0..ndim).map(joined).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_broadcast_as_in_numpy() {
        // np.broadcast_shapes
        for (one, other, both) in [
            (&[][..], &[][..], Some(vec![])),
            (&[3], &[], Some(vec![3])),
            (&[3, 1], &[4], Some(vec![3, 4])),
            (&[1], &[0], Some(vec![0])),
            (&[2, 3], &[3], Some(vec![2, 3])),
            (&[2, 3], &[2], None),
            (&[0], &[2], None),
        ] {
            assert_eq!(broadcast(one, other), both);
            assert_eq!(broadcast(other, one), both);
        }
    }
}
