//! `--cast`, through the program and through the library.

use std::fs;
use std::path::Path;

use tslice::cast::Casting;
use tslice::dtype::{DType, Endian, Scalar};
use tslice::formats::npy;
use tslice::shape::Order;

use crate::inputs::write_safetensors;
use crate::program::tslice;

/// A `.npy` of float32 numbers in big-endian order.
fn write_floats(path: &Path, shape: &[u64], numbers: &[f32]) {
    let mut file = npy::header(&DType::Scalar(Scalar::F32, Endian::Big), shape, Order::C).unwrap();
    file.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
    fs::write(path, file).unwrap();
}

/// The bytes are those that NumPy's astype gives, but for 1e10 and NaN, which it leaves open.
#[test]
fn floats_become_what_they_are_cast_to() {
    let dir = tempfile::tempdir().unwrap();
    write_floats(&dir.path().join("a.npy"), &[2, 3], &[1.5, -2.75, 300.0, 1e10, f32::NAN, -0.0]);
    for (to, rule, expected) in [
        ("bfloat16", "same-kind", &[0xc0, 0x3f, 0x30, 0xc0, 0x96, 0x43, 0x15, 0x50][..]),
        (">f2", "same-kind", &[0x3e, 0x00, 0xc1, 0x80, 0x5c, 0xb0, 0x7c, 0x00]),
        ("float8_e4m3fn", "same-kind", &[0x3c, 0xc3, 0x79, 0x7f]),
        ("uint8", "unsafe", &[1, 0, 255, 255, 0, 0]),
        (">i2", "unsafe", &[0, 1, 255, 254, 1, 44, 127, 255, 0, 0, 0, 0]),
        ("bool", "unsafe", &[1, 1, 1, 1, 1, 0]),
        ("complex64", "safe", &[0, 0, 192, 63, 0, 0, 0, 0]),
    ] {
        let args = ["a.npy", "--cast", to, "--casting", rule, "-o", "out.bin", "-f"];
        tslice(dir.path(), &args).assert().success().stderr("");
        let found = fs::read(dir.path().join("out.bin")).unwrap();
        assert_eq!(found[..expected.len()], *expected, "{to}");
    }
}

#[test]
fn a_checkpoint_is_converted_but_for_what_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let json = concat!(
        r#"{"norm":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"#,
        r#""a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},"#,
        r#""steps":{"dtype":"I64","shape":[],"data_offsets":[12,20]}}"#
    );
    let data: Vec<u8> = [1.0f32, 2.0, 3.0].iter().flat_map(|number| number.to_le_bytes()).collect();
    write_safetensors(&dir.path().join("m.safetensors"), json, &[&data[..], &[7; 8]].concat());
    let args = ["m.safetensors", "-t", "a", "-t", "steps", "--keep-rest"];
    let args = [&args[..], &["--cast", "float32:bfloat16", "-o", "out.safetensors"]].concat();
    tslice(dir.path(), &args).assert().success().stderr("");
    let file = fs::read(dir.path().join("out.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&file).unwrap();
    assert_eq!(file.tensor("norm").unwrap().data(), &data[..4]);
    assert_eq!(file.tensor("a").unwrap().dtype(), safetensors::Dtype::BF16);
    assert_eq!(file.tensor("a").unwrap().data(), [0, 0x40, 0x40, 0x40]);
    assert_eq!(file.tensor("steps").unwrap().data(), [7; 8]);
}

#[test]
fn values_are_cast_to_the_dtype_of_the_target() {
    let dir = tempfile::tempdir().unwrap();
    write_floats(&dir.path().join("a.npy"), &[2], &[1.5, -2.0]);
    let mut target =
        npy::header(&DType::Scalar(Scalar::F64, Endian::Little), &[4], Order::C).unwrap();
    target.extend([0; 32]);
    fs::write(dir.path().join("t.npy"), &target).unwrap();
    let args =
        ["assign", "t.npy", "[3:1:-1]", "--value", "a.npy", "--cast", "float64", "--in-place"];
    tslice(dir.path(), &args).assert().success().stderr("");
    let args = ["scatter", "t.npy", "--indices", "[[0], [1]]", "--values", "a.npy"];
    let args = [&args[..], &["--cast", "float32:float64", "--in-place"]].concat();
    tslice(dir.path(), &args).assert().success().stderr("");
    let numbers = tslice::open(dir.path().join("t.npy")).unwrap().only().unwrap().all();
    assert_eq!(numbers.read::<f64>().unwrap(), [1.5, -2.0, -2.0, 1.5]);
    // the value is not what the target holds after the cast either
    let args = ["assign", "t.npy", "[:2]", "--value", "a.npy", "--cast", "float16", "--in-place"];
    let told = "tslice: a.npy: the value has dtype float16, the target has float64\n\
                hint: --cast float64 converts it\n";
    tslice(dir.path(), &args).assert().code(1).stderr(told);
}

#[test]
fn slices_are_read_as_another_dtype() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.npy");
    write_floats(&path, &[3], &[1.9, -2.9, 1e10]);
    let slice = tslice::open(&path).unwrap().only().unwrap().all();
    let int = DType::Scalar(Scalar::I32, Endian::Little);
    assert!(slice.cast(&int, Casting::SameKind).is_err());
    let cast = slice.cast(&int, Casting::Unsafe).unwrap();
    assert_eq!(cast.dtype(), &int);
    assert_eq!(cast.read::<i32>().unwrap(), [1, -2, i32::MAX]);
    let wide = slice.cast(&DType::Scalar(Scalar::F64, Endian::Big), Casting::Safe).unwrap();
    assert_eq!(wide.read::<f64>().unwrap(), [f64::from(1.9f32), f64::from(-2.9f32), 1e10]);
    let same = slice.cast(&DType::Scalar(Scalar::F32, Endian::Little), Casting::Safe).unwrap();
    assert_eq!(same.read::<f32>().unwrap(), [1.9, -2.9, 1e10]);
}

/// The bytes are those of NumPy's astype.
#[test]
fn strings_and_times_become_longer_and_shorter() {
    let dir = tempfile::tempdir().unwrap();
    let times = |numbers: [i64; 3]| numbers.map(i64::to_le_bytes).concat();
    let points = |text: &str| text.chars().flat_map(|it| u32::from(it).to_be_bytes()).collect();
    let wide: Vec<u8> = points("aé\0\0b\0");
    for (from, input, to, expected) in [
        ("S3", b"abcd\0\0".to_vec(), "S2", b"abd\0".to_vec()),
        ("S2", b"abc\0".to_vec(), "S3", b"ab\0c\0\0".to_vec()),
        (">U3", wide.clone(), "<U1", vec![b'a', 0, 0, 0, 0, 0, 0, 0]),
        (">U2", wide, ">U1", points("a\0b")),
        ("M8[s]", times([-1, 86_400, i64::MIN]), "M8[D]", times([-1, 1, i64::MIN])),
        ("M8[D]", times([59, 58, -1]), "M8[M]", times([2, 1, -1])),
        ("m8[25s]", times([-1, 1, 2]), "m8[10s]", times([-3, 2, 5])),
    ] {
        fs::write(dir.path().join("in.bin"), input).unwrap();
        let rule = format!("{from}:{to}");
        for cast in [to, rule.as_str()] {
            let args = ["in.bin", "--dtype", from, "--cast", cast, "-o", "out.bin", "-f"];
            tslice(dir.path(), &args).assert().success().stderr("");
            assert_eq!(fs::read(dir.path().join("out.bin")).unwrap(), expected, "{from} to {to}");
        }
    }
}

/// Every flag reads the names of dtypes in one way, and knows none that means two.
#[test]
fn dtypes_have_one_vocabulary_in_all_flags() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.bin"), [0; 16]).unwrap();
    let descr = || {
        let file = fs::read(dir.path().join("out.npy")).unwrap();
        let header = String::from_utf8_lossy(&file[..64]).into_owned();
        header.split('\'').nth(3).unwrap().to_owned()
    };
    for (name, expected) in [
        ("bf16", "<V2"),
        ("BF16", "<V2"),
        ("f32", "<f4"),
        ("fp16", "<f2"),
        ("half", "<f2"),
        ("F16", "<f2"),
        ("i64", "<i8"),
        ("<i8", "<i8"),
        (">i8", ">i8"),
        ("I8", "|i1"),
        ("U8", "|u1"),
        ("F8_E4M3", "|V1"),
        ("float8_e5m2", "|V1"),
        ("f8", "<f8"),
        ("c8", "<c8"),
        ("float", "<f8"),
        ("int", "<i8"),
        ("bool", "|b1"),
    ] {
        let output = ["--casting", "unsafe", "-o", "out.npy", "-f"];
        for to in [name.to_owned(), format!("U8:{name}")] {
            let args = ["a.bin", "--dtype", "uint8", "--cast", &to];
            tslice(dir.path(), &[&args[..], &output].concat()).assert().success().stderr("");
            assert_eq!(descr(), expected, "--cast {to}");
        }
        let args = ["a.bin", "--dtype", name, "-o", "out.npy", "-f"];
        let run = tslice(dir.path(), &args).assert().success();
        let is_noted = String::from_utf8_lossy(&run.get_output().stderr).contains("NumPy has no");
        assert_eq!(is_noted, expected.contains('V'), "--dtype {name}");
        assert_eq!(descr(), expected, "--dtype {name}");
        let from = format!("{name}:>i2");
        let args = ["a.bin", "--dtype", name, "--cast", &from];
        tslice(dir.path(), &[&args[..], &output].concat()).assert().success().stderr("");
        assert_eq!(descr(), ">i2", "--cast {from}");
    }
    for name in ["i8", "u8", "f16"] {
        for args in [["--dtype", name], ["--cast", name]] {
            let args = [&["a.bin"], &args[..], &["-o", "other.npy"]].concat();
            tslice(dir.path(), &args).assert().code(2);
        }
    }
}

/// Each number exactly.
#[test]
fn floats_of_8_bits_are_written_as_text() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.bin"), [0x00, 0x80, 0x01, 0x39, 0x7e, 0x7f, 0xb8]).unwrap();
    for (dtype, csv) in [
        ("float8_e4m3fn", "0.0\n-0.0\n0.001953125\n1.125\n448.0\nnan\n-1.0\n"),
        ("float8_e5m2", "0.0\n-0.0\n1.52587890625e-5\n0.625\nnan\nnan\n-0.5\n"),
    ] {
        let args = ["a.bin", "--dtype", dtype, "--to", "csv"];
        tslice(dir.path(), &args).assert().success().stdout(csv);
    }
    let json = "[0.0, -0.0, 0.001953125, 1.125, 448.0, \"NaN\", -1.0]\n";
    let args = ["a.bin", "--dtype", "F8_E4M3", "--to", "json"];
    tslice(dir.path(), &args).assert().success().stdout(json);
}

/// The sign of NaN is kept, as by ml_dtypes.
#[test]
fn nan_of_8_bits_keep_their_sign() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.bin"), [0x7f, 0xff]).unwrap();
    for (to, expected) in [
        (">f2", &[0x7e, 0x00, 0xfe, 0x00][..]),
        (">f4", &[0x7f, 0xc0, 0, 0, 0xff, 0xc0, 0, 0]),
        ("float8_e5m2", &[0x7e, 0xfe]),
    ] {
        let args = ["a.bin", "--dtype", "float8_e4m3fn", "--cast", to, "--to", "raw"];
        tslice(dir.path(), &args).assert().success().stdout(expected.to_vec());
    }
}

/// The bytes of an output that is raw.
fn raw(dir: &Path, args: &[&str]) -> Vec<u8> {
    let args = [args, &["-o", "raw.bin", "-f"]].concat();
    tslice(dir, &args).assert().success().stderr("");
    fs::read(dir.join("raw.bin")).unwrap()
}

#[test]
fn elements_are_read_as_another_dtype_of_their_size() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let float_bytes = |numbers: &[f32]| -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    };
    write_floats(&dir.join("a.npy"), &[4], &[1.5, -2.0, 0.25, 3.0]);
    let args = ["a.npy", "--cast", "bfloat16", "-o", "v2.npy"];
    tslice(dir, &args).assert().success().stderr("");
    let numbers = float_bytes(&[1.5, -2.0, 0.25, 3.0]);
    let as_numbers = ["--as", "bfloat16", "--cast", "float32"];
    let with = |args: &[&'static str]| [args, &as_numbers[..]].concat();
    assert_eq!(raw(dir, &with(&["v2.npy"])), numbers);
    assert_eq!(raw(dir, &with(&["v2.npy", "[::-3]"])), float_bytes(&[3.0, 1.5]));
    let listed = with(&["gather", "v2.npy", "--axis", "0", "--indices", "[2, 0]"]);
    assert_eq!(raw(dir, &listed), float_bytes(&[0.25, 1.5]));
    assert_eq!(raw(dir, &with(&["concat", "v2.npy", "v2.npy"]))[..16], numbers);
    // no byte changes, and the dtype is that of the output
    let args = ["v2.npy", "--as", "BF16", "--name", "w", "-o", "w.safetensors"];
    tslice(dir, &args).assert().success().stderr("");
    let file = fs::read(dir.join("w.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&file).unwrap();
    assert_eq!(file.tensor("w").unwrap().dtype(), safetensors::Dtype::BF16);
    let v2 = fs::read(dir.join("v2.npy")).unwrap();
    assert_eq!(file.tensor("w").unwrap().data(), &v2[v2.len() - 8..]);
    let diff = ["diff", "v2.npy", "w.safetensors", "--as", "bfloat16"];
    tslice(dir, &diff).assert().success();
    let view = ["view", "v2.npy", "--as", "bfloat16"];
    let shown = "[1.5 -2 0.25 3]\nshape (4,), dtype bfloat16\n";
    tslice(dir, &view).assert().success().stdout(shown);
    // the header of a file that is changed stays as it is
    let fill = ["assign", "v2.npy", "[1]", "--as", "bfloat16", "--fill", "0.5", "--in-place"];
    tslice(dir, &fill).assert().success().stderr("");
    assert_eq!(fs::read(dir.join("v2.npy")).unwrap().len(), v2.len());
    assert_eq!(raw(dir, &with(&["v2.npy"])), float_bytes(&[1.5, 0.5, 0.25, 3.0]));
    // of several tensors those that are named
    let json = concat!(
        r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"#,
        r#""b":{"dtype":"I64","shape":[1],"data_offsets":[4,12]}}"#
    );
    write_safetensors(&dir.join("m.safetensors"), json, &[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
    let args = ["m.safetensors", "-t", "a", "--as", "uint32", "--keep-rest", "-o", "n.safetensors"];
    tslice(dir, &args).assert().success().stderr("");
    let file = fs::read(dir.join("n.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&file).unwrap();
    assert_eq!(file.tensor("a").unwrap().dtype(), safetensors::Dtype::U32);
    assert_eq!(file.tensor("b").unwrap().dtype(), safetensors::Dtype::I64);
    // a wrong size, and no dtype
    let said = "tslice: m.safetensors: tensor \"b\": --as uint32: its elements have 32 bits, those \
                of the file's int64 64\n";
    let args = ["info", "m.safetensors", "--as", "uint32"];
    tslice(dir, &args).assert().failure().code(1).stderr(said);
    tslice(dir, &["info", "m.safetensors", "--as", "i8"]).assert().failure().code(2);
}

#[test]
fn fields_are_read_as_another_dtype() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    // two items: a float32, two bfloat16 as V2, a structure of one V2
    let descr = "[('a', '<f4'), ('b', '|V2', (2,)), ('in', [('c', '|V2')])]";
    let header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (2,), }}\n");
    let halves = |numbers: &[f32]| -> Vec<u8> {
        numbers.iter().flat_map(|it| half::bf16::from_f32(*it).to_le_bytes()).collect()
    };
    let item = |a: f32, b: &[f32]| [&a.to_le_bytes()[..], &halves(b)].concat();
    let mut file = [b"\x93NUMPY\x01\0", &(header.len() as u16).to_le_bytes()[..]].concat();
    file.extend(
        [header.into_bytes(), item(1.0, &[1.5, -2.0, 3.0]), item(2.0, &[0.25, 4.0, 8.0])].concat(),
    );
    fs::write(dir.join("s.npy"), file).unwrap();
    let shown = |field, dtype| {
        let args = ["view", "s.npy", "--field", field, "--as", dtype];
        String::from_utf8(tslice(dir, &args).assert().success().get_output().stdout.clone())
            .unwrap()
    };
    assert_eq!(shown("b", "bfloat16"), "[[1.5 -2]\n [0.25 4]]\nshape (2, 2), dtype bfloat16\n");
    assert_eq!(shown("in.c", "bfloat16"), "[3 8]\nshape (2,), dtype bfloat16\n");
    assert_eq!(shown("a", "uint32"), "[1065353216 1073741824]\nshape (2,), dtype uint32\n");
    let args = ["view", "s.npy", "--field", "a", "--as", "bfloat16"];
    let said =
        "tslice: s.npy: --as bfloat16: its elements have 16 bits, those of the file's float32 32\n";
    tslice(dir, &args).assert().failure().code(1).stderr(said);
    let args = ["view", "s.npy", "--field", "d", "--as", "bfloat16"];
    let said = tslice(dir, &args).assert().failure().code(1).get_output().stderr.clone();
    assert!(String::from_utf8(said).unwrap().starts_with("tslice: s.npy: --field: "));
}

#[test]
fn void_elements_are_read_as_numbers_that_are_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("v2.npy");
    write_floats(&dir.path().join("a.npy"), &[2], &[1.5, -2.0]);
    let args = ["a.npy", "--cast", "bfloat16", "-o", "v2.npy"];
    tslice(dir.path(), &args).assert().success().stderr("");
    let tensor = tslice::open(&path).unwrap().only().unwrap();
    let numbers = [1.5, -2.0].map(half::bf16::from_f32);
    assert_eq!(tensor.all().read::<half::bf16>().unwrap(), numbers);
    assert!(tensor.all().read::<f32>().is_err());
    let bf16 = tslice::parse_dtype("bfloat16").unwrap();
    let floats = tslice::parse_dtype("float32").unwrap();
    let viewed = tensor.view(&bf16).unwrap();
    let cast = viewed.slice("[::-1]").unwrap().cast(&floats, Casting::Safe).unwrap();
    assert_eq!(cast.read::<f32>().unwrap(), [-2.0, 1.5]);
    assert!(tensor.view(&floats).is_err());
}

/// Position ids and masks among the weights of a checkpoint keep their values.
#[test]
fn a_cast_of_several_to_floats_leaves_integers_and_booleans() {
    let dir = tempfile::tempdir().unwrap();
    let header = concat!(
        r#"{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"#,
        r#""ids":{"dtype":"I64","shape":[1],"data_offsets":[4,12]},"#,
        r#""mask":{"dtype":"BOOL","shape":[1],"data_offsets":[12,13]}}"#
    );
    let data = [&1.5f32.to_le_bytes()[..], &511i64.to_le_bytes(), &[1]].concat();
    write_safetensors(&dir.path().join("m.safetensors"), header, &data);
    let note = "tslice: note: 2 tensors of integers or booleans are left as they are\n\
                hint: --cast all:DTYPE converts integers and booleans, too\n";
    let dtypes = |args: &[&str], note: &'static str| {
        let args = [args, &["-f", "-o", "out.safetensors"]].concat();
        tslice(dir.path(), &args).assert().success().stderr(note);
        let bytes = fs::read(dir.path().join("out.safetensors")).unwrap();
        let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let dtype = |name: &str| format!("{:?}", file.tensor(name).unwrap().dtype());
        ["w", "ids", "mask"].map(dtype).join(" ")
    };
    let bf16 = ["--cast", "bfloat16"];
    let of = |command: &[&'static str], cast: &[&'static str]| [command, cast].concat();
    assert_eq!(dtypes(&of(&["m.safetensors"], &bf16), note), "BF16 I64 BOOL");
    assert_eq!(dtypes(&of(&["merge", "m.safetensors"], &bf16), note), "BF16 I64 BOOL");
    let concat = ["concat", "m.safetensors", "m.safetensors", "-t", "*"];
    assert_eq!(dtypes(&of(&concat, &bf16), note), "BF16 I64 BOOL");
    assert_eq!(dtypes(&["m.safetensors", "--cast", "all:bfloat16"], ""), "BF16 BF16 BF16");
    assert_eq!(dtypes(&["m.safetensors", "--cast", "int64:int32"], ""), "F32 I32 BOOL");
    let one = ["m.safetensors", "-t", "ids", "--keep-rest", "--cast", "bfloat16"];
    assert_eq!(dtypes(&one, ""), "F32 BF16 BOOL");
    let dry = ["m.safetensors", "--cast", "bfloat16", "-n", "-o", "dry.safetensors"];
    tslice(dir.path(), &dry).assert().success().stderr(note);
    let split = ["split", "m.safetensors", "-t", "*", "--parts", "1", "--cast", "bfloat16"];
    let split = [&split[..], &["-o", "p{}.safetensors"]].concat();
    tslice(dir.path(), &split).assert().success().stderr(note);
}

/// The rest of a list that was written with blanks would be an index.
#[test]
fn a_list_with_blanks_is_no_index() {
    let dir = tempfile::tempdir().unwrap();
    write_floats(&dir.path().join("a.npy"), &[2, 3], &[0.0; 6]);
    let refused = |args: &[&str], stderr: &'static str| {
        tslice(dir.path(), args).assert().code(2).stdout("").stderr(stderr);
    };
    refused(
        &["view", "a.npy", "--reduce", "mean", "--axis", "0", "1", "-o", "m.npy"],
        "tslice: --axis 0 1: a list must not contain blanks\n\
         hint: a list is written --axis 0,1; an index here in brackets, '[1]'\n",
    );
    refused(
        &["a.npy", "-T", "1,0", "-o", "m.npy"],
        "tslice: -T 1,0: a list must not contain blanks\n\
         hint: a list is written --transpose 1,0; an index here in brackets, '[1,0]'\n",
    );
    refused(
        &["split", "a.npy", "--at", "1", "2", "-o", "p{}.npy"],
        "tslice: --at 1 2: a list must not contain blanks\n\
         hint: a list is written --at 1,2; an index here in brackets, '[2]'\n",
    );
    let fine = ["a.npy", "-T", "[1]", "-o", "m.npy"];
    tslice(dir.path(), &fine).assert().success();
}

#[test]
fn names_of_many_parts_that_sort_otherwise_get_a_note() {
    let dir = tempfile::tempdir().unwrap();
    write_floats(&dir.path().join("a.npy"), &[12], &[0.0; 12]);
    let note = "tslice: note: names of the parts sort otherwise than their numbers\n\
                hint: {:02} in place of the first one sorts\n";
    for (parts, pattern, stderr) in
        [("12", "w{}.npy", note), ("12", "v{:02}.npy", ""), ("6", "u{}.npy", "")]
    {
        let args = ["split", "a.npy", "--parts", parts, "-o", pattern];
        tslice(dir.path(), &args).assert().success().stderr(stderr);
    }
}

/// One language of names for all flags: what it means, and that two meanings are refused.
#[test]
fn names_of_dtypes_are_the_same_in_every_flag() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, dtype: &DType, bytes: usize| {
        let mut file = npy::header(dtype, &[1], Order::C).unwrap();
        file.resize(file.len() + bytes, 0);
        fs::write(dir.path().join(name), file).unwrap();
    };
    fs::write(dir.path().join("raw.bin"), [0; 16]).unwrap();
    let dtype_of = |args: &[&str]| {
        let output = tslice(dir.path(), args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        found[0]["tensors"][0]["dtype"].as_str().unwrap().to_owned()
    };
    for (names, bytes, expected) in [
        ("f32 f4 <f4 F32 float32", 4, "float32"),
        ("f64 f8 float F64", 8, "float64"),
        ("fp16 f2 half F16 float16", 2, "float16"),
        ("bf16 BF16 bfloat16", 2, "bfloat16"),
        ("float8_e4m3fn F8_E4M3", 1, "float8_e4m3fn"),
        ("i1 I8 int8", 1, "int8"),
        ("i16 i2 I16", 2, "int16"),
        (">i2", 2, ">i2"),
        ("i32 i4 I32", 4, "int32"),
        ("i64 I64 int <i8", 8, "int64"),
        ("u1 |u1 U8", 1, "uint8"),
        ("u16 u2", 2, "uint16"),
        ("u32 u4", 4, "uint32"),
        ("u64 <u8", 8, "uint64"),
        ("c8 C64", 8, "complex64"),
        ("c16", 16, "complex128"),
        ("bool BOOL", 1, "bool"),
    ] {
        let void = npy::parse_dtype(&format!("V{bytes}")).unwrap();
        write("void.npy", &void, bytes);
        for name in names.split(' ') {
            let dtype = tslice::formats::parse_dtype(name).unwrap();
            assert_eq!(dtype.to_string(), expected, "{name}");
            assert_eq!(dtype_of(&["info", "raw.bin", "--dtype", name, "--json"]), expected);
            assert_eq!(dtype_of(&["info", "void.npy", "--as", name, "--json"]), expected);
            let read = ["void.npy", "--as", name, "-f", "-o", "own.npy"];
            tslice(dir.path(), &read).assert().success();
            let casts = |from: &str, to: &str, input: &str, output: &str, more: &[&str]| {
                let cast = if from.is_empty() { to.to_owned() } else { format!("{from}:{to}") };
                let args = [input, "--cast", &cast, "--casting", "unsafe", "-f", "-o", output];
                tslice(dir.path(), &[&args[..], more].concat()).assert().success().stderr("");
            };
            casts("", name, "own.npy", "one.npy", &["--as", name]);
            casts(name, name, "own.npy", "two.npy", &["--as", name]);
            assert_eq!(
                fs::read(dir.path().join("one.npy")).unwrap(),
                fs::read(dir.path().join("two.npy")).unwrap()
            );
        }
    }
    for (name, hint) in [
        ("i8", "int8 (8 bits), or int64 or '<i8' (8 bytes, as in NumPy)"),
        ("u8", "uint8 (8 bits), or uint64 or '<u8' (8 bytes, as in NumPy)"),
        ("f16", "float16 (16 bits), or float128 or '<f16' (16 bytes, as in NumPy)"),
        ("float23", "did you mean 'float32', 'float16' or 'float64'?"),
    ] {
        let (from, to) = (format!("{name}:f4"), format!("f4:{name}"));
        for (flag, text) in [
            ("--dtype", name),
            ("--as", name),
            ("--cast", name),
            ("--cast", &from),
            ("--cast", &to),
        ] {
            let args = ["raw.bin", flag, text, "-o", "out.npy"];
            let refused = tslice(dir.path(), &args).assert().code(2);
            let stderr = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
            assert!(stderr.ends_with(&format!("hint: {hint}\n")), "{args:?}: {stderr}");
        }
    }
}
