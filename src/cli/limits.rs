//! Limits of the process that are raised as far as it may raise them itself.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Allow as many open files as the hard limit does. The soft one, mostly 1,024, is meant for programs
/// that use `select`; a checkpoint of 700 files that is written as 700 others needs more.
pub(super) fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some() && limit.current != limit.maximum {
        // where that is not allowed, opening one file too many will say so
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
}
