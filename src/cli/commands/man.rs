//! `tslice man`: the manual pages, also if no package has installed them.

use std::io::{IsTerminal, Write, stdout};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGQUIT};

use crate::cli::args::TopicArgs;
use crate::cli::report::{Failure, print_raw, terminal_columns};

const PAGES: [(&str, &str); 15] = [
    ("", include_str!("../../../man/tslice.1")),
    ("gather", include_str!("../../../man/tslice-gather.1")),
    ("assign", include_str!("../../../man/tslice-assign.1")),
    ("scatter", include_str!("../../../man/tslice-scatter.1")),
    ("concat", include_str!("../../../man/tslice-concat.1")),
    ("stack", include_str!("../../../man/tslice-stack.1")),
    ("merge", include_str!("../../../man/tslice-merge.1")),
    ("split", include_str!("../../../man/tslice-split.1")),
    ("view", include_str!("../../../man/tslice-view.1")),
    ("diff", include_str!("../../../man/tslice-diff.1")),
    ("info", include_str!("../../../man/tslice-info.1")),
    ("explain", include_str!("../../../man/tslice-explain.1")),
    ("completions", include_str!("../../../man/tslice-completions.1")),
    ("help", include_str!("../../../man/tslice-help.1")),
    ("man", include_str!("../../../man/tslice-man.1")),
];

/// Wider text is hard to read.
const WIDEST: u64 = 100;

pub(super) fn run(args: &TopicArgs) -> Result<(), Failure> {
    let topic = args.topic.as_deref().unwrap_or_default();
    let page = PAGES.iter().find(|(name, _)| *name == topic);
    let (_, page) = page.ok_or_else(|| Failure::new("there is no such page"))?;
    let width = terminal_columns().clamp(40, WIDEST) as usize;
    if stdout().is_terminal() && through_pager(&Text::of(page, width, true).lines) {
        return Ok(());
    }
    print_raw(&Text::of(page, width, false).lines)
}

/// Show a text in a pager; `false` if none has shown it.
fn through_pager(text: &str) -> bool {
    // Ctrl-C is for the pager. It does not inherit the handler, but would inherit that the signal
    // is ignored.
    let interrupted: Arc<AtomicBool> = Arc::default();
    for signal in [SIGINT, SIGQUIT] {
        let _ = signal_hook::flag::register(signal, Arc::clone(&interrupted));
    }
    let named = std::env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty());
    let mut pager = match &named {
        Some(_) => Command::new("sh"),
        // without a shell, which would complain if there is no such program
        None => Command::new("less"),
    };
    pager.args(named.iter().flat_map(|named| ["-c", named]));
    let Ok(mut run) = pager.stdin(Stdio::piped()).spawn() else { return false };
    if let Some(mut stdin) = run.stdin.take() {
        // this fails if the reader closes the pager early
        let _ = stdin.write_all(text.as_bytes());
    }
    let status = run.wait();
    // a signal that ended the pager came from the reader
    interrupted.load(Ordering::Relaxed)
        || status.is_ok_and(|it| it.success() || it.code().is_none())
}

/// Turns a page of roff into text: only the requests that these pages use.
struct Text {
    lines: String,
    words: Vec<String>,
    indent: usize,
    /// What the first line has in place of some of these columns.
    mark: &'static str,
    width: usize,
    /// Whether bold and underlined letters are marked by overstriking, as pagers understand it.
    is_styled: bool,
}

/// Columns before text below a heading.
const BODY: usize = 7;

/// Columns before the explanation of a term.
const ENTRY: usize = 14;

impl Text {
    fn of(page: &str, width: usize, is_styled: bool) -> Text {
        let lines = String::new();
        let mut text = Text { lines, words: vec![], indent: BODY, mark: "", width, is_styled };
        let mut is_term = false;
        let mut is_verbatim = false;
        for line in page.lines() {
            let (request, rest) = line.split_once(' ').unwrap_or((line, ""));
            match request {
                ".ie" | ".el" | ".TH" => {}
                ".SH" => {
                    text.gap();
                    text.line(0, &format!("\\fB{}", rest.trim_matches('"')));
                    text.indent = BODY;
                }
                ".TP" => {
                    text.gap();
                    is_term = true;
                }
                ".PP" => {
                    text.gap();
                    text.indent = BODY;
                }
                ".IP" => {
                    text.paragraph();
                    text.indent = ENTRY + 2;
                    text.mark = "- ";
                }
                ".br" | ".RS" | ".RE" => text.paragraph(),
                ".nf" | ".fi" => {
                    text.paragraph();
                    is_verbatim = request == ".nf";
                }
                "" => text.gap(),
                _ if is_term => {
                    text.line(BODY, line);
                    text.indent = ENTRY;
                    is_term = false;
                }
                _ if is_verbatim => text.line(text.indent, line),
                _ => text.words.extend(line.split_whitespace().map(str::to_owned)),
            }
        }
        text.paragraph();
        text
    }

    fn paragraph(&mut self) {
        let mut line = String::new();
        let mut columns = 0;
        for word in std::mem::take(&mut self.words) {
            let length = unescaped(&word, false).chars().count();
            if columns > 0 && self.indent + columns + 1 + length > self.width {
                self.line(self.indent, &std::mem::take(&mut line));
                columns = 0;
            }
            if columns > 0 {
                line.push(' ');
                columns += 1;
            }
            line += &word;
            columns += length;
        }
        if columns > 0 {
            self.line(self.indent, &line);
        }
    }

    /// End the paragraph, with one empty line behind it.
    fn gap(&mut self) {
        self.paragraph();
        if !self.lines.is_empty() && !self.lines.ends_with("\n\n") {
            self.lines.push('\n');
        }
    }

    fn line(&mut self, indent: usize, roff: &str) {
        let mark = std::mem::take(&mut self.mark);
        self.lines += &" ".repeat(indent.saturating_sub(mark.len()));
        self.lines += mark;
        self.lines += &unescaped(roff, self.is_styled);
        self.lines.push('\n');
    }
}

/// Replace escapes and fonts of roff by what they stand for.
fn unescaped(roff: &str, is_styled: bool) -> String {
    let mut text = String::new();
    let mut font = 'R';
    let mut rest = roff;
    while let Some(char) = rest.chars().next() {
        let (shown, length) = match ESCAPES.iter().find(|(escape, _)| rest.starts_with(escape)) {
            Some((escape, meant)) => (*meant, escape.len()),
            None => (Some(char), char.len_utf8()),
        };
        if let (None, Some(named)) = (shown, rest.strip_prefix("\\f")) {
            font = named.chars().next().unwrap_or('R');
        }
        if let Some(shown) = shown {
            match font {
                // a blank has no style, as in nroff's output
                _ if shown == ' ' => text.push(shown),
                'B' if is_styled => text.extend([shown, '\u{8}', shown]),
                'I' if is_styled => text.extend(['_', '\u{8}', shown]),
                _ => text.push(shown),
            }
        }
        rest = &rest[length..];
    }
    text
}

const ESCAPES: [(&str, Option<char>); 8] = [
    ("\\-", Some('-')),
    ("\\e", Some('\\')),
    ("\\&", None),
    ("\\(aq", Some('\'')),
    ("\\*(Aq", Some('\'')),
    ("\\fB", None),
    ("\\fI", None),
    ("\\fR", None),
];

#[cfg(test)]
mod tests {
    use super::{PAGES, Text};
    use crate::cli::args::{command, help};

    #[test]
    fn every_command_has_a_page_that_tells_its_flags() {
        let definition = command();
        let commands = definition.get_subcommands().filter(|sub| !sub.is_hide_set());
        let names: Vec<&str> = std::iter::once("").chain(commands.map(clap_name)).collect();
        assert_eq!(names, PAGES.map(|(name, _)| name));
        for (name, page) in PAGES {
            let text = Text::of(page, 80, false).lines;
            assert!(text.starts_with("NAME\n       tslice"), "{name}: {text}");
            let escaped = ["\\f", "\\-", "\\(", "\\*"].iter().find(|it| text.contains(**it));
            assert_eq!(escaped, None, "{name}: {text}");
            assert!(!text.lines().any(|line| line.starts_with('.')), "{name}: {text}");
            let named = Some(name).filter(|name| !name.is_empty());
            for flag in help(named, true).split_whitespace().filter(|word| word.starts_with("--")) {
                let flag = flag.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
                assert!(text.contains(flag), "{name}: {flag}");
            }
            let styled = Text::of(page, 80, true).lines;
            assert!(styled.starts_with("N\u{8}NA\u{8}A"), "{name}");
        }
    }

    fn clap_name(command: &clap::Command) -> &str {
        command.get_name()
    }

    #[test]
    fn roff_becomes_text() {
        let page = ".TH x 1\n.SH NAME\nx \\- a\nb\n.TP\n\\fB\\-\\-flag\\fR \\fI<N>\\fR\nIt\\(aqs\n\nlong\n.RS 14\n\
                    .IP \\(bu 2\none: two\n.RE\n.nf\n\\&.x  y\\e\n.fi\n";
        let text = "NAME\n       x - a b\n\n       --flag <N>\n              It's\n\n              long\n\
                    \x20             - one: two\n                .x  y\\\n";
        assert_eq!(Text::of(page, 80, false).lines, text);
    }
}
