//! Calls of a pickle: functions that make tensors, arrays, lists and dicts are implemented here;
//! any other function makes an opaque object, which holds its arguments.

use std::rc::Rc;

use super::globals::{ElementType, Global, Rebuild};
use super::items::{PickleItem, SharedKind, SharedValue};
use super::machine::{Keeps, PickleMachine};
use super::ops::{PickleOps, damaged};
use super::tensors::{TorchStorage, TorchTensor};
use super::texts::TextForm;
use super::value::PickleValue;
use super::{PickleError, arrays};
use crate::error::Cause;

impl PickleMachine {
    /// Call a function, or make an instance of a class.
    pub(super) fn call(&mut self, keywords: bool, ops: &PickleOps<'_>) -> Result<(), Cause> {
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
            // (class, class that it derives from, an instance of that)
            PickleValue::Global(Global::Reconstructor) => match items {
                [class, _, base] => {
                    self.push_opaque(class, &[], Some(base.clone()));
                    return Ok(());
                }
                _ => None,
            },
            PickleValue::Global(Global::Encode) => Some(self.encoded(items, ops)?),
            PickleValue::Global(Global::Array(call)) => {
                Some(arrays::call(*call, items, &mut |bytes| self.bytes_of(bytes, ops))?)
            }
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

    /// The bytes that a call of `encode` makes of a text.
    fn encoded(
        &mut self,
        items: &[PickleValue],
        ops: &PickleOps<'_>,
    ) -> Result<PickleValue, Cause> {
        let [text, PickleValue::Text(encoding)] = items else { return Ok(PickleValue::Plain) };
        if !matches!(&**encoding, "latin1" | "latin-1") {
            return Ok(PickleValue::Plain);
        }
        match text {
            PickleValue::Text(text) => self.decoded(text, TextForm::Utf8),
            PickleValue::LongText { .. } => self.bytes_of(text, ops),
            _ => Ok(PickleValue::Plain),
        }
    }

    fn decoded(&mut self, text: &str, form: TextForm) -> Result<PickleValue, Cause> {
        let bytes = self.decoded.add(&mut text.as_bytes(), text.len() as u64, form)?;
        Ok(PickleValue::Bytes(Rc::new(bytes)))
    }

    /// The value as bytes, if it is a text of Python 2.
    pub(super) fn bytes_of(
        &mut self,
        value: &PickleValue,
        ops: &PickleOps<'_>,
    ) -> Result<PickleValue, Cause> {
        Ok(match value {
            PickleValue::Text(text) if ops.is_python2 => self.decoded(text, TextForm::Bytes)?,
            &PickleValue::LongText { start, len, form } => {
                let bytes = self.decoded.add(&mut ops.text_at(start), len, form)?;
                PickleValue::Bytes(Rc::new(bytes))
            }
            other => other.clone(),
        })
    }

    /// Push an opaque object: an instance of an unknown class, or the result of an unknown function.
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
            if self.may_hold_tensors(value) {
                self.keep_item(object, key, value.clone());
            }
        }
    }

    /// The contents of a new list or dict, from the arguments of its class: nothing, a tuple, another list or dict, or
    /// for a dict a list of pairs. Before them a defaultdict has its factory. `None` for other arguments.
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
        for PickleItem { key, value } in from.items() {
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
                    if pair.packed_len() == 2 {
                        values.extend(pair.items().map(|item| item.value));
                    }
                }
                _ => return None,
            }
        }
        Some(values)
    }

    fn push_copy(&mut self, is_dict: bool, values: Vec<PickleValue>) -> Result<(), Cause> {
        // copied items count, stored or not: a pickle may copy them again and again
        self.items += values.len();
        let kind = if is_dict { SharedKind::Dict } else { SharedKind::List };
        self.stack.push(PickleValue::Empty(kind));
        match kind {
            _ if values.is_empty() => Ok(()),
            SharedKind::Dict => self.set_items(values),
            _ => self.append(values),
        }
    }

    /// The value of an identifier: a storage, `('storage', class, key, device, elements[, view])`,
    /// or, in old files, a class, `('module', class, file, text)`.
    pub(super) fn persistent(&mut self, id: &[PickleValue]) -> PickleValue {
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

    /// The result of a function: a tensor, or an unreadable tensor.
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

    fn rebuilt(&self, by: Rebuild, items: &[PickleValue]) -> Result<Rc<[u8]>, PickleError> {
        let wrong = || PickleError::Arguments(by.name());
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
            Some(_) => return Err(PickleError::Lazy),
        }
        let (storage, offset, shape, strides) = match view {
            [PickleValue::Storage(storage), offset, shape, strides] => {
                (storage, offset, shape, strides)
            }
            // what `torch.storage._load_from_bytes` makes
            [PickleValue::Shared(_), ..] => return Err(PickleError::Nested),
            _ => return Err(wrong()),
        };
        let elements = match dtype {
            None => storage.elements,
            Some(PickleValue::Global(Global::DType(elements))) => *elements,
            Some(_) => return Err(wrong()),
        };
        let scalar = match elements {
            ElementType::Known(scalar) if by != Rebuild::Quantised => scalar,
            other => {
                return Err(other.unnamed().map_or_else(wrong, |it| PickleError::DType(it.into())));
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
    // of a dtype without a name here, no byte is read
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
