//! The man pages under `man/`, which are what the definition makes.
//!
//! Set `TSLICE_WRITE_MAN=1` to write them anew.

use std::fs;
use std::path::Path;

use super::cli::command;

/// Every generated file, by its path under `man/`.
fn generated() -> Vec<(String, Vec<u8>)> {
    let mut definition = command();
    definition.build();
    let page = |command: &clap::Command, name: &str| {
        let mut text = Vec::new();
        clap_mangen::Man::new(command.clone()).title(name).render(&mut text).unwrap();
        (format!("{name}.1"), text)
    };
    let mut files = vec![page(&definition, "tslice")];
    for sub in definition.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        files.push(page(sub, &format!("tslice-{}", sub.get_name())));
    }
    files
}

#[test]
fn man_pages_are_up_to_date() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("man");
    for (name, text) in generated() {
        let path = directory.join(name);
        if std::env::var_os("TSLICE_WRITE_MAN").is_some() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &text).unwrap();
        }
        let there = fs::read(&path).unwrap_or_default();
        let shown = path.display();
        assert!(there == text, "{shown} is stale: TSLICE_WRITE_MAN=1 cargo test writes it");
    }
}
