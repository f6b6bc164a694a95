//! Whether standard output is a file that this run reads.
//!
//! `tslice info a.npy >> a.npy` would write what it reads, as `cat a >> a` would, which refuses it. All
//! inputs are opened in few places, whatever they are (tensors, lists, names of files); each tells it
//! here, and whoever writes to standard output asks.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{FileType, Stat, fstat, stat};

use super::FileId;

/// The name of the first input that is standard output.
static READ: OnceLock<String> = OnceLock::new();

/// Tell that an input was opened. An empty file is none: `> a.npy` has emptied it before.
pub fn note_read(input: impl AsFd, name: impl FnOnce() -> String) {
    if let Ok(stat) = fstat(input) {
        note(&stat, name);
    }
}

/// Tell that a file is going to be opened, where something is printed before that.
pub fn note_will_read(path: &Path) {
    if let Ok(stat) = stat(path) {
        note(&stat, || path.display().to_string());
    }
}

fn note(stat: &Stat, name: impl FnOnce() -> String) {
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_size == 0 {
        return;
    }
    if FileId::of(io::stdout()).is_ok_and(|output| output == FileId::from_stat(stat)) {
        READ.get_or_init(name);
    }
}

/// The input that is standard output, if one is.
pub(crate) fn read_from_stdout() -> Option<&'static str> {
    READ.get().map(String::as_str)
}
