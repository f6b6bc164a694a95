//! Tensors that are taken once: they must be the same in all inputs, byte for byte.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::inputs::Joined;
use super::place::Place;
use crate::error::ContainerError;
use crate::execute::{self, Conversion, ExecuteError, FillError, Progress, Transfer};
use crate::format::Tensor;
use crate::index::resolve::Selection;
use crate::input::{Input, failed_source};
use crate::job::join::fault::JoinFault;
use crate::output::LayoutFault;
use crate::plan::{PIECE_BYTES, Plan};
use crate::region::Region;
use crate::sink::{Sink, SinkError};
use crate::source::{Source, SourceError};

impl Joined<'_> {
    /// How many bytes [`check`](Joined::check) reads of the other inputs.
    ///
    /// # Errors
    /// [`LayoutFault::TooLarge`] for 2^64 bytes or more.
    pub(super) fn rest_bytes(&self) -> Result<u64, ContainerError> {
        let first = &self.first().contents.tensors;
        let rest = self.tensors.iter().filter(|target| target.join.is_none());
        let mut bytes = rest.map(|target| first.at(target.number).bytes());
        let sum = bytes.try_fold(0u64, |sum, bytes| sum.checked_add(bytes));
        let others = self.locations.len() as u64 - 1;
        let all = sum.and_then(|sum| sum.checked_mul(others));
        Ok(all.ok_or(LayoutFault::TooLarge)?)
    }

    /// Make sure that the tensors that are not joined are the same in all inputs, as far as their
    /// bytes are wanted.
    ///
    /// # Errors
    /// [`JoinFault`] for the first input that differs; inputs that cannot be read.
    pub(super) fn check_rest(
        &mut self,
        places: &[Place],
        progress: &Progress,
    ) -> Result<(), ContainerError> {
        let kept = |place: &Place| {
            let target = &self.tensors[place.target];
            target.join.is_none().then(|| (target.number, place.window.clone()))
        };
        let rest: Vec<(usize, Range<u64>)> = places.iter().filter_map(kept).collect();
        if !self.options.open.rest || self.locations.len() == 1 {
            return Ok(());
        }
        self.spool_all(progress)?;
        let first = self.first();
        let source = source_of(first)?;
        for number in 1..self.locations.len() {
            let (input, chosen) = self.lend_checked(number)?;
            let chosen: BTreeSet<usize> = chosen.iter().map(|chosen| chosen.number).collect();
            let others = input.contents.tensors.iter().enumerate();
            let others: Vec<Tensor> =
                others.filter(|(at, _)| !chosen.contains(at)).map(|(_, tensor)| tensor).collect();
            for (ours, window) in &rest {
                let ours = &first.contents.tensors.at(*ours);
                let Some(theirs) = others.iter().find(|tensor| tensor.name == ours.name) else {
                    let name = ours.name.clone().unwrap_or_default();
                    let fault = JoinFault::Missing { number, name };
                    return Err(ContainerError::file(&input.location, fault));
                };
                let (ours, theirs) = ((first, ours, &source), (&*input, theirs));
                let same = self.same(number, ours, theirs, window, progress);
                same.map_err(|error| match &theirs.1.name {
                    Some(name) => error.of_tensor(name),
                    None => error,
                })?;
            }
            if let Some(surplus) = others.iter().find(|tensor| {
                !rest
                    .iter()
                    .any(|(ours, _)| first.contents.tensors.name(*ours) == tensor.name.as_deref())
            }) {
                let name = surplus.name.clone().unwrap_or_default();
                let fault = JoinFault::Surplus { number, name };
                return Err(ContainerError::file(&input.location, fault));
            }
        }
        Ok(())
    }

    /// Compare one tensor of an input with that of the first: a range of its bytes, in the memory
    /// order of the first.
    fn same(
        &self,
        number: usize,
        (first, ours, source): (&Input, &Tensor, &Arc<dyn Source>),
        (input, theirs): (&Input, &Tensor),
        window: &Range<u64>,
        progress: &Progress,
    ) -> Result<(), ContainerError> {
        let failed = |fault: JoinFault| ContainerError::file(&input.location, fault);
        if theirs.dtype != ours.dtype {
            let (dtype, first) = (theirs.dtype.clone(), ours.dtype.clone());
            return Err(failed(JoinFault::DType { number, dtype, first, common: None }));
        }
        if theirs.shape != ours.shape {
            let (shape, first) = (theirs.shape.clone(), ours.shape.clone());
            return Err(failed(JoinFault::Shape { number, shape, first, axis: None }));
        }
        let everything = Selection::whole(&theirs.shape);
        let region = <dyn Region>::of_selection(theirs, &everything, ours.order());
        let region = region.map_err(|cause| input.failed_tensor(theirs, false, cause))?;
        let Some(view) = region.strided() else { return Ok(()) };
        let (mut at, mut plans) = (window.start, Vec::new());
        for view in view.split(window.clone()) {
            plans.push((at, Plan::new(&view, 1, PIECE_BYTES)));
            at += view.bytes();
        }
        let sink = SameSink {
            source: source.as_ref(),
            start: ours.data().start,
            differs: AtomicBool::new(false),
        };
        let bytes = source_of(input)?;
        let conversion = Conversion::None;
        let transfers = plans.iter().map(|(at, plan)| Transfer {
            source: bytes.as_ref(),
            pieces: plan,
            conversion,
            at: *at,
        });
        let transfers: Vec<Transfer<'_>> = transfers.collect();
        let outcome = execute::run(&transfers, &sink, &self.options.workers, progress);
        bytes.verify().map_err(|error| failed_source(&input.location, error))?;
        source.verify().map_err(|error| failed_source(&first.location, error))?;
        outcome.map_err(|error| match error {
            ExecuteError::Fill { error: FillError::Source(error), .. } => {
                failed_source(&input.location, error)
            }
            ExecuteError::Sink(SinkError::Io(error)) => {
                failed_source(&first.location, SourceError::Io(error))
            }
            error => error.into(),
        })?;
        match sink.differs.into_inner() {
            true => Err(failed(JoinFault::Differs { number })),
            false => Ok(()),
        }
    }

    /// Make sure that all that is held can be read in any order, and more than once.
    pub(super) fn spool_all(&mut self, progress: &Progress) -> Result<(), ContainerError> {
        let mut held = self.held.values_mut();
        held.try_for_each(|input| input.spool_watched(progress).map(drop))
    }
}

/// The bytes of an input that is no stream any more.
pub(super) fn source_of(input: &Input) -> Result<Arc<dyn Source>, ContainerError> {
    input.random().ok_or_else(|| failed_source(&input.location, SourceError::Truncated))
}

/// A sink that compares what it is given with a range of a source.
struct SameSink<'a> {
    source: &'a dyn Source,
    /// Where the range begins, in bytes.
    start: u64,
    differs: AtomicBool,
}

impl Sink for SameSink<'_> {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        if self.differs.load(Ordering::Relaxed) {
            return Ok(());
        }
        let start = self.start + offset;
        let mut scratch = Vec::new();
        let window = self.source.window(start..start + bytes.len() as u64, &mut scratch);
        if window.map_err(|error| SinkError::Io(error.into()))? != bytes {
            self.differs.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}
