//! Opening an input, whatever it is.

use crate::error::Error;
use crate::execute::Progress;
use crate::formats::shards::CheckpointFiles;
use crate::formats::{MAGIC_LEN, first_bytes, inputs, npy, raw, shards, text, unrecognised, zarr};
use crate::input::{
    Format, Input, Location, OpenOptions, PlainText, RecognisedFile, TextFormat, open_bytes,
};
use crate::source::{self, Opened};

/// The format of a file that begins with these [`MAGIC_LEN`] bytes, or has no more.
pub(crate) fn recognise(first: &[u8]) -> Option<&'static Format> {
    inputs().find(|format| (format.begins)(first))
}

/// Open an input, recognise its format, and read its header. A folder with the index of a sharded
/// checkpoint is that checkpoint; a folder with the metadata of Zarr is its arrays. A text is
/// recognised by its name, or because [`OpenOptions::raw`] says so; all of it is read.
pub fn open(location: &Location, options: &OpenOptions) -> Result<Input, Error> {
    open_watched(location, options, &Progress::default())
}

/// Open an input while another thread watches how far a pipe is read that must be stored:
/// [`Progress::keeping`].
pub fn open_watched(
    location: &Location,
    options: &OpenOptions,
    progress: &Progress,
) -> Result<Input, Error> {
    let opened = open_location(location, options, progress);
    let mut input = opened.map_err(|error| error.in_file(location))?;
    input.notes = options.notes.clone();
    input.leave_out(options);
    let several = options.raw.several;
    options.read_as.iter().try_for_each(|other| input.read_as(other, several))?;
    if options.unpack {
        input.unpack(&options.tensors)?;
    }
    Ok(input)
}

fn open_location(
    location: &Location,
    options: &OpenOptions,
    progress: &Progress,
) -> Result<Input, Error> {
    // the system is asked once whether it is a folder
    let folder = location.path().filter(|path| path.is_dir());
    let arrays = match (location, folder) {
        (Location::Remote(address), _) => zarr::open_address(location, address, options)?,
        (_, Some(folder)) => match zarr::open_folder(location, folder, options)? {
            None => npy::open_folder(location, folder, options)?,
            opened => opened,
        },
        _ => None,
    };
    let mut input = match (arrays, folder) {
        (Some(input), _) => input,
        (None, None) => {
            let bytes = open_bytes(location, options.io)?;
            return open_file(location, bytes, options, progress);
        }
        (None, Some(folder)) => match shards::checkpoint_in(folder, options.index, &options.notes)?
        {
            CheckpointFiles::Shards(files) => {
                shards::open_folder(location, folder, files, options)?
            }
            CheckpointFiles::One(path) => {
                // does not wait for the writer of a FIFO in a folder
                let opened = source::open_file(&path, options.io).map_err(Error::from);
                let file = Location::Path(path);
                return opened
                    .and_then(|it| open_file(&file, Opened::Random(it), options, progress))
                    .map_err(|error| error.in_file(&file));
            }
        },
    };
    options.raw.apply(&mut input, options)?;
    Ok(input)
}

/// Recognise the format of a file, and read its header.
fn open_file(
    location: &Location,
    mut bytes: Opened,
    options: &OpenOptions,
    progress: &Progress,
) -> Result<Input, Error> {
    let first = match &mut bytes {
        // not read yet
        Opened::Forward(stream) => {
            stream.drains = options.drain;
            stream.peek(MAGIC_LEN)?
        }
        Opened::Random(source) => first_bytes(source.as_ref())?,
    };
    let name = location.file_name().unwrap_or_default().to_string_lossy();
    let format = inputs().find(|format| (format.is_named)(&name)).or_else(|| recognise(&first));
    let format = match &bytes {
        Opened::Random(source) if format.is_none() => {
            inputs().find(|format| (format.is_in)(source.as_ref()))
        }
        _ => format,
    };
    let layout = &options.raw;
    let read_as = layout.text_format(location, format.is_some());
    let is_raw = layout.is_raw_bytes(format.is_some() || read_as.is_some());
    let file = RecognisedFile { location, bytes, options, progress };
    if is_raw {
        return raw::open(file);
    }
    // a list of integers has rules of its own, except in JSON
    let is_list = options.plain_text == PlainText::Integers && read_as != Some(TextFormat::Json);
    let mut input = match (read_as, format) {
        (Some(form), _) if !is_list => text::open(file, form)?,
        (_, Some(format)) => (format.open)(file)?,
        _ if is_list => return text::open_integers(file, &first),
        _ if options.plain_text == PlainText::Numbers => return text::open_numbers(file),
        _ => return Err(unrecognised(location, file.bytes)),
    };
    layout.apply(&mut input, options)?;
    Ok(input)
}
