//! netCDF 3: the classic format, the 64-bit offset format, and the 64-bit data format (CDF-1, CDF-2, CDF-5).
//!
//! ```text
//! CDF, version │ number of records │ dimensions │ attributes │ variables │ data of variables │ record │ record │ ...
//! ```
//!
//! A list is a tag, a count, and entries. Texts and values are padded to 4 bytes. All numbers are big-endian. A variable
//! whose first dimension grows has a piece in each record, and is read as a view across the records. Pieces are padded
//! to 4 bytes, unless there is only one such variable.

use std::sync::Arc;

use super::header::HeaderReader;
use crate::dtype::{DType, Endian, NpyType, Scalar};
use crate::error::{Cause, Fault};
use crate::input::LengthFault;
use crate::shape::{MAX_NDIM, Order, contiguous_strides};
use crate::source::Source;
use crate::tensor::{StorageKind, TensorInfo, Tensors, brief, data_bytes, first_repeated};

mod attributes;
mod open;

use attributes::Attributes;
pub(crate) use open::FORMAT;

/// The tags of lists.
const DIMENSIONS: u32 = 10;
const VARIABLES: u32 = 11;
const ATTRIBUTES: u32 = 12;

/// The most dimensions, variables, and axes of all variables: they are held in memory.
const MOST: u64 = 1 << 18;

/// The longest name in bytes. The library allows 256.
const LONGEST_NAME: u64 = 1 << 12;

/// The most bytes of the names of dimensions and variables together.
const MOST_NAMES: u64 = 16 << 20;

/// Texts, values and pieces of records are padded to a multiple of this many bytes.
const PADDING: u64 = 4;

/// Whether a file that begins with these bytes is netCDF 3.
fn begins(first: &[u8]) -> bool {
    first.starts_with(b"CDF") && matches!(first.get(3), Some(1 | 2 | 5))
}

/// A dimension. The record dimension has length 0 in the header.
struct Dimension {
    name: Arc<str>,
    len: u64,
}

/// A variable, as the header describes it.
struct Variable {
    name: String,
    dtype: DType,
    /// The names of its axes.
    names: Vec<Arc<str>>,
    /// The lengths of its axes, without the axis of the records.
    shape: Vec<u64>,
    is_record: bool,
    attributes: Attributes,
    /// The bytes of the variable, or of its piece in a record.
    bytes: u64,
    begin: u64,
}

/// The variables of a file, in the order of its header.
fn read(source: &Arc<dyn Source>) -> Result<Tensors, Cause> {
    let mut header = Header::at(source.as_ref())?;
    let records = header.count()?;
    let dimensions = header.dimensions()?;
    let mut tensors = Tensors::default();
    let of_file = header.attributes(source)?.annotated(Vec::new());
    tensors.annotate_group(String::new(), of_file);
    let count = header.list(VARIABLES, "variables")?;
    check_count(count)?;
    let variables = (0..count).map(|_| header.variable(source, &dimensions));
    let variables: Vec<Variable> = variables.collect::<Result<_, _>>()?;
    let names = variables.iter().map(|it| it.name.as_str());
    if let Some(name) = first_repeated(names) {
        return Err(NetCdfError::Twice(name.to_owned()).into());
    }
    let records = Records::new(&variables, records, header.unknown(), source.len())?;
    for variable in variables {
        let tensor = records.tensor(variable)?;
        let expected = tensor.data().end;
        if expected > source.len() && !tensor.data().is_empty() {
            return Err(LengthFault::CutShort { expected, found: source.len() }.into());
        }
        tensors.push(&tensor);
    }
    Ok(tensors)
}

/// The layout of the variables in records.
struct Records {
    count: u64,
    /// The distance from a record to the next one, in bytes.
    stride: u64,
}

impl Records {
    /// The layout; `unknown` is the count of records in a file that was written as a stream.
    fn new(variables: &[Variable], count: u64, unknown: u64, len: u64) -> Result<Records, Cause> {
        let mut stride = 0u64;
        let mut begin = u64::MAX;
        let is_only = variables.iter().filter(|it| it.is_record).count() == 1;
        for Variable { name, bytes, begin: start, .. } in variables.iter().filter(|it| it.is_record)
        {
            let piece =
                if is_only { Some(*bytes) } else { bytes.checked_next_multiple_of(PADDING) };
            let sum = piece.and_then(|piece| stride.checked_add(piece));
            stride = sum.ok_or_else(|| NetCdfError::TooLarge(name.clone()))?;
            begin = begin.min(*start);
        }
        let there = len.saturating_sub(begin).checked_div(stride).unwrap_or(0);
        Ok(Records { count: if count == unknown { there } else { count }, stride })
    }

    fn tensor(&self, variable: Variable) -> Result<TensorInfo, Cause> {
        let Variable { name, dtype, names, mut shape, is_record, .. } = variable;
        let Variable { mut attributes, bytes, begin, .. } = variable;
        let too_large = || NetCdfError::TooLarge(name.clone());
        let item = dtype.item_bits() / 8;
        let strides = contiguous_strides(&shape, item, Order::C).ok_or_else(too_large)?;
        if is_record {
            shape.insert(0, self.count);
        }
        data_bytes(&shape, dtype.item_bits()).ok_or_else(too_large)?;
        attributes.is_bool &= dtype == DType::Scalar(Scalar::I8, Endian::Little);
        let boolean = Some(DType::Scalar(Scalar::Bool, Endian::Little));
        let dtype = boolean.filter(|_| attributes.is_bool).unwrap_or(dtype);
        let start = if shape.contains(&0) { 0 } else { begin };
        let mut tensor = TensorInfo::new(dtype, shape, Order::C, start);
        if is_record && self.count > 1 && bytes > 0 && self.stride != bytes {
            let last = (self.count - 1).checked_mul(self.stride);
            let end = last.and_then(|last| last.checked_add(bytes)?.checked_add(begin));
            let stride = i64::try_from(self.stride).map_err(|_| too_large())?;
            let strides = [&[stride][..], &strides].concat();
            tensor.storage.data.end = end.ok_or_else(too_large)?;
            tensor.storage.kind = StorageKind::Strided { first: 0, strides, ranges: Vec::new() };
        }
        tensor.annotated = Some(attributes.annotated(names));
        Ok(TensorInfo { name: Some(name), ..tensor })
    }
}

/// A position in a header.
struct Header<'s> {
    reader: HeaderReader<'s>,
    version: u8,
    /// The bytes of names, and the axes of variables, that may still follow.
    names: u64,
    axes: u64,
}

impl<'s> Header<'s> {
    /// The position after the version, with which the file begins.
    fn at(source: &'s dyn Source) -> Result<Header<'s>, Cause> {
        let mut reader = HeaderReader::at(source, 3, Endian::Big);
        let version = reader.number(1)? as u8;
        Ok(Header { reader, version, names: MOST_NAMES, axes: MOST })
    }

    /// The number of entries.
    fn count(&mut self) -> Result<u64, Cause> {
        self.reader.number(if self.version == 5 { 8 } else { 4 })
    }

    /// The number that stands for an unknown count.
    fn unknown(&self) -> u64 {
        if self.version == 5 { u64::MAX } else { u32::MAX.into() }
    }

    /// The number of entries of a list.
    fn list(&mut self, tag: u32, what: &'static str) -> Result<u64, Cause> {
        let found = self.reader.number(4)? as u32;
        let count = self.count()?;
        if found != tag && (found, count) != (0, 0) {
            return Err(NetCdfError::Tag { what, found }.into());
        }
        Ok(count)
    }

    fn name(&mut self) -> Result<String, Cause> {
        let len = self.count()?;
        if len > LONGEST_NAME {
            return Err(NetCdfError::Name(LONGEST_NAME).into());
        }
        let name = self.reader.bytes(len)?;
        self.reader.skip(padding(len))?;
        Ok(String::from_utf8_lossy(&name).into_owned())
    }

    /// A name that is held in memory.
    fn held_name(&mut self) -> Result<String, Cause> {
        let name = self.name()?;
        let left = self.names.checked_sub(name.len() as u64);
        self.names = left.ok_or(NetCdfError::Names(MOST_NAMES))?;
        Ok(name)
    }

    fn dimensions(&mut self) -> Result<Vec<Dimension>, Cause> {
        let count = self.list(DIMENSIONS, "dimensions")?;
        check_count(count)?;
        let one = |_| Ok(Dimension { name: self.held_name()?.into(), len: self.count()? });
        (0..count).map(one).collect()
    }

    fn variable(
        &mut self,
        source: &Arc<dyn Source>,
        dimensions: &[Dimension],
    ) -> Result<Variable, Cause> {
        let name = self.held_name()?;
        let ndim = self.count()?;
        if ndim > MAX_NDIM as u64 {
            return Err(NetCdfError::Axes { name, ndim }.into());
        }
        self.axes = self.axes.checked_sub(ndim).ok_or(NetCdfError::Many(MOST))?;
        let (mut names, mut shape, mut is_record) = (Vec::new(), Vec::new(), false);
        for axis in 0..ndim {
            let id = self.count()?;
            let dimension = usize::try_from(id).ok().and_then(|id| dimensions.get(id));
            let dimension =
                dimension.ok_or_else(|| NetCdfError::Dimension { name: name.clone(), id })?;
            names.push(Arc::clone(&dimension.name));
            match (dimension.len, axis) {
                (0, 0) => is_record = true,
                (0, _) => return Err(NetCdfError::NotFirst(name).into()),
                (len, _) => shape.push(len),
            }
        }
        let attributes = self.attributes(source)?;
        let kind = self.reader.number(4)? as u32;
        let dtype = dtype(kind).ok_or_else(|| NetCdfError::Type { name: name.clone(), kind })?;
        // the size, which is not correct for large variables
        self.count()?;
        let begin = self.reader.number(if self.version == 1 { 4 } else { 8 })?;
        let bytes = data_bytes(&shape, dtype.item_bits());
        let bytes = bytes.ok_or_else(|| NetCdfError::TooLarge(name.clone()))?;
        Ok(Variable { name, dtype, names, shape, is_record, attributes, bytes, begin })
    }
}

fn check_count(count: u64) -> Result<(), NetCdfError> {
    if count > MOST { Err(NetCdfError::Many(MOST)) } else { Ok(()) }
}

/// The bytes that pad `len` bytes.
fn padding(len: u64) -> u64 {
    len.wrapping_neg() % PADDING
}

/// The type of this number. Text is bytes of length 1, as in NumPy.
fn dtype(number: u32) -> Option<DType> {
    let scalar = match number {
        1 => Scalar::I8,
        2 => return Some(DType::Npy(NpyType::Bytes(1))),
        3 => Scalar::I16,
        4 => Scalar::I32,
        5 => Scalar::F32,
        6 => Scalar::F64,
        7 => Scalar::U8,
        8 => Scalar::U16,
        9 => Scalar::U32,
        10 => Scalar::I64,
        11 => Scalar::U64,
        _ => return None,
    };
    let endian = if scalar.bits() == 8 { Endian::Little } else { Endian::Big };
    Some(DType::Scalar(scalar, endian))
}

/// A fault of a file's header.
#[derive(Debug, thiserror::Error)]
enum NetCdfError {
    #[error("its header is damaged: a list of {what} begins with the tag {found}")]
    Tag { what: &'static str, found: u32 },
    #[error("its names have more than {0} bytes")]
    Names(u64),
    #[error("one of its names has more than {0} bytes")]
    Name(u64),
    #[error("it has more than {0} dimensions, variables, or axes of these")]
    Many(u64),
    #[error("variable {:?} has {ndim} axes, and at most {MAX_NDIM} are possible", brief(.name))]
    Axes { name: String, ndim: u64 },
    #[error("variable {:?} has the unknown dimension {id}", brief(.name))]
    Dimension { name: String, id: u64 },
    #[error("variable {:?} grows along another axis than the first one", brief(.0))]
    NotFirst(String),
    #[error("{:?} has elements of the unknown type {kind}", brief(.name))]
    Type { name: String, kind: u32 },
    #[error("variable {:?} has 2^63 bytes or more", brief(.0))]
    TooLarge(String),
    #[error("two of its variables are named {:?}", brief(.0))]
    Twice(String),
}

impl Fault for NetCdfError {
    const OF: &'static str = "netcdf3";
}
