//! NumPy's `.npz` as an output: a zip archive, a member each tensor, stored or deflated.

use std::collections::HashSet;
use std::sync::Arc;

use super::format::{Frame, Layout, OutputFormat, Request};
use super::header::WriteAt;
use crate::container::error::Cause;
use crate::container::fault::LayoutFault;
use crate::format::{npy, npz};
use crate::sink::{
    self, DeflatedZipSink, Destination, Sink, SinkError, ZipLayout, ZipMember, ZipSink,
};

pub(super) static FORMAT: OutputFormat = OutputFormat {
    name: "npz",
    about: "NumPy's .npz",
    extensions: &["npz"],
    holds_several: true,
    has_orders: true,
    has_deflate: true,
    is_text: false,
    stored_dtype: npy::stored_dtype,
    lay_out,
};

fn lay_out(request: &Request<'_>) -> Result<Layout, Cause> {
    let mut members = Vec::with_capacity(request.tensors.len());
    // those of one dtype and shape are held once
    let mut heads: HashSet<Arc<[u8]>> = HashSet::new();
    for tensor in request.tensors.iter() {
        let name = format!("{}.npy", tensor.name);
        npz::check_name(&name)?;
        let head = npy::header(&tensor.dtype, &tensor.shape, request.order)?;
        let head = heads.get(head.as_slice()).cloned().unwrap_or_else(|| Arc::from(head));
        heads.insert(Arc::clone(&head));
        members.push(ZipMember { name, head, data_len: tensor.bytes });
    }
    let zip = ZipLayout::new(members, request.forward).ok_or(LayoutFault::TooLarge)?;
    let starts = zip.data().enumerate().collect();
    let frame: Box<dyn Frame> = match request.deflate {
        true => Box::new(Deflated(Arc::new(zip))),
        false => Box::new(Stored(Arc::new(zip))),
    };
    Ok(Layout { starts, frame })
}

/// Members as they are.
struct Stored(Arc<ZipLayout>);

impl Frame for Stored {
    fn size(&self) -> Option<u64> {
        Some(self.0.len())
    }

    fn create(
        &self,
        target: &Destination,
        options: sink::SinkOptions,
    ) -> Result<Box<dyn Sink>, SinkError> {
        let inner = sink::create(target, sink::SinkOptions { len: self.size(), ..options })?;
        Ok(Box::new(ZipSink::new(inner, Arc::clone(&self.0))?))
    }

    fn fixed(&self) -> Option<sink::FixedFrame<'_>> {
        Some(sink::FixedFrame::Zip(&self.0))
    }

    fn write_headers(&self, _write: &WriteAt<'_>) -> Result<(), SinkError> {
        Ok(())
    }
}

/// Members that are compressed on the way.
struct Deflated(Arc<ZipLayout>);

impl Frame for Deflated {
    fn size(&self) -> Option<u64> {
        None
    }

    fn create(
        &self,
        target: &Destination,
        options: sink::SinkOptions,
    ) -> Result<Box<dyn Sink>, SinkError> {
        Ok(Box::new(DeflatedZipSink::new(sink::create(target, options)?, Arc::clone(&self.0))?))
    }

    fn write_headers(&self, _write: &WriteAt<'_>) -> Result<(), SinkError> {
        Ok(())
    }
}
