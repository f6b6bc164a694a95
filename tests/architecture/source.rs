//! The sources as text: the code of each file, without comments, strings and tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A source file: its path below `src/`, and its code.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) code: String,
}

impl Source {
    /// Whether a path such as `std::path` or a macro such as `print!` stands in the code.
    pub(crate) fn names(&self, words: &str) -> bool {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        self.code.match_indices(words).any(|(at, _)| !self.code[..at].ends_with(word))
    }

    /// Whether the code names a package: `rayon::`, `use rayon`, `#[rayon(`, but not `super::rayon`
    /// nor a module of that name.
    pub(crate) fn names_package(&self, package: &str) -> bool {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let uses = |at: usize| {
            let (before, after) = (&self.code[..at], &self.code[at + package.len()..]);
            let path = before.strip_suffix("::").unwrap_or_default();
            after.starts_with("::") && !before.ends_with(is_word) && !path.ends_with(is_word)
        };
        self.code.match_indices(package).any(|(at, _)| uses(at))
    }

    pub(crate) fn is_in(&self, places: &[&str]) -> bool {
        let inside = |place: &&str| match place.strip_suffix('/') {
            Some(_) => self.path.starts_with(*place),
            None => self.path == **place,
        };
        places.iter().any(inside)
    }

    /// The module of the library that the file belongs to; `cli` for the program.
    pub(crate) fn module(&self) -> &str {
        let first = self.path.split('/').next().unwrap();
        first.strip_suffix(".rs").unwrap_or(first)
    }

    /// The modules that it names: the words after `crate::`, those in braces among them.
    pub(crate) fn used_modules(&self) -> BTreeSet<&str> {
        let mut modules = BTreeSet::new();
        for rest in self.code.split("crate::").skip(1) {
            match rest.strip_prefix('{') {
                Some(list) => modules.extend(first_words(list)),
                None => modules.extend(word(rest)),
            }
        }
        modules
    }
}

/// The word that a text begins with.
fn word(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    (end > 0).then(|| &text[..end])
}

/// The first word of each item of a list, up to the brace that ends it.
fn first_words(list: &str) -> Vec<&str> {
    let (mut words, mut depth, mut is_first) = (Vec::new(), 0, true);
    for (at, char) in list.char_indices() {
        match char {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => is_first = true,
            _ if is_first && !char.is_whitespace() => {
                words.extend(word(&list[at..]));
                is_first = false;
            }
            _ => {}
        }
    }
    words
}

/// The code of a file: without comments, texts, and the tests at its end.
fn code(text: &str) -> String {
    code_and_strings(text).0
}

/// The texts in the code of a file, one after the other.
pub(crate) fn strings(text: &str) -> String {
    code_and_strings(text).1
}

fn code_and_strings(text: &str) -> (String, String) {
    let is_tests = |(at, marker): &(usize, &str)| {
        let line = text[at + marker.len()..].lines().next().unwrap_or_default();
        line.contains("mod ") && line.ends_with('{')
    };
    let tests = text.match_indices("\n#[cfg(test)]\n").find(is_tests);
    let text = &text[..tests.map_or(text.len(), |(at, _)| at)];
    let (mut code, mut strings) = (String::new(), String::new());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match (char, chars.peek()) {
            ('/', Some('/')) => while chars.next_if(|&c| c != '\n').is_some() {},
            ('"', _) => {
                while let Some(c) = chars.next() {
                    match c {
                        '\\' => drop(chars.next()),
                        '"' => break,
                        _ => strings.push(c),
                    }
                }
                strings.push('\n');
                code.push_str("\"\"");
            }
            // a quote as a character is no beginning of a text
            ('\'', Some('"')) => drop((chars.next(), chars.next())),
            ('\'', Some('\\')) => drop((chars.next(), chars.next(), chars.next())),
            _ => code.push(char),
        }
    }
    (code, strings)
}

/// A source file as it is.
pub(crate) struct Text {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// The code of all files but those of tests.
pub(crate) fn sources() -> Vec<Source> {
    texts().into_iter().map(|Text { path, text }| Source { path, code: code(&text) }).collect()
}

/// All files but those of tests.
pub(crate) fn texts() -> Vec<Text> {
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
    let text = |path: PathBuf| Text {
        path: path.strip_prefix(&src).unwrap().to_str().unwrap().to_owned(),
        text: fs::read_to_string(&path).unwrap(),
    };
    files.into_iter().map(text).collect()
}

/// The reader must see what it looks for, or none of these tests could fail.
#[test]
fn code_is_read_as_code() {
    let text = "use crate::plan::Plan;\nuse crate::{view, runs::{a, b}, cast};\n// rayon::spawn\nlet a = \"memmap2::Mmap\";\n\
                fn f() { clap::parse(); super::libc::x(); crate::shape::f('\"', '\\n') }\n\
                #[cfg(test)]\nmod tests {\n use rayon::x; }";
    let source = Source { path: "index/numpy.rs".to_owned(), code: code(text) };
    assert_eq!(source.module(), "index");
    assert_eq!(source.used_modules(), BTreeSet::from(["cast", "plan", "runs", "shape", "view"]));
    assert!(source.names_package("clap"));
    for package in ["rayon", "memmap2", "libc", "lap", "::shape"] {
        assert!(!source.names_package(package), "{package}");
    }
    assert_eq!(strings(text), "memmap2::Mmap\n");
    assert!(source.is_in(&["index/"]) && !source.is_in(&["index", "cli/"]));
}
