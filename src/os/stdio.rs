//! Which standard streams were closed when the process began.
//!
//! Rust's runtime opens `/dev/null` in place of a closed descriptor 0, 1 or 2 before `main`, so
//! that writing to it would lose all output and still succeed. Looking for that `/dev/null` later
//! is not exact: Python's `subprocess.DEVNULL` and many daemons open theirs read-write too, as the
//! runtime does. So a function in `.init_array`, which the loader calls before the runtime, asks
//! the kernel.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU8, Ordering};

/// A standard stream that the program uses for data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StdStream {
    Input = 0,
    Output = 1,
}

pub(crate) const STDIN: [&str; 3] = ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

pub(crate) fn closed_at_start(stream: StdStream) -> bool {
    // Naming the entry keeps the linker from leaving it out of a program.
    std::hint::black_box(&ENTRY);
    CLOSED.load(Ordering::Relaxed) & (1 << stream as u8) != 0
}

/// One bit per descriptor.
static CLOSED: AtomicU8 = AtomicU8::new(0);

// SAFETY: the section holds pointers to C functions that the loader calls once, on the only
// thread there is, with arguments that a C function is free to ignore.
#[used]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
static ENTRY: extern "C" fn() = note;

/// Runs before Rust's runtime, so it must use nothing of it: no allocation, no panic.
extern "C" fn note() {
    for stream in [StdStream::Input, StdStream::Output] {
        // SAFETY: `F_GETFD` only asks, whatever the descriptor is; `EBADF` is its one error.
        if unsafe { libc::fcntl(stream as libc::c_int, libc::F_GETFD) } == -1 {
            CLOSED.fetch_or(1 << stream as u8, Ordering::Relaxed);
        }
    }
}

/// Whether this process ignores a signal, as under nohup: then it must stay ignored.
pub(crate) fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: without a new action the call only fills in the old one, for which zeroes are a valid
    // value.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}
