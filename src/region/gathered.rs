//! Positions that index tensors name: what gather takes, and lists and masks in an index.

use std::ops::Range;
use std::sync::Arc;

use crate::error::Error;
use crate::execute::{
    Clipped, Conversion, CopyStep, ExecuteError, FillError, OutOfCore, Pieces, TwoPasses,
    spool_pieces,
};
use crate::gather::{Distributed, GatherPieces, Relaid, has_room};
use crate::plan::{PIECE_BYTES, Reading};
use crate::region::contract::{ReadBy, ReadFor, Region, RegionPieces};
use crate::region::list::Gathered;
use crate::view::View;

impl Region for Gathered {
    fn bytes(&self) -> u64 {
        self.gather.bytes()
    }

    fn pieces<'a>(&'a self, by: &ReadBy<'_>) -> Result<RegionPieces<'a>, ExecuteError> {
        let first_bytes = match by.to {
            ReadFor::Position(at) => by.conversion.first_bytes(at, PIECE_BYTES),
            ReadFor::Memory | ReadFor::Stream => None,
        };
        let pieces = self.bound(by)?;
        if let Some(steps) = self.steps(&pieces, by)?
            && has_room(steps.needed_bytes)?
        {
            return steps.pieces(by);
        }
        if by.to != ReadFor::Memory {
            let distributed = pieces.distributed(by.source, by.workers, by.progress)?;
            if let Some(Distributed { start, kept, pieces }) = distributed {
                let window = self.gather.window().unwrap_or(0..self.gather.bytes());
                let window = window.start - start..window.end - start;
                let pieces = Box::new(Clipped::new(pieces, window));
                return Ok(RegionPieces { pieces, copied: Some(kept) });
            }
        }
        let pieces: Box<dyn Pieces + 'a> = match (self.gather.window(), first_bytes) {
            (None, Some(first)) => Box::new(pieces.divided(first, PIECE_BYTES)),
            (None, None) => Box::new(pieces),
            (Some(range), _) => Box::new(Clipped::new(pieces, range)),
        };
        Ok(RegionPieces { pieces, copied: None })
    }

    fn out_of_core(&self, by: &ReadBy<'_>) -> Result<Option<OutOfCore>, ExecuteError> {
        let pieces = self.bound(by)?;
        if let Some(steps) = self.steps(&pieces, by)?
            && has_room(steps.needed_bytes)?
        {
            return Ok(Some(steps.plan));
        }
        pieces.out_of_core(by.source)
    }

    fn within(&self, range: Range<u64>) -> Vec<Arc<dyn Region>> {
        let gather = self.gather.clone().within(range);
        vec![Arc::new(Gathered { gather, lists: self.lists.clone() })]
    }

    fn identify(&self, add: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        add(self.gather.identity().as_bytes());
        self.lists.iter().try_for_each(|list| list.identify(add))
    }

    fn reading(&self) -> Option<Reading> {
        Some(self.gather.reading())
    }

    fn gathered(&self) -> Option<&Gathered> {
        Some(self)
    }
}

impl Gathered {
    /// What is gathered, with the sources of its lists.
    fn bound(&self, by: &ReadBy<'_>) -> Result<GatherPieces<'_>, ExecuteError> {
        let pieces = self.gather.clone().with(&self.sources(), by.unit, by.workers);
        pieces.map_err(|error| {
            let error = match error {
                // nothing but an index tensor has been read
                FillError::Source(error) => FillError::Indices { list: 0, error },
                error => error,
            };
            ExecuteError::Fill { transfer: 0, error }
        })
    }

    /// The two steps to a result in another order than that of the params, where they are the faster way.
    fn steps(
        &self,
        pieces: &GatherPieces<'_>,
        by: &ReadBy<'_>,
    ) -> Result<Option<TwoSteps<'_>>, ExecuteError> {
        let relaid = self.gather.relaid().filter(|_| by.to != ReadFor::Memory);
        let Some(Relaid { gather, view }) = relaid.filter(|_| pieces.reads_rows_again(by.source))
        else {
            return Ok(None);
        };
        let rows = Gathered { gather: gather.clone(), lists: self.lists.clone() };
        let first = rows.out_of_core(by)?;
        let mut plan = first.unwrap_or_else(|| OutOfCore::of(CopyStep::InOrder, 0));
        let needed_bytes = plan.temporary_bytes.saturating_add(rows.bytes());
        let in_order = by.to == ReadFor::Stream;
        let then = TwoPasses::of_spooled(rows.bytes(), view.runs(), in_order)
            .map_or_else(|| OutOfCore::of(CopyStep::Panels, 0), |passes| passes.out_of_core());
        plan.steps.extend(then.steps);
        plan.temporary_bytes = needed_bytes.saturating_add(then.temporary_bytes);
        Ok(Some(TwoSteps { rows, view, plan, needed_bytes }))
    }
}

/// Rows that are kept in the order of the params, and the result that is made of them.
struct TwoSteps<'a> {
    rows: Gathered,
    view: &'a View,
    plan: OutOfCore,
    /// The temporary bytes without which it cannot be.
    needed_bytes: u64,
}

impl<'a> TwoSteps<'a> {
    /// Keep the rows, and say how the result is made.
    fn pieces(&self, by: &ReadBy<'_>) -> Result<RegionPieces<'a>, ExecuteError> {
        let (conversion, to) = (Conversion::None, ReadFor::Position(0));
        let RegionPieces { pieces, copied } =
            self.rows.pieces(&ReadBy { conversion, unit: 1, to, ..*by })?;
        let source = copied.as_deref().unwrap_or(by.source);
        by.progress.kept.begin(self.rows.bytes());
        let kept = spool_pieces(source, pieces.as_ref(), by.workers, by.progress)?;
        by.progress.kept.begin(0);
        drop(pieces);
        let laid = self.view.pieces(&ReadBy { source: kept.as_ref(), ..*by })?;
        Ok(RegionPieces { copied: laid.copied.or(Some(kept)), ..laid })
    }
}
