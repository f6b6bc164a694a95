//! Documentation of public items stands alone: rustdoc shows a field or a method without the one
//! above it, so a first line must not lean on another, as "The same for ..." or "Its name" do.
//!
//! Public is what says `pub`, and a variant, a variant's field or a method of a public enum or
//! trait. Sources are formatted, so that what an item stands in is the last line with less
//! indentation.

/// How a first line must not begin.
const LEANING: [&str; 12] = [
    "The same", "As above", "As for", "As [", "As it", "Its ", "Those of", "That of", "Likewise",
    "Their ", "Why.", "Why not.",
];

/// The first lines of documentation that lean on another, with their numbers from 1 on.
pub(crate) fn leaning(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let first = |at: &usize| {
        let doc = |line: &str| line.trim_start().starts_with("///");
        doc(lines[*at]) && (*at == 0 || !doc(lines[at - 1]))
    };
    let leans = |at: &usize| {
        let said = lines[*at].trim_start().trim_start_matches('/').trim_start();
        LEANING.iter().any(|words| said.starts_with(words))
    };
    let found = (0..lines.len()).filter(first).filter(leans);
    let found = found.filter(|&at| is_public(&lines, item_below(&lines, at)));
    found.map(|at| format!("{}: {}", at + 1, lines[at].trim())).collect()
}

/// The line of the item that a comment or an attribute belongs to.
fn item_below(lines: &[&str], at: usize) -> usize {
    let item = |line: &&str| {
        let line = line.trim_start();
        !(line.is_empty() || line.starts_with("//") || line.starts_with(['#', ')', ']']))
    };
    at + lines[at..].iter().position(item).unwrap_or_default()
}

fn is_public(lines: &[&str], item: usize) -> bool {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let line = lines[item].trim_start();
    if line.starts_with("pub ") {
        return true;
    }
    // what a struct or an impl holds says `pub` itself
    let own = ["pub(", "struct ", "enum ", "trait ", "type ", "mod ", "impl", "static "];
    if indent(lines[item]) == 0 || own.iter().any(|start| line.starts_with(start)) {
        return false;
    }
    let outer = (0..item).rev().find(|&at| {
        let text = lines[at].trim_start();
        let skipped = text.is_empty() || text.starts_with("//") || text.starts_with("#[");
        !skipped && indent(lines[at]) < indent(lines[item])
    });
    outer.is_some_and(|at| {
        let text = lines[at].trim_start();
        let holds = ["pub enum ", "pub trait "].iter().any(|start| text.starts_with(start));
        // a variant with fields
        let variant = text.ends_with('{') && text.starts_with(char::is_uppercase);
        holds || variant && is_public(lines, at)
    })
}

#[test]
fn a_line_that_leans_is_seen() {
    let text = "/// Its name.\npub struct A {\n    /// Its length.\n    len: u64,\n    /// The same.\n    \
                #[serde(skip)]\n    pub b: u64,\n}\n/// A.\n/// Its rest.\nenum B {\n    \
                /// Its C.\n    C,\n}\npub enum D {\n    /// E.\n    E {\n        /// Its F.\n        \
                f: u64,\n    },\n    /// As [`E`].\n    G,\n}\nimpl X for D {\n    /// The same.\n    \
                fn x() {}\n}\npub trait T {\n    /// Those of x.\n    fn x();\n}\n";
    let lines: Vec<String> =
        leaning(text).iter().map(|line| line.split(':').next().unwrap().to_owned()).collect();
    assert_eq!(lines, ["1", "5", "18", "21", "29"]);
}
