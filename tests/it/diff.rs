//! `tslice diff`: its exit statuses and what it says. Random pairs are compared with live NumPy in
//! `tests/python/diff_differential.py`.

use std::fs;
use std::path::Path;

use safetensors::Dtype;
use safetensors::tensor::TensorView;
use tempfile::TempDir;

use crate::program::tslice;

/// A tensor: its name, its shape, its values.
type TensorInfo<'a> = (&'a str, Vec<usize>, Vec<f32>);

fn write(path: &Path, tensors: &[TensorInfo<'_>]) {
    let bytes = |values: &[f32]| values.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>();
    let data: Vec<Vec<u8>> = tensors.iter().map(|(_, _, values)| bytes(values)).collect();
    let views = tensors.iter().zip(&data).map(|((name, shape, _), data)| {
        (*name, TensorView::new(Dtype::F32, shape.clone(), data).unwrap())
    });
    fs::write(path, safetensors::serialize(views, None).unwrap()).unwrap();
}

/// Two checkpoints: `weight` differs in two places, `bias` in its shape, and each has a tensor of
/// its own.
fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let weight = vec![1.0, 2.0, f32::NAN, -0.0, 0.5, 100.0];
    let mut other = weight.clone();
    (other[1], other[3], other[4]) = (2.25, 0.0, 0.75);
    let same = ("same", vec![2], vec![1.0, f32::NAN]);
    let mine = ("mine", vec![], vec![7.0]);
    let a = [("weight", vec![2, 3], weight), ("bias", vec![2], vec![0.0; 2]), same.clone(), mine];
    write(&dir.path().join("a.safetensors"), &a);
    let theirs = ("theirs", vec![], vec![7.0]);
    let b = [("weight", vec![2, 3], other), ("bias", vec![1, 2], vec![0.0; 2]), same, theirs];
    write(&dir.path().join("b.safetensors"), &b);
    dir
}

#[track_caller]
fn says(args: &[&str], status: i32, expected: &str) {
    let dir = folder();
    let expected = expected.to_owned();
    tslice(dir.path(), args).assert().code(status).stdout(expected).stderr("");
}

#[test]
fn all_that_differs_is_said() {
    let expected = "\
only in a.safetensors: mine
only in b.safetensors: theirs
bias: shape (2,) and (1, 2)
weight: 2 of 6 elements differ
  first at [0, 1]: 2.0 and 2.25
  largest absolute difference 0.25 at [0, 1]: 2.0 and 2.25
  largest relative difference 0.3333333333333333 at [1, 1]: 0.5 and 0.75
";
    says(&["diff", "a.safetensors", "b.safetensors"], 1, expected);
}

#[test]
fn what_is_the_same_is_not_spoken_of() {
    says(&["diff", "a.safetensors", "a.safetensors"], 0, "");
    says(&["diff", "a.safetensors", "b.safetensors", "-t", "same"], 0, "");
    says(&["diff", "a.safetensors", "b.safetensors", "-t", "weight", "1, ::2"], 0, "");
    let tolerant = ["diff", "a.safetensors", "b.safetensors", "-t", "weight", "--atol", "0.25"];
    says(&[&tolerant[..], &["--equal-nan"]].concat(), 0, "");
    // np.allclose's NaN is equal to none, and its tolerance is relative to the second file
    let expected = "\
weight: 1 of 6 elements differs
  first at [0, 2]: nan and nan
  1 with nan or inf, first at [0, 2]: nan and nan (--equal-nan takes them for equal)
";
    says(&tolerant, 1, expected);
    let relative =
        ["diff", "a.safetensors", "b.safetensors", "-t", "weight", "--equal-nan", "--rtol"];
    says(&[&relative[..], &["0.3334"]].concat(), 0, "");
    let swapped =
        ["diff", "b.safetensors", "a.safetensors", "-t", "weight", "--equal-nan", "--rtol"];
    says(
        &[&swapped[..], &["0.49"], &["1"]].concat(),
        1,
        "\
weight: 1 of 3 elements differs
  first at [1]: 0.75 and 0.5
  largest absolute difference 0.25 at [1]: 0.75 and 0.5
  largest relative difference 0.5 at [1]: 0.75 and 0.5
",
    );
}

#[test]
fn containers_and_orders_make_no_difference() {
    let dir = folder();
    for (flags, to) in [
        (&["--order", "F"][..], "w.npy"),
        (&["--deflate"], "w.npz"),
        (&[], "other.safetensors"),
        (&["--keepdims"], "w.npz"),
    ] {
        let convert = [&["a.safetensors", "-t", "weight", "-f", "-o", to][..], flags].concat();
        tslice(dir.path(), &convert).assert().success();
        let compare = ["diff", "a.safetensors", to, "-t", "weight"];
        tslice(dir.path(), &compare).assert().success().stdout("");
        tslice(dir.path(), &["diff", to, "b.safetensors", "-t", "weight"]).assert().code(1);
        if to == "w.npy" {
            let piped = fs::read(dir.path().join(to)).unwrap();
            let compare = ["diff", "a.safetensors", "-", "-t", "weight"];
            tslice(dir.path(), &compare).write_stdin(piped).assert().success();
        }
    }
}

#[test]
fn several_tensors_come_through_a_pipe_too() {
    let dir = folder();
    let piped = fs::read(dir.path().join("b.safetensors")).unwrap();
    let pairs = ["-t", "weight", "-t", "same"];
    for (files, status) in [(["a.safetensors", "-"], 1), (["-", "b.safetensors"], 0)] {
        let args = [&["diff"][..], &files, &pairs].concat();
        tslice(dir.path(), &args).write_stdin(piped.clone()).assert().code(status);
    }
}

#[test]
fn a_bfloat16_is_the_same_as_what_npy_makes_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let data = [0x80, 0x3f, 0xc0, 0x7f];
    let view = TensorView::new(Dtype::BF16, vec![2], &data).unwrap();
    let file = safetensors::serialize([("x", view)], None).unwrap();
    fs::write(dir.path().join("x.safetensors"), file).unwrap();
    tslice(dir.path(), &["x.safetensors", "-o", "x.npy"]).assert().success();
    tslice(dir.path(), &["diff", "x.safetensors", "x.npy"]).assert().success();
    let mut changed = fs::read(dir.path().join("x.npy")).unwrap();
    let last = changed.len() - 4;
    changed[last] = 0xc0;
    fs::write(dir.path().join("y.npy"), changed).unwrap();
    let expected = "\
x: 1 of 2 elements differs
  first at [0]: 1 and 1.5
  largest absolute difference 0.5 at [0]: 1 and 1.5
  largest relative difference 0.3333333333333333 at [0]: 1 and 1.5
";
    tslice(dir.path(), &["diff", "x.safetensors", "y.npy"]).assert().code(1).stdout(expected);
}

#[test]
fn trouble_has_a_status_of_its_own() {
    let dir = folder();
    let bytes = fs::read(dir.path().join("a.safetensors")).unwrap();
    fs::write(dir.path().join("cut.safetensors"), &bytes[..bytes.len() - 1]).unwrap();
    for args in [
        &["diff", "a.safetensors", "none.npy"][..],
        &["diff", "cut.safetensors", "a.safetensors"],
        &["diff", "a.safetensors", "b.safetensors", "-t", "weight", "7"],
        &["diff", "a.safetensors", "b.safetensors", "-t", "absent"],
        &["diff", "a.safetensors", "b.safetensors", "--atol", "-1"],
        &["diff", "-", "-"],
        &["diff", "a.safetensors"],
    ] {
        let failed = tslice(dir.path(), args).assert().code(2).stdout("");
        let message = String::from_utf8(failed.get_output().stderr.clone()).unwrap();
        assert!(message.starts_with("tslice: "), "{args:?}: {message}");
    }
}

#[test]
fn programs_read_json() {
    let dir = folder();
    let args = ["diff", "a.safetensors", "b.safetensors", "--json"];
    let done = tslice(dir.path(), &args).output().unwrap();
    let found: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(done.status.code(), Some(1));
    assert_eq!(found["same"], false);
    assert_eq!(found["only_in_b"], serde_json::json!(["theirs"]));
    let weight = found["tensors"].as_array().unwrap().iter().find(|it| it["name"] == "weight");
    assert_eq!(weight.unwrap()["differing"], 2);
    assert_eq!(weight.unwrap()["largest_absolute_difference"]["place"], serde_json::json!([0, 1]));
}

/// Two files with tensors `0.w` to `N.w` of 2 elements: float32, and what bfloat16 makes of them, as
/// `x.0.w` and so on.
fn cast_copies(count: usize) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..count).map(|number| format!("{number}.w")).collect();
    let tensors: Vec<TensorInfo<'_>> =
        names.iter().map(|name| (name.as_str(), vec![2], vec![1.0, 1.001])).collect();
    write(&dir.path().join("f32.safetensors"), &tensors);
    let cast = ["f32.safetensors", "-t", "*", "--cast", "bfloat16", "--rename", "*=x.*"];
    tslice(dir.path(), &[&cast[..], &["-o", "bf16.safetensors"]].concat()).assert().success();
    dir
}

#[test]
fn tolerances_compare_the_values_of_different_dtypes() {
    let dir = cast_copies(1);
    let says = |args: &[&str], status: i32, expected: &'static str| {
        let files = ["diff", "f32.safetensors", "bf16.safetensors"];
        tslice(dir.path(), &[&files[..], args].concat()).assert().code(status).stdout(expected);
    };
    let renamed = ["--rename", "*=x.*"];
    let dtypes = "x.0.w: dtype float32 and bfloat16\n";
    says(&renamed, 1, dtypes);
    says(&[&renamed[..], &["--rtol", "0.01"]].concat(), 0, "");
    says(&[&renamed[..], &["--rtol", "0.01", "--dtypes"]].concat(), 1, dtypes);
    says(&["--rename", "0.w=x.0.w", "-t", "x.*", "--atol", "0.0011"], 0, "");
    let expected = "\
x.0.w: 1 of 2 elements differs
  first at [1]: 1.001 and 1
  largest absolute difference 0.001000046730041504 at [1]: 1.001 and 1
  largest relative difference 0.001000046730041504 at [1]: 1.001 and 1
";
    says(&[&renamed[..], &["--atol", "0"]].concat(), 1, expected);
    let apart = "only in f32.safetensors: 0.w\nonly in bf16.safetensors: x.0.w\n";
    says(&["--rtol", "0.01"], 1, apart);
}

/// A double has no 2^53 + 1, and all integers of 64 bits are told apart.
#[test]
fn values_of_different_dtypes_are_exact() {
    let dir = tempfile::tempdir().unwrap();
    let large = (1i64 << 53) + 1;
    crate::inputs::write_npy(
        &dir.path().join("i.npy"),
        &crate::inputs::I64,
        &[1],
        &large.to_le_bytes(),
    );
    let double = tslice::formats::npy::parse_dtype("<f8").unwrap();
    let below = (large - 1) as f64;
    crate::inputs::write_npy(&dir.path().join("f.npy"), &double, &[1], &below.to_le_bytes());
    let unsigned = tslice::formats::npy::parse_dtype(">u8").unwrap();
    let bytes = (large as u64).to_be_bytes();
    crate::inputs::write_npy(&dir.path().join("u.npy"), &unsigned, &[1], &bytes);
    for (files, atol, status) in [
        (["i.npy", "f.npy"], "0.9", 1),
        (["f.npy", "i.npy"], "1", 0),
        (["u.npy", "f.npy"], "0", 1),
        (["u.npy", "i.npy"], "0", 0),
    ] {
        let args = [&["diff"], &files[..], &["--atol", atol]].concat();
        tslice(dir.path(), &args).assert().code(status).stderr("");
    }
}

#[test]
fn many_tensors_that_differ_are_a_table() {
    let dir = cast_copies(5);
    let args = ["diff", "f32.safetensors", "bf16.safetensors", "--rename", "*=x.*", "--atol", "0"];
    let output = tslice(dir.path(), &args).assert().code(1).get_output().stdout.clone();
    let text = String::from_utf8(output).unwrap();
    let lines: Vec<Vec<&str>> =
        text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["name", "differ", "of", "largest", "at", "a", "b", "relative"]);
    let difference = "0.00100005";
    for (number, line) in lines[1..].iter().enumerate() {
        let name = format!("x.{number}.w");
        assert_eq!(*line, [&name, "1", "2", difference, "[1]", "1.001", "1", difference]);
    }
    assert_eq!(lines.len(), 6);
}

/// Counted and placed beside the largest difference of finite numbers, which they do not hide.
#[test]
fn nan_and_infinities_that_differ_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let values: Vec<f32> = (0..6u8).map(f32::from).collect();
    let mut other = values.clone();
    (other[0], other[4], other[5]) = (1e-7, f32::NAN, f32::NEG_INFINITY);
    let files = |count: usize| {
        let names: Vec<String> = (0..count).map(|number| format!("w{number}")).collect();
        for (file, values) in [("a.safetensors", &values), ("b.safetensors", &other)] {
            let of = |name| (name, vec![2, 3], values.clone());
            let tensors: Vec<TensorInfo<'_>> = names.iter().map(String::as_str).map(of).collect();
            write(&dir.path().join(file), &tensors);
        }
    };
    let says = |args: &[&str]| {
        let args = [&["diff", "a.safetensors", "b.safetensors"], args].concat();
        let output = tslice(dir.path(), &args).assert().code(1).stderr("").get_output().clone();
        String::from_utf8(output.stdout).unwrap()
    };
    files(1);
    let expected = "\
w0: 3 of 6 elements differ
  first at [0, 0]: 0.0 and 1e-07
  2 with nan or inf, first at [1, 1]: 4.0 and nan
  largest absolute difference 1.0000000116860974e-07 at [0, 0]: 0.0 and 1e-07
  largest relative difference 1 at [0, 0]: 0.0 and 1e-07
";
    assert_eq!(says(&[]), expected);
    let found: serde_json::Value = serde_json::from_str(&says(&["--json"])).unwrap();
    let told = serde_json::json!({ "differing": 2, "place": [1, 1], "values": ["4.0", "nan"] });
    assert_eq!(found["tensors"][0]["nan_or_inf"], told);
    let largest = &found["tensors"][0]["largest_absolute_difference"];
    assert_eq!(largest["difference"], serde_json::json!(f64::from(1e-7f32)));
    files(5);
    let text = says(&[]);
    let lines: Vec<Vec<&str>> =
        text.lines().map(|line| line.split_whitespace().collect()).collect();
    let heading =
        ["name", "differ", "of", "nan/inf", "first", "largest", "at", "a", "b", "relative"];
    assert_eq!(lines[0], heading);
    let row = ["3", "6", "2", "[1,", "1]", "1e-07", "[0,", "0]", "0.0", "1e-07", "1"];
    assert_eq!(lines[1][1..], row);
    assert!(text.lines().all(|line| line.len() < 80), "{text}");
}

/// The digits of a table do not widen it.
#[test]
fn small_differences_have_exponents() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..5).map(|number| format!("w{number}")).collect();
    for (file, value) in [("a.safetensors", 0.0), ("b.safetensors", 1.1e-38f32)] {
        let of = |name| (name, vec![1], vec![value]);
        let tensors: Vec<TensorInfo<'_>> = names.iter().map(String::as_str).map(of).collect();
        write(&dir.path().join(file), &tensors);
    }
    let output = tslice(dir.path(), &["diff", "a.safetensors", "b.safetensors"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().nth(1), Some("w0         1   1  1.1e-38  [0]  0.0  1.1e-38         1"));
}

/// Of elements of more than 64 KiB, only the beginnings are shown.
#[test]
fn nan_is_found_in_large_elements() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, changes: &[(usize, f32)]| {
        let mut numbers = vec![1f32; 3 * 100_000];
        changes.iter().for_each(|&(at, number)| numbers[at] = number);
        let header =
            "{'descr': [('x', '<f4', (100000,))], 'fortran_order': False, 'shape': (3,), }";
        let mut bytes =
            [b"\x93NUMPY\x01\x00\x76\x00", format!("{header:<117}\n").as_bytes()].concat();
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        fs::write(dir.path().join(name), bytes).unwrap();
    };
    write("a.npy", &[(200_000, f32::INFINITY)]);
    write("b.npy", &[(99_999, 2.0), (200_000, 3.0), (299_999, f32::NAN)]);
    let output = tslice(dir.path(), &["diff", "a.npy", "b.npy"]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "2 of 3 elements differ");
    assert!(lines[1].starts_with("  first at [0]: ([1.0, 1.0,"), "{said}");
    assert!(lines[2].starts_with("  1 with nan or inf, first at [2]: ([inf, 1.0,"), "{said}");
    assert_eq!((lines.len(), output.status.code()), (3, Some(1)), "{said}");
    let output = tslice(dir.path(), &["diff", "a.npy", "b.npy", "--json"]).output().unwrap();
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = &said["tensors"][0]["nan_or_inf"];
    assert_eq!((&found["differing"], &found["place"]), (&1.into(), &serde_json::json!([2])));
    tslice(dir.path(), &["diff", "b.npy", "b.npy"]).assert().success().stdout("");
}

/// Elements that share bytes are compared by these; the others as ever.
#[test]
fn four_bit_floats_are_compared_by_their_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, last: u8| {
        let halves = [1, 2, 3, last];
        let four = TensorView::new(Dtype::F4, vec![2, 4], &halves).unwrap();
        let byte = [last];
        let one = TensorView::new(Dtype::U8, vec![1], &byte).unwrap();
        let file = safetensors::serialize([("w", four), ("x", one)], None).unwrap();
        fs::write(dir.path().join(name), file).unwrap();
    };
    write("a.safetensors", 4);
    write("b.safetensors", 5);
    tslice(dir.path(), &["diff", "a.safetensors", "a.safetensors"]).assert().success();
    let expected = "\
x: 1 of 1 element differs
  first at [0]: 4 and 5
  largest absolute difference 1 at [0]: 4 and 5
  largest relative difference 0.2 at [0]: 4 and 5
w: 1 of 4 elements differs
  first at [3]: b'\\x04' and b'\\x05'
";
    let args = ["diff", "a.safetensors", "b.safetensors"];
    let found = tslice(dir.path(), &args).assert().code(1);
    let text = String::from_utf8(found.get_output().stdout.clone()).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let mut expected: Vec<&str> = expected.lines().collect();
    // the writer of the package sorts by dtype
    lines.sort_unstable();
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

/// Names as sha256sum writes them, and those of several files.
#[test]
fn digests_name_files_and_escape_names() {
    let dir = tempfile::tempdir().unwrap();
    let data = [1];
    let views = ["-", "a\nb", "a\\nb"]
        .map(|name| (name, TensorView::new(Dtype::U8, vec![1], &data).unwrap()));
    let file = safetensors::serialize(views, None).unwrap();
    fs::write(dir.path().join("n.safetensors"), file).unwrap();
    let name = ["n.safetensors", "-t", "-", "-o", "a.npy"];
    tslice(dir.path(), &name).assert().success();
    let list = |args: &[&str]| {
        let run = tslice(dir.path(), &[&["info", "--digest"], args].concat()).assert().success();
        String::from_utf8(run.get_output().stdout.clone()).unwrap()
    };
    let names = |text: &str| -> Vec<String> {
        let mut names: Vec<String> = text
            .lines()
            .map(|line| {
                line[..1].replace(|c: char| c != '\\', "") + line.split_once("  ").unwrap().1
            })
            .collect();
        names.sort_unstable();
        names
    };
    let one = list(&["n.safetensors"]);
    assert_eq!(names(&one), ["./-", "\\a\\\\nb", "\\a\\nb"]);
    assert_eq!(names(&list(&["a.npy"])), ["-"]);
    let several = list(&["a.npy", "n.safetensors"]);
    let of = ["\\n.safetensors#a\\\\nb", "\\n.safetensors#a\\nb", "a.npy", "n.safetensors#-"];
    assert_eq!(names(&several), of);
    for (text, files) in [(one, &["n.safetensors"][..]), (several, &["a.npy", "n.safetensors"])] {
        fs::write(dir.path().join("list"), text).unwrap();
        let args = [&["info", "--check", "list"], files].concat();
        tslice(dir.path(), &args).assert().success().stdout("");
    }
    let args = ["info", "a.npy", "--check", "list"];
    let run = tslice(dir.path(), &args).assert().code(1);
    let text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    assert!(text.contains("a.npy: missing\n") && text.ends_with("-: extra\n"), "{text}");
}
