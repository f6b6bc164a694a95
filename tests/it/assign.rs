//! `tslice assign` and `tslice scatter` as programs: errors word for word, and the guarantees of -o
//! and --in-place: kills, sparse files, values that lie in the target, several processes.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use predicates::str::contains;
use tslice::dtype::DType;
use tslice::formats::safetensors;

use crate::inputs::{F32, I64, U8, floats, integers, npy_header, write_npy, write_safetensors};
use crate::program::{process, tslice};

/// `a.npy`, 0 to 11 in shape (3, 4); `row.npy`, 70 to 73; `bytes.npy`; `two.safetensors`.
fn directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    write_npy(&path("a.npy"), &F32, &[3, 4], &floats(0..12));
    write_npy(&path("row.npy"), &F32, &[4], &floats(70..74));
    write_npy(&path("bytes.npy"), &U8, &[4], &[1, 2, 3, 4]);
    let tensors = [("x", &U8, &[2][..], 2), ("y", &U8, &[3][..], 3)];
    let mut two = safetensors::header(&tensors, &Default::default()).unwrap();
    two.extend([1, 2, 3, 4, 5]);
    fs::write(path("two.safetensors"), two).unwrap();
    dir
}

#[track_caller]
fn succeeds(dir: &Path, args: &[&str]) {
    let output = tslice(dir, args).output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
}

/// The command ends with `status`, says exactly `message`, and changes no file.
#[track_caller]
fn fails(args: &[&str], status: i32, message: &str) {
    let dir = directory();
    let state = || {
        let mut files: Vec<_> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| (fs::read(&path).unwrap(), path))
            .collect();
        files.sort();
        files
    };
    let before = state();
    let output = tslice(dir.path(), args).output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), message);
    assert_eq!(output.status.code(), Some(status));
    assert!(output.stdout.is_empty());
    assert!(state() == before);
}

/// A value of the name of one target is for that one alone.
#[test]
fn one_value_is_written_to_the_target_of_its_name() {
    let dir = directory();
    let path = |name: &str| dir.path().join(name);
    let make = |name: &str, out: &str| {
        let args = ["two.safetensors", "-t", "x", "--rename", &format!("x={name}"), "-o", out];
        succeeds(dir.path(), &args);
    };
    make("x", "one.safetensors");
    make("z", "other.safetensors");
    let line = "tslice two.safetensors --rename y=w -t '*' '[:2]' -o t.safetensors";
    assert!(crate::program::bash(&dir, line).status().unwrap().success());
    let assign = |value: &str, more: &[&str]| {
        let args =
            ["assign", "t.safetensors", "-t", "*", "--value", value, "-o", "o.safetensors", "-f"];
        tslice(dir.path(), &[&args, more].concat()).output().unwrap()
    };
    let output = assign("one.safetensors", &[]);
    let says = "tslice: one.safetensors: its only tensor, \"x\", has the name of one target, but \"w\" is a target too\n\
                hint: -t x writes it to that one, --value-tensor x to all\n";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), says);
    assert_eq!(output.status.code(), Some(1));
    assert!(!path("o.safetensors").exists());
    assert!(assign("one.safetensors", &["--value-tensor", "x"]).status.success());
    assert!(assign("other.safetensors", &[]).status.success());
}

#[test]
fn shapes_and_dtypes_must_be_the_slices() {
    fails(
        &["assign", "a.npy", "[0, :3]", "--value", "row.npy", "--in-place"],
        1,
        "tslice: row.npy: the value has shape (4,), the slice has shape (3,)\n",
    );
    fails(
        &["assign", "a.npy", "[:0]", "--value", "row.npy", "--in-place"],
        1,
        "tslice: row.npy: the value has shape (4,), the slice has shape (0, 4)\n\
         hint: --broadcast stretches it, as NumPy does\n",
    );
    fails(
        &["assign", "a.npy", "[0, :3]", "--value", "row.npy", "--broadcast", "-o", "out.npy"],
        1,
        "tslice: row.npy: could not broadcast input array from shape (4,) into shape (3,)\n",
    );
    fails(
        &["assign", "a.npy", "0", "--value", "bytes.npy", "-o", "out.npy"],
        1,
        "tslice: bytes.npy: the value has dtype uint8, the target has float32\n\
         hint: --cast float32 converts it\n",
    );
    fails(
        &["assign", "a.npy", "0", "--value", "two.safetensors", "--in-place"],
        1,
        "tslice: two.safetensors: the file holds 2 tensors, choose one with --value-tensor NAME\n\
         hint: it holds x, y\n",
    );
}

#[test]
fn fill_takes_what_the_dtype_holds() {
    let fill = |number: &'static str| ["assign", "bytes.npy", "--in-place", "--fill", number];
    let range = ", which holds 0 to 255\n";
    for (number, shown) in [("300", "300"), ("-1", "-1"), ("0x1_00", "0x1_00")] {
        let message =
            format!("tslice: --fill {shown}: {shown} does not fit into dtype uint8{range}");
        fails(&fill(number), 1, &message);
    }
    for number in ["1.5", "nan", "-inf", "1e2", "1j"] {
        let message = format!(
            "tslice: --fill {number}: '{number}' is not an integer, as dtype uint8 requires\n"
        );
        fails(&fill(number), 1, &message);
    }
    fails(&fill("ten"), 2, "tslice: --fill ten: 'ten' is not a number\n");
}

#[test]
fn arguments_are_checked() {
    fails(
        &["assign", "a.npy", "[[0, 9], :]", "--fill", "0", "--in-place"],
        1,
        "tslice: index 9 is out of bounds for axis 0 with size 3\n  [[0, 9], :]\n       ^\n",
    );
    fails(
        &["assign", "a.npy", "[1, 9]", "--fill", "0", "--in-place"],
        1,
        "tslice: index 9 is out of bounds for axis 1 with size 4\n  [1, 9]\n      ^\n",
    );
    fails(
        &["assign", "a.npy", "0", "--fill", "0", "-o", "out.safetensors"],
        1,
        "tslice: out.safetensors: the output is a copy of a.npy, in the npy format\n\
         hint: give it a name that ends in .npy\n",
    );
    fails(
        &["assign", "a.npy", "0", "--fill", "0", "-o", "row.npy"],
        1,
        "tslice: row.npy: the file exists\nhint: --force replaces it\n",
    );
    fails(
        &["assign", "-", "0", "--fill", "0", "--in-place"],
        2,
        "tslice: TARGET must be a file, not standard input\n",
    );
    fails(
        &["assign", "none.npy", "0", "--fill", "0", "--in-place"],
        1,
        "tslice: none.npy: No such file or directory\n",
    );
    fails(&["assign", ".", "0", "--fill", "0", "--in-place"], 1, "tslice: .: is a directory\n");
}

#[test]
fn checkpoints_are_not_changed_as_a_whole() {
    let dir = directory();
    fs::write(dir.path().join("model.safetensors.index.json"), "{\"weight_map\": {}}").unwrap();
    let name = "model.safetensors.index.json";
    let output = tslice(dir.path(), &["assign", name, "0", "--fill", "0", "--in-place"]);
    let output = { output }.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    let message = "a sharded checkpoint cannot be changed as a whole";
    assert!(stderr.starts_with(&format!("tslice: {name}: {message}\nhint: ")), "{stderr}");
}

#[test]
fn a_copy_can_have_other_metadata() {
    let dir = tempfile::tempdir().unwrap();
    let header = r#"{"__metadata__":{"a":"1"},"w":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"v":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}}"#;
    for spaces in [0, 3, 4000, 9000] {
        let header = format!("{header}{}", " ".repeat(spaces));
        write_safetensors(&dir.path().join("m.safetensors"), &header, &[1, 2, 3, 4, 5]);
        for (change, metadata) in [
            (&["--metadata", "b=2"][..], r#"metadata "a": "1""#),
            (&["--no-metadata", "--metadata", "b=2"], r#"metadata "b": "2""#),
        ] {
            for output in ["c.safetensors", "-"] {
                let assign = ["assign", "m.safetensors", "-t", "v", "[1]", "--fill", "9"];
                let args = [&assign[..], &["-f", "-o", output], change].concat();
                let run = tslice(dir.path(), &args).assert().success().stderr("");
                if output == "-" {
                    fs::write(dir.path().join("c.safetensors"), &run.get_output().stdout).unwrap();
                }
                let bytes = fs::read(dir.path().join("c.safetensors")).unwrap();
                assert_eq!(&bytes[bytes.len() - 5..], [1, 2, 3, 4, 9]);
                let info = tslice(dir.path(), &["info", "c.safetensors"]).assert().success();
                info.stdout(contains(metadata));
                let diff = ["diff", "m.safetensors", "c.safetensors", "-t", "w"];
                tslice(dir.path(), &diff).assert().success();
            }
        }
    }
    let in_place = ["assign", "m.safetensors", "-t", "v", "--fill", "9", "--in-place"];
    tslice(dir.path(), &[&in_place[..], &["--no-metadata"]].concat()).assert().code(2);
}

#[test]
fn one_output_and_one_value_are_required() {
    let dir = directory();
    for args in [
        &["assign", "a.npy", "0", "--fill", "0"][..],
        &["assign", "a.npy", "0", "--fill", "0", "--in-place", "-o", "out.npy"],
        &["assign", "a.npy", "0", "--in-place"],
        &["assign", "a.npy", "0", "--fill", "0", "--value", "row.npy", "--in-place"],
        &["assign", "a.npy", "0", "--fill", "0", "--in-place", "--force"],
        &["assign", "a.npy", "0", "--fill", "0", "--in-place", "--broadcast"],
        &["assign", "a.npy", "0", "--fill", "0", "--in-place", "--value-tensor", "x"],
        &["scatter", "a.npy", "--indices", "[[0]]", "--in-place"],
        &["scatter", "a.npy", "--indices", "-", "--values", "-", "--in-place"],
        &["scatter", "a.npy", "--indices", "[[0]]", "--values", "a.npy"],
    ] {
        let output = tslice(dir.path(), args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stderr.starts_with(b"tslice: "));
    }
}

#[test]
fn scatter_names_what_does_not_fit() {
    let scatter = |indices: &'static str| {
        ["scatter", "a.npy", "--indices", indices, "--values", "a.npy", "-o", "out.npy"]
    };
    fails(
        &scatter("[[0], [2], [3]]"),
        1,
        "tslice: indices[2] = [3] does not index into target of shape [3, 4]\n",
    );
    fails(
        &scatter("[[0], [2]]"),
        1,
        "tslice: the values have shape [3, 4], but indices of shape [2, 1] into a target of shape \
         [3, 4] need [2, 4]\n",
    );
    fails(
        &scatter("[[0, 0, 0]]"),
        1,
        "tslice: indices of shape [1, 3] hold tuples of 3 numbers, but target of shape [3, 4] \
         have 2 axes\n",
    );
}

/// What an interrupted run leaves can be completed only if what it reads is still there: a value or
/// indices that lie in the bytes that are written are refused, whatever the name they come by.
#[test]
fn what_is_overwritten_in_place_is_not_read() {
    let refused = "it is also the target: its bytes would be overwritten, and a killed run could not be repeated\n\
                   hint: copy it first, or use -o FILE, with --force to replace the target\n";
    let dir = directory();
    let path = |name: &str| dir.path().join(name);
    fs::hard_link(path("a.npy"), path("same.npy")).unwrap();
    symlink("a.npy", path("link.npy")).unwrap();
    write_npy(&path("p.npy"), &I64, &[3, 1], &integers(&[2, 0, 1]));
    write_npy(&path("numbers.npy"), &I64, &[3, 1], &integers(&[7, 8, 9]));
    let index = r#"{"weight_map": {"x": "two.safetensors", "y": "two.safetensors"}}"#;
    fs::write(path("m.safetensors.index.json"), index).unwrap();
    let before: Vec<_> =
        ["a.npy", "p.npy", "two.safetensors"].map(|it| fs::read(path(it)).unwrap()).into();
    let fails = |args: &[&str], name: &str, stdin: Option<&str>| {
        let mut command = process(dir.path(), &[args, &["--in-place"]].concat());
        if let Some(stdin) = stdin {
            command.stdin(File::open(path(stdin)).unwrap());
        }
        let output = command.output().unwrap();
        assert_eq!(String::from_utf8(output.stderr).unwrap(), format!("tslice: {name}: {refused}"));
        assert_eq!(output.status.code(), Some(1));
    };
    for name in ["a.npy", "same.npy", "link.npy", "./a.npy"] {
        fails(&["assign", "a.npy", "[::-1]", "--value", name], name, None);
        fails(&["assign", name, "[::-1]", "--value", "same.npy"], "same.npy", None);
        fails(&["assign", "a.npy", "[::-1]", "--value", name, "--dry-run"], name, None);
        fails(&["assign", "a.npy", "[::-1]", "--value", name, "--io", "read"], name, None);
        let scatter = ["scatter", "a.npy", "--indices", "[[1],[2],[0]]", "--values", name];
        fails(&scatter, name, None);
    }
    fails(&["assign", "a.npy", "::-1", "--value", "-"], "standard input", Some("same.npy"));
    fails(&["assign", "a.npy", "::-1", "--value", "/dev/stdin"], "/dev/stdin", Some("a.npy"));
    fails(&["scatter", "p.npy", "--values", "numbers.npy", "--indices", "p.npy"], "p.npy", None);
    // a tensor of a checkpoint, one of whose files is the target
    let two = ["assign", "two.safetensors", "-t", "x", "[::-1]", "--value"];
    let from = ["m.safetensors.index.json", "--value-tensor", "x"];
    fails(&[&two[..], &from].concat(), "two.safetensors", None);
    let after: Vec<_> =
        ["a.npy", "p.npy", "two.safetensors"].map(|it| fs::read(path(it)).unwrap()).into();
    assert!(before == after);

    // other bytes of the same file may be read, and nothing may be written
    let copy = ["assign", "two.safetensors", "-t", "y", "[:2]", "--value"];
    for from in ["two.safetensors", "m.safetensors.index.json"] {
        succeeds(dir.path(), &[&copy[..], &[from, "--value-tensor", "x", "--in-place"]].concat());
        assert!(fs::read(path("two.safetensors")).unwrap().ends_with(&[1, 2, 1, 2, 5]));
    }
    let nothing = ["scatter", "a.npy", "--indices", "[[9]]", "--out-of-range", "skip", "--values"];
    write_npy(&path("one.npy"), &F32, &[1, 4], &floats(0..4));
    succeeds(dir.path(), &[&nothing[..], &["one.npy", "--in-place"]].concat());
    // a copy is not overwritten by itself
    let copied = ["assign", "a.npy", "[::-1]", "--value", "same.npy", "--force", "-o"];
    succeeds(dir.path(), &[&copied[..], &["a.npy"]].concat());
    let rows = [2, 1, 0].into_iter().flat_map(|row: u16| row * 4..row * 4 + 4);
    assert_eq!(fs::read(path("a.npy")).unwrap()[128..], floats(rows));
}

#[test]
fn links_are_followed_and_kept() {
    let dir = directory();
    symlink("a.npy", dir.path().join("link.npy")).unwrap();
    succeeds(dir.path(), &["assign", "link.npy", "0", "--value", "row.npy", "--in-place"]);
    assert!(dir.path().join("link.npy").is_symlink());
    let expected = [npy_header(&F32, &[3, 4]), floats((70..74).chain(4..12))].concat();
    assert_eq!(fs::read(dir.path().join("a.npy")).unwrap(), expected);
}

#[test]
fn a_copy_can_replace_its_original_or_go_through_a_pipe() {
    let dir = directory();
    let expected = [npy_header(&F32, &[3, 4]), floats((0..8).chain(70..74))].concat();
    let assign = ["assign", "a.npy", "-1", "--value", "row.npy", "-o"];
    let output = tslice(dir.path(), &[&assign[..], &["-"]].concat()).output().unwrap();
    assert_eq!(output.stdout, expected);
    succeeds(dir.path(), &[&assign[..], &["a.npy", "--force"]].concat());
    assert_eq!(fs::read(dir.path().join("a.npy")).unwrap(), expected);
}

#[test]
fn an_item_that_divides_no_piece_is_repeated_whole() {
    let dir = directory();
    let dtype = DType::Npy(tslice::dtype::NpyType::Bytes(3));
    write_npy(&dir.path().join("long.npy"), &dtype, &[400_000], &vec![0; 1_200_000]);
    write_npy(&dir.path().join("item.npy"), &dtype, &[], b"abc");
    let assign = ["assign", "long.npy", "--value", "item.npy", "--broadcast", "--in-place"];
    succeeds(dir.path(), &assign);
    let written = fs::read(dir.path().join("long.npy")).unwrap();
    assert!(written.ends_with(&b"abc".repeat(400_000)));
}

/// A sparse target of 1 TiB: rows of 1 GiB.
fn sparse(path: &Path) -> u64 {
    let header = npy_header(&U8, &[1 << 10, 1 << 30]);
    fs::write(path, &header).unwrap();
    let file = File::options().write(true).open(path).unwrap();
    file.set_len(header.len() as u64 + (1 << 40)).unwrap();
    header.len() as u64
}

#[test]
fn a_small_slice_of_a_huge_file_touches_nothing_else() {
    let dir = directory();
    let path = dir.path().join("huge.npy");
    let start = sparse(&path);
    // each within the time limit of `tslice`, in which nothing reads a tebibyte
    let row = ["assign", "huge.npy", "[1000, 5:9]", "--value", "bytes.npy", "--in-place"];
    succeeds(dir.path(), &row);
    // a column: a byte of each row
    succeeds(dir.path(), &["assign", "huge.npy", ":, 7", "--fill", "9", "--in-place"]);
    let scatter = ["scatter", "huge.npy", "--indices", "[[3, 3]]", "--values"];
    write_npy(&dir.path().join("one.npy"), &U8, &[1], &[77]);
    succeeds(dir.path(), &[&scatter[..], &["one.npy", "--in-place"]].concat());
    let file = File::open(&path).unwrap();
    let bytes = |row: u64, column: u64| {
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, start + (row << 30) + column).unwrap();
        bytes
    };
    assert_eq!(
        (bytes(1000, 5), bytes(999, 5), bytes(3, 3)),
        ([1, 2, 9, 4], [0, 0, 9, 0], [77, 0, 0, 0])
    );
    assert!(file.metadata().unwrap().blocks() * 512 < 32 << 20);
    assert_eq!(file.metadata().unwrap().len(), start + (1 << 40));
}

#[test]
fn disjoint_slices_are_written_at_one_time() {
    let dir = directory();
    let path = dir.path().join("shared.npy");
    let header = npy_header(&U8, &[500, 1000]);
    fs::write(&path, [&header[..], &[0; 500_000]].concat()).unwrap();
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let args = ["assign", "shared.npy", &format!(":, {writer}::8"), "--in-place", "--fill"];
            process(dir.path(), &[&args[..], &[&(writer + 1).to_string()]].concat())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    let data = fs::read(&path).unwrap().split_off(header.len());
    assert!(data.iter().enumerate().all(|(at, &byte)| usize::from(byte) == at % 1000 % 8 + 1));
}

/// A target of 8 MB of zeros, every second number of which is to become 1; the file afterwards.
fn slow_job(dir: &Path) -> (Vec<u8>, Vec<u8>) {
    let header = npy_header(&I64, &[1000, 1000]);
    let before = [&header[..], &vec![0; 8_000_000]].concat();
    let mut after = before.clone();
    after[header.len()..].iter_mut().step_by(16).for_each(|byte| *byte = 1);
    fs::write(dir.join("t.npy"), &before).unwrap();
    (before, after)
}

#[test]
fn a_killed_copy_leaves_the_old_file_or_the_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let (before, after) = slow_job(dir.path());
    let args = ["assign", "t.npy", ":, ::2", "--fill", "1", "-o", "t.npy", "--force"];
    let mut seen = [0, 0];
    for round in 0..100u64 {
        fs::write(dir.path().join("t.npy"), &before).unwrap();
        let mut child = process(dir.path(), &args).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(round * 700));
        child.kill().unwrap();
        child.wait().unwrap();
        let found = fs::read(dir.path().join("t.npy")).unwrap();
        assert!(found == before || found == after, "round {round}");
        seen[usize::from(found == after)] += 1;
        let litter = fs::read_dir(dir.path()).unwrap().count() - 1;
        assert!(litter <= 1, "at most the name of the instant before the rename");
        for entry in fs::read_dir(dir.path()).unwrap() {
            let name = entry.unwrap().file_name();
            if name != "t.npy" {
                assert!(name.to_string_lossy().starts_with(".tslice-"));
                fs::remove_file(dir.path().join(name)).unwrap();
            }
        }
    }
    assert!(seen[0] > 0, "no round was killed before its end");
}

/// A run is killed at `rounds` moments, and run again, which always ends with `after`. How many kills
/// fell into the writing.
fn kill_and_repeat(dir: &Path, args: &[&str], name: &str, after: &[u8], rounds: u32) -> u32 {
    let path = dir.join(name);
    let before = fs::read(&path).unwrap();
    let began = Instant::now();
    succeeds(dir, args);
    let whole = began.elapsed();
    let mut partial = 0;
    for round in 0..rounds {
        fs::write(&path, &before).unwrap();
        let mut child = process(dir, args).spawn().unwrap();
        std::thread::sleep(whole * round / rounds);
        child.kill().unwrap();
        child.wait().unwrap();
        let found = fs::read(&path).unwrap();
        if found != before && found != after {
            let bytes = found.iter().zip(after).zip(&before);
            assert!(bytes.into_iter().all(|((now, after), before)| now == after || now == before));
            partial += 1;
        }
        succeeds(dir, args);
        assert!(fs::read(&path).unwrap() == after);
    }
    partial
}

#[test]
fn a_killed_change_in_place_is_completed_by_repeating_it() {
    let dir = tempfile::tempdir().unwrap();
    let (_, after) = slow_job(dir.path());
    let args = ["assign", "t.npy", ":, ::2", "--fill", "1", "--in-place"];
    assert!(kill_and_repeat(dir.path(), &args, "t.npy", &after, 40) > 0);
}

/// The value and the indices lie in the file that is changed, in other bytes of it.
#[test]
fn a_killed_change_from_the_same_file_is_completed_by_repeating_it() {
    let dir = tempfile::tempdir().unwrap();
    let rows = 200_000;
    let bytes = 8 * rows as u64;
    let shapes = [("i", [rows as u64, 1]), ("t", [rows as u64, 1]), ("v", [rows as u64, 1])];
    let tensors: Vec<_> =
        shapes.iter().map(|(name, shape)| (*name, &I64, &shape[..], bytes)).collect();
    let header = safetensors::header(&tensors, &Default::default()).unwrap();
    let count = 0..rows as i64;
    let order: Vec<i64> = count.clone().map(|row| row * 7 % rows as i64).collect();
    let values: Vec<i64> = count.clone().map(|row| -row).collect();
    let mut result = vec![0; rows];
    order.iter().zip(&values).for_each(|(&row, &value)| result[row as usize] = value);
    let file = |target: &[i64]| {
        [&header[..], &integers(&order), &integers(target), &integers(&values)].concat()
    };
    fs::write(dir.path().join("c.safetensors"), file(&vec![0; rows])).unwrap();
    let scatter = ["scatter", "c.safetensors", "-t", "t", "--indices", "c.safetensors"];
    let from = ["--indices-tensor", "i", "--values", "c.safetensors", "--values-tensor", "v"];
    let args = [&scatter[..], &from, &["--in-place"]].concat();
    let scattered = kill_and_repeat(dir.path(), &args, "c.safetensors", &file(&result), 20);

    fs::write(dir.path().join("c.safetensors"), file(&vec![0; rows])).unwrap();
    let assign = ["assign", "c.safetensors", "[::-1]", "-t", "t", "--value", "c.safetensors"];
    let args = [&assign[..], &["--value-tensor", "v", "--in-place"]].concat();
    let reversed: Vec<i64> = values.iter().rev().copied().collect();
    let assigned = kill_and_repeat(dir.path(), &args, "c.safetensors", &file(&reversed), 20);
    assert!(scattered + assigned > 0);
}

#[test]
fn a_pipe_that_ends_early_changes_nothing() {
    use std::io::Write;
    let dir = directory();
    let before = fs::read(dir.path().join("a.npy")).unwrap();
    let value = fs::read(dir.path().join("a.npy")).unwrap();
    let mut command = process(dir.path(), &["assign", "a.npy", "--value", "-", "--in-place"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&value[..170]).unwrap();
    let output = child.wait_with_output().unwrap();
    let message = "tslice: standard input: the file is cut short: its header says 176 bytes, \
                   the file has 170\n";
    assert!(String::from_utf8(output.stderr).unwrap().starts_with(message));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fs::read(dir.path().join("a.npy")).unwrap(), before);
}

/// `m.safetensors` with `x` (2 x 2), `y` (2 x 3) and `z` (1), bytes that count up; `v.safetensors` with a
/// column for `y` and for `x`, and `w.safetensors` with one for `x` and one of another length for `y`.
fn checkpoint() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, tensors: &[(&str, &[u64])], first: u8| {
        let sizes =
            tensors.iter().map(|(name, shape)| (*name, &U8, *shape, shape.iter().product::<u64>()));
        let sizes: Vec<_> = sizes.collect();
        let total = sizes.iter().map(|(.., bytes)| *bytes as u8).sum::<u8>();
        let mut file = safetensors::header(&sizes, &Default::default()).unwrap();
        file.extend(first..first + total);
        fs::write(dir.path().join(name), file).unwrap();
    };
    write("m.safetensors", &[("x", &[2, 2]), ("y", &[2, 3]), ("z", &[1])], 1);
    write("v.safetensors", &[("y", &[2]), ("x", &[2])], 50);
    write("w.safetensors", &[("x", &[2]), ("y", &[3])], 50);
    write("z.safetensors", &[("x", &[2]), ("z", &[1])], 50);
    dir
}

/// The bytes of the elements of a file.
fn elements(dir: &Path, name: &str, count: usize) -> Vec<u8> {
    let file = fs::read(dir.join(name)).unwrap();
    file[file.len() - count..].to_vec()
}

#[test]
fn several_tensors_are_changed_at_once() {
    let dir = checkpoint();
    let both = ["-t", "[xy]", "[:, 0]"];
    let run = |args: &[&str], place: &[&str]| {
        succeeds(dir.path(), &[&["assign", "m.safetensors"], &both[..], args, place].concat());
    };
    run(&["--fill", "9"], &["-o", "out.safetensors"]);
    let filled = [9, 2, 9, 4, 9, 6, 7, 9, 9, 10, 11];
    assert_eq!(elements(dir.path(), "out.safetensors", 11), filled);
    assert_eq!(elements(dir.path(), "m.safetensors", 11), (1..12).collect::<Vec<u8>>());
    run(&["--fill", "9"], &["--in-place"]);
    assert_eq!(elements(dir.path(), "m.safetensors", 11), filled);
    // by names, whatever their order
    run(&["--value", "v.safetensors"], &["--in-place"]);
    let by_name = [52, 2, 53, 4, 50, 6, 7, 51, 9, 10, 11];
    assert_eq!(elements(dir.path(), "m.safetensors", 11), by_name);
    // one for all
    run(&["--value", "v.safetensors", "--value-tensor", "y"], &["--in-place"]);
    let one = [50, 2, 51, 4, 50, 6, 7, 51, 9, 10, 11];
    assert_eq!(elements(dir.path(), "m.safetensors", 11), one);
    let says = "would write into m.safetensors, in place: 2 tensors, 4 bytes of elements (4 bytes), \
                format safetensors\n";
    let dry =
        [&["assign", "m.safetensors"], &both[..], &["--fill", "0", "--in-place", "-n"]].concat();
    tslice(dir.path(), &dry).assert().success().stdout(says);
    let scatter = ["scatter", "m.safetensors", "-t", "[xy]", "--indices", "[[1, 1], [0, 0]]"];
    let values = ["--values", "v.safetensors", "--in-place"];
    succeeds(dir.path(), &[&scatter[..], &values].concat());
    let scattered = [53, 2, 51, 52, 51, 6, 7, 51, 50, 10, 11];
    assert_eq!(elements(dir.path(), "m.safetensors", 11), scattered);
}

#[test]
fn all_tensors_are_checked_before_the_first_is_changed() {
    let dir = checkpoint();
    let refused = |args: &[&str], message: &str| {
        let args = [&["assign", "m.safetensors", "--in-place"], args].concat();
        tslice(dir.path(), &args).assert().code(1).stderr(message.to_owned());
        assert_eq!(elements(dir.path(), "m.safetensors", 11), (1..12).collect::<Vec<u8>>());
    };
    refused(
        &["-t", "[xy]", "[:, 0]", "--value", "w.safetensors"],
        "tslice: w.safetensors: tensor \"y\": the value has shape (3,), the slice has shape (2,)\n",
    );
    refused(
        &["-t", "[xy]", "[:, 0]", "--value", "z.safetensors"],
        "tslice: z.safetensors: no tensor is named \"y\"\nhint: it holds x, z\n",
    );
    refused(
        &["-t", "*", "[:, 0]", "--fill", "0"],
        "tslice: tensor \"z\": too many indices for array: array is 1-dimensional, but 2 were \
         indexed\n  [:, 0]\n      ^\n",
    );
    refused(
        &["-t", "[xy]", "--value", "m.safetensors"],
        "tslice: m.safetensors: tensor \"x\": it is also the target: its bytes would be \
         overwritten, and a killed run could not be repeated\n\
         hint: copy it first, or use -o FILE, with --force to replace the target\n",
    );
}

#[test]
fn shards_are_changed_in_place() {
    let dir = checkpoint();
    let shards = dir.path().join("ckpt");
    fs::create_dir(&shards).unwrap();
    fs::rename(dir.path().join("m.safetensors"), shards.join("1.safetensors")).unwrap();
    let mut other =
        safetensors::header(&[("head", &U8, &[2][..], 2)], &Default::default()).unwrap();
    other.extend([7, 8]);
    fs::write(shards.join("2.safetensors"), &other).unwrap();
    let map = r#"{"weight_map": {"x": "1.safetensors", "y": "1.safetensors", "z": "1.safetensors", "head": "2.safetensors"}}"#;
    fs::write(shards.join("model.safetensors.index.json"), map).unwrap();
    let fill = ["--fill", "9", "--in-place"];
    succeeds(
        dir.path(),
        &[&["assign", "ckpt", "-t", "x", "-t", "head", "[0]"], &fill[..]].concat(),
    );
    assert_eq!(elements(&shards, "1.safetensors", 11), [9, 9, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    assert_eq!(elements(&shards, "2.safetensors", 2), [9, 8]);
    let index = "ckpt/model.safetensors.index.json";
    // a tensor of the second shard that does not fit leaves the first one alone
    let refused = [&["assign", index, "-t", "x", "-t", "head", "[1, 1]"], &fill[..]].concat();
    tslice(dir.path(), &refused).assert().code(1);
    assert_eq!(elements(&shards, "1.safetensors", 11), [9, 9, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    succeeds(dir.path(), &[&["assign", index, "-t", "z"], &fill[..]].concat());
    assert_eq!(elements(&shards, "1.safetensors", 1), [9]);
    // one file is no copy of several
    let copy = ["assign", index, "-t", "z", "--fill", "9", "-o", "out.safetensors"];
    tslice(dir.path(), &copy).assert().code(1);

    // a folder is: shards, index and small files, of which the original keeps what it has
    fs::write(shards.join("config.json"), "{}").unwrap();
    let before = |name: &str| fs::read(shards.join(name)).unwrap();
    let originals = [before("1.safetensors"), before("2.safetensors")];
    let change = ["assign", "ckpt", "-t", "y", "-t", "head", "[::2]", "--fill", "5"];
    succeeds(dir.path(), &[&change[..], &["-o", "copy/"]].concat());
    assert_eq!([before("1.safetensors"), before("2.safetensors")], originals);
    let copy = dir.path().join("copy");
    let changed: Vec<u8> = elements(&shards, "1.safetensors", 11);
    let copied = elements(&copy, "1.safetensors", 11);
    assert_eq!((&copied[..4], copied[10]), (&changed[..4], changed[10]));
    // in the order of x, y, z
    assert_eq!(copied[4..10], [5, 5, 5, 8, 9, 10]);
    assert_eq!(elements(&copy, "2.safetensors", 2), [5, 8]);
    assert_eq!(fs::read(copy.join("config.json")).unwrap(), b"{}");
    let index = fs::read_to_string(copy.join("model.safetensors.index.json")).unwrap();
    assert!(
        index.contains(r#""head":"2.safetensors""#) || index.contains(r#""head": "2.safetensors""#)
    );
    // a folder that is there is kept, and replaced as a whole
    let again = [&change[..], &["-o", "copy/"]].concat();
    tslice(dir.path(), &again).assert().code(1);
    succeeds(dir.path(), &[&again[..], &["--force"]].concat());
    // onto itself
    succeeds(dir.path(), &[&change[..], &["-o", "ckpt", "--force"]].concat());
    assert_eq!(elements(&shards, "1.safetensors", 11), copied);
}

#[test]
fn a_copy_of_a_checkpoint_of_one_file_is_a_folder() {
    let dir = checkpoint();
    let folder = dir.path().join("one");
    fs::create_dir(&folder).unwrap();
    fs::rename(dir.path().join("m.safetensors"), folder.join("model.safetensors")).unwrap();
    succeeds(dir.path(), &["assign", "one", "-t", "z", "--fill", "9", "-o", "two/"]);
    assert_eq!(elements(&dir.path().join("two"), "model.safetensors", 1), [9]);
    let others = elements(&dir.path().join("two"), "model.safetensors", 11);
    assert_eq!(others[..10], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
}
