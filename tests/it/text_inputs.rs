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
        ("\"a\",\"b\"\r\n\"1\",\"2\"\r\n 3,\"-4.5\"\r\n", &[][..], "[[1.0, 2.0],\n[3.0, -4.5]]\n"),
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
        (b"1,\"2\n", &[], "column 2: the quotes of the cell are not closed"),
        (b"1,-\n", &["--missing", "-", "--dtype", "int64"], "line 1, column 2: '-' is not"),
        (b"\xff\xfe1\0,\x002\0", &[], "the text is UTF-16, and UTF-8 is read"),
    ] {
        fs::write(dir.path().join("q.csv"), text).unwrap();
        let run =
            tslice(dir.path(), &[&["q.csv", "--to", "json"], args].concat()).output().unwrap();
        let error = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.code() == Some(1) && error.contains(says), "{error}");
    }
}
