//! `tslice gather` through the binary: its errors word for word, and the ways in and out.

use std::fs;

use tslice::formats::safetensors;

use crate::inputs::{F32, I64, floats, integers, npy_header, write_npy, write_safetensors};
use crate::program::{process, tslice};

/// `p.npy`, 0 to 11 in shape (3, 4); `bad.npy`, shape (2, 1, 2), whose last row is out of range.
fn directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    write_npy(&path("p.npy"), &F32, &[3, 4], &floats(0..12));
    write_npy(&path("bad.npy"), &I64, &[2, 1, 2], &integers(&[0, 0, 3, 0]));
    write_npy(&path("rows.npy"), &I64, &[2, 1], &integers(&[2, 0]));
    write_npy(&path("float.npy"), &F32, &[2], &floats(0..2));
    write_npy(&path("empty.npy"), &F32, &[3, 0], &[]);
    dir
}

/// The command ends with `status`, says exactly `message`, and leaves no output.
#[track_caller]
fn fails(args: &[&str], status: i32, message: &str) {
    let dir = directory();
    let before = fs::read_dir(dir.path()).unwrap().count();
    for output in [&["-o", "out.npy"][..], &[]] {
        let output = tslice(&dir, &[&["gather"], args, output].concat()).output().unwrap();
        assert_eq!(String::from_utf8(output.stderr).unwrap(), message);
        assert_eq!(output.status.code(), Some(status));
        assert!(output.stdout.is_empty());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), before);
    }
}

/// The data of the output of a command, with the header of a `.npy` of that shape before it.
#[track_caller]
fn gives(dir: &tempfile::TempDir, args: &[&str], shape: &[u64], data: &[u8]) {
    let output = tslice(dir, args).output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    let mut expected = npy_header(&F32, shape);
    expected.extend_from_slice(data);
    assert!(output.stdout == expected, "{:?}", output.stdout);
}

#[test]
fn bad_positions_are_named() {
    fails(
        &["p.npy", "--indices", "bad.npy"],
        1,
        "tslice: indices[1,0] = [3, 0] does not index into params of shape [3, 4]\n",
    );
    fails(
        &["p.npy", "--indices", "bad.npy", "--order", "F", "-j2"],
        1,
        "tslice: indices[1,0] = [3, 0] does not index into params of shape [3, 4]\n",
    );
    fails(
        &["p.npy", "--indices", "[[0], [-1]]", "--axis", "0"],
        1,
        "tslice: indices[1,0] = -1 is not in [0, 3)\n\
         hint: --negative counts negative indices from the end, as np.take does\n",
    );
    fails(
        &["p.npy", "--indices", "[[0], [4], [0]]", "--batch-dims", "1"],
        1,
        "tslice: indices[1] = [1, 4] does not index into params of shape [3, 4]\n",
    );
    fails(
        &["p.npy", "--indices", "[3]"],
        1,
        "tslice: indices = [3] does not index into params of shape [3, 4]\n",
    );
    // slabs of no elements: the positions are looked at all the same
    fails(
        &["empty.npy", "--indices", "[[2], [3]]"],
        1,
        "tslice: indices[1] = [3] does not index into params of shape [3, 0]\n",
    );
    fails(
        &["empty.npy", "--indices", "[[0, 0]]"],
        1,
        "tslice: indices[0] = [0, 0] does not index into params of shape [3, 0]\n",
    );
}

#[test]
fn shapes_and_options_that_do_not_fit_are_named() {
    fails(
        &["p.npy", "--indices", "float.npy"],
        1,
        "tslice: float.npy: indices must be integers, not float32\n",
    );
    fails(
        &["p.npy", "--indices", "[0, 0, 0]"],
        1,
        "tslice: indices of shape [3] hold tuples of 3 numbers, but params of shape [3, 4] have \
         2 axes\nhint: --axis 0 takes each number as a position on the first axis\n",
    );
    fails(
        &["p.npy", "--indices", "[[0]]", "--axis", "-3"],
        1,
        "tslice: axis -3 is out of bounds for array of dimension 2\n",
    );
    fails(
        &["p.npy", "--indices", "[0]", "--axis", "0", "--batch-dims", "1"],
        1,
        "tslice: 1 batch dims are too many: axis 0 cannot be gathered among them\n",
    );
    fails(
        &["p.npy", "--indices", "[[0]]", "--axis", "1", "--batch-dims", "1"],
        1,
        "tslice: params of shape [3, 4] and indices of shape [1, 1] differ in axis 0 of the \
         batches\n",
    );
    fails(
        &["p.npy", "--indices", "[0]", "--batch-dims", "1"],
        1,
        "tslice: 1 batch dims are too many: at most 0 fit indices of shape [1]\n",
    );
    for mode in ["clip", "wrap"] {
        fails(
            &["empty.npy", "--axis=1", "--indices", "[0]", "--out-of-range", mode],
            1,
            "tslice: axis 1 of the params has length 0: it has no position to clip or wrap to\n",
        );
    }
}

#[test]
fn command_lines_that_contradict_themselves_are_refused() {
    fails(
        &["-", "--indices", "-"],
        2,
        "tslice: PARAMS and --indices cannot both be standard input\n",
    );
    fails(
        &["p.npy", "--indices", "[[0], 1]"],
        2,
        "tslice: --indices: all lists of one depth must have one length\n  [[0], 1]\n        ^\n\
         hint: a file whose name begins with a bracket is reached as ./[...\n",
    );
    fails(
        &["p.npy", "--indices", "[0]", "--indices-tensor", "a"],
        2,
        "tslice: --indices-tensor a has no effect: the indices are a list\n",
    );
    fails(
        &["p.npy", "--indices", "rows.npy", "--indices-tensor", "a"],
        1,
        "tslice: --indices-tensor a: the tensor of rows.npy has no name\n",
    );
}

#[test]
fn params_and_indices_come_from_anywhere() {
    let dir = directory();
    let rows = floats([8, 9, 10, 11, 0, 1, 2, 3]);
    let (params, indices) = (dir.path().join("p.npy"), dir.path().join("rows.npy"));
    gives(&dir, &["gather", "p.npy", "--indices", "rows.npy"], &[2, 4], &rows);
    gives(&dir, &["gather", "p.npy", "--indices", "rows.npy", "--io=read"], &[2, 4], &rows);
    gives(&dir, &["gather", "p.npy", "--indices", "[[2], [0]]"], &[2, 4], &rows);
    for (args, stdin) in [
        (&["gather", "--indices", "rows.npy"][..], &params),
        (&["gather", "-", "--indices", "rows.npy"], &params),
        (&["gather", "p.npy", "--indices", "-"], &indices),
    ] {
        // a pipe, and a file
        let piped = tslice(&dir, args).write_stdin(fs::read(stdin).unwrap()).output().unwrap();
        assert!(piped.stdout.ends_with(&rows), "{}", String::from_utf8_lossy(&piped.stderr));
        let file = process(&dir, args).stdin(fs::File::open(stdin).unwrap()).output().unwrap();
        assert_eq!(file.stdout, piped.stdout);
    }
    let data = [integers(&[2, 0]), integers(&[1])].concat();
    let tensors = [("a", &I64, &[2, 1][..], 16), ("b", &I64, &[1], 8)];
    let mut file = safetensors::header(&tensors, &Default::default()).unwrap();
    file.extend(data);
    fs::write(dir.path().join("several.safetensors"), file).unwrap();
    let several = ["gather", "p.npy", "--indices", "several.safetensors", "--indices-tensor"];
    gives(&dir, &[&several[..], &["a"]].concat(), &[2, 4], &rows);
    let output = tslice(&dir, &several[..4]).output().unwrap();
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "tslice: several.safetensors: the file holds 2 tensors, choose one with --indices-tensor \
         NAME\nhint: it holds a, b\n"
    );
    fs::rename(&indices, dir.path().join("[0]")).unwrap();
    gives(&dir, &["gather", "p.npy", "--indices", "./[0]"], &[2, 4], &rows);
}

#[test]
fn a_list_in_a_slice_gathers_along_its_axis() {
    let dir = directory();
    // np.arange(12, dtype='f4').reshape(3, 4)[:, [0, 2, 2, -1]] and [[2, 0], None, ::-2]
    let columns = floats([0, 2, 2, 3, 4, 6, 6, 7, 8, 10, 10, 11]);
    gives(&dir, &["p.npy", "[:, [0, 2, 2, -1]]"], &[3, 4], &columns);
    gives(&dir, &["p.npy", "[[2, 0], None, ::-2]"], &[2, 1, 2], &floats([11, 9, 3, 1]));
    // no integer beside the list: its axis stays; with one apart from it, it comes first
    gives(&dir, &["p.npy", "None, :, [3]"], &[1, 3, 1], &floats([3, 7, 11]));
    gives(&dir, &["p.npy", "1, None, [3, 0]"], &[2, 1], &floats([7, 4]));
    gives(&dir, &["p.npy", "[[], 1]"], &[0], &[]);
    let piped = tslice(&dir, &["-", "[:, [0, 2, 2, -1]]"])
        .write_stdin(fs::read(dir.path().join("p.npy")).unwrap())
        .output()
        .unwrap();
    assert!(piped.stdout.ends_with(&columns), "{}", String::from_utf8_lossy(&piped.stderr));
    let output = tslice(&dir, &["p.npy", "[:, [0, 4]]"]).output().unwrap();
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "tslice: index 4 is out of bounds for axis 1 with size 4\n  [:, [0, 4]]\n          ^\n"
    );
}

#[test]
fn a_dry_run_looks_at_the_indices() {
    let dir = directory();
    let output =
        tslice(&dir, &["gather", "p.npy", "--indices", "rows.npy", "-n"]).output().unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "would write standard output: shape (2, 4), dtype float32, 32 bytes of elements (160 bytes \
         with the header), format npy\n"
    );
    let output = tslice(&dir, &["gather", "p.npy", "--indices", "bad.npy", "-n"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
}

#[test]
fn a_bad_position_in_the_last_of_many_leaves_no_output() {
    let dir = directory();
    let mut numbers = vec![1; 300_000];
    numbers[299_999] = 3;
    numbers[299_990] = -4;
    let path = dir.path().join("many.npy");
    write_npy(&path, &I64, &[150_000, 2], &integers(&numbers));
    for (threads, output) in [("1", "out.npy"), ("2", "out.npy"), ("2", "-")] {
        let args = ["gather", "p.npy", "--indices", "many.npy", "-o", output, "-j", threads];
        let output = tslice(&dir, &args).output().unwrap();
        assert_eq!(
            String::from_utf8(output.stderr).unwrap(),
            "tslice: indices[149995] = [-4, 1] does not index into params of shape [3, 4]\n"
        );
        assert!(output.stdout.is_empty());
        assert!(!dir.path().join("out.npy").exists());
    }
}

/// What most people mean by a list of numbers, and by a negative one.
#[test]
fn flags_that_would_be_right_are_named() {
    let along = "hint: --axis 0 takes each number as a position on the first axis\n";
    let long =
        "indices of shape [3] hold tuples of 3 numbers, but params of shape [3, 4] have 2 axes";
    fails(&["p.npy", "--indices", "[1, 0, 1]"], 1, &format!("tslice: {long}\n{along}"));
    let bad = "tslice: indices = [2, 4] does not index into params of shape";
    let wide = ["wide.npy", "--indices", "[2, 4]"];
    let dir = directory();
    write_npy(&dir.path().join("wide.npy"), &F32, &[5, 4], &floats(0..20));
    let output = tslice(&dir, &[&["gather"], &wide[..]].concat()).output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), format!("{bad} [5, 4]\n{along}"));

    let negative = "hint: --negative counts negative indices from the end, as np.take does\n";
    fails(
        &["p.npy", "--axis", "1", "--indices", "[0, -4]"],
        1,
        &format!("tslice: indices[1] = -4 is not in [0, 4)\n{negative}"),
    );
    fails(
        &["p.npy", "--axis", "1", "--indices", "[0, -5]"],
        1,
        "tslice: indices[1] = -5 is not in [0, 4)\n",
    );
    fails(
        &["p.npy", "--axis", "1", "--negative", "--indices", "[0, -5]"],
        1,
        "tslice: indices[1] = -5 is not in [-4, 4)\n",
    );
    fails(
        &["p.npy", "--negative", "--indices", "[[-4, 0]]"],
        1,
        "tslice: indices[0] = [-4, 0] does not index into params of shape [3, 4]\n",
    );
}

#[test]
fn negative_positions_count_from_the_end_where_that_is_asked_for() {
    let dir = directory();
    // np.take(p, [-1, 0, -3], axis=0)
    let rows = floats([8, 9, 10, 11, 0, 1, 2, 3, 0, 1, 2, 3]);
    let take = ["gather", "p.npy", "--axis", "0", "--negative", "--indices"];
    gives(&dir, &[&take[..], &["[-1, 0, -3]"]].concat(), &[3, 4], &rows);
    gives(&dir, &["gather", "p.npy", "--negative", "--indices", "[[-1, -4]]"], &[1], &floats([8]));
    let mut policy =
        vec!["gather", "p.npy", "--negative", "--axis", "1", "--indices", "[[-1, -9]]"];
    policy.extend(["--out-of-range", "clip"]);
    gives(&dir, &policy, &[3, 1, 2], &floats([3, 0, 7, 4, 11, 8]));
    *policy.last_mut().unwrap() = "zero";
    gives(&dir, &policy, &[3, 1, 2], &floats([3, 0, 7, 0, 11, 0]));
    *policy.last_mut().unwrap() = "wrap";
    let hint = "hint: wrap counts negative indices from the end\n";
    let message = format!("tslice: --negative has no effect with --out-of-range wrap\n{hint}");
    fails(&policy[1..], 2, &message);
}

/// TensorFlow: `tf.gather(params, indices, axis=axis, batch_dims=batch_dims)`.
#[test]
fn negative_batch_dims_count_from_the_rank_of_the_indices() {
    let dir = directory();
    let batch = ["gather", "p.npy", "--axis", "1", "--indices", "[[3, 0], [1, 1], [2, 0]]"];
    let expected = floats([3, 0, 5, 5, 10, 8]);
    gives(&dir, &[&batch[..], &["--batch-dims", "1"]].concat(), &[3, 2], &expected);
    gives(&dir, &[&batch[..], &["--batch-dims", "-1"]].concat(), &[3, 2], &expected);
    fails(
        &[&batch[1..], &["--batch-dims", "-3"]].concat(),
        1,
        "tslice: -3 batch dims: indices of shape [3, 2] have 2 axes\n",
    );
    fails(
        &["p.npy", "--indices", "[[0]]", "--batch-dims", "-1"],
        2,
        "tslice: a negative --batch-dims cannot be used without --axis\n",
    );
}

#[test]
fn indices_may_be_text() {
    let dir = directory();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    write("flat.txt", "2\n0 # the first\n\n");
    write("rows.csv", "2, 3\r\n0, 0\r\n");
    let rows = floats([8, 9, 10, 11, 0, 1, 2, 3]);
    gives(&dir, &["gather", "p.npy", "--axis", "0", "--indices", "flat.txt"], &[2, 4], &rows);
    gives(&dir, &["gather", "p.npy", "--indices", "rows.csv"], &[2], &floats([11, 0]));
    let piped = ["gather", "p.npy", "--axis", "0", "--indices", "-"];
    let output = tslice(&dir, &piped).write_stdin("2 0\n").output().unwrap();
    assert!(output.stdout.ends_with(&rows), "{}", String::from_utf8_lossy(&output.stderr));

    // more than is kept in memory, with the checks of every kind of index
    let many: Vec<String> = (0..100_000).map(|at| (at % 3).to_string()).collect();
    write("many.txt", &many.join("\n"));
    let args = ["gather", "p.npy", "--axis", "0", "--indices", "many.txt", "--to", "raw"];
    let output = tslice(&dir, &args).output().unwrap();
    let expected: Vec<u8> = floats(0..12).into_iter().cycle().take(100_000 * 16).collect();
    assert!(output.stdout == expected, "{}", String::from_utf8_lossy(&output.stderr));

    for (text, says) in [
        ("1\n2.0\n", "line 2: '2.0' is not an integer"),
        ("1 2\n3\n", "line 2 holds 1 numbers, earlier lines hold 2"),
        ("", "the file is empty"),
    ] {
        write("bad.txt", text);
        let args = ["gather", "p.npy", "--axis", "0", "--indices", "bad.txt"];
        let output = tslice(&dir, &args).output().unwrap();
        let message = format!("tslice: bad.txt: {says}\n");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), message);
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn scatter_takes_indices_as_text() {
    let dir = directory();
    fs::write(dir.path().join("rows.txt"), "2\n0\n").unwrap();
    fs::write(dir.path().join("tuples.csv"), "2,0\n0,1\n").unwrap();
    write_npy(&dir.path().join("two.npy"), &F32, &[2], &floats([70, 71]));
    let args = ["scatter", "p.npy", "--indices", "tuples.csv", "--values", "two.npy", "-o", "-"];
    gives(&dir, &args, &[3, 4], &floats([0, 71, 2, 3, 4, 5, 6, 7, 70, 9, 10, 11]));
    let args = ["scatter", "p.npy", "--indices", "[0, 1, 2]", "--values", "two.npy", "-o", "-"];
    let output = tslice(&dir, &args).output().unwrap();
    let says = "tslice: indices of shape [3] hold tuples of 3 numbers, but target of shape [3, 4] \
                have 2 axes\nhint: one position a row is an index tensor of shape [N, 1]\n";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), says);
}

/// TensorFlow's zeros for every position, also where elements are no whole bytes: 6 of them in 3.
#[test]
fn zeros_of_half_bytes_are_written_whole() {
    let dir = directory();
    let header = r#"{"f":{"dtype":"F4","shape":[3,0],"data_offsets":[0,0]}}"#;
    write_safetensors(&dir.path().join("f.safetensors"), header, &[]);
    let zeros = |args: &[&str], shape: &[usize]| {
        let gather = ["gather", "f.safetensors", "--out-of-range", "zero", "-fo", "o.safetensors"];
        tslice(&dir, &[&gather, args].concat()).assert().success();
        let bytes = fs::read(dir.path().join("o.safetensors")).unwrap();
        let file = ::safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let found = file.tensor("f").unwrap();
        assert_eq!(found.shape(), shape);
        let bits = 4 * shape.iter().product::<usize>();
        assert_eq!(found.data(), vec![0; bits / 8]);
    };
    zeros(&["--indices", "[0, -1]", "--axis", "1"], &[3, 2]);
    zeros(&["--indices", "[0, 1, 5, 7]", "--axis", "-1"], &[3, 4]);
    zeros(&["--indices", "[[0, 1], [2, 0]]"], &[2]);
    // more than a piece of the engine
    let tensor = [("i", &I64, &[200_000][..], 1_600_000)];
    let mut indices = safetensors::header(&tensor, &Default::default()).unwrap();
    indices.resize(indices.len() + 1_600_000, 0);
    fs::write(dir.path().join("i.safetensors"), indices).unwrap();
    zeros(&["--indices", "i.safetensors", "--axis", "1", "-j", "2"], &[3, 200_000]);
}
