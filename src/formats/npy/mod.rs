//! NumPy's `.npy`: one array after a header, a Python dictionary in text.
//!
//! ```text
//! \x93NUMPY  major minor  length (2 or 4 bytes, little-endian)
//! {'descr': '<f4', 'fortran_order': False, 'shape': (3,), }   spaces, \n  data
//! ```
//!
//! The format is defined by `numpy.lib.format`; headers are written byte for byte as by np.save.
//! The tests check the reader with NumPy's files, and our headers with the `npyz` package.
//!
//! **Why no package.** The packages refuse headers that NumPy itself writes (latin-1 field names,
//! titles, `M8[25s]`, bare `M8`, `?`, `=f4`), allocate what a header claims, or overflow on large
//! shapes. A strict reader of the Python literal is less code than guards around them would be.

use std::fmt::Write;
use std::io::Read;

use super::FormatError;
use super::header::read_more;
use crate::dtype;
use crate::dtype::{DType, stored_by_numpy};
use crate::error::{Cause, ErrorKind, Fault};
use crate::input::{Contents, Format};
use crate::shape::{AsTuple, MAX_NDIM, Order};
use crate::tensor::{TensorInfo, Tensors, data_bytes};

mod descr;
mod folder;
mod literal;
mod open;
mod output;

pub(crate) use folder::{FOLDER, FOLDER_OUTPUT, open_folder};
pub(crate) use output::OUTPUT;

#[cfg(feature = "zarr")]
pub(crate) use descr::json_dtype;
pub use descr::{DescrError, parse_dtype};
pub(crate) use descr::{names as dtype_names, parse as literal_dtype};
pub use literal::LiteralError;
pub(crate) use literal::PyLiteral;

pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";

/// The alignment of a header's length, prefix included, in bytes.
const ALIGN: usize = 64;

/// The width, in a header, of the length of the axis that may grow in place.
const GROWTH_DIGITS: usize = 21;

/// NumPy's `.npy`.
pub static FORMAT: Format = Format::new("npy", begins, open::open);

/// Whether a file that begins with `first` (8 bytes, or all it has) claims to be a `.npy`.
pub(crate) fn begins(first: &[u8]) -> bool {
    first.starts_with(MAGIC) || (!first.is_empty() && MAGIC.starts_with(first))
}

/// Read a header, magic included; `input` is then at the data. Fails where NumPy refuses the header
/// too, for Python objects, and beyond limits.
pub fn read(input: &mut dyn Read) -> Result<Contents, Cause> {
    let mut header = Vec::new();
    read_more(input, &mut header, 10)?;
    if !header.starts_with(MAGIC) {
        return Err(FormatError::Unrecognised.into());
    }
    let major = header[6];
    match (major, header[7]) {
        (1, 0) => {}
        (2 | 3, 0) => read_more(input, &mut header, 2)?,
        (_, minor) => return Err(NpyError::Version(major, minor).into()),
    }
    let start = header.len();
    let text_len = header[8..].iter().rev().fold(0, |len, &byte| len << 8 | u64::from(byte));
    if text_len > MAX_HEADER {
        return Err(NpyError::TooLong(text_len).into());
    }
    read_more(input, &mut header, text_len)?;

    let header_len = header.len() as u64;
    let mut text = header.split_off(start);
    if major < 3 && !text.is_ascii() {
        text = text.iter().map(|&latin1| char::from(latin1)).collect::<String>().into_bytes();
    }
    let text = String::from_utf8(text).map_err(|_| NpyError::Encoding)?;
    let tensor = parse(&text, major < 3, header_len)?;
    Ok(Contents { header_len, ..Contents::of(&FORMAT, Tensors::from_iter([tensor])) })
}

fn parse(text: &str, python2: bool, start: u64) -> Result<TensorInfo, NpyError> {
    let PyLiteral::Dict(entries) = literal::parse(text, python2)? else {
        return Err(NpyError::Keys);
    };
    let mut descr = None;
    let mut fortran_order = None;
    let mut shape = None;
    for (key, value) in &entries {
        let PyLiteral::Str(key) = key else { return Err(NpyError::Keys) };
        let entry = match key.as_str() {
            "descr" => &mut descr,
            "fortran_order" => &mut fortran_order,
            "shape" => &mut shape,
            _ => return Err(NpyError::Keys),
        };
        // of a repeated key the last value counts, as in Python
        *entry = Some(value);
    }
    let (Some(descr), Some(fortran_order), Some(shape)) = (descr, fortran_order, shape) else {
        return Err(NpyError::Keys);
    };

    let dtype = match (descr::parse(descr), descr) {
        (Err(DescrError::Object(dtype)), PyLiteral::Str(_)) => {
            return Err(NpyError::Objects { dtype, start });
        }
        (dtype, _) => dtype?,
    };
    let order = match fortran_order {
        PyLiteral::Bool(true) => Order::F,
        PyLiteral::Bool(false) => Order::C,
        _ => return Err(NpyError::FortranOrder),
    };
    let shape = parse_shape(shape)?;
    if data_bytes(&shape, dtype.item_bits()).is_none() {
        let shape = AsTuple(&shape).to_string();
        return Err(NpyError::TooLarge { shape, itemsize: dtype.item_bits() / 8 });
    }
    Ok(TensorInfo::new(dtype, shape, order, start))
}

fn parse_shape(shape: &PyLiteral) -> Result<Vec<u64>, NpyError> {
    let PyLiteral::Tuple(lengths) = shape else { return Err(NpyError::Shape) };
    if lengths.len() > MAX_NDIM {
        return Err(NpyError::TooManyAxes(lengths.len()));
    }
    let length = |(axis, length): (usize, &PyLiteral)| match *length {
        PyLiteral::Int(len) => i64::try_from(len)
            .and_then(u64::try_from)
            .map_err(|_| NpyError::AxisLength { axis, len }),
        _ => Err(NpyError::Shape),
    };
    lengths.iter().enumerate().map(length).collect()
}

/// The header that np.save writes, magic and padding included.
///
/// `fortran_order` is `True` only where the two orders differ, as in NumPy. Fails for floats of
/// less than a byte, and for a type whose literal exceeds the longest header that is read.
pub fn header(dtype: &DType, shape: &[u64], order: Order) -> Result<Vec<u8>, Cause> {
    let stored = stored_by_numpy(dtype).and_then(|stored| dtype::literal(&stored));
    let descr =
        stored.ok_or_else(|| FormatError::Unsupported { dtype: dtype.clone(), format: "npy" })?;
    let fortran = order == Order::F && orders_differ(shape);
    let (python_bool, growing) =
        if fortran { ("True", shape.last()) } else { ("False", shape.first()) };
    let mut text = format!(
        "{{'descr': {descr}, 'fortran_order': {python_bool}, 'shape': {}, }}",
        AsTuple(shape)
    );
    if let Some(len) = growing {
        // Room for the axis to grow in place. Writing to a String cannot fail.
        let _ = write!(text, "{:1$}", "", GROWTH_DIGITS.saturating_sub(len.to_string().len()));
    }

    let latin1: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(c).ok()).collect();
    let (utf8, text) = match latin1 {
        Some(bytes) => (false, bytes),
        None => (true, text.into_bytes()),
    };
    let mut header = MAGIC.to_vec();
    let len = padded_len(text.len(), 2);
    if let (false, Ok(len)) = (utf8, u16::try_from(len)) {
        header.extend([1, 0]);
        header.extend(len.to_le_bytes());
    } else {
        let len = padded_len(text.len(), 4);
        let len = u32::try_from(len)
            .ok()
            .filter(|&len| u64::from(len) <= MAX_HEADER)
            .ok_or(NpyError::TooLong(len as u64))?;
        header.extend([if utf8 { 3 } else { 2 }, 0]);
        header.extend(len.to_le_bytes());
    }
    header.extend(text);
    header.resize(next_aligned(header.len() + 1) - 1, b' ');
    header.push(b'\n');
    Ok(header)
}

/// A header of exactly `len` bytes, for an array in C order; `None` where `len` is too short.
pub(crate) fn header_within(dtype: &DType, shape: &[u64], len: u64) -> Option<Vec<u8>> {
    let mut header = header(dtype, shape, Order::C).ok()?;
    let len = usize::try_from(len).ok()?;
    let end = header.trim_ascii_end().len();
    if len <= end {
        return None;
    }
    header.truncate(end);
    header.resize(len - 1, b' ');
    header.push(b'\n');
    if header[6] == 1 {
        header[8..10].copy_from_slice(&u16::try_from(len - 10).ok()?.to_le_bytes());
    } else {
        header[8..12].copy_from_slice(&u32::try_from(len - 12).ok()?.to_le_bytes());
    }
    Some(header)
}

/// The length of a header's text with its padding, for a length field of `field` bytes.
fn padded_len(text: usize, field: usize) -> usize {
    let prefix = MAGIC.len() + 2 + field;
    next_aligned(prefix + text + 1) - prefix
}

/// The next multiple of [`ALIGN`], also after a multiple, as NumPy pads.
fn next_aligned(len: usize) -> usize {
    (len / ALIGN + 1) * ALIGN
}

/// Whether an array in Fortran order is not in C order as well (NumPy's contiguity flags).
fn orders_differ(shape: &[u64]) -> bool {
    !shape.contains(&0) && shape.iter().filter(|&&len| len > 1).count() > 1
}

/// The dtype of the text of a `descr` entry.
#[cfg(test)]
pub(crate) fn dtype_of_descr(text: &str) -> DType {
    descr::parse(&literal::parse(text, false).unwrap()).unwrap()
}

/// The longest header text in bytes. The format allows 4 GiB; np.load's limit is 10000.
pub(super) const MAX_HEADER: u64 = 16 << 20;

/// A fault of a `.npy` header.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NpyError {
    #[error("version {0}.{1} of the format is unknown; 1.0, 2.0 and 3.0 are read")]
    Version(u8, u8),
    #[error("{0} bytes long, {MAX_HEADER} are allowed")]
    TooLong(u64),
    #[error("the text is not UTF-8")]
    Encoding,
    #[error(transparent)]
    PyLiteral(#[from] LiteralError),
    #[error("not a dictionary of 'descr', 'fortran_order' and 'shape'")]
    Keys,
    #[error("'fortran_order' is neither True nor False")]
    FortranOrder,
    #[error("'shape' is not a tuple of integers")]
    Shape,
    #[error("axis {axis} has a length of {len}; 0 to 9223372036854775807 are possible")]
    AxisLength { axis: usize, len: i128 },
    #[error("{0} axes, at most {MAX_NDIM} are possible")]
    TooManyAxes(usize),
    #[error(
        "an array of shape {shape} with {itemsize} bytes an item is larger than 2^63 - 1 bytes"
    )]
    TooLarge { shape: String, itemsize: u64 },
    /// An array of Python objects, whose pickle begins at position `start`.
    #[error("arrays of Python objects (dtype {dtype}) are not read: their data is a pickle")]
    Objects { dtype: String, start: u64 },
    #[error(transparent)]
    Descr(#[from] DescrError),
}

impl Fault for NpyError {
    const OF: &'static str = "npy header";

    fn kind(&self) -> ErrorKind {
        match self {
            NpyError::Version(..) => ErrorKind::Unsupported,
            NpyError::Descr(_) | NpyError::Objects { .. } => ErrorKind::DType,
            _ => ErrorKind::Damaged,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use std::sync::Arc;

    use super::*;
    use crate::dtype::{Endian, Field, NpyType, Scalar, Structure};

    fn file(version: u8, text: &[u8]) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        file.extend([version, 0]);
        match version {
            1 => file.extend((text.len() as u16).to_le_bytes()),
            _ => file.extend((text.len() as u32).to_le_bytes()),
        }
        file.extend(text);
        file
    }

    fn tensor(version: u8, text: &[u8]) -> Result<TensorInfo, Cause> {
        read(&mut file(version, text).as_slice()).map(|contents| contents.tensors.at(0))
    }

    fn text(descr: &str, shape: &str) -> String {
        format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n")
    }

    #[test]
    fn nothing_is_read_past_the_header() {
        let mut bytes = file(1, text("'<f4'", "(3,)").as_bytes());
        bytes.extend(b"data");
        let mut rest = bytes.as_slice();
        let contents = crate::formats::read_contents(&mut rest, None).unwrap();
        assert_eq!(rest, b"data");
        assert_eq!(contents.header_len, bytes.len() as u64 - 4);
        assert_eq!(contents.expected_len(), contents.header_len + 12);
        assert!(contents.check_len(contents.expected_len() + 1).is_ok());
        assert_eq!(
            contents.check_len(5).unwrap_err().to_string(),
            format!(
                "the file is cut short: its header says {} bytes, the file has 5",
                contents.expected_len()
            )
        );
    }

    #[test]
    fn python_2_headers_are_read() {
        let long = text("'<f8'", "(3L, 4L)");
        assert_eq!(tensor(1, long.as_bytes()).unwrap().shape, [3, 4]);
        assert!(tensor(3, long.as_bytes()).is_err());
    }

    #[test]
    fn names_are_latin_1_or_utf_8_by_version() {
        let latin1 = text("[('\u{e9}', '<i4')]", "()");
        let latin1: Vec<u8> = latin1.chars().map(|c| c as u8).collect();
        let dtype = tensor(1, &latin1).unwrap().dtype;
        assert_eq!(dtype.to_string(), "[('é', '<i4')]");
        assert!(tensor(3, &latin1).is_err());
        let utf8 = text("[('あ', '<i4')]", "()");
        assert_eq!(tensor(3, utf8.as_bytes()).unwrap().dtype.to_string(), "[('あ', '<i4')]");
        let header = header(&dtype, &[2], Order::C).unwrap();
        assert_eq!(header[6], 1);
    }

    #[test]
    fn bad_headers_are_told_apart() {
        let message =
            |descr, shape: &str| tensor(1, text(descr, shape).as_bytes()).unwrap_err().to_string();
        assert_eq!(
            message("'<f4'", "(3, -1)"),
            "npy header: axis 1 has a length of -1; 0 to 9223372036854775807 are possible"
        );
        assert_eq!(message("'<f4'", "[3]"), "npy header: 'shape' is not a tuple of integers");
        assert_eq!(message("'<f4'", "(True,)"), "npy header: 'shape' is not a tuple of integers");
        assert_eq!(
            message("'<f4'", "(4294967296, 4294967296)"),
            "npy header: an array of shape (4294967296, 4294967296) with 4 bytes an item is larger \
             than 2^63 - 1 bytes"
        );
        assert_eq!(
            message("'|O'", "(3,)"),
            "npy header: arrays of Python objects (dtype '|O') are not read: their data is a pickle"
        );
        assert_eq!(
            message("'<f4'", &format!("({})", "1,".repeat(65))),
            "npy header: 65 axes, at most 64 are possible"
        );
        assert_eq!(
            tensor(4, b"").unwrap_err().to_string(),
            "npy header: version 4.0 of the format is unknown; 1.0, 2.0 and 3.0 are read"
        );
    }

    #[test]
    fn lying_lengths_cost_nothing() {
        let mut lie = MAGIC.to_vec();
        lie.extend([2, 0, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(
            read(&mut lie.as_slice()).unwrap_err().to_string(),
            "npy header: 4294967295 bytes long, 16777216 are allowed"
        );
        let mut lie = file(2, b"{");
        lie[8..12].copy_from_slice(&0x00ff_ffff_u32.to_le_bytes());
        assert_eq!(
            read(&mut lie.as_slice()).unwrap_err().to_string(),
            "the file is cut short inside its header: 16777227 bytes are needed, the file has 13"
        );
    }

    fn any_dtype() -> impl Strategy<Value = DType> {
        let scalar =
            (prop::sample::select(&Scalar::ALL[..14]), any::<bool>()).prop_map(|(scalar, big)| {
                let big = big && scalar.bits() > 8;
                DType::Scalar(scalar, if big { Endian::Big } else { Endian::Little })
            });
        let names = prop::collection::hash_set(any::<String>(), 1..5);
        let structure = names.prop_map(|names| {
            let field = |(name, offset): (String, u64)| Field {
                is_named: !name.is_empty(),
                name: if name.is_empty() { format!("f{}", offset / 4) } else { name },
                title: None,
                dtype: DType::Scalar(Scalar::I32, Endian::Little),
                shape: Vec::new(),
                nesting: Vec::new(),
                offset,
            };
            let itemsize = 4 * names.len() as u64;
            let fields = names.into_iter().zip((0..).step_by(4)).map(field).collect();
            DType::Npy(NpyType::Structure(Arc::new(Structure { fields, itemsize })))
        });
        prop_oneof![scalar, structure]
    }

    proptest! {
        #[test]
        fn headers_are_read_back(
            dtype in any_dtype(),
            shape in prop::collection::vec(0u64..1000, 0..6),
            fortran in any::<bool>(),
        ) {
            let order = if fortran { Order::F } else { Order::C };
            let bytes = header(&dtype, &shape, order).unwrap();
            prop_assert_eq!(bytes.len() % ALIGN, 0);
            let contents = read(&mut bytes.as_slice()).unwrap();
            let tensor = &contents.tensors.at(0);
            prop_assert_eq!(&tensor.dtype, &dtype);
            prop_assert_eq!(&tensor.shape, &shape);
            prop_assert_eq!(contents.header_len, bytes.len() as u64);
            if orders_differ(&shape) {
                prop_assert_eq!(tensor.order(), order);
            }
            // The written order is a fixed point.
            prop_assert_eq!(header(&dtype, &shape, tensor.order()).unwrap(), bytes);
        }

        #[test]
        fn npyz_reads_our_headers(
            scalar in prop::sample::select(&Scalar::ALL[..14]),
            shape in prop::collection::vec(0u64..1000, 0..6),
            fortran in any::<bool>(),
        ) {
            let dtype = DType::Scalar(scalar, Endian::Little);
            let order = if fortran { Order::F } else { Order::C };
            let bytes = header(&dtype, &shape, order).unwrap();
            let theirs = npyz::NpyHeader::from_reader(&mut bytes.as_slice()).unwrap();
            prop_assert_eq!(theirs.shape(), &shape[..]);
            let fortran = theirs.order() == npyz::Order::Fortran;
            prop_assert_eq!(fortran, order == Order::F && orders_differ(&shape));
            prop_assert_eq!(theirs.dtype().descr(), dtype::literal(&dtype).unwrap());
        }
    }
}
