//! Several sources as one: the bytes of each follow the bytes of the previous one.
//!
//! Sharded checkpoints and archives with deflated members are read through this: offsets count through all
//! files, so that the code downstream knows of one source only. A window must lie inside one file. The
//! rest of a pipe after its header is a source that begins after position 0, so that positions from the
//! header need no correction.
//!
//! ```text
//!   file       0            1      2
//!   position   |0 .. 100    |100   |130 ..
//! ```

use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::open::{open_file, open_regular_file};
use super::{
    Advice, FileRange, IoMode, OpenError, PreadSource, Source, SourceError, SourceResult, WINDOW,
    checked_len, read_window,
};
use crate::os::FileId;

#[derive(Default)]
pub struct ConcatSource {
    files: Vec<Segment>,
    len: u64,
    /// The smallest window limit of the files; stored, since every piece of a job asks for it.
    window_limit: Option<u64>,
    /// Whether a file is remote.
    is_remote: bool,
    holes: OnceLock<bool>,
}

struct Segment {
    /// The name of the file in errors, where it is one of several.
    name: Option<String>,
    start: u64,
    source: Arc<dyn Source>,
}

impl ConcatSource {
    /// Append a source; errors in it name it by `name`. Returns the offset of its first byte.
    pub fn push(&mut self, name: String, source: Arc<dyn Source>) -> SourceResult<u64> {
        self.append(Some(name), source)
    }

    /// A source whose byte 0 is at position `start` of the result, with nothing before it.
    pub fn at(start: u64, rest: Arc<dyn Source>) -> SourceResult<ConcatSource> {
        let mut source = ConcatSource { len: start, ..ConcatSource::default() };
        source.append(None, rest)?;
        Ok(source)
    }

    fn append(&mut self, name: Option<String>, source: Arc<dyn Source>) -> SourceResult<u64> {
        let start = self.len;
        let count = source.len();
        let end = start.checked_add(count).filter(|&end| i64::try_from(end).is_ok());
        self.len = end.ok_or(SourceError::OutOfBounds { start, end: u64::MAX, len: count })?;
        self.window_limit = self.window_limit.into_iter().chain(source.window_limit()).min();
        self.is_remote |= source.is_remote();
        self.files.push(Segment { name, start, source });
        Ok(start)
    }

    /// The file that holds a range, and the range relative to that file.
    fn find(&self, range: &Range<u64>) -> SourceResult<(&Segment, Range<u64>)> {
        let at = self.files.partition_point(|file| file.start <= range.start);
        let found = self.files[..at].last().and_then(|file| {
            Some((file, range.start - file.start..range.end.checked_sub(file.start)?))
        });
        let Range { start, end } = *range;
        found.ok_or(SourceError::OutOfBounds { start, end, len: self.len })
    }

    /// The files that hold parts of a range, and the range of each.
    fn parts(&self, range: Range<u64>) -> impl Iterator<Item = (&Segment, Range<u64>)> {
        let first =
            self.files.partition_point(|file| file.start + file.source.len() <= range.start);
        let files = self.files[first..].iter().take_while(move |file| file.start < range.end);
        files.filter_map(move |file| {
            let start = range.start.max(file.start);
            let end = range.end.min(file.start + file.source.len());
            (start < end).then(|| (file, start - file.start..end - file.start))
        })
    }
}

impl Segment {
    fn name_error(&self, error: SourceError) -> SourceError {
        match &self.name {
            Some(name) => error.of_file(name),
            None => error,
        }
    }
}

impl Source for ConcatSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn window<'a>(&'a self, range: Range<u64>, scratch: &'a mut Vec<u8>) -> SourceResult<&'a [u8]> {
        if checked_len(&range, self.len)? == 0 {
            return Ok(&[]);
        }
        let (file, inner) = self.find(&range)?;
        file.source.window(inner, scratch).map_err(|error| file.name_error(error))
    }

    fn read(&self, range: Range<u64>, scratch: &mut Vec<u8>, out: &mut [u8]) -> SourceResult<()> {
        let (file, inner) = self.find(&range)?;
        file.source.read(inner, scratch, out).map_err(|error| file.name_error(error))
    }

    fn window_limit(&self) -> Option<u64> {
        self.window_limit
    }

    fn is_remote(&self) -> bool {
        self.is_remote
    }

    fn file_end(&self, at: u64) -> u64 {
        let next = self.files.partition_point(|file| file.start <= at);
        self.files.get(next).map_or(self.len, |file| file.start)
    }

    fn is_hungry(&self) -> bool {
        self.files.iter().any(|file| file.source.is_hungry())
    }

    fn verify(&self) -> SourceResult<()> {
        self.files
            .iter()
            .try_for_each(|file| file.source.verify().map_err(|error| file.name_error(error)))
    }

    fn file_ranges(&self, range: Range<u64>) -> SourceResult<Vec<FileRange>> {
        let mut ranges = Vec::new();
        for (file, inner) in self.parts(range) {
            ranges.extend(file.source.file_ranges(inner).map_err(|error| file.name_error(error))?);
        }
        Ok(ranges)
    }

    fn file(&self, range: Range<u64>) -> Option<(&File, u64)> {
        let (file, inner) = self.find(&range).ok()?;
        file.source.file(inner)
    }

    fn has_holes(&self) -> bool {
        *self.holes.get_or_init(|| self.files.iter().any(|file| file.source.has_holes()))
    }

    fn is_cached(&self, at: u64) -> bool {
        self.parts(at..at.saturating_add(1)).all(|(file, inner)| file.source.is_cached(inner.start))
    }

    fn reads_ahead(&self, at: u64) -> bool {
        self.parts(at..at.saturating_add(1))
            .all(|(file, inner)| file.source.reads_ahead(inner.start))
    }

    fn advise(&self, range: Range<u64>, advice: Advice) {
        for (file, inner) in self.parts(range) {
            file.source.advise(inner, advice);
        }
    }
}

// A pool of many files, few of which are open: a file is opened to be read, and closed when other files are read. So a
// checkpoint of thousands of shards is read within any limit on descriptors. It is an error if a file was replaced
// before it is opened again.

const OPEN: usize = 32;

/// The number of files above which they are read through a pool.
const POOLED: usize = 192;

/// An opener of an input's files: a few files are opened as the mode says, many files share a pool.
#[derive(Clone)]
pub(crate) struct FileOpener {
    io: IoMode,
    pool: Option<FilePool>,
}

impl FileOpener {
    /// An opener for `count` files.
    pub(crate) fn new(count: usize, io: IoMode) -> FileOpener {
        FileOpener { io, pool: (count > POOLED).then(FilePool::default) }
    }

    pub(crate) fn open(&self, path: &Path) -> Result<Box<dyn Source>, OpenError> {
        match &self.pool {
            Some(pool) => pool.open(path),
            None => open_file(path, self.io),
        }
    }
}

type OpenFile = (Option<FileId>, Arc<PreadSource>);

/// The open files, the last read one at the end.
#[derive(Clone, Default)]
struct FilePool {
    open: Arc<Mutex<VecDeque<OpenFile>>>,
}

impl FilePool {
    fn open(&self, path: &Path) -> Result<Box<dyn Source>, OpenError> {
        let (file, len) = open_regular_file(path)?;
        let id = FileId::of(&file)?;
        let source = Arc::new(PreadSource::new(file, 0, len));
        self.keep(id, &source);
        Ok(Box::new(PooledSource { path: path.to_owned(), id, len, pool: self.clone() }))
    }

    fn keep(&self, id: Option<FileId>, source: &Arc<PreadSource>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.push_back((id, Arc::clone(source)));
        if open.len() > OPEN {
            open.pop_front();
        }
    }
}

/// A file that stays open while it is read, and until others need its descriptor.
struct PooledSource {
    path: PathBuf,
    id: Option<FileId>,
    len: u64,
    pool: FilePool,
}

impl PooledSource {
    fn source(&self) -> SourceResult<Arc<PreadSource>> {
        let mut open = self.pool.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = open.iter().position(|(id, _)| *id == self.id)
            && let Some(found) = open.remove(at)
        {
            let source = Arc::clone(&found.1);
            open.push_back(found);
            return Ok(source);
        }
        drop(open);
        let (file, len) = open_regular_file(&self.path).map_err(std::io::Error::other)?;
        if FileId::of(&file)? != self.id || len < self.len {
            return Err(SourceError::Truncated);
        }
        let source = Arc::new(PreadSource::new(file, 0, self.len));
        self.pool.keep(self.id, &source);
        Ok(source)
    }
}

impl Source for PooledSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn window<'a>(&'a self, range: Range<u64>, scratch: &'a mut Vec<u8>) -> SourceResult<&'a [u8]> {
        read_window(self, range, scratch)
    }

    fn read(&self, range: Range<u64>, scratch: &mut Vec<u8>, out: &mut [u8]) -> SourceResult<()> {
        self.source()?.read(range, scratch, out)
    }

    fn file_ranges(&self, range: Range<u64>) -> SourceResult<Vec<FileRange>> {
        self.source()?.file_ranges(range)
    }

    fn window_limit(&self) -> Option<u64> {
        Some(WINDOW)
    }
}
