//! `--field`, through the program.

use std::fs;
use std::path::Path;

use crate::program::tslice;

/// Items of `(id: uint8, pos: (x, y: <f4), v: >i2 of shape (2,))`, of 13 bytes that count up.
fn write_items(path: &Path, count: usize) {
    let descr = "[('id', '|u1'), ('pos', [('x', '<f4'), ('y', '<f4')]), ('v', '>i2', (2,))]";
    let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': ({count},), }}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((text.len() as u16).to_le_bytes());
    file.extend(text.bytes());
    file.extend((0..13 * count).map(|at| at as u8));
    fs::write(path, file).unwrap();
}

#[test]
fn fields_are_taken_by_name() {
    let dir = tempfile::tempdir().unwrap();
    write_items(&dir.path().join("a.npy"), 3);
    for (args, expected) in [
        (&["--field", "id"][..], &[0, 13, 26][..]),
        (&["--field", "pos.y", "[1:]"], &[18, 19, 20, 21, 31, 32, 33, 34]),
        (&["--field", "v", "[..., 1]"], &[11, 12, 24, 25, 37, 38]),
        (&["--field", "v", "-T"], &[9, 10, 22, 23, 35, 36, 11, 12, 24, 25, 37, 38]),
        (&["--field", "v,id", "[:2]"], &[9, 10, 11, 12, 0, 22, 23, 24, 25, 13]),
        (&["--field", "v", "--cast", "uint8", "--casting", "unsafe"], &[10, 12, 23, 25, 36, 38]),
    ] {
        let args = [&["a.npy"], args, &["-o", "out.bin", "-f"]].concat();
        tslice(dir.path(), &args).assert().success().stderr("");
        assert_eq!(fs::read(dir.path().join("out.bin")).unwrap(), expected, "{args:?}");
    }
    let args = ["a.npy", "--field", "v, pos", "-n", "-o", "out.npy"];
    let told = tslice(dir.path(), &args).assert().success().get_output().stdout.clone();
    let told = String::from_utf8(told).unwrap();
    let packed = "dtype [('v', '>i2', (2,)), ('pos', [('x', '<f4'), ('y', '<f4')])], 36 bytes";
    assert!(told.contains(packed), "{told}");
}

#[test]
fn what_is_no_field_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    write_items(&dir.path().join("a.npy"), 3);
    for (args, told) in [
        (&["--field", "z"][..], "--field: no field is named \"z\"; the fields are id, pos, v"),
        (&["--field", "pos.z"], "--field: no field is named \"z\"; the fields are x, y"),
        (&["--field", "id.x"], "--field: dtype uint8 has no fields"),
        (&["--field", "id,v,id"], "--field: the field \"id\" is named twice"),
        (
            &["--field", "v", "[[0, 1]]"],
            "--field: a field cannot be taken with a list in the index",
        ),
    ] {
        let args = [&["a.npy"], args, &["-o", "out.npy"]].concat();
        tslice(dir.path(), &args).assert().code(1).stderr(format!("tslice: {told}\n"));
    }
}
