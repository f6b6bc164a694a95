//! A part of a selection along one axis of its result.

use super::resolve::{AxisSelection, Selection};

impl Selection {
    /// The positions `start` to `start + len` of this selection's axis `axis`, counted in its
    /// result; `len` must be more than 0. `None` for an axis that the result does not have, for
    /// positions past its end, and for a selection with a list.
    ///
    /// ```
    /// use tslice::index::{numpy, resolve::{AxisSelection, resolve}};
    /// let expr = numpy::parse("2, ::-2").unwrap().expr;
    /// let part = resolve(&expr, &[3, 9], false).unwrap().narrowed(0, 1, 3).unwrap();
    /// assert_eq!(part.shape(), [3]);
    /// assert_eq!(part.axes[1], AxisSelection::Range { axis: 1, start: 6, step: -2, len: 3 });
    /// ```
    pub fn narrowed(&self, axis: usize, start: u64, len: u64) -> Option<Selection> {
        if !self.lists.is_empty() {
            return None;
        }
        let mut narrowed = self.clone();
        let mut at = 0;
        for selected in &mut narrowed.axes {
            match selected {
                AxisSelection::Index { .. } | AxisSelection::List { .. } => continue,
                AxisSelection::NewAxis if at == axis && (start, len) != (0, 1) => return None,
                AxisSelection::Range { start: first, step, len: all, .. } if at == axis => {
                    if start.checked_add(len)? > *all {
                        return None;
                    }
                    // each position lies inside the axis, so below 2^63
                    *first = first.checked_add_signed(*step * start as i64)?;
                    *all = len;
                    if len == 1 {
                        *step = 1;
                    }
                }
                AxisSelection::NewAxis | AxisSelection::Range { .. } => {}
            }
            at += 1;
        }
        (axis < at).then_some(narrowed)
    }
}
