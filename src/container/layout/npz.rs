//! NumPy's `.npz` as an output: a zip archive, a member each tensor, stored or deflated.

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
    for tensor in request.tensors.iter() {
        let name = format!("{}.npy", tensor.name);
        npz::check_name(&name)?;
        let head = npy::header(&tensor.dtype, &tensor.shape, request.order)?;
        members.push(ZipMember { name, head, data_len: tensor.bytes });
    }
    let zip = ZipLayout::new(members, request.forward).ok_or(LayoutFault::TooLarge)?;
    let starts = zip.data().enumerate().collect();
    let frame: Box<dyn Frame> = match request.deflate {
        true => Box::new(Deflated(zip)),
        false => Box::new(Stored(zip)),
    };
    Ok(Layout { starts, frame })
}

/// Members as they are.
struct Stored(ZipLayout);

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
        Ok(Box::new(ZipSink::new(inner, self.0.clone())?))
    }

    fn fixed(&self) -> Option<sink::FixedFrame<'_>> {
        Some(sink::FixedFrame::Zip(&self.0))
    }

    fn write_headers(&self, _write: &WriteAt<'_>) -> Result<(), SinkError> {
        Ok(())
    }
}

/// Members that are compressed on the way.
struct Deflated(ZipLayout);

impl Frame for Deflated {
    fn size(&self) -> Option<u64> {
        None
    }

    fn create(
        &self,
        target: &Destination,
        options: sink::SinkOptions,
    ) -> Result<Box<dyn Sink>, SinkError> {
        Ok(Box::new(DeflatedZipSink::new(sink::create(target, options)?, self.0.clone())?))
    }

    fn write_headers(&self, _write: &WriteAt<'_>) -> Result<(), SinkError> {
        Ok(())
    }
}
