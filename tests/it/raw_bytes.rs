//! Raw bytes in and out, and `--dtype` for what a header leaves open.

use std::fs;

use tempfile::TempDir;

use crate::program::tslice;

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
        "tslice: a.bin: not a .npy, .npz or .safetensors file, nor the index of a sharded checkpoint\n\
         hint: --dtype, with --shape and --offset, reads raw bytes\n",
    );
    fails(
        &["a.bin", "--dtype", "f8", "--offset", "3"],
        1,
        "tslice: a.bin: the 45 bytes from byte 3 on are no whole number of float64 elements\n",
    );
    fails(
        &["a.bin", "--dtype", "f4", "--shape", "5,-1"],
        1,
        "tslice: a.bin: the 48 bytes are no whole number of slabs of shape (5,) and dtype \
         float32\n",
    );
    fails(
        &["a.bin", "--dtype", "f4", "--shape", "5,5"],
        1,
        "tslice: a.bin: 100 bytes are asked for by --shape and --offset, 48 are there\n",
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
         hint: with --dtype, --offset 0 takes it as raw bytes from the first one on\n",
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
