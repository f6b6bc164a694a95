//! Temporary names that are removed when a signal ends the process.
//!
//! While a [`TempName`] lives, signals that can be caught unlink its name before they end the process as usual. A
//! thread that is started with the first name handles them, so a process without names keeps its signals unchanged.
//! One lock is held during every change of a name, and by the thread until the process ends, so that no name is
//! missed.
//!
//! **Why no package.** `tempfile` makes the spool of a pipe, but cannot give a name to its unnamed files, and
//! removes named ones by path. Here an unnamed file is linked to its name, so that a kill leaves nothing behind, and
//! a temporary name lives in a directory that is held open, so that a moved folder does not matter.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::BuildHasher;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::os::fs::{AtFlags, Mode, OFlags, openat, unlinkat};
use crate::os::io::Errno;

use crate::os::{self, before_end, names_in};

use crate::os::fd::OwnedFd;

pub(super) const PREFIX: &str = ".tslice-";

pub(super) const RANDOM: usize = 12;

/// The kind of file under a temporary name, and what must be removed with it.
#[derive(Clone, Debug)]
pub(super) enum TempKind {
    File,
    /// A folder, and the names of the files in it.
    Folder(Vec<OsString>),
    /// A folder, with all files and folders below.
    Tree,
}

#[derive(Clone, Debug)]
struct Named {
    dir: Arc<OwnedFd>,
    kind: TempKind,
}

impl Named {
    fn unlink(&self, name: &str) {
        // Errors are ignored: this runs in `drop`, or while a signal ends the process. Repeated, since another
        // thread may still be putting files into the folder.
        for _ in 0..1000 {
            match &self.kind {
                TempKind::File => {
                    let _ = unlinkat(&self.dir, name, AtFlags::empty());
                    return;
                }
                TempKind::Folder(files) => files.iter().for_each(|file| {
                    let _ = unlinkat(&self.dir, Path::new(name).join(file), AtFlags::empty());
                }),
                TempKind::Tree => empty_tree(&self.dir, OsStr::new(name)),
            }
            match unlinkat(&self.dir, name, AtFlags::REMOVEDIR) {
                Err(Errno::NOTEMPTY | Errno::EXIST) => {}
                _ => return,
            }
        }
    }
}

pub(super) fn remove_tree(dir: &OwnedFd, name: &OsStr) -> os::io::Result<()> {
    empty_tree(dir, name);
    unlinkat(dir, name, AtFlags::REMOVEDIR)
}

/// Remove the content of a folder at any depth, as far as possible.
fn empty_tree(dir: &OwnedFd, name: &OsStr) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(folder) = openat(dir, name, flags, Mode::empty()) else { return };
    for name in names_in(&folder).unwrap_or_default() {
        if unlinkat(&folder, &name, AtFlags::empty()).is_err() {
            empty_tree(&folder, &name);
            let _ = unlinkat(&folder, &name, AtFlags::REMOVEDIR);
        }
    }
}

/// All existing temporary names; no two are equal, even in different directories.
static NAMES: Mutex<BTreeMap<String, Named>> = Mutex::new(BTreeMap::new());

/// A temporary name; dropping it unlinks the name.
#[derive(Debug)]
pub(super) struct TempName {
    name: String,
    named: Named,
}

impl TempName {
    /// Call `make` with a random name to create in `dir`; again with another name if the first exists.
    pub(super) fn create<T>(
        dir: &Arc<OwnedFd>,
        make: impl Fn(&str) -> os::io::Result<T>,
    ) -> io::Result<(Self, T)> {
        Self::create_as(dir, PREFIX, TempKind::File, make)
    }

    /// Create a name as [`TempName::create`] does, with the prefix `prefix`, for any kind.
    pub(super) fn create_as<T>(
        dir: &Arc<OwnedFd>,
        prefix: &str,
        kind: TempKind,
        make: impl Fn(&str) -> os::io::Result<T>,
    ) -> io::Result<(Self, T)> {
        watch()?;
        let mut names = lock(&NAMES);
        for _ in 0..1000 {
            let name = random_name(prefix);
            let named = Named { dir: Arc::clone(dir), kind: kind.clone() };
            if names.contains_key(&name) {
                continue;
            }
            match make(&name) {
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
                Ok(made) => {
                    names.insert(name.clone(), named.clone());
                    return Ok((Self { name, named }, made));
                }
            }
        }
        Err(Errno::EXIST.into())
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn dir(&self) -> &Arc<OwnedFd> {
        &self.named.dir
    }

    pub(super) fn kind(&self) -> TempKind {
        self.named.kind.clone()
    }

    pub(super) fn leave(&self) {
        lock(&NAMES).remove(&self.name);
    }

    /// Let `place` rename the file, from its directory, to its final name. If this fails, the name remains
    /// temporary.
    pub(super) fn persist(
        &self,
        place: impl FnOnce(&OwnedFd, &str) -> os::io::Result<()>,
    ) -> io::Result<()> {
        let mut names = lock(&NAMES);
        place(&self.named.dir, &self.name)?;
        names.remove(&self.name);
        Ok(())
    }
}

impl Drop for TempName {
    fn drop(&mut self) {
        let mut names = lock(&NAMES);
        if let Some(named) = names.remove(&self.name) {
            named.unlink(&self.name);
        }
    }
}

/// A lock that delays all handled signals while it is held.
static PLACING: Mutex<()> = Mutex::new(());

thread_local! {
    /// Whether this thread holds the lock already: several outputs are put in place, one of which is a folder.
    static IS_PLACING: Cell<bool> = const { Cell::new(false) };
}

/// Call `work`, which puts files in place, and delay signals that would end the process until it is done.
pub(super) fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    if IS_PLACING.get() {
        return work();
    }
    // without the thread that handles signals, they act as usual
    let _watched = watch();
    let _placing = PLACING.lock().unwrap_or_else(PoisonError::into_inner);
    IS_PLACING.set(true);
    let result = work();
    IS_PLACING.set(false);
    result
}

/// A name of a prefix and [`RANDOM`] hexadecimal digits, from the random keys that std draws for hash maps.
pub(super) fn random_name(prefix: &str) -> String {
    let random = RandomState::new().hash_one(std::process::id());
    format!("{prefix}{:0RANDOM$x}", random >> 16)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that is being extended in place.
#[derive(Debug)]
pub(super) struct Growing {
    pub(super) file: File,
    /// The original end of the file.
    pub(super) end: u64,
}

impl Growing {
    /// Cut the file at its original end. An error is ignored, as for names.
    pub(super) fn cut(&self) {
        if self.file.metadata().is_ok_and(|file| file.len() > self.end) {
            let _ = os::truncate(&self.file, self.end);
        }
    }
}

/// The files that a signal cuts before it ends the process. A writer holds a read lock meanwhile, so that nothing is
/// written after the cut.
pub(super) static GROWING: RwLock<Vec<Arc<Growing>>> = RwLock::new(Vec::new());

/// Start the thread that waits for signals, once.
pub(super) fn watch() -> io::Result<()> {
    static STARTED: Mutex<bool> = Mutex::new(false);
    let mut started = lock(&STARTED);
    if *started {
        return Ok(());
    }
    before_end(|end| {
        let _placing = PLACING.lock().unwrap_or_else(PoisonError::into_inner);
        let names = lock(&NAMES);
        names.iter().for_each(|(name, named)| named.unlink(name));
        let growing = GROWING.write().unwrap_or_else(PoisonError::into_inner);
        growing.iter().for_each(|file| file.cut());
        // with the locks still held
        end()
    })?;
    *started = true;
    Ok(())
}
