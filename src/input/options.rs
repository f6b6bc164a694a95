//! What is to be opened, and how.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::field::ReadAs;
use super::raw::RawLayout;
use crate::error::FileName;
use crate::execute::Workers;
use crate::source::IoMode;
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

    /// The extension of the name, in small letters.
    pub(crate) fn extension(&self) -> String {
        let extension = self.file_name().map(Path::new).and_then(Path::extension);
        extension.unwrap_or_default().to_string_lossy().to_lowercase()
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

/// What a text is whose name or options do not say that it is a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlainText {
    /// Not read.
    #[default]
    Unknown,
    /// An index tensor of integers, also where its name says that it is a table.
    Integers,
    /// A table of numbers, its columns separated by commas or white space.
    Numbers,
}

/// How an input is opened.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// How its bytes are read.
    pub io: IoMode,
    /// What is said of an input that does not say it itself.
    pub raw: RawLayout,
    /// Names or globs of the tensors that are needed: of a sharded checkpoint only the files that
    /// hold them are opened. Empty for all.
    pub tensors: Vec<String>,
    /// Names or globs of tensors that are left out of those that are chosen; without `tensors`, of all.
    pub exclude: Vec<String>,
    /// Whether the other tensors are needed too.
    pub rest: bool,
    /// What a text is that nothing says to be a table.
    pub plain_text: PlainText,
    /// Whether a pipe is read to its end where less of it is needed.
    pub drain: bool,
    /// What elements are read as that the input says to be something else.
    pub read_as: Option<ReadAs>,
    /// Whether packed values are unpacked.
    pub unpack: bool,
    /// What an index of a checkpoint is used for.
    pub index: UseOfIndex,
    /// What chunks of Zarr are that are not there.
    pub missing_chunks: MissingChunks,
    /// The threads that parse a text.
    pub workers: Workers,
    /// Where notes of the input go.
    pub notes: Notes,
}

/// What an index of a checkpoint is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UseOfIndex {
    /// It says where tensors are; what it leaves out is read too.
    #[default]
    Followed,
    /// It says where tensors are; what it leaves out is left out.
    Only,
    /// It must agree with its shards.
    Strict,
    /// As `Followed`, and the shards that it does not name are read too.
    Widened,
    /// Nothing: the shards that are there are read.
    Ignored,
}

/// What a chunk of an array of Zarr is that is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingChunks {
    /// The fill value, as its format says.
    #[default]
    Fill,
    /// An error: of a copy that was cut short they are missing too.
    Error,
}

/// What takes a note, a line of text.
type TakeNote = dyn Fn(&str) + Send + Sync;

/// Where notes of inputs go; nowhere by default. An input that is opened again says the same again.
#[derive(Clone, Default)]
pub struct Notes(Option<Arc<TakeNote>>);

impl Notes {
    /// Hand every note to `take`.
    pub fn to(take: impl Fn(&str) + Send + Sync + 'static) -> Notes {
        Notes(Some(Arc::new(take)))
    }

    /// Say of each of several things why it is left out: of the first few, and how many others there are.
    pub(crate) fn add_left_out(&self, reasons: impl ExactSizeIterator<Item = impl fmt::Display>) {
        const MOST: usize = 10;
        let more = reasons.len().saturating_sub(MOST);
        reasons.take(MOST).for_each(|reason| self.add(format_args!("{reason}; left out")));
        if more > 0 {
            self.add(format_args!("{more} more like these are left out"));
        }
    }

    pub(crate) fn add(&self, note: impl fmt::Display) {
        if let Some(take) = &self.0 {
            take(&note.to_string());
        }
    }
}

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Notes(taken)" } else { "Notes(not taken)" })
    }
}
