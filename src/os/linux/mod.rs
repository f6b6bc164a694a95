//! System calls of Linux alone: `/proc`, `/sys`, and calls and flags that other systems lack.
//!
//! A call that fails, or an answer, tells callers that the system lacks something: older kernels
//! and some file systems lack it too, and `other.rs` lacks all of it.

use std::ffi::OsStr;
use std::fs::{File, read_to_string};
use std::io;
use std::io::IoSliceMut;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use memmap2::{Advice as MapAdvice, Mmap, MmapRaw};
use rustix::fs::{
    Advice as FileAdvice, AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxAttributes, StatxFlags,
    fadvise, fstat, fstatfs, linkat, major, minor, openat, openat2, statat, statx,
};
use rustix::io::{Errno, ReadWriteFlags, Result, preadv2, retry_on_intr};
use rustix::path::Arg;
use rustix::pipe::{SpliceFlags, fcntl_setpipe_size, splice};

use super::files::Advice;

mod blocks;

pub(crate) use blocks::{
    allocate, allocate_within, clone_file, clone_over, clone_range, copy_range, settle,
};

pub use super::attributes::EXCHANGES_NAMES;
pub(crate) use super::attributes::{
    attribute, exchange, rename_to_free, set_attribute, take_attributes,
};

/// The memory that this process may use, in bytes, including the page cache of its files: the
/// machine's memory, or the lowest limit of the process's control groups at the first call.
pub(crate) fn memory_bytes() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let machine = rustix::system::sysinfo();
        let machine = (machine.totalram as u64).saturating_mul(u64::from(machine.mem_unit));
        let groups = read_to_string("/proc/self/cgroup").unwrap_or_default();
        groups.lines().filter_map(group_limit).fold(machine, u64::min)
    })
}

/// The lowest limit of a control group and its ancestors; `line` is a line of `/proc/self/cgroup`.
/// `None` where there is no limit, or its file is not visible. In a container whose root is the
/// group itself, only the files of the root exist, and count.
fn group_limit(line: &str) -> Option<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let controllers = fields.next()?;
    let path = fields.next()?.trim_start_matches('/');
    let (root, file) = if controllers.is_empty() {
        ("/sys/fs/cgroup", "memory.max")
    } else if controllers.split(',').any(|controller| controller == "memory") {
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
    } else {
        return None;
    };
    let group: PathBuf = Path::new(root).join(path);
    let groups = group.ancestors().take_while(|group| group.starts_with(root));
    // without a limit, the file holds a word, or more than any machine has
    groups.filter_map(|group| read_to_string(group.join(file)).ok()?.trim().parse().ok()).min()
}

/// Whether a file is on a network file system or FUSE: mapping is slow there, another machine may
/// truncate the file, and write errors may be reported as late as `close`.
pub(crate) fn is_network(fd: impl AsFd) -> bool {
    magic(fd).is_some_and(|magic| NETWORK.contains(&magic))
}

pub(crate) fn is_in_memory(fd: impl AsFd) -> bool {
    magic(fd).is_some_and(|magic| IN_MEMORY.contains(&magic))
}

/// Whether a directory is in `/proc`, where links in a folder of descriptors stand for open files,
/// whatever their text is.
pub(crate) fn is_descriptors(dir: impl AsFd) -> bool {
    magic(dir) == Some(PROC)
}

/// The type of a file system: the low 32 bits of its magic number, whose field differs in type
/// between machines.
fn magic(fd: impl AsFd) -> Option<u32> {
    fstatfs(fd).ok().map(|fs| fs.f_type as u32)
}

const PROC: u32 = 0x9fa0;

const IN_MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58f6];

/// The magic numbers of network file systems, from `statfs(2)` and the sources of the file systems.
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

/// Open a folder only to query it; fails where another file system is mounted there.
pub(crate) fn open_within_mount(dir: impl AsFd, name: &Path) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    retry_on_intr(|| openat2(&dir, name, flags, Mode::empty(), ResolveFlags::NO_XDEV))
}

/// Whether a name in a folder cannot be removed: it is immutable, or a mount point.
pub(crate) fn is_fixed(dir: impl AsFd, name: &OsStr) -> bool {
    let fixed = StatxAttributes::IMMUTABLE | StatxAttributes::APPEND | StatxAttributes::MOUNT_ROOT;
    let stat = statx(dir, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty());
    stat.is_ok_and(|stat| stat.stx_attributes.intersects(fixed))
}

#[cfg(feature = "remote")]
pub(crate) fn machine_vendor() -> Option<String> {
    std::fs::read_to_string("/sys/class/dmi/id/sys_vendor").ok()
}

/// Whether the system has files without names, on file systems that have them.
pub const UNNAMED_FILES: bool = true;

/// Open a file without a name in a directory. `None` where the file system has no such files, where
/// no `/proc` is there to link them through, and on any other error: creating a named file fails in
/// the same way and reports it.
pub(crate) fn open_unnamed(from: impl AsFd, dir: &Path, mode: Mode) -> Option<OwnedFd> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = retry_on_intr(|| openat(&from, dir, flags, mode)).ok()?;
    statat(CWD, by_descriptor(&file), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(file)
}

pub(crate) fn link_unnamed(file: &File, dir: impl AsFd, name: impl Arg) -> Result<()> {
    linkat(CWD, by_descriptor(file), dir, name, AtFlags::SYMLINK_FOLLOW)
}

/// Open a directory to create names in it, without the right to list it, which a drop-box does not
/// give.
pub(crate) fn open_place(from: impl AsFd, path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    retry_on_intr(|| openat(&from, path, flags, Mode::empty()))
}

pub(crate) fn path_of(dir: &OwnedFd) -> PathBuf {
    std::fs::read_link(by_descriptor(dir)).unwrap_or_default()
}

/// A path to a name in an open folder, for calls that take no folder.
pub(super) fn path_in(dir: &OwnedFd, name: &OsStr) -> PathBuf {
    Path::new(&by_descriptor(dir)).join(name)
}

fn by_descriptor(file: &impl AsRawFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// The flag for maps that reserve no memory before their pages are written.
pub(crate) const UNRESERVED: libc::c_int = libc::MAP_NORESERVE;

/// The read-ahead of a kernel that needs no advice, in bytes.
const FAR_AHEAD: u64 = 1 << 20;

/// Bytes per call of advice: a kernel starts to read no more per call than its usual read-ahead.
const STEP: u64 = 128 << 10;

/// Advise the kernel on a range of a file that is read by position.
pub(crate) fn advise_file(file: &File, range: Range<u64>, advice: Advice) {
    let advice = match advice {
        Advice::Sequential => FileAdvice::Sequential,
        Advice::Random => FileAdvice::Random,
        Advice::WillNeed => FileAdvice::WillNeed,
        Advice::Evict => FileAdvice::DontNeed,
        Advice::Populate | Advice::Load | Advice::DontNeed => return,
    };
    let step = if advice == FileAdvice::WillNeed { STEP } else { u64::MAX };
    let mut start = range.start;
    // a length of 0 would mean "to the end of the file"
    while let Some(rest) = range.end.checked_sub(start).and_then(NonZeroU64::new) {
        let count = rest.get().min(step);
        let _ = fadvise(file, start, NonZeroU64::new(count), advice);
        start += count;
    }
}

/// Fault in pages of a map for reading, in one call.
pub(crate) fn populate(map: &Mmap, start: usize, count: usize) -> io::Result<()> {
    map.advise_range(MapAdvice::PopulateRead, start, count)
}

/// The unit in which [`load`] reads a file, in bytes: a large page.
pub(crate) const LOADED: Option<u64> = Some(2 << 20);

/// Read a range of a map into memory, in large pages where the file system has them: reading,
/// mapping and releasing single pages takes a processor longer than a fast disk needs.
pub(crate) fn load(map: &Mmap, start: usize, count: usize) -> io::Result<()> {
    // a kernel without large pages reads ahead as usual
    let _ = map.advise_range(MapAdvice::Normal, start, count);
    let _ = map.advise_range(MapAdvice::HugePage, start, count);
    populate(map, start, count)
}

/// Fault in pages of a map for writing, in one call. Fails where a page cannot be written: a full
/// disk behind a hole, or a truncated file.
pub(crate) fn populate_to_write(map: &MmapRaw, start: usize, count: usize) -> io::Result<()> {
    map.advise_range(MapAdvice::PopulateWrite, start, count)
}

/// Read a range of a map that will be written into memory, as [`load`] does.
pub(crate) fn load_to_write(map: &MmapRaw, start: usize, count: usize) -> io::Result<()> {
    let _ = map.advise_range(MapAdvice::HugePage, start, count);
    map.advise_range(MapAdvice::PopulateRead, start, count)
}

/// Whether the byte at offset `at` of a file is in the page cache; true where this is unknown.
pub(crate) fn is_cached(file: &File, at: u64) -> bool {
    let mut byte = [0];
    let mut buffers = [IoSliceMut::new(&mut byte)];
    let read = preadv2(file, &mut buffers, at, ReadWriteFlags::NOWAIT);
    !matches!(read, Err(Errno::AGAIN))
}

/// Whether the kernel itself reads far ahead in a file that is read in order. False where this is
/// unknown: on file systems without a disk of their own.
pub(crate) fn reads_ahead(file: impl AsFd) -> bool {
    let Ok(stat) = fstat(file) else { return false };
    let disk = format!("{}:{}", major(stat.st_dev), minor(stat.st_dev));
    // a partition has no queue, but its disk has
    let kib = ["queue", "../queue"].iter().find_map(|queue| {
        let path = format!("/sys/dev/block/{disk}/{queue}/read_ahead_kb");
        read_to_string(path).ok()?.trim().parse::<u64>().ok()
    });
    kib.is_some_and(|kib| kib >= FAR_AHEAD >> 10)
}

/// About how many pages of files are mapped and in memory; 0 where the kernel does not tell.
pub(crate) fn mapped_pages() -> u64 {
    let pages = |statm: String| statm.split(' ').nth(2)?.parse().ok();
    read_to_string("/proc/self/statm").ok().and_then(pages).unwrap_or(0)
}

/// The capacity of a pipe in bytes: the most for unprivileged users. The default of 64 KiB halves
/// the throughput.
const PIPE: usize = 1 << 20;

/// Enlarge a pipe. Errors (the user's quota, not a pipe) are ignored: the pipe is only slower.
pub(crate) fn enlarge_pipe(fd: impl AsFd) {
    let _ = fcntl_setpipe_size(fd, PIPE);
}

/// Discard up to `most` bytes of a pipe into `null` (`/dev/null`) without copying them. Returns the
/// count; 0 at the end.
pub(crate) fn discard(pipe: &File, null: &File, most: usize) -> Result<usize> {
    splice(pipe, None, null, None, most, SpliceFlags::empty())
}
