//! Runs the examples of README.md and of all pages in docs: each line of a `console` block that
//! begins with `$ `, and in tables each cell whose code does. A `make` block is the Makefile of its
//! page.
//!
//! The examples of a page run in order, in one temporary folder that holds the files they use. A
//! command must end with status 0; where lines follow it, they are what it must print, standard
//! error included (docs/terminal.md shows commands that fail, too). A command that needs Make, GNU
//! parallel or jq is left out where they are missing.
//!
//! ```text
//! $ tslice photos.npy '[0]' --dry-run       the command
//! would write standard output: ...          what it prints
//! ```

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::program::bash;

#[allow(dead_code)]
#[path = "../../examples/files.rs"]
mod files;

/// One example: its command, and the lines that it must print (none: they are not looked at).
struct Example {
    command: String,
    output: Vec<String>,
}

fn examples(page: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => examples.extend(in_a_table(line)),
            _ => match (line.strip_prefix("$ "), examples.last_mut()) {
                (Some(command), _) => {
                    examples.push(Example { command: command.to_owned(), output: Vec::new() });
                }
                (None, Some(example)) => example.output.push(line.to_owned()),
                (None, None) => panic!("a console block begins without a command: {line}"),
            },
        }
    }
    examples
}

/// The example in the last cell of a table's row, if its code begins with `$ `.
fn in_a_table(line: &str) -> Option<Example> {
    let (_, command) = line.strip_prefix('|')?.strip_suffix("` |")?.split_once("| `$ ")?;
    Some(Example { command: command.to_owned(), output: Vec::new() })
}

/// The lines of a page's `make` block.
fn makefile(page: &str) -> Option<&str> {
    let (_, block) = page.split_once("```make\n")?;
    block.split_once("```\n").map(|(lines, _)| lines)
}

/// Whether a command needs Make, GNU parallel or jq and this machine lacks it.
fn lacks_a_program(folder: &TempDir, command: &str) -> bool {
    ["make", "parallel", "jq"].into_iter().any(|program| {
        let needed = command.split_whitespace().any(|word| word == program);
        needed && !bash(folder, &format!("{program} --version")).output().unwrap().status.success()
    })
}

/// The files that examples use.
pub(crate) fn write_inputs(folder: &TempDir) {
    files::write_files(folder.path()).unwrap();
}

/// Runs the examples of a page, which are at least `least`.
fn run_page(page: &str, least: usize) {
    let text = text_of(page);
    let examples = examples(&text);
    assert!(examples.len() >= least, "only {} examples found in {page}", examples.len());

    let folder = tempfile::tempdir().unwrap();
    write_inputs(&folder);
    if let Some(lines) = makefile(&text) {
        fs::write(folder.path().join("Makefile"), lines).unwrap();
    }

    for Example { command, output } in examples {
        if lacks_a_program(&folder, &command) {
            continue;
        }
        let line = format!(
            "set -o pipefail; {{ {command}
}} 2>&1"
        );
        let run = bash(&folder, &line).env("NO_COLOR", "1").output().unwrap();
        let printed = String::from_utf8_lossy(&run.stdout);
        let may_fail = page == TERMINAL && !output.is_empty();
        assert!(run.status.success() || may_fail, "{page}: $ {command}\n{printed}\n{}", run.status);
        if !output.is_empty() {
            let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
            assert_eq!(printed, output, "{page}: $ {command}");
        }
    }
}

/// What commands show in a terminal, errors among it.
const TERMINAL: &str = "docs/terminal.md";

#[test]
fn the_examples_of_the_readme_run() {
    run_page("README.md", 20);
}

#[test]
fn what_a_terminal_shows_is_true() {
    run_page(TERMINAL, 9);
}

/// The other pages that hold examples, and how many at least.
const PAGES: [(&str, usize); 20] = [
    ("docs/changing.md", 3),
    ("docs/checkpoints.md", 15),
    ("docs/dtypes.md", 8),
    ("docs/files.md", 4),
    ("docs/formats/gguf.md", 4),
    ("docs/formats/netcdf3.md", 4),
    ("docs/formats/npy.md", 4),
    ("docs/formats/npz.md", 3),
    ("docs/formats/pickle.md", 3),
    ("docs/formats/raw.md", 3),
    ("docs/formats/safetensors.md", 3),
    ("docs/formats/text.md", 5),
    ("docs/formats/torch.md", 3),
    ("docs/from-numpy.md", 43),
    ("docs/guarantees.md", 2),
    ("docs/index.md", 28),
    ("docs/joining.md", 13),
    ("docs/parts.md", 5),
    ("docs/recipes.md", 30),
    ("docs/values.md", 11),
];

/// The pages whose examples need the features `zarr` and `hdf5`.
const PAGES_OF_CHUNKS: [(&str, usize); 3] =
    [("docs/formats/conventions.md", 5), ("docs/formats/hdf5.md", 3), ("docs/formats/zarr.md", 4)];

fn run_pages(pages: &[(&'static str, usize)]) {
    std::thread::scope(|scope| {
        for &(page, least) in pages {
            scope.spawn(move || run_page(page, least));
        }
    });
}

#[test]
fn the_examples_of_the_pages_run() {
    run_pages(&PAGES);
}

#[test]
#[cfg(all(feature = "zarr", feature = "hdf5"))]
fn the_examples_of_the_pages_about_zarr_and_hdf5_run() {
    run_pages(&PAGES_OF_CHUNKS);
}

/// The paths of all pages below docs, from the root of the project on.
fn pages() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec!["docs".to_owned()];
    let mut pages = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).unwrap() {
            let path = format!("{folder}/{}", entry.unwrap().file_name().to_str().unwrap());
            let list = if root.join(&path).is_dir() { &mut folders } else { &mut pages };
            list.push(path);
        }
    }
    pages
}

fn text_of(page: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap()
}

#[test]
fn no_page_with_examples_is_left_out() {
    let known: Vec<&str> = PAGES.iter().chain(&PAGES_OF_CHUNKS).map(|(page, _)| *page).collect();
    for page in pages() {
        let is_run = page == TERMINAL || known.contains(&page.as_str());
        assert!(is_run || examples(&text_of(&page)).is_empty(), "{page}");
    }
}

/// The anchors that a page's headings have, by GitHub's rule.
fn anchors(page: &str) -> Vec<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let headings = headings.filter_map(|line| line.trim_start_matches('#').strip_prefix(' '));
    let kept = |letter: char| letter.is_alphanumeric() || " -_".contains(letter);
    let anchor = |it: &str| it.to_lowercase().chars().filter(|it| kept(*it)).collect::<String>();
    headings.map(|heading| anchor(heading).replace(' ', "-")).collect()
}

#[test]
fn links_between_pages_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for page in pages().into_iter().chain(["README.md".to_owned()]) {
        let text = text_of(&page);
        let links = text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap());
        for link in links.filter(|link| !link.contains("://")) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => root.join(&page),
                _ => root.join(&page).parent().unwrap().join(path),
            };
            assert!(target.exists(), "{page}: {link}");
            let found =
                || anchors(&fs::read_to_string(&target).unwrap()).iter().any(|it| it == anchor);
            assert!(anchor.is_empty() || found(), "{page}: {link}");
        }
    }
}
