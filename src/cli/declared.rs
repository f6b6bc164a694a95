//! What the command line says of an input that does not say it itself: `--dtype`, `--shape`,
//! `--offset`, `--input-order`.
//!
//! For raw bytes that is all there is to know. Of a file with a header only the dtype can be
//! declared, and only where the header leaves open what the bytes of an element mean (`V2`).

use tslice::dtype::{DType, NpyType};
use tslice::format::{Contents, FileKind, Format, Tensor, npy};
use tslice::index::strided_slice::parse_list;
use tslice::shape::{self, AsTuple, Order};

use super::args::{OrderArg, RawArgs};
use super::report::Failure;

/// The flags, understood.
#[derive(Clone, Debug, Default)]
pub(crate) struct Declared {
    dtype: Option<DType>,
    /// One length may be missing: -1, whatever the bytes make of it.
    shape: Option<Vec<Option<u64>>>,
    /// Where the elements begin, in bytes.
    offset: Option<u64>,
    order: Option<Order>,
}

impl Declared {
    /// Understand the flags.
    pub(crate) fn parse(args: &RawArgs) -> Result<Declared, Failure> {
        let dtype = args.dtype.as_deref().map(npy::parse_dtype).transpose();
        Ok(Declared {
            dtype: dtype.map_err(|error| Failure::usage(format_args!("--dtype: {error}")))?,
            shape: args.shape.as_deref().map(parse_shape).transpose()?,
            offset: args.offset,
            order: args.input_order.map(OrderArg::order),
        })
    }

    /// The dtype, where it is that of raw bytes: of a file that is nothing else, or of one where
    /// is said at which byte the elements begin.
    pub(crate) fn raw(&self, kind: Option<FileKind>) -> Option<&DType> {
        self.dtype.as_ref().filter(|_| kind.is_none() || self.offset.is_some())
    }

    /// Whether a dtype is said.
    pub(crate) fn says_dtype(&self) -> bool {
        self.dtype.is_some()
    }

    /// Refuse what makes sense for raw bytes alone.
    pub(crate) fn refuse_layout(&self, format: Format) -> Result<(), Failure> {
        let flag = match (&self.shape, self.order) {
            (Some(_), _) => "--shape",
            (_, Some(_)) => "--input-order",
            (None, None) => return Ok(()),
        };
        let message = format!("{flag} is for raw bytes, and the input is of format {format}");
        Err(Failure::new(message).hint("--offset 0 takes it as raw bytes from the first one on"))
    }

    /// Whether the number of bytes must be known to know the shape.
    pub(crate) fn needs_len(&self) -> bool {
        self.shape.as_ref().is_none_or(|shape| shape.contains(&None))
    }

    /// The one tensor of a file of raw bytes, `file_len` bytes long.
    pub(crate) fn contents(
        &self,
        dtype: &DType,
        file_len: Option<u64>,
    ) -> Result<Contents, Failure> {
        let offset = self.offset.unwrap_or(0);
        let there = file_len.map(|len| len.saturating_sub(offset));
        let lengths = self.shape.clone().unwrap_or_else(|| vec![None]);
        let known: Vec<u64> = lengths.iter().copied().flatten().collect();
        let shape = if known.len() == lengths.len() {
            known
        } else {
            let missing = missing(&known, dtype, there.unwrap_or(0), offset)?;
            lengths.into_iter().map(|len| len.unwrap_or(missing)).collect()
        };
        let bytes = shape::byte_count(&shape, dtype.item_bits());
        let bytes = bytes.filter(|bytes| bytes.checked_add(offset).is_some()).ok_or_else(|| {
            Failure::new(format_args!("--shape: shape {} has 2^63 bytes or more", AsTuple(&shape)))
        })?;
        let tensor = Tensor {
            name: None,
            dtype: dtype.clone(),
            shape,
            order: self.order.unwrap_or_default(),
            part: 0,
            offset,
            bytes,
        };
        Ok(Contents {
            format: Format::Raw,
            tensors: vec![tensor],
            metadata: Default::default(),
            header_len: offset,
        })
    }

    /// Name the dtype of a tensor from a file with a header.
    pub(crate) fn apply(&self, tensor: &mut Tensor) -> Result<(), Failure> {
        let Some(dtype) = self.dtype.as_ref().filter(|dtype| **dtype != tensor.dtype) else {
            return Ok(());
        };
        let theirs = &tensor.dtype;
        if !is_void(theirs) {
            return Err(Failure::new(format_args!("--dtype {dtype}: the file says {theirs}")));
        }
        if theirs.item_bits() != dtype.item_bits() {
            return Err(Failure::new(format_args!(
                "--dtype {dtype}: its elements have {} bits, those of the file's {theirs} {}",
                dtype.item_bits(),
                theirs.item_bits()
            )));
        }
        tensor.dtype = dtype.clone();
        Ok(())
    }
}

/// The length of an axis that is left open, by the number of bytes from `offset` on.
fn missing(known: &[u64], dtype: &DType, bytes: u64, offset: u64) -> Result<u64, Failure> {
    let bits = u128::from(shape::element_count(known).unwrap_or(0)) * u128::from(dtype.item_bits());
    match (u128::from(bytes) * 8).checked_div(bits) {
        Some(len) if len * bits == u128::from(bytes) * 8 => u64::try_from(len).ok(),
        _ => None,
    }
    .ok_or_else(|| {
        let from = if offset > 0 { format!(" from byte {offset} on") } else { String::new() };
        let items = match known {
            [] => format!("{dtype} elements"),
            _ => format!("slabs of shape {} and dtype {dtype}", AsTuple(known)),
        };
        Failure::new(format_args!("the {bytes} bytes{from} are no whole number of {items}"))
    })
}

fn parse_shape(text: &str) -> Result<Vec<Option<u64>>, Failure> {
    let list = parse_list(text).map_err(|error| {
        Failure::usage(format_args!("--shape: {error}")).at(text, error.span.clone())
    })?;
    if list.len() > shape::MAX_NDIM {
        return Err(Failure::usage(format_args!(
            "--shape: {} axes, at most {} are possible",
            list.len(),
            shape::MAX_NDIM
        )));
    }
    if list.iter().filter(|&&len| len == -1).count() > 1 {
        return Err(Failure::usage("--shape: one length may be -1, not several"));
    }
    let length = |len: i64| match len {
        -1 => Ok(None),
        len => u64::try_from(len)
            .map(Some)
            .map_err(|_| Failure::usage(format_args!("--shape: {len} is no length of an axis"))),
    };
    list.into_iter().map(length).collect()
}

/// Whether the elements are bytes of which the file does not say what they mean.
fn is_void(dtype: &DType) -> bool {
    match dtype {
        DType::Npy(NpyType { descr, .. }) => descr.as_bytes().get(2) == Some(&b'V'),
        DType::Scalar(..) => false,
    }
}
