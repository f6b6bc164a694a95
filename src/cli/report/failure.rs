//! Failures on standard error: one line, the item at fault under a caret, a hint; or with `--json`
//! an object. JSON is for programs, and also safe to print in a terminal.

use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fmt, io};

use serde_json::{Value, json};
use tslice::dtype::is_printable;
use tslice::sink::{Waiting, words};
use tslice::source::remote::mask_secrets;
use tslice::tensor::{printable, shortened, write_printable_json};

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) message: String,
    /// An expression, and the byte range in it that is at fault.
    pub(crate) caret: Option<(String, Range<usize>)>,
    pub(crate) hint: Option<String>,
    /// How the command is used, if the command line shows that this was not known.
    pub(crate) usage: Option<String>,
    /// The reader of the output went away, so nothing is said.
    pub(crate) quiet: bool,
}

impl Failure {
    pub(crate) fn usage(message: impl fmt::Display) -> Failure {
        Failure { exit: Exit::Usage, ..Failure::new(message) }
    }

    pub(crate) fn new(message: impl fmt::Display) -> Failure {
        let message = message.to_string();
        let caret = None;
        let hint = None;
        let usage = None;
        Failure { exit: Exit::Failed, message, caret, hint, usage, quiet: false }
    }

    pub(crate) fn file(path: &Path, error: impl fmt::Display) -> Failure {
        Failure::new(format_args!("{}: {}", shown(path), plain(error)))
    }

    /// Show `text` with a caret under the byte range `span`.
    pub(crate) fn at(mut self, text: &str, span: Range<usize>) -> Failure {
        self.caret = Some((text.to_owned(), span));
        self
    }

    pub(crate) fn hint(mut self, hint: impl fmt::Display) -> Failure {
        self.hint = Some(hint.to_string());
        self
    }

    pub(crate) fn hint_if(self, hint: Option<impl fmt::Display>) -> Failure {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    pub(crate) fn usage_lines(mut self, usage: &str) -> Failure {
        self.usage = Some(usage.trim_end().to_owned());
        self
    }

    pub(crate) fn of_tensor(mut self, name: &str) -> Failure {
        self.message = format!("tensor {:?}: {}", shortened(name), self.message);
        self
    }

    pub(crate) fn print_note(self) {
        let json = note_json(&self);
        Failure { message: format!("note: {}", self.message), ..self }.say(&json);
    }

    pub(crate) fn print(&self) {
        if !self.quiet {
            self.say(&failure_json(self));
        }
    }

    /// Write the failure, as text or JSON, by one call: messages of runs that share a file do not
    /// mix then.
    fn say(&self, json: &Value) {
        let text = match IN_JSON.load(Ordering::Relaxed) {
            true => format!("{}\n", Json(json)),
            false => self.to_string(),
        };
        // if standard error is closed, there is nobody to tell
        let _ = Waiting(io::stderr()).write_all(text.as_bytes());
    }
}

static IN_JSON: AtomicBool = AtomicBool::new(false);

pub(crate) fn fail_in_json() {
    IN_JSON.store(true, Ordering::Relaxed);
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "tslice: {}", printable(&mask_secrets(&self.message)))?;
        if let Some((text, span)) = &self.caret {
            caret(f, &mask_secrets(text), span)?;
        }
        if let Some(hint) = &self.hint {
            writeln!(f, "hint: {}", printable(&mask_secrets(hint)))?;
        }
        self.usage.iter().try_for_each(|usage| writeln!(f, "{usage}"))
    }
}

/// Prints a value on one line; what is not printable is escaped.
pub(crate) struct Json<'a>(pub(crate) &'a Value);

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        write!(Escaped(f), "{}", self.0)
    }
}

struct Escaped<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl fmt::Write for Escaped<'_, '_> {
    fn write_str(&mut self, json: &str) -> fmt::Result {
        write_printable_json(self.0, json)
    }
}

fn note_json(note: &Failure) -> Value {
    let masked = |text: &str| mask_secrets(text).into_owned();
    json!({ "note": masked(&note.message), "hint": note.hint.as_deref().map(masked) })
}

fn failure_json(failure: &Failure) -> Value {
    let masked = |text: &str| mask_secrets(text).into_owned();
    let hint = failure.hint.as_deref().or(failure.usage.as_deref());
    let mut value = json!({
        "error": masked(&failure.message),
        "hint": hint.map(masked),
        "exit": failure.exit.status(),
    });
    if let Some((text, span)) = &failure.caret {
        value["at"] = json!({ "text": masked(text), "start": span.start, "end": span.end });
    }
    value
}

/// Write a name as addresses do, with `%XX` for all bytes except ASCII letters, digits and `-._~/`;
/// `None` if it is UTF-8, and needs no such spelling.
pub(crate) fn percent_encoded(path: &Path) -> Option<String> {
    if path.to_str().is_some() {
        return None;
    }
    let encoded = path.as_os_str().as_encoded_bytes().iter().map(|&byte| match byte {
        b'-' | b'.' | b'_' | b'~' | b'/' => char::from(byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    Some(encoded.collect())
}

const CONTEXT: usize = 60;

/// Write the expression, shortened around the fault, and carets under the fault.
fn caret(f: &mut fmt::Formatter<'_>, text: &str, span: &Range<usize>) -> fmt::Result {
    let start = floor_char(text, span.start);
    let end = floor_char(text, span.end.max(span.start));
    let parts = [&text[..start], &text[start..end], &text[end..]];
    let [before, fault, after] = parts.map(in_one_line);
    let mut line = String::from("  ");
    if before.len() > CONTEXT {
        line.push_str("...");
    }
    line.extend(&before[before.len().saturating_sub(CONTEXT)..]);
    let indent = line.chars().count();
    line.extend(fault.iter().take(CONTEXT));
    if fault.len() > CONTEXT {
        line.push_str("...");
    } else {
        line.extend(after.iter().take(CONTEXT));
        line.push_str(if after.len() > CONTEXT { "..." } else { "" });
    }
    let width = fault.len().clamp(1, CONTEXT);
    writeln!(f, "{}", line.trim_end())?;
    writeln!(f, "{}{}", " ".repeat(indent), "^".repeat(width))
}

/// Replace each character that is not printable by one space, so that carets stay in place.
pub(crate) fn in_one_line(text: &str) -> Vec<char> {
    text.chars().map(|c| if is_printable(c) { c } else { ' ' }).collect()
}

fn floor_char(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Take the number off an error of the operating system, `(os error 2)`, and word it alike on every system.
pub(crate) fn plain(error: impl fmt::Display) -> String {
    const NUMBER: &str = " (os error ";
    let mut text = error.to_string();
    let Some(at) = text.rfind(NUMBER).filter(|_| text.ends_with(')')) else { return text };
    let number = text[at + NUMBER.len()..text.len() - 1].parse().ok();
    if let Some((number, words)) = number.and_then(|it| Some((it, words(it)?))) {
        let own = io::Error::from_raw_os_error(number).to_string();
        return text.strip_suffix(&own).unwrap_or(&text).to_owned() + words;
    }
    text.truncate(at);
    text
}

pub(crate) fn shown(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

/// Write a count with its unit: `1 byte`, `2 bytes`.
pub(crate) fn counted(count: u64, unit: &str) -> String {
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

/// Write a number of bytes for people: `999 bytes`, `4.2 GB`.
pub(crate) fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1000 {
        return counted(bytes, "byte");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.*} {}", if value < 9.95 { 1 } else { 0 }, UNITS[unit])
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    Different,
    /// Two files could not be compared; `diff` and `cmp` have the same status.
    Trouble,
    /// The work failed: a file, its data, an index that does not fit the shape.
    Failed,
    Usage,
}

impl Exit {
    pub(crate) fn status(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed | Exit::Different => 1,
            Exit::Usage | Exit::Trouble => 2,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.status())
    }
}

/// Quote a word for a shell, if it needs that.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use tslice::sink::name_of;

    use super::*;

    #[test]
    fn carets_stand_under_the_fault() {
        let failure = Failure::usage("no").at("[1, é9, 2]", 4..7).hint("try less");
        assert_eq!(failure.to_string(), "tslice: no\n  [1, é9, 2]\n      ^^\nhint: try less\n");
        let long = format!("[{}9]", "1,".repeat(500));
        let shown = Failure::usage("no").at(&long, 1001..1002).to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[1].find('9'), lines[2].find('^'));
        assert!(lines[1].len() < 80);
    }

    #[test]
    fn a_message_is_one_line() {
        let failure = Failure::new("a\nb\u{1b}[31m: no").hint("é\u{85}\t'");
        assert_eq!(failure.to_string(), "tslice: a\\nb\\u{1b}[31m: no\nhint: é\\u{85}\\t'\n");
        let error = io::Error::from_raw_os_error(libc::EIO);
        assert_eq!(plain(format_args!("cannot: {error}")), "cannot: Input/output error");
        assert_eq!(plain("(os error 5) or so"), "(os error 5) or so");
    }

    #[test]
    fn bytes_are_readable() {
        assert_eq!(human_bytes(1), "1 byte");
        assert_eq!(human_bytes(999), "999 bytes");
        assert_eq!(human_bytes(4_200_000_000), "4.2 GB");
        assert_eq!(human_bytes(999_999), "1.0 MB");
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        assert_eq!(quoted("a.npy"), "a.npy");
        assert_eq!(quoted("[1, 2]"), "'[1, 2]'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn only_what_is_not_utf_8_is_encoded() {
        let encoded = |name: &[u8]| percent_encoded(name_of(name.to_vec()).as_ref());
        assert_eq!(encoded("é a.npy".as_bytes()), None);
        assert_eq!(encoded(b"d/\xe9 100%.npy").as_deref(), Some("d/%E9%20100%25.npy"));
    }
}
