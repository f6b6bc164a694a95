//! `--deflate`: archives that np.savez_compressed could have written, read back by the program.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::inputs::write_safetensors;
use crate::program::tslice;

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// Numbers that repeat, of several blocks of the compressor.
fn numbers() -> Vec<u8> {
    (0..200_000u32).flat_map(|i| (i / 7 % 1009).to_le_bytes()).collect()
}

/// A folder with `x.safetensors`: `w` (200000 numbers), `e` (none), `s` (a scalar), all of I32.
fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let json = concat!(
        r#"{"w":{"dtype":"I32","shape":[200000],"data_offsets":[0,800000]},"#,
        r#""e":{"dtype":"I32","shape":[0,3],"data_offsets":[800000,800000]},"#,
        r#""s":{"dtype":"I32","shape":[],"data_offsets":[800000,800004]}}"#
    );
    let data = [numbers(), 7u32.to_le_bytes().to_vec()].concat();
    write_safetensors(&dir.path().join("x.safetensors"), json, &data);
    dir
}

/// The bytes of a tensor as the program reads them.
fn raw(dir: &Path, file: &str, tensor: &str) -> Vec<u8> {
    let assert = tslice(dir, &[file, "-t", tensor, "--to", "raw"]).assert().success();
    assert.get_output().stdout.clone()
}

#[test]
fn members_are_deflated_and_read_back() {
    let dir = folder();
    let args = ["x.safetensors", "-t", "*", "-o", "out.npz", "--deflate"];
    tslice(dir.path(), &args).assert().success().stdout("").stderr("");
    let archive = fs::read(dir.path().join("out.npz")).unwrap();
    assert!(archive.len() < 100_000, "{} bytes are not compressed", archive.len());
    for signature in [b"PK\x03\x04", b"PK\x01\x02"] {
        let at = |w: &(usize, &[u8])| w.1 == signature;
        let headers: Vec<usize> =
            archive.windows(4).enumerate().filter(at).map(|(at, _)| at).collect();
        assert_eq!(headers.len(), 3);
        let method = if signature == b"PK\x03\x04" { 8 } else { 10 };
        assert!(headers.iter().all(|at| u16_at(&archive, at + method) == 8));
        // a file tells the sizes before the members
        assert!(headers.iter().all(|at| u16_at(&archive, at + method - 2) & 8 == 0));
    }
    assert_eq!(raw(dir.path(), "out.npz", "w"), numbers());
    assert_eq!(raw(dir.path(), "out.npz", "e"), b"");
    assert_eq!(raw(dir.path(), "out.npz", "s"), [7, 0, 0, 0]);
}

#[test]
fn the_bytes_depend_on_nothing_but_the_tensors() {
    let dir = folder();
    let made = |args: &[&str]| {
        let all = [args, &["-t", "*", "--deflate", "-f", "-o", "out.npz"]].concat();
        let whole = fs::read(dir.path().join("x.safetensors")).unwrap();
        tslice(dir.path(), &all).write_stdin(whole).assert().success();
        fs::read(dir.path().join("out.npz")).unwrap()
    };
    let one = made(&["x.safetensors", "-j", "1"]);
    assert!(one == made(&["x.safetensors", "-j", "4"]));
    assert!(one == made(&["-"]));
}

#[test]
fn a_pipe_gets_an_archive_too() {
    let dir = folder();
    let args = ["x.safetensors", "-t", "*", "--to", "npz", "--deflate"];
    let archive = tslice(dir.path(), &args).assert().success().get_output().stdout.clone();
    assert_eq!((u16_at(&archive, 6) & 8, u16_at(&archive, 8)), (8, 8));
    fs::write(dir.path().join("piped.npz"), archive).unwrap();
    assert_eq!(raw(dir.path(), "piped.npz", "w"), numbers());
    assert_eq!(raw(dir.path(), "piped.npz", "s"), [7, 0, 0, 0]);
}

#[test]
fn other_formats_are_never_compressed() {
    let dir = folder();
    for out in ["out.npy", "out.safetensors", "out.bin", "out.csv", "out/"] {
        let args = ["x.safetensors", "-t", "w", "-o", out, "--deflate"];
        let assert = tslice(dir.path(), &args).assert().code(2).stdout("");
        let stderr = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
        assert!(stderr.starts_with("tslice: --deflate has no effect"), "{stderr}");
        assert!(!dir.path().join(out).exists());
    }
}
