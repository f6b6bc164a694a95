//! A range of what is taken of a tensor: what goes to one part of an output.

use std::ops::Range;

use super::take::{Region, Take};
use crate::plan::{Plan, Tiling};

impl Take {
    /// Bytes of the output.
    pub(super) fn bytes(&self) -> u64 {
        self.conversion.output_bytes(self.region.bytes())
    }

    /// About how many bytes of the input are read, in whole cache lines.
    pub(super) fn reads(&self) -> u64 {
        match &self.region {
            Region::View(view) => Plan::tiled(view, self.unit(), Tiling::MAPPED).reads(),
            Region::Gather(_) | Region::Fields(_) => self.bytes(),
        }
    }

    /// What goes to a range of the output.
    pub(super) fn within(&self, range: &Range<u64>) -> Vec<Take> {
        let cut = |at: u64| at.saturating_sub(self.at).min(self.bytes());
        let window = cut(range.start)..cut(range.end);
        let start = self.input_bytes(window.start);
        self.window(window, self.at + self.conversion.output_bytes(start))
    }

    /// A range of the bytes that it is in the output, to be written from position `at` on. An element
    /// that is converted on the way is not divided: it belongs to the range after the cut.
    pub(super) fn window(&self, window: Range<u64>, mut at: u64) -> Vec<Take> {
        let conversion = self.conversion;
        let window = self.input_bytes(window.start)..self.input_bytes(window.end);
        let take = |region, at| Take { region, at, ..*self };
        match &self.region {
            _ if window.is_empty() => Vec::new(),
            whole if window == (0..whole.bytes()) => vec![take(whole.clone(), at)],
            Region::View(view) => {
                let takes = view.split(window).into_iter().map(|view| {
                    let start = at;
                    at += conversion.output_bytes(view.bytes());
                    take(Region::View(view), start)
                });
                takes.collect()
            }
            Region::Fields(fields) => {
                vec![take(Region::Fields(Box::new(fields.within(window))), at)]
            }
            Region::Gather(gathered) => {
                let mut gathered = gathered.clone();
                gathered.gather = gathered.gather.within(window);
                vec![take(Region::Gather(gathered), at)]
            }
        }
    }

    /// The bytes of the region that become its first `output` bytes, or fewer.
    fn input_bytes(&self, output: u64) -> u64 {
        match output == self.bytes() {
            true => self.region.bytes(),
            false => self.conversion.input_bytes(output),
        }
    }
}
