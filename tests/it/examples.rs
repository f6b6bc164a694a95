//! The programs of `examples/`, run on files whose elements are known.

use std::error::Error as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io};

use half::{bf16, f16};
use tslice::{Casting, DType, Error, ErrorKind, GatherOptions, OutOfRange, WriteOptions};

#[allow(dead_code)]
#[path = "../../examples/convert.rs"]
mod convert;
#[allow(dead_code)]
#[path = "../../examples/edit.rs"]
mod edit;
#[allow(dead_code)]
#[path = "../../examples/join.rs"]
mod join;
#[allow(dead_code)]
#[path = "../../examples/list.rs"]
mod list;
#[allow(dead_code)]
#[path = "../../examples/read.rs"]
mod read;
#[allow(dead_code)]
#[path = "../../examples/save.rs"]
mod save;

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
fn convert_casts_floats_and_keeps_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.npz");
    convert::convert(&model(folder.path()), "float64", output.to_str().unwrap()).unwrap();
    let file = tslice::open(output).unwrap();
    let embed = file.tensor("embed").unwrap().slice((1, ..)).unwrap();
    assert_eq!(embed.read::<f64>().unwrap(), [3.0, 4.0, 5.0]);
    assert_eq!(file.tensor("half").unwrap().dtype().to_string(), "float16");
}

#[test]
fn join_puts_files_one_after_the_other_and_says_how_far_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [a, b, both] = ["a.npy", "b.npy", "both.npy"].map(path);
    tslice::save(&a, &[2, 3], &[0f32, 1.0, 2.0, 3.0, 4.0, 5.0], &WriteOptions::default()).unwrap();
    tslice::save(&b, &[1, 3], &[6f32, 7.0, 8.0], &WriteOptions::default()).unwrap();
    let most = Arc::new(AtomicU64::new(0));
    let told = Arc::clone(&most);
    let show = move |percent| {
        told.fetch_max(percent, Ordering::Relaxed);
    };
    join::join(&[a, b], &both, show).unwrap();
    assert_eq!(floats(&both), (vec![3, 3], (0..9u8).map(f32::from).collect()));
    assert_eq!(most.load(Ordering::Relaxed), 100);
}

#[test]
fn edit_scales_rows_where_they_lie() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    edit::scale(&model, "embed", &[3, 0], 2.0).unwrap();
    let embed: Vec<f32> =
        tslice::open(&model).unwrap().tensor("embed").unwrap().all().read().unwrap();
    assert_eq!(embed, [0.0, 2.0, 4.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 18.0, 20.0, 22.0]);
}

#[test]
fn save_writes_what_is_borrowed_once() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("squares.npy");
    assert!(save::save(output.to_str().unwrap(), &[0, 1, 4]).unwrap());
    assert!(!save::save(output.to_str().unwrap(), &[7]).unwrap());
    let file = npyz::NpyFile::new(fs::File::open(&output).unwrap()).unwrap();
    assert_eq!(file.into_vec::<u64>().unwrap(), [0, 1, 4]);
    // in every format that is written, and with options of its own
    for name in ["a.safetensors", "a.npz", "a.bin", "a.csv", "a.json"] {
        let path = folder.path().join(name);
        tslice::save(&path, &[2, 2], &[1i32, 2, 3, 4], &WriteOptions::default()).unwrap();
        assert!(fs::metadata(path).unwrap().len() > 0);
    }
    let fortran = WriteOptions::default().force(true).order(tslice::Order::F);
    tslice::save(&output, &[2, 3], &[1u8, 2, 3, 4, 5, 6], &fortran).unwrap();
    assert_eq!(fs::read(&output).unwrap()[128..], [1, 4, 2, 5, 3, 6]);
    let misfit = tslice::save(&output, &[3], &[1u8, 2], &fortran).unwrap_err();
    assert_eq!(misfit.kind(), ErrorKind::Invalid);
}

#[test]
fn list_shows_all_tensors() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = Vec::new();
    list::list(&model(folder.path()), &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(
        text,
        "embed float32 [4, 3] 48 bytes\nhalf float16 [3] 6 bytes\nbrain bfloat16 [3] 6 bytes\n"
    );
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
    assert!(wrong.ends_with("the elements have dtype >i2, not float32"), "{wrong}");
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
        "MODEL: the file holds 3 tensors, and one must be named"
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

#[test]
fn errors_are_of_a_kind_and_lead_to_that_of_the_system() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let model = model(folder.path());
    let file = tslice::open(&model).unwrap();
    let embed = file.tensor("embed").unwrap();
    let kind = |error: Option<Error>| error.unwrap().kind();

    let missing = tslice::open(path("no.npy")).err().unwrap();
    assert_eq!(missing.kind(), ErrorKind::FileMissing);
    let source = missing.source().unwrap().downcast_ref::<io::Error>().unwrap();
    assert_eq!(source.kind(), io::ErrorKind::NotFound);
    let unwritable = embed.all().write(path("no/a.npy")).unwrap_err();
    let mut source = unwritable.source();
    while let Some(error) = source.filter(|error| !error.is::<io::Error>()) {
        source = error.source();
    }
    assert!(source.is_some(), "{unwritable:?}");

    assert_eq!(kind(file.tensor("nobody").err()), ErrorKind::NoSuchTensor);
    assert_eq!(kind(embed.slice("[4]").err()), ErrorKind::Index);
    assert_eq!(kind(embed.slice("[").err()), ErrorKind::Index);
    assert_eq!(kind(embed.take([9, 1], 0).unwrap().read::<f32>().err()), ErrorKind::Index);
    assert_eq!(kind(embed.all().split(2, &tslice::Cuts::Parts(2)).err()), ErrorKind::Index);
    assert_eq!(kind(embed.all().read::<f64>().err()), ErrorKind::DType);
    let narrow = tslice::parse_dtype("int8").unwrap();
    assert_eq!(kind(embed.all().cast(&narrow, Casting::Safe).err()), ErrorKind::DType);
    assert_eq!(kind(tslice::parse_dtype("int9").err().map(Into::into)), ErrorKind::DType);
    assert_eq!(kind(embed.all().write(&model).err()), ErrorKind::Exists);
    assert_eq!(kind(file.only().err()), ErrorKind::Invalid);

    let whole = fs::read(&model).unwrap();
    fs::write(path("short.safetensors"), &whole[..whole.len() - 1]).unwrap();
    fs::write(path("broken.safetensors"), &whole[..40]).unwrap();
    fs::write(path("a.parquet"), b"PAR1 and more").unwrap();
    for (name, expected) in [
        ("short.safetensors", ErrorKind::Damaged),
        ("broken.safetensors", ErrorKind::Damaged),
        ("a.parquet", ErrorKind::Unsupported),
    ] {
        assert_eq!(kind(tslice::open(path(name)).err()), expected, "{name}");
    }
}

#[test]
fn handles_say_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let file = tslice::open(model(folder.path())).unwrap();
    let embed = file.tensor("embed").unwrap();
    assert_eq!((embed.len(), embed.nbytes(), embed.is_empty()), (12, 48, false));
    let slice = embed.slice("[1:3]").unwrap().named("rows");
    assert_eq!((slice.name(), slice.len(), slice.nbytes()), (Some("rows"), 6, 24));
    let shown = format!("{slice:?}");
    assert!(shown.contains("\"rows\"") && shown.contains("[2, 3]"), "{shown}");
    for shown in [
        format!("{file:?}"),
        format!("{:?}", embed.edit(0).unwrap()),
        format!("{:?}", embed.edit(0).unwrap().fill(0).unwrap()),
        format!("{:?}", embed.all().read_chunks::<f32>(0, 2).unwrap()),
    ] {
        assert!(!shown.is_empty());
    }
}
