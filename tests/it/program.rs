//! Runs the program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The program of this build, or another one that `TSLICE_PROGRAM` names, such as that of Windows under wine.
fn program() -> PathBuf {
    let other = std::env::var_os("TSLICE_PROGRAM");
    other.map_or_else(|| env!("CARGO_BIN_EXE_tslice").into(), PathBuf::from)
}

/// The program in a folder, with a time limit of some minutes.
pub(crate) fn tslice(folder: impl AsRef<Path>, args: &[&str]) -> assert_cmd::Command {
    let mut command = assert_cmd::Command::from_std(process(folder, args));
    command.timeout(Duration::from_secs(300));
    command
}

/// The program in a folder, to be started and then watched, killed or given a standard input,
/// which is empty otherwise.
pub(crate) fn process(folder: impl AsRef<Path>, args: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.current_dir(folder).args(args).stdin(Stdio::null());
    command
}

/// A line of bash in a folder, where the program is found as `tslice`.
pub(crate) fn bash(folder: impl AsRef<Path>, line: &str) -> Command {
    let before = std::env::var_os("PATH").unwrap_or_default();
    let programs = program().parent().unwrap().to_owned();
    let path: OsString =
        std::env::join_paths([programs].into_iter().chain(std::env::split_paths(&before))).unwrap();
    let mut command = Command::new("bash");
    command.args(["-c", line]).current_dir(folder).env("PATH", path);
    command
}
