//! Files of torch.save: names, views of shared storages, byte orders; what is refused.
//! `tests/python/torch_differential.py` does the same with PyTorch's own files, and with hostile ones.

use std::fs;
use std::path::Path;

use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use tempfile::TempDir;

use crate::inputs::zip;
use crate::program::tslice;

/// A text, a small number, a tuple of these.
fn text(value: &str) -> Vec<u8> {
    [b"X", &(value.len() as u32).to_le_bytes()[..], value.as_bytes()].concat()
}

fn numbers(values: &[u8]) -> Vec<u8> {
    tuple(&values.iter().map(|&value| vec![b'K', value]).collect::<Vec<_>>())
}

fn tuple(parts: &[Vec<u8>]) -> Vec<u8> {
    [b"(", parts.concat().as_slice(), b"t"].concat()
}

fn global(module: &str, name: &str) -> Vec<u8> {
    format!("c{module}\n{name}\n").into_bytes()
}

/// A tensor of int16, a view of storage 0, which has 12 elements.
fn tensor(offset: u8, shape: &[u8], strides: &[u8]) -> Vec<u8> {
    let class = global("torch", "ShortStorage");
    let id = tuple(&[text("storage"), class, text("0"), text("cpu"), vec![b'K', 12]]);
    let hooks = [global("collections", "OrderedDict"), b")R".to_vec()].concat();
    let stored = [id, b"Q".to_vec()].concat();
    let offset = vec![b'K', offset];
    let parts = [stored, offset, numbers(shape), numbers(strides), vec![0x89], hooks];
    [global("torch._utils", "_rebuild_tensor_v2"), tuple(&parts), b"R".to_vec()].concat()
}

/// A dict.
fn dict(items: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let items = items.iter().map(|(key, value)| [text(key), value.clone()].concat());
    [b"}(", items.collect::<Vec<_>>().concat().as_slice(), b"u"].concat()
}

/// An archive with an object, and the numbers 0 to 11 in storage 0.
fn archive(object: &[u8], big: bool) -> Vec<u8> {
    let pickle = [b"\x80\x02", object, b"."].concat();
    let bytes = |number: u16| if big { number.to_be_bytes() } else { number.to_le_bytes() };
    let storage: Vec<u8> = (0..12).flat_map(bytes).collect();
    let order: &[u8] = if big { b"big" } else { b"little" };
    zip(&[("m/data.pkl", &pickle), ("m/byteorder", order), ("m/data/0", &storage)])
}

fn folder(object: &[u8]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("m.pt"), archive(object, false)).unwrap();
    dir
}

/// What a command prints.
fn prints(folder: &Path, args: &[&str], expected: &str) {
    tslice(folder, args).assert().success().stdout(expected.to_owned()).stderr("");
}

/// `fixtures/distributed.py` says what is in it.
#[test]
fn a_distributed_checkpoint_is_put_together_from_its_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let saved = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/distributed");
    fs::create_dir(dir.path().join("dcp")).unwrap();
    let names = [".metadata", "__0_0.distcp", "__1_0.distcp"];
    let file = |name: &str| dir.path().join("dcp").join(name);
    let restore = || {
        for name in names {
            fs::copy(saved.join(name), file(name)).unwrap();
        }
    };
    restore();
    let csv = |first: u32, columns: u32, rows: u32| -> String {
        let row = |row: u32| (0..columns).map(move |column| first + row * columns + column);
        let cell = |number: &u32| format!("{number}.0");
        let line = |row: Vec<u32>| row.iter().map(cell).collect::<Vec<_>>().join(",");
        (0..rows).map(|at| line(row(at).collect()) + "\n").collect()
    };
    for (name, expected) in [("turned", csv(3, 4, 3)), ("columns", csv(1, 5, 4))] {
        let name = format!("model.{name}");
        prints(dir.path(), &["dcp", "-t", &name, "--cast", "float64", "--to", "csv"], &expected);
    }
    let taken = ["dcp", "-t", "model.rows", "[3:6, ::-5]", "--to", "json"];
    prints(dir.path(), &taken, "[[23.0, 18.0],\n[29.0, 24.0],\n[35.0, 30.0]]\n");
    tslice(dir.path(), &["dcp", "-t", "*", "-o", "all.safetensors"]).assert().success().stderr("");
    prints(dir.path(), &["all.safetensors", "-t", "model.one", "--to", "csv"], "4.0\n");
    let info = tslice(dir.path(), &["info", "dcp"]).assert().success();
    info.stdout(contains("5 tensors").and(contains("not understood: model.step\n")));
    // a piece that is missing is one for who needs it
    fs::remove_file(file("__1_0.distcp")).unwrap();
    let first = ["dcp", "-t", "model.rows", "[:2, 0]", "--to", "csv"];
    prints(dir.path(), &first, "0.0\n6.0\n");
    let fails = |says: &str| {
        let taken = ["dcp", "-t", "*", "-fo", "out.npz"];
        tslice(dir.path(), &taken).assert().code(1).stderr(contains(says.to_owned()));
        assert!(!dir.path().join("out.npz").exists());
    };
    fails("__1_0.distcp: No such file");
    restore();
    let old = fs::read(file(".metadata")).unwrap();
    let change = |from: &[u8], to: &[u8]| {
        let mut new = old.clone();
        let places = (0..new.len() - from.len()).filter(|&at| old[at..].starts_with(from));
        places.for_each(|at| new[at..at + to.len()].copy_from_slice(to));
        fs::write(file(".metadata"), new).unwrap();
    };
    change(b"__1_0.distcp", b"../_0.distcp");
    fails("../_0.distcp: the file lies outside the folder");
    restore();
    std::os::unix::fs::symlink("/dev/zero", file("__9_0.distcp")).unwrap();
    change(b"__1_0.distcp", b"__9_0.distcp");
    fails("__9_0.distcp: the file lies outside the folder");
    // the second piece begins at row 3, so that row 3 is there twice and row 6 nowhere
    change(b"K\x04K\x00\x86", b"K\x03K\x00\x86");
    fails("");
    restore();
    let cut = fs::read(file("__1_0.distcp")).unwrap();
    fs::write(file("__1_0.distcp"), &cut[..cut.len() - 100]).unwrap();
    fails("a piece ends at byte");
}

#[test]
fn views_of_one_storage_are_tensors() {
    let inner = [b"](K\x07", tensor(1, &[2], &[5]).as_slice(), b"e"].concat();
    let object = dict(&[
        ("layers.0.weight", tensor(0, &[3, 4], &[4, 1])),
        ("t", tensor(0, &[4, 3], &[1, 4])),
        ("epoch", vec![b'K', 3]),
        ("state", inner),
        ("wide", tensor(2, &[3, 2], &[0, 3])),
        ("one", tensor(11, &[], &[])),
        ("none", tensor(0, &[0, 3], &[3, 1])),
    ]);
    let dir = folder(&object);
    let to = ["--to", "csv"];
    for (name, expected) in [
        ("layers.0.weight", "0,1,2,3\n4,5,6,7\n8,9,10,11\n"),
        ("t", "0,4,8\n1,5,9\n2,6,10\n3,7,11\n"),
        ("state[1]", "1\n6\n"),
        ("wide", "2,5\n2,5\n2,5\n"),
        ("one", "11\n"),
        ("none", ""),
    ] {
        prints(dir.path(), &[&["m.pt", "-t", name][..], &to].concat(), expected);
    }
    prints(dir.path(), &["m.pt", "-t", "t", "[::-2, 1:]", "--to", "csv"], "7,11\n5,9\n");
    prints(dir.path(), &["m.pt", "-t", "wide", "[[2, 0], 1]", "--to", "csv"], "5\n5\n");
    let whole = ["m.pt", "-t", "*", "-o", "all.safetensors"];
    prints(dir.path(), &whole, "");
    prints(dir.path(), &["diff", "m.pt", "all.safetensors"], "");
    // indices and values come from such files too
    fs::write(dir.path().join("t.pt"), archive(&tensor(0, &[4, 3], &[1, 4]), false)).unwrap();
    prints(dir.path(), &["m.pt", "-t", "one", "-o", "one.npy"], "");
    let gather = ["gather", "m.pt", "-t", "t", "--axis", "0", "--indices", "one.npy"];
    tslice(dir.path(), &gather).assert().code(1).stderr(contains("indices = 11 is not in [0, 4)"));
    let assign = ["assign", "all.safetensors", "-t", "t", "--value", "t.pt", "--in-place", "-q"];
    prints(dir.path(), &assign, "");
    prints(dir.path(), &["diff", "m.pt", "all.safetensors"], "");
}

#[test]
fn an_object_that_is_a_tensor_has_no_name() {
    let dir = folder(&tensor(0, &[3, 4], &[4, 1]));
    prints(dir.path(), &["m.pt", "[1]", "--to", "csv"], "4\n5\n6\n7\n");
    tslice(dir.path(), &["m.pt", "-o", "out.safetensors"]).assert().success();
    tslice(dir.path(), &["info", "out.safetensors"]).assert().stdout(contains("  m     int16"));
}

#[test]
fn numbers_of_either_byte_order_are_read() {
    let dir = folder(&tensor(0, &[12], &[1]));
    fs::write(dir.path().join("b.pt"), archive(&tensor(0, &[12], &[1]), true)).unwrap();
    prints(dir.path(), &["diff", "m.pt", "b.pt"], "");
    tslice(dir.path(), &["info", "b.pt"]).assert().stdout(contains(">i2"));
}

/// An array of NumPy of 3 numbers of 16 bits, whose bytes are made so.
fn array(bytes: Vec<u8>) -> Vec<u8> {
    let empty = tuple(&[global("numpy", "ndarray"), numbers(&[0]), text("b")]);
    let made = [global("numpy.core.multiarray", "_reconstruct"), empty, b"R".to_vec()].concat();
    let dtype = tuple(&[text("i2"), vec![0x89], vec![0x88]]);
    let order = tuple(
        &[&[b'K', 3][..], &text(">"), b"N", b"N", b"N", b"N", b"N", b"N"].map(<[u8]>::to_vec),
    );
    let dtype = [global("numpy", "dtype"), dtype, b"R".to_vec(), order, b"b".to_vec()].concat();
    let state = [vec![b'K', 1], numbers(&[3]), dtype, vec![0x89], bytes];
    [made, tuple(&state), b"b".to_vec()].concat()
}

#[test]
fn arrays_of_numpy_are_tensors() {
    let bytes = [0, 1, 0, 200, 1, 0];
    let plain = [&b"C\x06"[..], &bytes].concat();
    let latin1: String = bytes.iter().copied().map(char::from).collect();
    let encoded = tuple(&[text(&latin1), text("latin1")]);
    let encoded = [global("_codecs", "encode"), encoded, b"R".to_vec()].concat();
    let short = [&b"C\x04"[..], &bytes[..4]].concat();
    let dir = folder(&dict(&[
        ("plain", array(plain)),
        ("encoded", array(encoded)),
        ("w", tensor(0, &[3], &[1])),
        ("short", array(short)),
        ("called", array(text("abcdef"))),
    ]));
    for name in ["plain", "encoded"] {
        prints(dir.path(), &["m.pt", "-t", name, "--to", "csv"], "1\n200\n256\n");
    }
    let whole = ["m.pt", "-o", "all.npz"];
    let left_out =
        "member \"short\": pytorch: its storage should have 6 bytes, and has 4; left out";
    tslice(dir.path(), &whole).assert().success().stderr(contains(left_out));
    let strict = [&whole[..], &["--strict", "-f"]].concat();
    tslice(dir.path(), &strict).assert().code(1).stderr(contains("left out").not());
    let info = tslice(dir.path(), &["info", "m.pt"]).assert().code(1);
    info.stdout(contains("encoded  >i2").and(contains("called cannot be read")));
}

#[test]
fn nothing_in_a_pickle_runs() {
    let dir = folder(b"cos\nsystem\n(X\x09\0\0\0touch rantR");
    let says = contains("\n  not understood: os.system\n");
    tslice(dir.path(), &["info", "m.pt"]).assert().success().stdout(says);
    assert!(!dir.path().join("ran").exists());
}

/// `class()` with this state.
fn object(module: &str, name: &str, state: &[u8]) -> Vec<u8> {
    [&global(module, name)[..], b")\x81", state, b"b"].concat()
}

#[test]
fn tensors_in_and_beside_objects_are_found() {
    let one = || tensor(11, &[], &[]);
    let inner = object("nn", "Linear", &dict(&[("_parameters", dict(&[("weight", one())]))]));
    let module = dict(&[
        ("training", vec![0x88]),
        ("_parameters", b"}".to_vec()),
        ("_buffers", dict(&[("mean", one())])),
        ("_modules", dict(&[("encoder", inner.clone())])),
        ("scale", one()),
    ]);
    // an object of a subclass of dict, one with arguments, one with slots, one under keywords
    let settings = [global("my", "Settings"), b")\x81".to_vec()].concat();
    let settings = [settings, text("w"), one(), b"s".to_vec()].concat();
    let arguments = [global("my", "make"), tuple(&[vec![b'N'], one()]), b"R".to_vec()].concat();
    let slots = tuple(&[vec![b'N'], dict(&[("slot", one())])]);
    let keywords = [&global("my", "K")[..], b")", &dict(&[("key", one())]), b"\x92"].concat();
    let all = dict(&[
        ("model", object("nn", "Model", &module)),
        ("args", object("argparse", "Namespace", &dict(&[("lr", vec![b'K', 1])]))),
        ("hparams", settings),
        ("made", arguments),
        ("slotted", object("my", "Slots", &slots)),
        ("named", keywords),
        ("weight", one()),
    ]);
    let dir = folder(&all);
    let output = tslice(dir.path(), &["info", "m.pt", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let names = json[0]["tensors"].as_array().unwrap().iter();
    let names: Vec<&str> = names.map(|tensor| tensor["name"].as_str().unwrap()).collect();
    let expected = [
        "model.mean",
        "model.encoder.weight",
        "model.scale",
        "hparams.w",
        "made[1]",
        "slotted.slot",
        "named.key",
        "weight",
    ];
    assert_eq!(names, expected);
    let opaque = [
        "argparse.Namespace",
        "my.K",
        "my.Settings",
        "my.Slots",
        "my.make",
        "nn.Linear",
        "nn.Model",
    ];
    assert_eq!(json[0]["opaque"], serde_json::json!(opaque));
    assert!(json[0].get("unreadable").is_none());
    // a module by itself
    fs::write(dir.path().join("n.pt"), archive(&inner, false)).unwrap();
    prints(dir.path(), &["n.pt", "-t", "weight", "--to", "csv"], "11\n");
}

#[test]
fn an_object_is_visited_once() {
    let one = tensor(11, &[], &[]);
    // a cycle, and what occurs twice
    let cycle = [&b"}q\x00("[..], &text("self"), b"h\x00", &text("w"), &one, b"u"].concat();
    let mut twice = [&b"]"[..], &one, b"aq\x00"].concat();
    for level in 0..200u8 {
        twice.extend([b']', b'(', b'h', level, b'h', level, b'e', b'q', level + 1]);
    }
    for (object, name) in [(cycle, "w".to_owned()), (twice, "[0]".repeat(201))] {
        let dir = folder(&object);
        prints(dir.path(), &["m.pt", "-t", &name, "--to", "csv"], "11\n");
        let shown = tslice(dir.path(), &["info", "m.pt"]).output().unwrap().stdout;
        assert!(String::from_utf8(shown).unwrap().contains("pytorch, 1 tensor, 2 bytes"));
    }
    let deep = [&b"](".repeat(1001)[..], &one, &b"e".repeat(1001)].concat();
    let says = || contains("nested deeper than 1000 levels");
    tslice(folder(&deep).path(), &["info", "m.pt"]).assert().code(1).stderr(says());
    // a level that nothing is in counts, found again or not
    for innermost in [&b"]"[..], b"]q\x00h\x000", b"](Ne", b"}"] {
        let nested = |levels| [&b"](".repeat(levels)[..], innermost, &b"e".repeat(levels)].concat();
        tslice(folder(&nested(999)).path(), &["info", "m.pt"]).assert().success();
        let deep = folder(&nested(1000));
        tslice(deep.path(), &["info", "m.pt"]).assert().code(1).stderr(says());
    }
}

#[test]
fn what_a_pickle_makes_fits_in_memory() {
    let nested = [b")".to_vec(), b"\x85".repeat(998)].concat();
    let whole = [b"(".to_vec(), nested.repeat(1000), b"t".to_vec()].concat();
    let texts = [text("key"), b"0".to_vec()].concat();
    let folder = folder(&whole);
    tslice(folder.path(), &["info", "m.pt"])
        .assert()
        .code(1)
        .stderr(contains("its pickle makes objects that take more than 40 MiB of memory"));
    // what is dropped takes none
    let dropped = [nested, b"0".to_vec()].concat().repeat(1000);
    let object = [dropped, texts.repeat(500_000), dict(&[("w", tensor(0, &[2], &[1]))])].concat();
    let folder = self::folder(&object);
    tslice(folder.path(), &["info", "m.pt"]).assert().success().stdout(contains("1 tensor"));
}

#[test]
fn tensors_are_unreadable_one_by_one() {
    let untyped = |dtype: &str| {
        let class = global("torch.storage", "UntypedStorage");
        let id = tuple(&[text("storage"), class, text("0"), text("cpu"), vec![b'K', 24]]);
        let hooks = [global("collections", "OrderedDict"), b")R".to_vec()].concat();
        let stored = [id, b"Q".to_vec()].concat();
        let dtype = global("torch", dtype);
        let parts = [stored, vec![b'K', 0], numbers(&[6]), numbers(&[1]), vec![0x89], hooks, dtype];
        [global("torch._utils", "_rebuild_tensor_v3"), tuple(&parts), b"R".to_vec()].concat()
    };
    let dir = folder(&dict(&[
        ("half", untyped("complex32")),
        ("a.b", tensor(0, &[1], &[1])),
        ("a", dict(&[("b", tensor(0, &[1], &[1]))])),
        ("far", tensor(9, &[9], &[1])),
        ("w", tensor(11, &[1], &[1])),
    ]));
    let output = tslice(dir.path(), &["info", "m.pt"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stderr, b"tslice: m.pt: 3 tensors cannot be read\n");
    let shown = String::from_utf8(output.stdout).unwrap();
    for line in [
        "m.pt: pytorch, 1 of 4 tensors, 2 bytes",
        "  half cannot be read: its dtype complex32 is not supported",
        "  a.b cannot be read: 2 tensors of the file have this name",
        "  far cannot be read: its shape, strides and offset exceed its storage of 24 bytes",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
    }
    prints(dir.path(), &["m.pt", "-t", "w", "--to", "csv"], "11\n");
    let says = "tslice: m.pt: member \"a.b\": pytorch: 2 tensors of the file have this name\n";
    tslice(dir.path(), &["m.pt", "-t", "a.b", "-o", "x.npy"]).assert().code(1).stderr(says);
    let taken = tslice(dir.path(), &["m.pt", "-t", "*", "-o", "x.safetensors"]).assert().success();
    taken.stderr(contains(
        "tslice: note: m.pt: member \"half\": pytorch: its dtype complex32 is not supported",
    ));
    prints(dir.path(), &["x.safetensors", "-t", "w", "--to", "csv"], "11\n");
}

/// A file as torch.save wrote it before 1.6.
fn old(object: &[u8], keys: &[&str], storages: &[Vec<u8>]) -> Vec<u8> {
    let keys: Vec<Vec<u8>> = keys.iter().map(|key| text(key)).collect();
    let system = dict(&[("protocol_version", vec![b'M', 0xe9, 3]), ("little_endian", vec![0x88])]);
    let magic = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19".to_vec();
    let keys = [b"](".to_vec(), keys.concat(), b"e".to_vec()].concat();
    let pickles = [magic, vec![b'M', 0xe9, 3], system, object.to_vec(), keys];
    let pickles = pickles.map(|pickle| [b"\x80\x02", &pickle[..], b"."].concat());
    [pickles.concat(), storages.concat()].concat()
}

/// A storage of int16.
fn stored(numbers: &[u16]) -> Vec<u8> {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    [&(numbers.len() as u64).to_le_bytes()[..], &bytes].concat()
}

#[test]
fn old_files_are_read_in_place() {
    let dir = tempfile::tempdir().unwrap();
    // a storage that is a view of another one: its key, its first element, how many it has
    let view = |key: &str, view: &[u8], shape: &[u8]| {
        let class = global("torch", "ShortStorage");
        let id =
            tuple(&[text("storage"), class, text(key), text("cpu"), vec![b'K', 4], view.to_vec()]);
        let parts = [[id, b"Q".to_vec()].concat(), vec![b'K', 0], numbers(shape), numbers(&[1])];
        [global("torch._utils", "_rebuild_tensor"), tuple(&parts), b"R".to_vec()].concat()
    };
    let part = tuple(&[text("v"), vec![b'K', 1], vec![b'K', 2]]);
    let object = dict(&[
        ("all", view("7", b"N", &[4])),
        ("part", view("7", &part, &[2])),
        ("other", view("9", b"N", &[4])),
    ]);
    let storages = [stored(&[1, 2, 3, 4]), stored(&[5, 6, 7, 8])];
    let path = dir.path().join("old.pth");
    let bytes = old(&object, &["7", "9"], &storages);
    fs::write(&path, &bytes).unwrap();
    for (name, values) in [("all", "1\n2\n3\n4\n"), ("part", "2\n3\n"), ("other", "5\n6\n7\n8\n")] {
        prints(dir.path(), &["old.pth", "-t", name, "--to", "csv"], values);
    }
    let at = bytes.len() - 8;
    let json = tslice(dir.path(), &["info", "old.pth", "--json"]).output().unwrap().stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json[0]["tensors"][2]["offset"], at);
    // cut anywhere: an error
    for len in 0..bytes.len() {
        fs::write(&path, &bytes[..len]).unwrap();
        tslice(dir.path(), &["info", "old.pth"]).assert().code(1).stdout("");
    }
    // a number of elements that leads out of the file
    let lies = [(u64::MAX / 2).to_le_bytes().to_vec(), stored(&[5, 6, 7, 8])];
    fs::write(&path, old(&object, &["7", "9"], &lies)).unwrap();
    let says = contains("the storages after its pickles are damaged: the file ends too early");
    tslice(dir.path(), &["info", "old.pth"]).assert().code(1).stderr(says);
}

#[test]
fn no_place_of_a_file_that_is_only_read_is_changed() {
    let dir = folder(&tensor(0, &[12], &[1]));
    let before = fs::read(dir.path().join("m.pt")).unwrap();
    for to in [&["--in-place"][..], &["-o", "copy.pt"]] {
        let assign = [&["assign", "m.pt", "[0]", "--fill", "1"][..], to].concat();
        let says = contains("a file of format pytorch cannot be changed");
        tslice(dir.path(), &assign).assert().code(1).stderr(says);
    }
    assert_eq!(fs::read(dir.path().join("m.pt")).unwrap(), before);
}

#[test]
fn members_that_share_bytes_are_refused() {
    let dir = folder(&tensor(0, &[12], &[1]));
    let path = dir.path().join("m.pt");
    let mut bytes = fs::read(&path).unwrap();
    // the last entry of the directory says where its member begins, 4 bytes before its name
    let at = bytes.len() - 22 - "m/data/0".len() - 4;
    bytes[at..at + 4].copy_from_slice(&0u32.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    tslice(dir.path(), &["info", "m.pt"]).assert().code(1).stdout(contains("m/data/0"));
    tslice(dir.path(), &["m.pt", "--to", "csv"]).assert().code(1).stderr(contains("m/data/0"));
}

/// What torch.load makes of the others is the same; it looks at no CRC-32.
#[test]
fn a_storage_that_cannot_be_read_leaves_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.pt");
    let object = dict(&[("v", tensor(0, &[2], &[1])), ("w", other(&tensor(0, &[2], &[1])))]);
    let pickle = [b"\x80\x02", object.as_slice(), b"."].concat();
    let storage: Vec<u8> = (0u16..12).flat_map(u16::to_le_bytes).collect();
    let good = zip(&[("m/data.pkl", &pickle), ("m/data/0", &storage), ("m/data/1", &storage)]);
    let entry = good.len() - 22 - "m/data/1".len() - 46;
    assert!(good[entry..].starts_with(b"PK\x01\x02"));
    for (field, value, says) in
        [(8, 1, "encrypted members"), (10, 12, "bzip2"), (20, 1, "stored in")]
    {
        let mut bad = good.clone();
        bad[entry + field] ^= value;
        fs::write(&path, bad).unwrap();
        let says = || contains(says).and(contains("m/data/1"));
        prints(dir.path(), &["m.pt", "-t", "v", "--to", "csv"], "0\n1\n");
        let run = |args: &[&str]| tslice(dir.path(), args).assert();
        run(&["m.pt", "-t", "w", "--to", "csv"]).code(1).stderr(says());
        run(&["info", "m.pt"]).code(1).stdout(says());
        run(&["m.pt", "-fo", "m.safetensors"]).success().stderr(says().and(contains("left out")));
    }
    // that of the central directory, and that of the local header
    let local = good.windows(8).position(|it| it == b"m/data/1").unwrap() - 30;
    for at in [entry + 16, local + 14] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&path, bad).unwrap();
        prints(dir.path(), &["m.pt", "-t", "w", "--to", "csv"], "0\n1\n");
    }
    // without the pickle nothing is known
    let entry = good.len() - 22 - 2 * (46 + "m/data/1".len()) - "m/data.pkl".len() - 46;
    let mut bad = good.clone();
    bad[entry + 8] ^= 1;
    fs::write(&path, bad).unwrap();
    let run = tslice(dir.path(), &["info", "m.pt"]).assert().code(1);
    run.stderr(contains("m/data.pkl").and(contains("encrypted")));
}

/// The same tensor in storage 1.
fn other(tensor: &[u8]) -> Vec<u8> {
    let mut tensor = tensor.to_vec();
    let at = tensor.windows(6).position(|it| it == text("0")).unwrap();
    tensor[at + 5] = b'1';
    tensor
}

/// A .safetensors with metadata: numbers, an empty tensor, 8-bit floats, and one without axes.
fn safetensors() -> Vec<u8> {
    let entry = |name: &str, dtype: &str, shape: &str, at: [u8; 2]| {
        format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{at:?}}}"#)
    };
    let entries = [
        r#""__metadata__":{"format":"pt"}"#.to_owned(),
        entry("w", "F32", "[2,3]", [0, 24]),
        entry("none", "I64", "[0,3]", [24, 24]),
        entry("a.b", "F8_E4M3", "[2]", [24, 26]),
        entry("x[0]", "BF16", "[]", [26, 28]),
    ];
    let text = format!("{{{}}}", entries.join(","));
    let data = (0..28).collect::<Vec<u8>>();
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes(), &data].concat()
}

#[test]
fn files_are_written_as_pytorch_loads_them() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("m.safetensors"), safetensors()).unwrap();
    let run = |args: &[&str]| tslice(dir.path(), args).assert().success();
    let note = "tslice: note: the metadata of the input are left out (\"format\")\n\
                hint: --no-metadata leaves them out without a note\n";
    run(&["m.safetensors", "-o", "m.pt"]).stderr(note);
    run(&["m.safetensors", "--no-metadata", "-o", "same.pth"]).stderr("");
    run(&["diff", "m.safetensors", "m.pt"]).stdout("").stderr("");
    let file = fs::read(dir.path().join("m.pt")).unwrap();
    assert_eq!(fs::read(dir.path().join("same.pth")).unwrap(), file);

    // elements begin at multiples of 64 bytes
    let place = |bytes: &[u8]| file.windows(bytes.len()).position(|it| it == bytes);
    for data in [(0..24).collect::<Vec<u8>>(), vec![24, 25], vec![26, 27]] {
        assert_eq!(place(&data).unwrap() % 64, 0);
    }
    let pickle = [
        &b"\x80\x02}(X\x01\0\0\0w"[..],
        b"ctorch._utils\n_rebuild_tensor_v2\nq\0((X\x07\0\0\0storageq\x01",
        b"ctorch\nFloatStorage\nq\x02X\x01\0\0\x000X\x03\0\0\0cpuq\x03K\x06tQ",
        b"K\0K\x02K\x03\x86K\x03K\x01\x86\x89ccollections\nOrderedDict\nq\x04)RtR",
        b"X\x04\0\0\0noneh\0((h\x01ctorch\nLongStorage\nq\x05X\x01\0\0\x001h\x03K\0tQ",
        b"K\0K\0K\x03\x86K\x03K\x01\x86\x89h\x04)RtR",
        b"X\x03\0\0\0a.bctorch._utils\n_rebuild_tensor_v3\nq\x06((h\x01",
        b"ctorch.storage\nUntypedStorage\nq\x07X\x01\0\0\x002h\x03K\x02tQ",
        b"K\0K\x02\x85K\x01\x85\x89h\x04)Rctorch\nfloat8_e4m3fn\nq\x08tR",
        b"X\x04\0\0\0x[0]h\0((h\x01ctorch\nBFloat16Storage\nq\x09X\x01\0\0\x003h\x03K\x01tQ",
        b"K\0))\x89h\x04)RtRu.",
    ];
    assert!(place(&pickle.concat()).is_some());
    assert!(place(b"archive/byteorder").is_some() && place(b"archive/version").is_some());

    // what is written to a pipe, or in parts, has the same tensors
    let piped = run(&["m.safetensors", "--no-metadata", "--to", "pt"]);
    fs::write(dir.path().join("piped.pt"), &piped.get_output().stdout).unwrap();
    run(&["diff", "m.pt", "piped.pt"]).stdout("");
    for part in ["0/2", "1/2"] {
        run(&["m.safetensors", "--no-metadata", "--part", part, "-o", "parts.pt"]);
    }
    assert_eq!(fs::read(dir.path().join("parts.pt")).unwrap(), file);
    run(&["m.pt", "-t", "w", "[:, 1]", "--keep-rest", "-o", "cut.pt"]).stderr("");
    run(&["info", "cut.pt"]).stdout(contains("(2,)").and(contains("x[0]")));

    tslice(dir.path(), &["m.pt", "-o", "n.pt", "--metadata", "a=b"])
        .assert()
        .code(2)
        .stderr(contains("an output of format pt has no metadata"));
}
