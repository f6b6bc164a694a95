//! A file that is changed, and all that is written into it: the elements, then the checksums in a
//! copy of an archive.

use super::super::{OutputKind, Planned};
use crate::error::{Error, FileName};
use crate::execute::Progress;
use crate::formats::npz::MemberSums;
use crate::job::edit::original::Original;
use crate::job::edit::tensor_edit::TensorEdit;

pub(super) struct EditedFile {
    pub(super) original: Original,
    pub(super) edits: Vec<TensorEdit>,
    /// The changed members of an archive, once they were found.
    sums: Vec<MemberSums>,
}

impl From<Original> for EditedFile {
    fn from(original: Original) -> EditedFile {
        EditedFile { original, edits: Vec::new(), sums: Vec::new() }
    }
}

impl EditedFile {
    /// The number of bytes that are written, and read again for checksums.
    pub(super) fn bytes(&self) -> u64 {
        let sums = self.sums.iter().map(|member| member.data.end - member.data.start);
        let copied = [self.original.copied_bytes()];
        self.edits.iter().map(TensorEdit::bytes).chain(sums).chain(copied).sum()
    }

    pub(super) fn is_looked_at(&self) -> bool {
        self.edits.iter().all(|edit| edit.spooled.is_some())
    }

    /// Check all that is read and where it is written, while the file is only read. Tensors are
    /// named if there are `several`.
    pub(super) fn look(&mut self, several: bool, progress: &Progress) -> Result<(), Error> {
        for edit in &mut self.edits {
            let looked = edit.look(&self.original, progress);
            looked.map_err(|error| error.of_tensor(edit.tensor.name.as_deref(), several))?;
        }
        let changed = self.edits.iter().filter(|edit| edit.bytes() > 0);
        let mut starts: Vec<u64> = changed.map(|edit| edit.tensor.data().start).collect();
        starts.sort_unstable();
        self.sums = self.original.sums(&starts)?;
        Ok(())
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        self.original.check()
    }

    pub(super) fn write(&mut self, several: bool, progress: &Progress) -> Result<(), Error> {
        let workers = self.original.workers().clone();
        let files = self.edits.iter().map(|edit| edit.tensor.shard()).collect();
        let begun = self.original.begin(files, progress)?;
        for edit in &self.edits {
            let written = edit.write(&begun, &workers, progress);
            written.map_err(|error| error.of_tensor(edit.tensor.name.as_deref(), several))?;
        }
        self.sums.iter().try_for_each(|member| begun.sum(member, progress))?;
        begun.finish()
    }

    pub(super) fn planned(&self) -> Planned {
        let EditedFile { original, edits, .. } = self;
        let file = FileName::from(original.input().location());
        let (destination, kind) = match original.destination() {
            Some(copy) => (copy.into(), OutputKind::EditedCopy(file)),
            None => (file, OutputKind::InPlace),
        };
        let tensors = match edits.as_slice() {
            [edit] => Ok(edit.planned()),
            several => Err(several.len()),
        };
        let bytes = edits.iter().map(TensorEdit::bytes).sum();
        let format = original.format();
        // tensors are written one after the other
        let temporary_bytes = edits.iter().map(TensorEdit::temporary_bytes).max().unwrap_or(0);
        Planned { destination, kind, format, tensors, bytes, size: None, temporary_bytes }
    }
}
