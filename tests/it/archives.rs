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
    let named = contains("a.npz: zip: member \"w.npy\": ").or(contains("a.npz: member \""));
    run.stderr(named.and(contains(says)));
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
fn a_flipped_byte_of_a_small_member_that_is_joined_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let member = |last: u8| [npy_header(&U8, &[2]), vec![1, last]].concat();
    let mut bad = zip(&[("v.npy", &member(3)), ("w.npy", &member(9))]);
    let at = bad.iter().rposition(|byte| *byte == 9).unwrap();
    bad[at] = 8;
    fs::write(dir.path().join("a.npz"), bad).unwrap();
    refused(dir.path(), &["concat", "a.npz", "a.npz", "-t", "w", "-o", "o.npz"], "CRC-32");
    let group = ["concat", "a.npz", "--group", "{n:v,w}", "--into", "both", "-o", "o.npz"];
    refused(dir.path(), &group, "CRC-32");
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
        (8, 8, "its compression method differs between"),
        (14, 1, "its CRC-32 differs between"),
        (18, 1, "its size differs between"),
        (22, 1, "its size differs between"),
        (30, 1, "its name differs between"),
    ] {
        let mut bad = good.clone();
        bad[local + field] ^= value;
        fs::write(dir.path().join("a.npz"), &bad).unwrap();
        refused(dir.path(), &["a.npz", "-t", "w", "[:1]", "-o", "o.npy"], says);
        tslice(dir.path(), &["info", "a.npz"]).assert().code(1).stdout(contains(says));
        // the one beside it is as it was
        tslice(dir.path(), &["a.npz", "-t", "v", "-fo", "v.npy"]).assert().success().stderr("");
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
fn members_are_changed_in_a_copy() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.npz");
    let (good, start) = archive();
    let rows = |elements: &mut [u8]| elements[ROW..2 * ROW].fill(7);
    let after = changed(&good, start, rows);
    fs::write(&path, &good).unwrap();
    for threads in ["1", "3"] {
        let args = ["assign", "a.npz", "-t", "w", "[1]", "--fill", "7", "-j", threads];
        let run = tslice(dir.path(), &[&args[..], &["-fo", "copy.npz"]].concat()).assert();
        run.success().stdout("").stderr("");
        assert!(fs::read(dir.path().join("copy.npz")).unwrap() == after);
        let run = tslice(dir.path(), &[&args[..], &["--in-place"]].concat()).assert().code(1);
        run.stderr(contains("a.npz: an .npz cannot be changed in place\nhint: -o"));
        assert!(fs::read(&path).unwrap() == good);
    }
    // several, and a value that lies in the archive too
    let many = ["assign", "a.npz", "-t", "*", "[...]", "--fill", "0", "-o", "many.npz"];
    tslice(dir.path(), &many).assert().success();
    tslice(dir.path(), &["many.npz", "-o", "all.safetensors"]).assert().success();
    let value = ["--value", "a.npz", "--value-tensor", "v", "-fo", "a.npz"];
    let args = [&["assign", "a.npz", "-t", "w", "[0, :2]"], &value[..]].concat();
    tslice(dir.path(), &args).assert().success();
    let args = [&["scatter", "a.npz", "-t", "v", "--indices", "[[1]]"], &["--values"][..]].concat();
    fs::write(dir.path().join("nine.npy"), [npy_header(&U8, &[1]), vec![9]].concat()).unwrap();
    tslice(dir.path(), &[&args, &["nine.npy", "-fo", "a.npz"][..]].concat()).assert().success();
    tslice(dir.path(), &["a.npz", "-fo", "all.safetensors"]).assert().success();
}

#[test]
fn what_is_no_stored_array_is_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    let (good, start) = archive();
    let path = dir.path().join("a.npz");
    fs::write(&path, &good).unwrap();
    tslice(dir.path(), &["a.npz", "--deflate", "-o", "d.npz"]).assert().success();
    let fill = ["-t", "w", "[0]", "--fill", "1", "-o", "o.npz"];
    let run = tslice(dir.path(), &[&["assign", "d.npz"], &fill[..]].concat()).assert().code(1);
    run.stderr(contains("d.npz: a compressed array").and(contains("hint: ")));
    // no descriptor where there must be one
    let mut bad = good.clone();
    bad[start - 5 - 30 + 6] |= 8;
    fs::write(&path, &bad).unwrap();
    refused(dir.path(), &[&["assign", "a.npz"], &fill[..]].concat(), "its data descriptor");
    assert!(!dir.path().join("o.npz").exists());
}

/// What np.load makes of each member: those of other methods fail when they are asked for, and of two with
/// one name it reads the last.
#[test]
fn a_member_that_cannot_be_read_leaves_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let array = |value: u8| [npy_header(&U8, &[2]), vec![value; 2]].concat();
    let [v, w, x] = [1, 2, 3].map(array);
    let mut bytes =
        zip(&[("v.npy", &v), ("w.npy", &w), ("v.npy", &x), ("__MACOSX/._v.npy", b"none")]);
    for (name, head, at) in [("w.npy", b"PK\x03\x04", 30), ("w.npy", b"PK\x01\x02", 46)] {
        let entry = |start: &usize| {
            bytes[*start..].starts_with(head) && bytes[start + at..].starts_with(name.as_bytes())
        };
        let start = (0..bytes.len() - at).find(entry).unwrap();
        bytes[start + if at == 30 { 8 } else { 10 }] = 12;
    }
    fs::write(dir.path().join("a.npz"), bytes).unwrap();
    let run = |args: &[&str]| tslice(dir.path(), args).assert();
    run(&["a.npz", "-t", "v", "--to", "json"]).success().stdout("[3, 3]\n");
    let says = "compression method 12 (bzip2) is not read";
    run(&["a.npz", "-t", "w", "--to", "json"]).code(1).stderr(contains(says));
    run(&["view", "a.npz", "-t", "*"]).success().stderr(contains(says));
    run(&["info", "a.npz"]).code(1).stdout(contains(says).and(contains("MACOSX").not()));
}

/// Whatever a member says of itself that is not so. `tests/python/containers.py` asks np.load of the same.
#[test]
fn a_member_that_contradicts_itself_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let v = [npy_header(&U8, &[2]), vec![1, 2]].concat();
    let of = |name: &str, bytes: &[u8]| zip(&[("v.npy", &v), (name, bytes)]);
    let good = of("w.npy", &v);
    let entry = good.len() - 22 - (46 + 5);
    let local = good[4..].windows(4).position(|it| it == b"PK\x03\x04").unwrap() + 4;
    let changed = |places: &[usize], value: u8| {
        let mut bad = good.clone();
        places.iter().for_each(|&at| bad[at] = value);
        bad
    };
    let empty = npy_header(&U8, &[0]);
    let mut other_sum = of("w.npy", &empty);
    let at = other_sum.len() - 22 - (46 + 5) + 16;
    let sum = other_sum.windows(4).position(|it| *it == other_sum[at..at + 4]).unwrap();
    for at in [at, sum] {
        other_sum[at] ^= 1;
    }
    fs::write(dir.path().join("good.npz"), &good).unwrap();
    tslice(dir.path(), &["good.npz", "--deflate", "-o", "d.npz"]).assert().success();
    let mut no_stream = fs::read(dir.path().join("d.npz")).unwrap();
    let first = no_stream[4..].windows(4).position(|it| it == b"PK\x03\x04").unwrap() + 4;
    let lens = [26, 28].map(|at| usize::from(no_stream[first + at]));
    let first = first + 30 + lens[0] + lens[1];
    no_stream[first..first + 3].fill(0xff);
    for (name, bad, says) in [
        ("w", of("w.npy", b""), "inside the header of its array"),
        ("w", of("w.npy", &v[..20]), "inside the header of its array"),
        ("w", of("w.npy", b"hello, world"), "not a .npy"),
        ("w", of("w.npy", &v[..v.len() - 1]), "takes 130 bytes"),
        ("../w", of("../w.npy", &v), "leads out of the archive"),
        ("\u{fffd}", changed(&[entry + 46, local + 30], 0xff), "not UTF-8"),
        ("w", changed(&[entry + 42], 0), "its name differs"),
        ("w", changed(&[entry + 45], 9), "not where the central directory says"),
        ("w", changed(&[entry + 20], 9), "is stored in 9 bytes"),
        ("w", other_sum, "CRC-32"),
        ("w", no_stream, "compressed bytes are damaged"),
    ] {
        fs::write(dir.path().join("a.npz"), bad).unwrap();
        let run = |args: &[&str]| tslice(dir.path(), args).assert();
        run(&["a.npz", "-t", "v", "--to", "json"]).success().stdout("[1, 2]\n").stderr("");
        refused(dir.path(), &["a.npz", "-t", name, "-o", "o.npy"], says);
        let info = run(&["info", "a.npz", "--json"]).code(1).get_output().stdout.clone();
        let info: serde_json::Value = serde_json::from_slice(&info).unwrap();
        assert_eq!(info[0]["unreadable"][0]["name"], name);
        assert!(info[0]["unreadable"][0]["reason"].as_str().unwrap().contains(says), "{info}");
        run(&["a.npz", "-fo", "all.npz"])
            .success()
            .stderr(contains(says).and(contains("left out")));
        run(&["info", "all.npz"]).success().stdout(contains("1 tensor"));
    }
}

/// A member among whose bytes another one is said to lie.
#[test]
fn members_that_share_bytes_are_both_refused() {
    let dir = tempfile::tempdir().unwrap();
    let v = [npy_header(&U8, &[2]), vec![1, 2]].concat();
    let inner = zip(&[("w.npy", &v)]);
    let inner = &inner[..30 + 5 + v.len()];
    let outer = [npy_header(&U8, &[inner.len() as u64]), inner.to_vec()].concat();
    let mut bytes = zip(&[("v.npy", &v), ("o.npy", &outer), ("w.npy", &v)]);
    let entry = bytes.len() - 22 - (46 + 5);
    let at = bytes.windows(inner.len()).position(|it| it == inner).unwrap() as u32;
    bytes[entry + 42..entry + 46].copy_from_slice(&at.to_le_bytes());
    fs::write(dir.path().join("a.npz"), bytes).unwrap();
    for name in ["o", "w"] {
        let run = tslice(dir.path(), &["a.npz", "-t", name, "-o", "o.npy"]).assert().code(1);
        run.stderr(contains("its bytes overlap another member"));
    }
    tslice(dir.path(), &["a.npz", "-t", "v", "-o", "o.npy"]).assert().success().stderr("");
}

/// As np.load has it: an array is what its name or its first bytes say.
#[test]
fn members_without_the_extension_are_arrays_by_their_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let array = |value: u8| [npy_header(&U8, &[1]), vec![value]].concat();
    let members =
        [("w", array(1)), ("v.npy", array(2)), ("w.npy", array(3)), ("notes", vec![7; 9])];
    let members = members.each_ref().map(|(name, bytes)| (*name, bytes.as_slice()));
    fs::write(dir.path().join("a.npz"), zip(&members)).unwrap();
    fs::write(dir.path().join("b.npz"), zip(&members[..1])).unwrap();
    for (args, expected) in [
        (["a.npz", "-t", "w"], "1\n"),
        (["a.npz", "-t", "v"], "2\n"),
        (["a.npz", "-t", "w.npy"], "3\n"),
        (["b.npz", "-t", "w"], "1\n"),
    ] {
        let args = [&args[..], &["--to", "txt"]].concat();
        tslice(dir.path(), &args).assert().success().stdout(expected);
    }
    let none = tslice(dir.path(), &["a.npz", "-t", "notes"]).assert().code(1);
    none.stderr(contains("no tensor is named \"notes\""));
    fs::write(dir.path().join("c.npz"), zip(&members[3..])).unwrap();
    tslice(dir.path(), &["c.npz"])
        .assert()
        .code(1)
        .stderr(contains("a zip archive without arrays"));
}
