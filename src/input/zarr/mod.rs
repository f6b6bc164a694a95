//! Arrays of Zarr as one input: a folder or a zip archive of one array, or of groups of them.
//!
//! Arrays have their path below the input as their name. Only the feature `zarr` reads them; without it they
//! are recognised, and refused by name.

#[cfg(feature = "zarr")]
mod archive;
#[cfg(feature = "zarr")]
mod folder;
#[cfg(feature = "zarr")]
mod hierarchy;
#[cfg(not(feature = "zarr"))]
mod without;

#[cfg(feature = "zarr")]
pub(super) use archive::open_archive;
#[cfg(feature = "zarr")]
use folder::open;
#[cfg(not(feature = "zarr"))]
use without::open;
#[cfg(not(feature = "zarr"))]
pub(super) use without::open_archive;

use std::path::Path;

use crate::error::Error;
use crate::format::npz::Members;
use crate::input::{Input, Location};

/// The metadata of version 3; those of an array and of a group in version 2.
const METADATA: [&str; 3] = ["zarr.json", ".zarray", ".zgroup"];

/// The arrays in the folder that a location is; `None` for one that is none of Zarr.
///
/// # Errors
/// Metadata that cannot be read.
pub(super) fn open_folder(location: &Location, folder: &Path) -> Result<Option<Input>, Error> {
    let is_zarr = METADATA.iter().any(|name| folder.join(name).is_file());
    is_zarr.then(|| open(location, folder)).transpose()
}

/// Whether the members of an archive are those of such a folder.
pub(super) fn is_archive(members: &Members) -> bool {
    members.iter().any(|member| METADATA.contains(&member.name))
}
