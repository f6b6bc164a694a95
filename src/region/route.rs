//! The way by which the bytes of a region are read, chosen once: a dry run [reports its
//! scratch](Route::temporary_bytes), a copy [opens](Route::open) it.
//!
//! Nothing is written before a route is opened, and only index tensors are read. What was found
//! meanwhile, such as whether rows are in the page cache, stays with its pieces.
//!
//! A gather goes through scratch, if `TMPDIR` has room, its tensor neither fits in memory nor is
//! there, and its rows are short for a disk ([`Route::of_gather`]). If the result has another order
//! of axes than the tensor, rows are first copied in the order of the tensor; otherwise they are
//! put in order by counting and two passes (`gather/distribution.rs`). Reads into memory use no
//! scratch.

use super::computed::ComputedRegion;
use super::listed::ListedPieces;
use super::ordered::Ordered;
use super::strided::InChunks;
use super::{Gathered, Region};
use crate::chunked::{ChunkPieces, Decoding};
use crate::execute;
use crate::execute::{
    Clipped, Conversion, ExecuteError, Pieces, Progress, TwoPasses, Workers, room_for_panels,
    spool_pieces, spool_sparse,
};
use crate::gather::{Distribution, Gather, GatherPieces, Relaid, scratch_has_room};
use crate::plan::{PIECE_BYTES, Plan, Tiling};
use crate::runs::Runs;
use crate::source::Source;
use crate::view::View;

/// How the bytes of a region are read.
#[derive(Clone, Copy)]
pub struct ReadBy<'a> {
    pub source: &'a dyn Source,
    pub conversion: Conversion,
    /// The number of bytes that no piece divides.
    pub unit: u64,
    pub to: ReadFor,
    /// The workers that put in order what must be in order first.
    pub workers: &'a Workers,
    pub progress: &'a Progress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFor {
    /// To be written to this position of an output that takes bytes in any order.
    Position(u64),
    /// To be scanned completely, in any order.
    Look,
    Memory,
    Stream,
}

/// The pieces of a region, and their source, if it is not the tensor's own source.
pub struct RegionPieces<'a> {
    pub pieces: Box<dyn Pieces + 'a>,
    /// Scratch with the elements in the order of the output.
    pub copied: Option<Box<dyn Source>>,
}

/// The number of rows for each byte range of chunks up to which they are taken from cached chunks.
const FEW_ROWS: u64 = 1 << 14;
const FEW_BYTES: u64 = 32 << 20;

/// A way from a tensor's bytes to a region's bytes.
pub enum Route<'a> {
    Direct(Box<dyn Pieces + 'a>),
    Spooled {
        /// The pieces that fill the scratch, one after the other.
        first: Vec<Box<dyn Pieces + 'a>>,
        then: Box<dyn Pieces + 'a>,
        /// The bytes of scratch, if they do not fit in memory.
        temporary_bytes: u64,
    },
    /// The chunks that hold the rows, and the pieces of their elements then.
    Named {
        chunks: Box<ChunkPieces>,
        bytes: u64,
        then: &'a dyn Region,
    },
    /// Rows that are put in order in scratch.
    Distributed {
        rows: Box<GatherPieces<'a>>,
        distribution: Distribution,
    },
    /// The pieces that are copied to scratch one after the other (rows in the order of the params,
    /// or elements in C order), and the result that is made of them.
    Relaid {
        first: Vec<Route<'a>>,
        bytes: u64,
        then: &'a dyn Region,
        temporary_bytes: u64,
    },
    /// Elements that are computed from the elements of another route.
    Computed {
        of: Box<Route<'a>>,
        region: &'a ComputedRegion,
    },
}

impl ReadBy<'_> {
    /// The size of the first of pieces of `piece_bytes`, so that the others begin at blocks of the
    /// output's file.
    pub(super) fn first_bytes(&self, piece_bytes: u64) -> Option<u64> {
        match self.to {
            ReadFor::Position(at) => self.conversion.first_bytes(at, piece_bytes),
            ReadFor::Look | ReadFor::Memory | ReadFor::Stream => None,
        }
    }
}

impl<'a> Route<'a> {
    /// The route of ranges of positions: through scratch if both the rows that are read and those
    /// that are written would be too short, or if a stream needs them in another order.
    pub(super) fn of_view(view: &'a View, by: &ReadBy<'_>) -> Result<Route<'a>, ExecuteError> {
        let ReadBy { source, unit, to, workers, .. } = *by;
        let runs = view.runs();
        let expansion = by.conversion.expansion();
        let in_order = to == ReadFor::Stream;
        let room = match to {
            ReadFor::Look | ReadFor::Memory => None,
            _ => execute::panel_bytes(source, runs),
        };
        if let Some(passes) = room.and_then(|room| TwoPasses::choose(runs, room, in_order)) {
            let piece_bytes = PIECE_BYTES / expansion / unit * unit;
            let first = passes.first(source).into_iter().map(|plan| Box::new(plan) as _).collect();
            let temporary_bytes = passes.temporary_bytes();
            let then = passes.second(by.first_bytes(piece_bytes), piece_bytes.max(unit));
            return Ok(Route::Spooled { first, then: Box::new(then), temporary_bytes });
        }
        if in_order {
            let (spooled, plan) = execute::ordered(source, runs, room, unit, expansion, workers);
            let then = Box::new(plan);
            return Ok(match spooled {
                Some(first) => {
                    Route::Spooled { first: vec![Box::new(first)], then, temporary_bytes: 0 }
                }
                None => Route::Direct(then),
            });
        }
        let tiling = execute::tiling(source, view.bytes()).divided(expansion);
        let first_bytes = by.first_bytes(tiling.piece_bytes);
        let tiling = Tiling { first_bytes, panel_bytes: room, ..tiling };
        Ok(Route::Direct(Box::new(Plan::tiled(runs, unit, tiling))))
    }

    /// The route of chunks: through scratch if they are decoded in another order than a stream
    /// takes them.
    pub(super) fn of_chunks(
        region: &'a InChunks,
        by: &ReadBy<'_>,
    ) -> Result<Route<'a>, ExecuteError> {
        let chunked = region.chunked.as_ref();
        let Some(view) = region.elements.strided() else {
            if let Some(route) = Route::of_named(region, by)? {
                return Ok(route);
            }
            // positions count decoded elements, not bytes of the file
            let RegionPieces { pieces, .. } =
                region.elements.pieces(&ReadBy { to: ReadFor::Memory, ..*by })?;
            return Ok(Route::Direct(Box::new(Decoding::of(chunked, pieces))));
        };
        let in_any_order =
            |is_written| Box::new(ChunkPieces::new(chunked, view.runs(), None, is_written));
        if let ReadFor::Position(_) | ReadFor::Look = by.to {
            return Ok(Route::Direct(in_any_order(by.to != ReadFor::Look)));
        }
        let in_order = Decoding::in_order(chunked, view, by.unit);
        if in_order.decodes_once() {
            return Ok(Route::Direct(Box::new(in_order)));
        }
        let then = Plan::new(&Runs::contiguous(0, view.bytes()), by.unit, PIECE_BYTES);
        Ok(Route::Spooled {
            first: vec![in_any_order(true)],
            then: Box::new(then),
            temporary_bytes: 0,
        })
    }

    /// The route of rows in chunks. The rows of a sorted list go straight to an output that takes bytes in any order.
    /// The chunks of other rows go to scratch, unless few rows of few chunks are read, or single ranges.
    fn of_named(region: &'a InChunks, by: &ReadBy<'_>) -> Result<Option<Route<'a>>, ExecuteError> {
        let InChunks { elements, chunked } = region;
        let Some(gathered) =
            elements.gathered().filter(|_| by.to != ReadFor::Memory && elements.bytes() > 0)
        else {
            return Ok(None);
        };
        if let ReadFor::Position(_) | ReadFor::Look = by.to
            && let Some(list) = gathered.gather.sorted_list(&gathered.sources(), by.workers)
            && let Some(pieces) = ListedPieces::new(chunked, list, by.to != ReadFor::Look)
        {
            return Ok(Some(Route::Direct(Box::new(pieces))));
        }
        let Some(named) = chunked.no_chunks() else { return Ok(None) };
        let rows = gathered.gather.clone().with(&gathered.sources(), 1, by.workers)?;
        rows.visit_rows(by.source, by.workers, |offsets, row| {
            chunked.name(offsets, row, &named);
            !named.is_full()
        })?;
        let bytes = chunked.bytes_of(&named);
        if bytes <= FEW_BYTES && rows.wanted_count() <= FEW_ROWS {
            return Ok(None);
        }
        let chunks = Box::new(ChunkPieces::new(chunked, &chunked.all(), Some(named), true));
        Ok(Some(Route::Named { chunks, bytes, then: elements.as_ref() }))
    }

    pub(super) fn of_gather(
        gather: &'a Gather,
        gathered: &'a Gathered,
        by: &ReadBy<'_>,
    ) -> Result<Route<'a>, ExecuteError> {
        let rows = gather.clone().with(&gathered.sources(), by.unit, by.workers)?;
        if !matches!(by.to, ReadFor::Look | ReadFor::Memory) {
            if let Some(relaid) = gather.relaid().filter(|_| rows.reads_rows_again(by.source))
                && let Some(route) = Route::of_relaid(relaid, gathered, by)?
            {
                return Ok(route);
            }
            if let Some(distribution) = rows.distribution(by.source)? {
                return Ok(Route::Distributed { rows: Box::new(rows), distribution });
            }
        }
        Ok(Route::Direct(match (gather.window(), by.first_bytes(PIECE_BYTES)) {
            (None, Some(first)) => Box::new(rows.divided(first, PIECE_BYTES)),
            (None, None) => Box::new(rows),
            (Some(range), _) => Box::new(Clipped::new(rows, range)),
        }))
    }

    /// The two steps to a result in another order than the params, if there is room for them.
    fn of_relaid(
        Relaid { gather, view }: &'a Relaid,
        gathered: &'a Gathered,
        by: &ReadBy<'_>,
    ) -> Result<Option<Route<'a>>, ExecuteError> {
        let conversion = Conversion::None;
        let to = ReadFor::Position(0);
        let rows = Route::of_gather(gather, gathered, &ReadBy { conversion, unit: 1, to, ..*by })?;
        let bytes = gather.bytes();
        let needed_bytes = rows.temporary_bytes().saturating_add(bytes);
        if !scratch_has_room(needed_bytes)? {
            return Ok(None);
        }
        let temporary_bytes = needed_bytes.saturating_add(Route::of_spooled(bytes, view, by));
        Ok(Some(Route::Relaid { first: vec![rows], bytes, then: view, temporary_bytes }))
    }

    /// The scratch that a view of `bytes` copied bytes needs, as of a file that is not in memory.
    fn of_spooled(bytes: u64, view: &View, by: &ReadBy<'_>) -> u64 {
        room_for_panels(bytes, view.runs())
            .and_then(|room| TwoPasses::choose(view.runs(), room, by.to == ReadFor::Stream))
            .map_or(0, |passes| passes.temporary_bytes())
    }

    /// The route of a region that is put in order first.
    pub(super) fn of_ordered(
        region: &'a Ordered,
        by: &ReadBy<'_>,
    ) -> Result<Route<'a>, ExecuteError> {
        let Ordered { first, then } = region;
        if first.is_empty() {
            return then.route(by);
        }
        let bytes: u64 = first.iter().map(|region| region.bytes()).sum();
        let mut temporary_bytes = bytes;
        let mut routes = Vec::with_capacity(first.len());
        let mut at = 0;
        for region in first {
            let to = ReadFor::Position(at);
            let route =
                region.route(&ReadBy { conversion: Conversion::None, unit: 1, to, ..*by })?;
            temporary_bytes = temporary_bytes.max(bytes.saturating_add(route.temporary_bytes()));
            at += region.bytes();
            routes.push(route);
        }
        let view = then.strided().filter(|view| view.bytes() > 0);
        let last = view.map_or(0, |view| Route::of_spooled(bytes, view, by));
        let temporary_bytes = temporary_bytes.saturating_add(last);
        Ok(Route::Relaid { first: routes, bytes, then: then.as_ref(), temporary_bytes })
    }

    /// The most bytes of scratch that it needs.
    pub fn temporary_bytes(&self) -> u64 {
        match self {
            Route::Direct(_) => 0,
            Route::Spooled { temporary_bytes, .. } | Route::Relaid { temporary_bytes, .. } => {
                *temporary_bytes
            }
            Route::Distributed { distribution, .. } => distribution.temporary_bytes(),
            Route::Computed { of, .. } => of.temporary_bytes(),
            Route::Named { bytes, .. } => *bytes,
        }
    }

    /// Fill the scratch that it needs; the rest is one pass.
    pub(super) fn open(self, by: &ReadBy<'_>) -> Result<RegionPieces<'a>, ExecuteError> {
        let ReadBy { source, workers, progress, .. } = *by;
        match self {
            Route::Direct(pieces) => Ok(RegionPieces { pieces, copied: None }),
            Route::Spooled { first, then, temporary_bytes } => {
                let first = first.iter().map(|pieces| (source, pieces.as_ref() as _));
                let keep = || spool_pieces(&Vec::from_iter(first), workers, progress);
                let spooled = progress.scratch.during(temporary_bytes, keep)?;
                Ok(RegionPieces { pieces: then, copied: Some(spooled) })
            }
            Route::Computed { of, region } => region.open(*of, by),
            Route::Named { chunks, bytes, then } => {
                let keep = || spool_sparse(source, chunks.as_ref(), workers, progress);
                let spooled = progress.scratch.during(bytes, keep)?;
                pieces_of_spooled(then, spooled, by)
            }
            Route::Distributed { rows, distribution } => {
                let (pieces, spooled) =
                    rows.distribute(&distribution, source, workers, progress)?;
                Ok(RegionPieces { pieces: Box::new(pieces), copied: Some(spooled) })
            }
            Route::Relaid { first, bytes, then, .. } => {
                let opened = first.into_iter().map(|route| route.open(by));
                let opened = opened.collect::<Result<Vec<_>, _>>()?;
                let sourced = opened.iter().map(|RegionPieces { pieces, copied }| {
                    (copied.as_deref().unwrap_or(source), pieces.as_ref())
                });
                let keep = || spool_pieces(&Vec::from_iter(sourced), workers, progress);
                let spooled = progress.scratch.during(bytes, keep)?;
                drop(opened);
                pieces_of_spooled(then, spooled, by)
            }
        }
    }
}

/// The pieces of a region that reads the scratch file `spooled`.
fn pieces_of_spooled<'a>(
    region: &'a dyn Region,
    spooled: Box<dyn Source>,
    by: &ReadBy<'_>,
) -> Result<RegionPieces<'a>, ExecuteError> {
    let read = region.pieces(&ReadBy { source: spooled.as_ref(), ..*by })?;
    Ok(RegionPieces { copied: read.copied.or(Some(spooled)), ..read })
}
