//! A file that is changed, and all that is written into it: the elements, and then what an archive says of
//! their bytes.
//!
//! The CRC-32s of members are computed from what is in the file when the elements are. While these are
//! written, a mark of what is written where stands in place of that in the directory. A run that is killed
//! leaves the mark: readers refuse the member, and whoever changes the archive next is told of it. Running it again
//! writes the same elements, and puts the CRC-32s right, whatever the killed one had done.

use super::super::{OutputKind, Planned};
use super::EditFault;
use crate::error::{Error, FileName};
use crate::execute::Progress;
use crate::format::npz;
use crate::format::npz::MemberSums;
use crate::job::edit::original::Original;
use crate::job::edit::tensor_edit::TensorEdit;
use crate::sink::Hold;

pub(super) struct EditedFile {
    pub(super) original: Original,
    pub(super) edits: Vec<TensorEdit>,
    /// The members of an archive that are changed, once it was looked for them.
    sums: Vec<MemberSums>,
}

impl From<Original> for EditedFile {
    fn from(original: Original) -> EditedFile {
        EditedFile { original, edits: Vec::new(), sums: Vec::new() }
    }
}

impl EditedFile {
    /// Bytes that are written, and read again for checksums.
    pub(super) fn bytes(&self) -> u64 {
        let sums = self.sums.iter().map(|member| member.data.end - member.data.start);
        self.edits.iter().map(TensorEdit::bytes).chain(sums).sum()
    }

    pub(super) fn is_looked_at(&self) -> bool {
        self.edits.iter().all(|edit| edit.kept.is_some())
    }

    /// Make sure that all that is read is there and fits, and that what is to be written has a place,
    /// while the file is only read. Tensors are named where there are `several`.
    pub(super) fn look(&mut self, several: bool, progress: &Progress) -> Result<(), Error> {
        for edit in &mut self.edits {
            let looked = edit.look(&self.original, progress);
            looked.map_err(|error| error.of_tensor(edit.tensor.name.as_deref(), several))?;
        }
        (self.sums, _) = self.original.sums(&self.starts())?;
        Ok(())
    }

    pub(super) fn check(&mut self) -> Result<(), Error> {
        self.marks()?;
        self.original.check()
    }

    /// Where the tensors begin that are changed, in the order of the file.
    fn starts(&self) -> Vec<u64> {
        let changed = self.edits.iter().filter(|edit| edit.bytes() > 0);
        let mut starts: Vec<u64> = changed.map(|edit| edit.tensor.data().start).collect();
        starts.sort_unstable();
        starts
    }

    /// The marks of the members that are to be changed, where nothing is left half written.
    fn marks(&mut self) -> Result<Vec<u32>, Error> {
        if self.sums.is_empty() {
            return Ok(Vec::new());
        }
        let hold = self.original.hold();
        let marks = self.check_members(hold);
        self.original.share();
        marks
    }

    /// Refuse an archive in which a member is half written, but for one that this run completes. Where others
    /// change the file too, such members may be theirs; where nobody can tell, a note names the member.
    fn check_members(&mut self, hold: Hold) -> Result<Vec<u32>, Error> {
        let (members, other) = self.original.sums(&self.starts())?;
        let half = |name: &str| {
            let member = name.strip_suffix(".npy").unwrap_or(name).to_owned();
            Err(Error::file(self.original.input().location(), EditFault::HalfWritten { member }))
        };
        let mut marks = Vec::new();
        for member in &members {
            let (mark, is_whole) = self.mark(member)?;
            let is_marked = member.crcs.last().is_some_and(|crc| [mark, !mark].contains(crc));
            if !member.agree() && !is_marked && !is_whole {
                return half(&member.name);
            }
            // never that of the bytes that are there
            marks.push(if member.crcs.first() == Some(&mark) { !mark } else { mark });
        }
        match (other, hold) {
            (Some(name), Hold::Alone) => return half(&name),
            (Some(name), Hold::NoLocks) => {
                let input = self.original.input();
                let name = name.strip_suffix(".npy").unwrap_or(&name);
                input.notes.add(format_args!(
                    "{}: array {name:?} is half written: another run writes it, or was killed (this file \
                     system has no locks that tell)",
                    input.location()
                ));
            }
            _ => {}
        }
        self.sums = members;
        Ok(marks)
    }

    /// A mark of what is written where in a member, the same for the same run; and whether that is all of it.
    fn mark(&self, member: &MemberSums) -> Result<(u32, bool), Error> {
        let mut text = member.name.clone();
        let mut is_whole = false;
        for edit in self.edits.iter().filter(|edit| member.data.contains(&edit.tensor.data().start))
        {
            text.push_str(&edit.places()?);
            is_whole |= edit.is_whole();
        }
        Ok((npz::mark(text.as_bytes()), is_whole))
    }

    pub(super) fn write(&mut self, several: bool, progress: &Progress) -> Result<(), Error> {
        let workers = self.original.workers().clone();
        let marks = self.marks()?;
        let begun = self.original.begin(progress)?;
        let mut marked = self.sums.iter().zip(marks);
        marked.try_for_each(|(member, mark)| begun.mark(member, mark))?;
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
        let (destination, kind) = match &original.copy {
            Some(copy) => (copy.into(), OutputKind::EditedCopy(file)),
            None => (file, OutputKind::InPlace),
        };
        let tensors = match edits.as_slice() {
            [edit] => Ok(edit.planned()),
            several => Err(several.len()),
        };
        let bytes = edits.iter().map(TensorEdit::bytes).sum();
        let format = original.format();
        // one tensor after the other
        let plans = edits.iter().filter_map(TensorEdit::plan);
        let out_of_core = plans.max_by_key(|plan| plan.temporary_bytes);
        Planned { destination, kind, format, tensors, bytes, size: None, shared: None, out_of_core }
    }
}
