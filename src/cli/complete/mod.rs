//! Completions: what may stand at the cursor of a line that is being typed.
//!
//! The scripts in `completions/` ask the program itself, with `TSLICE_COMPLETE` set to the shell's
//! name, so that they know every flag of the version that is there, and the tensors of the files
//! in the line. No argument is understood as usual then, and nothing is run.
//!
//! ```text
//! $ TSLICE_COMPLETE=fish tslice -- 'tslice model.safetensors -t head.'
//! v   head.weight   float32 (64, 100)
//! ```
//!
//! **Why no package.** Clap_complete's static scripts cannot express a main
//! job without a subcommand (its zsh script completes no subcommand then) and know no file. With its
//! engine the program answers for itself. Its scripts for that put names with spaces or quotes into
//! bash's line as they are, split words at `=` there, and complete file names themselves, without
//! `$HOME`; PowerShell's runs what was typed. Those here leave file names to the shell.

use std::ffi::{OsStr, OsString};

use clap::ValueEnum;

use super::args::Shell;
use super::report::Failure;

mod line;
mod names;
mod values;

pub(crate) use line::script;

/// The variable that makes the program complete a line in place of running it.
pub(crate) const VARIABLE: &str = "TSLICE_COMPLETE";

/// The answer to a shell, which names itself in [`VARIABLE`], about the line behind `--`.
///
/// # Errors
/// The shell or what it hands over is unknown.
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
