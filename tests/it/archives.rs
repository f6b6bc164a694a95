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

/// Where the CRC-32s of a member of [`archive`] stand: in its local header, and in the directory.
fn sums_of_w(good: &[u8], start: usize) -> [usize; 2] {
    let entry = good.len() - 22 - (46 + 5);
    assert!(good[entry..].starts_with(b"PK\x01\x02"));
    [start - 5 - 30 + 14, entry + 16]
}

/// What the archive is with these elements set in `w`.
fn changed(good: &[u8], start: usize, change: impl Fn(&mut [u8])) -> Vec<u8> {
    let mut whole = array();
    let header = whole.len() - ROWS * ROW;
    change(&mut whole[header..]);
    let mut after = good.to_vec();
    after[start..start + whole.len()].copy_from_slice(&whole);
    for at in sums_of_w(good, start) {
        after[at..at + 4].copy_from_slice(&crc32fast::hash(&whole).to_le_bytes());
    }
    after
}

#[test]
fn members_are_changed_where_they_lie() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.npz");
    let (good, start) = archive();
    let rows = |elements: &mut [u8]| elements[ROW..2 * ROW].fill(7);
    let after = changed(&good, start, rows);
    let in_place = ["assign", "a.npz", "-t", "w", "[1]", "--fill", "7", "--in-place"];
    fs::write(&path, &good).unwrap();
    tslice(dir.path(), &[&in_place[..7], &["-o", "copy.npz"]].concat()).assert().success();
    assert!(fs::read(dir.path().join("copy.npz")).unwrap() == after);
    assert!(fs::read(&path).unwrap() == good);
    for threads in ["1", "3"] {
        fs::write(&path, &good).unwrap();
        let args = [&in_place[..], &["-j", threads]].concat();
        tslice(dir.path(), &args).assert().success().stdout("").stderr("");
        assert!(fs::read(&path).unwrap() == after);
    }
    tslice(dir.path(), &["a.npz", "-t", "w", "-o", "w.npy"]).assert().success();
    // several, and a value that lies in the archive too
    fs::write(&path, &good).unwrap();
    let many = ["assign", "a.npz", "-t", "*", "[...]", "--fill", "0", "--in-place"];
    tslice(dir.path(), &many).assert().success();
    tslice(dir.path(), &["a.npz", "-o", "all.safetensors"]).assert().success();
    let value = ["--value", "a.npz", "--value-tensor", "v", "--in-place"];
    let args = [&["assign", "a.npz", "-t", "w", "[0, :2]"], &value[..]].concat();
    tslice(dir.path(), &args).assert().success();
    let args = [&["scatter", "a.npz", "-t", "v", "--indices", "[[1]]"], &["--values"][..]].concat();
    fs::write(dir.path().join("nine.npy"), [npy_header(&U8, &[1]), vec![9]].concat()).unwrap();
    tslice(dir.path(), &[&args, &["nine.npy", "--in-place"][..]].concat()).assert().success();
    tslice(dir.path(), &["a.npz", "-fo", "all.safetensors"]).assert().success();
}

/// A kill may come after some of the elements, or between the two CRC-32s.
#[test]
fn a_killed_change_of_a_member_is_completed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.npz");
    let (good, start) = archive();
    let after = changed(&good, start, |elements| elements[ROW..3 * ROW].fill(7));
    let in_place = ["assign", "a.npz", "-t", "w", "[1:3]", "--fill", "7", "--in-place"];
    let half = changed(&good, start, |elements| elements[ROW..2 * ROW].fill(7));
    let [local, entry] = sums_of_w(&good, start);
    let with_sums = |elements: &[u8], sums: &[(usize, &[u8])]| {
        let mut archive = elements.to_vec();
        for &(at, from) in sums {
            archive[at..at + 4].copy_from_slice(&from[at..at + 4]);
        }
        archive
    };
    for left in [
        with_sums(&half, &[(local, &good), (entry, &good)]),
        with_sums(&after, &[(local, &good), (entry, &good)]),
        with_sums(&after, &[(entry, &good)]),
        after.clone(),
    ] {
        fs::write(&path, &left).unwrap();
        if left != after {
            tslice(dir.path(), &["a.npz", "-t", "w", "-o", "o.npy"]).assert().code(1);
        }
        tslice(dir.path(), &in_place).assert().success().stderr("");
        assert!(fs::read(&path).unwrap() == after);
        // a value of another member, and a list, can be read all the same
        fs::write(&path, &left).unwrap();
        let value = ["assign", "a.npz", "-t", "w", "[0, @a.npz#v]", "--in-place"];
        let value = [&value[..], &["--value", "a.npz", "--value-tensor", "v"]].concat();
        tslice(dir.path(), &value).assert().success().stderr("");
        tslice(dir.path(), &["a.npz", "-t", "w", "-fo", "o.npy"]).assert().success();
    }
}

#[test]
fn what_is_no_stored_array_is_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    let (good, start) = archive();
    let path = dir.path().join("a.npz");
    fs::write(&path, &good).unwrap();
    tslice(dir.path(), &["a.npz", "--deflate", "-o", "d.npz"]).assert().success();
    let deflated = fs::read(dir.path().join("d.npz")).unwrap();
    let fill = ["-t", "w", "[0]", "--fill", "1", "--in-place"];
    let run = tslice(dir.path(), &[&["assign", "d.npz"], &fill[..]].concat()).assert().code(1);
    run.stderr(contains("d.npz: an array that is deflated").and(contains("hint: ")));
    assert!(fs::read(dir.path().join("d.npz")).unwrap() == deflated);
    // no descriptor where there must be one
    let mut bad = good.clone();
    bad[start - 5 - 30 + 6] |= 8;
    fs::write(&path, &bad).unwrap();
    refused(dir.path(), &[&["assign", "a.npz"], &fill[..]].concat(), "the data descriptor");
    assert!(fs::read(&path).unwrap() == bad);
}
