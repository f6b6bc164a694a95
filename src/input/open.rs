//! Opening an input, whatever it is: the table of the formats that are recognised.

use crate::error::Error;
use crate::execute::Progress;
use crate::format::{Format, MAGIC_LEN, TextFormat, npy, safetensors};
use crate::input::folder::{self, CheckpointFiles};
use crate::input::format::{InputFormat, OpenOptions, RecognisedFile};
#[cfg(feature = "hdf5")]
use crate::input::hdf5;
use crate::input::single::open_bytes;
use crate::input::{Input, Location};
use crate::input::{gguf, integers, raw, sharded, single, text, torch, zarr, zip};
use crate::source;

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
