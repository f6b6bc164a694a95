//! A file that is changed, and all that is written into it: the elements, and then what an archive says of
//! their bytes.
//!
//! The CRC-32s of members are computed from what is in the file when the elements are. A run that is killed
//! before leaves members whose CRC-32 is wrong; running it again writes the same elements, and puts it
//! right, whatever the killed one had done.

use crate::error::{Error, FileName};
use crate::execute::Progress;
use crate::format::npz::MemberSums;
use crate::job::contract::{Made, Planned};
use crate::job::edit::original::Original;
use crate::job::edit::tensor_edit::TensorEdit;

/// A file that is changed.
pub(super) struct EditedFile {
    original: Original,
    edits: Vec<TensorEdit>,
    /// The members of an archive that are changed, once it was looked for them.
    sums: Vec<MemberSums>,
}

impl From<Original> for EditedFile {
    fn from(original: Original) -> EditedFile {
        EditedFile { original, edits: Vec::new(), sums: Vec::new() }
    }
}

impl EditedFile {
    /// The file.
    pub(super) fn original(&self) -> &Original {
        &self.original
    }

    /// Write these values too.
    pub(super) fn push(&mut self, edit: TensorEdit) {
        self.edits.push(edit);
    }

    /// Bytes that are written, and read again for checksums.
    pub(super) fn bytes(&self) -> u64 {
        let sums = self.sums.iter().map(|member| member.data.end - member.data.start);
        self.edits.iter().map(TensorEdit::bytes).chain(sums).sum()
    }

    /// Whether all that is read is known to stay.
    pub(super) fn is_looked_at(&self) -> bool {
        self.edits.iter().all(TensorEdit::is_kept)
    }

    /// Make sure that all that is read is there and fits, and that what is to be written has a place,
    /// while the file is only read. Tensors are named where there are `several`.
    pub(super) fn look(&mut self, several: bool, progress: &Progress) -> Result<(), Error> {
        for edit in &mut self.edits {
            let looked = edit.look(&self.original, progress);
            looked.map_err(|error| error.of_tensor(edit.name(), several))?;
        }
        let changed = self.edits.iter().filter(|edit| edit.bytes() > 0);
        let mut starts: Vec<u64> = changed.map(TensorEdit::start).collect();
        starts.sort_unstable();
        self.sums = self.original.sums(&starts)?;
        Ok(())
    }

    /// Write into it, or into its copy.
    pub(super) fn write(&mut self, several: bool, progress: &Progress) -> Result<(), Error> {
        let workers = self.original.workers().clone();
        let begun = self.original.begin(progress)?;
        for edit in &self.edits {
            let written = edit.write(&begun, &workers, progress);
            written.map_err(|error| error.of_tensor(edit.name(), several))?;
        }
        self.sums.iter().try_for_each(|member| begun.sum(member, progress))?;
        begun.finish()
    }

    /// What would be written into it.
    pub(super) fn planned(&self) -> Planned {
        let EditedFile { original, edits, .. } = self;
        let file = FileName::from(original.input().location());
        let (destination, made) = match original.copy() {
            Some(copy) => (copy.into(), Made::CopyOf(file)),
            None => (file, Made::InPlace),
        };
        let tensors = match edits.as_slice() {
            [edit] => Ok(edit.planned()),
            several => Err(several.len()),
        };
        let bytes = edits.iter().map(TensorEdit::bytes).sum();
        let format = original.format();
        // one tensor after the other
        let plans = edits.iter().filter_map(TensorEdit::plan);
        let out_of_core = plans.max_by_key(|plan| plan.temporary_bytes).cloned();
        Planned { destination, made, format, tensors, bytes, size: None, shared: None, out_of_core }
    }
}
