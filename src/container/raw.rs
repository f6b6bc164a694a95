//! Bytes without a header, and what the caller says of them.
//!
//! For raw bytes that is all there is to know. Of a file with a header only the dtype can be
//! named, and only where the header leaves open what the bytes of an element mean (`V2`).

use std::sync::Arc;

use super::error::ContainerError;
use super::fault::{Given, RawFault};
use super::input::{Input, Location, failed_source};
use super::watched::spool_all;
use crate::dtype::DType;
use crate::execute::Progress;
use crate::format::{Contents, FileKind, Format, Tensor, Tensors};
use crate::shape::{self, Order};
use crate::source;

/// What is said of an input that does not say it itself.
#[derive(Clone, Debug, Default)]
pub struct RawLayout {
    /// The type of the elements; without it the input tells its own.
    pub dtype: Option<DType>,
    /// The shape; one length may be `None`, whatever the number of bytes makes of it. Without a
    /// shape there is one axis.
    pub shape: Option<Vec<Option<u64>>>,
    /// Where the elements begin, in bytes. With an offset the input is taken as raw bytes
    /// whatever it is.
    pub offset: Option<u64>,
    /// The memory order.
    pub order: Option<Order>,
}

impl RawLayout {
    /// The dtype, where the input is taken as raw bytes.
    pub(super) fn of_raw_bytes(&self, kind: Option<FileKind>) -> Option<&DType> {
        self.dtype.as_ref().filter(|_| kind.is_none() || self.offset.is_some())
    }

    /// Refuse what applies to raw bytes only, for a file with a header.
    pub(super) fn check_header(&self, format: Format) -> Result<(), RawFault> {
        let given = match (&self.shape, self.order, self.offset) {
            (Some(_), _, _) => Given::Shape,
            (_, Some(_), _) => Given::Order,
            (_, _, Some(_)) => Given::Offset,
            (None, None, None) => return Ok(()),
        };
        Err(RawFault::NotRaw { given, format })
    }

    /// Whether the number of bytes must be known to know the shape.
    fn needs_len(&self) -> bool {
        self.shape.as_ref().is_none_or(|shape| shape.contains(&None))
    }

    /// The one tensor of a file of raw bytes, `file_len` bytes long.
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
        let bytes = bytes.filter(|bytes| bytes.checked_add(offset).is_some());
        let Some(bytes) = bytes else { return Err(RawFault::TooLarge(shape)) };
        let tensor = Tensor {
            name: None,
            dtype: dtype.clone(),
            shape,
            order: self.order.unwrap_or_default(),
            part: 0,
            offset,
            bytes,
            fields: None,
        };
        Ok(Contents {
            format: Format::Raw,
            tensors: Arc::new(Tensors::from_iter([tensor])),
            metadata: Default::default(),
            header_len: offset,
        })
    }

    /// Name the dtype of a tensor from a file with a header.
    pub(super) fn name_dtype(&self, tensor: &mut Tensor) -> Result<(), RawFault> {
        let Some(given) = self.dtype.as_ref().filter(|given| **given != tensor.dtype) else {
            return Ok(());
        };
        let theirs = tensor.dtype.clone();
        if !theirs.is_void() {
            return Err(RawFault::OtherDType { given: given.clone(), theirs });
        }
        if theirs.item_bits() != given.item_bits() {
            return Err(RawFault::OtherSize { given: given.clone(), theirs });
        }
        tensor.dtype = given.clone();
        Ok(())
    }
}

/// Open bytes of which the caller tells all.
pub(super) fn open(
    (location, mut bytes): (&Location, source::Opened),
    dtype: &DType,
    layout: &RawLayout,
    progress: &Progress,
) -> Result<Input, ContainerError> {
    let failed = |fault| ContainerError::file(location, fault);
    if let source::Opened::Forward(stream) = bytes {
        bytes = match layout.needs_len() {
            true => source::Opened::Random(
                spool_all(stream, progress).map_err(|error| failed_source(location, error))?,
            ),
            false => source::Opened::Forward(stream),
        };
    }
    let len = match &bytes {
        source::Opened::Random(source) => Some(source.len()),
        source::Opened::Forward(_) => None,
    };
    let contents = layout.contents(dtype, len).map_err(failed)?;
    let asked = contents.expected_len();
    match len.filter(|&len| len < asked) {
        Some(found) => Err(failed(RawFault::Short { asked, found })),
        None => Ok(Input::of_file(location, bytes, contents)),
    }
}

/// The length of an axis that is left open, by the number of bytes from `offset` on.
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
