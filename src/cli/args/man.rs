//! The man pages under `man/`, which are what the definition makes.
//!
//! Set `TSLICE_WRITE_MAN=1` to write them anew.

use std::fs;
use std::path::Path;

use clap::Command;
use clap_mangen::Man;

use super::cli::command;

/// Every page, by its name under `man/`.
fn pages() -> Vec<(String, String)> {
    let mut definition = command();
    definition.build();
    let subcommands = definition.get_subcommands().filter(|sub| !sub.is_hide_set());
    let mut pages: Vec<(String, String)> = subcommands
        .map(|sub| {
            let name = format!("tslice-{}", sub.get_name());
            let page = page(sub, &name, &["tslice"]);
            (format!("{name}.1"), page)
        })
        .collect();
    let names: Vec<&str> = pages.iter().filter_map(|(name, _)| name.strip_suffix(".1")).collect();
    pages.push(("tslice.1".to_owned(), page(&definition, "tslice", &names)));
    pages
}

/// The page of a command, and of which others it tells.
fn page(command: &Command, name: &str, others: &[&str]) -> String {
    // no date and no version: a page changes with the definition alone
    // what `-h` leaves out has its place here
    let command = command.clone().mut_args(|arg| arg.hide_short_help(false));
    let man = Man::new(command.clone()).title(name).source("tslice").manual("tslice manual");
    let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let (notes, examples) = help.split_once("Examples:\n").unwrap_or((&help, ""));

    let mut page = Vec::new();
    man.render_title(&mut page).unwrap();
    man.render_name_section(&mut page).unwrap();
    man.render_synopsis_section(&mut page).unwrap();
    man.render_description_section(&mut page).unwrap();
    let paragraphs = notes.trim().split("\n\n").filter(|paragraph| !paragraph.is_empty());
    // what is usual behind the options, and what belongs before them
    let (behind, before): (Vec<&str>, Vec<&str>) = paragraphs
        .partition(|text| ["Exit status", "Environment"].iter().any(|it| text.starts_with(it)));
    page.extend(before.into_iter().map(noted).collect::<String>().bytes());
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page).unwrap();
    }
    man.render_options_section(&mut page).unwrap();
    page.extend(behind.into_iter().map(noted).collect::<String>().bytes());
    let mut page = String::from_utf8(page).unwrap();
    page += ".SH EXAMPLES\n";
    for line in examples.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)) {
        match line.strip_prefix("# ") {
            // what it does, and below it the command as it is typed
            Some(about) => page += &format!(".TP\n{}\n", escaped(about)),
            None => page += &format!(".nf\n\\fB{}\\fR\n.fi\n", escaped(line)),
        }
    }
    let others: Vec<String> =
        others.iter().map(|other| format!("\\fB{}\\fR(1)", escaped(other))).collect();
    page + ".SH SEE ALSO\n" + &others.join(",\n") + "\n"
}

/// A paragraph of the notes, or a section: its title, and its entries.
fn noted(paragraph: &str) -> String {
    let Some((title, entries)) = paragraph.split_once(":\n  ") else {
        return format!(".PP\n{}\n", escaped(paragraph));
    };
    let mut page = format!(".SH {}\n", escaped(&title.to_uppercase()));
    for entry in entries.replace(&format!("\n{}", " ".repeat(20)), "  ").split("\n  ") {
        let (term, meaning) = entry.split_once("  ").unwrap();
        let meaning = meaning.split_whitespace().collect::<Vec<_>>().join(" ");
        page += &format!(".TP\n\\fB{}\\fR\n{}\n", escaped(term), escaped(&meaning));
    }
    page
}

/// Text as roff takes it for what it is.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    text.replace("\n.", "\n\\&.")
}

#[test]
fn man_pages_are_up_to_date() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("man");
    for (name, text) in pages() {
        let path = directory.join(name);
        if std::env::var_os("TSLICE_WRITE_MAN").is_some() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &text).unwrap();
        }
        let there = fs::read_to_string(&path).unwrap_or_default();
        let shown = path.display();
        assert!(there == text, "{shown} is stale: TSLICE_WRITE_MAN=1 cargo test writes it");
    }
}

#[test]
fn what_stands_behind_the_flags_fits_80_columns() {
    let definition = command();
    for part in std::iter::once(&definition).chain(definition.get_subcommands()) {
        let text = part.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        assert!(text.lines().count() > 5, "{}", part.get_name());
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{}: {line}", part.get_name());
        }
    }
}
