//! `tslice explain`: what an index means for each axis, and how it is read.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;
use tslice::dtype::{DType, Endian, Scalar};

use crate::inputs::npy_header;
use crate::program::tslice;

/// A folder with `frames.npy`, 20 frames of 300 x 400 pixels of 4 bytes, of which nothing is read,
/// and a list and a mask of its frames.
fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let bytes = |scalar| DType::Scalar(scalar, Endian::Little);
    let frames = npy_header(&bytes(Scalar::U8), &[20, 300, 400, 4]);
    let file = fs::File::create(dir.path().join("frames.npy")).unwrap();
    std::io::Write::write_all(&mut &file, &frames).unwrap();
    file.set_len(frames.len() as u64 + 20 * 300 * 400 * 4).unwrap();
    let list = [npy_header(&bytes(Scalar::U8), &[2, 1]), vec![3, 7]].concat();
    fs::write(dir.path().join("two.npy"), list).unwrap();
    let mask = [&npy_header(&bytes(Scalar::Bool), &[20, 300])[..], &[1; 5], &[0; 5995]].concat();
    fs::write(dir.path().join("mask.npy"), mask).unwrap();
    dir
}

fn explained(folder: &TempDir, args: &[&str]) -> String {
    let told = tslice(folder, &[&["explain"], args].concat()).assert().success();
    String::from_utf8(told.get_output().stdout.clone()).unwrap()
}

/// The values of rows, by their names.
fn rows(text: &str, names: &[&str]) -> Vec<String> {
    let row = |name: &&str| {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(*name));
        lines.find(|rest| rest.starts_with(' ')).map(|rest| rest.trim().to_owned()).unwrap()
    };
    names.iter().map(row).collect()
}

#[test]
fn it_tells_how_an_index_is_read() {
    let dir = folder();
    let read = |index: &str| {
        let text = explained(&dir, &["frames.npy", index]);
        rows(&text, &["runs", "touched", "read"])
    };
    let (streaming, kept) =
        ("from front to back, a pipe in one pass", "a pipe is first stored in a file");
    assert_eq!(
        read("3:5"),
        ["1 of 960000 bytes", "960000 bytes, all used", &format!("streaming: {streaming}")]
    );
    assert_eq!(
        read("..., :3"),
        [
            "2400000 of 3 bytes",
            "9599999 bytes, 7200000 used (75 %)",
            &format!("streaming: {streaming}")
        ]
    );
    // every second run begins where the one before ends
    assert_eq!(
        read("0, 0, :4, ::3"),
        [
            "5 of 1.6 bytes on average",
            "16 bytes, 8 used (50 %)",
            &format!("streaming: {streaming}")
        ]
    );
    // rows that are further apart than a page are touched without what lies between them
    assert_eq!(
        read("::-4, 0"),
        [
            "5 of 1600 bytes",
            "8000 bytes, all used",
            &format!("strided: by position, in the order of the output; {kept}")
        ]
    );
    assert_eq!(
        read("[[0, 3], :, 5]"),
        [
            "600 of 4 bytes",
            "at most 956808 bytes, 2400 used (0.3 %)",
            &format!("gather: by position, as the lists name them; {kept}")
        ]
    );
    let text = explained(&dir, &["frames.npy", "7:7"]);
    assert_eq!(rows(&text, &["runs", "read"]), ["none", "nothing"]);
    let text = explained(&dir, &["frames.npy", "-T"]);
    assert_eq!(
        rows(&text, &["runs", "read"]),
        [
            "9600000 of 1 byte",
            &format!("relayout: in boxes, as the axes change their order; {kept}")
        ]
    );
}

#[test]
fn each_axis_has_a_line() {
    let dir = folder();
    let text = explained(&dir, &["frames.npy", "[@two.npy, None, -1:9:-100, ..., 2]"]);
    let lines = "\n\
        axis  size  asked      resolved                        length\n\
        0       20  @two.npy   positions of the list @two.npy   (2,1)\n\
        new      -  None       new axis                             1\n\
        1      300  -1:9:-100  positions 299 to 99 by -100          3\n\
        2      400  ...        whole                              400\n\
        3        4  2          position 2                           -\n";
    assert!(text.contains(lines), "{text}");
    let text = explained(&dir, &["frames.npy", "@mask.npy, 5:6"]);
    let lines = "\n\
        axis  size  asked      resolved                                         length\n\
        0       20  @mask.npy  where the mask @mask.npy of axes 0 to 1 is true       5\n\
        1      300  @mask.npy  where the mask @mask.npy of axes 0 to 1 is true       -\n\
        2      400  5:6        position 5                                            1\n\
        3        4  -          whole                                                 4\n";
    assert!(text.contains(lines), "{text}");
}

#[test]
fn programs_are_told_the_same() {
    let dir = folder();
    let args = ["frames.npy", "[[True, False], 1, ::2]", "--outer", "--json"];
    let said = tslice(&dir, &[&["explain"], &args[..]].concat()).assert().failure();
    assert!(String::from_utf8_lossy(&said.get_output().stderr).contains("boolean index"));
    let args = ["[[2, 0], 1, ::2]", "--shape", "20,300,400", "--json"];
    let told: Value = serde_json::from_str(&explained(&dir, &args)).unwrap();
    assert_eq!(
        told["axes"],
        json!([
            { "axis": 0, "size": 20, "asked": "[2, 0]", "list": { "axes": [0], "shape": [2] } },
            { "axis": 1, "size": 300, "asked": "1", "position": 1, "length": null },
            { "axis": 2, "size": 400, "asked": "::2", "start": 0, "step": 2, "length": 200 },
        ])
    );
    assert_eq!(
        told["reading"],
        json!({
            "way": "gather", "unit": "elements", "runs": 400, "run_length": 1, "used": 400,
            "touched": 798,
        })
    );
}
