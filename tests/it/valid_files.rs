//! Valid files of about every kind, and what NumPy and the safetensors package find in them:
//! `fixtures/valid/contents.tsv`.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use tslice::formats::{npy, read_contents};
use tslice::input::Contents;
use tslice::shape::{AsTuple, Order};

fn read(name: &str) -> (Contents, Vec<u8>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/valid").join(name);
    let bytes = std::fs::read(path).unwrap();
    let mut rest = bytes.as_slice();
    let contents = read_contents(&mut rest, Some(bytes.len() as u64))
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let header_len = bytes.len() - rest.len();
    assert_eq!(contents.header_len, header_len as u64, "{name}: the header and nothing more");
    (contents, bytes)
}

#[test]
fn files_hold_what_their_packages_say() {
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut expected: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for line in include_str!("../../fixtures/valid/contents.tsv").lines().skip(1) {
        let (file, rest) = line.split_once('\t').unwrap();
        let (canonical, rest) = rest.split_once('\t').unwrap();
        expected.entry(file).or_default().push(rest.to_owned());
        let (contents, bytes) = read(file);
        found.entry(file).or_insert_with(|| {
            let describe = |tensor: tslice::tensor::TensorInfo| {
                let name = tensor.name.as_deref().unwrap_or("-");
                let order = if tensor.order() == Order::F { "F" } else { "C" };
                let shape = AsTuple(&tensor.shape);
                let (offset, bytes) = (tensor.data().start, tensor.bytes());
                format!("{name}\t{}\t{shape}\t{order}\t{offset}\t{bytes}", tensor.dtype)
            };
            contents.tensors.iter().map(describe).collect()
        });
        if canonical == "yes" {
            let tensor = contents.tensors.at(0);
            let header = npy::header(&tensor.dtype, &tensor.shape, tensor.order()).unwrap();
            assert_eq!(header, bytes[..header.len()], "{file}");
        }
    }
    for (file, tensors) in &expected {
        assert_eq!(&found[file], tensors, "{file}");
    }
    let names: HashSet<_> = expected.keys().collect();
    assert!(names.len() > 80);
}

#[test]
fn metadata_is_kept() {
    let (contents, _) = read("all-dtypes.safetensors");
    let expected = [("clé", "\n\"é\""), ("format", "pt")];
    assert!(contents.metadata.texts.iter().map(|(k, v)| (k.as_str(), v.as_str())).eq(expected));
    assert!(read("none.safetensors").0.tensors.is_empty());
    assert_eq!(read("only-metadata.safetensors").0.metadata.texts["a"], "b");
}
