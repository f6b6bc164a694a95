//! Which version of an input the parts of an output are made from.
//!
//! All machines must see the same: the name, the size, the time of the last change and a sample of the
//! bytes (`source::sample`). One machine sees more, the time of any change at all, by which it need not
//! read the sample again. Of a remote file it is the size, the date and the ETag or version that the server
//! tells, which costs a request.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use crate::input::Location;
use crate::sink::{Fingerprint, InputId, Look, PartsError, SinkError, Unchanged};
use crate::source::remote::{self, RemoteVersion};
use crate::source::{OpenError, sample};

/// A file that is read.
pub(super) struct InputFile {
    name: String,
    location: Location,
    /// Of how many it is one.
    count: usize,
    id: InputId,
    /// None of a remote file.
    version: Option<FileVersion>,
}

/// What a file is to this machine; other machines may see the same one in another way.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileVersion {
    /// Device and inode.
    file: (u64, u64),
    size: u64,
    /// Of the last change of its bytes, and of anything.
    mtime: (i64, i64),
    ctime: (i64, i64),
}

impl FileVersion {
    fn of(found: &Metadata) -> FileVersion {
        FileVersion {
            file: (found.dev(), found.ino()),
            size: found.size(),
            mtime: (found.mtime(), found.mtime_nsec()),
            ctime: (found.ctime(), found.ctime_nsec()),
        }
    }
}

impl InputFile {
    /// Look at one of so many files.
    pub(super) fn look(
        name: String,
        location: Location,
        count: usize,
    ) -> Result<InputFile, OpenError> {
        let (id, version) = input_id(&name, &location, count)?;
        Ok(InputFile { name, location, count, id, version })
    }

    /// What all machines see of it.
    pub(super) fn id(&self) -> &InputId {
        &self.id
    }

    /// Whether it is the file that was found there.
    pub(super) fn is(&self, found: &Metadata) -> bool {
        self.version.is_some_and(|version| version.file == (found.dev(), found.ino()))
    }

    /// Whether it is still what it was.
    fn is_unchanged(&self, look: Look) -> Result<bool, OpenError> {
        let is_same = |found| Some(FileVersion::of(&found)) == self.version;
        let path = self.location.path().filter(|_| look == Look::Quick);
        if path.is_some_and(|path| path.metadata().is_ok_and(is_same)) {
            return Ok(true);
        }
        Ok(input_id(&self.name, &self.location, self.count)?.0 == self.id)
    }
}

/// Asks whether files are still what they were.
pub(super) fn unchanged(inputs: Vec<InputFile>) -> Unchanged {
    Arc::new(move |look| {
        inputs.iter().try_for_each(|input| {
            let error = match input.is_unchanged(look) {
                Ok(true) => return Ok(()),
                Ok(false) => PartsError::InputChanged.into(),
                Err(OpenError::Io(error)) => SinkError::Io(error),
                Err(error) => SinkError::Io(io::Error::other(error)),
            };
            Err(SinkError::File { path: input.location.as_path(), error: Box::new(error) })
        })
    })
}

/// What is known of one of so many files, on all machines and on this one.
fn input_id(
    name: &str,
    location: &Location,
    files: usize,
) -> Result<(InputId, Option<FileVersion>), OpenError> {
    let name = name.to_owned();
    if let Location::Remote(address) = location {
        let RemoteVersion { len: size, modified, tag: sample } = remote::version(address)?;
        return Ok((InputId { name, size, mtime: (modified, 0), sample }, None));
    }
    let mut content = Fingerprint::default();
    let found = sample(&location.as_path(), files, &mut |bytes| content.add(bytes))?;
    let (sample, version) = (content.to_string(), FileVersion::of(&found));
    Ok((InputId { name, size: version.size, mtime: version.mtime, sample }, Some(version)))
}
