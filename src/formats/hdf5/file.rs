//! The bytes of a file: its superblock, checked pieces, numbers in them, and faults.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::tree::Collections;
use crate::error::{ErrorKind, Fault};
use crate::source::{PieceFolder, Source};
use crate::tensor::brief;

/// The first bytes of a file, at 0, or after a user block of 512 bytes times a power of 2.
pub(crate) const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";

/// The longest piece of metadata that is read at once.
const MOST_BYTES: u64 = 16 << 20;

/// The most bytes of nodes and blocks that are cached for the next chunk or link.
const MOST_CACHED: usize = 4 << 20;

/// The number of first bytes of a file that may contain a driver's name.
const DRIVER: u64 = 2048;

/// The bytes of a page, in which remote files are read.
const PAGE: u64 = 64 << 10;

/// The bytes of the first page of a remote file.
const FIRST: u64 = 16 << 10;

/// A file of HDF5 with its superblock. Addresses count from the superblock.
pub(super) struct H5File {
    source: Arc<dyn Source>,
    base: u64,
    pub(super) sizes: Sizes,
    /// The address of the header of the root group.
    pub(super) root: u64,
    cache: Mutex<BlockCache>,
    scales: Mutex<Scales>,
    collections: Mutex<Collections>,
    pub(super) others: OtherFiles,
}

/// How a file opens the other files that it names (`elsewhere.rs`).
pub(super) struct OtherFiles {
    /// `None` for an input that is no local file.
    pub(super) folder: Option<PieceFolder>,
    /// The path of the file without links; empty for an input that is no local file.
    pub(super) path: PathBuf,
    /// The open files, whose type `elsewhere.rs` knows.
    pub(super) opened: Weak<dyn Any + Send + Sync>,
    /// The same, if this is the input's own file, which owns them.
    pub(super) owned: Option<Arc<dyn Any + Send + Sync>>,
}

/// The names of dimension scales.
#[derive(Default)]
struct Scales {
    /// The names by the addresses of their headers.
    by_address: HashMap<u64, Box<str>>,
    /// The addresses by netCDF's dimension identifiers.
    by_id: HashMap<u64, u64>,
    /// The lengths of axes that may grow, for each axis of a dataset, by the address of its header.
    growing: BTreeMap<u64, Vec<Option<u64>>>,
}

/// The bytes of an address, and of a length.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) address: usize,
    pub(super) length: usize,
}

/// A cache of nodes and blocks, by address and length.
#[derive(Default)]
struct BlockCache {
    blocks: HashMap<(u64, u64), Arc<[u8]>>,
    bytes: usize,
}

impl H5File {
    /// Read the superblock.
    pub(super) fn open(source: Arc<dyn Source>, others: OtherFiles) -> Result<H5File, Hdf5Error> {
        let mut file = H5File {
            source,
            base: 0,
            sizes: Sizes { address: 8, length: 8 },
            root: 0,
            cache: Mutex::default(),
            scales: Mutex::default(),
            collections: Mutex::default(),
            others,
        };
        file.base = file.start().ok_or_else(|| damaged("it has no superblock"))?;
        let most = file.len().min(128);
        let bytes = file.bytes(0, most)?;
        let Superblock { sizes, end, root } = Superblock::parse(&bytes)?;
        let expected = end.ok_or_else(|| damaged("its superblock does not say where it ends"))?;
        let found = file.source.len();
        if expected > found {
            let front = file.bytes(0, file.len().min(DRIVER))?;
            let has = |driver: &[u8]| front.windows(driver.len()).any(|bytes| bytes == driver);
            return Err(if has(b"NCSAfami") || has(b"NCSAmult") {
                Hdf5Error::Family
            } else {
                Hdf5Error::Truncated { expected, found }
            });
        }
        file.root = root.ok_or_else(|| damaged("it has no root group"))?;
        file.sizes = sizes;
        Ok(file)
    }

    pub(super) fn source(&self) -> &dyn Source {
        self.source.as_ref()
    }

    pub(super) fn shared_source(&self) -> Arc<dyn Source> {
        Arc::clone(&self.source)
    }

    fn start(&self) -> Option<u64> {
        let starts = std::iter::successors(Some(512u64), |start| start.checked_mul(2));
        let mut starts = std::iter::once(0).chain(starts);
        let len = self.source.len();
        let within = |start: &u64| start.checked_add(8).is_some_and(|end| end <= len);
        let mut scratch = Vec::new();
        starts.by_ref().take_while(within).find(|start| {
            let found = self.source.window(*start..start + 8, &mut scratch);
            found.is_ok_and(|bytes| bytes == SIGNATURE)
        })
    }

    /// The number of bytes from the superblock to the end.
    pub(super) fn len(&self) -> u64 {
        self.source.len().saturating_sub(self.base)
    }

    /// The position in the file of `len` bytes at an address.
    pub(super) fn position(&self, address: u64, len: u64) -> Result<u64, Hdf5Error> {
        let end = address.checked_add(len).filter(|end| *end <= self.len());
        end.map(|_| self.base + address).ok_or(Hdf5Error::CutShort)
    }

    /// Read `len` bytes of metadata.
    pub(super) fn bytes(&self, address: u64, len: u64) -> Result<Vec<u8>, Hdf5Error> {
        if len > MOST_BYTES {
            return Err(damaged("a piece of its metadata has more than 16 MiB"));
        }
        let outside = |_| damaged("a piece of its metadata is beyond the end of the file");
        let at = self.position(address, len).map_err(outside)?;
        let mut out = vec![0; len as usize];
        if !self.source.is_remote() {
            self.read(at, &mut out)?;
            return Ok(out);
        }
        let mut done = 0;
        while done < out.len() {
            let at = at + done as u64;
            // the first bytes came with the first request
            let (start, len) = if at < FIRST { (0, FIRST) } else { (at / PAGE * PAGE, PAGE) };
            let page = self.cached(start, len, || {
                let mut page = vec![0; len.min(self.source.len() - start) as usize];
                self.read(start, &mut page)?;
                Ok(page)
            })?;
            let found = &page[(at - start) as usize..];
            let count = found.len().min(out.len() - done);
            out[done..done + count].copy_from_slice(&found[..count]);
            done += count;
        }
        Ok(out)
    }

    fn read(&self, at: u64, out: &mut [u8]) -> Result<(), Hdf5Error> {
        let read = self.source.read(at..at + out.len() as u64, &mut Vec::new(), out);
        read.map_err(|error| damaged(&error.to_string()))
    }

    /// Return bytes from the cache, by address and length; otherwise read and cache them.
    fn cached(
        &self,
        address: u64,
        len: u64,
        read: impl FnOnce() -> Result<Vec<u8>, Hdf5Error>,
    ) -> Result<Arc<[u8]>, Hdf5Error> {
        if let Some(block) = lock(&self.cache).blocks.get(&(address, len)) {
            return Ok(Arc::clone(block));
        }
        let block: Arc<[u8]> = read()?.into();
        let mut cache = lock(&self.cache);
        if cache.bytes.saturating_add(block.len()) > MOST_CACHED {
            *cache = BlockCache::default();
        }
        if block.len() <= MOST_CACHED
            && cache.blocks.insert((address, len), block.clone()).is_none()
        {
            cache.bytes += block.len();
        }
        Ok(block)
    }

    /// Read a block through the cache. It begins with a signature; with `is_summed`, it ends with a checksum
    /// of all bytes before.
    pub(super) fn block(
        &self,
        address: u64,
        len: u64,
        signature: &[u8],
        is_summed: bool,
    ) -> Result<Arc<[u8]>, Hdf5Error> {
        self.cached_block(address, len, || {
            let bytes = self.bytes(address, len)?;
            if !bytes.starts_with(signature) {
                let name = String::from_utf8_lossy(signature);
                return Err(Hdf5Error::Damaged(format!("the signature {name} is missing")));
            }
            if is_summed {
                check_sum(&bytes)?;
            }
            Ok(bytes)
        })
    }

    /// Read bytes from an address through the cache, by address and a number.
    pub(super) fn cached_block(
        &self,
        address: u64,
        number: u64,
        read: impl FnOnce() -> Result<Vec<u8>, Hdf5Error>,
    ) -> Result<Arc<[u8]>, Hdf5Error> {
        // a key other than a page's at this address
        self.cached(!address, number, read)
    }

    /// Register the dataset at an address as a dimension scale, with its name and netCDF's identifier.
    pub(super) fn add_scale(&self, address: u64, id: Option<u64>, name: &str) {
        let mut scales = lock(&self.scales);
        scales.by_address.entry(address).or_insert_with(|| name.into());
        if let Some(id) = id {
            scales.by_id.entry(id).or_insert(address);
        }
    }

    /// The name of the dimension scale at an address.
    pub(super) fn scale(&self, address: u64) -> Option<String> {
        lock(&self.scales).by_address.get(&address).map(|name| name.to_string())
    }

    /// The address of the dimension scale with netCDF's identifier.
    pub(super) fn scale_of_id(&self, id: u64) -> Option<u64> {
        lock(&self.scales).by_id.get(&id).copied()
    }

    /// Register the lengths of axes that may grow, for the dataset at an address.
    pub(super) fn add_growing(&self, address: u64, lens: Vec<Option<u64>>) {
        lock(&self.scales).growing.insert(address, lens);
    }

    /// Whether the dataset at an address has axes that may grow.
    pub(super) fn grows(&self, address: u64) -> bool {
        lock(&self.scales).growing.contains_key(&address)
    }

    /// The lengths of axes that may grow, by the addresses of datasets, where the file is netCDF.
    pub(super) fn growing(&self) -> BTreeMap<u64, Vec<Option<u64>>> {
        let scales = lock(&self.scales);
        if scales.by_id.is_empty() { BTreeMap::new() } else { scales.growing.clone() }
    }

    /// The collections of the global heap that were read.
    pub(super) fn collections(&self) -> MutexGuard<'_, Collections> {
        lock(&self.collections)
    }

    /// A cursor over bytes of this file.
    pub(super) fn cursor<'a>(&self, bytes: &'a [u8]) -> Cursor<'a> {
        Cursor::new(bytes, self.sizes)
    }
}

/// Lock a cache. A panic of another thread does not matter: the cache is always consistent.
fn lock<T>(cache: &Mutex<T>) -> MutexGuard<'_, T> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Superblock {
    sizes: Sizes,
    end: Option<u64>,
    /// The address of the header of the root group.
    root: Option<u64>,
}

impl Superblock {
    fn parse(bytes: &[u8]) -> Result<Superblock, Hdf5Error> {
        let mut input = Cursor::new(bytes, Sizes { address: 8, length: 8 });
        input.skip(SIGNATURE.len())?;
        let version = input.u8()?;
        let end = match version {
            0 | 1 => {
                input.skip(4)?;
                input.sizes = sizes_of(&mut input)?;
                input.skip(if version == 0 { 9 } else { 13 })?;
                input.skip(2 * input.sizes.address)?;
                let end = input.address()?;
                // the driver's block, and the name of the root group
                input.skip(2 * input.sizes.address)?;
                end
            }
            2 | 3 => {
                input.sizes = sizes_of(&mut input)?;
                input.skip(1 + 2 * input.sizes.address)?;
                input.address()?
            }
            other => {
                return Err(Hdf5Error::Damaged(format!(
                    "its superblock is of version {other}, which is not known"
                )));
            }
        };
        let root = input.address()?;
        if version > 1 {
            let len = bytes.len() - input.rest.len();
            let sum = input.u32()?;
            if sum != checksum(&bytes[..len]) {
                return Err(damaged("the checksum of the superblock does not match"));
            }
        }
        Ok(Superblock { sizes: input.sizes, end, root })
    }
}

fn sizes_of(input: &mut Cursor<'_>) -> Result<Sizes, Hdf5Error> {
    let sizes = Sizes { address: input.u8()?.into(), length: input.u8()?.into() };
    if [sizes.address, sizes.length].iter().all(|size| matches!(size, 2 | 4 | 8)) {
        Ok(sizes)
    } else {
        Err(damaged("its addresses have a number of bytes that is not known"))
    }
}

/// Compare the checksum at the end of bytes.
pub(super) fn check_sum(bytes: &[u8]) -> Result<(), Hdf5Error> {
    match bytes.split_last_chunk() {
        Some((bytes, sum)) if u32::from_le_bytes(*sum) == checksum(bytes) => Ok(()),
        _ => Err(damaged("a checksum of the metadata does not match")),
    }
}

/// A cursor over bytes; all numbers are little-endian.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    pub(super) rest: &'a [u8],
    pub(super) sizes: Sizes,
}

impl<'a> Cursor<'a> {
    fn new(rest: &'a [u8], sizes: Sizes) -> Cursor<'a> {
        Cursor { rest, sizes }
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Hdf5Error> {
        let ends = || damaged("a piece of its metadata ends too early");
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(ends)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn skip(&mut self, count: usize) -> Result<(), Hdf5Error> {
        self.take(count).map(|_| ())
    }

    /// A number of at most 8 bytes.
    pub(super) fn uint(&mut self, count: usize) -> Result<u64, Hdf5Error> {
        if count > 8 {
            return Err(damaged("a number of its metadata has more than 8 bytes"));
        }
        let mut whole = [0; 8];
        whole[..count].copy_from_slice(self.take(count)?);
        Ok(u64::from_le_bytes(whole))
    }

    pub(super) fn u8(&mut self) -> Result<u8, Hdf5Error> {
        Ok(self.uint(1)? as u8)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Hdf5Error> {
        Ok(self.uint(2)? as u16)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Hdf5Error> {
        Ok(self.uint(4)? as u32)
    }

    /// Read `count` numbers of `bytes` bytes each.
    pub(super) fn uints(&mut self, count: u8, bytes: usize) -> Result<Vec<u64>, Hdf5Error> {
        (0..count).map(|_| self.uint(bytes)).collect()
    }

    pub(super) fn length(&mut self) -> Result<u64, Hdf5Error> {
        self.uint(self.sizes.length)
    }

    /// Read an address; `None` for the undefined address.
    pub(super) fn address(&mut self) -> Result<Option<u64>, Hdf5Error> {
        let nothing = u64::MAX >> (64 - 8 * self.sizes.address);
        Ok(Some(self.uint(self.sizes.address)?).filter(|address| *address != nothing))
    }

    /// Read bytes up to a zero, which is skipped.
    pub(super) fn until_zero(&mut self) -> Result<&'a [u8], Hdf5Error> {
        let Some(end) = self.rest.iter().position(|byte| *byte == 0) else {
            return Err(damaged("a name of its metadata has no end"));
        };
        let name = self.take(end)?;
        self.skip(1)?;
        Ok(name)
    }
}

/// Bob Jenkins' hash `lookup3` of bytes, with the initial value 0.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32);
    let [mut a, mut b, mut c] = [start; 3];
    let word = |bytes: &[u8], at: usize| {
        let byte = |offset: usize| u32::from(bytes.get(at + offset).copied().unwrap_or(0));
        byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24
    };
    // the last 1 to 12 bytes are mixed differently
    let whole = bytes.len().saturating_sub(1) / 12 * 12;
    for block in bytes[..whole].chunks_exact(12) {
        a = a.wrapping_add(word(block, 0));
        b = b.wrapping_add(word(block, 4));
        c = c.wrapping_add(word(block, 8));
        a = a.wrapping_sub(c) ^ c.rotate_left(4);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(6);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(8);
        b = b.wrapping_add(a);
        a = a.wrapping_sub(c) ^ c.rotate_left(16);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(19);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(4);
        b = b.wrapping_add(a);
    }
    let tail = &bytes[whole..];
    if tail.is_empty() {
        return c;
    }
    a = a.wrapping_add(word(tail, 0));
    b = b.wrapping_add(word(tail, 4));
    c = c.wrapping_add(word(tail, 8));
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

/// Why a file or a dataset cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Hdf5Error {
    #[error("{0}")]
    Damaged(String),
    #[error("truncated file: it has {found} bytes, the superblock says {expected}")]
    Truncated { expected: u64, found: u64 },
    #[error("it is one file of a family: h5repart joins the files of a family")]
    Family,
    #[error("{0} are not supported")]
    DType(String),
    #[error("it has no elements and no shape (a null dataspace)")]
    Null,
    #[error("it is a MATLAB structure without fields, which has no elements")]
    NoFields,
    #[error("one of its sources is {0}, which cannot be read through a virtual dataset")]
    Mapping(&'static str),
    #[error("its shape depends on its sources: {0}")]
    Source(String),
    #[error("some of its elements are in another file: {0}")]
    Outside(String),
    #[error("it has no dataset {0:?}")]
    NoDataset(String),
    #[error(
        "it has dtype {found}, not {wanted} as the virtual dataset: elements of sources are not converted"
    )]
    SourceDType { found: String, wanted: String },
    #[error("its shape {0} differs from the shape in the virtual dataset")]
    SourceShape(String),
    #[error("virtual datasets are nested deeper than {0} levels")]
    Nested(usize),
    #[error("it is a link to {0:?}, which is not in this file")]
    DanglingLink(String),
    #[error("it is a link to {path:?} in another file: {reason}")]
    ExternalLink { path: String, reason: String },
    #[error("it is a link to a group that contains it")]
    CyclicLink,
    #[error("it is a link of an unknown kind")]
    Link,
    #[error("its header uses shared object header messages, which are not supported")]
    SharedMessages,
    #[error("its chunks use the filter {0}, which is not supported")]
    Filter(String),
    #[error(
        "its chunks use the filter {0}, which this build does not support: \
         build it with --features hdf5,zarr"
    )]
    Codec(String),
    #[error("its elements are beyond the end of the file")]
    CutShort,
    #[error("it is too large: its bytes do not fit in 63 bits")]
    TooLarge,
    #[error("its groups are nested deeper than {0} levels")]
    Deep(usize),
    #[error("its groups and links make over {0} names")]
    Endless(usize),
}

impl Fault for Hdf5Error {
    const OF: &'static str = "hdf5";

    fn kind(&self) -> ErrorKind {
        match self {
            Hdf5Error::DType(_) => ErrorKind::DType,
            Hdf5Error::Damaged(_) | Hdf5Error::Truncated { .. } | Hdf5Error::CutShort => {
                ErrorKind::Damaged
            }
            Hdf5Error::DanglingLink(_) => ErrorKind::FileMissing,
            _ => ErrorKind::Unsupported,
        }
    }
}

/// The error for a fault of a file, in one line.
pub(super) fn damaged(what: &str) -> Hdf5Error {
    Hdf5Error::Damaged(brief(what))
}

#[cfg(test)]
mod tests {
    use super::checksum;

    #[test]
    fn checksums_are_those_of_lookup3() {
        assert_eq!(checksum(b""), 0xdead_beef);
        // from H5_checksum_lookup3
        assert_eq!(checksum(b"Four score and seven years ago"), 0x1777_0551);
    }
}
