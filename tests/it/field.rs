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
        (&["--field", "id", "[[2, 0, 2]]"], &[26, 0, 26]),
        (&["--field", "v", "[[2, 0], [0, 1]]"], &[35, 36, 11, 12]),
        (&["--field", "v", "[[True, False, True], 1]"], &[11, 12, 37, 38]),
        (&["--field", "v,id", "[[2, 1]]"], &[35, 36, 37, 38, 26, 22, 23, 24, 25, 13]),
        (&["--field", "v", "-T"], &[9, 10, 22, 23, 35, 36, 11, 12, 24, 25, 37, 38]),
        (&["--field", "v,id", "[:2]"], &[9, 10, 11, 12, 0, 22, 23, 24, 25, 13]),
        (&["--field", "v", "--cast", "uint8", "--casting", "unsafe"], &[10, 12, 23, 25, 36, 38]),
    ] {
        let args = [&["a.npy"], args, &["-o", "out.bin", "-f"]].concat();
        tslice(dir.path(), &args).assert().success().stderr("");
        assert_eq!(fs::read(dir.path().join("out.bin")).unwrap(), expected, "{args:?}");
    }
    // a comma makes a structure of one field
    let args = ["a.npy", "--field", "id,", "-n", "-o", "out.npy"];
    let told = tslice(dir.path(), &args).assert().success().get_output().stdout.clone();
    assert!(String::from_utf8(told).unwrap().contains("dtype [('id', '|u1')], 3 bytes"));
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
    ] {
        let args = [&["a.npy"], args, &["-o", "out.npy"]].concat();
        tslice(dir.path(), &args).assert().code(1).stderr(format!("tslice: a.npy: {told}\n"));
    }
}

/// Whatever takes a tensor takes a field of it.
#[test]
fn fields_go_through_every_command() {
    let dir = tempfile::tempdir().unwrap();
    write_items(&dir.path().join("a.npy"), 3);
    for (args, expected) in [
        (&["gather", "a.npy", "--indices", "[[2], [0]]", "--field", "id"][..], &[26, 0][..]),
        (
            &["gather", "a.npy", "--indices", "[1, 0]", "--axis", "1", "--field", "v"],
            &[11, 12, 9, 10, 24, 25, 22, 23, 37, 38, 35, 36],
        ),
        (
            &["gather", "a.npy", "--indices", "[2, 0]", "--axis", "0", "--field", "id,pos"],
            &[26, 27, 28, 29, 30, 31, 32, 33, 34, 0, 1, 2, 3, 4, 5, 6, 7, 8],
        ),
        (&["concat", "a.npy", "a.npy", "--field", "id", "--index", "1:"], &[13, 26, 13, 26]),
        (&["stack", "a.npy", "a.npy", "--axis", "1", "--field", "id"], &[0, 0, 13, 13, 26, 26]),
        (
            &["stack", "a.npy", "a.npy", "--axis", "1", "--field", "v,id", "--index", ":1"],
            &[9, 10, 11, 12, 0, 9, 10, 11, 12, 0],
        ),
    ] {
        let args = [args, &["-o", "out.bin", "-f"]].concat();
        tslice(dir.path(), &args).assert().success().stderr("");
        assert_eq!(fs::read(dir.path().join("out.bin")).unwrap(), expected, "{args:?}");
    }
    let split = ["split", "a.npy", "--at", "1", "--field", "v,id", "-o", "part-{}.bin"];
    tslice(dir.path(), &split).assert().success().stderr("");
    assert_eq!(fs::read(dir.path().join("part-0.bin")).unwrap(), [9, 10, 11, 12, 0]);

    let view = ["view", "a.npy", "--field", "v"];
    let shown = "[[2314 2828]\n [5655 6169]\n [8996 9510]]\nshape (3, 2), dtype >i2\n";
    tslice(dir.path(), &view).assert().success().stdout(shown);
    let diff = ["diff", "a.npy", "a.npy", "--field", "pos"];
    tslice(dir.path(), &diff).assert().success().stdout("");
    let explain = ["explain", "a.npy", "1", "--field", "pos.x", "--json"];
    let told = tslice(dir.path(), &explain).assert().success().get_output().stdout.clone();
    let told: serde_json::Value = serde_json::from_slice(&told).unwrap();
    assert_eq!((&told["field"], &told["output"]["bytes"]), (&"pos.x".into(), &4.into()));
}

/// NumPy finds a field by its title too; several are packed with theirs.
#[test]
fn titles_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let descr = "[(('T', 'x'), '|u1'), (('U', 'y'), '|u1')]";
    let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (2,), }}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((text.len() as u16).to_le_bytes());
    file.extend([text.as_bytes(), &[1, 2, 3, 4]].concat());
    fs::write(dir.path().join("a.npy"), file).unwrap();
    let args = ["a.npy", "--field", "U", "-o", "u.bin"];
    tslice(dir.path(), &args).assert().success();
    assert_eq!(fs::read(dir.path().join("u.bin")).unwrap(), [2, 4]);
    let args = ["a.npy", "--field", "y,x", "-n", "-o", "out.npy"];
    let told = tslice(dir.path(), &args).assert().success().get_output().stdout.clone();
    let packed = "dtype [(('U', 'y'), '|u1'), (('T', 'x'), '|u1')]";
    assert!(String::from_utf8(told).unwrap().contains(packed));
    let told = "tslice: a.npy: --field: no field is named \"T\"; the fields are x, y\n";
    tslice(dir.path(), &["a.npy", "--field", "T,y"]).assert().code(1).stderr(told);
}

#[test]
fn the_library_takes_fields_of_handles() {
    let dir = tempfile::tempdir().unwrap();
    write_items(&dir.path().join("a.npy"), 3);
    let items = tslice::open(dir.path().join("a.npy")).unwrap().only().unwrap();
    let v = items.field("v").unwrap();
    assert_eq!((v.shape(), v.dtype().to_string()), (&[3, 2][..], ">i2".to_owned()));
    assert_eq!(v.slice("[[2, 0], 1]").unwrap().read::<i16>().unwrap(), [9510, 2828]);
    assert_eq!(v.take([1], 1).unwrap().read::<i16>().unwrap(), [2828, 6169, 9510]);
    let told = items.field("id.x").err().unwrap().to_string();
    assert!(told.ends_with("a.npy: dtype uint8 has no fields"), "{told}");
}

/// The texts are those of np.datetime_as_string, and the columns those that np.loadtxt reads.
#[test]
fn structures_and_times_become_text() {
    let dir = tempfile::tempdir().unwrap();
    write_items(&dir.path().join("a.npy"), 2);
    let descr = "[('t', '<M8[s]'), ('p', [('d', '>m8[25s]'), ('ok', '|b1')])]";
    let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (2,), }}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((text.len() as u16).to_le_bytes());
    file.extend(text.bytes());
    for (time, length, ok) in [(1_582_934_400i64, -3i64, 1), (i64::MIN, i64::MIN, 0)] {
        file.extend(time.to_le_bytes());
        file.extend(length.to_be_bytes());
        file.push(ok);
    }
    fs::write(dir.path().join("t.npy"), file).unwrap();
    for (args, expected) in [
        (&["a.npy", "--field", "v,id", "--to", "csv"][..], "2314,2828,0\n5655,6169,13\n"),
        (
            &["a.npy", "--field", "v,id", "--to", "json"],
            "[{\"v\": [2314, 2828], \"id\": 0}, {\"v\": [5655, 6169], \"id\": 13}]\n",
        ),
        (&["t.npy", "--to", "txt"], "2020-02-29T00:00:00 -3 1\nNaT NaT 0\n"),
        (
            &["t.npy", "--to", "json"],
            "[{\"t\": \"2020-02-29T00:00:00\", \"p\": {\"d\": -3, \"ok\": true}}, \
             {\"t\": \"NaT\", \"p\": {\"d\": \"NaT\", \"ok\": false}}]\n",
        ),
    ] {
        tslice(dir.path(), args).assert().success().stdout(expected).stderr("");
    }
}
