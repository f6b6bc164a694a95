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
    fails(
        r#"{"a": "2.safetensors"}"#,
        "2.safetensors does not hold tensor 'a', which the index places there",
    );
    fails(
        r#"{"a": "1.safetensors"}"#,
        "1.safetensors holds tensor 'b', which the index does not place there",
    );
    fails(r#"{"a": "1.safetensors", "a": "1.safetensors"}"#, "two tensors are named 'a'");

    index(dir.path(), r#"{"a": "model.safetensors.index.json"}"#);
    slice(dir.path(), &["-t", "a"]).assert().code(1).stdout("");

    fs::rename(dir.path().join("in/1.safetensors"), dir.path().join("1.safetensors")).unwrap();
    symlink("../1.safetensors", dir.path().join("in/1.safetensors")).unwrap();
    index(dir.path(), r#"{"a": "1.safetensors", "b": "1.safetensors"}"#);
    slice(dir.path(), &["-t", "a"]).assert().code(1).stderr(
        "tslice: 1.safetensors: the shard lies outside of the folder of its index\n\
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
