//! Tensors by their names, in files of many: globs, exclusions, new names, whole files, folders.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::inputs::{U8, npy_header, write_npy, write_safetensors, zip};
use crate::program::{bash, tslice};

/// `m.safetensors` with `blocks` blocks of two tensors of one byte each, and `head`; the same as a
/// checkpoint of two files in `ckpt`.
fn folder(blocks: u8) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut names: Vec<String> = Vec::new();
    for block in 0..blocks {
        names.extend(["up", "down"].map(|kind| format!("model.layers.{block}.{kind}")));
    }
    names.push("head".to_owned());
    let write = |name: &str, first: usize, names: &[String]| {
        let entry = |(at, name): (usize, &String)| {
            let end = at + 1;
            format!(r#""{name}":{{"dtype":"U8","shape":[1],"data_offsets":[{at},{end}]}}"#)
        };
        let entries: Vec<String> = names.iter().enumerate().map(entry).collect();
        let data: Vec<u8> = (first..first + names.len()).map(|value| value as u8).collect();
        write_safetensors(&dir.path().join(name), &format!("{{{}}}", entries.join(",")), &data);
    };
    write("m.safetensors", 0, &names);
    fs::create_dir(dir.path().join("ckpt")).unwrap();
    let (first, second) = names.split_at(names.len() / 2);
    write("ckpt/1.safetensors", 0, first);
    write("ckpt/2.safetensors", first.len(), second);
    let entry = |(at, name): (usize, &String)| {
        format!(r#""{name}":"{}.safetensors""#, 1 + usize::from(at >= first.len()))
    };
    let map: Vec<String> = names.iter().enumerate().map(entry).collect();
    let json = format!(r#"{{"weight_map":{{{}}}}}"#, map.join(","));
    fs::write(dir.path().join("ckpt/model.safetensors.index.json"), json).unwrap();
    dir
}

/// Names and bytes in a `.safetensors`, as its package finds them, sorted by name.
fn read(path: &Path) -> Vec<(String, u8)> {
    let bytes = fs::read(path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let tensor =
        |(name, tensor): (String, safetensors::tensor::TensorView<'_>)| (name, tensor.data()[0]);
    let mut tensors: Vec<_> = file.tensors().into_iter().map(tensor).collect();
    tensors.sort();
    tensors
}

fn pairs(expected: &[(&str, u8)]) -> Vec<(String, u8)> {
    expected.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

/// A table is applied at once, and numbers may be added to.
#[test]
fn a_table_of_names_does_not_chain() {
    let dir = folder(4);
    let names = |table: &str, more: &[&str], note: &str| {
        fs::write(dir.path().join("names"), table).unwrap();
        let args = ["m.safetensors", "--rename-from", "names", "-o", "o.safetensors", "-f"];
        tslice(&dir, &[&args, more].concat()).assert().success().stderr(note.to_owned());
        read(&dir.path().join("o.safetensors"))
    };
    let layer = |number: u8, kind: &str| format!("model.layers.{number}.{kind}");
    let expected: Vec<_> =
        (0..8u8).map(|at| (layer(at / 2 + 2, ["up", "down"][at as usize % 2]), at)).collect();
    let same = |found: Vec<(String, u8)>| {
        let mut all = expected.clone();
        all.push(("head".to_owned(), 8));
        all.sort();
        assert_eq!(found, all);
    };
    let lines: Vec<_> = (0..4)
        .flat_map(|at| {
            ["up", "down"].map(|kind| format!("{}={}", layer(at, kind), layer(at + 2, kind)))
        })
        .collect();
    same(names(&lines.join("\n"), &[], ""));
    same(names(r#"{"model.layers.{l}.*": "model.layers.{l+2}.*"}"#, &[], ""));
    let note = "tslice: note: 2 lines of the table of new names match no tensor\n";
    same(names("none=x\nmodel.layers.{l}.*=model.layers.{l+2}.*\nmodel.layers.9.*=y.*", &[], note));
    let renamed = names(
        "head=b\nb=c",
        &["--rename", "b=d"],
        "tslice: note: 1 line of the table of new names matches no tensor\n",
    );
    assert_eq!(renamed[0].0, "d");
    let args =
        ["m.safetensors", "--rename", "model.layers.{l}.{k}=model.{k+1}", "-o", "x.safetensors"];
    tslice(&dir, &args).assert().code(2);
}

#[track_caller]
fn succeeds(dir: &tempfile::TempDir, args: &[&str]) {
    tslice(dir, args).assert().success().stdout("").stderr("");
}

#[test]
fn a_whole_file_is_converted_without_a_choice() {
    let dir = folder(1);
    let all = pairs(&[("head", 2), ("model.layers.0.down", 1), ("model.layers.0.up", 0)]);
    let out = dir.path().join("out.safetensors");
    succeeds(&dir, &["m.safetensors", "-o", "m.npz"]);
    succeeds(&dir, &["m.npz", "-o", "out.safetensors"]);
    assert_eq!(read(&out), all);
    for input in ["ckpt", "ckpt/", "ckpt/model.safetensors.index.json", "m.safetensors"] {
        succeeds(&dir, &[input, "-f", "-o", "out.safetensors"]);
        assert_eq!(read(&out), all, "{input}");
    }
    let piped = fs::read(dir.path().join("m.npz")).unwrap();
    let args = ["-", "-f", "-o", "out.safetensors"];
    tslice(&dir, &args).write_stdin(piped).assert().success();
    assert_eq!(read(&out), all);
    // an index is for tensors that were chosen, and one format holds one tensor
    let args = ["m.safetensors", "[...]", "-o", "o.npz"];
    let hint = "hint: -t '*' chooses all; it holds model.layers.0.up, model.layers.0.down, head\n";
    let message = "m.safetensors: the file holds 3 tensors, choose one with -t NAME";
    tslice(&dir, &args).assert().code(1).stderr(format!("tslice: {message}\n{hint}"));
    tslice(&dir, &["m.safetensors", "-o", "o.npy"]).assert().code(1);
    succeeds(&dir, &["m.safetensors", "-t", "*", "[0]", "-o", "o.npz"]);
}

#[test]
fn what_is_excluded_is_left_out() {
    let dir = folder(2);
    let out = dir.path().join("out.safetensors");
    succeeds(&dir, &["m.safetensors", "--exclude", "*.up", "-o", "out.safetensors"]);
    let rest = [("head", 4), ("model.layers.0.down", 1), ("model.layers.1.down", 3)];
    assert_eq!(read(&out), pairs(&rest));
    let mut args = vec!["ckpt", "-t", "*.0.*", "--exclude", "*.up", "-f", "-o", "out.safetensors"];
    succeeds(&dir, &args);
    assert_eq!(read(&out), pairs(&rest[1..2]));
    args.push("--keep-rest");
    succeeds(&dir, &args);
    assert_eq!(read(&out), pairs(&rest));
    let one = ["m.safetensors", "--exclude", "model.*", "-o", "head.npy"];
    succeeds(&dir, &one);
    assert!(fs::read(dir.path().join("head.npy")).unwrap().ends_with(&[4]));
}

/// The commands beside the slice: each takes what `-t` chooses, or all, but for what is excluded.
#[test]
fn every_command_leaves_out_what_is_excluded() {
    let dir = folder(2);
    let out = dir.path().join("out.safetensors");
    let stdout = |args: &[&str]| {
        let output = tslice(&dir, args).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let head = [("head", 4)];
    let downs = [("model.layers.0.down", 1), ("model.layers.1.down", 3)];
    for file in ["m.safetensors", "ckpt"] {
        let shown = stdout(&["info", file, "--exclude", "*.up", "--columns", "name"]);
        let named = |name: &str| shown.lines().any(|line| line.trim() == name);
        assert!(named("head") && named("model.layers.1.down"), "{shown}");
        assert!(!shown.contains(".up") && shown.contains("3 of 5 tensors"), "{shown}");
        let values = stdout(&["view", file, "-t", "*.0.*", "--exclude", "*.up"]);
        assert!(values.contains("layers.0.down") && !values.contains("up"), "{values}");
        let explained = stdout(&["explain", file, "0", "--exclude", "model.*"]);
        assert!(explained.contains("uint8"), "{explained}");
        let gathered = ["gather", file, "--indices", "[[0]]", "--exclude", "model.*", "-f"];
        succeeds(&dir, &[&gathered[..], &["-o", "head.npy"]].concat());
        assert!(fs::read(dir.path().join("head.npy")).unwrap().ends_with(&[4]));
        for args in [
            &["concat", file, "--exclude", "*.up"][..],
            &["stack", file, "--exclude", "*.up"],
            &["merge", file, "--exclude", "*.up"],
            &["concat", file, "-t", "*.down", "--exclude", "*.up", "--keep-rest"],
        ] {
            succeeds(&dir, &[args, &["-f", "-o", "out.safetensors"]].concat());
            assert_eq!(read(&out), pairs(&[&head[..], &downs].concat()), "{args:?}");
        }
        let split = ["split", file, "-t", "*.down", "--exclude", "*.up", "--keep-rest", "-f"];
        succeeds(&dir, &[&split[..], &["--parts", "1", "-o", "p{}.safetensors"]].concat());
        assert_eq!(read(&dir.path().join("p0.safetensors")), pairs(&[&head[..], &downs].concat()));
        let same = ["diff", file, "m.safetensors", "--exclude", "*.up"];
        assert_eq!(stdout(&same), "");
    }
    for file in ["m.safetensors", "ckpt"] {
        let not_head =
            ["assign", file, "0", "--fill", "9", "--exclude", "head", "--exclude", "*.up"];
        succeeds(&dir, &[&not_head[..], &["--in-place"]].concat());
        let scatter = ["scatter", file, "--indices", "[[0]]", "--values", "head.npy"];
        let of_first = ["-t", "*.0.*", "--exclude", "*.down", "--in-place"];
        succeeds(&dir, &[&scatter[..], &of_first].concat());
        let ups = [("model.layers.0.up", 4), ("model.layers.1.up", 2)];
        let nines = downs.map(|(name, _)| (name, 9));
        succeeds(&dir, &[file, "-f", "-o", "out.safetensors"]);
        let mut expected = pairs(&[&head[..], &ups, &nines].concat());
        expected.sort();
        assert_eq!(read(&out), expected);
    }
}

/// What only one of several inputs has is left out of that; what none has is a mistake.
#[test]
fn what_one_of_several_inputs_has_is_left_out_of_it() {
    let (dir, other) = (folder(1), folder(0));
    fs::copy(other.path().join("m.safetensors"), dir.path().join("head.safetensors")).unwrap();
    let inputs = ["m.safetensors", "head.safetensors", "--exclude", "model.*"];
    tslice(&dir, &[&["diff"][..], &inputs].concat()).assert().code(1).stderr("");
    succeeds(&dir, &[&["diff", "m.safetensors", "m.safetensors"][..], &inputs[2..]].concat());
    succeeds(&dir, &[&["concat"][..], &inputs, &["-o", "out.safetensors"]].concat());
    let bytes = fs::read(dir.path().join("out.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(file.names(), ["head"]);
    assert_eq!(file.tensor("head").unwrap().data(), [2, 0]);
    for command in ["diff", "concat"] {
        let mistaken = [command, "m.safetensors", "head.safetensors", "--exclude", "nothing"];
        let failed = tslice(&dir, &mistaken).assert();
        let stderr = String::from_utf8(failed.get_output().stderr.clone()).unwrap();
        assert!(stderr.contains("--exclude: no tensor is named \"nothing\""), "{stderr}");
    }
}

#[test]
fn stars_carry_over_into_new_names() {
    let dir = folder(2);
    let rename = ["--rename", "model.layers.*.*=blk.*.ffn_*", "--rename", "head=output"];
    succeeds(&dir, &[&["m.safetensors", "-o", "out.safetensors"], &rename[..]].concat());
    let expected = [
        ("blk.0.ffn_down", 1),
        ("blk.0.ffn_up", 0),
        ("blk.1.ffn_down", 3),
        ("blk.1.ffn_up", 2),
        ("output", 4),
    ];
    assert_eq!(read(&dir.path().join("out.safetensors")), pairs(&expected));
    succeeds(&dir, &[&["ckpt", "-o", "new/"], &rename[..]].concat());
    succeeds(&dir, &["new", "-f", "-o", "out.safetensors"]);
    assert_eq!(read(&dir.path().join("out.safetensors")), pairs(&expected));
}

#[test]
fn a_folder_is_the_checkpoint_in_it() {
    let dir = folder(2);
    let info = |args: &[&str]| {
        let output = tslice(&dir, &[&["info"], args].concat()).output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (shown, said) = info(&["ckpt"]);
    let first = "ckpt/model.safetensors.index.json: sharded safetensors, 5 tensors, 5 bytes\n";
    assert!(shown.starts_with(first) && said.is_empty(), "{shown}{said}");
    let index = dir.path().join("ckpt/model.safetensors.index.json");
    fs::rename(&index, dir.path().join("ckpt/unet.safetensors.index.json")).unwrap();
    assert!(info(&["ckpt"]).0.starts_with("ckpt/unet.safetensors.index.json: "));
    fs::copy(dir.path().join("ckpt/unet.safetensors.index.json"), dir.path().join("b")).unwrap();
    fs::rename(dir.path().join("b"), dir.path().join("ckpt/vae.safetensors.index.json")).unwrap();
    let several = "tslice: ckpt: the folder holds several indexes: unet.safetensors.index.json, \
                   vae.safetensors.index.json\n";
    assert_eq!(info(&["ckpt"]).1, several);
    fs::rename(dir.path().join("ckpt/unet.safetensors.index.json"), &index).unwrap();
    assert!(info(&["ckpt"]).0.starts_with(first));
}

#[test]
fn info_shows_the_tensors_that_are_asked_for() {
    let dir = folder(100);
    let output = tslice(&dir, &["info", "ckpt", "-t", "*.7.*"]).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = shown.lines().collect();
    let first = "ckpt/model.safetensors.index.json: sharded safetensors, 2 of 201 tensors, 2 bytes";
    assert_eq!((lines.len(), lines[0]), (5, first));
    assert!(lines[2].trim_start().starts_with("model.layers.7.up "));
    let args = ["info", "--json", "m.safetensors", "-t", "head", "-t", "model.layers.99.*"];
    let json = tslice(&dir, &args).output().unwrap().stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let names: Vec<_> =
        json[0]["tensors"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["model.layers.99.up", "model.layers.99.down", "head"]);
    write_npy(&dir.path().join("a.npy"), &U8, &[1], &[0]);
    tslice(&dir, &["info", "a.npy", "-t", "a"]).assert().code(1);
}

#[test]
fn the_nearest_of_many_names_are_proposed() {
    let dir = folder(100);
    for (typed, hint) in [
        ("model.layer.17.up", "did you mean 'model.layers.17.up', "),
        ("haed", "did you mean 'head'?"),
        ("lm_head.weight", "it holds model.layers.0.up, model.layers.0.down, "),
    ] {
        let output = tslice(&dir, &["m.safetensors", "-t", typed, "-o", "o.npy"]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let said: Vec<&str> = said.lines().collect();
        assert!(said[1].starts_with(&format!("hint: {hint}")), "{said:?}");
        assert_eq!(said[0], format!("tslice: m.safetensors: no tensor is named {typed:?}"));
    }
}

/// The widths of format strings end at 16 bits.
#[test]
fn a_name_or_an_index_may_be_long() {
    let dir = tempfile::tempdir().unwrap();
    let (long, index) = ("n".repeat(70_000), "0:2,".repeat(20) + &" ".repeat(70_000));
    let header = format!(r#"{{"{long}":{{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}}}"#);
    write_safetensors(&dir.path().join("long.safetensors"), &header, &[0]);
    let output = tslice(&dir, &["info", "long.safetensors"]).output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains(&long));
    assert_eq!(output.status.code(), Some(0));
    let shape = vec!["3"; 20].join(",");
    let output = tslice(&dir, &["explain", &index, "--shape", &shape]).output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("strides "));
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

/// JSON holds text only: such a name is there a second time, in a way that leads back to the file.
#[test]
fn programs_can_open_files_whose_names_are_not_utf_8() {
    let dir = tempfile::tempdir().unwrap();
    let name = OsStr::from_bytes(b"caf\xe9 1.npy");
    write_npy(&dir.path().join(name), &U8, &[1], &[0]);
    write_npy(&dir.path().join("plain.npy"), &U8, &[1], &[0]);
    let json = |args: &str| -> serde_json::Value {
        let line = format!("tslice {args} --json");
        serde_json::from_slice(&bash(&dir, &line).output().unwrap().stdout).unwrap()
    };
    let info = json("info caf*.npy plain.npy");
    assert_eq!(info[0]["file_percent"], "caf%E9%201.npy");
    assert!(info[1].get("file_percent").is_none());
    let diff = json("diff caf*.npy plain.npy");
    assert_eq!(diff["files_percent"][0], "caf%E9%201.npy");
    assert!(diff["files_percent"][1].is_null());
    assert!(json("diff plain.npy plain.npy").get("files_percent").is_none());
}

/// np.load reads the other members, and refuses this one when it is asked for.
#[test]
fn one_array_of_objects_does_not_spoil_an_archive() {
    let dir = tempfile::tempdir().unwrap();
    let plain = |value: u8| [npy_header(&U8, &[1]), vec![value]].concat();
    let text = "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }";
    let pickle = b"\x80\x04.";
    let objects =
        [b"\x93NUMPY\x01\x00\x76\x00", format!("{text:<117}\n").as_bytes(), pickle].concat();
    let members = [("a.npy", &plain(1)[..]), ("who.npy", &objects), ("b.npy", &plain(2))];
    fs::write(dir.path().join("z.npz"), zip(&members)).unwrap();

    let reason = "its pickle is damaged: its stack is empty";
    let output = tslice(&dir, &["info", "z.npz"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stderr, b"tslice: z.npz: 1 tensor cannot be read\n");
    tslice(&dir, &["info", "z.npz", "-t", "a"]).assert().success().stderr("");
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.starts_with("z.npz: npz, 2 of 3 tensors, 2 bytes\n"), "{shown}");
    assert!(shown.contains(&format!("\n  who cannot be read: {reason}\n")), "{shown}");
    let output = tslice(&dir, &["info", "z.npz", "--json", "-t", "who"]).output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json[0]["unreadable"][0]["name"], "who");
    assert_eq!(json[0]["tensors"].as_array().unwrap().len(), 0);

    succeeds(&dir, &["z.npz", "-t", "b", "-o", "b.npy"]);
    assert!(fs::read(dir.path().join("b.npy")).unwrap().ends_with(&[2]));
    let refused = format!("tslice: z.npz: member \"who\": {reason}\n");
    for args in [
        &["z.npz", "-t", "who", "-o", "w.npy"][..],
        &["z.npz", "-t", "a", "-t", "who", "-o", "w.npz"],
        &["z.npz", "-t", "w*", "-o", "w.npz"],
        &["gather", "z.npz", "-t", "who", "--indices", "[[0]]"],
        &["merge", "z.npz", "-t", "who", "-o", "w.npz"],
    ] {
        tslice(&dir, args).assert().code(1).stderr(refused.clone());
    }
    // of several it is left out
    let note =
        refused.replace("tslice: ", "tslice: note: ").replace("empty\n", "empty; left out\n");
    for args in [
        &["z.npz", "-t", "*", "-o", "every.safetensors"][..],
        &["z.npz", "-o", "every.safetensors", "--force"],
        &["z.npz", "-t", "a", "--keep-rest", "-o", "every.safetensors", "--force"],
        &["merge", "z.npz", "-o", "every.safetensors", "--force"],
        &["diff", "z.npz", "every.safetensors"],
        &["concat", "z.npz", "-t", "*", "-o", "every.safetensors", "--force"],
    ] {
        tslice(&dir, args).assert().success().stderr(note.clone());
        assert_eq!(
            read(&dir.path().join("every.safetensors")),
            pairs(&[("a", 1), ("b", 2)]),
            "{args:?}"
        );
    }
    tslice(&dir, &["view", "z.npz", "-t", "*", "--stats"]).assert().success().stderr(note);
    succeeds(&dir, &["z.npz", "--exclude", "who", "-o", "all.safetensors"]);
    assert_eq!(read(&dir.path().join("all.safetensors")), pairs(&[("a", 1), ("b", 2)]));
    let args = ["z.npz", "-t", "a", "--keep-rest", "--exclude", "who", "-o", "rest.safetensors"];
    succeeds(&dir, &args);
    fs::write(dir.path().join("one.npz"), zip(&members[1..2])).unwrap();
    let refused = refused.replace("z.npz", "one.npz");
    tslice(&dir, &["one.npz", "-o", "one.npy"]).assert().code(1).stderr(refused);
}
