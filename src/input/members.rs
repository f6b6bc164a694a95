//! Members of an archive with CRC-32s, which are checked when a member is copied completely.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::crc::PiecesCrc;
use crate::execute::{FillError, Pieces, ReadFrom, VisitRange};
use crate::runs::Runs;
use crate::source::InflatedSource;

/// A deflated member of an archive, and the position of its first inflated byte.
pub(crate) struct DeflatedMember {
    pub(crate) start: u64,
    pub(crate) bytes: Arc<InflatedSource>,
}

/// A stored member: its bytes in the archive are not compressed.
pub(crate) struct StoredMember {
    /// The position of its first element in the archive.
    pub(crate) start: u64,
    /// The bytes of its elements, at least 1.
    pub(crate) bytes: u64,
    /// The expected CRC-32, if the header is unchanged since it was read.
    pub(crate) crc: u32,
}

impl StoredMember {
    /// The member whose elements are exactly this range; `members` are in the order of the archive.
    pub(crate) fn find<'m>(
        members: &'m [StoredMember],
        range: &Range<u64>,
    ) -> Option<&'m StoredMember> {
        let at = members.binary_search_by_key(&range.start, |member| member.start).ok()?;
        members.get(at).filter(|member| range.end - range.start == member.bytes)
    }
}

/// Pieces that are a range of the input, and the CRC-32 of what passes through the buffers.
///
/// Nothing more is read for it. Bytes that the output shares with the archive do not pass; the
/// CRC-32 exists only if all bytes have passed.
pub(crate) struct Summed<'p> {
    pieces: &'p dyn Pieces,
    bytes: u64,
    crc: PiecesCrc,
    passed: AtomicU64,
}

impl<'p> Summed<'p> {
    /// Pieces whose [range](Pieces::range) has `bytes` bytes.
    pub(crate) fn new(pieces: &'p dyn Pieces, bytes: u64) -> Summed<'p> {
        Summed { pieces, bytes, crc: PiecesCrc::default(), passed: AtomicU64::new(0) }
    }

    /// The CRC-32 of the range, if all bytes have passed.
    pub(crate) fn crc(&self) -> Option<u32> {
        (self.passed.load(Ordering::Acquire) == self.bytes).then(|| self.crc.get())
    }
}

impl Pieces for Summed<'_> {
    fn bytes(&self) -> u64 {
        self.pieces.bytes()
    }

    fn count(&self) -> u64 {
        self.pieces.count()
    }

    fn output(&self, number: u64) -> Runs {
        self.pieces.output(number)
    }

    fn fill(&self, number: u64, from: &mut ReadFrom<'_>, out: &mut [u8]) -> Result<(), FillError> {
        self.pieces.fill(number, from, out)?;
        // the output is the range, so that a piece has the same position in both
        let at = self.pieces.output(number).offset as u64;
        let len = out.len() as u64;
        if let Some(follow) = self.bytes.checked_sub(at + len) {
            self.crc.add(out, follow);
            self.passed.fetch_add(len, Ordering::AcqRel);
        }
        Ok(())
    }

    fn needs(&self, number: u64, gap: u64, visit: VisitRange<'_>) -> Result<(), FillError> {
        self.pieces.needs(number, gap, visit)
    }

    fn work(&self) -> u64 {
        self.pieces.work()
    }

    fn range(&self) -> Option<Range<u64>> {
        self.pieces.range()
    }

    fn sparse_range(&self) -> Option<Range<u64>> {
        self.pieces.sparse_range()
    }
}
