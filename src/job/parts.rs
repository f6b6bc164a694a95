//! One output in parts, each written by a process of its own.
//!
//! The range of the file from the first element to the end of the last element is cut evenly. Cuts are at multiples of
//! 4096 bytes of the file, so that no two machines write to one block; in an output in chunks, between whole chunks.
//! If a cut would divide an element, the element belongs to the part after the cut.
//!
//! ```text
//!   file    header│ tensor a      │ tensor b  │     4096 bytes a block
//!           ──────┼───┬───┬───┬───┼───┬───┬───┤
//!   parts         │ 0     │ 1     │ 2     │ 3 │
//! ```
//!
//! An [`Assembly`] can fill any range of the output by itself.

use std::fmt::Write;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;

use crate::error::{Error, Fault, FileName};
use crate::execute::Progress;
use crate::input::Location;
use crate::job::assembly::Assembly;
use crate::job::copy::{WriteTarget, Writing, failed_sink};
use crate::job::copying::OutputRange;
use crate::os::fs::stat;
use crate::os::{FileId, FileVersion};
use crate::output::Prepared;
use crate::sink::{
    Begun, Destination, Draft, Fingerprint, FixedLayout, InputId, JobRecord, PartJob, PartsError,
};
use crate::source::{OpenError, remote, sample};

pub struct Parts<'a> {
    prepared: &'a Prepared,
    assembly: &'a Assembly<'a>,
    count: u64,
    path: &'a Path,
    layout: FixedLayout,
    len: u64,
    /// The range from the first element to the end of the last.
    span: Range<u64>,
}

impl<'a> Parts<'a> {
    /// Cut an output into `count` parts, at least one.
    pub(super) fn new(
        prepared: &'a Prepared,
        assembly: &'a Assembly<'a>,
        count: u64,
    ) -> Result<Parts<'a>, Error> {
        let output = &prepared.output;
        let failed = |cause| Error::file(&output.destination, cause);
        let Destination::Path(path) = &output.destination else {
            return Err(output.failed(PartsError::NotAFile.into()));
        };
        let Some(layout) = prepared.layout.fixed() else {
            return Err(failed(if output.options.deflate {
                PartFault::Compressed
            } else {
                PartFault::NotFixed(output.format.name)
            }));
        };
        // for a folder, the bytes of elements count
        let len = prepared.layout.size().unwrap_or(prepared.bytes);
        let start = prepared.tensor_offsets().map(|(_, start)| start).min().unwrap_or(0);
        let end = prepared
            .tensor_offsets()
            .map(|(tensor, start)| start + tensor.bytes)
            .max()
            .unwrap_or(0);
        let span = start..end;
        Ok(Parts { prepared, assembly, count: count.max(1), path, layout, len, span })
    }

    /// The offset in the file where part `index` begins; for `index` = `count`, the end of the last part.
    fn cut(&self, index: u64) -> u64 {
        let Range { start, end } = self.span;
        match index {
            0 => start,
            index if index >= self.count => end,
            index => {
                let share = u128::from(end - start) * u128::from(index) / u128::from(self.count);
                self.prepared.layout.cut(start + share as u64).max(start)
            }
        }
    }

    /// The bytes of the file from the beginning of part `index` to its end. In an archive, headers
    /// of members may lie among them.
    pub fn range(&self, index: u64) -> Range<u64> {
        self.cut(index)..self.cut(index + 1)
    }

    fn part(&self, index: u64) -> OutputRange<'_> {
        OutputRange { prepared: self.prepared, range: self.range(index) }
    }

    pub fn bytes(&self, index: u64) -> u64 {
        self.assembly.bytes(&self.part(index))
    }

    /// About how many bytes of elements part `index` reads, in whole cache lines.
    pub fn reads(&self, index: u64) -> Result<u64, Error> {
        self.assembly.reads(&self.part(index))
    }

    /// The most bytes of scratch that are needed to write part `index`.
    pub fn temporary_bytes(&self, index: u64) -> Result<u64, Error> {
        self.assembly.temporary_bytes(&self.part(index))
    }

    /// Write part `index`, unless it is complete. The process that completes the last part puts the
    /// output in place.
    pub fn write(&mut self, index: u64, progress: &Progress) -> Result<(), Error> {
        let files = self.assembly.files()?;
        let inputs = self.inputs(files)?;
        let range = self.range(index);
        let mut work = Fingerprint::default();
        // never fails
        let _ = write!(work, "{:?}", self.layout);
        self.assembly.identify(self.prepared, &mut work)?;
        let ids = inputs.iter().map(|input| input.id.clone()).collect();
        let output = &self.prepared.output;
        let name = FileName::from(&output.destination);
        let failed = |error| failed_sink(Some(name.clone()), error);
        let part = PartJob {
            index,
            range: range.clone(),
            bytes: self.bytes(index),
            total: self.prepared.bytes,
            job: JobRecord::new(self.count, self.len, ids, work.to_string()),
            layout: self.layout.clone(),
            options: output.options.sink(),
        };
        let draft: Box<dyn Draft> = match part.begin(self.path).map_err(failed)? {
            Begun::Complete => return Ok(()),
            Begun::Part(sink) => sink,
            Begun::Folder(folder) => {
                self.prepared.layout.within(folder, range.clone()).map_err(failed)?
            }
        };
        let writing = Writing::elements(
            Some(name),
            WriteTarget::Draft(draft),
            &output.options.workers,
            progress,
        );
        self.assembly.copy_part(&OutputRange { prepared: self.prepared, range }, &writing)?;
        inputs.iter().try_for_each(InputFile::check_unchanged)?;
        writing.commit()
    }

    fn inputs(&self, files: Vec<(String, Location)>) -> Result<Vec<InputFile>, Error> {
        let output = stat(self.path).ok().as_ref().map(FileId::any);
        let count = files.len();
        let input = |(name, location): (String, Location)| {
            let failed = |fault| Error::file(&location, fault);
            let transform = input_id(&name, &location, count);
            let (id, version) = transform.map_err(|error| match error {
                OpenError::Io(error) if error.kind() == ErrorKind::InvalidInput => {
                    failed(PartFault::NotAFile)
                }
                error => Error::file(&location, error),
            })?;
            if output.is_some() && version.map(|it| it.file) == output {
                return Err(failed(PartFault::InputIsOutput));
            }
            Ok(InputFile { name, location, count, id, version })
        };
        files.into_iter().map(input).collect()
    }
}

/// Why an output cannot be written in parts.
#[derive(Debug, thiserror::Error)]
pub enum PartFault {
    /// Several outputs, or a file that is changed in place.
    #[error("only one output that is new can be written in parts")]
    NotOne,
    /// The positions of elements in the output depend on other elements.
    #[error(
        "cannot be written in parts: elements have no fixed position in an output of format {0}"
    )]
    NotFixed(&'static str),
    /// The positions of compressed elements depend on the ones before.
    #[error("cannot be written in parts: compressed elements have no fixed position")]
    Compressed,
    /// A pipe or a device, which other processes cannot read again.
    #[error("is not a regular file: several processes cannot read it")]
    NotAFile,
    /// The output would replace a file that the other parts read.
    #[error("is also the output: other parts would read the result")]
    InputIsOutput,
    #[error("changed while a part of the output was made from it")]
    InputChanged,
}

impl Fault for PartFault {}

// The version of an input: all parts of an output must be made from the same version.
//
// All machines must see the same name, size, time of the last change, and sample of the bytes
// (`source::sample`). On the same machine the time of the last status change (ctime) is compared too: if it is
// unchanged, the sample is not read again. For a remote file, the server's size, date, and ETag or version are
// compared, which costs a request.

struct InputFile {
    name: String,
    location: Location,
    /// The number of files in the list.
    count: usize,
    /// The identity of the file on all machines.
    id: InputId,
    /// The version on this machine; `None` for a remote file.
    version: Option<FileVersion>,
}

impl InputFile {
    /// Check that the file was not changed since the part was begun.
    fn check_unchanged(&self) -> Result<(), Error> {
        let failed = |error| Error::file(&self.location, error);
        let found = self.location.path().and_then(|path| stat(path).ok());
        if found.is_some_and(|found| Some(FileVersion::of(&found)) == self.version) {
            return Ok(());
        }
        let (id, _) = input_id(&self.name, &self.location, self.count).map_err(failed)?;
        if id == self.id {
            Ok(())
        } else {
            Err(Error::file(&self.location, PartFault::InputChanged))
        }
    }
}

/// The identity of one of `files` input files on all machines, and its version on this machine.
fn input_id(
    name: &str,
    location: &Location,
    files: usize,
) -> Result<(InputId, Option<FileVersion>), OpenError> {
    let name = name.to_owned();
    if let Location::Remote(address) = location {
        let found = remote::version(address)?;
        let mtime = (found.modified, 0);
        return Ok((InputId { name, size: found.len, mtime, sample: found.tag() }, None));
    }
    let mut content = Fingerprint::default();
    let found = sample(&location.as_path(), files, &mut |bytes| content.add(bytes))?;
    let sample = content.to_string();
    let version = FileVersion::of(&found);
    Ok((InputId { name, size: version.size, mtime: version.mtime, sample }, Some(version)))
}
