//! Comparing tensors of two inputs, in one pass over both.
//!
//! The bytes of the one are copied, by the job that copies slices, to a sink that reads the same
//! elements of the other and compares them. The one that leads is that whose bytes lie in the less
//! convenient order: the engine cuts its pieces to suit it, and rows of the other are contiguous.

use std::io;
use std::sync::{Mutex, PoisonError};

use crate::compare::{Comparer, Findings};
use crate::error::Error;
use crate::execute::{Progress, Workers};
use crate::input::Input;
use crate::job::chosen::Chosen;
use crate::job::copy::Writing;
use crate::job::parallel;
use crate::region::RegionReader;
use crate::runs::unravel_index;
use crate::shape::{self, Order};
use crate::sink::{Sink, SinkError};

/// Two tensors of one shape, to be compared.
pub(super) struct Comparison {
    chosen: [Chosen; 2],
    comparer: Comparer,
    count: u64,
    /// For bytes in Fortran order, each axis from the last to the first: its length, and how many
    /// elements a step along it is in C order.
    places: Vec<(u64, u64)>,
}

impl Comparison {
    /// Compare selections of one shape, both with their bytes in this memory order.
    pub(super) fn new(chosen: [Chosen; 2], comparer: Comparer, order: Order) -> Comparison {
        let shape = &chosen[0].shape;
        let mut step = 1;
        let mut places: Vec<(u64, u64)> = Vec::new();
        for &len in shape.iter().rev() {
            places.push((len, step));
            // of no use where an axis has length 0
            step = step.wrapping_mul(len);
        }
        if order == Order::C {
            places.clear();
        }
        let count = shape::element_count(shape).unwrap_or(0);
        Comparison { chosen, comparer, count, places }
    }

    /// Bytes of the elements of one side.
    pub(super) fn bytes(&self, side: usize) -> u64 {
        self.chosen.get(side).map_or(0, Chosen::bytes)
    }

    /// Readers of both, and the number of an element of which the findings name the place, in the
    /// order of their bytes.
    ///
    /// # Errors
    /// Inputs that cannot be read.
    pub(super) fn readers(
        &self,
        inputs: [&mut Input; 2],
        place: u64,
    ) -> Result<([RegionReader<'_>; 2], u64), Error> {
        let first = RegionReader::new(inputs[0], self.chosen[0].region.as_ref())?;
        let second = RegionReader::new(inputs[1], self.chosen[1].region.as_ref())?;
        let (mut number, mut along) = (0, 1);
        for &(len, step) in self.places.iter().rev() {
            number += place / step % len * along;
            along *= len;
        }
        let number = if self.places.is_empty() { place } else { number };
        Ok(([first, second], number))
    }

    /// Whether the bytes of its elements are not kept by its findings.
    pub(super) fn is_large(&self) -> bool {
        self.comparer.is_large()
    }

    /// The number of an element by that in the order of the bytes.
    fn place(&self, number: u64) -> u64 {
        if self.places.is_empty() {
            return number;
        }
        let lens = self.places.iter().rev().map(|(len, _)| *len);
        let steps = self.places.iter().rev().map(|(_, step)| step);
        unravel_index(lens, number).zip(steps).map(|(index, step)| index * step).sum()
    }
}

/// Compare each pair, with these workers; whether the second input leads.
///
/// # Errors
/// An input that fails or is cut short, positions that are out of range.
pub(super) fn compare(
    inputs: [&mut Input; 2],
    comparisons: &[Comparison],
    second_leads: bool,
    workers: &Workers,
    progress: &Progress,
) -> Result<Vec<Findings>, Error> {
    let [first, second] = inputs;
    let (large, small): (Vec<_>, Vec<_>) = (0..comparisons.len())
        .partition(|&number| comparisons.get(number).is_some_and(Comparison::is_large));
    let mut found = vec![Findings::default(); comparisons.len()];
    if !large.is_empty() {
        first.spool_watched(progress)?;
        second.spool_watched(progress)?;
    }
    for number in large {
        if comparisons[number].count == 0 {
            continue;
        }
        let readers = comparisons[number].readers([&mut *first, &mut *second], 0)?.0;
        found[number] = windows(&comparisons[number], &readers, workers, progress)?;
    }
    let rest: Vec<&Comparison> = small.iter().map(|&number| &comparisons[number]).collect();
    for (number, findings) in
        small.into_iter().zip(whole([first, second], &rest, second_leads, workers, progress)?)
    {
        found[number] = findings;
    }
    Ok(found)
}

/// The bytes of a large element that are compared at a time.
const WINDOW: u64 = 256 << 10;

/// How many windows are handed to the workers at a time.
const WINDOWS: u64 = 4096;

/// Compare large elements, of which only windows are held.
fn windows(
    pair: &Comparison,
    readers: &[RegionReader<'_>; 2],
    workers: &Workers,
    progress: &Progress,
) -> Result<Findings, Error> {
    let size = pair.comparer.itemsizes()[0] as u64;
    let each = size.div_ceil(WINDOW);
    let count = each * pair.count;
    let same = |number: u64| {
        let (element, start) = (number / each, number % each * WINDOW);
        let range = start..(start + WINDOW).min(size);
        let needed = pair.comparer.needs(&range);
        let mut scratch = Vec::new();
        let [mut a, mut b] = [(); 2].map(|()| vec![0; (needed.end - needed.start) as usize]);
        for (reader, bytes) in readers.iter().zip([&mut a, &mut b]) {
            reader.read(element * size + needed.start, &mut scratch, bytes)?;
        }
        progress.add(range.end - range.start);
        Ok::<_, Error>(pair.comparer.same_within(&range, &a, &b))
    };
    let mut findings = Findings::default();
    let mut differing = None;
    for first in (0..count).step_by(WINDOWS as usize) {
        let some = WINDOWS.min(count - first) as usize;
        let found = parallel::each(some, workers, |number| same(first + number as u64))?;
        for (number, same) in (first..).zip(found) {
            if !same && differing.replace(number / each) != Some(number / each) {
                findings.add_large(pair.place(number / each));
            }
        }
    }
    Ok(findings)
}

/// Compare pairs of elements that are no large ones.
fn whole(
    inputs: [&mut Input; 2],
    comparisons: &[&Comparison],
    second_leads: bool,
    workers: &Workers,
    progress: &Progress,
) -> Result<Vec<Findings>, Error> {
    if comparisons.is_empty() {
        return Ok(Vec::new());
    }
    let [mut leading, mut following] = inputs;
    if second_leads {
        std::mem::swap(&mut leading, &mut following);
    }
    if comparisons.len() > 1 {
        // the pairs may stand in another order than the tensors of a pipe
        leading.spool_watched(progress)?;
    }
    following.spool_watched(progress)?;
    let mut at = 0;
    let (mut takes, mut pairs) = (Vec::new(), Vec::new());
    for &pair in comparisons {
        let [leads, follows] =
            [second_leads, !second_leads].map(|it| &pair.chosen[usize::from(it)]);
        takes.push(leads.take(at));
        let other = RegionReader::new(following, follows.region.as_ref())?;
        pairs.push(Other { pair, other, at, findings: Mutex::default() });
        at += leads.bytes();
    }
    let sink = CompareSink { pairs: &pairs, second_leads, beside: Beside::default() };
    let outcome = Writing::into_sink(&sink, &takes, workers, progress)
        .and_then(|job| job.copy(leading, &takes));
    sink.beside.outcome(outcome)?;
    let findings =
        |pair: Other<'_>| pair.findings.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(pairs.into_iter().map(findings).collect())
}

/// The tensor that follows.
struct Other<'a> {
    pair: &'a Comparison,
    other: RegionReader<'a>,
    /// Where its bytes begin among those of all pairs.
    at: u64,
    findings: Mutex<Findings>,
}

/// Reads what is compared with the bytes that a sink is given.
#[derive(Default)]
pub(super) struct Beside {
    /// Buffers that no worker uses at the moment: for the bytes, and for reading them.
    spare: Mutex<Vec<(Vec<u8>, Vec<u8>)>>,
    /// Why they could not be read.
    failed: Mutex<Option<Error>>,
}

impl Beside {
    /// Hand `len` bytes of a region, from position `start` of it on, to `compare`.
    pub(super) fn read(
        &self,
        from: &RegionReader<'_>,
        start: u64,
        len: usize,
        compare: impl FnOnce(&[u8]),
    ) -> Result<(), SinkError> {
        let spare = || self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut there, mut scratch) = spare().pop().unwrap_or_default();
        there.resize(len, 0);
        from.read(start, &mut scratch, &mut there).map_err(|error| {
            self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            SinkError::Io(io::ErrorKind::Other.into())
        })?;
        compare(&there);
        spare().push((there, scratch));
        Ok(())
    }

    /// The outcome of the copy to the sink: the error of reading was first.
    pub(super) fn outcome(&self, copied: Result<(), Error>) -> Result<(), Error> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        failed.map_or(copied, Err)
    }
}

/// A sink that compares what it is given.
struct CompareSink<'a> {
    pairs: &'a [Other<'a>],
    second_leads: bool,
    beside: Beside,
}

impl Sink for CompareSink<'_> {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        let number = self.pairs.partition_point(|pair| pair.at <= offset).saturating_sub(1);
        let Some(Other { pair, other, at, findings }) = self.pairs.get(number) else {
            return Ok(());
        };
        let start = offset - at;
        let mut sizes = pair.comparer.itemsizes().map(|size| (size as u64).max(1));
        if self.second_leads {
            sizes.reverse();
        }
        let [own, theirs] = sizes;
        let (first, count) = (start / own, bytes.len() as u64 / own);
        self.beside.read(other, first * theirs, (count * theirs) as usize, |theirs| {
            let (a, b) = if self.second_leads { (theirs, bytes) } else { (bytes, theirs) };
            let mut found = Findings::default();
            pair.comparer.compare(a, b, |number| pair.place(first + number), &mut found);
            if found.differing > 0 {
                findings.lock().unwrap_or_else(PoisonError::into_inner).merge(found);
            }
        })
    }
}
