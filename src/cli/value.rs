//! A tensor that is read while another file is changed: its dtype, and what keeps its bytes safe.

use std::path::Path;

use tslice::dtype::DType;
use tslice::format::{Format, Tensor};
use tslice::source::{self, Source};
use tslice::view::Layout;

use super::args::Io;
use super::edit::Target;
use super::input::{Input, failed_source, spool};
use super::report::Failure;

/// A file of values, its header read.
pub(crate) struct Value {
    pub(crate) tensor: Tensor,
    /// Bytes that change places on the way to the target; 1 for none.
    pub(crate) swap_width: usize,
    input: Input,
}

/// Bytes that stay as they are while the target is written.
pub(crate) struct Kept {
    pub(crate) source: Box<dyn Source>,
    /// How many bytes of the file lie before the source's first.
    pub(crate) gone: u64,
}

impl Value {
    /// Open a file, and choose a tensor of the target's dtype by the name that `flag` gave.
    pub(crate) fn open(
        path: &Path,
        (flag, name): (&str, Option<&String>),
        io: Io,
        target: &Tensor,
    ) -> Result<Value, Failure> {
        let input = Input::open(path, io)?;
        let name = name.map_or(&[][..], std::slice::from_ref);
        let tensor = input.tensor_by(flag, name)?.clone();
        let (ours, theirs) = (&tensor.dtype, &target.dtype);
        let swap_width = swap_width(ours, theirs).ok_or_else(|| {
            Failure::file(path, format!("the value has dtype {ours}, the target has {theirs}"))
        })?;
        Ok(Value { tensor, swap_width, input })
    }

    /// Make sure that all of it is there and stays as it is.
    pub(crate) fn keep(self, target: &Target<'_>, written: &Tensor) -> Result<Kept, Failure> {
        keep(self.input, &self.tensor, target, written)
    }
}

/// Read a pipe to its end; copy what lies in the bytes that are about to be written.
pub(crate) fn keep(
    input: Input,
    tensor: &Tensor,
    target: &Target<'_>,
    written: &Tensor,
) -> Result<Kept, Failure> {
    let Input { path, bytes, contents, checkpoint, packed } = input;
    // in a sharded checkpoint the bytes lie in a file beside the one that was named
    let shard = checkpoint.and_then(|checkpoint| {
        let file = checkpoint.index.files.get(tensor.part)?;
        Some(path.parent()?.join(file))
    });
    // the place of standard input in its file is not known here, nor that of a shard's tensor
    let placed = path != Path::new("-") && shard.is_none();
    match bytes {
        source::Opened::Forward(stream) => {
            let (source, gone) = spool(&path, stream, &contents)?;
            Ok(Kept { source, gone })
        }
        source::Opened::Random(source)
            if target.is_written_by(shard.as_deref().unwrap_or(&path))
                && (!placed || overlap(tensor, written)) =>
        {
            let range = tensor.offset..tensor.offset + tensor.bytes;
            let source = source::spool_range(source.as_ref(), range);
            let source = source.map_err(|error| failed_source(&path, &error))?;
            Ok(Kept { source, gone: tensor.offset })
        }
        source::Opened::Random(source) => {
            if tensor.part > 0 && !packed.is_empty() && tensor.bytes > 0 {
                // inflated whole by the first byte that is asked for, its checksum included
                let first = tensor.offset..tensor.offset + 1;
                source
                    .window(first, &mut Vec::new())
                    .map_err(|error| failed_source(&path, &error))?;
            }
            Ok(Kept { source, gone: 0 })
        }
    }
}

/// How the elements of a tensor lie in its file, whose first `gone` bytes are left out.
pub(crate) fn layout(tensor: &Tensor, gone: u64) -> Layout<'_> {
    Layout {
        shape: &tensor.shape,
        item_bits: tensor.dtype.item_bits(),
        order: tensor.order,
        offset: tensor.offset.saturating_sub(gone),
    }
}

/// Whether two tensors of one file share bytes.
fn overlap(a: &Tensor, b: &Tensor) -> bool {
    a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes
}

/// The bytes that change places between two dtypes that are one but for their byte order; `None`
/// for two different ones. What a `.npy` has as `<V2` is the bfloat16 that it was made of.
fn swap_width(value: &DType, target: &DType) -> Option<usize> {
    match (value, target) {
        (DType::Scalar(ours, from), DType::Scalar(theirs, to)) => {
            (ours == theirs).then(|| if from == to { 1 } else { target.swap_width() })
        }
        (DType::Npy(ours), DType::Npy(theirs)) if ours == theirs => Some(1),
        (DType::Npy(ours), DType::Npy(theirs)) => ours.swap_width_to(theirs),
        (stored @ DType::Npy(_), scalar) | (scalar, stored @ DType::Npy(_)) => {
            (Format::Npy.stored_dtype(scalar).ok().as_ref() == Some(stored)).then_some(1)
        }
    }
}
