//! Members of a `.npz` that contradict themselves: bytes of another CRC-32, local headers that say
//! something else than the directory. `tests/python/containers.py` does the same with archives of other
//! programs, and with what Python's zipfile says.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

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
    // two CRC-32s, which no run leaves
    fs::write(&path, with_sums(&after, &[(entry, &good)])).unwrap();
    refused(dir.path(), &in_place, "half written");
    let whole = ["assign", "a.npz", "-t", "w", "[...]", "--fill", "7", "--in-place"];
    tslice(dir.path(), &whole).assert().success().stderr("");
    tslice(dir.path(), &["a.npz", "-t", "w", "-fo", "o.npy"]).assert().success();
}

/// Runs that are killed while elements are written: the directory's CRC-32 is a mark then.
#[test]
fn a_member_that_a_killed_run_left_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.npz");
    let (rows, row) = (3000_u64, 10_000_u64);
    let big = [npy_header(&U8, &[rows, row]), vec![1; (rows * row) as usize]].concat();
    let small = [npy_header(&U8, &[2]), vec![1, 2]].concat();
    let good = zip(&[("big.npy", &big), ("small.npy", &small)]);
    let entry = good.windows(4).rposition(|it| it == b"PK\x01\x02").unwrap() - (46 + 7);
    assert!(good[entry..].starts_with(b"PK\x01\x02"));
    let sum = || {
        let (mut sum, file) = ([0; 4], fs::File::open(&path).unwrap());
        file.read_exact_at(&mut sum, entry as u64 + 16).unwrap();
        sum
    };
    let fill = ["assign", "a.npz", "-t", "big", "[1:]", "--fill", "7", "--in-place"];
    let kill = |args: &[&str]| {
        for _ in 0..50 {
            fs::write(&path, &good).unwrap();
            let old = sum();
            let mut run = Command::new(env!("CARGO_BIN_EXE_tslice"));
            let mut run = run.args(args).current_dir(dir.path()).spawn().unwrap();
            while sum() == old && run.try_wait().unwrap().is_none() {}
            run.kill().unwrap();
            if !run.wait().unwrap().success() {
                return;
            }
        }
        panic!("no run was killed in time");
    };
    kill(&fill);
    let left = fs::read(&path).unwrap();
    let named = "a.npz: member \"big\" is half written";
    for other in [
        &["assign", "a.npz", "-t", "small", "[0]", "--fill", "3", "--in-place"][..],
        &["assign", "a.npz", "-t", "small", "[0]", "--fill", "3", "-o", "copy.npz"],
        &["assign", "a.npz", "-t", "big", "[0]", "--fill", "3", "--in-place"],
        &["assign", "a.npz", "-t", "big", "[[1, 2]]", "--fill", "3", "--in-place"],
    ] {
        let run = tslice(dir.path(), other).assert().code(1);
        run.stderr(contains(named).and(contains("`tslice assign a.npz -t big ... --in-place`")));
        assert!(fs::read(&path).unwrap() == left);
    }
    // that member alone cannot be read
    refused(dir.path(), &["a.npz", "-t", "big", "[0]", "-o", "o.npy"], "another CRC-32 than");
    tslice(dir.path(), &["a.npz", "-t", "small", "-o", "o.npy"]).assert().success().stderr("");
    // the same run completes it, and so does one that writes all of it
    let whole = ["assign", "a.npz", "-t", "big", "[...]", "--fill", "7", "--in-place"];
    for complete in [&fill[..], &whole] {
        fs::write(&path, &left).unwrap();
        tslice(dir.path(), complete).assert().success().stderr("");
        tslice(dir.path(), &["a.npz", "-fo", "all.safetensors"]).assert().success();
    }
    let listed = ["assign", "a.npz", "-t", "big", "[[9, 5, 7]]", "--fill", "3", "--in-place"];
    kill(&listed);
    refused(dir.path(), &fill, "half written");
    tslice(dir.path(), &listed).assert().success().stderr("");
    tslice(dir.path(), &["a.npz", "-fo", "all.safetensors"]).assert().success();
    // a run that goes on has not left it
    fs::write(&path, &left).unwrap();
    let running = fs::File::open(&path).unwrap();
    running.lock_shared().unwrap();
    let beside = ["assign", "a.npz", "-t", "small", "[0]", "--fill", "3", "--in-place"];
    tslice(dir.path(), &beside).assert().success().stderr("");
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
        ("w", changed(&[entry + 42], 0), "another name"),
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
        run.stderr(contains("its bytes are those of another member too"));
    }
    tslice(dir.path(), &["a.npz", "-t", "v", "-o", "o.npy"]).assert().success().stderr("");
}

/// The mark that a killed run leaves in the directory is the CRC-32 of a text, the same in every build.
#[test]
fn a_mark_of_another_build_is_known_and_a_plan_tells_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.npz");
    let (good, start) = archive();
    let [_, entry] = sums_of_w(&good, start);
    let list = |positions: &[u64]| {
        positions
            .iter()
            .map(|at| crc32fast::hash(&at.to_le_bytes()).to_string())
            .collect::<String>()
    };
    let of_list = "of (3000, 1000), list 0, range 1 0 1 1000; list 0 to 1 of shape (1,); ";
    let of_slice = "of (3000, 1000), index 0 1, range 1 0 1 1000; ".to_owned();
    for (index, text) in [("[1]", of_slice), ("[[9]]", format!("{of_list}{}", list(&[9])))] {
        let mark = crc32fast::hash(format!("w.npy{text}").as_bytes());
        let mut left = good.clone();
        left[entry..entry + 4].copy_from_slice(&mark.to_le_bytes());
        let fill = ["assign", "a.npz", "-t", "w", index, "--fill", "7", "--in-place"];
        let half = "member \"w\" is half written";
        for more in [&["--dry-run"][..], &[]] {
            fs::write(&path, &left).unwrap();
            let other = ["assign", "a.npz", "-t", "w", "[3]", "--fill", "7", "--in-place"];
            let run = tslice(dir.path(), &[&other, more].concat()).assert().code(1);
            run.stderr(contains(half));
            let beside = ["assign", "a.npz", "-t", "v", "[0]", "--fill", "7", "--in-place"];
            let run = tslice(dir.path(), &[&beside, more].concat()).assert().code(1);
            run.stderr(contains(half));
            let copy = ["assign", "a.npz", "-t", "v", "[0]", "--fill", "7", "-o", "copy.npz"];
            tslice(dir.path(), &[&copy, more].concat()).assert().code(1).stderr(contains(half));
            assert!(fs::read(&path).unwrap() == left);
            // the same run completes it
            tslice(dir.path(), &[&fill, more].concat()).assert().success().stderr("");
        }
        tslice(dir.path(), &["a.npz", "-t", "w", "-fo", "o.npy"]).assert().success();
    }
    // of scatter, too
    let nine = [npy_header(&U8, &[1]), vec![9]].concat();
    fs::write(dir.path().join("nine.npy"), nine).unwrap();
    let scatter = ["scatter", "a.npz", "-t", "v", "--indices", "[[1]]", "--values", "nine.npy"];
    let mut left = good.clone();
    left[entry..entry + 4].copy_from_slice(b"mark");
    fs::write(&path, &left).unwrap();
    for more in [&["--in-place"][..], &["--in-place", "--dry-run"]] {
        let run = tslice(dir.path(), &[&scatter, more].concat()).assert().code(1);
        run.stderr(contains("member \"w\" is half written"));
    }
}
