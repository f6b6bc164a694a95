//! What later pieces will need of the input, so that a disk can begin to bring it.
//!
//! Ranges of the output need the input roughly in order: some megabytes ahead are enough. Boxes
//! of a relayout need short stretches from all over it; those of many neighbouring boxes, a
//! *panel*, are long stretches when they are asked for together.

use super::cut::Cut;
use super::{Piece, Plan};
use crate::view::{Axis, coalesce, reach};

/// Stretches of the input: runs of `run` bytes along `axes` from `input` on, all ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// Where the first run begins, in bytes.
    pub input: u64,
    /// The axes along which runs repeat, outermost first.
    pub axes: Vec<Axis>,
    /// Bytes a run.
    pub run: u64,
}

/// How far before its use a range is asked for, in bytes of the input.
const AHEAD_BYTES: u64 = 32 << 20;

/// The longest range to ask for at once; what is spread wider is left to the system's own guess.
const RANGE_BYTES: u64 = 32 << 20;

/// The most of the input that a panel may need, in bytes.
pub(super) const PANEL_BYTES: u64 = 32 << 20;

/// Stretches nearer than this are asked for with the gap between them, in bytes.
const NEAR_BYTES: u64 = 16 << 10;

impl Plan {
    /// What to ask for when piece `number` begins: what a later piece, or the next panel, needs.
    pub fn ahead(&self, number: u64) -> Option<Ahead> {
        match &self.cut {
            Cut::Nothing => None,
            Cut::Ranges(_) => {
                let bytes = self.span(number).run.max(1);
                let later = number.saturating_add((AHEAD_BYTES / bytes).max(1));
                (later < self.pieces()).then(|| self.span(later)).filter(|it| it.run <= RANGE_BYTES)
            }
            Cut::Boxes(boxes) => {
                let (panel, _) = boxes.panel(&self.axes, self.run, number)?;
                self.panel(number + panel)
            }
        }
    }

    /// What to ask for before the first piece.
    pub fn at_first(&self) -> Option<Ahead> {
        match &self.cut {
            Cut::Nothing => None,
            Cut::Ranges(_) => {
                let Ahead { input, run, .. } = self.span(0);
                let last = (AHEAD_BYTES / run.max(1)).min(self.pieces() - 1);
                let later = self.span(last);
                let (start, end) =
                    (input.min(later.input), (input + run).max(later.input + later.run));
                let whole = Ahead { input: start, axes: Vec::new(), run: end - start };
                (whole.run <= 2 * AHEAD_BYTES).then_some(whole)
            }
            Cut::Boxes(_) => self.panel(0),
        }
    }

    /// The reach of a piece.
    fn span(&self, number: u64) -> Ahead {
        let Piece { input, axes, run, .. } = self.piece(number);
        let reach = reach(&axes, run);
        let start = input.saturating_add_signed(reach.start);
        Ahead { input: start, axes: Vec::new(), run: (reach.end - reach.start) as u64 }
    }

    /// The stretches that a panel needs, which begins with that piece.
    fn panel(&self, number: u64) -> Option<Ahead> {
        let Cut::Boxes(boxes) = &self.cut else { return None };
        if number >= self.pieces() {
            return None;
        }
        let (_, mut axes) = boxes.panel(&self.axes, self.run, number)?;
        let mut input = self.piece(number).input as i64;
        for axis in &mut axes {
            input += axis.stride.min(0) * (axis.len as i64 - 1);
            axis.stride = axis.stride.abs();
        }
        axes.sort_by_key(|axis| std::cmp::Reverse(axis.stride));
        let (mut axes, mut run) = coalesce(&axes, self.run);
        while let Some(near) = axes.pop_if(|axis| axis.stride as u64 <= run + NEAR_BYTES) {
            run += near.stride as u64 * (near.len - 1);
        }
        Some(Ahead { input: input as u64, axes, run })
    }
}
