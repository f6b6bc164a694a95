//! File systems and what they are mounted on, and the machine.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, Mode, OFlags, ResolveFlags, StatxAttributes, StatxFlags, fstatfs, openat2, statx,
};
use rustix::io::{Result, retry_on_intr};

/// Whether a file is on a network file system or FUSE, where mapping is slow, another machine may
/// truncate the file, and write errors may be reported as late as `close`.
pub(crate) fn is_network(fd: impl AsFd) -> bool {
    magic(fd).is_some_and(|magic| NETWORK.contains(&magic))
}

/// Whether a file is on a file system that keeps its files in memory.
pub(crate) fn is_in_memory(fd: impl AsFd) -> bool {
    magic(fd).is_some_and(|magic| IN_MEMORY.contains(&magic))
}

/// Whether a directory is of `/proc`, where a link in a folder of descriptors stands for one of them,
/// whatever its text says.
pub(crate) fn is_descriptors(dir: impl AsFd) -> bool {
    magic(dir) == Some(PROC)
}

/// The low 32 bits are the magic number; the type of the field differs between machines.
fn magic(fd: impl AsFd) -> Option<u32> {
    fstatfs(fd).ok().map(|fs| fs.f_type as u32)
}

const PROC: u32 = 0x9fa0;

/// Magic numbers of `tmpfs` and `ramfs`.
const IN_MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58f6];

/// Magic numbers of `statfs(2)` and of the file systems' own sources.
const NETWORK: [u32; 15] = [
    0x0000_6969, // NFS
    0x0000_517b, // SMB
    0xff53_4d42, // CIFS
    0xfe53_4d42, // SMB 2 and later
    0x6573_5546, // FUSE: sshfs, s3fs, virtiofs
    0x0102_1997, // 9P
    0x00c3_6400, // Ceph
    0x0bd0_0bd0, // Lustre
    0x4750_4653, // GPFS
    0x1983_0326, // BeeGFS
    0x5346_414f, // AFS
    0x6b41_4653, // AFS of the kernel
    0x7375_7245, // Coda
    0x0000_564c, // NCP
    0x786f_4256, // VirtualBox shared folders
];

/// Open a folder to ask what it is, unless another file system is mounted there.
pub(crate) fn open_within_mount(dir: impl AsFd, name: &Path) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    retry_on_intr(|| openat2(&dir, name, flags, Mode::empty(), ResolveFlags::NO_XDEV))
}

/// Whether a name in a folder cannot be taken away: an immutable file, a place where one is mounted.
pub(crate) fn is_fixed(dir: impl AsFd, name: &str) -> bool {
    let fixed = StatxAttributes::IMMUTABLE | StatxAttributes::APPEND | StatxAttributes::MOUNT_ROOT;
    let stat = statx(dir, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty());
    stat.is_ok_and(|stat| stat.stx_attributes.intersects(fixed))
}

/// Who made this machine, by its firmware.
#[cfg(feature = "remote")]
pub(crate) fn machine_vendor() -> Option<String> {
    std::fs::read_to_string("/sys/class/dmi/id/sys_vendor").ok()
}
