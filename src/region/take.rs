//! A region on its way to its place in an output, and the ranges of it that go to parts of one.

use std::ops::Range;
use std::sync::Arc;

use crate::execute::{Conversion, SHARED_BYTES, WINDOW_BYTES};
use crate::input::{Bytes, Input};
use crate::plan::Plan;
use crate::region::contract::Region;

/// A region on its way to its place in the output.
pub struct Take {
    /// The part of the input that it is taken of.
    pub part: usize,
    /// What is taken.
    pub region: Arc<dyn Region>,
    /// What elements go through on the way.
    pub conversion: Conversion,
    /// Where it goes in the output, in bytes.
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
        let (first, second) = (self.region.strided()?, next.region.strided()?);
        match self.at.checked_add(first.bytes()) {
            Some(end) if end == next.at && second.bytes() == 0 => Some(Arc::clone(&self.region)),
            Some(end) if end == next.at => Some(Arc::new(first.followed_by(second)?)),
            _ => None,
        }
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
        let window = WINDOW_BYTES / self.conversion.expansion();
        self.region.forward(start, self.unit, window)
    }

    /// Bytes of the output.
    pub(crate) fn bytes(&self) -> u64 {
        self.conversion.output_bytes(self.region.bytes())
    }

    /// About how many bytes of the input are read, in whole cache lines.
    pub(crate) fn reads(&self) -> u64 {
        self.region.reads(self.unit)
    }

    /// What goes to a range of the output.
    pub(crate) fn within(&self, range: &Range<u64>) -> Vec<Take> {
        let cut = |at: u64| at.saturating_sub(self.at).min(self.bytes());
        let window = cut(range.start)..cut(range.end);
        let start = self.input_bytes(window.start);
        self.window(window, self.at + self.conversion.output_bytes(start))
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
        match output == self.bytes() {
            true => self.region.bytes(),
            false => self.conversion.input_bytes(output),
        }
    }
}
