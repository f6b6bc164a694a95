//! Raw bytes, whose dtype and shape the caller gives, and options of texts.
//!
//! In a file with a header only the dtype can be given, and only if the header leaves open what the
//! bytes of an element mean (`V2`). A file of a known other format is read as raw bytes only if an
//! offset is given: numbers made of compressed or encoded bytes mean nothing.

use std::fmt;
use std::sync::Arc;

use super::TextOptions;
use super::field::{ReadAsFault, read_as};
use super::opened::Input;
use super::options::{Location, OpenOptions};
use crate::dtype::DType;
use crate::error::{Error, Fault};
use crate::input::{Format, TextFormat};
use crate::shape::{AsTuple, Order};
use crate::tensor::TensorInfo;

/// The layout of an input that does not state its own.
#[derive(Clone, Debug, Default)]
pub struct RawLayout {
    /// The dtype of the elements; `None` if the input states its own.
    pub dtype: Option<DType>,
    /// The shape; one length may be `None`: it follows from the number of bytes. Without a shape
    /// there is one axis.
    pub shape: Option<Vec<Option<u64>>>,
    /// The offset of the elements, in bytes. With an offset the input is read as raw bytes whatever
    /// its format.
    pub offset: Option<u64>,
    pub order: Option<Order>,
    /// Whether the layout is for several inputs: those that state their own layout keep it, even if
    /// there is an offset. See [`check_used`](RawLayout::check_used).
    pub several: bool,
    /// The options of a text, whose elements have [`dtype`](RawLayout::dtype), too.
    #[doc(hidden)]
    pub text: TextOptions,
}

impl RawLayout {
    /// Whether the input is read as raw bytes; `is_known` says whether it has a format of its own.
    pub(crate) fn is_raw_bytes(&self, is_known: bool) -> bool {
        let forced = self.offset.is_some() && !self.several;
        self.dtype.is_some() && (!is_known || forced)
    }

    /// The text format that an input is read as; `is_known` says whether it has a format of its
    /// own.
    pub(crate) fn text_format(&self, location: &Location, is_known: bool) -> Option<TextFormat> {
        match self.text.format {
            Some(format) if !is_known || !self.several => Some(format),
            // an offset is for raw bytes, whatever the name
            _ if is_known || self.offset.is_some() && !self.several => None,
            _ => TextFormat::by_extension(&location.extension()),
        }
    }

    /// The first option that does not fit an input of a format (or of any format with a header).
    fn unfit(&self, format: Option<&Format>) -> Option<RawOption> {
        let is_raw = format.is_some_and(|format| format.is_raw);
        let is_table = format.and_then(|it| it.text).is_some_and(|text| text != TextFormat::Json);
        let text = &self.text;
        let said = [
            (!is_raw && self.shape.is_some(), RawOption::Shape),
            (!is_raw && self.order.is_some(), RawOption::Order),
            (!is_raw && self.offset.is_some(), RawOption::Offset),
            (!is_table && text.delimiter.is_some(), RawOption::Delimiter),
            (!is_table && text.skip_rows.is_some(), RawOption::SkipRows),
            (!is_table && !text.missing.is_empty(), RawOption::Missing),
            (!is_table && text.names, RawOption::Names),
            (!is_table && text.columns.is_some(), RawOption::Columns),
        ];
        said.into_iter().find(|(is_unfit, _)| *is_unfit).map(|(_, given)| given)
    }

    /// Apply the layout to an input that states its own: set the dtype of the chosen tensors, if
    /// the header leaves it open, and refuse options for raw bytes.
    pub(crate) fn apply(&self, input: &mut Input, options: &OpenOptions) -> Result<(), Error> {
        input.leave_out(options);
        let format = input.contents.format;
        if let Some(given) = self.unfit(Some(format)).filter(|_| !self.several) {
            return Err(RawFault::NotRaw { given, format }.into());
        }
        if format.is_raw || format.is_text() {
            // it was read with these options
            return Ok(());
        }
        let numbers = match (&self.dtype, self.several) {
            (None, _) => Vec::new(),
            (Some(_), false) => input.find(&options.tensors)?,
            (Some(_), true) => (0..input.contents.tensors.len()).collect(),
        };
        for number in numbers {
            let mut tensor = input.contents.tensors.at(number);
            match self.name_dtype(&mut tensor) {
                Err(_) if self.several => {}
                named => {
                    named?;
                    Arc::make_mut(&mut input.contents.tensors).replace(number, &tensor);
                }
            }
        }
        Ok(())
    }

    /// Whether an option applies to this input.
    pub(crate) fn speaks_of(&self, input: &Input) -> bool {
        let tensors = &input.contents.tensors;
        let named = |dtype: &DType| tensors.iter().any(|tensor| tensor.dtype == *dtype);
        let format = input.contents.format;
        let says = format.is_raw || format.is_text() || self.dtype.as_ref().is_some_and(named);
        says && self.unfit(Some(format)).is_none()
    }

    /// Refuse a layout that applies to none of several inputs.
    ///
    /// # Errors
    ///
    /// [`RawFault::NoneRaw`].
    #[doc(hidden)]
    pub fn check_used<'a>(&self, inputs: impl IntoIterator<Item = &'a Input>) -> Result<(), Error> {
        self.check_any(inputs.into_iter().any(|input| self.speaks_of(input)))
    }

    /// Refuse a layout that applies to no input; `speaks` is whether it applies to one.
    pub(crate) fn check_any(&self, speaks: bool) -> Result<(), Error> {
        let is_text = self.text.format.map(|_| RawOption::From);
        let dtype = self.dtype.as_ref().map(|_| RawOption::DType);
        match self.unfit(None).or(is_text).or(dtype) {
            Some(given) if !speaks => Err(RawFault::NoneRaw { given }.into()),
            _ => Ok(()),
        }
    }

    /// Set the dtype of a tensor from a file with a header.
    fn name_dtype(&self, tensor: &mut TensorInfo) -> Result<(), RawFault> {
        let Some(given) = self.dtype.as_ref().filter(|given| **given != tensor.dtype) else {
            return Ok(());
        };
        match &tensor.dtype {
            theirs if theirs.is_void() => read_as(tensor, given).map_err(|fault| {
                let ReadAsFault { given, theirs } = fault;
                RawFault::OtherSize { given, theirs }
            }),
            theirs => Err(RawFault::OtherDType { given: given.clone(), theirs: theirs.clone() }),
        }
    }
}

/// Why options for raw bytes do not fit.
#[derive(Debug, thiserror::Error)]
pub enum RawFault {
    #[error("{given} is for {}, and the input is of format {format}", given.purpose())]
    NotRaw { given: RawOption, format: &'static Format },
    #[error("{given} is for {0}, and no input is {0}", given.purpose())]
    NoneRaw { given: RawOption },
    #[error("shape: shape {} has 2^63 bytes or more", AsTuple(.0))]
    TooLarge(Vec<u64>),
    #[error("shape and offset need {asked} bytes, the file has {found}")]
    Short { asked: u64, found: u64 },
    #[error(
        "the {bytes} bytes{} are not a whole number of {}",
        if *offset > 0 { format!(" from byte {offset} on") } else { String::new() },
        if known.is_empty() { format!("{dtype} elements") }
        else { format!("slabs of shape {} and dtype {dtype}", AsTuple(known)) }
    )]
    NotWhole { bytes: u64, offset: u64, known: Vec<u64>, dtype: DType },
    #[error("dtype {given}: the file says {theirs}")]
    OtherDType { given: DType, theirs: DType },
    #[error(
        "dtype {given}: its elements have {} bits, those of the file's {theirs} {}",
        given.item_bits(),
        theirs.item_bits()
    )]
    OtherSize { given: DType, theirs: DType },
}

impl Fault for RawFault {}

/// An option of raw bytes or texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawOption {
    DType,
    Shape,
    Order,
    Offset,
    From,
    Delimiter,
    SkipRows,
    Missing,
    Names,
    Columns,
}

impl RawOption {
    /// The inputs that the option is for.
    pub fn purpose(self) -> &'static str {
        match self {
            RawOption::DType | RawOption::Shape | RawOption::Order | RawOption::Offset => {
                "raw bytes"
            }
            RawOption::From => "text",
            RawOption::Delimiter
            | RawOption::SkipRows
            | RawOption::Missing
            | RawOption::Names
            | RawOption::Columns => "csv, tsv or txt",
        }
    }
}

impl fmt::Display for RawOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RawOption::DType => "a dtype",
            RawOption::Shape => "a shape",
            RawOption::Order => "an order",
            RawOption::Offset => "an offset",
            RawOption::From => "a format of text",
            RawOption::Delimiter => "a delimiter",
            RawOption::SkipRows => "a number of lines to skip",
            RawOption::Missing => "texts of missing cells",
            RawOption::Names => "a line of names",
            RawOption::Columns => "a choice of columns",
        })
    }
}
