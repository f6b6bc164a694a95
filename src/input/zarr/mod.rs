//! Arrays of Zarr as one input: a folder, here or behind a network, or a zip archive of one array, or of
//! groups of them.
//!
//! Arrays have their path below the input as their name. Only the feature `zarr` reads them; without it they
//! are recognised, and refused by name.

#[cfg(feature = "zarr")]
mod archive;
#[cfg(feature = "zarr")]
mod folder;
#[cfg(feature = "zarr")]
mod hierarchy;
mod keys;
#[cfg(feature = "zarr")]
mod remote;
#[cfg(not(feature = "zarr"))]
mod without;

#[cfg(feature = "zarr")]
pub(super) use archive::open_archive;
#[cfg(feature = "zarr")]
use folder::open;
#[cfg(feature = "zarr")]
use remote::open as open_remote;
#[cfg(not(feature = "zarr"))]
pub(super) use without::open_archive;
#[cfg(not(feature = "zarr"))]
use without::{open, open_remote};

use std::path::Path;

use crate::error::Error;
use crate::format::npz::Members;
use crate::input::{Input, Location, OpenOptions};
use crate::source::remote::Address;
use keys::METADATA;

/// The arrays in the folder that a location is; `None` for one that is none of Zarr.
///
/// # Errors
/// Metadata that cannot be read.
pub(super) fn open_folder(
    location: &Location,
    folder: &Path,
    options: &OpenOptions,
) -> Result<Option<Input>, Error> {
    if is_folder(folder) {
        return open(location, folder, options).map(Some);
    }
    // the root too may be a group without metadata
    if folder.extension().is_none_or(|it| it != "zarr") || cfg!(not(feature = "zarr")) {
        return Ok(None);
    }
    let input = open(location, folder, options)?;
    let is_any = !input.contents.tensors.is_empty() || !input.container.unreadable.is_empty();
    Ok(is_any.then_some(input))
}

/// Whether a path is that of a folder of Zarr.
pub(crate) fn is_folder(path: &Path) -> bool {
    METADATA.iter().any(|name| path.join(name).is_file())
}

/// The arrays in the folder behind a network that an address leads to; `None` where there are none of Zarr.
///
/// # Errors
/// Metadata that cannot be read.
pub(super) fn open_address(
    location: &Location,
    address: &Address,
    options: &OpenOptions,
) -> Result<Option<Input>, Error> {
    match address.may_be_zarr() {
        true => open_remote(location, address, options),
        false => Ok(None),
    }
}

/// Whether the members of an archive are those of such a folder.
pub(super) fn is_archive(members: &Members) -> bool {
    let name = |path: &str| path.rsplit('/').next().is_some_and(|name| METADATA.contains(&name));
    members.iter().any(|member| name(member.name))
}
