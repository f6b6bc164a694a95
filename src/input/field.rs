//! Fields of structured dtypes, one in place of the structures or several packed together; and
//! elements that are read as another dtype of the same size, as by NumPy's `view`.
//!
//! A tensor made of fields has the dtype of the field, the axes of the field after those of the
//! structures, and longer strides.

use std::ops::Range;
use std::sync::Arc;

use super::choose::positions;
use super::opened::Input;
use crate::dtype::{DType, Field, NpyType, Structure};
use crate::error::{Error, Fault, faults};
use crate::shape::{MAX_NDIM, Order, contiguous_strides};
use crate::source::{Source, SourceError};
use crate::tensor::{Chunks, LazyAnnotations, PackingFault, Storage, StorageKind, TensorInfo};

/// The numbers, ascending, of the names in `asked`, which is written as
/// [`Transform::fields`](super::Transform::fields) is.
pub(crate) fn asked_names(names: &[String], asked: &str) -> Result<Vec<usize>, FieldFault> {
    let number = |asked: &str| {
        let found = names.iter().position(|name| name == asked);
        let not_found = || FieldFault::NotFound { name: asked.to_owned(), names: names.to_vec() };
        found.ok_or_else(not_found)
    };
    if let Ok(number) = number(asked) {
        return Ok(vec![number]);
    }
    if !asked.contains(',') {
        // a number has no fields after a dot
        return Ok(vec![number(asked.split('.').next().unwrap_or(asked))?]);
    }
    let several = asked.strip_suffix(',').unwrap_or(asked).split(',').map(str::trim);
    let mut numbers = several.map(number).collect::<Result<Vec<_>, _>>()?;
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// The tensor made of fields of another one, which are named as in
/// [`Transform::fields`](super::Transform::fields).
pub(crate) fn take_fields(tensor: &TensorInfo, names: &str) -> Result<TensorInfo, FieldFault> {
    let fields = structure(&tensor.dtype)?;
    let mut path = vec![];
    if let Some(field) = fields.iter().find(|field| field.has_name(names)) {
        path.push(field);
    } else if names.contains(',') {
        return several(tensor, fields, names);
    } else {
        let mut fields = fields;
        for name in names.split('.') {
            if let Some(Field { dtype, .. }) = path.last().copied() {
                fields = structure(dtype)?;
            }
            path.push(find(fields, name, Field::has_name)?);
        }
    }
    one(tensor, &path)
}

/// A field, reached through outer fields.
fn one(tensor: &TensorInfo, path: &[&Field]) -> Result<TensorInfo, FieldFault> {
    let mut dtype = &tensor.dtype;
    let mut offset = 0;
    let mut own = Vec::new();
    let mut strides = Vec::new();
    let mut repeats = Vec::new();
    for (at, field) in path.iter().enumerate() {
        if at + 1 < path.len() {
            repeats.extend(field.shape.iter().map(|len| (*len, 0)));
        }
        dtype = &field.dtype;
        offset += field.offset;
        let inner = contiguous_strides(&field.shape, bytes(dtype), Order::C);
        strides.extend(inner.ok_or_else(|| FieldFault::NotStructured(tensor.dtype.clone()))?);
        own.extend(&field.shape);
    }
    repeats.iter_mut().zip(&strides).for_each(|((_, step), stride)| *step = *stride as u64);
    let shape = [&tensor.shape[..], &own].concat();
    if shape.len() > MAX_NDIM {
        return Err(FieldFault::TooManyAxes(shape.len()));
    }
    let range = offset..offset + path.last().map_or(0, |field| field.bytes());
    let kind = match items(tensor)? {
        StorageKind::Strided { first, strides: outer, ranges } => StorageKind::Strided {
            first: first + place(&ranges, offset),
            strides: [outer, strides].concat(),
            ranges: Vec::new(),
        },
        StorageKind::Chunks(chunks) => {
            let taken = FieldBytes { ranges: vec![range], repeats };
            FieldChunks::of(&chunks, &tensor.dtype, taken, &own)
        }
        other => other,
    };
    Ok(with_elements(tensor, dtype.clone(), shape, kind))
}

/// A tensor with other elements, stored in the given way in the same bytes.
fn with_elements(
    tensor: &TensorInfo,
    dtype: DType,
    shape: Vec<u64>,
    kind: StorageKind,
) -> TensorInfo {
    TensorInfo {
        name: tensor.name.clone(),
        dtype,
        shape,
        storage: Storage { kind, ..tensor.storage.clone() },
        annotated: tensor.annotated.as_ref().map(LazyAnnotations::without_fill),
    }
}

/// Several fields of the outermost structure. As in NumPy, they keep their own names and titles.
fn several(tensor: &TensorInfo, fields: &[Field], names: &str) -> Result<TensorInfo, FieldFault> {
    let mut taken = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    let mut packed = Structure { fields: Vec::new(), itemsize: 0 };
    // as in a tuple of Python, a trailing comma makes one name a list
    for name in names.strip_suffix(',').unwrap_or(names).split(',').map(str::trim) {
        let field = find(fields, name, |field, name| field.name == name)?;
        if seen.contains(&name) {
            return Err(FieldFault::Twice(name.to_owned()));
        }
        seen.push(name);
        taken.push(field.offset..field.offset + field.bytes());
        packed.fields.push(Field { offset: packed.itemsize, is_named: true, ..field.clone() });
        packed.itemsize += field.bytes();
    }
    let kind = match items(tensor)? {
        StorageKind::Strided { first, strides, ranges } => {
            let moved = |it: Range<u64>| {
                let start = place(&ranges, it.start);
                start..start + (it.end - it.start)
            };
            let ranges = taken.into_iter().map(moved).collect();
            StorageKind::Strided { first, strides, ranges }
        }
        StorageKind::Chunks(chunks) => {
            let taken = FieldBytes { ranges: taken, repeats: Vec::new() };
            FieldChunks::of(&chunks, &tensor.dtype, taken, &[])
        }
        other => other,
    };
    let dtype = DType::Npy(NpyType::Structure(Arc::new(packed)));
    Ok(with_elements(tensor, dtype, tensor.shape.clone(), kind))
}

/// The storage of structures, with their strides unless they are in chunks.
fn items(tensor: &TensorInfo) -> Result<StorageKind, FieldFault> {
    match &tensor.storage.kind {
        StorageKind::Contiguous(order) => {
            let strides = contiguous_strides(&tensor.shape, bytes(&tensor.dtype), *order);
            let strides = strides.ok_or_else(|| FieldFault::NotStructured(tensor.dtype.clone()))?;
            Ok(StorageKind::Strided { first: 0, strides, ranges: Vec::new() })
        }
        StorageKind::Reshaped(_) | StorageKind::Packed(..) => Err(FieldFault::Reshaped),
        kind => Ok(kind.clone()),
    }
}

/// The position of byte `offset` of a structure that is made of ranges, if there are any.
fn place(ranges: &[Range<u64>], mut offset: u64) -> u64 {
    for range in ranges {
        let len = range.end - range.start;
        if offset < len {
            return range.start + offset;
        }
        offset -= len;
    }
    offset
}

/// Fields of structures stored in chunks.
#[derive(Debug)]
struct FieldChunks {
    items: Arc<dyn Chunks>,
    /// The bytes of a structure.
    item: u64,
    taken: FieldBytes,
    /// The shape of the chunks, with the axes of the field after those of the structures.
    shape: Vec<u64>,
}

/// The bytes taken of each structure.
#[derive(Debug)]
struct FieldBytes {
    ranges: Vec<Range<u64>>,
    /// The axes of arrays of structures that contain the ranges: the length of each, and the bytes
    /// from one structure to the next.
    repeats: Vec<(u64, u64)>,
}

impl FieldBytes {
    /// The number of bytes taken of each structure.
    fn bytes(&self) -> u64 {
        let once: u64 = self.ranges.iter().map(|range| range.end - range.start).sum();
        self.repeats.iter().fold(once, |all, (len, _)| all * len)
    }

    fn push(&self, item: &[u8], out: &mut Vec<u8>) {
        let count: u64 = self.repeats.iter().map(|(len, _)| len).product();
        for number in 0..count {
            let add_axis = |(rest, at): (u64, u64), (len, step): &(u64, u64)| {
                (rest / len, at + rest % len * step)
            };
            let (_, at) = self.repeats.iter().rev().fold((number, 0), add_axis);
            let bytes = |it: &Range<u64>| &item[(at + it.start) as usize..(at + it.end) as usize];
            self.ranges.iter().for_each(|range| out.extend_from_slice(bytes(range)));
        }
    }
}

impl FieldChunks {
    fn of(items: &Arc<dyn Chunks>, dtype: &DType, taken: FieldBytes, own: &[u64]) -> StorageKind {
        let own = own.iter().map(|&len| len.max(1));
        let shape = items.chunk_shape().iter().copied().chain(own).collect();
        let items = Arc::clone(items);
        StorageKind::Chunks(Arc::new(FieldChunks { items, item: bytes(dtype), taken, shape }))
    }
}

impl Chunks for FieldChunks {
    fn chunk_shape(&self) -> &[u64] {
        &self.shape
    }

    fn decode(&self, at: &[u64], needed: u64, source: &dyn Source) -> Result<Vec<u8>, SourceError> {
        let taken = self.taken.bytes() as usize;
        let item = self.item as usize;
        let at = &at[..self.items.chunk_shape().len()];
        let needed = needed.div_ceil(taken.max(1) as u64).saturating_mul(self.item);
        let items = self.items.decode(at, needed, source)?;
        let mut fields = Vec::with_capacity(items.len() / item.max(1) * taken);
        items.chunks_exact(item.max(1)).for_each(|item| self.taken.push(item, &mut fields));
        Ok(fields)
    }

    fn needs(&self, at: &[u64], visit: &mut dyn FnMut(Range<u64>)) {
        self.items.needs(&at[..self.items.chunk_shape().len()], visit);
    }
}

fn bytes(dtype: &DType) -> u64 {
    dtype.item_bits() / 8
}

fn structure(dtype: &DType) -> Result<&[Field], FieldFault> {
    match dtype.structure() {
        Some(structure) => Ok(&structure.fields),
        None => Err(FieldFault::NotStructured(dtype.clone())),
    }
}

fn find<'a>(
    fields: &'a [Field],
    name: &str,
    is_it: impl Fn(&Field, &str) -> bool,
) -> Result<&'a Field, FieldFault> {
    let found = fields.iter().find(|field| is_it(field, name));
    found.ok_or_else(|| FieldFault::NotFound {
        name: name.to_owned(),
        names: fields.iter().map(|field| field.name.clone()).collect(),
    })
}

/// Why fields cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldFault {
    /// The elements have no fields.
    #[error("dtype {0} has no fields")]
    NotStructured(DType),
    /// No field has that name.
    #[error("no field is named {name:?}; the fields are {}", names.join(", "))]
    NotFound { name: String, names: Vec<String> },
    /// A field is named twice.
    #[error("the field {0:?} is named twice")]
    Twice(String),
    /// Structures with another shape than in the file.
    #[error("fields are taken before the tensor is reshaped")]
    Reshaped,
    /// The structures and the field together have too many axes.
    #[error("the field would have {0} axes, and at most {max} are possible", max = crate::shape::MAX_NDIM)]
    TooManyAxes(usize),
}

faults!(DType: FieldFault);

/// A dtype as which elements are read, instead of the dtype in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadAs {
    /// The dtype.
    pub dtype: DType,
    /// The dtype of the tensors that are read so, in any byte order; `None` for all.
    pub from: Option<DType>,
    /// Names or globs of the tensors; empty for all.
    pub tensors: Vec<String>,
    /// Fields that are taken afterwards ([`Transform::fields`](super::Transform::fields)): the dtype is that
    /// of the fields' elements.
    pub fields: Option<String>,
}

/// Elements cannot be read as a dtype of another size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "as {given}: its elements have {} bits, those of the file's {theirs} {}",
    given.item_bits(),
    theirs.item_bits()
)]
pub struct ReadAsFault {
    /// The dtype that was given.
    pub given: DType,
    /// The dtype in the file.
    pub theirs: DType,
}

faults!(DType: ReadAsFault);
impl Fault for PackingFault {}

/// A rule for a dtype that no tensor has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("as {name}:... has no effect: no tensor has dtype {name}", name = .0.type_name())]
pub struct UnusedReadAs(pub DType);

impl Fault for UnusedReadAs {}

impl Input {
    /// Read elements as another dtype; of `several` inputs, some may not have the dtype that it is
    /// for.
    pub(crate) fn read_as(&mut self, other: &ReadAs, several: bool) -> Result<(), Error> {
        let ReadAs { dtype, from, tensors, fields } = other;
        let count = self.contents.tensors.len();
        let mut numbers = self.meant(tensors);
        if let Some(from) = from {
            let own = &self.contents.tensors;
            numbers.retain(|&number| from.is_type_of(&own.at(number).dtype));
            if numbers.is_empty() && !several {
                return Err(UnusedReadAs(from.clone()).into());
            }
        }
        for number in numbers {
            let mut tensor = self.contents.tensors.at(number);
            let read = match fields.as_deref() {
                Some(names) => fields_as(&tensor.dtype, names, dtype).map(|it| tensor.dtype = it),
                None => read_as(&mut tensor, dtype),
            };
            read.map_err(|fault| self.failed_tensor(&tensor, count > 1, fault))?;
            Arc::make_mut(&mut self.contents.tensors).replace(number, &tensor);
        }
        Ok(())
    }

    /// Unpack the values of the packed tensors among `tensors` (names or globs; empty for all).
    pub(crate) fn unpack(&mut self, tensors: &[String]) -> Result<(), Error> {
        let count = self.contents.tensors.len();
        for number in self.meant(tensors) {
            let tensor = self.contents.tensors.at(number);
            let unpacked = tensor.unpacked();
            let unpacked =
                unpacked.map_err(|fault| self.failed_tensor(&tensor, count > 1, fault))?;
            if let Some(unpacked) = unpacked {
                Arc::make_mut(&mut self.contents.tensors).replace(number, &unpacked);
            }
        }
        Ok(())
    }

    /// The numbers of the tensors that patterns choose, or of all without patterns. A name that no
    /// tensor has is reported when tensors are chosen.
    fn meant(&self, tensors: &[String]) -> Vec<usize> {
        let own = &self.contents.tensors;
        let count = own.len();
        let means_all = tensors.is_empty() || own.names().any(|it| it.is_none());
        let mut numbers: Vec<usize> = if means_all {
            (0..count).collect()
        } else {
            let names = own.names().map(Option::unwrap_or_default);
            let of = |pattern| positions(names.clone(), std::slice::from_ref(pattern));
            tensors.iter().flat_map(of).flatten().collect()
        };
        numbers.sort_unstable();
        numbers.dedup();
        let excluded = self.excluded().unwrap_or_default();
        numbers.retain(|number| excluded.binary_search(number).is_err());
        numbers
    }
}

/// Read the elements of a tensor as another dtype of the same size.
pub(crate) fn read_as(tensor: &mut TensorInfo, given: &DType) -> Result<(), ReadAsFault> {
    tensor.dtype = viewed(&tensor.dtype, given)?;
    Ok(())
}

fn viewed(theirs: &DType, given: &DType) -> Result<DType, ReadAsFault> {
    if theirs.item_bits() != given.item_bits() {
        return Err(ReadAsFault { given: given.clone(), theirs: theirs.clone() });
    }
    Ok(given.clone())
}

/// A structure with fields read as another dtype; missing fields are reported when fields are
/// taken.
fn fields_as(dtype: &DType, names: &str, given: &DType) -> Result<DType, ReadAsFault> {
    let Some(structure) = dtype.structure() else { return Ok(dtype.clone()) };
    let mut structure = structure.clone();
    let is_one = structure.fields.iter().any(|field| field.has_name(names));
    let (names, inner) = match names.split_once('.') {
        Some((name, inner)) if !is_one && !names.contains(',') => (vec![name], Some(inner)),
        _ if is_one => (vec![names], None),
        _ => (names.split(',').map(str::trim).collect(), None),
    };
    let is_meant = |field: &&mut Field| names.iter().any(|name| field.has_name(name));
    for field in structure.fields.iter_mut().filter(is_meant) {
        field.dtype = match inner {
            Some(inner) => fields_as(&field.dtype, inner, given)?,
            None => viewed(&field.dtype, given)?,
        };
    }
    Ok(DType::Npy(NpyType::Structure(Arc::new(structure))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::{Endian, Scalar};

    #[test]
    fn fields_of_fields_lie_where_they_lie_in_the_items() {
        let field = |name: &str, dtype: &DType, offset| Field {
            is_named: true,
            name: name.to_owned(),
            title: None,
            dtype: dtype.clone(),
            shape: Vec::new(),
            nesting: Vec::new(),
            offset,
        };
        let structure = |fields: Vec<Field>, itemsize| {
            DType::Npy(NpyType::Structure(Arc::new(Structure { fields, itemsize })))
        };
        let short = DType::Scalar(Scalar::I16, Endian::Little);
        let inner = structure(vec![field("x", &short, 0), field("y", &short, 2)], 4);
        let items = structure(
            vec![field("a", &short, 0), field("b", &short, 2), field("pos", &inner, 4)],
            10,
        );
        let tensor = TensorInfo::new(items, vec![3, 2], Order::F, 100);
        let taken = |names: &[&str]| {
            let all = names.iter().try_fold(tensor.clone(), |it, name| take_fields(&it, name));
            all.unwrap().storage.kind
        };
        let said = |first, ranges| StorageKind::Strided { first, strides: vec![10, 30], ranges };
        assert_eq!(taken(&["pos.y"]), said(6, vec![]));
        assert_eq!(taken(&["pos", "y"]), said(6, vec![]));
        // several ranges side by side
        assert_eq!(taken(&["pos,a"]), said(0, vec![4..8, 0..2]));
        assert_eq!(taken(&["pos,a", "pos.y"]), said(6, vec![]));
        assert_eq!(taken(&["pos,b", "b"]), said(2, vec![]));
        let Storage { shard, data, .. } = take_fields(&tensor, "a").unwrap().storage;
        assert_eq!((shard, data), (0, 100..160));
    }
}
