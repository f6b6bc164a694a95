//! What is taken of a tensor: which of its bytes, in the order of the output.
//!
//! A [`Region`] says how many bytes it has, by which [`Route`] they come, what a range of it is, and
//! whether it runs forward. Its kinds are ranges of positions, fields side by side, and elements in chunks
//! (`strided`), positions that index tensors name (`indices`), what is taken of those in a temporary file
//! (`ordered`), and what is computed of elements (`computed`). A
//! [`Take`] is a region on its way to its place in an output. The index tensors of an expression are
//! opened here too ([`Lists`]).

use std::ops::Range;
use std::sync::Arc;

use crate::chunked::Decoding;
use crate::error::Error;
use crate::execute::{
    Conversion, ExecuteError, FillError, Pieces, Progress, ReadFrom, SHARED_BYTES, WINDOW_BYTES,
    Workers, read_pieces, read_range, split_first, spool_pieces,
};
use crate::input::{Bytes, Input, Location};
use crate::plan::{Plan, Reading, Tiling};
use crate::runs::Runs;
use crate::source::Source;
use crate::view::View;

mod computed;
mod indices;
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

// What a region of a tensor answers, whatever kind it is.
//
// Copies, comparisons, statistics, parts and the library's handles know no more of a region than
// this. A new way of finding the bytes of a tensor is one more implementation.

/// Bytes of one tensor, in the order of the output.
pub trait Region: Send + Sync {
    fn bytes(&self) -> u64;

    fn route<'a>(&'a self, by: &ReadBy<'_>) -> Result<Route<'a>, ExecuteError>;

    fn pieces<'a>(&'a self, by: &ReadBy<'_>) -> Result<RegionPieces<'a>, ExecuteError> {
        self.route(by)?.open(by)
    }

    /// A range of its bytes, in one region or in several that follow each other.
    fn within(&self, range: Range<u64>) -> Vec<Arc<dyn Region>>;

    /// Add all that decides which bytes of its tensor it is, but for the content of files.
    fn identify(&self, add: &mut dyn FnMut(&[u8])) -> Result<(), Error>;

    /// What can be said of how it is read; `None` where that is not known.
    fn reading(&self) -> Option<Reading> {
        None
    }

    /// What is put in order in a temporary file first, whatever its size; nothing where that needs none.
    fn ordered_first(&self) -> &[Arc<dyn Region>] {
        &[]
    }

    /// The ranges of positions that it is, where it is nothing else.
    fn strided(&self) -> Option<&View> {
        None
    }

    /// What it is of elements that are decoded from chunks.
    fn chunked(&self) -> Option<&InChunks> {
        None
    }

    /// What is gathered; of several fields, what is of the first, since the index tensors of all are
    /// one.
    fn gathered(&self) -> Option<&Gathered> {
        None
    }
}

impl dyn Region + '_ {
    /// Whether it takes a temporary file, whatever its size.
    pub(crate) fn is_kept(&self) -> bool {
        !self.ordered_first().is_empty()
    }

    pub fn lists(&self) -> &[GatheredList] {
        self.gathered().map_or(&[], |gathered| &gathered.lists)
    }

    /// The error of its pieces: of index tensors that are bad, or could not be read, where these are the reason.
    pub(crate) fn failed(&self, error: ExecuteError) -> Error {
        GatheredList::failed(self.lists(), error)
    }
}

/// A region on its way to its place in the output.
#[derive(Clone)]
pub struct Take {
    /// The part of the input that it is taken of.
    pub part: usize,
    pub region: Arc<dyn Region>,
    pub conversion: Conversion,
    pub at: u64,
    /// No piece divides so many bytes: an element, where it is converted or looked at.
    pub unit: u64,
}

impl Take {
    /// What is taken of a part of the input, on its way to position `at` of the output.
    pub fn new(part: usize, region: Arc<dyn Region>, conversion: Conversion, at: u64) -> Take {
        Take { part, region, conversion, at, unit: conversion.unit() }
    }

    /// Add what is taken of the next tensor to `takes`: to the last of them, where both are one
    /// range of bytes in the input and in the output. A range that stays alone, of which there may be
    /// hundreds of thousands, keeps no axes.
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

    /// What this and the next one take, where that is one range.
    fn followed_by(&self, next: &Take) -> Option<Arc<dyn Region>> {
        let plain = |take: &Take| take.conversion == Conversion::None;
        if !plain(self) || !plain(next) || self.part != next.part {
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

    /// What the input is asked for: where elements are put in order first, for these.
    pub(crate) fn asked(&self) -> Vec<Take> {
        let first = self.region.ordered_first();
        if first.is_empty() {
            return vec![self.clone()];
        }
        let take = |region: &Arc<dyn Region>| {
            Take::new(self.part, Arc::clone(region), Conversion::None, 0).asked()
        };
        first.iter().flat_map(take).collect()
    }

    /// Whether its bytes may be shared with the file that they are in.
    pub(crate) fn may_share(&self, input: &Input) -> bool {
        let file = |range: &Range<u64>| match &input.bytes {
            Bytes::Random(source) => source.file(range.clone()).is_some(),
            Bytes::Stream(_) => false,
        };
        self.range().is_some_and(|range| file(&range))
    }

    /// The range of the input that goes to the output as it is, where it is one and long enough to
    /// be shared.
    pub(crate) fn range(&self) -> Option<Range<u64>> {
        let view = self.region.strided()?;
        let long = |range: &Range<u64>| range.end - range.start >= SHARED_BYTES;
        view.range().filter(long).filter(|_| self.conversion == Conversion::None)
    }

    /// How it is read in one pass of a stream that begins at position `start`, where it can be.
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

    /// A range of the bytes that it is in the output, to be written from position `at` on. An element
    /// that is converted on the way is not divided: it belongs to the range after the cut.
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

/// Reads ranges of the bytes that a copy of a region would write, and no more than they need.
pub struct RegionReader<'a> {
    location: Location,
    source: Arc<dyn Source>,
    bytes: RegionBytes<'a>,
}

enum RegionBytes<'a> {
    Runs(Runs),
    /// Those of chunks, of which the last ones are kept.
    Chunks(Box<Decoding<'a>>),
    /// Positions that an index tensor names: whole pieces are gathered.
    Pieces(Box<dyn Pieces + 'a>),
    /// Those that are put in order first: of each range by itself.
    Ranges(&'a dyn Region),
}

impl<'a> RegionReader<'a> {
    /// Prepare to read a region of an input. A pipe is copied to a temporary file.
    pub fn new(input: &mut Input, region: &'a dyn Region) -> Result<RegionReader<'a>, Error> {
        let source = input.spool()?;
        RegionReader::of(input.location(), source, region)
    }

    /// Prepare to read few of its bytes, or some near each other: no more than those are put in order in a
    /// temporary file, and none of those in chunks.
    pub(crate) fn of_few(
        input: &mut Input,
        region: &'a dyn Region,
    ) -> Result<RegionReader<'a>, Error> {
        let bytes = match region.chunked().and_then(InChunks::parts) {
            _ if region.is_kept() => RegionBytes::Ranges(region),
            Some((chunked, view)) => {
                RegionBytes::Chunks(Box::new(Decoding::in_order(chunked, view, 1)))
            }
            None => return RegionReader::new(input, region),
        };
        let source = input.spool()?;
        Ok(RegionReader { location: input.location().clone(), source, bytes })
    }

    /// Prepare to read a region of the input at a location, whose bytes are those of `source`, where what `leads`
    /// takes of another input comes: in any order, if that is in chunks.
    pub(crate) fn beside(
        leads: &dyn Region,
        location: &Location,
        source: Arc<dyn Source>,
        region: &'a dyn Region,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<RegionReader<'a>, Error> {
        let (Some(leads), Some(follows)) = (leads.chunked(), region.chunked()) else {
            return RegionReader::of(location, source, region);
        };
        let location = location.clone();
        if let Some((chunked, view)) = follows.parts().filter(|_| leads.is_like(follows)) {
            let bytes = RegionBytes::Chunks(Box::new(Decoding::in_order(chunked, view, 1)));
            return Ok(RegionReader { location, source, bytes });
        }
        let (conversion, unit, to) = (Conversion::None, 1, ReadFor::Position(0));
        let by = ReadBy { source: source.as_ref(), conversion, unit, to, workers, progress };
        let kept = region.pieces(&by).and_then(|RegionPieces { pieces, copied }| {
            let of = copied.as_deref().unwrap_or(source.as_ref());
            spool_pieces(&[(of, pieces.as_ref())], workers, progress)
        });
        let source = Arc::from(kept.map_err(|error| region.failed(error))?);
        let bytes = RegionBytes::Runs(Runs::contiguous(0, region.bytes()));
        Ok(RegionReader { location, source, bytes })
    }

    /// Prepare to read a region of the input at a location, whose bytes are those of `source`.
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
        Ok(RegionReader { location: location.clone(), source, bytes })
    }

    /// Fill `out` with the bytes from position `start` of the region on; `scratch` is for what must
    /// be read.
    pub fn read(&self, start: u64, scratch: &mut Vec<u8>, out: &mut [u8]) -> Result<(), Error> {
        let source = self.source.as_ref();
        let from = &mut ReadFrom { source, scratch };
        let outcome = match &self.bytes {
            RegionBytes::Runs(runs) => {
                let range = start..start + out.len() as u64;
                read_range(runs, range, from, out).map_err(FillError::from)
            }
            RegionBytes::Chunks(chunks) => chunks.read(start, source, out).map_err(FillError::from),
            RegionBytes::Pieces(pieces) => read_pieces(pieces.as_ref(), start, from, out),
            RegionBytes::Ranges(region) => return self.read_ordered(*region, start, scratch, out),
        };
        // an input that was cut short is the reason for whatever else went wrong
        source.verify().map_err(|error| Error::file(&self.location, error))?;
        outcome.map_err(|error| match error {
            FillError::Source(error) => Error::file(&self.location, error),
            error => ExecuteError::from(error).into(),
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
