//! Opening a text: all of it is read.

use super::fault::TextFault;
use super::json::JsonParser;
use super::options::TextOptions;
use super::table::TableParser;
use crate::dtype::{DType, Endian, Scalar};
use crate::element::CellReader;
use crate::error::Error;
use crate::execute::Progress;
use crate::format::{
    Contents, Foreign, Format, FormatError, LOOK_LEN, TensorInfo, Tensors, TextFormat,
};
use crate::input::{Input, Location};
use crate::input::{parsed, single};
use crate::shape::{self, Order};
use crate::source::{Opened, Reader, Source};

/// A tensor that has been read of a text.
struct Read {
    dtype: DType,
    shape: Vec<u64>,
    elements: Box<dyn Source>,
}

/// Read all of a text as elements of a dtype; without one, as np.loadtxt does, or as JSON tells.
pub(crate) fn open(
    location: &Location,
    mut bytes: Opened,
    format: TextFormat,
    dtype: Option<&DType>,
    options: &TextOptions,
    progress: &Progress,
) -> Result<Input, Error> {
    if let Some(kind) = single::foreign(location, &mut bytes, LOOK_LEN).filter(Foreign::is_no_text)
    {
        return Err(Error::file(location, FormatError::Foreign(kind)));
    }
    let read = match format {
        TextFormat::Json => json(location, &mut bytes, dtype, progress)?,
        _ => {
            let failed = |fault| Error::file(location, fault);
            let dtype = dtype.cloned().unwrap_or(DType::Scalar(Scalar::F64, Endian::Little));
            let cells = CellReader::of(&dtype).ok_or_else(|| failed(TextFault::NoText(dtype)))?;
            let delimiter = options.delimiter.or(format.delimiter());
            let is_quoted = format != TextFormat::Txt && delimiter != Some(b'"');
            let mut table = TableParser::new(cells, delimiter, options, is_quoted);
            let elements = parsed::keep(location, &mut bytes, &mut table, progress)?;
            let (dtype, shape) = table.found().map_err(failed)?;
            Read { dtype, shape, elements }
        }
    };
    let Read { dtype, shape, elements } = read;
    if shape::byte_count(&shape, dtype.item_bits()).is_none() {
        return Err(Error::file(location, TextFault::TooLarge));
    }
    let tensor = TensorInfo::new(dtype, shape, Order::C, 0);
    let contents = Contents::of(Format::Text(format), Tensors::from_iter([tensor]));
    Ok(Input::of_file(location, Opened::Random(elements), contents))
}

fn json(
    location: &Location,
    bytes: &mut Opened,
    dtype: Option<&DType>,
    progress: &Progress,
) -> Result<Read, Error> {
    let failed = |fault| Error::file(location, fault);
    // a complex number is a list of two, as it is written
    let part = match dtype {
        Some(DType::Scalar(scalar, endian)) => {
            scalar.part().map(|part| DType::Scalar(part, *endian))
        }
        _ => None,
    };
    let is_complex = part.is_some();
    let cells = match part.as_ref().or(dtype) {
        None => None,
        Some(read) => {
            let cells = CellReader::of(read).filter(|cells| !cells.are_strings());
            let unfit = || failed(TextFault::NoText(dtype.unwrap_or(read).clone()));
            Some(cells.ok_or_else(unfit)?)
        }
    };
    let mut parser = JsonParser::new(cells);
    let mut elements = parsed::keep(location, bytes, &mut parser, progress)?;
    let mut shape = parser.shape();
    let dtype = match dtype {
        Some(dtype) => dtype.clone(),
        None => {
            let (dtype, recoder) = parser.dtype().map_err(failed)?;
            if let Some(mut recoder) = recoder {
                let kept = Reader::new(elements.as_ref());
                let recoded = parsed::parse(location, kept, &mut recoder)?;
                elements = recoded;
            }
            dtype
        }
    };
    if is_complex && shape.pop() != Some(2) {
        return Err(failed(TextFault::NotPairs));
    }
    Ok(Read { dtype, shape, elements })
}
