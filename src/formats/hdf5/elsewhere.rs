//! Data in other files: the targets of external links, the sources of virtual datasets, and external raw data.
//!
//! Another file is looked for below the folder of the file that names it, and opened when it is needed. All files of an
//! input share two caches: a few open files, and the last decoded chunks of sources.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::dataset;
use super::file::{Cursor, H5File, Hdf5Error, OtherFiles, damaged};
use super::links::Groups;
use super::mappings::Mappings;
use super::tree::LocalHeap;
use crate::chunked::{ChunkCache, Chunked};
use crate::dtype::DType;
use crate::runs::Runs;
use crate::source::{
    ConcatSource, FileOpener, IoMode, OpenedPiece, PieceBox, PieceFolder, PiecedTensors,
    PiecesSource, Source, SourceError, SourceResult,
};
use crate::tensor::{Chunks, IN_PIECES, Storage, StorageKind, TensorInfo};

/// The most other files and datasets that are open at a time.
const MOST_OPEN: usize = 16;

/// The most lists of mappings in the cache.
const MOST_LISTS: usize = 2;

/// The most bytes of sources' decoded chunks in the cache.
const CACHED: u64 = 16 << 20;

/// The deepest nesting of virtual datasets.
const MAX_NESTED: usize = 8;

/// The most sources that are opened to find the length of one dataset.
const MOST_SIZED: u64 = 1 << 20;

/// The other files of an input that are open, shared by all its files.
struct OpenedFiles {
    files: RecentlyUsed<PathBuf, H5File>,
    datasets: RecentlyUsed<(PathBuf, u64, usize), SourceDataset>,
    lists: RecentlyUsed<(PathBuf, u64, u32), Mappings>,
    groups: Mutex<Groups>,
    chunks: ChunkCache,
    count: AtomicU64,
    /// How many sources were opened to find the length of a dataset.
    sized: AtomicU64,
}

/// A cache of the most recently used values.
struct RecentlyUsed<K, V> {
    values: Mutex<VecDeque<(K, Arc<V>)>>,
    most: usize,
}

impl<K: PartialEq, V> RecentlyUsed<K, V> {
    fn new(most: usize) -> RecentlyUsed<K, V> {
        RecentlyUsed { values: Mutex::default(), most }
    }

    fn get<E>(&self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<Arc<V>, E> {
        let lock = || self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let mut values = lock();
        if let Some(at) = values.iter().position(|(known, _)| *known == key)
            && let Some(found) = values.remove(at)
        {
            let value = Arc::clone(&found.1);
            values.push_back(found);
            return Ok(value);
        }
        drop(values);
        let value = Arc::new(make()?);
        let mut values = lock();
        values.push_back((key, Arc::clone(&value)));
        if values.len() > self.most {
            values.pop_front();
        }
        Ok(value)
    }
}

impl OtherFiles {
    /// The other files of an input, for the file at `path`, which the input opens.
    pub(super) fn of_input(path: Option<&Path>, io: IoMode) -> OtherFiles {
        let path = path.and_then(|path| path.canonicalize().ok());
        let owned: Arc<dyn Any + Send + Sync> = Arc::new(OpenedFiles {
            files: RecentlyUsed::new(MOST_OPEN),
            datasets: RecentlyUsed::new(MOST_OPEN),
            lists: RecentlyUsed::new(MOST_LISTS),
            groups: Mutex::new(Groups::new(usize::MAX)),
            chunks: ChunkCache::of_bytes(CACHED),
            count: AtomicU64::new(0),
            sized: AtomicU64::new(0),
        });
        let opener = FileOpener::new(usize::MAX, io);
        let folder = path.as_deref().and_then(Path::parent);
        let folder = folder.map(|folder| PieceFolder::new(folder, opener));
        let opened = Arc::downgrade(&owned);
        OtherFiles { folder, path: path.unwrap_or_default(), opened, owned: Some(owned) }
    }

    /// Whether this file is not the input itself: then its bytes have no position in the input.
    pub(super) fn are_of_another(&self) -> bool {
        self.owned.is_none()
    }

    fn opened(&self) -> SourceResult<Arc<OpenedFiles>> {
        let opened = self.opened.upgrade().and_then(|opened| opened.downcast().ok());
        opened.ok_or(SourceError::Truncated)
    }

    fn folder(&self) -> SourceResult<&PieceFolder> {
        let none = "pieces in other files are only read beside a file that is here";
        self.folder.as_ref().ok_or_else(|| SourceError::Io(std::io::Error::other(none)))
    }

    fn of(&self, path: &Path) -> OtherFiles {
        let folder = self.folder.as_ref().map(|folder| folder.of(path));
        OtherFiles { folder, path: path.to_owned(), opened: self.opened.clone(), owned: None }
    }
}

/// An error, with the name of the file added.
fn in_file(name: &str, error: &Hdf5Error) -> SourceError {
    SourceError::Io(std::io::Error::other(error.to_string())).of_file(name)
}

impl H5File {
    pub(super) fn is_same(&self, other: &H5File) -> bool {
        self.others.path == other.others.path
    }

    /// Check that a name does not lead out of the folder of the file.
    pub(super) fn check_name(&self, name: &str) -> Result<(), Hdf5Error> {
        let Some(folder) = self.others.folder.as_ref().filter(|_| name != ".") else {
            return Ok(());
        };
        folder.named(name).map(drop).map_err(|error| Hdf5Error::Outside(error.to_string()))
    }

    /// Open the file of this name; `.` is the file itself.
    pub(super) fn other(&self, name: &str) -> SourceResult<Arc<H5File>> {
        if name != "." {
            return self.other_at(&self.others.folder()?.path(name)?, name);
        }
        self.others.opened()?.files.get(self.others.path.clone(), || {
            let others = self.others.of(&self.others.path);
            H5File::open(self.shared_source(), others).map_err(|error| in_file(name, &error))
        })
    }

    fn other_at(&self, path: &Path, name: &str) -> SourceResult<Arc<H5File>> {
        let others = self.others.of(path);
        self.others.opened()?.files.get(path.to_owned(), || {
            let source = others.folder()?.open(&path.to_string_lossy());
            let source = source.map_err(|error| match error {
                SourceError::File { error, .. } => error.of_file(name),
                other => other,
            })?;
            H5File::open(source.into(), others).map_err(|error| in_file(name, &error))
        })
    }

    /// Open a dataset of another file, as a source at nesting level `depth` of virtual datasets.
    pub(super) fn source_dataset(
        &self,
        name: &str,
        path: &str,
        depth: usize,
    ) -> SourceResult<Arc<SourceDataset>> {
        let said = if name == "." { path } else { name };
        if depth > MAX_NESTED {
            return Err(in_file(said, &Hdf5Error::Nested(MAX_NESTED)));
        }
        let other = self.other(name)?;
        let opened = self.others.opened()?;
        let found = {
            let mut groups = opened.groups.lock().unwrap_or_else(PoisonError::into_inner);
            groups.resolve(&other, other.root, path.as_bytes())
        };
        let found = found.map_err(|error| in_file(said, &error))?;
        let missing = || in_file(said, &Hdf5Error::NoDataset(path.to_owned()));
        let (file, address) = found.ok_or_else(missing)?;
        opened.dataset(&file, address, depth).map_err(|error| in_file(said, &error))
    }

    /// Open a source at nesting level `depth`, to find the length of a virtual dataset.
    pub(super) fn sized_source(
        &self,
        name: &str,
        path: &str,
        depth: usize,
    ) -> Result<SourceResult<Arc<SourceDataset>>, Hdf5Error> {
        if let Ok(opened) = self.others.opened()
            && opened.sized.fetch_add(1, Ordering::Relaxed) > MOST_SIZED
        {
            return Err(Hdf5Error::Mapping(
                "one of more than 1048576 whose sources say its length",
            ));
        }
        Ok(self.source_dataset(name, path, depth + 1))
    }

    /// Begin to find the length of an outermost dataset: count opened sources anew.
    pub(super) fn begin_sizing(&self) {
        if let Ok(opened) = self.others.opened() {
            opened.sized.store(0, Ordering::Relaxed);
        }
    }

    /// The mappings of a virtual dataset, from the list at this address of the global heap.
    pub(super) fn mappings(
        self: &Arc<H5File>,
        (collection, index): (u64, u32),
        read: impl FnOnce() -> SourceResult<Mappings>,
    ) -> SourceResult<Arc<Mappings>> {
        self.others.opened()?.lists.get((self.others.path.clone(), collection, index), read)
    }
}

impl OpenedFiles {
    fn dataset(
        &self,
        file: &Arc<H5File>,
        address: u64,
        depth: usize,
    ) -> Result<Arc<SourceDataset>, Hdf5Error> {
        self.datasets.get((file.others.path.clone(), address, depth), || {
            let TensorInfo { dtype, shape, storage, .. } = dataset::source(file, address, depth)?;
            let chunks = match storage.kind {
                StorageKind::Chunks(chunks) => chunks,
                _ => return Err(damaged("its elements are not in chunks")),
            };
            let item = dtype.item_bits() / 8;
            let number = self.count.fetch_add(1, Ordering::Relaxed);
            // a virtual dataset has no chunks in the cache: its sources have
            let number = (storage.shard != IN_PIECES).then_some(number);
            let chunked = Chunked::new(Arc::clone(&chunks), &shape, item);
            let chunked =
                chunked.ok_or_else(|| damaged("its chunks do not have its number of axes"))?;
            Ok(SourceDataset { chunks, chunked, number, dtype, shape, file: Arc::clone(file) })
        })
    }
}

/// A dataset that is a source of a virtual dataset.
pub(super) struct SourceDataset {
    pub(super) chunks: Arc<dyn Chunks>,
    chunked: Chunked,
    /// The number of the dataset in the cache of decoded chunks.
    number: Option<u64>,
    pub(super) dtype: DType,
    pub(super) shape: Vec<u64>,
    file: Arc<H5File>,
}

impl SourceDataset {
    /// Read the elements at runs of positions.
    pub(super) fn read(&self, runs: &Runs, out: &mut [u8]) -> SourceResult<()> {
        let opened = self.file.others.opened()?;
        let cache = self.number.map(|number| (&opened.chunks, number));
        self.chunked.read(runs, self.file.source(), cache, out)
    }
}

/// The chunks of a dataset in another file. The file is opened when a chunk is decoded.
struct LinkedChunks {
    root: Arc<H5File>,
    path: PathBuf,
    address: u64,
    shape: Vec<u64>,
}

/// A tensor of another file as a tensor of the input, for an external link.
pub(super) fn linked(
    root: &Arc<H5File>,
    file: &H5File,
    address: u64,
    tensor: TensorInfo,
) -> TensorInfo {
    let StorageKind::Chunks(chunks) = &tensor.storage.kind else { return tensor };
    let shape = chunks.chunk_shape().to_vec();
    let path = file.others.path.clone();
    let chunks = LinkedChunks { root: Arc::clone(root), path, address, shape };
    TensorInfo { storage: in_pieces(chunks), ..tensor }
}

/// The storage of a tensor whose elements are in other files.
pub(super) fn in_pieces(chunks: impl Chunks + 'static) -> Storage {
    Storage { shard: IN_PIECES, data: 0..0, kind: StorageKind::Chunks(Arc::new(chunks)) }
}

impl Chunks for LinkedChunks {
    fn chunk_shape(&self) -> &[u64] {
        &self.shape
    }

    fn decode(&self, at: &[u64], needed: u64, _: &dyn Source) -> SourceResult<Vec<u8>> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let file = self.root.other_at(&self.path, &name)?;
        let opened = self.root.others.opened()?;
        let dataset = opened.dataset(&file, self.address, 0);
        let dataset = dataset.map_err(|error| in_file(&name, &error))?;
        let decoded = dataset.chunks.decode(at, needed, file.source());
        decoded.map_err(|error| error.of_file(&name))
    }
}

impl fmt::Debug for LinkedChunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkedChunks").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The elements of a dataset, `bytes` long in all, in the external files that `message` lists.
pub(super) fn raw_data(
    file: &Arc<H5File>,
    message: &mut Cursor<'_>,
    bytes: u64,
) -> Result<Arc<dyn Source>, Hdf5Error> {
    message.skip(6)?;
    let count = message.u16()?;
    let heap = message.address()?.ok_or_else(|| damaged("the list of its files has no address"))?;
    let heap = LocalHeap::read(file, heap)?;
    let mut files = Vec::new();
    let mut boxes = Vec::new();
    let mut end = 0;
    for _ in 0..count {
        let name = String::from_utf8_lossy(&heap.text(file, message.length()?)?).into_owned();
        file.check_name(&name)?;
        let (first, len) = (message.length()?, message.length()?.min(bytes - end));
        if first.checked_add(len).is_none() {
            return Err(damaged("an external file has an impossible position"));
        }
        boxes.push(PieceBox { offset: vec![end], shape: vec![len] });
        files.push((name, first));
        end += len;
    }
    if end < bytes {
        return Err(damaged("its external files are too short for its elements"));
    }
    let mut tensors = PiecedTensors::default();
    tensors.push(&[bytes], boxes).ok_or(Hdf5Error::TooLarge)?;
    let file = Arc::clone(file);
    let open = move |number: usize| {
        let (name, first) = &files[number];
        let mut source = ConcatSource::default();
        source.push(name.clone(), file.others.folder()?.open(name)?.into())?;
        Ok(OpenedPiece { source: Arc::new(source), first: *first, strides: vec![1] })
    };
    Ok(Arc::new(PiecesSource::new(tensors, open)))
}
