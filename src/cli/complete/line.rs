//! The line that is being typed, in a shell's quoting: its words, and replacing one by a
//! completion.

use super::super::args::Shell;
use super::values::{Candidate, CandidateKind};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TypedWord {
    pub(super) raw: String,
    /// The word without quotes and backslashes.
    pub(super) text: String,
    /// The quote still open at the end of the word, and the offset of the text after it in `raw`
    /// and in `text`.
    open: Option<(char, usize, usize)>,
    /// The bytes of `raw` before the piece that the shell replaces.
    kept: usize,
    /// Whether the word is the file of a redirection.
    redirected: bool,
}

/// A simple command, divided at the cursor.
pub(super) struct TypedLine {
    pub(super) before: Vec<String>,
    pub(super) current: TypedWord,
    pub(super) after: Vec<String>,
}

impl TypedLine {
    /// Divide the text before and after the cursor, as sh, bash, zsh and fish do. `None` if the
    /// cursor is in the file of a redirection.
    pub(super) fn of_text(before: &str, after: &str) -> Option<TypedLine> {
        let mut words = words(before);
        let current = words.pop()?;
        if current.redirected {
            return None;
        }
        // the rest of the word at the cursor does not count
        let mut after = self::words(after.split_once(char::is_whitespace).unwrap_or_default().1);
        after.retain(|word| !word.raw.is_empty());
        let plain = |words: Vec<TypedWord>| -> Vec<String> {
            words.into_iter().filter(|word| !word.redirected).map(|word| word.text).collect()
        };
        let mut line = TypedLine { before: plain(words), current, after: plain(after) };
        // assignments, `command` and `sudo` may stand before the program
        let program = |word: &String| word.rsplit('/').next() == Some("tslice");
        let start = line.before.iter().position(program).unwrap_or(0);
        line.before.drain(..start);
        Some(line)
    }

    /// Take words that the shell has divided, the last one at the cursor.
    pub(super) fn of_words(mut words: Vec<String>) -> Option<TypedLine> {
        let text = words.pop()?;
        let current = TypedWord { raw: text.clone(), text, ..TypedWord::default() };
        Some(TypedLine { before: words, current, after: Vec::new() })
    }
}

/// Divide the beginning of a line into words; after white space the last one is empty.
fn words(line: &str) -> Vec<TypedWord> {
    let mut words = Vec::new();
    let mut word = TypedWord::default();
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        let quote = word.open.map(|(quote, ..)| quote);
        match (quote, char) {
            (None, '<' | '>' | '|' | ';' | '&' | '(') | (None, ' ' | '\t' | '\n') => {
                if !word.raw.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                match char {
                    '<' | '>' => word.redirected = true,
                    '|' | ';' | '&' | '(' => words.clear(),
                    _ => {}
                }
                continue;
            }
            (None, '\'' | '"') => {
                word.open = Some((char, word.raw.len() + 1, word.text.len()));
            }
            (Some(open), _) if char == open => word.open = None,
            (None | Some('"'), '\\') => {
                word.raw.push('\\');
                match chars.next() {
                    // an escaped line end, which continues the line
                    Some('\n') => word.raw.push('\n'),
                    Some(next) => {
                        let escaped = quote.is_none() || matches!(next, '"' | '\\' | '$' | '`');
                        word.text.extend((!escaped).then_some('\\').into_iter().chain([next]));
                        word.raw.push(next);
                    }
                    None => {}
                }
                continue;
            }
            _ => word.text.push(char),
        }
        word.raw.push(char);
    }
    words.push(word);
    words
}

impl TypedWord {
    /// Replace only `piece`, the end of this word: bash divides words at `=` and `:` too.
    pub(super) fn replace_only(&mut self, piece: &str) {
        self.kept = self.raw.strip_suffix(piece).map_or(0, str::len);
    }

    /// Quote a completion for bash; `None` if it does not begin as the word does.
    pub(super) fn completed(&self, completion: &str) -> Option<String> {
        let mut whole = self.whole(completion)?;
        Some(whole.split_off(self.kept))
    }

    fn whole(&self, completion: &str) -> Option<String> {
        match self.open {
            Some((quote, raw, text)) => {
                let inside = completion.strip_prefix(self.text.get(..text)?)?;
                let inside = match quote {
                    '\'' => inside.replace('\'', r"'\''"),
                    _ => escaped(inside, |char| matches!(char, '"' | '\\' | '$' | '`')),
                };
                Some(format!("{}{inside}", self.raw.get(..raw)?))
            }
            None => {
                let rest = completion.strip_prefix(&self.text)?;
                let plain = |char: char| char.is_alphanumeric() || "_-./,:=@%+*?".contains(char);
                Some(format!("{}{}", self.raw, escaped(rest, |char| !plain(char))))
            }
        }
    }
}

fn escaped(text: &str, special: impl Fn(char) -> bool) -> String {
    text.chars().flat_map(|char| special(char).then_some('\\').into_iter().chain([char])).collect()
}

pub(crate) fn script(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => include_str!("../../../completions/tslice.bash"),
        Shell::Elvish => include_str!("../../../completions/tslice.elv"),
        Shell::Fish => include_str!("../../../completions/tslice.fish"),
        Shell::Powershell => include_str!("../../../completions/tslice.ps1"),
        Shell::Zsh => include_str!("../../../completions/_tslice"),
    }
}

/// Read the line from what the script passes: from bash, fish and zsh the text before the cursor,
/// the text after it, and the piece to replace; from others the words. `None` if no argument of the
/// program is at the cursor.
pub(super) fn line(shell: Shell, mut args: Vec<String>) -> Option<TypedLine> {
    match shell {
        Shell::Bash | Shell::Fish | Shell::Zsh => {
            let text = |at: usize| args.get(at).map_or("", String::as_str);
            let mut line = TypedLine::of_text(text(0), text(1))?;
            line.current.replace_only(text(2));
            Some(line)
        }
        Shell::Elvish | Shell::Powershell => {
            // a dot comes before the last word, since PowerShell drops an empty one
            let last = args.last_mut()?;
            *last = last.strip_prefix('.')?.to_owned();
            TypedLine::of_words(args)
        }
    }
}

/// A line of the answer, divided by tabs: the kind, the text, what it means.
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

fn in_powershell(text: &str) -> String {
    let plain = |char: char| char.is_alphanumeric() || "_-./:=+*?\\".contains(char);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        words(line).into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn words_are_divided_as_a_shell_does() {
        for (line, expected) in [
            ("", &[""][..]),
            ("tslice ", &["tslice", ""]),
            (
                "tslice a\\ b.npy '[1, 2]' \"$x \\\" \\y\"",
                &["tslice", "a b.npy", "[1, 2]", "$x \" \\y"],
            ),
            ("tslice 'a b", &["tslice", "a b"]),
            ("tslice a'b c'd\"e", &["tslice", "ab cde"]),
            ("tslice --to=np", &["tslice", "--to=np"]),
            ("cat a | tslice -", &["tslice", "-"]),
            ("x=1; tslice a", &["tslice", "a"]),
            ("tslice ''", &["tslice", ""]),
        ] {
            assert_eq!(texts(line), expected, "{line}");
        }
    }

    #[test]
    fn redirections_are_no_arguments() {
        let line = TypedLine::of_text("LC_ALL=C /bin/tslice < a.npy -o b", " --to x").unwrap();
        assert_eq!(line.before, ["/bin/tslice", "-o"]);
        assert_eq!(
            (line.current.text.as_str(), line.after),
            ("b", vec!["--to".into(), "x".into()])
        );
        assert!(TypedLine::of_text("tslice a.npy > b", "").is_none());
        assert!(TypedLine::of_text("tslice a.npy >b", "").is_none());
        assert_eq!(
            TypedLine::of_text("tslice a.npy > b ", "").unwrap().before,
            ["tslice", "a.npy"]
        );
    }

    #[test]
    fn a_completed_word_keeps_what_was_typed() {
        for (typed, completion, expected) in [
            ("", "a b", Some("a\\ b")),
            ("a\\ ", "a b*", Some("a\\ b*")),
            ("'a ", "a b'c", Some("'a b'\\''c")),
            ("\"a ", "a b$\"", Some("\"a b\\$\\\"")),
            ("--tensor='x", "--tensor=x y", Some("--tensor='x y")),
            ("'a'b", "ab(c)", Some("'a'b\\(c\\)")),
            ("a", "b", None),
        ] {
            let word = words(typed).pop().unwrap();
            assert_eq!(word.completed(completion).as_deref(), expected, "{typed}");
        }
        let mut word = words("--tensor='x").pop().unwrap();
        word.replace_only("x");
        assert_eq!(word.completed("--tensor=x y").as_deref(), Some("x y"));
    }
}
