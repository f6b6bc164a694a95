"""Memory control groups of version 1 or 2, for programs that must do with little memory."""

import os

import harness


def make_group(limit):
    """A new memory control group of so many bytes, under that of this process, or None."""
    with open("/proc/self/cgroup") as file:
        lines = [line.rstrip("\n").split(":", 2) for line in file]
    for _, names, place in lines:
        if names == "":
            root, name = "/sys/fs/cgroup", "memory.max"
        elif "memory" in names.split(","):
            root, name = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        for parent in (root + place, root):
            path = f"{parent}/tslice-{os.getpid()}"
            try:
                os.mkdir(path)
            except OSError:
                continue
            try:
                with open(f"{path}/{name}", "w") as file:
                    file.write(str(limit))
                return path
            except OSError:
                os.rmdir(path)
    return None


def enter(group):
    """Puts this process into the group."""
    with open(f"{group}/cgroup.procs", "w") as file:
        file.write(str(os.getpid()))


def remove(group):
    """Removes the group, when all its processes have ended."""
    harness.wait_until(lambda: not open(f"{group}/cgroup.procs").read())
    os.rmdir(group)
