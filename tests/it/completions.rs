//! What the program tells a shell that may stand at the cursor. `tests/python/completions.py` tries
//! the same in real shells, in a terminal.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use crate::inputs::write_safetensors;
use crate::program::{bash, tslice};

/// A file with three tensors.
fn write_model(path: &Path) {
    let header = r#"{"steps":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},
        "head.weight":{"dtype":"I8","shape":[2],"data_offsets":[1,3]},
        "embed.weight":{"dtype":"I8","shape":[1],"data_offsets":[3,4]}}"#;
    write_safetensors(path, header, &[0; 4]);
}

/// The answer to fish about a line whose end is the cursor: texts alone.
fn completions(folder: impl AsRef<Path>, line: &str) -> Vec<String> {
    let run = tslice(folder, &["--", line]).env("TSLICE_COMPLETE", "fish").output().unwrap();
    assert!(run.status.success(), "{line}: {}", String::from_utf8_lossy(&run.stderr));
    let answer = String::from_utf8(run.stdout).unwrap();
    answer.lines().map(|line| line.split('\t').nth(1).unwrap().to_owned()).collect()
}

/// The words of a help that begin with two dashes at the beginning of a line, or behind `-x, `.
fn flags(help: &str) -> Vec<String> {
    let flag = |line: &str| {
        let line = line.trim_start();
        let line = if line.starts_with("--") { line } else { line.get(4..)? };
        let name = line.strip_prefix("--")?.split([' ', '=', '[']).next()?;
        (!name.is_empty()).then(|| format!("--{name}"))
    };
    // deeper is what is said of a flag
    let dashed = |line: &&str| {
        let indent = line.len() - line.trim_start().len();
        (2..=6).contains(&indent) && line.trim_start().starts_with('-')
    };
    help.lines().filter(dashed).filter_map(flag).collect()
}

#[test]
fn every_flag_of_every_command_is_completed() {
    let folder = tempfile::tempdir().unwrap();
    let commands = completions(&folder, "tslice ");
    assert!(commands.iter().any(|name| name == "completions"), "{commands:?}");
    assert!(!completions(&folder, "tslice s").contains(&"slice".to_owned()));

    let typed = commands.iter().filter(|name| !name.is_empty()).map(String::as_str);
    for command in typed.chain(["a.npy"]) {
        let help = match command {
            "a.npy" => tslice(&folder, &["--help"]).output().unwrap(),
            _ => tslice(&folder, &[command, "--help"]).output().unwrap(),
        };
        let mut flags = flags(&String::from_utf8_lossy(&help.stdout));
        flags.retain(|flag| flag != "--version");
        assert!(
            flags.len() > usize::from(!["completions", "help", "man"].contains(&command)),
            "{command}: {flags:?}"
        );
        for line in [format!("tslice {command} -"), format!("tslice {command} b.npy -")] {
            let shown = completions(&folder, &line);
            for flag in &flags {
                assert!(shown.contains(flag), "{line}: {flag} is not in {shown:?}");
            }
        }
    }
}

#[test]
fn what_was_given_once_is_not_offered_again() {
    let folder = tempfile::tempdir().unwrap();
    let shown = completions(&folder, "tslice a.npy -o b.npy -t x --");
    assert!(!shown.contains(&"--output".to_owned()));
    assert!(shown.contains(&"--tensor".to_owned()));
    let shown = completions(&folder, "tslice a.npy -1 --end-mask -3 --");
    assert!(!shown.contains(&"--end-mask".to_owned()));
    assert!(shown.contains(&"--begin-mask".to_owned()));
}

#[test]
fn the_names_of_tensors_come_from_the_files_of_the_line() {
    let folder = tempfile::tempdir().unwrap();
    write_model(&folder.path().join("model.safetensors"));
    fs::create_dir(folder.path().join("a folder")).unwrap();
    write_model(&folder.path().join("a folder/model.safetensors"));
    let all = ["embed.weight", "head.weight", "steps"];
    for line in [
        "tslice model.safetensors -t ",
        "tslice model.safetensors '[:2]' -o x.npy --exclude ",
        "tslice 'a folder/model.safetensors' --tensor ",
        "tslice a\\ folder/model.safetensors -qt ",
        "tslice gather model.safetensors --axis -1 -t ",
        "tslice assign model.safetensors -t ",
        "tslice assign x.npy --value model.safetensors --value-tensor ",
        "tslice scatter x.npy --values model.safetensors --values-tensor ",
        "tslice gather x.npy --indices=model.safetensors --indices-tensor ",
        "tslice concat model.safetensors b.safetensors -t ",
        "tslice diff x.npy model.safetensors -t ",
        "tslice info -t ",
        "LC_ALL=C nice tslice split model.safetensors -t ",
    ] {
        let expected = if line.contains("info") { vec![] } else { all.to_vec() };
        assert_eq!(completions(&folder, line), expected, "{line}");
    }
    assert_eq!(
        completions(&folder, "tslice model.safetensors --tensor=he"),
        ["--tensor=head.weight"]
    );
    assert_eq!(completions(&folder, "tslice model.safetensors --rename he"), ["head.weight="]);
}

#[test]
fn nothing_is_read_that_might_wait() {
    let folder = tempfile::tempdir().unwrap();
    assert!(bash(&folder, "mkfifo pipe").status().unwrap().success());
    for line in ["tslice pipe -t ", "tslice - -t ", "tslice /dev/stdin -t ", "tslice missing -t "] {
        let mut run = tslice(&folder, &["--", line]);
        run.env("TSLICE_COMPLETE", "zsh")
            .timeout(Duration::from_secs(60))
            .assert()
            .success()
            .stdout("");
    }
    // the variable never makes a command run
    let mut run = tslice(&folder, &["a.npy", "-o", "b.npy"]);
    run.env("TSLICE_COMPLETE", "tcsh").assert().code(2);
}

#[test]
fn bash_is_told_how_to_put_words_into_the_line() {
    let folder = tempfile::tempdir().unwrap();
    write_model(&folder.path().join("it's.safetensors"));
    for (line, piece, expected) in [
        ("tslice in", "in", "info"),
        ("tslice \"it's.safetensors\" -t st", "st", "steps"),
        ("tslice it\\'s.safetensors --tensor=em", "em", "embed.weight"),
        ("tslice it\\'s.safetensors -t 'em", "em", "embed.weight"),
        ("cat x | tslice - --to n", "n", "npy npz"),
    ] {
        let script = "source <(tslice completions bash)
             compopt() { :; }
             COMP_LINE=$1 COMP_POINT=${#1}
             _tslice tslice \"$2\" x
             echo \"${COMPREPLY[*]}\"";
        let run =
            bash(&folder, script).env("BASH_ENV", "").args(["bash", line, piece]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&run.stdout).trim(), expected, "{line}");
    }
}

/// Shells know how to check what they would load.
#[test]
fn the_scripts_are_understood() {
    let folder: TempDir = tempfile::tempdir().unwrap();
    for (shell, check) in [("bash", "bash -n"), ("zsh", "zsh -n"), ("fish", "fish --no-execute")] {
        let program = check.split(' ').next().unwrap();
        let line = format!("! command -v {program} || tslice completions {shell} | {check}");
        let run = bash(&folder, &line).output().unwrap();
        assert!(run.status.success(), "{shell}: {}", String::from_utf8_lossy(&run.stderr));
    }
}
