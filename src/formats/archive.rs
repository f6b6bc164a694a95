//! A zip archive whose members are read as one source.
//!
//! Positions count through the archive, and then through the inflated bytes of deflated members, as if those bytes
//! followed the archive. Stored members are read in the archive itself.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::error::Cause;
use crate::formats::npz::Member;
use crate::formats::pickle::{Pickle, PickleContents, StorageRange, StoredBytes};
use crate::input::{Contents, DeflatedMember, Input, Location};
use crate::source::{
    ConcatSource, DeflatedRange, InflatedSource, MemorySource, Source, SourceError,
};

/// An archive, with the deflated members placed after it so far.
pub(crate) struct Archive {
    pub(crate) bytes: Arc<dyn Source>,
    joined: ConcatSource,
    deflated: Vec<DeflatedMember>,
}

/// The shard number of decoded bytes: no deflated member has it.
const DECODED_SHARD: usize = u32::MAX as usize;

#[derive(Clone, Copy)]
pub(crate) struct MemberStart {
    /// The number of the shard: 0 for the archive itself.
    pub(crate) shard: usize,
    pub(crate) start: u64,
}

impl Archive {
    pub(crate) fn new(bytes: Arc<dyn Source>) -> Result<Archive, SourceError> {
        let mut joined = ConcatSource::default();
        joined.push("archive".to_owned(), Arc::clone(&bytes))?;
        Ok(Archive { bytes, joined, deflated: Vec::new() })
    }

    pub(crate) fn range(&self, member: &Member<'_>) -> DeflatedRange {
        DeflatedRange {
            archive: Arc::clone(&self.bytes),
            range: member.data.clone(),
            len: member.len,
            crc: member.crc,
        }
    }

    /// A source that has the bytes of a member, and their range in it.
    pub(crate) fn whole(&self, member: &Member<'_>) -> (Arc<dyn Source>, Range<u64>) {
        if member.deflated {
            (Arc::new(InflatedSource::from(self.range(member))), 0..member.len)
        } else {
            (Arc::clone(&self.bytes), member.data.clone())
        }
    }

    /// What is in a member that is an array of Python objects, whose pickle begins at position `start` of it.
    pub(super) fn objects(
        &mut self,
        member: &Member<'_>,
        range: Option<&DeflatedRange>,
        start: u64,
        most_decoded: usize,
    ) -> Result<PickleContents, Cause> {
        let (source, Range { start: first, end }) = self.whole(member);
        let pickle = Pickle::new(source.as_ref(), first + start..end);
        let found =
            Pickle { is_array: true, most_decoded, ..pickle }.read(&mut |stored| match stored {
                StoredBytes::Storage(_) => Ok(None),
                StoredBytes::Pickle => {
                    let member_start = self.locate(member, range).map_err(io::Error::from)?;
                    let start = member_start.start - first;
                    Ok(Some(StorageRange { shard: member_start.shard, bytes: start..start + end }))
                }
                StoredBytes::Decoded(bytes) => self.place_decoded(bytes).map(Some),
            })?;
        Ok(found.with_tensors()?)
    }

    /// The start of a member. A deflated member, whose compressed bytes are `range`, gets positions after all others.
    pub(crate) fn locate(
        &mut self,
        member: &Member<'_>,
        range: Option<&DeflatedRange>,
    ) -> Result<MemberStart, SourceError> {
        let Some(range) = range else {
            return Ok(MemberStart { shard: 0, start: member.data.start });
        };
        let bytes = Arc::new(InflatedSource::from(range.clone()));
        let inflated = Arc::clone(&bytes) as Arc<dyn Source>;
        let start = self.joined.push(member.name.to_owned(), inflated)?;
        self.deflated.push(DeflatedMember { start, bytes });
        Ok(MemberStart { shard: self.deflated.len(), start })
    }

    /// Place bytes in memory after the members.
    pub(crate) fn place_decoded(&mut self, bytes: Vec<u8>) -> Result<StorageRange, Cause> {
        let len = bytes.len() as u64;
        let decoded = Arc::new(MemorySource(bytes));
        let placed = self.joined.push("decoded elements".to_owned(), decoded);
        let start = placed.map_err(io::Error::from)?;
        Ok(StorageRange { shard: DECODED_SHARD, bytes: start..start + len })
    }

    pub(crate) fn into_input(self, location: &Location, contents: Contents) -> Input {
        let Archive { bytes, joined, deflated } = self;
        let is_one = joined.len() == bytes.len();
        let bytes = if is_one { bytes } else { Arc::new(joined) };
        let mut input = Input::of_source(location, bytes, contents);
        input.container.deflated = deflated;
        input
    }
}
