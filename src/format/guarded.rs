//! Calls of packages that read what others wrote: a panic of theirs is an error of the file.
//!
//! Nothing that a file says may end the program, or the program that uses this library. These packages check
//! what they read, and where they forget to, Rust's own checks panic.

use std::any::Any;
use std::cell::Cell;
use std::panic;
use std::panic::AssertUnwindSafe;
use std::sync::Once;

use super::error::brief;

thread_local! {
    /// Whether a panic of this thread will be an error.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// What `work` returns, or what it panicked with, as one line of text. Nothing is printed then.
///
/// What panicked may be called again: it is as it was, or its locks are poisoned, and it panics again.
pub(super) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !IS_GUARDED.get() {
                usual(panic);
            }
        }));
    });
    let before = IS_GUARDED.replace(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(before);
    outcome.map_err(|panicked| format!("its reader failed: {}", brief(message(&*panicked))))
}

fn message(panicked: &(dyn Any + Send)) -> &str {
    let text = panicked.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panicked.downcast_ref::<&str>().copied())
        .unwrap_or("for no reason that it gives")
}

#[cfg(test)]
mod tests {
    use super::guarded;

    #[test]
    fn a_panic_is_an_error() {
        let bytes: Vec<u8> = vec![1, 2];
        assert_eq!(guarded(|| bytes[1]), Ok(2));
        let error = guarded(|| bytes[bytes.len()]).unwrap_err();
        assert_eq!(
            error,
            "its reader failed: index out of bounds: the len is 2 but the index is 2"
        );
        // also inside of another one, which goes on
        assert_eq!(guarded(|| guarded(|| bytes[9]).is_err()), Ok(true));
        assert!(guarded(|| std::panic::panic_any(7)).unwrap_err().ends_with("that it gives"));
    }
}
