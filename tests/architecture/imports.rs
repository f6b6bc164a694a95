//! Which file uses which: the graph of `use` and of paths between files, and the circles in it.
//!
//! A file uses the file that defines what it names. A re-export (`pub use`) defines nothing: who
//! uses a name by way of it uses the file behind it, and the file that re-exports it uses nothing
//! by that, unless its own code has the name too. So a `mod.rs` may declare and re-export its
//! children; but when its code calls them, they must find what they share in a file beside them.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::Source;

/// A path in the sources: the crate (`lib` or `main`), and the words after it.
type Name = Vec<String>;

/// The files of a crate and what they import.
pub(crate) struct Imports {
    files: BTreeMap<String, File>,
    /// The file of each module, by its path.
    modules: BTreeMap<Name, String>,
}

struct File {
    module: Name,
    /// Every name that a `use` brings into the file, and what it stands for.
    names: BTreeMap<String, Name>,
    /// Those of them that the file only passes on.
    passed_on: BTreeSet<String>,
    /// All paths in the code.
    paths: Vec<Name>,
}

impl Imports {
    /// Read the imports of these files.
    pub(crate) fn of(sources: &[Source]) -> Imports {
        let modules: BTreeMap<Name, String> =
            sources.iter().map(|source| (module(&source.path), source.path.clone())).collect();
        let files = sources.iter().map(|source| (source.path.clone(), read(source, &modules)));
        let files = files.collect();
        Imports { files, modules }
    }

    /// The files that a file uses.
    pub(crate) fn used(&self, path: &str) -> BTreeSet<&str> {
        let file = &self.files[path];
        let named = file.names.iter().filter(|(name, _)| !file.passed_on.contains(*name));
        let named = named.filter(|(_, target)| !self.modules.contains_key(*target));
        let inline = file.paths.iter().filter_map(|path| absolute(path, file, &self.modules));
        let all = named.map(|(_, target)| target.clone()).chain(inline);
        all.filter_map(|name| self.defined_in(&name, 0)).filter(|used| *used != path).collect()
    }

    /// The file that defines a name, re-exports followed.
    fn defined_in(&self, name: &[String], depth: usize) -> Option<&str> {
        let module = (1..=name.len()).rev().find(|&len| self.modules.contains_key(&name[..len]))?;
        let path = &self.modules[&name[..module]];
        let file = &self.files[path];
        match name.get(module).and_then(|item| file.names.get(item)) {
            Some(behind) if depth < 10 && behind[..] != name[..module] => {
                let rest = name[module + 1..].iter().cloned();
                let behind: Name = behind.iter().cloned().chain(rest).collect();
                self.defined_in(&behind, depth + 1)
            }
            _ => Some(path),
        }
    }

    /// The sets of files each of which uses all others of its set, directly or through others.
    pub(crate) fn circles(&self) -> Vec<Vec<&str>> {
        let uses: BTreeMap<&str, BTreeSet<&str>> =
            self.files.keys().map(|path| (path.as_str(), self.used(path))).collect();
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            uses.keys().map(|path| (*path, reached(path, &uses))).collect();
        let circle = |path: &&str| -> Vec<&str> {
            reached[path].iter().copied().filter(|other| reached[other].contains(path)).collect()
        };
        let circles: BTreeSet<Vec<&str>> =
            uses.keys().map(circle).filter(|circle| !circle.is_empty()).collect();
        circles.into_iter().collect()
    }
}

/// All files that a file uses, directly or through others.
fn reached<'a>(from: &'a str, uses: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(path) = open.pop() {
        open.extend(uses[path].iter().filter(|used| reached.insert(**used)));
    }
    reached
}

/// The module of a file: the program is `main.rs` and `cli`, all else the library.
fn module(path: &str) -> Name {
    let krate = if path == "main.rs" || path.starts_with("cli/") { "main" } else { "lib" };
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let path = path.strip_suffix("/mod").unwrap_or(path);
    let words = path.split('/').filter(|word| !["main", "lib"].contains(word));
    std::iter::once(krate).chain(words).map(str::to_owned).collect()
}

/// What a path in a file stands for, where it is one of these sources.
fn absolute(path: &[String], file: &File, modules: &BTreeMap<Name, String>) -> Option<Name> {
    let (first, rest) = path.split_first()?;
    let child = || [&file.module[..], std::slice::from_ref(first)].concat();
    let start = match first.as_str() {
        "crate" => vec![file.module[0].clone()],
        "tslice" => vec!["lib".to_owned()],
        "self" => file.module.clone(),
        "super" => file.module[..file.module.len() - 1].to_vec(),
        _ if modules.contains_key(&child()) => child(),
        name => file.names.get(name)?.clone(),
    };
    let supers = rest.iter().take_while(|word| *word == "super").count();
    let start = start[..start.len().saturating_sub(supers)].to_vec();
    Some(start.into_iter().chain(rest[supers..].iter().cloned()).collect())
}

fn read(source: &Source, modules: &BTreeMap<Name, String>) -> File {
    let (uses, code) = split_uses(&without_inner_modules(&source.code));
    let declares = |line: &&str| {
        let line = line.trim_start().trim_start_matches("pub ").trim_start_matches("pub(crate) ");
        line.starts_with("mod ") && line.ends_with(';')
    };
    let code: String = code.lines().filter(|line| !declares(line)).collect::<Vec<_>>().join("\n");
    let code = code.replace("pub(in crate::", "pub(");
    let mut file = File {
        module: module(&source.path),
        names: BTreeMap::new(),
        passed_on: BTreeSet::new(),
        paths: paths(&code),
    };
    for (public, tree) in uses {
        for (path, name) in expand(&tree) {
            let Some(target) = absolute(&path, &file, modules) else { continue };
            if public && !has_word(&code, &name) {
                file.passed_on.insert(name.clone());
            }
            file.names.insert(name, target);
        }
    }
    file
}

/// The code, in which what an inner module calls `super` is this file itself.
fn without_inner_modules(code: &str) -> String {
    let Some((at, open)) = code.match_indices("mod ").find_map(|(at, _)| {
        let open = at + code[at..].find(['{', ';', '\n'])?;
        code[open..].starts_with('{').then_some((at, open))
    }) else {
        return code.to_owned();
    };
    let mut depth = 0;
    let end = code[open..].find(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth == 0
    });
    let end = end.map_or(code.len(), |end| open + end);
    let inner = code[open..end].replace("super::", "self::");
    format!("{}{inner}{}", &code[..at], without_inner_modules(&code[end..]))
}

/// The trees of all `use`, and whether each is a re-export; and the code without them.
fn split_uses(code: &str) -> (Vec<(bool, String)>, String) {
    let (mut uses, mut rest) = (Vec::new(), String::new());
    let mut left = code;
    while let Some(at) = left.find("use ") {
        let line = left[..at].rsplit(['\n', ';', '{', '}']).next().unwrap_or_default().trim();
        let is_use =
            line.is_empty() || line.starts_with("pub") && !line.contains(char::is_whitespace);
        let end = left[at..].find(';').map_or(left.len(), |end| at + end + 1);
        if is_use {
            rest.push_str(&left[..at]);
            uses.push((
                line.starts_with("pub"),
                left[at + 4..end].trim_end_matches(';').to_owned(),
            ));
            left = &left[end..];
        } else {
            rest.push_str(&left[..at + 4]);
            left = &left[at + 4..];
        }
    }
    rest.push_str(left);
    (uses, rest)
}

/// Every path of a tree, and the name under which it is known in the file.
fn expand(tree: &str) -> Vec<(Name, String)> {
    let tree = tree.trim();
    if let Some(open) = tree.find('{') {
        let before = tree[..open].trim().trim_end_matches("::");
        let inside = tree[open + 1..].trim_end().trim_end_matches('}');
        let mut branches = vec![String::new()];
        let mut depth = 0;
        for c in inside.chars() {
            depth += i32::from(c == '{') - i32::from(c == '}');
            match branches.last_mut() {
                Some(branch) if c != ',' || depth > 0 => branch.push(c),
                _ => branches.push(String::new()),
            }
        }
        let branches = branches.iter().map(|branch| branch.trim()).filter(|it| !it.is_empty());
        return branches.flat_map(|branch| expand(&format!("{before}::{branch}"))).collect();
    }
    let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(a, b)| (a, Some(b.trim())));
    let mut words: Name = path.split("::").map(|word| word.trim().to_owned()).collect();
    if words.len() > 1 && words.last().is_some_and(|last| last == "self") {
        words.pop();
    }
    let name = alias.or(words.last().map(String::as_str)).unwrap_or_default().to_owned();
    vec![(words, name)]
}

/// All paths of two words or more.
fn paths(code: &str) -> Vec<Name> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let spans = code.split(|c: char| !is_word(c)).filter(|span| span.contains("::"));
    let words = |span: &str| -> Name {
        span.split("::").filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    spans.filter(|span| !span.starts_with(':')).map(words).filter(|path| path.len() > 1).collect()
}

fn has_word(code: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    code.split(|c| !is_word(c)).any(|word| word == name)
}

#[test]
fn circles_are_found() {
    let source = |path: &str, code: &str| Source { path: path.to_owned(), code: code.to_owned() };
    let circles = |sources: &[Source]| -> Vec<String> {
        Imports::of(sources).circles().iter().map(|circle| circle.join(" ")).collect()
    };
    // a folder whose mod.rs declares and re-exports, and whose files use what it defines
    let fine = vec![
        source("lib.rs", "pub mod a; pub use a::open;"),
        source(
            "a/mod.rs",
            "mod b;\nmod c;\npub use b::open;\npub use c::{self, T as U};\npub struct E;",
        ),
        source("a/b.rs", "use super::{E, U};\npub fn open() -> U { crate::a::E }"),
        source("a/c.rs", "use super::E;\npub struct T(E);"),
    ];
    assert!(circles(&fine).is_empty());
    let uses = Imports::of(&fine);
    assert_eq!(uses.used("a/b.rs"), BTreeSet::from(["a/mod.rs", "a/c.rs"]));
    assert!(uses.used("a/mod.rs").is_empty());

    // two files, by way of the re-export of their folder
    let mut two = fine;
    two[3] = source("a/c.rs", "pub struct T;\nfn f() { super::open() }");
    assert_eq!(circles(&two), ["a/b.rs a/c.rs"]);
    // a folder that calls a child which uses what it defines
    two[3] = source("a/c.rs", "pub struct T;");
    two[1] = source(
        "a/mod.rs",
        "mod b;\nmod c;\npub use c::{T as U};\npub struct E;\nfn f() { b::open() }",
    );
    assert_eq!(circles(&two), ["a/b.rs a/mod.rs"]);
    // three files of the program, in braces over lines and by a path in the code
    let three = [
        source("main.rs", "mod cli;"),
        source("cli/mod.rs", "mod x;\nmod y;\nmod z;"),
        source("cli/x.rs", "use super::{\n    y::Y,\n};\nuse tslice::x;"),
        source("cli/y.rs", "use crate::cli::z;\npub struct Y;\nfn f() { z::g() }"),
        source("cli/z.rs", "pub fn g() { super::x::h() }"),
    ];
    assert_eq!(circles(&three), ["cli/x.rs cli/y.rs cli/z.rs"]);
}
