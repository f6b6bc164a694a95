//! Files of several tensors, through the program: `-t`, `--keep-rest`, `--rename`.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::inputs::write_safetensors;
use crate::program::tslice;

/// A folder with `m.safetensors`, whose tensors are `a` (4 x 2), `b.0` and `b.1` (2 x 2), and `*`
/// (1), all of bytes that count up.
fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let json = concat!(
        r#"{"__metadata__":{"format":"pt"},"#,
        r#""a":{"dtype":"U8","shape":[4,2],"data_offsets":[0,8]},"#,
        r#""b.0":{"dtype":"U8","shape":[2,2],"data_offsets":[8,12]},"#,
        r#""b.1":{"dtype":"U8","shape":[2,2],"data_offsets":[12,16]},"#,
        r#""*":{"dtype":"U8","shape":[1],"data_offsets":[16,17]}}"#
    );
    let data: Vec<u8> = (0..17).collect();
    write_safetensors(&dir.path().join("m.safetensors"), json, &data);
    dir
}

/// What the `safetensors` package finds in a file: names, shapes, bytes, in the order of the data.
fn read(path: &Path) -> Vec<(String, Vec<usize>, Vec<u8>)> {
    let bytes = fs::read(path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let mut tensors = file.tensors();
    tensors.sort_by_key(|(_, tensor)| tensor.data().as_ptr());
    let tensor = |(name, tensor): (String, safetensors::tensor::TensorView<'_>)| {
        (name, tensor.shape().to_vec(), tensor.data().to_vec())
    };
    tensors.into_iter().map(tensor).collect()
}

#[test]
fn one_command_trims_an_embedding() {
    let dir = folder();
    let args = ["m.safetensors", "-t", "a", "[1:3]", "--keep-rest", "-o", "small.safetensors"];
    tslice(dir.path(), &args).assert().success().stdout("").stderr("");
    let expected = [
        ("a".to_owned(), vec![2, 2], vec![2, 3, 4, 5]),
        ("b.0".to_owned(), vec![2, 2], vec![8, 9, 10, 11]),
        ("b.1".to_owned(), vec![2, 2], vec![12, 13, 14, 15]),
        ("*".to_owned(), vec![1], vec![16]),
    ];
    assert_eq!(read(&dir.path().join("small.safetensors")), expected);

    // a pipe gives the same bytes in one pass
    let whole = fs::read(dir.path().join("m.safetensors")).unwrap();
    let small = fs::read(dir.path().join("small.safetensors")).unwrap();
    let args = ["-", "-t", "a", "[1:3]", "--keep-rest", "--to", "safetensors"];
    tslice(dir.path(), &args).write_stdin(whole).assert().success().stdout(small);
}

#[test]
fn an_exact_name_beats_a_glob_and_the_order_is_that_of_the_file() {
    let dir = folder();
    let names = |patterns: &[&str]| -> Vec<String> {
        let out = dir.path().join("out.safetensors");
        let mut args = vec!["m.safetensors", "-f", "-o", "out.safetensors"];
        args.extend(patterns.iter().flat_map(|pattern| ["-t", *pattern]));
        tslice(dir.path(), &args).assert().success();
        read(&out).into_iter().map(|(name, ..)| name).collect()
    };
    assert_eq!(names(&["*"]), ["*"]);
    assert_eq!(names(&["**"]), ["a", "b.0", "b.1", "*"]);
    assert_eq!(names(&["b.1", "a"]), ["a", "b.1"]);
    assert_eq!(names(&["b.?", "b.0"]), ["b.0", "b.1"]);
}

#[test]
fn renaming_is_checked() {
    let dir = folder();
    let run = |rename: &[&str]| {
        let mut args = vec!["m.safetensors", "-t", "b.*", "-o", "out.safetensors"];
        args.extend(rename.iter().flat_map(|rename| ["--rename", *rename]));
        tslice(dir.path(), &args).assert()
    };
    run(&["b.0=b.1"]).code(1).stderr("tslice: two tensors of the output would be named \"b.1\"\n");
    run(&["a=x"])
        .code(1)
        .stderr("tslice: --rename a=x has no effect: no chosen tensor is named \"a\", or another rename applies to it\n");
    run(&["b.0"]).code(2).stderr("tslice: --rename b.0: OLD=NEW is needed\n");
    run(&["b.0=x", "b.0=y"])
        .code(1)
        .stderr("tslice: --rename b.0=y has no effect: no chosen tensor is named \"b.0\", or another rename applies to it\n");
    assert!(!dir.path().join("out.safetensors").exists());
    run(&["b.0=b.1", "b.1=b.0"]).success();
    let found = read(&dir.path().join("out.safetensors"));
    assert_eq!(found[0], ("b.1".to_owned(), vec![2, 2], vec![8, 9, 10, 11]));
}

#[test]
fn all_is_checked_before_anything_is_written() {
    let dir = folder();
    let fails = |args: &[&str], code, stderr: &'static str| {
        tslice(dir.path(), args).assert().code(code).stdout("").stderr(stderr);
    };
    fails(
        &["m.safetensors", "-t", "a", "-t", "b.0", "[3]", "-o", "out.safetensors"],
        1,
        "tslice: tensor \"b.0\": index 3 is out of bounds for axis 0 with size 2\n  [3]\n   ^\n",
    );
    fails(
        &["m.safetensors", "-t", "b.*", "-o", "out.npy"],
        1,
        "tslice: 2 tensors are chosen, and an output of format npy holds one\n\
         hint: use a .safetensors or .npz output\n",
    );
    fails(
        &["m.safetensors", "-t", "a", "--keep-rest", "-o", "out.npy"],
        2,
        "tslice: --keep-rest: an output of format npy holds one tensor\n\
         hint: use a .safetensors or .npz output\n",
    );
    fails(
        &["m.safetensors", "-o", "out.npy"],
        1,
        "tslice: m.safetensors: the file holds 4 tensors, choose one with -t NAME\n\
         hint: it holds a, b.0, b.1, *\n",
    );
    fails(
        &["m.safetensors", "-t", "c*", "-o", "out.npy"],
        1,
        "tslice: m.safetensors: no tensor is named \"c*\"\nhint: it holds a, b.0, b.1, *\n",
    );
    fails(&["m.safetensors", "-t", "[", "-o", "out.npy"], 2, "tslice: -t [: a '[' without a ']'\n");
    fails(
        &["m.safetensors", "-t", "b.*", "--name", "x", "-o", "out.safetensors"],
        1,
        "tslice: --name names one tensor, and several are chosen\n\
         hint: --rename OLD=NEW names each\n",
    );
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
    assert_eq!(left.len(), 1);
}

#[test]
fn one_language_of_patterns_chooses_and_renames() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> =
        (0..12).map(|layer| format!("layers.{layer}.w")).chain(["opt[0].m".to_owned()]).collect();
    let entry = |(at, name): (usize, &String)| {
        format!(r#""{name}":{{"dtype":"U8","shape":[1],"data_offsets":[{at},{}]}}"#, at + 1)
    };
    let header = Vec::from_iter(names.iter().enumerate().map(entry)).join(",");
    let data = Vec::from_iter(0..names.len() as u8);
    write_safetensors(&dir.path().join("m.safetensors"), &format!("{{{header}}}"), &data);
    let run = |args: &[&str]| {
        let args = [&["m.safetensors", "-f", "-o", "out.safetensors"], args].concat();
        tslice(dir.path(), &args).assert()
    };
    let found = |args: &[&str]| -> Vec<String> {
        run(args).success().stderr("");
        read(&dir.path().join("out.safetensors")).into_iter().map(|(name, ..)| name).collect()
    };
    assert_eq!(found(&["-t", "layers.{0..11}.*"]), names[..12]);
    assert_eq!(found(&["-t", "layers.{8..10}.w"]), names[8..11]);
    assert_eq!(found(&["-t", "layers.[0-7].w"]), names[..8]);
    assert_eq!(found(&["-t", "opt[*].m"]), names[12..]);
    assert_eq!(found(&["--exclude", "layers.{0..10}.w"]), names[11..]);
    assert_eq!(found(&["-t", "opt[0].*", "--rename", "opt[*].m=m.*"]), ["m.0"]);
    let swap = ["--rename", "layers.0.w=layers.1.w", "--rename", "layers.1.w=layers.0.w"];
    let chain = ["--rename", "layers.{l}.w=blk.{l}", "--rename", "blk.0=first"];
    assert_eq!(
        found(&[&["-t", "layers.{0,1}.w"], &swap[..]].concat()),
        ["layers.1.w", "layers.0.w"]
    );
    assert_eq!(found(&[&["-t", "layers.{0,1}.w"], &chain[..]].concat()), ["first", "blk.1"]);
    for (class, range) in [("[0-11]", "{0..11}"), ("[8-15]", "{8..15}")] {
        run(&["-t", &format!("layers.{class}.*")]).code(2).stderr(format!(
            "tslice: -t layers.{class}.*: {class} is a class of characters, not of numbers\n\
             hint: {range} matches numbers: 'layers.{range}.*'\n"
        ));
    }
    let names_of = |renames: &str| {
        fs::write(dir.path().join("names"), renames).unwrap();
        found(&["-t", "layers.{0..2}.w", "--rename-from", "names", "--rename", "*.q=*.k"])
    };
    assert_eq!(names_of("layers.1.w=l=1.q\r\n\nlayers.{l}.w={l}.w\n"), ["0.w", "l=1.k", "2.w"]);
    let swap = r#" {"layers.0.w": "layers.1.w", "layers.1.w": "layers.0.w", "layers.2.w": "a=.q"}"#;
    assert_eq!(names_of(swap), ["layers.1.w", "layers.0.w", "a=.k"]);
    let hint = "hint: did you mean '*ayer*'? it holds ";
    let said = run(&["-t", "ayer"]).code(1);
    let said = String::from_utf8_lossy(&said.get_output().stderr).into_owned();
    assert!(said.contains(hint), "{said}");
}
