//! The bytes of the elements alone as an output.

use super::format::{Frame, OutputFormat, Request, behind_header};
use super::header::Header;
use crate::error::Cause;
use crate::format::npy;

pub(super) static FORMAT: OutputFormat = OutputFormat {
    name: "raw",
    about: "The bytes of the elements alone (.bin, .raw)",
    extensions: &["bin", "raw"],
    holds_several: false,
    has_metadata: false,
    has_orders: true,
    has_deflate: false,
    has_chunks: false,
    is_folder: false,
    is_text: false,
    stored_dtype: |dtype| match dtype.blocks() {
        Some(_) => npy::stored_dtype(dtype),
        None => Some(dtype.clone()),
    },
    lay_out,
};

fn lay_out(request: &Request<'_>) -> Result<Box<dyn Frame>, Cause> {
    behind_header(Header::Bytes(Vec::new()), request)
}
