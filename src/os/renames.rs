//! Renaming with conditions, of systems that have it: renameat2(2) of Linux, renameatx_np(2) of macOS.

use std::os::fd::AsFd;

use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::Result;
use rustix::path::Arg;

/// Whether the system exchanges names, on file systems that can.
pub const EXCHANGES_NAMES: bool = true;

/// Rename a file, unless something has the new name.
pub(crate) fn rename_to_free(
    from: impl AsFd,
    old: impl Arg,
    to: impl AsFd,
    new: impl Arg,
) -> Result<()> {
    renameat_with(from, old, to, new, RenameFlags::NOREPLACE)
}

/// Exchange two names.
pub(crate) fn exchange(from: impl AsFd, old: impl Arg, to: impl AsFd, new: impl Arg) -> Result<()> {
    renameat_with(from, old, to, new, RenameFlags::EXCHANGE)
}
