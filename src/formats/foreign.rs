//! Kinds of files that are recognised, and not read, so that an error can name them, and their
//! bytes are not read as raw numbers by mistake.
//!
//! Most are recognised by their first bytes, some by these and the extension of the name (a `.onnx`
//! has no magic). Texts are recognised by their contents: a `.csv` full of numbers, a JSON list, a
//! web page that was saved instead of a file. A kind that becomes readable gets an opener, and
//! leaves this table.

use std::fmt;

use crate::error::faults;

/// The number of bytes of a file that [`Foreign::recognise`] reads.
pub const LOOK_LEN: usize = 1024;

/// A kind of file that is recognised, and not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    Arrow,
    Bzip2,
    Czi,
    DcpFolder,
    Diffusers,
    Distcp,
    Fits,
    Flac,
    Flax,
    Ggml,
    GitLfs,
    Gzip,
    Hdf5,
    Jpeg,
    JsonLines,
    JsonList,
    JsonObject,
    Keras,
    Lz4,
    Matlab,
    Matlab73,
    Nifti,
    Nrrd,
    /// A text of numbers whose name does not say so, and the separator of its columns, unless it is
    /// white space.
    Numbers(Option<char>),
    Onnx,
    Orbax,
    Parquet,
    Png,
    Tar,
    TensorFlow,
    Text {
        /// Whether its extension says that it is a pickle or text.
        named: bool,
    },
    Tiff,
    TorchTar,
    TorchScript,
    WebPage,
    Xz,
    ZarrArray,
    ZarrGroup,
    /// Only zeros at the beginning.
    Zeros,
    Zip,
    Zstd,
}

/// The kinds, their names in messages, and the first bytes of those that have magic bytes.
const KINDS: &[(Foreign, &str, &[&[u8]])] = &[
    (Foreign::Arrow, "an Arrow file", &[b"ARROW1\0\0", b"FEA1"]),
    (Foreign::Bzip2, "a bzip2 file", &[]),
    (Foreign::Czi, "a CZI picture", &[b"ZISRAWFILE"]),
    (Foreign::DcpFolder, "a folder of PyTorch's distributed checkpoints (*.distcp)", &[]),
    (Foreign::Diffusers, "a pipeline of diffusers: each of its models has a folder", &[]),
    (Foreign::Distcp, "a shard of a distributed checkpoint of PyTorch", &[]),
    (Foreign::Fits, "a FITS file", &[b"SIMPLE  ="]),
    (Foreign::Flac, "a FLAC file", &[b"fLaC"]),
    (Foreign::Flax, "a msgpack of Flax", &[]),
    (Foreign::Ggml, "a ggml file of before GGUF", &[b"lmgg", b"fmgg", b"tjgg", b"algg"]),
    (Foreign::GitLfs, "a pointer of git-LFS in place of the file", &[GIT_LFS]),
    (Foreign::Gzip, "a gzip file", &[b"\x1f\x8b\x08"]),
    (Foreign::Hdf5, "an HDF5 file", &[b"\x89HDF\r\n\x1a\n"]),
    (Foreign::Jpeg, "a JPEG picture", &[b"\xff\xd8\xff"]),
    (Foreign::JsonLines, "JSON lines (an object a line)", &[]),
    (Foreign::JsonList, "a list in JSON", &[]),
    (Foreign::JsonObject, JSON_OBJECT, &[]),
    (Foreign::Keras, "a Keras model (a zip archive)", &[]),
    (Foreign::Lz4, "an lz4 file", &[b"\x04\x22\x4d\x18"]),
    (Foreign::Matlab, "a MATLAB file", &[b"MATLAB 5.0 MAT-file"]),
    (Foreign::Matlab73, "a MATLAB 7.3 file (HDF5)", &[b"MATLAB 7.3 MAT-file"]),
    (Foreign::Nifti, "a NIfTI file", &[NIFTI2_LITTLE, NIFTI2_BIG]),
    (Foreign::Nrrd, "an NRRD file", &[b"NRRD000"]),
    (Foreign::Onnx, "an ONNX model", &[]),
    (Foreign::Orbax, "a folder of an Orbax checkpoint", &[]),
    (Foreign::Parquet, "a Parquet file", &[b"PAR1"]),
    (Foreign::Png, "a PNG picture", &[b"\x89PNG\r\n\x1a\n"]),
    (Foreign::Tar, "a tar archive", &[]),
    (Foreign::TensorFlow, "a file of a TensorFlow checkpoint", &[]),
    (Foreign::Tiff, "a TIFF picture", &[b"II*\0", b"MM\0*", BIG_TIFF_LITTLE, BIG_TIFF_BIG]),
    (Foreign::TorchTar, "a PyTorch file of version 0.1 (a tar archive)", &[]),
    (Foreign::TorchScript, "a TorchScript program", &[]),
    (Foreign::WebPage, "a web page in place of the file", &[]),
    (Foreign::Xz, "an xz file", &[b"\xfd7zXZ\0"]),
    (Foreign::ZarrArray, "a Zarr array", &[]),
    (Foreign::ZarrGroup, "a Zarr group", &[]),
    (Foreign::Zeros, "zeros, as of a file that was not written to its end", &[]),
    (Foreign::Zip, "a zip archive without arrays", &[]),
    (Foreign::Zstd, "a zstd file", &[b"\x28\xb5\x2f\xfd"]),
];

const GIT_LFS: &[u8] = b"version https://git-lfs.github.com/";
const BIG_TIFF_LITTLE: &[u8] = b"II+\0\x08\0\0\0";
const BIG_TIFF_BIG: &[u8] = b"MM\0+\0\x08\0\0";
// the header length of NIfTI-2, and its magic
const NIFTI2_LITTLE: &[u8] = b"\x1c\x02\0\0n+2\0\r\n\x1a\n";
const NIFTI2_BIG: &[u8] = b"\0\0\x02\x1cn+2\0\r\n\x1a\n";
const JSON_OBJECT: &str =
    "a JSON object that is not an index of a checkpoint (it has no \"weight_map\")";

impl Foreign {
    /// The kind of a file, by its first [`LOOK_LEN`] bytes, or all if it has fewer, and the
    /// extension of its name in lower case (`""` without one).
    pub fn recognise(first: &[u8], extension: &str) -> Option<Foreign> {
        let begins = |magics: &[&[u8]]| magics.iter().any(|magic| first.starts_with(magic));
        let magic = KINDS.iter().find(|(.., magics)| begins(magics)).map(|(kind, ..)| *kind);
        // a column of a table may have this name
        let is_word = |kind| matches!(kind, Foreign::Arrow | Foreign::Parquet);
        let is_binary = || first.iter().any(|&byte| byte < b'\t');
        let magic = magic.filter(|&kind| !is_word(kind) || is_binary());
        // raw bytes may be bytes of letters, and zeros
        let is_raw = matches!(extension, "" | "raw" | "bin" | "dat");
        let is_zero = !is_raw && first.len() >= 64 && first.iter().all(|&byte| byte == 0);
        let structured = || {
            let looks: [(bool, Foreign); 11] = [
                (is_torch_tar(first), Foreign::TorchTar),
                (is_tar(first), Foreign::Tar),
                (extension == "distcp", Foreign::Distcp),
                (is_bzip2(first), Foreign::Bzip2),
                (is_nifti1(first), Foreign::Nifti),
                (extension == "mat" && is_matlab4(first), Foreign::Matlab),
                (extension == "msgpack" && is_msgpack(first), Foreign::Flax),
                (extension == "index" && is_binary(), Foreign::TensorFlow),
                (is_tensorflow_data(extension), Foreign::TensorFlow),
                (is_zero, Foreign::Zeros),
                (extension == "onnx" && first.starts_with(b"\x08"), Foreign::Onnx),
            ];
            looks.into_iter().find(|(is_it, _)| *is_it).map(|(_, kind)| kind)
        };
        let is_raw = is_raw && !extension.is_empty();
        magic.or_else(structured).or_else(|| text(first, extension).filter(|_| !is_raw))
    }

    /// The kind of a folder whose `zarr.json` has this text.
    pub fn of_zarr(json: &str) -> Foreign {
        let rest = json.split_once("\"node_type\"").map_or("", |(_, rest)| rest);
        let value = rest.trim_start_matches(|c: char| c == ':' || c.is_whitespace());
        if value.starts_with("\"group\"") { Foreign::ZarrGroup } else { Foreign::ZarrArray }
    }

    /// The feature that a build needs to read it, and the name of the format.
    fn feature(self) -> Option<(&'static str, &'static str)> {
        match self {
            Foreign::Hdf5 | Foreign::Matlab73 => Some(("hdf5", "HDF5")),
            Foreign::ZarrArray | Foreign::ZarrGroup => Some(("zarr", "Zarr")),
            _ => None,
        }
    }

    /// Why it is not read.
    fn not_read(self) -> String {
        match self.feature() {
            Some((feature, name)) => {
                format!("but this build has no {name}: build it with --features {feature}")
            }
            None => "which is not read".to_owned(),
        }
    }

    /// Whether a file that is read as text has this kind instead.
    pub fn is_no_text(&self) -> bool {
        let is_text =
            matches!(self, Foreign::Numbers(_) | Foreign::JsonList | Foreign::Text { .. });
        !is_text
    }

    /// Whether the kind is so certain that such raw bytes need an offset.
    pub fn is_sure(self) -> bool {
        !matches!(self, Foreign::Text { named: false } | Foreign::Zeros)
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Foreign::Numbers(_) => "a text of numbers",
            Foreign::Text { .. } => "a text",
            kind => {
                let named = KINDS.iter().find(|(known, ..)| known == kind);
                named.map_or("a file of another program", |(_, name, _)| name)
            }
        })
    }
}

/// The error for a recognised kind of file that is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}, {why}", kind = .0, why = .0.not_read())]
pub struct NotRead(pub Foreign);

faults!(Unsupported: NotRead);

fn is_bzip2(first: &[u8]) -> bool {
    matches!(first, [b'B', b'Z', b'h', b'1'..=b'9', block @ ..]
        if block.starts_with(b"1AY&SY") || block.starts_with(b"\x17\x72\x45\x38\x50\x90"))
}

/// Whether the bytes begin as a map of texts and values.
fn is_msgpack(first: &[u8]) -> bool {
    matches!(first, [0x80..=0x8f | 0xde | 0xdf, ..])
}

/// `NAME.data-00000-of-00001`.
fn is_tensorflow_data(extension: &str) -> bool {
    let numbers = extension.strip_prefix("data-").and_then(|rest| rest.split_once("-of-"));
    let is_number = |text: &str| text.len() == 5 && text.bytes().all(|it| it.is_ascii_digit());
    numbers.is_some_and(|(number, count)| is_number(number) && is_number(count))
}

/// NIfTI 1: the length of the header first, and the magic at its end.
fn is_nifti1(first: &[u8]) -> bool {
    let begins = first.starts_with(b"\x5c\x01\0\0") || first.starts_with(b"\0\0\x01\x5c");
    begins && matches!(first.get(344..348), Some(b"n+1\0" | b"ni1\0"))
}

fn is_tar(first: &[u8]) -> bool {
    first.get(257..262) == Some(b"ustar")
}

/// Whether the bytes begin as the tar archives that torch.save wrote in versions 0.1.
fn is_torch_tar(first: &[u8]) -> bool {
    let members = [&b"sys_info\0"[..], b"pickle\0", b"storages\0", b"tensors\0"];
    // the first tars of Python have no magic at its usual offset
    is_tar(first) && members.iter().any(|member| first.starts_with(member))
}

/// MATLAB 4: a number of four digits for byte order and type, rows, columns, 0 or 1, and the length
/// of a name.
fn is_matlab4(first: &[u8]) -> bool {
    let Some(header) = first.first_chunk::<20>() else { return false };
    let fields = |number: fn([u8; 4]) -> u32| -> Vec<u32> {
        header.as_chunks().0.iter().map(|&bytes| number(bytes)).collect()
    };
    [fields(u32::from_le_bytes), fields(u32::from_be_bytes)].iter().any(|fields| {
        matches!(fields[..], [kind, _, _, imaginary, name_len]
            if kind <= 4052 && kind % 10 <= 2 && imaginary <= 1 && (1..=64).contains(&name_len))
    })
}

fn text(first: &[u8], extension: &str) -> Option<Foreign> {
    // a character may be cut at the end
    let (text, whole) = match std::str::from_utf8(first) {
        Ok(text) => (text, first.len() < LOOK_LEN),
        Err(error) if error.error_len().is_none() => {
            (std::str::from_utf8(&first[..error.valid_up_to()]).ok()?, false)
        }
        Err(_) => return None,
    };
    let is_text = |c: char| !c.is_control() || matches!(c, '\t' | '\n' | '\r' | '\x0c');
    let text = text.trim_start_matches('\u{feff}');
    if text.is_empty() || !text.chars().all(is_text) {
        return None;
    }
    let begun = text.trim_start();
    let begins = |tag: &str| begun.get(..tag.len()).is_some_and(|it| it.eq_ignore_ascii_case(tag));
    if ["<!doctype html", "<html", "<?xml"].into_iter().any(begins) {
        return Some(Foreign::WebPage);
    }
    let numbers: &[char] = &['[', '-', '.', '"', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'];
    if begun.strip_prefix('[').is_some_and(|rest| rest.trim_start().starts_with(numbers))
        && (begun.contains(',') || extension == "json")
    {
        return Some(Foreign::JsonList);
    }
    let named = matches!(extension, "txt" | "csv" | "tsv" | "json" | "md" | "log" | "html" | "xml");
    match table(begun, whole) {
        Some((table, cells)) if cells > 1 || named => Some(Foreign::Numbers(table)),
        _ => Some(Foreign::Text { named }),
    }
}

/// The separator of the numbers in a text, whose last line may be cut, and their count.
fn table(text: &str, whole: bool) -> Option<(Option<char>, usize)> {
    let uncut = match text.rfind('\n') {
        Some(end) if !whole => &text[..end],
        _ => text,
    };
    let content = |line: &'_ str| line.find('#').map_or(line.len(), |at| at);
    let lines = uncut.lines().map(|line| line[..content(line)].trim());
    let mut lines = lines.filter(|line| !line.is_empty()).peekable();
    let first = *lines.peek()?;
    let delimiter = [',', ';'].into_iter().find(|delimiter| first.contains(*delimiter));
    let numbers = |line: &str| -> Option<usize> {
        let is_number = |cell: &str| cell.trim().parse::<f64>().is_ok();
        let cells: Vec<&str> = match delimiter {
            Some(delimiter) => line.split(delimiter).collect(),
            None => line.split_whitespace().collect(),
        };
        cells.iter().all(|cell| is_number(cell)).then_some(cells.len())
    };
    if numbers(first).is_none() {
        // names of columns
        lines.next();
    }
    let mut count = 0;
    for line in lines {
        count += numbers(line)?;
    }
    (count > 0).then_some((delimiter, count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn recognised(first: &[u8], extension: &str) -> Option<Foreign> {
        Foreign::recognise(first, extension)
    }

    /// First bytes as the programs of these formats write them.
    #[test]
    fn files_of_other_programs_are_named() {
        let mut nifti = vec![0; 352];
        nifti[..4].copy_from_slice(&348u32.to_le_bytes());
        nifti[344..348].copy_from_slice(b"n+1\0");
        let tar = |name: &str| {
            let mut first = vec![0; 512];
            first[..name.len()].copy_from_slice(name.as_bytes());
            first[257..262].copy_from_slice(b"ustar");
            first
        };
        let matlab4 = [[0u32, 2, 3, 0, 2].map(u32::to_le_bytes).concat(), b"a\0".to_vec()].concat();
        for (first, extension, name) in [
            (&b"\x1f\x8b\x08\x08abcd"[..], "", "a gzip file"),
            (b"BZh91AY&SYxxxx", "bz2", "a bzip2 file"),
            (b"\x28\xb5\x2f\xfd\x24", "", "a zstd file"),
            (b"\xfd7zXZ\0\0", "", "an xz file"),
            (b"\x89HDF\r\n\x1a\n\0", "bin", "an HDF5 file"),
            (b"II*\0\x08\0\0\0", "tif", "a TIFF picture"),
            (b"II+\0\x08\0\0\0\x10", "tif", "a TIFF picture"),
            (&nifti, "nii", "a NIfTI file"),
            (b"MATLAB 5.0 MAT-file, Platform", "mat", "a MATLAB file"),
            (b"MATLAB 7.3 MAT-file, Platform", "mat", "a MATLAB 7.3 file (HDF5)"),
            (&matlab4, "mat", "a MATLAB file"),
            (b"\x08\x08\x12\x07pytorch", "onnx", "an ONNX model"),
            (&tar("sys_info"), "pth", "a PyTorch file of version 0.1 (a tar archive)"),
            (&tar("model.ckpt"), "nemo", "a tar archive"),
            (b"PK\x03\x04", "distcp", "a shard of a distributed checkpoint of PyTorch"),
            (
                b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n",
                "safetensors",
                "a pointer of git-LFS in place of the file",
            ),
            (b"\n<!DOCTYPE html>\n<html>", "safetensors", "a web page in place of the file"),
            (b"<?xml version=\"1.0\"?><Error>", "", "a web page in place of the file"),
            (b"[[1, 2], [3, 4]]", "", "a list in JSON"),
            (b"SIMPLE  =                    T", "fits", "a FITS file"),
            (b"NRRD0004\ntype: float\n", "nrrd", "an NRRD file"),
            (b"fLaC\0\0\0\x22", "flac", "a FLAC file"),
            (b"ZISRAWFILE\0\0\0\0\0\0", "czi", "a CZI picture"),
            (b"tjgg\x03\0\0\0", "bin", "a ggml file of before GGUF"),
            (b"\x81\xa6params\x82", "msgpack", "a msgpack of Flax"),
            (b"\x01\x02", "data-00000-of-00001", "a file of a TensorFlow checkpoint"),
            (b"\0\0\x12\x08", "index", "a file of a TensorFlow checkpoint"),
            (&[0; 64], "npy", "zeros, as of a file that was not written to its end"),
            (b"Dear reader,\n", "", "a text"),
        ] {
            let found = recognised(first, extension).map(|kind| kind.to_string());
            assert_eq!(found.as_deref(), Some(name), "{extension}");
        }
    }

    #[test]
    fn texts_of_numbers_are_told_from_words() {
        let table = |delimiter| Some(Foreign::Numbers(delimiter));
        for (text, expected) in [
            ("1,2\n3,4\n", table(Some(','))),
            ("# made by me\n\n1.5e-3 nan\n-inf 2\n", table(None)),
            ("a,b\n1,2\n", table(Some(','))),
            ("\u{feff}x;y\r\n1;2\r\n", table(Some(';'))),
            ("3\n1\n4\n", table(None)),
            ("a b\nc d\n", Some(Foreign::Text { named: false })),
            ("a b\n", Some(Foreign::Text { named: false })),
            // a single number may be raw bytes
            ("12345678", Some(Foreign::Text { named: false })),
        ] {
            assert_eq!(recognised(text.as_bytes(), ""), expected, "{text:?}");
        }
        assert_eq!(recognised(b"12345678", "txt"), table(None));
        // the last line may be cut anywhere
        let rows = "0.125,0.25\n".repeat(200);
        for digits in 1..=11 {
            let long = format!("{:0digits$},1\n{rows}", 1);
            let first = &long.as_bytes()[..LOOK_LEN];
            assert_eq!(recognised(first, "csv"), table(Some(',')), "{digits}");
        }
        assert_eq!(recognised(b"1,2\n3,4\n", "raw"), None);
    }

    #[test]
    fn a_folder_of_zarr_tells_what_it_is() {
        let json = r#"{"zarr_format": 3, "attributes": {}, "node_type" : "group"}"#;
        assert_eq!(Foreign::of_zarr(json), Foreign::ZarrGroup);
        let json = r#"{"shape":[2],"node_type":"array","codecs":[]}"#;
        assert_eq!(Foreign::of_zarr(json), Foreign::ZarrArray);
    }

    #[test]
    fn numbers_are_no_files_of_other_programs() {
        let floats = |values: &[f32]| -> Vec<u8> {
            values.iter().flat_map(|value| value.to_le_bytes()).collect()
        };
        for first in [
            &[][..],
            &[0xff; 1024],
            &floats(&[0.0, 1.0, 2.0, 3.0]),
            &floats(&[-1.5, 0.1, 1e-30, f32::NAN]),
            &(0..255).collect::<Vec<u8>>(),
        ] {
            for extension in ["", "raw", "f32"] {
                assert_eq!(recognised(first, extension), None, "{first:?} {extension}");
            }
        }
        assert_eq!(recognised(&[0; 1024], "f32"), Some(Foreign::Zeros));
    }

    #[test]
    fn every_kind_has_a_name() {
        for kind in KINDS {
            assert_eq!(kind.0.to_string(), kind.1);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(first in prop::collection::vec(any::<u8>(), 0..64), which in 0..5) {
            let extension = ["", "csv", "mat", "onnx", "json"][which as usize];
            let _ = Foreign::recognise(&first, extension);
            let text: String = first.iter().map(|&byte| char::from(byte % 128)).collect();
            let _ = Foreign::recognise(text.as_bytes(), extension);
        }
    }
}
