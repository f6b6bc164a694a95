//! `tslice view`: statistics of many tensors as a table, of slices along axes, and reductions. Random
//! arrays are compared with live NumPy in `tests/python/reduce_differential.py`.

use std::fs;
use std::path::Path;

use safetensors::tensor::{Dtype, TensorView};
use tempfile::TempDir;

use crate::program::tslice;

fn doubles(values: impl IntoIterator<Item = f64>) -> Vec<u8> {
    values.into_iter().flat_map(f64::to_le_bytes).collect()
}

/// A folder with `model.safetensors`, three tensors of which one has NaN and one an infinity.
fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let data = [
        doubles([1.0, 0.0, 3.0]),
        doubles([f64::NAN, 5.0, f64::NAN]),
        doubles([-2.0, f64::INFINITY, 0.0]),
    ];
    let view = |data| TensorView::new(Dtype::F64, vec![3], data).unwrap();
    let names = ["plain", "bad", "wide"];
    let tensors = names.into_iter().zip(data.iter().map(|data| view(data)));
    let file = safetensors::serialize(tensors, None).unwrap();
    fs::write(dir.path().join("model.safetensors"), file).unwrap();
    dir
}

/// Write an array of doubles in Fortran order.
fn write_fortran(path: &Path, shape: &str, values: impl IntoIterator<Item = f64>) {
    let text = format!("{{'descr': '<f8', 'fortran_order': True, 'shape': {shape}, }}");
    let header = format!("{text:<117}\n");
    let file = [b"\x93NUMPY\x01\x00\x76\x00", header.as_bytes(), &doubles(values)].concat();
    fs::write(path, file).unwrap();
}

/// The elements of a file of doubles, by their text.
fn elements(dir: &Path, args: &[&str]) -> Vec<f64> {
    let shown = tslice(dir, args).assert().success();
    let text = String::from_utf8(shown.get_output().stdout.clone()).unwrap();
    text.split([',', '\n']).filter(|cell| !cell.is_empty()).map(|it| it.parse().unwrap()).collect()
}

#[test]
fn several_tensors_are_one_table() {
    let dir = folder();
    let table = "\
name   dtype    shape  nan  inf  zero   min  max                mean                std
bad    float64  (3,)     2    0     0   5.0  5.0                   5                  0
wide   float64  (3,)     0    1     1  -2.0  inf                  -1                  1
plain  float64  (3,)     0    0     1   0.0  3.0  1.3333333333333333  1.247219128924647
";
    let args = ["view", "model.safetensors", "-t", "*", "--stats", "--sort", "nan,max"];
    tslice(dir.path(), &args).assert().success().stdout(table).stderr("");
}

#[test]
fn tensors_that_should_not_be_so_are_named() {
    let dir = folder();
    let stats = ["view", "model.safetensors", "-t", "*", "--stats"];
    let run = |more: &[&str]| tslice(dir.path(), &[&stats[..], more].concat()).assert();
    let said = "tslice: model.safetensors: bad has 2 nan; wide has 1 inf\n";
    let bad = "tslice: model.safetensors: bad has 2 nan\n";
    // tensors of a file stand in the order of their data
    run(&["--fail-on", "nan,inf", "--sort", "name"]).code(1).stderr(said);
    let object = "{\"error\":\"model.safetensors: bad has 2 nan\",\"hint\":null,\"exit\":1}\n";
    run(&["--fail-on", "nan", "--json"]).code(1).stderr(object);
    run(&["--fail-on", "nan", "--axis", "0"]).code(1).stderr(bad);
    run(&["--fail-on", "nan", "-t", "plain"]).code(1);
    let one = ["view", "model.safetensors", "-t", "plain", "--stats", "--fail-on"];
    tslice(dir.path(), &[&one[..], &["nan,inf"]].concat()).assert().success().stderr("");
    tslice(dir.path(), &[&one[..], &["zero"]].concat()).assert().code(1);
}

/// As many slices as take several bands, in another order than they have in memory.
#[test]
fn slices_in_bands_are_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let (rows, columns) = (200u32, 150u32);
    let values = (0..2).flat_map(|sign| {
        (0..columns).flat_map(move |column| {
            let far = f64::from(column) * if sign == 0 { -1.0 } else { 1.0 };
            (0..rows).map(move |row| f64::from(row) + far)
        })
    });
    write_fortran(&dir.path().join("a.npy"), "(200, 150, 2)", values);
    let expected = |of: fn(u32, u32) -> u32| -> Vec<f64> {
        let all = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        all.map(|(row, column)| f64::from(of(row, column))).collect()
    };
    for (how, of) in [("mean", (|row, _| row) as fn(u32, u32) -> u32), ("std", |_, column| column)]
    {
        let expected = expected(of);
        for (output, threads) in [("out.npy", "1"), ("out.npy", "3"), ("out.csv", "2")] {
            let reduce = ["view", "a.npy", "--reduce", how, "--axis", "-1", "-f", "-o", output];
            tslice(dir.path(), &[&reduce[..], &["-j", threads]].concat()).assert().success();
            let found = match output {
                "out.npy" => elements(dir.path(), &["out.npy", "--to", "csv"]),
                _ => {
                    let text = fs::read_to_string(dir.path().join(output)).unwrap();
                    text.split([',', '\n']).filter_map(|cell| cell.parse().ok()).collect()
                }
            };
            assert!(found == expected, "{how} {output} {threads}");
        }
    }
    let rows_of = |threads| {
        let args = ["view", "a.npy", "--stats", "--axis", "2", "--json", "-j", threads];
        tslice(dir.path(), &args).output().unwrap().stdout
    };
    let found = rows_of("1");
    assert!(found == rows_of("3"));
    let lines = serde_json::Deserializer::from_slice(&found).into_iter();
    let lines: Vec<serde_json::Value> = lines.map(Result::unwrap).collect();
    assert_eq!(lines.len(), 30_000);
    let last = serde_json::json!([199, 149]);
    assert_eq!((&lines[29_999]["position"], &lines[29_999]["std"]), (&last, &149.0.into()));
    assert_eq!(lines[29_999]["max"]["position"], serde_json::json!([199, 149, 1]));
}

#[test]
fn reductions_say_what_they_would_write() {
    let dir = folder();
    let args = ["view", "model.safetensors", "-t", "*", "--reduce", "sum", "--keepdims"];
    let dry = tslice(dir.path(), &[&args[..], &["-o", "s.safetensors", "-n"]].concat()).assert();
    let text = String::from_utf8(dry.success().get_output().stdout.clone()).unwrap();
    assert!(text.starts_with("would write s.safetensors: 3 tensors, 24 bytes"), "{text}");
    assert!(!dir.path().join("s.safetensors").exists());
    tslice(dir.path(), &[&args[..], &["-o", "s.safetensors"]].concat()).assert().success();
    let piped = fs::read(dir.path().join("model.safetensors")).unwrap();
    let args = ["view", "-", "-t", "*", "--reduce", "sum", "--keepdims", "-o", "p.safetensors"];
    tslice(dir.path(), &args).write_stdin(piped).assert().success();
    let read = |name| fs::read(dir.path().join(name)).unwrap();
    assert_eq!(read("s.safetensors"), read("p.safetensors"));
    let sums = elements(dir.path(), &["s.safetensors", "-t", "plain", "--to", "csv"]);
    assert_eq!(sums, [4.0]);
}

/// What `view` prints of `matrix.npy`, the numbers from 0 on in rows of 3.
fn viewed(dir: &Path, rows: usize, args: &[&str]) -> String {
    let text = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, 3), }}");
    let header = format!("{text:<117}\n");
    let numbers = doubles((0..rows * 3).map(|number| number as f64));
    let file = [b"\x93NUMPY\x01\x00\x76\x00", header.as_bytes(), &numbers].concat();
    fs::write(dir.join("matrix.npy"), file).unwrap();
    let run = tslice(dir, &[&["view", "matrix.npy"], args].concat()).assert().success();
    String::from_utf8(run.get_output().stdout.clone()).unwrap()
}

#[test]
fn reductions_are_printed_as_values_are() {
    let dir = tempfile::tempdir().unwrap();
    let printed = |args: &[&str]| viewed(dir.path(), 4, args);
    let sums = printed(&["--reduce", "sum", "--axis", "0"]);
    assert_eq!(sums, "[18. 22. 26.]\nshape (3,), dtype float64\n");
    let kept = printed(&["[1:]", "--reduce", "mean", "--axis", "1", "--keepdims", "-j", "2"]);
    assert_eq!(kept, "[[ 4.]\n [ 7.]\n [10.]]\nshape (3, 1), dtype float64\n");
    assert_eq!(printed(&["--reduce", "any"]), "True\nshape (), dtype bool\n");
    // of several tensors each
    let file = folder();
    let args = ["view", "model.safetensors", "-t", "plain", "-t", "wide", "--reduce", "max"];
    let run = tslice(file.path(), &args).assert().success();
    let found = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    assert_eq!(
        found,
        "3.0\nplain, shape (), dtype float64\n\ninf\nwide, shape (), dtype float64\n"
    );
}

#[test]
fn reductions_are_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let args =
        ["--reduce", "sum", "--axis", "1", "--keepdims", "--range", "0,50", "-o", "sums.png"];
    assert_eq!(viewed(dir.path(), 4, &args), "");
    assert_eq!(
        viewed(dir.path(), 4, &["--reduce", "sum", "--axis", "1", "--keepdims", "-o", "own.npy"]),
        ""
    );
    let drawn = ["view", "own.npy", "--range", "0,50", "-o", "expected.png"];
    tslice(dir.path(), &drawn).assert().success();
    let file = |name: &str| fs::read(dir.path().join(name)).unwrap();
    assert_eq!(file("sums.png"), file("expected.png"));
}

#[test]
fn tables_of_many_rows_are_shortened() {
    let dir = tempfile::tempdir().unwrap();
    let rows = |rows: usize, args: &[&str]| -> Vec<String> {
        let args = [&["--stats", "--axis", "1"], args].concat();
        viewed(dir.path(), rows, &args).lines().skip(2).map(str::to_owned).collect()
    };
    let short = rows(1001, &[]);
    let first = |line: &String| line.split_whitespace().next().unwrap().to_owned();
    let places: Vec<String> = short.iter().map(first).collect();
    assert_eq!(places, ["[0]", "[1]", "[2]", "...", "[998]", "[999]", "[1000]"]);
    assert_eq!(rows(1000, &[]).len(), 1000);
    let full = rows(1001, &["--full"]);
    assert_eq!(full.len(), 1001);
    let cells = |line: &String| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(cells(&full[999]), cells(&short[5]));
}

#[test]
fn tensors_without_numbers_have_a_row_that_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let array = |descr: &str, bytes: &[u8]| {
        let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (1,), }}");
        [b"\x93NUMPY\x01\x00\x76\x00", format!("{text:<117}\n").as_bytes(), bytes].concat()
    };
    let members = [
        ("s.npy", array("|S3", b"abc")),
        ("x.npy", array("<f8", &f64::NAN.to_le_bytes())),
        ("y.npy", array("<f8", &2f64.to_le_bytes())),
    ];
    let members: Vec<(&str, &[u8])> =
        members.iter().map(|(name, file)| (*name, &file[..])).collect();
    fs::write(dir.path().join("m.npz"), crate::inputs::zip(&members)).unwrap();
    let said = |args: &[&str], code| {
        let args = [&["view", "m.npz", "-t", "*", "--stats"], args].concat();
        let run = tslice(dir.path(), &args).assert().code(code);
        String::from_utf8(run.get_output().stdout.clone()).unwrap()
    };
    let rows = |text: &str| -> Vec<String> {
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        text.lines().skip(1).map(words).collect()
    };
    let found = rows(&said(&["--fail-on", "nan"], 1));
    assert_eq!(found[0], "s |S3 (1,) no numbers");
    assert_eq!(found[2], "y float64 (1,) 0 0 0 2.0 2.0 2 0");
    assert!(rows(&said(&["--sort", "max"], 0))[0].starts_with("y "));
    let json = said(&["--json"], 0);
    assert!(
        json.starts_with(r#"{"name":"s","shape":[1],"dtype":"|S3","reason":"no numbers"}"#),
        "{json}"
    );
    assert!(said(&["--axis", "0"], 0).starts_with("s, shape (1,), dtype |S3\n  no numbers\n"));
}
