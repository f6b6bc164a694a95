//! Tensors that are taken once: they must be the same in all inputs, byte for byte.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::JoinFault;
use super::inputs::Joined;
use super::place::Place;
use crate::error::Error;
use crate::execute::{Conversion, Progress};
use crate::format::TensorInfo;
use crate::index::resolve::Selection;
use crate::input::Input;
use crate::job::compare::Counterpart;
use crate::job::copy::Writing;
use crate::job::inputs::source_of;
use crate::output::LayoutFault;
use crate::region::{Region, RegionReader, Take};
use crate::sink::{Sink, SinkError};

impl Joined<'_> {
    /// How many bytes [`check`](Joined::check) reads of the other inputs.
    pub(super) fn rest_bytes(&self) -> Result<u64, Error> {
        let first = &self.first().contents.tensors;
        let rest = self.tensors.iter().filter(|target| target.join.is_none());
        let mut bytes = rest.map(|target| first.at(target.number).bytes());
        let sum = bytes.try_fold(0u64, |sum, bytes| sum.checked_add(bytes));
        let others = self.inputs.locations.len() as u64 - 1;
        let all = sum.and_then(|sum| sum.checked_mul(others));
        Ok(all.ok_or(LayoutFault::TooLarge)?)
    }

    /// Make sure that the tensors that are not joined are the same in all inputs, as far as their
    /// bytes are wanted.
    pub(super) fn check_rest(
        &mut self,
        places: &[Place],
        progress: &Progress,
    ) -> Result<(), Error> {
        let kept = |place: &Place| {
            let target = &self.tensors[place.target];
            target.join.is_none().then(|| (target.number, place.window.clone()))
        };
        let rest: Vec<(usize, Range<u64>)> = places.iter().filter_map(kept).collect();
        if !self.options.open.rest || self.inputs.locations.len() == 1 {
            return Ok(());
        }
        self.inputs.spool_all(progress)?;
        let first = self.first();
        for number in 1..self.inputs.locations.len() {
            let (input, chosen) = self.lend_checked(number)?;
            if input.is_nameless() {
                // it holds nothing else
                continue;
            }
            let mut apart: BTreeSet<usize> = chosen.iter().map(|chosen| chosen.number).collect();
            apart.extend(input.excluded()?);
            let others = input.contents.tensors.iter().enumerate();
            let others: Vec<TensorInfo> =
                others.filter(|(at, _)| !apart.contains(at)).map(|(_, tensor)| tensor).collect();
            for (ours, window) in &rest {
                let ours = &first.contents.tensors.at(*ours);
                let Some(theirs) = others.iter().find(|tensor| tensor.name == ours.name) else {
                    let name = ours.name.clone().unwrap_or_default();
                    let fault = JoinFault::Missing { number, name };
                    return Err(Error::file(&input.location, fault));
                };
                let same = self.same(number, ours, &input, theirs, window, progress);
                same.map_err(|error| error.of_tensor(theirs.name.as_deref(), true))?;
            }
            let names = || rest.iter().map(|(ours, _)| first.contents.tensors.name(*ours));
            let is_ours = |tensor: &TensorInfo| names().any(|name| name == tensor.name.as_deref());
            if let Some(surplus) = others.iter().find(|tensor| !is_ours(tensor)) {
                let name = surplus.name.clone().unwrap_or_default();
                let fault = JoinFault::Surplus { number, name };
                return Err(Error::file(&input.location, fault));
            }
        }
        Ok(())
    }

    /// Compare one tensor of an input with that of the first: a range of its bytes, in the memory
    /// order of the first.
    fn same(
        &self,
        number: usize,
        ours: &TensorInfo,
        input: &Input,
        theirs: &TensorInfo,
        window: &Range<u64>,
        progress: &Progress,
    ) -> Result<(), Error> {
        let first = self.first();
        let source = source_of(self.first())?;
        let failed = |fault: JoinFault| Error::file(&input.location, fault);
        if theirs.dtype != ours.dtype {
            let dtype = theirs.dtype.clone();
            let first = ours.dtype.clone();
            let fault = JoinFault::DType { number, dtype, first, common: None, names: None };
            return Err(failed(fault));
        }
        if theirs.shape != ours.shape {
            let shape = theirs.shape.clone();
            let first = ours.shape.clone();
            let fault = JoinFault::Shape { number, shape, first, axis: None, names: None };
            return Err(failed(fault));
        }
        let everything = Selection::whole(&theirs.shape);
        let region = |input: &Input, tensor: &TensorInfo| {
            let region = <dyn Region>::of_selection(tensor, &everything, ours.order());
            region.map_err(|cause| input.failed_tensor(tensor, false, cause))
        };
        let expected = region(first, ours)?;
        let take = Take::new(theirs.part(), region(input, theirs)?, Conversion::None, 0);
        let takes = take.window(window.clone(), window.start);
        let expected = RegionReader::of(&first.location, Arc::clone(&source), expected.as_ref())?;
        let counterpart = Counterpart::default();
        let differs = AtomicBool::new(false);
        let sink = SameSink { expected: &expected, counterpart, differs };
        let bytes = source_of(input)?;
        let job = Writing::into_sink(&sink, &takes, &self.options.workers, progress)?;
        let outcome = job.run(job.sink(), input, bytes.as_ref(), &takes);
        drop(job);
        sink.counterpart.outcome(outcome)?;
        source.verify().map_err(|error| Error::file(&first.location, error))?;
        if sink.differs.into_inner() {
            return Err(failed(JoinFault::Differs { number }));
        }
        Ok(())
    }
}

/// A sink that compares what it is given with what is expected there.
struct SameSink<'a> {
    expected: &'a RegionReader<'a>,
    counterpart: Counterpart,
    differs: AtomicBool,
}

impl Sink for SameSink<'_> {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        if self.differs.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.counterpart.read(self.expected, offset, bytes.len(), |there| {
            if there != bytes {
                self.differs.store(true, Ordering::Relaxed);
            }
        })
    }
}
