//! The tensors of a header in one buffer, and their names in one text.
//!
//! A header may list a million tensors. A [`TensorInfo`] takes 200 bytes and more; an entry here takes its
//! name and some 25 bytes, and becomes a `TensorInfo` on demand.
//!
//! ```text
//! offset of the name, length of the name + 1 (0: no name), start, type, number of axes, axes, shard x 2
//! ```
//!
//! All numbers except the type have a variable length, 7 bits a byte. A type that is not a scalar is
//! followed by its index in a list of such types. The last number holds the shard times 2; if it is odd, the
//! end of the bytes follows, and then the index, from 1, of a table of chunks or a reshaped tensor, or 0 and
//! the strides.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use super::{LazyAnnotations, Storage, StorageKind, TensorInfo};
use crate::dtype::{DType, Endian, NpyType, Scalar};
use crate::shape::Order;

#[derive(Clone, Default)]
pub struct Tensors {
    entries: Vec<u8>,
    names: String,
    starts: Vec<usize>,
    types: Vec<DType>,
    /// The storage of tensors whose elements have no strides.
    kinds: Vec<StorageKind>,
    /// The annotations of tensors, by the offsets of their entries.
    annotated: BTreeMap<usize, LazyAnnotations>,
    /// The annotations of groups, by their paths.
    groups: BTreeMap<String, LazyAnnotations>,
    /// The numbers of the tensors that have names, sorted by name, once a name was looked up.
    by_name: OnceLock<Vec<u32>>,
}

/// The byte of a type: the number of a scalar, or [`OTHER`], and these two bits.
const OTHER: u8 = 0x3f;
const BIG: u8 = 0x40;
const FORTRAN: u8 = 0x80;

/// The type of missing entries.
const NOTHING: DType = DType::Npy(NpyType::Void(0, None));

/// The number of recent types among which a type is looked up before it is stored again.
const RECENT_TYPES: usize = 16;

impl Tensors {
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Append a tensor. Where its elements are contiguous, the end of its bytes follows from its shape and
    /// dtype.
    pub fn push(&mut self, tensor: &TensorInfo) {
        let TensorInfo { name, dtype, shape, storage, annotated } = tensor;
        let Storage { shard, data, kind } = storage;
        if let Some(annotated) = annotated {
            self.annotated.insert(self.entries.len(), annotated.clone());
        }
        self.begin(name.as_deref());
        let shard = *shard as u64 * 2;
        let (order, last) = match kind {
            StorageKind::Contiguous(order) => (*order, shard),
            _ => (Order::C, shard + 1),
        };
        self.describe(dtype, shape, order, data.start);
        let entries = &mut self.entries;
        push_number(entries, last);
        match kind {
            StorageKind::Contiguous(_) => {}
            StorageKind::Chunks(_) | StorageKind::Reshaped(_) | StorageKind::Packed(..) => {
                self.kinds.push(kind.clone());
                push_number(entries, data.end);
                push_number(entries, self.kinds.len() as u64);
            }
            StorageKind::Strided { first, strides, ranges } => {
                for number in [data.end, 0, *first, ranges.len() as u64] {
                    push_number(entries, number);
                }
                let ends = ranges.iter().flat_map(|range| [range.start, range.end]);
                ends.for_each(|end| push_number(entries, end));
                // as many strides as the shape has axes
                strides.iter().for_each(|&stride| push_number(entries, stride as u64));
            }
        }
    }

    /// Begin a tensor with its name, which is then [the last one](Tensors::begun). Until it is ended or
    /// taken back, no other method may be called.
    pub(crate) fn begin(&mut self, name: Option<&str>) {
        self.by_name = OnceLock::new();
        self.starts.push(self.entries.len());
        push_number(&mut self.entries, self.names.len() as u64);
        push_number(&mut self.entries, name.map_or(0, |name| name.len() as u64 + 1));
        self.names.push_str(name.unwrap_or_default());
    }

    pub(crate) fn begun(&self) -> &str {
        self.len().checked_sub(1).and_then(|last| self.name(last)).unwrap_or_default()
    }

    /// End the tensor that was begun: in an input of one file, with contiguous elements.
    pub(crate) fn end(&mut self, dtype: &DType, shape: &[u64], order: Order, start: u64) {
        self.describe(dtype, shape, order, start);
        push_number(&mut self.entries, 0);
    }

    pub(crate) fn take_back(&mut self) {
        self.by_name = OnceLock::new();
        let start = self.starts.pop().unwrap_or(0);
        self.names.truncate(take_number(&mut &self.entries[start..]) as usize);
        self.entries.truncate(start);
    }

    /// Append the part of an entry between the name and the last number.
    fn describe(&mut self, dtype: &DType, shape: &[u64], order: Order, start: u64) {
        let entries = &mut self.entries;
        push_number(entries, start);
        let fortran = if order == Order::F { FORTRAN } else { 0 };
        match dtype {
            DType::Scalar(scalar, endian) => {
                let big = if *endian == Endian::Big { BIG } else { 0 };
                entries.push(*scalar as u8 | big | fortran);
            }
            other => {
                entries.push(OTHER | fortran);
                // most files have few types, next to each other
                let recent = self.types.len().saturating_sub(RECENT_TYPES);
                let known = self.types[recent..].iter().position(|known| known == other);
                let place = known.map_or(self.types.len(), |at| recent + at);
                if known.is_none() {
                    self.types.push(other.clone());
                }
                push_number(entries, place as u64);
            }
        }
        push_number(entries, shape.len() as u64);
        shape.iter().for_each(|&len| push_number(entries, len));
    }

    /// Set the annotations of a group of tensors, by its path (empty for the root).
    pub fn annotate_group(&mut self, path: String, annotated: LazyAnnotations) {
        self.groups.insert(path, annotated);
    }

    /// The groups with annotations, by their paths.
    pub fn groups(&self) -> &BTreeMap<String, LazyAnnotations> {
        &self.groups
    }

    pub(crate) fn replace(&mut self, number: usize, tensor: &TensorInfo) {
        let end = self.entries.len();
        self.push(tensor);
        self.starts.pop();
        self.starts[number] = end;
    }

    pub fn at(&self, number: usize) -> TensorInfo {
        let start = self.starts[number];
        let annotated = self.annotated.get(&start).cloned();
        TensorInfo { annotated, ..self.entry(start).tensor() }
    }

    /// Tensor `number`; `None` if there are fewer.
    pub fn get(&self, number: usize) -> Option<TensorInfo> {
        (number < self.len()).then(|| self.at(number))
    }

    fn entry(&self, start: usize) -> Entry<'_> {
        Entry { rest: &self.entries[start..], all: self }
    }

    pub fn last(&self) -> Option<TensorInfo> {
        self.get(self.len().checked_sub(1)?)
    }

    pub fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = TensorInfo> + DoubleEndedIterator + Clone + '_ {
        (0..self.len()).map(|number| self.at(number))
    }

    pub fn name(&self, number: usize) -> Option<&str> {
        self.entry(self.starts[number]).name()
    }

    pub fn names(&self) -> impl ExactSizeIterator<Item = Option<&str>> + Clone {
        (0..self.len()).map(|number| self.name(number))
    }

    /// The number of the tensor named `name`; of several, the first.
    pub fn number_of(&self, name: &str) -> Option<usize> {
        let by_name = self.by_name.get_or_init(|| {
            let named = |&number: &u32| self.name(number as usize).is_some();
            let mut numbers: Vec<u32> = (0..).take(self.len()).filter(named).collect();
            numbers.sort_by_key(|&number| self.name(number as usize));
            numbers
        });
        let at = by_name.partition_point(|&number| self.name(number as usize) < Some(name));
        let number = *by_name.get(at)? as usize;
        (self.name(number) == Some(name)).then_some(number)
    }

    /// The number of the tensor named `name`, which is probably `likely`.
    pub(crate) fn number_near(&self, name: &str, likely: usize) -> Option<usize> {
        let is_it = likely < self.len() && self.name(likely) == Some(name);
        if is_it { Some(likely) } else { self.number_of(name) }
    }

    /// Sort the tensors by the start of their bytes, then by the number of bytes, then by their old order.
    pub(crate) fn sort_by_place(&mut self) {
        self.by_name = OnceLock::new();
        let mut starts = std::mem::take(&mut self.starts);
        let all = &*self;
        let start = |at: usize| all.entry(at).start();
        let place = |&one: &usize, &other: &usize| {
            let ends = || all.entry(one).end().cmp(&all.entry(other).end());
            start(one).cmp(&start(other)).then_with(ends).then(one.cmp(&other))
        };
        if !starts.is_sorted_by(|one, other| place(one, other).is_le()) {
            starts.sort_unstable_by(place);
        }
        self.starts = starts;
    }
}

impl std::fmt::Debug for Tensors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for Tensors {
    fn eq(&self, other: &Tensors) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Tensors {}

impl Extend<TensorInfo> for Tensors {
    fn extend<I: IntoIterator<Item = TensorInfo>>(&mut self, tensors: I) {
        tensors.into_iter().for_each(|tensor| self.push(&tensor));
    }
}

impl FromIterator<TensorInfo> for Tensors {
    fn from_iter<I: IntoIterator<Item = TensorInfo>>(tensors: I) -> Tensors {
        let mut all = Tensors::default();
        all.extend(tensors);
        all
    }
}

/// Append a number, 7 bits a byte, the lowest first; all bytes but the last have their top bit set.
pub(crate) fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Take a number off the front of bytes that [`push_number`] wrote.
pub(crate) fn take_number(bytes: &mut &[u8]) -> u64 {
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

/// The rest of an entry. Only this file writes entries, so that they are always complete.
struct Entry<'a> {
    rest: &'a [u8],
    all: &'a Tensors,
}

impl<'a> Entry<'a> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.rest.split_first().unwrap_or((&0, &[]));
        self.rest = rest;
        *first
    }

    fn number(&mut self) -> u64 {
        take_number(&mut self.rest)
    }

    fn name(&mut self) -> Option<&'a str> {
        let place = self.number() as usize;
        let len = self.number().checked_sub(1)? as usize;
        Some(&self.all.names[place..place + len])
    }

    fn start(mut self) -> u64 {
        self.name();
        self.number()
    }

    fn dtype(&mut self) -> (DType, Order) {
        let byte = self.byte();
        let order = if byte & FORTRAN != 0 { Order::F } else { Order::C };
        let dtype = match Scalar::ALL.get(usize::from(byte & OTHER)) {
            Some(scalar) => {
                let endian = if byte & BIG != 0 { Endian::Big } else { Endian::Little };
                DType::Scalar(*scalar, endian)
            }
            None => {
                let place = self.number() as usize;
                self.all.types.get(place).cloned().unwrap_or(NOTHING)
            }
        };
        (dtype, order)
    }

    fn tensor(mut self) -> TensorInfo {
        let name = self.name().map(str::to_owned);
        let start = self.number();
        let (dtype, order) = self.dtype();
        let ndim = self.number();
        let shape: Vec<u64> = (0..ndim).map(|_| self.number()).collect();
        let mut tensor = TensorInfo { name, ..TensorInfo::new(dtype, shape, order, start) };
        let last = self.number();
        tensor.storage.shard = (last / 2) as usize;
        if last % 2 == 1 {
            tensor.storage.data.end = self.number();
            let place = (self.number() as usize).checked_sub(1);
            if let Some(kind) = place.and_then(|place| self.all.kinds.get(place)) {
                tensor.storage.kind = kind.clone();
                return tensor;
            }
            let first = self.number();
            let count = self.number();
            let ranges = (0..count).map(|_| self.number()..self.number()).collect();
            let strides = (0..ndim).map(|_| self.number() as i64).collect();
            tensor.storage.kind = StorageKind::Strided { first, strides, ranges };
        }
        tensor
    }

    fn end(self) -> u64 {
        self.tensor().storage.data.end
    }
}

/// The first name that repeats an earlier one.
pub(crate) fn first_repeated<'a>(
    mut names: impl Iterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    // hashes first: they take less memory than a set of names
    let hasher = RandomState::new();
    let mut hashes: Vec<u64> = names.clone().map(|name| hasher.hash_one(name)).collect();
    hashes.sort_unstable();
    if hashes.windows(2).all(|two| two[0] != two[1]) {
        return None;
    }
    drop(hashes);
    let mut seen = HashSet::new();
    names.find(|name| !seen.insert(*name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_tensor() -> impl Strategy<Value = TensorInfo> {
        let dtype = prop_oneof![
            (prop::sample::select(&Scalar::ALL[..]), any::<bool>()).prop_map(|(scalar, big)| {
                DType::Scalar(scalar, if big { Endian::Big } else { Endian::Little })
            }),
            (0u64..1 << 40).prop_map(|len| DType::Npy(NpyType::Bytes(len))),
            (0u64..40).prop_map(|len| DType::Npy(NpyType::Unicode(len, Endian::Big))),
        ];
        let shape = prop::collection::vec(prop_oneof![0u64..4, 0u64..1 << 20], 0..3);
        let rest = (any::<bool>(), 0usize..1 << 20, any::<u64>());
        let numbers = || prop::collection::vec(any::<u64>(), 0..3);
        let said = prop::option::of((any::<u64>(), numbers(), any::<i64>()));
        let all = (any::<Option<String>>(), dtype, shape, rest, said);
        all.prop_map(|(name, dtype, shape, (fortran, shard, start), said)| {
            let order = if fortran { Order::F } else { Order::C };
            let mut tensor = TensorInfo { name, ..TensorInfo::new(dtype, shape, order, start) };
            tensor.storage.shard = shard;
            if let Some((first, ends, stride)) = said {
                tensor.storage.data.end = first.wrapping_mul(3);
                let ranges = ends.iter().map(|&end| start..end).collect();
                let strides = vec![stride; tensor.shape.len()];
                tensor.storage.kind = StorageKind::Strided { first, strides, ranges };
            }
            tensor
        })
    }

    proptest! {
        #[test]
        fn tensors_come_out_as_they_went_in(all in prop::collection::vec(any_tensor(), 0..9)) {
            let mut tensors: Tensors = all.iter().cloned().collect();
            prop_assert_eq!(tensors.len(), all.len());
            prop_assert_eq!(&tensors.iter().collect::<Vec<_>>(), &all);
            let names: Vec<_> = all.iter().map(|tensor| tensor.name.as_deref()).collect();
            prop_assert_eq!(&tensors.names().collect::<Vec<_>>(), &names);
            let mut sorted = all.clone();
            sorted.sort_by_key(|tensor| (tensor.data().start, tensor.data().end));
            tensors.sort_by_place();
            prop_assert_eq!(&tensors.iter().collect::<Vec<_>>(), &sorted);
            if let Some(last) = all.last() {
                tensors.replace(0, last);
                prop_assert_eq!(&tensors.at(0), last);
                prop_assert_eq!(tensors.len(), all.len());
            }
        }
    }

    proptest! {
        #[test]
        fn it_is_the_first_one_that_was_seen(names in prop::collection::vec("[a-d]{0,2}", 0..9)) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let seen = |&at: &usize| names[..at].contains(&names[at]);
            let first = (0..names.len()).find(seen).map(|at| names[at]);
            prop_assert_eq!(first_repeated(names.iter().copied()), first);
        }
    }
}
