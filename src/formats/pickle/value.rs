//! What a pickle is made of, as far as tensors can be in it.
//!
//! Lists, dicts and opaque objects can change after they were made. They are in one table, and other values refer to them
//! by their index. So a pickle that puts a list into itself makes no cycle of owners. All other values own their items,
//! and are nested a bounded number of levels.

use std::collections::HashSet;
use std::rc::Rc;

use super::PickleError;
use super::arrays::ArrayCell;
use super::dtypes::ArrayDType;
use super::globals::Global;
use super::items::{SharedKind, SharedValue};
use super::tensors::TorchStorage;
use super::texts::{PickleBytes, TextForm};
use crate::shape::{MAX_NDIM, element_count};

/// A value on the stack, in the memo, in a list or in a dict.
#[derive(Clone, Debug)]
pub(crate) enum PickleValue {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Rc<str>),
    /// A text that is too long for a name, or no UTF-8, by its bytes in the pickle's source.
    LongText {
        start: u64,
        len: u64,
        form: TextForm,
    },
    Bytes(Rc<PickleBytes>),
    Tuple(Rc<TupleValue>),
    /// A list, a dict or an opaque object, by its index in the table.
    Shared(usize),
    /// A list or a dict that is new: nothing is in it, and nothing else can put something there.
    Empty(SharedKind),
    Global(Global),
    Storage(Rc<TorchStorage>),
    /// A [`TorchTensor`](TorchTensor), packed.
    Tensor(Rc<[u8]>),
    Unreadable(Rc<PickleError>),
    Array(Rc<ArrayCell>),
    ArrayDType(Rc<ArrayDType>),
    /// Anything that is passed over: a device, an integer of more than 64 bits.
    Plain,
}

#[derive(Debug)]
pub(crate) struct TupleValue {
    pub(crate) items: Vec<PickleValue>,
    /// How many tuples are nested in it, itself included.
    pub(crate) depth: usize,
    /// Whether a tensor may be in it.
    pub(crate) has_tensors: bool,
}

impl PickleValue {
    /// Whether the value holds a tensor or may get one, or counts as a level of nesting.
    pub(crate) fn has_tensors(&self) -> bool {
        match self {
            PickleValue::Tensor(_) | PickleValue::Unreadable(_) | PickleValue::Array(_) => true,
            PickleValue::Shared(_) | PickleValue::Empty(_) => true,
            // it may be the dtype of a field of a structure
            PickleValue::ArrayDType(_) => true,
            PickleValue::Tuple(tuple) => tuple.has_tensors,
            _ => false,
        }
    }

    /// The bytes that the value owns in memory, without the enum itself and without shared values in it.
    pub(crate) fn bytes(&self) -> usize {
        /// The counters of owners, and what the allocator adds.
        const OWNED: usize = 24;
        match self {
            PickleValue::Text(text) => OWNED + text.len(),
            PickleValue::Bytes(bytes) => {
                OWNED + size_of::<PickleBytes>() + bytes.key.as_ref().map_or(0, |key| key.len())
            }
            PickleValue::Array(array) => OWNED + array.bytes(),
            PickleValue::ArrayDType(dtype) => OWNED + dtype.bytes(),
            PickleValue::Tuple(tuple) => {
                let items = tuple.items.capacity() * size_of::<PickleValue>();
                2 * OWNED + size_of::<TupleValue>() + items
            }
            PickleValue::Storage(storage) => {
                2 * OWNED + size_of::<TorchStorage>() + storage.key.len()
            }
            PickleValue::Tensor(packed) => OWNED + packed.len(),
            PickleValue::Unreadable(_) => OWNED + size_of::<PickleError>(),
            _ => 0,
        }
    }

    /// The address of a value that has other owners too; `None` for other values.
    fn address(&self) -> Option<*const u8> {
        fn pointer<T: ?Sized>(owned: &Rc<T>) -> Option<*const u8> {
            (Rc::strong_count(owned) > 1).then(|| Rc::as_ptr(owned).cast())
        }
        match self {
            PickleValue::Text(text) => pointer(text),
            PickleValue::Tuple(tuple) => pointer(tuple),
            PickleValue::Storage(storage) => pointer(storage),
            PickleValue::Tensor(tensor) => pointer(tensor),
            PickleValue::Unreadable(error) => pointer(error),
            PickleValue::Bytes(bytes) => pointer(bytes),
            PickleValue::Array(array) => pointer(array),
            PickleValue::ArrayDType(dtype) => pointer(dtype),
            _ => None,
        }
    }

    pub(crate) fn items(&self) -> Option<&[PickleValue]> {
        match self {
            PickleValue::Tuple(tuple) => Some(&tuple.items),
            _ => None,
        }
    }

    /// A number that counts something.
    pub(crate) fn count(&self) -> Option<u64> {
        match self {
            PickleValue::Int(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// Numbers that count something, one for each axis of a tensor.
    pub(crate) fn axes(&self) -> Option<Vec<u64>> {
        let items = self.items().filter(|items| items.len() <= MAX_NDIM)?;
        items.iter().map(PickleValue::count).collect()
    }

    /// The value in words.
    pub(crate) fn described(&self, shared: &[SharedValue]) -> String {
        let several = |what: &str, len: u64| format!("{what} of {len} items");
        match self {
            PickleValue::None => "None".to_owned(),
            PickleValue::Bool(_) | PickleValue::Int(_) | PickleValue::Float(_) => {
                "a number".to_owned()
            }
            PickleValue::Text(_) | PickleValue::LongText { .. } => "a text".to_owned(),
            PickleValue::Bytes(_) => "bytes".to_owned(),
            PickleValue::Tuple(tuple) => several("a tuple", tuple.items.len() as u64),
            PickleValue::Empty(SharedKind::List) => several("a list", 0),
            PickleValue::Empty(_) => several("a dict", 0),
            PickleValue::Shared(at) => match shared.get(*at) {
                Some(SharedValue { kind: SharedKind::List, len, .. }) => several("a list", *len),
                Some(SharedValue { kind: SharedKind::Dict, len, .. }) => several("a dict", *len),
                _ => "an object".to_owned(),
            },
            PickleValue::Global(_) => "a class or a function".to_owned(),
            PickleValue::Array(array) => {
                let shape = array.objects().map(|objects| &objects.shape);
                let count = shape.map_or(0, |shape| element_count(shape).unwrap_or(u64::MAX));
                format!("an array of {count} Python objects")
            }
            _ => "a value".to_owned(),
        }
    }

    /// The word in a name for a key that is not a number, text or tuple.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            PickleValue::Tensor(_) | PickleValue::Unreadable(_) => "<tensor>",
            PickleValue::Array(_) => "<array>",
            PickleValue::Storage(_) => "<storage>",
            PickleValue::Global(_) => "<class>",
            PickleValue::Tuple(_) => "<tuple>",
            _ => "<object>",
        }
    }
}

/// The memory of values together, up to a limit; values with several owners count once.
pub(crate) struct ValueWeight {
    left: usize,
    seen: HashSet<*const u8>,
}

impl ValueWeight {
    /// Nothing yet, of so many bytes.
    pub(crate) fn new(most: usize) -> ValueWeight {
        ValueWeight { left: most, seen: HashSet::new() }
    }

    /// Add bytes; whether they fit.
    pub(crate) fn add(&mut self, bytes: usize) -> bool {
        let left = self.left.checked_sub(bytes);
        self.left = left.unwrap_or(0);
        left.is_some() && self.left > 0
    }

    /// Add a value and what is in it; whether they fit.
    pub(crate) fn add_value(&mut self, value: &PickleValue) -> bool {
        let mut levels = vec![std::slice::from_ref(value).iter()];
        while let Some(level) = levels.last_mut() {
            let Some(value) = level.next() else {
                levels.pop();
                continue;
            };
            if value.address().is_some_and(|address| !self.seen.insert(address)) {
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
