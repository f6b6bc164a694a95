"""Runs a program with a hand on each of its system calls.

The calls in `CALLS` stop, by seccomp's user notification, until the supervisor says what becomes
of them: they go on, fail with an errno, transfer half, or the process is killed where it stands.
That needs no change in the program, no rights, no compiler: Linux 5.6 or later on x86-64, with
a seccomp that containers have not forbidden. `unavailable()` says what is missing.

Calls are counted from the program's own first one: those of the loader and of Rust's runtime, up
to the signal stack that it gives the main thread, pass.
"""

import ctypes
import errno
import fcntl
import os
import platform
import select
import signal
import struct
import time

CALLS = {
    0: "read", 1: "write", 2: "open", 5: "fstat", 7: "poll", 8: "lseek", 9: "mmap", 10: "mprotect", 12: "brk",
    13: "rt_sigaction", 16: "ioctl", 17: "pread64", 18: "pwrite64", 19: "readv", 20: "writev", 25: "mremap",
    28: "madvise", 32: "dup", 40: "sendfile", 53: "socketpair", 56: "clone", 72: "fcntl", 74: "fsync",
    75: "fdatasync", 77: "ftruncate", 82: "rename", 83: "mkdir", 84: "rmdir", 86: "link", 87: "unlink",
    89: "readlink", 90: "chmod", 91: "fchmod", 99: "sysinfo", 131: "sigaltstack", 138: "fstatfs", 204: "sched_getaffinity",
    221: "fadvise64", 257: "openat", 258: "mkdirat", 262: "newfstatat", 263: "unlinkat", 264: "renameat",
    265: "linkat", 267: "readlinkat", 268: "fchmodat", 269: "faccessat", 275: "splice", 277: "sync_file_range",
    285: "fallocate", 293: "pipe2", 295: "preadv", 296: "pwritev", 316: "renameat2", 318: "getrandom",
    326: "copy_file_range", 327: "preadv2", 332: "statx", 435: "clone3", 437: "openat2", 439: "faccessat2",
}
PATH_ARGUMENT = {"open": 0, "rename": 1, "unlink": 0, "openat": 1, "newfstatat": 1, "unlinkat": 1, "renameat": 3,
                 "linkat": 3, "readlinkat": 1, "faccessat": 1, "faccessat2": 1, "renameat2": 3, "statx": 1,
                 "mkdirat": 1, "openat2": 1}
RECV, SEND = 0xC0502100, 0xC0182101
CONTINUE = 1
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long


def unavailable():
    """Why programs cannot be supervised here, or None."""
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        return "the numbers of the system calls are those of Linux on x86-64"
    try:
        done = Run(["/bin/true"]).go()
    except OSError as error:
        return f"seccomp's user notification is not available: {error}"
    return None if done.status == 0 else f"/bin/true ended with {done.status}"


class Call:
    """A system call that waits for its verdict."""

    def __init__(self, run, raw):
        self.id, self.pid, _, number, _, _, *self.args = struct.unpack("=QIIiIQ6Q", raw)
        self.run, self.name = run, CALLS.get(number, str(number))
        self.number = 0

    def memory(self, address, count):
        with open(f"/proc/{self.pid}/mem", "rb", buffering=0) as file:
            file.seek(address)
            return file.read(count)

    def write_memory(self, address, data):
        with open(f"/proc/{self.pid}/mem", "r+b", buffering=0) as file:
            file.seek(address)
            file.write(data)

    def path(self):
        """The path that the call names; for two, the new one."""
        at = PATH_ARGUMENT.get(self.name)
        if at is None:
            return b""
        address = self.args[at]
        if not address:  # statx without a path asks whether there is such a call
            return b""
        text = self.memory(address, 4096 - address % 4096)  # up to the end of the page, where there may be no next
        if b"\0" not in text:
            text += self.memory(address + len(text), 4096)
        return text.split(b"\0")[0]

    def half(self):
        """Do half of a read or write in the program's place; the count, or None where that can't be."""
        fd, address, count, offset = self.args[:4]
        if self.name not in ("read", "write", "pread64", "pwrite64") or count < 2:
            return None
        count //= 2
        pidfd = LIBC.syscall(434, self.run.pid, 0)
        copy = LIBC.syscall(438, pidfd, fd, 0)
        try:
            if pidfd < 0 or copy < 0:
                raise OSError(ctypes.get_errno(), "pidfd_getfd")
            if self.name.startswith("p"):
                if self.name == "pwrite64":
                    return os.pwrite(copy, self.memory(address, count), offset)
                data = os.pread(copy, count, offset)
            elif self.name == "write":
                return os.write(copy, self.memory(address, count))
            else:
                data = os.read(copy, count)
            self.write_memory(address, data)
            return len(data)
        finally:
            for fd in (pidfd, copy):
                if fd >= 0:
                    os.close(fd)


class Run:
    """One run of a program. `decide(call)` is asked for each of its calls and answers None (go on),
    an errno, or a pair ("value", number) for a call that it did itself."""

    def __init__(self, argv, decide=lambda call: None, stdin=None, stdout=None, stderr=None, cwd=None, env=None):
        self.argv, self.decide, self.cwd = [os.fsencode(a) for a in argv], decide, cwd
        self.streams, self.env = (stdin, stdout, stderr), os.environ if env is None else env
        self.pid, self.status, self.calls = None, None, 0

    def go(self, seconds=60):
        ours, theirs = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.become(theirs)
            finally:
                os._exit(126)
        os.close(theirs)
        listener = -1
        try:
            listener = self.listener(int(os.read(ours, 9) or -1), time.monotonic() + seconds)
            self.supervise(listener, time.monotonic() + seconds)
        except BaseException:
            os.kill(self.pid, signal.SIGKILL)
            raise
        finally:
            os.close(ours)
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            if listener >= 0:
                os.close(listener)
        return self

    def listener(self, number, deadline):
        """The descriptor of that number as soon as the program has it: from then on each of its calls
        waits, so that it can send nothing itself."""
        pidfd = LIBC.syscall(434, self.pid, 0)
        try:
            while time.monotonic() < deadline:
                listener = LIBC.syscall(438, pidfd, number, 0)
                if listener >= 0:
                    return listener
                if ctypes.get_errno() != errno.EBADF or select.select([pidfd], [], [], 0.0001)[0]:
                    break
            raise OSError(ctypes.get_errno(), "no listener")
        finally:
            os.close(pidfd)

    def become(self, theirs):
        if self.cwd:
            os.chdir(self.cwd)
        for number, stream in enumerate(self.streams):
            if stream is not None:
                os.dup2(stream, number)
        next_one = os.dup(0)
        os.close(next_one)
        os.write(theirs, b"%d" % next_one)
        listen()
        os.fstat(0)  # waits until the listener has been taken, which is closed by what follows
        os.execve(self.argv[0], self.argv, self.env)

    def supervise(self, listener, deadline):
        poll, counting = select.poll(), False
        poll.register(listener, select.POLLIN)
        while True:
            events = poll.poll(max(0, deadline - time.monotonic()) * 1000)
            if not events:
                raise TimeoutError(f"{self.argv} does not end")
            if not events[0][1] & select.POLLIN:
                return
            raw = bytearray(80)
            try:
                fcntl.ioctl(listener, RECV, raw, True)
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.EINTR):
                    continue
                raise
            call = Call(self, bytes(raw))
            answer = None
            if counting:
                self.calls += 1
                call.number = self.calls
                answer = self.decide(call)
            elif call.name == "sigaltstack" and call.args[0]:
                counting = True
            value, error, flags = 0, 0, 0
            if answer is None:
                flags = CONTINUE
            elif isinstance(answer, tuple):
                value = answer[1]
            else:
                error = -answer
            try:
                fcntl.ioctl(listener, SEND, struct.pack("=QqiI", call.id, value, error, flags))
            except OSError as error:
                if error.errno != errno.ENOENT:  # it is dead, or a signal took it out of the call
                    raise


def listen():
    """From here on the calls of this process wait for the holder of a descriptor, its next one."""
    lines = [(0x20, 0, 0, 4), (0x15, 0, len(CALLS) + 1, 0xC000003E), (0x20, 0, 0, 0)]
    for left, number in zip(range(len(CALLS), 0, -1), CALLS):
        lines.append((0x15, left, 0, number))
    lines += [(0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x7FC00000)]  # allow, notify
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in lines))
    program = ctypes.create_string_buffer(struct.pack("=H6xQ", len(lines), ctypes.addressof(code)))
    if LIBC.prctl(38, 1, 0, 0, 0):  # no new privileges
        raise OSError(ctypes.get_errno(), "prctl")
    if LIBC.syscall(317, 1, 8, program) < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
