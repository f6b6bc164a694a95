//! GGUF: names, shapes and metadata; slices of blocks; files of several; what is refused.
//! `tests/python/gguf_differential.py` does the same with files of the `gguf` package, of all types.

use std::fs;
use std::path::Path;

use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::Value;
use tempfile::TempDir;

use crate::program::tslice;

/// A file: tensors with their lengths (the last axis first), type, and bytes; metadata as they are stored.
struct File<'a> {
    tensors: &'a [(&'a str, &'a [u64], u32, Vec<u8>)],
    metadata: &'a [Vec<u8>],
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

/// A key, the type of its value, and the value.
fn pair(key: &str, kind: u32, value: &[u8]) -> Vec<u8> {
    [text(key), kind.to_le_bytes().to_vec(), value.to_vec()].concat()
}

impl File<'_> {
    fn bytes(&self) -> Vec<u8> {
        let counts = [self.tensors.len() as u64, self.metadata.len() as u64];
        let mut file = [&b"GGUF\x03\0\0\0"[..], &counts.map(u64::to_le_bytes).concat()].concat();
        file.extend(self.metadata.concat());
        let mut at = 0u64;
        for (name, lens, kind, data) in self.tensors {
            file.extend(text(name));
            file.extend((lens.len() as u32).to_le_bytes());
            file.extend(lens.iter().flat_map(|len| len.to_le_bytes()));
            file.extend(kind.to_le_bytes());
            file.extend(at.to_le_bytes());
            at += (data.len() as u64).next_multiple_of(32);
        }
        for (_, _, _, data) in self.tensors {
            file.resize(file.len().next_multiple_of(32), 0);
            file.extend(data);
        }
        file.resize(file.len().next_multiple_of(32), 0);
        file
    }
}

const F32: u32 = 0;
const Q4_0: u32 = 2;

fn counted(len: u8) -> Vec<u8> {
    (0..len).collect()
}

/// Two rows of three blocks of Q4_0, and numbers.
fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let numbers = (0..6u8).flat_map(|number| f32::from(number).to_le_bytes()).collect();
    let file = File {
        tensors: &[("q", &[96, 2], Q4_0, counted(108)), ("w", &[3, 2], F32, numbers)],
        metadata: &[
            pair("general.architecture", 8, &text("llama")),
            pair("n", 4, &7u32.to_le_bytes()),
            pair("eps", 6, &1e-5f32.to_le_bytes()),
            pair("odd", 12, &f64::NEG_INFINITY.to_le_bytes()),
            pair("on", 7, &[1]),
            pair("list", 9, &[&5u32.to_le_bytes()[..], &9u64.to_le_bytes(), &[255; 36]].concat()),
        ],
    };
    fs::write(dir.path().join("m.gguf"), file.bytes()).unwrap();
    dir
}

/// What a command prints.
fn prints(folder: &Path, args: &[&str], expected: &str) {
    let run = tslice(folder, args).assert().success().stdout(expected.to_owned());
    // blocks are bytes for NumPy
    let is_noted = args.last().is_some_and(|name| name.ends_with(".npy") || name.ends_with(".npz"));
    run.stderr(if is_noted {
        "tslice: note: NumPy has no Q4_0: 1 tensor is written as raw bytes\n"
    } else {
        ""
    });
}

/// The error of a command, which begins so.
fn fails(folder: &Path, args: &[&str], says: &str) {
    let assert = tslice(folder, args).assert().code(1);
    assert.stderr(contains(says).and(contains("panicked").not()));
}

#[test]
fn numbers_are_tensors_in_numpys_order() {
    let dir = folder();
    prints(dir.path(), &["m.gguf", "-t", "w", "--to", "csv"], "0.0,1.0,2.0\n3.0,4.0,5.0\n");
    prints(dir.path(), &["m.gguf", "-t", "w", "[::-1, 1]", "--to", "csv"], "4.0\n1.0\n");
    let piped = tslice(dir.path(), &["-", "-t", "w", "[1]", "--to", "csv"])
        .write_stdin(fs::read(dir.path().join("m.gguf")).unwrap())
        .assert();
    piped.success().stdout("3.0\n4.0\n5.0\n");
}

#[test]
fn blocks_are_taken_whole() {
    let dir = folder();
    let raw = |index: &str| {
        let args = ["m.gguf", "-t", "q", index, "--to", "raw"];
        tslice(dir.path(), &args).assert().success().get_output().stdout.clone()
    };
    let all = counted(108);
    assert_eq!(raw(""), all);
    assert_eq!(raw("[1, 32:]"), all[72..108]);
    assert_eq!(raw("[::-1, 64:96]"), [&all[90..108], &all[36..54]].concat());
    assert_eq!(raw("[[1, 1], -32:]"), [&all[90..108], &all[90..108]].concat());
    assert!(raw("[:, 32:32]").is_empty());
    for index in
        ["[:, 0]", "[:, ::2]", "[:, ::-1]", "[:, 16:]", "[:, :33]", "[0, [0]]", "[..., 95]"]
    {
        fails(
            dir.path(),
            &["m.gguf", "-t", "q", index, "--to", "raw"],
            "axis 1 is stored in blocks of 32",
        );
    }
    prints(dir.path(), &["m.gguf", "-t", "q", "[:, 32:]", "-o", "q.npy"], "");
    let info = tslice(dir.path(), &["info", "q.npy"]).assert().success();
    info.stdout(contains("|V18   (2, 2)"));
    // what is in blocks is the same as the bytes that NumPy has of it
    prints(dir.path(), &["m.gguf", "-t", "q", "-o", "all.npy"], "");
    prints(dir.path(), &["diff", "m.gguf", "all.npy", "-t", "q"], "");
}

#[test]
fn other_commands_take_blocks_where_that_has_a_meaning() {
    let dir = folder();
    let run = |args: &[&str]| prints(dir.path(), args, "");
    run(&["concat", "m.gguf", "m.gguf", "-t", "q", "--axis", "1", "-o", "wide.bin"]);
    let wide = fs::read(dir.path().join("wide.bin")).unwrap();
    assert_eq!(
        wide,
        [counted(54), counted(54), counted(108)[54..].into(), counted(108)[54..].into()].concat()
    );
    run(&[
        "split",
        "m.gguf",
        "-t",
        "q",
        "--axis",
        "1",
        "--sizes",
        "32,64",
        "-o",
        "part{}.bin",
        "-q",
    ]);
    assert_eq!(
        fs::read(dir.path().join("part0.bin")).unwrap(),
        [&counted(18)[..], &counted(72)[54..]].concat()
    );
    let cut = ["split", "m.gguf", "-t", "q", "--axis", "1", "--at", "33", "-o", "x{}.bin"];
    fails(dir.path(), &cut, "blocks of 32 elements: a cut at 33 would divide a block");
    fs::write(dir.path().join("i.txt"), "1 0").unwrap();
    run(&["gather", "m.gguf", "-t", "q", "--axis", "0", "--indices", "i.txt", "-o", "rows.bin"]);
    assert_eq!(
        fs::read(dir.path().join("rows.bin")).unwrap(),
        [&counted(108)[54..], &counted(54)].concat()
    );
    let gather =
        ["gather", "m.gguf", "-t", "q", "--axis", "1", "--indices", "i.txt", "-o", "x.bin"];
    fails(
        dir.path(),
        &gather,
        "axis 1 is stored in blocks of 32 elements: single elements cannot be gathered",
    );
    fails(
        dir.path(),
        &["m.gguf", "-t", "q", "-o", "q.safetensors"],
        "dtype Q4_0 has no equivalent",
    );
    fails(dir.path(), &["m.gguf", "-t", "q", "--cast", "float32", "-o", "x.npy"], "Q4_0");
    fails(dir.path(), &["view", "m.gguf", "-t", "q", "--stats"], "the dtype is Q4_0");
    let viewed = tslice(dir.path(), &["view", "m.gguf", "-t", "q", "[0, :32]"]).assert().success();
    viewed.stdout(contains("shape (1,), dtype |V18"));
    let explained = tslice(dir.path(), &["explain", "m.gguf", "-t", "q", "[1:, 32:]"]).assert();
    explained.success().stdout(contains("shape (1, 64), dtype Q4_0, 36 bytes"));
    run(&["m.gguf", "-o", "all.npz"]);
    // another dtype, and the same shape in elements
    let other = File { tensors: &[("q", &[96, 2], F32, vec![0; 768])], metadata: &[] };
    fs::write(dir.path().join("o.gguf"), other.bytes()).unwrap();
    let differs = tslice(dir.path(), &["diff", "m.gguf", "o.gguf", "-t", "q"]).assert().code(1);
    differs.stdout("q: dtype Q4_0 and float32\n");
}

#[test]
fn info_shows_types_and_metadata() {
    let dir = folder();
    let shown = tslice(dir.path(), &["info", "m.gguf"]).assert().success();
    let list = "metadata \"list\": [-1, -1, -1, -1, -1, -1, ... 9 in all]";
    shown.stdout(contains("q     Q4_0     (2, 96)    108").and(contains(list)));
    let json = tslice(dir.path(), &["info", "m.gguf", "--json"]).assert().success();
    let json: Value = serde_json::from_slice(&json.get_output().stdout).unwrap();
    let metadata = &json[0]["metadata"];
    assert_eq!((&metadata["n"], &metadata["on"]), (&7.into(), &true.into()));
    assert_eq!(
        (&metadata["eps"], &metadata["odd"]),
        (&f64::from(1e-5f32).into(), &"-Infinity".into())
    );
    assert_eq!(metadata["list"].as_array().map(Vec::len), Some(9));
    assert_eq!(json[0]["tensors"][0]["shape"], serde_json::json!([2, 96]));
    assert_eq!(json[0]["totals"]["elements"], 198);
}

/// The files of a model in three.
fn split(dir: &Path) {
    for number in 0..3u16 {
        let name = ["a", "b", "c"][usize::from(number)];
        let data = f32::from(number).to_le_bytes().to_vec();
        let file = File {
            tensors: &[(name, &[1], F32, data)],
            metadata: &[
                pair("split.no", 2, &number.to_le_bytes()),
                pair("split.count", 2, &3u16.to_le_bytes()),
                pair("split.tensors.count", 5, &3i32.to_le_bytes()),
            ],
        };
        let name = format!("m-{:05}-of-00003.gguf", number + 1);
        fs::write(dir.join(name), file.bytes()).unwrap();
    }
}

#[test]
fn files_of_one_model_are_one_input() {
    let dir = tempfile::tempdir().unwrap();
    split(dir.path());
    let names: Vec<String> = (1..=3).map(|number| format!("m-{number:05}-of-00003.gguf")).collect();
    for name in &names {
        for (tensor, value) in [("a", "0.0\n"), ("b", "1.0\n"), ("c", "2.0\n")] {
            prints(dir.path(), &[name, "-t", tensor, "--to", "csv"], value);
        }
    }
    let shown = tslice(dir.path(), &["info", &names[1]]).assert().success();
    shown.stdout(contains("m-00003-of-00003.gguf").and(contains("3 tensors")));
    // one alone says of which it is
    fs::copy(dir.path().join(&names[1]), dir.path().join("x.gguf")).unwrap();
    fails(
        dir.path(),
        &["info", "x.gguf"],
        "is file 2 of 3 of a split model, so its name must end in -00002-of-00003.gguf",
    );
    let piped = tslice(dir.path(), &["info", "-"])
        .write_stdin(fs::read(dir.path().join(&names[1])).unwrap())
        .assert();
    piped
        .code(1)
        .stderr(contains("is file 2 of 3 of a split model, which must be opened by its name"));
    fs::copy(dir.path().join(&names[0]), dir.path().join(&names[2])).unwrap();
    fails(
        dir.path(),
        &["info", &names[0]],
        "m-00003-of-00003.gguf is missing, and its tensors: should be file 3 of 3 of a split model \
         by its metadata",
    );
    fs::write(dir.path().join(&names[2]), "no").unwrap();
    fails(dir.path(), &["info", &names[0]], "a file of a split model must be a .gguf");
    fs::remove_file(dir.path().join(&names[2])).unwrap();
    // what is there is read
    let note = r#"{"note":"m-00001-of-00003.gguf: m-00003-of-00003.gguf is missing, and its tensors: No such file or directory","hint":null}"#;
    let output = tslice(dir.path(), &["info", &names[0], "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let object = r#"{"error":"m-00001-of-00003.gguf: 1 file is missing","hint":null,"exit":1}"#;
    let says = format!("{note}\n{object}\n");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), says);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json[0]["missing"][0]["file"], *names[2]);
    for (args, code) in [
        (&["-t", "b", "--to", "raw"][..], 0),
        (&["-t", "[ab]", "-o", "two.npz"], 0),
        (&["-t", "c"], 1),
        (&["-t", "*", "-o", "all.npz"], 1),
        (&["-o", "all.npz"], 1),
        (&["-t", "b", "--strict"], 1),
    ] {
        tslice(dir.path(), &[&[&*names[0]], args].concat()).assert().code(code);
    }
}

#[test]
fn headers_that_lie_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let one = |lens: &[u64], kind: u32, metadata: &[Vec<u8>]| {
        File { tensors: &[("w", lens, kind, vec![0; 64])], metadata }.bytes()
    };
    let changed = |at: usize, bytes: &[u8]| {
        let mut file = one(&[3, 2], F32, &[]);
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    let alignment = |value: u32| pair("general.alignment", 4, &value.to_le_bytes());
    let nested: Vec<u8> = (0..20).flat_map(|_| [9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]).collect();
    let huge = u64::MAX.to_le_bytes();
    for (file, says) in [
        (changed(4, &[1, 0, 0, 0]), "gguf: version 1 is not read, only 2 and 3 are"),
        (changed(8, &huge), "cut short inside its header"),
        (changed(16, &huge), "cut short inside its header"),
        (changed(24, &huge), "18446744073709551615 bytes are needed"),
        (one(&[u64::MAX / 2, 4], F32, &[]), "has 2^63 bytes or more"),
        (one(&[32, u64::MAX / 8, 0], Q4_0, &[]), "has 2^63 bytes or more"),
        (
            one(&[16, 3], Q4_0, &[]),
            "its rows have 16 elements, not a multiple of the block size 32 of Q4_0",
        ),
        (one(&[], Q4_0, &[]), "not a multiple of the block size"),
        (one(&[2], 4, &[]), "its elements have the unknown type 4"),
        (one(&[1; 65], F32, &[]), "it has 65 axes"),
        (one(&[1000], F32, &[]), "its header says 4064 bytes"),
        (one(&[1], F32, &[alignment(48)]), "\"general.alignment\" must be a power of two"),
        (one(&[1], F32, &[alignment(8), alignment(8)]), "two values of its metadata are named"),
        (
            one(&[1], F32, &[pair("k", 13, &[])]),
            "metadata \"k\" has a value of the unknown type 13",
        ),
        (one(&[1], F32, &[pair("k", 9, &nested)]), "lists nested deeper than 16 levels"),
        (one(&[1], F32, &[pair("split.count", 8, &text("3"))]), "\"split.count\" must be a number"),
    ] {
        fs::write(dir.path().join("h.gguf"), file).unwrap();
        fails(dir.path(), &["info", "h.gguf"], says);
    }
    let twice = File {
        tensors: &[("w", &[1], F32, vec![0; 4]), ("w", &[1], F32, vec![0; 4])],
        metadata: &[],
    };
    fs::write(dir.path().join("h.gguf"), twice.bytes()).unwrap();
    fails(dir.path(), &["info", "h.gguf"], "two of its tensors are named \"w\"");
}

#[test]
fn a_copy_is_the_file() {
    let dir = folder();
    let original = fs::read(dir.path().join("m.gguf")).unwrap();
    let written = |name: &str| fs::read(dir.path().join(name)).unwrap();
    prints(dir.path(), &["m.gguf", "-o", "c.gguf"], "");
    assert_eq!(written("c.gguf"), original);
    // bytes between tensors come in their turn
    let piped = tslice(dir.path(), &["m.gguf", "--to", "gguf"]).assert().success();
    assert_eq!(piped.get_output().stdout, original);
    for part in ["0/2", "1/2"] {
        prints(dir.path(), &["m.gguf", "--part", part, "-o", "p.gguf"], "");
    }
    assert_eq!(written("p.gguf"), original);
    prints(dir.path(), &["split", "m.gguf", "-t", "q", "--parts", "2", "-o", "s{}.gguf"], "");
    let join = ["concat", "s0.gguf", "s1.gguf", "-o", "j.gguf"];
    prints(dir.path(), &join, "");
    prints(dir.path(), &["diff", "m.gguf", "j.gguf", "-t", "q"], "");
}

#[test]
fn metadata_keep_their_order_and_are_changed_in_place() {
    let dir = folder();
    let changed = File {
        tensors: &[("q", &[32, 2], Q4_0, [&counted(108)[..18], &counted(108)[54..72]].concat())],
        metadata: &[
            pair("general.architecture", 8, &text("llama")),
            pair("n", 4, &2u32.to_le_bytes()),
            pair("eps", 6, &1e-5f32.to_le_bytes()),
            pair("odd", 8, &text("none: a text")),
            pair("on", 7, &[1]),
            pair("list", 9, &[&5u32.to_le_bytes()[..], &9u64.to_le_bytes(), &[255; 36]].concat()),
            pair("a", 0, &[200]),
            pair("z", 8, &text("u32:1")),
        ],
    };
    let change = ["n=u32:2", "odd=none: a text", "z=string:u32:1", "a=uint8:200"];
    let flags = change.iter().flat_map(|it| ["--metadata", it]);
    let args = ["m.gguf", "-t", "q", "[:, :32]", "-o", "c.gguf"];
    prints(dir.path(), &args.into_iter().chain(flags).collect::<Vec<_>>(), "");
    assert!(fs::read(dir.path().join("c.gguf")).unwrap() == changed.bytes());

    let named = |architecture: &str| {
        File { tensors: &[], metadata: &[pair("general.architecture", 8, &text(architecture))] }
            .bytes()
    };
    let begins = |name: &str, with: &[u8]| {
        let file = fs::read(dir.path().join(name)).unwrap();
        assert!(file[16..].starts_with(&with[16..24 + 4 + 20 + 8 + 5]), "{name}");
    };
    prints(dir.path(), &["m.gguf", "--no-metadata", "-t", "w", "-o", "n.gguf"], "");
    begins("n.gguf", &named("unknown"));
    prints(dir.path(), &["m.gguf", "-t", "w", "-o", "w.npy", "-q"], "");
    let llama = ["w.npy", "--metadata", "general.architecture=llama", "-o", "l.gguf"];
    prints(dir.path(), &llama, "");
    begins("l.gguf", &named("llama"));
    // tensors begin at multiples of another number
    let aligned = ["m.gguf", "--metadata", "general.alignment=u32:128", "-o", "a.gguf"];
    prints(dir.path(), &aligned, "");
    assert_eq!(fs::read(dir.path().join("a.gguf")).unwrap().len() % 128, 0);
    prints(dir.path(), &["diff", "m.gguf", "a.gguf"], "");
}

#[test]
fn what_a_file_cannot_hold_is_refused() {
    let dir = folder();
    fails(
        dir.path(),
        &["m.gguf", "-t", "q", "--transpose=", "-o", "x.gguf"],
        "blocks of Q4_0 stay along the last axis in the gguf format",
    );
    fails(
        dir.path(),
        &["m.gguf", "-t", "w", "--cast", "bfloat16", "[None, None, None]", "-o", "x.gguf"],
        "an output of format gguf has at most 4 axes, and the result has 5",
    );
    let cast = ["m.gguf", "-t", "w", "--cast", "uint8", "--casting", "unsafe", "-o", "x.gguf"];
    fails(dir.path(), &cast, "dtype uint8 has no equivalent in gguf");
}
