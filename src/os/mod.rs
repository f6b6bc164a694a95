//! What the program asks of the system beyond the standard library and POSIX.
//!
//! `linux` holds what only Linux has, `macos` what macOS has of that. `other` has none of it: its
//! calls fail, and callers fall back as they do on old kernels and poor file systems. The rest is
//! the same on all systems: open files, standard streams, signals, the handler for lost pages of
//! maps. Nothing here knows the user's files by path.
//!
//! `RUSTFLAGS="--cfg tslice_other_system"` selects `other` on Linux too, to test the fallbacks.

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

/// The smallest page of memory, and of a file in it, in bytes; other page sizes are multiples of
/// it. A disk is asked for no less.
pub(crate) const PAGE: u64 = 4096;

pub use files::{
    Advice, FileId, is_too_many_open_files, note_read, note_will_read, raise_open_files,
};
pub(crate) use files::{
    NO_TERMINAL, NO_WAIT, STDIN, StdStream, closed_at_start, is_ignored, next_data, next_hole,
    open_file_limit, read_from_stdout,
};
#[cfg(feature = "remote")]
pub(crate) use system::machine_vendor;
pub use system::{EXCHANGES_NAMES, UNNAMED_FILES};
pub(crate) use system::{
    LOADED, advise_file, allocate, allocate_within, attribute, boot_id, clone_file, clone_over,
    clone_range, copy_range, discard, enlarge_pipe, exchange, has_attributes, is_cached,
    is_descriptors, is_fixed, is_in_memory, is_network, link_unnamed, load, load_to_write,
    mapped_pages, memory_bytes, nobody_writes, open_place, open_unnamed, open_within_mount,
    path_of, populate, populate_to_write, reads_ahead, rename_to_free, set_attribute, settle,
};

/// Wait until a non-blocking descriptor is ready.
pub(crate) fn wait(fd: impl AsFd, ready: PollFlags) -> std::io::Result<()> {
    match poll(&mut [PollFd::new(&fd, ready)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
