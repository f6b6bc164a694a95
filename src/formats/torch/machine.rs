//! The machine that a pickle is a program for, as far as it makes tensors: a stack, marks in it, a memo.
//!
//! It calls nothing. A call of one of the functions of `ops` makes what that function would make, and a
//! call of anything else an opaque object, which holds its arguments. What cannot hold a tensor is forgotten
//! where it would be kept: the numbers of a list, the texts of a dict. The memo keeps only what the pickle
//! asks for again, which is known from a first reading.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::arrays::{self, Decoded};
use super::ops::{
    ElementType, Global, MAX_KEY_BYTES, Operands, PickleOp, PickleOps, Rebuild, damaged,
};
use super::value::{
    KeptItem, KeptItems, PickleValue, SharedKind, SharedValue, TorchStorage, TorchTensor,
    TupleValue, ValueWeight,
};
use super::{MAX_PICKLE, TorchError};
use crate::error::Cause;
use crate::tensor::brief;

/// The most values on the stack, in the memo, and in lists and dicts.
const MAX_VALUES: usize = 1 << 21;

/// The most numbers in the memo that are asked for.
const MAX_ASKED: usize = 1 << 19;

/// The most bytes that all values take in memory together: a pickle of few bytes may make many. A long one may have
/// a quarter of its length more: a million tensors with names of 20 bytes come to 105 MB of pickle, and take 52 MiB
/// by this count.
const MAX_BYTES: usize = 40 << 20;

/// After how many bytes of new values all that are left are weighed again.
const WEIGHED_EVERY: usize = 16 << 20;

/// The most levels of tuples in tuples, and of anything in anything.
pub(super) const MAX_DEPTH: usize = 1000;

/// The most names of classes and functions that are not understood, and are told.
const MAX_OPAQUE: usize = 1000;

/// The numbers in the memo that a pickle asks for.
pub(super) fn asked(ops: &mut PickleOps<'_>) -> Result<HashSet<u32>, Cause> {
    let mut asked = HashSet::new();
    loop {
        match ops.next_op()? {
            PickleOp::Stop => return Ok(asked),
            PickleOp::Get(number) => {
                asked.insert(number);
                if asked.len() > MAX_ASKED {
                    return Err(TorchError::Many(MAX_ASKED).into());
                }
            }
            _ => {}
        }
    }
}

pub(super) struct PickleMachine {
    stack: Vec<PickleValue>,
    /// How many values stood on the stack at each mark.
    marks: Vec<usize>,
    memo: HashMap<u32, PickleValue>,
    asked: HashSet<u32>,
    /// The most bytes that all values may take.
    most_bytes: usize,
    /// How many values have been put into the memo, those that are not kept included.
    memoized: u32,
    shared: Vec<SharedValue>,
    /// How many items all lists and dicts have.
    kept: usize,
    /// How many bytes of values have been made.
    made_bytes: usize,
    /// When all that are left are weighed.
    weighed_at: usize,
    opaque: BTreeSet<String>,
    /// The bytes of an element of each storage, where it is known.
    storages: HashMap<Rc<str>, Option<u64>>,
    keeps: Keeps,
    decoded: Decoded,
}

/// What a machine keeps besides that in which tensors are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeps {
    Nothing,
    /// The storages that are named.
    Storages,
    /// All values, the arguments and the state of objects among them.
    Values,
}

pub(super) struct Made {
    pub(super) object: PickleValue,
    /// The lists, dicts and opaque objects in it.
    pub(super) shared: Vec<SharedValue>,
    /// The names of the classes and functions that are not known.
    pub(super) opaque: BTreeSet<String>,
    /// The bytes of an element of each storage, where it is known, if that was asked for.
    pub(super) storages: HashMap<Rc<str>, Option<u64>>,
    /// The elements of arrays that were written as text.
    pub(super) decoded: Vec<u8>,
}

impl PickleMachine {
    /// A machine for a pickle of `len` bytes, or fewer, that asks for these numbers of its memo.
    pub(super) fn new(len: u64, asked: HashSet<u32>, keeps: Keeps) -> PickleMachine {
        PickleMachine {
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
            asked,
            most_bytes: MAX_BYTES + (len.min(MAX_PICKLE) / 4) as usize,
            memoized: 0,
            shared: Vec::new(),
            kept: 0,
            made_bytes: 0,
            weighed_at: WEIGHED_EVERY,
            opaque: BTreeSet::new(),
            storages: HashMap::new(),
            keeps,
            decoded: Decoded::default(),
        }
    }

    pub(super) fn run(mut self, ops: &mut PickleOps<'_>) -> Result<Made, Cause> {
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
            if values > MAX_VALUES || self.shared.len() + self.kept > MAX_VALUES {
                return Err(TorchError::Many(MAX_VALUES).into());
            }
            self.check_bytes()?;
        }
    }

    /// Refuse values that take too much memory together. Most are gone soon after they were made: what is left
    /// is weighed now and then.
    fn check_bytes(&mut self) -> Result<(), Cause> {
        self.made_bytes += size_of::<PickleValue>();
        if self.made_bytes + self.kept * size_of::<KeptItem>() < self.weighed_at {
            return Ok(());
        }
        let mut weight = ValueWeight::new(self.most_bytes);
        weight.add(self.stack.capacity() * size_of::<PickleValue>());
        weight.add(self.marks.capacity() * size_of::<usize>());
        // a table that hashes has a byte more for each place
        weight.add(self.asked.capacity() * (size_of::<u32>() + 1));
        weight.add(self.memo.capacity() * (size_of::<(u32, PickleValue)>() + 1));
        weight.add(self.shared.capacity() * size_of::<SharedValue>());
        weight.add(self.storages.capacity() * (size_of::<(Rc<str>, Option<u64>)>() + 1));
        let kept = || self.shared.iter().filter_map(|value| value.kept.as_deref());
        kept().for_each(|kept| {
            weight.add(kept.bytes());
        });
        let kept = kept().flat_map(KeptItems::others);
        let mut all = self.stack.iter().chain(self.memo.values()).chain(kept);
        if !all.all(|value| weight.add_value(value)) {
            return Err(TorchError::Large(self.most_bytes).into());
        }
        self.weighed_at = self.made_bytes + self.kept * size_of::<KeptItem>() + WEIGHED_EVERY;
        Ok(())
    }

    fn step(&mut self, op: PickleOp, ops: &PickleOps<'_>) -> Result<(), Cause> {
        match op {
            PickleOp::Push(value) => self.push_made(value),
            PickleOp::Mark => self.marks.push(self.stack.len()),
            // the last mark, where it stands above the last value
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
                self.stack.push(value.ok_or_else(|| damaged("it asks for what was not kept"))?);
            }
            PickleOp::Put(number) => self.keep(number)?,
            PickleOp::Memoize => self.keep(self.memoized)?,
            PickleOp::Global { module, name } => self.push_global(&module, &name),
            PickleOp::StackGlobal => self.stack_global()?,
            PickleOp::Call { keywords } => self.call(keywords, ops)?,
            PickleOp::Build => self.build()?,
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
            _ => return Err(damaged("the name of a class is no text")),
        }
        Ok(())
    }

    fn push_made(&mut self, value: PickleValue) {
        self.made_bytes += value.bytes();
        self.stack.push(value);
    }

    /// The last value, which must stand above the last mark.
    fn last(&self) -> Result<&PickleValue, Cause> {
        let above = self.stack.len() > self.marks.last().copied().unwrap_or(0);
        self.stack.last().filter(|_| above).ok_or_else(|| damaged("its stack is empty"))
    }

    fn pop(&mut self) -> Result<PickleValue, Cause> {
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

    /// What stands above the last mark, and the mark.
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
            return Err(TorchError::Deep(MAX_DEPTH).into());
        }
        let has_tensors = items.iter().any(PickleValue::has_tensors);
        self.push_made(PickleValue::Tuple(Rc::new(TupleValue { items, depth, has_tensors })));
        Ok(())
    }

    /// The last value for another owner. A list or a dict gets its place in the table, where both find it.
    fn shared_last(&mut self) -> Result<PickleValue, Cause> {
        let last = self.last()?.clone();
        let PickleValue::Empty(kind) = last else { return Ok(last) };
        let place = PickleValue::Shared(self.shared.len());
        self.shared.push(SharedValue::new(kind));
        self.pop()?;
        self.stack.push(place.clone());
        Ok(place)
    }

    fn push_global(&mut self, module: &str, name: &str) {
        let global = Global::find(module, name);
        if global == Global::Opaque && self.opaque.len() < MAX_OPAQUE {
            self.opaque.insert(brief(&format!("{module}.{name}")));
        }
        self.stack.push(PickleValue::Global(global));
    }

    /// The list or dict that is the last value; an object may be either, and what is passed over is none.
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

    /// Whether an item of a list, a dict or an object is kept.
    fn is_kept(&self, value: &PickleValue) -> bool {
        self.keeps == Keeps::Values || value.has_tensors()
    }

    /// Keep an item of a list, a dict or an object.
    fn keep_item(&mut self, at: usize, key: Option<PickleValue>, value: PickleValue) {
        self.kept += 1;
        self.shared[at].keep(key, value);
    }

    fn append(&mut self, items: Vec<PickleValue>) -> Result<(), Cause> {
        let Some(list) = self.last_shared(SharedKind::List)? else { return Ok(()) };
        let start = self.shared[list].len;
        self.shared[list].len += items.len() as u64;
        for (position, value) in (start..).zip(items) {
            // a list may be a pair, of which a dict is made
            let is_key =
                position == 0 && matches!(value, PickleValue::Text(_) | PickleValue::Int(_));
            if self.is_kept(&value) || is_key {
                self.keep_item(list, Some(PickleValue::Int(position as i64)), value);
            }
        }
        Ok(())
    }

    fn set_items(&mut self, items: Vec<PickleValue>) -> Result<(), Cause> {
        let Some(dict) = self.last_shared(SharedKind::Dict)? else { return Ok(()) };
        let mut items = items.into_iter();
        while let Some(key) = items.next() {
            let value = items.next().ok_or_else(|| damaged("a key has no value"))?;
            self.shared[dict].len += 1;
            if self.is_kept(&value) {
                self.keep_item(dict, Some(key), value);
            }
        }
        Ok(())
    }

    /// Set the state of what stands before it: the attributes of an opaque object. Those of a dict or of a
    /// tensor are passed over.
    fn build(&mut self) -> Result<(), Cause> {
        let state = self.pop()?;
        let object = match self.last()? {
            PickleValue::Array(array) => {
                array.build(&state);
                return Ok(());
            }
            PickleValue::ArrayDType(dtype) => {
                dtype.build(&state);
                return Ok(());
            }
            &PickleValue::Shared(at) if self.shared[at].kind == SharedKind::Object => at,
            PickleValue::Shared(_) | PickleValue::Empty(_) => return Ok(()),
            PickleValue::Tensor(_)
            | PickleValue::Unreadable(_)
            | PickleValue::Bytes(_)
            | PickleValue::Plain => return Ok(()),
            _ => return Err(damaged("it sets the state of what has none")),
        };
        match state.items() {
            // attributes in a dict, and those that have a place of their own
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
            _ if !self.is_kept(&state) => {}
            _ => {
                let is_tensor =
                    matches!(state, PickleValue::Tensor(_) | PickleValue::Unreadable(_));
                let key = is_tensor.then_some(PickleValue::Int(0));
                self.keep_item(object, key, state);
            }
        }
        Ok(())
    }

    /// Call a function, or make an instance of a class.
    fn call(&mut self, keywords: bool, ops: &PickleOps<'_>) -> Result<(), Cause> {
        let named = if keywords { Some(self.pop()?) } else { None };
        let arguments = self.pop()?;
        let function = self.pop()?;
        let Some(items) = arguments.items() else {
            return Err(damaged("it calls a function without a tuple of arguments"));
        };
        let made = match &function {
            PickleValue::Global(global @ (Global::Dict | Global::List)) => {
                let is_dict = *global == Global::Dict;
                match self.copied(is_dict, items) {
                    Some(values) => return self.push_copy(is_dict, values),
                    None => None,
                }
            }
            PickleValue::Global(Global::Plain) => Some(match items {
                // a torch.Size is a tuple
                [sizes @ PickleValue::Tuple(_)] if self.keeps == Keeps::Values => sizes.clone(),
                _ => PickleValue::Plain,
            }),
            PickleValue::Global(Global::Encode) => Some(self.encoded(items, ops)?),
            PickleValue::Global(Global::Array(call)) => Some(arrays::call(*call, items)),
            PickleValue::Global(Global::Rebuild(rebuild)) => Some(self.rebuild(*rebuild, items)),
            // (function, class, arguments, attributes)
            PickleValue::Global(Global::FromType) => match items {
                [PickleValue::Global(Global::Rebuild(by)), PickleValue::Global(_), of, _] => {
                    Some(self.rebuild(*by, of.items().unwrap_or_default()))
                }
                _ => None,
            },
            // a parameter or a variable of a tensor, as old versions have it
            PickleValue::Global(Global::TensorClass) => match items {
                [tensor @ (PickleValue::Tensor(_) | PickleValue::Unreadable(_)), ..] => {
                    Some(tensor.clone())
                }
                _ => None,
            },
            _ => None,
        };
        match made {
            Some(made) => self.push_made(made),
            None => self.push_opaque(&function, items, named),
        }
        Ok(())
    }

    /// The bytes of a text.
    fn encoded(
        &mut self,
        items: &[PickleValue],
        ops: &PickleOps<'_>,
    ) -> Result<PickleValue, Cause> {
        let [text, PickleValue::Text(encoding)] = items else { return Ok(PickleValue::Plain) };
        if !matches!(&**encoding, "latin1" | "latin-1") {
            return Ok(PickleValue::Plain);
        }
        let mut bytes = match text {
            PickleValue::Text(text) => self.decoded.add(&mut text.as_bytes(), text.len() as u64)?,
            &PickleValue::LongText { start, len } => {
                self.decoded.add(&mut ops.text_at(start), len)?
            }
            _ => return Ok(PickleValue::Plain),
        };
        if let PickleValue::Text(text) = text
            && text.len() as u64 <= MAX_KEY_BYTES
        {
            bytes.key = Some((&**text).into());
        }
        Ok(PickleValue::Bytes(Rc::new(bytes)))
    }

    /// An object of a class that is not known, or what such a function makes.
    fn push_opaque(
        &mut self,
        function: &PickleValue,
        items: &[PickleValue],
        named: Option<PickleValue>,
    ) {
        let object = self.shared.len();
        self.shared.push(SharedValue::new(SharedKind::Object));
        self.stack.push(PickleValue::Shared(object));
        let keys = (0..items.len()).map(|position| Some(PickleValue::Int(position as i64)));
        let held = [(None, function)].into_iter().chain(keys.zip(items));
        for (key, value) in held.chain(named.as_ref().map(|named| (None, named))) {
            if self.is_kept(value) {
                self.keep_item(object, key, value.clone());
            }
        }
    }

    /// What a list or a dict is made of, where that is understood: nothing, a tuple, another one, for a dict
    /// also a list of pairs. What a defaultdict makes of missing keys stands before that.
    fn copied(&self, is_dict: bool, items: &[PickleValue]) -> Option<Vec<PickleValue>> {
        let is_something =
            |item: &&PickleValue| !matches!(item, PickleValue::Global(_) | PickleValue::None);
        let at = match items.iter().find(is_something) {
            None => return Some(Vec::new()),
            Some(PickleValue::Tuple(tuple)) if !is_dict => return Some(tuple.items.clone()),
            Some(PickleValue::Shared(at)) => *at,
            Some(PickleValue::Empty(_)) => return Some(Vec::new()),
            Some(_) => return None,
        };
        let from = self.shared.get(at)?;
        let mut values = Vec::new();
        for KeptItem { key, value } in from.kept() {
            match (is_dict, from.kind, value) {
                (false, SharedKind::List, value) => values.push(value),
                (true, SharedKind::Dict, value) => values.extend([key?, value]),
                (true, SharedKind::List, PickleValue::Tuple(pair)) => {
                    let [_, _] = pair.items.as_slice() else { return None };
                    values.extend_from_slice(&pair.items);
                }
                (true, SharedKind::List, PickleValue::Shared(pair)) => {
                    let pair = self.shared.get(pair).filter(|it| it.kind == SharedKind::List)?;
                    if pair.len != 2 {
                        return None;
                    }
                    // else nothing in it is a tensor
                    if pair.kept_len() == 2 {
                        values.extend(pair.kept().map(|item| item.value));
                    }
                }
                _ => return None,
            }
        }
        Some(values)
    }

    fn push_copy(&mut self, is_dict: bool, values: Vec<PickleValue>) -> Result<(), Cause> {
        // what is copied counts, whether it is kept or not: a pickle may copy it again and again
        self.kept += values.len();
        let kind = if is_dict { SharedKind::Dict } else { SharedKind::List };
        self.stack.push(PickleValue::Empty(kind));
        match kind {
            _ if values.is_empty() => Ok(()),
            SharedKind::Dict => self.set_items(values),
            _ => self.append(values),
        }
    }

    /// What an identifier stands for: a storage, `('storage', class, key, device, elements[, view])`, or,
    /// in old files, a class, `('module', class, file, text)`.
    fn persistent(&mut self, id: &[PickleValue]) -> PickleValue {
        let [PickleValue::Text(word), class, rest @ ..] = id else { return PickleValue::Plain };
        if &**word == "module" {
            return class.clone();
        }
        let (PickleValue::Global(Global::StorageClass(elements)), "storage") = (class, &**word)
        else {
            return PickleValue::Plain;
        };
        let Some(storage) = storage(*elements, rest) else { return PickleValue::Plain };
        if self.keeps == Keeps::Storages {
            self.storages.insert(Rc::clone(&storage.key), elements.bytes());
        }
        PickleValue::Storage(Rc::new(storage))
    }

    /// What a function makes of its arguments: a tensor, or one that cannot be read.
    fn rebuild(&self, by: Rebuild, items: &[PickleValue]) -> PickleValue {
        let made = match items {
            [tensor @ (PickleValue::Tensor(_) | PickleValue::Unreadable(_)), ..]
                if matches!(by, Rebuild::Parameter | Rebuild::ParameterWithState) =>
            {
                return tensor.clone();
            }
            _ => self.rebuilt(by, items),
        };
        match made {
            Ok(tensor) => PickleValue::Tensor(tensor),
            Err(error) => PickleValue::Unreadable(Rc::new(error)),
        }
    }

    fn rebuilt(&self, by: Rebuild, items: &[PickleValue]) -> Result<Rc<[u8]>, TorchError> {
        let wrong = || TorchError::Arguments(by.name());
        let (view, rest) = items.split_at_checked(4).ok_or_else(wrong)?;
        let (dtype, metadata) = match (by, rest) {
            (Rebuild::Tensor, []) | (Rebuild::TensorV2, [_, _]) => (None, None),
            (Rebuild::TensorV2, [_, _, metadata]) => (None, Some(metadata)),
            (Rebuild::TensorV3, [_, _, dtype]) => (Some(dtype), None),
            (Rebuild::TensorV3, [_, _, dtype, metadata]) => (Some(dtype), Some(metadata)),
            (Rebuild::Quantised, _) => (None, None),
            _ => return Err(wrong()),
        };
        match metadata {
            None | Some(PickleValue::None | PickleValue::Empty(_)) => {}
            Some(PickleValue::Shared(at)) if self.shared.get(*at).is_some_and(|it| it.len == 0) => {
            }
            Some(_) => return Err(TorchError::Lazy),
        }
        let [PickleValue::Storage(storage), offset, shape, strides] = view else {
            return Err(wrong());
        };
        let elements = match dtype {
            None => storage.elements,
            Some(PickleValue::Global(Global::DType(elements))) => *elements,
            Some(_) => return Err(wrong()),
        };
        let scalar = match elements {
            ElementType::Known(scalar) if by != Rebuild::Quantised => scalar,
            other => {
                return Err(other.unnamed().map_or_else(wrong, |it| TorchError::DType(it.into())));
            }
        };
        let offset = offset.count().ok_or_else(wrong)?;
        let shape = shape.axes().ok_or_else(wrong)?;
        let strides = strides.axes().ok_or_else(wrong)?;
        if shape.len() != strides.len() {
            return Err(wrong());
        }
        let TorchStorage { key, bytes, whole, .. } = &**storage;
        let key = &**key;
        let bytes = bytes.clone();
        let whole = *whole;
        Ok(TorchTensor { key, bytes, whole, scalar, offset, shape, strides }.pack())
    }
}

/// The storage of an identifier, by what follows its class.
fn storage(elements: ElementType, rest: &[PickleValue]) -> Option<TorchStorage> {
    let [PickleValue::Text(key), _, count, view @ ..] = rest else { return None };
    // of what has no name here no byte is read
    let item = elements.bytes().unwrap_or(0);
    let whole = count.count()?.checked_mul(item)?;
    let bytes = match view {
        [] | [PickleValue::None] => 0..whole,
        // the key of the view, its first element, how many it has
        [view] => {
            let [_, first, count] = view.items()? else { return None };
            let start = first.count()?.checked_mul(item)?;
            start..start.checked_add(count.count()?.checked_mul(item)?)?
        }
        _ => return None,
    };
    Some(TorchStorage { key: Rc::clone(key), bytes, whole, elements })
}
