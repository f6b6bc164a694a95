//! netCDF 3: variables of fixed length and in records, names, attributes; what is refused.
//! `tests/python/netcdf3_differential.py` does the same with files of netCDF4 and scipy.

use std::fs;
use std::path::Path;

use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::tslice;

/// A header that is made part by part; all numbers are big-endian.
struct Header {
    bytes: Vec<u8>,
    version: u8,
}

const BYTE: u32 = 1;
const TEXT: u32 = 2;
const SHORT: u32 = 3;
const INT: u32 = 4;
const DOUBLE: u32 = 6;

impl Header {
    fn new(version: u8, records: u32) -> Header {
        let mut header = Header { bytes: [b"CDF", &[version][..]].concat(), version };
        header.count(records.into());
        header
    }

    fn count(&mut self, count: u64) {
        let bytes = count.to_be_bytes();
        self.bytes.extend(&bytes[if self.version == 5 { 0 } else { 4 }..]);
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn name(&mut self, name: &str) {
        self.count(name.len() as u64);
        self.padded(name.as_bytes());
    }

    fn list(&mut self, tag: u32, count: u64) {
        self.bytes.extend(if count == 0 { 0 } else { tag }.to_be_bytes());
        self.count(count);
    }

    fn dimensions(mut self, all: &[(&str, u64)]) -> Header {
        self.list(10, all.len() as u64);
        for (name, len) in all {
            self.name(name);
            self.count(*len);
        }
        self
    }

    /// Attributes: a name, a type, how many values, and their bytes.
    fn attributes(mut self, all: &[(&str, u32, u64, &[u8])]) -> Header {
        self.list(12, all.len() as u64);
        for (name, kind, count, bytes) in all {
            self.name(name);
            self.bytes.extend(kind.to_be_bytes());
            self.count(*count);
            self.padded(bytes);
        }
        self
    }

    /// Begin the list of variables.
    fn variables(mut self, count: u64) -> Header {
        self.list(11, count);
        self
    }

    /// A variable up to its attributes, which follow.
    fn variable(mut self, name: &str, dimensions: &[u64]) -> Header {
        self.name(name);
        self.count(dimensions.len() as u64);
        dimensions.iter().for_each(|id| self.count(*id));
        self
    }

    /// What follows the attributes of a variable.
    fn data(mut self, kind: u32, begin: u64) -> Header {
        self.bytes.extend(kind.to_be_bytes());
        self.count(0);
        let begin = begin.to_be_bytes();
        self.bytes.extend(&begin[if self.version == 1 { 4 } else { 0 }..]);
        self
    }

    /// The file, with these bytes from position 500 on, where the data begin.
    fn file(mut self, data: &[u8]) -> Vec<u8> {
        assert!(self.bytes.len() <= 500);
        self.bytes.resize(500, 0);
        self.bytes.extend(data);
        self.bytes
    }
}

fn folder(file: &[u8]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("s.nc"), file).unwrap();
    dir
}

/// What a command prints.
fn prints(folder: &Path, args: &[&str], expected: &str) {
    tslice(folder, args).assert().success().stdout(expected.to_owned()).stderr("");
}

fn fails(file: &[u8], says: &str) {
    let dir = folder(file);
    let assert = tslice(dir.path(), &["info", "s.nc"]).assert().code(1);
    assert.stderr(contains(says).and(contains("panicked").not()));
}

/// Three records of bytes, padded to 4, and shorts; and a fixed variable before them.
fn records(version: u8, count: u32) -> Vec<u8> {
    let header = Header::new(version, count)
        .dimensions(&[("time", 0), ("x", 3)])
        .attributes(&[("title", TEXT, 5, b"tides")])
        .variables(3)
        .variable("x", &[1])
        .attributes(&[("dtype", TEXT, 4, b"bool")])
        .data(BYTE, 500)
        .variable("level", &[0, 1])
        .attributes(&[
            ("limits", SHORT, 2, &[0, 1, 0xff, 0xfe]),
            ("odd", DOUBLE, 1, &f64::NAN.to_be_bytes()),
        ])
        .data(BYTE, 504)
        .variable("hour", &[0])
        .attributes(&[])
        .data(SHORT, 508);
    let record = |number: u8| [number, number + 1, number + 2, 0, 0, number, 0, 0];
    header.file(&[&[1, 0, 1, 0][..], &[10, 20, 30].map(record).concat()].concat())
}

#[test]
fn record_variables_are_views() {
    for version in [1, 2, 5] {
        let dir = folder(&records(version, 3));
        prints(dir.path(), &["s.nc", "-t", "x", "--to", "csv"], "1\n0\n1\n");
        prints(
            dir.path(),
            &["s.nc", "-t", "level", "--to", "csv"],
            "10,11,12\n20,21,22\n30,31,32\n",
        );
        prints(dir.path(), &["s.nc", "-t", "level", "[::-2, 1]", "--to", "csv"], "31\n11\n");
        prints(dir.path(), &["s.nc", "-t", "hour", "[1:]", "--to", "csv"], "20\n30\n");
        let piped = tslice(dir.path(), &["-", "-t", "hour", "--to", "csv"])
            .write_stdin(records(version, 3))
            .assert()
            .success();
        piped.stdout("10\n20\n30\n");
    }
}

#[test]
fn info_shows_dimensions_and_attributes() {
    let dir = folder(&records(1, 3));
    let shown = tslice(dir.path(), &["info", "s.nc", "--json"]).assert().success();
    let said: Value = serde_json::from_slice(&shown.get_output().stdout).unwrap();
    assert_eq!(said[0]["format"], "netcdf3");
    assert_eq!(said[0]["groups"], json!({"": {"title": "tides"}}));
    let tensors = said[0]["tensors"].as_array().unwrap();
    let names: Vec<&str> = tensors.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["x", "level", "hour"]);
    assert_eq!(tensors[0]["dtype"], "bool");
    assert_eq!(tensors[1]["dimension_names"], json!(["time", "x"]));
    assert_eq!(tensors[1]["attributes"], json!({"limits": [1, -2], "odd": "NaN"}));
}

#[test]
fn one_record_variable_is_not_padded() {
    let one = |count| {
        Header::new(1, count)
            .dimensions(&[("t", 0), ("x", 3)])
            .attributes(&[])
            .variables(1)
            .variable("v", &[0, 1])
            .attributes(&[])
            .data(BYTE, 500)
            .file(&[1, 2, 3, 4, 5, 6, 7, 8, 9])
    };
    // the number of a stream is that of the records that are there
    for count in [3, u32::MAX] {
        let dir = folder(&one(count));
        prints(dir.path(), &["s.nc", "--to", "csv"], "1,2,3\n4,5,6\n7,8,9\n");
    }
    let mut longer = one(u32::MAX);
    longer.extend([10, 11]);
    prints(folder(&longer).path(), &["s.nc", "[-1]", "--to", "csv"], "7\n8\n9\n");
    prints(folder(&one(0)).path(), &["s.nc", "--to", "json"], "[]\n");
}

#[test]
fn packed_values_are_unpacked() {
    let packed = Header::new(2, 0)
        .dimensions(&[("x", 3)])
        .attributes(&[])
        .variables(1)
        .variable("v", &[0])
        .attributes(&[
            ("scale_factor", DOUBLE, 1, &0.5f64.to_be_bytes()),
            ("_FillValue", SHORT, 1, &[0xff, 0xff]),
        ])
        .data(SHORT, 500)
        .file(&[0, 3, 0xff, 0xff, 0, 8]);
    let dir = folder(&packed);
    prints(dir.path(), &["s.nc", "--unpack", "--to", "csv"], "1.5\nnan\n4.0\n");
    let stored = tslice(dir.path(), &["s.nc", "--to", "csv"]).assert().success();
    stored.stdout("3\n-1\n8\n").stderr(contains("values are taken as they are stored"));
}

#[test]
fn damaged_headers_are_refused() {
    let plain = |dimensions: &[(&str, u64)], of: &[u64], kind, begin| {
        let header = Header::new(1, 2).dimensions(dimensions).attributes(&[]).variables(2);
        let header = header.variable("v", of).attributes(&[]).data(kind, begin);
        header.variable("w", &[]).attributes(&[]).data(INT, 500).file(&[0; 40])
    };
    let good = plain(&[("x", 2)], &[0], INT, 500);
    assert!(tslice(folder(&good).path(), &["info", "s.nc"]).output().unwrap().status.success());
    fails(&plain(&[("x", 2)], &[0], 12, 500), "\"v\" has elements of the unknown type 12");
    fails(&plain(&[("x", 2)], &[1], INT, 500), "variable \"v\" has the unknown dimension 1");
    fails(&plain(&[("x", 2), ("t", 0)], &[0, 1], INT, 500), "grows along another axis");
    fails(&plain(&[("x", 2)], &[0], INT, 540), "the file is cut short");
    fails(&plain(&[("x", 1 << 31)], &[0; 3], INT, 500), "has 2^63 bytes or more");
    fails(&plain(&[("x", 2)], &[0; 65], INT, 500), "has 65 axes");
    let twice = plain(&[("x", 2)], &[0], INT, 500);
    let at = twice.iter().position(|byte| *byte == b'w').unwrap();
    fails(&[&twice[..at], b"v", &twice[at + 1..]].concat(), "two of its variables are named \"v\"");
    let mut tag = good.clone();
    tag[11] = 9;
    fails(&tag, "a list of dimensions begins with the tag 9");
    let mut many = good.clone();
    many[12] = 0x7f;
    fails(&many, "more than 262144 dimensions");
    for end in (4..500).step_by(7) {
        let dir = folder(&good[..end]);
        let assert = tslice(dir.path(), &["info", "s.nc"]).assert().code(1);
        assert.stderr(contains("cut short"));
    }
}
