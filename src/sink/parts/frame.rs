//! What stands around the elements of an output that parts write.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::record::DoneRecord;
use crate::sink::zip::MemberCrcs;
use crate::sink::{Draft, SinkError, ZipLayout, ZipSink};

/// All of an output but its elements, where every byte has its place beforehand.
#[derive(Clone, Debug)]
pub enum FixedFrame<'a> {
    /// Bytes at the beginning.
    Header(Cow<'a, [u8]>),
    /// The records of an archive of stored members.
    Zip(&'a Arc<ZipLayout>),
}

impl FixedFrame<'_> {
    /// The same, to keep.
    pub(super) fn into_owned(self) -> OwnedFrame {
        match self {
            FixedFrame::Header(header) => OwnedFrame::Header(header.into_owned()),
            FixedFrame::Zip(layout) => OwnedFrame::Zip(Arc::clone(layout)),
        }
    }
}

/// A [`FixedFrame`] of its own.
#[derive(Debug)]
pub(super) enum OwnedFrame {
    Header(Vec<u8>),
    Zip(Arc<ZipLayout>),
}

impl OwnedFrame {
    /// Write it around the elements, whose sums are those of `all`; `data` is committed.
    pub(super) fn write(self, data: Box<dyn Draft>, all: &DoneRecord) -> Result<(), SinkError> {
        match self {
            OwnedFrame::Header(header) => {
                data.write_at(0, &header)?;
                data.commit()
            }
            OwnedFrame::Zip(layout) => {
                let archive = ZipSink::new(data, layout)?;
                archive.count_written(&all.crcs);
                Box::new(archive).commit()
            }
        }
    }
}

/// What a part counts of the elements that it writes.
#[derive(Debug)]
pub(super) struct Counted {
    written: AtomicU64,
    crcs: Option<MemberCrcs>,
}

impl Counted {
    /// Nothing yet.
    pub(super) fn new(frame: &OwnedFrame) -> Counted {
        let crcs = match frame {
            OwnedFrame::Header(_) => None,
            OwnedFrame::Zip(layout) => Some(MemberCrcs::new(layout)),
        };
        Counted { written: AtomicU64::new(0), crcs }
    }

    /// Count bytes that are written at a position of the output.
    pub(super) fn add(
        &self,
        frame: &OwnedFrame,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), SinkError> {
        if let (Some(crcs), OwnedFrame::Zip(layout)) = (&self.crcs, frame) {
            crcs.add_bytes(layout, offset, bytes)?;
        }
        self.written.fetch_add(bytes.len() as u64, Ordering::AcqRel);
        Ok(())
    }

    /// Whether elements need not be looked at to be counted.
    pub(super) fn takes_shared(&self) -> bool {
        self.crcs.is_none()
    }

    /// Count bytes that came without being looked at.
    pub(super) fn add_shared(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::AcqRel);
    }

    /// The record of part `index`.
    pub(super) fn record(&self, index: u64) -> DoneRecord {
        let written = self.written.load(Ordering::Acquire);
        let crcs = self.crcs.as_ref().map(MemberCrcs::sums).unwrap_or_default();
        DoneRecord { first: index, written, crcs }
    }
}
