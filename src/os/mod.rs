//! System calls beyond the standard library and POSIX.
//!
//! `linux` holds the calls that only Linux has, and `macos` their counterparts on macOS. In `other`
//! these calls fail, and callers fall back as on old kernels and simple file systems. The other
//! files serve all systems: open files, standard streams, signals, the handler for lost pages of
//! maps. Nothing here knows the user's files by path.
//!
//! `RUSTFLAGS="--cfg tslice_other_system"` selects `other` on Linux too, to test the fallbacks.

use std::io::{self, Write};
use std::os::fd::AsFd;

#[cfg(all(target_os = "linux", not(tslice_other_system)))]
use linux as system;
#[cfg(all(target_os = "macos", not(tslice_other_system)))]
use macos as system;
#[cfg(any(not(any(target_os = "linux", target_os = "macos")), tslice_other_system))]
use other as system;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

#[cfg(all(any(target_os = "linux", target_os = "macos"), not(tslice_other_system)))]
mod attributes;
mod files;
#[cfg(all(target_os = "linux", not(tslice_other_system)))]
mod linux;
#[cfg(all(target_os = "macos", not(tslice_other_system)))]
mod macos;
#[cfg(any(not(target_os = "linux"), tslice_other_system))]
mod other;
pub(crate) mod sigbus;
mod signals;

/// The smallest page of memory, and of a file in memory, in bytes; other page sizes are multiples
/// of it. No read of a disk is shorter.
pub(crate) const PAGE: u64 = 4096;

pub use files::{
    Advice, FileId, is_too_many_open_files, note_read, note_will_read, raise_open_files,
};
pub(crate) use files::{
    NO_TERMINAL, NO_WAIT, STDIN, StdStream, closed_at_start, has_holes, next_data, next_hole,
    open_file_limit, read_from_stdout,
};
pub(crate) use signals::{end_by, ending_signals};
#[cfg(feature = "remote")]
pub(crate) use system::machine_vendor;
pub use system::{EXCHANGES_NAMES, UNNAMED_FILES};
pub(crate) use system::{
    LOADED, advise_file, allocate, allocate_within, attribute, clone_file, clone_over, clone_range,
    copy_range, discard, enlarge_pipe, exchange, is_cached, is_descriptors, is_fixed, is_in_memory,
    is_network, link_unnamed, load, load_to_write, mapped_pages, memory_bytes, open_place,
    open_unnamed, open_within_mount, path_of, populate, populate_to_write, reads_ahead,
    rename_to_free, set_attribute, settle, take_attributes,
};

/// Which extended attributes to copy from another file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attributes {
    All,
    /// Access lists alone.
    Lists,
}

/// Wait until a non-blocking descriptor is ready.
pub(crate) fn wait(fd: impl AsFd, ready: PollFlags) -> io::Result<()> {
    match poll(&mut [PollFd::new(&fd, ready)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A writer to a descriptor that waits where a non-blocking descriptor is not ready.
#[derive(Debug)]
pub struct Waiting<Fd>(pub Fd);

impl<Fd: AsFd> Write for Waiting<Fd> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // systems other than Linux refuse longer writes
        let some = &bytes[..bytes.len().min(1 << 30)];
        loop {
            match rustix::io::write(&self.0, some) {
                Err(Errno::AGAIN) => wait(&self.0, PollFlags::OUT)?,
                written => return Ok(written?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
