//! The names of the tensors in an object: their paths, as PyTorch people write them.
//!
//! | in Python | name |
//! |---|---|
//! | `object["model"]["layers.0.weight"]` | `model.layers.0.weight` |
//! | `object["state"][0]["exp_avg"]` | `state[0].exp_avg` |
//! | `object[1]["weight"]` | `[1].weight` |
//! | `object["model"].encoder.weight`, a module's | `model.encoder.weight` |
//!
//! A list, a dict, a tuple or an object that stands at several places is visited at the first of them, so
//! that cycles end.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write;
use std::rc::Rc;

use crate::dtype::write_str;
use crate::format::error::FormatError;

use super::error::TorchError;
use super::machine::MAX_DEPTH;
use super::tensor::TorchTensor;
use super::value::{KeptItem, PickleValue, SharedValue, TupleValue};

/// The most values that are looked at, each as often as it stands anywhere.
const MAX_VISITS: usize = 1 << 24;

/// The most bytes of all names.
const MAX_NAMES: usize = 32_000_000;

/// The most levels of tuples in a key.
const MAX_KEY_DEPTH: usize = 16;

/// Attributes of a module that leave no piece in a name.
const OF_MODULES: [&str; 3] = ["_parameters", "_buffers", "_modules"];

/// What is done with a tensor and its name; without one, it is the object itself. Of a tensor that cannot be
/// read the reason is known.
pub(super) type VisitTensor<'a> =
    &'a mut dyn FnMut(Option<&str>, Result<&TorchTensor, &TorchError>) -> Result<(), FormatError>;

/// A list, a dict or a tuple on the way to a tensor.
struct WalkLevel<'a> {
    items: WalkItems<'a>,
    /// The item that comes next.
    next: usize,
    /// How many bytes the name has that leads to it.
    path: usize,
    /// How many pieces.
    depth: usize,
    /// Whether it holds the attributes of an object.
    is_state: bool,
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
    fn next(&mut self) -> Option<(Option<Cow<'a, PickleValue>>, &'a PickleValue)> {
        let at = self.next;
        self.next += 1;
        match self.items {
            WalkItems::Kept(kept) => {
                kept.get(at).map(|KeptItem { key, value }| (key.as_ref().map(Cow::Borrowed), value))
            }
            WalkItems::Tuple(items) => {
                let key = Cow::Owned(PickleValue::Int(at as i64));
                items.get(at).map(|value| (Some(key), value))
            }
        }
    }
}

/// The lists, dicts, tuples and objects that have been visited.
struct Visited {
    shared: Vec<bool>,
    tuples: HashSet<*const TupleValue>,
}

impl Visited {
    /// Whether a value is visited for the first time.
    fn is_new(&mut self, value: &PickleValue) -> bool {
        match value {
            PickleValue::Shared(at) => {
                self.shared.get_mut(*at).is_some_and(|seen| !std::mem::replace(seen, true))
            }
            // one owner: one place
            PickleValue::Tuple(tuple) if Rc::strong_count(tuple) > 1 => {
                self.tuples.insert(Rc::as_ptr(tuple))
            }
            _ => true,
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
    let mut visited = Visited { shared: vec![false; shared.len()], tuples: HashSet::new() };
    let mut levels: Vec<WalkLevel<'_>> = Vec::new();
    let (mut value, mut depth, mut is_state) = (object, 0, false);
    loop {
        visits += 1;
        if visits > MAX_VISITS {
            return Err(TorchError::Many(MAX_VISITS).into());
        }
        let tensor = match value {
            PickleValue::Tensor(tensor) => Some(Ok(&**tensor)),
            PickleValue::Unreadable(error) => Some(Err(&**error)),
            _ => None,
        };
        if let Some(tensor) = tensor {
            names += path.len();
            check_len(names)?;
            visit((depth > 0).then_some(path.as_str()), tensor)?;
        } else if let Some(items) = WalkItems::of(value, shared)
            && visited.is_new(value)
        {
            // what leaves no piece in the name counts, too
            if depth >= MAX_DEPTH || levels.len() >= 4 * MAX_DEPTH {
                return Err(TorchError::Deep(MAX_DEPTH).into());
            }
            levels.push(WalkLevel { items, next: 0, path: path.len(), depth, is_state });
        }
        value = loop {
            let Some(level) = levels.last_mut() else { return Ok(()) };
            path.truncate(level.path);
            if let Some((key, item)) = level.next() {
                depth = level.depth;
                is_state = key.is_none();
                let of_module = |key: &PickleValue| match (key, item) {
                    (PickleValue::Text(key), PickleValue::Shared(_)) => {
                        OF_MODULES.contains(&&**key)
                    }
                    _ => false,
                };
                if let Some(key) = key.filter(|key| !level.is_state || !of_module(key)) {
                    push_key(&mut path, &key, depth == 0)?;
                    depth += 1;
                }
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
        other => path.write_str(other.kind()),
    };
    // nothing written to a text fails
    let _ = written;
    Ok(())
}
