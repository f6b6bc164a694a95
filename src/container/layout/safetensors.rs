//! `.safetensors` as an output.

use super::format::{Entry, Layout, OutputFormat, Request, behind_header};
use crate::container::error::Cause;
use crate::format::safetensors::{self, HeaderText};

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
    let mut header = HeaderText::new(request.metadata)?;
    for Entry { name, dtype, shape, bytes, .. } in request.tensors.iter() {
        header.push(&name, &dtype, &shape, bytes)?;
    }
    behind_header(header.finish()?, request.tensors, safetensors::grow)
}
