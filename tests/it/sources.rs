//! Inputs of every kind, and inputs that another process truncates while they are read.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use tslice::source::{
    Advice, Forward, IoMode, OpenError, Opened, Reader, Source, SourceError, Stream, open,
    open_stdin, spool,
};

use crate::child::{child, is_child};
use crate::memory::Bytes;

/// Bytes that differ from page to page, and are never a whole page of zeroes.
fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 4096 * 7 + 1) as u8).collect()
}

fn file(dir: &TempDir, contents: &[u8]) -> PathBuf {
    let path = dir.path().join("input");
    std::fs::write(&path, contents).unwrap();
    path
}

fn source(path: &Path, io: IoMode) -> Box<dyn Source> {
    match open(path, io).unwrap() {
        Opened::Random(source) => source,
        Opened::Forward(_) => panic!("{path:?} has all its bytes"),
    }
}

fn cut(path: &Path, len: u64) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(len).unwrap();
}

fn pipe(contents: Vec<u8>) -> Stream {
    let (reader, mut writer) = std::io::pipe().unwrap();
    std::thread::spawn(move || writer.write_all(&contents));
    Stream::from(File::from(std::os::fd::OwnedFd::from(reader)))
}

#[test]
fn windows_hold_the_files_bytes_in_every_io_mode() {
    let dir = TempDir::new().unwrap();
    let all = bytes(10_000);
    let path = file(&dir, &all);
    for io in [IoMode::Auto, IoMode::Mmap, IoMode::Read] {
        let source = source(&path, io);
        assert_eq!(source.len(), 10_000);
        assert_eq!(source.window_limit().is_none(), io != IoMode::Read);
        let mut scratch = Vec::new();
        for range in [0..10_000, 0..0, 10_000..10_000, 5000..5001, 4095..8193, 3..9] {
            source.advise(range.clone(), Advice::WillNeed);
            source.advise(range.clone(), Advice::Populate);
            let expected = &all[range.start as usize..range.end as usize];
            assert_eq!(source.window(range.clone(), &mut scratch).unwrap(), expected);
            source.advise(range.clone(), Advice::DontNeed);
            assert_eq!(source.window(range, &mut scratch).unwrap(), expected);
        }
        #[allow(clippy::reversed_empty_ranges)]
        for range in [0..10_001, 10_001..10_001, 9..8, u64::MAX - 1..u64::MAX] {
            source.advise(range.clone(), Advice::WillNeed);
            let window = source.window(range, &mut scratch);
            assert!(matches!(window, Err(SourceError::OutOfBounds { len: 10_000, .. })));
        }
        source.verify().unwrap();
    }
}

#[test]
fn an_empty_file_is_no_bytes() {
    let dir = TempDir::new().unwrap();
    let path = file(&dir, b"");
    for io in [IoMode::Auto, IoMode::Mmap, IoMode::Read] {
        let source = source(&path, io);
        assert!(source.is_empty());
        assert_eq!(source.window(0..0, &mut Vec::new()).unwrap(), b"");
        source.verify().unwrap();
        assert_eq!(Reader::new(&*source).read(&mut [0; 9]).unwrap(), 0);
    }
}

#[test]
fn a_mapped_file_that_is_cut_short_gives_an_error_and_no_signal() {
    let dir = TempDir::new().unwrap();
    let all = bytes(5 * 4096 + 100);
    let spared = dir.path().join("spared");
    std::fs::write(&spared, &all).unwrap();
    let other = source(&spared, IoMode::Mmap);
    // Where it is cut, and what is read afterwards: from the front, the back, a page inside.
    for (len, range) in [(0, 0..20_580), (4096, 20_479..20_480), (5000, 8192..8193)] {
        let path = file(&dir, &all);
        let source = source(&path, IoMode::Mmap);
        let mut scratch = Vec::new();
        assert_eq!(source.window(0..10, &mut scratch).unwrap(), &all[..10]);
        source.verify().unwrap();
        cut(&path, len);
        let lost = source.window(range, &mut scratch).unwrap();
        assert!(lost.iter().all(|&byte| byte == 0));
        assert!(matches!(source.verify(), Err(SourceError::Truncated)));
        // Even if it has its length back: the bytes read before are not trusted.
        cut(&path, all.len() as u64);
        assert!(matches!(source.verify(), Err(SourceError::Truncated)));
    }
    other.verify().unwrap();
    assert_eq!(other.window(0..20_580, &mut Vec::new()).unwrap(), all);
}

#[test]
fn a_cut_within_the_last_page_is_detected() {
    let dir = TempDir::new().unwrap();
    let path = file(&dir, &bytes(5000));
    let source = source(&path, IoMode::Mmap);
    cut(&path, 4999);
    assert_eq!(source.window(4999..5000, &mut Vec::new()).unwrap(), [0]);
    assert!(matches!(source.verify(), Err(SourceError::Truncated)));
}

#[test]
fn threads_survive_a_cut_while_they_read() {
    let dir = TempDir::new().unwrap();
    let len = 64 << 20;
    for _ in 0..4 {
        let path = file(&dir, b"");
        cut(&path, len);
        let source = &source(&path, IoMode::Mmap);
        std::thread::scope(|scope| {
            for part in 0..4 {
                scope.spawn(move || {
                    let range = len / 4 * part..len / 4 * (part + 1);
                    let window = source.window(range, &mut Vec::new()).unwrap().to_vec();
                    // Every other page from the back, so that each is a fault of its own.
                    assert!(window.iter().rev().step_by(8192).all(|&byte| byte == 0));
                });
            }
            scope.spawn(|| cut(&path, 4096));
        });
        assert!(matches!(source.verify(), Err(SourceError::Truncated)));
    }
}

#[test]
fn a_read_file_that_is_cut_short_gives_an_error() {
    let dir = TempDir::new().unwrap();
    let all = bytes(9000);
    let path = file(&dir, &all);
    let source = source(&path, IoMode::Read);
    cut(&path, 5000);
    let mut scratch = Vec::new();
    assert!(matches!(source.window(4000..6000, &mut scratch), Err(SourceError::Truncated)));
    assert!(matches!(source.window(8000..8001, &mut scratch), Err(SourceError::Truncated)));
    assert_eq!(source.window(4000..5000, &mut scratch).unwrap(), &all[4000..5000]);
}

#[test]
#[ignore = "needs a process of its own"]
fn child_fault_elsewhere() {
    if !is_child() {
        return;
    }
    let dir = TempDir::new().unwrap();
    let path = file(&dir, &bytes(4096));
    let ours = source(&path, IoMode::Mmap);
    #[allow(unsafe_code)]
    // SAFETY: nothing is assumed about the bytes; that touching them kills is the point.
    let theirs = unsafe { memmap2::Mmap::map(&File::open(&path).unwrap()).unwrap() };
    cut(&path, 0);
    assert_eq!(ours.window(0..1, &mut Vec::new()).unwrap(), [0]);
    drop(dir);
    std::process::exit(i32::from(std::hint::black_box(&theirs)[0]));
}

#[test]
fn a_fault_outside_of_our_maps_still_kills() {
    let status =
        child(child_fault_elsewhere, "exec \"$@\"").stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGBUS), "{status}");
}

#[test]
#[ignore = "needs a process of its own"]
fn child_many_maps() {
    if !is_child() {
        return;
    }
    let dir = TempDir::new().unwrap();
    let path = file(&dir, b"abc");
    let mut sources: Vec<_> = (0..1030).map(|_| source(&path, IoMode::Auto)).collect();
    assert!(sources.iter().all(|s| s.window(1..3, &mut Vec::new()).unwrap() == b"bc"));
    assert_eq!(sources.iter().filter(|s| s.window_limit().is_none()).count(), 1024);
    // A slot that was released is used again.
    sources.remove(500);
    assert_eq!(source(&path, IoMode::Auto).window_limit(), None);
}

#[test]
fn more_maps_than_can_be_watched_are_read_instead() {
    // 1030 files are open at a time.
    let mut command = child(child_many_maps, "ulimit -n 4096; exec \"$@\"");
    assert!(command.status().unwrap().success());
}

#[test]
fn a_pipe_comes_in_order_and_skips() {
    let all = bytes(3_000_000);
    let mut stream = pipe(all.clone());
    let mut buf = vec![0; 1000];
    stream.read_exact(&mut buf).unwrap();
    assert_eq!(buf, &all[..1000]);
    stream.skip(0).unwrap();
    stream.skip(2_000_000).unwrap();
    assert_eq!(stream.position(), 2_001_000);
    stream.read_exact(&mut buf).unwrap();
    assert_eq!(buf, &all[2_001_000..2_002_000]);
    assert!(matches!(stream.skip(1_000_000), Err(SourceError::UnexpectedEnd(3_000_000))));
}

#[test]
fn a_stream_over_a_file_skips_too() {
    let dir = TempDir::new().unwrap();
    let all = bytes(600_000);
    let mut stream = Stream::from(File::open(file(&dir, &all)).unwrap());
    stream.skip(500_000).unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert!(rest == all[500_000..]);
    assert!(matches!(stream.skip(1), Err(SourceError::UnexpectedEnd(600_000))));
}

#[test]
fn spooling_keeps_the_rest_of_a_pipe() {
    for (len, skip) in [(3_000_000, 128), (5, 5), (0, 0)] {
        let all = bytes(len);
        let mut stream = pipe(all.clone());
        stream.skip(skip as u64).unwrap();
        let source = spool(stream).unwrap();
        assert_eq!(source.len(), (len - skip) as u64);
        let mut scratch = Vec::new();
        assert!(source.window(0..source.len(), &mut scratch).unwrap() == &all[skip..]);
        source.verify().unwrap();
    }
}

#[test]
#[ignore = "needs a process of its own"]
fn child_spool() {
    if !is_child() {
        return;
    }
    let Err(error) = spool(pipe(bytes(1_000_000))) else { panic!("it was kept") };
    assert!(error.to_string().starts_with("the input cannot be kept in "), "{error}");
    assert!(matches!(error, SourceError::Spool { .. }));
}

#[test]
fn a_failed_spool_names_its_folder() {
    let mut missing = child(child_spool, "exec \"$@\"");
    assert!(missing.env("TMPDIR", "/nowhere").status().unwrap().success());
}

#[test]
fn paths_that_cannot_be_opened_give_the_reason() {
    let dir = TempDir::new().unwrap();
    assert!(matches!(open(dir.path(), IoMode::Auto), Err(OpenError::IsADirectory)));
    let missing = open(&dir.path().join("missing"), IoMode::Auto);
    assert!(matches!(missing, Err(OpenError::Io(e)) if e.kind() == ErrorKind::NotFound));
    assert!(matches!(open("/dev/null".as_ref(), IoMode::Mmap), Err(OpenError::NotMappable)));
}

#[test]
fn fifos_and_devices_are_forward_only() {
    let dir = TempDir::new().unwrap();
    let fifo = dir.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let writer = {
        let fifo = fifo.clone();
        std::thread::spawn(move || std::fs::write(fifo, b"through the pipe"))
    };
    let Opened::Forward(mut stream) = open(&fifo, IoMode::Auto).unwrap() else { panic!("no file") };
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert_eq!(text, "through the pipe");
    writer.join().unwrap().unwrap();

    let Opened::Forward(mut zeroes) = open("/dev/zero".as_ref(), IoMode::Read).unwrap() else {
        panic!("no file")
    };
    zeroes.skip(1 << 20).unwrap();
    assert_eq!(zeroes.position(), 1 << 20);
}

#[test]
#[ignore = "needs a process of its own"]
fn child_stdin() {
    if !is_child() {
        return;
    }
    let expected = std::env::var("EXPECTED").unwrap();
    let by_name = std::env::var_os("BY_NAME").is_some();
    for io in [IoMode::Auto, IoMode::Mmap, IoMode::Read] {
        let input = if by_name { open("/dev/stdin".as_ref(), io) } else { open_stdin(io) };
        let text = match input {
            Ok(Opened::Random(source)) => {
                let mut scratch = Vec::new();
                let window = source.window(0..source.len(), &mut scratch).unwrap().to_vec();
                source.verify().unwrap();
                String::from_utf8(window).unwrap()
            }
            Ok(Opened::Forward(_)) => "a stream".to_owned(),
            Err(error) => error.to_string(),
        };
        if io == IoMode::Mmap && expected == "a stream" {
            assert_eq!(text, "only a regular file can be mapped");
        } else {
            assert_eq!(text, expected);
        }
    }
}

#[test]
fn standard_input_is_what_it_was_redirected_from() {
    let dir = TempDir::new().unwrap();
    let path = file(&dir, b"0123456789");
    let stdin = |stdin: Stdio, expected: &str, by_name: bool| {
        let mut command = child(child_stdin, "exec \"$@\"");
        if by_name {
            command.env("BY_NAME", "1");
        }
        command.stdin(stdin).env("EXPECTED", expected).status().unwrap().success()
    };
    for by_name in [false, true] {
        for (at, rest) in [(0, "0123456789"), (4, "456789"), (10, ""), (99, "")] {
            let mut file = File::open(&path).unwrap();
            file.seek(SeekFrom::Start(at)).unwrap();
            assert!(stdin(file.into(), rest, by_name), "from {at}");
        }
        assert!(stdin(Stdio::piped(), "a stream", by_name));
        assert!(stdin(File::open("/").unwrap().into(), "is a directory", by_name));
    }
}

#[test]
fn a_closed_standard_input_is_an_error_and_dev_null_is_none() {
    for (redirection, expected) in
        [("<&-", "standard input is closed"), ("< /dev/null", "a stream")]
    {
        let mut command = child(child_stdin, &format!("exec \"$@\" {redirection}"));
        assert!(command.env("EXPECTED", expected).status().unwrap().success(), "{redirection}");
    }
}

#[test]
fn a_header_costs_one_page() {
    let source = Bytes::new(bytes(100_000), Some(1 << 20));
    let mut reader = Reader::new(&source);
    let mut buf = [0; 10];
    for at in 0..20 {
        reader.read_exact(&mut buf).unwrap();
        assert_eq!(buf, source.data[at * 10..][..10]);
    }
    assert_eq!(reader.remaining(), 99_800);
    assert_eq!(format!("{:?}", source.asked.lock().unwrap()), "[0..4096]");
}

#[test]
fn a_reader_reads_everything_in_any_pieces() {
    let source = Bytes::new(bytes(100_000), Some(1 << 20));
    for piece in [1, 7, 4095, 4096, 4097, 50_000, 200_000] {
        let mut reader = Reader::new(&source);
        let mut all = Vec::new();
        let mut buf = vec![0; piece];
        loop {
            let count = reader.read(&mut buf).unwrap();
            if count == 0 {
                break;
            }
            all.extend_from_slice(&buf[..count]);
            assert_eq!(reader.remaining(), 100_000 - all.len() as u64);
        }
        assert!(all == source.data, "in pieces of {piece}");
    }
    let mut line = Vec::new();
    let mut reader = Reader::new(&source);
    reader.read_until(source.data[5000], &mut line).unwrap();
    assert!(source.data.starts_with(&line));
}
