//! `tslice man`: the manual pages, also if no package has installed them.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use tslice::sink::note_interrupts;

use crate::cli::args::{TopicArgs, help};
use crate::cli::report::{Failure, print_raw};

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

pub(super) fn run(args: &TopicArgs) -> Result<(), Failure> {
    let topic = args.topic.as_deref();
    let page = PAGES.iter().find(|(name, _)| *name == topic.unwrap_or_default());
    let (_, page) = page.ok_or_else(|| Failure::new("there is no such page"))?;
    if through_man(page) { Ok(()) } else { print_raw(&help(topic, true)) }
}

/// Pass a page to man(1), which formats it and runs a pager; `false` if it was not shown.
fn through_man(page: &str) -> bool {
    // Ctrl-C is for the pager. It does not inherit the handler, but would inherit that the signal
    // is ignored.
    let interrupted = note_interrupts();
    let mut man = Command::new("man");
    man.args(["-l", "-"]).stdin(Stdio::piped()).stderr(Stdio::null());
    let Ok(mut run) = man.spawn() else { return false };
    if let Some(mut stdin) = run.stdin.take() {
        // this fails if the reader closes the pager early
        let _ = stdin.write_all(page.as_bytes());
    }
    let status = run.wait();
    // a signal that ended man came from the reader
    interrupted.load(Ordering::Relaxed)
        || status.is_ok_and(|it| it.success() || it.code().is_none())
}

#[cfg(test)]
mod tests {
    use super::PAGES;
    use crate::cli::args::{command, help};

    #[test]
    fn every_command_has_a_page_that_tells_its_flags() {
        let definition = command();
        let commands = definition.get_subcommands().filter(|sub| !sub.is_hide_set());
        let names: Vec<&str> = std::iter::once("").chain(commands.map(clap_name)).collect();
        assert_eq!(names, PAGES.map(|(name, _)| name));
        for (name, page) in PAGES {
            let text = page.replace("\\-", "-");
            let named = Some(name).filter(|name| !name.is_empty());
            for flag in help(named, true).split_whitespace().filter(|word| word.starts_with("--")) {
                let flag = flag.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
                assert!(text.contains(flag), "{name}: {flag}");
            }
        }
    }

    fn clap_name(command: &clap::Command) -> &str {
        command.get_name()
    }
}
