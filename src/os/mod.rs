//! System calls beyond the standard library, on every system by the same names.
//!
//! `unix` has the calls of POSIX, under `rustix`'s names; `windows` has functions of the same names for Windows. `linux`
//! has the calls that only Linux has, and `macos` the same functions for macOS. The functions in `other` always fail:
//! callers then fall back, as on old kernels and simple file systems. Windows uses most functions of `other`.
//!
//! `RUSTFLAGS="--cfg tslice_other_system"` selects `other` on Linux too, to test the fallbacks.

#[cfg(all(target_os = "linux", not(tslice_other_system)))]
use linux as system;
#[cfg(all(target_os = "macos", not(tslice_other_system)))]
use macos as system;
#[cfg(all(
    unix,
    any(not(any(target_os = "linux", target_os = "macos")), tslice_other_system)
))]
use other as system;
#[cfg(unix)]
use unix as host;
#[cfg(windows)]
use windows::{self as host, self as system};

#[cfg(all(any(target_os = "linux", target_os = "macos"), not(tslice_other_system)))]
mod attributes;
mod files;
#[cfg(all(target_os = "linux", not(tslice_other_system)))]
mod linux;
#[cfg(all(target_os = "macos", not(tslice_other_system)))]
mod macos;
#[cfg(any(not(target_os = "linux"), tslice_other_system))]
mod other;
#[cfg(unix)]
mod sigbus;
#[cfg(unix)]
mod signals;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

/// The smallest page of memory, and of a file in memory, in bytes; other page sizes are multiples
/// of it. No read of a disk is shorter.
pub(crate) const PAGE: u64 = 4096;

pub use files::{Advice, FileId, note_read, note_will_read};
pub(crate) use files::{FileVersion, StdStream, file_len, has_holes, read_from_stdout};
pub(crate) use host::{
    FileExt, STDIN, Watch, advise_map, appends, before_end, closed_at_start, duplicate,
    expect_anywhere, fd, forget, fs, io, link_aside, link_text, lock, names_in, next_data,
    next_hole, open_at_once, open_file_limit, open_to_read, path, permissions, survive_file_limit,
    truncate, wait_to_read,
};
pub use host::{
    Waiting, end_by_closed_pipe, expanded, is_too_many_open_files, name_of, note_interrupts,
    raise_open_files, remove_unused, terminal_columns, words,
};
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

/// The extended attributes to copy from another file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attributes {
    All,
    /// Access lists alone.
    Lists,
}
