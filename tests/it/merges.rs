//! `tslice merge`. What it makes of random files is held against dicts of arrays in
//! `tests/python/assembly_differential.py`.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use tempfile::TempDir;

use crate::inputs::{U8, write_npy};
use crate::program::tslice;

/// A checkpoint of tensors of bytes.
fn checkpoint(path: &Path, tensors: &[(&str, &[u8])], metadata: &[(&str, &str)]) {
    let views = tensors.iter().map(|(name, data)| {
        (name.to_string(), TensorView::new(Dtype::U8, vec![data.len()], data).unwrap())
    });
    let texts = metadata.iter().map(|(key, value)| (key.to_string(), value.to_string()));
    let texts: HashMap<String, String> = texts.collect();
    let texts = (!texts.is_empty()).then_some(texts);
    fs::write(path, safetensors::serialize(views, texts).unwrap()).unwrap();
}

/// A folder with two checkpoints that have a tensor of one name, and an array.
fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a.safetensors"), dir.path().join("b.safetensors"));
    checkpoint(&a, &[("q", &[1; 8]), ("shared", &[2; 16])], &[("by", "a"), ("format", "pt")]);
    checkpoint(&b, &[("shared", &[3; 24]), ("v", &[4; 8])], &[("by", "b"), ("format", "pt")]);
    write_npy(&dir.path().join("c.npy"), &U8, &[3], &[7, 8, 9]);
    dir
}

/// The names and bytes of tensors, in the order of these.
type Contents = Vec<(String, Vec<u8>)>;

/// The tensors of an output, and its metadata.
fn read(path: &Path) -> (Contents, HashMap<String, String>) {
    let blob = fs::read(path).unwrap();
    let (_, metadata) = SafeTensors::read_metadata(&blob).unwrap();
    let tensors = SafeTensors::deserialize(&blob).unwrap();
    let names = metadata.offset_keys();
    let data = |name: String| (name.clone(), tensors.tensor(&name).unwrap().data().to_vec());
    let texts = metadata.metadata().clone().unwrap_or_default();
    (names.into_iter().map(data).collect(), texts)
}

#[test]
fn of_one_name_the_first_or_the_last_is_taken_at_the_place_of_the_first() {
    let dir = folder();
    let out = dir.path().join("o.safetensors");
    let merge = |flags: &[&str]| {
        let args = ["merge", "a.safetensors", "b.safetensors", "c.npy", "-fo", "o.safetensors"];
        tslice(dir.path(), &[&args[..], flags].concat()).assert().success().stderr("");
        read(&out)
    };
    let expected = |shared: Vec<u8>| {
        let all = [("q", vec![1; 8]), ("shared", shared), ("v", vec![4; 8]), ("c", vec![7, 8, 9])];
        all.map(|(name, data)| (name.to_owned(), data))
    };
    let (first, texts) = merge(&["--first"]);
    assert_eq!((&first[..], &*texts["by"]), (&expected(vec![2; 16])[..], "a"));
    let (last, texts) = merge(&["--last"]);
    assert_eq!((&last[..], &*texts["by"]), (&expected(vec![3; 24])[..], "b"));
    let refused = ["merge", "a.safetensors", "b.safetensors", "-o", "x.safetensors"];
    let twice =
        "tslice: b.safetensors: tensor \"shared\" is also in another input, a.safetensors\n";
    tslice(dir.path(), &refused).assert().code(1).stderr(predicates::str::starts_with(twice));
    // names that differ, and texts that contradict each other
    let apart = [&refused[..], &["--rename", "1:shared=other"]].concat();
    let texts = "tslice: b.safetensors: metadata \"by\" is \"b\", and \"a\" in a.safetensors\n";
    tslice(dir.path(), &apart).assert().code(1).stderr(predicates::str::starts_with(texts));
    assert!(!dir.path().join("x.safetensors").exists());
    // an .npz has no place for them
    let npz = ["merge", "a.safetensors", "b.safetensors", "--rename", "1:shared=other"];
    tslice(dir.path(), &[&npz[..], &["-o", "x.npz"]].concat()).assert().success().stderr("");
}

/// A pipe is kept, and may be one of the inputs.
#[test]
fn one_input_may_be_a_pipe() {
    let dir = folder();
    let args = ["merge", "c.npy", "-", "--to", "safetensors", "-o", "o"];
    let piped = fs::read(dir.path().join("a.safetensors")).unwrap();
    tslice(dir.path(), &args).write_stdin(piped).assert().success().stderr("");
    let names: Vec<String> = read(&dir.path().join("o")).0.into_iter().map(|it| it.0).collect();
    assert_eq!(names, ["c", "q", "shared"]);
}

/// More inputs than stay open: each is opened again when it is copied.
#[test]
fn any_number_of_inputs_is_merged() {
    let dir = tempfile::tempdir().unwrap();
    let mut list = String::new();
    for number in 0..300u16 {
        let name = format!("{number:03}.npy");
        write_npy(&dir.path().join(&name), &U8, &[2], &number.to_le_bytes());
        list += &(name + "\n");
    }
    fs::write(dir.path().join("list"), &list).unwrap();
    let merge = |extra: &[&str]| {
        let args = ["merge", "--files-from", "list", "--rename", "299:299=*"];
        tslice(dir.path(), &[&args[..], extra].concat()).assert().success().stderr("");
    };
    merge(&["-o", "o.safetensors"]);
    let (tensors, _) = read(&dir.path().join("o.safetensors"));
    assert_eq!(tensors.len(), 300);
    for (number, (name, data)) in tensors.iter().enumerate() {
        let expected = if number == 299 { "*".to_owned() } else { format!("{number:03}") };
        assert_eq!((name, &data[..]), (&expected, &(number as u16).to_le_bytes()[..]));
    }
    // in parts, in any order
    for part in ["2/3", "0/3", "1/3"] {
        merge(&["-o", "parts.safetensors", "--part", part]);
    }
    let same = |name: &str| fs::read(dir.path().join(name)).unwrap();
    assert!(same("o.safetensors") == same("parts.safetensors"));
}

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn shards_have_the_size_that_is_asked_for() {
    let dir = folder();
    let data: Vec<Vec<u8>> = [10, 20, 0, 300, 0, 5].map(|len| vec![len as u8; len]).to_vec();
    let tensors: Vec<(&str, &[u8])> =
        ["a", "b", "c", "d", "e", "f"].into_iter().zip(data.iter().map(|it| &it[..])).collect();
    let model = dir.path().join("in");
    fs::create_dir(&model).unwrap();
    checkpoint(&model.join("m.safetensors"), &tensors, &[("format", "pt")]);
    fs::write(model.join("config.json"), "{}").unwrap();
    let out = dir.path().join("out");
    let cut = |args: &[&str]| tslice(dir.path(), args).assert().success();
    let input = "in/m.safetensors";
    let note = "tslice: note: config.json is beside the input, and not copied\n";
    cut(&[input, "-o", "out/", "--shard-size", "30"]).stderr(predicates::str::starts_with(note));
    let shard = |number, count| format!("model-{number:05}-of-{count:05}.safetensors");
    let index = "model.safetensors.index.json".to_owned();
    assert_eq!(names(&out), [shard(1, 3), shard(2, 3), shard(3, 3), index.clone()]);
    let lens = |file: &str| -> Vec<usize> {
        let (tensors, texts) = read(&out.join(file));
        assert_eq!(texts["format"], "pt");
        tensors.iter().map(|(_, data)| data.len()).collect()
    };
    assert_eq!(
        [1, 2, 3].map(|number| lens(&shard(number, 3))),
        [vec![10, 20, 0], vec![300], vec![0, 5]]
    );
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(out.join(&index)).unwrap()).unwrap();
    assert_eq!(json["metadata"]["total_size"], 335);
    assert_eq!(json["weight_map"]["d"], shard(2, 3));
    // what is there is refused; with --force its shards go, and files of other names stay
    fs::write(out.join("notes"), "mine").unwrap();
    let again = [input, "-o", "out/", "--shard-size", "1GB", "--with-files"];
    tslice(dir.path(), &again).assert().code(1);
    assert_eq!(names(&out).len(), 5);
    let beside = names(dir.path());
    cut(&[&again[..], &["--force"]].concat()).stderr("");
    assert_eq!(names(dir.path()), beside, "the old folder is left");
    let all = ["config.json".to_owned(), shard(1, 1), index.clone(), "notes".to_owned()];
    assert_eq!(names(&out), all);
    // a folder within does not let it be exchanged as a whole
    fs::create_dir(out.join("within")).unwrap();
    cut(&["out", "-o", "out/", "--shard-size", "30", "--force"]).stderr("");
    assert_eq!(names(&out).len(), 7);
    cut(&["diff", "out", input]).stdout("").stderr("");
    // a link among the old shards goes, and what it leads to stays
    let linked = out.join(shard(2, 3));
    fs::rename(&linked, out.join("blob")).unwrap();
    std::os::unix::fs::symlink("blob", &linked).unwrap();
    cut(&[input, "-o", "out/", "--shard-size", "1GB", "--force", "--with-files"]).stderr("");
    assert!(out.join("blob").is_file() && !linked.exists());
}

#[test]
fn metadata_are_added_replaced_and_left_out() {
    let dir = folder();
    fs::write(dir.path().join("texts.json"), r#"{"by": "file", "k": "v"}"#).unwrap();
    let texts = |flags: &[&str]| {
        let args = ["merge", "a.safetensors", "c.npy", "-fo", "o.safetensors"];
        tslice(dir.path(), &[&args[..], flags].concat()).assert().success().stderr("");
        let texts = read(&dir.path().join("o.safetensors")).1;
        let mut texts: Vec<String> =
            texts.iter().map(|(key, value)| format!("{key}={value}")).collect();
        texts.sort();
        texts.join(" ")
    };
    assert_eq!(texts(&[]), "by=a format=pt");
    assert_eq!(texts(&["--metadata", "x=1=2", "--metadata", "by="]), "by= format=pt x=1=2");
    assert_eq!(texts(&["--metadata-from", "texts.json"]), "by=file format=pt k=v");
    assert_eq!(
        texts(&["--no-metadata", "--metadata-from", "texts.json", "--metadata", "k=1"]),
        "by=file k=1"
    );
    assert_eq!(texts(&["--no-metadata"]), "");
    // what is given decides a contradiction
    let args = ["merge", "a.safetensors", "b.safetensors", "--rename", "1:shared=other", "-fo"];
    let run = |flags: &[&str]| {
        tslice(dir.path(), &[&args[..], &["o.safetensors"], flags].concat()).assert()
    };
    run(&[]).code(1);
    run(&["--metadata", "by=both"]).success().stderr("");
    run(&["--no-metadata"]).success().stderr("");
}
