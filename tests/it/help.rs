//! `-h` and `--help` of every command, and the examples in it, which are run.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::inputs::{I64, integers, write_npy};
use crate::program::{bash, tslice};
use crate::readme::write_inputs;

/// The commands; none is the main job.
const COMMANDS: [&str; 13] = [
    "",
    "gather",
    "assign",
    "scatter",
    "concat",
    "stack",
    "merge",
    "split",
    "view",
    "diff",
    "info",
    "explain",
    "completions",
];

fn help(folder: &TempDir, command: &str, flag: &str) -> String {
    let words: Vec<&str> = command.split(' ').filter(|word| !word.is_empty()).collect();
    let output = tslice(folder, &[&words[..], &[flag]].concat()).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{command} {flag}");
    String::from_utf8(output.stdout).unwrap()
}

/// Files that the examples name, beside those of the README's.
const PREPARE: &str = "
    seq 0 39 > train.txt
    echo '3 1 4 1 5' > tokens.txt
    tslice photos.npy 5 -o image.npy
    tslice photos.npy '[4:6]' -o two.npy
    tslice photos.npy '[:24]' -o early.npy
    tslice photos.npy '[24:]' -o late.npy
    cp early.npy part-0.npy && cp late.npy part-1.npy
    for c in 0:red 1:green 2:blue; do tslice photos.npy \"[..., ${c%:*}]\" -o ${c#*:}.npy; done
    tslice split model.safetensors -t '*.weight' --axis 'head.weight=1' --keep-rest --parts 2 \\
        -o 'rank-{}.safetensors'
    tslice volume.npy -o volume.safetensors
    mkdir -p .config/fish/completions
";

#[test]
fn the_examples_of_every_help_run() {
    for command in COMMANDS {
        let folder = tempfile::tempdir().unwrap();
        write_inputs(&folder);
        let rows = folder.path().join("rows.npy");
        write_npy(&rows, &I64, &[3], &integers(&[5, 0, 7]));
        let prepared = bash(&folder, &format!("set -e; {PREPARE}")).output().unwrap();
        assert!(prepared.status.success(), "{}", String::from_utf8_lossy(&prepared.stderr));
        if command == "split" {
            fs::remove_file(folder.path().join("rank-0.safetensors")).unwrap();
            fs::remove_file(folder.path().join("rank-1.safetensors")).unwrap();
        }

        let help = help(&folder, command, "--help");
        let (_, examples) = help.split_once("\nExamples:\n").expect(command);
        let examples = examples.replace("\\\n", "");
        let lines: Vec<&str> = examples.lines().map(str::trim).collect();
        let (about, commands): (Vec<&str>, Vec<&str>) =
            lines.into_iter().partition(|line| line.starts_with("# "));
        assert_eq!(about.len(), commands.len(), "{command}");
        assert!(commands.len() >= 2, "{command}");
        for example in commands {
            let line = format!("set -euo pipefail; {example}");
            let run = bash(&folder, &line).env("HOME", folder.path()).output().unwrap();
            let said = String::from_utf8_lossy(&run.stderr);
            assert!(run.status.success(), "{command}: {example}\n{said}");
        }
    }
}

#[test]
fn the_short_help_is_shorter_and_fits_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    for command in COMMANDS {
        let (short, long) = (help(&folder, command, "-h"), help(&folder, command, "--help"));
        assert!(short.lines().count() < 70, "{command}");
        assert!(short.lines().count() * 3 < long.lines().count() * 2, "{command}");
        assert!(!short.contains("Examples:"), "{command}");
        assert!(long.lines().all(|line| line.chars().count() <= 100), "{command}");
        for text in [short, long] {
            // the main job has no name
            assert!(!text.contains("tslice slice"), "{command}");
            assert!(!text.contains('\x1b'), "{command}: no colours into a pipe");
        }
    }
}

/// The names of the environment's variables that files below a folder read.
fn variables(folder: &Path, found: &mut Vec<String>) {
    let markers =
        ["env::var(\"", "env::var_os(\"", "task: \"", "COUNT: &str = \"", "VARIABLE: &str = \""];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            variables(&path, found);
        } else if !path.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).unwrap();
            let program = text.split("\nmod tests {").next().unwrap();
            let named = markers.iter().flat_map(|marker| program.split(marker).skip(1));
            found.extend(named.map(|rest| rest.split('"').next().unwrap().to_owned()));
        }
    }
}

#[test]
fn help_and_docs_tell_every_variable_that_is_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    variables(&root.join("src"), &mut found);
    assert!(found.len() >= 15, "{found:?}");
    let help = help(&tempfile::tempdir().unwrap(), "", "--help");
    let page = fs::read_to_string(root.join("docs/guarantees.md")).unwrap();
    for name in found {
        let name = if name.starts_with("AWS_") { "AWS_*" } else { &name };
        assert!(help.contains(name) && page.contains(name), "{name}");
    }
}

#[test]
fn the_help_holds_the_grammar_and_the_exit_statuses() {
    let help = help(&tempfile::tempdir().unwrap(), "", "--help");
    let man = Path::new(env!("CARGO_MANIFEST_DIR")).join("man/tslice.1");
    let man = fs::read_to_string(man).unwrap().replace('\\', "");
    assert!(help.lines().next().unwrap().contains(".npz"));
    let items = ["start:stop:step", "[True, False]", "@FILE#NAME", "SIGTERM", "TMPDIR", "--outer"];
    for item in items {
        assert!(help.contains(item) && man.contains(item), "{item}");
    }
    for section in [".SH ITEMS OF AN INDEX", ".SH EXIT STATUS", ".SH ENVIRONMENT"] {
        assert!(man.contains(section), "{section}");
    }
}
