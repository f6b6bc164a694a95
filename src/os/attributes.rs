//! Extended attributes of files (xattr(7)) and exchanged names, on Linux and macOS.

use std::fs::File;
use std::os::fd::AsFd;

use rustix::fs::{RenameFlags, XattrFlags, fgetxattr, flistxattr, fsetxattr, renameat_with};
use rustix::io::{Errno, Result};
use rustix::path::Arg;

/// Set an attribute of a file; does nothing on file systems without them.
pub(crate) fn set_attribute(file: &File, name: &str, value: &str) {
    let _ = fsetxattr(file, name, value.as_bytes(), XattrFlags::empty());
}

/// The value of an attribute, of up to 256 bytes.
pub(crate) fn attribute(file: &File, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 256];
    let len = fgetxattr(file, name, &mut value[..]).ok()?;
    value.truncate(len);
    Some(value)
}

/// Whether a folder has attributes, such as access lists, that a new one lacks; true if unknown.
pub(crate) fn has_attributes(folder: impl AsFd) -> bool {
    let mut list = vec![0; 64 << 10];
    match flistxattr(folder, &mut list[..]) {
        Ok(len) => list[..len]
            .split(|&byte| byte == 0)
            .any(|name| !name.is_empty() && name != b"security.selinux"),
        Err(error) => error != Errno::OPNOTSUPP && error != Errno::NOSYS,
    }
}

/// Whether the system can exchange two names, on file systems that can.
pub const EXCHANGES_NAMES: bool = true;

pub(crate) fn rename_to_free(
    from: impl AsFd,
    old: impl Arg,
    to: impl AsFd,
    new: impl Arg,
) -> Result<()> {
    renameat_with(from, old, to, new, RenameFlags::NOREPLACE)
}

pub(crate) fn exchange(from: impl AsFd, old: impl Arg, to: impl AsFd, new: impl Arg) -> Result<()> {
    renameat_with(from, old, to, new, RenameFlags::EXCHANGE)
}
