//! What can be counted of the sources, and how many there may be: names of types that are defined
//! twice, parameters that are tuples without names, long files and functions.
//!
//! `cargo test --test architecture counts -- --nocapture` prints the lines of each module.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Source, Text, texts};

/// Names of types that more than one file defines.
const NAMES_TWICE: usize = 1;

/// The longest file, without comments, tests and empty lines.
const FILE_LINES: usize = 561;

/// The longest function.
const FUNCTION_LINES: usize = 100;

#[test]
fn few_names_of_types_are_defined_twice() {
    let mut files: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in crate::source::sources() {
        for name in types(&source) {
            files.entry(name).or_default().insert(source.path.clone());
        }
    }
    let twice: Vec<String> = files
        .iter()
        .filter(|(_, files)| files.len() > 1)
        .map(|(name, files)| {
            format!("{name}: {}", files.iter().cloned().collect::<Vec<_>>().join(", "))
        })
        .collect();
    assert!(twice.len() <= NAMES_TWICE, "{} names:\n{}", twice.len(), twice.join("\n"));
    println!("{} names of types are defined twice", twice.len());
}

/// Parts of a tuple have no names for who calls.
#[test]
fn no_parameters_are_tuples() {
    let found: Vec<String> = crate::source::sources()
        .iter()
        .flat_map(|source| {
            let signatures = signatures(&source.code);
            let tuples = signatures.iter().flat_map(|signature| tuples(signature));
            tuples.map(|tuple| format!("{}: {tuple}", source.path)).collect::<Vec<_>>()
        })
        .collect();
    assert!(found.is_empty(), "{} parameters:\n{}", found.len(), found.join("\n"));
}

#[test]
fn files_and_functions_are_short() {
    let mut modules: BTreeMap<String, [usize; 5]> = BTreeMap::new();
    for Text { path, text } in texts() {
        let (code, comments, tests) = lines(&text);
        assert!(code <= FILE_LINES, "{path} has {code} lines of code");
        let public = text.lines().filter(|line| is_public_item(line)).count();
        let module = path.split('/').next().unwrap().trim_end_matches(".rs").to_owned();
        let sums = modules.entry(module).or_default();
        for (sum, count) in sums.iter_mut().zip([1, code, comments, tests, public]) {
            *sum += count;
        }
        for (name, lines) in functions(&text) {
            assert!(lines <= FUNCTION_LINES, "{path}: {name} has {lines} lines");
        }
    }
    println!(
        "{:<12}{:>8}{:>8}{:>10}{:>8}{:>8}",
        "module", "files", "code", "comments", "tests", "public"
    );
    let row = |name: &str, sums: &[usize; 5]| {
        let [files, code, comments, tests, public] = sums;
        println!("{name:<12}{files:>8}{code:>8}{comments:>10}{tests:>8}{public:>8}");
    };
    let mut all = [0; 5];
    for (module, sums) in &modules {
        row(module, sums);
        all.iter_mut().zip(sums).for_each(|(all, sum)| *all += sum);
    }
    row("all", &all);
}

/// The types that a file defines outside of its tests.
fn types(source: &Source) -> Vec<String> {
    let words = ["struct", "enum", "trait", "type", "union"];
    let lines = source
        .code
        .lines()
        .filter(|line| !line.starts_with(' ') || line.trim_start().starts_with("pub"));
    let defined = lines.filter_map(|line| {
        let mut rest =
            line.split_whitespace().skip_while(|word| word.starts_with("pub") || *word == "in");
        words.contains(&rest.next()?).then(|| rest.next())?
    });
    let name = |word: &str| {
        word.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap().to_owned()
    };
    defined.map(name).collect()
}

/// The texts between `fn` and the body.
fn signatures(code: &str) -> Vec<String> {
    let starts = code
        .match_indices("fn ")
        .filter(|(at, _)| !code[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_'));
    starts.map(|(at, _)| code[at..].split(['{', ';']).next().unwrap().to_owned()).collect()
}

/// The parameters of a signature whose type is a tuple of two or more.
fn tuples(signature: &str) -> Vec<String> {
    let Some(open) = signature.find('(') else { return Vec::new() };
    let (mut depth, mut parameters, mut current) = (0, Vec::new(), String::new());
    for c in signature[open..].chars() {
        match c {
            '(' | '[' | '<' => depth += 1,
            ')' | ']' => depth -= 1,
            '>' if !current.ends_with('-') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if c == ',' && depth == 1 {
            parameters.push(std::mem::take(&mut current));
        } else if depth > 1 || c != '(' {
            current.push(c);
        }
    }
    parameters.push(current);
    let is_tuple = |parameter: &String| {
        let kind =
            parameter.rsplit_once(": ").map_or("", |_| parameter.split_once(": ").unwrap().1);
        let kind = kind.trim_start_matches(['&', ' ']).trim_start_matches("mut ");
        kind.starts_with('(') && kind.contains(',')
    };
    parameters
        .into_iter()
        .map(|it| it.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|it| is_tuple(it))
        .collect()
}

/// Lines of code, of comments, and of tests.
fn lines(text: &str) -> (usize, usize, usize) {
    let tests = text.find("\n#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let count = |text: &str, comments: bool| {
        let lines = text.lines().map(str::trim_start).filter(|line| !line.is_empty());
        lines.filter(|line| line.starts_with("//") == comments).count()
    };
    let (code, tests) = text.split_at(tests);
    (count(code, false), count(code, true), count(tests, false))
}

fn is_public_item(line: &str) -> bool {
    let kinds = ["fn", "struct", "enum", "trait", "const", "static", "type", "unsafe", "async"];
    line.trim_start()
        .strip_prefix("pub ")
        .is_some_and(|rest| kinds.contains(&rest.split(' ').next().unwrap()))
}

/// The functions of a file, and how many lines each has from its name to its closing brace.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let words: Vec<&str> = line.split_whitespace().take(6).collect();
        let Some(at) = words.iter().position(|word| *word == "fn") else { continue };
        if line.trim_start().starts_with("//") || line.ends_with(';') {
            continue;
        }
        let close = format!("{}}}", " ".repeat(indent));
        let end = lines[number..].iter().position(|line| **line == close);
        if let (Some(name), Some(end)) = (words.get(at + 1), end) {
            found.push(((*name).to_owned(), end + 1));
        }
    }
    found
}

/// The reader must see what it counts, or none of these tests could fail.
#[test]
fn what_is_counted_is_seen() {
    let text = "fn f(a: u8, (b, c): (u8, &[u8]), d: &mut (u8, u8), e: impl Fn((u8, u8)) -> (u8, u8), g: (u8)) -> (u8, u8)";
    assert_eq!(tuples(text), ["(b, c): (u8, &[u8])", "d: &mut (u8, u8)"]);
    let source = Source {
        path: String::new(),
        code: "pub(crate) struct A<T>(T);\nenum B {}\ntype C = u8;\nfn d() {}".to_owned(),
    };
    assert_eq!(types(&source), ["A", "B", "C"]);
    assert_eq!(lines("//! a\nfn f() {}\n\n#[cfg(test)]\nmod tests {\n}\n"), (1, 1, 3));
    assert_eq!(functions("fn f() {\n    g();\n}\n"), [("f()".to_owned(), 3)]);
    assert!(is_public_item("    pub fn a() {}") && !is_public_item("pub(crate) fn a() {}"));
}
