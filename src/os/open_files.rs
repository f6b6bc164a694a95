//! How files are opened, and how many a process may have open.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// For `custom_flags`: a terminal that is opened does not become that of this process.
pub(crate) const NO_TERMINAL: i32 = libc::O_NOCTTY;

/// For `custom_flags`: opening does not wait for the other end of a FIFO either.
pub(crate) const NO_WAIT: i32 = libc::O_NOCTTY | libc::O_NONBLOCK;

/// Let this process have as many open files as its hard limit allows. The soft one, mostly 1,024, is
/// meant for programs that use `select`; a checkpoint of 700 files that is written as 700 others
/// needs more. A library does not change the limits of a process: this is for programs to call.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some() && limit.current != limit.maximum {
        // where that is not allowed, opening one file too many will say so
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
}

/// How many files this process may have open at a time.
pub(crate) fn open_file_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Whether an error says that the process has too many open files.
pub fn is_too_many_open_files(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMFILE)
}
