//! Pipes.

use std::fs::File;
use std::os::fd::AsFd;

use rustix::io::Result;
use rustix::pipe::{SpliceFlags, fcntl_setpipe_size, splice};

/// The size of pipes in bytes: the most that users without privileges are allowed. The default of
/// 64 KiB halves the throughput.
const PIPE: usize = 1 << 20;

/// Enlarge a pipe. Errors (the user's quota, not a pipe) are ignored: it is only slower then.
pub(crate) fn enlarge_pipe(fd: impl AsFd) {
    let _ = fcntl_setpipe_size(fd, PIPE);
}

/// Throw away up to `most` of the next bytes of a pipe, uncopied: `null` is `/dev/null`. Says how
/// many; 0 at the end.
pub(crate) fn discard(pipe: &File, null: &File, most: usize) -> Result<usize> {
    splice(pipe, None, null, None, most, SpliceFlags::empty())
}
