//! Several outputs that would be one file, through links: refused before anything is created.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::inputs::write_safetensors;
use crate::program::tslice;

/// What is below a folder: where links lead, what files hold, `None` for folders.
fn state(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_symlink() {
            let to = fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes();
            found.insert(path, Some(to));
        } else if path.is_dir() {
            found.extend(state(&path));
            found.insert(path, None);
        } else {
            found.insert(path.clone(), Some(fs::read(path).unwrap()));
        }
    }
    found
}

/// A folder with `a.npy`, of six bytes.
fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (6,), }";
    let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    file.extend(format!("{header:<117}\n").into_bytes());
    file.extend(0..6);
    fs::write(dir.path().join("a.npy"), file).unwrap();
    dir
}

/// A run, and the same run dry, says that `this` is the same file as `other`, and changes nothing.
#[track_caller]
fn assert_refused(dir: &Path, args: &[&str], this: &str, other: &str) {
    let before = state(dir);
    for more in [&[][..], &["--dry-run"], &["--force"], &["--force", "--dry-run"]] {
        let message =
            format!("tslice: {this}: is the same file as {other}, which is an output too\n");
        let run = tslice(dir, &[args, more].concat()).assert();
        // what exists is refused before, without --force
        if more.contains(&"--force")
            || !String::from_utf8_lossy(&run.get_output().stderr).contains("exists")
        {
            run.code(1).stdout("").stderr(message);
        } else {
            run.code(1).stdout("");
        }
        assert_eq!(state(dir), before, "{more:?}");
    }
}

const SPLIT: [&str; 4] = ["split", "a.npy", "--parts", "2"];

#[test]
fn a_link_to_another_output_is_refused() {
    let dir = folder();
    let at = |name: &str| dir.path().join(name);
    // to one that does not exist, to one that does, and in the other direction
    symlink("q-1.npy", at("q-0.npy")).unwrap();
    assert_refused(dir.path(), &[&SPLIT[..], &["-o", "q-{}.npy"]].concat(), "q-1.npy", "q-0.npy");
    fs::write(at("p-1.npy"), "old").unwrap();
    symlink("p-1.npy", at("p-0.npy")).unwrap();
    assert_refused(dir.path(), &[&SPLIT[..], &["-o", "p-{}.npy"]].concat(), "p-1.npy", "p-0.npy");
    symlink("../x/r-0.npy", at("r-1.npy")).unwrap();
    fs::create_dir(at("x")).unwrap();
    symlink("../r-0.npy", at("x/r-0.npy")).unwrap();
    symlink("x/r-0.npy", at("r-2.npy")).unwrap();
    let args = ["split", "a.npy", "--parts", "3", "-o", "r-{}.npy"];
    fs::remove_file(at("r-1.npy")).unwrap();
    symlink("x/r-0.npy", at("r-1.npy")).unwrap();
    assert_refused(dir.path(), &args, "r-1.npy", "r-0.npy");
}

#[test]
fn a_linked_folder_and_dots_are_seen_through() {
    let dir = folder();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("d0")).unwrap();
    symlink("d0", at("d1")).unwrap();
    let args = [&SPLIT[..], &["-o", "d{}/x.npy"]].concat();
    assert_refused(dir.path(), &args, "d1/x.npy", "d0/x.npy");
    fs::create_dir_all(at("e0/e")).unwrap();
    fs::create_dir(at("e1")).unwrap();
    symlink("../e0/e", at("e1/e")).unwrap();
    let args = [&SPLIT[..], &["-o", "e{}/e/../x.npy"]].concat();
    assert_refused(dir.path(), &args, "e1/e/../x.npy", "e0/e/../x.npy");
}

#[test]
fn hard_links_are_two_files() {
    let dir = folder();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("h-0.npy"), "old").unwrap();
    fs::hard_link(at("h-0.npy"), at("h-1.npy")).unwrap();
    tslice(dir.path(), &[&SPLIT[..], &["-o", "h-{}.npy", "-f"]].concat()).assert().success();
    assert!(fs::read(at("h-0.npy")).unwrap().ends_with(&[0, 1, 2]));
    assert!(fs::read(at("h-1.npy")).unwrap().ends_with(&[3, 4, 5]));
}

/// A checkpoint of two shards under `in/`.
fn checkpoint(dir: &Path) -> &'static str {
    let input = dir.join("in");
    fs::create_dir(&input).unwrap();
    for (name, file) in [("a", "1.safetensors"), ("b", "2.safetensors")] {
        let header = format!(r#"{{"{name}":{{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}}}"#);
        write_safetensors(&input.join(file), &header, &[0, 1, 2, 3]);
    }
    let index = r#"{"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}"#;
    fs::write(input.join("i.safetensors.index.json"), index).unwrap();
    "in/i.safetensors.index.json"
}

#[test]
fn shards_that_would_be_one_file_are_refused() {
    let dir = folder();
    let at = |name: &str| dir.path().join(name);
    let index = checkpoint(dir.path());
    fs::create_dir(at("out")).unwrap();
    symlink("../blob", at("out/1.safetensors")).unwrap();
    symlink("../blob", at("out/2.safetensors")).unwrap();
    let args = [index, "-t", "*", "2:", "-o", "out/"];
    let before = state(dir.path());
    for more in [&["--force"][..], &["--force", "--dry-run"]] {
        tslice(dir.path(), &[&args[..], more].concat()).assert().code(1).stderr(
            "tslice: out/2.safetensors: is the same file as out/1.safetensors, which is an output too\n",
        );
        assert_eq!(state(dir.path()), before);
    }
    // whole folders: one that is there, and one that is not
    let split = ["split", index, "-t", "*", "--parts", "2"];
    fs::create_dir(at("d0")).unwrap();
    symlink("d0", at("d1")).unwrap();
    let args = [&split[..], &["-o", "d{}/"]].concat();
    assert_refused(dir.path(), &args, "d1/1.safetensors", "d0/1.safetensors");
    symlink("f0", at("f1")).unwrap();
    assert_refused(dir.path(), &[&split[..], &["-o", "f{}/"]].concat(), "f1/", "f0/");
}
