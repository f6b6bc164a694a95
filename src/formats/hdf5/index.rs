//! The indexes of chunks, which give the offset of each chunk in the file.

use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};

use super::file::{Cursor, H5File, Hdf5Error, damaged};
use super::tree::{NodeV1, TreeV2};
use crate::source::Source;

pub(super) enum Index {
    /// No chunk was written.
    Nothing,
    /// All elements are contiguous from an address.
    Contiguous(u64),
    /// All elements are contiguous from the beginning of a source of their own.
    External(Arc<dyn Source>),
    /// A version 1 B-tree.
    OldTree(u64),
    /// A single chunk at an address; if filtered, with its length and the mask of filters that were not applied.
    Single(u64, Option<(u64, u32)>),
    /// All chunks are contiguous.
    Implicit(u64),
    /// An array with an entry for each possible chunk.
    Fixed(u64),
    /// An array that grows along an axis.
    Extensible(u64),
    /// A version 2 B-tree, whose header is read with the first chunk.
    TreeV2(u64, OnceLock<TreeV2>),
}

/// The address and the length of a chunk, and a bit mask of the filters that were not applied.
pub(super) struct StoredChunk {
    pub(super) address: u64,
    pub(super) len: u64,
    pub(super) skipped: u32,
}

/// The chunks of a dataset along its axes.
pub(super) struct Grid {
    pub(super) chunk: Vec<u64>,
    /// The most chunks along each axis; `None` where an axis may grow.
    pub(super) counts: Vec<Option<u64>>,
    /// The bytes of a chunk before its filters.
    pub(super) bytes: u64,
}

impl Grid {
    /// The number of a chunk in C order, where an axis that may grow comes first.
    fn number(&self, at: &[u64]) -> Result<u64, Hdf5Error> {
        let growing = self.counts.iter().position(Option::is_none);
        let others = (0..at.len()).filter(|axis| Some(*axis) != growing);
        let mut axes = growing.into_iter().chain(others);
        let number = axes.try_fold(0u64, |number, axis| {
            let count = self.counts[axis].unwrap_or(0);
            number.checked_mul(count)?.checked_add(at[axis])
        });
        number.ok_or_else(|| damaged("it has too many chunks"))
    }
}

impl Index {
    /// Find a chunk; `None` for a chunk that was never written.
    pub(super) fn find(
        &self,
        file: &H5File,
        grid: &Grid,
        at: &[u64],
    ) -> Result<Option<StoredChunk>, Hdf5Error> {
        match *self {
            Index::Nothing | Index::Contiguous(_) | Index::External(_) => Ok(None),
            Index::OldTree(address) => old_tree(file, address, grid, at),
            Index::Single(address, filtered) => {
                let (len, skipped) = filtered.unwrap_or((grid.bytes, 0));
                Ok(Some(StoredChunk { address, len, skipped }))
            }
            Index::Implicit(address) => {
                let behind = grid.number(at)?.checked_mul(grid.bytes);
                let address = behind.and_then(|behind| address.checked_add(behind));
                let address = address.ok_or(Hdf5Error::CutShort)?;
                Ok(Some(StoredChunk { address, len: grid.bytes, skipped: 0 }))
            }
            Index::Fixed(address) => fixed(file, address, grid, grid.number(at)?),
            Index::Extensible(address) => extensible(file, address, grid, grid.number(at)?),
            Index::TreeV2(address, ref tree) => {
                let tree = match tree.get() {
                    Some(tree) => tree,
                    None => {
                        let read = TreeV2::read(file, address)?;
                        tree.get_or_init(|| read)
                    }
                };
                new_tree(file, tree, grid, at)
            }
        }
    }
}

fn old_tree(
    file: &H5File,
    address: u64,
    grid: &Grid,
    at: &[u64],
) -> Result<Option<StoredChunk>, Hdf5Error> {
    // the length, the mask, and the first element along each axis and in an element
    let key_len = 8 + 8 * (at.len() + 1);
    let order = |key: &[u8]| {
        let mut axes = key[8..].chunks_exact(8).zip(at.iter().zip(&grid.chunk));
        let unequal = axes.find_map(|(bytes, (at, len))| {
            let found = bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
            Some(found.cmp(&at.saturating_mul(*len))).filter(|order| order.is_ne())
        });
        unequal.unwrap_or(Ordering::Equal)
    };
    let mut address = address;
    let mut above = u8::MAX;
    loop {
        let node = NodeV1::read(file, address, 1, key_len)?;
        if node.level >= above {
            return Err(damaged("the tree of its chunks contains itself"));
        }
        // find the last child whose first chunk is not after this one
        let mut from = 0;
        let mut to = node.count;
        while from < to {
            let middle = (from + to) / 2;
            if order(node.key(file, middle)).is_gt() { to = middle } else { from = middle + 1 }
        }
        let Some(number) = from.checked_sub(1) else { return Ok(None) };
        if node.level > 0 {
            (address, above) = (node.child(file, number)?, node.level);
            continue;
        }
        let key = node.key(file, number);
        if order(key).is_ne() {
            return Ok(None);
        }
        let mut input = file.cursor(key);
        let len = input.u32()?.into();
        let skipped = input.u32()?;
        return Ok(Some(StoredChunk { address: node.child(file, number)?, len, skipped }));
    }
}

fn new_tree(
    file: &H5File,
    tree: &TreeV2,
    grid: &Grid,
    at: &[u64],
) -> Result<Option<StoredChunk>, Hdf5Error> {
    let axes = 8 * at.len();
    let front = tree.record.checked_sub(axes).filter(|_| matches!(tree.kind, 10 | 11));
    let front = front.ok_or_else(|| damaged("the tree of its chunks is of another kind"))?;
    let found = tree.find(file, &|record| {
        let numbers = record[front..].chunks_exact(8);
        let numbers = numbers
            .map(|bytes| bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)));
        Ok(numbers.cmp(at.iter().copied()))
    })?;
    let Some(record) = found else { return Ok(None) };
    entry(&mut file.cursor(&record[..front]), grid)
}

/// Read an index entry: the address of a chunk, and with filters its length and mask.
fn entry(input: &mut Cursor<'_>, grid: &Grid) -> Result<Option<StoredChunk>, Hdf5Error> {
    let address = input.address()?;
    let mut len = grid.bytes;
    let mut skipped = 0;
    if let Some(bytes) = input.rest.len().checked_sub(4).filter(|_| !input.rest.is_empty()) {
        len = input.uint(bytes)?;
        skipped = input.u32()?;
    }
    Ok(address.map(|address| StoredChunk { address, len, skipped }))
}

/// Entries of one length in a block, or in pages of a block.
struct Entries {
    bytes: u64,
    /// The entries of a page.
    page: u64,
}

impl Entries {
    fn new(bytes: u8, page_bits: u8) -> Result<Entries, Hdf5Error> {
        if !(2..=24).contains(&bytes) || page_bits > 40 {
            return Err(damaged("the array of its chunks is impossible"));
        }
        Ok(Entries { bytes: bytes.into(), page: 1 << page_bits })
    }

    /// Find an entry in a block of `count` entries, which follow `front` bytes.
    fn find(
        &self,
        file: &H5File,
        (address, signature): (u64, &[u8]),
        (count, front): (u64, u64),
        number: u64,
        grid: &Grid,
    ) -> Result<Option<StoredChunk>, Hdf5Error> {
        let too_long = || damaged("the array of its chunks is too long");
        let whole = |count: u64| count.checked_mul(self.bytes).and_then(|len| len.checked_add(4));
        let (block, at) = if count <= self.page {
            let len = whole(count).and_then(|len| len.checked_add(front)).ok_or_else(too_long)?;
            (file.block(address, len, signature, true)?, front + number * self.bytes)
        } else {
            // pages follow the front and its checksum; each page has a checksum
            let page = number / self.page;
            let length = whole(self.page.min(count - page * self.page)).ok_or_else(too_long)?;
            let behind = whole(self.page).and_then(|len| len.checked_mul(page));
            let start =
                behind.and_then(|behind| behind.checked_add(address)?.checked_add(front + 4));
            let page = file.block(start.ok_or_else(too_long)?, length, b"", true)?;
            (page, number % self.page * self.bytes)
        };
        let bytes = block.get(at as usize..(at + self.bytes) as usize).ok_or_else(too_long)?;
        entry(&mut file.cursor(bytes), grid)
    }
}

/// Whether a bit is set; bit 0 is the highest bit of the first byte.
fn is_set(bits: &[u8], number: u64) -> bool {
    bits.get((number / 8) as usize).is_some_and(|byte| byte << (number % 8) & 0x80 != 0)
}

fn fixed(
    file: &H5File,
    address: u64,
    grid: &Grid,
    number: u64,
) -> Result<Option<StoredChunk>, Hdf5Error> {
    let len = 12 + file.sizes.length + file.sizes.address;
    let header = file.block(address, len as u64, b"FAHD", true)?;
    let mut input = file.cursor(&header);
    input.skip(6)?;
    let entries = Entries::new(input.u8()?, input.u8()?)?;
    let count = input.length()?;
    let Some(block) = input.address()? else { return Ok(None) };
    if number >= count {
        return Err(damaged("the array of its chunks is too short"));
    }
    let mut front = 6 + file.sizes.address as u64;
    if count > entries.page {
        let bits = count.div_ceil(entries.page).div_ceil(8);
        let bytes =
            file.block(block, front.saturating_add(bits).saturating_add(4), b"FADB", true)?;
        if !is_set(&bytes[front as usize..], number / entries.page) {
            return Ok(None);
        }
        front += bits;
    }
    entries.find(file, (block, b"FADB"), (count, front), number, grid)
}

fn extensible(
    file: &H5File,
    address: u64,
    grid: &Grid,
    number: u64,
) -> Result<Option<StoredChunk>, Hdf5Error> {
    match ExtensibleArray::read(file, address)? {
        Some(array) => array.find(file, grid, number),
        None => Ok(None),
    }
}

/// The header of an array of chunks that grows. Its index block has some entries, the addresses of the data blocks in
/// the first rows, and for each further row the address of a super block.
struct ExtensibleArray {
    entries: Entries,
    index: u64,
    /// The number of entries in the index block itself.
    in_index: u64,
    least: u64,
    rows: u32,
    /// The number of rows whose data blocks are in the index block, and the number of these data blocks.
    near_rows: u32,
    near: u64,
    /// The bytes before the content of the index block, and of other blocks.
    front: u64,
    block_front: u64,
}

/// The data block of an entry, in a row of blocks.
struct DataBlock {
    row: u32,
    /// The number of blocks in the row, and the number of this block.
    blocks: u64,
    block: u64,
    /// The number of entries in the block, and the number of this entry.
    count: u64,
    number: u64,
}

impl ExtensibleArray {
    /// The header at an address; `None` where no chunk was written yet.
    fn read(file: &H5File, address: u64) -> Result<Option<ExtensibleArray>, Hdf5Error> {
        let len = 16 + 6 * file.sizes.length + file.sizes.address;
        let header = file.block(address, len as u64, b"EAHD", true)?;
        let mut input = file.cursor(&header);
        input.skip(6)?;
        let entry = input.u8()?;
        let bits = input.u8()?;
        let in_index = input.u8()?.into();
        let least = u64::from(input.u8()?);
        let pointers = input.u8()?;
        let entries = Entries::new(entry, input.u8()?)?;
        input.skip(6 * file.sizes.length)?;
        let Some(index) = input.address()? else { return Ok(None) };
        let sound = least.is_power_of_two() && pointers.is_power_of_two() && bits <= 64;
        let rows = u32::from(bits).checked_sub(least.max(1).ilog2()).filter(|_| sound);
        let rows = rows.ok_or_else(|| damaged("the array of its chunks is impossible"))? + 1;
        let near_rows = 2 * u32::from(pointers).ilog2();
        let near = 2 * (u64::from(pointers) - 1);
        let front = 6 + file.sizes.address as u64;
        let block_front = front + u64::from(bits.div_ceil(8));
        Ok(Some(ExtensibleArray {
            entries,
            index,
            in_index,
            least,
            rows,
            near_rows,
            near,
            front,
            block_front,
        }))
    }

    fn find(
        &self,
        file: &H5File,
        grid: &Grid,
        number: u64,
    ) -> Result<Option<StoredChunk>, Hdf5Error> {
        let width = file.sizes.address as u64;
        let far = u64::from(self.rows.saturating_sub(self.near_rows));
        let inner = self.in_index * self.entries.bytes;
        let index_len = self.front + inner + (self.near + far) * width + 4;
        let index = file.block(self.index, index_len, b"EAIB", true)?;
        let mut input = file.cursor(&index);
        input.skip(self.front as usize)?;
        let Some(behind) = number.checked_sub(self.in_index) else {
            input.skip((number * self.entries.bytes) as usize)?;
            return entry(&mut file.cursor(input.take(self.entries.bytes as usize)?), grid);
        };
        input.skip(inner as usize)?;
        let at = self.row_block(behind)?;
        if at.row < self.near_rows {
            // the number of blocks in earlier rows: 1, 1, 2, 2, 4, ...
            let before: u64 = (0..at.row).map(|row| 1 << (row / 2)).sum();
            input.skip(((before + at.block) * width) as usize)?;
            return match input.address()? {
                Some(address) => self.find_in_block(file, grid, address, &at),
                None => Ok(None),
            };
        }
        input.skip(((self.near + u64::from(at.row - self.near_rows)) * width) as usize)?;
        let Some(address) = input.address()? else { return Ok(None) };
        let page = self.entries.page;
        let pages = if at.count > page { at.count / page } else { 0 };
        let bitmap = at.blocks.saturating_mul(pages.div_ceil(8));
        let len = bitmap.saturating_add(self.block_front + at.blocks * width + 4);
        let super_block = file.block(address, len, b"EASB", true)?;
        let mut input = file.cursor(&super_block);
        input.skip(self.block_front as usize)?;
        let bits = input.take(bitmap as usize)?;
        if pages > 0 && !is_set(bits, at.block * pages + at.number / page) {
            return Ok(None);
        }
        input.skip((at.block * width) as usize)?;
        match input.address()? {
            Some(address) => self.find_in_block(file, grid, address, &at),
            None => Ok(None),
        }
    }

    /// The data block of the entry after `before` others, the entries in the index block aside.
    fn row_block(&self, before: u64) -> Result<DataBlock, Hdf5Error> {
        // row r has 2^(r/2) blocks, each with 2^((r+1)/2) times as many entries as the smallest block
        let row = (before / self.least).saturating_add(1).ilog2();
        if row >= self.rows {
            return Err(damaged("the array of its chunks is too short"));
        }
        let in_row = before - ((1 << row) - 1) * self.least;
        let count = self.least << row.div_ceil(2);
        Ok(DataBlock {
            row,
            blocks: 1u64 << (row / 2),
            block: in_row / count,
            count,
            number: in_row % count,
        })
    }

    fn find_in_block(
        &self,
        file: &H5File,
        grid: &Grid,
        address: u64,
        at: &DataBlock,
    ) -> Result<Option<StoredChunk>, Hdf5Error> {
        let block = (address, &b"EADB"[..]);
        self.entries.find(file, block, (at.count, self.block_front), at.number, grid)
    }
}
