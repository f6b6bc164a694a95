//! A format of inputs, as far as an input needs to know it.

use std::fmt;

use super::{Input, Location, OpenOptions, TextFormat};
use crate::error::Error;
use crate::execute::Progress;
use crate::source::{Opened, Source};

/// A format that files are read from: a `static` in the format's folder.
pub struct Format {
    /// The name, in messages.
    pub name: &'static str,
    /// Whether a file of the format may begin with these bytes: the first 9, or all that it has.
    pub(crate) begins: fn(&[u8]) -> bool,
    /// Whether a file of this name is of the format, whatever its contents.
    pub(crate) is_named: fn(&str) -> bool,
    /// Whether a file whose first bytes say nothing is of the format.
    pub(crate) is_in: fn(&dyn Source) -> bool,
    /// Open a recognised file.
    pub(crate) open: fn(RecognisedFile<'_>) -> Result<Input, Error>,
    /// The text format, if it is one.
    pub(crate) text: Option<TextFormat>,
    /// Whether files are elements alone, and the caller gives their dtype and shape.
    pub(crate) is_raw: bool,
    /// Whether bytes after the data are an error.
    pub(crate) ends_with_data: bool,
    /// Whether an input may be a folder of files of this format.
    pub(crate) is_folder: bool,
    /// Whether links may give a tensor other names.
    pub(crate) has_links: bool,
}

impl Format {
    /// A format of one file with a header, which is recognised by its first bytes.
    pub(crate) const fn new(
        name: &'static str,
        begins: fn(&[u8]) -> bool,
        open: fn(RecognisedFile<'_>) -> Result<Input, Error>,
    ) -> Format {
        Format {
            name,
            begins,
            is_named: |_| false,
            is_in: |_| false,
            open,
            text: None,
            is_raw: false,
            ends_with_data: false,
            is_folder: false,
            has_links: false,
        }
    }

    /// Whether its elements are written as text.
    pub fn is_text(&self) -> bool {
        self.text.is_some()
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Format) -> bool {
        self.name == other.name
    }
}

impl Eq for Format {}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A recognised file that is not yet opened.
pub(crate) struct RecognisedFile<'a> {
    pub(crate) location: &'a Location,
    pub(crate) bytes: Opened,
    pub(crate) options: &'a OpenOptions,
    /// The progress of storing a pipe in scratch.
    pub(crate) progress: &'a Progress,
}
