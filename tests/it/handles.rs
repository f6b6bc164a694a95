//! What programs do through the library's handles is what the program writes for the same.

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use tslice::{
    Casting, Cuts, DType, EditFault, Endian, Error, IndexTensor, JoinFault, Order, Scalar, Slice,
};
use tslice::{WriteOptions, concatenate, stack};

use crate::inputs::{F32, I32, I64, U8, floats, integers, write_npy, write_safetensors};
use crate::program::tslice;

/// A folder with `a.npy` (4 x 3) and `b.npy` (2 x 3) of float32, `big.npy` (4 x 3) in the other byte
/// order, `rows.npy` (2) of int64 and `column.npy` (4 x 1) of uint8.
fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    write_npy(&path("a.npy"), &F32, &[4, 3], &floats(0..12));
    write_npy(&path("b.npy"), &F32, &[2, 3], &floats(20..26));
    let big = DType::Scalar(Scalar::F32, Endian::Big);
    let swapped: Vec<u8> = (30..42u16).flat_map(|it| f32::from(it).to_be_bytes()).collect();
    write_npy(&path("big.npy"), &big, &[4, 3], &swapped);
    write_npy(&path("rows.npy"), &I64, &[2], &integers(&[3, 1]));
    write_npy(&path("column.npy"), &U8, &[4, 1], &[1, 2, 3, 4]);
    dir
}

fn slice(dir: &TempDir, name: &str, index: &str) -> Slice {
    tslice::open(dir.path().join(name)).unwrap().only().unwrap().slice(index).unwrap()
}

/// Hold the file `mine` against what the program writes with these arguments.
fn same(dir: &TempDir, mine: &str, args: &[&str]) {
    let args = [args, &["-f", "-o", "theirs.npy"]].concat();
    tslice(dir.path(), &args).assert().success().stderr("");
    let read = |name: &str| fs::read(Path::new(dir.path()).join(name)).unwrap();
    assert!(read(mine) == read("theirs.npy"), "{args:?}");
}

#[test]
fn slices_are_joined_as_by_concat_and_stack() {
    let dir = folder();
    let out = dir.path().join("mine.npy");
    let force = WriteOptions::default().force(true);
    let [a, b, big] = ["a.npy", "b.npy", "big.npy"].map(|name| slice(&dir, name, ""));
    concatenate(&[a.clone(), b.clone()], 0).write(&out).unwrap();
    same(&dir, "mine.npy", &["concat", "a.npy", "b.npy"]);
    for axis in [0, 1, -1] {
        let text = axis.to_string();
        concatenate(&[a.clone(), big.clone(), a.clone()], axis).write_with(&out, &force).unwrap();
        same(&dir, "mine.npy", &["concat", "a.npy", "big.npy", "a.npy", "--axis", &text]);
        stack(&[big.clone(), a.clone()], axis).write_with(&out, &force).unwrap();
        same(&dir, "mine.npy", &["stack", "big.npy", "a.npy", "--axis", &text]);
    }
    let fortran = force.clone().order(Order::F);
    concatenate(&[a.clone(), big.clone()], 1).write_with(&out, &fortran).unwrap();
    same(&dir, "mine.npy", &["concat", "a.npy", "big.npy", "--axis", "1", "--order", "F"]);
    // lists, and an output that takes bytes in order only
    let [x, y] = ["a.npy", "big.npy"].map(|name| slice(&dir, name, "[[2, 0], ::-1]"));
    concatenate(&[x.clone(), y.clone()], 1).write_with(&out, &force).unwrap();
    let listed = ["concat", "a.npy", "big.npy", "--axis", "1", "--index", "[[2, 0], ::-1]"];
    same(&dir, "mine.npy", &listed);
    concatenate(&[x, y], 1).write(dir.path().join("mine.csv")).unwrap();
    let args = [&listed[..], &["-o", "theirs.csv"]].concat();
    tslice(dir.path(), &args).assert().success();
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!(read("mine.csv"), read("theirs.csv"));
}

#[test]
fn slices_of_any_kind_are_joined() {
    let dir = folder();
    let out = dir.path().join("mine.npy");
    // of one file, transposed, and cast to the dtype of the first
    let turned = slice(&dir, "a.npy", "[1:3]").transpose(&[1, 0]).unwrap();
    let column = slice(&dir, "column.npy", "[:3]").cast(&F32, Casting::Safe).unwrap();
    let gathered = tslice::open(dir.path().join("a.npy")).unwrap().only().unwrap();
    let gathered = gathered.take(&[2, 0], 1).unwrap();
    concatenate(
        &[column.clone(), turned, gathered.split(0, &Cuts::At(vec![3])).unwrap()[0].clone()],
        1,
    )
    .write(&out)
    .unwrap();
    let all: Vec<f32> = slice(&dir, "mine.npy", "").read().unwrap();
    let expected = [1.0, 3.0, 6.0, 2.0, 0.0, 2.0, 4.0, 7.0, 5.0, 3.0, 3.0, 5.0, 8.0, 8.0, 6.0];
    assert_eq!(all, expected);
}

#[test]
fn slices_that_do_not_fit_are_refused() {
    let dir = folder();
    let out = dir.path().join("mine.npy");
    let fault =
        |result: Result<(), Error>| result.unwrap_err().cause.downcast::<JoinFault>().unwrap();
    let [a, b, column] = ["a.npy", "b.npy", "column.npy"].map(|name| slice(&dir, name, ""));
    let misfit = fault(concatenate(&[a.clone(), b], 1).write(&out));
    assert!(matches!(misfit, JoinFault::Shape { number: 1, .. }), "{misfit}");
    let misfit = fault(concatenate(&[a, column], 1).write(&out));
    assert!(matches!(misfit, JoinFault::DType { number: 1, .. }), "{misfit}");
    assert!(matches!(fault(concatenate(&[], 0).write(&out)), JoinFault::Nothing));
    assert!(!out.exists());
}

#[test]
fn parts_are_those_of_split_and_appear_together() {
    let dir = folder();
    let a = slice(&dir, "a.npy", "[:, ::-1]");
    let read = |name: &str| fs::read(dir.path().join(name)).unwrap();
    for axis in [0, 1] {
        let parts = a.split(axis, &Cuts::Parts(3)).unwrap();
        let force = WriteOptions::default().force(true);
        tslice::write_all(dir.path().join("mine-{}.npy"), &parts, &force).unwrap();
        let axis = axis.to_string();
        let args = ["split", "a.npy", "[:, ::-1]", "--parts", "3", "-f", "-o", "theirs-{}.npy"];
        tslice(dir.path(), &[&args[..], &["--axis", &axis]].concat()).assert().success();
        for number in 0..3 {
            let [mine, theirs] = ["mine", "theirs"].map(|it| format!("{it}-{number}.npy"));
            assert_eq!(read(&mine), read(&theirs), "{axis}, {number}");
        }
    }
    // of a transposed slice, and with more parts than positions
    let parts = a.transpose(&[1, 0]).unwrap().split(-2, &Cuts::Parts(4)).unwrap();
    let lens: Vec<u64> = parts.iter().map(|part| part.shape()[0]).collect();
    assert_eq!(lens, [1, 1, 1, 0]);
    assert_eq!(parts[1].read::<f32>().unwrap(), [1.0, 4.0, 7.0, 10.0]);
    assert!(parts[3].read::<f32>().unwrap().is_empty());
    // one that exists keeps all from being written
    fs::write(dir.path().join("x-2.npy"), "there").unwrap();
    tslice::write_all(dir.path().join("x-{}.npy"), &parts, &Default::default()).unwrap_err();
    assert!(!dir.path().join("x-0.npy").exists());
}

#[test]
fn changes_are_those_of_assign_and_scatter() {
    let dir = folder();
    let path = |name: &str| dir.path().join(name);
    let target = tslice::open(path("a.npy")).unwrap().only().unwrap();
    let force = WriteOptions::default().force(true);
    let value = slice(&dir, "b.npy", "");
    let change = target.edit("[1::2]").unwrap().assign(&value).unwrap();
    change.write(path("mine.npy")).unwrap();
    same(&dir, "mine.npy", &["assign", "a.npy", "[1::2]", "--value", "b.npy"]);
    let listed = target.edit("[@rows.npy]");
    assert!(listed.is_err(), "the path is that of the process");
    let rows = format!("[@{}, ::-1]", path("rows.npy").display());
    let change = target.edit(&rows).unwrap().assign(&value).unwrap();
    change.write_with(path("mine.npy"), &force).unwrap();
    same(&dir, "mine.npy", &["assign", "a.npy", "[@rows.npy, ::-1]", "--value", "b.npy"]);
    let change = target.edit("[..., -1]").unwrap().fill(-1.5).unwrap();
    change.write_with(path("mine.npy"), &force).unwrap();
    same(&dir, "mine.npy", &["assign", "a.npy", "[..., -1]", "--fill", "-1.5"]);
    // a value of another dtype is cast, and broadcast
    let change = target.edit("").unwrap().assign(&slice(&dir, "column.npy", "")).unwrap();
    change.write_with(path("mine.npy"), &force).unwrap();
    let cast = ["--value", "column.npy", "--broadcast", "--cast", "f32"];
    same(&dir, "mine.npy", &[&["assign", "a.npy"][..], &cast].concat());

    let positions = IndexTensor::new(&[3, 0], vec![2, 1]);
    let change = target.scatter(positions, &value).unwrap();
    change.write_with(path("mine.npy"), &force).unwrap();
    same(&dir, "mine.npy", &["scatter", "a.npy", "--indices", "[[3], [0]]", "--values", "b.npy"]);
    change.in_place().unwrap();
    assert_eq!(fs::read(path("a.npy")).unwrap(), fs::read(path("mine.npy")).unwrap());
}

#[test]
fn a_tensor_of_several_is_changed_in_place_by_its_own_elements() {
    let dir = folder();
    let path = dir.path().join("model.safetensors");
    let header = r#"{"x":{"dtype":"I32","shape":[3],"data_offsets":[0,12]},"y":{"dtype":"I32","shape":[3],"data_offsets":[12,24]}}"#;
    let data: Vec<u8> = (1..7i32).flat_map(i32::to_le_bytes).collect();
    write_safetensors(&path, header, &data);
    let file = tslice::open(&path).unwrap();
    let y = file.tensor("y").unwrap();
    assert_eq!(*y.dtype(), I32);
    y.edit("").unwrap().assign(&y.slice("[::-1]").unwrap()).unwrap().in_place().unwrap();
    let read = |name: &str| file.tensor(name).unwrap().all().unwrap().read::<i32>().unwrap();
    assert_eq!((read("x"), read("y")), (vec![1, 2, 3], vec![6, 5, 4]));
    // a file of another name than its format, and one that is there, are refused
    let change = y.edit("[0]").unwrap().fill(0).unwrap();
    let refused = change.write(dir.path().join("out.npy")).unwrap_err();
    assert!(matches!(refused.cause.downcast_ref(), Some(EditFault::CopyName { .. })), "{refused}");
    change.write(&path).unwrap_err();
    assert!(y.edit("[0]").unwrap().fill("x").is_err());
}
