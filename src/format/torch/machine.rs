//! The machine that a pickle is a program for, as far as it makes tensors: a stack, marks in it, a memo.
//!
//! It calls nothing. A call of one of the functions of `globals` makes what that function would make, and a
//! call of anything else is an error that names it. What cannot hold a tensor is forgotten where it would
//! be kept: the numbers of a list, the texts of a dict. The memo keeps only what the pickle asks for
//! again, which is known from a first reading.

use std::collections::{HashMap, HashSet};
use std::io::BufRead;
use std::rc::Rc;

use crate::format::error::FormatError;

use super::error::TorchError;
use super::globals::{Global, Rebuild};
use super::ops::{PickleOp, PickleOps, damaged};
use super::tensor::{TorchStorage, TorchTensor};
use super::value::{KeptItem, PickleValue, SharedValue, TupleValue};

/// The most values on the stack, in the memo, and in lists and dicts.
const MAX_VALUES: usize = 1 << 21;

/// The most levels of tuples in tuples, and of anything in anything.
pub(super) const MAX_DEPTH: usize = 1000;

/// The numbers in the memo that a pickle asks for.
pub(super) fn asked<R: BufRead>(ops: &mut PickleOps<R>) -> Result<HashSet<u32>, FormatError> {
    let mut asked = HashSet::new();
    loop {
        match ops.next_op()? {
            PickleOp::Stop => return Ok(asked),
            PickleOp::Get(number) => {
                asked.insert(number);
                if asked.len() > MAX_VALUES {
                    return Err(TorchError::Many(MAX_VALUES).into());
                }
            }
            _ => {}
        }
    }
}

/// The machine.
pub(super) struct PickleMachine {
    stack: Vec<PickleValue>,
    /// How many values stood on the stack at each mark.
    marks: Vec<usize>,
    memo: HashMap<u32, PickleValue>,
    asked: HashSet<u32>,
    /// How many values have been put into the memo, those that are not kept included.
    memoized: u32,
    shared: Vec<SharedValue>,
    /// How many items all lists and dicts have.
    kept: usize,
}

impl PickleMachine {
    /// One that keeps these numbers of its memo.
    pub(super) fn new(asked: HashSet<u32>) -> PickleMachine {
        PickleMachine {
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
            asked,
            memoized: 0,
            shared: Vec::new(),
            kept: 0,
        }
    }

    /// Run to the end; returns the object, and the lists and dicts in it.
    pub(super) fn run<R: BufRead>(
        mut self,
        ops: &mut PickleOps<R>,
    ) -> Result<(PickleValue, Vec<SharedValue>), FormatError> {
        loop {
            match ops.next_op()? {
                PickleOp::Stop => return Ok((self.pop()?, self.shared)),
                op => self.step(op)?,
            }
            let values = self.stack.len().max(self.marks.len());
            if values > MAX_VALUES || self.shared.len() + self.kept > MAX_VALUES {
                return Err(TorchError::Many(MAX_VALUES).into());
            }
        }
    }

    fn step(&mut self, op: PickleOp) -> Result<(), FormatError> {
        match op {
            PickleOp::Push(value) => self.stack.push(value),
            PickleOp::EmptyTuple => self.push_tuple(Vec::new())?,
            PickleOp::EmptyList => self.push_shared(false),
            PickleOp::EmptyDict => self.push_shared(true),
            PickleOp::Mark => self.marks.push(self.stack.len()),
            // the last mark, where it stands above the last value
            PickleOp::Pop if self.marks.last() == Some(&self.stack.len()) => {
                self.marks.pop();
            }
            PickleOp::Pop => drop(self.pop()?),
            PickleOp::PopMark => drop(self.pop_mark()?),
            PickleOp::Dup => {
                let last = self.last()?.clone();
                self.stack.push(last);
            }
            PickleOp::Tuple(count) => {
                let items = self.pop_some(count)?;
                self.push_tuple(items)?;
            }
            PickleOp::MarkTuple => {
                let items = self.pop_mark()?;
                self.push_tuple(items)?;
            }
            PickleOp::MarkList => {
                let items = self.pop_mark()?;
                self.push_shared(false);
                self.append(items)?;
            }
            PickleOp::MarkDict => {
                let items = self.pop_mark()?;
                self.push_shared(true);
                self.set_items(items)?;
            }
            PickleOp::Append => {
                let items = self.pop_some(1)?;
                self.append(items)?;
            }
            PickleOp::Appends => {
                let items = self.pop_mark()?;
                self.append(items)?;
            }
            PickleOp::SetItem => {
                let items = self.pop_some(2)?;
                self.set_items(items)?;
            }
            PickleOp::SetItems => {
                let items = self.pop_mark()?;
                self.set_items(items)?;
            }
            PickleOp::Get(number) => {
                let value = self.memo.get(&number).cloned();
                self.stack.push(value.ok_or_else(|| damaged("it asks for what was not kept"))?);
            }
            PickleOp::Put(number) => self.keep(number)?,
            PickleOp::Memoize => self.keep(self.memoized)?,
            PickleOp::Global { module, name } => self.push_global(&module, &name)?,
            PickleOp::StackGlobal => match self.pop_some(2)?.as_slice() {
                [PickleValue::Text(module), PickleValue::Text(name)] => {
                    self.push_global(module, name)?;
                }
                _ => return Err(damaged("the name of a class is no text")),
            },
            PickleOp::Call { keywords } => self.call(keywords)?,
            PickleOp::Build => self.build()?,
            PickleOp::Persistent => {
                let id = self.pop()?;
                let storage = id
                    .items()
                    .and_then(storage)
                    .ok_or_else(|| damaged("a persistent identifier is not that of a storage"))?;
                self.stack.push(PickleValue::Storage(Rc::new(storage)));
            }
            PickleOp::Stop | PickleOp::Nothing => {}
        }
        Ok(())
    }

    /// The last value, which must stand above the last mark.
    fn last(&self) -> Result<&PickleValue, FormatError> {
        let above = self.stack.len() > self.marks.last().copied().unwrap_or(0);
        self.stack.last().filter(|_| above).ok_or_else(|| damaged("its stack is empty"))
    }

    fn pop(&mut self) -> Result<PickleValue, FormatError> {
        self.last()?;
        self.stack.pop().ok_or_else(|| damaged("its stack is empty"))
    }

    /// The last values.
    fn pop_some(&mut self, count: usize) -> Result<Vec<PickleValue>, FormatError> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.len().checked_sub(count).filter(|&start| start >= floor) {
            Some(start) => Ok(self.stack.split_off(start)),
            None => Err(damaged("its stack is empty")),
        }
    }

    /// What stands above the last mark, and the mark.
    fn pop_mark(&mut self) -> Result<Vec<PickleValue>, FormatError> {
        let mark = self.marks.pop().ok_or_else(|| damaged("a mark is missing"))?;
        Ok(self.stack.split_off(mark.min(self.stack.len())))
    }

    fn keep(&mut self, number: u32) -> Result<(), FormatError> {
        let value = self.last()?.clone();
        self.memoized = self.memoized.saturating_add(1);
        if self.asked.contains(&number) {
            self.memo.insert(number, value);
        }
        Ok(())
    }

    fn push_tuple(&mut self, items: Vec<PickleValue>) -> Result<(), FormatError> {
        let depth = |item: &PickleValue| match item {
            PickleValue::Tuple(tuple) => tuple.depth,
            _ => 0,
        };
        let depth = 1 + items.iter().map(depth).max().unwrap_or(0);
        if depth > MAX_DEPTH {
            return Err(TorchError::Deep(MAX_DEPTH).into());
        }
        let has_tensors = items.iter().any(PickleValue::has_tensors);
        self.stack.push(PickleValue::Tuple(Rc::new(TupleValue { items, depth, has_tensors })));
        Ok(())
    }

    /// An empty list, or an empty dict.
    fn push_shared(&mut self, is_dict: bool) {
        self.stack.push(PickleValue::Shared(self.shared.len()));
        self.shared.push(SharedValue { is_dict, len: 0, kept: Vec::new() });
    }

    fn push_global(&mut self, module: &str, name: &str) -> Result<(), FormatError> {
        let global = Global::find(module, name);
        let global = global.ok_or_else(|| TorchError::Unknown(format!("{module}.{name}")))?;
        self.stack.push(PickleValue::Global(global));
        Ok(())
    }

    /// The list that is the last value, or the dict.
    fn last_shared(&mut self, is_dict: bool) -> Result<&mut SharedValue, FormatError> {
        let last = match self.last()? {
            &PickleValue::Shared(at) => self.shared.get_mut(at),
            _ => None,
        };
        let wrong = if is_dict { "it sets items of no dict" } else { "it appends to no list" };
        last.filter(|last| last.is_dict == is_dict).ok_or_else(|| damaged(wrong))
    }

    fn append(&mut self, items: Vec<PickleValue>) -> Result<(), FormatError> {
        let list = self.last_shared(false)?;
        let (before, start) = (list.kept.len(), list.len);
        list.len += items.len() as u64;
        for (position, value) in (start..).zip(items) {
            if value.has_tensors() {
                list.kept.push(KeptItem { key: PickleValue::Int(position as i64), value });
            }
        }
        let more = list.kept.len() - before;
        self.kept += more;
        Ok(())
    }

    fn set_items(&mut self, items: Vec<PickleValue>) -> Result<(), FormatError> {
        let dict = self.last_shared(true)?;
        let before = dict.kept.len();
        let mut items = items.into_iter();
        while let Some(key) = items.next() {
            let value = items.next().ok_or_else(|| damaged("a key has no value"))?;
            dict.len += 1;
            if value.has_tensors() {
                dict.kept.push(KeptItem { key, value });
            }
        }
        let more = dict.kept.len() - before;
        self.kept += more;
        Ok(())
    }

    /// Set the state of what stands before it: the attributes of a dict, or of a tensor, are passed over.
    fn build(&mut self) -> Result<(), FormatError> {
        self.pop()?;
        match self.last()? {
            PickleValue::Shared(_) | PickleValue::Tensor(_) | PickleValue::Plain => Ok(()),
            _ => Err(damaged("it sets the state of what has none")),
        }
    }

    /// Call a function, or make an instance of a class.
    fn call(&mut self, keywords: bool) -> Result<(), FormatError> {
        if keywords {
            self.pop()?;
        }
        let (arguments, function) = (self.pop()?, self.pop()?);
        let (PickleValue::Global(global), Some(items)) = (function, arguments.items()) else {
            return Err(damaged("it calls what is no function"));
        };
        let made = match global {
            Global::Dict | Global::List => return self.copy(global == Global::Dict, items),
            Global::Plain => PickleValue::Plain,
            Global::Rebuild(rebuild) => self.rebuild(rebuild, items)?,
            // (function, class, arguments, attributes)
            Global::FromType => match items {
                [
                    PickleValue::Global(Global::Rebuild(rebuild)),
                    PickleValue::Global(Global::TensorClass),
                    arguments,
                    _,
                ] => self.rebuild(*rebuild, arguments.items().unwrap_or_default())?,
                _ => {
                    return Err(TorchError::Arguments("torch._tensor._rebuild_from_type_v2").into());
                }
            },
            Global::TensorClass | Global::StorageClass(_) | Global::DType(_) => {
                return Err(damaged("it calls what is no function"));
            }
        };
        self.stack.push(made);
        Ok(())
    }

    /// A list or a dict of what it is made of, where that is something: a tuple, another one, for a dict
    /// also a list of pairs. What a defaultdict makes of missing keys stands before that.
    fn copy(&mut self, is_dict: bool, items: &[PickleValue]) -> Result<(), FormatError> {
        let wrong = || TorchError::Arguments(if is_dict { "dict" } else { "list" });
        let mut values = Vec::new();
        match items.iter().find(|item| !matches!(item, PickleValue::Global(_) | PickleValue::None))
        {
            None => {}
            Some(PickleValue::Tuple(tuple)) if !is_dict => values.extend_from_slice(&tuple.items),
            Some(PickleValue::Shared(at)) => {
                let from = self.shared.get(*at).filter(|from| is_dict || !from.is_dict);
                for KeptItem { key, value } in &from.ok_or_else(wrong)?.kept {
                    match (is_dict, value.items()) {
                        (false, _) => values.push(value.clone()),
                        (true, _) if self.shared[*at].is_dict => {
                            values.extend([key.clone(), value.clone()]);
                        }
                        (true, Some(pair @ [_, _])) => values.extend_from_slice(pair),
                        (true, _) => return Err(wrong().into()),
                    }
                }
            }
            Some(_) => return Err(wrong().into()),
        }
        // what is copied counts, whether it is kept or not: a pickle may copy it again and again
        self.kept += values.len();
        self.push_shared(is_dict);
        if is_dict { self.set_items(values) } else { self.append(values) }
    }

    /// What a function makes of its arguments: a tensor.
    fn rebuild(&self, by: Rebuild, items: &[PickleValue]) -> Result<PickleValue, FormatError> {
        let (view, rest) = items.split_at_checked(4).unwrap_or_default();
        let (dtype, metadata) = match (by, items, rest) {
            (Rebuild::Parameter, [tensor @ PickleValue::Tensor(_), _, _], _)
            | (Rebuild::ParameterWithState, [tensor @ PickleValue::Tensor(_), _, _, _], _) => {
                return Ok(tensor.clone());
            }
            (Rebuild::Tensor, _, []) | (Rebuild::TensorV2, _, [_, _]) => (None, None),
            (Rebuild::TensorV2, _, [_, _, metadata]) => (None, Some(metadata)),
            (Rebuild::TensorV3, _, [_, _, dtype]) => (Some(dtype), None),
            (Rebuild::TensorV3, _, [_, _, dtype, metadata]) => (Some(dtype), Some(metadata)),
            _ => return Err(TorchError::Arguments(by.name()).into()),
        };
        match metadata {
            None | Some(PickleValue::None) => {}
            Some(PickleValue::Shared(at)) if self.shared.get(*at).is_some_and(|it| it.len == 0) => {
            }
            Some(_) => return Err(TorchError::Lazy.into()),
        }
        let tensor = tensor(view, dtype).ok_or(TorchError::Arguments(by.name()))?;
        Ok(PickleValue::Tensor(Rc::new(tensor)))
    }
}

/// A view of a storage: `(storage, offset, size, stride)`.
fn tensor(view: &[PickleValue], dtype: Option<&PickleValue>) -> Option<TorchTensor> {
    let [PickleValue::Storage(storage), offset, shape, strides] = view else { return None };
    let scalar = match dtype {
        Some(dtype) => dtype.scalar(),
        None => storage.scalar,
    };
    let (shape, strides) = (shape.axes()?, strides.axes()?);
    let (scalar, offset, storage) = (scalar?, offset.count()?, Rc::clone(storage));
    let same = shape.len() == strides.len();
    same.then_some(TorchTensor { storage, scalar, offset, shape, strides })
}

/// The storage that an identifier names: `('storage', class, key, device, elements)`.
fn storage(id: &[PickleValue]) -> Option<TorchStorage> {
    let [
        PickleValue::Text(word),
        PickleValue::Global(Global::StorageClass(scalar)),
        PickleValue::Text(key),
        PickleValue::Text(_),
        elements,
    ] = id
    else {
        return None;
    };
    let item = scalar.map_or(1, |scalar| scalar.bits() / 8);
    let bytes = elements.count()?.checked_mul(item)?;
    let key = Rc::clone(key);
    (&**word == "storage").then_some(TorchStorage { key, bytes, scalar: *scalar })
}
