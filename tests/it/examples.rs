//! The programs of `examples/`, run on files whose elements are known.

use std::fs;
use std::path::Path;

use half::{bf16, f16};
use tslice::{DType, Error, GatherOptions, OutOfRange, WriteOptions};

#[allow(dead_code)]
#[path = "../../examples/gather.rs"]
mod gather;
#[allow(dead_code)]
#[path = "../../examples/list.rs"]
mod list;
#[allow(dead_code)]
#[path = "../../examples/read.rs"]
mod read;
#[allow(dead_code)]
#[path = "../../examples/slice.rs"]
mod slice;

/// A `.safetensors` with `embed` (4, 3) of float32 0 to 11, and `half` and `brain` of 1, 2, 6.
fn model(folder: &Path) -> String {
    let header = br#"{"embed":{"dtype":"F32","shape":[4,3],"data_offsets":[0,48]},"half":{"dtype":"F16","shape":[3],"data_offsets":[48,54]},"brain":{"dtype":"BF16","shape":[3],"data_offsets":[54,60]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    bytes.extend((0..12).flat_map(|number| (number as f32).to_le_bytes()));
    bytes.extend([1.0, 2.0, 6.0].iter().flat_map(|&it| f16::from_f32(it).to_le_bytes()));
    bytes.extend([1.0, 2.0, 6.0].iter().flat_map(|&it| bf16::from_f32(it).to_le_bytes()));
    let path = folder.join("model.safetensors");
    fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The float32 elements of a `.npy`, read by another package than ours.
fn floats(path: &str) -> (Vec<u64>, Vec<f32>) {
    let file = npyz::NpyFile::new(fs::File::open(path).unwrap()).unwrap();
    (file.shape().to_vec(), file.into_vec().unwrap())
}

#[test]
fn slice_writes_part_of_a_tensor() {
    let folder = tempfile::tempdir().unwrap();
    let (model, output) = (model(folder.path()), folder.path().join("out.npy"));
    let output = output.to_str().unwrap();
    for _ in 0..2 {
        slice::slice(&model, "embed", "[1:3, ::-1]", output).unwrap();
        assert_eq!(floats(output), (vec![2, 3], vec![5.0, 4.0, 3.0, 8.0, 7.0, 6.0]));
    }
}

#[test]
fn list_shows_all_tensors() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = Vec::new();
    list::list(&model(folder.path()), &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text, "embed float32 [4, 3]\nhalf float16 [3]\nbrain bfloat16 [3]\n");
}

#[test]
fn read_takes_floats_of_all_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let file = tslice::open(model(folder.path())).unwrap();
    let mean = |name: &str, index: &str| {
        read::mean(&file.tensor(name).unwrap().slice(index).unwrap()).unwrap()
    };
    assert_eq!(mean("embed", "[3]"), 10.0);
    assert_eq!(mean("half", ":"), 3.0);
    assert_eq!(mean("brain", "[1:]"), 4.0);
}

#[test]
fn gather_writes_rows_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let (model, output) = (model(folder.path()), folder.path().join("out.npy"));
    let output = output.to_str().unwrap();
    gather::gather(&model, "embed", &[2, 0, 2], output).unwrap();
    let rows = vec![6.0, 7.0, 8.0, 0.0, 1.0, 2.0, 6.0, 7.0, 8.0];
    assert_eq!(floats(output), (vec![3, 3], rows));
}

/// Elements of the other byte order, of a Fortran-order file, and by indices from a file.
#[test]
fn elements_are_read_whatever_their_layout() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let npy = |descr: &str, order: &str, shape: &str, data: &[u8]| {
        let text =
            format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.bytes());
        bytes.extend(data);
        bytes
    };
    // [[0, 2, 4], [1, 3, 5]], stored by columns, big-endian
    let data: Vec<u8> = (0..6i16).flat_map(i16::to_be_bytes).collect();
    fs::write(path("a.npy"), npy(">i2", "True", "(2, 3)", &data)).unwrap();
    let data: Vec<u8> =
        [[1u64, 2], [0, 1]].iter().flatten().flat_map(|it| it.to_le_bytes()).collect();
    fs::write(path("at.npy"), npy("<u8", "False", "(2, 2)", &data)).unwrap();

    let a = tslice::open(path("a.npy")).unwrap().only().unwrap();
    assert_eq!(a.all().read::<i16>().unwrap(), [0, 2, 4, 1, 3, 5]);
    assert_eq!(a.slice("[:, [2, 0]]").unwrap().read::<i16>().unwrap(), [4, 0, 5, 1]);
    let listed = format!("[[1, 0], @\"{}\"]", path("at.npy").display());
    let listed = a.slice(&listed).unwrap();
    assert_eq!((listed.shape(), listed.read::<i16>().unwrap()), (&[2, 2][..], vec![3, 4, 1, 2]));
    let at = tslice::open(path("at.npy")).unwrap().only().unwrap();
    let gathered = a.gather_nd(&at).unwrap();
    assert_eq!((gathered.shape(), gathered.read::<i16>().unwrap()), (&[2][..], vec![5, 2]));
    let transposed = a.slice("[:, ::2]").unwrap().transpose(&[1, 0]).unwrap();
    assert_eq!(transposed.shape(), [2, 2]);
    assert_eq!(transposed.read::<i16>().unwrap(), [0, 1, 4, 5]);
    let back = transposed.transpose(&[-1, 0]).unwrap();
    assert_eq!(back.read::<i16>().unwrap(), [0, 4, 1, 5]);
    let columns = a.take([2, 0], 1).unwrap().transpose(&[1, 0]).unwrap();
    assert_eq!(columns.read::<i16>().unwrap(), [4, 5, 0, 1]);

    let wrong = a.all().read::<f32>().unwrap_err().to_string();
    assert!(wrong.ends_with("the elements are of dtype >i2, and float32 was asked for"), "{wrong}");
    let outside = a.take([2], 0).unwrap().read::<i16>().unwrap_err().to_string();
    assert!(outside.ends_with("a.npy: indices[0] = 2 is not in [-2, 2)"), "{outside}");
    let options = GatherOptions { out_of_range: OutOfRange::Clip, ..GatherOptions::default() };
    let clipped = a.gather([9, -1], Some(1), &options).unwrap().read::<i16>().unwrap();
    assert_eq!(clipped, [4, 0, 5, 1]);
    assert!(a.slice("[5]").is_err() && a.slice("[").is_err());
}

#[test]
fn errors_say_which_file_and_why() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    let file = tslice::open(&model).unwrap();
    let said = |error: Error| error.to_string().replace(&model, "MODEL");
    assert_eq!(said(file.tensor("nobody").err().unwrap()), "MODEL: no tensor is named \"nobody\"");
    assert_eq!(
        said(file.only().err().unwrap()),
        "MODEL: the file holds 3 tensors, and one has to be named"
    );
    let embed = file.tensor("emb*").unwrap();
    assert!(matches!(embed.dtype(), DType::Scalar(..)));
    assert_eq!(said(embed.all().write(&model).unwrap_err()), "MODEL: the file exists");
    let options = WriteOptions::default().name("x");
    let path = folder.path().join("a.npy");
    let refused = embed.all().write_with(&path, &options);
    let why = "a name has no effect: an output of format npy names no tensor";
    assert_eq!(said(refused.unwrap_err()), format!("{}: {why}", path.display()));
    let missing = tslice::open(folder.path().join("no.npy")).err().unwrap().to_string();
    assert!(missing.contains("no.npy: No such file or directory"), "{missing}");
}
