//! Raw bytes: an input whose dtype and shape the caller gives, and an output of elements alone.

use crate::dtype::{DType, stored_by_numpy};
use crate::error::{Error, faults};
use crate::formats::headed::PLAIN;
use crate::formats::recognise::{foreign, unrecognised};
use crate::formats::{Foreign, LOOK_LEN};
use crate::input::{
    Contents, Format, Input, Location, RawFault, RawLayout, RecognisedFile, spool_all,
};
use crate::output::layout::OutputFormat;
use crate::shape;
use crate::source::Opened;
use crate::tensor::{TensorInfo, Tensors};

pub(crate) static OUTPUT: OutputFormat = OutputFormat {
    name: "raw",
    about: "The bytes of the elements alone (.bin, .raw)",
    extensions: &["bin", "raw"],
    has_orders: true,
    is_raw: true,
    stored_dtype: |dtype| match dtype.blocks() {
        Some(_) => stored_by_numpy(dtype),
        None => Some(dtype.clone()),
    },
    ..PLAIN
};

/// Raw bytes, without a header.
pub static FORMAT: Format = Format { is_raw: true, ..Format::new("raw", |_| false, open) };

/// Open raw bytes with the layout that the caller gives.
pub(crate) fn open(file: RecognisedFile<'_>) -> Result<Input, Error> {
    let RecognisedFile { location, bytes, options, progress } = file;
    let layout = &options.raw;
    let Some(dtype) = &layout.dtype else { return Err(unrecognised(location, bytes)) };
    let mut bytes = match bytes {
        Opened::Forward(stream) if layout.needs_len() => {
            Opened::Random(spool_all(stream, progress)?)
        }
        bytes => bytes,
    };
    refuse_foreign(location, &mut bytes, dtype, layout)?;
    let len = match &bytes {
        Opened::Random(source) => Some(source.len()),
        Opened::Forward(_) => None,
    };
    let contents = layout.contents(dtype, len)?;
    let asked = contents.expected_len();
    match len.filter(|&len| len < asked) {
        Some(found) => Err(RawFault::Short { asked, found }.into()),
        None => Ok(Input::of_file(location, bytes, contents)),
    }
}

impl RawLayout {
    /// Whether the shape depends on the number of bytes.
    fn needs_len(&self) -> bool {
        self.shape.as_ref().is_none_or(|shape| shape.contains(&None))
    }

    /// The contents of a file of raw bytes, `file_len` bytes long: one tensor.
    fn contents(&self, dtype: &DType, file_len: Option<u64>) -> Result<Contents, RawFault> {
        let offset = self.offset.unwrap_or(0);
        let found = file_len.map(|len| len.saturating_sub(offset));
        let lengths = self.shape.clone().unwrap_or_else(|| vec![None]);
        let known: Vec<u64> = lengths.iter().copied().flatten().collect();
        let shape = if known.len() == lengths.len() {
            known
        } else {
            let missing = missing(&known, dtype, found.unwrap_or(0), offset)?;
            lengths.into_iter().map(|len| len.unwrap_or(missing)).collect()
        };
        let bytes = shape::byte_count(&shape, dtype.item_bits());
        if bytes.and_then(|bytes| bytes.checked_add(offset)).is_none() {
            return Err(RawFault::TooLarge(shape));
        }
        let order = self.order.unwrap_or_default();
        let tensor = TensorInfo::new(dtype.clone(), shape, order, offset);
        let contents = Contents::of(&FORMAT, Tensors::from_iter([tensor]));
        Ok(Contents { header_len: offset, ..contents })
    }
}

/// The length of an axis that is not given, from the number of bytes after `offset`.
fn missing(known: &[u64], dtype: &DType, bytes: u64, offset: u64) -> Result<u64, RawFault> {
    let bits = u128::from(shape::element_count(known).unwrap_or(0)) * u128::from(dtype.item_bits());
    match (u128::from(bytes) * 8).checked_div(bits) {
        Some(len) if len * bits == u128::from(bytes) * 8 => u64::try_from(len).ok(),
        _ => None,
    }
    .ok_or_else(|| RawFault::NotWhole {
        bytes,
        offset,
        known: known.to_vec(),
        dtype: dtype.clone(),
    })
}

/// Refuse a recognised file of another kind, unless an offset is given.
fn refuse_foreign(
    location: &Location,
    bytes: &mut Opened,
    dtype: &DType,
    layout: &RawLayout,
) -> Result<(), ForeignBytes> {
    if layout.offset.is_some() {
        return Ok(());
    }
    // only the needed bytes of a pipe are read: the rest is not waited for
    let asked = if layout.needs_len() { None } else { layout.contents(dtype, None).ok() };
    let asked = asked.map_or(LOOK_LEN as u64, |contents| contents.expected_len());
    match foreign(location, bytes, asked.min(LOOK_LEN as u64) as usize) {
        Some(kind) if kind.is_sure() => Err(ForeignBytes(kind)),
        _ => Ok(()),
    }
}

/// The error for a recognised file of another kind, which is read as raw bytes only with an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a dtype is for raw bytes, and the input is {0}")]
pub struct ForeignBytes(pub Foreign);

faults!(Unsupported: ForeignBytes);
