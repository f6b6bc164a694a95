//! Regions of a tensor: which of its bytes are taken, in the order of the output.
//!
//! A [`Region`] knows the number of its bytes, the [`Route`] by which they are read, its parts, and whether it runs
//! forward. These kinds exist:
//!
//! - ranges of positions, fields side by side, and elements in chunks (`strided`);
//! - positions that index tensors name (`indices`);
//! - regions of the bytes of another region in scratch (`ordered`);
//! - computed elements (`computed`).
//!
//! A [`Take`] is a region with its position in an output. The index tensors of an expression are opened here too
//! ([`Lists`]).

use std::ops::Range;
use std::sync::Arc;

use ahead::ReadAhead;

use crate::chunked::Decoding;
use crate::error::Error;
use crate::execute::{
    Conversion, ExecuteError, FillError, Pieces, Progress, ReadFrom, SHARED_BYTES, WINDOW_BYTES,
    Workers, read_pieces, read_range, split_first, spool_pieces,
};
use crate::input::{Bytes, Input, Location};
use crate::plan::{Plan, Reading, Tiling, stretches};
use crate::runs::Runs;
use crate::source::Source;
use crate::source::remote::GAP;
use crate::view::View;

mod ahead;
mod computed;
mod indices;
mod listed;
mod lists;
mod ordered;
mod route;
mod strided;

pub use indices::{Gathered, GatheredList, IndexTensor, gathered_shape};
pub(crate) use indices::{GatheredTensor, gathered_axes};
pub(crate) use lists::{IndexedShape, arrange_axes};
pub use lists::{ListError, ListFault, Lists, MASK_MEANT, OpenIndex};
pub use route::{ReadBy, ReadFor, RegionPieces, Route};
pub use strided::{InChunks, layout as layout_of};
pub(crate) use strided::{decoded_bytes, decoded_info};

// The trait of a region of a tensor, whatever its kind.
//
// Copies, comparisons, statistics, parts and the library's handles use a region by this trait
// alone. A new way to find the bytes of a tensor is one more implementation.

/// Bytes of one tensor, in the order of the output.
pub trait Region: Send + Sync {
    fn bytes(&self) -> u64;

    fn route<'a>(&'a self, by: &ReadBy<'_>) -> Result<Route<'a>, ExecuteError>;

    fn pieces<'a>(&'a self, by: &ReadBy<'_>) -> Result<RegionPieces<'a>, ExecuteError> {
        self.route(by)?.open(by)
    }

    /// A range of its bytes, in one region or in several that follow each other.
    fn within(&self, range: Range<u64>) -> Vec<Arc<dyn Region>>;

    /// Add to a fingerprint all that decides which bytes of its tensor it is, except the contents
    /// of files.
    fn identify(&self, add: &mut dyn FnMut(&[u8])) -> Result<(), Error>;

    /// A description of how it is read; `None` if that is not known.
    fn reading(&self) -> Option<Reading> {
        None
    }

    /// The regions that are put in order in scratch first, whatever their size; empty if it needs
    /// none.
    fn ordered_first(&self) -> &[Arc<dyn Region>] {
        &[]
    }

    /// The view, if it is ranges of positions and nothing else.
    fn strided(&self) -> Option<&View> {
        None
    }

    /// The region in chunks, if its elements are decoded from chunks.
    fn chunked(&self) -> Option<&InChunks> {
        None
    }

    /// The gather, if it is one; of several fields, that of the first, since all have the same
    /// index tensors.
    fn gathered(&self) -> Option<&Gathered> {
        None
    }
}

impl dyn Region + '_ {
    /// Whether the region needs scratch, whatever its size.
    pub(crate) fn is_spooled(&self) -> bool {
        !self.ordered_first().is_empty()
    }

    pub fn lists(&self) -> &[GatheredList] {
        self.gathered().map_or(&[], |gathered| &gathered.lists)
    }

    /// The error of its pieces: an index tensor is bad or could not be read.
    pub(crate) fn failed(&self, error: ExecuteError) -> Error {
        GatheredList::failed(self.lists(), error)
    }
}

/// A region with its position in the output.
#[derive(Clone)]
pub struct Take {
    /// The file of the input that holds it.
    pub shard: usize,
    pub region: Arc<dyn Region>,
    pub conversion: Conversion,
    pub at: u64,
    /// The bytes that no piece divides: an element, if it is converted or scanned.
    pub unit: u64,
}

impl Take {
    /// A region of a file of the input, to be written at position `at` of the output.
    pub fn new(shard: usize, region: Arc<dyn Region>, conversion: Conversion, at: u64) -> Take {
        Take { shard, region, conversion, at, unit: conversion.unit() }
    }

    /// Add the take to `takes`: joined with the last of them, if both are one range of bytes in the
    /// input and in the output. A range that is not joined, of which there may be hundreds of
    /// thousands, keeps no axes.
    pub fn push(self, takes: &mut Vec<Take>) {
        let joined = takes.last_mut().and_then(|last| Some((last.followed_by(&self)?, last)));
        match (joined, self.region.strided()) {
            (Some((region, last)), _) => last.region = region,
            (None, Some(view)) if self.conversion == Conversion::None => {
                let region = Arc::new(view.coalesced());
                takes.push(Take { region, ..self });
            }
            (None, _) => takes.push(self),
        }
    }

    /// The region of this take and the next one, if that is one range.
    fn followed_by(&self, next: &Take) -> Option<Arc<dyn Region>> {
        let plain = |take: &Take| take.conversion == Conversion::None;
        if !plain(self) || !plain(next) || self.shard != next.shard {
            return None;
        }
        let first = self.region.strided()?;
        let second = next.region.strided()?;
        match self.at.checked_add(first.bytes()) {
            Some(end) if end == next.at && second.bytes() == 0 => Some(Arc::clone(&self.region)),
            Some(end) if end == next.at => Some(Arc::new(first.followed_by(second)?)),
            _ => None,
        }
    }

    /// About how many bytes are fetched where the input is remote: those of the ranges, and of the gaps that are read
    /// with them.
    pub(crate) fn fetched(&self) -> u64 {
        fetched(self.region.as_ref())
    }

    /// Whether its bytes may be shared with their file.
    pub(crate) fn may_share(&self, input: &Input) -> bool {
        let file = |range: &Range<u64>| match &input.bytes {
            Bytes::Random(source) => source.file(range.clone()).is_some(),
            Bytes::Stream(_) => false,
        };
        self.range().is_some_and(|range| file(&range))
    }

    /// The range of the input that goes to the output unchanged, if it is one and long enough to be
    /// shared.
    pub(crate) fn range(&self) -> Option<Range<u64>> {
        let view = self.region.strided()?;
        let long = |range: &Range<u64>| range.end - range.start >= SHARED_BYTES;
        view.range().filter(long).filter(|_| self.conversion == Conversion::None)
    }

    /// The plan to read it in one pass of a stream that begins at position `start`, if that is
    /// possible.
    pub(crate) fn forward(&self, start: u64) -> Option<Plan> {
        let view = self.region.strided()?.clone();
        let window = WINDOW_BYTES / self.conversion.expansion();
        Plan::forward(&view.after(start), self.unit, window)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.conversion.output_bytes(self.region.bytes())
    }

    /// About how many bytes of the input are read, in whole cache lines.
    pub(crate) fn reads(&self) -> u64 {
        let view = self.region.strided();
        view.map_or(self.region.bytes(), |view| {
            Plan::tiled(view.runs(), self.unit, Tiling::MAPPED).reads()
        })
    }

    /// A range of its bytes in the output, to be written from position `at` on. A converted element
    /// is not divided: it belongs to the range after the cut.
    pub(crate) fn window(&self, window: Range<u64>, mut at: u64) -> Vec<Take> {
        let window = self.input_bytes(window.start)..self.input_bytes(window.end);
        let regions = match &self.region {
            _ if window.is_empty() => Vec::new(),
            whole if window == (0..whole.bytes()) => vec![Arc::clone(whole)],
            region => region.within(window),
        };
        let take = |region: Arc<dyn Region>| {
            let start = at;
            at += self.conversion.output_bytes(region.bytes());
            Take { region, at: start, ..*self }
        };
        regions.into_iter().map(take).collect()
    }

    /// The bytes of the region that become its first `output` bytes, or fewer.
    fn input_bytes(&self, output: u64) -> u64 {
        let is_all = output == self.bytes();
        if is_all { self.region.bytes() } else { self.conversion.input_bytes(output) }
    }
}

/// A reader of ranges of the bytes that a copy of a region would write. It reads no more than they
/// need.
pub struct RegionReader<'a> {
    location: Location,
    source: Arc<dyn Source>,
    bytes: RegionBytes<'a>,
    ahead: Option<ReadAhead>,
}

enum RegionBytes<'a> {
    Runs(Runs),
    /// Elements in chunks; the last chunks are cached.
    Chunks(Box<Decoding<'a>>),
    /// Positions named by an index tensor: whole pieces are gathered.
    Pieces(Box<dyn Pieces + 'a>),
    /// Elements that are put in order first: each range separately.
    Ranges(&'a dyn Region),
}

impl<'a> RegionReader<'a> {
    /// Prepare to read a region of an input. A pipe is copied to a temporary file.
    pub fn new(input: &mut Input, region: &'a dyn Region) -> Result<RegionReader<'a>, Error> {
        let source = input.spool()?;
        RegionReader::of(input.location(), source, region)
    }

    /// Prepare to read few of its bytes, or some near each other: only these are put in order in
    /// scratch, and chunks are not.
    pub(crate) fn of_few(
        input: &mut Input,
        region: &'a dyn Region,
    ) -> Result<RegionReader<'a>, Error> {
        let bytes = match region.chunked().and_then(InChunks::parts) {
            _ if region.is_spooled() => RegionBytes::Ranges(region),
            Some((chunked, view)) => {
                RegionBytes::Chunks(Box::new(Decoding::in_order(chunked, view, 1)))
            }
            None => return RegionReader::new(input, region),
        };
        let source = input.spool()?;
        Ok(RegionReader { location: input.location().clone(), source, bytes, ahead: None })
    }

    /// Prepare to read a region of the input at a location, with the bytes of `source`, in the
    /// order of `leads`, a region of another input: in any order, if that is in chunks.
    pub(crate) fn beside(
        leads: &dyn Region,
        location: &Location,
        source: Arc<dyn Source>,
        region: &'a dyn Region,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<RegionReader<'a>, Error> {
        let (Some(leads), Some(follows)) = (leads.chunked(), region.chunked()) else {
            let mut reader = RegionReader::of(location, source, region)?;
            if leads.chunked().is_some()
                && let RegionBytes::Runs(runs) = &reader.bytes
            {
                reader.ahead = ReadAhead::new(reader.source.as_ref(), runs);
            }
            return Ok(reader);
        };
        let location = location.clone();
        if let Some((chunked, view)) = follows.parts().filter(|_| leads.is_like(follows)) {
            let bytes = RegionBytes::Chunks(Box::new(Decoding::in_order(chunked, view, 1)));
            return Ok(RegionReader { location, source, bytes, ahead: None });
        }
        let (conversion, unit, to) = (Conversion::None, 1, ReadFor::Position(0));
        let by = ReadBy { source: source.as_ref(), conversion, unit, to, workers, progress };
        let spooled = region.pieces(&by).and_then(|RegionPieces { pieces, copied }| {
            let of = copied.as_deref().unwrap_or(source.as_ref());
            spool_pieces(&[(of, pieces.as_ref())], workers, progress)
        });
        let source: Arc<dyn Source> = Arc::from(spooled.map_err(|error| region.failed(error))?);
        let runs = Runs::contiguous(0, region.bytes());
        let ahead = ReadAhead::new(source.as_ref(), &runs);
        Ok(RegionReader { location, source, bytes: RegionBytes::Runs(runs), ahead })
    }

    /// Prepare to read a region of the input at a location, with the bytes of `source`.
    pub(crate) fn of(
        location: &Location,
        mut source: Arc<dyn Source>,
        region: &'a dyn Region,
    ) -> Result<RegionReader<'a>, Error> {
        let bytes = match region.strided() {
            Some(view) => RegionBytes::Runs(view.runs().coalesced()),
            None => {
                let conversion = Conversion::None;
                let to = ReadFor::Memory;
                let workers = &Workers::new(1);
                let of = source.as_ref();
                let progress = &Progress::default();
                let by = ReadBy { source: of, conversion, unit: 1, to, workers, progress };
                let pieces = region.pieces(&by).map_err(|error| region.failed(error))?;
                let RegionPieces { pieces, copied } = pieces;
                if let Some(copied) = copied {
                    source = Arc::from(copied);
                }
                match pieces.range() {
                    Some(Range { start, end }) => {
                        RegionBytes::Runs(Runs::contiguous(start, end - start))
                    }
                    None => RegionBytes::Pieces(pieces),
                }
            }
        };
        Ok(RegionReader { location: location.clone(), source, bytes, ahead: None })
    }

    /// Fill `out` with the bytes from position `start` of the region on; `scratch` is a buffer for
    /// reading.
    pub fn read(&self, start: u64, scratch: &mut Vec<u8>, out: &mut [u8]) -> Result<(), Error> {
        self.read_unverified(start, scratch, out)?;
        self.source.verify().map_err(|error| Error::file(&self.location, error))
    }

    /// Fill `out` as [`read`](RegionReader::read) does. The caller [verifies](Source::verify) the source after the last
    /// range, before it uses a result: of a file that was truncated, bytes may be zeros.
    pub(crate) fn read_unverified(
        &self,
        start: u64,
        scratch: &mut Vec<u8>,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let source = self.source.as_ref();
        let from = &mut ReadFrom { source, scratch };
        let outcome = match &self.bytes {
            RegionBytes::Runs(runs) => {
                let range = start..start + out.len() as u64;
                if let Some(ahead) = &self.ahead {
                    let first = runs.offset as u64;
                    ahead.expect(first + range.start..first + range.end, source);
                }
                read_range(runs, range, from, out).map_err(FillError::from)
            }
            RegionBytes::Chunks(chunks) => chunks.read(start, source, out).map_err(FillError::from),
            RegionBytes::Pieces(pieces) => read_pieces(pieces.as_ref(), start, from, out),
            RegionBytes::Ranges(region) => return self.read_ordered(*region, start, scratch, out),
        };
        outcome.map_err(|error| match (source.verify(), error) {
            // a truncated input is the cause of any other error
            (Err(error), _) | (Ok(()), FillError::Source(error)) => {
                Error::file(&self.location, error)
            }
            (Ok(()), error) => ExecuteError::from(error).into(),
        })
    }

    fn read_ordered(
        &self,
        region: &dyn Region,
        start: u64,
        scratch: &mut Vec<u8>,
        mut out: &mut [u8],
    ) -> Result<(), Error> {
        region.within(start..start + out.len() as u64).iter().try_for_each(|part| {
            let source = Arc::clone(&self.source);
            let reader = RegionReader::of(&self.location, source, part.as_ref())?;
            reader.read(0, scratch, split_first(&mut out, part.bytes()))
        })
    }
}

/// The bytes that are fetched for a region, or for the regions that are put in order first.
fn fetched(region: &dyn Region) -> u64 {
    let first = region.ordered_first();
    match region.strided() {
        _ if !first.is_empty() => first.iter().map(|region| fetched(region.as_ref())).sum(),
        Some(view) => stretches(view.runs().clone(), GAP).bytes(),
        None => region.bytes(),
    }
}
