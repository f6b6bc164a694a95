//! The tensors of a header, with their names in one text and their shapes in one list.
//!
//! A header may list a million tensors. A [`TensorInfo`] takes 200 bytes and more; an entry here takes some 90
//! bytes, besides its name and its shape, and becomes a `TensorInfo` on demand.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::OnceLock;

use super::{LazyAnnotations, Storage, StorageKind, TensorInfo};
use crate::dtype::DType;
use crate::shape::Order;

#[derive(Clone, Default)]
pub struct Tensors {
    entries: Vec<Entry>,
    names: String,
    /// The lengths of the axes of all tensors.
    lens: Vec<u64>,
    types: Vec<DType>,
    /// The storage of tensors whose elements are not contiguous.
    kinds: Vec<StorageKind>,
    /// The annotations of groups, by their paths.
    groups: BTreeMap<String, LazyAnnotations>,
    /// The numbers of the tensors that have names, sorted by name, once a name was looked up.
    by_name: OnceLock<Vec<u32>>,
}

#[derive(Clone, Default)]
struct Entry {
    /// The range of the name in the text of all names.
    name: Option<Range<usize>>,
    /// The index of the dtype.
    dtype: usize,
    /// The range of the shape in the list of all lengths.
    shape: Range<usize>,
    shard: usize,
    data: Range<u64>,
    kind: EntryKind,
    annotated: Option<LazyAnnotations>,
}

#[derive(Clone, Copy)]
enum EntryKind {
    Contiguous(Order),
    /// The index of another kind.
    Other(usize),
}

impl Default for EntryKind {
    fn default() -> EntryKind {
        EntryKind::Contiguous(Order::C)
    }
}

/// The number of recent types among which a type is looked up before it is stored again.
const RECENT_TYPES: usize = 16;

impl Tensors {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn push(&mut self, tensor: &TensorInfo) {
        self.begin(tensor.name.as_deref());
        self.set_last(tensor);
    }

    /// Begin a tensor with its name, which is then [the last one](Tensors::begun), until it is ended or taken back.
    pub(crate) fn begin(&mut self, name: Option<&str>) {
        self.by_name = OnceLock::new();
        let start = self.names.len();
        self.names.push_str(name.unwrap_or_default());
        let name = name.map(|_| start..self.names.len());
        self.entries.push(Entry { name, ..Entry::default() });
    }

    pub(crate) fn begun(&self) -> &str {
        self.len().checked_sub(1).and_then(|last| self.name(last)).unwrap_or_default()
    }

    /// End the tensor that was begun.
    pub(crate) fn set_last(&mut self, tensor: &TensorInfo) {
        let TensorInfo { dtype, shape, storage, annotated, .. } = tensor;
        let Some(last) = self.entries.last_mut() else { return };
        // most files have few types, next to each other
        let recent = self.types.len().saturating_sub(RECENT_TYPES);
        let known = self.types[recent..].iter().position(|known| known == dtype);
        last.dtype = known.map_or(self.types.len(), |at| recent + at);
        if known.is_none() {
            self.types.push(dtype.clone());
        }
        last.shape = self.lens.len()..self.lens.len() + shape.len();
        self.lens.extend(shape);
        last.shard = storage.shard;
        last.data = storage.data.clone();
        last.kind = match &storage.kind {
            StorageKind::Contiguous(order) => EntryKind::Contiguous(*order),
            other => {
                self.kinds.push(other.clone());
                EntryKind::Other(self.kinds.len() - 1)
            }
        };
        last.annotated = annotated.clone();
    }

    pub(crate) fn take_back(&mut self) {
        self.by_name = OnceLock::new();
        if let Some(Entry { name: Some(name), .. }) = self.entries.pop() {
            self.names.truncate(name.start);
        }
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
        self.push(tensor);
        self.entries.swap_remove(number);
    }

    pub fn at(&self, number: usize) -> TensorInfo {
        let Entry { dtype, shape, shard, data, kind, annotated, .. } = &self.entries[number];
        let kind = match *kind {
            EntryKind::Contiguous(order) => StorageKind::Contiguous(order),
            EntryKind::Other(number) => self.kinds[number].clone(),
        };
        TensorInfo {
            name: self.name(number).map(str::to_owned),
            dtype: self.types[*dtype].clone(),
            shape: self.lens[shape.clone()].to_vec(),
            storage: Storage { shard: *shard, data: data.clone(), kind },
            annotated: annotated.clone(),
        }
    }

    /// Tensor `number`; `None` if there are fewer.
    pub fn get(&self, number: usize) -> Option<TensorInfo> {
        (number < self.len()).then(|| self.at(number))
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
        self.entries[number].name.clone().map(|name| &self.names[name])
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
        self.entries.sort_by_key(|entry| (entry.data.start, entry.data.end));
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
    use crate::dtype::{Endian, NpyType, Scalar};

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
        all.prop_map(|(name, dtype, shape, (fortran, part, start), said)| {
            let order = if fortran { Order::F } else { Order::C };
            let mut tensor = TensorInfo { name, ..TensorInfo::new(dtype, shape, order, start) };
            tensor.storage.shard = part;
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
