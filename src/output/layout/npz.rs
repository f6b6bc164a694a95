//! NumPy's `.npz` as an output: a zip archive, a member each tensor, stored or deflated.

use std::collections::HashSet;
use std::sync::Arc;

use super::format::{Frame, OutputFormat, Request};
use super::header::WriteAt;
use crate::error::Cause;
use crate::format::{npy, npz};
use crate::output::fault::LayoutFault;
use crate::sink::{self, DeflatedZipSink, Destination, Draft, SinkError, ZipLayout, ZipSink};

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

fn lay_out(request: &Request<'_>) -> Result<Box<dyn Frame>, Cause> {
    let mut zip = ZipLayout::new(request.tensors.len(), request.forward);
    // those of one dtype and shape are held once
    let mut heads: HashSet<Arc<[u8]>> = HashSet::new();
    for tensor in request.tensors.iter() {
        let name = format!("{}.npy", tensor.name);
        npz::check_name(&name)?;
        let head = npy::header(&tensor.dtype, &tensor.shape, request.order)?;
        let head = heads.get(head.as_slice()).cloned().unwrap_or_else(|| Arc::from(head));
        zip.push(&name, &head, tensor.bytes).ok_or(LayoutFault::TooLarge)?;
        heads.insert(head);
    }
    let zip = Arc::new(zip);
    Ok(if request.deflate { Box::new(Deflated(zip)) } else { Box::new(StoredMembers(zip)) })
}

/// Where the data of each member begin.
fn starts(zip: &ZipLayout) -> Box<dyn Iterator<Item = (usize, u64)> + '_> {
    Box::new(zip.data().enumerate())
}

/// Members as they are.
struct StoredMembers(Arc<ZipLayout>);

impl Frame for StoredMembers {
    fn size(&self) -> Option<u64> {
        Some(self.0.bytes())
    }

    fn starts(&self) -> Box<dyn Iterator<Item = (usize, u64)> + '_> {
        starts(&self.0)
    }

    fn create(
        &self,
        target: &Destination,
        options: sink::SinkOptions,
    ) -> Result<Box<dyn Draft>, SinkError> {
        let inner = sink::create(target, sink::SinkOptions { len: self.size(), ..options })?;
        Ok(Box::new(ZipSink::new(inner, Arc::clone(&self.0))?))
    }

    fn fixed(&self) -> Option<sink::FixedFrame> {
        Some(sink::FixedFrame::Zip(Arc::clone(&self.0)))
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

    fn starts(&self) -> Box<dyn Iterator<Item = (usize, u64)> + '_> {
        starts(&self.0)
    }

    fn create(
        &self,
        target: &Destination,
        options: sink::SinkOptions,
    ) -> Result<Box<dyn Draft>, SinkError> {
        Ok(Box::new(DeflatedZipSink::new(sink::create(target, options)?, Arc::clone(&self.0))?))
    }

    fn write_headers(&self, _write: &WriteAt<'_>) -> Result<(), SinkError> {
        Ok(())
    }
}
