//! The public surface: what `src/lib.rs` hands out by name, with the public functions of each type.
//!
//! `surface.txt` lists it, so that it changes on purpose. `TSLICE_WRITE_SURFACE=1 cargo test
//! --test architecture` writes the list anew. The hidden modules of `src/lib.rs` are not part of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::source::{Source, sources};

/// How many items may be listed.
const ITEMS: usize = 215;

/// Something that `src/lib.rs` hands out.
struct Export {
    /// The module of the library that it comes from.
    module: String,
    /// Its name there.
    name: String,
    /// Its name outside.
    public: String,
}

#[test]
fn the_public_surface_is_the_one_that_is_listed() {
    let sources = sources();
    let items = surface(&sources);
    assert!(items.len() <= ITEMS, "{} public items", items.len());
    let text: String = items.iter().map(|item| format!("{item}\n")).collect();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/architecture/surface.txt");
    if std::env::var_os("TSLICE_WRITE_SURFACE").is_some() {
        fs::write(&file, &text).unwrap();
    }
    let listed = fs::read_to_string(&file).unwrap_or_default();
    let listed: BTreeSet<&str> = listed.lines().collect();
    let found: BTreeSet<&str> = text.lines().collect();
    let new: Vec<_> = found.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&found).collect();
    assert!(new.is_empty() && gone.is_empty(), "public, not listed: {new:?}; listed: {gone:?}");
    println!("{} public items", items.len());
}

/// Types of the standard library and of `ndarray`, and parameters, in signatures.
const STANDARD: &[&str] = &[
    "Arc",
    "ArrayD",
    "AsRef",
    "Box",
    "BTreeMap",
    "Clone",
    "Display",
    "ExactSizeIterator",
    "F",
    "Fn",
    "Input",
    "Into",
    "IntoIterator",
    "Iterator",
    "Item",
    "Option",
    "OsStr",
    "Path",
    "PathBuf",
    "Range",
    "Result",
    "Self",
    "Send",
    "Some",
    "String",
    "Sync",
    "T",
    "ToString",
    "Vec",
];

#[test]
fn what_public_functions_and_fields_speak_of_is_public() {
    let sources = sources();
    let root = sources.iter().find(|source| source.path == "lib.rs").unwrap();
    let exports = exports(&root.code);
    let public: BTreeSet<&str> = exports
        .iter()
        .flat_map(|it| [it.name.as_str(), &it.public])
        .chain(STANDARD.iter().copied())
        .collect();
    let mut hidden = BTreeSet::new();
    for Export { module, name, .. } in &exports {
        for source in sources.iter().filter(|source| source.module() == module) {
            for item in signatures(&source.code, name).iter().chain(&fields(&source.code, name)) {
                let words = item.split(|c: char| !c.is_alphanumeric() && c != '_');
                let types = words.skip(1).filter(|word| word.starts_with(char::is_uppercase));
                let types = types.filter(|word| !public.contains(word));
                let shown = item.split(['(', ':', '{']).next().unwrap().trim();
                hidden.extend(types.map(|word| format!("{name}::{shown} names {word}")));
            }
        }
    }
    let hidden: Vec<_> = hidden.into_iter().collect();
    assert!(hidden.is_empty(), "not public:\n{}", hidden.join("\n"));
}

#[test]
fn examples_need_nothing_that_is_hidden() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = fs::read_to_string(root.join("src/lib.rs")).unwrap();
    let modules = library.lines().filter_map(|line| line.strip_prefix("pub mod "));
    let hidden: Vec<_> =
        modules.map(|name| format!("tslice::{}::", name.trim_end_matches(';'))).collect();
    assert!(hidden.contains(&"tslice::index::".to_owned()), "{hidden:?}");
    let examples = fs::read_dir(root.join("examples")).unwrap();
    let files = examples.map(|entry| entry.unwrap().path());
    let files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|it| it == "rs")).collect();
    assert!(!files.is_empty());
    for path in files.into_iter().chain([root.join("docs/library.md"), root.join("README.md")]) {
        let text = fs::read_to_string(&path).unwrap();
        let used = hidden.iter().find(|module| text.contains(module.as_str()));
        assert!(used.is_none(), "{} uses {used:?}, which is hidden", path.display());
    }
}

/// The names of items, and of the functions of types as `Type::function`.
fn surface(sources: &[Source]) -> BTreeSet<String> {
    let root = sources.iter().find(|source| source.path == "lib.rs").unwrap();
    let mut items = BTreeSet::new();
    for Export { module, name, public } in exports(&root.code) {
        let files = sources.iter().filter(|source| source.module() == module);
        let functions = files.flat_map(|source| functions(&source.code, &name));
        items.extend(functions.map(|function| format!("{public}::{function}")));
        items.insert(public);
    }
    items
}

/// The statements `pub use` that are not inside of anything.
fn exports(code: &str) -> Vec<Export> {
    let statements = code.split("\npub use ").skip(1);
    statements
        .flat_map(|rest| {
            let (path, _) = rest.split_once(';').unwrap();
            let list = path.split_once("::{");
            let (path, names) = list.or(path.rsplit_once("::")).unwrap();
            let module = path.split("::").find(|word| *word != "crate").unwrap();
            let names = names.trim_end_matches('}').split(',').map(str::trim);
            let names = names.filter(|name| !name.is_empty());
            names.map(move |item| {
                let (name, public) = item.split_once(" as ").unwrap_or((item, item));
                let name = name.rsplit("::").next().unwrap();
                let [module, name, public] = [module, name, public].map(str::to_owned);
                Export { module, name, public }
            })
        })
        .collect()
}

/// The names of the public functions in the blocks `impl` of a type.
fn functions(code: &str, name: &str) -> Vec<String> {
    let word = |c: char| !c.is_alphanumeric() && c != '_';
    let signatures = signatures(code, name).into_iter();
    signatures.map(|it| it.split(word).next().unwrap().to_owned()).collect()
}

/// The public functions in the blocks `impl` of a type, from the name to the body.
fn signatures(code: &str, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    for block in code.split("\nimpl").skip(1) {
        let (head, rest) = block.split_once('{').unwrap();
        // `<T: X> Name<T> `, without a trait
        let head = match head.trim_start().strip_prefix('<') {
            Some(head) => head.split_once('>').map_or("", |(_, head)| head),
            None => head,
        };
        let of = head.trim().split(['<', ' ']).next().unwrap_or_default();
        if of != name || head.contains(" for ") {
            continue;
        }
        let body = rest.split("\n}").next().unwrap_or_default();
        let body = body.replace("#[doc(hidden)]\n    pub ", HIDDEN);
        let starts = ["\n    pub fn ", "\n    pub const fn "];
        let functions = starts.iter().flat_map(|start| body.split(start).skip(1));
        found.extend(functions.map(|rest| rest.split(" {").next().unwrap().to_owned()));
    }
    found
}

/// The public fields of a structure, or the variants of an enumeration, that are not hidden: from the name to the end
/// of the type.
fn fields(code: &str, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (kind, starts) in [("struct", "pub "), ("enum", "")] {
        for rest in code.split(&format!("\npub {kind} {name}")).skip(1) {
            if rest.starts_with(|c: char| c.is_alphanumeric()) {
                continue;
            }
            let (head, body) = rest.split_once("{\n").unwrap_or_default();
            if head.contains(';') {
                continue;
            }
            let body = body.split("\n}").next().unwrap_or_default();
            let body = without_attributes(&body.replace("#[doc(hidden)]", HIDDEN));
            for item in body.split(",\n") {
                let item = item.trim_start_matches(|c: char| c.is_whitespace() || c == '}');
                found.extend(item.strip_prefix(starts).map(str::to_owned));
            }
        }
    }
    found.retain(|item| !item.starts_with(HIDDEN));
    found
}

/// What begins an item that is left out of the documentation.
const HIDDEN: &str = "hidden ";

/// Code without its attributes.
fn without_attributes(code: &str) -> String {
    let mut depth = 0;
    let mut kept = String::new();
    let mut before = ' ';
    for c in code.chars() {
        match c {
            '[' if depth > 0 => depth += 1,
            '[' if before == '#' => {
                kept.pop();
                depth = 1;
            }
            ']' if depth > 0 => depth -= 1,
            _ if depth == 0 => kept.push(c),
            _ => {}
        }
        before = c;
    }
    kept
}

#[test]
fn what_is_public_is_seen() {
    let file = |path: &str, code: &str| Source { path: path.to_owned(), code: code.to_owned() };
    let sources = [
        file(
            "lib.rs",
            "#[doc(hidden)]\npub mod a;\n\
             pub use a::{One, b::two as three};\npub use a::Four;\n",
        ),
        file(
            "a/x.rs",
            "\nimpl<T: X> One<T> {\n    pub fn new() {\n    }\n    fn own() {}\n    pub(crate) fn \
             inner() {}\n}\nimpl X for One {\n    fn x() {}\n}\nimpl Four {\n    pub const fn y() \
             {}\n}\n",
        ),
        file("c.rs", "\nimpl One {\n    pub fn other() {}\n}\n"),
    ];
    let found: Vec<String> = surface(&sources).into_iter().collect();
    assert_eq!(found, ["Four", "Four::y", "One", "One::new", "three"]);
}
