//! Where an input comes from: standard input, a path, an address, memory.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::FileName;
use crate::source::remote::Address;

/// Where an input comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// Standard input.
    Stdin,
    /// A file, a pipe or a device.
    Path(PathBuf),
    /// A file behind a network.
    Remote(Address),
    /// The memory of the program.
    Memory,
}

impl Location {
    /// Where a text leads: an address where it begins as one, else a path.
    pub fn of(path: &Path) -> Location {
        match path.to_str().and_then(Address::parse) {
            Some(address) => Location::Remote(address),
            None => Location::Path(path.to_owned()),
        }
    }

    /// The path, where it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Location::Stdin | Location::Remote(_) | Location::Memory => None,
            Location::Path(path) => Some(path),
        }
    }

    /// The path, or the address as one, without its secrets.
    pub(crate) fn as_path(&self) -> PathBuf {
        match self {
            Location::Path(path) => path.clone(),
            other => PathBuf::from(other.to_string()),
        }
    }

    /// The last part of the path or address; none of standard input and of memory.
    pub(crate) fn file_name(&self) -> Option<&OsStr> {
        match self {
            Location::Stdin | Location::Memory => None,
            Location::Path(path) => path.file_name(),
            Location::Remote(address) => Some(OsStr::new(address.file_name())),
        }
    }

    /// A file of that name in the same folder; `None` for standard input and memory.
    pub(crate) fn with_file_name(&self, name: &str) -> Option<Location> {
        match self {
            Location::Stdin | Location::Memory => None,
            Location::Path(path) => Some(Location::Path(path.with_file_name(name))),
            Location::Remote(address) => Some(Location::Remote(address.with_file_name(name))),
        }
    }
}

impl From<&Location> for FileName {
    fn from(location: &Location) -> FileName {
        match location {
            Location::Stdin => FileName::Stdin,
            Location::Path(path) => FileName::Path(path.clone()),
            Location::Remote(address) => FileName::Remote(address.clone()),
            Location::Memory => FileName::Memory,
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        FileName::from(self).fmt(f)
    }
}
