//! Attributes of files with names of their own (xattr(7)), of systems that have them: Linux and macOS.

use std::fs::File;
use std::os::fd::AsFd;

use rustix::fs::{RenameFlags, XattrFlags, fgetxattr, flistxattr, fsetxattr, renameat_with};
use rustix::io::{Errno, Result};
use rustix::path::Arg;

/// Give a file an attribute, on a file system that has them.
pub(crate) fn set_attribute(file: &File, name: &str, value: &str) {
    let _ = fsetxattr(file, name, value.as_bytes(), XattrFlags::empty());
}

/// The attribute of that name, of up to 256 bytes.
pub(crate) fn attribute(file: &File, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 256];
    let len = fgetxattr(file, name, &mut value[..]).ok()?;
    value.truncate(len);
    Some(value)
}

/// Whether a folder has access lists or other attributes, which a new one would not have.
pub(crate) fn has_attributes(folder: impl AsFd) -> bool {
    let mut list = vec![0; 64 << 10];
    match flistxattr(folder, &mut list[..]) {
        Ok(len) => list[..len]
            .split(|&byte| byte == 0)
            .any(|name| !name.is_empty() && name != b"security.selinux"),
        Err(error) => error != Errno::OPNOTSUPP && error != Errno::NOSYS,
    }
}

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

pub(crate) fn exchange(from: impl AsFd, old: impl Arg, to: impl AsFd, new: impl Arg) -> Result<()> {
    renameat_with(from, old, to, new, RenameFlags::EXCHANGE)
}
