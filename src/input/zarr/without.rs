//! A build that does not read Zarr.

use std::io::Read;
use std::path::Path;

use super::METADATA;
use crate::error::Error;
use crate::format::npz::Members;
use crate::format::{Foreign, FormatError};
use crate::input::archive::Archive;
use crate::input::{Input, Location, OpenOptions};
use crate::source::remote::Address;
use crate::source::{self, IoMode, Reader};

pub(super) fn open_path(
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
    Err(Error::file(location, FormatError::Foreign(kind)))
}

pub(super) fn open_remote(
    location: &Location,
    address: &Address,
    _: &OpenOptions,
) -> Result<Option<Input>, Error> {
    let is_there = |name: &str| source::remote::open(&address.below(name), IoMode::Read).is_ok();
    if METADATA.iter().any(|name| is_there(name)) {
        Err(Error::file(location, FormatError::Foreign(Foreign::ZarrGroup)))
    } else {
        Ok(None)
    }
}

pub(in crate::input) fn open_archive(
    location: &Location,
    _: Archive,
    _: Members,
    _: &OpenOptions,
) -> Result<Input, Error> {
    Err(Error::file(location, FormatError::Foreign(Foreign::ZarrGroup)))
}
