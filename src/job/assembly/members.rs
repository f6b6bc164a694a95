//! The tensors of the inputs that an output is made of, and the position of each in it.

use std::ops::Range;

use crate::dtype::DType;
use crate::error::Cause;
use crate::job::join::JoinFault;
use crate::output::LayoutFault;
use crate::shape::{Order, normalize_axis};

/// The tensors of an output. Each has one member, or is joined of several; all joined tensors have
/// the same number of members.
///
/// A tensor of an input is known by its number among the tensors of all inputs, one input after the
/// other.
#[derive(Default)]
pub(crate) struct Members {
    /// The number of the first tensor of each input, then the total.
    firsts: Vec<u32>,
    /// The numbers of the members, grouped by tensor, in the order of the output.
    numbers: Vec<u32>,
    /// The numbers of the joined tensors, ascending, and how each is joined.
    joined: Vec<(u32, Option<JoinedTensor>)>,
    /// The number of members of a joined tensor.
    size: usize,
}

impl Members {
    /// Add an input with `tensors` tensors. Returns the number of the first.
    pub(crate) fn add_input(&mut self, tensors: usize) -> Result<u32, LayoutFault> {
        if self.firsts.is_empty() {
            self.firsts.push(0);
        }
        let first = self.total();
        let end = u32::try_from(tensors).ok().and_then(|tensors| first.checked_add(tensors));
        self.firsts.push(end.ok_or(LayoutFault::TooLarge)?);
        Ok(first)
    }

    /// Add a tensor with one member.
    pub(crate) fn push(&mut self, number: u32) {
        self.numbers.push(number);
    }

    /// Add a tensor that is joined of `members`, as many as every joined tensor has. `join` may be
    /// set [later](Members::set_join).
    pub(crate) fn push_joined(&mut self, members: &[u32], join: Option<JoinedTensor>) {
        self.joined.push((self.len() as u32, join));
        self.size = members.len();
        self.numbers.extend(members);
    }

    /// Set how a tensor is joined.
    pub(crate) fn set_join(&mut self, tensor: usize, join: JoinedTensor) {
        if let Ok(at) = self.joined.binary_search_by_key(&(tensor as u32), |(joined, _)| *joined) {
            self.joined[at].1 = Some(join);
        }
    }

    /// The number of tensors of all inputs.
    pub(crate) fn total(&self) -> u32 {
        self.firsts.last().copied().unwrap_or(0)
    }

    /// The number of tensors of the output.
    pub(crate) fn len(&self) -> usize {
        self.numbers.len() - self.joined.len() * self.size + self.joined.len()
    }

    /// The members of a tensor, and how they are joined, if they are.
    pub(crate) fn of(&self, tensor: usize) -> (&[u32], Option<&JoinedTensor>) {
        let before = self.joined.partition_point(|(joined, _)| (*joined as usize) < tensor);
        let start = tensor - before + before * self.size;
        match self.joined.get(before).filter(|(joined, _)| *joined as usize == tensor) {
            Some((_, join)) => (&self.numbers[start..start + self.size], join.as_ref()),
            None => (&self.numbers[start..=start], None),
        }
    }

    pub(crate) fn is_joined(&self, tensor: usize) -> bool {
        self.joined.binary_search_by_key(&(tensor as u32), |(joined, _)| *joined).is_ok()
    }

    /// The numbers of the joined tensors, ascending.
    pub(crate) fn joined(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        self.joined.iter().map(|(tensor, _)| *tensor as usize)
    }

    /// The numbers of the tensors of an input.
    pub(crate) fn of_input(&self, input: usize) -> Range<u32> {
        self.firsts[input]..self.firsts[input + 1]
    }

    /// The input that holds a tensor, and the tensor's number in it.
    pub(crate) fn locate(&self, number: u32) -> (usize, usize) {
        // inputs without tensors begin where the next one does
        let input = self.firsts.partition_point(|&first| first <= number) - 1;
        (input, (number - self.firsts[input]) as usize)
    }
}

/// The kind of axis along which tensors are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    /// An axis of the members (np.concatenate).
    Existing,
    /// A new axis (np.stack).
    New,
}

/// The positions of the members in a joined tensor, one after the other along an axis.
#[derive(Debug)]
pub(crate) struct JoinedTensor {
    /// The shape of the first member after the index, with the new axis of a stack.
    shape: Box<[u64]>,
    along: Along,
    axis: usize,
    /// The end of each member along the joined axis; empty where all are as long as the first.
    ends: Vec<u64>,
    total: u64,
}

impl JoinedTensor {
    /// The joined tensor whose first member has this shape. A negative axis counts from the end.
    pub(crate) fn new(mut shape: Vec<u64>, asked: i64, along: Along) -> Result<Self, JoinFault> {
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
        Ok(JoinedTensor { shape: shape.into(), along, axis, ends: Vec::new(), total })
    }

    /// The length along the joined axis of a member of this shape. `number` is the member's, for
    /// the error.
    pub(crate) fn fit(&self, number: usize, shape: &[u64]) -> Result<u64, JoinFault> {
        let mut first = self.shape.to_vec();
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
        if !fits {
            let shape = shape.to_vec();
            return Err(JoinFault::Shape { number, shape, first, axis, names: None });
        }
        Ok(len)
    }

    /// Add a member of this length after the others.
    pub(crate) fn push(&mut self, len: u64) -> Result<(), Cause> {
        let before = self.total;
        let first = self.shape[self.axis];
        self.total = before.checked_add(len).ok_or(LayoutFault::TooLarge)?;
        if self.ends.is_empty() && len == first && first > 0 {
            return Ok(());
        }
        if self.ends.is_empty() {
            let count = before.checked_div(first).unwrap_or(1);
            self.ends = (1..=count).map(|number| number * first).collect();
        }
        self.ends.push(self.total);
        Ok(())
    }

    /// The first of `count` members whose rows are not whole bytes, as rows of elements smaller than a byte may be, and
    /// the fault.
    pub(crate) fn cut_byte(
        &self,
        count: usize,
        dtype: &DType,
        order: Order,
    ) -> Option<(usize, JoinFault)> {
        let item_bits = dtype.item_bits();
        let (_, inner) = self.rows_and_inner(order);
        let cuts = |number: &usize| {
            let bits = u128::from(self.len(*number)) * u128::from(inner) * u128::from(item_bits);
            bits % 8 != 0
        };
        let number = (0..count).find(cuts)?;
        Some((number, JoinFault::CutsByte { number, item_bits, names: None }))
    }

    /// The positions of a member along the joined axis.
    pub(crate) fn range(&self, number: usize) -> Range<u64> {
        let even = |number: usize| number as u64 * self.shape[self.axis];
        let end = |number: usize| self.ends.get(number).copied().unwrap_or(even(number + 1));
        number.checked_sub(1).map_or(0, end)..end(number)
    }

    pub(crate) fn len(&self, number: usize) -> u64 {
        let Range { start, end } = self.range(number);
        end - start
    }

    pub(crate) fn result(&self) -> Vec<u64> {
        let mut shape = self.shape.to_vec();
        shape[self.axis] = self.total;
        shape
    }

    /// The axes of the result from the axes of a member, which are an axis of its tensor or a new
    /// one each.
    pub(crate) fn axes(&self, mut axes: Vec<Option<usize>>) -> Vec<Option<usize>> {
        if self.along == Along::New {
            axes.insert(self.axis.min(axes.len()), None);
        }
        axes
    }

    /// The number of rows of the result, and the number of elements of a row for each position on the joined axis. There
    /// is a row for each position on the axes before the joined axis, in the order of the output.
    pub(crate) fn rows_and_inner(&self, order: Order) -> (u64, u64) {
        let before = &self.shape[..self.axis];
        let after = &self.shape[self.axis + 1..];
        let (rows, inner) = if order == Order::C { (before, after) } else { (after, before) };
        // a result without elements may have axes of any length
        let product = |lens: &[u64]| lens.iter().fold(1u64, |all, &len| all.saturating_mul(len));
        (product(rows), product(inner))
    }
}
