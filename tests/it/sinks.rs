//! Outputs: complete or not there at all, under every name that a shell can give them.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tslice::sink::{
    Destination, Draft, SinkError, SinkOptions, UNNAMED_FILES, WriteOrder, check, create,
    create_named,
};

use crate::child::child;

const PLAIN: SinkOptions =
    SinkOptions { force: false, fsync: false, len: None, shares: false, mode: None };
const FORCE: SinkOptions = SinkOptions { force: true, ..PLAIN };

/// A file with no name until commit, and one that has a temporary name.
const WAYS: [Way; 2] = [|path, options| sink(path, options), create_named];

type Way = fn(&Path, SinkOptions) -> Result<Box<dyn Draft>, SinkError>;

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn sink(path: impl Into<PathBuf>, options: SinkOptions) -> Result<Box<dyn Draft>, SinkError> {
    create(&Destination::Path(path.into()), options)
}

/// Write `bytes` to `path` and commit.
fn save(path: &Path, bytes: &[u8], options: SinkOptions) -> Result<(), SinkError> {
    let sink = sink(path, options)?;
    sink.write_at(0, bytes)?;
    sink.commit()
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().mode() & 0o7777
}

/// What a child is told to write to.
fn child_out() -> Option<PathBuf> {
    std::env::var_os("TSLICE_TEST_OUT").map(PathBuf::from)
}

#[test]
fn a_file_appears_when_it_is_whole() {
    for way in WAYS {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("out");
        let all: Vec<u8> = (0..100_000_u32).map(|i| (i * 7) as u8).collect();
        let options = SinkOptions { len: Some(100_000), fsync: true, ..PLAIN };
        let sink = way(&path, options).unwrap();
        assert_eq!(sink.order(), WriteOrder::Any);
        std::thread::scope(|scope| {
            for (at, piece) in all.chunks(999).enumerate().rev() {
                let sink = &sink;
                scope.spawn(move || sink.write_at(at as u64 * 999, piece).unwrap());
            }
        });
        assert!(!path.exists());
        Box::new(sink).commit().unwrap();
        assert_eq!(names(dir.path()), ["out"]);
        assert!(std::fs::read(&path).unwrap() == all);
    }
}

#[test]
fn no_bytes_are_a_file_too() {
    for (way, len) in WAYS.into_iter().zip([None, Some(0)]) {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("out");
        way(&path, SinkOptions { len, ..PLAIN }).unwrap().commit().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"");
    }
}

#[test]
fn a_dropped_sink_leaves_no_file() {
    for way in WAYS {
        let dir = TempDir::new().unwrap();
        std::fs::write(dir.path().join("old"), "old").unwrap();
        for name in ["new", "old"] {
            let sink = way(&dir.path().join(name), FORCE).unwrap();
            sink.write_at(0, b"lost").unwrap();
            drop(sink);
        }
        assert_eq!(names(dir.path()), ["old"]);
        assert_eq!(std::fs::read(dir.path().join("old")).unwrap(), b"old");
    }
}

#[test]
fn only_create_named_shows_a_name_before_commit() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("out");
    let unnamed = sink(&path, PLAIN).unwrap();
    assert_eq!(names(dir.path()).is_empty(), UNNAMED_FILES);
    let named = create_named(&path, PLAIN).unwrap();
    let shown = names(dir.path());
    assert_eq!(shown.len(), if UNNAMED_FILES { 1 } else { 2 });
    let is_temporary = |name: &String| name.starts_with(".tslice-") && name.len() == 20;
    assert!(shown.iter().all(is_temporary), "{shown:?}");
    drop((unnamed, named));
}

#[test]
fn an_incomplete_file_is_not_committed() {
    for way in WAYS {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("out");
        let sink = way(&path, SinkOptions { len: Some(10), ..PLAIN }).unwrap();
        sink.write_at(3, b"seven b").unwrap();
        let beyond = sink.write_at(9, b"ab");
        assert!(matches!(beyond, Err(SinkError::OutOfBounds { offset: 9, count: 2, len: 10 })));
        let error = Box::new(sink).commit().unwrap_err();
        assert!(matches!(error, SinkError::Incomplete { written: 7, len: 10 }));

        // Without an announced length, a gap is still detected.
        let sink = way(&path, PLAIN).unwrap();
        sink.write_at(1, b"b").unwrap();
        assert!(matches!(sink.write_at(u64::MAX, b"b"), Err(SinkError::OutOfBounds { .. })));
        let error = Box::new(sink).commit().unwrap_err();
        assert!(matches!(error, SinkError::Incomplete { written: 1, len: 2 }));
        assert_eq!(names(dir.path()), [""; 0]);
    }
}

#[test]
fn an_existing_file_is_refused_at_creation() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("out");
    std::fs::write(&path, "old").unwrap();
    for way in WAYS {
        assert!(matches!(way(&path, PLAIN), Err(SinkError::AlreadyExists)));
    }
    assert!(matches!(
        check(&Destination::Path(path.clone()), PLAIN),
        Err(SinkError::AlreadyExists)
    ));
    check(&Destination::Path(path.clone()), FORCE).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
}

#[test]
fn a_file_created_meanwhile_is_not_overwritten_without_force() {
    for way in WAYS {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("out");
        let careful = way(&path, PLAIN).unwrap();
        let forced = way(&path, FORCE).unwrap();
        std::fs::write(&path, "theirs").unwrap();
        assert!(matches!(Box::new(careful).commit(), Err(SinkError::AlreadyExists)));
        assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
        forced.write_at(0, b"ours").unwrap();
        Box::new(forced).commit().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"ours");
        assert_eq!(names(dir.path()), ["out"]);
    }
}

#[test]
fn force_replaces_in_one_step_and_keeps_the_mode() {
    for way in WAYS {
        for bits in [0o600, 0o644, 0o755, 0o444, 0o666] {
            let dir = TempDir::new().unwrap();
            let path = dir.path().join("out");
            std::fs::write(&path, "old").unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(bits)).unwrap();
            let mut old = File::open(&path).unwrap();
            let sink = way(&path, SinkOptions { len: Some(3), fsync: true, ..FORCE }).unwrap();
            sink.write_at(0, b"new").unwrap();
            Box::new(sink).commit().unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"new");
            assert_eq!(mode(&path), bits);
            assert_eq!(names(dir.path()), ["out"]);
            // A process that has the old file open keeps it: it may be the input.
            let mut text = String::new();
            old.read_to_string(&mut text).unwrap();
            assert_eq!(text, "old");
        }
    }
}

#[test]
fn a_directory_that_took_the_name_stays() {
    for way in WAYS {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("out");
        let sink = way(&path, FORCE).unwrap();
        std::fs::create_dir(&path).unwrap();
        let error = Box::new(sink).commit().unwrap_err();
        assert_eq!(error.io().unwrap().kind(), ErrorKind::IsADirectory, "{error}");
        assert_eq!(names(dir.path()), ["out"]);
    }
}

#[test]
fn an_output_through_a_link_keeps_the_link() {
    for way in WAYS {
        let dir = TempDir::new().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        std::fs::create_dir(&a).unwrap();
        std::fs::create_dir(&b).unwrap();
        // first -> b/second (absolute), b/second -> ../a/data (relative, dangling at first)
        symlink(b.join("second"), dir.path().join("first")).unwrap();
        symlink("../a/data", b.join("second")).unwrap();
        let first = dir.path().join("first");
        for (text, options) in [("one", PLAIN), ("two", FORCE)] {
            let sink = way(&first, options).unwrap();
            sink.write_at(0, text.as_bytes()).unwrap();
            Box::new(sink).commit().unwrap();
            assert_eq!(std::fs::read_to_string(a.join("data")).unwrap(), text);
        }
        assert!(matches!(way(&first, PLAIN), Err(SinkError::AlreadyExists)));
        assert!(first.is_symlink() && b.join("second").is_symlink());
        assert!(!a.join("data").is_symlink());
        assert_eq!((names(&a), names(&b)), (vec!["data".into()], vec!["second".into()]));
    }
}

#[test]
fn a_cycle_of_links_is_an_error() {
    let dir = TempDir::new().unwrap();
    symlink("b", dir.path().join("a")).unwrap();
    symlink("a", dir.path().join("b")).unwrap();
    let Err(error) = sink(dir.path().join("a"), FORCE) else { panic!("a circle") };
    assert_eq!(error.io().unwrap().raw_os_error(), Some(libc::ELOOP));
    symlink("missing/data", dir.path().join("c")).unwrap();
    let Err(error) = sink(dir.path().join("c"), FORCE) else { panic!("no such directory") };
    assert_eq!(error.io().unwrap().kind(), ErrorKind::NotFound);
}

#[test]
fn paths_that_cannot_be_files_give_the_reason() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    symlink(".", dir.path().join("link")).unwrap();
    let both = |name: &str| {
        let path = dir.path().join(name);
        let checked = check(&Destination::Path(path.clone()), FORCE).unwrap_err();
        let Err(error) = sink(path, FORCE) else { panic!("{name} was opened") };
        assert_eq!(checked.to_string(), error.to_string());
        error
    };
    for name in ["", ".", "..", "new/", "file/", "link", "link/.", "link/.."] {
        assert!(matches!(both(name), SinkError::IsADirectory), "{name}");
    }
    assert_eq!(both("no/out").io().unwrap().kind(), ErrorKind::NotFound);
    assert_eq!(both("file/out").io().unwrap().kind(), ErrorKind::NotADirectory);
    assert_eq!(both(&"x".repeat(300)).io().unwrap().raw_os_error(), Some(libc::ENAMETOOLONG));
    assert!(both("no/out").to_string().starts_with("cannot be created: No such file"));
    let Err(error) = sink("", PLAIN) else { panic!("no name") };
    assert_eq!(error.io().unwrap().kind(), ErrorKind::NotFound);
    assert_eq!(names(dir.path()), ["file", "link"]);
}

#[test]
fn more_than_the_disk_holds_is_refused_at_once() {
    for way in WAYS {
        let dir = TempDir::new().unwrap();
        for len in [1 << 50, u64::MAX / 2, u64::MAX] {
            let options = SinkOptions { len: Some(len), ..PLAIN };
            let Err(error) = way(&dir.path().join("out"), options) else { panic!("{len} fit") };
            assert!(error.to_string().starts_with("cannot be made room for"), "{error}");
        }
        assert_eq!(names(dir.path()), [""; 0]);
    }
}

#[test]
fn fifos_and_devices_are_written_directly() {
    let dir = TempDir::new().unwrap();
    let fifo = dir.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    symlink("fifo", dir.path().join("link")).unwrap();
    let reader = {
        let fifo = fifo.clone();
        std::thread::spawn(move || std::fs::read(fifo).unwrap())
    };
    let out = sink(dir.path().join("link"), SinkOptions { len: Some(300_000), ..PLAIN }).unwrap();
    assert_eq!(out.order(), WriteOrder::Ascending);
    out.write_at(0, &[1; 200_000]).unwrap();
    let early = out.write_at(200_001, b"x");
    assert!(matches!(early, Err(SinkError::OutOfOrder { expected: 200_000, offset: 200_001 })));
    let beyond = out.write_at(200_000, &[2; 100_001]);
    assert!(matches!(beyond, Err(SinkError::OutOfBounds { .. })));
    out.write_at(200_000, &[2; 100_000]).unwrap();
    out.commit().unwrap();
    let read = reader.join().unwrap();
    assert!(read[..200_000] == [1; 200_000] && read[200_000..] == [2; 100_000]);
    assert!(fifo.metadata().unwrap().file_type().is_fifo());
    assert_eq!(names(dir.path()), ["fifo", "link"]);

    save("/dev/null".as_ref(), b"gone", PLAIN).unwrap();
    let error = save("/dev/full".as_ref(), b"x", PLAIN).unwrap_err();
    assert!(matches!(error, SinkError::Io(e) if e.kind() == ErrorKind::StorageFull));
    let short = sink("/dev/null", SinkOptions { len: Some(1), ..PLAIN }).unwrap();
    assert!(matches!(short.commit(), Err(SinkError::Incomplete { written: 0, len: 1 })));
}

#[test]
#[ignore = "needs a process of its own"]
fn child_closes_its_reader() {
    let Some(fifo) = child_out() else { return };
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let both = OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
    let out = sink(&fifo, PLAIN).unwrap();
    out.write_at(0, b"in the pipe").unwrap();
    drop(both);
    assert!(matches!(out.write_at(11, b"nobody there"), Err(SinkError::BrokenPipe)));
}

/// In a process that starts no other one, which would hold the reading end until its exec.
#[test]
fn a_reader_that_is_closed_is_a_broken_pipe() {
    let dir = TempDir::new().unwrap();
    let mut command = child(child_closes_its_reader, "exec \"$@\"");
    command.env("TSLICE_TEST_OUT", dir.path().join("fifo"));
    assert!(command.status().unwrap().success());
    assert_eq!(names(dir.path()), ["fifo"]);
}

#[test]
fn an_open_descriptor_is_written_by_its_name() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&writer);
    save(format!("/dev/fd/{fd}").as_ref(), b"by number", PLAIN).unwrap();
    drop(writer);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "by number");
}

#[test]
#[ignore = "needs a process of its own"]
fn child_stdout() {
    let Some(out) = child_out() else { return };
    let target = if out == Path::new("-") { Destination::Stdout } else { Destination::Path(out) };
    let checked = check(&target, PLAIN).is_ok();
    let sink = match create(&target, SinkOptions { len: Some(6), fsync: true, ..PLAIN }) {
        Ok(sink) => sink,
        Err(error) => {
            assert!(!checked);
            assert_eq!(error.to_string(), "standard output is closed");
            std::process::exit(77);
        }
    };
    assert!(checked);
    sink.write_at(0, b"<one").unwrap();
    sink.write_at(4, b"2>").unwrap();
    sink.commit().unwrap();
    std::process::exit(0);
}

#[test]
fn standard_output_is_written_from_its_current_offset() {
    for out in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        for (redirection, code) in [
            ("| cat > \"$TSLICE_TEST_FILE\"", 0),
            ("> \"$TSLICE_TEST_FILE\"", 0),
            (">> \"$TSLICE_TEST_FILE\"", 0),
            ("1<> \"$TSLICE_TEST_FILE\"", 0),
        ] {
            let dir = TempDir::new().unwrap();
            let file = dir.path().join("file");
            std::fs::write(&file, "before ").unwrap();
            let line = format!("\"$@\" {redirection}");
            let mut command = child(child_stdout, &line);
            command.env("TSLICE_TEST_OUT", out).env("TSLICE_TEST_FILE", &file);
            let status = command.status().unwrap();
            assert_eq!(status.code(), Some(code), "{out} {redirection}");
            // The test harness writes there, too.
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(text.contains("<one2>"), "{out} {redirection}: {text}");
            assert_eq!(text.starts_with("before "), redirection.starts_with(">>"), "{text}");
            assert_eq!(names(dir.path()), ["file"]);
        }
    }
}

#[test]
fn a_closed_standard_output_is_told_from_dev_null() {
    for (redirection, code) in
        [(">&-", 77), ("<&- >&-", 77), ("> /dev/null", 0), ("1<> /dev/null", 0), ("<&-", 0)]
    {
        let line = format!("\"$@\" {redirection}");
        let status = child(child_stdout, &line).env("TSLICE_TEST_OUT", "-").status().unwrap();
        assert_eq!(status.code(), Some(code), "{redirection}");
    }
}

#[test]
#[ignore = "needs a process of its own"]
fn child_umask() {
    let Some(out) = child_out() else { return };
    for (name, way) in ["unnamed", "named"].into_iter().zip(WAYS) {
        way(&out.join(name), PLAIN).unwrap().commit().unwrap();
        // A replaced file keeps its mode, whatever the umask.
        let old = out.join(name.to_owned() + "-old");
        File::create(&old).unwrap().set_permissions(Permissions::from_mode(0o666)).unwrap();
        way(&old, FORCE).unwrap().commit().unwrap();
    }
}

#[test]
fn a_new_file_has_the_mode_that_the_umask_leaves() {
    for (umask, bits) in [("022", 0o644), ("027", 0o640), ("077", 0o600), ("000", 0o666)] {
        let dir = TempDir::new().unwrap();
        let line = format!("umask {umask}; \"$@\"");
        let mut command = child(child_umask, &line);
        assert!(command.env("TSLICE_TEST_OUT", dir.path()).status().unwrap().success());
        for name in ["unnamed", "named"] {
            assert_eq!(mode(&dir.path().join(name)), bits, "{name}, umask {umask}");
            assert_eq!(mode(&dir.path().join(name.to_owned() + "-old")), 0o666);
        }
    }
}

#[test]
#[ignore = "needs a process of its own"]
fn child_file_limit() {
    let Some(out) = child_out() else { return };
    let piece = [7; 1 << 20];
    for way in WAYS {
        let is_efbig = |error: &SinkError| {
            assert_eq!(error.io().unwrap().raw_os_error(), Some(libc::EFBIG), "{error}");
        };
        let sink = way(&out.join("new"), PLAIN).unwrap();
        is_efbig(&sink.write_at(0, &piece).unwrap_err());
        drop(sink);
        let Err(error) = way(&out.join("new"), SinkOptions { len: Some(1 << 20), ..PLAIN }) else {
            panic!("no limit")
        };
        is_efbig(&error);
    }
    std::fs::write(out.join("survived"), "").unwrap();
}

#[test]
fn the_limit_of_file_size_is_an_error_and_no_signal() {
    let dir = TempDir::new().unwrap();
    let mut command = child(child_file_limit, "ulimit -f 64; \"$@\"");
    let status = command.env("TSLICE_TEST_OUT", dir.path()).status().unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(names(dir.path()), ["survived"]);
}

#[test]
#[ignore = "needs a process of its own"]
fn child_waits() {
    let Some(out) = child_out() else { return };
    let way = WAYS[usize::from(std::env::var_os("NAMED").is_some())];
    let sinks = ["a", "b"].map(|name| way(&out.join(name), FORCE).unwrap());
    sinks[0].write_at(0, b"half").unwrap();
    drop(way(&out.join("c"), PLAIN).unwrap());
    std::fs::write(out.join("ready"), "").unwrap();
    std::thread::sleep(Duration::from_secs(60));
}

/// Start `child_waits` and wait until it has its two outputs open.
fn waiting(dir: &TempDir, named: bool, line: &str) -> Child {
    std::fs::write(dir.path().join("a"), "old").unwrap();
    let mut command = child(child_waits, line);
    command.env("TSLICE_TEST_OUT", dir.path());
    if named {
        command.env("NAMED", "1");
    }
    let child = command.spawn().unwrap();
    let start = Instant::now();
    while !dir.path().join("ready").exists() {
        assert!(start.elapsed() < Duration::from_secs(30), "the child never came so far");
        std::thread::sleep(Duration::from_millis(5));
    }
    let temporary = names(dir.path()).iter().filter(|n| n.starts_with(".tslice-")).count();
    assert_eq!(temporary, if named || !UNNAMED_FILES { 2 } else { 0 });
    child
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}

#[test]
fn a_signal_removes_temporary_files_and_ends_the_process() {
    use rustix::process::Signal;
    for by in [Signal::INT, Signal::TERM, Signal::HUP, Signal::KILL] {
        for named in [false, true] {
            if (named || !UNNAMED_FILES) && by == Signal::KILL {
                continue;
            }
            let dir = TempDir::new().unwrap();
            let mut child = waiting(&dir, named, "exec \"$@\"");
            signal(&child, by);
            assert_eq!(child.wait().unwrap().signal(), Some(by.as_raw()));
            assert_eq!(names(dir.path()), ["a", "ready"], "{by:?}, named: {named}");
            assert_eq!(std::fs::read(dir.path().join("a")).unwrap(), b"old");
        }
    }
}

#[test]
fn an_ignored_signal_stays_ignored() {
    use rustix::process::Signal;
    let dir = TempDir::new().unwrap();
    let mut child = waiting(&dir, true, "trap '' HUP INT; exec \"$@\"");
    signal(&child, Signal::HUP);
    signal(&child, Signal::INT);
    std::thread::sleep(Duration::from_millis(100));
    assert!(child.try_wait().unwrap().is_none());
    assert_eq!(names(dir.path()).len(), 4);
    signal(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().signal(), Some(15));
    assert_eq!(names(dir.path()), ["a", "ready"]);
}

#[test]
#[ignore = "needs a process of its own"]
fn child_replaces() {
    let Some(out) = child_out() else { return };
    std::fs::write(out.join("a"), "old").unwrap();
    std::fs::write(out.join("ready"), "").unwrap();
    for round in 0_u64.. {
        let way = WAYS[(round % 2) as usize];
        let sink = way(&out.join("a"), SinkOptions { len: Some(8), ..FORCE }).unwrap();
        sink.write_at(0, &[round as u8; 8]).unwrap();
        Box::new(sink).commit().unwrap();
    }
}

#[test]
fn a_signal_while_replacing_leaves_no_temporary_file() {
    for round in 0..30 {
        let dir = TempDir::new().unwrap();
        let mut command = child(child_replaces, "exec \"$@\"");
        let mut child = command.env("TSLICE_TEST_OUT", dir.path()).spawn().unwrap();
        let start = Instant::now();
        while !dir.path().join("ready").exists() {
            assert!(start.elapsed() < Duration::from_secs(30), "the child never came so far");
        }
        std::thread::sleep(Duration::from_micros(2000 + 137 * round));
        signal(&child, rustix::process::Signal::TERM);
        assert_eq!(child.wait().unwrap().signal(), Some(15));
        assert_eq!(names(dir.path()), ["a", "ready"]);
        assert!([3, 8].contains(&dir.path().join("a").metadata().unwrap().len()));
    }
}
