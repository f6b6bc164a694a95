//! Names of tensors and fields in the files of a line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tslice::dtype::Field;
use tslice::format::{TensorInfo, TextFormat};
use tslice::input::{Input, Location, OpenOptions};
use tslice::shape::AsTuple;

/// A name, and what is said about it.
pub(super) type NameAndMeaning = (String, String);

/// The tensors in the files, with their dtypes and shapes.
pub(super) fn tensors(paths: &[OsString]) -> Vec<NameAndMeaning> {
    named(paths, |tensor| {
        let about = format!("{} {}", tensor.dtype, AsTuple(&tensor.element_shape()));
        Some((tensor.name?, about))
    })
}

/// The fields of structured tensors in the files, with their dtypes.
pub(super) fn fields(paths: &[OsString]) -> Vec<NameAndMeaning> {
    named(paths, |tensor| {
        let fields = tensor.dtype.structure().map_or(&[][..], |structure| &structure.fields);
        let about = |field: &Field| (field.name.clone(), field.dtype.to_string());
        fields.iter().map(about).collect::<Vec<_>>()
    })
}

/// Collect names from all tensors of the files, each name once.
fn named<I: IntoIterator<Item = NameAndMeaning>>(
    paths: &[OsString],
    of: impl Fn(TensorInfo) -> I,
) -> Vec<NameAndMeaning> {
    let mut named = Vec::new();
    for input in paths.iter().filter_map(|path| open(Path::new(path))) {
        named.extend(input.contents().tensors.iter().flat_map(&of));
    }
    named.sort();
    named.dedup_by(|one, other| one.0 == other.0);
    named
}

/// Open a file or folder, if that needs no waiting.
fn open(path: &Path) -> Option<Input> {
    let path = from_home(path)?;
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    if TextFormat::by_extension(extension).is_some() && !name.ends_with(".index.json") {
        // a text would have to be read whole, and holds no names
        return None;
    }
    let metadata = path.metadata().ok()?;
    if !metadata.is_file() && !metadata.is_dir() {
        return None;
    }
    tslice::input::open(&Location::Path(path), &OpenOptions::default()).ok()
}

/// Expand `~/`, which the shell has not done yet.
fn from_home(path: &Path) -> Option<PathBuf> {
    match path.strip_prefix("~") {
        Ok(rest) => Some(std::env::home_dir()?.join(rest)),
        Err(_) => Some(path.to_owned()),
    }
}
