//! The structure of the sources, read as text: which module may use which, what the core must not
//! know, and where each package, `unsafe` and the system's own calls are used. ARCHITECTURE.md says why.
//!
//! A module here is one of `src/lib.rs`, a file or a folder. Comments and strings do not count, nor
//! does what stands behind `#[cfg(test)]`, which these sources keep at the end of a file.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use source::{Source, sources, strings, texts};

mod source;
mod surface;

/// The modules of the library in the order of the pipeline, and the others that each may use.
const MODULES: &[(&str, &[&str])] = &[
    ("shape", &[]),
    ("dtype", &["shape"]),
    ("element", &["dtype"]),
    ("cast", &["dtype", "element"]),
    ("index", &["shape"]),
    ("runs", &["shape"]),
    ("view", &["index", "runs", "shape"]),
    ("os", &[]),
    ("plan", &["os", "runs", "view"]),
    ("crc", &[]),
    ("source", &["os"]),
    ("sink", &["crc", "os"]),
    ("tensor", &["dtype", "element", "shape", "source"]),
    ("print", &["dtype", "element", "shape", "tensor"]),
    ("compare", &["cast", "dtype", "element"]),
    ("statistics", &["cast", "dtype", "element"]),
    ("picture", &[]),
    ("digest", &[]),
    ("execute", &["cast", "plan", "runs", "shape", "sink", "source"]),
    (
        "gather",
        &[
            "cast", "dtype", "element", "execute", "index", "plan", "runs", "shape", "sink",
            "source", "view",
        ],
    ),
    ("scatter", &["execute", "gather", "plan", "runs", "shape", "sink", "source", "view"]),
    ("join", &["execute", "plan", "runs", "source"]),
    ("chunked", &["execute", "plan", "runs", "shape", "sink", "source", "tensor", "view"]),
    (
        "error",
        &[
            "cast", "element", "execute", "gather", "index", "scatter", "shape", "sink", "source",
            "tensor", "view",
        ],
    ),
    (
        "input",
        &["crc", "dtype", "element", "error", "execute", "runs", "shape", "source", "tensor"],
    ),
    (
        "output",
        &[
            "cast", "chunked", "dtype", "element", "error", "execute", "input", "shape", "sink",
            "tensor",
        ],
    ),
    (
        "formats",
        &[
            "chunked", "crc", "dtype", "element", "error", "execute", "input", "output", "runs",
            "shape", "sink", "source", "tensor",
        ],
    ),
    (
        "region",
        &[
            "cast", "chunked", "dtype", "error", "execute", "formats", "gather", "index", "input",
            "join", "plan", "runs", "shape", "source", "tensor", "view",
        ],
    ),
    (
        "job",
        &[
            "cast",
            "compare",
            "digest",
            "dtype",
            "error",
            "execute",
            "formats",
            "gather",
            "index",
            "input",
            "join",
            "os",
            "output",
            "picture",
            "plan",
            "print",
            "region",
            "runs",
            "scatter",
            "shape",
            "sink",
            "source",
            "statistics",
            "tensor",
            "view",
        ],
    ),
    (
        "handle",
        &[
            "cast", "dtype", "element", "error", "execute", "formats", "gather", "index", "input",
            "job", "output", "region", "shape", "sink", "source", "tensor",
        ],
    ),
];

/// Each package, and the files or folders that may name it.
const PACKAGES: &[(&str, &[&str])] = &[
    ("async_trait", &["source/remote/"]),
    ("base64", &["formats/zarr/", "tensor/packing.rs"]),
    ("blake3", &["digest.rs"]),
    ("bzip2", &["formats/codecs.rs"]),
    ("clap", &["cli/args/", "cli/complete/", "cli/report/misuse.rs"]),
    ("clap_complete", &["cli/complete/"]),
    ("colorous", &["picture.rs"]),
    ("crc32fast", &["crc.rs", "sink/zip/deflated.rs", "source/inflate.rs"]),
    ("flate2", &["formats/codecs.rs", "source/inflate.rs", "sink/zip/deflated.rs"]),
    ("futures_util", &["source/remote/"]),
    (
        "half",
        &[
            "cast/arithmetic.rs",
            "cast/kernels.rs",
            "compare/element.rs",
            "formats/hdf5/attributes.rs",
            "formats/hdf5/repair.rs",
            "formats/zarr/array/filters.rs",
            "handle/read.rs",
        ],
    ),
    ("http", &["source/remote/"]),
    ("indicatif", &["cli/report/progress_bar.rs"]),
    ("itoa", &["element/format.rs"]),
    ("libc", &["os/"]),
    ("lz4_flex", &["formats/codecs.rs"]),
    ("memmap2", &["os/", "source/file.rs", "sink/in_place.rs"]),
    ("ndarray", &["handle/memory.rs"]),
    ("num_bigint", &["element/dragon4.rs", "print/float.rs", "statistics/exact_sum.rs"]),
    ("object_store", &["source/remote/"]),
    ("png", &["job/picture.rs"]),
    ("rayon", &["execute/parallel.rs"]),
    ("regex_automata", &["input/glob/mod.rs"]),
    ("reqwest", &["source/remote/"]),
    ("rustls", &["source/remote/"]),
    ("rustls_native_certs", &["source/remote/"]),
    ("rustix", &["os/"]),
    ("::safetensors", &["formats/safetensors/write.rs", "handle/read.rs"]),
    ("serde", &["formats/safetensors/", "formats/shards/mod.rs", "sink/parts/"]),
    (
        "serde_json",
        &[
            "formats/gguf/metadata.rs",
            "formats/hdf5/attributes.rs",
            "formats/netcdf3/attributes.rs",
            "formats/safetensors/",
            "formats/npy/descr.rs",
            "formats/shards/",
            "formats/zarr/",
            "sink/parts/",
            "tensor/info.rs",
            "tensor/packing.rs",
            "formats/text/output/",
            "input/checkpoint.rs",
            "output/packing.rs",
            "cli/commands/",
            "cli/report/failure.rs",
        ],
    ),
    ("signal_hook", &["os/"]),
    ("strsim", &["cli/report/misuse.rs"]),
    ("tempfile", &["source/file.rs", "sink/scratch.rs"]),
    (
        "thiserror",
        &[
            "index/",
            "cast/",
            "view.rs",
            "picture.rs",
            "formats/",
            "source/",
            "sink/",
            "execute/",
            "gather/",
            "element/",
            "scatter/mod.rs",
            "error.rs",
            "input/",
            "region/lists.rs",
            "output/mod.rs",
            "shape/",
            "tensor/",
            "job/",
            "handle/memory.rs",
            "handle/read.rs",
        ],
    ),
    ("tokio", &["source/remote/"]),
    ("url", &["source/remote/"]),
    ("windows_sys", &["os/windows/"]),
    ("zarrs", &["formats/zarr/"]),
    ("zstd", &["formats/codecs.rs"]),
    ("zerocopy", &["handle/read.rs", "gather/distribution.rs", "gather/stages.rs"]),
    ("zmij", &["element/format.rs"]),
];

/// Files that may hold `unsafe`.
const UNSAFE: &[&str] = &[
    "cast/vectors.rs",
    "execute/pack/compress.rs",
    "execute/pack/interleave.rs",
    "execute/pack/shuffle.rs",
    "execute/pack/square.rs",
    "execute/pack/transpose.rs",
    "os/linux/blocks.rs",
    "os/macos.rs",
    "os/other.rs",
    "os/sigbus.rs",
    "os/signals.rs",
    "os/unix.rs",
    "os/windows/fs.rs",
    "os/windows/mod.rs",
    "sink/in_place.rs",
    "source/file.rs",
];

/// What not every system has, by the names under which it is called.
const LINUX: &[&str] = &[
    "std::os::linux",
    "PopulateRead",
    "PopulateWrite",
    "F_GETLEASE",
    "F_SETLEASE",
    "F_SETSIG",
    "FallocateFlags",
    "OFlags::PATH",
    "OFlags::TMPFILE",
    "RenameFlags",
    "ResolveFlags",
    "SpliceFlags",
    "__errno_location",
    "copy_file_range",
    "f_type",
    "fadvise",
    "fallocate",
    "fcntl_setpipe_size",
    "ioctl",
    "memfd_create",
    "openat2",
    "posix_fadvise",
    "preadv2",
    "pwritev2",
    "renameat_with",
    "statx",
    "sync_file_range",
    "sysinfo",
    "vmsplice",
];

/// The files of the library.
fn library() -> impl Iterator<Item = Source> {
    sources().into_iter().filter(|source| !["cli", "main", "lib"].contains(&source.module()))
}

/// Fail with all that was found.
fn assert_none(what: &str, found: impl Iterator<Item = String>) {
    let found: Vec<String> = found.collect();
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}

#[test]
fn modules_use_each_other_in_one_direction() {
    let mut violations = Vec::new();
    for source in library() {
        let module = source.module();
        let allowed = MODULES.iter().find(|(name, _)| *name == module);
        let (_, allowed) = allowed.unwrap_or_else(|| panic!("{module} is in no table: add it"));
        for used in source.used_modules() {
            if used != module && !allowed.contains(&used) {
                violations.push(format!("{} uses {used}", source.path));
            }
        }
    }
    assert_none("a module uses one that it must not know", violations.into_iter());
}

/// The table itself must have no circle: each module uses only those that stand before it.
#[test]
fn the_directions_have_no_circle() {
    for (number, (module, allowed)) in MODULES.iter().enumerate() {
        for used in *allowed {
            assert!(MODULES[..number].iter().any(|(name, _)| name == used), "{module} uses {used}");
        }
    }
}

#[test]
fn the_core_knows_no_paths_no_files_and_no_terminal() {
    let forbidden = ["std::fs", "std::path", "std::env", "std::process", "PathBuf", "OpenOptions"];
    let core = library().filter(|source| {
        !["os", "source", "sink", "error", "input", "output", "formats", "region", "job", "handle"]
            .contains(&source.module())
    });
    let named = |source: Source| {
        let found = forbidden.into_iter().filter(|words| source.names(words)).collect::<Vec<_>>();
        (!found.is_empty()).then(|| format!("{} names {}", source.path, found.join(", ")))
    };
    assert_none("the core knows files", core.filter_map(named));
    let prints = ["print!", "println!", "eprint!", "eprintln!", "dbg!", "is_terminal", "stderr"];
    let printing = |source: &Source| prints.iter().any(|name| source.names(name));
    assert_none("the library prints", library().filter(printing).map(|source| source.path));
}

#[test]
fn every_package_has_its_place() {
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
    let manifest = manifest.unwrap();
    let sections = manifest.split("\n[").filter(|section| {
        section.split(']').next().unwrap().ends_with("dependencies") && !section.starts_with("dev")
    });
    let names = sections.flat_map(str::lines).filter_map(|line| line.split_once(" = "));
    let packages: BTreeSet<String> = names.map(|(name, _)| name.replace('-', "_")).collect();
    let listed: BTreeSet<String> =
        PACKAGES.iter().map(|(name, _)| name.trim_start_matches(':').to_owned()).collect();
    assert_eq!(packages, listed, "Cargo.toml and the table differ");

    let mut violations = Vec::new();
    for source in sources() {
        for (package, places) in PACKAGES {
            if source.names_package(package) && !source.is_in(places) {
                violations.push(format!("{} names {package}", source.path));
            }
        }
    }
    assert_none("a package is named outside its place", violations.into_iter());
    for (package, places) in PACKAGES {
        for place in *places {
            let named = |source: &Source| source.is_in(&[place]) && source.names_package(package);
            assert!(sources().iter().any(named), "{place} does not name {package} any more");
        }
    }
}

#[test]
fn only_os_knows_the_system() {
    let outside = sources()
        .into_iter()
        .filter(|source| !source.is_in(&["os/linux/", "os/macos.rs", "os/attributes.rs"]));
    let named = |source: Source| {
        let in_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let paths = source.code.split(|c| !in_path(c)).map(|path| format!("::{path}::"));
        let paths: BTreeSet<String> = paths.collect();
        let calls = |name: &&str| paths.iter().any(|path| path.contains(&format!("::{name}::")));
        let found: Vec<&str> = LINUX.iter().copied().filter(calls).collect();
        (!found.is_empty()).then(|| format!("{} names {}", source.path, found.join(", ")))
    };
    assert_none("what only one system has is called outside its room", outside.filter_map(named));
    let paths = ["/proc", "/sys/"];
    let texts = texts().into_iter().filter(|text| !text.path.starts_with("os/"));
    let files = texts.filter(|text| paths.iter().any(|path| strings(&text.text).contains(path)));
    assert_none("a path of Linux is named outside os", files.map(|text| text.path));
}

#[test]
fn unsafe_code_stays_in_its_files() {
    let found = |source: &Source| source.names("unsafe {") || source.names("unsafe_code");
    let files: BTreeSet<String> =
        sources().into_iter().filter(found).map(|source| source.path).collect();
    assert_eq!(files, UNSAFE.iter().map(|path| (*path).to_owned()).collect());
}
