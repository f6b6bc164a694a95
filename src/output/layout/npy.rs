//! NumPy's `.npy` as an output.

use super::format::{Frame, OutputFormat, Request, behind_header, only};
use super::header::Header;
use crate::error::Cause;
use crate::format::npy;

pub(super) static FORMAT: OutputFormat = OutputFormat {
    name: "npy",
    about: "NumPy's .npy",
    extensions: &["npy"],
    holds_several: false,
    has_metadata: false,
    has_orders: true,
    has_deflate: false,
    has_chunks: false,
    is_folder: false,
    is_text: false,
    stored_dtype: npy::stored_dtype,
    lay_out,
};

fn lay_out(request: &Request<'_>) -> Result<Box<dyn Frame>, Cause> {
    let only = only(request.tensors, FORMAT.name)?;
    let header = npy::header(&only.dtype, &only.shape, request.order)?;
    behind_header(Header::Bytes(header), request)
}
