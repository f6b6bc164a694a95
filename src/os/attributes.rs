//! Extended attributes of files (xattr(7)), and the exchange of two names, on Linux and macOS.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::fs::{
    RenameFlags, XattrFlags, fgetxattr, fremovexattr, fsetxattr, lgetxattr, llistxattr,
    renameat_with,
};
use rustix::io::{Errno, Result};
use rustix::path::Arg;

use super::Attributes;
use super::system::path_in;

/// The prefix of this program's own attributes, which are never copied to another file.
const OWN: &[u8] = b"user.tslice.";

/// Access control lists (acl(5)): the rights on a file, and the rights on files that are made in a folder.
const LISTS: [&str; 2] = ["system.posix_acl_access", "system.posix_acl_default"];

/// The most bytes of one attribute's value, and of the names of all attributes of a file.
const MOST: usize = 64 << 10;

/// Set an attribute of a file; does nothing on file systems without them.
pub(crate) fn set_attribute(file: &File, name: &str, value: &str) {
    let _ = fsetxattr(file, name, value.as_bytes(), XattrFlags::empty());
}

/// The value of an attribute, of up to 256 bytes.
pub(crate) fn attribute(file: &File, name: &str) -> Option<Vec<u8>> {
    let mut value = Vec::with_capacity(256);
    fgetxattr(file, name, spare_capacity(&mut value)).ok()?;
    Some(value)
}

/// Copy the attributes of the file or folder `name` to `new`, and remove from `new` the access lists that `name`
/// lacks. Without the old group (`has_group` false), a list gives the new group only the rights of all others.
/// Other attributes that the system refuses to set are left out.
pub(crate) fn take_attributes(
    new: impl AsFd,
    dir: &OwnedFd,
    name: &OsStr,
    which: Attributes,
    has_group: bool,
) -> Result<()> {
    let old = path_in(dir, name);
    // not zeroed: most files have no attributes, and then this memory is never touched
    let mut names = Vec::with_capacity(MOST);
    match llistxattr(&old, spare_capacity(&mut names)) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
        // the old file is gone, or no path leads to it
        Err(Errno::NOENT | Errno::NOTDIR) => {}
        listed => _ = listed?,
    }
    let is_list = |name: &[u8]| LISTS.iter().any(|list| list.as_bytes() == name);
    let names = names.split(|&byte| byte == 0);
    let names = names.filter(|name| !name.is_empty() && !name.starts_with(OWN));
    for list in LISTS.iter().filter(|list| !names.clone().any(|name| name == list.as_bytes())) {
        let _ = fremovexattr(&new, *list);
    }
    let mut value = Vec::with_capacity(MOST);
    // lists last: they may take away the right to set other attributes
    let others = names.clone().filter(|name| which == Attributes::All && !is_list(name));
    for name in others.chain(names.filter(|name| is_list(name))) {
        value.clear();
        if lgetxattr(&old, name, spare_capacity(&mut value)).is_err() {
            continue;
        }
        if is_list(name) && !has_group {
            lend_no_group(&mut value);
        }
        match fsetxattr(&new, name, &value, XattrFlags::empty()) {
            Err(error) if is_list(name) || name.starts_with(b"user.") => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Give the entry of the file's group in an access list the rights of all others. After four bytes, each entry
/// has a kind, rights and a number, in 2, 2 and 4 bytes.
fn lend_no_group(list: &mut [u8]) {
    const GROUP: u8 = 0x04;
    const OTHERS: u8 = 0x20;
    let entries = list.get_mut(4..).unwrap_or_default();
    let others = entries.chunks_exact(8).find(|entry| entry[0] == OTHERS);
    let Some(rights) = others.map(|entry| entry[2]) else { return };
    entries
        .chunks_exact_mut(8)
        .filter(|entry| entry[0] == GROUP)
        .for_each(|entry| entry[2] = rights);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_is_not_the_old_one_has_the_rights_of_all_others() {
        let entry = |kind: u8, rights: u8| [kind, 0, rights, 0, 255, 255, 255, 255];
        let list = |group| {
            let entries = [entry(1, 7), entry(2, 6), entry(4, group), entry(16, 6), entry(32, 4)];
            [[2, 0, 0, 0].as_slice(), &entries.concat()].concat()
        };
        let mut found = list(7);
        lend_no_group(&mut found);
        assert_eq!(found, list(4));
        lend_no_group(&mut []);
    }
}
