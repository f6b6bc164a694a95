//! `-h` and `--help` of every command, and the examples in it, which are run.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::inputs::{I64, integers, write_npy};
use crate::program::{bash, tslice};
use crate::readme::write_inputs;

/// The commands; none is the main job.
const COMMANDS: [&str; 15] = [
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
    "help",
    "man",
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
    tslice photos.npy '[:1, 0, 0]' -o pixel.npy
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
        let (examples, _) = examples.split_once("\n\n").expect(command);
        let examples = examples.replace("\\\n", "");
        let lines: Vec<&str> = examples.lines().map(str::trim).collect();
        let (about, commands): (Vec<&str>, Vec<&str>) =
            lines.into_iter().partition(|line| line.starts_with("# "));
        assert_eq!(about.len(), commands.len(), "{command}");
        assert!((2..=3).contains(&commands.len()) || command == "completions", "{command}");
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
        let most = if command.is_empty() { 50 } else { 60 };
        assert!(short.lines().count() <= most, "{command}: {}", short.lines().count());
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
    let markers = [
        "env::var(\"",
        "env::var_os(\"",
        "scheduler(\"",
        "COUNT: &str = \"",
        "VARIABLE: &str = \"",
    ];
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
    let help = fs::read_to_string(root.join("man/tslice.1")).unwrap().replace('\\', "");
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

#[test]
fn help_is_a_command_too() {
    let folder = tempfile::tempdir().unwrap();
    for command in COMMANDS {
        let words: Vec<&str> = command.split(' ').filter(|word| !word.is_empty()).collect();
        let output = tslice(&folder, &[&["help"], &words[..]].concat()).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), help(&folder, command, "--help"));
    }
}

/// The order in which people need it: examples, the daily flags, what few need, the environment.
#[test]
fn rarely_needed_flags_come_last() {
    let folder = tempfile::tempdir().unwrap();
    let long = help(&folder, "", "--help");
    let at = |text: &str| long.find(text).unwrap_or_else(|| panic!("{text}"));
    let places = [
        "\nExamples:",
        "\nItems of an index:",
        "  -o, --output",
        "  -t, --tensor",
        "      --cast",
        "  -f, --force",
        "      --outer",
        "      --with-files",
        "      --delimiter",
        "      --input-order",
        "      --begin ",
        "      --shrink-axis-mask",
        "\nExit status:",
        "  TMPDIR",
    ];
    assert!(places.map(at).is_sorted(), "{:?}", places.map(at));
    assert!(long.lines().count() < 310);
    // the variables of schedulers are in the manual page
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("man/tslice.1");
    let page = fs::read_to_string(page).unwrap();
    assert!(!long.contains("SLURM") && page.contains("SLURM_ARRAY_TASK_ID"));
    for command in COMMANDS {
        let long = help(&folder, command, "--help");
        let option = |flag: &str| long.find(&format!("\n  {flag}, --"));
        if let (Some(output), Some(other)) = (option("-o"), option("-j")) {
            assert!(output < other, "{command}");
            assert!(long.find("\nExamples:") < Some(output), "{command}");
        }
    }
}

#[test]
fn the_version_names_the_build_and_the_processor() {
    let folder = tempfile::tempdir().unwrap();
    let first = concat!("tslice ", env!("CARGO_PKG_VERSION"), "\n");
    tslice(&folder, &["-V"]).assert().success().stdout(first);
    let output = tslice(&folder, &["--version"]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let features = said.strip_prefix(first).unwrap().strip_prefix("features: ").unwrap();
    let (features, instructions) = features.split_once("\ninstructions: ").unwrap();
    let built = [("hdf5", cfg!(feature = "hdf5")), ("remote", cfg!(feature = "remote"))];
    for (name, is_on) in built.into_iter().chain([("zarr", cfg!(feature = "zarr"))]) {
        assert_eq!(features.split(", ").any(|it| it == name), is_on, "{said}");
    }
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    for name in instructions.trim_end().split(", ").filter(|name| *name != "none") {
        let is_there = flags.split_whitespace().any(|flag| flag == name);
        assert!(!cfg!(target_arch = "x86_64") || flags.is_empty() || is_there, "{name}");
    }
}

/// A word of another program is answered by tslice's own; a line that is whole is understood.
#[test]
fn words_of_other_programs_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    write_inputs(&folder);
    for (typed, meant) in [
        ("ls volume.npy", "tslice info INPUT"),
        ("tree model.safetensors", "tslice info --tree INPUT"),
        ("head -n 5 volume.npy", "tslice view INPUT [INDEX]"),
        ("stat volume.npy", "tslice view --stats INPUT"),
        ("mean volume.npy", "tslice view INPUT --reduce HOW --axis AXIS"),
        ("cp volume.npy o.npz", "tslice INPUT -o OUTPUT"),
        ("cut volume.npy 0", "tslice INPUT INDEX -o OUTPUT"),
        ("take volume.npy", "tslice gather PARAMS --axis 0 --indices INDICES"),
        ("volume.npy --overwrite -o o.npy", "use --force here"),
        ("volume.npy --out o.npy", "use --output here"),
        ("volume.npy --dims 0 -o o.npy", "use --transpose here"),
        ("concat volume.npy --dim 0 -o o.npy", "use --axis here"),
        ("concat volume.npy --append volume.npy", "use --append-to here"),
        ("volume.npy --append o.npy", "--append-to is a flag of `tslice concat`"),
        ("info volume.npy --sort-by bytes", "use --sort here"),
    ] {
        let run = bash(&folder, &format!("tslice {typed}")).output().unwrap();
        let said = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(2), "{typed}: {said}");
        let hint = said.lines().find_map(|line| line.strip_prefix("hint: "));
        assert_eq!(hint, Some(meant), "{typed}: {said}");
    }
    // a file of that name is an input
    fs::copy(folder.path().join("volume.npy"), folder.path().join("ls")).unwrap();
    tslice(&folder, &["ls", "[0]", "-o", "o.npy"]).assert().success();
}

#[test]
fn beside_json_an_error_is_json_too() {
    let folder = tempfile::tempdir().unwrap();
    write_inputs(&folder);
    for (args, exit) in [
        (&["info", "none.npy", "--json"][..], 1),
        (&["explain", "volume.npy", "[99]", "--json"], 1),
        (&["explain", "volume.npy", "[1:x]", "--json"], 2),
        (&["diff", "volume.npy", "none.npy", "--json"], 2),
        (&["view", "none.npy", "--stats", "--json"], 1),
        (&["volume.npy", "-o", "o.txt", "--dry-run", "--json", "--zap"], 2),
        (&["assign", "volume.npy", "--fill", "x", "-o", "o.npy", "-n", "--json"], 2),
    ] {
        let output = tslice(&folder, args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.lines().count(), 1, "{said}");
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert!(said["error"].is_string() && said.get("hint").is_some(), "{said}");
        assert_eq!(said["exit"], exit, "{said}");
        assert_eq!(output.status.code(), Some(exit), "{said}");
        let caret = said.get("at").map(|at| {
            let place = |key: &str| at[key].as_u64().unwrap() as usize;
            at["text"].as_str().unwrap()[place("start")..place("end")].to_owned()
        });
        let expected = args.iter().find_map(|arg| arg.strip_prefix('[')?.strip_suffix(']'));
        assert_eq!(caret.is_some(), expected.is_some(), "{said}");
        assert!(caret.is_none_or(|caret| expected.unwrap().contains(&caret)), "{said}");
    }
}

/// Notes go the way of errors.
#[test]
fn beside_json_a_note_is_json_too() {
    let folder = tempfile::tempdir().unwrap();
    write_inputs(&folder);
    let args = ["split", "volume.npy", "--parts", "3", "-o", "{}.npy", "--dry-run", "--json"];
    let output = tslice(&folder, &args).output().unwrap();
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let note = "volume.npy: the axis has size 20, and its 3 parts have sizes from 6 to 7";
    let expected = serde_json::json!({ "note": note, "hint": "--equal refuses that" });
    assert_eq!(said, expected);
    let args = ["split", "volume.npy", "-o", "{}.npy", "--dry-run", "--json"];
    let output = tslice(&folder, &args).output().unwrap();
    let said: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    let hint = "--parts N cuts into N parts, as np.array_split";
    assert_eq!((said["hint"].as_str(), output.status.code()), (Some(hint), Some(2)), "{said}");
}

/// A program of the name `man` that shows a page, fails, or is not there.
#[test]
fn a_manual_page_goes_through_man_or_help_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let shown = |script: &str| {
        fs::write(folder.path().join("man"), format!("#!/bin/sh\n{script}\n")).unwrap();
        let run = "chmod +x man; PATH=.:$PATH tslice man gather";
        let output = bash(&folder, run).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{script}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let page = include_str!("../../man/tslice-gather.1");
    assert_eq!(shown("echo \"$@\"; exec cat"), format!("-l -\n{page}"));
    assert_eq!(shown("exec head -n 1 > /dev/null"), "");
    // keys that interrupt are the pager's
    for signal in ["INT", "QUIT"] {
        let interrupted = format!("cat > /dev/null; kill -{signal} $PPID; echo shown");
        assert_eq!(shown(&interrupted), "shown\n");
    }
    let help = help(&folder, "gather", "--help");
    assert_eq!(shown("echo unknown option >&2; exit 2"), help);
    let without = bash(&folder, "PATH=/nowhere `command -v tslice` man gather").output().unwrap();
    assert_eq!(String::from_utf8(without.stdout).unwrap(), help);
}
