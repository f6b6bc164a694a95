//! The names of the tensors in an object: their paths, as PyTorch people write them.
//!
//! | in Python | name |
//! |---|---|
//! | `object["model"]["layers.0.weight"]` | `model.layers.0.weight` |
//! | `object["state"][0]["exp_avg"]` | `state[0].exp_avg` |
//! | `object[1]["weight"]` | `[1].weight` |

use std::borrow::Cow;
use std::fmt::Write;

use crate::dtype::write_str;
use crate::format::error::FormatError;

use super::error::TorchError;
use super::machine::MAX_DEPTH;
use super::tensor::TorchTensor;
use super::value::{KeptItem, PickleValue, SharedValue};

/// The most values that are looked at, each as often as it stands anywhere.
const MAX_VISITS: usize = 1 << 24;

/// The most bytes of all names.
const MAX_NAMES: usize = 100_000_000;

/// The most levels of tuples in a key.
const MAX_KEY_DEPTH: usize = 16;

/// What is done with a tensor and its name; without one, it is the object itself.
pub(super) type VisitTensor<'a> =
    &'a mut dyn FnMut(Option<&str>, &TorchTensor) -> Result<(), FormatError>;

/// A list, a dict or a tuple on the way to a tensor.
struct WalkLevel<'a> {
    items: WalkItems<'a>,
    /// The item that comes next.
    next: usize,
    /// How many bytes the name has that leads to it.
    path: usize,
}

/// What is in a list or a dict, or in a tuple.
enum WalkItems<'a> {
    Kept(&'a [KeptItem]),
    Tuple(&'a [PickleValue]),
}

impl<'a> WalkItems<'a> {
    /// The items of a value in which tensors may be.
    fn of(value: &'a PickleValue, shared: &'a [SharedValue]) -> Option<WalkItems<'a>> {
        match value {
            PickleValue::Shared(at) => Some(WalkItems::Kept(&shared.get(*at)?.kept)),
            PickleValue::Tuple(tuple) if tuple.has_tensors => Some(WalkItems::Tuple(&tuple.items)),
            _ => None,
        }
    }
}

impl<'a> WalkLevel<'a> {
    /// The next item, and its key.
    fn next(&mut self) -> Option<(Cow<'a, PickleValue>, &'a PickleValue)> {
        let at = self.next;
        self.next += 1;
        match self.items {
            WalkItems::Kept(kept) => {
                kept.get(at).map(|KeptItem { key, value }| (Cow::Borrowed(key), value))
            }
            WalkItems::Tuple(items) => {
                let key = Cow::Owned(PickleValue::Int(at as i64));
                items.get(at).map(|value| (key, value))
            }
        }
    }
}

/// Visit all tensors in an object with these lists and dicts, in their order.
pub(super) fn visit_tensors(
    object: &PickleValue,
    shared: &[SharedValue],
    visit: VisitTensor<'_>,
) -> Result<(), FormatError> {
    let (mut path, mut visits, mut names) = (String::new(), 0, 0);
    let mut levels: Vec<WalkLevel<'_>> = Vec::new();
    let mut value = object;
    loop {
        visits += 1;
        if visits > MAX_VISITS {
            return Err(TorchError::Many(MAX_VISITS).into());
        }
        if let PickleValue::Tensor(tensor) = value {
            names += path.len();
            check_len(names)?;
            visit((!levels.is_empty()).then_some(path.as_str()), tensor)?;
        } else if let Some(items) = WalkItems::of(value, shared) {
            if levels.len() >= MAX_DEPTH {
                return Err(TorchError::Deep(MAX_DEPTH).into());
            }
            levels.push(WalkLevel { items, next: 0, path: path.len() });
        }
        value = loop {
            let Some(level) = levels.last_mut() else { return Ok(()) };
            path.truncate(level.path);
            if let Some((key, item)) = level.next() {
                push_key(&mut path, &key, levels.len() == 1)?;
                break item;
            }
            levels.pop();
        };
    }
}

/// Append a key to a path, of which it is the first one or not.
fn push_key(path: &mut String, key: &PickleValue, is_first: bool) -> Result<(), TorchError> {
    if let PickleValue::Text(text) = key {
        path.push_str(if is_first { "" } else { "." });
        path.push_str(text);
    } else {
        path.push('[');
        write_key(path, key, 0)?;
        path.push(']');
    }
    check_len(path.len())
}

/// Refuse names that are longer than all names may be.
fn check_len(len: usize) -> Result<(), TorchError> {
    if len > MAX_NAMES { Err(TorchError::Names(MAX_NAMES)) } else { Ok(()) }
}

/// Write a key that is no text as Python shows it.
fn write_key(path: &mut String, key: &PickleValue, depth: usize) -> Result<(), TorchError> {
    // tuples of the same tuples again may be of any length
    check_len(path.len())?;
    let written = match key {
        PickleValue::None => path.write_str("None"),
        PickleValue::Bool(true) => path.write_str("True"),
        PickleValue::Bool(false) => path.write_str("False"),
        PickleValue::Int(number) => write!(path, "{number}"),
        PickleValue::Float(number) => write!(path, "{number:?}"),
        PickleValue::Text(text) => {
            write_str(path, text);
            Ok(())
        }
        PickleValue::Tuple(tuple) if depth < MAX_KEY_DEPTH => {
            path.push('(');
            for (number, item) in tuple.items.iter().enumerate() {
                path.push_str(if number > 0 { ", " } else { "" });
                write_key(path, item, depth + 1)?;
            }
            path.write_str(if tuple.items.len() == 1 { ",)" } else { ")" })
        }
        other => return Err(TorchError::Key(other.kind())),
    };
    written.map_err(|_| TorchError::Key("text"))
}
