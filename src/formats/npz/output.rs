//! NumPy's `.npz` as an output: a zip archive with one member for each tensor, stored or deflated.

use std::collections::HashSet;
use std::sync::Arc;

use crate::dtype::stored_by_numpy;
use crate::error::Cause;
use crate::formats::headed::PLAIN;
use crate::formats::zipped::ZipMembers;
use crate::formats::{npy, npz};
use crate::output::LayoutFault;
use crate::output::layout::{OutputFormat, OutputLayout, Request};
use crate::sink::ZipLayout;

pub(crate) static OUTPUT: OutputFormat = OutputFormat {
    name: "npz",
    about: "NumPy's .npz",
    extensions: &["npz"],
    holds_several: true,
    has_orders: true,
    has_deflate: true,
    stored_dtype: stored_by_numpy,
    lay_out,
    ..PLAIN
};

fn lay_out(request: &Request<'_>) -> Result<Box<dyn OutputLayout>, Cause> {
    let mut zip = ZipLayout::new(request.tensors.len(), request.forward);
    // headers of one dtype and shape are held once
    let mut heads: HashSet<Arc<[u8]>> = HashSet::new();
    for tensor in request.tensors.iter() {
        let name = format!("{}.npy", tensor.name);
        npz::check_name(&name)?;
        let head = npy::header(&tensor.dtype, &tensor.shape, request.order)?;
        let head = heads.get(head.as_slice()).cloned().unwrap_or_else(|| Arc::from(head));
        zip.push(&name, &head, tensor.bytes).ok_or(LayoutFault::TooLarge)?;
        heads.insert(head);
    }
    Ok(Box::new(ZipMembers { zip: Arc::new(zip), first: 0, deflate: request.deflate }))
}
