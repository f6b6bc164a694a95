//! Raw bytes in and out, and `--dtype` for what a header leaves open.

use std::fs;

use std::time::Duration;

use tempfile::TempDir;
use tslice::dtype::{DType, Endian, Scalar};

use crate::inputs::{U8, write_npy};
use crate::program::{bash, tslice};

/// A folder with `a.bin`, big-endian 16-bit integers that count up to 24, and `v2.npy`, the shape
/// (2, 3) of elements of two bytes.
fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..24u16).flat_map(u16::to_be_bytes).collect();
    fs::write(dir.path().join("a.bin"), bytes).unwrap();
    let mut npy = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    npy.extend(b"{'descr': '|V2', 'fortran_order': False, 'shape': (2, 3), }");
    npy.resize(127, b' ');
    npy.push(b'\n');
    npy.extend(0..12);
    fs::write(dir.path().join("v2.npy"), npy).unwrap();
    dir
}

#[test]
fn bytes_come_out_as_they_went_in() {
    let dir = folder();
    let whole = fs::read(dir.path().join("a.bin")).unwrap();
    let take = |args: &[&str], expected: &[u8]| {
        let to_raw = [args, &["--to", "raw"]].concat();
        tslice(dir.path(), &to_raw).assert().success().stdout(expected.to_vec());
        let piped: Vec<&str> =
            to_raw.iter().map(|&arg| if arg == "a.bin" { "-" } else { arg }).collect();
        let assert = tslice(dir.path(), &piped).write_stdin(whole.clone()).assert();
        assert.success().stdout(expected.to_vec());
    };
    take(&["a.bin", "--dtype", ">i2"], &whole);
    take(&["a.bin", ":2", "--dtype", ">i2"], &[0, 0, 0, 1]);
    take(&["a.bin", "-1", "--dtype", ">i2", "--shape", "2,12", "--offset", "0"], &whole[24..]);
    take(&["a.bin", "1, 1", "--dtype", "int16", "--shape", "4,-1"], &[0, 7]);
    take(
        &["a.bin", "1", "--dtype", ">u2", "--shape", "2,3", "--input-order", "F", "--offset", "2"],
        &[0, 2, 0, 4, 0, 6],
    );
    take(&["a.bin", "--dtype", "u1", "--offset", "46"], &[0, 23]);
}

/// The same elements as raw bytes and as `.npy`: `b.raw`, the shape (4, 6) of big-endian 16-bit integers
/// behind 3 other bytes, and `b.npy`.
fn pair(dir: &TempDir) -> [&'static str; 6] {
    let elements = fs::read(dir.path().join("a.bin")).unwrap();
    fs::write(dir.path().join("b.raw"), [b"abc", &elements[..]].concat()).unwrap();
    let dtype = DType::Scalar(Scalar::I16, Endian::Big);
    write_npy(&dir.path().join("b.npy"), &dtype, &[4, 6], &elements);
    ["--dtype", ">i2", "--shape", "4,-1", "--offset", "3"]
}

/// What every command says of a `.npy`, it says of the same elements as raw bytes.
#[test]
fn every_command_takes_raw_bytes() {
    let dir = folder();
    let layout = pair(&dir);
    let run = |line: &str, input: &str, layout: &[&str]| {
        let words = line.split(' ').map(|word| if word == "IN" { input } else { word });
        let args: Vec<&str> = words.chain(layout.iter().copied()).collect();
        let output = tslice(dir.path(), &args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{args:?}: {said}");
        output.stdout
    };
    for line in [
        "IN [1:,::-2]",
        "gather IN --axis 0 --indices [3,0]",
        "gather IN --indices [[3,0],[1,5]]",
        "view IN [::2]",
        "view IN --stats --json",
        "concat IN IN --axis 1",
        "concat b.npy IN",
        "stack IN b.npy",
        "diff IN b.npy",
        "diff b.npy IN [1:]",
        "diff IN IN -q",
    ] {
        assert_eq!(run(line, "b.raw", &layout), run(line, "b.npy", &[]).as_slice(), "{line}");
    }
    run("split IN --parts 2 -o raw-{}.npy", "b.raw", &layout);
    run("split IN --parts 2 -o npy-{}.npy", "b.npy", &[]);
    for part in 0..2 {
        let read = |name: &str| fs::read(dir.path().join(format!("{name}-{part}.npy"))).unwrap();
        assert_eq!(read("raw"), read("npy"));
    }
    let words = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).unwrap();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let explained = words(run("explain IN [1:,0]", "b.raw", &layout));
    assert!(explained.contains(" input shape (4, 6), dtype >i2, 48 bytes "), "{explained}");
    let shown = words(run("info IN b.npy", "b.raw", &layout));
    let lines = "b.raw >i2 (4, 6) 48 C b.npy >i2 (4, 6) 48 C total: 2 tensors, 48 elements, ";
    assert!(shown.contains(lines), "{shown}");
}

#[test]
fn raw_bytes_are_changed() {
    let dir = folder();
    let layout = pair(&dir);
    let before = fs::read(dir.path().join("b.raw")).unwrap();
    let run = |args: &[&str]| {
        tslice(dir.path(), &[args, &layout[..]].concat()).assert().success().stdout("");
    };
    // [1, 2] is element 8
    let mut expected = before.clone();
    expected[3 + 16..][..2].copy_from_slice(&(-2i16).to_be_bytes());
    run(&["assign", "b.raw", "[1, 2]", "--fill", "-2", "-o", "c.raw"]);
    assert_eq!(fs::read(dir.path().join("c.raw")).unwrap(), expected);
    run(&["assign", "b.raw", "[1, 2]", "--fill", "-2", "-o", "c.dat"]);
    assert_eq!(fs::read(dir.path().join("c.dat")).unwrap(), expected);
    assert_eq!(fs::read(dir.path().join("b.raw")).unwrap(), before);
    run(&["assign", "b.raw", "[1, 2]", "--fill", "-2", "--in-place"]);
    assert_eq!(fs::read(dir.path().join("b.raw")).unwrap(), expected);
    // the last row becomes the first one
    tslice(dir.path(), &["b.npy", "[3:]", "-o", "last.npy"]).assert().success();
    run(&["scatter", "b.raw", "--indices", "[[0]]", "--values", "last.npy", "--in-place"]);
    let mut scattered = expected.clone();
    scattered.copy_within(3 + 36..3 + 48, 3);
    assert_eq!(fs::read(dir.path().join("b.raw")).unwrap(), scattered);
}

/// Compressed and encoded bytes are no numbers, unless it is said where the numbers begin.
#[test]
fn files_of_other_kinds_are_no_raw_bytes_by_mistake() {
    let dir = folder();
    let gzip = [b"\x1f\x8b\x08\0", &[7; 12][..]].concat();
    fs::write(dir.path().join("x.gz"), &gzip).unwrap();
    fs::write(dir.path().join("x.raw"), &gzip).unwrap();
    fs::write(dir.path().join("table"), "1.5,2\n3,4.5\n").unwrap();
    fs::write(dir.path().join("digits.raw"), "1 2 3 4 ").unwrap();
    for name in ["x.gz", "x.raw", "table"] {
        for command in ["", "view", "gather", "info", "explain", "split"] {
            let mut args = vec![command, name, "--dtype", "uint8"];
            args.retain(|word| !word.is_empty());
            match command {
                "gather" => args.extend(["--axis", "0", "--indices", "[0]"]),
                "split" => args.extend(["--parts", "2", "-o", "part-{}.npy"]),
                _ => {}
            }
            let output = tslice(dir.path(), &args).output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
            assert!(said.contains(": --dtype is for raw bytes, and the input is "), "{said}");
            assert!(said.contains("--offset 0 "), "{said}");
            assert!(output.stdout.is_empty(), "{args:?}");
        }
        let whole = fs::read(dir.path().join(name)).unwrap();
        let args = [name, "--dtype", "uint8", "--offset", "0", "--to", "raw"];
        tslice(dir.path(), &args).assert().success().stdout(whole.clone());
        let args = ["-", "--dtype", "uint8", "--to", "raw"];
        tslice(dir.path(), &args).write_stdin(whole.clone()).assert().code(1).stdout("");
        let args = ["-", "--dtype", "uint8", "--offset", "0", "--to", "raw"];
        tslice(dir.path(), &args).write_stdin(whole.clone()).assert().success().stdout(whole);
    }
    // letters and digits are raw bytes where the name says so
    let args = ["digits.raw", "--dtype", "uint16", "--to", "raw"];
    tslice(dir.path(), &args).assert().success().stdout("1 2 3 4 ");
}

/// No more of a pipe is waited for than what was asked for.
#[test]
fn bytes_of_a_pipe_that_stays_open_are_taken() {
    let dir = folder();
    write_npy(&dir.path().join("rows.npy"), &U8, &[2, 16], b"abcdefghijklmnop0123456789......");
    for (printed, take, taken) in [
        ("printf abcdefghijklmnop", "--dtype u1 --shape 16", "abcdefghijklmnop"),
        ("printf abcdefghijklmnop", "'[:, 1]' --dtype u1 --shape 1,2", "b"),
        ("head -c 150 rows.npy", "'[0, 1::8]'", "bj"),
        ("head -c 150 rows.npy", "'[:0]'", ""),
    ] {
        let line = format!("{printed} >&3; exec tslice - {take} --to raw < pipe");
        let run = bash(&dir, &format!("rm -f pipe; mkfifo pipe; exec 3<> pipe; {line}"));
        let mut run = assert_cmd::Command::from_std(run);
        let output = run.timeout(Duration::from_secs(100)).output().unwrap();
        assert_eq!(output.stdout, taken.as_bytes(), "{take}");
        assert!(output.status.success());
    }
}

#[test]
fn a_void_dtype_can_be_named() {
    let dir = folder();
    let args = ["v2.npy", "1", "--dtype", "bfloat16", "-o", "v.safetensors"];
    tslice(dir.path(), &args).assert().success();
    let bytes = fs::read(dir.path().join("v.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let tensor = file.tensor("v2").unwrap();
    assert_eq!(tensor.dtype(), safetensors::Dtype::BF16);
    assert_eq!(tensor.data(), [6, 7, 8, 9, 10, 11]);
}

#[test]
fn contradictions_are_errors() {
    let dir = folder();
    let fails = |args: &[&str], code, stderr: &'static str| {
        let args = [args, &["-o", "out.npy"]].concat();
        tslice(dir.path(), &args).assert().code(code).stdout("").stderr(stderr);
        assert!(!dir.path().join("out.npy").exists());
    };
    fails(
        &["a.bin"],
        1,
        "tslice: a.bin: not a .npy, .npz, .safetensors, .pt or .gguf file, nor the index of a sharded checkpoint\n\
         hint: --dtype, with --shape and --offset, reads raw bytes\n",
    );
    fails(
        &["a.bin", "--dtype", "f8", "--offset", "3"],
        1,
        "tslice: a.bin: the 45 bytes from byte 3 on are not a whole number of float64 elements\n",
    );
    fails(
        &["a.bin", "--dtype", "f4", "--shape", "5,-1"],
        1,
        "tslice: a.bin: the 48 bytes are not a whole number of slabs of shape (5,) and dtype \
         float32\n",
    );
    fails(
        &["a.bin", "--dtype", "f4", "--shape", "5,5"],
        1,
        "tslice: a.bin: --shape and --offset need 100 bytes, the file has 48\n",
    );
    fails(
        &["v2.npy", "--dtype", "float32"],
        1,
        "tslice: v2.npy: --dtype float32: its elements have 32 bits, those of the file's |V2 16\n",
    );
    fails(
        &["v2.npy", "--dtype", "i2", "--shape", "6"],
        1,
        "tslice: v2.npy: --shape is for raw bytes, and the input is of format npy\n\
         hint: the shape is in the file: `tslice info v2.npy` shows it\n",
    );
    fails(
        &["a.bin", "--dtype", "f3"],
        2,
        "tslice: --dtype: 'f3' is not the name of a dtype\n\
         hint: did you mean 'f32', 'f2' or 'f4'?\n",
    );
    fails(
        &["a.bin", "--dtype", "f4", "--shape", "-1,-1"],
        2,
        "tslice: --shape: one length may be -1, not several\n",
    );
}
