//! B-trees of both kinds. The old ones hold names of groups and chunks, the new ones records of some bytes.

use std::cmp::Ordering;

use super::error::{Hdf5Error, damaged};
use super::file::H5File;

/// The deepest tree.
const MAX_DEPTH: u16 = 40;

/// A node of an old tree: its level, and the key and the address of each child. A key follows the last child.
pub(super) struct OldNode {
    pub(super) level: u8,
    bytes: std::sync::Arc<[u8]>,
    /// The bytes in front of its first key.
    front: usize,
    /// The bytes of a key.
    key: usize,
    pub(super) count: usize,
}

impl OldNode {
    /// The node at an address, of a tree of that kind whose keys have so many bytes.
    ///
    /// # Errors
    /// [`Hdf5Error::Damaged`].
    pub(super) fn read(
        file: &H5File,
        address: u64,
        kind: u8,
        key: usize,
    ) -> Result<OldNode, Hdf5Error> {
        let front = 8 + 2 * file.sizes.address;
        // kept as one block, since each chunk is looked up in several nodes
        let bytes = file.kept_block(address, key as u64, || {
            let mut bytes = file.bytes(address, front as u64)?;
            let count = usize::from(u16::from_le_bytes([bytes[6], bytes[7]]));
            if !bytes.starts_with(b"TREE") {
                return Err(damaged("there is no TREE where one should be"));
            }
            let len = count * (key + file.sizes.address) + key;
            bytes.extend(file.bytes(address.saturating_add(front as u64), len as u64)?);
            Ok(bytes)
        })?;
        let mut input = file.cursor(&bytes);
        input.skip(4)?;
        let (found, level, count) = (input.u8()?, input.u8()?, usize::from(input.u16()?));
        let len = front + count * (key + file.sizes.address) + key;
        if found != kind || bytes.len() != len {
            return Err(damaged("a node of its tree is of another kind"));
        }
        Ok(OldNode { level, bytes, front, key, count })
    }

    fn at(&self, file: &H5File, number: usize) -> usize {
        self.front + number * (self.key + file.sizes.address)
    }

    /// The bytes of a key; there is one more than children.
    pub(super) fn key(&self, file: &H5File, number: usize) -> &[u8] {
        let at = self.at(file, number);
        &self.bytes[at..at + self.key]
    }

    /// The address of a child.
    ///
    /// # Errors
    /// [`Hdf5Error::Damaged`]: it has none.
    pub(super) fn child(&self, file: &H5File, number: usize) -> Result<u64, Hdf5Error> {
        let at = self.at(file, number) + self.key;
        let address = file.cursor(&self.bytes[at..]).address()?;
        address.ok_or_else(|| damaged("a node of its tree lies nowhere"))
    }
}

/// A new tree.
pub(super) struct NewTree {
    /// What its records are.
    pub(super) kind: u8,
    /// The bytes of a record.
    pub(super) record: usize,
    depth: u16,
    root: Option<u64>,
    root_count: usize,
    /// For each level, how many bytes the count of all records below has; of the leaves none.
    totals: Vec<usize>,
    /// How many bytes the count of the records of a node has.
    count: usize,
}

/// How many bytes numbers up to that one have.
fn bytes_of(number: u64) -> usize {
    (number.max(1).ilog2() / 8 + 1) as usize
}

impl NewTree {
    /// Read the header of a tree.
    ///
    /// # Errors
    /// [`Hdf5Error::Damaged`].
    pub(super) fn read(file: &H5File, address: u64) -> Result<NewTree, Hdf5Error> {
        let len = 22 + file.sizes.address + file.sizes.length;
        let bytes = file.block(address, len as u64, b"BTHD", true)?;
        let mut input = file.cursor(&bytes);
        input.skip(5)?;
        let kind = input.u8()?;
        let (node, record, depth) = (u64::from(input.u32()?), input.u16()?, input.u16()?);
        input.skip(2)?;
        let (root, root_count) = (input.address()?, usize::from(input.u16()?));
        // what surrounds the records of a node
        const AROUND: u64 = 10;
        let record_bytes = u64::from(record);
        if record == 0 || depth > MAX_DEPTH || node < AROUND + record_bytes {
            return Err(damaged("the header of its tree cannot be true"));
        }
        let most = (node - AROUND) / record_bytes;
        let count = bytes_of(most);
        let (mut totals, mut below, mut total) = (vec![0], most, 0);
        for _ in 0..depth {
            let pointer = (file.sizes.address + count + total) as u64;
            let room =
                node.checked_sub(AROUND + pointer).map(|room| room / (record_bytes + pointer));
            let most = room.ok_or_else(|| damaged("the nodes of its tree are too short"))?;
            below = below.saturating_mul(most.saturating_add(1)).saturating_add(most);
            total = bytes_of(below);
            totals.push(total);
        }
        Ok(NewTree { kind, record: record.into(), depth, root, root_count, totals, count })
    }

    /// The records of a node, and the place and number of records of each of its children.
    fn node(
        &self,
        file: &H5File,
        address: u64,
        count: usize,
        level: u16,
    ) -> Result<NewNode, Hdf5Error> {
        let total = self.totals.get(usize::from(level).wrapping_sub(1)).copied().unwrap_or(0);
        let pointer = file.sizes.address + self.count + total;
        let children = if level == 0 { 0 } else { (count + 1) * pointer };
        let len = 6 + count * self.record + children + 4;
        let signature: &[u8] = if level == 0 { b"BTLF" } else { b"BTIN" };
        let bytes = file.block(address, len as u64, signature, true)?;
        Ok(NewNode { bytes, pointer })
    }

    fn child(
        &self,
        file: &H5File,
        node: &NewNode,
        count: usize,
        number: usize,
    ) -> Result<(u64, usize), Hdf5Error> {
        let at = 6 + count * self.record + number * node.pointer;
        let mut input = file.cursor(node.bytes.get(at..).unwrap_or_default());
        let address = input.address()?.ok_or_else(|| damaged("a node of its tree lies nowhere"))?;
        Ok((address, input.uint(self.count)? as usize))
    }

    /// Visit all records, in their order.
    ///
    /// # Errors
    /// [`Hdf5Error::Damaged`], those of `visit`.
    pub(super) fn each(
        &self,
        file: &H5File,
        visit: &mut dyn FnMut(&[u8]) -> Result<(), Hdf5Error>,
    ) -> Result<(), Hdf5Error> {
        // no piece of a file is more than one node
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
        let cyclic = || damaged("a node of its tree lies below itself");
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

    /// The record that is equal to what is looked for; `order` says where a record stands beside that.
    ///
    /// # Errors
    /// [`Hdf5Error::Damaged`], those of `order`.
    pub(super) fn find(
        &self,
        file: &H5File,
        order: &dyn Fn(&[u8]) -> Result<Ordering, Hdf5Error>,
    ) -> Result<Option<Vec<u8>>, Hdf5Error> {
        let Some(mut address) = self.root else { return Ok(None) };
        let mut count = self.root_count;
        for level in (0..=self.depth).rev() {
            let node = self.node(file, address, count, level)?;
            let (mut from, mut to) = (0, count);
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

/// A node of a new tree.
struct NewNode {
    bytes: std::sync::Arc<[u8]>,
    /// The bytes of a pointer to a child.
    pointer: usize,
}

impl NewNode {
    fn record(&self, tree: &NewTree, number: usize) -> &[u8] {
        let at = 6 + number * tree.record;
        &self.bytes[at..at + tree.record]
    }
}
