//! `--transpose` and `-T`, through the program.

use std::fs;

use serde_json::Value;
use tslice::dtype::{DType, Endian, Scalar};
use tslice::formats::npy;
use tslice::shape::Order;

use crate::inputs::write_safetensors;
use crate::program::tslice;

/// A `.npy` of bytes that count up.
fn bytes(shape: &[u64]) -> Vec<u8> {
    let dtype = DType::Scalar(Scalar::U8, Endian::Little);
    let mut file = npy::header(&dtype, shape, Order::C).unwrap();
    file.extend((0..shape.iter().product::<u64>()).map(|at| at as u8));
    file
}

#[test]
fn images_are_put_channels_first() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("nhwc.npy"), bytes(&[2, 2, 3, 2])).unwrap();
    let args = ["nhwc.npy", "[1:]", "--transpose", "0,-1,1,2", "-o", "nchw.bin"];
    tslice(dir.path(), &args).assert().success().stdout("").stderr("");
    let expected = [12, 14, 16, 18, 20, 22, 13, 15, 17, 19, 21, 23];
    assert_eq!(fs::read(dir.path().join("nchw.bin")).unwrap(), expected);

    // transposed twice, it is what it was
    let there = fs::read(dir.path().join("nhwc.npy")).unwrap();
    let args = ["-", "-T"];
    let once = tslice(dir.path(), &args).write_stdin(there.clone()).assert().success();
    let once = once.get_output().stdout.clone();
    tslice(dir.path(), &["-", "--transpose="]).write_stdin(once).assert().success().stdout(there);
}

#[test]
fn kept_tensors_are_not_transposed() {
    let dir = tempfile::tempdir().unwrap();
    let json = concat!(
        r#"{"a":{"dtype":"U8","shape":[2,3],"data_offsets":[0,6]},"#,
        r#""b":{"dtype":"U8","shape":[2,2],"data_offsets":[6,10]}}"#
    );
    write_safetensors(&dir.path().join("m.safetensors"), json, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let args = ["m.safetensors", "-t", "a", "-T", "--keep-rest", "-o", "out.safetensors"];
    tslice(dir.path(), &args).assert().success();
    let file = fs::read(dir.path().join("out.safetensors")).unwrap();
    assert_eq!(file[file.len() - 10..], [0, 3, 1, 4, 2, 5, 6, 7, 8, 9]);
}

#[test]
fn explain_tells_the_transposed_shape() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["explain", "[..., 0]", "--shape", "8,48,64,3", "--transpose", "-1,0,1"];
    let told = tslice(dir.path(), &args).assert().success().get_output().stdout.clone();
    let told = String::from_utf8(told).unwrap();
    let line = |name: &str| {
        let row = told.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        row.map(str::to_owned)
    };
    assert_eq!(line("transpose").as_deref(), Some("2,0,1"));
    assert_eq!(line("output").as_deref(), Some("shape (64, 8, 48)"));
    let args = [&args[..], &["--json"]].concat();
    let told = tslice(dir.path(), &args).assert().success().get_output().stdout.clone();
    let told: Value = serde_json::from_slice(&told).unwrap();
    assert_eq!(told["transpose"], serde_json::json!([2, 0, 1]));
    assert_eq!(told["output"]["shape"], serde_json::json!([64, 8, 48]));
}

#[test]
fn what_is_no_view_goes_through_a_temporary_file_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("c.npy"), bytes(&[4, 6])).unwrap();
    tslice(dir.path(), &["c.npy", "--order", "F", "-o", "f.npy"]).assert().success();
    let plan = |args: &[&str]| {
        let words = [args, &["-n", "--json", "-o", "out.npy"]].concat();
        let run = tslice(dir.path(), &words).assert().success();
        let plan: Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
        plan["outputs"][0]["temporary_bytes"].as_u64()
    };
    assert_eq!(plan(&["f.npy", "--reshape", "8,3"]), Some(24));
    // no more of it than is needed
    assert_eq!(plan(&["f.npy", "[2:4, 1]", "--reshape", "8,3"]), Some(4));
    for view in [&["f.npy", "--reshape", "2,2,3,2"][..], &["c.npy", "--reshape", "8,3"]] {
        assert_eq!(plan(view), None, "{view:?}");
    }
    let args = ["f.npy", "[2:4, 1]", "--reshape", "8,3", "--to", "raw"];
    tslice(dir.path(), &args).assert().success().stdout(&[7, 10][..]);
    // the file keeps its shape and its order
    let args = ["assign", "f.npy", "[7]", "--fill", "9", "--reshape", "8,3", "--in-place"];
    tslice(dir.path(), &args).assert().success();
    let there = fs::read(dir.path().join("f.npy")).unwrap();
    let elements = &there[there.len() - 24..];
    assert_eq!((elements[3 * 4 + 3], elements[4 * 4 + 3], elements[5 * 4 + 3]), (9, 9, 9));
    assert_eq!(elements.iter().filter(|byte| **byte == 9).count(), 4);
}
