//! Signals that this process ignores.

#![allow(unsafe_code)]

/// Whether this process ignores a signal. Under nohup, or in the background of a script, it must stay
/// ignored.
pub(crate) fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: without a new action the call only fills in the old one, for which zeroes are a valid
    // value.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}
