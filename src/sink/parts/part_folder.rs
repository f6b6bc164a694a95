//! A part of an output that is a folder of files.

use super::data_folder::DataFolder;
use super::error::PartsError;
use super::finish::{Look, SharedOutput};
use super::frame::FixedFrame;
use super::record::{DoneRecord, Part};
use crate::sink::{FileTree, Placed, SinkError};

/// A part that is being written. `place` records it and, if it was the last one, puts the folder in place.
/// Dropping it leaves the part to be written again.
pub struct PartFolder {
    output: SharedOutput,
    part: Part,
    frame: FixedFrame,
    data: DataFolder,
    /// Bytes of elements that it writes.
    bytes: u64,
}

impl PartFolder {
    pub(super) fn new(
        output: SharedOutput,
        part: Part,
        frame: FixedFrame,
        data: DataFolder,
        bytes: u64,
    ) -> PartFolder {
        PartFolder { output, part, frame, data, bytes }
    }
}

impl FileTree for PartFolder {
    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), SinkError> {
        match self.data.write(&self.output.folder, name, bytes) {
            // the output is in place, for which nothing is to be written any more
            Err(SinkError::Parts(PartsError::Discarded)) if self.output.is_over() => Ok(()),
            written => written,
        }
    }

    /// Steps 4 to 8.
    fn place(self: Box<Self>) -> Result<Placed, SinkError> {
        let PartFolder { output, part, frame, data, bytes } = *self;
        output.check_inputs(Look::Quick)?;
        if let Err(error) = data.sync() {
            return output.unless_placed(error).map(|()| Placed::default());
        }
        drop(data);
        let record = DoneRecord { first: part.index, written: bytes, crcs: Vec::new() };
        output.record(part, record, frame)?;
        Ok(Placed::default())
    }
}
