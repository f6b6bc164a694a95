//! What `source` and `sink` both ask of Linux and the standard library doesn't offer.
//!
//! Small questions about a file descriptor (is it on a network, was it there when the process
//! began, can its pipe be longer), and outliving the loss of mapped pages. Nothing here opens a
//! file or knows a path of the user's.

use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

pub(crate) mod sigbus;
pub(crate) mod stdio;

/// What pipes are enlarged to, in bytes: the most that an ordinary user is allowed. The default
/// of 64 KiB costs half of a pipe's rate.
const PIPE: usize = 1 << 20;

/// Enlarge a pipe. A refusal (the user's quota, no pipe at all) only makes it slower.
pub(crate) fn enlarge_pipe(fd: impl AsFd) {
    let _ = rustix::pipe::fcntl_setpipe_size(fd, PIPE);
}

/// Wait until a descriptor that somebody else made non-blocking is ready.
pub(crate) fn wait(fd: impl AsFd, ready: PollFlags) -> std::io::Result<()> {
    match poll(&mut [PollFd::new(&fd, ready)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether a file lies on a network file system or in FUSE, where mapping is slow, another
/// machine may cut the file short, and write errors may come as late as `close`.
pub(crate) fn is_network(fd: impl AsFd) -> bool {
    // The low 32 bits are the magic number; the type of the field differs between machines.
    rustix::fs::fstatfs(fd).is_ok_and(|fs| NETWORK.contains(&(fs.f_type as u32)))
}

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
