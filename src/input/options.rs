//! Options for opening an input.

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

/// The location of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// Standard input.
    Stdin,
    /// A file, a pipe or a device.
    Path(PathBuf),
    /// A remote file.
    Remote(Address),
    /// The memory of the program.
    Memory,
}

impl Location {
    /// The location that a text names: an address if it begins as one, otherwise a path.
    pub fn of(path: &Path) -> Location {
        match path.to_str().and_then(Address::parse) {
            Some(address) => Location::Remote(address),
            None => Location::Path(path.to_owned()),
        }
    }

    /// The path, if it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Location::Stdin | Location::Remote(_) | Location::Memory => None,
            Location::Path(path) => Some(path),
        }
    }

    /// The path, or the address without its secrets.
    pub(crate) fn as_path(&self) -> PathBuf {
        match self {
            Location::Path(path) => path.clone(),
            other => PathBuf::from(other.to_string()),
        }
    }

    /// The last part of the path or address; `None` for standard input and memory.
    pub(crate) fn file_name(&self) -> Option<&OsStr> {
        match self {
            Location::Stdin | Location::Memory => None,
            Location::Path(path) => path.file_name(),
            Location::Remote(address) => Some(OsStr::new(address.file_name())),
        }
    }

    /// The extension of the name, in lower case.
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

/// How a text is read whose name and options do not say that it is a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlainText {
    /// Not read.
    #[default]
    Unknown,
    /// An index tensor of integers, even if its name says that it is a table.
    Integers,
    /// A table of numbers, with columns separated by commas or white space.
    Numbers,
}

/// How an input is opened.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// How its bytes are read.
    pub io: IoMode,
    /// The layout of raw bytes, where the input does not state it.
    pub raw: RawLayout,
    /// Names or globs of the tensors that are needed: of a sharded checkpoint, only the files that
    /// hold them are opened. Empty for all.
    pub tensors: Vec<String>,
    /// Names or globs of tensors that are excluded from `tensors` or, without those, from all.
    pub exclude: Vec<String>,
    /// Whether the other tensors are needed too.
    pub rest: bool,
    /// How a text is read that nothing says to be a table.
    pub plain_text: PlainText,
    /// Whether a pipe is read to its end even if less of it is needed.
    pub drain: bool,
    /// The dtype as which elements are read, instead of the dtype in the file.
    pub read_as: Option<ReadAs>,
    /// Whether packed values are unpacked.
    pub unpack: bool,
    /// The use of a checkpoint's index.
    pub index: UseOfIndex,
    /// The meaning of chunks of Zarr that do not exist.
    pub missing_chunks: MissingChunks,
    /// The threads that parse a text.
    pub workers: Workers,
    /// The receiver of notes about the input.
    pub notes: Notes,
}

/// The use of a checkpoint's index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UseOfIndex {
    /// To find tensors; tensors that it does not list are read too.
    #[default]
    Followed,
    /// To find tensors; tensors that it does not list are left out.
    Only,
    /// To find tensors; it is an error if it does not agree with its shards.
    Strict,
    /// To find tensors; shards that it does not name are read too.
    Widened,
    /// Not at all: all shards in the folder are read.
    Ignored,
}

/// The meaning of a chunk of an array of Zarr that does not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingChunks {
    /// The fill value, as the format says.
    #[default]
    Fill,
    /// An error: chunks are missing in an incomplete copy, too.
    Error,
}

/// A function that gets a note, a line of text.
type TakeNote = dyn Fn(&str) + Send + Sync;

/// The receiver of notes about inputs; nobody by default. An input that is opened again repeats its
/// notes.
#[derive(Clone, Default)]
pub struct Notes(Option<Arc<TakeNote>>);

impl Notes {
    /// Pass every note to `take`.
    pub fn to(take: impl Fn(&str) + Send + Sync + 'static) -> Notes {
        Notes(Some(Arc::new(take)))
    }

    /// Note why things are left out: the first few, and the number of the others.
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
