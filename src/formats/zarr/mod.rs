//! Arrays of Zarr as one input: a folder, local or behind a network, or a zip archive; with one array, or
//! groups of arrays.
//!
//! An array's name is its path below the input. Only the feature `zarr` reads arrays; without it they are
//! recognised, and refused by name.

use std::path::Path;

use crate::error::Error;
use crate::formats::npz::Members;
use crate::formats::recognise::unrecognised;
use crate::input::{Format, Input, Location, OpenOptions};
use crate::source::remote::Address;

#[cfg(feature = "zarr")]
mod array;
#[cfg(feature = "zarr")]
mod hierarchy;
mod output;
#[cfg(feature = "zarr")]
mod stores;

#[cfg(all(feature = "hdf5", feature = "zarr"))]
pub(crate) use array::blosc_bytes;
pub(crate) use output::OUTPUT;
pub(crate) use stores::open_archive;
use stores::{open_path, open_remote};

/// Arrays of Zarr, in a folder or a zip archive: a single file is never one.
pub(crate) static FORMAT: Format = Format {
    is_folder: true,
    ..Format::new("zarr", |_| false, |file| Err(unrecognised(file.location, file.bytes)))
};

/// The names of metadata: of version 3, and of an array and a group in version 2.
const METADATA: [&str; 3] = ["zarr.json", ".zarray", ".zgroup"];

#[cfg(feature = "zarr")]
const ATTRIBUTES: &str = ".zattrs";

/// Open the arrays in a folder; `None` for a folder that is not Zarr.
pub(crate) fn open_folder(
    location: &Location,
    folder: &Path,
    options: &OpenOptions,
) -> Result<Option<Input>, Error> {
    if is_folder(folder) {
        return open_path(location, folder, options).map(Some);
    }
    // the root, too, may be a group without metadata
    if folder.extension().is_none_or(|it| it != "zarr") || cfg!(not(feature = "zarr")) {
        return Ok(None);
    }
    let input = open_path(location, folder, options)?;
    let is_any = !input.contents.tensors.is_empty() || !input.container.unreadable.is_empty();
    Ok(is_any.then_some(input))
}

/// Whether a path is a folder of Zarr.
pub(crate) fn is_folder(path: &Path) -> bool {
    METADATA.iter().any(|name| path.join(name).is_file())
}

/// Open the arrays in a remote folder; `None` where it is not Zarr.
pub(crate) fn open_address(
    location: &Location,
    address: &Address,
    options: &OpenOptions,
) -> Result<Option<Input>, Error> {
    if address.may_be_zarr() { open_remote(location, address, options) } else { Ok(None) }
}

/// Whether the members of an archive form a folder of Zarr.
pub(crate) fn is_archive(members: &Members) -> bool {
    let name = |path: &str| path.rsplit('/').next().is_some_and(|name| METADATA.contains(&name));
    members.iter().any(|member| name(member.name))
}

/// The substitute in builds that do not read Zarr: it reports which kind of Zarr an input is.
#[cfg(not(feature = "zarr"))]
mod stores {
    use std::io::Read;
    use std::path::Path;

    use super::METADATA;
    use crate::error::Error;
    use crate::formats::archive::Archive;
    use crate::formats::npz::Members;
    use crate::formats::{Foreign, NotRead};
    use crate::input::{Input, Location, OpenOptions};
    use crate::source::remote::Address;
    use crate::source::{self, IoMode, Reader};

    pub(crate) fn open_path(
        location: &Location,
        folder: &Path,
        _: &OpenOptions,
    ) -> Result<Input, Error> {
        let json = source::open_file(&folder.join("zarr.json"), IoMode::Read).ok();
        let json = json.and_then(|source| {
            let mut json = String::new();
            Reader::new(source.as_ref()).take(1 << 20).read_to_string(&mut json).ok()?;
            Some(json)
        });
        let kind = match json {
            Some(json) => Foreign::of_zarr(&json),
            None if folder.join(".zarray").is_file() => Foreign::ZarrArray,
            None => Foreign::ZarrGroup,
        };
        Err(Error::file(location, NotRead(kind)))
    }

    pub(crate) fn open_remote(
        location: &Location,
        address: &Address,
        _: &OpenOptions,
    ) -> Result<Option<Input>, Error> {
        let is_there =
            |name: &str| source::remote::open(&address.below(name), IoMode::Read).is_ok();
        if METADATA.iter().any(|name| is_there(name)) {
            Err(Error::file(location, NotRead(Foreign::ZarrGroup)))
        } else {
            Ok(None)
        }
    }

    pub(crate) fn open_archive(
        location: &Location,
        _: Archive,
        _: Members,
        _: &OpenOptions,
    ) -> Result<Input, Error> {
        Err(Error::file(location, NotRead(Foreign::ZarrGroup)))
    }
}
