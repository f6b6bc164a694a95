//! Sharded checkpoints in and out, and indexes that are false.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode};
use tempfile::TempDir;

use crate::program::tslice;

const INDEX: &str = "model.safetensors.index.json";

/// A `.safetensors` of one-axis tensors of bytes.
fn shard(tensors: &[(&str, &[u8])]) -> Vec<u8> {
    let views = tensors.iter().map(|(name, data)| {
        let view =
            safetensors::tensor::TensorView::new(safetensors::Dtype::U8, vec![data.len()], data);
        (name.to_string(), view.unwrap())
    });
    safetensors::serialize(views, None).unwrap()
}

/// A folder with a checkpoint of two shards under `in/`.
fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in");
    fs::create_dir(&input).unwrap();
    fs::write(input.join("1.safetensors"), shard(&[("a", &[0, 1, 2, 3]), ("b", &[4, 5])])).unwrap();
    fs::write(input.join("2.safetensors"), shard(&[("c", &[6, 7, 8])])).unwrap();
    index(dir.path(), r#"{"a": "1.safetensors", "b": "1.safetensors", "c": "2.safetensors"}"#);
    dir
}

fn index(dir: &Path, weight_map: &str) {
    let json = format!(r#"{{"metadata": {{"total_size": 9}}, "weight_map": {weight_map}}}"#);
    fs::write(dir.join("in").join(INDEX), json).unwrap();
}

/// The program with the index as its input.
fn slice(dir: &Path, args: &[&str]) -> assert_cmd::Command {
    tslice(dir.join("in"), &[&[INDEX], args].concat())
}

fn tensor(path: &Path, name: &str) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    safetensors::SafeTensors::deserialize(&bytes).unwrap().tensor(name).unwrap().data().to_vec()
}

#[test]
fn a_checkpoint_is_trimmed_into_a_folder() {
    let dir = folder();
    let args = ["-t", "a", "1:3", "--keep-rest", "-o", "../out/"];
    slice(dir.path(), &args).assert().success().stdout("").stderr("");
    let out = dir.path().join("out");
    assert_eq!(tensor(&out.join("1.safetensors"), "a"), [1, 2]);
    assert_eq!(tensor(&out.join("1.safetensors"), "b"), [4, 5]);
    assert_eq!(tensor(&out.join("2.safetensors"), "c"), [6, 7, 8]);
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(out.join(INDEX)).unwrap()).unwrap();
    assert_eq!(json["metadata"]["total_size"], 7);
    assert_eq!(json["weight_map"]["c"], "2.safetensors");

    // existing files are replaced only with --force, and others in the folder are left alone
    fs::write(out.join("config.json"), "{}").unwrap();
    slice(dir.path(), &args).assert().code(1).stderr(
        "tslice: ../out/: the folder exists and is not empty\n\
         hint: --force replaces the checkpoint, or the arrays of Zarr, that it holds\n",
    );
    slice(dir.path(), &["-t", "a", "0:1", "--keep-rest", "-fo", "../out"]).assert().success();
    assert_eq!(tensor(&out.join("1.safetensors"), "a"), [0]);
    assert_eq!(fs::read(out.join("config.json")).unwrap(), b"{}");
    let names = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().starts_with(".tslice")));
}

#[test]
fn one_file_can_be_made_of_many() {
    let dir = folder();
    slice(dir.path(), &["-t", "?", "0:1", "-o", "one.safetensors"]).assert().success();
    let one = dir.path().join("in/one.safetensors");
    assert_eq!([tensor(&one, "a"), tensor(&one, "b"), tensor(&one, "c")].concat(), [0, 4, 6]);
}

#[test]
fn only_the_shards_that_are_needed_are_opened() {
    let dir = folder();
    fs::write(dir.path().join("in/2.safetensors"), "broken").unwrap();
    slice(dir.path(), &["-t", "b", "--to", "raw"]).assert().success().stdout(vec![4, 5]);
    slice(dir.path(), &["-t", "c"]).assert().code(1).stdout("");
    fs::remove_file(dir.path().join("in/2.safetensors")).unwrap();
    slice(dir.path(), &["-t", "c"])
        .assert()
        .code(1)
        .stderr("tslice: 2.safetensors: No such file or directory\n");
}

#[test]
fn a_false_index_is_refused() {
    let dir = folder();
    let fails = |weight_map: &str, stderr: &str| {
        index(dir.path(), weight_map);
        let stderr = format!("tslice: {INDEX}: checkpoint index: {stderr}\n");
        slice(dir.path(), &["-t", "a"]).assert().code(1).stdout("").stderr(stderr);
    };
    fails(
        r#"{"a": "../in/1.safetensors"}"#,
        "\"../in/1.safetensors\" is not the name of a file in the folder of the index",
    );
    fails(
        r#"{"a": "/etc/passwd"}"#,
        "\"/etc/passwd\" is not the name of a file in the folder of the index",
    );
    fails(r#"{"a": "1.safetensors", "a": "1.safetensors"}"#, "two tensors are named 'a'");

    index(dir.path(), r#"{"a": "model.safetensors.index.json"}"#);
    slice(dir.path(), &["-t", "a"]).assert().code(1).stdout("");

    fs::rename(dir.path().join("in/1.safetensors"), dir.path().join("1.safetensors")).unwrap();
    symlink("../1.safetensors", dir.path().join("in/1.safetensors")).unwrap();
    index(dir.path(), r#"{"a": "1.safetensors", "b": "1.safetensors"}"#);
    slice(dir.path(), &["-t", "a"]).assert().code(1).stderr(
        "tslice: 1.safetensors: the shard is outside the folder of its index\n\
             hint: links out of the folder are not followed: `cp -rL FOLDER COPY` copies what they \
             lead to\n",
    );
}

#[test]
fn a_shard_that_git_lfs_did_not_fetch_is_named() {
    let dir = folder();
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 9\n";
    fs::write(dir.path().join("in/1.safetensors"), pointer).unwrap();
    slice(dir.path(), &["-t", "a"]).assert().code(1).stderr(
        "tslice: 1.safetensors: a pointer of git-LFS in place of the file, which is not read\n\
         hint: `git lfs pull` fetches the file\n",
    );
}

#[test]
fn a_cache_that_links_all_of_it_into_one_folder_is_read() {
    let dir = folder();
    fs::rename(dir.path().join("in"), dir.path().join("blobs")).unwrap();
    fs::create_dir(dir.path().join("in")).unwrap();
    for (link, blob) in [(INDEX, "x0"), ("1.safetensors", "x1"), ("2.safetensors", "x2")] {
        fs::rename(dir.path().join("blobs").join(link), dir.path().join("blobs").join(blob))
            .unwrap();
        symlink(format!("../blobs/{blob}"), dir.path().join("in").join(link)).unwrap();
    }
    slice(dir.path(), &["-t", "c", "--to", "raw"]).assert().success().stdout(vec![6, 7, 8]);
}

/// Opening a FIFO would wait for somebody to write to it.
#[test]
fn a_shard_is_a_regular_file() {
    let dir = folder();
    let shard = dir.path().join("in/2.safetensors");
    let refused = |message: &str| {
        for args in [&["-t", "c"][..], &["-t", "*", "--io", "read", "-o", "o.safetensors"]] {
            let mut command = slice(dir.path(), args);
            let output = command.timeout(Duration::from_secs(20)).output().unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert_eq!(stderr, format!("tslice: 2.safetensors: {message}\n"));
            assert_eq!(output.status.code(), Some(1));
        }
    };
    fs::remove_file(&shard).unwrap();
    rustix::fs::mknodat(CWD, &shard, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    refused("not a regular file");
    fs::remove_file(&shard).unwrap();
    fs::create_dir(&shard).unwrap();
    refused("is a directory");
    fs::remove_dir(&shard).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(&shard).unwrap();
    refused("No such device or address");
}

/// Tensors of shards that the index does not name are read, and left out by --index-only; a new index has what is
/// there, whatever the old one says.
#[test]
fn an_index_is_followed_alone_or_made_anew() {
    let dir = folder();
    let input = dir.path().join("in");
    index(dir.path(), r#"{"a": "1.safetensors", "c": "2.safetensors"}"#);
    shows(dir.path(), &["in", "--index-only", "-o", "o/"], 0, &[], "");
    shows(dir.path(), &["info", "o", "--strict"], 0, &["2 tensors, 7 bytes"], "");
    let says = "tslice: in/model.safetensors.index.json: no tensor is named \"b\"\n";
    let output = tslice(dir.path(), &["in", "--index-only", "-t", "b"]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && stderr.starts_with(says), "{stderr}");
    // a file beside the index of others, and shards that the index does not name
    fs::write(input.join("model.safetensors"), shard(&[("x", &[1])])).unwrap();
    let note =
        "tslice: note: in: its index names other files, so that model.safetensors is not read\n";
    shows(
        dir.path(),
        &["in", "--index-only", "-t", "c", "--to", "raw", "-o", "c.bin"],
        0,
        &[],
        note,
    );
    shows(dir.path(), &["info", "in", "--no-index"], 0, &["model.safetensors: safetensors, 1"], "");
    fs::remove_file(input.join("model.safetensors")).unwrap();
    for old in ["{}", r#"{"gone": "1.safetensors", "far": "9.safetensors"}"#, "[1]"] {
        index(dir.path(), old);
        let gone = if old.contains("gone") { "gone, far\n" } else { "" };
        let note = "tslice: note: in: only in the old index: ";
        let note = if gone.is_empty() { String::new() } else { format!("{note}{gone}") };
        shows(dir.path(), &["info", "in", "--reindex"], 0, &["3 tensors, 9 bytes"], &note);
        shows(dir.path(), &["info", "in", "--strict"], 0, &["3 tensors, 9 bytes"], "");
    }
    let opened = tslice::open(input.join(INDEX)).unwrap();
    assert_eq!(opened.missing().count(), 0);
    fs::remove_file(input.join("2.safetensors")).unwrap();
    let opened = tslice::open(input.join(INDEX)).unwrap();
    assert_eq!(Vec::from_iter(opened.missing().map(|it| it.tensor)), [Some("c")]);
    shows(
        dir.path(),
        &["info", "in", "--reindex"],
        0,
        &["2 tensors, 6 bytes"],
        "tslice: note: in: only in the old index: c\n",
    );
}

/// A folder of a checkpoint of one file; what lies beside the input is named.
#[test]
fn a_folder_of_one_file_is_written() {
    let dir = folder();
    fs::create_dir(dir.path().join("one")).unwrap();
    fs::write(dir.path().join("one/model.safetensors"), shard(&[("a", &[1, 2])])).unwrap();
    fs::write(dir.path().join("one/config.json"), "{}").unwrap();
    let note = "tslice: note: config.json is beside the input, and not copied\n\
                hint: --with-files copies the small files of its folder\n";
    shows(dir.path(), &["one", "-t", "a", "--rename", "a=b", "-o", "two/"], 0, &[], note);
    assert_eq!(tensor(&dir.path().join("two/model.safetensors"), "b"), [1, 2]);
    shows(dir.path(), &["one", "--with-files", "-o", "three/"], 0, &[], "");
    let files = fs::read_dir(dir.path().join("three")).unwrap().map(|it| it.unwrap().file_name());
    let mut files = Vec::from_iter(files);
    files.sort();
    assert_eq!(files, ["config.json", "model.safetensors"]);
    // in every command
    shows(dir.path(), &["merge", "one", "-o", "four/"], 0, &[], note);
    let says = "tslice: two/: the folder exists and is not empty\nhint: --force replaces the checkpoint, or the arrays of Zarr, that it holds\n";
    shows(dir.path(), &["one", "--with-files", "-o", "two/"], 1, &[], says);
    // the input itself is not beside it, whatever its ending
    fs::create_dir(dir.path().join("six")).unwrap();
    fs::write(dir.path().join("six/w.dat"), shard(&[("a", &[1, 2])])).unwrap();
    shows(&dir.path().join("six"), &["w.dat", "-o", "out/"], 0, &[], "");
    // in place of shards and their index
    shows(dir.path(), &["in", "-o", "five/"], 0, &[], "");
    shows(dir.path(), &["one/model.safetensors", "--with-files", "-o", "five/", "-f"], 0, &[], "");
    shows(dir.path(), &["info", "five"], 0, &["five/model.safetensors: safetensors, 1 tensor"], "");
}

/// Every tensor begins at a multiple of its item's size: as the input has them where that holds.
#[test]
fn larger_items_come_first_where_tensors_would_lie_badly() {
    let dir = tempfile::tempdir().unwrap();
    let json = r#"{"a":{"dtype":"F16","shape":[3],"data_offsets":[0,6]},"b":{"dtype":"F32","shape":[2],"data_offsets":[6,14]},"c":{"dtype":"U8","shape":[2],"data_offsets":[14,16]}}"#;
    let data: Vec<u8> = (0..16).collect();
    crate::inputs::write_safetensors(&dir.path().join("m.safetensors"), json, &data);
    let order = |args: &[&str], path: &str| {
        tslice(dir.path(), args).assert().success().stderr("");
        let bytes = fs::read(dir.path().join(path)).unwrap();
        let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let start = bytes.as_ptr() as usize;
        let mut tensors = Vec::new();
        for (name, tensor) in file.tensors() {
            let at = tensor.data().as_ptr() as usize - start;
            let size = tensor.dtype().bitsize() / 8;
            assert_eq!(at % size, 0, "{args:?} {name}");
            let from = if name == "a" {
                0
            } else if name == "b" {
                6
            } else {
                14
            };
            assert_eq!(tensor.data(), &data[from..from + tensor.data().len()]);
            tensors.push((at, name));
        }
        tensors.sort();
        tensors.into_iter().map(|(_, name)| name).collect::<String>()
    };
    assert_eq!(order(&["m.safetensors", "-o", "x.safetensors"], "x.safetensors"), "bac");
    assert_eq!(
        order(&["m.safetensors", "-t", "[ac]", "-o", "y.safetensors"], "y.safetensors"),
        "ac"
    );
    let line = "for i in 0 1 2; do tslice m.safetensors -o z.safetensors --part $i/3; done; \
                tslice m.safetensors --to safetensors | tslice diff - z.safetensors && cmp x.safetensors z.safetensors; \
                cat m.safetensors | tslice - -o p.safetensors && cmp x.safetensors p.safetensors; \
                tslice merge m.safetensors -o g.safetensors && cmp x.safetensors g.safetensors";
    let output = crate::program::bash(&dir, line).output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    let shards = ["m.safetensors", "--shard-size", "14", "-o", "s/"];
    assert_eq!(order(&shards, "s/model-00001-of-00002.safetensors"), "ba");
}

/// What a command prints, and says beside it.
#[track_caller]
fn shows(dir: &Path, args: &[&str], code: i32, stdout: &[&str], stderr: &str) {
    let output = tslice(dir, args).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), &*said), (Some(code), stderr), "{args:?}: {shown}");
    for line in stdout {
        assert!(shown.lines().any(|shown| shown.contains(line)), "{line}: {shown}");
    }
}

const JSON: &str = "tslice: in/model.safetensors.index.json: ";

/// An overlay whose old tensor still stands in another shard, tensors that the index leaves out, one that
/// stands elsewhere.
#[test]
fn of_an_index_that_does_not_agree_what_is_there_is_read() {
    let dir = folder();
    let input = dir.path().join("in");
    fs::write(input.join("new.safetensors"), shard(&[("a", &[9, 9]), ("z", &[8])])).unwrap();
    index(
        dir.path(),
        r#"{"a": "new.safetensors", "b": "2.safetensors", "c": "2.safetensors", "one": "1.safetensors"}"#,
    );
    let notes = format!(
        "tslice: note: in/{INDEX}: tensors of its shards that the index leaves out: z\n\
         tslice: note: in/{INDEX}: tensors in other shards than the index says: b\n"
    );
    let missing = format!("{notes}{JSON}1 tensor of 1.safetensors is missing\n");
    let lines = ["4 of 5 tensors", "one is missing: 1.safetensors: it does not hold it"];
    shows(dir.path(), &["info", "in"], 1, &lines, &missing);
    for (name, values) in [("a", "9,9"), ("b", "4,5"), ("c", "6,7,8"), ("z", "8")] {
        let output = tslice(dir.path(), &["in", "-t", name, "--to", "csv"]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), values.replace(',', "\n") + "\n");
        assert!(output.status.success());
    }
    // what is missing is an error for who asks for it
    let says =
        "checkpoint index: 1.safetensors does not hold tensor 'one', although the index says so";
    shows(dir.path(), &["in", "-t", "one"], 1, &[], &format!("{JSON}{says}\n"));
    let says = "tensor \"one\" is missing: 1.safetensors: it does not hold it";
    let says = format!("{notes}{JSON}{says}\n");
    shows(dir.path(), &["in", "-o", "all.safetensors"], 1, &[], &says);
    shows(dir.path(), &["in", "--exclude", "one", "-o", "all.safetensors"], 0, &[], &notes);
    // with the one that is in several shards
    let strict = "checkpoint index: 1.safetensors holds tensor";
    let output = tslice(dir.path(), &["in", "-t", "c", "--strict"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(!String::from_utf8(output.stderr).unwrap().contains(strict));
    let says =
        "tslice: in: checkpoint index: tensor 'a' is in both 1.safetensors and new.safetensors\n";
    shows(dir.path(), &["info", "in", "--no-index"], 1, &[], says);
    // a new index agrees
    let gone = |name: &str| format!("tslice: note: in: only in the old index: {name}\n");
    shows(dir.path(), &["info", "in", "--reindex"], 0, &["4 tensors, 8 bytes"], &gone("one"));
    fs::remove_file(input.join("new.safetensors")).unwrap();
    shows(dir.path(), &["info", "in", "--reindex"], 0, &["3 tensors, 9 bytes"], &gone("z"));
    shows(dir.path(), &["info", "in", "--strict"], 0, &["3 tensors, 9 bytes"], "");
}

#[test]
fn a_damaged_index_is_named_as_one() {
    for damaged in ["", "{", "[1,2", "[1,2]", "{\"weight_map\": {\"a\": \"1.safe"] {
        let dir = folder();
        fs::write(dir.path().join("in/model.safetensors.index.json"), damaged).unwrap();
        for args in [&["info", "in"][..], &["in/model.safetensors.index.json", "-t", "a"]] {
            let output = tslice(dir.path(), args).output().unwrap();
            let says = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1));
            assert!(
                says.starts_with(&format!("{JSON}checkpoint index: it is damaged: ")),
                "{says}"
            );
            assert!(says.contains("--no-index reads all shards"), "{says}");
        }
        shows(dir.path(), &["info", "in", "--no-index"], 0, &["3 tensors, 9 bytes"], "");
        shows(dir.path(), &["info", "in", "--reindex"], 0, &["3 tensors, 9 bytes"], "");
        shows(dir.path(), &["info", "in", "--strict"], 0, &["3 tensors, 9 bytes"], "");
    }
}

#[test]
fn a_shard_that_is_missing_is_an_error_for_who_asks_for_it() {
    let dir = folder();
    fs::remove_file(dir.path().join("in/2.safetensors")).unwrap();
    let output = tslice(dir.path(), &["info", "in", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(
        said["error"],
        "in/model.safetensors.index.json: 1 tensor of 2.safetensors is missing"
    );
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = serde_json::json!([
        { "name": "c", "file": "2.safetensors", "reason": "No such file or directory" }
    ]);
    assert_eq!(json[0]["missing"], expected);
    assert_eq!(json[0]["tensors"].as_array().unwrap().len(), 2);
    tslice(dir.path(), &["in", "-t", "[ab]", "-o", "some.safetensors"]).assert().success();
    let absent = "tslice: in/2.safetensors: No such file or directory\n";
    shows(dir.path(), &["in", "-t", "c"], 1, &[], absent);
    shows(dir.path(), &["in", "-t", "*", "-o", "x.safetensors"], 1, &[], absent);
    shows(dir.path(), &["info", "in", "--strict"], 1, &[], absent);
    let missing =
        format!("{JSON}tensor \"c\" is missing: 2.safetensors: No such file or directory\n");
    shows(dir.path(), &["in", "-o", "x.safetensors"], 1, &[], &missing);
    shows(dir.path(), &["merge", "in", "-o", "x.safetensors"], 1, &[], &missing);
    shows(dir.path(), &["in", "-t", "a", "--keep-rest", "-o", "x.safetensors"], 1, &[], &missing);
    shows(dir.path(), &["diff", "in", "in"], 2, &[], &missing);
    tslice(dir.path(), &["in", "--no-index", "-o", "x.safetensors"]).assert().success();
    // a stale index beside whole shards
    fs::write(dir.path().join("in/other.safetensors"), shard(&[("c", &[1]), ("d", &[2])])).unwrap();
    shows(dir.path(), &["info", "in", "--no-index"], 0, &["4 tensors, 8 bytes"], "");
    shows(dir.path(), &["info", "in", "--reindex"], 0, &["4 tensors, 8 bytes"], "");
    let json = fs::read(dir.path().join("in").join(INDEX)).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["weight_map"]["d"], "other.safetensors");
    assert_eq!(json["metadata"]["total_size"], 8);
}

#[test]
fn folders_are_inputs() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, tensors: &[(&str, &[u8])]| {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, shard(tensors)).unwrap();
    };
    // one file
    write("one/model.safetensors", &[("a", &[1, 2])]);
    fs::write(dir.path().join("one/config.json"), "{}").unwrap();
    shows(dir.path(), &["info", "one"], 0, &["one/model.safetensors: safetensors, 1 tensor"], "");
    shows(dir.path(), &["one", "-t", "a", "--to", "csv"], 0, &["1", "2"], "");
    shows(
        dir.path(),
        &["assign", "one", "-t", "a", "[0]", "--fill", "7", "--in-place", "-q"],
        0,
        &[],
        "",
    );
    shows(dir.path(), &["one", "-t", "a", "--to", "csv"], 0, &["7", "2"], "");
    // shards without an index, in natural order
    write("many/m-10.safetensors", &[("j", &[10])]);
    write("many/m-2.safetensors", &[("b", &[2])]);
    write("many/m-1.safetensors", &[("a", &[1])]);
    let output = tslice(dir.path(), &["info", "many", "--json"]).output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let files =
        json[0]["tensors"].as_array().unwrap().iter().map(|it| it["file"].as_str().unwrap());
    let files: Vec<&str> = files.collect();
    assert_eq!(files, ["m-1.safetensors", "m-2.safetensors", "m-10.safetensors"]);
    tslice(dir.path(), &["many", "-t", "*", "-o", "out/"]).assert().success();
    shows(dir.path(), &["diff", "many", "out"], 0, &[], "");
    shows(dir.path(), &["info", "out", "--strict"], 0, &["3 tensors, 3 bytes"], "");
    shows(
        dir.path(),
        &["info", "many", "--reindex"],
        0,
        &["index.json: sharded safetensors, 3"],
        "",
    );
    fs::remove_file(dir.path().join("many").join(INDEX)).unwrap();
    // a tensor twice
    write("many/m-3.safetensors", &[("b", &[3])]);
    let says = "tslice: many: checkpoint index: tensor 'b' is in both m-2.safetensors and m-3.safetensors\n";
    shows(dir.path(), &["info", "many"], 1, &[], says);
    shows(dir.path(), &["many", "-t", "a"], 1, &[], says);
    // others
    fs::create_dir(dir.path().join("none")).unwrap();
    let says = "tslice: none: is a directory that holds no checkpoint: no model.safetensors, no index \
                (*.safetensors.index.json, pytorch_model.bin.index.json), no shards\n";
    shows(dir.path(), &["info", "none"], 1, &[], says);
    fs::create_dir(dir.path().join("dcp")).unwrap();
    fs::write(dir.path().join("dcp/__0_0.distcp"), "").unwrap();
    let says = "tslice: dcp: a folder of PyTorch's distributed checkpoints (*.distcp), which is not read\n\
                hint: docs/files.md, \"Files of other programs\", has a command that converts it\n";
    shows(dir.path(), &["info", "dcp"], 1, &[], says);
}

/// No file that is found in a folder is waited for.
#[test]
fn a_checkpoint_in_a_folder_is_a_regular_file() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["model.safetensors", INDEX, "pytorch_model.bin", "x-1.safetensors"] {
        let folder = dir.path().join("in");
        fs::create_dir(&folder).unwrap();
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(CWD, folder.join(name), FileType::Fifo, mode, 0).unwrap();
        for args in [&["info", "in"][..], &["info", "in", "--no-index"], &["in", "--to", "npz"]] {
            let output =
                tslice(dir.path(), args).timeout(Duration::from_secs(20)).output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{name} {args:?} {said}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn a_json_object_is_no_index() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["config.json", "config"] {
        fs::write(dir.path().join(name), r#"{"hidden_size": 4096}"#).unwrap();
        let output = tslice(dir.path(), &["info", name]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let says = "a JSON object that is not an index of a checkpoint (it has no \"weight_map\")";
        assert_eq!(said, format!("tslice: {name}: {says}, which is not read\n"));
    }
}

/// More shards than stay open.
#[test]
fn shards_may_be_many() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..300u16 {
        let name = format!("t{number}");
        let file = dir.path().join(format!("m-{number}.safetensors"));
        fs::write(file, shard(&[(&name, &number.to_le_bytes())])).unwrap();
    }
    let line = "ulimit -n 64; tslice . -t '*' -o all.npz && tslice diff . all.npz && \
                tslice . -t 't{1,2}*' -o some.npz && tslice all.npz -t t299 --to csv";
    let output = crate::program::bash(&dir, line).output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "43\n1\n");
}

#[test]
fn tensors_without_a_name_are_called_so() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in");
    fs::create_dir(&input).unwrap();
    for name in ["1.safetensors", "2.safetensors"] {
        fs::write(input.join(name), shard(&[("", &[0, 1])])).unwrap();
    }
    let says = "tslice: in: checkpoint index: a tensor without a name is in both 1.safetensors and \
                2.safetensors\nhint: `tslice in/2.safetensors --name NAME -o NEW.safetensors` names it: put \
                NEW.safetensors in place of in/2.safetensors\n";
    shows(dir.path(), &["info", "in"], 1, &[], says);
    shows(dir.path(), &["info", "in", "--reindex"], 1, &[], says);
    let merge = ["merge", "in/1.safetensors", "in/2.safetensors"];
    let says = "tslice: in/2.safetensors: a tensor without a name is also in another input, in/1.safetensors\n\
                hint: --first or --last chooses an input, --rename N:=NEW names the tensor of input N\n";
    shows(dir.path(), &[&merge[..], &["-o", "all.safetensors"]].concat(), 1, &[], says);
    // what the hints say
    let renamed = ["--rename", "1:=w", "-o", "all.safetensors"];
    shows(dir.path(), &[&merge[..], &renamed].concat(), 0, &[], "");
    let named = ["in/2.safetensors", "--name", "w", "-o", "new.safetensors"];
    shows(dir.path(), &named, 0, &[], "");
    fs::rename(dir.path().join("new.safetensors"), input.join("2.safetensors")).unwrap();
    shows(dir.path(), &["info", "in"], 0, &["2 tensors"], "");
}
