//! A tensor of the output of a join: its shape, and where each input lies in it.

use std::ops::Range;

use super::fault::JoinFault;
use crate::error::Cause;
use crate::output::LayoutFault;
use crate::shape::{Order, normalize_axis};

/// The kind of axis along which tensors are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    /// One that they have (np.concatenate).
    Existing,
    /// A new one (np.stack).
    New,
}

/// A tensor that is joined.
pub(super) struct JoinedTensor {
    /// The shape of the first input's, after the index, and with the new axis of a stack.
    pub(super) shape: Vec<u64>,
    /// The kind of axis along which it is joined, and its number.
    along: Along,
    axis: usize,
    /// Where each input ends along that axis; empty where all have length 1.
    ends: Vec<u64>,
    /// The length of the result.
    total: u64,
}

impl JoinedTensor {
    /// The tensor whose first part has this shape, joined along an axis of which a negative one counts
    /// from the end.
    pub(super) fn new(mut shape: Vec<u64>, asked: i64, along: Along) -> Result<Self, JoinFault> {
        let ndim = match along {
            Along::Existing if shape.is_empty() => return Err(JoinFault::NoAxes),
            Along::Existing => shape.len(),
            Along::New => shape.len() + 1,
        };
        let axis = normalize_axis(asked, ndim).ok_or(JoinFault::Axis { axis: asked, ndim })?;
        if along == Along::New {
            shape.insert(axis, 1);
        }
        let total = shape[axis];
        let ends = if total == 1 { vec![] } else { vec![total] };
        Ok(JoinedTensor { shape, along, axis, ends, total })
    }

    /// The length along the joined axis of a part of this shape, from input `number`.
    pub(super) fn fit(&self, number: usize, shape: &[u64]) -> Result<u64, JoinFault> {
        let mut first = self.shape.clone();
        let (fits, len, axis) = match self.along {
            Along::New => {
                first.remove(self.axis);
                (shape == first, 1, None)
            }
            Along::Existing => {
                let same = |(axis, (a, b)): (usize, (&u64, &u64))| axis == self.axis || a == b;
                let fits =
                    shape.len() == first.len() && shape.iter().zip(&first).enumerate().all(same);
                (fits, shape.get(self.axis).copied().unwrap_or(0), Some(self.axis))
            }
        };
        match fits {
            true => Ok(len),
            false => Err(JoinFault::Shape { number, shape: shape.to_vec(), first, axis }),
        }
    }

    /// Add a part of this length behind the others.
    pub(super) fn push(&mut self, len: u64) -> Result<(), Cause> {
        let before = self.total;
        self.total = before.checked_add(len).ok_or(LayoutFault::TooLarge)?;
        if self.ends.is_empty() && len == 1 {
            return Ok(());
        }
        if self.ends.is_empty() {
            self.ends = (1..=before).collect();
        }
        self.ends.push(self.total);
        Ok(())
    }

    /// Of `count` parts, the first whose rows are not whole bytes, where elements are smaller.
    pub(super) fn cut_byte(&self, count: usize, item_bits: u64, order: Order) -> Option<usize> {
        let (_, inner) = self.rows_and_inner(order);
        let cuts = |number: &usize| {
            let bits = u128::from(self.len(*number)) * u128::from(inner) * u128::from(item_bits);
            bits % 8 != 0
        };
        (0..count).find(cuts)
    }

    /// Where an input lies along the joined axis of the result.
    pub(super) fn range(&self, number: usize) -> Range<u64> {
        let start = match number.checked_sub(1) {
            Some(before) => self.ends.get(before).copied().unwrap_or(number as u64),
            None => 0,
        };
        start..self.ends.get(number).copied().unwrap_or(start + 1)
    }

    /// The length of an input along the joined axis.
    pub(super) fn len(&self, number: usize) -> u64 {
        let Range { start, end } = self.range(number);
        end - start
    }

    /// The shape of the result.
    pub(super) fn result(&self) -> Vec<u64> {
        let mut shape = self.shape.clone();
        shape[self.axis] = self.total;
        shape
    }

    /// The axes of the result by those of an input, of which each is one of a tensor or a new one.
    pub(super) fn axes(&self, mut axes: Vec<Option<usize>>) -> Vec<Option<usize>> {
        if self.along == Along::New {
            axes.insert(self.axis.min(axes.len()), None);
        }
        axes
    }

    /// The number of rows of the result, one for each position on the axes before the joined one in
    /// the order of the output; and how many elements each position on the joined axis has in a row.
    pub(super) fn rows_and_inner(&self, order: Order) -> (u64, u64) {
        let (before, after) = (&self.shape[..self.axis], &self.shape[self.axis + 1..]);
        let (rows, inner) = if order == Order::C { (before, after) } else { (after, before) };
        // a result without elements may have axes of any length
        let product = |lens: &[u64]| lens.iter().fold(1u64, |all, &len| all.saturating_mul(len));
        (product(rows), product(inner))
    }
}
