//! Lists and masks in files, in every command that takes them. What they select of random tensors is
//! held against NumPy in `tests/python/lists_differential.py`.

use std::fs;

use tempfile::TempDir;
use tslice::dtype::{DType, Endian, Scalar};

use crate::inputs::{F32, I64, U8, floats, integers, npy_header, write_npy};
use crate::program::{bash, tslice};

/// A folder with `a.npy` (3 x 4, bytes that count up), `rows.npy` ([2, 0]), and `wrong.npy` ([1, 3]).
fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    write_npy(&dir.path().join("a.npy"), &U8, &[3, 4], &(0..12).collect::<Vec<u8>>());
    for (name, values) in [("rows.npy", [2i64, 0]), ("wrong.npy", [1, 3])] {
        let values: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        write_npy(&dir.path().join(name), &I64, &[2], &values);
    }
    dir
}

fn fails(dir: &TempDir, args: &[&str], message: &str) {
    tslice(dir.path(), args).assert().code(1).stdout("").stderr(message.to_owned());
}

/// NumPy looks at one list after the other, whether typed or in a file.
#[test]
fn the_first_bad_list_is_reported() {
    let dir = folder();
    let file = "tslice: wrong.npy: at [1]: index 3 is out of bounds for axis 0 with size 3\n  \
                [@wrong.npy, [0, 9]]\n   ^^^^^^^^^^\n";
    let typed = "tslice: index 9 is out of bounds for axis 0 with size 3\n  \
                 [[0, 9], @wrong.npy]\n       ^\n";
    for command in [&["a.npy"][..], &["a.npy", "-n"], &["view", "a.npy"], &["explain", "a.npy"]] {
        fails(&dir, &[command, &["[@wrong.npy, [0, 9]]"]].concat(), file);
        fails(&dir, &[command, &["[[0, 9], @wrong.npy]"]].concat(), typed);
    }
    for (command, rest) in [
        (&["concat", "a.npy", "a.npy", "--index"][..], &[][..]),
        (&["stack", "a.npy", "a.npy", "--index"], &["-n"]),
        (&["split", "a.npy"], &["--parts", "2", "-o", "out-{}.npy"]),
    ] {
        fails(&dir, &[command, &["[@wrong.npy, [0, 9]]"], rest].concat(), file);
        let typed = typed.replace("tslice: ", "tslice: a.npy: ");
        fails(&dir, &[command, &["[[0, 9], @wrong.npy]"], rest].concat(), &typed);
    }
    // on an axis without positions too
    write_npy(&dir.path().join("empty.npy"), &U8, &[0, 0], &[]);
    let message = "tslice: rows.npy: at [0]: index 2 is out of bounds for axis 0 with size 0\n  \
                   [@rows.npy, [0, 0]]\n   ^^^^^^^^^\n";
    fails(&dir, &["empty.npy", "[@rows.npy, [0, 0]]"], message);
}

/// From NumPy 2.4: `a[np.array([2**64 - 1], np.uint64)]` is `a[[-1]]`, since index arrays are cast to
/// int64; `a[np.array(2**64 - 1, np.uint64)]` is an error.
#[test]
fn unsigned_numbers_are_cast_as_in_numpy() {
    let dir = folder();
    let write = |name: &str, shape: &[u64], value: u64| {
        let dtype = DType::Scalar(Scalar::U64, Endian::Big);
        write_npy(&dir.path().join(name), &dtype, shape, &value.to_be_bytes());
    };
    write("last.npy", &[1], u64::MAX);
    let last = [&npy_header(&U8, &[1, 4]), &[8u8, 9, 10, 11][..]].concat();
    tslice(dir.path(), &["a.npy", "[@last.npy]"]).assert().success().stdout(last);
    write("low.npy", &[1], 1 << 63);
    let message = "tslice: low.npy: at [0]: index -9223372036854775808 is out of bounds for axis 0 \
                   with size 3\n  [@low.npy]\n   ^^^^^^^^\n";
    fails(&dir, &["a.npy", "[@low.npy]"], message);
    write("number.npy", &[], u64::MAX);
    let message = "tslice: number.npy: integer index 18446744073709551615 does not fit into 64 bits\n  \
                   [@number.npy]\n   ^^^^^^^^^^^\n";
    fails(&dir, &["a.npy", "[@number.npy]"], message);
}

#[test]
fn joins_and_splits_check_positions_before_they_write() {
    let dir = folder();
    let message = "tslice: wrong.npy: at [1]: index 3 is out of bounds for axis 0 with size 3\n  \
                   [@wrong.npy]\n   ^^^^^^^^^^\n";
    for args in [
        &["concat", "a.npy", "a.npy", "--index", "[@wrong.npy]"][..],
        &["stack", "a.npy", "a.npy", "--index", "[@wrong.npy]"],
    ] {
        fails(&dir, args, message);
        fails(&dir, &[args, &["-n"]].concat(), message);
        fails(&dir, &[args, &["-n", "-o", "out.npy"]].concat(), message);
    }
    let split = ["split", "a.npy", "[@wrong.npy]", "--parts", "2", "-o", "out-{}.npy"];
    fails(&dir, &split, message);
    fails(&dir, &[&split[..], &["-n"]].concat(), message);
    let left = fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left, 3, "nothing was written");
}

#[test]
fn a_join_does_not_overwrite_its_lists() {
    let dir = folder();
    let before = fs::read(dir.path().join("rows.npy")).unwrap();
    for line in [
        "tslice concat a.npy a.npy --index '[@rows.npy]' 1<> rows.npy",
        "tslice stack a.npy a.npy --index '[@rows.npy]' -o /dev/fd/7 7>> rows.npy",
        "tslice concat a.npy a.npy --index '[@rows.npy]' -n 1<> rows.npy",
    ] {
        let output = bash(&dir, line).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.starts_with("tslice: rows.npy: input file is output file\n"), "{said}");
        assert_eq!(output.status.code(), Some(1), "{line}");
        assert_eq!(fs::read(dir.path().join("rows.npy")).unwrap(), before, "{line}");
    }
}

#[test]
fn a_comparison_takes_lists_in_files() {
    let dir = folder();
    let mut other: Vec<u8> = (0..12).collect();
    other[5] = 0;
    write_npy(&dir.path().join("b.npy"), &U8, &[3, 4], &other);
    let diff = |index: &str| tslice(dir.path(), &["diff", "a.npy", "b.npy", index]).assert();
    diff("[@rows.npy]").success();
    diff("[@rows.npy, :2]").success();
    diff("[[1, 0], @rows.npy]").success();
    diff("[:, @wrong.npy]").code(1);
    let message = "tslice: wrong.npy: at [1]: index 3 is out of bounds for axis 0 with size 3\n  \
                   [@wrong.npy]\n   ^^^^^^^^^^\n";
    diff("[@wrong.npy]").code(2).stderr(message);
}

/// NumPy 2.4.6: np.zeros((3, 4))[np.array([], int), np.array(9)] is an IndexError, though a list [9]
/// there is not looked at.
#[test]
fn an_array_without_axes_in_a_file_is_an_integer() {
    let dir = tempfile::tempdir().unwrap();
    write_npy(&dir.path().join("m.npy"), &F32, &[3, 4], &floats(0..12));
    for (name, value) in [("one", 1), ("nine", 9), ("last", -1)] {
        write_npy(&dir.path().join(format!("{name}.npy")), &I64, &[], &integers(&[value]));
    }
    for (index, position) in
        [("[[], @nine.npy]", "axis 1 with size 4"), ("@nine.npy, []", "axis 0 with size 3")]
    {
        let output = bash(&dir, &format!("tslice m.npy '{index}' -o o.npy")).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        let expected = format!("tslice: nine.npy: index 9 is out of bounds for {position}\n");
        assert!(told.starts_with(&expected), "{told}");
        assert_eq!(output.status.code(), Some(1));
    }
    let same = "cmp <(tslice m.npy '[@one.npy, :, None]') <(tslice m.npy '[1, :, None]') \
                && cmp <(tslice m.npy '[@last.npy]' --keepdims) <(tslice m.npy '[-1]' --keepdims) \
                && cmp <(tslice assign m.npy '[@one.npy, 1:]' --fill 7 -o -) <(tslice assign m.npy '[1, 1:]' --fill 7 -o -)";
    let output = bash(&dir, same).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// `~@FILE` is true where the mask is false, wherever an index is taken.
#[test]
fn the_opposite_of_a_mask_is_taken() {
    let dir = folder();
    let bool8 = DType::Scalar(Scalar::Bool, Endian::Little);
    write_npy(&dir.path().join("mask.npy"), &bool8, &[3], &[1, 0, 1]);
    write_npy(&dir.path().join("few.npy"), &bool8, &[4], &[0, 1, 0, 0]);
    let taken = |index: &[&str]| {
        let args = [&["a.npy"], index, &["--to", "raw"]].concat();
        tslice(dir.path(), &args).assert().success().get_output().stdout.clone()
    };
    assert_eq!(taken(&["[~@mask.npy]"]), [4, 5, 6, 7]);
    assert_eq!(taken(&["~ @mask.npy, ~@few.npy"]), [4, 6, 7]);
    assert_eq!(taken(&["[@mask.npy, ~@'few.npy']", "--outer"]), [0, 2, 3, 8, 10, 11]);
    let fill = ["assign", "a.npy", "[~@mask.npy, 0]", "--fill", "9", "-o", "b.npy"];
    tslice(dir.path(), &fill).assert().success();
    let column = tslice(dir.path(), &["b.npy", "[:, 0]", "--to", "raw"]).assert().success();
    assert_eq!(column.get_output().stdout, [0, 9, 8]);
    // parts of a mask and of its opposite are parts of two jobs
    let part = |index: &str, part: &str| {
        tslice(dir.path(), &["a.npy", index, "-o", "p.npy", "--part", part]).assert()
    };
    write_npy(&dir.path().join("half.npy"), &bool8, &[4], &[0, 1, 1, 0]);
    part("[:, @half.npy]", "0/2").success();
    part("[:, ~@half.npy]", "1/2").code(1);
    for join in ["concat", "stack"] {
        let part = |index: &str, part: &str| {
            let args = [join, "a.npy", "a.npy", "--index", index, "-o", join, "--to", "npy"];
            tslice(dir.path(), &[&args[..], &["--part", part]].concat()).assert()
        };
        part("[:, @half.npy]", "0/2").success();
        part("[:, ~@half.npy]", "1/2").code(1);
    }
}
