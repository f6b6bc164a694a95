//! Who may be writing a file: asked of the kernel, which knows this machine alone.

#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};

use super::mounts::is_network;

/// The signal that tells the holder of a lease that somebody wants to open the file; ignored unless
/// handled, where the usual one, SIGIO, would end the process.
const SIGNAL: libc::c_int = libc::SIGURG;

/// The number of that request of fcntl(2).
const F_SETSIG: libc::c_int = 10;

/// Whether no process of this machine has the file of this descriptor, which only reads, open to
/// write: a lease to read is granted then (fcntl(2), `F_SETLEASE`), and given back at once. False where
/// there are no leases, as for files of other users, and on network file systems, whose leases are
/// their own.
pub(crate) fn nobody_writes(file: &File) -> bool {
    let lease = |kind: libc::c_int| {
        // SAFETY: both requests take an integer and touch no memory; the descriptor is open.
        unsafe {
            libc::fcntl(file.as_raw_fd(), F_SETSIG, SIGNAL) == 0
                && libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) == 0
        }
    };
    if is_network(file.as_fd()) || !lease(libc::F_RDLCK as libc::c_int) {
        return false;
    }
    lease(libc::F_UNLCK as libc::c_int);
    true
}

/// The number of this run of this machine's kernel; `None` where it does not tell.
pub(crate) fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned()).filter(|id| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_descriptor_that_can_write_is_seen() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let reads = File::open(file.path()).unwrap();
        assert!(!nobody_writes(&reads));
        let path = file.into_temp_path();
        assert!(nobody_writes(&reads) || is_network(&reads));
        drop(path);
    }
}
