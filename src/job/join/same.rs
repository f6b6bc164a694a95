//! Tensors that are taken once: they must be the same in all inputs, byte for byte.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::JoinFault;
use super::inputs::Joined;
use super::place::Place;
use crate::error::Error;
use crate::execute::{Conversion, Progress};
use crate::index::resolve::Selection;
use crate::input::Input;
use crate::job::compare::Counterpart;
use crate::job::copy::scan;
use crate::job::inputs::source_of;
use crate::output::LayoutFault;
use crate::region::{Region, RegionReader, Take};
use crate::sink::WriteOrder;
use crate::tensor::TensorInfo;

/// As many tensors as are compared in one run.
const TOGETHER: usize = 4096;

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
        for number in 1..self.inputs.locations.len() {
            let (input, chosen) = self.lend_checked(number)?;
            if input.is_nameless() {
                // it holds nothing else
                continue;
            }
            let mut apart: BTreeSet<usize> = chosen.iter().map(|chosen| chosen.number).collect();
            apart.extend(input.excluded()?);
            let all = 0..input.contents.tensors.len();
            apart.extend(all.clone().filter(|number| self.is_lacking(&input, *number)));
            for rest in rest.chunks(TOGETHER) {
                let counterpart = |(ours, window): &(usize, Range<u64>)| {
                    self.counterpart(number, *ours, window.clone(), &input, &apart)
                };
                let pairs = rest.iter().map(counterpart).collect::<Result<Vec<_>, Error>>()?;
                self.check_same(number, &input, &pairs, progress)?;
            }
            let is_surplus =
                |number: &usize| !apart.contains(number) && !self.is_kept(&input, *number);
            if let Some(surplus) = all.clone().find(is_surplus) {
                let name = input.contents.tensors.name(surplus).unwrap_or_default().to_owned();
                let fault = JoinFault::Surplus { number, name };
                return Err(Error::file(&input.location, fault));
            }
        }
        Ok(())
    }

    /// Whether a tensor of an input has the name of one that is taken once.
    fn is_kept(&self, input: &Input, number: usize) -> bool {
        let ours = self.counterpart_of(input, number);
        ours.is_some_and(|target| target.join.is_none())
    }

    /// Find the tensor of an input that must be the same as tensor `ours` of the first, which is not among those
    /// that stand `apart`.
    fn counterpart(
        &self,
        number: usize,
        ours: usize,
        window: Range<u64>,
        input: &Input,
        apart: &BTreeSet<usize>,
    ) -> Result<Pair, Error> {
        let failed = |fault: JoinFault| Error::file(&input.location, fault);
        let first = self.first();
        let ours = &first.contents.tensors.at(ours);
        let name = ours.name.as_deref().unwrap_or_default();
        let found = input.contents.tensors.number_of(name).filter(|found| !apart.contains(found));
        let missing = || JoinFault::Missing { number, name: name.to_owned() };
        let theirs = &input.contents.tensors.at(found.ok_or_else(|| failed(missing()))?);
        let failed = |fault| failed(fault).of_tensor(Some(name), true);
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
        let everything = Selection::whole(&ours.shape);
        let region = |input: &Input, tensor: &TensorInfo| {
            let region = <dyn Region>::of_selection(tensor, &everything, ours.order());
            region.map_err(|cause| input.failed_tensor(tensor, true, cause))
        };
        let theirs = Take::new(theirs.part(), region(input, theirs)?, Conversion::None, 0);
        Ok(Pair { ours: region(first, ours)?, theirs, window, name: name.to_owned() })
    }

    /// Compare tensors of an input with those of the first: a range of the bytes of each, in the memory order of
    /// the first.
    fn check_same(
        &self,
        number: usize,
        input: &Input,
        pairs: &[Pair],
        progress: &Progress,
    ) -> Result<(), Error> {
        let first = self.first();
        let source = source_of(first)?;
        let workers = &self.options.workers;
        let mut expected = Vec::with_capacity(pairs.len());
        let mut takes = Vec::with_capacity(pairs.len());
        let mut at = 0;
        for Pair { ours, theirs, window, .. } in pairs {
            let (region, of) = (theirs.region.as_ref(), Arc::clone(&source));
            let ours_of = ours.as_ref();
            let reader =
                RegionReader::beside(region, &first.location, of, ours_of, workers, progress)?;
            expected.push((at, reader));
            takes.extend(theirs.window(window.clone(), at + window.start));
            at += ours.bytes();
        }
        let differs = AtomicUsize::new(usize::MAX);
        let counterpart = Counterpart::default();
        let look = |offset: u64, bytes: &[u8]| {
            let number = expected.partition_point(|(at, _)| *at <= offset).saturating_sub(1);
            let Some((at, reader)) = expected.get(number) else { return Ok(()) };
            if differs.load(Ordering::Relaxed) <= number {
                return Ok(());
            }
            counterpart.read(reader, offset - at, bytes.len(), |there| {
                if there != bytes {
                    differs.fetch_min(number, Ordering::Relaxed);
                }
            })
        };
        let bytes = source_of(input)?;
        scan(WriteOrder::Any, &takes, workers, progress, look, |job| {
            job.run(job.sink(), input, bytes.as_ref(), &takes)
        })?;
        source.verify().map_err(|error| Error::file(&first.location, error))?;
        match pairs.get(differs.into_inner()) {
            Some(Pair { name, .. }) => {
                let error = Error::file(&input.location, JoinFault::Differs { number });
                Err(error.of_tensor(Some(name), true))
            }
            None => Ok(()),
        }
    }
}

/// A tensor of the first input, and the one of another input that must be the same.
struct Pair {
    ours: Arc<dyn Region>,
    theirs: Take,
    /// The bytes that are compared.
    window: Range<u64>,
    name: String,
}
