//! The fuzzers' laws over the seeds and findings kept in `fuzz/corpus`, without a fuzzer.

#[path = "../../fuzz/bodies.rs"]
mod bodies;

use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files of a folder, in a stable order.
fn files(folder: PathBuf) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{folder:?}: {e}"));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn run(name: &str, body: bodies::Body, path: &Path) {
    let data = std::fs::read(path).unwrap();
    let outcome = std::panic::catch_unwind(|| body(&data));
    assert!(outcome.is_ok(), "{name} fails on {}", path.display());
}

#[test]
fn every_seed_and_finding_keeps_the_laws() {
    for (name, body) in bodies::TARGETS {
        let seeds = files(root().join("fuzz/corpus").join(name));
        assert!(seeds.len() >= 5, "{name} has {} seeds", seeds.len());
        seeds.iter().for_each(|path| run(name, body, path));
    }
}

#[test]
fn the_fixtures_keep_the_laws_of_headers() {
    for folder in ["fixtures/valid", "fixtures/bad"] {
        for path in files(root().join(folder)) {
            run("npy_header", bodies::npy_header, &path);
            run("safetensors_header", bodies::safetensors_header, &path);
        }
    }
}
