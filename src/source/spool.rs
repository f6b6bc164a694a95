//! Bytes that are kept in an unnamed temporary file, for jobs that need random access.

use std::fs::File;
use std::io::{Read, Write};

use super::open::{IoMode, open_regular};
use super::{Source, SourceError};

/// What is copied at a time, in bytes: fits the second-level cache.
const PIECE: usize = 256 << 10;

/// Write the rest of a stream to an unnamed file in `TMPDIR` and map it. Byte 0 of the source is
/// the stream's next byte. The file has no name, so it vanishes with the source or the process.
///
/// # Errors
/// [`SourceError::Io`] if the stream cannot be read, [`SourceError::Spool`] if the file
/// cannot be written.
pub fn spool(mut stream: impl Read) -> Result<Box<dyn Source>, SourceError> {
    let spool = SourceError::unspooled;
    let mut file = tempfile::tempfile().map_err(spool)?;
    let mut piece = vec![0; PIECE];
    let mut len = 0;
    loop {
        let count = stream.read(&mut piece)?;
        if count == 0 {
            return open_spooled(file, len);
        }
        file.write_all(&piece[..count]).map_err(spool)?;
        len += count as u64;
    }
}

/// Read `len` bytes of a temporary file that has been written.
///
/// # Errors
/// [`SourceError::Spool`].
pub fn open_spooled(file: File, len: u64) -> Result<Box<dyn Source>, SourceError> {
    open_regular(file, 0, len, IoMode::Auto).map_err(SourceError::unspooled)
}
