//! Outputs that can share blocks with their inputs: on a file system that shares none, the bytes are
//! the same. `tests/python/sharing.py` looks at the blocks.

use std::fs;
use std::path::Path;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use crate::program::tslice;

const BLOCK: usize = 4096;

/// Bytes that do not repeat in blocks.
fn bytes(count: usize, seed: usize) -> Vec<u8> {
    (0..count).map(|at| (at * 31 + at / 251 + seed * 97) as u8).collect()
}

/// A checkpoint of tensors of bytes, of rows of so many.
fn checkpoint(path: &Path, tensors: &[(&str, usize, &[u8])]) {
    let views = tensors.iter().map(|(name, row, data)| {
        let shape = vec![data.len() / row, *row];
        (name.to_string(), TensorView::new(Dtype::U8, shape, data).unwrap())
    });
    fs::write(path, safetensors::serialize(views, None).unwrap()).unwrap();
}

/// Where a tensor of a checkpoint begins in its file.
fn place(file: &[u8], name: &str) -> usize {
    let (len, metadata) = SafeTensors::read_metadata(file).unwrap();
    metadata.info(name).unwrap().data_offsets.0 + len + 8
}

#[test]
fn kept_tensors_have_the_same_place_in_a_block() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b, c) = (bytes(40 * 1000, 1), bytes(1 << 21, 2), bytes(3001 * 8, 3));
    let input = dir.path().join("m.safetensors");
    checkpoint(&input, &[("a", 1000, &a), ("b", 512, &b), ("c", 8, &c)]);
    let trim = |to: &str, args: &[&str]| {
        let args = [&["m.safetensors", "-t", "a", "--keep-rest", "-o", to], args].concat();
        tslice(dir.path(), &args).assert().success().stderr("");
        fs::read(dir.path().join(to)).unwrap()
    };
    let trimmed = trim("o.safetensors", &["[3:37]"]);
    let opened = SafeTensors::deserialize(&trimmed).unwrap();
    assert_eq!(opened.tensor("a").unwrap().data(), &a[3000..37_000]);
    assert_eq!(opened.tensor("b").unwrap().data(), b);
    assert_eq!(opened.tensor("c").unwrap().data(), c);
    let header = place(&trimmed, "a").min(place(&trimmed, "b")).min(place(&trimmed, "c"));
    assert_eq!(header % 8, 0);
    let whole = fs::read(&input).unwrap();
    assert_eq!(place(&trimmed, "b") % BLOCK, place(&whole, "b") % BLOCK);
    // whatever reads the input, the bytes are the same
    assert_eq!(trim("r.safetensors", &["[3:37]", "--io", "read", "-j", "1"]), trimmed);
    let piped = ["-", "[3:37]", "-t", "a", "--keep-rest", "--to", "safetensors"];
    let piped = tslice(dir.path(), &piped).write_stdin(whole).assert().success();
    assert_eq!(piped.get_output().stdout, trimmed);
}

#[test]
fn small_outputs_stay_as_short_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (bytes(4000, 1), bytes(1 << 18, 2));
    checkpoint(&dir.path().join("m.safetensors"), &[("a", 1000, &a), ("b", 512, &b)]);
    let args = ["m.safetensors", "[1:]", "-t", "a", "--keep-rest", "-o", "o.safetensors"];
    tslice(dir.path(), &args).assert().success();
    let trimmed = fs::read(dir.path().join("o.safetensors")).unwrap();
    assert!(trimmed.len() < 3000 + (1 << 18) + 200, "{}", trimmed.len());
}

#[test]
fn contiguous_slices_joins_and_splits_are_whole() {
    let dir = tempfile::tempdir().unwrap();
    let data = bytes(96 * 16_384, 5);
    let npy = |rows: usize, data: &[u8]| {
        let dtype =
            tslice::dtype::DType::Scalar(tslice::dtype::Scalar::U8, tslice::dtype::Endian::Little);
        let shape = [rows as u64, 16_384];
        let header = tslice::formats::npy::header(&dtype, &shape, tslice::shape::Order::C);
        [&header.unwrap(), data].concat()
    };
    let path = |name: &str| dir.path().join(name);
    fs::write(path("a.npy"), npy(96, &data)).unwrap();
    let run = |args: &[&str]| tslice(dir.path(), args).assert().success().stderr("");
    run(&["a.npy", "[5:90]", "-o", "o.npy"]);
    assert_eq!(fs::read(path("o.npy")).unwrap(), npy(85, &data[5 * 16_384..90 * 16_384]));
    run(&["split", "a.npy", "--sizes", "7,89", "-o", "{}.npy"]);
    assert_eq!(fs::read(path("0.npy")).unwrap(), npy(7, &data[..7 * 16_384]));
    assert_eq!(fs::read(path("1.npy")).unwrap(), npy(89, &data[7 * 16_384..]));
    run(&["concat", "0.npy", "1.npy", "-o", "j.npy"]);
    assert_eq!(fs::read(path("j.npy")).unwrap(), npy(96, &data));
    // over the input itself
    run(&["j.npy", "[5:90]", "-o", "j.npy", "--force"]);
    assert_eq!(fs::read(path("j.npy")).unwrap(), fs::read(path("o.npy")).unwrap());
}
