//! Opening an input, whatever it is: the table of the formats that are recognised.

use super::notes::Notes;
use super::raw::RawLayout;
use super::read_as::ReadAs;
use super::{Input, Location};
use crate::error::Error;
use crate::execute::Progress;
use crate::format::{Format, MAGIC_LEN, TextFormat, npy, safetensors};
use crate::input::folder::CheckpointFiles;
#[cfg(feature = "hdf5")]
use crate::input::hdf5;
use crate::input::single::open_bytes;
use crate::input::{folder, gguf, integers, raw, sharded, single, text, torch, zarr, zip};
use crate::source;
use crate::source::IoMode;

/// The formats that files are recognised as, by how they begin.
const FORMATS: &[&InputFormat] = &[
    &NPY,
    &zip::FORMAT,
    &torch::OLD_FORMAT,
    &gguf::FORMAT,
    &sharded::FORMAT,
    #[cfg(feature = "hdf5")]
    &hdf5::FORMAT,
    &SAFETENSORS,
];

/// NumPy's `.npy`.
const NPY: InputFormat = InputFormat {
    format: Format::Npy,
    begins: npy::begins,
    open: |file| single::open(file.location, file.bytes),
};

/// Hugging Face's `.safetensors`.
const SAFETENSORS: InputFormat = InputFormat {
    format: Format::Safetensors,
    begins: safetensors::begins,
    open: |file| single::open(file.location, file.bytes),
};

/// The format of a file that begins with these [`MAGIC_LEN`] bytes, or has no more.
pub(crate) fn recognise(first: &[u8]) -> Option<&'static InputFormat> {
    FORMATS.iter().copied().find(|format| (format.begins)(first))
}

/// Open an input, find out what it is, and read its header. A folder with the index of a sharded
/// checkpoint in it is that checkpoint; one with the metadata of Zarr in it is its arrays. A text is one
/// by its name, or because [`OpenOptions::raw`] says so; all of it is read.
///
/// # Errors
/// The [`Cause`](crate::error::Cause) tells: no such file, no known format, a header that breaks its
/// format's rules, bytes that cannot be what [`OpenOptions::raw`] says.
pub fn open(location: &Location, options: &OpenOptions) -> Result<Input, Error> {
    open_watched(location, options, &Progress::default())
}

/// Open an input where another thread watches how far a pipe is read that must be kept:
/// [`Progress::keeping`].
///
/// # Errors
/// As [`open`].
pub fn open_watched(
    location: &Location,
    options: &OpenOptions,
    progress: &Progress,
) -> Result<Input, Error> {
    let mut input = open_as_it_says(location, options, progress)?;
    input.notes = options.notes.clone();
    input.leave_out(options);
    options.read_as.iter().try_for_each(|other| input.read_as(other))?;
    Ok(input)
}

fn open_as_it_says(
    location: &Location,
    options: &OpenOptions,
    progress: &Progress,
) -> Result<Input, Error> {
    // a file is asked for once whether it is one
    let folder = location.path().filter(|path| path.is_dir());
    let arrays = match (location, folder) {
        (Location::Remote(address), _) => zarr::open_address(location, address, options)?,
        (_, Some(folder)) => zarr::open_folder(location, folder, options)?,
        _ => None,
    };
    if let Some(mut input) = arrays {
        options.raw.apply(&mut input, options)?;
        return Ok(input);
    }
    let found = match folder {
        None => None,
        Some(folder) => match folder::checkpoint_in(folder, options.index)? {
            CheckpointFiles::One(path) => Some(Location::Path(path)),
            CheckpointFiles::Shards(files) => {
                let mut input = sharded::open_folder(location, folder, files, options)?;
                options.raw.apply(&mut input, options)?;
                return Ok(input);
            }
        },
    };
    let location = found.as_ref().unwrap_or(location);
    let mut bytes = match &found {
        // nobody waits for the writer of a FIFO in a folder
        Some(Location::Path(path)) => {
            let opened = source::open_file(path, options.io).map(source::Opened::Random);
            opened.map_err(|error| Error::file(location, error))?
        }
        _ => open_bytes(location, options.io)?,
    };
    let first = match &mut bytes {
        // still to be read afterwards
        source::Opened::Forward(stream) => {
            stream.set_drains(options.drain);
            stream.peek(MAGIC_LEN).map_err(|error| Error::file(location, error))?
        }
        source::Opened::Random(source) => single::first_bytes(location, source.as_ref())?,
    };
    let format = recognise(&first);
    #[cfg(feature = "hdf5")]
    let format = match &bytes {
        source::Opened::Random(source) if format.is_none() => {
            hdf5::follows_user_block(source.as_ref()).then_some(&hdf5::FORMAT)
        }
        _ => format,
    };
    let layout = &options.raw;
    let read_as = layout.text_format(location, format.is_some());
    if let Some(dtype) = layout.of_raw_bytes(format.is_some() || read_as.is_some()) {
        return raw::open(location, bytes, dtype, layout, progress);
    }
    // a list of integers has rules of its own, but for JSON
    let is_list = options.integers && read_as != Some(TextFormat::Json);
    let mut input = match (read_as, format) {
        (Some(form), _) if !is_list => {
            let dtype = layout.dtype.as_ref();
            text::open(location, bytes, form, dtype, &layout.text, progress)?
        }
        (_, Some(format)) => (format.open)(RecognisedFile { location, bytes, options, progress })?,
        _ if is_list && integers::is_text(&first) => {
            return integers::open(location, bytes, progress);
        }
        _ if is_list => return Err(integers::refused(location, &mut bytes)),
        _ => return Err(single::unrecognised(location, bytes)),
    };
    layout.apply(&mut input, options)?;
    Ok(input)
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
