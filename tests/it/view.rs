//! `tslice view`: values as NumPy prints them. Every text was printed by NumPy 2.4; random arrays
//! are compared with live NumPy in `tests/python/view_differential.py`.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::program::tslice;

/// Write a `.npy` file in C order.
fn write_npy(path: &Path, descr: &str, shape: &str, data: &[u8]) {
    let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}");
    let end = (10 + text.len()) / 64 * 64 + 64;
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((end as u16 - 10).to_le_bytes());
    file.extend(text.bytes());
    file.resize(end - 1, b' ');
    file.push(b'\n');
    file.extend(data);
    fs::write(path, file).unwrap();
}

/// A folder with `counted.npy`, 1200 integers in the shape (30, 40), and `floats.npy`.
fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let counted: Vec<u8> = (0..1200i32).flat_map(i32::to_le_bytes).collect();
    write_npy(&dir.path().join("counted.npy"), "'<i4'", "(30, 40)", &counted);
    let floats = [0.1f64, -2.5, f64::NAN, 1e-5, 123456.0, f64::NEG_INFINITY];
    let floats: Vec<u8> = floats.iter().flat_map(|float| float.to_be_bytes()).collect();
    write_npy(&dir.path().join("floats.npy"), "'>f8'", "(2, 3)", &floats);
    dir
}

#[track_caller]
fn shows(args: &[&str], expected: &str) {
    let dir = folder();
    let expected = expected.to_owned();
    tslice(dir.path(), args).assert().success().stdout(expected).stderr("");
}

#[test]
fn long_arrays_are_shortened() {
    let expected = "\
[[   0    1    2 ...   37   38   39]
 [  40   41   42 ...   77   78   79]
 [  80   81   82 ...  117  118  119]
 ...
 [1080 1081 1082 ... 1117 1118 1119]
 [1120 1121 1122 ... 1157 1158 1159]
 [1160 1161 1162 ... 1197 1198 1199]]
shape (30, 40), dtype int32
";
    shows(&["view", "counted.npy"], expected);
    let expected = "\
[[   0 ...   39]
 ...
 [1160 ... 1199]]
shape (30, 40), dtype int32
";
    shows(&["view", "counted.npy", "--edge", "1"], expected);
}

#[test]
fn what_is_asked_for_in_full_is_printed_in_lines() {
    let dir = folder();
    let full = tslice(dir.path(), &["view", "counted.npy", "--full"]).output().unwrap();
    let text = String::from_utf8(full.stdout).unwrap();
    let numbers = text.lines().flat_map(|line| line.split([' ', '[', ']']));
    let numbers: Vec<i32> = numbers.filter_map(|word| word.parse().ok()).collect();
    assert_eq!(numbers, (0..1200).collect::<Vec<_>>());
    assert!(text.lines().all(|line| line.len() <= 75));
}

#[test]
fn floats_stand_in_columns() {
    let expected = "\
[[ 1.00000e-01 -2.50000e+00          nan]
 [ 1.00000e-05  1.23456e+05         -inf]]
shape (2, 3), dtype >f8
";
    shows(&["view", "floats.npy"], expected);
    shows(&["view", "floats.npy", "0, :2"], "[ 0.1 -2.5]\nshape (2,), dtype >f8\n");
    shows(&["view", "floats.npy", "1, 0", "--precision", "2"], "1e-05\nshape (), dtype >f8\n");
    let args = ["view", "floats.npy", "0", "--precision", "0", "--io", "read"];
    shows(&args, "[ 0. -2. nan]\nshape (3,), dtype >f8\n");
    shows(&["view", "floats.npy", ":0"], "[]\nshape (0, 3), dtype >f8\n");
}

#[test]
fn lists_and_pipes_work_too() {
    let dir = folder();
    tslice(dir.path(), &["view", "counted.npy", "[0, 2, 1, 0], 39"])
        .assert()
        .success()
        .stdout("[ 39 119  79  39]\nshape (4,), dtype int32\n");
    let piped = fs::read(dir.path().join("counted.npy")).unwrap();
    let shown = tslice(dir.path(), &["view", "-", "-1, -2:"]).write_stdin(piped).assert();
    shown.success().stdout("[1198 1199]\nshape (2,), dtype int32\n");
}

#[test]
fn structures_strings_and_times_are_readable() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows.npy");
    let mut data = Vec::new();
    for (name, born, scores) in
        [(b"Ada", -56_268i64, [1.5f32, 20.0]), (b"Bo\0", i64::MIN, [0.25, 3.0])]
    {
        data.extend(name);
        data.extend(born.to_le_bytes());
        data.extend(scores.iter().flat_map(|score| score.to_le_bytes()));
    }
    let descr = "[('name', '|S3'), ('born', '<M8[D]'), ('scores', '<f4', (2,))]";
    write_npy(&path, descr, "(2,)", &data);
    let expected = "\
[(b'Ada', '1815-12-12', [ 1.5 , 20.  ])
 (b'Bo',        'NaT', [ 0.25,  3.  ])]
shape (2,), dtype [('name', '|S3'), ('born', '<M8[D]'), ('scores', '<f4', (2,))]
";
    tslice(dir.path(), &["view", "rows.npy"]).assert().success().stdout(expected);
}

/// Expected texts are NumPy's of `np.arange(1, 7, dtype='>i2').view(dtype)`.
#[test]
fn subarrays_of_subarrays_are_printed_taken_and_compared() {
    let dir = folder();
    let path = dir.path().join("nested.npy");
    let descr = "[('c', ('>i2', (3,)), (1,)), ('d', [('e', (('>i2', (1,)), (3,)))])]";
    let data: Vec<u8> = (1..7i16).flat_map(i16::to_be_bytes).collect();
    write_npy(&path, descr, "(1,)", &data);
    let path = path.to_str().unwrap();
    let spelled = "[('c', ('>i2', (3,)), (1,)), ('d', [('e', ('>i2', (1,)), (3,))])]";
    let lines = format!("[([[1, 2, 3]], ([[4], [5], [6]],))]\nshape (1,), dtype {spelled}\n");
    shows(&["view", path], &lines);
    shows(&["view", path, "--field", "c"], "[[[1 2 3]]]\nshape (1, 1, 3), dtype >i2\n");
    let inner = "[[[4]\n  [5]\n  [6]]]\nshape (1, 3, 1), dtype >i2\n";
    shows(&["view", path, "--field", "d.e"], inner);
    shows(&["diff", path, path], "");
    let json = "[{\"c\": [[1, 2, 3]], \"d\": {\"e\": [[4], [5], [6]]}}]\n";
    shows(&[path, "--to", "json"], json);
    shows(&[path, "--to", "csv"], "1,2,3,4,5,6\n");
}

#[test]
fn statistics_are_drawn_with_a_histogram() {
    let expected = "\
shape (2, 3), dtype >f8
  count     6
  nan       1
  infinite  1
  zero      0
  minimum   -inf at [1, 2]
  maximum   123456.0 at [1, 1]
  mean      30863.4000025
  std       53458.36254367209
";
    let dir = folder();
    let shown = tslice(dir.path(), &["view", "floats.npy", "--stats"]).assert().success();
    let text = String::from_utf8(shown.get_output().stdout.clone()).unwrap();
    assert!(text.starts_with(expected), "{text}");
    assert!(text.contains("  3  ██████████████████████████████\n"), "{text}");
    assert!(text.ends_with("  the quantiles are exact\n"), "{text}");
}

#[test]
fn statistics_of_a_pipe_are_those_of_the_file() {
    let dir = folder();
    let args = ["view", "counted.npy", "5:, ::2", "--stats", "--json"];
    let of_file = tslice(dir.path(), &args).output().unwrap();
    let found: serde_json::Value = serde_json::from_slice(&of_file.stdout).unwrap();
    assert_eq!(found["count"], 500);
    assert_eq!(found["max"], serde_json::json!({"value": 1198, "position": [24, 19]}));
    assert_eq!(
        (found["mean"].as_f64(), found["quantiles"][4]["value"].as_f64()),
        (Some(699.0), Some(699.0))
    );
    let piped = fs::read(dir.path().join("counted.npy")).unwrap();
    let args = ["view", "-", "5:, ::2", "--stats", "--json", "-j", "3"];
    let of_pipe = tslice(dir.path(), &args).write_stdin(piped).output().unwrap();
    assert_eq!(of_file.stdout, of_pipe.stdout);
}

#[test]
fn statistics_of_several_tensors_come_from_one_pipe() {
    let dir = tempfile::tempdir().unwrap();
    let view = |data| safetensors::tensor::TensorView::new(safetensors::Dtype::U8, vec![2], data);
    let tensors = [("b", view(&[1, 3]).unwrap()), ("a", view(&[5, 7]).unwrap())];
    let piped = safetensors::serialize(tensors, None).unwrap();
    let args = ["view", "-", "-t", "*", "--stats", "--json"];
    let shown = tslice(dir.path(), &args).write_stdin(piped).output().unwrap();
    let lines = serde_json::Deserializer::from_slice(&shown.stdout).into_iter();
    let lines = lines.map(|line: Result<serde_json::Value, _>| line.unwrap());
    let mut means: Vec<f64> = lines.map(|it| it["mean"].as_f64().unwrap()).collect();
    means.sort_by(f64::total_cmp);
    assert_eq!(means, [2.0, 6.0]);
}

#[test]
fn a_truncated_file_is_an_error_that_names_it() {
    let dir = folder();
    let bytes = fs::read(dir.path().join("counted.npy")).unwrap();
    fs::write(dir.path().join("cut.npy"), &bytes[..2000]).unwrap();
    let failed = tslice(dir.path(), &["view", "cut.npy"]).assert().code(1);
    let message = String::from_utf8(failed.get_output().stderr.clone()).unwrap();
    assert!(message.starts_with("tslice: cut.npy: "), "{message}");
}

/// The size, the kind of colours and the bytes of a picture.
fn decoded(path: &Path) -> (u32, u32, png::ColorType, Vec<u8>) {
    let file = std::io::BufReader::new(fs::File::open(path).unwrap());
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    bytes.truncate(info.buffer_size());
    (info.width, info.height, info.color_type, bytes)
}

#[test]
fn numbers_become_colours() {
    let dir = folder();
    let draw = |args: &[&str]| {
        let args = [&["view", "counted.npy", "-f", "-o", "p.png"], args].concat();
        tslice(dir.path(), &args).assert().success().stdout("").stderr("");
        decoded(&dir.path().join("p.png"))
    };
    let (width, height, colours, bytes) = draw(&[]);
    assert_eq!((width, height, colours), (40, 30, png::ColorType::Rgb));
    // the ends of viridis, as matplotlib has them
    assert_eq!((&bytes[..3], &bytes[bytes.len() - 3..]), (&[68, 1, 84][..], &[253, 231, 37][..]));
    let (.., bytes) = draw(&["--range", "0,39", "--colormap", "gray"]);
    assert_eq!((&bytes[..3], &bytes[39 * 3..42 * 3]), (&[0; 3][..], &[255; 9][..]));
    let (.., bytes) = draw(&["--range", "p0,p100", "--colormap", "gray", "::-1, ::-1"]);
    assert_eq!((&bytes[..3], &bytes[bytes.len() - 3..]), (&[255; 3][..], &[0; 3][..]));
    let (width, height, ..) = draw(&["--width", "20"]);
    assert_eq!((width, height), (20, 15));
    let (width, height, ..) = draw(&["None, ::10, ::20, None", "-T"]);
    // two tiles of three rows and one column
    assert_eq!((width, height), (1 + 1 + 1, 3));
}

#[test]
fn colours_are_written_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let data: Vec<u8> = (0..2 * 3 * 4 * 4).map(|it| it as u8 * 2).collect();
    write_npy(&dir.path().join("stack.npy"), "'|u1'", "(2, 3, 4, 4)", &data);
    let draw = |args: &[&str]| {
        let args = [&["view", "stack.npy", "-f", "-o", "p.png"], args].concat();
        tslice(dir.path(), &args).assert().success();
        decoded(&dir.path().join("p.png"))
    };
    assert_eq!(draw(&["1"]), (4, 3, png::ColorType::Rgba, data[48..].to_vec()));
    let (width, height, colours, bytes) = draw(&["..., :3"]);
    assert_eq!((width, height, colours), (9, 3, png::ColorType::Rgb));
    assert_eq!(bytes[..3], data[..3]);
    assert_eq!(bytes[5 * 3..6 * 3], data[48..51]);
}

#[test]
fn floats_of_three_channels_are_colours_from_0_to_1() {
    let dir = tempfile::tempdir().unwrap();
    let write = |floats: [f32; 6]| {
        let data: Vec<u8> = floats.iter().flat_map(|it| it.to_le_bytes()).collect();
        write_npy(&dir.path().join("colours.npy"), "'<f4'", "(1, 2, 3)", &data);
    };
    let draw = |args: &[&str], note: &'static str| {
        let args = [&["view", "colours.npy", "-f", "-o", "p.png"], args].concat();
        tslice(dir.path(), &args).assert().success().stderr(note);
        decoded(&dir.path().join("p.png"))
    };
    write([0.0, 0.5, 1.0, 0.25, 0.1, 0.9]);
    assert_eq!(draw(&[], ""), (2, 1, png::ColorType::Rgb, vec![0, 128, 255, 64, 26, 229]));
    // numbers on a colour map, as a sheet of two tiles
    assert_eq!(draw(&["--range", "0,1"], "").0, 3);
    write([-1.0, 0.5, 2.0, f32::NAN, f32::INFINITY, 0.0]);
    let note = "tslice: note: colours are numbers from 0 to 1: others are clipped\n";
    assert_eq!(draw(&[], note).3, [0, 128, 255, 0, 255, 0]);
}

#[test]
fn a_picture_is_there_whole_or_not_at_all() {
    let dir = folder();
    fs::write(dir.path().join("p.png"), "what stood there before").unwrap();
    let failed = tslice(dir.path(), &["view", "counted.npy", "-o", "p.png"]).assert().code(1);
    failed.stderr("tslice: p.png: the file exists\nhint: --force replaces it\n");
    let said = "would write q.png: 40 x 30 pixels, RGB\n";
    let args = ["view", "counted.npy", "-o", "q.png", "--dry-run"];
    tslice(dir.path(), &args).assert().success().stdout(said);
    assert_eq!(fs::read(dir.path().join("p.png")).unwrap(), b"what stood there before");
    assert!(!dir.path().join("q.png").exists());
    let piped = fs::read(dir.path().join("counted.npy")).unwrap();
    let args = ["view", "-", "-o", "q.png", "--fsync", "-q"];
    tslice(dir.path(), &args).write_stdin(piped).assert().success();
    assert_eq!(decoded(&dir.path().join("q.png")).0, 40);
}

#[test]
fn the_terminal_shows_two_pixels_a_character() {
    let dir = folder();
    let args = ["view", "counted.npy", "::15, ::20", "--image", "--colormap", "gray"];
    let shown = tslice(dir.path(), &args).env_remove("NO_COLOR").assert().success();
    let text = String::from_utf8(shown.get_output().stdout.clone()).unwrap();
    assert!(text.starts_with("\x1b[38;2;0;0;0m\x1b[48;2;"), "{text:?}");
    assert_eq!((text.matches('▀').count(), text.lines().count()), (text.lines().count() * 8, 4));
    let plain = tslice(dir.path(), &args).env("NO_COLOR", "1").assert().success();
    let text = String::from_utf8(plain.get_output().stdout.clone()).unwrap();
    assert!(text.starts_with(' ') && text.trim_end().ends_with('@'), "{text:?}");
    let args = ["view", "counted.npy", "--image"];
    let mut narrow = tslice(dir.path(), &args);
    let plain = narrow.env("NO_COLOR", "1").env("COLUMNS", "20").assert().success();
    let text = String::from_utf8(plain.get_output().stdout.clone()).unwrap();
    assert!(text.lines().all(|line| line.len() == 20), "{text:?}");
}
