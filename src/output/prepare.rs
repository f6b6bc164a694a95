//! An output: its destination, its format, and the offsets of its tensors.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::{FormatOption, LayoutFault, WriteOptions};
use crate::cast::Cast;
use crate::dtype::{DType, Endian};
use crate::error::Error;
use crate::execute::Conversion;
use crate::input::{Checkpoint, Input, Location, Metadata, SmallFile};
use crate::output::layout::{
    Entries, MetadataKind, OutputFormat, OutputLayout, OutputTensor, Request,
};
use crate::output::{layout, packing};
use crate::shape::Order;
use crate::sink::{Destination, Draft, SinkError, SinkOptions, Targets};
use crate::tensor::{Annotations, TensorInfo, Tensors};

/// The destination of an output, and its form.
#[derive(Clone)]
pub struct Output {
    pub(crate) destination: Destination,
    pub(crate) format: &'static OutputFormat,
    pub(crate) options: WriteOptions,
    /// Files of a folder beside the files of the tensors.
    files: Vec<SmallFile>,
}

/// The changes of a tensor on its way to an output.
#[derive(Clone, Debug, Default)]
pub struct TensorChange {
    pub shape: Vec<u64>,
    pub cast: Option<Cast>,
    /// For each axis of the result, the number of the tensor's axis that it is; `None` for other axes.
    pub axes: Vec<Option<usize>>,
}

impl TensorChange {
    pub fn unchanged(shape: Vec<u64>) -> TensorChange {
        let axes = (0..shape.len()).map(Some).collect();
        TensorChange { shape, cast: None, axes }
    }
}

/// Facts of the input that the output omits or changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Omission {
    /// Attributes of a tensor or a group.
    Attributes {
        /// The name of the tensor, or the path of the group.
        name: String,
        /// The names of omitted attributes.
        left_out: Vec<String>,
        /// The names of attributes with a word for a number.
        reworded: Vec<String>,
    },
    /// Metadata of the inputs, by their keys; none of those that are no texts.
    Metadata { keys: Vec<String> },
    /// The dtype of so many tensors: only the bytes of the elements are written.
    DType { dtype: DType, tensors: u64 },
    /// The packing of a tensor's values, in an output without attributes.
    Packed { name: String, packed: String },
    /// Attributes of a tensor that do not hold for the output's elements, with their values.
    Dropped { name: String, attributes: Vec<String> },
}

/// An output with a known offset for every byte.
pub struct Prepared {
    pub output: Output,
    /// The tensors, in the given order.
    pub tensors: Arc<Entries>,
    /// All bytes that are not elements.
    pub layout: Box<dyn OutputLayout>,
    pub bytes: u64,
    /// The facts that the output omits or changes.
    pub omissions: Vec<Omission>,
}

impl Prepared {
    /// The tensors in the given order, with the position of each one's first element in bytes. Positions need
    /// not ascend.
    pub fn tensor_offsets(&self) -> impl Iterator<Item = (OutputTensor, u64)> {
        let mut starts = self.layout.starts().peekable();
        let mut end = 0;
        self.tensors.iter().enumerate().map(move |(number, entry)| {
            let start = starts.next_if(|(first, _)| *first == number).map_or(end, |(_, at)| at);
            end = start.saturating_add(entry.bytes);
            (entry, start)
        })
    }

    /// Make all checks of writing, and write nothing.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.check_among(&mut Targets::default())
    }

    /// Make all checks of writing for one of several outputs.
    pub(crate) fn check_among(&self, targets: &mut Targets) -> Result<(), Error> {
        let Output { destination, .. } = &self.output;
        let checked = self.layout.check(destination, self.output.options.sink(), targets);
        checked.map_err(|error| self.output.failed(error))
    }

    /// Create the output; with `shares`, it may share blocks with an input.
    pub(crate) fn create(&self, shares: bool) -> Result<Box<dyn Draft>, Error> {
        let options = SinkOptions { shares, ..self.output.options.sink() };
        let created = self.layout.create(&self.output.destination, options);
        created.map_err(|error| self.output.failed(error))
    }
}

impl Output {
    /// An output of this format. Options that do not apply to the format are errors.
    pub(crate) fn of_format(
        destination: Destination,
        format: &'static OutputFormat,
        options: WriteOptions,
    ) -> Result<Output, Error> {
        if format.is_folder && destination == Destination::Stdout {
            return Err(LayoutFault::Folder { format: format.name }.into());
        }
        let refused = [
            (FormatOption::Name, options.name.is_some() && !format.holds_several),
            (FormatOption::Deflate, options.deflate && !format.has_deflate),
            (FormatOption::OrderF, options.order == Order::F && !format.has_orders),
            (FormatOption::Metadata, !format.metadata.allows(&options.metadata)),
            (FormatOption::ShardSize, options.shard_size.is_some() && !format.has_shards),
            (FormatOption::Chunking, options.chunking.is_any() && !format.has_chunks),
        ];
        match refused.into_iter().find(|(_, refused)| *refused) {
            Some((option, _)) => Err(LayoutFault::NoEffect { option, format: format.name }.into()),
            None => Ok(Output { destination, format, options, files: Vec::new() }),
        }
    }

    /// Whether the output keeps the inputs' metadata under this key.
    pub(crate) fn needs_metadata(&self, key: &str) -> bool {
        self.format.metadata == MetadataKind::Texts && self.options.metadata.keeps(key)
    }

    /// Write shards of `bytes` bytes where the output is a folder and no shard size is given.
    #[must_use]
    pub fn in_shards(mut self, bytes: u64) -> Output {
        if self.format.has_shards {
            self.options.shard_size.get_or_insert(bytes);
        }
        self
    }

    /// Put copies of `files` beside the files of the tensors. The output must be a folder.
    pub fn with_files(self, files: Vec<SmallFile>) -> Result<Output, Error> {
        if !self.format.has_shards {
            let format = self.format.name;
            return Err(LayoutFault::NoEffect { option: FormatOption::Files, format }.into());
        }
        Ok(Output { files, ..self })
    }

    /// Whether the output is the folder of a checkpoint, whose small files may be copied too.
    pub fn is_of_folders(&self) -> bool {
        self.format.has_shards
    }

    pub fn destination(&self) -> &Destination {
        &self.destination
    }

    pub fn format(&self) -> &'static OutputFormat {
        self.format
    }

    pub fn prepare(
        &self,
        input: &Input,
        tensor: &TensorInfo,
        change: TensorChange,
    ) -> Result<Prepared, Error> {
        let mut preparation = self.begin_preparing(Arc::default(), None)?;
        preparation.add_groups(&input.contents.tensors);
        let name = self.tensor_name(tensor, &input.location, true);
        preparation.push(name, tensor, 0, change)?;
        preparation.finish(&input.contents.metadata)
    }

    /// Prepare an output whose tensors come one by one; unchanged tensors of `input` are not stored twice. The
    /// tensors of a sharded checkpoint stay in the order of its files.
    pub fn begin_preparing<'a>(
        &'a self,
        input: Arc<Tensors>,
        checkpoint: Option<&'a Checkpoint>,
    ) -> Result<Preparation<'a>, Error> {
        let mut preparation = Preparation {
            output: self,
            checkpoint,
            tensors: Entries::new(Arc::clone(&input)),
            bytes: 0,
            annotations: BTreeMap::new(),
            groups: BTreeMap::new(),
            omissions: Vec::new(),
            keeps_order: false,
        };
        preparation.add_groups(&input);
        Ok(preparation)
    }

    /// Why the output cannot hold a tensor of this dtype, whatever the conversion; `None` if it can.
    pub(crate) fn lacks(&self, dtype: &DType) -> Option<LayoutFault> {
        let is_other =
            matches!(dtype, DType::Npy(_)) && (self.format.stored_dtype)(dtype).is_none();
        let format = self.format.name;
        is_other.then(|| LayoutFault::DType { dtype: dtype.clone(), format })
    }

    fn entry(
        &self,
        name: String,
        tensor: &TensorInfo,
        TensorChange { shape, cast, .. }: TensorChange,
    ) -> Result<OutputTensor, LayoutFault> {
        let wanted = cast.map_or_else(|| tensor.dtype.clone(), Cast::to);
        let dtype = (self.format.stored_dtype)(&wanted).ok_or_else(|| LayoutFault::DType {
            dtype: wanted.clone(),
            format: self.format.name,
        })?;
        let bytes = layout::byte_count(&shape, &dtype)?;
        // the void types of `.npy` that hold other floats are little-endian
        let written = match (&dtype, &wanted) {
            (DType::Npy(_), DType::Scalar(scalar, _)) => DType::Scalar(*scalar, Endian::Little),
            (DType::Scalar(..), _) => dtype.clone(),
            _ => wanted.clone(),
        };
        let conversion = match (&tensor.dtype, &written) {
            (DType::Scalar(from, ours), DType::Scalar(to, theirs)) if from == to => {
                Conversion::swap_bytes(if ours == theirs { 1 } else { wanted.swap_width() })
            }
            (_, DType::Scalar(_, endian)) if let Some(cast) = cast => {
                Conversion::Cast(cast.with_endian(*endian))
            }
            (_, DType::Npy(_)) if let Some(cast) = cast => match cast.swap_width() {
                Some(width) => Conversion::swap_bytes(width),
                None => Conversion::Cast(cast),
            },
            (DType::Npy(from), _) if let DType::Npy(to) = &dtype => {
                Conversion::swap_bytes(from.swap_width_to(to).unwrap_or(1))
            }
            _ => Conversion::None,
        };
        Ok(OutputTensor { name, dtype, shape, bytes, conversion, shard: tensor.shard() })
    }

    /// The name of a tensor in the output: the name in the options for a tensor that is `sliced`, else its old
    /// name, else the stem of the input. Empty for a sliced tensor without a name where the output is a
    /// folder.
    pub fn tensor_name(&self, from: &TensorInfo, input: &Location, sliced: bool) -> String {
        let stem = || match input.file_name().and_then(|name| Path::new(name).file_stem()) {
            Some(stem) => stem.to_string_lossy().into_owned(),
            None => "tensor".to_owned(),
        };
        let given = self.options.name.clone().filter(|_| sliced);
        let has_root = self.format.is_folder && self.format.has_chunks;
        if sliced && given.is_none() && from.name.is_none() && has_root {
            return String::new();
        }
        given.or_else(|| from.name.clone()).unwrap_or_else(stem)
    }

    pub(crate) fn failed(&self, error: SinkError) -> Error {
        Error::file(&self.destination, error)
    }
}

/// An output whose tensors are being added.
pub struct Preparation<'a> {
    output: &'a Output,
    checkpoint: Option<&'a Checkpoint>,
    tensors: Entries,
    bytes: u64,
    /// The annotations of the output's tensors, by their numbers, where the format has annotations.
    annotations: BTreeMap<usize, Annotations>,
    /// The annotations of groups, by their paths.
    groups: BTreeMap<String, Annotations>,
    /// Facts of the tensors that the output omits, so far.
    omissions: Vec<Omission>,
    /// Whether the tensors stay in the order in which they come, wherever each begins.
    pub(crate) keeps_order: bool,
}

impl Preparation<'_> {
    /// Add the annotations of an input's groups; of several inputs the first one counts.
    pub(crate) fn add_groups(&mut self, tensors: &Tensors) {
        if self.output.format.has_chunks {
            for (path, annotated) in tensors.groups() {
                self.groups.entry(path.clone()).or_insert_with(|| annotated.get());
            }
        }
    }

    /// Append the result of tensor `number` of the input.
    pub fn push(
        &mut self,
        name: String,
        tensor: &TensorInfo,
        number: usize,
        change: TensorChange,
    ) -> Result<(), Error> {
        let axes = change.axes.clone();
        let is_own = change.cast.is_none();
        let entry = self.output.entry(name, tensor, change)?;
        let format = self.output.format;
        if let (DType::Blocks(block), false) = (&entry.dtype, format.is_raw)
            && axes.last() != Some(&tensor.shape.len().checked_sub(1))
        {
            return Err(LayoutFault::BlockAxis { block: block.name, format: format.name }.into());
        }
        if let Some(annotated) = &tensor.annotated {
            let said = annotated.get();
            if self.output.format.has_chunks {
                let mut said = said.of_axes(&axes);
                let OutputTensor { name, dtype, conversion, .. } = &entry;
                let attributes = packing::follow(&mut said, &tensor.dtype, *conversion, dtype);
                if !attributes.is_empty() {
                    self.omissions.push(Omission::Dropped { name: name.clone(), attributes });
                }
                said.fill_value = said
                    .fill_value
                    .and_then(|fill| packing::converted(fill, &tensor.dtype, *conversion, dtype));
                self.annotations.insert(self.tensors.len(), said);
            } else if let Some(packed) = said.packed(&tensor.dtype) {
                let name = tensor.name.clone().unwrap_or_default();
                self.omissions.push(Omission::Packed { name, packed });
            }
        }
        // a void that results from a cast is intended
        if is_own
            && entry.dtype.is_void()
            && !matches!(tensor.dtype, DType::Npy(_))
            && !self.output.format.is_raw
        {
            self.add_unsaid(&tensor.dtype);
        }
        self.bytes = self.bytes.checked_add(entry.bytes).ok_or(LayoutFault::TooLarge)?;
        self.tensors.push(entry, number);
        Ok(())
    }

    /// Count a tensor whose dtype the format lacks.
    fn add_unsaid(&mut self, lacking: &DType) {
        for omission in &mut self.omissions {
            if let Omission::DType { dtype, tensors } = omission
                && dtype.is_type_of(lacking)
            {
                *tensors += 1;
                return;
            }
        }
        self.omissions.push(Omission::DType { dtype: lacking.clone(), tensors: 1 });
    }

    pub fn finish(self, metadata: &Metadata) -> Result<Prepared, Error> {
        let Preparation {
            output,
            checkpoint,
            tensors,
            bytes,
            annotations,
            groups,
            mut omissions,
            keeps_order,
        } = self;
        let tensors = Arc::new(tensors);
        let names = tensors.names().enumerate().filter(|(at, _)| annotations.contains_key(at));
        let names = names.map(|(at, name)| (name.to_owned(), &annotations[&at]));
        let groups_said = groups.iter().map(|(path, said)| (path.clone(), said));
        omissions.extend(names.chain(groups_said).filter_map(|(name, said)| of_said(name, said)));
        if !output.options.metadata.drop && output.format.metadata.leaves_out(metadata) {
            omissions.push(Omission::Metadata { keys: metadata.texts.keys().cloned().collect() });
        }
        if i64::try_from(bytes).is_err() {
            return Err(LayoutFault::TooLarge.into());
        }
        let layout = (output.format.lay_out)(&Request {
            tensors: &tensors,
            bytes,
            metadata,
            change: &output.options.metadata,
            order: output.options.order,
            keeps_order,
            deflate: output.options.deflate,
            shard_size: output.options.shard_size,
            chunking: &output.options.chunking,
            files: &output.files,
            is_shown: output.options.is_shown && output.destination == Destination::Stdout,
            forward: output.destination.is_stream(),
            checkpoint,
            annotations: &annotations,
            groups: &groups,
        })?;
        Ok(Prepared { output: output.clone(), tensors, layout, bytes, omissions })
    }
}

fn of_said(name: String, said: &Annotations) -> Option<Omission> {
    let Annotations { omitted, reworded, .. } = said;
    let left_out = omitted.clone();
    let is_any = !omitted.is_empty() || !reworded.is_empty();
    is_any.then(|| Omission::Attributes { name, left_out, reworded: reworded.clone() })
}
