//! Regions that are put in order in scratch first, as no view covers their elements: of a tensor in
//! another shape than its strides allow, or of lists or chunks whose axes are split.

use std::ops::Range;
use std::sync::Arc;

use super::indices::Gathered;
use super::{ReadBy, Region, Route};
use crate::error::{Cause, Error};
use crate::execute::ExecuteError;
use crate::gather::GatherError;
use crate::index::resolve::Selection;
use crate::shape::{MemoryAxes, Order, Permutation};
use crate::tensor::TensorInfo;
use crate::view::{Layout, View};

pub(super) struct Ordered {
    /// The regions that are put in scratch, one after the other.
    pub(super) first: Vec<Arc<dyn Region>>,
    /// The region of their bytes, which it counts from 0 on.
    pub(super) then: Arc<dyn Region>,
}

impl Ordered {
    pub(super) fn new(first: Arc<dyn Region>, then: Arc<dyn Region>) -> Ordered {
        Ordered { first: vec![first], then }.cut()
    }

    /// The region that `take` makes of a tensor for `axes` or, if these have no strides, for all
    /// axes of the lengths `shape`, whose elements are then put in order.
    pub(super) fn unless_strided(
        tensor: &TensorInfo,
        shape: &[u64],
        axes: &MemoryAxes,
        take: impl Fn(&MemoryAxes) -> Result<Arc<dyn Region>, Cause>,
    ) -> Result<Arc<dyn Region>, Cause> {
        let is_chunked = tensor.chunk_shape().is_some();
        let direct = match axes.splits() {
            Some(_) if is_chunked => Err(GatherError::NoStrides.into()),
            _ => take(axes),
        };
        match direct {
            Err(cause) if matches!(cause.downcast_ref(), Some(GatherError::NoStrides)) => {
                let region = take(&Permutation::identity(shape.len()).into())?;
                let layout = Layout::new(shape, tensor.dtype.item_bits(), Order::C, 0);
                let view = View::arranged(&layout, &Selection::whole(shape), axes)?;
                Ok(Arc::new(Ordered::new(region, Arc::new(view))))
            }
            direct => direct,
        }
    }

    /// The region without the elements before and after those taken.
    fn cut(mut self) -> Ordered {
        let Some(view) = self.then.strided() else { return self };
        if view.bytes() == 0 {
            // except for lists, which are checked
            self.first.retain(|region| region.gathered().is_some());
            return self;
        }
        let bounds = view.runs().file_bounds();
        let then = Arc::new(view.clone().after(bounds.start));
        let mut first = Vec::new();
        let mut start = 0;
        for region in &self.first {
            let cut = |at: u64| at.saturating_sub(start).min(region.bytes());
            let range = cut(bounds.start)..cut(bounds.end);
            if range == (0..region.bytes()) {
                first.push(Arc::clone(region));
            } else if !range.is_empty() {
                first.extend(region.within(range));
            }
            start += region.bytes();
        }
        Ordered { first, then }
    }
}

impl Region for Ordered {
    fn bytes(&self) -> u64 {
        self.then.bytes()
    }

    fn route<'a>(&'a self, by: &ReadBy<'_>) -> Result<Route<'a>, ExecuteError> {
        Route::of_ordered(self, by)
    }

    fn within(&self, range: Range<u64>) -> Vec<Arc<dyn Region>> {
        let parts = self.then.within(range).into_iter();
        let part =
            |then| Arc::new(Ordered { first: self.first.clone(), then }.cut()) as Arc<dyn Region>;
        parts.map(part).collect()
    }

    fn identify(&self, add: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        add(b"in order");
        self.first.iter().try_for_each(|region| region.identify(add))?;
        self.then.identify(add)
    }

    fn ordered_first(&self) -> &[Arc<dyn Region>] {
        &self.first
    }

    fn gathered(&self) -> Option<&Gathered> {
        self.then.gathered().or_else(|| self.first.iter().find_map(|region| region.gathered()))
    }
}
