//! B-trees of both versions, and heaps. Version 1 trees hold names of old groups, and chunks; version 2 trees hold
//! records. Heaps hold names of old groups, variable-length data, and links and attributes of new groups.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::file::{H5File, Hdf5Error, damaged};

const MAX_DEPTH: u16 = 40;

/// A node of a version 1 tree: its level, and the key and the address of each child. A key follows the last child.
pub(super) struct NodeV1 {
    pub(super) level: u8,
    bytes: std::sync::Arc<[u8]>,
    /// The bytes before the first key.
    front: usize,
    /// The bytes of a key.
    key: usize,
    pub(super) count: usize,
}

impl NodeV1 {
    /// The node at an address, of a tree of kind `kind`, whose keys have `key` bytes.
    pub(super) fn read(
        file: &H5File,
        address: u64,
        kind: u8,
        key: usize,
    ) -> Result<NodeV1, Hdf5Error> {
        let front = 8 + 2 * file.sizes.address;
        // cached as one block, since each chunk is looked up in several nodes
        let bytes = file.cached_block(address, key as u64, || {
            let mut bytes = file.bytes(address, front as u64)?;
            let count = usize::from(u16::from_le_bytes([bytes[6], bytes[7]]));
            if !bytes.starts_with(b"TREE") {
                return Err(damaged("the signature TREE is missing"));
            }
            let len = count * (key + file.sizes.address) + key;
            bytes.extend(file.bytes(address.saturating_add(front as u64), len as u64)?);
            Ok(bytes)
        })?;
        let mut input = file.cursor(&bytes);
        input.skip(4)?;
        let found = input.u8()?;
        let level = input.u8()?;
        let count = usize::from(input.u16()?);
        let len = front + count * (key + file.sizes.address) + key;
        if found != kind || bytes.len() != len {
            return Err(damaged("a node of its tree is of another kind"));
        }
        Ok(NodeV1 { level, bytes, front, key, count })
    }

    fn at(&self, file: &H5File, number: usize) -> usize {
        self.front + number * (self.key + file.sizes.address)
    }

    /// The bytes of a key; there is one key more than children.
    pub(super) fn key(&self, file: &H5File, number: usize) -> &[u8] {
        let at = self.at(file, number);
        &self.bytes[at..at + self.key]
    }

    pub(super) fn child(&self, file: &H5File, number: usize) -> Result<u64, Hdf5Error> {
        let at = self.at(file, number) + self.key;
        let address = file.cursor(&self.bytes[at..]).address()?;
        address.ok_or_else(|| damaged("the address of a node of its tree is undefined"))
    }
}

pub(super) struct TreeV2 {
    /// The kind of the records.
    pub(super) kind: u8,
    pub(super) record: usize,
    depth: u16,
    root: Option<u64>,
    root_count: usize,
    /// For each level, the width in bytes of the count of all records below; 0 for leaves.
    totals: Vec<usize>,
    /// The width in bytes of the count of a node's records.
    count: usize,
}

/// The width in bytes of numbers up to `number`.
fn bytes_of(number: u64) -> usize {
    (number.max(1).ilog2() / 8 + 1) as usize
}

impl TreeV2 {
    pub(super) fn read(file: &H5File, address: u64) -> Result<TreeV2, Hdf5Error> {
        let len = 22 + file.sizes.address + file.sizes.length;
        let bytes = file.block(address, len as u64, b"BTHD", true)?;
        let mut input = file.cursor(&bytes);
        input.skip(5)?;
        let kind = input.u8()?;
        let node = u64::from(input.u32()?);
        let record = input.u16()?;
        let depth = input.u16()?;
        input.skip(2)?;
        let root = input.address()?;
        let root_count = usize::from(input.u16()?);
        // the bytes around the records of a node
        const AROUND: u64 = 10;
        let record_bytes = u64::from(record);
        if record == 0 || depth > MAX_DEPTH || node < AROUND + record_bytes {
            return Err(damaged("the header of its tree cannot be true"));
        }
        let most = (node - AROUND) / record_bytes;
        let count = bytes_of(most);
        let mut totals = vec![0];
        let mut below = most;
        let mut total = 0;
        for _ in 0..depth {
            let pointer = (file.sizes.address + count + total) as u64;
            let room =
                node.checked_sub(AROUND + pointer).map(|room| room / (record_bytes + pointer));
            let most = room.ok_or_else(|| damaged("the nodes of its tree are too short"))?;
            below = below.saturating_mul(most.saturating_add(1)).saturating_add(most);
            total = bytes_of(below);
            totals.push(total);
        }
        Ok(TreeV2 { kind, record: record.into(), depth, root, root_count, totals, count })
    }

    /// The records of a node, and the address and the number of records of each child.
    fn node(
        &self,
        file: &H5File,
        address: u64,
        count: usize,
        level: u16,
    ) -> Result<NodeV2, Hdf5Error> {
        let total = self.totals.get(usize::from(level).wrapping_sub(1)).copied().unwrap_or(0);
        let pointer = file.sizes.address + self.count + total;
        let children = if level == 0 { 0 } else { (count + 1) * pointer };
        let len = 6 + count * self.record + children + 4;
        let signature: &[u8] = if level == 0 { b"BTLF" } else { b"BTIN" };
        let bytes = file.block(address, len as u64, signature, true)?;
        Ok(NodeV2 { bytes, pointer })
    }

    fn child(
        &self,
        file: &H5File,
        node: &NodeV2,
        count: usize,
        number: usize,
    ) -> Result<(u64, usize), Hdf5Error> {
        let at = 6 + count * self.record + number * node.pointer;
        let mut input = file.cursor(node.bytes.get(at..).unwrap_or_default());
        let address = input
            .address()?
            .ok_or_else(|| damaged("the address of a node of its tree is undefined"))?;
        Ok((address, input.uint(self.count)? as usize))
    }

    /// Visit all records, in order.
    pub(super) fn each(
        &self,
        file: &H5File,
        visit: &mut dyn FnMut(&[u8]) -> Result<(), Hdf5Error>,
    ) -> Result<(), Hdf5Error> {
        // no bytes of a file belong to two nodes
        let mut left = file.len() / 10 + 1;
        self.root.map_or(Ok(()), |root| {
            self.below(file, root, self.root_count, self.depth, &mut left, visit)
        })
    }

    fn below(
        &self,
        file: &H5File,
        address: u64,
        count: usize,
        level: u16,
        left: &mut u64,
        visit: &mut dyn FnMut(&[u8]) -> Result<(), Hdf5Error>,
    ) -> Result<(), Hdf5Error> {
        let cyclic = || damaged("a node of its tree contains itself");
        *left = left.checked_sub(1).ok_or_else(cyclic)?;
        let node = self.node(file, address, count, level)?;
        for number in 0..=count {
            if level > 0 {
                let (child, records) = self.child(file, &node, count, number)?;
                self.below(file, child, records, level - 1, left, visit)?;
            }
            if number < count {
                visit(node.record(self, number))?;
            }
        }
        Ok(())
    }

    /// Find a record; `order` compares a record with it.
    pub(super) fn find(
        &self,
        file: &H5File,
        order: &dyn Fn(&[u8]) -> Result<Ordering, Hdf5Error>,
    ) -> Result<Option<Vec<u8>>, Hdf5Error> {
        let Some(mut address) = self.root else { return Ok(None) };
        let mut count = self.root_count;
        for level in (0..=self.depth).rev() {
            let node = self.node(file, address, count, level)?;
            let mut from = 0;
            let mut to = count;
            while from < to {
                let middle = (from + to) / 2;
                match order(node.record(self, middle))? {
                    Ordering::Equal => return Ok(Some(node.record(self, middle).to_vec())),
                    Ordering::Less => from = middle + 1,
                    Ordering::Greater => to = middle,
                }
            }
            if level > 0 {
                (address, count) = self.child(file, &node, count, from)?;
            }
        }
        Ok(None)
    }
}

struct NodeV2 {
    bytes: std::sync::Arc<[u8]>,
    /// The bytes of a pointer to a child.
    pointer: usize,
}

impl NodeV2 {
    fn record(&self, tree: &TreeV2, number: usize) -> &[u8] {
        let at = 6 + number * tree.record;
        &self.bytes[at..at + tree.record]
    }
}

/// The longest name, path or attribute, in bytes.
const MOST_BYTES: u64 = 4 << 20;

/// The heap with the names of an old group.
pub(super) struct LocalHeap {
    address: u64,
    len: u64,
}

impl LocalHeap {
    pub(super) fn read(file: &H5File, address: u64) -> Result<LocalHeap, Hdf5Error> {
        let len = 8 + 2 * file.sizes.length + file.sizes.address;
        let bytes = file.block(address, len as u64, b"HEAP", false)?;
        let mut input = file.cursor(&bytes);
        input.skip(8)?;
        let len = input.length()?;
        input.length()?;
        let address = input
            .address()?
            .ok_or_else(|| damaged("the address of a group's names is undefined"))?;
        Ok(LocalHeap { address, len })
    }

    /// The text at an offset, which ends with a zero.
    pub(super) fn text(&self, file: &H5File, at: u64) -> Result<Vec<u8>, Hdf5Error> {
        let mut len = 64;
        loop {
            let there = self.len.saturating_sub(at).min(len);
            let bytes = file.bytes(self.address.saturating_add(at), there)?;
            if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
                return Ok(bytes[..end].to_vec());
            }
            if there < len || len > MOST_BYTES {
                return Err(damaged("a name of a group has no end"));
            }
            len *= 8;
        }
    }
}

/// The bytes of a collection that are read at a time.
const COLLECTION_PAGE: u64 = 64 << 10;

/// The number of objects, of all collections, whose offsets are cached: 3 MiB.
const MOST_PLACED: usize = 1 << 16;

/// The collections of a file's global heap, by their addresses. Texts of neighbouring datasets may be in different
/// collections.
#[derive(Default)]
pub(super) struct Collections {
    by_address: HashMap<u64, Collection>,
    /// The number of cached offsets; a collection counts as one, too.
    placed: usize,
}

/// A collection: its objects follow each other, each with its number.
struct Collection {
    address: u64,
    end: u64,
    /// The offsets and lengths of the objects passed so far, by their numbers.
    placed: HashMap<u32, (u64, u64)>,
    /// The offset up to which the collection was read.
    at: u64,
}

/// The object of a collection of the global heap. `left` is the number of objects that may still be passed.
pub(super) fn global(
    file: &H5File,
    collection: u64,
    index: u32,
    left: &mut usize,
) -> Result<Vec<u8>, Hdf5Error> {
    let front = 8 + file.sizes.length as u64;
    let mut collections = file.collections();
    if collections.placed >= MOST_PLACED {
        *collections = Collections::default();
    }
    let Collections { by_address, placed } = &mut *collections;
    let last = match by_address.entry(collection) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(vacant) => {
            let bytes = file.block(collection, front, b"GCOL", false)?;
            let end = file.cursor(&bytes[8..]).length()?;
            let end = end.min(file.len().saturating_sub(collection));
            *placed += 1;
            vacant.insert(Collection {
                address: collection,
                end,
                placed: HashMap::new(),
                at: front,
            })
        }
    };
    last.find(file, index, left, placed)
}

impl Collection {
    /// Find an object by its number. `left` is the number of objects that may still be passed, `placed` the number of
    /// cached offsets of all collections.
    fn find(
        &mut self,
        file: &H5File,
        index: u32,
        left: &mut usize,
        placed: &mut usize,
    ) -> Result<Vec<u8>, Hdf5Error> {
        if let Some((at, len)) = self.placed.get(&index) {
            return self.read(file, *at, *len);
        }
        let missing = || damaged("an element of variable length is not in its heap");
        let front = 8 + file.sizes.length as u64;
        let mut at = self.at;
        while self.end.saturating_sub(at) >= front {
            *left = left.checked_sub(1).ok_or_else(missing)?;
            let bytes = self.read(file, at, front)?;
            let mut input = file.cursor(&bytes);
            let number = u32::from(input.u16()?);
            input.skip(6)?;
            let len = input.length()?;
            if number == 0 {
                break;
            }
            let start = at.saturating_add(front);
            let behind = len.checked_next_multiple_of(8).and_then(|len| start.checked_add(len));
            if let Some(behind) = behind
                && *placed < MOST_PLACED
            {
                *placed += 1;
                self.placed.entry(number).or_insert((start, len));
                self.at = behind;
            }
            if number == index {
                return self.read(file, start, len);
            }
            at = behind.ok_or_else(missing)?;
        }
        Err(missing())
    }

    fn read(&self, file: &H5File, at: u64, len: u64) -> Result<Vec<u8>, Hdf5Error> {
        let page = at / COLLECTION_PAGE * COLLECTION_PAGE;
        let page_end = self.end.min(page + COLLECTION_PAGE);
        let start = self.address.saturating_add(page);
        if at.saturating_add(len) > page_end {
            return file.bytes(self.address.saturating_add(at), len);
        }
        let bytes = file.block(start, page_end - page, b"", false)?;
        Ok(bytes[(at - page) as usize..][..len as usize].to_vec())
    }
}

/// A heap of the links or the attributes of an object.
///
/// Its space is a table of blocks: each row has `width` blocks of one size, which doubles from the third row on. A
/// block larger than `largest` is a table of blocks itself.
pub(super) struct FractalHeap {
    id_len: usize,
    has_filters: bool,
    most_managed: u32,
    huge_tree: Option<u64>,
    width: u64,
    start: u64,
    largest: u64,
    /// The bits of an offset in the heap's space.
    bits: u16,
    root: Option<u64>,
    /// The rows of the root table; 0 where the root is a block.
    rows: u16,
}

impl FractalHeap {
    pub(super) fn read(file: &H5File, address: u64) -> Result<FractalHeap, Hdf5Error> {
        let offset = file.sizes.address;
        let length = file.sizes.length;
        let front = file.bytes(address, 10)?;
        let filters = u64::from(u16::from_le_bytes([front[7], front[8]]));
        let len = (26 + 12 * length + 3 * offset) as u64;
        // where blocks are compressed: the length of the root, the mask of filters not applied, the filters
        let len = if filters > 0 { len + length as u64 + 4 + filters } else { len };
        let bytes = file.block(address, len, b"FRHP", true)?;
        let mut input = file.cursor(&bytes);
        input.skip(5)?;
        let id_len = usize::from(input.u16()?);
        input.skip(3)?;
        let most_managed = input.u32()?;
        input.length()?;
        let huge_tree = input.address()?;
        input.skip(length + offset + 8 * length)?;
        let width = u64::from(input.u16()?);
        let start = input.length()?;
        let largest = input.length()?;
        let bits = input.u16()?;
        input.skip(2)?;
        let root = input.address()?;
        let rows = input.u16()?;
        let sizes = start.is_power_of_two() && largest.is_power_of_two() && width.is_power_of_two();
        if !sizes || largest < start || bits > 64 || largest > 1 << 40 || start * width > 1 << 60 {
            return Err(damaged("the header of a heap cannot be true"));
        }
        let has_filters = filters > 0;
        Ok(FractalHeap {
            id_len,
            has_filters,
            most_managed,
            huge_tree,
            width,
            start,
            largest,
            bits,
            root,
            rows,
        })
    }

    /// The object of a heap ID, which links and attributes have.
    pub(super) fn object(&self, file: &H5File, id: &[u8]) -> Result<Vec<u8>, Hdf5Error> {
        if self.has_filters {
            return Err(damaged("its link names are compressed, which is not supported"));
        }
        let mut input = file.cursor(id.get(..self.id_len).unwrap_or(id));
        let first = input.u8()?;
        match first >> 4 & 3 {
            0 => {
                let at = input.uint(usize::from(self.bits.div_ceil(8)))?;
                let within_block = self.largest.max(2).ilog2().div_ceil(8);
                let most = u64::from(self.most_managed.max(1)).ilog2() / 8 + 1;
                let len = input.uint(within_block.min(most) as usize)?;
                file.bytes(self.address_of(file, at)?, len.min(MOST_BYTES + 1))
            }
            1 => self.huge(file, input.rest),
            2 => {
                let len = if self.id_len <= 17 {
                    usize::from(first & 15)
                } else {
                    usize::from(first & 15) << 8 | usize::from(input.u8()?)
                };
                Ok(input.take(len + 1)?.to_vec())
            }
            _ => Err(damaged("an object of a heap is of no known kind")),
        }
    }

    /// An object outside the heap's blocks.
    fn huge(&self, file: &H5File, id: &[u8]) -> Result<Vec<u8>, Hdf5Error> {
        let mut input = file.cursor(id);
        let outside = || damaged("the address of an object of a heap is undefined");
        if self.id_len > file.sizes.address + file.sizes.length {
            let address = input.address()?.ok_or_else(outside)?;
            let len = input.length()?;
            return file.bytes(address, len);
        }
        let wanted = input.uint(id.len().min(file.sizes.length).min(8))?;
        let tree = TreeV2::read(file, self.huge_tree.ok_or_else(outside)?)?;
        if tree.kind != 1 {
            return Err(damaged("the tree of a heap is of another kind"));
        }
        let found = tree.find(file, &|record| {
            let mut record = file.cursor(record);
            record.skip(file.sizes.address + file.sizes.length)?;
            Ok::<Ordering, Hdf5Error>(record.length()?.cmp(&wanted))
        })?;
        let found = found.ok_or_else(outside)?;
        let mut record = file.cursor(&found);
        let address = record.address()?.ok_or_else(outside)?;
        let len = record.length()?;
        file.bytes(address, len)
    }

    /// The address of a byte of the heap's space. A block is not read as a whole for one link, so the checksum of the
    /// block is not compared.
    fn address_of(&self, file: &H5File, at: u64) -> Result<u64, Hdf5Error> {
        let outside = || damaged("an object of a heap is outside of it");
        let mut table = self.root.ok_or_else(outside)?;
        let mut rows = self.rows;
        let mut at = at;
        // the rows of blocks that are not tables
        let direct = (self.largest.ilog2() - self.start.ilog2()) as u16 + 2;
        if rows == 0 {
            return table
                .checked_add(at)
                .filter(|_| at < self.start.max(self.largest))
                .ok_or_else(outside);
        }
        loop {
            let (row, start, size) = self.row(at);
            if row >= rows || rows > 64 {
                return Err(outside());
            }
            let number = u64::from(row) * self.width + (at - start) / size;
            let front = 5 + file.sizes.address + usize::from(self.bits.div_ceil(8));
            let children = u64::from(rows) * self.width * file.sizes.address as u64;
            let bytes =
                file.block(table, children.saturating_add(front as u64 + 4), b"FHIB", true)?;
            let mut input = file.cursor(&bytes);
            input.skip(front + number as usize * file.sizes.address)?;
            let child = input.address()?.ok_or_else(outside)?;
            at = (at - start) % size;
            if row < direct {
                return child.checked_add(at).ok_or_else(outside);
            }
            let first_row = (self.start * self.width).ilog2();
            let inner = size.ilog2().checked_sub(first_row).ok_or_else(outside)? as u16 + 1;
            // an inner table is smaller
            if inner >= rows {
                return Err(outside());
            }
            (table, rows) = (child, inner);
        }
    }

    /// The row of a byte, the start of the row in the table, and the size of its blocks.
    fn row(&self, at: u64) -> (u16, u64, u64) {
        let first = self.start * self.width;
        let Some(doublings) = (at / first).checked_ilog2() else { return (0, 0, self.start) };
        let start = first << doublings;
        (doublings as u16 + 1, start, self.start << doublings)
    }
}
