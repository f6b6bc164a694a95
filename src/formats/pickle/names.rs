//! The names of the tensors in an object: their paths, as PyTorch users write them.
//!
//! | in Python | name |
//! |---|---|
//! | `object["model"]["layers.0.weight"]` | `model.layers.0.weight` |
//! | `object["state"][0]["exp_avg"]` | `state[0].exp_avg` |
//! | `object[1]["weight"]` | `[1].weight` |
//! | `object["model"].encoder.weight`, a module's | `model.encoder.weight` |
//!
//! A list, a dict, a tuple or an object that occurs several times is visited at its first occurrence, so
//! that cycles end.

use std::collections::HashMap;
use std::fmt::Write;
use std::rc::Rc;

use super::PickleError;
use super::arrays::NumpyArray;
use super::items::{PackedItems, PickleItem, RemainingItems, SharedValue};
use super::machine::MAX_DEPTH;
use super::tensors::TorchTensor;
use super::value::{PickleValue, TupleValue};
use crate::dtype::write_str;
use crate::error::Cause;

/// The most values that are visited; a value counts once for each occurrence.
const MAX_VISITS: usize = 1 << 24;

const MAX_NAMES: usize = 32_000_000;

/// The most levels of tuples in a key.
const MAX_KEY_DEPTH: usize = 16;

/// Attributes of a module that add nothing to a name.
const OF_MODULES: [&str; 3] = ["_parameters", "_buffers", "_modules"];

/// A visitor of a tensor and its name; no name means that the tensor is the whole object. For an unreadable tensor the
/// visitor gets the reason.
pub(crate) type VisitTensor<'a> =
    &'a mut dyn FnMut(Option<&str>, Result<FoundTensor<'_>, PickleError>) -> Result<(), Cause>;

/// A tensor of PyTorch, or an array of NumPy.
pub(crate) enum FoundTensor<'a> {
    Torch(TorchTensor<'a>),
    Numpy(&'a NumpyArray),
}

/// A list, a dict or a tuple on the way to a tensor.
struct WalkLevel {
    items: WalkItems,
    /// The length of its name, in bytes.
    path: usize,
    depth: usize,
    /// Whether it holds the attributes of an object.
    is_state: bool,
}

/// The rest of a list, dict or tuple during a walk.
enum WalkItems {
    Items(RemainingItems),
    Tuple(Rc<TupleValue>, usize),
}

impl Iterator for WalkItems {
    type Item = PickleItem;

    fn next(&mut self) -> Option<PickleItem> {
        match self {
            WalkItems::Items(items) => items.next(),
            WalkItems::Tuple(tuple, next) => {
                let value = match Rc::get_mut(tuple) {
                    Some(own) => std::mem::replace(own.items.get_mut(*next)?, PickleValue::None),
                    None => tuple.items.get(*next)?.clone(),
                };
                let key = Some(PickleValue::Int(*next as i64));
                *next += 1;
                Some(PickleItem { key, value })
            }
        }
    }
}

/// The lists, dicts and objects that were not visited yet, and the tuples that were.
struct Unvisited {
    shared: Vec<SharedValue>,
    tuples: HashMap<*const TupleValue, Rc<TupleValue>>,
}

impl Unvisited {
    /// The items of a value that may hold tensors; `None` if the value was visited before.
    fn take(&mut self, value: PickleValue) -> Option<WalkItems> {
        match value {
            PickleValue::Shared(at) => {
                let shared = self.shared.get_mut(at)?;
                if std::mem::replace(&mut shared.is_visited, true) {
                    return None;
                }
                Some(WalkItems::Items(shared.items.take().unwrap_or_default().into_iter()))
            }
            PickleValue::Empty(_) => Some(WalkItems::Items(PackedItems::default().into_iter())),
            PickleValue::Tuple(tuple) if tuple.has_tensors => {
                // one owner: one occurrence
                let is_new = Rc::strong_count(&tuple) == 1
                    // others stay, so that no other value gets the same address
                    || self.tuples.insert(Rc::as_ptr(&tuple), Rc::clone(&tuple)).is_none();
                is_new.then_some(WalkItems::Tuple(tuple, 0))
            }
            _ => None,
        }
    }
}

/// Visit all tensors in an object, in order; `shared` has its lists and dicts. If the object is the list of an array's
/// objects, `axes` is the shape of the array. Visited values are freed.
pub(crate) fn visit_tensors(
    object: PickleValue,
    axes: Vec<u64>,
    shared: Vec<SharedValue>,
    visit: VisitTensor<'_>,
) -> Result<(), Cause> {
    let mut unvisited = Unvisited { shared, tuples: HashMap::new() };
    let mut walk = NameWalk { axes, ..NameWalk::default() };
    let mut visits = 0;
    let mut names = 0;
    let mut next = Some(object);
    while let Some(value) = next {
        visits += 1;
        if visits > MAX_VISITS {
            return Err(PickleError::Many(MAX_VISITS).into());
        }
        let tensor = match &value {
            PickleValue::Tensor(packed) => {
                Some(Ok(FoundTensor::Torch(TorchTensor::unpack(packed))))
            }
            PickleValue::Array(array) => Some(array.get().map(FoundTensor::Numpy)),
            PickleValue::Unreadable(error) => Some(Err((**error).clone())),
            _ => None,
        };
        if let Some(tensor) = tensor {
            names += walk.path.len();
            check_len(names)?;
            visit((walk.depth > 0).then_some(walk.path.as_str()), tensor)?;
        } else if let Some(items) = unvisited.take(value) {
            walk.enter(items)?;
        }
        next = walk.next()?;
    }
    Ok(())
}

/// The state of a walk through an object: the value to which the path leads.
#[derive(Default)]
struct NameWalk {
    axes: Vec<u64>,
    levels: Vec<WalkLevel>,
    path: String,
    depth: usize,
    /// Whether the value holds the attributes of an object.
    is_state: bool,
}

impl NameWalk {
    /// Enter the value, which has these items.
    fn enter(&mut self, items: WalkItems) -> Result<(), PickleError> {
        let NameWalk { ref path, depth, is_state, .. } = *self;
        // levels that add nothing to the name count, too
        if depth >= MAX_DEPTH || self.levels.len() >= 4 * MAX_DEPTH {
            return Err(PickleError::Deep(MAX_DEPTH));
        }
        self.levels.push(WalkLevel { items, path: path.len(), depth, is_state });
        Ok(())
    }

    /// Step to the next value; `None` at the end.
    fn next(&mut self) -> Result<Option<PickleValue>, PickleError> {
        loop {
            let Some(level) = self.levels.last_mut() else { return Ok(None) };
            self.path.truncate(level.path);
            let Some(PickleItem { key, value }) = level.items.next() else {
                self.levels.pop();
                continue;
            };
            self.depth = level.depth;
            self.is_state = key.is_none();
            let of_module = |key: &PickleValue| match (key, &value) {
                (PickleValue::Text(key), PickleValue::Shared(_)) => OF_MODULES.contains(&&**key),
                _ => false,
            };
            if let Some(key) = key.filter(|key| !level.is_state || !of_module(key)) {
                let is_first = self.depth == 0;
                match key {
                    PickleValue::Int(at) if is_first && self.axes.len() > 1 => {
                        let index = position(at as u64, &self.axes);
                        self.path.push_str(&format!("{index:?}"));
                    }
                    key => push_key(&mut self.path, &key, is_first)?,
                }
                self.depth += 1;
            }
            return Ok(Some(value));
        }
    }
}

/// The position of an object in an array of these lengths, by its number in C order.
fn position(number: u64, axes: &[u64]) -> Vec<u64> {
    let mut left = number;
    let mut position: Vec<u64> = axes
        .iter()
        .rev()
        .map(|&len| {
            let at = left % len.max(1);
            left /= len.max(1);
            at
        })
        .collect();
    position.reverse();
    position
}

/// Append a key to a path; `is_first` if the path is empty so far.
fn push_key(path: &mut String, key: &PickleValue, is_first: bool) -> Result<(), PickleError> {
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

/// Refuse a name of more bytes than all names together may have.
fn check_len(len: usize) -> Result<(), PickleError> {
    if len > MAX_NAMES { Err(PickleError::Names(MAX_NAMES)) } else { Ok(()) }
}

/// Write a key that is not a text, as Python's `repr` does.
fn write_key(path: &mut String, key: &PickleValue, depth: usize) -> Result<(), PickleError> {
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
        PickleValue::Bytes(bytes) if bytes.key.is_some() => {
            let text = bytes.key.as_deref().unwrap_or_default();
            let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
            path.extend(['b', quote]);
            for char in text.chars() {
                match char {
                    '\t' => path.push_str("\\t"),
                    '\n' => path.push_str("\\n"),
                    '\r' => path.push_str("\\r"),
                    '\\' => path.push_str("\\\\"),
                    char if char == quote => path.extend(['\\', char]),
                    ' '..='~' => path.push(char),
                    // nothing written to a text fails
                    char => {
                        let _ = write!(path, "\\x{:02x}", u32::from(char));
                    }
                }
            }
            path.push(quote);
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
