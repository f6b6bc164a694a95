//! What an output format is: its properties, and where it puts the bytes of tensors.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::container::error::Cause;
use crate::container::fault::LayoutFault;
use crate::container::input::Checkpoint;
use crate::dtype::DType;
use crate::execute::Conversion;
use crate::format::{Tensor, Tensors};
use crate::shape::{self, Order};
use crate::sink::{self, Destination, Sink, SinkError};

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
    /// Whether elements may be in Fortran order.
    pub has_orders: bool,
    /// Whether it can be compressed.
    pub has_deflate: bool,
    /// Whether it is for people to read, and may go to a terminal.
    pub is_text: bool,
    /// The type, byte order included, in which elements are stored; `None` where there is none.
    pub stored_dtype: fn(&DType) -> Option<DType>,
    /// Find the place of each tensor.
    pub lay_out: fn(&Request<'_>) -> Result<Layout, Cause>,
}

impl std::fmt::Debug for OutputFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// What is to be laid out.
pub struct Request<'a> {
    /// The tensors, in the order in which they are written.
    pub tensors: &'a Entries,
    /// `__metadata__`, where the format has it.
    pub metadata: &'a BTreeMap<String, String>,
    /// The memory order of all tensors.
    pub order: Order,
    /// Whether to compress.
    pub deflate: bool,
    /// Whether the output can only be written from its beginning to its end.
    pub forward: bool,
    /// The checkpoint that the tensors come from, where it is sharded.
    pub checkpoint: Option<&'a Checkpoint>,
}

/// A tensor of an output.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name, where the format has names.
    pub name: String,
    /// Its dtype in the output.
    pub dtype: DType,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Bytes of its elements.
    pub bytes: u64,
    /// What elements go through on the way.
    pub conversion: Conversion,
    /// The shard that it comes from.
    pub part: usize,
}

/// The tensors of an output, in the order in which they are written. Each is kept in a few bytes
/// more than its name takes, and becomes an [`Entry`] when it is asked for.
#[derive(Default)]
pub struct Entries {
    tensors: Tensors,
    conversions: Vec<Conversion>,
}

impl Entries {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.conversions.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.conversions.is_empty()
    }

    /// Tensor `number`.
    ///
    /// # Panics
    /// If there are not that many.
    pub fn at(&self, number: usize) -> Entry {
        let Tensor { name, dtype, shape, part, bytes, .. } = self.tensors.at(number);
        let conversion = self.conversions[number];
        Entry { name: name.unwrap_or_default(), dtype, shape, bytes, conversion, part }
    }

    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Entry> + Clone + '_ {
        (0..self.len()).map(|number| self.at(number))
    }

    /// The names of all of them.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        self.tensors.names().map(Option::unwrap_or_default)
    }

    /// The only one of them.
    pub fn only(&self) -> Option<Entry> {
        (self.len() == 1).then(|| self.at(0))
    }

    pub(in crate::container) fn push(&mut self, entry: Entry) {
        let Entry { name, dtype, shape, bytes, conversion, part } = entry;
        let (name, order, offset) = (Some(name), Order::C, 0);
        let fields = None;
        self.tensors.push(&Tensor { name, dtype, shape, order, part, offset, bytes, fields });
        self.conversions.push(conversion);
    }
}

/// Where the tensors of an output go, and everything else that is in it.
pub struct Layout {
    /// The position of the first element of each tensor, in bytes.
    pub starts: Vec<u64>,
    /// What stands around the elements.
    pub frame: Box<dyn Frame>,
}

/// Writes bytes at a position of an output.
pub(in crate::container) type WriteAt<'a> = dyn Fn(u64, &[u8]) -> Result<(), SinkError> + 'a;

/// All of an output that is not elements.
pub trait Frame: Send + Sync {
    /// Bytes of the whole output, where that is known beforehand.
    fn size(&self) -> Option<u64>;

    /// Find out what [`create`](Frame::create) would find wrong, without creating anything.
    ///
    /// # Errors
    /// Those of [`sink::check`].
    fn check(&self, target: &Destination, options: sink::SinkOptions) -> Result<(), SinkError> {
        sink::check(target, options)
    }

    /// Begin the output: from here on, elements are written at the positions of the layout.
    ///
    /// # Errors
    /// Those of [`sink::create`].
    fn create(
        &self,
        target: &Destination,
        options: sink::SinkOptions,
    ) -> Result<Box<dyn Sink>, SinkError>;

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
    fn fixed(&self) -> Option<sink::FixedFrame<'_>> {
        None
    }

    /// Write what stands before the first elements: bytes at a position.
    ///
    /// # Errors
    /// Those of `write`.
    fn write_headers(&self, write: &WriteAt<'_>) -> Result<(), SinkError>;
}

/// A header, and the elements behind it.
struct Headed {
    header: Vec<u8>,
    bytes: u64,
    grow: Grow,
}

/// Makes a header longer, where its format allows it.
pub(super) type Grow = fn(&mut Vec<u8>, u64) -> bool;

impl Frame for Headed {
    fn size(&self) -> Option<u64> {
        Some(self.header.len() as u64 + self.bytes)
    }

    fn create(
        &self,
        target: &Destination,
        options: sink::SinkOptions,
    ) -> Result<Box<dyn Sink>, SinkError> {
        sink::create(target, sink::SinkOptions { len: self.size(), ..options })
    }

    fn shared_files(&self) -> Vec<u64> {
        vec![0]
    }

    fn grow(&mut self, wanted: &dyn Fn(&Range<u64>) -> u64) -> Vec<(u64, u64)> {
        let len = self.header.len() as u64;
        let bytes = wanted(&(0..len + self.bytes));
        match (self.grow)(&mut self.header, bytes) {
            true => vec![(len, bytes)],
            false => Vec::new(),
        }
    }

    fn fixed(&self) -> Option<sink::FixedFrame<'_>> {
        Some(sink::FixedFrame::Header(&self.header))
    }

    fn write_headers(&self, write: &WriteAt<'_>) -> Result<(), SinkError> {
        write(0, &self.header)
    }
}

/// Put tensors one after the other behind a header, whose length is fixed or not.
pub(super) fn behind_header(
    header: Vec<u8>,
    tensors: &Entries,
    grow: Grow,
) -> Result<Layout, Cause> {
    let mut end = header.len() as u64;
    let mut starts = Vec::with_capacity(tensors.len());
    for tensor in tensors.iter() {
        starts.push(end);
        end = end.checked_add(tensor.bytes).ok_or(LayoutFault::TooLarge)?;
    }
    let bytes = end - header.len() as u64;
    Ok(Layout { starts, frame: Box::new(Headed { header, bytes, grow }) })
}

/// The only tensor of a format that holds one.
pub(super) fn only(tensors: &Entries, format: &'static str) -> Result<Entry, LayoutFault> {
    tensors.only().ok_or(LayoutFault::Count { format, count: tensors.len() })
}

/// The bytes of a shape, where they fit into 63 bits.
pub(in crate::container) fn byte_count(shape: &[u64], dtype: &DType) -> Result<u64, LayoutFault> {
    shape::byte_count(shape, dtype.item_bits()).ok_or(LayoutFault::TooLarge)
}
