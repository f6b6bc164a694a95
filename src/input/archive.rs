//! A zip archive as one space of positions: its stored members where they lie, its deflated ones behind
//! them, as if the archive went on with the inflated bytes.

use std::sync::Arc;

use crate::error::Error;
use crate::format::Contents;
use crate::format::npz::Member;
use crate::input::{Bytes, DeflatedMember, Input, Location, failed_source};
use crate::source::{ConcatSource, DeflatedRange, InflatedSource, Source, SourceError};

/// An archive, and as many of its deflated members as have been placed behind it.
pub(super) struct Archive<'a> {
    pub(super) location: &'a Location,
    /// The archive itself.
    pub(super) bytes: Arc<dyn Source>,
    joined: ConcatSource,
    deflated: Vec<DeflatedMember>,
}

/// Where the bytes of a member are.
#[derive(Clone, Copy)]
pub(super) struct MemberStart {
    /// The part of the input: 0 for the archive itself.
    pub(super) part: usize,
    /// The position of its first byte.
    pub(super) start: u64,
}

impl<'a> Archive<'a> {
    pub(super) fn new(
        location: &'a Location,
        bytes: Arc<dyn Source>,
    ) -> Result<Archive<'a>, Error> {
        let mut joined = ConcatSource::default();
        let pushed = joined.push("archive".to_owned(), Arc::clone(&bytes));
        pushed.map_err(|error| failed_source(location, error))?;
        Ok(Archive { location, bytes, joined, deflated: Vec::new() })
    }

    /// The bytes of a deflated member.
    pub(super) fn range(&self, member: &Member<'_>) -> DeflatedRange {
        let (archive, range) = (Arc::clone(&self.bytes), member.data.clone());
        DeflatedRange { archive, range, len: member.len, crc: member.crc }
    }

    /// The place of a member; a deflated one, whose bytes are `range`, is put behind the others.
    pub(super) fn place(
        &mut self,
        member: &Member<'_>,
        range: Option<&DeflatedRange>,
    ) -> Result<MemberStart, SourceError> {
        let Some(range) = range else {
            return Ok(MemberStart { part: 0, start: member.data.start });
        };
        let bytes = Arc::new(InflatedSource::from(range.clone()));
        let inflated = Arc::clone(&bytes) as Arc<dyn Source>;
        let start = self.joined.push(member.name.to_owned(), inflated)?;
        self.deflated.push(DeflatedMember { start, bytes });
        Ok(MemberStart { part: self.deflated.len(), start })
    }

    /// The input, with these tensors.
    pub(super) fn into_input(self, contents: Contents) -> Input {
        let Archive { location, bytes, joined, deflated } = self;
        let bytes = Bytes::Random(if deflated.is_empty() { bytes } else { Arc::new(joined) });
        Input { deflated, ..Input::of_file(location, bytes, contents) }
    }
}
