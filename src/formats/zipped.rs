//! Formats whose outputs are zip archives, in which each tensor is a member: `.npz` and `.pt`.

use std::sync::Arc;

use crate::output::layout::OutputLayout;
use crate::sink::{
    self, DeflatedZipSink, Destination, Draft, SinkError, SinkOptions, ZipLayout, ZipSink,
};

/// Members that are stored, or compressed while they are written.
pub(crate) struct ZipMembers {
    pub(crate) zip: Arc<ZipLayout>,
    /// The number of members before the members that hold tensors.
    pub(crate) first: usize,
    pub(crate) deflate: bool,
}

impl OutputLayout for ZipMembers {
    fn size(&self) -> Option<u64> {
        (!self.deflate).then(|| self.zip.bytes())
    }

    fn starts(&self) -> Box<dyn Iterator<Item = (usize, u64)> + '_> {
        Box::new(self.zip.data().skip(self.first).enumerate())
    }

    fn create(
        &self,
        target: &Destination,
        options: SinkOptions,
    ) -> Result<Box<dyn Draft>, SinkError> {
        let zip = Arc::clone(&self.zip);
        let inner = sink::create(target, SinkOptions { len: self.size(), ..options })?;
        if self.deflate {
            return Ok(Box::new(DeflatedZipSink::new(inner, zip)?));
        }
        Ok(Box::new(ZipSink::new(inner, zip)?))
    }

    fn fixed(&self) -> Option<sink::FixedLayout> {
        (!self.deflate).then(|| sink::FixedLayout::Zip(Arc::clone(&self.zip)))
    }
}
