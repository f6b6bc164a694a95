//! Many files of which few are open: each is opened when it is read, and closed when others are.
//!
//! A checkpoint of thousands of shards is read so within any limit of descriptors. A file that was replaced
//! in the meantime is an error.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::open::open_regular_file;
use super::{FileRange, OpenError, PreadSource, Source, SourceError, checked_len};
use crate::os::FileId;

/// How many files stay open.
const OPEN: usize = 32;

/// A file that is open.
type OpenFile = (Option<FileId>, Arc<PreadSource>);

/// The files that are open, the one that was read last behind the others.
#[derive(Clone, Default)]
pub struct FilePool {
    open: Arc<Mutex<VecDeque<OpenFile>>>,
}

impl FilePool {
    /// A file that is read through this pool.
    ///
    /// # Errors
    /// As [`open_file`](super::open_file).
    pub fn open(&self, path: &Path) -> Result<Box<dyn Source>, OpenError> {
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

/// A file that is open while it is read, and as long as others need no descriptor.
struct PooledSource {
    path: PathBuf,
    id: Option<FileId>,
    len: u64,
    pool: FilePool,
}

impl PooledSource {
    fn source(&self) -> Result<Arc<PreadSource>, SourceError> {
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

    fn window<'a>(
        &'a self,
        range: Range<u64>,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], SourceError> {
        let count = checked_len(&range, self.len)?;
        if scratch.len() < count {
            scratch.resize(count, 0);
        }
        let window = &mut scratch[..count];
        self.source()?.read(range, &mut Vec::new(), window)?;
        Ok(window)
    }

    fn read(
        &self,
        range: Range<u64>,
        scratch: &mut Vec<u8>,
        out: &mut [u8],
    ) -> Result<(), SourceError> {
        self.source()?.read(range, scratch, out)
    }

    fn places(&self, range: Range<u64>) -> Result<Vec<FileRange>, SourceError> {
        self.source()?.places(range)
    }

    fn window_limit(&self) -> Option<u64> {
        Some(WINDOW)
    }
}

/// The longest window in bytes that is worth reading for a part of it, as of any file read by position.
const WINDOW: u64 = 1 << 20;
