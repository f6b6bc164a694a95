//! How much memory a process may use.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The memory in bytes that this process may count on, the page cache of its files included: that of
/// the machine, or the least limit of its control groups when this was first asked.
pub(crate) fn memory_bytes() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let machine = rustix::system::sysinfo();
        let machine = (machine.totalram as u64).saturating_mul(u64::from(machine.mem_unit));
        let groups = read_to_string("/proc/self/cgroup").unwrap_or_default();
        groups.lines().filter_map(group_limit).fold(machine, u64::min)
    })
}

/// The least limit of a group and those above it; the line names it as `/proc/self/cgroup` does.
/// `None` where it limits no memory, or where its files cannot be seen: in a container whose root is the
/// group itself, that of the root is what counts.
fn group_limit(line: &str) -> Option<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?.trim_start_matches('/'));
    let (root, file) = if controllers.is_empty() {
        ("/sys/fs/cgroup", "memory.max")
    } else if controllers.split(',').any(|controller| controller == "memory") {
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
    } else {
        return None;
    };
    let group: PathBuf = Path::new(root).join(path);
    let groups = group.ancestors().take_while(|group| group.starts_with(root));
    // where there is no limit: a word, or more than any machine has
    groups.filter_map(|group| read_to_string(group.join(file)).ok()?.trim().parse().ok()).min()
}
