//! Every message about wrong input, word for word: `messages.txt` is a shell session.
//!
//! ```text
//! $ tslice matrix.npy '[0, 5]' -o out.npy      a command
//! tslice: index 5 is out of bounds ...         all that it says on standard error
//!   [0, 5]
//!       ^
//! [1]                                          its exit status
//! ```
//!
//! Every command must print nothing on standard output, and leave the folder as it was.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::inputs::zip;
use crate::program::bash;

/// A tensor of shape (1, 64), in blocks of 32 elements in 18 bytes.
fn gguf() -> Vec<u8> {
    let numbers = |numbers: &[u64]| numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
    let parts: [Vec<u8>; 5] = [
        b"GGUF\x03\0\0\0".to_vec(),
        numbers(&[1, 0, 1]),
        b"q\x02\0\0\0".to_vec(),
        numbers(&[64, 1, 2]),
        // behind the type, 4 bytes, the offset, 8
        vec![0; 4],
    ];
    let mut file = parts.concat();
    file.resize(file.len().next_multiple_of(32) + 36, 0);
    file
}

/// The files that the session uses.
fn write_files(folder: &Path) {
    let npy = |descr: &str, shape: &str, data: &[u8]| {
        let entries = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}");
        [b"\x93NUMPY\x01\x00\x76\x00", format!("{entries:<117}\n").as_bytes(), data].concat()
    };
    let safetensors = |tensors: &str, data: usize| {
        let mut file = (tensors.len() as u64).to_le_bytes().to_vec();
        file.extend(tensors.as_bytes());
        file.resize(file.len() + data, 0);
        file
    };
    let matrix = npy("'<i4'", "(4, 5)", &[7; 80]);
    let weight = r#"{"weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"#;
    let bias = r#""bias":{"dtype":"F32","shape":[3],"data_offsets":[24,36]}}"#;
    let model = safetensors(&format!("{weight}{bias}"), 36);
    let nibbles = r#"{"nibbles":{"dtype":"F4","shape":[4,6],"data_offsets":[0,12]}}"#;
    let empty =
        |number| format!(r#""layer.{number}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}"#);
    let many: Vec<String> = (0..1001).map(empty).collect();
    let row = |name: &str, dtype: &str, len: usize| {
        format!(r#""{name}":{{"dtype":"{dtype}","shape":[0,{len}],"data_offsets":[0,0]}}"#)
    };
    let groups = ["h.0.q", "h.0.k", "h.1.q", "h.1.k", "h.1.v", "x.0.0", "x.1.0", "x.1.1"]
        .map(|name| row(name, "U8", 2));
    let others = [
        row("e.0", "U8", 2),
        row("e.2", "U8", 3),
        row("d.0", "F16", 2),
        row("d.1", "F32", 2),
        row("qkv", "U8", 6),
    ];
    let groups = groups.into_iter().chain(others).collect::<Vec<_>>().join(",");
    for (name, bytes) in [
        ("matrix.npy", matrix.clone()),
        ("scalar.npy", npy("'<f8'", "()", &[0; 8])),
        ("objects.npy", npy("'|O'", "(2,)", b"\x80\x04].")),
        ("times.npy", npy("'<M8[s]'", "(3,)", &[0; 24])),
        ("cut.npy", matrix[..200].to_vec()),
        ("header-cut.npy", matrix[..60].to_vec()),
        ("rows.npy", npy("'<f4'", "(1000000000000000000, 0)", &[])),
        ("empty.npy", vec![]),
        // what a shell makes of [1:x]
        ("x", vec![]),
        ("letter.txt", b"Dear reader,\n".to_vec()),
        ("there.npy", b"what stood there before".to_vec()),
        ("model.safetensors", model.clone()),
        ("longer.safetensors", [model, vec![0; 2]].concat()),
        ("nibbles.safetensors", safetensors(nibbles, 12)),
        ("spaced.safetensors", safetensors("\n {}", 0)),
        ("indices.npy", npy("'|i1'", "(2, 2)", &[0, 4, 255, 250])),
        ("mask.npy", npy("'|b1'", "(5,)", &[1, 0, 1, 1, 0])),
        ("nine.npy", npy("'|i1'", "()", &[9])),
        ("script.pt", zip(&[("m/data.pkl", b""), ("m/constants.pkl", b""), ("m/code/m.py", b"")])),
        ("model.pt", zip(&[("model/data.pkl", b"\x80\x02c__main__\nNet\n)\x81.")])),
        ("plain.pt", zip(&[("plain/data.pkl", b"\x80\x02}.")])),
        ("old.pt", b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.".to_vec()),
        ("tensors.pt", [&b"sys_info"[..], &[0; 249], b"ustar", &[0; 250]].concat()),
        ("__0_0.distcp", zip(&[("archive/data.pkl", b"")])),
        ("model.gguf", gguf()),
        ("first.gguf", b"GGUF\x01\0\0\0\0\0\0\0\0\0\0\0".to_vec()),
        ("mri.raw", vec![0, 0, 128, 63, 0, 0, 0, 64]),
        ("table.csv", b"a,b\n1,2\n3,4\n".to_vec()),
        ("list.json", b"[[1, 2], [3, 4]]".to_vec()),
        ("numbers", b"a,b\n1,2\n3,4\n".to_vec()),
        ("list", b"[[1, 2], [3, 4]]".to_vec()),
        ("damaged.npy.gz", b"\x1f\x8b\x08\x00and so on".to_vec()),
        ("matrix.npy.gz", gzip(&matrix)),
        ("table.csv.gz", gzip(b"a,b\n1,2\n3,4\n")),
        ("photo.png.gz", gzip(b"\x89PNG\r\n\x1a\n\0\0\0\x0d")),
        ("mri.raw.gz", gzip(&[0, 0, 128, 63, 0, 0, 0, 64])),
        ("my matrix.npy", matrix.clone()),
        ("my mask.npy", npy("'|b1'", "(4,)", &[1, 0, 1, 1])),
        ("bits.npy", npy("'|u1'", "(4,)", &[1, 0, 1, 1])),
        ("floats.npy", npy("'<f4'", "(5,)", &[0; 20])),
        ("row.npy", npy("'|b1'", "(1, 5)", &[1; 5])),
        ("parts.npy", npy("[('real', '<f8'), ('imag', '<f8')]", "(1,)", &[0; 16])),
        ("lines.jsonl", b"{\"a\": 1}\n{\"a\": 2}\n".to_vec()),
        ("brain.nii.gz", b"\x1f\x8b\x08\x00and so on".to_vec()),
        ("photo.png", b"\x89PNG\r\n\x1a\n\0\0\0\x0d".to_vec()),
        ("two words.tif", b"II*\0\x08\0\0\0".to_vec()),
        ("data.h5", b"\x89HDF\r\n\x1a\n\0\0\0\0".to_vec()),
        ("lfs.safetensors", b"version https://git-lfs.github.com/spec/v1\noid sha".to_vec()),
        ("page.safetensors", b"<!DOCTYPE html>\n<html><body>Log in".to_vec()),
        ("-lead.npy", matrix.clone()),
        ("many.safetensors", safetensors(&format!("{{{}}}", many.join(",")), 0)),
        ("groups.safetensors", safetensors(&format!("{{{groups}}}"), 0)),
        ("damaged.npz", damaged(&matrix, 30 + 5 + matrix.len() - 1)),
        ("renamed.npz", damaged(&matrix, 30)),
        ("encrypted.npz", damaged(&matrix, 6)),
        ("book.docx", zip(&[("word/document.xml", b"<w/>")])),
    ] {
        fs::write(folder.join(name), bytes).unwrap();
    }
    fs::create_dir(folder.join("folder")).unwrap();
    fs::create_dir(folder.join("image.zarr")).unwrap();
    fs::write(folder.join("image.zarr/.zarray"), b"{}").unwrap();
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// An archive in which the lowest bit of a byte is another one.
fn damaged(npy: &[u8], at: usize) -> Vec<u8> {
    let mut archive = zip(&[("w.npy", npy)]);
    archive[at] ^= 1;
    archive
}

/// What a folder holds: names and bytes (none, for a folder in it).
fn contents(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), fs::read(path).ok())).collect()
}

/// Whether a command is for builds such as this one, by a remark of the shell at its end: `# with zarr`.
fn is_of_this_build(command: &str) -> bool {
    let features = [("zarr", cfg!(feature = "zarr")), ("hdf5", cfg!(feature = "hdf5"))];
    features.iter().all(|(feature, is_on)| match command.rsplit_once(" # ") {
        Some((_, remark)) if remark == format!("with {feature}") => *is_on,
        Some((_, remark)) if remark == format!("without {feature}") => !is_on,
        _ => true,
    })
}

#[test]
fn every_message_is_as_written() {
    let session = include_str!("messages.txt");
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path());
    let before = contents(folder.path());

    let (mut count, mut wrong) = (0, String::new());
    for case in session.split("\n$ ").skip(1) {
        // the cases are separated by blank lines and remarks
        let (command, expected) = case.split_once('\n').unwrap();
        if !is_of_this_build(command) {
            continue;
        }
        let end = expected.find("\n[").unwrap_or_else(|| panic!("no status after {command}")) + 4;
        let run = bash(&folder, command).output().unwrap();
        let said = String::from_utf8_lossy(&run.stderr);
        let said = format!("{said}[{}]", run.status.code().unwrap_or(-1));
        // beside --json it is an object
        let message = said.strip_prefix("tslice: ").or(said.strip_prefix("{\""));
        let message = message.unwrap_or("No prefix");
        assert!(!message.starts_with(char::is_uppercase), "$ {command}\n{said}");
        if said != expected[..end] {
            wrong += &format!("$ {command}\n{said}\n\n");
        }
        assert!(run.stdout.is_empty(), "$ {command}\nprints something");
        assert!(contents(folder.path()) == before, "$ {command}\nchanges files");
        count += 1;
    }
    assert!(count >= 40, "only {count} cases found");
    assert!(wrong.is_empty(), "what is said in these cases is not as written:\n\n{wrong}");
}
