//! Completions of a line that is being typed.
//!
//! The scripts in `completions/` run the program itself, with `TSLICE_COMPLETE` set to the name of the shell. So they
//! know all flags of the installed version, and the tensors in the files of the line. The program then only prints
//! completions: it does not run the line.
//!
//! ```text
//! $ TSLICE_COMPLETE=fish tslice -- 'tslice model.safetensors -t head.'
//! v   head.weight   float32 (64, 100)
//! ```
//!
//! **Why no package.** The static scripts of clap_complete know no files, and cannot express a main
//! job without a subcommand (the one for zsh then completes no subcommands). Its engine lets the
//! program answer, and is used; but its scripts for that put names with spaces or quotes into
//! bash's line as they are, divide words at `=` there, and complete file names themselves, without
//! `$HOME`; that for PowerShell runs what was typed. The scripts here leave file names to the
//! shell.

use std::ffi::{OsStr, OsString};

use clap::ValueEnum;

use super::args::Shell;
use super::report::Failure;

mod line;
mod values;

pub(crate) use line::script;

/// The variable that makes the program complete a line instead of running it.
pub(crate) const VARIABLE: &str = "TSLICE_COMPLETE";

/// Answer a shell, which [`VARIABLE`] names; the line follows `--`, as the script passes it.
pub(crate) fn answer(
    shell: &OsStr,
    args: impl Iterator<Item = OsString>,
) -> Result<String, Failure> {
    let known = shell.to_str().and_then(|name| Shell::from_str(name, false).ok());
    let shell = known.ok_or_else(|| {
        Failure::usage(format_args!("{VARIABLE}: completions for this shell are unknown"))
    })?;
    let args = args.skip_while(|arg| arg != "--").skip(1);
    let args = args.map(|arg| arg.to_string_lossy().into_owned()).collect();
    let Some(line) = line::line(shell, args) else { return Ok("f\t\t\n".to_owned()) };
    let candidates = values::candidates(&line)?;
    let lines =
        candidates.iter().filter_map(|candidate| line::answer(shell, candidate, &line.current));
    Ok(lines.collect())
}
