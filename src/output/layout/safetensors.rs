//! `.safetensors` as an output.

use super::format::{Frame, OutputFormat, Request, behind_header};
use super::header::{Header, SafetensorsHeader};
use crate::error::Cause;
use crate::format::safetensors;

pub(super) static FORMAT: OutputFormat = OutputFormat {
    name: "safetensors",
    about: ".safetensors",
    extensions: &["safetensors"],
    holds_several: true,
    has_metadata: true,
    has_orders: false,
    has_deflate: false,
    has_chunks: false,
    is_folder: false,
    is_text: false,
    stored_dtype: safetensors::stored_dtype,
    lay_out,
};

fn lay_out(request: &Request<'_>) -> Result<Box<dyn Frame>, Cause> {
    let all = 0..request.tensors.len();
    let header =
        SafetensorsHeader::new(request.tensors, all, &request.change.of(request.metadata))?;
    behind_header(Header::Text(header), request)
}
