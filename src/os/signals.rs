//! Signals that end the process, unless they are handled.

#![allow(unsafe_code)]

use libc::c_int;

/// Signals that are not watched: they do not end a process, cannot be caught, report a fault of the program itself, or
/// have another use here.
const OTHERS: &[c_int] = &[
    libc::SIGKILL,
    libc::SIGSTOP,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGCONT,
    libc::SIGCHLD,
    libc::SIGURG,
    libc::SIGWINCH,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGSEGV,
    libc::SIGSYS,
    libc::SIGPIPE,
    libc::SIGXFSZ,
    #[cfg(not(target_os = "linux"))]
    libc::SIGIO,
    #[cfg(not(target_os = "linux"))]
    libc::SIGINFO,
];

/// The signals that would end the process and can be caught. An ignored signal (as under nohup) stays ignored, and
/// a signal that the process handles keeps its handler.
pub(crate) fn ending_signals() -> impl Iterator<Item = c_int> {
    (1..=31).chain(realtime()).filter(|signal| !OTHERS.contains(signal) && is_default(*signal))
}

#[cfg(target_os = "linux")]
fn realtime() -> std::ops::RangeInclusive<c_int> {
    libc::SIGRTMIN()..=libc::SIGRTMAX()
}

#[cfg(not(target_os = "linux"))]
fn realtime() -> std::ops::Range<c_int> {
    0..0
}

fn is_default(signal: c_int) -> bool {
    // SAFETY: without a new action the call only fills in the old one, for which zeroes are a valid value.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_DFL
    }
}

/// End the process by the signal's default action.
pub(crate) fn end_by(signal: c_int) -> ! {
    // SAFETY: zeroes are a valid set of signals, and the pointers are to a set that outlives the calls. No handler
    // is installed, only the default action.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
        libc::raise(signal);
    }
    std::process::abort()
}
