//! What a pickle of torch.save is made of, as far as tensors can be in it.
//!
//! Values that change after they were made, lists, dicts and opaque objects, are kept in one table and
//! named by their place in it, so that a pickle that puts a list into itself makes no circle of owners.
//! All others own what is in them, and are nested a bounded number of levels.

use std::collections::HashSet;
use std::rc::Rc;

use crate::shape::MAX_NDIM;

use super::error::TorchError;
use super::globals::Global;
use super::tensor::{TorchStorage, TorchTensor};

/// A value on the stack, in the memo, in a list or in a dict.
#[derive(Clone, Debug)]
pub(super) enum PickleValue {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Rc<str>),
    Tuple(Rc<TupleValue>),
    /// A list, a dict or an opaque object, by its place in the table.
    Shared(usize),
    Global(Global),
    Storage(Rc<TorchStorage>),
    Tensor(Rc<TorchTensor>),
    /// A tensor that cannot be read.
    Unreadable(Rc<TorchError>),
    /// Anything that is passed over: bytes, a device, a long text, an integer of more than 64 bits.
    Plain,
}

/// The items of a tuple.
#[derive(Debug)]
pub(super) struct TupleValue {
    pub(super) items: Vec<PickleValue>,
    /// How many tuples are nested in it, itself included.
    pub(super) depth: usize,
    /// Whether a tensor may be in it.
    pub(super) has_tensors: bool,
}

/// A list, a dict or an opaque object. Of its items only those are kept in which tensors may be, and the
/// key of a pair in a list of such.
#[derive(Debug)]
pub(super) struct SharedValue {
    pub(super) kind: SharedKind,
    /// How many items it has.
    pub(super) len: u64,
    pub(super) kept: Vec<KeptItem>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SharedKind {
    List,
    Dict,
    /// What a class or a function makes that is not known: its arguments, its state, and what is put
    /// into it.
    Object,
}

/// An item of a list, with its position, or of a dict.
#[derive(Clone, Debug)]
pub(super) struct KeptItem {
    /// Without one, `value` holds the attributes of an object.
    pub(super) key: Option<PickleValue>,
    pub(super) value: PickleValue,
}

impl PickleValue {
    /// Whether a tensor is in it, or may come into it.
    pub(super) fn has_tensors(&self) -> bool {
        match self {
            PickleValue::Tensor(_) | PickleValue::Unreadable(_) | PickleValue::Shared(_) => true,
            PickleValue::Tuple(tuple) => tuple.has_tensors,
            _ => false,
        }
    }

    /// The bytes of its own in memory, besides its place among others and what it holds of these.
    pub(super) fn bytes(&self) -> usize {
        /// The counters of owners, and what the allocator adds.
        const OWNED: usize = 24;
        match self {
            PickleValue::Text(text) => OWNED + text.len(),
            PickleValue::Tuple(tuple) => {
                let items = tuple.items.capacity() * size_of::<PickleValue>();
                2 * OWNED + size_of::<TupleValue>() + items
            }
            PickleValue::Storage(storage) => {
                2 * OWNED + size_of::<TorchStorage>() + storage.key.len()
            }
            PickleValue::Tensor(tensor) => {
                let axes = 2 * tensor.shape.len() * size_of::<u64>();
                let storage = 2 * OWNED + size_of::<TorchStorage>() + tensor.storage.key.len();
                3 * OWNED + size_of::<TorchTensor>() + axes + storage
            }
            PickleValue::Unreadable(_) => OWNED + size_of::<TorchError>(),
            _ => 0,
        }
    }

    /// Where it is, if it may have other owners.
    fn shared_place(&self) -> Option<*const u8> {
        fn place<T: ?Sized>(owned: &Rc<T>) -> Option<*const u8> {
            (Rc::strong_count(owned) > 1).then(|| Rc::as_ptr(owned).cast())
        }
        match self {
            PickleValue::Text(text) => place(text),
            PickleValue::Tuple(tuple) => place(tuple),
            PickleValue::Storage(storage) => place(storage),
            PickleValue::Tensor(tensor) => place(tensor),
            PickleValue::Unreadable(error) => place(error),
            _ => None,
        }
    }

    /// The items of a tuple.
    pub(super) fn items(&self) -> Option<&[PickleValue]> {
        match self {
            PickleValue::Tuple(tuple) => Some(&tuple.items),
            _ => None,
        }
    }

    /// A number that counts something.
    pub(super) fn count(&self) -> Option<u64> {
        match self {
            PickleValue::Int(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// Numbers that count something, one for each axis of a tensor.
    pub(super) fn axes(&self) -> Option<Box<[u64]>> {
        let items = self.items().filter(|items| items.len() <= MAX_NDIM)?;
        items.iter().map(PickleValue::count).collect()
    }

    /// What stands in a name for a key that is no number, text or tuple.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            PickleValue::Tensor(_) | PickleValue::Unreadable(_) => "<tensor>",
            PickleValue::Storage(_) => "<storage>",
            PickleValue::Global(_) => "<class>",
            PickleValue::Tuple(_) => "<tuple>",
            _ => "<object>",
        }
    }
}

/// What values take in memory together, up to a limit; those of several owners once.
pub(super) struct ValueWeight {
    left: usize,
    seen: HashSet<*const u8>,
}

impl ValueWeight {
    /// Nothing yet, of so many bytes.
    pub(super) fn new(most: usize) -> ValueWeight {
        ValueWeight { left: most, seen: HashSet::new() }
    }

    /// Add bytes; whether they fit.
    pub(super) fn add(&mut self, bytes: usize) -> bool {
        let left = self.left.checked_sub(bytes);
        self.left = left.unwrap_or(0);
        left.is_some() && self.left > 0
    }

    /// Add a value and what is in it; whether they fit.
    pub(super) fn add_value(&mut self, value: &PickleValue) -> bool {
        let mut levels = vec![std::slice::from_ref(value).iter()];
        while let Some(level) = levels.last_mut() {
            let Some(value) = level.next() else {
                levels.pop();
                continue;
            };
            if value.shared_place().is_some_and(|place| !self.seen.insert(place)) {
                continue;
            }
            if !self.add(value.bytes()) {
                return false;
            }
            if let PickleValue::Tuple(tuple) = value {
                levels.push(tuple.items.iter());
            }
        }
        true
    }
}
