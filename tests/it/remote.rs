//! Remote addresses on the command line, as far as no network is needed: what is refused, and that no
//! message shows a secret. `tests/remote/run` reads from real servers.

use predicates::prelude::*;
use predicates::str::contains;

use crate::inputs::{F32, floats, write_npy};
use crate::program::tslice;

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    write_npy(&dir.path().join("a.npy"), &F32, &[6], &floats(0..6));
    dir
}

/// A run that must fail with these words, and without the word SECRET.
fn refused(args: &[&str], words: &str) {
    let dir = folder();
    let secret = contains("SECRET").not();
    let run = tslice(dir.path(), args).assert().failure();
    run.stderr(contains(words).and(secret));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "{args:?} wrote something");
}

#[test]
fn outputs_and_targets_are_files_of_this_machine() {
    let address = "https://me:SECRET@host/a.npy?sig=SECRET";
    refused(&["a.npy", "-o", address], "https://host/a.npy: outputs are not written to remote");
    refused(
        &["assign", address, "1", "--fill", "1", "--in-place"],
        "https://host/a.npy: a remote file cannot be changed",
    );
    refused(
        &["split", "a.npy", "--parts", "2", "-o", "s3://bucket/{}.npy"],
        "not written to remote",
    );
}

#[test]
fn secrets_are_not_shown_where_an_index_is() {
    refused(&["a.npy", "[@s3://me:SECRET@bucket/a.npy?x, 0:0:0]"], "****");
    refused(&["a.npy", "[@https://host/a.npy?sig=SECRET, nothing]"], "host/a.npy?****");
    refused(&["explain", "--shape", "x", "[@https://host/a.npy?sig=SECRET]"], "--shape");
}

#[cfg(not(feature = "remote"))]
#[test]
fn a_build_without_the_feature_says_so() {
    let words = "this build does not read remote addresses: build it with --features remote";
    for address in ["https://me:SECRET@host/a.npy?x=SECRET", "s3://b/a", "gs://b/a", "az://c/a"] {
        refused(&["info", address], words);
        refused(&[address, "[1:3]", "-o", "b.npy"], words);
        refused(&["a.npy", &format!("[@{address}]")], words);
        refused(&["gather", "a.npy", "--axis", "0", "--indices", address], words);
        refused(&["concat", "a.npy", address, "-o", "b.npy"], words);
    }
}

#[cfg(feature = "remote")]
#[test]
fn addresses_without_a_file_are_refused() {
    // a whole bucket may be an array of Zarr
    if !cfg!(feature = "zarr") {
        refused(&["info", "s3://bucket"], "a bucket and a key");
    }
    refused(&["info", "s3://me:SECRET@bucket/a.npy"], "credentials are not taken from an address");
    refused(&["info", "http://"], "not an address of a file");
    refused(&["info", "https://host/a.npy", "--io", "mmap"], "--io");
}
