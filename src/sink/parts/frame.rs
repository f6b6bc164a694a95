//! What stands around the elements of an output that parts write.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::PartsError;
use super::record::DoneRecord;
use crate::sink::zip::MemberCrcs;
use crate::sink::{Draft, SinkError, ZipLayout, ZipSink};

/// All of an output but its elements, where every byte has its place beforehand.
#[derive(Clone, Debug)]
pub enum FixedFrame {
    /// Bytes at the beginning.
    Header(Arc<[u8]>),
    /// The records of an archive of stored members.
    Zip(Arc<ZipLayout>),
    /// Files of a folder, beside those of the elements: the name and the bytes of each.
    Folder(Arc<[(String, Vec<u8>)]>),
}

impl FixedFrame {
    /// The files of an output that is a folder.
    pub(super) fn folder(&self) -> Option<&[(String, Vec<u8>)]> {
        match self {
            FixedFrame::Header(_) | FixedFrame::Zip(_) => None,
            FixedFrame::Folder(files) => Some(files),
        }
    }

    /// Write it around the elements, whose sums are those of `all`; `data` is committed.
    pub(super) fn write(self, data: Box<dyn Draft>, all: &DoneRecord) -> Result<(), SinkError> {
        match self {
            FixedFrame::Header(header) => {
                data.write_at(0, &header)?;
                data.commit()
            }
            FixedFrame::Zip(layout) => {
                let archive = ZipSink::new(data, layout)?;
                archive.count_written(&all.crcs);
                Box::new(archive).commit()
            }
            // a folder is no file
            FixedFrame::Folder(_) => Err(PartsError::NotAFile.into()),
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
    pub(super) fn new(frame: &FixedFrame) -> Counted {
        let crcs = match frame {
            FixedFrame::Header(_) | FixedFrame::Folder(_) => None,
            FixedFrame::Zip(layout) => Some(MemberCrcs::new(layout)),
        };
        Counted { written: AtomicU64::new(0), crcs }
    }

    /// Count bytes that are written at a position of the output.
    pub(super) fn add(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        if let Some(crcs) = &self.crcs {
            crcs.add_bytes(offset, bytes)?;
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
