//! Members of a `.npz` that contradict themselves: bytes of another CRC-32, local headers that say
//! something else than the directory. `tests/python/containers.py` does the same with archives of other
//! programs, and with what Python's zipfile says.

use std::fs;
use std::path::Path;

use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

use crate::inputs::{U8, npy_header, zip};
use crate::program::tslice;

const ROW: usize = 1000;
const ROWS: usize = 3000;

/// A `.npy` of 3000 rows of 1000 bytes.
fn array() -> Vec<u8> {
    let data: Vec<u8> = (0..ROWS * ROW).map(|at| (at * 31 + at / 251) as u8).collect();
    [npy_header(&U8, &[ROWS as u64, ROW as u64]), data].concat()
}

/// An archive of two members, `v.npy` and `w.npy`, and where the second one begins in it.
fn archive() -> (Vec<u8>, usize) {
    let (v, w) = ([npy_header(&U8, &[2]), vec![1, 2]].concat(), array());
    let start = zip(&[("v.npy", &v), ("w.npy", &w)]);
    // behind it are its entries in the directory and their end
    let at = start.len() - w.len() - 2 * (46 + 5) - 22;
    assert!(start[at..].starts_with(&w));
    (start, at)
}

/// Run it; it must say exit 1, name file, member and fault, and leave nothing.
fn refused(folder: &Path, args: &[&str], says: &str) {
    let before = fs::read_dir(folder).unwrap().count();
    let run = tslice(folder, args).assert().code(1).stdout("");
    run.stderr(contains("a.npz: zip: member \"w.npy\": ").and(contains(says)));
    assert_eq!(fs::read_dir(folder).unwrap().count(), before, "{args:?}");
}

#[test]
fn a_flipped_byte_of_a_whole_member_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let (good, start) = archive();
    let header = array().len() - ROWS * ROW;
    let convert = |args: &[&str]| {
        for io in ["mmap", "read"] {
            for threads in ["1", "3"] {
                refused(dir.path(), &[args, &["--io", io, "-j", threads]].concat(), "CRC-32");
            }
        }
    };
    for at in [header, header + 1_234_567, header + ROWS * ROW - 1] {
        let mut bad = good.clone();
        bad[start + at] ^= 0x10;
        fs::write(dir.path().join("a.npz"), bad).unwrap();
        convert(&["a.npz", "-t", "w", "-o", "o.npy"]);
        convert(&["a.npz", "-t", "w", "...", "-o", "o.npy"]);
        convert(&["a.npz", "-o", "o.safetensors"]);
        convert(&["a.npz", "-o", "o.npz"]);
        convert(&["a.npz", "-o", "o.npz", "--deflate"]);
        convert(&["a.npz", "-t", "v", "[:1]", "--keep-rest", "-o", "o.npz"]);
        convert(&["a.npz", "-t", "w", "--cast", "float32", "-o", "o.npy"]);
    }
    // what was there stays
    fs::write(dir.path().join("o.npy"), "old").unwrap();
    refused(dir.path(), &["a.npz", "-t", "w", "-fo", "o.npy"], "CRC-32");
    assert_eq!(fs::read(dir.path().join("o.npy")).unwrap(), b"old");
}

#[test]
fn a_flipped_byte_of_a_members_header_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let (mut bad, start) = archive();
    // a signed type, of as many bytes
    let at = array().windows(2).position(|two| two == b"u1").unwrap();
    bad[start + at] = b'i';
    fs::write(dir.path().join("a.npz"), bad).unwrap();
    refused(dir.path(), &["a.npz", "-t", "w", "-o", "o.npy"], "CRC-32");

    let empty = npy_header(&U8, &[0]);
    let mut bad = zip(&[("w.npy", &empty)]);
    let at = bad.windows(2).position(|two| two == b"u1").unwrap();
    bad[at] = b'i';
    fs::write(dir.path().join("a.npz"), bad).unwrap();
    refused(dir.path(), &["a.npz", "-t", "w", "-o", "o.npy"], "CRC-32");
}

#[test]
fn a_flipped_byte_matters_only_where_all_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let (mut bad, start) = archive();
    let whole = array();
    bad[start + whole.len() - 1] ^= 1;
    fs::write(dir.path().join("a.npz"), bad).unwrap();
    let args = ["a.npz", "-t", "w", "[:-1]", "-o", "o.npy"];
    tslice(dir.path(), &args).assert().success().stderr("");
    let data = &whole[whole.len() - ROWS * ROW..whole.len() - ROW];
    let expected = [&npy_header(&U8, &[ROWS as u64 - 1, ROW as u64]), data].concat();
    assert!(fs::read(dir.path().join("o.npy")).unwrap() == expected);
    // a member beside it
    tslice(dir.path(), &["a.npz", "-t", "v", "-o", "v.npy"]).assert().success().stderr("");
    assert!(fs::read(dir.path().join("v.npy")).unwrap().ends_with(&[1, 2]));
}

#[test]
fn local_headers_agree_with_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let (good, start) = archive();
    let local = start - 5 - 30;
    assert!(good[local..].starts_with(b"PK\x03\x04"));
    for (field, value, says) in [
        (6, 1, "encrypted"),
        (6, 1 << 6, "encrypted"),
        (6, 1 << 5, "patches"),
        (8, 8, "another compression method than"),
        (14, 1, "another CRC-32 than"),
        (18, 1, "another size than"),
        (22, 1, "another size than"),
        (30, 1, "another name than"),
    ] {
        let mut bad = good.clone();
        bad[local + field] ^= value;
        fs::write(dir.path().join("a.npz"), &bad).unwrap();
        refused(dir.path(), &["a.npz", "-t", "w", "[:1]", "-o", "o.npy"], says);
        refused(dir.path(), &["info", "a.npz"], says);
        // what is behind the data is not known yet in its header
        bad[local + 6] |= 8;
        fs::write(dir.path().join("a.npz"), &bad).unwrap();
        let run = tslice(dir.path(), &["info", "a.npz"]).assert();
        run.code(i32::from(!(14..30).contains(&field)));
    }
}
