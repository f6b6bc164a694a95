//! A range of the output of pieces, such as the range of one part of a job.

use std::ops::Range;

use super::fill::split_first;
use super::{FillError, Pieces, ReadFrom, VisitRange};
use crate::plan::Panel;
use crate::runs::Runs;
use crate::source::Source;

/// The bytes `range` of the output of other pieces, which must be ranges in the order of the output.
/// The pieces at both ends are filled in full, and cut.
pub struct Clipped<P> {
    pieces: P,
    cut: Cut,
}

impl<P: Pieces> Clipped<P> {
    pub fn new(pieces: P, range: Range<u64>) -> Clipped<P> {
        let cut = Cut::of(&pieces, range);
        Clipped { pieces, cut }
    }
}

impl<P: Pieces> Pieces for Clipped<P> {
    fn bytes(&self) -> u64 {
        self.cut.range.end - self.cut.range.start
    }

    fn count(&self) -> u64 {
        self.cut.count
    }

    fn output(&self, number: u64) -> Runs {
        self.cut.output(&self.pieces, number)
    }

    fn fill(&self, number: u64, from: &mut ReadFrom<'_>, out: &mut [u8]) -> Result<(), FillError> {
        self.cut.fill(&self.pieces, number, from, out)
    }

    fn needs(&self, number: u64, gap: u64, visit: VisitRange<'_>) -> Result<(), FillError> {
        self.pieces.needs(self.cut.first + number, gap, visit)
    }

    fn panel(&self, number: u64) -> Option<Panel> {
        let panel = self.pieces.panel(self.cut.first + number)?;
        Some(Panel { pieces: panel.pieces.min(self.cut.count - number), ..panel })
    }

    fn waits_for_disk(&self, source: &dyn Source) -> bool {
        self.pieces.waits_for_disk(source)
    }

    fn sparse_range(&self) -> Option<Range<u64>> {
        self.pieces.sparse_range()
    }
}

/// The pieces that overlap a range of an output.
struct Cut {
    range: Range<u64>,
    first: u64,
    count: u64,
}

impl Cut {
    fn of(pieces: &dyn Pieces, range: Range<u64>) -> Cut {
        let range = range.start..range.end.min(pieces.bytes());
        if range.is_empty() {
            return Cut { range: 0..0, first: 0, count: 0 };
        }
        // the number of pieces that begin before or at a byte
        let begun = |at: u64| {
            let mut low = 0;
            let mut high = pieces.count();
            while low < high {
                let middle = low + (high - low) / 2;
                if pieces.output(middle).offset as u64 <= at {
                    low = middle + 1
                } else {
                    high = middle
                }
            }
            low
        };
        let first = begun(range.start).saturating_sub(1);
        let count = begun(range.end - 1) - first;
        Cut { range, first, count }
    }

    fn wanted(&self, piece: &Runs) -> Range<u64> {
        let start = piece.offset as u64;
        let bytes = piece.bytes();
        start.max(self.range.start)..(start + bytes).min(self.range.end)
    }

    fn output(&self, pieces: &dyn Pieces, number: u64) -> Runs {
        let wanted = self.wanted(&pieces.output(self.first + number));
        Runs::contiguous(wanted.start - self.range.start, wanted.end - wanted.start)
    }

    fn fill(
        &self,
        pieces: &dyn Pieces,
        number: u64,
        from: &mut ReadFrom<'_>,
        out: &mut [u8],
    ) -> Result<(), FillError> {
        let number = self.first + number;
        let piece = pieces.output(number);
        if piece.bytes() == out.len() as u64 {
            return pieces.fill(number, from, out);
        }
        let mut whole = vec![0; piece.bytes() as usize];
        pieces.fill(number, from, &mut whole)?;
        let skipped = self.wanted(&piece).start - piece.offset as u64;
        out.copy_from_slice(&whole[skipped as usize..][..out.len()]);
        Ok(())
    }
}

/// Fill `out` with the output of pieces from position `start`. The pieces must be ranges in the
/// order of the output.
pub(crate) fn read_pieces(
    pieces: &dyn Pieces,
    start: u64,
    from: &mut ReadFrom<'_>,
    out: &mut [u8],
) -> Result<(), FillError> {
    let cut = Cut::of(pieces, start..start + out.len() as u64);
    let mut rest = out;
    (0..cut.count).try_for_each(|number| {
        let now = split_first(&mut rest, cut.output(pieces, number).bytes());
        cut.fill(pieces, number, from, now)
    })
}

/// The ranges of the input that a range of the output of such pieces needs, as by
/// [`needs`](Pieces::needs).
pub(crate) fn needs_of_pieces(
    pieces: &dyn Pieces,
    range: Range<u64>,
    gap: u64,
    visit: VisitRange<'_>,
) -> Result<(), FillError> {
    let Cut { first, count, .. } = Cut::of(pieces, range);
    (first..first + count).try_for_each(|number| pieces.needs(number, gap, visit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::runs::Axis;
    use crate::source::MemorySource;

    #[test]
    fn every_range_holds_the_bytes_of_the_whole() {
        let runs = Runs { offset: 3, axes: vec![Axis { len: 9, stride: 5 }], run: 2 };
        let source = MemorySource((0..60).collect());
        let bytes = |pieces: &dyn Pieces| {
            let mut all = vec![0; pieces.bytes() as usize];
            for number in 0..pieces.count() {
                let rows = pieces.output(number);
                let out = &mut all[rows.offset as usize..][..rows.bytes() as usize];
                let from = &mut ReadFrom { source: &source, scratch: &mut Vec::new() };
                pieces.fill(number, from, out).unwrap();
            }
            all
        };
        for piece_bytes in [1, 4, 7, 100] {
            let plan = || Plan::new(&runs, 1, piece_bytes);
            let whole = bytes(&plan());
            for (start, end) in (0..=18).flat_map(|start| (start..=18).map(move |end| (start, end)))
            {
                let clipped = Clipped::new(plan(), start..end);
                assert_eq!(bytes(&clipped), &whole[start as usize..end as usize]);
            }
        }
    }
}
