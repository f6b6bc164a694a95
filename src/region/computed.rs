//! Regions of tensors whose elements are computed from the stored ones: packed values.

use std::ops::Range;
use std::sync::Arc;

use super::indices::Gathered;
use super::{ReadBy, ReadFor, Region, Route};
use crate::cast::{Arithmetic, Cast, CastError, Casting};
use crate::error::Error;
use crate::execute::{Clipped, Computed, Conversion, ExecuteError, Pieces};
use crate::plan::{Plan, Reading};
use crate::tensor::Unpacking;

/// The pieces that are computed for scans, in bytes of stored elements.
const LOOK_BYTES: u64 = 64 << 10;

/// A region of stored elements, and the arithmetic that is applied to each.
#[derive(Clone)]
pub struct ComputedRegion {
    pub(super) stored: Arc<dyn Region>,
    pub(super) arithmetic: Arc<Arithmetic>,
    /// The range of the bytes that is taken, if it is a part that divides elements.
    pub(super) window: Option<Range<u64>>,
}

/// The arithmetic that unpacks elements.
pub(super) fn arithmetic(unpacking: &Unpacking) -> Result<Arithmetic, CastError> {
    let Unpacking { from, to, fills, scale, offset, nan } = unpacking;
    let cast = Cast::new(from, to, Casting::Unsafe)?;
    Ok(Arithmetic { cast, fills: fills.clone(), scale: *scale, offset: *offset, nan: *nan })
}

impl ComputedRegion {
    fn conversion(&self) -> Conversion {
        Conversion::Cast(self.arithmetic.cast)
    }

    fn whole_bytes(&self) -> u64 {
        self.conversion().output_bytes(self.stored.bytes())
    }

    /// The way to read the stored elements.
    fn read_stored<'a>(&self, by: &ReadBy<'a>) -> ReadBy<'a> {
        let to = if self.window.is_some() { ReadFor::Memory } else { by.to };
        let conversion = self.conversion();
        ReadBy { conversion, unit: conversion.unit(), to, ..*by }
    }
}

impl Region for ComputedRegion {
    fn bytes(&self) -> u64 {
        self.window.as_ref().map_or_else(|| self.whole_bytes(), |window| window.end - window.start)
    }

    fn route<'a>(&'a self, by: &ReadBy<'_>) -> Result<Route<'a>, ExecuteError> {
        let stored = self.read_stored(by);
        let of = match self.stored.strided() {
            // pieces in the order of the result
            Some(view) if stored.to == ReadFor::Memory => {
                Route::Direct(Box::new(Plan::new(view.runs(), stored.unit, LOOK_BYTES)))
            }
            _ => self.stored.route(&stored)?,
        };
        Ok(Route::Computed { of: Box::new(of), region: self })
    }

    fn within(&self, range: Range<u64>) -> Vec<Arc<dyn Region>> {
        let before = self.window.as_ref().map_or(0, |window| window.start);
        let range = before + range.start..before + range.end;
        let unit = self.conversion().output_unit();
        let is_whole = range.start.is_multiple_of(unit) && range.end.is_multiple_of(unit);
        if !is_whole {
            return vec![Arc::new(ComputedRegion { window: Some(range), ..self.clone() })];
        }
        let stored =
            self.conversion().input_bytes(range.start)..self.conversion().input_bytes(range.end);
        let part = |stored| {
            let arithmetic = Arc::clone(&self.arithmetic);
            Arc::new(ComputedRegion { stored, arithmetic, window: None }) as Arc<dyn Region>
        };
        self.stored.within(stored).into_iter().map(part).collect()
    }

    fn identify(&self, add: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        self.stored.identify(add)?;
        add(format!("{:?} {:?}", self.arithmetic, self.window).as_bytes());
        Ok(())
    }

    fn reading(&self) -> Option<Reading> {
        self.stored.reading()
    }

    fn ordered_first(&self) -> &[Arc<dyn Region>] {
        self.stored.ordered_first()
    }

    fn gathered(&self) -> Option<&Gathered> {
        self.stored.gathered()
    }
}

impl ComputedRegion {
    /// The pieces that are computed from pieces of the stored elements.
    pub(super) fn pieces<'a>(&'a self, of: Box<dyn Pieces + 'a>) -> Box<dyn Pieces + 'a> {
        let computed = Computed::new(of, &self.arithmetic);
        match &self.window {
            Some(window) => Box::new(Clipped::new(computed, window.clone())),
            None => Box::new(computed),
        }
    }

    /// Open a route of the stored elements.
    pub(super) fn open<'a>(
        &'a self,
        of: Route<'a>,
        by: &ReadBy<'_>,
    ) -> Result<super::RegionPieces<'a>, ExecuteError> {
        let opened = of.open(&self.read_stored(by))?;
        Ok(super::RegionPieces { pieces: self.pieces(opened.pieces), ..opened })
    }
}
