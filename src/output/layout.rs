//! Output formats, and where they put the bytes of tensors.
//!
//! The formats themselves stand in `formats`, each a `static` [`OutputFormat`].

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::{Chunking, LayoutFault, MetadataChange};
use crate::dtype::DType;
use crate::error::Cause;
use crate::execute::Conversion;
use crate::input::{Checkpoint, Metadata, SmallFile};
use crate::shape::{self, Order};
use crate::sink::{self, Destination, Draft, FileTree, SinkError, SinkOptions, Targets};
use crate::tensor::{Annotations, TensorInfo, Tensors};

/// The block size, in bytes, to which the parts of a file are aligned.
const PART_BLOCK: u64 = 4096;

/// The metadata that a format has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataKind {
    None,
    /// None, and a note says of which keys the metadata of inputs are left out.
    Noted,
    /// Texts under keys, those of inputs among them.
    Texts,
    /// Values of several types under keys; of inputs those of its own format. A note says which texts are left out.
    Typed,
}

/// A format that outputs are written in: a `static` in its room.
pub struct OutputFormat {
    /// The name, in messages and as a value of `--to`.
    pub name: &'static str,
    /// A line for the help; empty for a format that cannot be asked for by name.
    pub about: &'static str,
    /// The extensions of its files, in small letters.
    pub extensions: &'static [&'static str],
    /// Whether the format holds several tensors, each with a name.
    pub holds_several: bool,
    #[doc(hidden)]
    pub metadata: MetadataKind,
    /// Whether elements may be in Fortran order.
    pub has_orders: bool,
    pub has_deflate: bool,
    pub has_chunks: bool,
    /// Whether the output is the folder of a checkpoint: shards, with small files beside them.
    pub has_shards: bool,
    /// Whether the output is only the bytes of elements, of any dtype.
    pub is_raw: bool,
    /// Whether an output is a folder, and its only tensor may be without a name.
    pub is_folder: bool,
    /// Whether people read the output, which may go to a terminal.
    pub is_text: bool,
    /// Whether a file of it can be changed, as itself or as a copy.
    pub is_editable: bool,
    /// The type, with its byte order, in which elements are stored; `None` where the format lacks the type.
    pub stored_dtype: fn(&DType) -> Option<DType>,
    /// Find the offset of each tensor, and all bytes that are not elements.
    #[doc(hidden)]
    pub lay_out: fn(&Request<'_>) -> Result<Box<dyn OutputLayout>, Cause>,
}

impl MetadataKind {
    /// Whether a change of metadata has an effect, or nothing of it is lost.
    pub(super) fn allows(self, change: &MetadataChange) -> bool {
        match self {
            MetadataKind::None => !change.is_any(),
            MetadataKind::Noted => change.add.is_empty(),
            MetadataKind::Texts | MetadataKind::Typed => true,
        }
    }

    /// Whether a note says that it leaves out some of the metadata of inputs.
    pub(super) fn leaves_out(self, metadata: &Metadata) -> bool {
        match self {
            MetadataKind::None | MetadataKind::Texts => false,
            MetadataKind::Noted => !metadata.texts.is_empty() || metadata.typed.is_some(),
            MetadataKind::Typed => !metadata.texts.is_empty(),
        }
    }
}

impl std::fmt::Debug for OutputFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

pub struct Request<'a> {
    /// The tensors, in the order of their elements.
    pub tensors: &'a Arc<Entries>,
    /// The bytes of all tensors' elements.
    pub bytes: u64,
    /// The metadata of the inputs.
    pub metadata: &'a Metadata,
    pub change: &'a MetadataChange,
    pub order: Order,
    /// Whether tensors stay in the given order, wherever each begins.
    pub keeps_order: bool,
    pub deflate: bool,
    /// The most bytes of a shard, where a folder gets new shards.
    pub shard_size: Option<u64>,
    pub chunking: &'a Chunking,
    /// Files of a folder beside the files of the tensors.
    pub files: &'a [SmallFile],
    /// Whether the output goes to a terminal, which obeys codes in it.
    pub is_shown: bool,
    /// Whether the output can only be written from beginning to end.
    pub forward: bool,
    /// The checkpoint of the tensors, where it is sharded.
    pub checkpoint: Option<&'a Checkpoint>,
    /// The annotations of tensors by their numbers, where the format has chunks.
    pub annotations: &'a BTreeMap<usize, Annotations>,
    /// The annotations of groups, by their paths.
    pub groups: &'a BTreeMap<String, Annotations>,
}

/// The layout of an output: where each tensor begins, and all bytes that are not elements.
pub trait OutputLayout: Send + Sync {
    /// The bytes of the whole output, where they are known beforehand.
    fn size(&self) -> Option<u64>;

    /// The tensors that do not begin at the end of the previous one, ascending: the number of each, and the
    /// position of its first element in bytes.
    fn starts(&self) -> Box<dyn Iterator<Item = (usize, u64)> + '_>;

    /// Make the checks of [`create`](OutputLayout::create) without creating anything, and add the output to
    /// `targets`, which holds the outputs written together with it.
    fn check(
        &self,
        target: &Destination,
        options: SinkOptions,
        targets: &mut Targets,
    ) -> Result<(), SinkError> {
        sink::check_among(target, options, targets)
    }

    /// Create the output: from then on, elements are written at the positions of the layout.
    fn create(
        &self,
        target: &Destination,
        options: SinkOptions,
    ) -> Result<Box<dyn Draft>, SinkError>;

    /// The position of each file in the output, if elements can be shared with an input; empty where each
    /// byte must be examined.
    fn shared_files(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Make headers longer, where the format allows it, by the bytes that `wanted` returns for the positions
    /// of each file. Returns the positions from which all bytes have moved, and by how much.
    fn grow(&mut self, wanted: &dyn Fn(&Range<u64>) -> u64) -> Vec<(u64, u64)> {
        let _ = wanted;
        Vec::new()
    }

    /// The fixed layout for several processes that each write a part of the elements; `None` where the places
    /// of elements depend on other elements.
    fn fixed(&self) -> Option<sink::FixedLayout> {
        None
    }

    /// A position near `at` where a part of the elements may begin. It grows with `at`.
    fn cut(&self, at: u64) -> u64 {
        // no two machines write to one block
        at - at % PART_BLOCK
    }

    /// Write the elements of a range of positions, between two [cuts](OutputLayout::cut), to a folder that several
    /// processes write; only for an output whose [fixed layout](OutputLayout::fixed) is a folder.
    fn within(
        &self,
        folder: Box<dyn FileTree>,
        range: Range<u64>,
    ) -> Result<Box<dyn Draft>, SinkError> {
        let _ = (folder, range);
        Err(SinkError::IsADirectory)
    }

    /// Write the bytes before the first elements, each at its position.
    fn write_headers(&self, write: &WriteAt<'_>) -> Result<(), SinkError> {
        let _ = write;
        Ok(())
    }
}

/// A function that writes bytes at a position of an output.
pub(crate) type WriteAt<'a> = dyn Fn(u64, &[u8]) -> Result<(), SinkError> + 'a;

/// The only tensor of a format that holds one.
pub(crate) fn only(tensors: &Entries, format: &'static str) -> Result<OutputTensor, LayoutFault> {
    tensors.only().ok_or(LayoutFault::Count { format, count: tensors.len() })
}

/// The bytes of a shape; an error where they exceed 63 bits.
pub(crate) fn byte_count(shape: &[u64], dtype: &DType) -> Result<u64, LayoutFault> {
    shape::byte_count(shape, dtype.item_bits()).ok_or(LayoutFault::TooLarge)
}

#[derive(Clone, Debug, PartialEq)]
pub struct OutputTensor {
    /// The name of the tensor, where the format has names.
    pub name: String,
    pub dtype: DType,
    pub shape: Vec<u64>,
    pub bytes: u64,
    pub conversion: Conversion,
    /// The input's shard that holds the tensor.
    pub shard: usize,
}

impl OutputTensor {
    /// An unchanged tensor of the input.
    fn unchanged(tensor: TensorInfo) -> OutputTensor {
        OutputTensor {
            bytes: tensor.bytes(),
            shard: tensor.shard(),
            conversion: Conversion::None,
            name: tensor.name.unwrap_or_default(),
            dtype: tensor.dtype,
            shape: tensor.shape,
        }
    }
}

/// The tensors of an output, in the order of their elements. Unchanged consecutive tensors of the input take
/// no memory of their own; any other tensor takes its name and a few bytes, and becomes an [`OutputTensor`]
/// on demand.
#[derive(Default)]
pub struct Entries {
    input: Arc<Tensors>,
    own: Tensors,
    conversions: Vec<Conversion>,
    runs: Vec<Run>,
    len: usize,
}

/// Consecutive tensors of the output that are consecutive in the input, or in the list of changed tensors.
struct Run {
    /// The number of the first tensor in the output.
    begin: usize,
    first: usize,
    is_own: bool,
}

impl Entries {
    /// An empty list; unchanged tensors refer to `input`.
    pub(crate) fn new(input: Arc<Tensors>) -> Entries {
        Entries { input, ..Entries::default() }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn at(&self, number: usize) -> OutputTensor {
        let (tensors, at, _) = self.find(number);
        let conversion = self.conversion(number);
        OutputTensor { conversion, ..OutputTensor::unchanged(tensors.at(at)) }
    }

    pub(crate) fn conversion(&self, number: usize) -> Conversion {
        let (_, at, conversions) = self.find(number);
        conversions.map_or(Conversion::None, |conversions| conversions[at])
    }

    /// Find tensor `number`: the list that holds it, its index there, and the conversions of that list, if
    /// any.
    fn find(&self, number: usize) -> (&Tensors, usize, Option<&[Conversion]>) {
        let run = &self.runs[self.runs.partition_point(|run| run.begin <= number) - 1];
        let at = run.first + (number - run.begin);
        if run.is_own {
            return (&self.own, at, Some(&self.conversions));
        }
        (&self.input, at, None)
    }

    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        (0..self.len()).map(|number| {
            let (tensors, at, _) = self.find(number);
            tensors.name(at).unwrap_or_default()
        })
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = OutputTensor> + Clone + '_ {
        (0..self.len()).map(|number| self.at(number))
    }

    pub fn only(&self) -> Option<OutputTensor> {
        (self.len() == 1).then(|| self.at(0))
    }

    /// Append a tensor; `number` is the tensor of the input that it comes from.
    pub(crate) fn push(&mut self, entry: OutputTensor, number: usize) {
        let is_own =
            self.input.get(number).is_none_or(|tensor| OutputTensor::unchanged(tensor) != entry);
        let first = if is_own { self.own.len() } else { number };
        if is_own {
            let OutputTensor { name, dtype, shape, conversion, shard, .. } = entry;
            let tensor = TensorInfo::new(dtype, shape, Order::C, 0).placed(shard, 0);
            self.own.push(&TensorInfo { name: Some(name), ..tensor });
            self.conversions.push(conversion);
        }
        let begin = self.len;
        let follows = |run: &Run| run.is_own == is_own && run.first + (begin - run.begin) == first;
        if !self.runs.last().is_some_and(follows) {
            self.runs.push(Run { begin, first, is_own });
        }
        self.len += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dtype::{Endian, Scalar};

    fn tensor(number: usize) -> TensorInfo {
        let dtype = DType::Scalar(Scalar::U8, Endian::Little);
        let tensor = TensorInfo::new(dtype, vec![number as u64], Order::C, 100 * number as u64);
        TensorInfo { name: Some(format!("t{number}")), ..tensor.placed(number % 3, 0) }
    }

    proptest! {
        #[test]
        fn entries_come_out_as_they_went_in(
            changes in prop::collection::vec((0usize..9, 0..4), 0..30),
        ) {
            let mut entries = Entries::new(Arc::new((0..9).map(tensor).collect()));
            let mut plain = Vec::new();
            for (number, change) in changes {
                let mut entry = OutputTensor::unchanged(tensor(number));
                match change {
                    0 => entry.name.push('x'),
                    1 => entry.conversion = Conversion::swap_bytes(2),
                    _ => {}
                }
                plain.push(entry.clone());
                entries.push(entry, number);
            }
            let names: Vec<&str> = plain.iter().map(|entry| entry.name.as_str()).collect();
            prop_assert_eq!(entries.names().collect::<Vec<_>>(), names);
            prop_assert_eq!(entries.iter().collect::<Vec<_>>(), plain);
        }
    }

    #[test]
    fn what_is_as_in_the_input_takes_no_memory() {
        let mut entries = Entries::new(Arc::new((0..9).map(tensor).collect()));
        (0..9).for_each(|number| entries.push(OutputTensor::unchanged(tensor(number)), number));
        assert_eq!((entries.len(), entries.runs.len(), entries.own.len()), (9, 1, 0));
    }
}
