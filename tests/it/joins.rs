//! `tslice concat`, `tslice stack` and `tslice split`. What they make of random arrays is held against NumPy in
//! `tests/python/assembly_differential.py`.

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use tslice::dtype::{DType, Endian, Scalar};
use tslice::formats::npy;
use tslice::shape::Order;

use crate::inputs::{F32, I32, U8, npy_header, write_npy, write_safetensors};
use crate::program::{bash, tslice};

/// A folder with `a.npy` (2 x 3), `b.npy` (2 x 2) and `c.npy` (2 x 3) of bytes that count up.
fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    write_npy(&dir.path().join("a.npy"), &U8, &[2, 3], &[0, 1, 2, 3, 4, 5]);
    write_npy(&dir.path().join("b.npy"), &U8, &[2, 2], &[6, 7, 8, 9]);
    write_npy(&dir.path().join("c.npy"), &U8, &[2, 3], &[10, 11, 12, 13, 14, 15]);
    dir
}

fn npy(shape: &[u64], data: &[u8]) -> Vec<u8> {
    [&npy_header(&U8, shape), data].concat()
}

/// What would surprise is said.
#[test]
fn the_order_of_numbers_and_other_names_are_told() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["p_1.npy", "p_2.npy", "p_10.npy", "q.npy"] {
        fs::write(dir.path().join(name), npy(&[1], &[1])).unwrap();
    }
    let note =
        "tslice: note: p_10.npy is joined before p_2.npy: inputs are joined in the order given\n";
    for (inputs, note) in [
        (&["p_1.npy", "p_10.npy", "p_2.npy"][..], note),
        (&["p_1.npy", "p_2.npy", "p_10.npy"], ""),
        (&["p_10.npy", "p_2.npy", "q.npy"], ""),
    ] {
        let args = [&["concat"], inputs, &["-o", "o.npy", "-f"]].concat();
        tslice(&dir, &args).assert().success().stderr(note);
    }
    for name in ["a", "b"] {
        let file = format!("{name}.safetensors");
        tslice(&dir, &["q.npy", "--name", name, "-o", &file]).assert().success();
    }
    let note = "tslice: note: b.safetensors: its tensor \"b\" is joined to \"a\"\n";
    let args = ["concat", "a.safetensors", "b.safetensors", "-o", "c.safetensors"];
    tslice(&dir, &args).assert().success().stderr(note);
}

#[test]
fn files_are_joined_along_any_axis() {
    let dir = folder();
    let run = |args: &[&str], expected: Vec<u8>| {
        tslice(dir.path(), args).assert().success().stderr("").stdout(expected);
    };
    let outer = npy(&[4, 3], &[0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15]);
    run(&["concat", "a.npy", "c.npy"], outer.clone());
    run(&["concat", "a.npy", "c.npy", "--axis", "-2", "-o", "-"], outer);
    let inner = npy(&[2, 5], &[0, 1, 2, 6, 7, 3, 4, 5, 8, 9]);
    run(&["concat", "a.npy", "b.npy", "--axis", "1"], inner);
    let stacked = npy(&[2, 3, 2], &[0, 10, 1, 11, 2, 12, 3, 13, 4, 14, 5, 15]);
    run(&["stack", "a.npy", "c.npy", "--axis", "-1"], stacked);
    let indexed = npy(&[2, 2], &[4, 3, 14, 13]);
    run(&["stack", "a.npy", "c.npy", "--index", "1, -2::-1"], indexed);
}

/// An array without a name is the one tensor that is joined, as rows are put behind an embedding.
#[test]
fn rows_without_a_name_go_behind_one_tensor() {
    let dir = folder();
    let header = r#"{"x":{"dtype":"U8","shape":[1,3],"data_offsets":[0,3]},"y":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}}"#;
    write_safetensors(&dir.path().join("m.safetensors"), header, &[7, 8, 9, 1, 2]);
    let to = ["--keep-rest", "-f", "-o", "out.safetensors"];
    for chosen in [["-t", "x"], ["-t", "x*"]] {
        let args = [&["concat", "m.safetensors", "a.npy", "c.npy"][..], &chosen, &to].concat();
        tslice(&dir, &args).assert().success().stderr("");
        let bytes = fs::read(dir.path().join("out.safetensors")).unwrap();
        let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let x = file.tensor("x").unwrap();
        assert_eq!(x.shape(), [5, 3]);
        assert_eq!(x.data(), [7, 8, 9, 0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15]);
        assert_eq!(file.tensor("y").unwrap().data(), [1, 2]);
    }
    let only = ["concat", "m.safetensors", "a.npy", "--exclude", "y", "-o", "x.npy"];
    tslice(&dir, &only).assert().success().stderr("");
    let rows = npy(&[3, 3], &[7, 8, 9, 0, 1, 2, 3, 4, 5]);
    assert_eq!(fs::read(dir.path().join("x.npy")).unwrap(), rows);
    // it may be the tensor of one name, not of two
    let two = ["concat", "m.safetensors", "a.npy", "-t", "x", "-t", "y", "-o", "two.npz"];
    let stderr = "tslice: -t x: the tensor of a.npy has no name\n";
    tslice(&dir, &two).assert().failure().stderr(stderr);
    let unclear =
        ["concat", "m.safetensors", "a.npy", "--exclude", "y", "--keep-rest", "-o", "n.npz"];
    let stderr = "tslice: m.safetensors: the file holds 2 tensors, choose one with -t NAME\n\
                  hint: --exclude without --keep-rest takes all other tensors\n";
    tslice(&dir, &unclear).assert().failure().stderr(stderr);
    let void = npy::parse_dtype("V1").unwrap();
    let header = npy::header(&void, &[1, 3], Order::C).unwrap();
    fs::write(dir.path().join("void.npy"), [&header[..], &[4, 5, 6]].concat()).unwrap();
    let args = [&["concat", "m.safetensors", "void.npy", "-t", "x"][..], &to].concat();
    let stderr = "tslice: void.npy: input 1 has dtype |V1, input 0 has uint8\n\
                  hint: --as V1:uint8 reads its bytes as such\n";
    tslice(&dir, &args).assert().failure().stderr(stderr);
    tslice(&dir, &[&args[..], &["--as", "uint8"]].concat()).assert().success();
    let misfit = [&["concat", "m.safetensors", "b.npy", "-t", "x"][..], &to].concat();
    tslice(&dir, &misfit).assert().failure();
}

/// The same, where the order of the bytes is not that of the inputs.
#[test]
fn what_alternates_in_a_stream_is_put_together_first() {
    let dir = folder();
    let listed = npy(&[2, 4], &[2, 0, 7, 6, 5, 3, 9, 8]);
    let args = ["concat", "a.npy", "b.npy", "--axis", "1", "--index", "[:, [-1, 0]]"];
    tslice(dir.path(), &args).assert().success().stderr("").stdout(listed.clone());
    tslice(dir.path(), &[&args[..], &["-o", "out.npy"]].concat()).assert().success();
    assert_eq!(fs::read(dir.path().join("out.npy")).unwrap(), listed);
}

/// Each tensor of a stream holds its own elements.
#[test]
fn several_tensors_are_joined_in_a_stream() {
    let dir = tempfile::tempdir().unwrap();
    let header = r#"{"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"y":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}"#;
    write_safetensors(&dir.path().join("a.safetensors"), header, &[1, 2, 3, 4]);
    write_safetensors(&dir.path().join("b.safetensors"), header, &[5, 6, 7, 8]);
    for (axis, elements) in [("0", [1, 2, 5, 6, 3, 4, 7, 8]), ("-1", [1, 5, 2, 6, 3, 7, 4, 8])] {
        let command = if axis == "0" { "concat" } else { "stack" };
        let args = [command, "a.safetensors", "b.safetensors", "-t", "*", "--axis", axis];
        let run = tslice(dir.path(), &[&args[..], &["--to", "safetensors"]].concat()).assert();
        let out = run.success().stderr("").get_output().stdout.clone();
        assert_eq!(out[out.len() - 8..], elements);
        tslice(dir.path(), &[&args[..], &["-fo", "out.safetensors"]].concat()).assert().success();
        assert_eq!(fs::read(dir.path().join("out.safetensors")).unwrap(), out);
    }
}

/// The rest is held against NumPy in `tests/python/parts.py`.
#[test]
fn a_join_is_written_in_parts() {
    let dir = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..30_000u32).map(|at| (at * 7 + at / 256) as u8).collect();
    write_npy(&dir.path().join("a.npy"), &U8, &[100, 300], &bytes);
    write_npy(&dir.path().join("b.npy"), &U8, &[100, 200], &bytes[..20_000]);
    let args = ["concat", "a.npy", "b.npy", "a.npy", "--axis", "1"];
    let whole = tslice(dir.path(), &args).assert().success().get_output().stdout.clone();
    let run = |part: &str| {
        let args = [&args[..], &["-o", "out.npy", "--part", part]].concat();
        tslice(dir.path(), &args).assert().success().stderr("")
    };
    for number in [6, 0, 3, 3, 5, 1, 2] {
        run(&format!("{number}/7"));
        assert!(!dir.path().join("out.npy").exists());
    }
    run("status").stdout("out.npy: 6 of 7 parts are complete, missing 4\n");
    run("4/7");
    assert_eq!(fs::read(dir.path().join("out.npy")).unwrap(), whole);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
    let args = ["split", "a.npy", "--parts", "2", "-o", "{}.npy", "--part", "0/2"];
    let refused = "tslice: --part writes one output, and a split has several\n\
                   hint: write each part as a slice of the input\n";
    tslice(dir.path(), &args).assert().code(2).stderr(refused);
}

/// Of a folder each part looks at all files, since any of them may change meanwhile.
#[test]
#[cfg(feature = "zarr")]
fn a_join_of_folders_is_written_in_parts() {
    let dir = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..12_000u32).map(|at| (at * 7 + at / 256) as u8).collect();
    write_npy(&dir.path().join("a.npy"), &U8, &[120, 100], &bytes);
    let run =
        |args: &[&str]| tslice(dir.path(), args).assert().success().get_output().stdout.clone();
    run(&["a.npy", "-o", "a.zarr"]);
    let args = ["concat", "a.zarr", "a.npy", "--axis", "1"];
    let whole = run(&args);
    for part in ["1/2", "0/2"] {
        run(&[&args[..], &["-o", "out.npy", "--part", part]].concat());
    }
    assert_eq!(fs::read(dir.path().join("out.npy")).unwrap(), whole);
}

/// The expected bytes are those of NumPy: `np.concatenate([x[:, [2, 0]] for x in (a, c)], 1)`, and so on.
#[test]
fn lists_in_files_are_taken_of_every_input() {
    let dir = folder();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("columns.txt"), "2\n0\n").unwrap();
    let header = r#"{"rows":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}"#;
    write_safetensors(&path("lists.safetensors"), header, &[1, 0]);
    let run = |args: &[&str], piped: &str, expected: Vec<u8>| {
        let run = tslice(dir.path(), args).write_stdin(piped.to_owned()).assert();
        run.success().stderr("").stdout(expected.clone());
        let to_file = [args, &["-o", "out.npy", "--force"]].concat();
        tslice(dir.path(), &to_file).write_stdin(piped.to_owned()).assert().success().stderr("");
        assert_eq!(fs::read(path("out.npy")).unwrap(), expected);
    };
    let columns = ["concat", "a.npy", "c.npy", "--axis", "1", "--index", "[:, @columns.txt]"];
    run(&columns, "", npy(&[2, 4], &[2, 0, 12, 10, 5, 3, 15, 13]));
    let pairs = ["stack", "a.npy", "c.npy", "--index", "[@lists.safetensors#rows, @columns.txt]"];
    run(&pairs, "", npy(&[2, 2], &[5, 0, 15, 10]));
    let outer = [&pairs[..], &["--outer"]].concat();
    run(&outer, "", npy(&[2, 2, 2], &[5, 3, 2, 0, 15, 13, 12, 10]));
    let typed = ["concat", "a.npy", "c.npy", "--index", "[[1, 0], [0]]", "--outer"];
    run(&typed, "", npy(&[4, 1], &[3, 0, 13, 10]));
    // a pipe is read once, for both
    let last = ["concat", "a.npy", "c.npy", "--index", "[@-]"];
    run(&last, "-1\n", npy(&[2, 3], &[3, 4, 5, 13, 14, 15]));

    let parts = |args: &[&str], expected: [Vec<u8>; 2]| {
        let args = [&["split", "a.npy"], args, &["--parts", "2", "-o", "{}.npy", "--force"]];
        tslice(dir.path(), &args.concat()).write_stdin("1\n").assert().success().stderr("");
        for (number, expected) in expected.into_iter().enumerate() {
            assert_eq!(fs::read(path(&format!("{number}.npy"))).unwrap(), expected);
        }
    };
    let column = |first, second| npy(&[2, 1], &[first, second]);
    parts(&["[:, @columns.txt]", "--axis", "1"], [column(2, 5), column(0, 3)]);
    parts(&["[@-, @columns.txt]"], [npy(&[1], &[5]), npy(&[1], &[3])]);
    let row = |first, second| npy(&[1, 2], &[first, second]);
    let outer = ["[@lists.safetensors#rows, @columns.txt]", "--outer"];
    parts(&outer, [row(5, 3), row(2, 0)]);
}

#[test]
fn any_number_of_files_is_joined_with_few_descriptors() {
    let dir = tempfile::tempdir().unwrap();
    let mut expected = Vec::new();
    for number in 0..700u16 {
        let row = [number.to_le_bytes(), (number + 1).to_le_bytes()].concat();
        write_npy(&dir.path().join(format!("{number:04}.npy")), &U8, &[2, 2], &row);
        expected.push(row);
    }
    let names = "printf '%s\\0' 0*.npy";
    let line = format!(
        "ulimit -n 150; {names} | tslice concat --files-from - -0 -j 3 -o outer.npy &&
         {names} | tslice concat --files-from=- -0 --axis 1 -o inner.npy &&
         {names} | tslice concat --files-from=- -0 --axis 1 > stream.npy"
    );
    let done = bash(dir.path(), &line).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let read = |name: &str| fs::read(dir.path().join(name)).unwrap();
    assert_eq!(read("outer.npy"), npy(&[1400, 2], &expected.concat()));
    let half = |from: usize| expected.iter().flat_map(move |row| row[from..from + 2].to_vec());
    let inner = npy(&[2, 1400], &half(0).chain(half(2)).collect::<Vec<_>>());
    assert_eq!(read("inner.npy"), inner);
    assert_eq!(read("stream.npy"), inner);
}

#[test]
fn a_pipe_is_one_of_the_inputs() {
    let dir = folder();
    let pipe = fs::read(dir.path().join("b.npy")).unwrap();
    let inner = npy(&[2, 5], &[0, 1, 2, 6, 7, 3, 4, 5, 8, 9]);
    tslice(dir.path(), &["concat", "a.npy", "-", "--axis", "1"])
        .write_stdin(pipe.clone())
        .assert()
        .success()
        .stdout(inner);
    let outer = npy(&[4, 2], &[6, 7, 8, 9, 6, 7, 8, 9]);
    tslice(dir.path(), &["concat", "-", "b.npy"]).write_stdin(pipe.clone()).assert().stdout(outer);
    // one that ends too early leaves nothing
    tslice(dir.path(), &["concat", "a.npy", "-", "--axis", "1", "-o", "out.npy"])
        .write_stdin(&pipe[..pipe.len() - 1])
        .assert()
        .code(1);
    assert!(!dir.path().join("out.npy").exists());
}

/// A shard of a checkpoint cut in two: `q` (2 x 2) of its own bytes, `norm` the same everywhere.
fn write_shard(path: &Path, q: [u8; 4], norm: [u8; 2]) {
    let header = concat!(
        r#"{"__metadata__":{"format":"pt"},"#,
        r#""norm":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"#,
        r#""layers.0.q":{"dtype":"U8","shape":[2,2],"data_offsets":[2,6]}}"#
    );
    write_safetensors(path, header, &[&norm[..], &q[..]].concat());
}

#[test]
fn shards_become_one_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    write_shard(&dir.path().join("0.safetensors"), [1, 2, 3, 4], [8, 9]);
    write_shard(&dir.path().join("1.safetensors"), [5, 6, 7, 8], [8, 9]);
    write_shard(&dir.path().join("2.safetensors"), [5, 6, 7, 8], [8, 7]);
    let join = |second: &str| {
        let args = ["concat", "0.safetensors", second, "-t", "*.q", "--axis", "1", "--keep-rest"];
        tslice(dir.path(), &[&args[..], &["-o", "out.safetensors"]].concat()).assert()
    };
    join("1.safetensors").success().stdout("").stderr("");
    let bytes = fs::read(dir.path().join("out.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let q = file.tensor("layers.0.q").unwrap();
    assert_eq!((q.shape(), q.data()), (&[2, 4][..], &[1, 2, 5, 6, 3, 4, 7, 8][..]));
    assert_eq!(file.tensor("norm").unwrap().data(), [8, 9]);
    fs::remove_file(dir.path().join("out.safetensors")).unwrap();
    join("2.safetensors").code(1).stderr(
        "tslice: 2.safetensors: tensor \"norm\": input 1 has different elements than input 0: it \
         cannot be taken once\n",
    );
    assert!(!dir.path().join("out.safetensors").exists());
}

#[test]
fn what_does_not_fit_is_named() {
    let dir = folder();
    write_npy(&dir.path().join("int.npy"), &I32, &[2, 3], &[0; 24]);
    write_npy(&dir.path().join("float.npy"), &F32, &[2, 3], &[0; 24]);
    write_npy(&dir.path().join("scalar.npy"), &U8, &[], &[7]);
    fs::write(dir.path().join("empty.txt"), "").unwrap();
    fs::write(dir.path().join("gap.txt"), "a.npy\n\nb.npy\n").unwrap();
    let fails = |args: &[&str], code, stderr: &'static str| {
        let args = [args, &["-o", "out.npy"]].concat();
        tslice(dir.path(), &args).assert().code(code).stdout("").stderr(stderr);
    };
    fails(
        &["concat", "a.npy", "c.npy", "b.npy"],
        1,
        "tslice: b.npy: input 2 has shape (2, 2), which does not fit shape (2, 3) of input 0: they \
         may differ along axis 0 only\n",
    );
    fails(
        &["stack", "a.npy", "b.npy"],
        1,
        "tslice: b.npy: input 1 has shape (2, 2), which does not fit shape (2, 3) of input 0: they \
         must be equal\n",
    );
    fails(
        &["concat", "a.npy", "scalar.npy"],
        1,
        "tslice: scalar.npy: input 1 has shape (), which does not fit shape (2, 3) of input 0: they \
         need the same number of axes\n",
    );
    fails(
        &["concat", "int.npy", "int.npy", "float.npy"],
        1,
        "tslice: float.npy: input 2 has dtype float32, input 0 has int32\n\
         hint: --cast float64 casts all of them first\n",
    );
    fails(
        &["concat", "scalar.npy"],
        1,
        "tslice: scalar.npy: zero-dimensional arrays cannot be concatenated\n\
         hint: `tslice stack` joins along a new axis\n",
    );
    fails(
        &["concat", "a.npy", "--axis", "-3"],
        1,
        "tslice: a.npy: axis -3 is out of bounds for array of dimension 2\n",
    );
    fails(
        &["concat", "a.npy", "b.npy", "--axis", "1", "--index", "[:, 2:, 0]"],
        1,
        "tslice: a.npy: too many indices for array: array is 2-dimensional, but 3 were indexed\n  \
         [:, 2:, 0]\n          ^\n",
    );
    fails(
        &["concat", "a.npy", "b.npy", "--axis", "1", "--index", "[:, 2]"],
        1,
        "tslice: a.npy: axis 1 is out of bounds for array of dimension 1\n",
    );
    fails(
        &["stack", "a.npy", "b.npy", "--index", "[:, 2]"],
        1,
        "tslice: b.npy: index 2 is out of bounds for axis 1 with size 2\n  [:, 2]\n      ^\n",
    );
    fails(&["concat", "-", "-"], 2, "tslice: standard input can be only one of the inputs\n");
    fails(
        &["concat", "--files-from", "empty.txt"],
        1,
        "tslice: empty.txt: no input is named in it\n",
    );
    fails(&["concat", "--files-from", "gap.txt"], 1, "tslice: gap.txt: line 2 is empty\n");
    fails(
        &["concat", "a.npy", "missing.npy", "b.npy"],
        1,
        "tslice: missing.npy: No such file or directory\n",
    );
    assert!(!dir.path().join("out.npy").exists());
}

#[test]
fn a_file_is_split_and_joined_again() {
    let dir = folder();
    let read = |name: &str| fs::read(dir.path().join(name)).unwrap();
    let run = |args: &[&str]| {
        tslice(dir.path(), args).assert().success().stdout("").stderr("");
    };
    run(&["split", "a.npy", "--axis", "1", "--sizes", "2,1", "-o", "part-{:02}.npy"]);
    assert_eq!(read("part-00.npy"), npy(&[2, 2], &[0, 1, 3, 4]));
    assert_eq!(read("part-01.npy"), npy(&[2, 1], &[2, 5]));
    run(&["concat", "part-00.npy", "part-01.npy", "--axis", "1", "-o", "again.npy"]);
    assert_eq!(read("again.npy"), read("a.npy"));
    run(&["split", "a.npy", "[::-1]", "--at=-1", "-o", "{}.npy", "--deflate", "--to", "npz"]);
    run(&["split", "0.npy", "--every", "9", "-o", "z{}.npy"]);
    assert_eq!(read("z0.npy"), npy(&[1, 3], &[3, 4, 5]));
    // lists, and parts of them
    run(&["split", "a.npy", "[:, [2, 0, 1]]", "--axis", "1", "--sizes", "1,0,2", "-o", "l{}.npy"]);
    assert_eq!(read("l0.npy"), npy(&[2, 1], &[2, 5]));
    assert_eq!(read("l1.npy"), npy(&[2, 0], &[]));
    assert_eq!(read("l2.npy"), npy(&[2, 2], &[0, 1, 3, 4]));
}

#[test]
fn a_pipe_is_split_in_one_pass() {
    let dir = tempfile::tempdir().unwrap();
    let whole = npy(&[6, 2], &(0..12).collect::<Vec<u8>>());
    // a temporary file could not be made
    tslice(dir.path(), &["split", "-", "--parts", "3", "-o", "{}.npy"])
        .env("TMPDIR", "/nowhere")
        .write_stdin(whole.clone())
        .assert()
        .success()
        .stderr("");
    assert_eq!(fs::read(dir.path().join("2.npy")).unwrap(), npy(&[2, 2], &[8, 9, 10, 11]));
    tslice(dir.path(), &["split", "-", "--parts", "2", "--axis", "1", "-o", "c{}.npy"])
        .write_stdin(whole.clone())
        .assert()
        .success();
    let column = npy(&[6, 1], &[1, 3, 5, 7, 9, 11]);
    assert_eq!(fs::read(dir.path().join("c1.npy")).unwrap(), column);
    // parts that overlap
    tslice(dir.path(), &["split", "-", "--at", "5,1", "-o", "o{}.npy"])
        .write_stdin(whole.clone())
        .assert()
        .success();
    let last = npy(&[5, 2], &(2..12).collect::<Vec<u8>>());
    assert_eq!(fs::read(dir.path().join("o2.npy")).unwrap(), last);
    // one that ends too early leaves nothing
    tslice(dir.path(), &["split", "-", "--parts", "2", "-o", "s{}.npy"])
        .write_stdin(&whole[..whole.len() - 1])
        .assert()
        .code(1);
    assert!(!dir.path().join("s0.npy").exists());
}

#[test]
fn outputs_of_a_split_appear_together_or_not_at_all() {
    let dir = folder();
    fs::write(dir.path().join("p1.npy"), "what stood there before").unwrap();
    let fails = |args: &[&str], code, stderr: &'static str| {
        let args = [&["split"], args].concat();
        tslice(dir.path(), &args).assert().code(code).stdout("").stderr(stderr);
    };
    let hint = "hint: --force replaces it\n";
    let exists: &'static str = Box::leak(format!("tslice: p1.npy: the file exists\n{hint}").into());
    fails(&["a.npy", "--parts", "2", "-o", "p{}.npy"], 1, exists);
    fails(&["a.npy", "--parts", "2", "-o", "p{}.npy", "-n"], 1, exists);
    fails(
        &["a.npy", "--sizes", "3", "-o", "q{}.npy"],
        1,
        "tslice: a.npy: the sizes of the parts add up to 3, and the axis has size 2\n",
    );
    fails(
        &["a.npy", "--parts", "2", "-o", "q.npy"],
        2,
        "tslice: q.npy: the name has no {} for the number of the part\n\
         hint: put {} where the number goes, or {:04} for four digits: -o 'part-{:04}.npy'\n",
    );
    fails(
        &["a.npy", "--parts", "2"],
        2,
        "tslice: --output PATTERN is missing\n\
         hint: a pattern holds {} for the number of the part: -o 'part-{}.npy'\n",
    );
    fails(
        &["a.npy", "--parts", "2", "--axis", "2", "-o", "q{}.npy"],
        1,
        "tslice: a.npy: axis 2 is out of bounds for array of dimension 2\n",
    );
    fails(
        &["a.npy", "[0, 3]", "--parts", "2", "-o", "q{}.npy"],
        1,
        "tslice: a.npy: index 3 is out of bounds for axis 1 with size 3\n  [0, 3]\n      ^\n",
    );
    fails(
        &["a.npy", "--parts", "100", "-o", "missing/{}.npy"],
        1,
        "tslice: missing/0.npy: cannot be created: No such file or directory\n",
    );
    let mut names: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["a.npy", "b.npy", "c.npy", "p1.npy"]);
    tslice(dir.path(), &["split", "a.npy", "--parts", "2", "-o", "p{}.npy", "--force"])
        .assert()
        .success();
    assert_eq!(fs::read(dir.path().join("p1.npy")).unwrap(), npy(&[1, 3], &[3, 4, 5]));
}

#[test]
fn tensors_have_axes_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let header = concat!(
        r#"{"q":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]},"#,
        r#""o":{"dtype":"U8","shape":[2,2],"data_offsets":[4,8]},"#,
        r#""n":{"dtype":"U8","shape":[1],"data_offsets":[8,9]}}"#
    );
    write_safetensors(&dir.path().join("m.safetensors"), header, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let chosen = ["-t", "q", "-t", "o", "--axis", "o=-1", "--keep-rest"];
    let split = [&["split", "m.safetensors", "--parts", "2", "-o", "{}.safetensors"], &chosen[..]];
    tslice(dir.path(), &split.concat()).assert().success().stderr("");
    let bytes = fs::read(dir.path().join("1.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(file.tensor("q").unwrap().data(), [3, 4]);
    assert_eq!(file.tensor("o").unwrap().data(), [6, 8]);
    assert_eq!(file.tensor("n").unwrap().data(), [9]);
    let join = ["concat", "0.safetensors", "1.safetensors", "-o", "joined.safetensors"];
    tslice(dir.path(), &[&join[..], &chosen].concat()).assert().success().stderr("");
    let bytes = fs::read(dir.path().join("joined.safetensors")).unwrap();
    let joined = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(joined.tensor("q").unwrap().data(), [1, 2, 3, 4]);
    assert_eq!(joined.tensor("o").unwrap().data(), [5, 6, 7, 8]);
    let fails = |axes: &[&str], code, stderr: &'static str| {
        let args = [&split.concat()[..], &["--force"], axes].concat();
        tslice(dir.path(), &args).assert().code(code).stderr(stderr);
    };
    fails(
        &["--axis", "n=0"],
        1,
        "tslice: m.safetensors: no tensor is named \"n\"\nhint: it holds q, o\n",
    );
    fails(
        &["--axis", "0", "--axis", "1"],
        2,
        "tslice: --axis is given twice for all tensors\n\
         hint: --axis NAME=AXIS is for the tensors of a name or glob\n",
    );
    fails(
        &["--axis", "1x"],
        2,
        "tslice: invalid value '1x' for --axis: an axis is an integer, or the name of a dimension\n",
    );
}

/// What np.concatenate makes of them with dtype=.
#[test]
fn dtypes_are_compared_after_casts() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, dtype: &DType, data: &[u8]| {
        let file = npy::header(dtype, &[2, 1], Order::C).unwrap();
        fs::write(dir.path().join(name), [&file[..], data].concat()).unwrap();
    };
    let ints = DType::Scalar(Scalar::I16, Endian::Big);
    let floats = DType::Scalar(Scalar::F32, Endian::Little);
    let doubles = DType::Scalar(Scalar::F64, Endian::Big);
    write("i.npy", &ints, &[0, 1, 0xff, 0xfe]);
    write("f.npy", &floats, &[1.5f32.to_le_bytes(), 2.5f32.to_le_bytes()].concat());
    write("d.npy", &doubles, &[(-0.5f64).to_be_bytes(), 8f64.to_be_bytes()].concat());
    let inputs = ["concat", "i.npy", "f.npy", "d.npy"];
    let rows = [1.0, 1.5, -0.5, -2.0, 2.5, 8.0];
    let in_turn = [1.0, -2.0, 1.5, 2.5, -0.5, 8.0];
    let some = ["--cast", ">i2:>f8", "--cast", "f4:f8"];
    for (flags, expected) in [
        (&["--cast", "f8"][..], in_turn),
        (&["--cast", "f8", "--axis", "1"], rows),
        (&["--cast", ">f8", "--axis", "1"], rows),
        (&some, in_turn),
    ] {
        let args = [&inputs[..], flags, &["-o", "out.npy", "-f"]].concat();
        tslice(dir.path(), &args).assert().success().stderr("");
        let file = tslice::open(dir.path().join("out.npy")).unwrap();
        let found = file.only().unwrap().all().read::<f64>().unwrap();
        assert_eq!(found, expected, "{flags:?}");
        // through a pipe, where bytes leave in their order
        let piped = tslice(dir.path(), &[&inputs[..], flags].concat()).output().unwrap();
        assert_eq!(piped.stdout, fs::read(dir.path().join("out.npy")).unwrap(), "{flags:?}");
    }
    // the first one is cast to its own type in the other order
    let inputs = ["concat", "d.npy", "i.npy", "f.npy"];
    for cast in ["<f8", ">f8"] {
        let args = [&inputs[..], &["--cast", cast, "-o", "out.npy", "-f"]].concat();
        tslice(dir.path(), &args).assert().success().stderr("");
        let file = tslice::open(dir.path().join("out.npy")).unwrap();
        let found = file.only().unwrap().all().read::<f64>().unwrap();
        assert_eq!(found, [-0.5, 8.0, 1.0, -2.0, 1.5, 2.5], "{cast}");
    }
    let inputs = ["concat", "i.npy", "f.npy", "d.npy"];
    let args = [&inputs[..], &["--cast", "i2:f8", "-o", "other.npy"]].concat();
    tslice(dir.path(), &args).assert().code(1).stderr(
        "tslice: f.npy: input 1 has dtype float32, input 0 has >i2\n\
         hint: --cast float64 casts all of them first\n",
    );
}

#[test]
fn parts_that_are_not_equal_are_told_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    write_npy(&dir.path().join("ten.npy"), &U8, &[10], &[0; 10]);
    let says = |args: &[&str], code, stderr: &'static str| {
        let args = [&["split", "ten.npy", "-f", "-o", "p{}.npy"], args].concat();
        tslice(dir.path(), &args).assert().code(code).stdout("").stderr(stderr);
    };
    let note = "tslice: note: ten.npy: the axis has size 10, and its 4 parts have sizes from 2 to 3\n\
                hint: --equal refuses that\n";
    says(&["--parts", "4"], 0, note);
    says(&["--parts", "4", "-q"], 0, "");
    says(&["--parts", "5"], 0, "");
    says(&["--parts", "5", "--equal"], 0, "");
    // here the lengths were asked for
    says(&["--every", "4"], 0, "");
    says(&["--sizes", "4,6"], 0, "");
    let refused = "tslice: ten.npy: the axis has size 10, and its 3 parts have sizes from 2 to 4\n";
    says(&["--every", "4", "--equal"], 1, refused);
    says(&["--at", "4,8", "--equal"], 1, refused);
    says(&["--at", "5", "--equal"], 0, "");
}

#[test]
fn programs_read_what_a_dry_run_says() {
    let dir = tempfile::tempdir().unwrap();
    write_npy(&dir.path().join("ten.npy"), &U8, &[10], &[0; 10]);
    let says = |args: &[&str], expected: serde_json::Value| {
        let done = tslice(dir.path(), &[args, &["-n", "--json"]].concat()).assert().success();
        let found: serde_json::Value = serde_json::from_slice(&done.get_output().stdout).unwrap();
        assert_eq!(found, expected, "{args:?}");
    };
    let part = |file: &str, len: u64| {
        serde_json::json!({
            "file": file, "format": "npy", "tensors": 1, "shape": [len], "dtype": "uint8",
            "bytes": len, "file_bytes": 128 + len,
        })
    };
    let outputs = |outputs: &[serde_json::Value]| serde_json::json!({ "outputs": outputs });
    says(&["ten.npy", "[:3]", "-o", "out.npy"], outputs(&[part("out.npy", 3)]));
    let both = [part("p0.npy", 4), part("p1.npy", 6)];
    says(&["split", "ten.npy", "--sizes", "4,6", "-o", "p{}.npy"], outputs(&both));
    let in_place = serde_json::json!({
        "file": "ten.npy", "in_place": true, "format": "npy", "tensors": 1, "shape": [2],
        "dtype": "uint8", "bytes": 2,
    });
    says(&["assign", "ten.npy", "[:2]", "--fill", "1", "--in-place"], outputs(&[in_place]));
    let part = serde_json::json!({ "part": "1/2", "output": [128, 138], "writes": 10 });
    says(&["ten.npy", "-o", "out.npy", "--part", "1/2"], part);
}
