//! The command-line program: run, and turn the outcome into an exit status.
//!
//! With glibc on Linux the C library calls `main` itself. Rust's own start would read and parse the list of all maps,
//! to tell an overflow of the stack by a message and not by SIGSEGV alone, which takes a tenth of the time of a small
//! job; what else it does is done here.

#![cfg_attr(all(target_os = "linux", target_env = "gnu", not(test)), no_main)]

mod cli;

#[cfg(not(all(target_os = "linux", target_env = "gnu", not(test))))]
fn main() -> std::process::ExitCode {
    cli::run(std::env::args_os()).status().into()
}

#[cfg(all(target_os = "linux", target_env = "gnu", not(test)))]
mod start {
    use std::panic::catch_unwind;
    use std::process::exit;

    use rustix::fs::{Mode, OFlags, open};
    use rustix::io::{Errno, fcntl_getfd};
    use rustix::stdio::{stderr, stdin, stdout};

    /// The exit status of Rust programs that panic.
    const PANICKED: u8 = 101;

    // SAFETY: it is the one `main` of the program, which takes the two arguments that C passes.
    #[allow(unsafe_code)]
    #[unsafe(no_mangle)]
    extern "C" fn main(_: libc::c_int, _: *const *const libc::c_char) -> libc::c_int {
        open_closed();
        // SAFETY: SIG_IGN is no function, and no other thread is there yet.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
        // glibc has passed the arguments to `std::env` before
        let status = catch_unwind(|| crate::cli::run(std::env::args_os()).status());
        // writes what is left of standard output first
        exit(status.unwrap_or(PANICKED).into())
    }

    /// Open `/dev/null` where standard streams are closed, or the next file would be taken for one of them.
    fn open_closed() {
        for stream in [stdin(), stdout(), stderr()] {
            if fcntl_getfd(stream) == Err(Errno::BADF)
                && let Ok(null) = open("/dev/null", OFlags::RDWR, Mode::empty())
            {
                std::mem::forget(null);
            }
        }
    }
}
