//! Malformed files and their messages: `fixtures/bad`, one line each in its `README.md`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tslice::Cause;
use tslice::dtype::{DType, Endian, Scalar};
use tslice::formats::{read_contents, safetensors};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/bad")
}

/// File names, and a part of the message that each must give.
fn cases() -> Vec<(String, String)> {
    let table = std::fs::read_to_string(folder().join("README.md")).unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(1);
    rows.map(|line| {
        let cells: Vec<_> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        (cells[0].trim_end_matches(" *").to_owned(), cells[2].to_owned())
    })
    .collect()
}

/// As a file, of known length; or as a pipe, whose length is known in the end.
fn refusal(bytes: &[u8], as_pipe: bool) -> Option<Cause> {
    let len = bytes.len() as u64;
    match read_contents(&mut &*bytes, (!as_pipe).then_some(len)) {
        Ok(contents) if as_pipe => contents.check_len(len).err().map(Cause::from),
        result => result.err(),
    }
}

#[test]
fn every_file_is_refused_for_its_reason() {
    let cases = cases();
    for (name, reason) in &cases {
        let bytes = std::fs::read(folder().join(name)).unwrap();
        for as_pipe in [false, true] {
            let start = Instant::now();
            let error = refusal(&bytes, as_pipe).unwrap_or_else(|| panic!("{name} was accepted"));
            assert!(start.elapsed() < LINEAR, "{name} took too long");
            let message = error.to_string();
            assert!(message.contains(reason), "{name}: {message:?} does not say {reason:?}");
            assert!(message.len() < 1000, "{name}: {} bytes of message", message.len());
            assert!(!message.contains(['\n', '\0']), "{name}: {message:?}");
        }
    }
    let listed: BTreeSet<_> = cases.into_iter().map(|(name, _)| name).collect();
    let there = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name());
    let there: BTreeSet<_> =
        there.map(|name| name.into_string().unwrap()).filter(|name| name != "README.md").collect();
    assert_eq!(listed, there);
}

/// Any file that is cut short is refused, wherever the cut is; none panics.
#[test]
fn every_truncation_is_found() {
    for name in ["struct-nested.npy", "version-3.0.npy", "all-dtypes.safetensors"] {
        let bytes = std::fs::read(folder().join("../valid").join(name)).unwrap();
        assert!(refusal(&bytes, false).is_none());
        for len in 0..bytes.len() {
            assert!(refusal(&bytes[..len], false).is_some(), "{name} cut to {len} bytes");
            assert!(refusal(&bytes[..len], true).is_some(), "{name} cut to {len} bytes, as a pipe");
        }
    }
}

/// No byte that is changed makes anything panic.
#[test]
fn every_change_of_a_byte_is_survived() {
    for name in ["struct-titles.npy", "struct-unicode.npy", "not-aligned.safetensors"] {
        let mut bytes = std::fs::read(folder().join("../valid").join(name)).unwrap();
        for position in 0..bytes.len() {
            let before = bytes[position];
            for byte in 0..=255 {
                bytes[position] = byte;
                let _ = refusal(&bytes, true);
            }
            bytes[position] = before;
        }
    }
}

/// Far more than linear time takes on a busy machine, and far less than quadratic time: hours.
const LINEAR: Duration = Duration::from_secs(120);

/// The time for a header is linear in its tensors.
#[test]
fn many_tensors_are_read_fast() {
    let dtype = DType::Scalar(Scalar::BF16, Endian::Little);
    let names: Vec<_> = (0..200_000).map(|i| format!("model.layers.{i}.weight")).collect();
    let tensors: Vec<_> =
        names.iter().map(|name| (name.as_str(), &dtype, &[8, 8][..], 128)).collect();
    let header = safetensors::header(&tensors, &Default::default()).unwrap();
    let start = Instant::now();
    let contents = read_contents(&mut header.as_slice(), None).unwrap();
    assert!(start.elapsed() < LINEAR, "{:?}", start.elapsed());
    assert_eq!(contents.tensors.len(), 200_000);
    assert_eq!(contents.expected_len(), header.len() as u64 + 200_000 * 128);
}

/// A `.npy` header of the greatest length, full of the shortest fields.
#[test]
fn long_structures_are_read_fast() {
    let fields: String = (0..300_000).map(|i| format!("('{i}','|V0'),('','V0',1),")).collect();
    let text = format!("{{'descr':[{fields}],'fortran_order':False,'shape':()}}");
    let mut header = b"\x93NUMPY\x02\x00".to_vec();
    header.extend((text.len() as u32).to_le_bytes());
    header.extend(text.bytes());
    let start = Instant::now();
    let error = read_contents(&mut header.as_slice(), None).unwrap_err();
    assert!(start.elapsed() < LINEAR, "{:?}", start.elapsed());
    assert!(error.to_string().contains("more than 1000000 values"), "{error}");
}
