//! What programs do through the library's handles is what the program writes for the same.

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use tslice::{
    Casting, Cuts, DType, EditFault, Endian, Error, IndexTensor, JoinFault, MergeFault, Order,
};
use tslice::{
    ELLIPSIS, NEW_AXIS, ReadFault, Scalar, Slice, WriteOptions, step, write_concatenated,
    write_merged, write_stacked,
};

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
    same_as(dir, mine, "theirs.npy", args);
}

/// The same for another format than `.npy`.
fn same_as(dir: &TempDir, mine: &str, theirs: &str, args: &[&str]) {
    let args = [args, &["-f", "-o", theirs]].concat();
    tslice(dir.path(), &args).assert().success().stderr("");
    let read = |name: &str| fs::read(Path::new(dir.path()).join(name)).unwrap();
    assert!(read(mine) == read(theirs), "{args:?}");
}

#[test]
fn slices_are_joined_as_by_concat_and_stack() {
    let dir = folder();
    let out = dir.path().join("mine.npy");
    let force = WriteOptions::default().force(true);
    let [a, b, big] = ["a.npy", "b.npy", "big.npy"].map(|name| slice(&dir, name, ""));
    write_concatenated(&out, &[a.clone(), b.clone()], 0, &WriteOptions::default()).unwrap();
    same(&dir, "mine.npy", &["concat", "a.npy", "b.npy"]);
    for axis in [0, 1, -1] {
        let text = axis.to_string();
        write_concatenated(&out, &[a.clone(), big.clone(), a.clone()], axis, &force).unwrap();
        same(&dir, "mine.npy", &["concat", "a.npy", "big.npy", "a.npy", "--axis", &text]);
        write_stacked(&out, &[big.clone(), a.clone()], axis, &force).unwrap();
        same(&dir, "mine.npy", &["stack", "big.npy", "a.npy", "--axis", &text]);
    }
    let fortran = force.clone().order(Order::F);
    write_concatenated(&out, &[a.clone(), big.clone()], 1, &fortran).unwrap();
    same(&dir, "mine.npy", &["concat", "a.npy", "big.npy", "--axis", "1", "--order", "F"]);
    // lists, and an output that takes bytes in order only
    let [x, y] = ["a.npy", "big.npy"].map(|name| slice(&dir, name, "[[2, 0], ::-1]"));
    write_concatenated(&out, &[x.clone(), y.clone()], 1, &force).unwrap();
    let listed = ["concat", "a.npy", "big.npy", "--axis", "1", "--index", "[[2, 0], ::-1]"];
    same(&dir, "mine.npy", &listed);
    write_concatenated(dir.path().join("mine.csv"), &[x, y], 1, &WriteOptions::default()).unwrap();
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
    let gathered = gathered.take([2, 0], 1).unwrap();
    write_concatenated(
        &out,
        &[column.clone(), turned, gathered.split(0, &Cuts::At(vec![3])).unwrap()[0].clone()],
        1,
        &WriteOptions::default(),
    )
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
    let misfit = fault(write_concatenated(&out, &[a.clone(), b], 1, &WriteOptions::default()));
    assert!(matches!(misfit, JoinFault::Shape { number: 1, .. }), "{misfit}");
    let misfit = fault(write_concatenated(&out, &[a, column], 1, &WriteOptions::default()));
    assert!(matches!(misfit, JoinFault::DType { number: 1, .. }), "{misfit}");
    assert!(matches!(
        fault(write_concatenated(&out, &[], 0, &WriteOptions::default())),
        JoinFault::Nothing
    ));
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
    let read = |name: &str| file.tensor(name).unwrap().all().read::<i32>().unwrap();
    assert_eq!((read("x"), read("y")), (vec![1, 2, 3], vec![6, 5, 4]));
    // a file of another name than its format, and one that is there, are refused
    let change = y.edit("[0]").unwrap().fill(0).unwrap();
    let refused = change.write(dir.path().join("out.npy")).unwrap_err();
    assert!(matches!(refused.cause.downcast_ref(), Some(EditFault::CopyName { .. })), "{refused}");
    change.write(&path).unwrap_err();
    assert!(y.edit("[0]").unwrap().fill("x").is_err());
}

#[test]
fn numbers_index_as_texts_do() {
    let dir = folder();
    let a = tslice::open(dir.path().join("a.npy")).unwrap().only().unwrap();
    let read = |slice: Result<Slice, Error>| {
        let slice = slice.unwrap();
        (slice.shape().to_vec(), slice.read::<f32>().unwrap())
    };
    let same = |numbers, text: &str| assert_eq!(read(numbers), read(a.slice(text)), "{text}");
    same(a.slice(2), "[2]");
    same(a.slice(-1i64), "[-1]");
    same(a.slice((1usize, 2u64)), "[1, 2]");
    same(a.slice(1..3), "[1:3]");
    same(a.slice((.., -2..)), "[:, -2:]");
    same(a.slice((..=1, ..=-1)), "[:2, :]");
    same(a.slice((1..=2, ..=-2)), "[1:3, :-1]");
    same(a.slice((.., 1..9)), "[:, 1:9]");
    let (last, first) = (3, 0);
    same(a.slice((step(last..first, -2), step(.., 2))), "[3:0:-2, ::2]");
    same(a.slice((NEW_AXIS, ELLIPSIS, 1)), "[None, ..., 1]");
    same(a.slice(([3, 0, 3], ..)), "[[3, 0, 3]]");
    same(a.slice((vec![true, false, true, true], 0)), "[[True, False, True, True], 0]");
    same(a.slice(()), "");
    for wrong in [a.slice((0, 0, 0)), a.slice(4), a.slice(u64::MAX), a.slice(step(.., 0))] {
        let error = wrong.err().unwrap();
        assert!(error.to_string().starts_with(&dir.path().join("a.npy").display().to_string()));
    }
}

#[test]
fn a_slice_of_a_slice_is_the_composed_one() {
    let dir = folder();
    let path = |name: &str| dir.path().join(name);
    let cube: Vec<f32> = (0..4 * 5 * 6u16).map(f32::from).collect();
    let bytes: Vec<u8> = cube.iter().flat_map(|it| it.to_le_bytes()).collect();
    write_npy(&path("cube.npy"), &F32, &[4, 5, 6], &bytes);
    let cube = tslice::open(path("cube.npy")).unwrap().only().unwrap();
    // each beside the same in one step
    let composed = [
        ("[1:, ::-2]", "[0, 1:, 2]", "[1, 2::-2, 2]"),
        ("[..., None, 1:5:2]", "[:, -1, 0, ::-1]", "[:, -1, 3:0:-2]"),
        ("[:0]", "[:, 1]", "[:0, 1]"),
        ("[[3, 1], 2:]", "[1, ::2]", "[1, 2::2]"),
        ("[2, 1:]", "[[0, -1, 0], 1]", "[2, [1, 4, 1], 1]"),
        ("[:, [True, False, True, False, True]]", "[::3, 1]", "[::3, 2]"),
    ];
    for (first, second, both) in composed {
        let (first, both) = (cube.slice(first).unwrap(), cube.slice(both).unwrap());
        let second = first.slice(second).unwrap();
        assert_eq!(second.shape(), both.shape(), "{first:?}", first = first.shape());
        assert_eq!(second.read::<f32>().unwrap(), both.read::<f32>().unwrap());
    }
    // transposed, cast, taken from, and once more
    let turned = cube.slice("[1:3]").unwrap().transpose(&[2, 0, 1]).unwrap();
    let cast = turned.cast(&I32, Casting::Unsafe).unwrap().slice((.., 1)).unwrap();
    let rows = cast.take([5, 0], 0).unwrap().slice((.., ..2)).unwrap();
    assert_eq!(rows.read::<i32>().unwrap(), [65, 71, 60, 66]);
    assert_eq!(rows.read_bytes().unwrap().len(), 16);
    rows.write(path("rows.npy.npy")).unwrap();
    assert!(turned.slice((.., 2)).is_err());
}

#[test]
fn elements_go_to_memory_that_there_is() {
    let dir = folder();
    let (a, big) = (slice(&dir, "a.npy", "[1:, ::2]"), slice(&dir, "big.npy", "[1]"));
    let mut memory = [0f32; 6];
    a.read_into(&mut memory).unwrap();
    assert_eq!(memory, [3.0, 5.0, 6.0, 8.0, 9.0, 11.0]);
    big.read_into(&mut memory[..3]).unwrap();
    assert_eq!(memory[..3], [33.0, 34.0, 35.0]);
    assert_eq!(big.read_bytes().unwrap()[..4], 33f32.to_be_bytes());
    // cast to the other byte order
    let swapped = DType::Scalar(Scalar::I16, Endian::Big);
    let cast = a.cast(&swapped, Casting::Unsafe).unwrap();
    assert_eq!(cast.read::<i16>().unwrap(), [3, 5, 6, 8, 9, 11]);
    assert_eq!(cast.read_bytes().unwrap()[..4], [0, 3, 0, 5]);
    let fault = |result: Result<(), Error>| result.unwrap_err().cause.downcast().unwrap();
    let wrong = fault(a.read_into(&mut memory[..5]));
    assert!(matches!(wrong, ReadFault::Count { given: 5, has: 6 }), "{wrong}");
    let wrong = fault(a.read_into(&mut [0u32; 6]));
    assert!(matches!(wrong, ReadFault::DType { .. }), "{wrong}");
}

#[test]
fn many_elements_are_read_by_any_number_of_threads() {
    let dir = folder();
    let path = dir.path().join("wide.npy");
    let big = DType::Scalar(Scalar::I64, Endian::Big);
    let numbers: Vec<i64> = (0..1 << 20).collect();
    let bytes: Vec<u8> = numbers.iter().flat_map(|it| it.to_be_bytes()).collect();
    write_npy(&path, &big, &[1 << 10, 1 << 10], &bytes);
    let file = tslice::open(&path).unwrap();
    for threads in [0, 1, 3] {
        let wide = file.threads(threads).only().unwrap();
        assert!(wide.all().read::<i64>().unwrap() == numbers);
        assert!(wide.all().read_bytes().unwrap() == bytes);
        let turned = wide.all().transpose(&[1, 0]).unwrap().read::<i64>().unwrap();
        assert!(
            turned.iter().enumerate().all(|(at, it)| *it as usize == at % 1024 * 1024 + at / 1024)
        );
        let rows: Vec<u64> = (0..1024).rev().collect();
        let taken = wide.take(&rows, 0).unwrap().read::<i64>().unwrap();
        assert!(taken[..1024] == numbers[1023 * 1024..] && taken[1023 * 1024..] == numbers[..1024]);
        let chunks = wide.all().read_chunks::<i64>(1, 300).unwrap();
        let chunks: Vec<Vec<i64>> = chunks.collect::<Result<_, _>>().unwrap();
        assert_eq!(
            chunks.iter().map(Vec::len).collect::<Vec<_>>(),
            [300, 300, 300, 124].map(|it| it << 10)
        );
        assert_eq!(chunks[3][124..126], [1024 + 900, 1024 + 901]);
    }
    // an error is the last item, and nobody need take them all
    let wide = file.only().unwrap();
    let mut wrong = wide.all().read_chunks::<f32>(0, 1).unwrap();
    assert!(wrong.next().is_some_and(|chunk| chunk.is_err()) && wrong.next().is_none());
    assert!(wide.all().read_chunks::<i64>(0, 1).unwrap().next().is_some_and(|chunk| chunk.is_ok()));
    assert!(wide.all().read_chunks::<i64>(2, 1).is_err());
    let listed = wide.slice("[[7, 2, 5], :4]").unwrap().read_chunks::<i64>(0, 2).unwrap();
    assert_eq!(listed.map(|it| it.unwrap()[0] >> 10).collect::<Vec<_>>(), [7, 5]);
    assert_eq!(wide.slice("[:0]").unwrap().read_chunks::<i64>(0, 2).unwrap().count(), 0);
}

#[test]
fn slices_are_merged_as_by_merge() {
    let dir = folder();
    let path = |name: &str| dir.path().join(name);
    let [a, b, big] = ["a.npy", "b.npy", "big.npy"].map(|name| slice(&dir, name, ""));
    let force = WriteOptions::default().force(true);
    let all = [a.clone(), b.clone(), big.clone()];
    write_merged(path("mine.safetensors"), &all, &WriteOptions::default()).unwrap();
    let inputs = ["merge", "a.npy", "b.npy", "big.npy"];
    same_as(&dir, "mine.safetensors", "theirs.safetensors", &inputs);
    write_merged(path("mine.npz"), &all, &WriteOptions::default()).unwrap();
    same_as(&dir, "mine.npz", "theirs.npz", &inputs);
    let bf16 = tslice::parse_dtype("bfloat16").unwrap();
    let cast = all.clone().map(|slice| slice.cast(&bf16, Casting::SameKind).unwrap());
    write_merged(path("mine/"), &cast, &force.shard_size(40)).unwrap();
    let args =
        [&inputs[..], &["--cast", "bfloat16", "--shard-size", "40", "-o", "theirs/"]].concat();
    tslice(dir.path(), &args).assert().success();
    let names = |folder: &str| {
        let names = fs::read_dir(path(folder)).unwrap().map(|it| it.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    };
    assert_eq!(names("mine"), names("theirs"));
    for name in names("mine") {
        let read = |folder: &str| fs::read(path(folder).join(&name)).unwrap();
        assert!(read("mine") == read("theirs"), "{name:?}");
    }
    // of one name, renamed, and where one tensor is held
    let twice = write_merged(path("twice.npz"), &[a.clone(), a.clone()], &WriteOptions::default())
        .unwrap_err();
    assert!(matches!(twice.cause.downcast_ref(), Some(MergeFault::Twice { .. })), "{twice}");
    let parts = [a.slice(0).unwrap().named("first"), a.slice("[[3, 1]]").unwrap()];
    write_merged(path("parts.safetensors"), &parts, &WriteOptions::default()).unwrap();
    let parts = tslice::open(path("parts.safetensors")).unwrap();
    let read = |name: &str| parts.tensor(name).unwrap().all().read::<f32>().unwrap();
    assert_eq!(read("first"), [0.0, 1.0, 2.0]);
    assert_eq!(read("a"), [9.0, 10.0, 11.0, 3.0, 4.0, 5.0]);
    assert!(write_merged(path("several.npy"), &all, &WriteOptions::default()).is_err());
    assert!(write_merged(path("none.npz"), &[], &WriteOptions::default()).is_err());
}

/// The index of the first position along an axis.
fn first_along(axis: usize) -> String {
    format!("[{}:1]", ":, ".repeat(axis))
}

#[test]
fn a_list_of_one_takes_what_longer_ones_take() {
    let dir = folder();
    let a = tslice::open(dir.path().join("a.npy")).unwrap().only().unwrap();
    for axis in 0..a.shape().len() {
        let len = a.shape()[axis] as i64;
        let taken = |at: [i64; 2]| a.take(at, axis as i64).unwrap().read::<f32>().unwrap();
        assert_eq!(taken([-1, -len]), taken([len - 1, 0]));
        for at in -len..len {
            let one = a.take([at], axis as i64).unwrap();
            let two = a.take([at, at], axis as i64).unwrap();
            assert_eq!((one.shape()[axis], two.shape()[axis]), (1, 2));
            let first = two.slice(first_along(axis).as_str()).unwrap();
            assert_eq!(one.read::<f32>().unwrap(), first.read::<f32>().unwrap());
        }
        for at in [len, -len - 1] {
            let read = a.take([at], axis as i64).unwrap().read::<f32>();
            let longer = a.take([at, 0], axis as i64).unwrap().read::<f32>();
            assert!(read.is_err() && longer.is_err(), "{at}");
        }
    }
    assert!(a.take([0], a.shape().len() as i64).is_err());
}

#[test]
fn errors_name_the_file() {
    let dir = folder();
    let a = tslice::open(dir.path().join("a.npy")).unwrap().only().unwrap();
    let name = dir.path().join("a.npy").display().to_string();
    let errors = [
        a.slice("[9]").err(),
        a.slice("[0,,]").err(),
        a.take([0], 5).err(),
        a.take([9], 0).unwrap().read::<f32>().err(),
        a.slice("[0]").unwrap().slice(9).err(),
        a.all().transpose(&[0]).err(),
        a.all().cast(&DType::Scalar(Scalar::Bool, Endian::Little), Casting::Safe).err(),
        a.all().split(3, &Cuts::Parts(2)).err(),
        a.all().read::<i8>().err(),
        a.edit("[").err(),
        a.edit(0).unwrap().fill("x").err(),
        a.edit(9).unwrap().fill(0).unwrap().in_place().err(),
        a.scatter([9], &a.slice(0).unwrap()).unwrap().write(dir.path().join("b.npy")).err(),
        a.field("x").err(),
    ];
    for (number, error) in errors.into_iter().enumerate() {
        let said = error.unwrap().to_string();
        assert!(said.starts_with(&format!("{name}: ")), "{number}: {said}");
    }
    // an output, where its options are at fault
    let out = dir.path().join("out.xyz");
    let named = format!("{}: ", out.display());
    let slices = [a.all()];
    for error in
        [a.all().write(&out), write_concatenated(&out, &slices, 0, &WriteOptions::default())]
    {
        assert!(error.unwrap_err().to_string().starts_with(&named));
    }
}
