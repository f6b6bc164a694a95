//! What `tslice info` lists: order, choice and columns of tensors, and what they add up to.

use std::fs;

use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::tslice;

/// `m.safetensors` with four tensors of 4, 24, 24 and 0 bytes.
fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let data = [0; 24];
    let view = |dtype, shape: &[usize], bytes| {
        TensorView::new(dtype, shape.to_vec(), &data[..bytes]).unwrap()
    };
    let tensors = [
        ("b", view(Dtype::F32, &[2, 3], 24)),
        ("c", view(Dtype::I16, &[12], 24)),
        ("a", view(Dtype::BF16, &[2, 1], 4)),
        ("d", view(Dtype::F32, &[0, 7], 0)),
    ];
    fs::write(dir.path().join("m.safetensors"), safetensors::serialize(tensors, None).unwrap())
        .unwrap();
    dir
}

fn info(dir: &TempDir, args: &[&str]) -> String {
    let done = tslice(dir, &[&["info", "m.safetensors"], args].concat()).assert().success();
    String::from_utf8(done.stderr("").get_output().stdout.clone()).unwrap()
}

/// The words of the rows of the table.
fn rows(dir: &TempDir, args: &[&str]) -> Vec<String> {
    let text = info(dir, args);
    let rows = text.lines().skip(2).filter(|line| !line.contains("total: "));
    rows.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn tensors_are_sorted_by_a_column() {
    let dir = folder();
    let names = |sort| rows(&dir, &["--sort", sort, "--columns", "name"]);
    assert_eq!(names("name"), ["a", "b", "c", "d"]);
    assert_eq!(names("dtype"), ["a", "b", "d", "c"]);
    assert_eq!(names("shape"), ["d", "a", "b", "c"]);
    // equal ones stay as in the file
    assert_eq!(names("bytes"), ["b", "c", "a", "d"]);
    assert_eq!(rows(&dir, &["--columns", "name"]), ["b", "d", "a", "c"]);
}

#[test]
fn small_tensors_are_left_out_and_columns_chosen() {
    let dir = folder();
    assert_eq!(
        rows(&dir, &["--min-bytes", "4", "--columns", "bytes,name"]),
        ["24 b", "4 a", "24 c"]
    );
    assert_eq!(rows(&dir, &["--min-bytes", "0.005kB", "--columns", "name"]), ["b", "c"]);
    assert_eq!(rows(&dir, &["--min-bytes", "1GiB"]), [""; 0]);
    let heading = info(&dir, &["--columns", "shape,dtype"]);
    assert_eq!(heading.lines().nth(1), Some("  shape   dtype"));
    assert!(heading.starts_with("m.safetensors: safetensors, 4 tensors, 52 bytes\n"), "{heading}");
}

#[test]
fn the_last_line_says_what_they_add_up_to() {
    let dir = folder();
    let last = |args: &[&str]| info(&dir, args).lines().last().unwrap().to_owned();
    let all = "  total: 4 tensors, 20 elements, 52 bytes; bfloat16: 1 tensor, 2 elements, 4 bytes; \
               float32: 2 tensors, 6 elements, 24 bytes; int16: 1 tensor, 12 elements, 24 bytes";
    assert_eq!(last(&[]), all);
    assert_eq!(last(&["-t", "[bd]"]), "  total: 2 tensors, 6 elements, 24 bytes; all float32");
    assert_eq!(last(&["--min-bytes", "25"]), "  total: 0 tensors, 0 elements, 0 bytes");
    let found: Value =
        serde_json::from_str(&info(&dir, &["--json", "--sort", "name", "--min-bytes", "24"]))
            .unwrap();
    let names = found[0]["tensors"].as_array().unwrap().iter().map(|it| &it["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["b", "c"]);
    let sums = |tensors, elements, bytes| json!({ "tensors": tensors, "elements": elements, "bytes": bytes });
    let mut expected = sums(2, 18, 48);
    expected["dtypes"] = json!({ "float32": sums(1, 6, 24), "int16": sums(1, 12, 24) });
    assert_eq!(found[0]["totals"], expected);
}

#[test]
fn members_that_claim_more_than_64_bits_are_added_up() {
    let dir = tempfile::tempdir().unwrap();
    let header =
        crate::inputs::npy_header(&tslice::formats::npy::parse_dtype("V0").unwrap(), &[1 << 62]);
    let names: Vec<String> = (0..5).map(|number| format!("{number}.npy")).collect();
    let members: Vec<(&str, &[u8])> =
        names.iter().map(|name| (name.as_str(), &header[..])).collect();
    fs::write(dir.path().join("z.npz"), crate::inputs::zip(&members)).unwrap();
    let done = tslice(&dir, &["info", "z.npz"]).assert().success();
    let text = String::from_utf8(done.get_output().stdout.clone()).unwrap();
    assert!(text.contains("total: 5 tensors, 23058430092136939520 elements, 0 bytes"), "{text}");
}

#[test]
fn files_of_one_tensor_are_a_line_each() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, shape: &str, bytes: usize| {
        let text = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}");
        let file = [b"\x93NUMPY\x01\x00\x76\x00", format!("{text:<117}\n").as_bytes()].concat();
        fs::write(dir.path().join(name), [file, vec![0; bytes]].concat()).unwrap();
    };
    let described = |args: &[&str]| {
        let done = tslice(&dir, &[&["info"], args].concat()).assert().success();
        String::from_utf8(done.stderr("").get_output().stdout.clone()).unwrap()
    };
    write("a.npy", "(2, 3)", 6);
    write("b.npy", "()", 1);
    assert_eq!(
        described(&["a.npy", "b.npy"]),
        "file   dtype  shape   bytes  order\n\
         a.npy  uint8  (2, 3)      6  C\n\
         b.npy  uint8  ()          1  C\n\
         total: 2 tensors, 7 elements, 7 bytes; all uint8\n"
    );
    let sorted = described(&["b.npy", "a.npy", "--sort", "bytes", "--columns", "bytes"]);
    assert!(sorted.starts_with("file   bytes\na.npy      6\nb.npy      1\ntotal: "), "{sorted}");
    // one alone, and beside a file of several, is shown with all that is known of it
    assert!(described(&["a.npy"]).starts_with("a.npy: npy, 1 tensor, 6 bytes\n"));
    write("c.npy", "(1,)", 1);
    let array = fs::read(dir.path().join("c.npy")).unwrap();
    let archive = crate::inputs::zip(&[("x.npy", &array), ("y.npy", &array)]);
    fs::write(dir.path().join("c.npz"), archive).unwrap();
    let blocks = described(&["a.npy", "c.npz"]);
    assert!(blocks.starts_with("a.npy: npy, 1 tensor, 6 bytes\n"), "{blocks}");
}

/// A header of version 1.0, and 6 doubles.
fn npy(entries: &str) -> Vec<u8> {
    [b"\x93NUMPY\x01\x00\x76\x00", format!("{entries:<117}\n").as_bytes(), &[0; 48]].concat()
}

#[test]
fn what_follows_an_array_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let one = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }");
    let said = |file: &[u8], args: &[&str]| {
        fs::write(dir.path().join("a.npy"), file).unwrap();
        let done = tslice(&dir, &[&["info", "a.npy"], args].concat()).assert().success();
        String::from_utf8(done.stderr("").get_output().stdout.clone()).unwrap()
    };
    assert!(!said(&one, &[]).contains("behind the array"));
    let two = [&one[..], &one].concat();
    let line = "  176 bytes after the array, which are not read; they begin another array\n";
    assert!(said(&two, &[]).contains(line), "{}", said(&two, &[]));
    assert!(said(&two, &["--json"]).contains(r#""following":{"bytes":176,"begins_array":true}"#));
    let odd = [&one[..], b"abc"].concat();
    assert!(said(&odd, &[]).contains("  3 bytes after the array, which are not read\n"));
}

/// A line a file, until one needs more: then each is shown with all its lines, once.
#[test]
fn files_are_described_once() {
    let dir = tempfile::tempdir().unwrap();
    let array = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }");
    for (name, more) in [("a.npy", ""), ("b.npy", ""), ("c.npy", "abc")] {
        fs::write(dir.path().join(name), [&array, more.as_bytes()].concat()).unwrap();
    }
    let printed = |files: &[&str]| {
        let done = tslice(&dir, &[&["info"], files].concat()).assert().success().stderr("");
        String::from_utf8(done.get_output().stdout.clone()).unwrap()
    };
    for files in
        [["a.npy", "c.npy", "b.npy"], ["c.npy", "a.npy", "b.npy"], ["a.npy", "b.npy", "c.npy"]]
    {
        let alone: String = files.iter().map(|file| printed(&[file])).collect();
        assert_eq!(printed(&files), alone);
    }
    assert_eq!(printed(&["a.npy", "b.npy"]).lines().count(), 4);
}

#[test]
fn a_tree_has_a_line_for_neighbours_that_hold_alike() {
    let dir = tempfile::tempdir().unwrap();
    let data = [0; 24];
    let mut tensors = Vec::new();
    for layer in 0..12 {
        let rows = if layer == 7 { 3 } else { 2 };
        for (name, shape) in [("q.weight", [2, 2]), ("k.weight", [2, 2]), ("up", [rows, 4])] {
            let bytes = 2 * shape[0] * shape[1];
            let view = TensorView::new(Dtype::BF16, shape.to_vec(), &data[..bytes]).unwrap();
            tensors.push((format!("model.layers.{layer}.{name}"), view));
        }
    }
    let norm = TensorView::new(Dtype::F32, vec![2], &data[..8]).unwrap();
    tensors.push(("model.norm".to_owned(), norm));
    let file = safetensors::serialize(tensors, None).unwrap();
    fs::write(dir.path().join("m.safetensors"), file).unwrap();
    assert_eq!(
        rows(&dir, &["--tree"]),
        [
            "model 37 198 400".to_owned(),
            "norm float32 (2,) 1 2 8".to_owned(),
            "layers 36 196 392".to_owned(),
            "{0..6} 21 112 224".to_owned(),
            "{k,q}.weight bfloat16 (2, 2) 14 56 112".to_owned(),
            "up bfloat16 (2, 4) 7 56 112".to_owned(),
            "7 3 20 40".to_owned(),
            "{k,q}.weight bfloat16 (2, 2) 2 8 16".to_owned(),
            "up bfloat16 (3, 4) 1 12 24".to_owned(),
            "{8..11} 12 64 128".to_owned(),
            "{k,q}.weight bfloat16 (2, 2) 8 32 64".to_owned(),
            "up bfloat16 (2, 4) 4 32 64".to_owned(),
        ]
    );
    let chosen = rows(&dir, &["--tree", "-t", "*.{8..11}.*"]);
    assert_eq!(chosen[0], "model.layers.{8..11} 12 64 128");
    assert_eq!(chosen.len(), 3);
}
