//! The way by which the bytes of a region come, decided once: a dry run [describes](Route::out_of_core) it, a copy
//! [opens](Route::open) it.
//!
//! Nothing is written before a route is opened, and nothing read but index tensors. What was found out on the
//! way, such as whether rows are in the page cache, stays with its pieces.

use super::Region;
use crate::execute::{
    Conversion, ExecuteError, OutOfCore, Pieces, Progress, Workers, spool_pieces,
};
use crate::gather::{Distribution, GatherPieces};
use crate::source::Source;
use crate::view::View;

/// How the bytes of a region are read.
#[derive(Clone, Copy)]
pub struct ReadBy<'a> {
    pub source: &'a dyn Source,
    pub conversion: Conversion,
    /// No piece divides so many bytes.
    pub unit: u64,
    pub to: ReadFor,
    /// Who puts in order what must be in order first.
    pub workers: &'a Workers,
    pub progress: &'a Progress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFor {
    /// To this position of an output that takes bytes in any order.
    Position(u64),
    Memory,
    Stream,
}

/// The pieces of a region, and the source that they are of, where that is not the tensor's own.
pub struct RegionPieces<'a> {
    pub pieces: Box<dyn Pieces + 'a>,
    /// A temporary copy, in the order of the output.
    pub copied: Option<Box<dyn Source>>,
}

/// A way from a tensor's bytes to those of a region.
pub enum Route<'a> {
    Direct(Box<dyn Pieces + 'a>),
    Kept {
        /// What is put there, one after the other.
        first: Vec<Box<dyn Pieces + 'a>>,
        then: Box<dyn Pieces + 'a>,
        /// What is said of both, where the bytes do not fit in memory.
        plan: Option<OutOfCore>,
    },
    /// Rows that are put in order in temporary files.
    Distributed {
        rows: Box<GatherPieces<'a>>,
        distribution: Distribution,
    },
    /// Rows that are kept in the order of the params, and the result that is made of these.
    Relaid {
        rows: Box<Route<'a>>,
        bytes: u64,
        view: &'a View,
        plan: OutOfCore,
    },
}

impl ReadBy<'_> {
    /// The first of pieces of so many bytes, in an output where the others then begin at blocks of the file.
    pub(super) fn first_bytes(&self, piece_bytes: u64) -> Option<u64> {
        match self.to {
            ReadFor::Position(at) => self.conversion.first_bytes(at, piece_bytes),
            ReadFor::Memory | ReadFor::Stream => None,
        }
    }
}

impl<'a> Route<'a> {
    /// What is said of it, where the bytes do not fit in memory; `None` where they do, or are there.
    pub fn out_of_core(&self, source: &dyn Source) -> Option<OutOfCore> {
        match self {
            Route::Direct(pieces) => pieces.step(source).map(|step| OutOfCore::of(step, 0)),
            Route::Kept { plan, .. } => plan.clone(),
            Route::Distributed { distribution, .. } => Some(distribution.out_of_core()),
            Route::Relaid { plan, .. } => Some(plan.clone()),
        }
    }

    /// Make the temporary files that it needs; what is left is one pass.
    pub(super) fn open(self, by: &ReadBy<'_>) -> Result<RegionPieces<'a>, ExecuteError> {
        let ReadBy { source, workers, progress, .. } = *by;
        match self {
            Route::Direct(pieces) => Ok(RegionPieces { pieces, copied: None }),
            Route::Kept { first, then, plan } => {
                let first: Vec<&dyn Pieces> = first.iter().map(|pieces| &**pieces as _).collect();
                let told = plan.map_or(0, |plan| plan.temporary_bytes);
                let keep = || spool_pieces(source, &first, workers, progress);
                let kept = progress.kept.during(told, keep)?;
                Ok(RegionPieces { pieces: then, copied: Some(kept) })
            }
            Route::Distributed { rows, distribution } => {
                let (pieces, kept) = rows.distribute(&distribution, source, workers, progress)?;
                Ok(RegionPieces { pieces: Box::new(pieces), copied: Some(kept) })
            }
            Route::Relaid { rows, bytes, view, .. } => {
                let RegionPieces { pieces, copied } = rows.open(by)?;
                let source = copied.as_deref().unwrap_or(source);
                let keep = || spool_pieces(source, &[pieces.as_ref()], workers, progress);
                let kept = progress.kept.during(bytes, keep)?;
                drop(pieces);
                let laid = view.pieces(&ReadBy { source: kept.as_ref(), ..*by })?;
                Ok(RegionPieces { copied: laid.copied.or(Some(kept)), ..laid })
            }
        }
    }
}
