//! Arrays of NumPy in pickles of all protocols, and in arrays of Python objects; what is refused.
//! `tests/python/pickle_differential.py` does the same with random objects of Python.

use std::fs;

use predicates::str::contains;
use tempfile::TempDir;

use crate::inputs::zip;
use crate::program::{bash, tslice};

/// `{'w': np.array([1, 2, 255], 'u1'), 'n': [np.float32(1.5)]}` in protocol 0.
const PROTOCOL_0: &[u8] = b"(dVw\ncnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntc_codecs\nencode\np0\n\
    (Vb\nVlatin1\np1\ntRtR(I1\n(I3\ntcnumpy\ndtype\np2\n(Vu1\nI00\nI01\ntR(I3\nV|\nNNNI-1\nI-1\nI0\ntbI00\ng0\n\
    (V\x01\x02\xff\ng1\ntRtbsVn\n(lcnumpy._core.multiarray\nscalar\n(g2\n(Vf4\nI00\nI01\ntR(I3\nV<\nNNNI-1\nI-1\nI0\n\
    tbg0\n(V\\u0000\\u0000\xc0?\ng1\ntRtRas.";

/// The same in protocol 2.
const PROTOCOL_2: &[u8] = b"\x80\x02}(X\x01\0\0\0wcnumpy._core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85\
    c_codecs\nencode\nq\0X\x01\0\0\0bX\x06\0\0\0latin1q\x01\x86R\x87R(K\x01K\x03\x85cnumpy\ndtype\nq\x02X\x02\0\0\0u1\
    \x89\x88\x87R(K\x03X\x01\0\0\0|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89h\0X\x04\0\0\0\x01\x02\xc3\xbfh\x01\x86R\
    tbX\x01\0\0\0n]cnumpy._core.multiarray\nscalar\nh\x02X\x02\0\0\0f4\x89\x88\x87R(K\x03X\x01\0\0\0<\
    NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tbh\0X\x05\0\0\0\0\0\xc3\x80?h\x01\x86R\x86Rau.";

/// The same in protocol 5.
const PROTOCOL_5: &[u8] = b"\x80\x05\x95\xbd\0\0\0\0\0\0\0}(\x8c\x01w\x8c\x13numpy._core.numeric\x8c\x0b_frombuffer\x93\
    (\x96\x03\0\0\0\0\0\0\0\x01\x02\xff\x8c\x05numpy\x8c\x05dtype\x93\x94\x8c\x02u1\x89\x88\x87R(K\x03\x8c\x01|\
    NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tbK\x03\x85\x8c\x01CtR\x8c\x01n]\x8c\x16numpy._core.multiarray\x8c\x06scalar\x93\
    h\0\x8c\x02f4\x89\x88\x87R(K\x03\x8c\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tbC\x04\0\0\xc0?\x86Rau.";

/// The same as Python 2 wrote it in protocol 0.
const PYTHON_2: &[u8] = b"(dS'w'\ncnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR(I1\n(I3\n\
    tcnumpy\ndtype\np2\n(S'u1'\nI0\nI1\ntR(I3\nS'|'\nNNNI-1\nI-1\nI0\ntbI00\nS'\\x01\\x02\\xff'\ntbsS'n'\n\
    (lcnumpy.core.multiarray\nscalar\n(g2\n(S'f4'\nI0\nI1\ntR(I3\nS'<'\nNNNI-1\nI-1\nI0\ntbS'\\x00\\x00\\xc0?'\ntRas.";

/// What np.save puts behind the header of `np.array([{'m': np.array([7], 'u1')}, None], object)`.
const OBJECTS: &[u8] = b"\x80\x04\x95\xb9\0\0\0\0\0\0\0\x8c\x16numpy._core.multiarray\x8c\x0c_reconstruct\x93\x94\
    \x8c\x05numpy\x94\x8c\x07ndarray\x93\x94K\0\x85C\x01b\x94\x87R(K\x01K\x02\x85h\x01\x8c\x05dtype\x93\x94\x8c\x02O8\
    \x89\x88\x87R(K\x03\x8c\x01|\x94NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?tb\x89](}\x8c\x01mh\0h\x02K\0\x85h\x03\x87R\
    (K\x01K\x01\x85h\x04\x8c\x02u1\x89\x88\x87R(K\x03h\x05NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89C\x01\x07tbsNetb.";

fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    dir
}

/// A `.npy` of Python objects.
fn objects(pickle: &[u8]) -> Vec<u8> {
    let text = "{'descr': '|O', 'fortran_order': False, 'shape': (2,), }";
    [b"\x93NUMPY\x01\0\x76\0", format!("{text:<117}\n").as_bytes(), pickle].concat()
}

#[test]
fn arrays_are_found_in_every_protocol() {
    let all = [PROTOCOL_0, PROTOCOL_2, PROTOCOL_5, PYTHON_2];
    for (number, pickle) in all.into_iter().enumerate() {
        let dir = folder(&[("x.pkl", pickle)]);
        let prints = |args: &[&str], expected: &'static str| {
            tslice(&dir, args).assert().success().stdout(expected).stderr("");
        };
        prints(&["x.pkl", "-t", "w", "[::-1]", "--to", "csv"], "255\n2\n1\n");
        prints(&["x.pkl", "-t", "n[0]", "--to", "csv"], "1.5\n");
        tslice(&dir, &["x.pkl", "-o", "x.safetensors"]).assert().success().stderr("");
        tslice(&dir, &["diff", "x.pkl", "x.safetensors"]).assert().success();
        // through a pipe where the first bytes tell what it is
        let piped = bash(&dir, "cat x.pkl | tslice - -t w '[2]' --to csv");
        let is_marked = pickle[0] == 0x80;
        assert_eq!(
            assert_cmd::Command::from_std(piped).output().unwrap().status.success(),
            is_marked
        );
        // cut anywhere it is an error
        for end in (0..pickle.len()).step_by(if number == 0 { 1 } else { 5 }) {
            fs::write(dir.path().join("cut.pkl"), &pickle[..end]).unwrap();
            tslice(&dir, &["info", "cut.pkl"]).assert().code(1);
        }
    }
}

#[test]
fn arrays_of_python_objects_hold_tensors_by_their_paths() {
    let npy = objects(OBJECTS);
    let archive = zip(&[("a.npy", &npy), ("who.npy", &objects(b"\x80\x04]."))]);
    let dir =
        folder(&[("o.npy", &npy), ("o.npz", &archive), ("none.npy", &objects(b"\x80\x04]."))]);
    tslice(&dir, &["o.npy", "-t", "[0].m", "--to", "csv"]).assert().success().stdout("7\n");
    tslice(&dir, &["o.npz", "-t", "a[0].m", "--to", "csv"]).assert().success().stdout("7\n");
    let piped = bash(&dir, "cat o.npy | tslice - --to csv");
    assert_cmd::Command::from_std(piped).assert().success().stdout("7\n");
    let info = tslice(&dir, &["info", "o.npz"]).assert().code(1);
    info.stdout(contains(
        "who cannot be read: a pickle without arrays, which holds a list of 0 items\n",
    ));
    let none = tslice(&dir, &["info", "none.npy"]).assert().code(1);
    none.stderr(contains("none.npy: a pickle without arrays, which holds a list"));
}

#[test]
fn what_is_no_pickle_of_arrays_is_refused() {
    let words = b"(dp0\nVa\np1\nI1\ns.";
    let system = b"\x80\x02cposix\nsystem\nX\x0a\0\0\0touch here\x85R.";
    let dir = folder(&[
        ("words", words),
        ("brackets", b"(1, 2)\n"),
        ("outside.pkl", b"\x80\x05]\x97a."),
        ("system.pkl", system),
        ("two.pkl", &[PROTOCOL_5, b"more"].concat()),
    ]);
    for (file, says) in [
        ("words", "words: a text, which is not read"),
        ("brackets", "brackets: a text, which is not read"),
        ("outside.pkl", "outside.pkl: its arrays lie in buffers outside of the pickle"),
        ("system.pkl", "a pickle without arrays, which holds an object; it names posix.system\n"),
    ] {
        tslice(&dir, &["info", file]).assert().code(1).stderr(contains(says));
    }
    assert!(!dir.path().join("here").exists());
    // raw bytes may begin as a pickle of protocol 0 does
    let raw = tslice(&dir, &["brackets", "--dtype", "uint8", "[0]", "--to", "csv"]).assert();
    raw.success().stdout("40\n");
    let two = tslice(&dir, &["two.pkl", "-t", "w", "--to", "csv"]).assert().success();
    two.stderr("tslice: note: two.pkl: 4 bytes behind its pickle are not read\n");
}
