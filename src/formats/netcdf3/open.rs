//! A file of netCDF 3 as one input: variables are tensors by their names.

use super::{begins, read};
use crate::error::Error;
use crate::input::{Contents, Format, Input, RecognisedFile, kept};

/// netCDF 3, of all three versions.
pub(crate) static FORMAT: Format = Format::new("netcdf3", begins, open);

/// Read what variables there are. A pipe is kept in a temporary file.
fn open(file: RecognisedFile<'_>) -> Result<Input, Error> {
    let RecognisedFile { location, bytes, progress, .. } = file;
    let bytes = kept(bytes, progress)?;
    let found = read(&bytes);
    // a file cut short in the meantime is the reason for whatever it seems to say
    bytes.verify()?;
    Ok(Input::of_source(location, bytes, Contents::of(&FORMAT, found?)))
}
