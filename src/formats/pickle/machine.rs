//! The machine that runs a pickle, as far as it makes tensors: a stack with marks, and a memo.
//!
//! The machine calls no Python function. For known functions it makes the same result itself (`calls`). A call of any
//! other function makes an opaque object, which holds the arguments. Values that cannot hold a tensor are not stored:
//! the numbers of a list, the texts of a dict. The memo stores only values that the pickle gets again, which a first
//! reading finds.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::globals::Global;
use super::items::{PackedItems, PickleItem, SharedKind, SharedValue};
use super::ops::{Operands, PickleOp, PickleOps, damaged};
use super::texts::Decoded;
use super::value::{PickleValue, TupleValue, ValueWeight};
use super::{MAX_PICKLE, PickleError};
use crate::error::Cause;
use crate::tensor::brief;

/// The most values on the stack, in the memo, and in lists and dicts.
const MAX_VALUES: usize = 1 << 21;

/// The most numbers in the memo that are asked for.
const MAX_ASKED: usize = 1 << 19;

/// The most bytes that all values may take in memory: a pickle of few bytes may make many values. A quarter of the
/// pickle's length is allowed in addition. A million tensors with names of 20 bytes are a pickle of 105 MB, and take
/// 52 MiB by this count.
const MAX_BYTES: usize = 40 << 20;

/// The memory of all values is computed again after this many bytes of new values.
const WEIGHED_EVERY: usize = 16 << 20;

/// The deepest nesting of tuples, and of values in general.
pub(crate) const MAX_DEPTH: usize = 1000;

/// The most names of unknown classes and functions that are reported.
const MAX_OPAQUE: usize = 1000;

/// The numbers in the memo that a pickle asks for.
pub(crate) fn asked(ops: &mut PickleOps<'_>) -> Result<HashSet<u32>, Cause> {
    let mut asked = HashSet::new();
    loop {
        match ops.next_op()? {
            PickleOp::Stop => return Ok(asked),
            PickleOp::Get(number) => {
                asked.insert(number);
                if asked.len() > MAX_ASKED {
                    return Err(PickleError::Many(MAX_ASKED).into());
                }
            }
            _ => {}
        }
    }
}

pub(crate) struct PickleMachine {
    pub(super) stack: Vec<PickleValue>,
    /// The number of values on the stack at each mark.
    pub(super) marks: Vec<usize>,
    pub(super) memo: HashMap<u32, PickleValue>,
    pub(super) asked: HashSet<u32>,
    /// The most bytes that all values may take.
    pub(super) most_bytes: usize,
    /// The number of values that were put into the memo, including values that are not stored.
    pub(super) memoized: u32,
    pub(super) shared: Vec<SharedValue>,
    /// The number of items of all lists and dicts.
    pub(super) items: usize,
    /// The bytes of all values that were made.
    pub(super) made_bytes: usize,
    /// The number of made bytes at which the memory of all values is computed next.
    pub(super) weighed_at: usize,
    pub(super) opaque: BTreeSet<String>,
    /// The bytes of an element of each storage, where it is known.
    pub(super) storages: HashMap<Rc<str>, Option<u64>>,
    pub(super) keeps: Keeps,
    pub(super) decoded: Decoded,
}

/// The values that a machine stores, besides values that hold tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    Nothing,
    /// Storages.
    Storages,
    /// All values, including the arguments and the state of objects.
    Values,
}

pub(crate) struct Made {
    pub(crate) object: PickleValue,
    /// The lists, dicts and opaque objects, by their numbers.
    pub(crate) shared: Vec<SharedValue>,
    /// The names of unknown classes and functions.
    pub(crate) opaque: BTreeSet<String>,
    /// The bytes of an element of each storage, if known; empty unless storages are stored ([`Keeps::Storages`]).
    pub(crate) storages: HashMap<Rc<str>, Option<u64>>,
    /// The elements of arrays that were written as text.
    pub(crate) decoded: Vec<u8>,
}

impl PickleMachine {
    /// A machine for a pickle of `len` bytes, or fewer, that asks for these numbers of its memo.
    pub(crate) fn new(
        len: u64,
        asked: HashSet<u32>,
        keeps: Keeps,
        decoded: Decoded,
    ) -> PickleMachine {
        PickleMachine {
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
            asked,
            most_bytes: MAX_BYTES + (len.min(MAX_PICKLE) / 4) as usize,
            memoized: 0,
            shared: Vec::new(),
            items: 0,
            made_bytes: 0,
            weighed_at: WEIGHED_EVERY,
            opaque: BTreeSet::new(),
            storages: HashMap::new(),
            keeps,
            decoded,
        }
    }

    pub(crate) fn run(mut self, ops: &mut PickleOps<'_>) -> Result<Made, Cause> {
        loop {
            match ops.next_op()? {
                PickleOp::Stop => {
                    let object = self.pop()?;
                    let PickleMachine { shared, opaque, storages, decoded, .. } = self;
                    let decoded = decoded.into_bytes();
                    return Ok(Made { object, shared, opaque, storages, decoded });
                }
                op => self.step(op, ops)?,
            }
            let values = self.stack.len().max(self.marks.len());
            if values > MAX_VALUES || self.shared.len() + self.items > MAX_VALUES {
                return Err(PickleError::Many(MAX_VALUES).into());
            }
            self.check_bytes()?;
        }
    }

    /// Refuse values that take too much memory together. Most values are freed soon after they were made, so the memory
    /// is computed only now and then.
    fn check_bytes(&mut self) -> Result<(), Cause> {
        self.made_bytes += size_of::<PickleValue>();
        if self.made_bytes + self.items * size_of::<PickleItem>() < self.weighed_at {
            return Ok(());
        }
        let mut weight = ValueWeight::new(self.most_bytes);
        weight.add(self.stack.capacity() * size_of::<PickleValue>());
        weight.add(self.marks.capacity() * size_of::<usize>());
        // a hash table has a byte more for each slot
        weight.add(self.asked.capacity() * (size_of::<u32>() + 1));
        weight.add(self.memo.capacity() * (size_of::<(u32, PickleValue)>() + 1));
        weight.add(self.shared.capacity() * size_of::<SharedValue>());
        weight.add(self.storages.capacity() * (size_of::<(Rc<str>, Option<u64>)>() + 1));
        let items = || self.shared.iter().filter_map(|value| value.items.as_deref());
        items().for_each(|items| {
            weight.add(items.bytes());
        });
        let items = items().flat_map(PackedItems::others);
        let mut all = self.stack.iter().chain(self.memo.values()).chain(items);
        if !all.all(|value| weight.add_value(value)) {
            return Err(PickleError::Large(self.most_bytes).into());
        }
        self.weighed_at = self.made_bytes + self.items * size_of::<PickleItem>() + WEIGHED_EVERY;
        Ok(())
    }

    fn step(&mut self, op: PickleOp, ops: &PickleOps<'_>) -> Result<(), Cause> {
        match op {
            PickleOp::Push(value) => self.push_made(value),
            PickleOp::Mark => self.marks.push(self.stack.len()),
            // a mark at the top of the stack
            PickleOp::Pop if self.marks.last() == Some(&self.stack.len()) => {
                self.marks.pop();
            }
            PickleOp::Pop => drop(self.pop()?),
            PickleOp::PopMark => drop(self.pop_mark()?),
            PickleOp::Dup => {
                let last = self.shared_last()?;
                self.stack.push(last);
            }
            PickleOp::Tuple(operands) => {
                let items = self.pop_operands(operands)?;
                self.push_tuple(items)?;
            }
            PickleOp::MarkList => {
                let items = self.pop_mark()?;
                self.stack.push(PickleValue::Empty(SharedKind::List));
                self.append(items)?;
            }
            PickleOp::MarkDict => {
                let items = self.pop_mark()?;
                self.stack.push(PickleValue::Empty(SharedKind::Dict));
                self.set_items(items)?;
            }
            PickleOp::Append(operands) => {
                let items = self.pop_operands(operands)?;
                self.append(items)?;
            }
            PickleOp::SetItems(operands) => {
                let items = self.pop_operands(operands)?;
                self.set_items(items)?;
            }
            PickleOp::Get(number) => {
                let value = self.memo.get(&number).cloned();
                self.stack.push(
                    value.ok_or_else(|| damaged("it gets a memo entry that it did not put"))?,
                );
            }
            PickleOp::Put(number) => self.keep(number)?,
            PickleOp::Memoize => self.keep(self.memoized)?,
            PickleOp::Global { module, name } => self.push_global(&module, &name),
            PickleOp::StackGlobal => self.stack_global()?,
            PickleOp::Instance { module, name } => {
                let items = self.pop_mark()?;
                self.push_global(&module, &name);
                self.push_tuple(items)?;
                self.call(false, ops)?;
            }
            PickleOp::Object => {
                let mut items = self.pop_mark()?;
                if items.is_empty() {
                    return Err(damaged("an object has no class"));
                }
                let arguments = items.split_off(1);
                self.stack.append(&mut items);
                self.push_tuple(arguments)?;
                self.call(false, ops)?;
            }
            PickleOp::Call { keywords } => self.call(keywords, ops)?,
            PickleOp::Build => self.build(ops)?,
            PickleOp::Persistent => {
                let id = self.pop()?;
                let value = self.persistent(id.items().unwrap_or_default());
                self.push_made(value);
            }
            PickleOp::Stop | PickleOp::Nothing => {}
        }
        Ok(())
    }

    fn stack_global(&mut self) -> Result<(), Cause> {
        match self.pop_some(2)?.as_slice() {
            [PickleValue::Text(module), PickleValue::Text(name)] => self.push_global(module, name),
            _ => return Err(damaged("the name of a class is not a text")),
        }
        Ok(())
    }

    pub(super) fn push_made(&mut self, value: PickleValue) {
        self.made_bytes += value.bytes();
        self.stack.push(value);
    }

    /// The last value, which must stand above the last mark.
    fn last(&self) -> Result<&PickleValue, Cause> {
        let above = self.stack.len() > self.marks.last().copied().unwrap_or(0);
        self.stack.last().filter(|_| above).ok_or_else(|| damaged("its stack is empty"))
    }

    pub(super) fn pop(&mut self) -> Result<PickleValue, Cause> {
        self.last()?;
        self.stack.pop().ok_or_else(|| damaged("its stack is empty"))
    }

    fn pop_operands(&mut self, operands: Operands) -> Result<Vec<PickleValue>, Cause> {
        match operands {
            Operands::Last(count) => self.pop_some(count),
            Operands::ToMark => self.pop_mark(),
        }
    }

    fn pop_some(&mut self, count: usize) -> Result<Vec<PickleValue>, Cause> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.len().checked_sub(count).filter(|&start| start >= floor) {
            Some(start) => Ok(self.stack.split_off(start)),
            None => Err(damaged("its stack is empty")),
        }
    }

    /// Take the values above the last mark, and the mark.
    fn pop_mark(&mut self) -> Result<Vec<PickleValue>, Cause> {
        let mark = self.marks.pop().ok_or_else(|| damaged("a mark is missing"))?;
        Ok(self.stack.split_off(mark.min(self.stack.len())))
    }

    fn keep(&mut self, number: u32) -> Result<(), Cause> {
        self.last()?;
        self.memoized = self.memoized.saturating_add(1);
        if self.asked.contains(&number) {
            let value = self.shared_last()?;
            self.memo.insert(number, value);
        }
        Ok(())
    }

    fn push_tuple(&mut self, items: Vec<PickleValue>) -> Result<(), Cause> {
        let depth = |item: &PickleValue| match item {
            PickleValue::Tuple(tuple) => tuple.depth,
            _ => 0,
        };
        let depth = 1 + items.iter().map(depth).max().unwrap_or(0);
        if depth > MAX_DEPTH {
            return Err(PickleError::Deep(MAX_DEPTH).into());
        }
        let has_tensors = items.iter().any(PickleValue::has_tensors);
        self.push_made(PickleValue::Tuple(Rc::new(TupleValue { items, depth, has_tensors })));
        Ok(())
    }

    /// The last value for another owner. A list or a dict goes into the table, where both owners find it.
    fn shared_last(&mut self) -> Result<PickleValue, Cause> {
        let last = self.last()?.clone();
        let PickleValue::Empty(kind) = last else { return Ok(last) };
        let shared = PickleValue::Shared(self.shared.len());
        self.shared.push(SharedValue::new(kind));
        self.pop()?;
        self.stack.push(shared.clone());
        Ok(shared)
    }

    fn push_global(&mut self, module: &str, name: &str) {
        let global = Global::find(module, name);
        if global == Global::Opaque && self.opaque.len() < MAX_OPAQUE {
            self.opaque.insert(brief(&format!("{module}.{name}")));
        }
        self.stack.push(PickleValue::Global(global));
    }

    /// The number of the last value, if it is a list or dict (or an object, which may be either); `None` for values that
    /// are not stored.
    fn last_shared(&mut self, kind: SharedKind) -> Result<Option<usize>, Cause> {
        match self.shared_last()? {
            PickleValue::Shared(at)
                if [kind, SharedKind::Object].contains(&self.shared[at].kind) =>
            {
                Ok(Some(at))
            }
            PickleValue::Plain | PickleValue::LongText { .. } | PickleValue::Bytes(_) => Ok(None),
            _ if kind == SharedKind::Dict => Err(damaged("it sets items of no dict")),
            _ => Err(damaged("it appends to no list")),
        }
    }

    /// Whether an item of a list, a dict or an object is stored: it may hold tensors, or all values are stored.
    pub(super) fn may_hold_tensors(&self, value: &PickleValue) -> bool {
        self.keeps == Keeps::Values || value.has_tensors()
    }

    /// Store an item of a list, a dict or an object.
    pub(super) fn keep_item(&mut self, at: usize, key: Option<PickleValue>, value: PickleValue) {
        self.items += 1;
        self.shared[at].keep(key, value);
    }

    pub(super) fn append(&mut self, items: Vec<PickleValue>) -> Result<(), Cause> {
        let Some(list) = self.last_shared(SharedKind::List)? else { return Ok(()) };
        let start = self.shared[list].len;
        self.shared[list].len += items.len() as u64;
        for (position, value) in (start..).zip(items) {
            // a list may be a pair (key, value), of which a dict is made
            let is_key =
                position == 0 && matches!(value, PickleValue::Text(_) | PickleValue::Int(_));
            if self.may_hold_tensors(&value) || is_key {
                self.keep_item(list, Some(PickleValue::Int(position as i64)), value);
            }
        }
        Ok(())
    }

    pub(super) fn set_items(&mut self, items: Vec<PickleValue>) -> Result<(), Cause> {
        let Some(dict) = self.last_shared(SharedKind::Dict)? else { return Ok(()) };
        let mut items = items.into_iter();
        while let Some(key) = items.next() {
            let value = items.next().ok_or_else(|| damaged("a key has no value"))?;
            self.shared[dict].len += 1;
            if self.may_hold_tensors(&value) {
                self.keep_item(dict, Some(key), value);
            }
        }
        Ok(())
    }

    /// Set the state of the value below it on the stack: the attributes of an opaque object. Attributes of a dict or of a
    /// tensor are ignored.
    fn build(&mut self, ops: &PickleOps<'_>) -> Result<(), Cause> {
        let state = self.pop()?;
        let object = match self.last()? {
            PickleValue::Array(array) => {
                let array = Rc::clone(array);
                return array.build(&state, &mut |bytes| self.bytes_of(bytes, ops));
            }
            PickleValue::ArrayDType(dtype) => {
                let dtype = Rc::clone(dtype);
                self.items += dtype.build(&state, &self.shared);
                self.made_bytes += dtype.bytes();
                return Ok(());
            }
            &PickleValue::Shared(at) if self.shared[at].kind == SharedKind::Object => at,
            PickleValue::Shared(_) | PickleValue::Empty(_) => return Ok(()),
            PickleValue::Tensor(_)
            | PickleValue::Unreadable(_)
            | PickleValue::Bytes(_)
            | PickleValue::Plain => return Ok(()),
            _ => return Err(damaged("it sets the state of an object that has none")),
        };
        match state.items() {
            // (a dict of attributes, a dict of attributes in slots)
            Some(
                both @ [
                    PickleValue::None | PickleValue::Shared(_) | PickleValue::Empty(_),
                    PickleValue::Shared(_) | PickleValue::Empty(_),
                ],
            ) => {
                for value in both.iter().filter(|value| value.has_tensors()) {
                    self.keep_item(object, None, value.clone());
                }
            }
            _ if !self.may_hold_tensors(&state) => {}
            _ => {
                let is_tensor =
                    matches!(state, PickleValue::Tensor(_) | PickleValue::Unreadable(_));
                let key = is_tensor.then_some(PickleValue::Int(0));
                self.keep_item(object, key, state);
            }
        }
        Ok(())
    }
}
