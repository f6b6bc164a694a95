//! Text as an output: csv, tsv, txt and json.

use std::{io, iter};

use super::entries::OutputTensor;
use super::{Frame, OutputFormat, PLAIN, Request, only};
use crate::error::Cause;
use crate::format::text::{MAX_EMPTY_ROWS, TextFormat, stored_dtype};
use crate::output::LayoutFault;
use crate::sink::{self, Destination, Draft, SinkError, SinkOptions};

mod element;
mod writer;

use writer::TextSink;

/// What the four formats have in common.
const TEXT: OutputFormat = OutputFormat { is_text: true, stored_dtype, ..PLAIN };

pub(super) static CSV: OutputFormat = OutputFormat {
    name: "csv",
    about: "Text, columns separated by commas",
    extensions: &["csv"],
    lay_out: |request| lay_out(TextFormat::Csv, request),
    ..TEXT
};

pub(super) static TSV: OutputFormat = OutputFormat {
    name: "tsv",
    about: "Text, columns separated by tabs",
    extensions: &["tsv"],
    lay_out: |request| lay_out(TextFormat::Tsv, request),
    ..TEXT
};

pub(super) static TXT: OutputFormat = OutputFormat {
    name: "txt",
    about: "Text, columns separated by spaces",
    extensions: &["txt"],
    lay_out: |request| lay_out(TextFormat::Txt, request),
    ..TEXT
};

pub(super) static JSON: OutputFormat = OutputFormat {
    name: "json",
    about: "Text, nested lists",
    extensions: &["json"],
    lay_out: |request| lay_out(TextFormat::Json, request),
    ..TEXT
};

fn lay_out(form: TextFormat, request: &Request<'_>) -> Result<Box<dyn Frame>, Cause> {
    let format = form.name();
    let only = only(request.tensors, format)?;
    let ndim = only.shape.len();
    let most = form.max_ndim();
    if ndim > most {
        return Err(LayoutFault::Axes { format, most, ndim }.into());
    }
    let rows = form.empty_rows(&only.shape);
    if rows > MAX_EMPTY_ROWS {
        return Err(LayoutFault::EmptyRows { format, shape: only.shape.clone(), rows }.into());
    }
    Ok(Box::new(TextLayout { form, tensor: only }))
}

/// Elements that become text on the way.
struct TextLayout {
    form: TextFormat,
    tensor: OutputTensor,
}

impl Frame for TextLayout {
    fn size(&self) -> Option<u64> {
        None
    }

    fn starts(&self) -> Box<dyn Iterator<Item = (usize, u64)> + '_> {
        Box::new(iter::once((0, 0)))
    }

    fn create(
        &self,
        target: &Destination,
        options: SinkOptions,
    ) -> Result<Box<dyn Draft>, SinkError> {
        let inner = sink::create(target, options)?;
        let text = TextSink::new(inner, self.form, &self.tensor.dtype, &self.tensor.shape);
        // the dtype is one that `stored_dtype` gave
        let unfit = || SinkError::Io(io::ErrorKind::InvalidInput.into());
        Ok(Box::new(text.ok_or_else(unfit)?))
    }
}
