//! What later pieces need of the input, so that a disk can begin to read it.
//!
//! Ranges of the output need the input roughly in order: some megabytes ahead are enough. Boxes
//! of a relayout need short stretches from all over the input; those of many neighbouring boxes, a
//! *panel*, are long stretches when they are read together.

use std::convert::Infallible;

use super::Plan;
use super::partition::Partition;
use super::piece::{Panel, READAHEAD_BYTES};
use super::stretches::{NEAR_BYTES, stretches};
use crate::runs::{Runs, dense_bytes};

/// How far before its use a range is prefetched, in bytes of the input.
const AHEAD_BYTES: u64 = 32 << 20;

/// The longest range to prefetch at once; what is spread wider is left to the kernel's readahead.
const RANGE_BYTES: u64 = 32 << 20;

/// The most of the input that a panel of ranges needs.
const PANEL_BYTES: u64 = 64 << 20;

impl Plan {
    /// What to prefetch when piece `number` begins: the ranges, all ascending, that a later piece
    /// or the next panel needs.
    pub fn prefetch(&self, number: u64) -> Vec<Runs> {
        if self.panel_bytes.is_some() {
            return Vec::new();
        }
        match &self.partition {
            Partition::Ranges(_) | Partition::Cuts(_) => {
                let later = number.saturating_add(self.ahead(number));
                let mut later =
                    if later < self.pieces() { self.stretches(later) } else { Vec::new() };
                later.retain(|it| it.run <= RANGE_BYTES);
                later
            }
            Partition::Boxes(boxes) => {
                let panel = boxes.panel(&self.input, number);
                panel.and_then(|(_, next)| self.panel_input(next)).into_iter().collect()
            }
        }
    }

    /// How many pieces later than `number` what is needed is [`AHEAD_BYTES`] further on.
    fn ahead(&self, number: u64) -> u64 {
        let bytes: u64 = self.stretches(number).iter().map(Runs::bytes).sum();
        (AHEAD_BYTES / bytes.max(1)).max(1)
    }

    /// What to prefetch before the first piece: what no [later call](Plan::prefetch) names.
    pub fn prefetch_first(&self) -> Vec<Runs> {
        if self.panel_bytes.is_some() {
            return Vec::new();
        }
        match &self.partition {
            Partition::Ranges(_) | Partition::Cuts(_) => {
                let count = self.ahead(0).min(self.pieces());
                (0..count).flat_map(|number| self.stretches(number)).collect()
            }
            Partition::Boxes(_) => self.panel_input(0).into_iter().collect(),
        }
    }

    /// What to ask for when piece `number` begins: its bytes, in ascending ranges, those with gaps of
    /// at most `gap` bytes in one. The boxes of a relayout that are side by side share it, so that the
    /// first of them names it and the others nothing.
    pub(crate) fn needs(&self, number: u64, gap: u64) -> Vec<Runs> {
        let runs = match &self.partition {
            Partition::Ranges(_) | Partition::Cuts(_) => self.piece(number).input,
            Partition::Boxes(boxes) => {
                boxes.panel(&self.input, number).map_or(Vec::new(), |(panel, _)| panel.input)
            }
        };
        runs.into_iter().map(|runs| stretches(runs, gap)).collect()
    }

    /// What a piece needs. What lies between is read by the kernel anyway, where that is little.
    fn stretches(&self, number: u64) -> Vec<Runs> {
        self.needs(number, READAHEAD_BYTES)
    }

    /// What a panel needs that begins with that piece.
    fn panel_input(&self, number: u64) -> Option<Runs> {
        if number >= self.pieces() {
            return None;
        }
        self.needs(number, NEAR_BYTES).pop()
    }

    /// The panel that begins with that piece, where panels are read ahead and one begins there: of
    /// boxes, or as many ranges of the output.
    pub fn panel(&self, number: u64) -> Option<Panel> {
        let room = self.panel_bytes?;
        let last = self.pieces().checked_sub(1).filter(|last| number <= *last)?;
        match &self.partition {
            Partition::Boxes(boxes) => {
                let (_, next) = boxes.panel(&self.input, number)?;
                Some(Panel { pieces: next - number, input: self.needs(number, NEAR_BYTES), room })
            }
            Partition::Ranges(_) | Partition::Cuts(_) => {
                let first = self.piece(number).output;
                let share = self.share_of_input(first.run).max(1);
                let end =
                    last.min(number + ((room / 4).min(PANEL_BYTES) / share).saturating_sub(1));
                let output = self.piece(end).output;
                let (range, mut input) =
                    (first.offset..output.offset + output.run as i64, Vec::new());
                let Ok(()) = self.input.split(range.start as u64..range.end as u64, &mut |runs| {
                    input.push(stretches(runs, NEAR_BYTES));
                    Ok::<_, Infallible>(())
                });
                Some(Panel { pieces: end + 1 - number, input, room })
            }
        }
    }

    /// About how much of the input so many bytes of the output need.
    fn share_of_input(&self, bytes: u64) -> u64 {
        let Runs { axes, run, .. } = stretches(self.input.clone(), NEAR_BYTES);
        let input = u128::from(dense_bytes(&axes, run)) * u128::from(bytes);
        u64::try_from(input / u128::from(self.bytes().max(1))).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::Axis;

    /// Every byte of every piece is prefetched: before the first, or when an earlier one begins.
    #[test]
    fn all_that_is_needed_is_prefetched() {
        let row = |len, stride| Axis { len, stride };
        for (axes, run) in [
            (vec![], 100 << 20),
            (vec![row(5000, 40_000)], 4096),
            (vec![row(3000, -(1 << 20)), row(512, 16)], 4),
            (vec![row(20_000, 300_000)], 8192),
            (vec![row(700, 1 << 22)], 1 << 17),
        ] {
            let runs = Runs { offset: 1 << 40, axes, run };
            let plan = Plan::new(&runs, 1, 1 << 18);
            let mut asked: Vec<(u64, u64)> = Vec::new();
            let note = |asked: &mut Vec<(u64, u64)>, runs: Runs| {
                asked.extend(runs.starts().map(|at| (at as u64, at as u64 + runs.run)));
            };
            plan.prefetch_first().into_iter().for_each(|runs| note(&mut asked, runs));
            (0..plan.pieces()).flat_map(|at| plan.prefetch(at)).for_each(|it| note(&mut asked, it));
            asked.sort_unstable();
            for at in runs.coalesced().starts() {
                let at = at as u64;
                let before = asked.partition_point(|&(start, _)| start <= at);
                let reach = asked[..before].iter().rev().take(3).map(|&(_, end)| end).max();
                assert!(reach.is_some_and(|end| end > at), "{at} of {runs:?}");
            }
        }
    }
}
