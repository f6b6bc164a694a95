//! Files of torch.save: names, views of shared storages, byte orders; what is refused.
//! `tests/python/torch_differential.py` does the same with PyTorch's own files, and with hostile ones.

use std::fs;
use std::path::Path;

use predicates::str::contains;
use tempfile::TempDir;

use crate::inputs::zip;
use crate::program::tslice;

/// A text, a small number, a tuple of these.
fn text(value: &str) -> Vec<u8> {
    [b"X", &(value.len() as u32).to_le_bytes()[..], value.as_bytes()].concat()
}

fn numbers(values: &[u8]) -> Vec<u8> {
    tuple(&values.iter().map(|&value| vec![b'K', value]).collect::<Vec<_>>())
}

fn tuple(parts: &[Vec<u8>]) -> Vec<u8> {
    [b"(", parts.concat().as_slice(), b"t"].concat()
}

fn global(module: &str, name: &str) -> Vec<u8> {
    format!("c{module}\n{name}\n").into_bytes()
}

/// A tensor of int16, a view of storage 0, which has 12 elements.
fn tensor(offset: u8, shape: &[u8], strides: &[u8]) -> Vec<u8> {
    let class = global("torch", "ShortStorage");
    let id = tuple(&[text("storage"), class, text("0"), text("cpu"), vec![b'K', 12]]);
    let hooks = [global("collections", "OrderedDict"), b")R".to_vec()].concat();
    let stored = [id, b"Q".to_vec()].concat();
    let offset = vec![b'K', offset];
    let parts = [stored, offset, numbers(shape), numbers(strides), vec![0x89], hooks];
    [global("torch._utils", "_rebuild_tensor_v2"), tuple(&parts), b"R".to_vec()].concat()
}

/// A dict.
fn dict(items: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let items = items.iter().map(|(key, value)| [text(key), value.clone()].concat());
    [b"}(", items.collect::<Vec<_>>().concat().as_slice(), b"u"].concat()
}

/// An archive with an object, and the numbers 0 to 11 in storage 0.
fn archive(object: &[u8], big: bool) -> Vec<u8> {
    let pickle = [b"\x80\x02", object, b"."].concat();
    let bytes = |number: u16| if big { number.to_be_bytes() } else { number.to_le_bytes() };
    let storage: Vec<u8> = (0..12).flat_map(bytes).collect();
    let order: &[u8] = if big { b"big" } else { b"little" };
    zip(&[("m/data.pkl", &pickle), ("m/byteorder", order), ("m/data/0", &storage)])
}

fn folder(object: &[u8]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("m.pt"), archive(object, false)).unwrap();
    dir
}

/// What a command prints.
fn prints(folder: &Path, args: &[&str], expected: &str) {
    tslice(folder, args).assert().success().stdout(expected.to_owned()).stderr("");
}

#[test]
fn views_of_one_storage_are_tensors() {
    let inner = [b"](K\x07", tensor(1, &[2], &[5]).as_slice(), b"e"].concat();
    let object = dict(&[
        ("layers.0.weight", tensor(0, &[3, 4], &[4, 1])),
        ("t", tensor(0, &[4, 3], &[1, 4])),
        ("epoch", vec![b'K', 3]),
        ("state", inner),
        ("wide", tensor(2, &[3, 2], &[0, 3])),
        ("one", tensor(11, &[], &[])),
        ("none", tensor(0, &[0, 3], &[3, 1])),
    ]);
    let dir = folder(&object);
    let to = ["--to", "csv"];
    for (name, expected) in [
        ("layers.0.weight", "0,1,2,3\n4,5,6,7\n8,9,10,11\n"),
        ("t", "0,4,8\n1,5,9\n2,6,10\n3,7,11\n"),
        ("state[1]", "1\n6\n"),
        ("wide", "2,5\n2,5\n2,5\n"),
        ("one", "11\n"),
        ("none", ""),
    ] {
        prints(dir.path(), &[&["m.pt", "-t", name][..], &to].concat(), expected);
    }
    prints(dir.path(), &["m.pt", "-t", "t", "[::-2, 1:]", "--to", "csv"], "7,11\n5,9\n");
    prints(dir.path(), &["m.pt", "-t", "wide", "[[2, 0], 1]", "--to", "csv"], "5\n5\n");
    let whole = ["m.pt", "-t", "*", "-o", "all.safetensors"];
    prints(dir.path(), &whole, "");
    prints(dir.path(), &["diff", "m.pt", "all.safetensors"], "");
    // indices and values come from such files too
    fs::write(dir.path().join("t.pt"), archive(&tensor(0, &[4, 3], &[1, 4]), false)).unwrap();
    prints(dir.path(), &["m.pt", "-t", "one", "-o", "one.npy"], "");
    let gather = ["gather", "m.pt", "-t", "t", "--axis", "0", "--indices", "one.npy"];
    tslice(dir.path(), &gather).assert().code(1).stderr(contains("indices = 11 is not in [0, 4)"));
    let assign = ["assign", "all.safetensors", "-t", "t", "--value", "t.pt", "--in-place", "-q"];
    prints(dir.path(), &assign, "");
    prints(dir.path(), &["diff", "m.pt", "all.safetensors"], "");
}

#[test]
fn an_object_that_is_a_tensor_has_no_name() {
    let dir = folder(&tensor(0, &[3, 4], &[4, 1]));
    prints(dir.path(), &["m.pt", "[1]", "--to", "csv"], "4\n5\n6\n7\n");
    tslice(dir.path(), &["m.pt", "-o", "out.safetensors"]).assert().success();
    tslice(dir.path(), &["info", "out.safetensors"]).assert().stdout(contains("  m     int16"));
}

#[test]
fn numbers_of_either_byte_order_are_read() {
    let dir = folder(&tensor(0, &[12], &[1]));
    fs::write(dir.path().join("b.pt"), archive(&tensor(0, &[12], &[1]), true)).unwrap();
    prints(dir.path(), &["diff", "m.pt", "b.pt"], "");
    tslice(dir.path(), &["info", "b.pt"]).assert().stdout(contains(">i2"));
}

#[test]
fn nothing_in_a_pickle_runs() {
    let dir = folder(b"cos\nsystem\n(X\x09\0\0\0touch rantR");
    let says = "m.pt: pytorch: it asks for `os.system`, which is not read";
    tslice(dir.path(), &["info", "m.pt"]).assert().code(1).stderr(contains(says));
    assert!(!dir.path().join("ran").exists());
}

#[test]
fn no_place_of_a_file_that_is_only_read_is_changed() {
    let dir = folder(&tensor(0, &[12], &[1]));
    let before = fs::read(dir.path().join("m.pt")).unwrap();
    for to in [&["--in-place"][..], &["-o", "copy.pt"]] {
        let assign = [&["assign", "m.pt", "[0]", "--fill", "1"][..], to].concat();
        let says = contains("a file of format pytorch cannot be changed");
        tslice(dir.path(), &assign).assert().code(1).stderr(says);
    }
    assert_eq!(fs::read(dir.path().join("m.pt")).unwrap(), before);
}

#[test]
fn members_that_share_bytes_are_refused() {
    let dir = folder(&tensor(0, &[12], &[1]));
    let path = dir.path().join("m.pt");
    let mut bytes = fs::read(&path).unwrap();
    // the last entry of the directory says where its member begins, 4 bytes before its name
    let at = bytes.len() - 22 - "m/data/0".len() - 4;
    bytes[at..at + 4].copy_from_slice(&0u32.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    tslice(dir.path(), &["info", "m.pt"]).assert().code(1).stderr(contains("m/data/0"));
}
