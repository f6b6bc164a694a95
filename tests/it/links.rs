//! No link in the pages of the project leads nowhere: files are there, and anchors have a heading.

use std::fs;
use std::path::{Path, PathBuf};

/// All `.md` files below a folder, but for what is built or hidden.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            pages(&path, found);
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// The lines of a page that are not code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.lines().filter(move |line| {
        let fence = line.starts_with("```");
        inside ^= fence;
        !inside && !fence
    })
}

/// The targets of `[text](target)`, also where the line breaks between them.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text).collect::<Vec<_>>().join("\n");
    let behind = prose.split("](").skip(1);
    behind.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.to_owned()).collect()
}

/// The anchor that GitHub gives a heading: small letters, `-` for spaces, no punctuation.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn has_anchor(page: &Path, wanted: &str) -> bool {
    let text = fs::read_to_string(page).unwrap();
    prose(&text).any(|line| {
        let heading = line.trim_start_matches('#');
        heading.len() < line.len() && anchor(heading.trim()) == wanted
    })
}

#[test]
fn no_link_of_a_page_is_dead() {
    let mut found = Vec::new();
    pages(Path::new(env!("CARGO_MANIFEST_DIR")), &mut found);
    let mut looked_at = 0;
    let mut dead = Vec::new();
    for page in found {
        for link in links(&fs::read_to_string(&page).unwrap()) {
            if link.contains("://") {
                continue;
            }
            looked_at += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target =
                if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            if !target.exists() || !anchor.is_empty() && !has_anchor(&target, anchor) {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
    assert!(looked_at > 40, "only {looked_at} links found");
}

#[test]
fn an_anchor_is_that_of_github() {
    assert_eq!(anchor("Joining and splitting"), "joining-and-splitting");
    assert_eq!(anchor("`--part`, or: 10,000 parts?"), "--part-or-10000-parts");
}
