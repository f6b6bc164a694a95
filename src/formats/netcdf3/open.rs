//! A netCDF 3 file as one input: each variable is a tensor with the variable's name.

use super::{begins, read};
use crate::error::Error;
use crate::input::{Contents, Format, Input, RecognisedFile, seekable};

/// netCDF 3, in all three versions.
pub(crate) static FORMAT: Format = Format::new("netcdf3", begins, open);

/// Read the variables. A pipe is stored in scratch.
fn open(file: RecognisedFile<'_>) -> Result<Input, Error> {
    let RecognisedFile { location, bytes, progress, .. } = file;
    let bytes = seekable(bytes, progress)?;
    let found = read(&bytes);
    // a file truncated meanwhile is the cause of any other error
    bytes.verify()?;
    Ok(Input::of_source(location, bytes, Contents::of(&FORMAT, found?)))
}
