//! What a pickle of torch.save is made of, as far as tensors can be in it.
//!
//! Values that change after they were made, lists, dicts and opaque objects, are kept in one table and
//! named by their place in it, so that a pickle that puts a list into itself makes no circle of owners.
//! All others own what is in them, and are nested a bounded number of levels.

use std::collections::HashSet;
use std::ops::Range;
use std::rc::Rc;

use super::arrays::{ArrayCell, ArrayDType, PickleBytes};
use super::ops::{ElementType, Global};
use super::{TensorFault, TorchError};
use crate::dtype::{DType, Endian, Scalar};
use crate::shape::{MAX_NDIM, Order, contiguous_strides};
use crate::tensor::{Storage, StorageKind, TensorInfo, data_bytes, push_number, take_number};

/// A value on the stack, in the memo, in a list or in a dict.
#[derive(Clone, Debug)]
pub(super) enum PickleValue {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Rc<str>),
    /// A text that is too long for a name, by its bytes in the pickle's source.
    LongText {
        start: u64,
        len: u64,
    },
    Bytes(Rc<PickleBytes>),
    Tuple(Rc<TupleValue>),
    /// A list, a dict or an opaque object, by its place in the table.
    Shared(usize),
    /// A list or a dict that is new: nothing is in it, and nothing else can put something there.
    Empty(SharedKind),
    Global(Global),
    Storage(Rc<TorchStorage>),
    /// A [`TorchTensor`](TorchTensor), packed.
    Tensor(Rc<[u8]>),
    Unreadable(Rc<TorchError>),
    Array(Rc<ArrayCell>),
    ArrayDType(Rc<ArrayDType>),
    /// Anything that is passed over: a device, an integer of more than 64 bits.
    Plain,
}

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
    pub(super) len: u64,
    /// Nothing for most of them, of which there may be many.
    pub(super) kept: Option<Box<KeptItems>>,
    pub(super) is_visited: bool,
}

impl SharedValue {
    pub(super) fn new(kind: SharedKind) -> SharedValue {
        SharedValue { kind, len: 0, kept: None, is_visited: false }
    }

    pub(super) fn keep(&mut self, key: Option<PickleValue>, value: PickleValue) {
        self.kept.get_or_insert_default().push(key, value);
    }

    pub(super) fn kept_len(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| kept.len)
    }

    pub(super) fn kept(&self) -> impl Iterator<Item = KeptItem> {
        self.kept.iter().flat_map(|kept| kept.iter())
    }
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

/// Items as bytes, since a pickle may hold a million tensors: one of a dict takes its key and some 20 bytes.
///
/// ```text
/// kinds of key and value, key, value
/// ```
///
/// Texts and tensors stand behind their lengths. What has no kind of its own stands among `others`, by its place
/// there.
#[derive(Debug, Default)]
pub(super) struct KeptItems {
    len: usize,
    /// Blocks of whole items, each of which is let go of when its items have been visited.
    full: Vec<Vec<u8>>,
    last: Vec<u8>,
    others: Vec<PickleValue>,
}

/// The length from which a block is full, a little less than what it has grown to. The allocator gives blocks of that
/// length back to the system.
const FULL_BLOCK: usize = 250_000;

/// The longest text or tensor that is copied while others own it too: it takes no more than a place for it.
const COPIED: usize = size_of::<PickleValue>();

/// The kinds of keys, and of values, which are 16 times as much.
const NO_KEY: u8 = 0;
const INT: u8 = 1;
const TEXT: u8 = 2;
const OTHER: u8 = 3;
const SHARED: u8 = 1;
const TENSOR: u8 = 2;

impl KeptItems {
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

    fn iter(&self) -> impl Iterator<Item = KeptItem> {
        let other = |at: usize| self.others[at].clone();
        self.full.iter().chain([&self.last]).flat_map(move |block| {
            let mut rest = block.as_slice();
            std::iter::from_fn(move || (!rest.is_empty()).then(|| KeptItem::read(&mut rest, other)))
        })
    }

    /// The values that are not bytes.
    pub(super) fn others(&self) -> &[PickleValue] {
        &self.others
    }

    /// The bytes that it takes in memory, besides what `others` hold.
    pub(super) fn bytes(&self) -> usize {
        let full = self.full.iter().map(Vec::capacity).sum::<usize>();
        size_of::<KeptItems>()
            + full
            + self.last.capacity()
            + self.others.capacity() * size_of::<PickleValue>()
    }
}

/// Whether a text or a tensor is copied into the bytes of an item. One that others own too is not, where a copy takes
/// more than a place for it: a short pickle may name it a million times.
fn is_copied<T: ?Sized>(owned: &Rc<T>) -> bool {
    Rc::strong_count(owned) == 1 || size_of_val::<T>(owned) <= COPIED
}

impl KeptItem {
    /// Take an item off the front of a block, whose other values are handed out by their places.
    fn read(rest: &mut &[u8], mut other: impl FnMut(usize) -> PickleValue) -> KeptItem {
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
        KeptItem { key, value }
    }
}

/// Take bytes off the front of those that were written here.
fn take_bytes<'a>(rest: &mut &'a [u8], len: u64) -> &'a [u8] {
    let (taken, behind) = rest.split_at(len as usize);
    *rest = behind;
    taken
}

/// Items one after the other, of which those that were taken take no memory any more.
pub(super) struct ItemsLeft {
    blocks: std::vec::IntoIter<Vec<u8>>,
    block: Vec<u8>,
    /// How many bytes of the block have been taken.
    taken: usize,
    others: Vec<PickleValue>,
}

impl IntoIterator for KeptItems {
    type Item = KeptItem;
    type IntoIter = ItemsLeft;

    fn into_iter(mut self) -> ItemsLeft {
        self.full.push(self.last);
        let blocks = self.full.into_iter();
        ItemsLeft { blocks, block: Vec::new(), taken: 0, others: self.others }
    }
}

impl Iterator for ItemsLeft {
    type Item = KeptItem;

    fn next(&mut self) -> Option<KeptItem> {
        while self.taken == self.block.len() {
            self.block = self.blocks.next()?;
            self.taken = 0;
        }
        let mut rest = &self.block[self.taken..];
        let others = &mut self.others;
        let other = |at: usize| std::mem::replace(&mut others[at], PickleValue::None);
        let item = KeptItem::read(&mut rest, other);
        self.taken = self.block.len() - rest.len();
        Some(item)
    }
}

impl PickleValue {
    /// Whether a tensor is in it or may come into it, or it is a level by itself, of which only so many are read.
    pub(super) fn has_tensors(&self) -> bool {
        match self {
            PickleValue::Tensor(_) | PickleValue::Unreadable(_) | PickleValue::Array(_) => true,
            PickleValue::Shared(_) | PickleValue::Empty(_) => true,
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
            PickleValue::Bytes(bytes) => place(bytes),
            PickleValue::Array(array) => place(array),
            PickleValue::ArrayDType(dtype) => place(dtype),
            _ => None,
        }
    }

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
    pub(super) fn axes(&self) -> Option<Vec<u64>> {
        let items = self.items().filter(|items| items.len() <= MAX_NDIM)?;
        items.iter().map(PickleValue::count).collect()
    }

    /// What stands in a name for a key that is no number, text or tuple.
    pub(super) fn kind(&self) -> &'static str {
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

/// Bytes that tensors share: a member of the archive, or what stands behind the pickles of an old file.
#[derive(Debug)]
pub(super) struct TorchStorage {
    /// The name of the member, behind `data/`.
    pub(super) key: Rc<str>,
    /// Where its bytes are in the member, which may hold several: all of it, but of old files.
    pub(super) bytes: Range<u64>,
    /// How many bytes the member has.
    pub(super) whole: u64,
    pub(super) elements: ElementType,
}

/// A tensor: a view of a storage.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TorchTensor<'a> {
    /// The storage that it is a view of, as [`TorchStorage`] has them.
    pub(super) key: &'a str,
    pub(super) bytes: Range<u64>,
    pub(super) whole: u64,
    pub(super) scalar: Scalar,
    /// The element of the storage that is its first.
    pub(super) offset: u64,
    pub(super) shape: Vec<u64>,
    /// From an element to the next one along each axis, in elements.
    pub(super) strides: Vec<u64>,
}

impl<'a> TorchTensor<'a> {
    /// The tensor in some 15 bytes, as there may be a million of them.
    pub(super) fn pack(&self) -> Rc<[u8]> {
        let TorchTensor { key, bytes, whole, scalar, offset, shape, strides } = self;
        let mut packed = Vec::with_capacity(32);
        push_number(&mut packed, key.len() as u64);
        packed.extend_from_slice(key.as_bytes());
        let bytes_left = whole.wrapping_sub(bytes.end);
        for number in [*whole, bytes.start, bytes_left, *scalar as u64, *offset] {
            push_number(&mut packed, number);
        }
        push_number(&mut packed, shape.len() as u64);
        shape.iter().chain(strides).for_each(|&number| push_number(&mut packed, number));
        packed.into()
    }

    /// The tensor that was packed in these bytes.
    pub(super) fn unpack(packed: &'a [u8]) -> TorchTensor<'a> {
        let mut rest = packed;
        let key_len = take_number(&mut rest) as usize;
        let (key, mut rest) = rest.split_at(key_len);
        let mut number = || take_number(&mut rest);
        let whole = number();
        let start = number();
        let end = whole.wrapping_sub(number());
        let scalar = Scalar::ALL[number() as usize];
        let offset = number();
        let ndim = number();
        let shape = (0..ndim).map(|_| number()).collect();
        let strides = (0..ndim).map(|_| number()).collect();
        let key = std::str::from_utf8(key).expect("it was a text");
        TorchTensor { key, bytes: start..end, whole, scalar, offset, shape, strides }
    }

    /// The tensor, without its name, in a storage that has these bytes of a file of that byte order.
    pub(super) fn place(
        &self,
        storage: Range<u64>,
        endian: Endian,
    ) -> Result<TensorInfo, TensorFault> {
        let said = self.whole;
        let found = storage.end.saturating_sub(storage.start);
        if found < said || self.bytes.end > said {
            return Err(TensorFault::ShortStorage { said, found });
        }
        let start = storage.start + self.bytes.start;
        let said = self.bytes.end.saturating_sub(self.bytes.start);
        let shape = self.shape.clone();
        let item = self.scalar.bits() / 8;
        let dtype = DType::Scalar(self.scalar, if item == 1 { Endian::Little } else { endian });
        match data_bytes(&shape, self.scalar.bits()) {
            None => return Err(TensorFault::TooLarge(shape)),
            Some(0) => return Ok(TensorInfo::new(dtype, shape, Order::C, start)),
            Some(_) => {}
        }
        // the lengths multiplied are less than 2^63, strides less than 2^64, and axes few
        let axes = || self.shape.iter().zip(&self.strides);
        let far = axes().map(|(&len, &stride)| u128::from(len - 1) * u128::from(stride));
        let first = u128::from(self.offset);
        let far = far.sum::<u128>();
        let end = first + far + 1;
        if end > u128::from(said / item) {
            return Err(TensorFault::Outside(said));
        }
        // no more than the bytes of the storage
        let data = start + self.offset * item..start + end as u64 * item;
        let dense = |order: &Order| {
            let strides = contiguous_strides(&shape, 1, *order).unwrap_or_default();
            let mut axes = axes().zip(strides);
            axes.all(|((&len, &stride), dense)| len == 1 || stride == dense as u64)
        };
        if let Some(order) = [Order::C, Order::F].into_iter().find(dense) {
            return Ok(TensorInfo::new(dtype, shape, order, data.start));
        }
        // an axis of length 1 leads nowhere, whatever its stride is
        let strides =
            axes().map(|(&len, &stride)| if len == 1 { 0 } else { (stride * item) as i64 });
        let strides = strides.collect();
        let kind = StorageKind::Strided { first: 0, strides, ranges: Vec::new() };
        let storage = Storage { part: 0, data, kind };
        Ok(TensorInfo { name: None, dtype, shape, storage, annotated: None })
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
            KeptItem { key, value }
        };
        let mut items = SharedValue::new(SharedKind::Dict);
        for number in 0..30_000 {
            let KeptItem { key, value } = item(number);
            items.keep(key, value);
        }
        assert_eq!(items.kept_len(), 30_000);
        let expected = || (0..30_000).map(|number| format!("{:?}", item(number)));
        assert!(items.kept().map(|item| format!("{item:?}")).eq(expected()));
        let kept = items.kept.unwrap();
        assert!(!kept.full.is_empty());
        // what others own is not copied, however often it stands there
        assert!(kept.bytes() < 30_000 * size_of::<KeptItem>());
        assert!(kept.into_iter().map(|item| format!("{item:?}")).eq(expected()));
    }

    #[test]
    fn tensors_are_packed_in_few_bytes() {
        let bytes = 0..4_000_000;
        let shape = vec![4, 0, u64::MAX];
        let strides = vec![1, 4, 1 << 40];
        let key = "123456";
        let whole = 4_000_000;
        let scalar = Scalar::F32;
        let offset = 900_000;
        let mut tensor = TorchTensor { key, bytes, whole, scalar, offset, shape, strides };
        assert_eq!(TorchTensor::unpack(&tensor.pack()), tensor);
        (tensor.shape, tensor.strides) = (vec![4, 2], vec![2, 1]);
        assert!(tensor.pack().len() < 24);
        // whatever a file says
        for (bytes, whole) in [(7..9, 8), (u64::MAX - 1..u64::MAX, 0), (0..0, u64::MAX)] {
            (tensor.bytes, tensor.whole) = (bytes, whole);
            assert_eq!(TorchTensor::unpack(&tensor.pack()), tensor);
        }
    }
}
