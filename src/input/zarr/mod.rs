//! Arrays of Zarr as one input: a folder, here or behind a network, or a zip archive of one array, or of
//! groups of them.
//!
//! Arrays have their path below the input as their name. Only the feature `zarr` reads them; without it they
//! are recognised, and refused by name.

use std::path::Path;

use crate::error::Error;
use crate::format::npz::Members;
use crate::input::{Input, Location, OpenOptions};
use crate::source::remote::Address;

#[cfg(feature = "zarr")]
mod hierarchy;
#[cfg(feature = "zarr")]
mod stores;
#[cfg(not(feature = "zarr"))]
mod without;

pub(super) use stores::open_archive;
use stores::{open_path, open_remote};
#[cfg(not(feature = "zarr"))]
use without as stores;

/// The metadata of version 3; those of an array and of a group in version 2.
const METADATA: [&str; 3] = ["zarr.json", ".zarray", ".zgroup"];

/// The key of attributes in version 2.
#[cfg(feature = "zarr")]
const ATTRIBUTES: &str = ".zattrs";

/// The arrays in the folder that a location is; `None` for one that is none of Zarr.
pub(super) fn open_folder(
    location: &Location,
    folder: &Path,
    options: &OpenOptions,
) -> Result<Option<Input>, Error> {
    if is_folder(folder) {
        return open_path(location, folder, options).map(Some);
    }
    // the root too may be a group without metadata
    if folder.extension().is_none_or(|it| it != "zarr") || cfg!(not(feature = "zarr")) {
        return Ok(None);
    }
    let input = open_path(location, folder, options)?;
    let is_any = !input.contents.tensors.is_empty() || !input.container.unreadable.is_empty();
    Ok(is_any.then_some(input))
}

/// Whether a path is that of a folder of Zarr.
pub(crate) fn is_folder(path: &Path) -> bool {
    METADATA.iter().any(|name| path.join(name).is_file())
}

/// The arrays in the folder behind a network that an address leads to; `None` where there are none of Zarr.
pub(super) fn open_address(
    location: &Location,
    address: &Address,
    options: &OpenOptions,
) -> Result<Option<Input>, Error> {
    if address.may_be_zarr() { open_remote(location, address, options) } else { Ok(None) }
}

/// Whether the members of an archive are those of such a folder.
pub(super) fn is_archive(members: &Members) -> bool {
    let name = |path: &str| path.rsplit('/').next().is_some_and(|name| METADATA.contains(&name));
    members.iter().any(|member| name(member.name))
}
