//! HDF5 as other programs write it: files that are put together here, byte by byte.

use std::fs;
use std::path::Path;

use predicates::str::starts_with;
use serde_json::Value;
use tempfile::TempDir;

use crate::program::tslice;

/// A file with a superblock of version 0, whose objects have headers of version 1.
struct File {
    bytes: Vec<u8>,
}

/// A message of a header: its kind and its data.
type Message = (u16, Vec<u8>);

fn address(address: u64) -> [u8; 8] {
    address.to_le_bytes()
}

impl File {
    fn new() -> File {
        let mut bytes = b"\x89HDF\r\n\x1a\n".to_vec();
        // sizes of addresses and lengths, nodes of trees, flags
        bytes.extend([0, 0, 0, 0, 0, 8, 8, 0, 4, 0, 16, 0, 0, 0, 0, 0]);
        for place in [0, u64::MAX, 0, u64::MAX, 0, 0] {
            bytes.extend(address(place));
        }
        bytes.extend([0; 24]);
        File { bytes }
    }

    fn put(&mut self, bytes: &[u8]) -> u64 {
        let at = self.bytes.len() as u64;
        self.bytes.extend(bytes);
        at
    }

    /// An object, each of whose messages stands in a block of its own.
    fn object(&mut self, messages: &[Message]) -> u64 {
        let mut next: Option<(u64, u64)> = None;
        for (number, (kind, data)) in messages.iter().enumerate().rev() {
            let mut block = Vec::new();
            let mut push = |kind: u16, data: &[u8]| {
                block.extend(kind.to_le_bytes());
                block.extend((data.len() as u16).to_le_bytes());
                block.extend([0; 4]);
                block.extend(data);
            };
            push(*kind, data);
            if let Some((at, len)) = next {
                push(0x10, &[address(at), address(len)].concat());
            }
            let len = block.len() as u64;
            if number == 0 {
                let prefix = [1, 0, messages.len() as u8, 0, 1, 0, 0, 0];
                let size = (len as u32).to_le_bytes();
                return self.put(&[&prefix[..], &size, &[0; 4], &block].concat());
            }
            next = Some((self.put(&block), len));
        }
        unreachable!("an object has messages")
    }

    fn group(&mut self, links: &[Message]) -> u64 {
        let nowhere = [&[0, 0][..], &address(u64::MAX), &address(u64::MAX)].concat();
        self.object(&[&[(0x02, nowhere)], links].concat())
    }

    /// The file whose root group that is.
    fn whole(mut self, root: u64) -> Vec<u8> {
        let len = self.bytes.len() as u64;
        self.bytes[40..48].copy_from_slice(&address(len));
        self.bytes[64..72].copy_from_slice(&address(root));
        self.bytes
    }
}

fn hard(name: &str, at: u64) -> Message {
    (0x06, [&[1, 0, name.len() as u8][..], name.as_bytes(), &address(at)].concat())
}

fn soft(name: &str, path: &str) -> Message {
    let front = [&[1, 8, 1, name.len() as u8][..], name.as_bytes()].concat();
    (0x06, [&front[..], &(path.len() as u16).to_le_bytes(), path.as_bytes()].concat())
}

fn space(len: u64) -> Message {
    (0x01, [&[1, 1, 0, 0, 0, 0, 0, 0][..], &address(len)].concat())
}

fn of_16_bits() -> Vec<u8> {
    vec![0x10, 8, 0, 0, 2, 0, 0, 0, 0, 0, 16, 0]
}

/// Numbers that lie one after the other, by a layout of version 3.
fn contiguous(file: &mut File, numbers: &[i16]) -> Vec<Message> {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let at = file.put(&bytes);
    let layout = [&[3, 1][..], &address(at), &address(bytes.len() as u64)].concat();
    vec![space(numbers.len() as u64), (0x03, of_16_bits()), (0x08, layout)]
}

fn write(bytes: Vec<u8>) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("in.h5"), bytes).unwrap();
    dir
}

fn info(dir: &TempDir) -> Value {
    let output = tslice(dir, &["info", "--json", "in.h5"]).output().unwrap();
    serde_json::from_slice::<Value>(&output.stdout).unwrap()[0].clone()
}

fn names(info: &Value) -> Vec<&str> {
    info["tensors"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect()
}

#[track_caller]
fn numbers(dir: &TempDir, args: &[&str]) -> String {
    let all = [&["in.h5"], args, &["--to", "csv", "-o", "-"]].concat();
    let done = tslice(dir, &all).assert().success();
    let text = String::from_utf8(done.get_output().stdout.clone()).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn links_are_names_and_cycles_end() {
    let mut file = File::new();
    let messages = contiguous(&mut file, &[1, 2, 3]);
    let x = file.object(&messages);
    let inner = file.group(&[hard("x", x), soft("self", "."), soft("up", "/"), soft("far", "/y")]);
    let root = file.group(&[
        hard("b", inner),
        hard("y", x),
        soft("to", "b/x"),
        soft("group", "/b"),
        soft("nowhere", "/no/where"),
        soft("loop", "loop"),
        (0x06, [&[1, 8, 64, 1][..], b"e", &[5, 0, 0, b'f', 0, b'x', 0]].concat()),
    ]);
    let dir = write(file.whole(root));
    let found = info(&dir);
    assert_eq!(names(&found), ["b/far", "b/x", "group/far", "group/x", "to", "y"]);
    let unreadable = found["unreadable"].as_array().unwrap().iter();
    let said = |it: &Value| format!("{}: {}", it["name"], it["reason"]).replace(['"', '\\'], "");
    let back = "it is a link to a group that contains it";
    let nowhere = |path: &str| format!("it is a link to {path}, which is not in this file");
    let expected = [
        "e: it is a link to x in another file: f: No such file or directory (os error 2)"
            .to_owned(),
        format!("loop: {}", nowhere("loop")),
        format!("nowhere: {}", nowhere("/no/where")),
        format!("b/self: {back}"),
        format!("b/up: {back}"),
        format!("group/self: {back}"),
        format!("group/up: {back}"),
    ];
    let mut all: Vec<String> = unreadable.map(said).collect();
    all.sort_unstable();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(all, expected);
    assert_eq!(numbers(&dir, &["-t", "to", "[1:]"]), "2 3");
    // a pattern takes what there is, with a note
    let taken = tslice(&dir, &["in.h5", "-t", "*o*", "-o", "o.npz"]).assert().success();
    let notes = String::from_utf8(taken.get_output().stderr.clone()).unwrap();
    assert!(notes.contains("which is not in this file; left out"), "{notes}");
}

/// A dataset of so many elements of a datatype, whose bytes lie one after the other.
fn plain(file: &mut File, datatype: &[u8], len: u64, bytes: &[u8]) -> Vec<Message> {
    let at = file.put(bytes);
    let layout = [&[3, 1][..], &address(at), &address(bytes.len() as u64)].concat();
    vec![space(len), (0x03, datatype.to_vec()), (0x08, layout)]
}

#[test]
fn texts_end_where_their_type_says() {
    // by h5py, which reads them all as S7
    for padding in 0..3 {
        let mut file = File::new();
        let datatype = [0x13, padding, 0, 0, 7, 0, 0, 0];
        let dataset = plain(&mut file, &datatype, 2, b"ab\0garba b    ");
        let x = file.object(&dataset);
        let root = file.group(&[hard("x", x)]);
        let dir = write(file.whole(root));
        tslice(&dir, &["in.h5", "-o", "o.npy"]).assert().success();
        let bytes = fs::read(dir.path().join("o.npy")).unwrap();
        let (first, second) = match padding {
            0 => (&b"ab\0\0\0\0\0"[..], &b"a b    "[..]),
            1 => (&b"ab\0garb"[..], &b"a b    "[..]),
            _ => (&b"ab\0garb"[..], &b"a b\0\0\0\0"[..]),
        };
        assert!(bytes.ends_with(&[first, second].concat()), "{padding}");
    }
}

#[cfg(feature = "zarr")]
#[test]
fn what_zarr_lacks_is_left_out_with_a_note() {
    let mut file = File::new();
    let text = plain(&mut file, &[0x13, 1, 0, 0, 3, 0, 0, 0], 2, b"ab\0cde");
    let text = file.object(&text);
    let opaque = plain(&mut file, &[0x15, 0, 0, 0, 2, 0, 0, 0], 1, &[1, 2]);
    let opaque = file.object(&opaque);
    let numbers = contiguous(&mut file, &[1, 2]);
    let numbers = file.object(&numbers);
    let root = file.group(&[hard("n", numbers), hard("o", opaque), hard("t", text)]);
    let dir = write(file.whole(root));
    let note = |name: &str, dtype: &str, format: &str| {
        format!(
            "tslice: note: in.h5: tensor \"{name}\": dtype {dtype} has no equivalent in {format}; left out\n"
        )
    };
    let left_out = note("o", "|V2", "zarr");
    for line in [&["merge", "in.h5", "-o", "m.zarr"][..], &["in.h5", "-t", "*", "-o", "p.zarr"]] {
        tslice(&dir, line).assert().success().stderr(left_out.clone());
    }
    let said = fs::read(dir.path().join("m.zarr/t/zarr.json")).unwrap();
    let said: Value = serde_json::from_slice(&said).unwrap();
    let wanted = r#"{"name":"null_terminated_bytes","configuration":{"length_bytes":3}}"#;
    assert_eq!((said["data_type"].to_string().as_str(), &said["fill_value"]), (wanted, &"".into()));
    let text = tslice(&dir, &["p.zarr", "-t", "t", "--to", "csv", "-o", "-"]).output().unwrap();
    assert_eq!(String::from_utf8(text.stdout).unwrap(), "ab\ncde\n");
    let both = [note("o", "|V2", "safetensors"), note("t", "|S3", "safetensors")].concat();
    tslice(&dir, &["in.h5", "-o", "o.safetensors"]).assert().success().stderr(both);
    // joins and parts are of what is left
    let group = ["concat", "in.h5", "--group", "{p:n}", "--into", "n", "--keep-rest"];
    let split_group = ["split", "in.h5", "--group", "n", "--into", "n{p:1,2}", "--keep-rest"];
    for (line, output) in [
        (&["concat", "in.h5", "in.h5", "-t", "*"][..], "c.zarr"),
        (&["concat", "in.h5", "in.h5", "-t", "n", "--keep-rest"], "r.zarr"),
        (&["split", "in.h5", "-t", "*", "--at", "1"], "s{}.zarr"),
        (&["split", "in.h5", "-t", "n", "--keep-rest", "--at", "1"], "k{}.zarr"),
        (&group, "g.zarr"),
        (&split_group, "w.zarr"),
    ] {
        let line = [line, &["-o", output]].concat();
        tslice(&dir, &line).assert().success().stderr(left_out.clone());
    }
    let values = |name: &str, tensor: &str| {
        let text = tslice(&dir, &[name, "-t", tensor, "--to", "csv", "-o", "-"]).output().unwrap();
        String::from_utf8(text.stdout).unwrap().replace('\n', " ")
    };
    let found = ["c", "r", "s1", "k1", "g", "w"].map(|name| {
        let name = format!("{name}.zarr");
        let number = if name == "w.zarr" { "n2" } else { "n" };
        values(&name, number) + &values(&name, "t")
    });
    let wanted = [
        "1 2 1 2 ab cde ab cde ",
        "1 2 1 2 ab cde ",
        "2 cde ",
        "2 ab cde ",
        "1 2 ab cde ",
        "2 ab cde ",
    ];
    assert_eq!(found, wanted);
    // what is named itself is refused
    let named = ["in.h5", "-t", "o", "-t", "n", "-o", "q.zarr"];
    let error = left_out.replace("note: in.h5: ", "").replace("; left out", "");
    tslice(&dir, &named).assert().code(1).stderr(error);
}

#[test]
fn numbers_may_have_a_part_of_their_bits() {
    let mut file = File::new();
    // 12 bits of 16, signed, above two others
    let narrow = [0x10, 8, 0, 0, 2, 0, 0, 0, 2, 0, 12, 0];
    let stored: Vec<u8> = [(-5i16) << 2 & 0x3fff | 1, 7 << 2].map(i16::to_le_bytes).concat();
    let x = plain(&mut file, &narrow, 2, &stored);
    let x = file.object(&x);
    // a float of a sign, 4 bits of exponent and 8 of mantissa
    let narrow = [0x11, 0x20, 12, 0, 2, 0, 0, 0, 0, 0, 13, 0, 8, 4, 0, 8, 7, 0, 0, 0];
    let y = plain(&mut file, &narrow, 2, &[0x80, 0x07, 0x01, 0x10]);
    let y = file.object(&y);
    let root = file.group(&[hard("x", x), hard("y", y)]);
    let dir = write(file.whole(root));
    assert_eq!(numbers(&dir, &["-t", "x"]), "-5 7");
    // the least one has no exponent: 2^-8 of 2^-6
    assert_eq!(numbers(&dir, &["-t", "y", "--cast", "float64"]), "1.5 -6.103515625e-5");
}

#[test]
fn names_of_false_and_true_are_booleans() {
    let mut file = File::new();
    let byte = [0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0];
    let names = [&[0x38, 2, 0, 0, 1, 0, 0, 0][..], &byte, b"FALSE\0TRUE\0", &[0, 1]].concat();
    let x = plain(&mut file, &names, 2, &[1, 0]);
    let x = file.object(&x);
    let signed = [0x10, 8, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0];
    let y = [plain(&mut file, &signed, 2, &[0, 5]), vec![attribute("dtype", b"bool")]].concat();
    let y = file.object(&y);
    let root = file.group(&[hard("x", x), hard("y", y)]);
    let dir = write(file.whole(root));
    for tensor in info(&dir)["tensors"].as_array().unwrap() {
        assert_eq!((tensor["dtype"].as_str(), tensor.get("attributes")), (Some("bool"), None));
    }
    assert_eq!(numbers(&dir, &["-t", "x", "[@in.h5#y]"]), "0");
    assert_eq!(numbers(&dir, &["-t", "y", "--cast", "int8"]), "0 1");
}

#[test]
fn a_dimension_of_netcdf_is_a_name() {
    let mut file = File::new();
    let scale = attribute("CLASS", b"DIMENSION_SCALE");
    let text = b"This is a netCDF dimension but not a netCDF variable.         2";
    let short = of_16_bits();
    let only = [plain(&mut file, &short, 2, &[0; 4]), vec![scale.clone(), attribute("NAME", text)]];
    let only = file.object(&only.concat());
    let id = |name: &str| {
        let parts =
            [&[3, 0][..], &[name.len() as u8 + 1, 0, 12, 0, 4, 0], &[0], name.as_bytes(), &[0]];
        (0x0c, [&parts.concat()[..], &short, &[2, 0, 0, 0], &[0, 0]].concat())
    };
    let both = [scale, attribute("NAME", b"x"), id("_Netcdf4Dimid"), attribute("units", b"m")];
    let x = [plain(&mut file, &short, 2, &[1, 0, 2, 0]), both.to_vec()].concat();
    let x = file.object(&x);
    let y = plain(&mut file, &short, 2, &[3, 0, 4, 0]);
    let y = file.object(&y);
    let links = [hard("_nc4_non_coord_y", y), hard("x", x), hard("y", only)];
    let root = file.group(&links);
    let dir = write(file.whole(root));
    let found = info(&dir);
    assert_eq!(names(&found), ["y", "x"]);
    let x = &found["tensors"][1];
    assert_eq!(x["attributes"].to_string(), r#"{"units":"m"}"#);
    assert_eq!(x["dimension_names"].to_string(), r#"["x"]"#);
    assert_eq!(numbers(&dir, &["-t", "y"]), "3 4");
}

#[test]
fn headers_may_have_any_number_of_blocks() {
    let mut file = File::new();
    let mut messages = contiguous(&mut file, &[4, 5]);
    messages.splice(0..0, (0..300).map(|_| (0x00, vec![0; 8])));
    let x = file.object(&messages);
    let root = file.group(&[hard("x", x)]);
    assert_eq!(numbers(&write(file.whole(root)), &["-t", "x"]), "4 5");
}

#[test]
fn chunks_at_the_end_of_an_axis_may_be_unfiltered() {
    for (flags, mask) in [(3, 0), (2, 1)] {
        let mut file = File::new();
        // one chunk of four numbers, of which the dataset has three, and a shuffle that was not applied
        let at = file.put(&[1, 0, 2, 0, 3, 0, 0, 0]);
        let index = [&[1][..], &address(8), &[mask, 0, 0, 0], &address(at)].concat();
        let layout = [&[4, 2, flags, 2, 1, 4, 2][..], &index].concat();
        let filters = vec![2, 1, 2, 0, 0, 0, 1, 0, 2, 0, 0, 0];
        let messages = [space(3), (0x03, of_16_bits()), (0x0b, filters), (0x08, layout)];
        let x = file.object(&messages);
        let root = file.group(&[hard("x", x)]);
        assert_eq!(numbers(&write(file.whole(root)), &["-t", "x"]), "1 2 3", "{flags}");
    }
}

/// The numbers 0, 1, 2 and 3, eight times each, in one chunk by each filter of hdf5plugin: its parameters, and the
/// bytes of the chunk; blosc, which stores so few numbers as they are, has them four times.
const PLUGINS: [(u16, &[u32], &[u8]); 7] = [
    (
        32015,
        &[3],
        &[
            40, 181, 47, 253, 32, 64, 141, 0, 0, 40, 0, 0, 1, 2, 3, 4, 0, 160, 19, 208, 93, 174,
            99, 50, 104, 3,
        ],
    ),
    (
        307,
        &[9],
        &[
            66, 90, 104, 57, 49, 65, 89, 38, 83, 89, 37, 187, 253, 173, 0, 0, 0, 192, 0, 120, 4,
            32, 0, 48, 205, 0, 137, 79, 213, 53, 159, 1, 44, 186, 254, 1, 225, 119, 36, 83, 133, 9,
            2, 91, 191, 218, 208,
        ],
    ),
    (
        32004,
        &[0],
        &[
            0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 0, 64, 0, 0, 0, 22, 27, 0, 1, 0, 27, 1, 2, 0, 27, 2, 2,
            0, 22, 3, 2, 0, 80, 0, 3, 0, 3, 0,
        ],
    ),
    (
        32008,
        &[0, 4, 2, 0, 0],
        &[
            0, 255, 0, 255, 0, 0, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 0, 0, 0, 0, 0, 0, 0,
        ],
    ),
    (
        32008,
        &[0, 4, 2, 0, 2],
        &[
            0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 32, 0, 0, 0, 0, 19, 159, 0, 255, 0, 255, 0, 0, 255, 255,
            0, 1, 0, 31, 80, 0, 0, 0, 0, 0,
        ],
    ),
    (
        32008,
        &[0, 4, 2, 0, 3, 3],
        &[
            0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 32, 0, 0, 0, 0, 24, 40, 181, 47, 253, 32, 64, 125, 0, 0,
            72, 0, 255, 0, 255, 0, 0, 255, 255, 0, 1, 0, 60, 193, 17,
        ],
    ),
    (
        32001,
        &[2, 2, 2, 256, 5, 1, 0],
        &[
            2, 1, 1, 2, 0, 1, 0, 0, 0, 1, 0, 0, 83, 0, 0, 0, 20, 0, 0, 0, 44, 0, 0, 0, 40, 0, 0, 0,
            0, 0, 0, 0, 0, 1, 160, 0, 0, 2, 160, 0, 0, 3, 160, 0, 0, 0, 160, 0, 160, 30, 0, 1, 160,
            30, 0, 2, 160, 30, 0, 3, 160, 30, 224, 46, 63, 1, 3, 3, 11, 0, 0, 0, 35, 0, 0, 0, 0,
            224, 113, 3, 1, 0, 0,
        ],
    ),
];

#[test]
fn filters_of_plugins_are_undone() {
    for (id, parameters, bytes) in PLUGINS {
        let dir = filtered(id, parameters, bytes);
        let count = if id == 32001 { 128 } else { 32 };
        let has_codec = cfg!(feature = "zarr") || id == 32004 || id == 32008 && parameters[4] != 3;
        if has_codec {
            let expected: Vec<String> = (0..count).map(|at| (at / 8 % 4).to_string()).collect();
            assert_eq!(numbers(&dir, &["-t", "x"]), expected.join(" "), "{id}");
            for end in 0..bytes.len() {
                // an error in one line, and no elements that are not there
                let dir = filtered(id, parameters, &bytes[..end]);
                tslice(&dir, &["in.h5", "-t", "x", "-o", "o.npy"]).assert().code(1);
            }
        } else {
            let done = tslice(&dir, &["in.h5", "-t", "x", "-o", "o.npy"]).assert().code(1);
            let error = String::from_utf8(done.get_output().stderr.clone()).unwrap();
            assert!(error.contains("build it with --features hdf5,zarr"), "{error}");
        }
    }
}

/// A dataset of 32 numbers, or 128 by blosc, in one chunk by one filter.
fn filtered(id: u16, parameters: &[u32], bytes: &[u8]) -> TempDir {
    let mut file = File::new();
    let at = file.put(bytes);
    let count = if id == 32001 { 128 } else { 32 };
    let index = [&[1][..], &address(bytes.len() as u64), &[0; 4], &address(at)].concat();
    let layout = [&[4, 2, 2, 2, 1, count, 2][..], &index].concat();
    let mut filters = vec![2, 1];
    for number in [id, 0, 0, parameters.len() as u16] {
        filters.extend(number.to_le_bytes());
    }
    filters.extend(parameters.iter().flat_map(|number| number.to_le_bytes()));
    let messages = [space(count.into()), (0x03, of_16_bits()), (0x0b, filters), (0x08, layout)];
    let x = file.object(&messages);
    let root = file.group(&[hard("x", x)]);
    write(file.whole(root))
}

#[test]
fn old_layouts_are_read() {
    let mut file = File::new();
    let at = file.put(&[7, 0, 8, 0]);
    let layout = [&[1, 1, 1, 0, 0, 0, 0, 0][..], &address(at), &[2, 0, 0, 0]].concat();
    let x = file.object(&[space(2), (0x03, of_16_bits()), (0x08, layout)]);
    let layout = [&[2, 1, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0][..], &[9, 0, 10, 0]].concat();
    let y = file.object(&[space(2), (0x03, of_16_bits()), (0x08, layout)]);
    let root = file.group(&[hard("x", x), hard("y", y)]);
    let dir = write(file.whole(root));
    assert_eq!(numbers(&dir, &["-t", "x"]), "7 8");
    assert_eq!(numbers(&dir, &["-t", "y"]), "9 10");
}

#[test]
fn what_cannot_be_read_is_named_alone() {
    let mut file = File::new();
    let messages = contiguous(&mut file, &[1]);
    let x = file.object(&messages);
    // a compound of a number, a text of any length, and a time
    let text = [&[0x19, 1, 0, 0, 16, 0, 0, 0][..], &[0x13, 0, 0, 0, 1, 0, 0, 0]].concat();
    let time = vec![0x12, 0, 0, 0, 4, 0, 0, 0, 32, 0];
    let compound = [
        &[0x36, 3, 0, 0, 22, 0, 0, 0][..],
        b"n\0\0",
        &of_16_bits(),
        b"s\0\x02",
        &text,
        b"t\0\x12",
        &time,
    ];
    let bytes: Vec<u8> = std::iter::once(5).chain([0; 21]).collect();
    let at = file.put(&bytes);
    let layout = [&[3, 1][..], &address(at), &address(22)].concat();
    let c = file.object(&[space(1), (0x03, compound.concat()), (0x08, layout.clone())]);
    let s = file.object(&[space(1), (0x03, text), (0x08, layout)]);
    let broken = file.put(&[0; 16]);
    let root = file.group(&[hard("c", c), hard("s", s), hard("x", x), hard("z", broken)]);
    let dir = write(file.whole(root));
    let found = info(&dir);
    assert_eq!(names(&found), ["c", "x"]);
    let unreadable = found["unreadable"].as_array().unwrap();
    let unreadable: Vec<&str> = unreadable.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(unreadable, ["s", "z"]);
    assert_eq!(found["tensors"][0]["notes"].as_array().unwrap().len(), 2);
    assert_eq!(numbers(&dir, &["-t", "c", "--field", "n"]), "5");
    assert_eq!(numbers(&dir, &["-t", "x"]), "1");
}

#[test]
fn truncated_files_are_refused() {
    let mut file = File::new();
    let messages = contiguous(&mut file, &[1, 2]);
    let x = file.object(&messages);
    let root = file.group(&[hard("x", x)]);
    let mut bytes = file.whole(root);
    // nothing is missing but what nothing leads to
    let len = bytes.len() as u64;
    bytes[40..48].copy_from_slice(&address(len + 1));
    let dir = write(bytes);
    let done = tslice(&dir, &["info", "in.h5"]).assert().failure();
    let error = String::from_utf8(done.get_output().stderr.clone()).unwrap();
    assert!(error.contains("truncated file"), "{error}");
}

fn attribute(name: &str, value: &[u8]) -> Message {
    let text = [0x13, 0, 0, 0, value.len() as u8, 0, 0, 0];
    let lengths = [name.len() as u8, 0, 8, 0, 4, 0];
    let scalar = [2, 0, 0, 0];
    (0x0c, [&[3, 0][..], &lengths, &[0], name.as_bytes(), &text, &scalar, value].concat())
}

/// The lengths of axes of an empty array, as MATLAB stores them.
fn of_64_bits() -> Vec<u8> {
    vec![0x10, 0, 0, 0, 8, 0, 0, 0, 0, 0, 64, 0]
}

#[test]
fn arrays_of_matlab_without_elements_are_told_apart() {
    let mut file = File::new();
    // a structure of one element without fields, and an empty array whose shape lies in two chunks
    let at = file.put(&[address(1), address(1)].concat());
    let layout = [&[3, 1][..], &address(at), &address(16)].concat();
    let (of_struct, is_empty) =
        (attribute("MATLAB_class", b"struct"), attribute("MATLAB_empty", &[1]));
    let s =
        file.object(&[space(2), (0x03, of_64_bits()), (0x08, layout), of_struct, is_empty.clone()]);
    let at = file.put(&[address(0), address(7)].concat());
    // one after the other, by an index that is implied
    let layout = [&[4, 2, 0, 2, 1, 1, 8, 2][..], &address(at)].concat();
    let of_double = attribute("MATLAB_class", b"double");
    let e = file.object(&[space(2), (0x03, of_64_bits()), (0x08, layout), of_double, is_empty]);
    let root = file.group(&[hard("e", e), hard("s", s)]);
    let found = info(&write(file.whole(root)));
    assert_eq!(names(&found), ["e"]);
    assert_eq!(found["tensors"][0]["shape"].to_string(), "[0,7]");
    let reason = found["unreadable"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("a MATLAB structure without fields"), "{reason}");
}

#[test]
fn arrays_of_matlab_are_what_it_says() {
    let mut file = File::new();
    let bytes = file.put(&[0, 1]);
    let layout = [&[3, 1][..], &address(bytes), &address(2)].concat();
    let byte = vec![0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0];
    let class = attribute("MATLAB_class", b"logical");
    let logical = file.object(&[space(2), (0x03, byte), (0x08, layout), class]);
    let shape = file.put(&[address(0), address(3)].concat());
    let layout = [&[3, 1][..], &address(shape), &address(16)].concat();
    let class = attribute("MATLAB_class", b"single");
    let is_empty = attribute("MATLAB_empty", &[1]);
    let empty = file.object(&[space(2), (0x03, of_64_bits()), (0x08, layout), class, is_empty]);
    let root = file.group(&[hard("e", empty), hard("l", logical)]);
    let found = info(&write(file.whole(root)));
    let said = |number: usize| {
        let tensor = &found["tensors"][number];
        format!("{} {}", tensor["dtype"].as_str().unwrap(), tensor["shape"])
    };
    assert_eq!([said(0), said(1)], ["float32 [0,3]", "bool [2]"]);
    assert!(found["tensors"][1]["notes"][0].as_str().unwrap().contains("MATLAB"));
}

#[cfg(feature = "zarr")]
#[test]
fn values_of_missing_elements_are_written_as_xarray_reads_them() {
    let mut file = File::new();
    let of_float =
        [0x11, 0x20, 0x1f, 0, 4, 0, 0, 0, 0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0].to_vec();
    let missing = |datatype: &[u8], value: &[u8]| {
        // a list of one, as netCDF writes it
        let lengths = [11, 0, datatype.len() as u8, 0, 16, 0];
        let parts = [&[3, 0][..], &lengths, &[0], b"_FillValue\0", datatype, &space(1).1, value];
        (0x0c, parts.concat())
    };
    let of_short = of_16_bits();
    let mut shorts = contiguous(&mut file, &[1, -999]);
    shorts.push(missing(&of_short, &(-999i16).to_le_bytes()));
    let shorts = file.object(&shorts);
    let at = file.put(&[0; 8]);
    let layout = [&[3, 1][..], &address(at), &address(8)].concat();
    let nan = missing(&of_float, &f32::NAN.to_le_bytes());
    let floats = file.object(&[space(2), (0x03, of_float), (0x08, layout), nan]);
    let root = file.group(&[hard("i", shorts), hard("f", floats)]);
    let dir = write(file.whole(root));
    tslice(&dir, &["merge", "in.h5", "-o", "out.zarr"]).assert().success().stderr("");
    let said = |name: &str| {
        let path = dir.path().join(format!("out.zarr/{name}/zarr.json"));
        let array: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        array["attributes"]["_FillValue"].clone()
    };
    assert_eq!(said("i"), -999);
    assert_eq!(said("f"), "AAAAAAAA+H8=");
    // as it is in the input
    let found = info(&dir);
    let given = [0, 1].map(|number| &found["tensors"][number]["attributes"]["_FillValue"][0]);
    assert_eq!([given[0].as_str(), given[1].as_str()], [Some("NaN"), None]);
    assert_eq!(given[1].as_i64(), Some(-999));
}

/// A copy of the folder that `fixtures/virtual.py` writes, which says what is in it.
fn virtual_folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let saved = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/virtual");
    fs::create_dir(dir.path().join("sub")).unwrap();
    for name in ["a.h5", "n0.h5", "n1.h5", "raw.bin", "sub/b.h5", "v.h5"] {
        fs::copy(saved.join(name), dir.path().join(name)).unwrap();
    }
    dir
}

fn prints(dir: &TempDir, args: &[&str], expected: &str) {
    let args = [&["v.h5", "-t"], args, &["--to", "csv"]].concat();
    tslice(dir, &args).assert().success().stdout(expected.to_owned()).stderr("");
}

fn fails(dir: &TempDir, args: &[&str], expected: &str) {
    let args = [&["v.h5", "-t"], args, &["-fo", "o.npy"]].concat();
    let expected = format!("tslice: v.h5: {expected}");
    tslice(dir, &args).assert().code(1).stderr(starts_with(expected));
}

#[test]
fn pieces_in_other_files_are_read() {
    let dir = virtual_folder();
    let a = "0,1,2,3\n4,5,6,7\n8,9,10,11\n";
    let whole = format!("{a}104,105,106,107\n-7,-7,-7,-7\n-7,-7,-7,-7\n");
    prints(&dir, &["all"], &whole);
    prints(&dir, &["nested"], &whole);
    prints(&dir, &["turns", "[1:, 1::3]"], "104,6,107\n108,10,111\n");
    prints(&dir, &["grows", "[:, :2]"], "0,1\n4,5\n");
    prints(&dir, &["raw"], a);
    prints(&dir, &["nothing"], "");
    prints(&dir, &["link"], a);
    prints(&dir, &["group/d", "[[2, 0], 0]"], "108\n100\n");
    fs::copy(dir.path().join("n0.h5"), dir.path().join("n2.h5")).unwrap();
    prints(&dir, &["grows", "[:, 0]"], "0\n4\n0\n");
    tslice(&dir, &["v.h5", "-t", "all", "-o", "o.zarr"]).assert().success();
    tslice(&dir, &["diff", "v.h5", "o.zarr", "-t", "all"]).assert().success();
}

#[test]
fn missing_pieces_are_errors_that_name_them() {
    let dir = virtual_folder();
    let found = serde_json::from_slice::<Value>(
        &tslice(&dir, &["info", "--json", "v.h5"]).output().unwrap().stdout,
    );
    let lost = found.unwrap()[0]["unreadable"].to_string();
    let outside = "the file lies outside the folder of the file that names it";
    assert!(lost.contains(&format!("/a.h5: {outside}")), "{lost}");
    assert!(lost.contains(&format!("../a.h5: {outside}")), "{lost}");
    fails(&dir, &["self"], "self: virtual datasets are nested deeper than 8 levels");
    fs::remove_file(dir.path().join("sub/b.h5")).unwrap();
    prints(&dir, &["all", "[2]"], "8\n9\n10\n11\n");
    prints(&dir, &["all", "[4:, 1]"], "-7\n-7\n");
    fails(&dir, &["all"], "sub/b.h5: No such file");
    fails(&dir, &["nested", "[3]"], "sub/b.h5: No such file");
    fs::copy(dir.path().join("n0.h5"), dir.path().join("sub/b.h5")).unwrap();
    fails(&dir, &["all"], "sub/b.h5: its shape (4,) differs from the shape in");
    fs::write(dir.path().join("raw.bin"), [1; 20]).unwrap();
    prints(&dir, &["raw", "[0]"], "257\n257\n257\n257\n");
    fails(&dir, &["raw"], "chunk (0, 0): raw.bin: ");
    fs::remove_file(dir.path().join("a.h5")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", dir.path().join("a.h5")).unwrap();
    fails(&dir, &["all", "[0]"], &format!("a.h5: {outside}"));
}
