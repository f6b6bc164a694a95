//! A list whose positions do not decrease, along one axis of the params.

use super::Gather;
use super::positions::{DROPPED, TupleReader, Tuples};
use super::rows::OutputAxis;
use crate::execute::Workers;
use crate::runs::{Axis, Runs};
use crate::source::Source;
use crate::view::Layout;

/// The axes of a gather with one list, which one axis of the result goes along.
#[derive(Clone, Debug)]
pub(super) struct ListedAxis {
    /// The items of the params: each axis with its stride. The list's axis has as many items as the list.
    items: Runs,
    axis: usize,
}

/// A gather by one list whose positions do not decrease.
pub(crate) struct SortedList {
    /// The items of the params from the first listed position to the last.
    pub(crate) between: Runs,
    /// The axis of the items that the list goes along.
    pub(crate) axis: usize,
    /// The listed items along this axis.
    pub(crate) listed: Vec<u64>,
}

/// The longest list that is looked at.
const MOST_LISTED: u64 = 1 << 20;

impl ListedAxis {
    /// The axes of a result in memory. `None` unless exactly one of them goes along the only list, and all steps are whole
    /// bytes.
    pub(super) fn of(
        params: &Layout<'_>,
        first: i64,
        axes: &[OutputAxis],
        lists: &[Tuples],
    ) -> Option<ListedAxis> {
        let [list] = lists else { return None };
        let [indexed] = list.indexed() else { return None };
        let mut along = (0..axes.len()).filter(|&axis| axes[axis].is_indexed());
        let (Some(axis), None) = (along.next(), along.next()) else { return None };
        let is_list = axes[axis].stride == 0 && axes[axis].len == list.count();
        // a mask of several axes may be one of positions along all of them
        let mut of_params = params.shape.iter().zip(params.strides().ok()?);
        let is_axis = of_params.any(|(len, stride)| {
            *len == indexed.len && params.bytes(*stride) == Ok(indexed.stride)
        });
        if !is_list || !is_axis || indexed.stride <= 0 || list.count() > MOST_LISTED {
            return None;
        }
        let offset = params.start().ok()? + params.bytes(first).ok()?;
        let strides = axes.iter().map(|axis| params.bytes(axis.stride).ok());
        let mut strides = strides.collect::<Option<Vec<i64>>>()?;
        strides[axis] = indexed.stride;
        let axes = axes.iter().zip(strides).map(|(axis, stride)| Axis { len: axis.len, stride });
        let items = Runs {
            offset,
            axes: axes.collect(),
            run: params.bytes(params.item_units() as i64).ok()? as u64,
        };
        Some(ListedAxis { items, axis })
    }
}

impl Gather {
    /// The only list, if its positions do not decrease; `sources` are those of the lists. `None` also if a position
    /// is out of range: gathering finds the error.
    pub(crate) fn sorted_list(
        &self,
        sources: &[&dyn Source],
        workers: &Workers,
    ) -> Option<SortedList> {
        let listed = self.listed.clone().filter(|_| self.window.is_none())?;
        let ListedAxis { items: mut between, axis } = listed;
        let Axis { len, stride } = between.axes[axis];
        let mut listed = vec![0; len as usize];
        let list = self.rows.lists.first()?.tuples.clone();
        let reader = TupleReader::new(0, list, *sources.first()?, workers).ok()?;
        reader.read(0, &mut listed).ok()?;
        let (first, last) = (*listed.first()?, *listed.last()?);
        if last == DROPPED || !listed.is_sorted() {
            return None;
        }
        listed.iter_mut().for_each(|offset| *offset = (*offset - first) / stride.unsigned_abs());
        between.offset += first as i64;
        between.axes[axis].len = listed.last()? + 1;
        Some(SortedList { between, axis, listed })
    }
}
