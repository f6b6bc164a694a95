//! The program in scripts and pipelines: lists of names, outputs that do not block, error files that several runs
//! share, signals.

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use tslice::dtype::{DType, Endian, Scalar};

use crate::inputs::{write_npy, write_safetensors};
use crate::program::{bash, process, tslice};

const BYTES: DType = DType::Scalar(Scalar::U8, Endian::Little);

/// A folder with `a.npy`, of shape (4,) and bytes that count up.
fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    write_npy(&dir.path().join("a.npy"), &BYTES, &[4], &[0, 1, 2, 3]);
    dir
}

#[test]
fn lists_of_names_may_be_those_of_windows() {
    let dir = folder();
    fs::write(dir.path().join("names"), "\u{feff}a.npy\r\na.npy\r\n").unwrap();
    let args = ["concat", "--files-from", "names", "--to", "json"];
    tslice(&dir, &args).assert().success().stdout("[0, 1, 2, 3, 0, 1, 2, 3]\n");
}

#[test]
fn many_inputs_need_few_descriptors() {
    let dir = folder();
    let line = "ulimit -n 64; yes a.npy | head -58 | tslice concat --files-from - -o out.npy";
    assert!(bash(&dir, line).status().unwrap().success());
    assert!(fs::read(dir.path().join("out.npy")).unwrap().ends_with(&[0, 1, 2, 3].repeat(58)));
}

#[test]
fn an_output_that_does_not_block_is_waited_for() {
    let dir = folder();
    let tensor =
        |at: usize| format!(r#""{at:08}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#);
    let tensors: Vec<String> = (0..20_000).map(tensor).collect();
    let header = format!("{{{}}}", tensors.join(","));
    write_safetensors(&dir.path().join("many.safetensors"), &header, &[]);
    for args in [&["info", "many.safetensors"][..], &["info", "many.safetensors", "--json"]] {
        let (mut reader, writer) = UnixStream::pair().unwrap();
        writer.set_nonblocking(true).unwrap();
        let run = thread::scope(|scope| {
            let run = scope.spawn(|| process(&dir, args).stdout(OwnedFd::from(writer)).output());
            // the program fills what the system keeps for the reader
            thread::sleep(Duration::from_millis(300));
            let mut printed = String::new();
            reader.read_to_string(&mut printed).unwrap();
            assert!(printed.contains("00000000") && printed.contains("00019999"), "{args:?}");
            run.join().unwrap().unwrap()
        });
        assert!(run.status.success(), "{args:?}: {}", String::from_utf8_lossy(&run.stderr));
    }
}

#[test]
fn messages_are_written_whole() {
    let dir = folder();
    for (flags, first, last) in
        [(&[][..], "tslice: ", "No such file or directory"), (&["--dry-run", "--json"], "{", "}")]
    {
        let errors = dir.path().join("errors");
        fs::write(&errors, "").unwrap();
        thread::scope(|scope| {
            let worker = || {
                for number in 0..25 {
                    let mut args = vec!["missing.npy", "-o", "out.npy"];
                    args.extend(flags);
                    let errors = OpenOptions::new().append(true).open(&errors).unwrap();
                    let status = process(&dir, &args).stderr(errors).status().unwrap();
                    assert_eq!(status.code(), Some(1), "run {number}");
                }
            };
            (0..4).for_each(|_| drop(scope.spawn(worker)));
        });
        let lines = fs::read_to_string(&errors).unwrap();
        assert_eq!(lines.lines().count(), 100, "{lines}");
        let is_whole = |line: &str| line.starts_with(first) && line.ends_with(last);
        assert!(lines.lines().all(is_whole), "{lines}");
    }
}

// `bash` starts what runs beside it so that INT and QUIT do nothing: the fault tests send those
#[cfg(feature = "zarr")]
#[test]
fn no_signal_leaves_a_folder_that_was_begun() {
    let dir = folder();
    // what `nohup` has ignored is ignored by all that it starts
    let ignored = bash(&dir, "trap").output().unwrap().stdout;
    let ignored = String::from_utf8_lossy(&ignored).into_owned();
    for signal in ["HUP", "TERM", "USR1", "USR2", "ALRM", "VTALRM", "XCPU"] {
        if ignored.contains(&format!("SIG{signal}")) {
            continue;
        }
        // the input stops in the middle
        let line = format!(
            "ulimit -c 0; mkfifo pipe; (head -c 140 big.npy; exec sleep 60) > pipe 2> said & feeder=$!
             tslice - --chunks 2 -o out.zarr < pipe 2> said & run=$!
             for i in {{1..200}}; do ls -A | grep -q '^.tslice-' && break; sleep 0.05; done
             ls -A | grep -q '^.tslice-' || echo 'nothing was begun'
             kill -{signal} $run; wait $run; status=$?; kill $feeder; rm pipe
             ls -A | grep '^.tslice-'; echo $((status - 128))"
        );
        write_npy(&dir.path().join("big.npy"), &BYTES, &[1000], &[7; 1000]);
        let run = bash(&dir, &line).output().unwrap();
        let printed = String::from_utf8_lossy(&run.stdout).into_owned();
        let number = bash(&dir, &format!("kill -l {signal}")).output().unwrap().stdout;
        assert_eq!(printed, String::from_utf8_lossy(&number), "{signal}");
    }
}
