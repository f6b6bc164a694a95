//! Distributed checkpoints of PyTorch: a folder with `.metadata`, and files that hold pieces of tensors.
//!
//! ```text
//! folder/.metadata │ folder/__0_0.distcp: piece, piece, .. │ folder/__1_0.distcp: piece, ..
//! ```
//!
//! `.metadata` gives the dtype and the shape of each tensor, and where each of its pieces is stored. A piece is a whole
//! file of torch.save with one tensor, inside a `.distcp` file. It is opened when its elements are read.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use metadata::{DescribedTensor, Metadata, StoredPiece};

use crate::dtype::DType;
use crate::error::{Error, Fault};
use crate::execute::Progress;
use crate::formats::npz;
use crate::formats::torch::of_torch;
use crate::input::{
    Bytes, Container, Contents, Format, Input, Location, OpenOptions, RecognisedFile, Unreadable,
    folder_of, seekable,
};
use crate::shape::{AsTuple, Order, contiguous_strides};
use crate::source::{
    FileOpener, IoMode, Opened, OpenedPiece, PieceBox, PieceFolder, PiecedTensors, PiecesSource,
    RangeSource, Source, SourceError, SourceResult,
};
use crate::tensor::{IN_PIECES, StorageKind, TensorInfo, Tensors, data_bytes};

mod metadata;

/// The name of the metadata in the folder.
pub(crate) const METADATA: &str = ".metadata";

/// The most pieces that a tensor may have.
const MAX_PIECES: usize = 1 << 14;

/// A distributed checkpoint. The file that is opened is `.metadata`.
pub(crate) static FORMAT: Format = Format {
    is_named: |name| name == METADATA,
    ..Format::new("distributed pytorch", |_| false, open)
};

/// A fault of a distributed checkpoint.
#[derive(Debug, thiserror::Error)]
enum DistributedFault {
    #[error("a distributed checkpoint must be opened by its folder")]
    NoFolder,
    #[error("the pieces of tensor {0:?} do not cover it")]
    Uncovered(String),
    #[error("tensor {0:?} has more than {MAX_PIECES} pieces")]
    Many(String),
    #[error("its tensors have 2^63 bytes or more")]
    TooLarge,
    #[error("a piece ends at byte {end} of the file, which has {len}")]
    Short { end: u64, len: u64 },
    #[error("the piece at {start} is not what the metadata says: {dtype} of shape {}", AsTuple(.shape))]
    Unlike { start: u64, dtype: String, shape: Vec<u64> },
}

impl Fault for DistributedFault {
    const OF: &'static str = "pytorch";
}

fn open(file: RecognisedFile<'_>) -> Result<Input, Error> {
    let RecognisedFile { location, bytes, options, progress } = file;
    let Some(path) = location.path() else { return Err(DistributedFault::NoFolder.into()) };
    let bytes = seekable(bytes, progress)?;
    let metadata = metadata::read(bytes.as_ref()).map_err(of_torch);
    bytes.verify()?;
    let Metadata { tensors: described, objects, files } = metadata?;
    let mut unreadable = Vec::new();
    let mut infos = Tensors::default();
    let mut tensors = PiecedTensors::default();
    let mut pieces = Vec::new();
    for tensor in described {
        let DescribedTensor { name, dtype, shape, pieces: described } = tensor;
        let dtype = match dtype {
            Ok(dtype) => dtype,
            Err(error) => {
                unreadable.push(Unreadable::new(name, error));
                continue;
            }
        };
        if described.len() > MAX_PIECES {
            return Err(DistributedFault::Many(name).into());
        }
        let bytes = data_bytes(&shape, dtype.item_bits()).ok_or(DistributedFault::TooLarge)?;
        let boxes = || described.iter().map(|piece| piece.in_tensor.clone());
        if bytes > 0 && !cover(&shape, boxes().collect()) {
            return Err(DistributedFault::Uncovered(name).into());
        }
        let item = dtype.item_bits() / 8;
        let byte_boxes = boxes().map(|PieceBox { offset, shape }| PieceBox {
            offset: [offset, vec![0]].concat(),
            shape: [shape, vec![item]].concat(),
        });
        let in_bytes = [shape.as_slice(), &[item]].concat();
        let start =
            tensors.push(&in_bytes, byte_boxes.collect()).ok_or(DistributedFault::TooLarge)?;
        pieces.extend(described.into_iter().map(|piece| ExpectedPiece {
            stored: piece.stored,
            dtype: dtype.clone(),
            shape: piece.in_tensor.shape,
        }));
        let tensor = TensorInfo::new(dtype, shape, Order::C, start).placed(IN_PIECES, 0);
        infos.push(&TensorInfo { name: Some(name), ..tensor });
    }
    let pieces = Pieces::new(folder_of(path), files, options.io, pieces);
    let source = PiecesSource::new(tensors, move |number| pieces.open(number));
    let input = Input::of_source(location, Arc::new(source), Contents::of(&FORMAT, infos));
    Ok(Input { container: Container { unreadable, opaque: objects, ..input.container }, ..input })
}

/// Whether each element of a tensor is in exactly one piece.
fn cover(shape: &[u64], mut pieces: Vec<PieceBox>) -> bool {
    let is_inside = |piece: &PieceBox| {
        let axes = piece.offset.iter().zip(&piece.shape).zip(shape);
        piece.offset.len() == shape.len()
            && piece.shape.len() == shape.len()
            && axes
                .into_iter()
                .all(|((at, len), all)| at.checked_add(*len).is_some_and(|end| end <= *all))
    };
    if !pieces.iter().all(is_inside) {
        return false;
    }
    let count = |shape: &[u64]| shape.iter().product::<u64>();
    pieces.retain(|piece| count(&piece.shape) > 0);
    pieces.sort_by(|one, other| one.offset.cmp(&other.offset));
    let overlap = |one: &PieceBox, other: &PieceBox, axis: usize| {
        let end = |piece: &PieceBox| piece.offset[axis] + piece.shape[axis];
        one.offset[axis] < end(other) && other.offset[axis] < end(one)
    };
    let are_apart = |(at, one): (usize, &PieceBox)| {
        let near = pieces[at + 1..].iter();
        let mut near = near.take_while(|other| shape.is_empty() || overlap(one, other, 0));
        near.all(|other| (0..shape.len()).any(|axis| !overlap(one, other, axis)))
    };
    let covered = pieces.iter().map(|piece| u128::from(count(&piece.shape))).sum::<u128>();
    covered == u128::from(count(shape)) && pieces.iter().enumerate().all(are_apart)
}

/// A stored piece, and the dtype and shape that its tensor must have.
struct ExpectedPiece {
    stored: StoredPiece,
    dtype: DType,
    shape: Vec<u64>,
}

/// The pieces of all tensors, and their files.
struct Pieces {
    folder: PieceFolder,
    names: Vec<String>,
    files: Vec<OnceLock<Arc<dyn Source>>>,
    stored: Vec<ExpectedPiece>,
}

impl Pieces {
    fn new(folder: &Path, names: Vec<String>, io: IoMode, stored: Vec<ExpectedPiece>) -> Pieces {
        let mut files = Vec::new();
        files.resize_with(names.len(), OnceLock::new);
        let folder = PieceFolder::new(folder, FileOpener::new(names.len(), io));
        Pieces { folder, names, files, stored }
    }

    fn open(&self, number: usize) -> SourceResult<OpenedPiece> {
        let expected = &self.stored[number];
        let file = expected.stored.file;
        let name = &self.names[file];
        let source = match self.files[file].get() {
            Some(source) => source,
            None => {
                let opened = self.folder.open(name)?;
                self.files[file].get_or_init(|| opened.into())
            }
        };
        opened(Arc::clone(source), expected).map_err(|error| {
            let error = match error.cause.downcast::<SourceError>() {
                Ok(error) => error,
                Err(cause) => SourceError::Io(std::io::Error::other(cause.words())),
            };
            error.of_file(name)
        })
    }
}

fn opened(source: Arc<dyn Source>, expected: &ExpectedPiece) -> Result<OpenedPiece, Error> {
    let range = expected.stored.bytes.clone();
    if range.end > source.len() {
        return Err(DistributedFault::Short { end: range.end, len: source.len() }.into());
    }
    let start = range.start;
    let piece = (npz::FORMAT.open)(RecognisedFile {
        location: &Location::Memory,
        bytes: Opened::Random(Box::new(RangeSource { source, range })),
        options: &OpenOptions::default(),
        progress: &Progress::default(),
    })?;
    let contents = piece.contents;
    let found = contents.tensors.get(0).filter(|_| contents.tensors.len() == 1);
    let Some(tensor) = found.filter(|it| it.dtype == expected.dtype && it.shape == expected.shape)
    else {
        let ExpectedPiece { dtype, shape, .. } = expected;
        let (dtype, shape) = (dtype.to_string(), shape.clone());
        return Err(DistributedFault::Unlike { start, dtype, shape }.into());
    };
    let Bytes::Random(source) = piece.bytes else {
        return Err(DistributedFault::NoFolder.into());
    };
    let item = tensor.dtype.item_bits() / 8;
    let strides = match &tensor.storage.kind {
        StorageKind::Strided { strides, .. } => Some(strides.clone()),
        StorageKind::Contiguous(order) => contiguous_strides(&tensor.shape, item, *order),
        _ => None,
    };
    let strides = strides.unwrap_or_default().into_iter().map(i64::unsigned_abs);
    let strides = strides.chain([1]).collect();
    Ok(OpenedPiece { source, first: tensor.data().start, strides })
}
