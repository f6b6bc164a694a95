//! Output formats: which there are, and where each puts the bytes of tensors.
//!
//! A new format is a file here with a `static` [`OutputFormat`], and a line in [`FORMATS`]; its
//! name, its help line and its extensions reach the command line from there.

mod format;
mod npy;
mod npz;
mod raw;
mod safetensors;
mod sharded;
mod text;

pub(super) use format::byte_count;
pub use format::{Entry, Frame, Layout, OutputFormat, Request};

/// All output formats, in the order of the help.
pub static FORMATS: [&OutputFormat; 8] = [
    &npy::FORMAT,
    &npz::FORMAT,
    &safetensors::FORMAT,
    &raw::FORMAT,
    &text::CSV,
    &text::TXT,
    &text::JSON,
    &sharded::FORMAT,
];

/// The format of a folder, and that of pipes and devices, whose names tell none.
pub(super) const OF_FOLDERS: &OutputFormat = &sharded::FORMAT;
pub(super) const OF_STREAMS: &OutputFormat = &npy::FORMAT;

/// The format of that name.
pub fn by_name(name: &str) -> Option<&'static OutputFormat> {
    FORMATS.into_iter().find(|format| format.name == name)
}

/// The format of files with that extension, in small letters.
pub fn by_extension(extension: &str) -> Option<&'static OutputFormat> {
    FORMATS.into_iter().find(|format| format.extensions.contains(&extension))
}
