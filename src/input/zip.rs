//! Zip archives: their members tell whether one is a `.npz` or PyTorch's.

use super::open::{InputFormat, RecognisedFile};
use crate::error::Error;
use crate::format::npz::Members;
use crate::format::torch::TorchFolder;
use crate::format::{Foreign, Format, FormatError, npz};
use crate::input::archive::Archive;
use crate::input::single::{extension, kept};
use crate::input::{Input, Location, OpenOptions, failed_source, npz as arrays, torch, zarr};

/// NumPy's `.npz`, as which archives of PyTorch begin too.
pub(super) const FORMAT: InputFormat =
    InputFormat { format: Format::Npz, begins: npz::begins, open };

/// Read what an archive holds. One that comes through a pipe is kept in a temporary file.
fn open(file: RecognisedFile<'_>) -> Result<Input, Error> {
    let RecognisedFile { location, bytes, options, progress } = file;
    if extension(location) == "distcp" {
        return Err(foreign(location, Foreign::Distcp));
    }
    let bytes = kept(location, bytes, progress)?;
    let members = npz::members(bytes.as_ref()).map_err(|error| Error::file(location, error))?;
    let archive = Archive::new(location, bytes.clone())?;
    let opened = open_members(archive, members, options);
    // a file cut short in the meantime is the reason for whatever its members seem to be
    bytes.verify().map_err(|error| failed_source(location, error))?;
    opened
}

fn open_members(
    archive: Archive<'_>,
    members: Members,
    options: &OpenOptions,
) -> Result<Input, Error> {
    let location = archive.location;
    // an archive without members is an .npz of no arrays
    if members.is_empty() || members.has_arrays() {
        return arrays::open(archive, members, options.two_sums);
    }
    if zarr::is_archive(&members) {
        return zarr::open_archive(archive, members, options);
    }
    match TorchFolder::find(&members) {
        Some(folder) if !folder.is_script(&members) => torch::open(archive, &folder, &members),
        Some(_) => Err(foreign(location, Foreign::TorchScript)),
        None => Err(foreign(location, Foreign::Zip)),
    }
}

fn foreign(location: &Location, kind: Foreign) -> Error {
    Error::file(location, FormatError::Foreign(kind))
}
