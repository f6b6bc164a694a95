//! Outputs that are open descriptors of their own inputs: refused, as cat does, with nothing changed.

use std::fs;
use std::path::Path;

use crate::inputs::{F32, I64, floats, integers, write_npy, write_safetensors};
use crate::program::bash;

/// `a.npy`, `i.npy`, `v.npy`, a `.npz` with a deflated member, and a checkpoint of one shard.
fn directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    write_npy(&path("a.npy"), &F32, &[3, 4], &floats(0..12));
    write_npy(&path("i.npy"), &I64, &[3, 1], &integers(&[2, 0, 1]));
    write_npy(&path("f.npy"), &I64, &[3], &integers(&[2, 0, 1]));
    write_npy(&path("v.npy"), &F32, &[3, 4], &floats(20..32));
    let header = r#"{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}"#;
    write_safetensors(&path("s.safetensors"), header, &[1, 2, 3, 4]);
    let index = r#"{"weight_map": {"a": "s.safetensors"}}"#;
    fs::write(path("m.safetensors.index.json"), index).unwrap();
    let packed = bash(&dir, "tslice a.npy -o a.npz --deflate").status().unwrap();
    assert!(packed.success());
    fs::hard_link(path("a.npy"), path("hard.npy")).unwrap();
    dir
}

/// All files of a folder.
fn state(dir: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    files.sort();
    files
}

/// A line of shell that writes to a file it reads, and the name that the message tells.
#[track_caller]
fn refused(line: &str, name: &str) {
    let dir = directory();
    let before = state(dir.path());
    let output = bash(&dir, line).output().unwrap();
    let message = format!(
        "tslice: {name}: input file is output file\nhint: -o FILE --force replaces a file in one step\n"
    );
    assert_eq!(String::from_utf8(output.stderr).unwrap(), message, "{line}");
    assert_eq!(output.status.code(), Some(1), "{line}");
    assert!(state(dir.path()) == before, "{line}");
}

#[test]
fn a_slice_does_not_overwrite_its_input() {
    for output in ["1<> a.npy", ">> a.npy", "1<> hard.npy", ">> hard.npy"] {
        refused(&format!("tslice a.npy '[::-1]' {output}"), "a.npy");
        refused(&format!("tslice a.npy '[::-1]' --dry-run {output}"), "a.npy");
        refused(&format!("tslice a.npy --to csv {output}"), "a.npy");
        refused(&format!("tslice a.npy --io read {output}"), "a.npy");
        refused(&format!("tslice - '[::-1]' < a.npy {output}"), "standard input");
    }
    for output in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        refused(&format!("tslice a.npy '[::-1]' -o {output} 1<> a.npy"), "a.npy");
        refused(&format!("tslice a.npy '[::-1]' -o {output} >> a.npy"), "a.npy");
    }
    for fd in ["/dev/fd/7", "/proc/self/fd/7"] {
        refused(&format!("tslice a.npy '[::-1]' -o {fd} 7<> a.npy"), "a.npy");
        refused(&format!("tslice a.npy '[::-1]' -o {fd} 7>> a.npy"), "a.npy");
    }
    refused("tslice a.npz '[::-1]' 1<> a.npz", "a.npz");
    refused("tslice m.safetensors.index.json -t a >> s.safetensors", "s.safetensors");
    refused(
        "tslice s.safetensors --dtype u1 --offset 0 --to raw >> s.safetensors",
        "s.safetensors",
    );
}

#[test]
fn no_other_command_overwrites_an_input() {
    for output in ["1<>", ">>"] {
        for command in ["concat", "stack", "stack -n"] {
            refused(&format!("tslice {command} v.npy a.npy {output} a.npy"), "a.npy");
        }
        for list in ["[@f.npy]", "[@f.npy, @f.npy]", "[:, @f.npy]"] {
            refused(&format!("tslice a.npy '{list}' {output} f.npy"), "f.npy");
            refused(&format!("tslice a.npy '{list}' -n {output} f.npy"), "f.npy");
        }
        for name in ["a.npy", "i.npy"] {
            refused(&format!("tslice gather a.npy --indices i.npy {output} {name}"), name);
            let dry = format!("tslice gather a.npy --indices i.npy --dry-run {output} {name}");
            refused(&dry, name);
        }
        for name in ["a.npy", "v.npy"] {
            refused(&format!("tslice assign a.npy --value v.npy -o - {output} {name}"), name);
            refused(&format!("tslice assign a.npy --value v.npy -o - -n {output} {name}"), name);
        }
        refused(&format!("tslice assign a.npy --fill 0 -o /dev/stdout {output} a.npy"), "a.npy");
        for name in ["a.npy", "v.npy", "i.npy"] {
            let scatter = "tslice scatter a.npy --indices i.npy --values v.npy -o -";
            refused(&format!("{scatter} {output} {name}"), name);
        }
    }
}

/// What is printed would be written into what is read, too.
#[test]
fn nothing_is_printed_into_an_input() {
    let files = "printf '2 0 1' > l.txt; printf 'a.npy\\nv.npy\\n' > names; ln -s a.npy link.npy;";
    let line = |line: &str, name: &str| {
        let dir = directory();
        assert!(bash(&dir, files).status().unwrap().success());
        let before = state(dir.path());
        let output = bash(&dir, line).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        let first = if line.contains("--json") {
            format!("{{\"error\":\"{name}: input file is output file\",")
        } else {
            format!("tslice: {name}: input file is output file\n")
        };
        assert!(told.starts_with(&first), "{line}: {told}");
        let status = if line.contains("diff") { 2 } else { 1 };
        assert_eq!(output.status.code(), Some(status), "{line}");
        assert!(state(dir.path()) == before, "{line}");
    };
    for output in ["1<>", ">>"] {
        for command in [
            "view a.npy",
            "view a.npy --stats",
            "view a.npy --stats --json",
            "view a.npy --image",
            "info a.npy",
            "info a.npy --json",
            "explain a.npy '[0]'",
            "diff a.npy v.npy",
            "diff v.npy a.npy --json",
            "info v.npy hard.npy",
            "a.npy '[0]' -n -o o.npy",
            "split a.npy --parts 2 -o 'o-{}.npy' -n",
            "assign a.npy --fill 0 --in-place -n",
            "concat v.npy a.npy -n -o o.npy",
        ] {
            let name = if command.contains("hard") { "hard.npy" } else { "a.npy" };
            line(&format!("tslice {command} {output} a.npy"), name);
        }
        line(&format!("tslice view link.npy {output} a.npy"), "link.npy");
        line(&format!("tslice view - < a.npy {output} a.npy"), "standard input");
        line(
            &format!("tslice view m.safetensors.index.json {output} s.safetensors"),
            "s.safetensors",
        );
        line(
            &format!("tslice info m.safetensors.index.json {output} m.safetensors.index.json"),
            "m.safetensors.index.json",
        );
        line(&format!("tslice view a.npy '[@f.npy]' {output} f.npy"), "f.npy");
        for text in [
            "gather a.npy --axis 0 --indices l.txt --to csv",
            "a.npy '[@l.txt]'",
            "a.npy '[@l.txt]' -o /dev/stdout",
            "a.npy '[@l.txt]' -o /dev/fd/1",
            "a.npy '[@l.txt]' -o /proc/self/fd/1",
            "view a.npy '[@l.txt]'",
        ] {
            line(&format!("tslice {text} {output} l.txt"), "l.txt");
        }
        line(&format!("tslice concat --files-from names {output} names"), "names");
        line(&format!("tslice concat --files-from - < names {output} names"), "standard input");
    }
}

/// Files that only look alike are no reason, and neither is a plain redirection, which has emptied
/// the file before the program begins.
#[test]
fn other_files_may_be_written() {
    let dir = directory();
    let run = |line: &str| bash(&dir, line).output().unwrap();
    for line in [
        "cp a.npy b.npy; tslice a.npy '[::-1]' 1<> b.npy && tslice info b.npy",
        "tslice a.npy '[::-1]' >> new.npy && tslice info new.npy",
        "tslice a.npy -o a.npy --force 1<> a.npy",
        "tslice a.npy -o /dev/null 1<> a.npy",
        "tslice a.npy -o /dev/stdout > o.npy && cmp <(tslice a.npy) o.npy",
        "tslice assign a.npy --fill 0 -o /dev/stdout > f.npy && tslice info f.npy",
        "tslice a.npy -o /dev/fd/7 7> o.npy && cmp <(tslice a.npy) o.npy",
        "cp a.npy b.npy; tslice view a.npy 1<> b.npy && tslice info a.npy >> b.npy",
        "tslice assign v.npy --fill 0 --in-place >> v.npy",
        "tslice concat a.npy v.npy -o j.npy >> a.npy",
    ] {
        let output = run(line);
        assert!(output.status.success(), "{line}: {output:?}");
    }
    let output = run("tslice a.npy '[::-1]' > a.npy");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "tslice: a.npy: the file is empty\n");
    assert_eq!(output.status.code(), Some(1));
}
