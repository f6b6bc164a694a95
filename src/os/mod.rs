//! Linux calls that `source` and `sink` share.
//!
//! Questions about file descriptors (network file system, closed at the start, size of a pipe),
//! about memory and about who writes a file, and the handler for lost pages of maps. Nothing here
//! knows files of the user by path.

use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

pub use file_id::FileId;
pub(crate) use memory::memory_bytes;
pub(crate) use open_files::open_file_limit;
pub use open_files::{is_too_many_open_files, raise_open_files};
pub(crate) use read_files::read_from_stdout;
pub use read_files::{note_read, note_will_read};
pub(crate) use writers::{boot_id, nobody_writes};

mod file_id;
mod memory;
mod open_files;
mod read_files;
pub(crate) mod sigbus;
pub(crate) mod stdio;
mod writers;

/// The size of pipes in bytes: the most that users without privileges are allowed. The default of
/// 64 KiB halves the throughput.
const PIPE: usize = 1 << 20;

/// Enlarge a pipe. Errors (the user's quota, not a pipe) are ignored: it is only slower then.
pub(crate) fn enlarge_pipe(fd: impl AsFd) {
    let _ = rustix::pipe::fcntl_setpipe_size(fd, PIPE);
}

/// How many pages of files are mapped into this process, about, of those in memory; 0 where the
/// kernel does not tell.
pub(crate) fn mapped_pages() -> u64 {
    let pages = |statm: String| statm.split(' ').nth(2)?.parse().ok();
    std::fs::read_to_string("/proc/self/statm").ok().and_then(pages).unwrap_or(0)
}

/// How far a kernel reads ahead, at least, that need not be asked to, in bytes.
const FAR_AHEAD: u64 = 1 << 20;

/// Whether the kernel reads far ahead of who reads a file in order. False where it does not tell:
/// on file systems without a disk of their own.
pub(crate) fn reads_ahead(file: impl AsFd) -> bool {
    let Ok(stat) = rustix::fs::fstat(file) else { return false };
    let (major, minor) = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
    // a partition has none, but the disk that it is on
    let kib = ["queue", "../queue"].iter().find_map(|queue| {
        let path = format!("/sys/dev/block/{major}:{minor}/{queue}/read_ahead_kb");
        std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok()
    });
    kib.is_some_and(|kib| kib >= FAR_AHEAD >> 10)
}

/// Wait until a non-blocking descriptor is ready.
///
/// # Errors
/// Those of `poll`.
pub(crate) fn wait(fd: impl AsFd, ready: PollFlags) -> std::io::Result<()> {
    match poll(&mut [PollFd::new(&fd, ready)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether a file is on a network file system or FUSE, where mapping is slow, another machine may
/// truncate the file, and write errors may be reported as late as `close`.
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
