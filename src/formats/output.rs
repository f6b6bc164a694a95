//! The format of an output.

use std::path::Path;

use super::{npy, outputs, shards};
use crate::error::{Error, FileName};
use crate::input::Location;
use crate::output::layout::OutputFormat;
use crate::output::{LayoutFault, Output, WriteOptions};
use crate::sink::Destination;

/// The default formats of folders, and of pipes and devices, whose names have no extension.
pub(crate) const OF_FOLDERS: &OutputFormat = &shards::OUTPUT;
pub(crate) const OF_STREAMS: &OutputFormat = &npy::OUTPUT;

/// The format of files with that extension, in lower case.
pub(crate) fn by_extension(extension: &str) -> Option<&'static OutputFormat> {
    outputs().find(|format| format.extensions.contains(&extension))
}

impl Output {
    pub fn new(destination: Destination, options: WriteOptions) -> Result<Output, Error> {
        if let Destination::Path(path) = &destination
            && let Location::Remote(address) = Location::of(path)
        {
            return Err(Error::file(FileName::Remote(address), LayoutFault::Remote));
        }
        let format = match (options.format, &destination) {
            (Some(format), Destination::Path(path))
                if format.name == npy::OUTPUT.name && (says_folder(path) || path.is_dir()) =>
            {
                &npy::FOLDER_OUTPUT
            }
            (Some(format), _) => format,
            (None, Destination::Stdout) => OF_STREAMS,
            (None, Destination::Path(path)) => by_name(path, &destination, &options)
                .map_err(|fault| Error::file(&destination, fault))?,
        };
        Output::of_format(destination, format, options)
    }

    /// Whether an output of this name would be a folder of a checkpoint.
    pub fn is_folder_of_checkpoint(destination: &Destination, options: &WriteOptions) -> bool {
        let Destination::Path(path) = destination else { return false };
        by_name(path, destination, options).is_ok_and(|format| format.has_shards)
    }
}

fn says_folder(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// The format by a file's name; the format of streams for pipes and devices.
fn by_name(
    path: &Path,
    destination: &Destination,
    options: &WriteOptions,
) -> Result<&'static OutputFormat, LayoutFault> {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    let format = extension.as_deref().and_then(by_extension);
    // a name like a file's is a folder only if it ends in a slash
    let says_folder = says_folder(path);
    let is_of_folders = match format {
        Some(format) => says_folder && !format.is_folder,
        None => says_folder || path.is_dir(),
    };
    if is_of_folders {
        return Ok(OF_FOLDERS);
    }
    match format {
        Some(format) => Ok(format),
        None if destination.is_stream() => Ok(OF_STREAMS),
        // a folder that does not exist yet
        None if options.shard_size.is_some() => Ok(OF_FOLDERS),
        None => Err(extension.map_or(LayoutFault::NoExtension, LayoutFault::Extension)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::{DType, Endian, NpyType, Scalar};
    use crate::shape::Order;

    fn named(name: &str) -> Option<&'static OutputFormat> {
        outputs().find(|format| format.name == name)
    }

    #[test]
    fn stored_types_follow_the_format() {
        let little = |scalar| DType::Scalar(scalar, Endian::Little);
        let void = |itemsize, endian| Some(DType::Npy(NpyType::Void(itemsize, endian)));
        let stored = |format: &str, dtype: &DType| (named(format).unwrap().stored_dtype)(dtype);
        let big = DType::Scalar(Scalar::F64, Endian::Big);
        assert_eq!(stored("npy", &big).unwrap(), big);
        assert_eq!(stored("safetensors", &big).unwrap(), little(Scalar::F64));
        assert_eq!(stored("npy", &little(Scalar::BF16)), void(2, Some(Endian::Little)));
        assert_eq!(stored("npy", &little(Scalar::F8E5M2)), void(1, None));
        assert_eq!(stored("npy", &little(Scalar::F4)), None);
        assert_eq!(stored("safetensors", &little(Scalar::C128)), None);
        assert_eq!(
            crate::formats::npy::header(&little(Scalar::F4), &[2], Order::C)
                .unwrap_err()
                .to_string(),
            "dtype float4_e2m1fn has no equivalent in npy"
        );
        let tensors = [("a", &little(Scalar::C128), &[1][..], 16)];
        assert_eq!(
            crate::formats::safetensors::header(&tensors, &Default::default())
                .unwrap_err()
                .to_string(),
            "dtype complex128 has no equivalent in safetensors"
        );
    }

    #[test]
    fn every_format_is_found_by_its_name_and_extensions() {
        for format in outputs() {
            assert!(std::ptr::eq(named(format.name).unwrap(), format));
            for extension in format.extensions {
                assert!(std::ptr::eq(by_extension(extension).unwrap(), format));
            }
        }
    }
}
