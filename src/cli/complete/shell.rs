//! The shells: their scripts, how they hand over a line, and how they take the answer.

use super::candidates::{Candidate, CandidateKind};
use super::line::{TypedLine, TypedWord};
use crate::cli::args::Shell;

/// What the shell is to load.
pub(crate) fn script(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => include_str!("../../../completions/tslice.bash"),
        Shell::Elvish => include_str!("../../../completions/tslice.elv"),
        Shell::Fish => include_str!("../../../completions/tslice.fish"),
        Shell::Powershell => include_str!("../../../completions/tslice.ps1"),
        Shell::Zsh => include_str!("../../../completions/_tslice"),
    }
}

/// The line, from what the script hands over: bash, fish and zsh the text before the cursor, that
/// behind it, and the piece that is replaced, the others words. `None` where no argument of the
/// program stands at the cursor.
pub(super) fn line(shell: Shell, mut args: Vec<String>) -> Option<TypedLine> {
    match shell {
        Shell::Bash | Shell::Fish | Shell::Zsh => {
            let text = |at: usize| args.get(at).map_or("", String::as_str);
            let mut line = TypedLine::of_text(text(0), text(1))?;
            line.current.replace_only(text(2));
            Some(line)
        }
        Shell::Elvish | Shell::Powershell => {
            // a dot stands before the last word: PowerShell hands over no empty ones
            let last = args.last_mut()?;
            *last = last.strip_prefix('.')?.to_owned();
            TypedLine::of_words(args)
        }
    }
}

/// A line of the answer: what it is, the text, and what it means, divided by tabs.
pub(super) fn answer(shell: Shell, candidate: &Candidate, typed: &TypedWord) -> Option<String> {
    let Candidate { kind, text, about } = candidate;
    let letter = char::from(*kind as u8);
    let text = match (shell, kind) {
        (_, CandidateKind::Files) => text.clone(),
        (Shell::Bash, _) => typed.completed(text)?,
        (Shell::Powershell, _) => in_powershell(text),
        _ => text.clone(),
    };
    Some(format!("{letter}\t{text}\t{about}\n"))
}

/// A word in PowerShell's quotes, where it needs some.
fn in_powershell(text: &str) -> String {
    let plain = |char: char| char.is_alphanumeric() || "_-./:=+*?\\".contains(char);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "''"))
}
