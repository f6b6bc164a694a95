//! What is taken of a tensor: a region in bytes, on its way to its place in an output.

use std::ops::Range;
use std::sync::Arc;

use super::error::{Cause, ContainerError, FileName};
use crate::execute::{
    BadPosition, Clipped, Conversion, ExecuteError, FillError, Pieces, WINDOW_BYTES,
};
use crate::format::Tensor;
use crate::gather::Gather;
use crate::join::{Join, Part};
use crate::plan::Plan;
use crate::source::Source;
use crate::view::{Layout, View};

/// How the elements of a tensor lie in its input.
pub fn layout(tensor: &Tensor) -> Layout<'_> {
    Layout {
        shape: &tensor.shape,
        item_bits: tensor.dtype.item_bits(),
        order: tensor.order,
        offset: tensor.offset,
    }
}

/// Bytes of one tensor, in the order of the output.
#[derive(Clone)]
pub enum Region {
    /// Ranges of positions.
    View(View),
    /// Positions that an index tensor names.
    Gather(Box<Gathered>),
    /// Fields side by side.
    Fields(SideBySide),
}

/// Positions that index tensors name.
#[derive(Clone)]
pub struct Gathered {
    /// What to gather.
    pub gather: Gather,
    /// The index tensors.
    pub lists: Vec<GatheredList>,
}

/// The bytes of an index tensor.
#[derive(Clone)]
pub struct GatheredList {
    /// The bytes.
    pub source: Arc<dyn Source>,
    /// Their file, for errors; `None` for indices that were typed.
    pub file: Option<FileName>,
}

impl Region {
    /// The bytes of the region.
    pub fn bytes(&self) -> u64 {
        match self {
            Region::View(view) => view.bytes(),
            Region::Gather(gathered) => gathered.gather.bytes(),
            Region::Fields(fields) => fields.bytes(),
        }
    }

    /// Check that the index tensors were not cut short while they were read.
    pub(super) fn verify_lists(&self) -> Result<(), ContainerError> {
        GatheredList::verify_all(self.lists())
    }

    /// The error of index tensors that are bad, or could not be read.
    pub(super) fn failed_fill(&self, error: FillError) -> ContainerError {
        GatheredList::failed(self.lists(), error)
    }

    /// The index tensors.
    fn lists(&self) -> &[GatheredList] {
        match self {
            Region::Gather(gathered) => &gathered.lists,
            Region::View(_) | Region::Fields(_) => &[],
        }
    }
}

impl GatheredList {
    /// Check that none of these was cut short while it was read.
    fn verify_all(lists: &[GatheredList]) -> Result<(), ContainerError> {
        lists.iter().try_for_each(|list| list.source.verify().map_err(|error| list.error(error)))
    }

    /// The error of index tensors that are bad, or could not be read.
    pub fn failed(lists: &[GatheredList], error: FillError) -> ContainerError {
        // a file that was cut short is the reason for whatever else is wrong with it
        if let Err(error) = GatheredList::verify_all(lists) {
            return error;
        }
        let of = |list: usize, cause: Cause| match lists.get(list) {
            Some(list) => list.error(cause),
            None => cause.into(),
        };
        match error {
            FillError::Indices { list, error } => of(list, error.into()),
            FillError::Source(error) => of(0, error.into()),
            error @ FillError::Position(BadPosition::Listed { list, .. }) => {
                of(list, ExecuteError::Fill { transfer: 0, error }.into())
            }
            error => ExecuteError::Fill { transfer: 0, error }.into(),
        }
    }

    /// An error that is about it.
    fn error(&self, cause: impl Into<Cause>) -> ContainerError {
        match &self.file {
            Some(file) => ContainerError::file(file.clone(), cause),
            None => cause.into().into(),
        }
    }
}

impl Gathered {
    /// The sources of the index tensors.
    pub(super) fn sources(&self) -> Vec<&dyn Source> {
        self.lists.iter().map(|list| list.source.as_ref()).collect()
    }
}

/// Views of one shape: an item of each, and then the next ones.
#[derive(Clone, Debug)]
pub struct SideBySide {
    views: Vec<View>,
    /// The bytes that are taken, where it is a part of all.
    window: Option<Range<u64>>,
}

impl SideBySide {
    /// All items of the views, which have one shape.
    pub(super) fn new(views: Vec<View>) -> SideBySide {
        SideBySide { views, window: None }
    }

    /// The bytes of the region, or of its window.
    fn bytes(&self) -> u64 {
        match &self.window {
            Some(window) => window.end - window.start,
            None => self.views.iter().map(View::bytes).sum(),
        }
    }

    /// A range of its bytes.
    pub(super) fn within(&self, window: Range<u64>) -> SideBySide {
        SideBySide { views: self.views.clone(), window: Some(window) }
    }

    /// What it is to the executor.
    pub(super) fn pieces(&self) -> Box<dyn Pieces> {
        let items = |view: &View| view.axes().iter().map(|axis| axis.len).product();
        let items = self.views.first().map_or(0, items);
        let parts = self.views.iter().map(|view| Part { runs: view.runs().clone(), swap_width: 1 });
        let row = self.views.iter().map(View::itemsize).sum();
        let join = Join::new(parts.collect(), items, row, 1);
        match &self.window {
            Some(window) => Box::new(Clipped::new(join, window.clone())),
            None => Box::new(join),
        }
    }
}

/// A region on its way to its place in the output.
pub struct Take {
    /// The part of the input that it is taken of.
    pub part: usize,
    /// What is taken.
    pub region: Region,
    /// What elements go through on the way.
    pub conversion: Conversion,
    /// Where it goes in the output, in bytes.
    pub at: u64,
}

impl Take {
    /// Add what is taken of the next tensor to `takes`: to the last of them, where both are one
    /// range of bytes in the input and in the output.
    pub fn push(self, takes: &mut Vec<Take>) {
        let joined = takes.last_mut().and_then(|last| Some((last.followed_by(&self)?, last)));
        match joined {
            Some((region, last)) => last.region = region,
            None => takes.push(self),
        }
    }

    /// What this and the next one take, where that is one range.
    fn followed_by(&self, next: &Take) -> Option<Region> {
        let plain = |take: &Take| take.conversion == Conversion::None;
        if !plain(self) || !plain(next) || self.part != next.part {
            return None;
        }
        let (Region::View(first), Region::View(second)) = (&self.region, &next.region) else {
            return None;
        };
        match self.at.checked_add(first.bytes()) {
            Some(end) if end == next.at && second.bytes() == 0 => Some(self.region.clone()),
            Some(end) if end == next.at => first.followed_by(second).map(Region::View),
            _ => None,
        }
    }

    /// How many bytes belong together.
    pub(super) fn unit(&self) -> u64 {
        self.conversion.unit()
    }

    /// How it is read in one pass of a stream that begins at position `start`, where it can be.
    pub(super) fn forward(&self, start: u64) -> Option<Plan> {
        match &self.region {
            Region::View(view) => {
                let window = WINDOW_BYTES / self.conversion.expansion();
                Plan::forward(&view.clone().after(start), self.unit(), window)
            }
            Region::Gather(_) | Region::Fields(_) => None,
        }
    }
}
