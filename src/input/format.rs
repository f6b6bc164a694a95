//! What each format that is recognised says of itself: how its files begin, and what opens them.

use crate::error::Error;
use crate::execute::Progress;
use crate::format::Format;
use crate::input::notes::Notes;
use crate::input::raw::RawLayout;
use crate::input::read_as::ReadAs;
use crate::input::{Input, Location};
use crate::source::{self, IoMode};

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
    /// Whether a text of integers is an index tensor.
    pub integers: bool,
    /// Whether a pipe is read to its end where less of it is needed.
    pub drain: bool,
    /// Whether a member of an archive that has another CRC-32 in its header than in the directory is read: a
    /// change of it that was killed is completed.
    pub two_sums: bool,
    /// What elements are read as that the input says to be something else.
    pub read_as: Option<ReadAs>,
    /// What an index of a checkpoint is used for.
    pub index: UseOfIndex,
    /// What chunks of Zarr are that are not there.
    pub missing_chunks: MissingChunks,
    /// Where notes of the input go.
    pub notes: Notes,
}

/// What an index of a checkpoint is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UseOfIndex {
    /// It says where tensors are; what it leaves out is read too.
    #[default]
    Followed,
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

/// A format that files are recognised as.
pub(crate) struct InputFormat {
    /// The format, which has the name in messages.
    pub(crate) format: Format,
    /// Whether a file of it may begin so: with these [`MAGIC_LEN`](crate::format::MAGIC_LEN) bytes, or
    /// all that it has.
    pub(crate) begins: fn(&[u8]) -> bool,
    /// Read its header.
    pub(crate) open: fn(RecognisedFile<'_>) -> Result<Input, Error>,
}

/// A file that is recognised, and not yet opened.
pub(crate) struct RecognisedFile<'a> {
    pub(crate) location: &'a Location,
    pub(crate) bytes: source::Opened,
    pub(crate) options: &'a OpenOptions,
    /// How far a pipe is read that must be kept.
    pub(crate) progress: &'a Progress,
}
