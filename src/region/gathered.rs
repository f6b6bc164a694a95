//! Positions that index tensors name: what gather takes, and lists and masks in an index.

use std::ops::Range;
use std::sync::Arc;

use crate::error::Error;
use crate::execute::{Clipped, ExecuteError, FillError, OutOfCore, Pieces};
use crate::gather::{Distributed, GatherPieces};
use crate::plan::{PIECE_BYTES, Reading};
use crate::region::contract::{ReadBy, ReadFor, Region, RegionPieces};
use crate::region::list::Gathered;

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
        if by.to != ReadFor::Memory {
            let window = self.window(&pieces);
            let distributed = pieces.distributed(&window, by.source, by.workers, by.progress)?;
            if let Some(Distributed { start, kept, pieces }) = distributed {
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
        Ok(pieces.out_of_core(&self.window(&pieces), by.source))
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

    /// The bytes of the output that are wanted.
    fn window(&self, pieces: &GatherPieces<'_>) -> Range<u64> {
        self.gather.window().unwrap_or(0..pieces.bytes())
    }
}
