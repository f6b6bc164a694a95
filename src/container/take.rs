//! What is taken of a tensor: a region in bytes, on its way to its place in an output.

use std::ops::Range;
use std::sync::Arc;

use super::error::{Cause, ContainerError, FileName};
use super::input::{Bytes, Input};
use crate::execute::{
    BadPosition, Clipped, Conversion, ExecuteError, FillError, Pieces, SHARED_BYTES, WINDOW_BYTES,
    Workers,
};
use crate::format::{Fields, Tensor};
use crate::gather::{self, Gather};
use crate::join::{Join, Part};
use crate::plan::{PIECE_BYTES, Plan};
use crate::source::Source;
use crate::view::{Layout, View, Within};

/// How the elements of a tensor lie in its input; where they are several fields, how the items do.
pub fn layout(tensor: &Tensor) -> Layout<'_> {
    let bits = tensor.dtype.item_bits();
    let plain = |bits| Layout::new(&tensor.shape, bits, tensor.order, tensor.offset);
    match &tensor.fields {
        None => plain(bits),
        Some(Fields { item, parts, strides }) => match parts.as_slice() {
            [part] => {
                let within = Within { item: *item, offset: part.start, strides };
                Layout { within: Some(within), ..plain(bits) }
            }
            _ => plain(item.saturating_mul(8)),
        },
    }
}

/// The same for each of several fields that together are the elements.
fn layouts(tensor: &Tensor) -> Vec<Layout<'_>> {
    match &tensor.fields {
        Some(Fields { item, parts, .. }) if parts.len() > 1 => {
            let field = |part: &Range<u64>| {
                let within = Within { item: *item, offset: part.start, strides: &[] };
                let bits = (part.end - part.start).saturating_mul(8);
                let layout = Layout::new(&tensor.shape, bits, tensor.order, tensor.offset);
                Layout { within: Some(within), ..layout }
            };
            parts.iter().map(field).collect()
        }
        _ => vec![layout(tensor)],
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
    Fields(Box<SideBySide>),
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
    /// The file that they lie in, for errors; `None` for indices that were typed.
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

    /// What `make` takes of a tensor or, where its elements are several fields, of each of these, which
    /// then stand side by side. The pieces of all are as many elements.
    pub(super) fn of_fields<E>(
        tensor: &Tensor,
        options: &gather::Options,
        mut make: impl FnMut(&Layout<'_>, &gather::Options) -> Result<Region, E>,
    ) -> Result<Region, E> {
        let layouts = layouts(tensor);
        if let [only] = layouts.as_slice() {
            return make(only, options);
        }
        let bytes = |layout: &Layout<'_>| layout.item_bits / 8;
        let row: u64 = layouts.iter().map(bytes).sum();
        let rows = (options.piece_bytes / row.max(1)).max(1);
        let hold = options.hold / layouts.len() as u64;
        let mut parts = Vec::with_capacity(layouts.len());
        for layout in &layouts {
            let piece_bytes = rows * bytes(layout);
            let part = make(layout, &gather::Options { piece_bytes, hold, ..options.clone() })?;
            parts.push((bytes(layout), part));
        }
        Ok(Region::Fields(Box::new(SideBySide { parts, window: None })))
    }

    /// Check that the index tensors were not cut short while they were read.
    pub(super) fn verify_lists(&self) -> Result<(), ContainerError> {
        GatheredList::verify_all(self.lists())
    }

    /// The error of index tensors that are bad, or could not be read.
    pub(super) fn failed_fill(&self, error: FillError) -> ContainerError {
        GatheredList::failed(self.lists(), error)
    }

    /// What is gathered; of several fields, what is of the first, since the index tensors of all are
    /// the same.
    pub(super) fn gathered(&self) -> Option<&Gathered> {
        match self {
            Region::View(_) => None,
            Region::Gather(gathered) => Some(gathered),
            Region::Fields(fields) => fields.parts.first().and_then(|(_, part)| part.gathered()),
        }
    }

    /// The index tensors.
    pub(super) fn lists(&self) -> &[GatheredList] {
        self.gathered().map_or(&[], |gathered| &gathered.lists)
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
    /// What it is to the executor: no piece divides `unit` bytes; `workers` put the numbers of
    /// lists in order, where they must be. With a length for the first piece, pieces may divide rows.
    ///
    /// # Errors
    /// A short list is read at once: one that cannot be read, or holds a bad position.
    pub(super) fn pieces(
        &self,
        unit: u64,
        first_bytes: Option<u64>,
        workers: &Workers,
    ) -> Result<Box<dyn Pieces + '_>, FillError> {
        let pieces = self.gather.clone().with(&self.sources(), unit, workers)?;
        Ok(match (self.gather.window(), first_bytes) {
            (None, Some(first)) => Box::new(pieces.divided(first, PIECE_BYTES)),
            (None, None) => Box::new(pieces),
            (Some(range), _) => Box::new(Clipped::new(pieces, range)),
        })
    }

    /// The sources of the index tensors.
    pub(super) fn sources(&self) -> Vec<&dyn Source> {
        self.lists.iter().map(|list| list.source.as_ref()).collect()
    }
}

/// Regions of one shape: an element of each, and then the next ones.
#[derive(Clone)]
pub struct SideBySide {
    /// The bytes of an element of each region, and the region.
    parts: Vec<(u64, Region)>,
    /// The bytes that are taken, where it is a part of all.
    window: Option<Range<u64>>,
}

impl SideBySide {
    /// The bytes of the region, or of its window.
    fn bytes(&self) -> u64 {
        match &self.window {
            Some(window) => window.end - window.start,
            None => self.parts.iter().map(|(_, part)| part.bytes()).sum(),
        }
    }

    /// The regions, and the bytes that are taken, where not all are.
    pub(super) fn parts(&self) -> (impl Iterator<Item = &Region>, Option<&Range<u64>>) {
        (self.parts.iter().map(|(_, part)| part), self.window.as_ref())
    }

    /// A range of its bytes.
    pub(super) fn within(&self, window: Range<u64>) -> SideBySide {
        SideBySide { parts: self.parts.clone(), window: Some(window) }
    }

    /// What it is to the executor; as [`Gathered::pieces`].
    ///
    /// # Errors
    /// As [`Gathered::pieces`].
    pub(super) fn pieces(
        &self,
        unit: u64,
        workers: &Workers,
    ) -> Result<Box<dyn Pieces + '_>, FillError> {
        let row = self.parts.iter().map(|(bytes, _)| bytes).sum();
        let rows = |(bytes, part): &(u64, Region)| part.bytes().checked_div(*bytes);
        let rows = self.parts.iter().filter_map(rows).max().unwrap_or(0);
        let mut parts = Vec::with_capacity(self.parts.len());
        for (_, part) in &self.parts {
            parts.push(match part {
                Region::View(view) => Part::of_runs(view.runs().clone(), 1),
                Region::Gather(gathered) => Part::of_pieces(gathered.pieces(1, None, workers)?),
                Region::Fields(fields) => Part::of_pieces(fields.pieces(1, workers)?),
            });
        }
        let join = Join::new(parts, rows, row, unit);
        Ok(match &self.window {
            Some(window) => Box::new(Clipped::new(join, window.clone())),
            None => Box::new(join),
        })
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
    /// range of bytes in the input and in the output. A range that stays alone, of which there may be
    /// hundreds of thousands, keeps no axes.
    pub fn push(self, takes: &mut Vec<Take>) {
        let joined = takes.last_mut().and_then(|last| Some((last.followed_by(&self)?, last)));
        match (joined, &self.region) {
            (Some((region, last)), _) => last.region = region,
            (None, Region::View(view)) if self.conversion == Conversion::None => {
                let region = Region::View(view.coalesced());
                takes.push(Take { region, ..self });
            }
            (None, _) => takes.push(self),
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

    /// Whether its bytes may be shared with the file that they are in.
    pub(super) fn may_share(&self, input: &Input) -> bool {
        let file = |range: &Range<u64>| match &input.bytes {
            Bytes::Random(source) => source.file(range.clone()).is_some(),
            Bytes::Stream(_) => false,
        };
        self.range().is_some_and(|range| file(&range))
    }

    /// The range of the input that goes to the output as it is, where it is one and long enough to
    /// be shared.
    pub(super) fn range(&self) -> Option<Range<u64>> {
        let Region::View(view) = &self.region else { return None };
        let long = |range: &Range<u64>| range.end - range.start >= SHARED_BYTES;
        view.range().filter(long).filter(|_| self.conversion == Conversion::None)
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
