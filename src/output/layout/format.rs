//! What an output format is: its properties, and where it puts the bytes of tensors.

use std::collections::BTreeMap;
use std::iter;
use std::ops::Range;
use std::sync::Arc;

use super::super::{LayoutFault, MetadataChange};
use super::entries::{Entries, OutputTensor};
use super::header::{Header, WriteAt};
use crate::dtype::DType;
use crate::error::Cause;
use crate::format::Annotations;
use crate::input::{Checkpoint, SmallFile};
use crate::output::chunking::Chunking;
use crate::shape::Order;
use crate::sink::{Destination, Draft, FileTree, SinkError, Targets};
use crate::{shape, sink};

/// Parts of a file begin at multiples of so many bytes.
const PART_BLOCK: u64 = 4096;

/// A format that outputs are written in. Each is a `static` in a file of its own, and a line in
/// [`FORMATS`](super::FORMATS).
pub struct OutputFormat {
    /// The name, in messages and as a value of `--to`.
    pub name: &'static str,
    /// A line for the help; empty for a format that cannot be asked for by name.
    pub about: &'static str,
    /// The extensions of its files, in small letters.
    pub extensions: &'static [&'static str],
    /// Whether it holds several tensors, each with a name.
    pub holds_several: bool,
    /// Whether it has texts of metadata.
    pub has_metadata: bool,
    /// Whether elements may be in Fortran order.
    pub has_orders: bool,
    /// Whether it can be compressed.
    pub has_deflate: bool,
    /// Whether tensors are cut into chunks.
    pub has_chunks: bool,
    /// Whether an output is a folder, and its only tensor may be without a name.
    pub is_folder: bool,
    /// Whether it is for people to read, and may go to a terminal.
    pub is_text: bool,
    /// The type, byte order included, in which elements are stored; `None` where there is none.
    pub stored_dtype: fn(&DType) -> Option<DType>,
    /// Find the place of each tensor, and everything else that is in the output.
    pub lay_out: fn(&Request<'_>) -> Result<Box<dyn Frame>, Cause>,
}

impl std::fmt::Debug for OutputFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// What is to be laid out.
pub struct Request<'a> {
    /// The tensors, in the order in which they are written.
    pub tensors: &'a Arc<Entries>,
    /// Bytes of the elements of all of them.
    pub bytes: u64,
    /// `__metadata__` of the inputs, where the format has it.
    pub metadata: &'a BTreeMap<String, String>,
    /// What to do with the metadata.
    pub change: &'a MetadataChange,
    /// The memory order of all tensors.
    pub order: Order,
    /// Whether to compress.
    pub deflate: bool,
    /// How many bytes a shard has at most, where a folder has others than the input.
    pub shard_size: Option<u64>,
    /// How tensors are cut into chunks.
    pub chunking: &'a Chunking,
    /// Files that a folder has beside those of the tensors.
    pub files: &'a [SmallFile],
    /// Whether the output can only be written from its beginning to its end.
    pub forward: bool,
    /// The checkpoint that the tensors come from, where it is sharded.
    pub checkpoint: Option<&'a Checkpoint>,
    /// What is said of tensors besides, by their numbers, where the format is one of chunks.
    pub annotations: &'a BTreeMap<usize, Annotations>,
    /// What is said of groups, by their paths.
    pub groups: &'a BTreeMap<String, Annotations>,
}

/// All of an output that is not elements.
pub trait Frame: Send + Sync {
    /// Bytes of the whole output, where that is known beforehand.
    fn size(&self) -> Option<u64>;

    /// The tensors that do not begin where the one before them ends, ascending: the number of each,
    /// and the position of its first element in bytes.
    fn starts(&self) -> Box<dyn Iterator<Item = (usize, u64)> + '_>;

    /// Find out what [`create`](Frame::create) would find wrong, without creating anything; add the output
    /// to those that are written together with it.
    ///
    /// # Errors
    /// Those of [`sink::check_among`].
    fn check(
        &self,
        target: &Destination,
        options: sink::SinkOptions,
        targets: &mut Targets,
    ) -> Result<(), SinkError> {
        sink::check_among(target, options, targets)
    }

    /// Begin the output: from here on, elements are written at the positions of the layout.
    ///
    /// # Errors
    /// Those of [`sink::create`].
    fn create(
        &self,
        target: &Destination,
        options: sink::SinkOptions,
    ) -> Result<Box<dyn Draft>, SinkError>;

    /// Where the files begin, in the positions of the output, if their elements can be shared with an
    /// input; none where each byte must be looked at.
    fn shared_files(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Make headers longer, where the format allows it: by the bytes that `wanted` names for each
    /// file, which is told the file's positions in the output. Returns the positions from which on
    /// everything has moved, and by how much.
    fn grow(&mut self, wanted: &dyn Fn(&Range<u64>) -> u64) -> Vec<(u64, u64)> {
        let _ = wanted;
        Vec::new()
    }

    /// What several processes need that write a part of the elements each; `None` where the places
    /// of elements depend on the others.
    fn fixed(&self) -> Option<sink::FixedFrame> {
        None
    }

    /// A position near `at` at which a part of the elements may begin. It grows with `at`.
    fn cut(&self, at: u64) -> u64 {
        // no two machines write to one block
        at - at % PART_BLOCK
    }

    /// Let the elements of a range of positions, between two [cuts](Frame::cut), go to a folder that several
    /// processes write; only for an output whose [fixed frame](Frame::fixed) is a folder's.
    ///
    /// # Errors
    /// [`SinkError::Os`]: no temporary file can be made.
    fn within(
        &self,
        folder: Box<dyn FileTree>,
        range: Range<u64>,
    ) -> Result<Box<dyn Draft>, SinkError> {
        let _ = (folder, range);
        Err(SinkError::IsADirectory)
    }

    /// Write what stands before the first elements: bytes at a position.
    ///
    /// # Errors
    /// Those of `write`.
    fn write_headers(&self, write: &WriteAt<'_>) -> Result<(), SinkError> {
        let _ = write;
        Ok(())
    }
}

/// A header, and the elements behind it.
struct Headed {
    header: Header,
    bytes: u64,
}

impl Headed {
    fn len(&self) -> u64 {
        self.header.len() + self.bytes
    }
}

impl Frame for Headed {
    fn size(&self) -> Option<u64> {
        Some(self.len())
    }

    fn starts(&self) -> Box<dyn Iterator<Item = (usize, u64)> + '_> {
        Box::new(iter::once((0, self.header.len())))
    }

    fn create(
        &self,
        target: &Destination,
        options: sink::SinkOptions,
    ) -> Result<Box<dyn Draft>, SinkError> {
        sink::create(target, sink::SinkOptions { len: self.size(), ..options })
    }

    fn shared_files(&self) -> Vec<u64> {
        vec![0]
    }

    fn grow(&mut self, wanted: &dyn Fn(&Range<u64>) -> u64) -> Vec<(u64, u64)> {
        let start = self.header.len();
        let bytes = wanted(&(0..self.len()));
        match self.header.grow(bytes) {
            true => vec![(start, bytes)],
            false => Vec::new(),
        }
    }

    fn fixed(&self) -> Option<sink::FixedFrame> {
        let bytes = self.header.bytes().ok()?;
        Some(sink::FixedFrame::Header(bytes.into()))
    }

    fn write_headers(&self, write: &WriteAt<'_>) -> Result<(), SinkError> {
        self.header.write(0, write)
    }
}

/// Put tensors one after the other behind a header.
pub(super) fn behind_header(
    header: Header,
    request: &Request<'_>,
) -> Result<Box<dyn Frame>, Cause> {
    let bytes = request.bytes;
    header.len().checked_add(bytes).ok_or(LayoutFault::TooLarge)?;
    Ok(Box::new(Headed { header, bytes }))
}

/// The only tensor of a format that holds one.
pub(super) fn only(tensors: &Entries, format: &'static str) -> Result<OutputTensor, LayoutFault> {
    tensors.only().ok_or(LayoutFault::Count { format, count: tensors.len() })
}

/// The bytes of a shape, where they fit into 63 bits.
pub(crate) fn byte_count(shape: &[u64], dtype: &DType) -> Result<u64, LayoutFault> {
    shape::byte_count(shape, dtype.item_bits()).ok_or(LayoutFault::TooLarge)
}
