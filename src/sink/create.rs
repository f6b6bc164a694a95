//! The choice of a sink for an output's destination.

use std::io;
use std::path::Path;

use super::file::FileSink;
use super::resolve::{Resolved, resolve};
use super::scratch::SpooledSink;
use super::sharing::CopiedRange;
use super::{
    Destination, Draft, InPlaceFile, SinkError, SinkOptions, SinkResult, StreamSink, Targets,
};
use crate::os::FileId;
use crate::os::fs::{Access, AtFlags, accessat, statat};
use crate::os::{StdStream, closed_at_start};

impl Destination {
    /// Whether the destination is standard output, an existing FIFO or device, or another open descriptor
    /// (`/dev/fd/3`), whatever its name.
    pub fn is_stream(&self) -> bool {
        matches!(self.resolve(), Ok(Resolved::Stdout | Resolved::Special { .. }))
    }

    fn resolve(&self) -> SinkResult<Resolved> {
        match self {
            Destination::Stdout => Ok(Resolved::Stdout),
            Destination::Path(path) => resolve(path),
        }
    }
}

pub fn create(target: &Destination, options: SinkOptions) -> SinkResult<Box<dyn Draft>> {
    match target.resolve()? {
        Resolved::Stdout => Ok(Box::new(StreamSink::stdout(options)?)),
        Resolved::Special { dir, name } => Ok(Box::new(StreamSink::open(&dir, &name, options)?)),
        Resolved::File(entry) => Ok(Box::new(FileSink::at(entry, options)?)),
    }
}

/// Create a file as [`create`] does on a file system without unnamed files.
#[doc(hidden)]
pub fn create_named(path: &Path, options: SinkOptions) -> SinkResult<Box<dyn Draft>> {
    let Resolved::File(entry) = resolve(path)? else { return Err(SinkError::NotRegularFile) };
    Ok(Box::new(FileSink::create(entry, options, false)?))
}

/// Open an output that starts as a copy of a range of another file. Changes, and bytes before the range, are
/// written through the returned [`InPlaceFile`], which must be finished before `commit`. For a pipe, the copy is
/// made in a scratch file and `commit` sends it. `copied` is called with the number of bytes copied since its
/// last call.
pub fn create_copy(
    target: &Destination,
    options: SinkOptions,
    original: &CopiedRange<'_>,
    copied: &dyn Fn(u64),
) -> SinkResult<(Box<dyn Draft>, InPlaceFile)> {
    let pipe = match target.resolve()? {
        Resolved::File(entry) => {
            let mut sink = FileSink::at(entry, options)?;
            let patch = sink.fill_from(original, copied)?;
            return Ok((Box::new(sink), patch));
        }
        Resolved::Stdout => StreamSink::stdout(options)?,
        Resolved::Special { dir, name } => StreamSink::open(&dir, &name, options)?,
    };
    let (sink, patch) = SpooledSink::copy_of(original, pipe, copied)?;
    Ok((Box::new(sink), patch))
}

/// The file whose bytes an output overwrites, or appends to, while it is written: an open file (`1<> FILE`, `>>
/// FILE`, `/dev/fd/3`). `None` for an output that appears when it is complete, for pipes, and for destinations
/// that [`create`] refuses.
pub fn overwritten_file(target: &Destination) -> SinkResult<Option<FileId>> {
    match target.resolve() {
        Ok(Resolved::Stdout) => FileId::of(io::stdout()),
        Ok(Resolved::Special { dir, name }) => {
            let stat = statat(&dir, &name, AtFlags::empty());
            stat.map(|stat| FileId::from_stat(&stat)).map_err(io::Error::from)
        }
        Ok(Resolved::File(_)) | Err(_) => Ok(None),
    }
    .map_err(SinkError::os("cannot be opened"))
}

/// Make the checks of [`create`] without creating anything (`--dry-run`).
pub fn check(target: &Destination, options: SinkOptions) -> SinkResult<()> {
    check_among(target, options, &mut Targets::default())
}

/// Make the checks of [`check`] for one of several outputs, and add it to `targets`, which holds the earlier
/// outputs.
pub fn check_among(
    target: &Destination,
    options: SinkOptions,
    targets: &mut Targets,
) -> SinkResult<()> {
    let resolved = target.resolve()?;
    let writable = |dir, name, access, what| {
        accessat(dir, name, access, AtFlags::EACCESS).map_err(SinkError::os(what))
    };
    match &resolved {
        Resolved::Stdout if closed_at_start(StdStream::Output) => Err(SinkError::StdoutClosed),
        Resolved::Stdout => SinkError::refuse_input(),
        Resolved::Special { dir, name } => {
            writable(dir, &**name, Access::WRITE_OK, "cannot be created")
        }
        Resolved::File(entry) => {
            entry.check_overwrite(options)?;
            writable(&entry.dir, ".".as_ref(), Access::WRITE_OK | Access::EXEC_OK, entry.making())
        }
    }?;
    match target {
        Destination::Stdout => Ok(()),
        Destination::Path(path) => targets.add(path, resolved),
    }
}
