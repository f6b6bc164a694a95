//! Tests that need a process of their own: this binary, started anew with one test in it.
//!
//! Such a test is ignored, so that nothing else runs it, and returns at once where it is not in
//! such a process, for `cargo test -- --ignored`. A test that is not ignored starts it:
//!
//! ```text
//! child(child_umask, "umask 077; \"$@\"").env("TSLICE_TEST_OUT", folder).status()
//! ```

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Set in every child.
const MARK: &str = "TSLICE_TEST_CHILD";

/// Whether this process was started by [`child`].
pub(crate) fn is_child() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Run an ignored test in a process of its own, through a line of shell in which `"$@"` stands for
/// it. SIGINT, SIGTERM and SIGHUP end it as they end any program, also where the tests are run by
/// something that ignores them, such as nohup.
pub(crate) fn child<Test: Fn()>(_: Test, line: &str) -> Command {
    let path = std::any::type_name::<Test>();
    let (_, test) = path.split_once("::").expect("the path of a test begins with its crate");
    let mut command = Command::new("sh");
    command.args(["-c", line, "sh"]).arg(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--ignored", "--nocapture"]);
    command.env(MARK, "1").stdout(Stdio::null());
    // SAFETY: between fork and exec only async-signal-safe functions may run, as signal(2) is; it
    // touches no memory.
    #[allow(unsafe_code)]
    unsafe {
        command.pre_exec(|| {
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                if libc::signal(signal, libc::SIG_DFL) == libc::SIG_ERR {
                    return Err(std::io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
    command
}

#[test]
#[ignore = "needs a process of its own"]
fn child_exits() {
    if is_child() {
        std::process::exit(42);
    }
}

/// A child that does not find its test ends with 0, and would prove nothing.
#[test]
fn a_child_runs_its_test() {
    assert_eq!(child(child_exits, "\"$@\"").status().unwrap().code(), Some(42));
}
