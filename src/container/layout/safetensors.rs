//! `.safetensors` as an output.

use super::format::{Entry, Layout, OutputFormat, Request, behind_header};
use crate::container::error::Cause;
use crate::format::safetensors;

pub(super) static FORMAT: OutputFormat = OutputFormat {
    name: "safetensors",
    about: ".safetensors",
    extensions: &["safetensors"],
    holds_several: true,
    has_orders: false,
    has_deflate: false,
    is_text: false,
    stored_dtype: safetensors::stored_dtype,
    lay_out,
};

fn lay_out(request: &Request<'_>) -> Result<Layout, Cause> {
    let entries: Vec<_> = request.tensors.iter().map(Entry::described).collect();
    behind_header(safetensors::header(&entries, request.metadata)?, request.tensors)
}
