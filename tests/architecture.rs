//! The shape of the house, read from the sources as text: which room may use which, what the core
//! must not know, and where each package lives. ARCHITECTURE.md says why.
//!
//! A room is a module of `src/lib.rs`, a file or a folder. Comments and strings do not count, nor
//! does what stands behind `#[cfg(test)]`, which these sources keep at the end of a file.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms of the library in the order of the pipeline, and the other rooms that each may use.
const ROOMS: &[(&str, &[&str])] = &[
    ("shape", &[]),
    ("dtype", &[]),
    ("element", &["dtype"]),
    ("index", &["shape"]),
    ("runs", &["shape"]),
    ("view", &["index", "runs", "shape"]),
    ("plan", &["runs", "view"]),
    ("os", &[]),
    ("source", &["os"]),
    ("sink", &["os"]),
    ("format", &["dtype", "element", "shape", "source"]),
    ("text", &["dtype", "element", "format", "shape", "sink"]),
    ("execute", &["plan", "runs", "shape", "sink", "source"]),
    ("gather", &["dtype", "execute", "index", "plan", "runs", "shape", "sink", "source", "view"]),
    ("scatter", &["execute", "gather", "plan", "runs", "shape", "sink", "source", "view"]),
];

/// Each package, and the files or folders that may name it.
const PACKAGES: &[(&str, &[&str])] = &[
    ("clap", &["cli/args.rs", "cli/misuse.rs", "cli/mod.rs", "cli/man.rs"]),
    ("clap_complete", &["cli/args.rs", "cli/completions.rs", "cli/man.rs"]),
    ("crc32fast", &["source/inflate.rs", "sink/zip/"]),
    ("flate2", &["source/inflate.rs", "sink/zip/deflated.rs"]),
    ("globset", &["cli/choose.rs"]),
    ("half", &["element/format.rs"]),
    ("indicatif", &["cli/progress.rs"]),
    ("libc", &["os/", "source/", "sink/", "cli/edit.rs"]),
    ("memmap2", &["source/mmap.rs", "sink/writable_map.rs"]),
    ("rayon", &["execute/parallel.rs"]),
    ("rustix", &["os/", "source/", "sink/"]),
    // there is a module of that name, so that the package is spelled with colons
    ("::safetensors", &["format/safetensors.rs"]),
    ("serde", &["format/safetensors.rs", "format/shards.rs"]),
    (
        "serde_json",
        &["format/safetensors.rs", "format/shards.rs", "text.rs", "cli/explain.rs", "cli/info.rs"],
    ),
    ("signal_hook", &["sink/", "cli/mod.rs"]),
    ("tempfile", &["source/stream.rs", "sink/spooled.rs"]),
    (
        "thiserror",
        &[
            "index/",
            "view.rs",
            "format/",
            "source/",
            "sink/",
            "execute/",
            "gather/",
            "element/",
            "scatter.rs",
        ],
    ),
];

/// Files that may hold `unsafe`.
const UNSAFE: &[&str] = &[
    "execute/pack/shuffle.rs",
    "os/sigbus.rs",
    "os/stdio.rs",
    "sink/writable_map.rs",
    "source/mmap.rs",
];

/// A source file: its path below `src/`, and its code.
struct Source {
    path: String,
    code: String,
}

impl Source {
    /// Whether a path such as `std::path` or a macro such as `print!` stands in the code.
    fn names(&self, words: &str) -> bool {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        self.code.match_indices(words).any(|(at, _)| !self.code[..at].ends_with(word))
    }

    /// Whether the code names a package: `rayon::`, `use rayon`, `#[rayon(`, but not `super::rayon`
    /// nor a module of that name.
    fn names_package(&self, package: &str) -> bool {
        let uses = |at: usize| {
            let (before, after) = (&self.code[..at], &self.code[at + package.len()..]);
            let whole = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let inner = ["super::", "crate::", "self::", "tslice::"];
            whole && after.starts_with("::") && !inner.iter().any(|path| before.ends_with(path))
        };
        self.code.match_indices(package).any(|(at, _)| uses(at))
    }

    fn is_in(&self, places: &[&str]) -> bool {
        let inside = |place: &&str| match place.strip_suffix('/') {
            Some(_) => self.path.starts_with(*place),
            None => self.path == **place,
        };
        places.iter().any(inside)
    }

    /// The room of the library that the file belongs to; `cli` for the program.
    fn room(&self) -> &str {
        let first = self.path.split('/').next().unwrap();
        first.strip_suffix(".rs").unwrap_or(first)
    }

    /// The rooms that it names: the words after `crate::`, which no file of these spells with
    /// braces.
    fn used_rooms(&self) -> BTreeSet<&str> {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let rooms = self.code.split("crate::").skip(1);
        rooms.map(|rest| rest.split(|c| !word(c)).next().unwrap_or_default()).collect()
    }
}

/// The code of a file: without comments, texts, and the tests at its end.
fn code(text: &str) -> String {
    let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
    let mut code = String::new();
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match (char, chars.peek()) {
            ('/', Some('/')) => while chars.next_if(|&c| c != '\n').is_some() {},
            ('"', _) => {
                while let Some(c) = chars.next() {
                    match c {
                        '\\' => drop(chars.next()),
                        '"' => break,
                        _ => {}
                    }
                }
                code.push_str("\"\"");
            }
            // a quote as a character is no beginning of a text
            ('\'', Some('"')) => drop((chars.next(), chars.next())),
            ('\'', Some('\\')) => drop((chars.next(), chars.next(), chars.next())),
            _ => code.push(char),
        }
    }
    code
}

fn sources() -> Vec<Source> {
    fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => collect(&path, files),
                false => files.push(path),
            }
        }
    }
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&src, &mut files);
    files.retain(|path| path.file_name().unwrap() != "tests.rs");
    let source = |path: PathBuf| Source {
        path: path.strip_prefix(&src).unwrap().to_str().unwrap().to_owned(),
        code: code(&fs::read_to_string(&path).unwrap()),
    };
    files.into_iter().map(source).collect()
}

/// The files of the library.
fn library() -> impl Iterator<Item = Source> {
    sources().into_iter().filter(|source| !["cli", "main", "lib"].contains(&source.room()))
}

/// Fail with all that was found.
fn assert_none(what: &str, found: impl Iterator<Item = String>) {
    let found: Vec<String> = found.collect();
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}

#[test]
fn rooms_use_each_other_in_one_direction() {
    let mut violations = Vec::new();
    for source in library() {
        let room = source.room();
        let allowed = ROOMS.iter().find(|(name, _)| *name == room);
        let (_, allowed) = allowed.unwrap_or_else(|| panic!("{room} is in no table: add it"));
        for used in source.used_rooms() {
            assert!(!used.is_empty(), "{}: a line for each room, no crate::{{", source.path);
            if used != room && !allowed.contains(&used) {
                violations.push(format!("{} uses {used}", source.path));
            }
        }
    }
    assert_none("a room uses one that it must not know", violations.into_iter());
}

/// The table itself must have no circle: each room uses only rooms that stand before it.
#[test]
fn the_directions_have_no_circle() {
    for (number, (room, allowed)) in ROOMS.iter().enumerate() {
        for used in *allowed {
            assert!(ROOMS[..number].iter().any(|(name, _)| name == used), "{room} uses {used}");
        }
    }
}

#[test]
fn the_core_knows_no_paths_no_files_and_no_terminal() {
    let forbidden = ["std::fs", "std::path", "std::env", "std::process", "PathBuf", "OpenOptions"];
    let core = library().filter(|source| !["os", "source", "sink"].contains(&source.room()));
    let named = |source: Source| {
        let found = forbidden.into_iter().filter(|words| source.names(words)).collect::<Vec<_>>();
        (!found.is_empty()).then(|| format!("{} names {}", source.path, found.join(", ")))
    };
    assert_none("the core knows files", core.filter_map(named));
    let prints = ["print!", "println!", "eprint!", "eprintln!", "dbg!", "is_terminal", "stderr"];
    let printing = |source: &Source| prints.iter().any(|name| source.names(name));
    assert_none("the library prints", library().filter(printing).map(|source| source.path));
}

#[test]
fn every_package_has_its_room() {
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
    let manifest = manifest.unwrap();
    let section = manifest.split("\n[dependencies]\n").nth(1).unwrap();
    let section = section.split("\n[").next().unwrap();
    let names = section.lines().filter_map(|line| line.split_once(" = "));
    let packages: BTreeSet<String> = names.map(|(name, _)| name.replace('-', "_")).collect();
    let listed: BTreeSet<String> =
        PACKAGES.iter().map(|(name, _)| name.trim_start_matches(':').to_owned()).collect();
    assert_eq!(packages, listed, "Cargo.toml and the table of rooms differ");

    let mut violations = Vec::new();
    for source in sources() {
        for (package, places) in PACKAGES {
            if source.names_package(package) && !source.is_in(places) {
                violations.push(format!("{} names {package}", source.path));
            }
        }
    }
    assert_none("a package is named outside its room", violations.into_iter());
    for (package, places) in PACKAGES {
        for place in *places {
            let named = |source: &Source| source.is_in(&[place]) && source.names_package(package);
            assert!(sources().iter().any(named), "{place} does not name {package} any more");
        }
    }
}

#[test]
fn unsafe_code_stays_in_its_rooms() {
    let found = |source: &Source| source.names("unsafe {") || source.names("unsafe_code");
    let files: BTreeSet<String> =
        sources().into_iter().filter(found).map(|source| source.path).collect();
    assert_eq!(files, UNSAFE.iter().map(|path| (*path).to_owned()).collect());
}

/// The reader above must see what it looks for, or none of these tests could fail.
#[test]
fn code_is_read_as_code() {
    let text = "use crate::plan::Plan;\nuse crate::view;\n// rayon::spawn\nlet a = \"memmap2::Mmap\";\n\
                fn f() { clap::parse(); super::libc::x(); crate::shape::f('\"', '\\n') }\n\
                #[cfg(test)]\nmod tests {\n use rayon::x; }";
    let source = Source { path: "index/numpy.rs".to_owned(), code: code(text) };
    assert_eq!(source.room(), "index");
    assert_eq!(source.used_rooms(), BTreeSet::from(["plan", "shape", "view"]));
    assert!(source.names_package("clap"));
    for package in ["rayon", "memmap2", "libc", "lap", "::shape"] {
        assert!(!source.names_package(package), "{package}");
    }
    assert!(source.is_in(&["index/"]) && !source.is_in(&["index", "cli/"]));
}
