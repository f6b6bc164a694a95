//! Zarr as other programs write it, and what is kept of what an array says where Zarr is written.

use std::fs;
use std::io::Write;
use std::path::Path;

use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::tslice;

/// An array of version 3 of so many 16-bit integers, in chunks of two that follow each other from 1 on; of an odd number
/// the last chunk is not stored.
fn array3(folder: &Path, len: i16, more: &Value) {
    fs::create_dir_all(folder.join("c")).unwrap();
    let mut metadata = json!({
        "zarr_format": 3, "node_type": "array", "shape": [len], "data_type": "int16",
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [2] } },
        "chunk_key_encoding": { "name": "default" }, "fill_value": 0,
        "codecs": [{ "name": "bytes", "configuration": { "endian": "little" } }],
    });
    for (key, value) in more.as_object().unwrap() {
        metadata[key] = value.clone();
    }
    // as Python writes them
    let text = metadata.to_string().replace("\"<NaN>\"", "NaN").replace("\"<-inf>\"", "-Infinity");
    fs::write(folder.join("zarr.json"), text).unwrap();
    for chunk in 0..len / 2 {
        let numbers = [2 * chunk + 1, 2 * chunk + 2].map(i16::to_le_bytes).concat();
        fs::write(folder.join(format!("c/{chunk}")), numbers).unwrap();
    }
}

fn group3(folder: &Path, text: &str) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("zarr.json"), text).unwrap();
}

const GROUP: &str = r#"{"zarr_format": 3, "node_type": "group", "attributes": {}}"#;

/// The numbers of an array, as they are printed.
#[track_caller]
fn numbers(dir: &TempDir, args: &[&str]) -> String {
    let done = tslice(dir, &[args, &["--to", "csv", "-o", "-"]].concat()).assert().success();
    let text = String::from_utf8(done.get_output().stdout.clone()).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What is said of an input in JSON.
#[track_caller]
fn info(dir: &TempDir, name: &str) -> Value {
    let output = tslice(dir, &["info", "--json", name]).output().unwrap();
    serde_json::from_slice::<Value>(&output.stdout).unwrap()[0].clone()
}

#[test]
fn groups_without_metadata_hide_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("in");
    group3(&root, GROUP);
    array3(&root.join("a/b/c"), 4, &json!({}));
    assert_eq!(numbers(&dir, &["in", "-t", "a/b/c"]), "1 2 3 4");
    // nor where all of them have none
    fs::remove_file(root.join("zarr.json")).unwrap();
    fs::rename(&root, dir.path().join("in.zarr")).unwrap();
    assert_eq!(numbers(&dir, &["in.zarr", "-t", "a/b/c"]), "1 2 3 4");
    // a link to a folder above would never end
    std::os::unix::fs::symlink("..", dir.path().join("in.zarr/a/up")).unwrap();
    assert_eq!(numbers(&dir, &["in.zarr", "-t", "*"]), "1 2 3 4");
    // version 2
    let v2 = dir.path().join("v2");
    fs::create_dir_all(v2.join("g/x")).unwrap();
    fs::write(v2.join(".zgroup"), r#"{"zarr_format": 2}"#).unwrap();
    let array = r#"{"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "<u1", "order": "C", "filters": null,
        "compressor": null, "fill_value": false}"#;
    fs::write(v2.join("g/x/.zarray"), array).unwrap();
    fs::write(v2.join("g/x/0"), [7, 8]).unwrap();
    fs::write(v2.join("g/x/.zattrs"), r#"{"_ARRAY_DIMENSIONS": ["time"]}"#).unwrap();
    assert_eq!(numbers(&dir, &["v2", "-t", "g/x"]), "7 8");
    let tensor = &info(&dir, "v2")["tensors"][0];
    assert_eq!(
        (&tensor["dimension_names"], &tensor["attributes"]),
        (&json!(["time"]), &json!(null))
    );
}

/// The bytes of a file with one array, and what is printed of it.
#[track_caller]
fn told(array: Value, chunks: &[(&str, &[u8])]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("in");
    let name = if array["zarr_format"] == 2 { ".zarray" } else { "zarr.json" };
    for (key, bytes) in chunks {
        let path = root.join(key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    fs::create_dir_all(&root).unwrap();
    fs::write(root.join(name), array.to_string()).unwrap();
    let done = tslice(&dir, &["in", "--to", "csv", "-o", "-"]).output().unwrap();
    let text = if done.status.success() { done.stdout } else { done.stderr };
    String::from_utf8(text).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn v3(shape: &[u64], chunk: &[u64], dtype: &str, codecs: Value) -> Value {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": dtype,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": chunk } },
        "chunk_key_encoding": { "name": "default" }, "fill_value": 0, "codecs": codecs,
        "storage_transformers": null,
    })
}

#[test]
fn numbers_with_an_offset_are_in_their_own_dtype() {
    let little = json!({ "name": "bytes", "configuration": { "endian": "little" } });
    let scaled = |offset: Value, dtype: &str, astype: &str, bytes: Value| {
        let said = json!({ "offset": offset, "scale": 1, "dtype": dtype, "astype": astype });
        let filter = json!({ "name": "numcodecs.fixedscaleoffset", "configuration": said });
        json!([filter, bytes])
    };
    // by zarr-python
    let codecs = scaled(json!(1_577_836_801.0), "f8", "i4", little.clone());
    let stored = [0i32, 1, 2].map(i32::to_le_bytes).concat();
    let seconds = "1577836801.0 1577836802.0 1577836803.0";
    assert_eq!(told(v3(&[3], &[3], "float64", codecs), &[("c/0", &stored)]), seconds);
    let codecs = scaled(json!(1_600_000_000_001u64), "int64", "|u1", little.clone());
    assert_eq!(told(v3(&[1], &[1], "int64", codecs), &[("c/0", &[0])]), "1600000000001");
    let big = json!({ "name": "bytes", "configuration": { "endian": "big" } });
    let codecs = scaled(json!(0), "float64", "int16", big);
    assert_eq!(told(v3(&[2], &[2], "float64", codecs), &[("c/0", &[0, 1, 1, 0])]), "1.0 256.0");
    let v2 = json!({
        "zarr_format": 2, "shape": [3], "chunks": [3], "dtype": ">f8", "order": "C", "fill_value": 0,
        "compressor": null, "filters": [
            { "id": "fixedscaleoffset", "offset": 0, "scale": 1, "dtype": ">f8", "astype": "<i2" },
        ],
    });
    assert_eq!(told(v2, &[("0", &[1, 0, 2, 0, 3, 0])]), "1.0 2.0 3.0");
    let delta = json!({ "name": "numcodecs.delta", "configuration": { "dtype": "int16" } });
    let codecs = json!([delta, little]);
    assert_eq!(told(v3(&[2], &[2], "int16", codecs), &[("c/0", &[5, 0, 255, 255])]), "5 4");
}

#[test]
fn an_index_of_a_shard_is_not_believed() {
    let sharding = |inner: u64, index: Value| {
        let said = json!({
            "chunk_shape": [inner], "index_location": "end", "index_codecs": index,
            "codecs": [{ "name": "bytes", "configuration": { "endian": "little" } }],
        });
        json!([{ "name": "sharding_indexed", "configuration": said }])
    };
    let plain = json!([{ "name": "bytes", "configuration": { "endian": "little" } }]);
    let array = v3(&[2], &[2], "int32", sharding(2, plain.clone()));
    let elements = [7i32, 8].map(i32::to_le_bytes).concat();
    let shard = |offset: u64, len: u64| {
        [&elements[..], &[0; 8], &offset.to_le_bytes(), &len.to_le_bytes()].concat()
    };
    let of = |offset, len| told(array.clone(), &[("c/0", &shard(offset, len))]);
    assert_eq!(of(0, 8), "7 8");
    assert_eq!(of(u64::MAX, u64::MAX), "0 0");
    for (offset, len) in [(0, 0), (0, 7), (0, 9), (0, 1 << 63), (1 << 63, 1 << 63), (99, 8)] {
        let said = of(offset, len);
        assert!(said.contains("chunk (0,)") && !said.contains("reader failed"), "{said}");
    }
    // more chunks in a shard than there is memory for
    let many = v3(&[1 << 62], &[1 << 62], "int32", sharding(1, plain));
    let said = told(many, &[]);
    assert!(said.contains("more chunks than there is memory"), "{said}");
}

#[test]
fn what_zarr_python_leaves_out_is_usual() {
    let little = json!({ "name": "bytes", "configuration": { "endian": "little" } });
    let of = |codec: Value, bytes: &[u8]| {
        let array = v3(&[2], &[2], "int16", json!([little.clone(), codec]));
        told(array, &[("c/0", bytes)])
    };
    // by numcodecs
    let zstd = [40, 181, 47, 253, 0, 88, 33, 0, 0, 1, 0, 2, 0];
    assert_eq!(of(json!({ "name": "zstd", "configuration": { "level": 0 } }), &zstd), "1 2");
    assert_eq!(of(json!({ "name": "zstd" }), &zstd), "1 2");
    let blosc = [2, 1, 2, 2, 4, 0, 0, 0, 4, 0, 0, 0, 20, 0, 0, 0, 1, 0, 2, 0];
    let said = json!({ "name": "blosc", "configuration": { "cname": "lz4", "clevel": 5, "shuffle": "shuffle" } });
    assert_eq!(of(said, &blosc), "1 2");
    // two members, each of one number
    let gzip = |number: i16| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&number.to_le_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    assert_eq!(of(json!({ "name": "gzip" }), &[gzip(1), gzip(2)].concat()), "1 2");
    // a chunk that ends where the array does
    let array = v3(&[3], &[2], "int16", json!([little.clone()]));
    assert_eq!(told(array, &[("c/0", &[1, 0, 2, 0]), ("c/1", &[3, 0])]), "1 2 3");
    // no elements
    let array = v3(&[0], &[0], "int16", json!([little]));
    assert_eq!(told(array, &[]), "");
}

#[test]
fn metadata_have_a_largest_length() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("in");
    group3(&root, GROUP);
    array3(&root.join("a"), 2, &json!({}));
    array3(&root.join("b"), 2, &json!({}));
    let metadata = fs::OpenOptions::new().write(true).open(root.join("a/zarr.json")).unwrap();
    metadata.set_len(100_000_001).unwrap();
    let reason = "has 100000001 bytes, and over 100000000 are not read";
    tslice(&dir, &["in", "-t", "a", "-o", "o.npy"]).assert().code(1).stderr(contains(reason));
    assert_eq!(numbers(&dir, &["in", "-t", "b"]), "1 2");
}

#[test]
fn info_says_how_many_chunks_are_stored() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("in");
    group3(&root, GROUP);
    array3(&root.join("a"), 5, &json!({}));
    array3(&root.join("b"), 4, &json!({}));
    let said = info(&dir, "in");
    let stored = |number: usize| {
        let tensor = &said["tensors"][number];
        [&tensor["chunks_stored"], &tensor["chunks"], &tensor["chunk_shape"]].map(Value::to_string)
    };
    assert_eq!([stored(0), stored(1)], [["2", "3", "[2]"], ["2", "2", "[2]"]]);
    tslice(&dir, &["info", "in"])
        .assert()
        .success()
        .stdout(contains("  a: 2 of 3 chunks are stored\n").and(contains("  b: ").not()));
    tslice(&dir, &["info", "in", "--missing-chunks", "error"])
        .assert()
        .code(1)
        .stderr("tslice: in: tensor \"a\": 2 of 3 chunks are stored\n");
    let missing = ["in", "-t", "a", "--missing-chunks", "error", "-o", "o.npy"];
    let error = "tslice: in: chunk (2,): it is not there, in the array \"a\"\n";
    tslice(&dir, &missing).assert().code(1).stderr(error);
}

#[test]
fn bytes_of_xarray_may_be_booleans() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("in");
    array3(&root, 2, &json!({ "data_type": "int8", "attributes": { "dtype": "bool", "x": 1 } }));
    fs::write(root.join("c/0"), [0, 1]).unwrap();
    let tensor = &info(&dir, "in")["tensors"][0];
    assert_eq!((&tensor["dtype"], &tensor["attributes"]), (&json!("bool"), &json!({ "x": 1 })));
    assert_eq!(numbers(&dir, &["in"]), "0 1");
}

#[test]
fn what_python_writes_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("in");
    group3(
        &root,
        r#"{"zarr_format": 3, "node_type": "group", "attributes": {"x": [NaN, -Infinity]}}"#,
    );
    array3(&root.join("nan"), 3, &json!({ "attributes": { "y": "<NaN>" }, "fill_value": -9999.0 }));
    array3(&root.join("false"), 3, &json!({ "fill_value": false }));
    array3(&root.join("null"), 3, &json!({ "fill_value": null }));
    array3(&root.join("half"), 3, &json!({ "fill_value": 0.5 }));
    array3(&root.join("unknown"), 3, &json!({ "more": { "name": "x" } }));
    array3(&root.join("passed"), 3, &json!({ "more": { "must_understand": false } }));
    array3(&root.join("no-endian"), 3, &json!({ "codecs": ["bytes"] }));
    array3(&root.join("lz4"), 3, &json!({ "codecs": ["bytes", { "name": "numcodecs.lz4" }] }));
    for (name, last) in [("nan", "-9999"), ("false", "0"), ("null", "0"), ("passed", "0")] {
        assert_eq!(numbers(&dir, &["in", "-t", name]), format!("1 2 {last}"));
    }
    let said = info(&dir, "in");
    assert_eq!(said["groups"], json!({ "": { "x": ["NaN", "-Infinity"] } }));
    let nan = said["tensors"].as_array().unwrap().iter().find(|it| it["name"] == "nan").unwrap();
    assert_eq!((&nan["attributes"], &nan["fill_value"]), (&json!({ "y": "NaN" }), &json!(-9999)));
    let unreadable = said["unreadable"].as_array().unwrap();
    let names: Vec<&str> = unreadable.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["half", "lz4", "no-endian", "unknown"]);
    let reason = unreadable[3]["reason"].as_str().unwrap();
    assert_eq!(reason, "the key \"more\" is not known, and must be understood");
}

#[test]
fn codecs_of_numcodecs_have_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let sum = |bytes: &[u8]| crc32fast::hash(bytes).to_le_bytes();
    let plain = [1i16, 2].map(i16::to_le_bytes).concat();
    let gzip = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&plain).unwrap();
        encoder.finish().unwrap()
    };
    let zlib = {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&plain).unwrap();
        encoder.finish().unwrap()
    };
    let at_end = json!({ "location": "end" });
    let stored = [
        ("gzip", json!({ "level": 1 }), gzip),
        ("zlib", json!({}), zlib),
        ("crc32", json!({}), [&sum(&plain)[..], &plain].concat()),
        ("crc32", at_end, [&plain[..], &sum(&plain)].concat()),
        ("shuffle", json!({}), vec![1, 2, 0, 0]),
    ];
    for (name, configuration, bytes) in stored {
        let name = format!("numcodecs.{name}");
        let little = json!({ "name": "bytes", "configuration": { "endian": "little" } });
        let codec = json!({ "name": name, "configuration": configuration });
        array3(&dir.path().join("in"), 2, &json!({ "codecs": [little, codec] }));
        fs::write(dir.path().join("in/c/0"), &bytes).unwrap();
        assert_eq!(numbers(&dir, &["in"]), "1 2", "{name}");
        if name.ends_with("crc32") {
            let damaged: Vec<u8> = bytes.iter().map(|byte| byte ^ 1).collect();
            fs::write(dir.path().join("in/c/0"), damaged).unwrap();
            let failed = tslice(&dir, &["in", "-o", "out.npy"]).assert().failure();
            let said = String::from_utf8_lossy(&failed.get_output().stderr).into_owned();
            assert!(said.contains("its CRC-32 does not match"), "{said}");
        }
    }
}

/// A little-endian archive of stored members, of which several may have one name.
fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, data) in members {
        let (crc, len) = (crc32fast::hash(data), data.len() as u32);
        let start = bytes.len() as u32;
        let mut common = vec![0; 8];
        for number in [crc, len, len] {
            common.extend(number.to_le_bytes());
        }
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0; 2]);
        bytes.extend(b"PK\x03\x04\x14\0");
        bytes.extend(&common);
        bytes.extend(name.bytes());
        bytes.extend(*data);
        directory.extend(b"PK\x01\x02\x14\0\x14\0");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend(start.to_le_bytes());
        directory.extend(name.bytes());
    }
    let (start, len, count) = (bytes.len() as u32, directory.len() as u32, members.len() as u16);
    bytes.extend(directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend([count, count].map(u16::to_le_bytes).concat());
    bytes.extend([len, start].map(u32::to_le_bytes).concat());
    bytes.extend([0; 2]);
    bytes
}

#[test]
fn the_last_of_two_members_of_one_name_counts() {
    let dir = tempfile::tempdir().unwrap();
    array3(&dir.path().join("one"), 2, &json!({ "attributes": { "n": 1 } }));
    array3(&dir.path().join("two"), 2, &json!({ "attributes": { "n": 2 } }));
    let of = |name: &str| fs::read(dir.path().join(name)).unwrap();
    let (one, two, chunk) = (of("one/zarr.json"), of("two/zarr.json"), of("one/c/0"));
    let members: [(&str, &[u8]); 4] = [
        ("g/a/zarr.json", &one),
        ("g/a/c/0", &[0; 4]),
        ("g/a/zarr.json", &two),
        ("g/a/c/0", &chunk),
    ];
    fs::write(dir.path().join("in.zip"), archive(&members)).unwrap();
    assert_eq!(numbers(&dir, &["in.zip", "-t", "g/a"]), "1 2");
    assert_eq!(info(&dir, "in.zip")["tensors"][0]["attributes"], json!({ "n": 2 }));
}

/// As zarr-python reads them: of two CRC-32s that of the directory counts.
#[test]
fn a_member_that_cannot_be_read_leaves_other_arrays() {
    let dir = tempfile::tempdir().unwrap();
    array3(&dir.path().join("one"), 2, &json!({}));
    let of = |name: &str| fs::read(dir.path().join(name)).unwrap();
    let (metadata, chunk) = (of("one/zarr.json"), of("one/c/0"));
    let good = archive(&[
        ("zarr.json", GROUP.as_bytes()),
        ("v/zarr.json", &metadata),
        ("v/c/0", &chunk),
        ("w/zarr.json", &metadata),
        ("w/c/0", &chunk),
    ]);
    let entry = |name: &str| {
        let mut all = (0..good.len() - 46 - name.len()).rev();
        let at = all.find(|&at| {
            good[at..].starts_with(b"PK\x01\x02") && good[at + 46..].starts_with(name.as_bytes())
        });
        at.unwrap()
    };
    let local = |name: &str| {
        let mut all = 0..good.len();
        let is_it = |&at: &usize| {
            good[at..].starts_with(b"PK\x03\x04") && good[at + 30..].starts_with(name.as_bytes())
        };
        all.find(is_it).unwrap()
    };
    let write = |at: usize| {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(dir.path().join("in.zip"), bad).unwrap();
    };
    let run = |args: &[&str]| tslice(&dir, args).assert();
    for name in ["w/zarr.json", "w/c/0"] {
        let mut faults = vec![
            (entry(name) + 8, "encrypted"),
            (local(name), "local header"),
            (entry(name) + 10, "method 1 "),
        ];
        if name == "w/zarr.json" {
            faults.push((entry(name) + 16, "CRC-32"));
        }
        for (at, says) in faults {
            write(at);
            assert_eq!(numbers(&dir, &["in.zip", "-t", "v"]), "1 2");
            let said = info(&dir, "in.zip");
            let reason = said["unreadable"][0]["reason"].as_str().unwrap();
            assert!(reason.contains(says), "{name}: {reason}");
            assert_eq!(said["unreadable"][0]["name"], "w");
            run(&["in.zip", "-t", "w", "-o", "w.npy"]).code(1).stderr(contains(says));
            run(&["in.zip", "-fo", "all.npz"]).success().stderr(contains(says));
        }
    }
    // the bytes of a chunk are read when it is
    write(entry("w/c/0") + 16);
    assert_eq!(numbers(&dir, &["in.zip", "-t", "v"]), "1 2");
    run(&["in.zip", "-t", "w", "-o", "w.npy"]).code(1).stderr(contains("CRC-32"));
    write(local("w/c/0") + 14);
    assert_eq!(numbers(&dir, &["in.zip", "-t", "w"]), "1 2");
    // a group is told by what lies below
    write(entry("zarr.json") + 8);
    assert_eq!(numbers(&dir, &["in.zip", "-t", "v"]), "1 2");
    assert_eq!(info(&dir, "in.zip")["unreadable"][0]["name"], "/");
}

#[test]
fn chunks_that_are_not_there_may_be_an_error() {
    let dir = tempfile::tempdir().unwrap();
    array3(&dir.path().join("in"), 3, &json!({ "fill_value": 9 }));
    assert_eq!(numbers(&dir, &["in", "--missing-chunks", "fill"]), "1 2 9");
    assert_eq!(numbers(&dir, &["in", "[:2]", "--missing-chunks", "error"]), "1 2");
    let failed = tslice(&dir, &["in", "--missing-chunks", "error", "-o", "o.npy"]).assert();
    let failed = failed.code(1).stdout("");
    let said = String::from_utf8_lossy(&failed.get_output().stderr).into_owned();
    assert!(said.contains("it is not there") && said.lines().count() == 1, "{said}");
}

/// A hierarchy of one array `g/a` of shape (2, 3), with attributes at each level.
fn said() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("in");
    group3(&root, r#"{"zarr_format": 3, "node_type": "group", "attributes": {"title": "t"}}"#);
    group3(
        &root.join("g"),
        r#"{"zarr_format": 3, "node_type": "group", "attributes": {"k": [1]}}"#,
    );
    let grid = json!({ "name": "regular", "configuration": { "chunk_shape": [1, 3] } });
    let array = json!({
        "shape": [2, 3], "chunk_grid": grid, "fill_value": 7, "dimension_names": ["y", "x"],
        "attributes": { "units": "K", "scale_factor": 0.5, "bad": "<NaN>" },
    });
    // no chunk is stored
    array3(&root.join("g/a"), 0, &array);
    dir
}

/// The metadata of an array of an output.
fn written(dir: &TempDir, path: &str) -> Value {
    serde_json::from_slice(&fs::read(dir.path().join(path).join("zarr.json")).unwrap()).unwrap()
}

#[test]
fn what_an_array_says_of_itself_is_kept() {
    let dir = said();
    let note = "tslice: note: g/a: NaN or infinity is written as a word in 1 attribute (bad)\n";
    let write = |args: &[&str], out: &str| {
        let args = [&["in", "-t", "g/a"], args, &["-o", out, "--force"]].concat();
        tslice(&dir, &args).assert().success().stderr(note);
        let array = written(&dir, &format!("{out}/g/a"));
        let attributes = json!({ "units": "K", "scale_factor": 0.5, "bad": "NaN" });
        assert_eq!(array["attributes"], attributes);
        assert_eq!(written(&dir, out)["attributes"], json!({ "title": "t" }));
        assert_eq!(written(&dir, &format!("{out}/g"))["attributes"], json!({ "k": [1] }));
        (array["dimension_names"].clone(), array["fill_value"].clone())
    };
    assert_eq!(write(&[], "whole.zarr"), (json!(["y", "x"]), json!(7)));
    // chunks that are the fill value are not stored, as before
    assert!(!dir.path().join("whole.zarr/g/a/c").exists());
    assert_eq!(numbers(&dir, &["whole.zarr", "-t", "g/a", "[0]"]), "7 7 7");
    assert_eq!(write(&["[1]"], "row.zarr").0, json!(["x"]));
    assert_eq!(write(&["[:, None, ::-1]"], "new.zarr").0, json!(["y", null, "x"]));
    assert_eq!(write(&["--transpose", "1,0"], "turned.zarr").0, json!(["x", "y"]));
    assert_eq!(write(&["[:, [2, 0]]"], "list.zarr").0, json!(["y", "x"]));
    assert_eq!(write(&["[[1, 0], [2, 0]]"], "points.zarr").0, Value::Null);
    assert_eq!(write(&["--cast", "float64"], "cast.zarr").1, json!(7.0));
    assert_eq!(write(&["--cast", "int64"], "cast.zarr").1, json!(7));
}

#[test]
fn packed_values_are_said() {
    let dir = said();
    let info = tslice(&dir, &["info", "in"]).assert().success();
    let text = String::from_utf8(info.get_output().stdout.clone()).unwrap();
    assert!(text.contains("\n  g/a has packed values: scale_factor 0.5\n"), "{text}");
    let note = concat!(
        "tslice: note: g/a: values are taken as they are stored: scale_factor 0.5\n",
        "hint: --unpack takes the unpacked values\n",
    );
    tslice(&dir, &["view", "in", "--stats"]).assert().success().stderr(note);
    tslice(&dir, &["view", "in", "--reduce", "sum", "-o", "sum.npy"])
        .assert()
        .success()
        .stderr(note);
    tslice(&dir, &["view", "in"]).assert().success().stderr(note);
    tslice(&dir, &["in", "-o", "a.npy"]).assert().success().stderr(note);
    tslice(&dir, &["in", "-o", "d.npy", "--dry-run"]).assert().success().stderr(note);
    for part in ["0/2", "1/2"] {
        let part = ["in", "-o", "p.npy", "--part", part];
        tslice(&dir, &part).assert().success().stderr(note);
    }
    tslice(&dir, &["in", "-o", "q.npy", "-q"]).assert().success().stderr("");
    tslice(&dir, &["diff", "in", "in"]).assert().success().stderr(note);
    tslice(&dir, &["info", "in", "--digest"]).assert().success().stderr(note);
    tslice(&dir, &["view", "in", "--unpack"]).assert().success().stderr("");
    assert_eq!(numbers(&dir, &["in", "-t", "g/a", "[0]", "--unpack"]), "3.5 3.5 3.5");
}

#[test]
fn lists_are_packed_as_other_tensors_are() {
    let dir = tempfile::tempdir().unwrap();
    packed(&dir, "scaled", json!({ "scale_factor": 2 }));
    packed(&dir, "filled", json!({ "_FillValue": 7, "add_offset": 0.5 }));
    // both have two elements, 7 and 7
    let rows: String = (100..120).map(|row| format!("{row}\n")).collect();
    fs::write(dir.path().join("a.csv"), rows).unwrap();
    let taken = |list: &str, more: &[&str]| {
        let args = [&["a.csv", list, "--dtype", "int64", "--to", "csv", "-o", "-"], more].concat();
        let done = tslice(&dir, &args).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        text(done.stdout).replace('\n', " ") + &text(done.stderr)
    };
    let note = "tslice: note: v: values are taken as they are stored: scale_factor 2\n\
                hint: --unpack takes the unpacked values\n";
    assert_eq!(taken("[@scaled]", &[]), format!("107 107 {note}"));
    assert_eq!(taken("[@scaled]", &["--unpack"]), "114 114 ");
    let refused = "tslice: filled: arrays used as indices must be of integer (or boolean) type, not float64\n";
    assert!(taken("[@filled]", &["--unpack"]).starts_with(refused));
}

/// An array at the root, of one chunk of int16.
fn packed(dir: &TempDir, name: &str, attributes: Value) {
    let root = dir.path().join(name);
    group3(&root, r#"{"zarr_format": 3, "node_type": "group"}"#);
    let grid = json!({ "name": "regular", "configuration": { "chunk_shape": [2] } });
    let array = json!({
        "shape": [2], "chunk_grid": grid, "fill_value": 7, "dimension_names": ["time"],
        "attributes": attributes,
    });
    array3(&root.join("v"), 0, &array);
}

#[test]
fn fill_values_are_cast_with_the_elements_or_left_out() {
    let dir = tempfile::tempdir().unwrap();
    packed(&dir, "in", json!({ "_FillValue": -300, "missing_value": [7, 300], "add_offset": 1 }));
    let cast = |dtype: &str, note: &str| {
        let args = ["in", "--cast", dtype, "--casting", "unsafe", "-o", "o.zarr", "--force"];
        tslice(&dir, &args).assert().success().stderr(note.to_owned());
        written(&dir, "o.zarr/v")["attributes"].clone()
    };
    let double = json!("AAAAAADAcsA=");
    let wide = json!({ "_FillValue": double, "missing_value": [7.0, 300.0], "add_offset": 1 });
    assert_eq!(cast("float32", ""), wide);
    let note = concat!(
        "tslice: note: v: left out, as it does not hold for the new dtype: ",
        "_FillValue -300, missing_value [7,300]\n",
    );
    assert_eq!(cast("int8", note), json!({ "add_offset": 1 }));
}

#[test]
fn arrays_that_mean_other_values_are_not_joined() {
    let dir = tempfile::tempdir().unwrap();
    let join = |name: &str, other: Value, flags: &[&str]| {
        packed(&dir, "a", json!({ "scale_factor": 0.5, "units": "days since 2000-01-01" }));
        packed(&dir, name, other);
        let args = [&["concat", "a", name, "--axis", "time", "-o", "o.zarr", "--force"], flags];
        let run = tslice(&dir, &args.concat()).assert();
        String::from_utf8(run.get_output().stderr.clone()).unwrap()
    };
    let told = join("b", json!({ "scale_factor": 0.25 }), &[]);
    let said = "input 1 has scale_factor 0.25, input 0 has 0.5";
    assert!(told.contains(said) && told.contains("hint: --unpack"), "{told}");
    assert_eq!(join("b", json!({ "scale_factor": 0.25 }), &["--unpack"]), "");
    assert_eq!(numbers(&dir, &["o.zarr", "-t", "v"]), "3.5 3.5 1.75 1.75");
    let units = json!({ "scale_factor": 0.5, "units": "days since 2000-02-01" });
    let told = join("c", units, &["--unpack"]);
    let said = "input 1 has units days since 2000-02-01, input 0 has days since 2000-01-01";
    assert!(told.contains(said) && !told.contains("hint"), "{told}");
    assert_eq!(join("d", json!({ "scale_factor": [0.5] }), &[]), "");
    let told = join("e", json!({ "scale_factor": 0.5, "_FillValue": 3 }), &[]);
    assert!(told.contains("input 1 has _FillValue 3, input 0 has none"), "{told}");
}

#[test]
fn reductions_keep_the_packing_that_holds() {
    let dir = tempfile::tempdir().unwrap();
    packed(
        &dir,
        "in",
        json!({ "scale_factor": 0.5, "add_offset": 2.0, "_FillValue": 9, "units": "K" }),
    );
    let kept = |how: &str| {
        let args = ["view", "in", "--reduce", how, "-o", "o.zarr", "--force"];
        tslice(&dir, &args).assert().success();
        written(&dir, "o.zarr/v")["attributes"].clone()
    };
    let scale = json!({ "scale_factor": 0.5, "units": "K" });
    assert_eq!(kept("std"), scale);
    assert_eq!(kept("sum"), json!({ "units": "K" }));
    assert_eq!(kept("mean"), json!({ "scale_factor": 0.5, "add_offset": 2.0, "units": "K" }));
    assert_eq!(kept("any"), json!({ "units": "K" }));
    assert_eq!(kept("max")["_FillValue"], json!(9));
}

#[test]
fn axes_are_reached_by_the_names_of_dimensions() {
    let dir = said();
    let turned = numbers(&dir, &["in", "-t", "g/a", "--transpose", "x,y", "--unpack", "[:, :1]"]);
    assert_eq!(turned, "3.5,3.5");
    let failed = |args: &[&str]| {
        let run = tslice(&dir, args).assert().failure();
        String::from_utf8(run.get_output().stderr.clone()).unwrap()
    };
    let told = failed(&["in", "--transpose", "y,z", "-o", "o.npy"]);
    assert_eq!(told, "tslice: --transpose: no dimension is named \"z\": there are y, x\n");
    let told = failed(&["view", "in", "--reduce", "max", "--axis", "time"]);
    assert!(told.contains("--axis: no dimension is named \"time\": there are y, x"), "{told}");
    let told = failed(&["split", "in", "--axis", "time", "--parts", "2", "-o", "{}.npy"]);
    assert!(told.contains("--axis: no dimension is named \"time\": there are y, x"), "{told}");
    let told = failed(&["gather", "in", "--axis", "time", "--indices", "[0]", "-o", "o.npy"]);
    assert!(told.contains("--axis: no dimension is named \"time\": there are y, x"), "{told}");
    let told = failed(&["concat", "in", "in", "--axis", "time", "-o", "o.zarr"]);
    assert!(told.contains("--axis: no dimension is named \"time\": there are y, x"), "{told}");
    let told = failed(&["stack", "in", "in", "--axis", "x", "-o", "o.zarr"]);
    assert!(told.contains("the new axis of a stack"), "{told}");
    tslice(&dir, &["view", "in", "--unpack", "--reduce", "max", "--axis", "x"])
        .assert()
        .success()
        .stdout("[3.5 3.5]\ng/a, shape (2,), dtype float64\n");
}
