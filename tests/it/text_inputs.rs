//! Text as an input: csv, tsv, txt and JSON, in every command. What numbers mean is held against NumPy by
//! `tests/python/textin_differential.py`.

use std::fs;
use std::process::Output;

use tempfile::TempDir;

use crate::program::{bash, tslice};

fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("t.csv", "\u{feff}# made by me\r\na,b\r\n\r\n1,2 # first\r\n3,4\r\n5,-6.5"),
        ("t.tsv", "1\t2\n3\t4\n"),
        ("t.txt", "  1   2\r 3 4 \r"),
        ("t.json", "[[1, 2],\n [3, -4]]\n"),
        ("zeros.json", "[18446744073709551615, -0, -0.0, -1]"),
        ("one", "7;8\n"),
    ] {
        fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

fn out(run: &Output) -> &str {
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    std::str::from_utf8(&run.stdout).unwrap()
}

#[test]
fn texts_are_known_by_their_names() {
    let dir = folder();
    for (args, expected) in [
        (&["t.csv"][..], "[[1.0, 2.0],\n[3.0, 4.0],\n[5.0, -6.5]]\n"),
        (&["t.tsv", "--dtype", "uint8"], "[[1, 2],\n[3, 4]]\n"),
        (&["t.tsv", "[:, ::-1]"], "[[2.0, 1.0],\n[4.0, 3.0]]\n"),
        (&["t.txt", "--dtype", "int64"], "[[1, 2],\n[3, 4]]\n"),
        (&["t.txt", "--skip-rows", "1"], "[3.0, 4.0]\n"),
        (&["t.json"], "[[1, 2],\n[3, -4]]\n"),
        (&["t.json", "--dtype", "complex64"], "[[1.0, 2.0], [3.0, -4.0]]\n"),
        (&["zeros.json"], "[1.8446744073709552e19, 0.0, -0.0, -1.0]\n"),
        (&["one", "--from", "csv", "--delimiter", ";"], "[7.0, 8.0]\n"),
        (&["t.csv", "--names", "--field", "b"], "[2.0, 4.0, -6.5]\n"),
        (&["t.csv", "--field", "b"], "[2.0, 4.0, -6.5]\n"),
        (&["gather", "t.csv", "--axis", "0", "--indices", "[2]"], "[[5.0, -6.5]]\n"),
        (&["concat", "t.tsv", "t.txt"], "[[1.0, 2.0],\n[3.0, 4.0],\n[1.0, 2.0],\n[3.0, 4.0]]\n"),
        (&["gather", "t.tsv", "--axis", "0", "--indices", "i.json"], "[[3.0, 4.0]]\n"),
    ] {
        fs::write(dir.path().join("i.json"), "[1]").unwrap();
        let run = tslice(dir.path(), &[args, &["--to", "json"]].concat()).output().unwrap();
        assert_eq!(out(&run), expected, "{args:?}");
    }
}

/// A file is what its first bytes say, whatever its name; so is one that is no text at all.
#[test]
fn other_files_of_such_names_are_not_read_as_text() {
    let dir = folder();
    tslice(dir.path(), &["t.tsv", "-o", "a.npy"]).assert().success();
    fs::rename(dir.path().join("a.npy"), dir.path().join("a.csv")).unwrap();
    let run = tslice(dir.path(), &["a.csv", "[0]", "--to", "txt"]).output().unwrap();
    assert_eq!(out(&run), "1.0\n2.0\n");
    fs::write(dir.path().join("z.csv"), b"\x1f\x8b\x08\0\0\0\0").unwrap();
    let run = tslice(dir.path(), &["z.csv"]).output().unwrap();
    assert!(String::from_utf8_lossy(&run.stderr).starts_with("tslice: z.csv: a gzip file"));
    // a column may have a name that begins some binary files
    fs::write(dir.path().join("p.csv"), "PAR1,PAR2\n1,2\n").unwrap();
    let run = tslice(dir.path(), &["p.csv", "--to", "txt"]).output().unwrap();
    assert_eq!(out(&run), "1.0\n2.0\n");
}

/// More elements than are kept in memory, from a pipe, with pieces that are cut anywhere.
#[test]
fn long_texts_are_kept_in_a_file() {
    let dir = folder();
    let rows = "seq 1 200000 | paste -d, - - - - | sed 's/,/,\\t/g'";
    let run =
        bash(&dir, &format!("{rows} | tslice - '[-1]' --from csv --to txt")).output().unwrap();
    assert_eq!(out(&run), "199997.0\n199998.0\n199999.0\n200000.0\n");
    let line = "seq 1 300000 | tr '\\n' ' ' | tslice - '[-2:]' --from txt --dtype int32 --to txt";
    assert_eq!(out(&bash(&dir, line).output().unwrap()), "299999\n300000\n");
    // the first numbers are integers until one is none
    let line = "(echo '['; seq -s, 1 100000; echo ',0.5]') | tslice - '[-2:]' --from json --to txt";
    assert_eq!(out(&bash(&dir, line).output().unwrap()), "100000.0\n0.5\n");
}

/// A long line takes no memory but for its cells.
#[test]
fn a_cell_has_a_limit() {
    let dir = folder();
    let long = "head -c 3000000 /dev/zero | tr '\\0' 1 > long.csv; tslice long.csv";
    let run = bash(&dir, long).output().unwrap();
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert_eq!(said, "tslice: long.csv: line 1, column 1: the cell is longer than 1048576 bytes\n");
}

#[test]
fn tables_are_written_with_tabs_too() {
    let dir = folder();
    tslice(dir.path(), &["t.csv", "-o", "o.tsv"]).assert().success();
    assert_eq!(fs::read(dir.path().join("o.tsv")).unwrap(), b"1.0\t2.0\n3.0\t4.0\n5.0\t-6.5\n");
}

#[test]
fn cells_may_stand_in_quotes_or_be_missing() {
    let dir = tempfile::tempdir().unwrap();
    for (text, args, expected) in [
        ("\"a\",\"b\"\r\n\"1\",\"2\"\r\n 3, \"-4.5\"\r\n", &[][..], "[[1.0, 2.0],\n[3.0, -4.5]]\n"),
        ("\"p,q\",\"a\"\"b#\"\n", &["--dtype", "U4"], "[\"p,q\", \"a\\\"b#\"]\n"),
        ("NA,1\n-,2\n", &["--missing", "NA,-"], "[[\"NaN\", 1.0],\n[\"NaN\", 2.0]]\n"),
        (",1\n2,\n", &["--missing", "NA,"], "[[\"NaN\", 1.0],\n[2.0, \"NaN\"]]\n"),
    ] {
        fs::write(dir.path().join("q.csv"), text).unwrap();
        let run =
            tslice(dir.path(), &[&["q.csv", "--to", "json"], args].concat()).output().unwrap();
        assert_eq!(out(&run), expected, "{text:?}");
    }
}

#[test]
fn errors_name_the_cell_at_fault_and_the_way_to_read_it() {
    let dir = tempfile::tempdir().unwrap();
    for (text, args, says) in [
        (&b"0x1p3,1\n"[..], &[][..], "line 1, column 1: '0x1p3' is not a number"),
        (b"1.5D+03,2\n", &[], "line 1, column 1: '1.5D+03' is not a number"),
        (b"1;2\n3;4\n", &[], "hint: --delimiter ';'"),
        (b"1\t2\n3\t4\n", &[], "hint: --delimiter '\\t'"),
        (b"1 2\n3 4\n", &[], "hint: --delimiter ' '"),
        (b"1, \"2\n", &[], "column 2: the quotes of the cell are not closed"),
        (b"1,-\n", &["--missing", "-", "--dtype", "int64"], "line 1, column 2: '-' is not"),
        (b"\xff\xfe1\0,\x002\0", &[], "the text is UTF-16, and UTF-8 is read"),
        (b"x\0,\0y\0\n\x001\0,\x002\0", &[], "hint: `iconv -f UTF-16LE -t UTF-8 FILE`"),
        (b"\0x\0,\0y\0\n\x001\0,\x002", &[], "hint: `iconv -f UTF-16BE -t UTF-8 FILE`"),
        (b"a,b\nanna,1\n", &[], "hint: --columns 1 reads only this column, counted from 0"),
        (b"anna,1\n", &[], "hint: --columns 1 reads only this column, counted from 0"),
        (b"7,NA\n1,2\n", &["--columns", "1"], "line 1, column 2: 'NA' is not a number"),
        (b"s1,NA\n1,2\n", &["--columns", "1"], "line 1, column 2: 'NA' is not a number"),
        (b"5.687138413593-304\n2\n", &[], "line 1, column 1: '5.687138413593-304' is not a number"),
        (b"****,***\n1,2\n", &[], "line 1, column 1: '****' is not a number"),
        (b"1,2\n", &["--columns", "0,2"], "line 1: there is no column 2: columns count from 0"),
        (b"1,2\n3\n", &["--columns", "1"], "line 2: there is no column 1: columns count from 0"),
        (b"1,2\n3\n", &["--columns=-2"], "line 2: there is no column -2: columns count from 0"),
        (b"1,x\n", &["--columns", "1,0"], "line 1, column 2: 'x' is not a number"),
        (b"a,b\n1,2\n", &["--field", "c"], "no field is named \"c\"; the fields are a, b"),
        (b"a,b\n1,2\n", &["--names", "--columns", "1,1"], "another column named 'b'"),
    ] {
        fs::write(dir.path().join("q.csv"), text).unwrap();
        let run =
            tslice(dir.path(), &[&["q.csv", "--to", "json"], args].concat()).output().unwrap();
        let error = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.code() == Some(1) && error.contains(says), "{error}");
    }
}

/// The columns of np.loadtxt's usecols, the others of which may hold anything.
#[test]
fn columns_are_chosen_by_number_or_name() {
    let dir = tempfile::tempdir().unwrap();
    let people = "name,score,age\nanna,1.5,7\nbob,2,8\n";
    for (text, args, expected) in [
        (people, &["--columns", "1,2"][..], "[[1.5, 7.0],\n[2.0, 8.0]]\n"),
        (people, &["--columns", "-1,1,-1"], "[[7.0, 1.5, 7.0],\n[8.0, 2.0, 8.0]]\n"),
        (people, &["--columns", "1"], "[1.5, 2.0]\n"),
        (people, &["--field", "age"], "[7.0, 8.0]\n"),
        (people, &["--field", "name", "--dtype", "U4"], "[\"anna\", \"bob\"]\n"),
        (
            people,
            &["--field", "age,score"],
            "[{\"age\": 7.0, \"score\": 1.5}, {\"age\": 8.0, \"score\": 2.0}]\n",
        ),
        (people, &["--names", "--columns", "-1"], "[{\"age\": 7.0}, {\"age\": 8.0}]\n"),
        ("anna,1.5\nbob,2\n", &["--columns", "1"], "[1.5, 2.0]\n"),
        ("1,2,3\n4,5\n", &["--columns", "0,-1"], "[[1.0, 3.0],\n[4.0, 5.0]]\n"),
        ("# by me\n# x,y\n1,2\n3,4\n", &["--field", "y"], "[2.0, 4.0]\n"),
        ("#x,y\n#\n1,2\n", &["--field", "x,"], "{\"x\": 1.0}"),
        ("# p,q\nx,y\n1,2\n", &["--field", "y,"], "{\"y\": 2.0}"),
        ("# name,score\nanna,1.5\nbob,2\n", &["--field", "score"], "[1.5, 2.0]\n"),
    ] {
        fs::write(dir.path().join("q.csv"), text).unwrap();
        let run =
            tslice(dir.path(), &[&["q.csv", "--to", "json"], args].concat()).output().unwrap();
        assert_eq!(
            out(&run).replace("}\n", "}"),
            expected.replace("}\n", "}"),
            "{text:?} {args:?}"
        );
    }
    // numbers are columns of the text to info too, whose own columns have names
    fs::write(dir.path().join("q.csv"), people).unwrap();
    let run = tslice(dir.path(), &["info", "q.csv", "--columns", "1,2"]).output().unwrap();
    assert!(out(&run).contains("(2, 2)"), "{}", out(&run));
}

/// What is written as a table is read back as the same elements.
#[test]
fn tables_that_were_written_are_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let texts = r#"[["a\"b", "c,d"], ["", "\"q\""], [" sp ", "tab\there"], ["line\nbreak", "é"]]"#;
    let strings: Vec<[String; 2]> = serde_json::from_str(texts).unwrap();
    let mut points: Vec<u8> = Vec::new();
    for text in strings.iter().flatten().map(|text| format!("{text:\0<10}")) {
        points.extend(
            text.replace("tab", "#ab").chars().flat_map(|char| u32::from(char).to_le_bytes()),
        );
    }
    fs::write(dir.path().join("s.bin"), points).unwrap();
    let floats = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 5e-324, 0.1];
    fs::write(dir.path().join("f.bin"), floats.map(f64::to_le_bytes).concat()).unwrap();
    for (raw, dtype, shape) in [
        ("s.bin", "<U10", "4,2"),
        ("s.bin", "<U10", "8"),
        ("f.bin", "float64", "3,2"),
        ("f.bin", "complex128", "3"),
        ("f.bin", "float16", "12,2"),
        ("f.bin", "uint64", "2,3"),
    ] {
        for format in ["csv", "tsv"] {
            let given = ["--dtype", dtype, "--shape", shape];
            let text = format!("t.{format}");
            tslice(dir.path(), &[&[raw, "-o", "a.npy", "--force"][..], &given].concat())
                .assert()
                .success();
            tslice(dir.path(), &["a.npy", "-o", &text, "--force"]).assert().success();
            let back = ["--dtype", dtype, "-o", "b.npy", "--force"];
            tslice(dir.path(), &[&[text.as_str()][..], &back].concat()).assert().success();
            tslice(dir.path(), &["diff", "a.npy", "b.npy", "--equal-nan"]).assert().success();
        }
    }
    // booleans, and the columns of a structure
    tslice(
        dir.path(),
        &["f.bin", "--dtype", "float64", "--cast", "bool", "--casting", "unsafe", "-o", "o.npy"],
    )
    .assert()
    .success();
    tslice(dir.path(), &["o.npy", "-o", "o.csv"]).assert().success();
    tslice(dir.path(), &["o.csv", "--dtype", "bool", "-o", "p.npy"]).assert().success();
    tslice(dir.path(), &["diff", "o.npy", "p.npy"]).assert().success();
    fs::write(dir.path().join("n.csv"), "x,y\n1,nan\n3,-inf\n").unwrap();
    tslice(dir.path(), &["n.csv", "--names", "-o", "n.npy"]).assert().success();
    tslice(dir.path(), &["n.npy", "-o", "m.csv"]).assert().success();
    let run = tslice(dir.path(), &["m.csv", "--columns", "1", "--to", "json"]).output().unwrap();
    assert_eq!(out(&run), "[\"NaN\", \"-Infinity\"]\n");
}
