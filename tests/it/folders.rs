//! Folders of shards as outputs: what is replaced, what is kept, and with which rights.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use tempfile::TempDir;
use tslice::sink::EXCHANGES_NAMES;

use crate::inputs::write_safetensors;
use crate::program::tslice;

const INDEX: &str = "model.safetensors.index.json";
const NAMES: [&str; 3] = ["1.safetensors", "2.safetensors", INDEX];

/// A folder with a checkpoint of two shards under `in/`.
fn directory() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in");
    fs::create_dir(&input).unwrap();
    let header =
        |name: &str| format!(r#"{{"{name}":{{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}}}"#);
    write_safetensors(&input.join(NAMES[0]), &header("a"), &[0, 1, 2, 3]);
    write_safetensors(&input.join(NAMES[1]), &header("b"), &[4, 5, 6, 7]);
    let index = r#"{"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}"#;
    fs::write(input.join(INDEX), index).unwrap();
    dir
}

/// Write the last two bytes of each tensor to a folder.
fn write(dir: &Path, args: &[&str]) -> assert_cmd::assert::Assert {
    let input = format!("in/{INDEX}");
    tslice(dir, &[&[&*input, "-t", "*", "2:"], args].concat()).assert()
}

/// What is in a folder, by name: the bytes of files, `None` for folders.
fn contents(folder: &Path) -> BTreeMap<std::ffi::OsString, Option<Vec<u8>>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name(), fs::read(entry.path()).ok())).collect()
}

/// The new files are all there, and the name of no other begins with `.tslice-`, here or beside.
#[track_caller]
fn assert_written(folder: &Path) {
    let found = contents(folder);
    for (name, bytes) in [(NAMES[0], [2, 3]), (NAMES[1], [6, 7])] {
        assert!(found[std::ffi::OsStr::new(name)].as_ref().unwrap().ends_with(&bytes), "{name}");
    }
    assert!(String::from_utf8_lossy(&fs::read(folder.join(INDEX)).unwrap()).contains("weight_map"));
    for folder in [folder, folder.parent().unwrap()] {
        let litter = |name: &std::ffi::OsString| name.to_string_lossy().starts_with(".tslice-");
        assert!(!contents(folder).keys().any(litter), "{:?}", contents(folder).keys());
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// An old checkpoint and other files in `out/`.
fn old_folder(dir: &Path) -> std::path::PathBuf {
    let out = dir.join("out");
    fs::create_dir(&out).unwrap();
    for name in NAMES {
        fs::write(out.join(name), format!("old {name}")).unwrap();
    }
    fs::write(out.join("config.json"), "{}").unwrap();
    symlink("config.json", out.join("link")).unwrap();
    symlink("nowhere", out.join("dangling")).unwrap();
    out
}

#[test]
fn a_folder_is_replaced_as_a_whole_and_keeps_its_other_files() {
    let dir = directory();
    let out = old_folder(dir.path());
    set_mode(&out.join(NAMES[0]), 0o600);
    set_mode(&out, 0o2750);
    let (old, config) =
        (fs::metadata(&out).unwrap(), fs::metadata(out.join("config.json")).unwrap());
    write(dir.path(), &["-o", "out/"]).code(1);
    write(dir.path(), &["-fo", "out/"]).success().stdout("").stderr("");
    assert_written(&out);
    let is_another = fs::metadata(&out).unwrap().ino() != old.ino();
    assert_eq!(is_another, EXCHANGES_NAMES, "another folder is in its place");
    assert_eq!(mode(&out), 0o2750);
    assert_eq!(mode(&out.join(NAMES[0])), 0o600);
    assert_eq!(fs::metadata(out.join("config.json")).unwrap().ino(), config.ino());
    assert_eq!(fs::read_link(out.join("link")).unwrap(), Path::new("config.json"));
    assert_eq!(fs::read_link(out.join("dangling")).unwrap(), Path::new("nowhere"));
    assert_eq!(contents(&out).len(), 6);
    // itself, through a link to it
    symlink("in", dir.path().join("there")).unwrap();
    write(dir.path(), &["-fo", "there/", "--fsync"]).success();
    assert_written(&dir.path().join("in"));
    assert!(dir.path().join("there").is_symlink());
}

#[test]
fn a_folder_with_other_folders_in_it_stays_and_gets_new_files() {
    let dir = directory();
    let out = old_folder(dir.path());
    fs::create_dir_all(out.join("onnx/deep")).unwrap();
    fs::write(out.join("onnx/deep/file"), "kept").unwrap();
    set_mode(&out.join(NAMES[1]), 0o640);
    let old = fs::metadata(&out).unwrap().ino();
    write(dir.path(), &["-fo", "out/", "--fsync"]).success();
    assert_written(&out);
    assert_eq!(fs::metadata(&out).unwrap().ino(), old);
    assert_eq!(fs::read(out.join("onnx/deep/file")).unwrap(), b"kept");
    assert_eq!(mode(&out.join(NAMES[1])), 0o640);
    assert_eq!(contents(&out).len(), 7);
}

/// Every name is looked at before the first file is written.
#[test]
fn a_name_that_cannot_be_replaced_leaves_all_as_it_is() {
    for (name, kind, message) in [
        (NAMES[1], "folder", "is a directory"),
        (INDEX, "folder", "is a directory"),
        (NAMES[1], "fifo", "not a regular file: bytes cannot be written at any position"),
        (NAMES[0], "link", "is a directory"),
    ] {
        let dir = directory();
        let out = old_folder(dir.path());
        let path = out.join(name);
        fs::remove_file(&path).unwrap();
        match kind {
            "folder" => fs::create_dir(&path).unwrap(),
            "link" => symlink("../in", &path).unwrap(),
            _ => {
                let mode = rustix::fs::Mode::from_raw_mode(0o600);
                let fifo = rustix::fs::FileType::Fifo;
                rustix::fs::mknodat(rustix::fs::CWD, &path, fifo, mode, 0).unwrap();
            }
        }
        // not what is in the FIFO
        let state = || {
            let names = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap());
            names
                .map(|it| (it.file_name(), it.metadata().unwrap().ino()))
                .collect::<BTreeMap<_, _>>()
        };
        let before = state();
        for args in [&["-fo", "out/"][..], &["-fo", "out/", "--dry-run"]] {
            let message = format!("tslice: out/{name}: {message}\n");
            write(dir.path(), args).code(1).stdout("").stderr(message);
            assert!(state() == before, "{name}: {kind}");
        }
    }
}

/// As in the cache of Hugging Face: a link is followed, as for a single file.
#[test]
fn files_behind_links_are_replaced_where_they_are() {
    let dir = directory();
    let (out, blobs) = (dir.path().join("out"), dir.path().join("blobs"));
    fs::create_dir(&out).unwrap();
    fs::create_dir(&blobs).unwrap();
    for (number, name) in NAMES.iter().enumerate() {
        let blob = blobs.join(format!("x{number}"));
        fs::write(&blob, "old").unwrap();
        set_mode(&blob, 0o644);
        symlink(format!("../blobs/x{number}"), out.join(name)).unwrap();
    }
    write(dir.path(), &["-fo", "out/"]).success();
    assert_written(&out);
    for (number, name) in NAMES.iter().enumerate() {
        assert!(out.join(name).is_symlink(), "{name}");
        assert_eq!(mode(&blobs.join(format!("x{number}"))), 0o644, "{name}");
    }
    assert_eq!(contents(&blobs).len(), 3);
    // a link to a file that is not there yet
    fs::remove_file(blobs.join("x1")).unwrap();
    write(dir.path(), &["-fo", "out/"]).success();
    assert_written(&out);
    assert!(blobs.join("x1").is_file());
}

#[test]
fn an_empty_folder_keeps_its_rights() {
    for folder_mode in [0o2700, 0o1777, 0o750] {
        let dir = directory();
        let out = dir.path().join("out");
        fs::create_dir(&out).unwrap();
        set_mode(&out, folder_mode);
        write(dir.path(), &["-o", "out"]).success();
        assert_written(&out);
        assert_eq!(mode(&out), folder_mode);
    }
}

#[test]
fn a_link_that_leads_to_nothing_is_followed() {
    let dir = directory();
    symlink("real", dir.path().join("out")).unwrap();
    write(dir.path(), &["-o", "out/"]).success();
    assert_written(&dir.path().join("real"));
    assert!(dir.path().join("out").is_symlink());
    symlink("no/where", dir.path().join("lost")).unwrap();
    let message = "tslice: lost/: cannot be created: No such file or directory\n";
    write(dir.path(), &["-o", "lost/"]).code(1).stderr(message);
    fs::write(dir.path().join("file"), "file").unwrap();
    let message = "tslice: file/: cannot be created: Not a directory\n";
    write(dir.path(), &["-fo", "file/"]).code(1).stderr(message);
}

/// A cache as Hugging Face's programs make it: files in `blobs` by their content, links to them in a snapshot,
/// and a link to that as `model`.
fn cache() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (blobs, snapshot) = (dir.path().join("hub/blobs"), dir.path().join("hub/snapshots/1"));
    fs::create_dir_all(&blobs).unwrap();
    fs::create_dir_all(&snapshot).unwrap();
    let header = r#"{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}"#;
    write_safetensors(&blobs.join("b1"), header, &[0, 1, 2, 3]);
    fs::write(blobs.join("b2"), "{}").unwrap();
    let index = r#"{"weight_map": {"a": "model-00001-of-00001.safetensors"}}"#;
    fs::write(blobs.join("b3"), index).unwrap();
    let links = [("model-00001-of-00001.safetensors", "b1"), ("config.json", "b2"), (INDEX, "b3")];
    for (name, blob) in links {
        symlink(format!("../../blobs/{blob}"), snapshot.join(name)).unwrap();
    }
    symlink("hub/snapshots/1", dir.path().join("model")).unwrap();
    crate::inputs::write_npy(&dir.path().join("x.npy"), &crate::inputs::U8, &[4], &[7; 4]);
    dir
}

#[test]
fn links_into_a_cache_of_blobs_are_refused() {
    let dir = cache();
    let blobs = dir.path().join("hub/blobs");
    symlink("hub/blobs/new", dir.path().join("new.npy")).unwrap();
    symlink("hub/blobs", dir.path().join("there")).unwrap();
    let before = contents(&blobs);
    let shard = "model/model-00001-of-00001.safetensors";
    let fill = ["--fill", "9", "--in-place"];
    for (args, name, blob) in [
        (vec!["x.npy", "-o", shard, "--force"], shard, "b1"),
        (vec!["x.npy", "-o", shard], shard, "b1"),
        (vec!["x.npy", "-o", "new.npy"], "new.npy", "new"),
        (vec!["x.npy", "-o", "there/y.npy"], "there/y.npy", "y.npy"),
        (vec!["assign", shard, "0", "-t", "a"], shard, "b1"),
        (vec!["assign", "model", "0", "-t", "a"], shard, "b1"),
        (vec!["scatter", shard, "--indices", "[[0]]", "--values", "x.npy"], shard, "b1"),
        (vec!["x.npy", "-o", "model", "--force", "--shard-size", "1GB"], shard, "b1"),
    ] {
        let mut args = args;
        match args[0] {
            "assign" => args.extend(fill),
            "scatter" => args.push("--in-place"),
            _ => {}
        }
        let expected = format!(
            "tslice: {name}: leads into a cache whose files are named by their content: blobs/{blob}\n\
             hint: copy it first: -o with the name of another file leaves the cache as it is\n"
        );
        for dry in [&[][..], &["--dry-run"]] {
            let args = [&args[..], dry].concat();
            tslice(dir.path(), &args).assert().code(1).stdout("").stderr(expected.clone());
        }
    }
    assert_eq!(contents(&blobs), before);
    // an ordinary folder of that name, and a file that is named where it lies
    fs::create_dir(dir.path().join("blobs")).unwrap();
    symlink("blobs/z.npy", dir.path().join("z.npy")).unwrap();
    tslice(dir.path(), &["x.npy", "-o", "z.npy"]).assert().success().stderr("");
    assert!(dir.path().join("blobs/z.npy").is_file());
    let direct = ["assign", "hub/blobs/b1", "0", "--fill", "9", "--in-place"];
    tslice(dir.path(), &direct).assert().success().stderr("");
    // what reads the cache is as ever
    let copy = ["assign", "model", "0", "-t", "a", "--fill", "1", "-o", "o.safetensors"];
    tslice(dir.path(), &copy).assert().code(1);
    tslice(dir.path(), &["model", "-t", "a", "-o", "o.safetensors"]).assert().success();
}

#[test]
fn a_dry_run_names_what_a_link_leads_to() {
    let dir = cache();
    let real = dir.path().canonicalize().unwrap();
    fs::create_dir(dir.path().join("far")).unwrap();
    symlink("far/y.npy", dir.path().join("y.npy")).unwrap();
    symlink("far", dir.path().join("near")).unwrap();
    tslice(dir.path(), &["x.npy", "-o", "far/t.npy"]).assert().success();
    let dry = |args: &[&str]| {
        let output = tslice(dir.path(), args).arg("--dry-run").assert().success().stderr("");
        String::from_utf8(output.get_output().stdout.clone()).unwrap()
    };
    let target = |name: &str| real.join("far").join(name).display().to_string();
    let y = format!("would write y.npy (a link to {}): ", target("y.npy"));
    assert!(dry(&["x.npy", "-o", "y.npy"]).starts_with(&y));
    let t = format!("would write into near/t.npy (a link to {}), in place: ", target("t.npy"));
    let text = dry(&["assign", "near/t.npy", "0", "--fill", "1", "--in-place"]);
    assert!(text.starts_with(&t), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&dry(&["x.npy", "-o", "y.npy", "--json"])).unwrap();
    assert_eq!(json["outputs"][0]["link_target"], target("y.npy"));
    assert!(dry(&["x.npy", "-o", "plain.npy"]).starts_with("would write plain.npy: "));
}

#[test]
fn small_files_keep_their_rights_and_links_are_no_files() {
    let dir = directory();
    let input = dir.path().join("in");
    fs::write(dir.path().join("secret.json"), "secret").unwrap();
    for (name, mode) in [("token.json", 0o600), ("run.sh", 0o755), ("fixed.txt", 0o444)] {
        fs::write(input.join(name), name).unwrap();
        set_mode(&input.join(name), mode);
    }
    fs::write(input.join(".gitattributes"), "").unwrap();
    fs::create_dir(input.join(".git")).unwrap();
    fs::create_dir(input.join("sub")).unwrap();
    symlink("../secret.json", input.join("x.json")).unwrap();
    symlink("token.json", input.join("y.json")).unwrap();
    symlink("sub", input.join("folder")).unwrap();
    let args = ["in", "-o", "new/", "--shard-size", "1GB", "--with-files"];
    let notes = "\
tslice: note: .gitattributes is hidden, and not copied
tslice: note: x.json and 1 more file are reached by links, and not copied
hint: `cp -L` copies what a link leads to
";
    tslice(dir.path(), &args).assert().success().stdout("").stderr(notes);
    let new = dir.path().join("new");
    let names: Vec<_> = contents(&new).into_keys().collect();
    let shard = "model-00001-of-00001.safetensors";
    assert_eq!(names, ["fixed.txt", shard, INDEX, "run.sh", "token.json"]);
    let modes = ["token.json", "run.sh", "fixed.txt"].map(|name| mode(&new.join(name)));
    assert_eq!(modes, [0o600, 0o755, 0o444]);
    // also where another file stood
    set_mode(&new.join("token.json"), 0o644);
    tslice(dir.path(), &[&args[..], &["--force"]].concat()).assert().success();
    assert_eq!(mode(&new.join("token.json")), 0o600);
}

/// All files of a snapshot are links, which stand for the files of the cache and for nothing else.
#[test]
fn small_files_of_a_snapshot_are_copied() {
    let dir = cache();
    let snapshot = dir.path().join("hub/snapshots/1");
    fs::write(dir.path().join("other.json"), "other").unwrap();
    symlink("../../../other.json", snapshot.join("other.json")).unwrap();
    set_mode(&dir.path().join("hub/blobs/b2"), 0o640);
    let args = ["model", "-o", "new/", "--shard-size", "1GB", "--with-files"];
    let note = "tslice: note: other.json is reached by links, and not copied\n\
                hint: `cp -L` copies what a link leads to\n";
    tslice(dir.path(), &args).assert().success().stdout("").stderr(note);
    let config = dir.path().join("new/config.json");
    assert!(!config.is_symlink());
    assert_eq!((fs::read(&config).unwrap(), mode(&config)), (b"{}".to_vec(), 0o640));
    assert_eq!(contents(&dir.path().join("new")).len(), 3);
}
