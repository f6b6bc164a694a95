//! What the files of a line hold: names of tensors and of fields.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tslice::dtype::Field;
use tslice::format::{TensorInfo, TextFormat};
use tslice::input::{Input, Location, OpenOptions};
use tslice::shape::AsTuple;

/// A name, and what it stands for.
pub(super) type NameAndMeaning = (String, String);

/// The tensors of the files, with their dtypes and shapes.
pub(super) fn tensors(paths: &[OsString]) -> Vec<NameAndMeaning> {
    named(paths, |tensor| {
        let about = format!("{} {}", tensor.dtype, AsTuple(&tensor.element_shape()));
        Some((tensor.name?, about))
    })
}

/// The fields of the structured tensors of the files, with their dtypes.
pub(super) fn fields(paths: &[OsString]) -> Vec<NameAndMeaning> {
    named(paths, |tensor| {
        let fields = tensor.dtype.structure().map_or(&[][..], |structure| &structure.fields);
        let about = |field: &Field| (field.name.clone(), field.dtype.to_string());
        fields.iter().map(about).collect::<Vec<_>>()
    })
}

/// What the tensors of the files have, each name once: two files may hold the same ones.
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

/// A file or a folder that can be opened without waiting.
fn open(path: &Path) -> Option<Input> {
    let path = from_home(path)?;
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    if TextFormat::by_extension(extension).is_some() && !name.ends_with(".index.json") {
        // all of a text would be read, and it holds no names
        return None;
    }
    let metadata = path.metadata().ok()?;
    if !metadata.is_file() && !metadata.is_dir() {
        return None;
    }
    tslice::input::open(&Location::Path(path), &OpenOptions::default()).ok()
}

/// `~/a` is expanded when the line is run, and so not yet.
fn from_home(path: &Path) -> Option<PathBuf> {
    match path.strip_prefix("~") {
        Ok(rest) => Some(std::env::home_dir()?.join(rest)),
        Err(_) => Some(path.to_owned()),
    }
}
