//! The items of lists, dicts and opaque objects, in few bytes each.

use std::rc::Rc;

use super::value::PickleValue;

/// A list, a dict or an opaque object. Only items that may hold tensors are stored; in a list of pairs also their keys.
#[derive(Debug)]
pub(crate) struct SharedValue {
    pub(crate) kind: SharedKind,
    pub(crate) len: u64,
    /// `None` for most values, of which there may be many.
    pub(crate) items: Option<Box<PackedItems>>,
    pub(crate) is_visited: bool,
}

impl SharedValue {
    pub(crate) fn new(kind: SharedKind) -> SharedValue {
        SharedValue { kind, len: 0, items: None, is_visited: false }
    }

    pub(crate) fn keep(&mut self, key: Option<PickleValue>, value: PickleValue) {
        self.items.get_or_insert_default().push(key, value);
    }

    pub(crate) fn packed_len(&self) -> usize {
        self.items.as_ref().map_or(0, |items| items.len)
    }

    pub(crate) fn items(&self) -> impl Iterator<Item = PickleItem> {
        self.items.iter().flat_map(|items| items.iter())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SharedKind {
    List,
    Dict,
    /// The object that an unknown class or function makes: its arguments, its state, and its items.
    Object,
}

/// An item of a list, with its position, or of a dict.
#[derive(Clone, Debug)]
pub(crate) struct PickleItem {
    /// The key; `None` if `value` holds the attributes of an object.
    pub(crate) key: Option<PickleValue>,
    pub(crate) value: PickleValue,
}

/// Items as bytes, since a pickle may hold a million tensors: an item of a dict takes its key and some 20 bytes.
///
/// ```text
/// kinds of key and value, key, value
/// ```
///
/// The length of a text or tensor stands before it. Values of other kinds stand among `others`, by their index
/// there.
#[derive(Debug, Default)]
pub(crate) struct PackedItems {
    len: usize,
    /// Blocks of whole items. A block is freed when its items have been visited.
    full: Vec<Vec<u8>>,
    last: Vec<u8>,
    others: Vec<PickleValue>,
}

/// A block of this length is full. The allocator returns freed blocks of this length to the system.
const FULL_BLOCK: usize = 250_000;

/// The longest text or tensor that is copied while others own it too: a copy takes no more memory than a reference.
const COPIED: usize = size_of::<PickleValue>();

/// The kinds of keys, and of values, which are 16 times as much.
const NO_KEY: u8 = 0;
const INT: u8 = 1;
const TEXT: u8 = 2;
const OTHER: u8 = 3;
const SHARED: u8 = 1;
const TENSOR: u8 = 2;

impl PackedItems {
    fn push(&mut self, key: Option<PickleValue>, value: PickleValue) {
        let start = self.last.len();
        self.last.push(0);
        let key = match key {
            None => NO_KEY,
            Some(PickleValue::Int(number)) => {
                push_number(&mut self.last, number as u64);
                INT
            }
            Some(PickleValue::Text(text)) if is_copied(&text) => {
                self.push_bytes(text.as_bytes());
                TEXT
            }
            Some(other) => self.push_other(other),
        };
        let value = match value {
            PickleValue::Shared(at) => {
                push_number(&mut self.last, at as u64);
                SHARED
            }
            PickleValue::Tensor(packed) if is_copied(&packed) => {
                self.push_bytes(&packed);
                TENSOR
            }
            other => self.push_other(other),
        };
        self.last[start] = key | value << 4;
        self.len += 1;
        if self.last.len() >= FULL_BLOCK {
            self.full.push(std::mem::take(&mut self.last));
        }
    }

    fn push_bytes(&mut self, bytes: &[u8]) {
        push_number(&mut self.last, bytes.len() as u64);
        self.last.extend_from_slice(bytes);
    }

    fn push_other(&mut self, value: PickleValue) -> u8 {
        push_number(&mut self.last, self.others.len() as u64);
        self.others.push(value);
        OTHER
    }

    fn iter(&self) -> impl Iterator<Item = PickleItem> {
        let other = |at: usize| self.others[at].clone();
        self.full.iter().chain([&self.last]).flat_map(move |block| {
            let mut rest = block.as_slice();
            std::iter::from_fn(move || {
                (!rest.is_empty()).then(|| PickleItem::read(&mut rest, other))
            })
        })
    }

    /// The values that are not bytes.
    pub(crate) fn others(&self) -> &[PickleValue] {
        &self.others
    }

    /// The bytes that it takes in memory, besides what `others` hold.
    pub(crate) fn bytes(&self) -> usize {
        let full = self.full.iter().map(Vec::capacity).sum::<usize>();
        size_of::<PackedItems>()
            + full
            + self.last.capacity()
            + self.others.capacity() * size_of::<PickleValue>()
    }
}

/// Whether a text or a tensor is copied into the bytes of an item. A value with other owners is copied only if the copy
/// takes no more than a reference: a short pickle may name a value a million times.
fn is_copied<T: ?Sized>(owned: &Rc<T>) -> bool {
    Rc::strong_count(owned) == 1 || size_of_val::<T>(owned) <= COPIED
}

/// Append a number, 7 bits a byte, the lowest first; all bytes but the last have their top bit set.
pub(super) fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Take a number off the front of bytes that [`push_number`] wrote.
pub(super) fn take_number(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    let mut shift = 0;
    while let Some((byte, rest)) = bytes.split_first() {
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if *byte < 0x80 || shift > 63 {
            break;
        }
    }
    number
}

impl PickleItem {
    /// Take an item off the front of a block, whose other values are handed out by their indices.
    fn read(rest: &mut &[u8], mut other: impl FnMut(usize) -> PickleValue) -> PickleItem {
        let kinds = take_bytes(rest, 1)[0];
        let mut other = |rest: &mut &[u8]| other(take_number(rest) as usize);
        let key = match kinds & 0xf {
            NO_KEY => None,
            INT => Some(PickleValue::Int(take_number(rest) as i64)),
            TEXT => {
                let len = take_number(rest);
                let text = std::str::from_utf8(take_bytes(rest, len));
                Some(PickleValue::Text(text.expect("it was a text").into()))
            }
            _ => Some(other(rest)),
        };
        let value = match kinds >> 4 {
            SHARED => PickleValue::Shared(take_number(rest) as usize),
            TENSOR => {
                let len = take_number(rest);
                PickleValue::Tensor(take_bytes(rest, len).into())
            }
            _ => other(rest),
        };
        PickleItem { key, value }
    }
}

/// Take `len` bytes off the front of `rest`.
fn take_bytes<'a>(rest: &mut &'a [u8], len: u64) -> &'a [u8] {
    let (taken, behind) = rest.split_at(len as usize);
    *rest = behind;
    taken
}

/// An iterator over items, which frees the items that were taken.
pub(crate) struct RemainingItems {
    blocks: std::vec::IntoIter<Vec<u8>>,
    block: Vec<u8>,
    /// How many bytes of the block have been taken.
    taken: usize,
    others: Vec<PickleValue>,
}

impl IntoIterator for PackedItems {
    type Item = PickleItem;
    type IntoIter = RemainingItems;

    fn into_iter(mut self) -> RemainingItems {
        self.full.push(self.last);
        let blocks = self.full.into_iter();
        RemainingItems { blocks, block: Vec::new(), taken: 0, others: self.others }
    }
}

impl Iterator for RemainingItems {
    type Item = PickleItem;

    fn next(&mut self) -> Option<PickleItem> {
        while self.taken == self.block.len() {
            self.block = self.blocks.next()?;
            self.taken = 0;
        }
        let mut rest = &self.block[self.taken..];
        let others = &mut self.others;
        let other = |at: usize| std::mem::replace(&mut others[at], PickleValue::None);
        let item = PickleItem::read(&mut rest, other);
        self.taken = self.block.len() - rest.len();
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_out_as_they_went_in() {
        let shared: Rc<str> = "a text of more bytes than are copied".into();
        let tensor: Rc<[u8]> = vec![7; 40].into();
        let item = |number: i64| {
            let key = match number % 4 {
                0 => None,
                1 => Some(PickleValue::Int(-number)),
                2 => Some(PickleValue::Text(format!("w{number}").into())),
                _ => Some(PickleValue::Text(Rc::clone(&shared))),
            };
            let value = match number % 3 {
                0 => PickleValue::Shared(number as usize),
                1 => PickleValue::Tensor(vec![number as u8; 20].into()),
                _ => PickleValue::Tensor(Rc::clone(&tensor)),
            };
            PickleItem { key, value }
        };
        let mut items = SharedValue::new(SharedKind::Dict);
        for number in 0..30_000 {
            let PickleItem { key, value } = item(number);
            items.keep(key, value);
        }
        assert_eq!(items.packed_len(), 30_000);
        let expected = || (0..30_000).map(|number| format!("{:?}", item(number)));
        assert!(items.items().map(|item| format!("{item:?}")).eq(expected()));
        let items = items.items.unwrap();
        assert!(!items.full.is_empty());
        // what others own is not copied, however often it stands there
        assert!(items.bytes() < 30_000 * size_of::<PickleItem>());
        assert!(items.into_iter().map(|item| format!("{item:?}")).eq(expected()));
    }
}
