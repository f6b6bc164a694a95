//! The keys of metadata.

/// The metadata of version 3; those of an array and of a group in version 2.
pub(super) const METADATA: [&str; 3] = ["zarr.json", ".zarray", ".zgroup"];

/// The key of attributes in version 2.
#[cfg(feature = "zarr")]
pub(super) const ATTRIBUTES: &str = ".zattrs";
