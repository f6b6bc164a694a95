//! Comparing the tensors that are taken once of several inputs: they must be the same in all, byte
//! for byte.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Assembly;
use crate::error::Error;
use crate::execute::{Conversion, Progress, Workers};
use crate::input::Input;
use crate::job::compare::Counterpart;
use crate::job::copy::scan;
use crate::job::copying::OutputRange;
use crate::job::inputs::source_of;
use crate::job::join::JoinFault;
use crate::output::LayoutFault;
use crate::region::{Region, RegionReader, Take};
use crate::sink::WriteOrder;
use crate::tensor::TensorInfo;

/// The number of tensors that are compared in one run.
const TOGETHER: usize = 4096;

/// The tensors that are taken once: every input must have them, besides the members of joined
/// tensors.
pub(crate) struct Rest {
    /// The names of tensors that are left out because the output has no such dtype.
    pub(crate) lacking: BTreeSet<String>,
}

impl Assembly<'_> {
    /// The number of bytes that [`check_rest`](Assembly::check_rest) reads of the other inputs.
    pub(super) fn rest_bytes(&self) -> Result<u64, Error> {
        if self.rest.is_none() {
            return Ok(0);
        }
        let mut sum = Some(0u64);
        for tensor in 0..self.members.len() {
            if let ([number], None) = self.members.of(tensor) {
                let bytes = self.inputs.first().contents.tensors.at(*number as usize).bytes();
                sum = sum.and_then(|sum| sum.checked_add(bytes));
            }
        }
        let others = self.inputs.locations.len() as u64 - 1;
        Ok(sum.and_then(|sum| sum.checked_mul(others)).ok_or(LayoutFault::TooLarge)?)
    }

    /// About how many bytes of all inputs are read to compare the wanted range, without those of
    /// the first input, which are copied.
    pub(super) fn compared_reads(&self, to: &OutputRange<'_>) -> Result<u64, Error> {
        if self.rest.is_none() {
            return Ok(0);
        }
        let mut rest = self.wanted(to);
        rest.retain(|wanted| !wanted.is_joined);
        let reads: u64 = self.takes(self.inputs.first(), to, &rest)?.iter().map(Take::reads).sum();
        Ok(reads * (self.inputs.locations.len() as u64 - 1))
    }

    /// Check that tensors that are not joined are the same in all inputs, as far as their bytes are
    /// wanted.
    pub(super) fn check_rest(
        &self,
        to: &OutputRange<'_>,
        progress: &Progress,
    ) -> Result<(), Error> {
        let Some(Rest { lacking }) = &self.rest else { return Ok(()) };
        let mut rest = Vec::new();
        for (tensor, slot) in self.slots(to) {
            if let ([number], None) = self.members.of(tensor) {
                rest.push((slot.start, *number as usize, slot.window()));
            }
        }
        rest.sort_by_key(|(start, ..)| *start);
        for number in 1..self.inputs.locations.len() {
            let input = self.inputs.lend(number)?;
            if input.is_nameless() {
                // the first input has nothing else
                continue;
            }
            let name = |number: usize| input.contents.tensors.name(number);
            let members = self.members.joined().map(|tensor| self.members.of(tensor).0[number]);
            let mut apart: BTreeSet<usize> =
                members.map(|member| self.members.locate(member).1).collect();
            apart.extend(input.excluded()?);
            let all = 0..input.contents.tensors.len();
            let is_lacking = |&at: &usize| name(at).is_some_and(|name| lacking.contains(name));
            apart.extend(all.clone().filter(is_lacking));
            let mut found = BTreeSet::new();
            for rest in rest.chunks(TOGETHER) {
                let mut pairs = Vec::with_capacity(rest.len());
                for (_, ours, window) in rest {
                    let (at, pair) = self.pair(number, *ours, window.clone(), &input, &apart)?;
                    found.insert(at);
                    pairs.push(pair);
                }
                let workers = &to.prepared.output.options.workers;
                check_same(self.inputs.first(), number, &input, &pairs, workers, progress)?;
            }
            let is_surplus = |number: &usize| !apart.contains(number) && !found.contains(number);
            if let Some(surplus) = all.clone().find(is_surplus) {
                let name = name(surplus).unwrap_or_default().to_owned();
                return Err(Error::file(&input.location, JoinFault::Surplus { number, name }));
            }
        }
        Ok(())
    }

    /// Find the tensor of an input that must be the same as tensor `ours` of the first, without
    /// those in `apart`.
    fn pair(
        &self,
        number: usize,
        ours: usize,
        window: Range<u64>,
        input: &Input,
        apart: &BTreeSet<usize>,
    ) -> Result<(usize, Pair), Error> {
        let failed = |fault: JoinFault| Error::file(&input.location, fault);
        let first = self.inputs.first();
        let likely = ours;
        let ours = &first.contents.tensors.at(ours);
        let name = ours.name.as_deref().unwrap_or_default();
        let found = input.contents.tensors.number_near(name, likely);
        let found = found.filter(|found| !apart.contains(found));
        let missing = || JoinFault::Missing { number, name: name.to_owned() };
        let found = found.ok_or_else(|| failed(missing()))?;
        let theirs = &input.contents.tensors.at(found);
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
        let region = |input: &Input, tensor: &TensorInfo| {
            let region = <dyn Region>::whole(tensor, ours.order());
            region.map_err(|cause| input.failed_tensor(tensor, true, cause))
        };
        let theirs = Take::new(theirs.shard(), region(input, theirs)?, Conversion::None, 0);
        Ok((found, Pair { ours: region(first, ours)?, theirs, window, name: name.to_owned() }))
    }
}

/// A tensor of the first input, and the tensor of another input that must be the same.
struct Pair {
    ours: Arc<dyn Region>,
    theirs: Take,
    /// The compared bytes.
    window: Range<u64>,
    name: String,
}

/// Compare tensors of input `number` with the first input's tensors: a range of the bytes of each, in the memory order of
/// the first.
fn check_same(
    first: &Input,
    number: usize,
    input: &Input,
    pairs: &[Pair],
    workers: &Workers,
    progress: &Progress,
) -> Result<(), Error> {
    let source = source_of(first)?;
    let mut expected = Vec::with_capacity(pairs.len());
    let mut takes = Vec::with_capacity(pairs.len());
    let mut at = 0;
    for Pair { ours, theirs, window, .. } in pairs {
        let (region, of) = (theirs.region.as_ref(), Arc::clone(&source));
        let ours_of = ours.as_ref();
        let reader = RegionReader::beside(region, &first.location, of, ours_of, workers, progress)?;
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
