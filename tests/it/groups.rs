//! Tensors that are joined and cut by name: `concat`, `stack` and `split` with `--group`. What they make of random
//! checkpoints is held against dicts of arrays in `tests/python/assembly_differential.py`.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::inputs::{U8, npy_header, write_npy, write_safetensors};
use crate::program::tslice;

/// Writes tensors of bytes, by their names, shapes and elements.
fn checkpoint(path: &Path, tensors: &[(&str, &[u64], &[u8])]) {
    let mut data = Vec::new();
    let entry = |(name, shape, bytes): &(&str, &[u64], &[u8])| {
        let start = data.len();
        data.extend_from_slice(bytes);
        let end = data.len();
        format!(r#""{name}":{{"dtype":"U8","shape":{shape:?},"data_offsets":[{start},{end}]}}"#)
    };
    let header = Vec::from_iter(tensors.iter().map(entry)).join(",");
    write_safetensors(path, &format!("{{{header}}}"), &data);
}

/// The names, shapes and bytes of an output, in its order.
fn read(path: &Path) -> Vec<(String, Vec<usize>, Vec<u8>)> {
    let bytes = fs::read(path).unwrap();
    let (_, metadata) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let tensor = |name: String| {
        let tensor = file.tensor(&name).unwrap();
        (name, tensor.shape().to_vec(), tensor.data().to_vec())
    };
    metadata.offset_keys().into_iter().map(tensor).collect()
}

/// A folder with two layers of queries, keys and values, keys first, and a tensor between the layers.
fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let tensors: &[(&str, &[u64], &[u8])] = &[
        ("h.0.k", &[1, 2], &[3, 4]),
        ("h.0.q", &[1, 2], &[1, 2]),
        ("norm", &[3], &[9, 9, 9]),
        ("h.0.v", &[1, 2], &[5, 6]),
        ("h.1.k", &[1, 2], &[13, 14]),
        ("h.1.q", &[1, 2], &[11, 12]),
        ("h.1.v", &[1, 2], &[15, 16]),
    ];
    checkpoint(&dir.path().join("m.safetensors"), tensors);
    dir
}

const QKV: [&str; 4] = ["--group", "h.{l}.{p:q,k,v}", "--into", "h.{l}.qkv"];

#[test]
fn a_joined_tensor_stands_where_the_first_of_its_group_stood() {
    let dir = folder();
    let out = dir.path().join("o.safetensors");
    let run = |command: &str, more: &[&str]| {
        let args = [&[command, "m.safetensors", "-fo", "o.safetensors"], &QKV[..], more].concat();
        tslice(&dir, &args).assert().success().stderr("");
        read(&out)
    };
    let whole =
        |name: &str, shape: &[usize], data: &[u8]| (name.to_owned(), shape.to_vec(), data.to_vec());
    let first = whole("h.0.qkv", &[3, 2], &[1, 2, 3, 4, 5, 6]);
    let second = whole("h.1.qkv", &[3, 2], &[11, 12, 13, 14, 15, 16]);
    let norm = whole("norm", &[3], &[9, 9, 9]);
    assert_eq!(run("concat", &["--keep-rest"]), [first.clone(), norm.clone(), second]);
    let wide = whole("h.0.qkv", &[1, 6], &[1, 2, 3, 4, 5, 6]);
    assert_eq!(run("concat", &["-t", "h.0.*", "--axis", "1"]), [wide]);
    let stacked = whole("h.0.qkv", &[1, 2, 3], &[1, 3, 5, 2, 4, 6]);
    assert_eq!(run("stack", &["--exclude", "h.1.*", "--axis", "-1"]), [stacked]);
    // what -t leaves out is kept as it is
    let kept = run("concat", &["-t", "h.0.*", "--keep-rest"]);
    let names = kept.iter().map(|(name, ..)| name.as_str());
    assert_eq!(Vec::from_iter(names), ["h.0.qkv", "norm", "h.1.k", "h.1.q", "h.1.v"]);
    assert_eq!(kept[0], first);
}

#[test]
fn one_group_may_be_one_array() {
    let dir = folder();
    for (name, bytes) in [("q", [1, 2]), ("k", [3, 4]), ("v", [5, 6])] {
        write_npy(&dir.path().join(format!("{name}.npy")), &U8, &[2], &bytes);
    }
    // arrays without a name have the stem of their file
    let args = ["stack", "v.npy", "k.npy", "q.npy", "--group", "{p:q,k,v}", "--into", "qkv"];
    let expected = [npy_header(&U8, &[2, 3]), vec![1, 3, 5, 2, 4, 6]].concat();
    tslice(&dir, &[&args[..], &["--axis", "1"]].concat()).assert().success().stdout(expected);
    let dry = [&args[..], &["-o", "o.npy", "--dry-run", "--json"]].concat();
    let said = tslice(&dir, &dry).assert().success();
    let said: serde_json::Value = serde_json::from_slice(&said.get_output().stdout).unwrap();
    assert_eq!(said["outputs"][0]["shape"], serde_json::json!([3, 2]));
    assert!(!dir.path().join("o.npy").exists());
}

/// More files than are open at a time, each with members of every group, which alternate in the joined tensors.
#[test]
fn members_of_any_number_of_files_are_joined() {
    let dir = tempfile::tempdir().unwrap();
    let mut names = String::new();
    for file in 0..150u8 {
        let name = |group: &str, part: u8| {
            format!("{group}.{}", 2 * u32::from(149 - file) + u32::from(part))
        };
        let tensors = [name("a", 0), name("b", 1), name("b", 0), name("a", 1)];
        let tensors =
            [0, 1, 2, 3].map(|at| (tensors[at].as_str(), &[2u64, 2][..], [file, 0, at as u8, 1]));
        let tensors =
            Vec::from_iter(tensors.iter().map(|(name, shape, data)| (*name, *shape, &data[..])));
        checkpoint(&dir.path().join(format!("{file}.safetensors")), &tensors);
        names += &format!("{file}.safetensors\n");
    }
    fs::write(dir.path().join("names"), names).unwrap();
    let args =
        ["concat", "--files-from", "names", "--group", "{l}.{e}", "--into", "{l}", "--axis", "1"];
    for to in ["out.safetensors", "deflated.npz"] {
        tslice(&dir, &[&args[..], &["-o", to]].concat()).assert().success().stderr("");
    }
    let row = |parts: [u8; 2], row: bool| {
        let cell = move |file: u8, at: u8| if row { [at, 1] } else { [file, 0] };
        let files = (0..150u8).rev();
        files.flat_map(move |file| parts.map(|at| cell(file, at)).concat()).collect::<Vec<u8>>()
    };
    let whole = |name: &str, parts| {
        (name.to_owned(), vec![2, 600], [row(parts, false), row(parts, true)].concat())
    };
    let found = read(&dir.path().join("out.safetensors"));
    assert_eq!(found, [whole("a", [0, 3]), whole("b", [2, 1])]);
    let same = ["diff", "out.safetensors", "deflated.npz"];
    tslice(&dir, &same).assert().success();
}

#[test]
fn a_member_that_is_missing_or_cannot_be_read_is_named() {
    let dir = folder();
    let model = dir.path().join("model");
    fs::create_dir(&model).unwrap();
    fs::copy(dir.path().join("m.safetensors"), model.join("a.safetensors")).unwrap();
    let index = |more: &str| {
        let names =
            ["h.0.k", "h.0.q", "h.0.v", "norm"].map(|name| format!(r#""{name}":"a.safetensors""#));
        let index = format!(r#"{{"weight_map":{{{},"{more}":"b.safetensors"}}}}"#, names.join(","));
        fs::write(model.join("model.safetensors.index.json"), index).unwrap();
    };
    let args =
        [&["concat", "model", "-qfo", "o.safetensors"], &QKV[..], &["--exclude", "h.1.[kqv]"]]
            .concat();
    index("head");
    tslice(&dir, &args).assert().success();
    index("h.2.q");
    let said = tslice(&dir, &args).assert().code(1);
    let said = String::from_utf8_lossy(&said.get_output().stderr).into_owned();
    assert!(said.contains("h.2.q") && said.contains("b.safetensors"), "{said}");
    // kept tensors are asked for
    index("head");
    let said = tslice(&dir, &[&args[..], &["--keep-rest"]].concat()).assert().code(1);
    assert!(String::from_utf8_lossy(&said.get_output().stderr).contains("head"));
}

#[test]
fn parts_of_a_tensor_stand_where_it_stood() {
    let dir = folder();
    let out = dir.path().join("o.safetensors");
    let run = |args: &[&str]| {
        tslice(&dir, &[args, &["-fo", "o.safetensors"]].concat()).assert().success().stderr("");
        read(&out)
    };
    let all = read(&dir.path().join("m.safetensors"));
    // joined and cut again: in the order of the parts, each group at the place of its first member
    let restored = [1, 0, 3, 2, 5, 4, 6].map(|at| all[at].clone());
    let back = ["--group", "h.{l}.qkv", "--into", "h.{l}.{p:q,k,v}", "--keep-rest"];
    for (join, cut) in [
        (&["concat"][..], &["--parts", "3"][..]),
        (&["concat", "--axis", "1"], &["--sizes", "2,2,2", "--axis", "1"]),
        (&["stack"], &["--every", "1", "--squeeze"]),
        (&["stack", "--axis", "-1"], &["--at", "1,2", "--axis", "-1", "--squeeze"]),
    ] {
        run(&[join, &["m.safetensors", "--keep-rest"], &QKV[..]].concat());
        fs::copy(&out, dir.path().join("joined.safetensors")).unwrap();
        assert_eq!(run(&[&["split", "joined.safetensors"], cut, &back[..]].concat()), restored);
    }
    // numbered, through a pipe, and with a note on parts that are not equal
    let args =
        ["split", "-", "--group", "n{x}m", "--into", "n{x}.{e}", "--parts", "2", "--to", "npz"];
    let input = fs::read(dir.path().join("m.safetensors")).unwrap();
    let split = tslice(&dir, &args).write_stdin(input).assert().success();
    let said = String::from_utf8_lossy(&split.get_output().stderr).into_owned();
    assert!(said.contains("2 parts have sizes from 1 to 2"), "{said}");
    fs::write(dir.path().join("parts.npz"), &split.get_output().stdout).unwrap();
    let names = run(&["parts.npz"]).into_iter().map(|(name, ..)| name);
    assert_eq!(Vec::from_iter(names), ["nor.0", "nor.1"]);
}

#[test]
fn a_split_by_name_may_be_a_folder_of_shards() {
    let dir = folder();
    fs::create_dir(dir.path().join("llm")).unwrap();
    fs::copy(dir.path().join("m.safetensors"), dir.path().join("llm/model.safetensors")).unwrap();
    fs::write(dir.path().join("llm/config.json"), "{}").unwrap();
    let names =
        ["--group", "h.{l}.{p}", "--into", "{p}.{l}.{e:a,b}", "--axis", "1", "--parts", "2"];
    let args =
        [&["split", "llm", "--keep-rest", "--with-files", "-o", "cut/"], &names[..]].concat();
    let dry = tslice(&dir, &[&args[..], &["--dry-run"]].concat()).assert().success();
    assert!(String::from_utf8_lossy(&dry.get_output().stdout).contains("13 tensors"));
    tslice(&dir, &args).assert().success().stderr("");
    let found = read(&dir.path().join("cut/model-00001-of-00001.safetensors"));
    let names = Vec::from_iter(found.iter().map(|(name, ..)| name.as_str()));
    assert_eq!(names[..5], ["k.0.a", "k.0.b", "q.0.a", "q.0.b", "norm"]);
    assert!(dir.path().join("cut/config.json").exists());
}
