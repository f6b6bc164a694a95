//! The rights that a new file takes over from the file that it replaces: owner, group, mode, access lists and other
//! extended attributes. So it has the rights that `cp` would leave, which writes into the existing file. The same holds
//! for folders.
//!
//! Where the system refuses the old group, the new group gets only the rights of all others; a set-user-ID or
//! set-group-ID bit is taken over only with its owner or group.

use std::ffi::OsStr;

use super::{SinkError, SinkResult};
use crate::os::fd::{AsFd, OwnedFd};
use crate::os::fs::{AtFlags, Gid, Mode, RawMode, Uid, fchmod, fchown, fstat, statat};
use crate::os::io::Errno;
use crate::os::{self, Attributes};

/// The file or folder whose rights are taken over.
#[derive(Clone, Copy, Debug)]
pub(super) struct RightsOf<'a> {
    pub(super) dir: &'a OwnedFd,
    pub(super) name: &'a OsStr,
    /// The attributes to copy: `Lists` for a file beside the new one, not in its place.
    pub(super) attributes: Attributes,
}

impl<'a> RightsOf<'a> {
    pub(super) fn replaced(dir: &'a OwnedFd, name: &'a OsStr) -> RightsOf<'a> {
        RightsOf { dir, name, attributes: Attributes::All }
    }

    pub(super) fn neighbour(dir: &'a OwnedFd, name: &'a OsStr) -> RightsOf<'a> {
        RightsOf { dir, name, attributes: Attributes::Lists }
    }

    /// Give the rights to a file or folder that nobody else has opened. Returns whether it also has the owner and
    /// the group; `None` where the old name is free.
    pub(super) fn give(&self, new: impl AsFd) -> SinkResult<Option<bool>> {
        let failed = SinkError::os::<Errno>("cannot be given its permissions");
        let old = match statat(self.dir, self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            old => old.map_err(failed)?,
        };
        let ours = fstat(&new).map_err(failed)?;
        let group = Some(Gid::from_raw(old.st_gid));
        let has_group = ours.st_gid == old.st_gid || fchown(&new, None, group).is_ok();
        let mode = |bits: RawMode| Mode::from_raw_mode(bits);
        let others = old.st_mode & 0o7;
        let rights = old.st_mode & 0o777;
        let rights = if has_group { rights } else { rights & 0o707 | others << 3 };
        // setting attributes needs the right to write
        let writable = rights | 0o200;
        fchmod(&new, mode(writable)).map_err(failed)?;
        os::take_attributes(&new, self.dir, self.name, self.attributes, has_group)
            .map_err(failed)?;
        // the owner last, since the rights may be for the new owner alone
        let owner = Some(Uid::from_raw(old.st_uid));
        let has_owner = ours.st_uid == old.st_uid || fchown(&new, owner, None).is_ok();
        let lent = if has_owner { 0 } else { 0o4000 } | if has_group { 0 } else { 0o2000 };
        let special = old.st_mode & 0o7000 & !lent;
        // an access list sets the mode
        let listed = fstat(&new).map_err(failed)?.st_mode & 0o777;
        let wanted = if listed == writable { rights } else { listed } | special;
        if wanted != listed {
            fchmod(&new, mode(wanted)).map_err(failed)?;
        }
        Ok(Some(has_group && has_owner))
    }
}
