//! Ranges of positions: what a basic index takes.

use std::ops::Range;
use std::sync::Arc;

use crate::error::Error;
use crate::execute::{self, CopyStep, ExecuteError, OutOfCore, TwoPasses, WINDOW_BYTES};
use crate::plan::{PIECE_BYTES, Plan, Reading, Tiling};
use crate::region::contract::{ReadBy, ReadFor, Region, RegionPieces};
use crate::view::View;

/// The two passes by which a view is copied, where those are the faster way.
fn two_passes(view: &View, by: &ReadBy<'_>) -> Option<TwoPasses> {
    match by.to {
        ReadFor::Memory => None,
        to => TwoPasses::choose(by.source, view.runs(), to == ReadFor::Stream),
    }
}

impl Region for View {
    fn bytes(&self) -> u64 {
        View::bytes(self)
    }

    fn pieces<'a>(&'a self, by: &ReadBy<'_>) -> Result<RegionPieces<'a>, ExecuteError> {
        let (unit, expansion) = (by.unit, by.conversion.expansion());
        if let Some(passes) = two_passes(self, by) {
            let piece_bytes = PIECE_BYTES / expansion / unit * unit;
            let first_bytes = match by.to {
                ReadFor::Position(at) => by.conversion.first_bytes(at, piece_bytes),
                _ => None,
            };
            let (pieces, kept) = passes.keep(
                by.source,
                first_bytes,
                piece_bytes.max(unit),
                by.workers,
                by.progress,
            )?;
            return Ok(RegionPieces { pieces: Box::new(pieces), copied: Some(kept) });
        }
        let (plan, copied) = match by.to {
            ReadFor::Stream => {
                execute::in_order(by.source, self.runs(), unit, expansion, by.workers)?
            }
            ReadFor::Position(_) | ReadFor::Memory => {
                let tiling = execute::tiling(by.source, View::bytes(self)).divided(expansion);
                let first_bytes = match by.to {
                    ReadFor::Position(at) => by.conversion.first_bytes(at, tiling.piece_bytes),
                    _ => None,
                };
                let panel_bytes = match by.to {
                    ReadFor::Position(_) => execute::panel_bytes(by.source, self.runs()),
                    _ => None,
                };
                let tiling = Tiling { first_bytes, panel_bytes, ..tiling };
                (Plan::tiled(self.runs(), unit, tiling), None)
            }
        };
        Ok(RegionPieces { pieces: Box::new(plan), copied })
    }

    fn out_of_core(&self, by: &ReadBy<'_>) -> Result<Option<OutOfCore>, ExecuteError> {
        if let Some(passes) = two_passes(self, by) {
            return Ok(Some(passes.out_of_core()));
        }
        let panel_bytes = execute::panel_bytes(by.source, self.runs());
        Ok(panel_bytes.map(|_| {
            let tiling = Tiling { panel_bytes, ..execute::tiling(by.source, View::bytes(self)) };
            let is_relayout = Plan::tiled(self.runs(), by.unit, tiling).is_relayout();
            OutOfCore::of(if is_relayout { CopyStep::Panels } else { CopyStep::InOrder }, 0)
        }))
    }

    fn within(&self, range: Range<u64>) -> Vec<Arc<dyn Region>> {
        self.split(range).into_iter().map(|view| Arc::new(view) as Arc<dyn Region>).collect()
    }

    fn identify(&self, add: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        add(format!("{self:?}").as_bytes());
        Ok(())
    }

    fn reads(&self, unit: u64) -> u64 {
        Plan::tiled(self.runs(), unit, Tiling::MAPPED).reads()
    }

    fn forward(&self, start: u64, unit: u64, window: u64) -> Option<Plan> {
        Plan::forward(&self.clone().after(start), unit, window)
    }

    fn reading(&self) -> Option<Reading> {
        Some(Reading::of_view(self, WINDOW_BYTES))
    }

    fn strided(&self) -> Option<&View> {
        Some(self)
    }
}
