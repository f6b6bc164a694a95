//! Runs the examples of README.md and of all pages in docs: each line of a `console` block that
//! begins with `$ `, and in tables each cell whose code does. A `make` block is the Makefile of its
//! page.
//!
//! The examples of a page run in order, in one temporary folder that holds the files they use. A
//! command must end with status 0; where lines follow it, they are what it must print, standard
//! error included (docs/terminal.md shows commands that fail, too). A command that needs Make or GNU
//! parallel is left out where they are missing.
//!
//! ```text
//! $ tslice photos.npy '[0]' --dry-run       the command
//! would write standard output: ...          what it prints
//! ```

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::program::bash;

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

/// Whether a command needs Make or GNU parallel and this machine lacks it.
fn lacks_a_program(folder: &TempDir, command: &str) -> bool {
    ["make", "parallel"].into_iter().any(|program| {
        let needed = command.split_whitespace().any(|word| word == program);
        needed && !bash(folder, &format!("{program} --version")).output().unwrap().status.success()
    })
}

/// A ball in a volume of shape (32, 64, 64): float32, from 0 at its surface to almost 1 in the middle.
fn write_ball(path: &Path) {
    write_npy(path, "'<f4'", 4, false, &[32, 64, 64]);
    let from_middle = |at: i32, len: i32| (2 * at - (len - 1)).pow(2);
    let elements = (0..32 * 64 * 64).flat_map(|number| {
        let (z, y, x) = (number / 4096, number / 64 % 64, number % 64);
        let distance = 4 * from_middle(z, 32) + from_middle(y, 64) + from_middle(x, 64);
        ((4096 - distance).max(0) as f32 / 4096.0).to_le_bytes()
    });
    let mut file = fs::read(path).unwrap();
    file.truncate(128);
    file.extend(elements);
    fs::write(path, file).unwrap();
}

/// The `descr` is written as Python has it, with its quotes.
fn write_npy(path: &Path, descr: &str, itemsize: usize, fortran: bool, shape: &[usize]) {
    let fortran = if fortran { "True" } else { "False" };
    let axes = shape.iter().map(|n| format!("{n}, ")).collect::<String>();
    let mut header =
        format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': ({axes}), }}");
    header += &" ".repeat(128 - 10 - 1 - header.len());
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend((0..shape.iter().product::<usize>() * itemsize).map(|i| (i % 251) as u8));
    fs::write(path, file).unwrap();
}

fn write_safetensors(path: &Path) {
    let embed = vec![1u8; 1000 * 64 * 2];
    let head = vec![2u8; 64 * 100 * 4];
    let steps = 7i64.to_le_bytes();
    let tensors = [
        ("steps", safetensors::Dtype::I64, vec![], &steps[..]),
        ("head.weight", safetensors::Dtype::F32, vec![64, 100], &head[..]),
        ("embed.weight", safetensors::Dtype::BF16, vec![1000, 64], &embed[..]),
    ]
    .map(|(name, dtype, shape, data)| {
        (name, safetensors::tensor::TensorView::new(dtype, shape, data).unwrap())
    });
    let metadata = [("format".to_owned(), "pt".to_owned())].into_iter().collect();
    safetensors::serialize_to_file(tensors, Some(metadata), path).unwrap();
}

/// The files that examples use.
pub(crate) fn write_inputs(folder: &TempDir) {
    write_npy(&folder.path().join("photos.npy"), "'|u1'", 1, false, &[48, 48, 64, 4]);
    write_npy(&folder.path().join("keep.npy"), "'|b1'", 1, false, &[48]);
    write_npy(&folder.path().join("volume.npy"), "'<f8'", 8, true, &[20, 28, 30]);
    let point = "[('id', '<i4'), ('pos', [('x', '<f8'), ('y', '<f8')])]";
    write_npy(&folder.path().join("points.npy"), point, 20, false, &[100]);
    write_ball(&folder.path().join("ball.npy"));
    write_safetensors(&folder.path().join("model.safetensors"));
}

/// Runs the examples of a page, which are at least `least`.
fn run_page(page: &str, least: usize) {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap();
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
    run_page(TERMINAL, 10);
}

/// The other pages that hold examples, and how many at least.
const PAGES: [(&str, usize); 8] = [
    ("docs/checkpoints.md", 15),
    ("docs/files.md", 22),
    ("docs/from-numpy.md", 43),
    ("docs/guarantees.md", 2),
    ("docs/index.md", 28),
    ("docs/parts.md", 5),
    ("docs/recipes.md", 30),
    ("docs/values.md", 11),
];

#[test]
fn the_examples_of_the_pages_run() {
    std::thread::scope(|scope| {
        for (page, least) in PAGES {
            scope.spawn(move || run_page(page, least));
        }
    });
}

#[test]
fn no_page_with_examples_is_left_out() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    for entry in fs::read_dir(docs).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("docs/{}", path.file_name().unwrap().to_str().unwrap());
        let known = name == TERMINAL || PAGES.iter().any(|(page, _)| *page == name);
        assert!(known || examples(&fs::read_to_string(&path).unwrap()).is_empty(), "{name}");
    }
}
