//! Output formats: which there are, and where each puts the bytes of tensors.
//!
//! A new format is a file here with a `static` [`OutputFormat`], and a line in [`FORMATS`]; its
//! name, its help line and its extensions reach the command line from there.

mod entries;
mod format;
mod header;
mod npy;
mod npz;
mod raw;
mod safetensors;
mod sharded;
mod text;
mod zarr;

pub use entries::{Entries, OutputTensor};
pub(crate) use format::byte_count;
pub use format::{Frame, OutputFormat, Request};

use crate::format::Format;

/// All output formats, in the order of the help.
pub static FORMATS: [&OutputFormat; 10] = [
    &npy::FORMAT,
    &npz::FORMAT,
    &safetensors::FORMAT,
    &raw::FORMAT,
    &text::CSV,
    &text::TSV,
    &text::TXT,
    &text::JSON,
    &zarr::FORMAT,
    &sharded::FORMAT,
];

/// The format of a folder, and that of pipes and devices, whose names tell none.
pub(crate) const OF_FOLDERS: &OutputFormat = &sharded::FORMAT;
pub(crate) const OF_STREAMS: &OutputFormat = &npy::FORMAT;

/// The format in which a file of one part is written that is of this format.
pub(crate) fn of_plain(format: Format) -> &'static OutputFormat {
    match format {
        Format::Npy => &npy::FORMAT,
        Format::Npz => &npz::FORMAT,
        Format::Safetensors => &safetensors::FORMAT,
        _ => &raw::FORMAT,
    }
}

/// The format of files with that extension, in small letters.
pub fn by_extension(extension: &str) -> Option<&'static OutputFormat> {
    FORMATS.into_iter().find(|format| format.extensions.contains(&extension))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::{DType, Endian, NpyType, Scalar};
    use crate::shape::Order;

    fn by_name(name: &str) -> Option<&'static OutputFormat> {
        FORMATS.into_iter().find(|format| format.name == name)
    }

    #[test]
    fn stored_types_follow_the_format() {
        let little = |scalar| DType::Scalar(scalar, Endian::Little);
        let void = |itemsize, endian| Some(DType::Npy(NpyType::Void(itemsize, endian)));
        let stored = |format: &str, dtype: &DType| (by_name(format).unwrap().stored_dtype)(dtype);
        let big = DType::Scalar(Scalar::F64, Endian::Big);
        assert_eq!(stored("npy", &big).unwrap(), big);
        assert_eq!(stored("safetensors", &big).unwrap(), little(Scalar::F64));
        assert_eq!(stored("npy", &little(Scalar::BF16)), void(2, Some(Endian::Little)));
        assert_eq!(stored("npy", &little(Scalar::F8E5M2)), void(1, None));
        assert_eq!(stored("npy", &little(Scalar::F4)), None);
        assert_eq!(stored("safetensors", &little(Scalar::C128)), None);
        assert_eq!(
            crate::format::npy::header(&little(Scalar::F4), &[2], Order::C)
                .unwrap_err()
                .to_string(),
            "dtype float4_e2m1fn has no counterpart in the npy format"
        );
        let tensors = [("a", &little(Scalar::C128), &[1][..], 16)];
        assert_eq!(
            crate::format::safetensors::header(&tensors, &Default::default())
                .unwrap_err()
                .to_string(),
            "dtype complex128 has no counterpart in the safetensors format"
        );
    }

    #[test]
    fn every_format_is_found_by_its_name_and_extensions() {
        for format in FORMATS {
            assert!(std::ptr::eq(by_name(format.name).unwrap(), format));
            for extension in format.extensions {
                assert!(std::ptr::eq(by_extension(extension).unwrap(), format));
            }
        }
    }
}
