//! The summaries of slices, read a band of slices at a time.
//!
//! A band has as many slices as bounded memory has room for, and any number of workers add to their summaries: sums
//! are exact, so that the order of adding does not matter. Long ranges are summed up separately first, so that workers
//! of a few long slices do not wait for each other.
//!
//! Where the elements of slices alternate, each worker has [columns](Columns) of its own, and adds them to the
//! summaries at the end.
//!
//! Bands of chunked tensors end where chunks do, so that each chunk is decoded for one band. If there is no memory for
//! such a band, the selection is put in order in scratch first.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::along_axes::Slices;
use super::statistics::Chosen;
use crate::error::Error;
use crate::execute::{Progress, Workers};
use crate::input::Input;
use crate::job::copy::{check_indices, in_scratch, scan};
use crate::region::Take;
use crate::shape::Order;
use crate::sink::WriteOrder;
use crate::statistics::{Columns, Facts, Fold, Reach, Summary};
use crate::tensor::TensorInfo;

/// At least so many adjacent elements of a slice are summed up separately, so that workers do not wait for each other.
const ALONE: u64 = 512;

/// The most summaries that are complete at a time, besides those of a band.
const COMPLETE: usize = 1 << 14;

impl Slices {
    /// The summary of the first slice; there is at least one.
    pub fn summary(
        &self,
        input: &mut Input,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<Summary, Error> {
        let empty = self.nothing(Facts::ALL)?;
        let mut found = empty.clone();
        self.summaries(input, &empty, workers, progress, |first, summaries| {
            if let (0, Some(summary)) = (first, summaries.first()) {
                found.clone_from(summary);
            }
            Ok::<(), Error>(())
        })?;
        Ok(found)
    }

    /// Read the input once: `visit` gets the summaries of the slices in order, each begun from
    /// `empty`, some at a time, with the number of the first.
    pub fn summaries<S: Fold, E: From<Error>>(
        &self,
        input: &mut Input,
        empty: &S,
        workers: &Workers,
        progress: &Progress,
        mut visit: impl FnMut(u64, &[S]) -> Result<(), E>,
    ) -> Result<(), E> {
        let count = self.count();
        let len = self.len();
        let itemsize = self.chosen.dtype.item_bits() / 8;
        let most = self.chosen.summaries_at_once(empty, count);
        let of_chunks = self.ends_of_chunks().filter(|ends| ends.fit(most));
        let plain = self.in_chunks.as_ref().filter(|_| most < count && of_chunks.is_none());
        let mut spooled = plain.map(|plain| self.keep(plain, input, workers)).transpose()?;
        let ends = of_chunks.unwrap_or_else(|| self.ends_of_columns());
        let (input, take) = match &mut spooled {
            Some((input, chosen)) => (input, chosen.take(0)),
            None => (input, self.chosen.take(0)),
        };
        if most < count {
            // which positions are bad does not depend on the bands
            check_indices(&take, workers, false)?;
        }
        // reused for each band, since allocating so much memory takes time
        let (slices, width) = (Vec::new(), self.width);
        let mut band = Band { itemsize, len, width, empty, idle: Mutex::default(), slices };
        let mut complete = Vec::new();
        let mut first = 0;
        while first < count {
            let end = ends.of_band(first, most).unwrap_or(first.saturating_add(most));
            let slices = end.min(count) - first;
            let bytes = |slice: u64| slice * len * itemsize;
            band.slices.resize_with(slices as usize, || Mutex::new(empty.clone()));
            if len > 0 {
                let range = bytes(first)..bytes(first + slices);
                band.read(&take, range, input, workers, progress)?;
            }
            let mut summaries = band.summaries();
            loop {
                complete.clear();
                complete.extend(summaries.by_ref().take(COMPLETE));
                if complete.is_empty() {
                    break;
                }
                visit(first, &complete)?;
                first += complete.len() as u64;
            }
        }
        Ok(())
    }

    /// The ends of bands that divide no chunk; `None` if it is not known which elements lie in one.
    fn ends_of_chunks(&self) -> Option<BandEnds> {
        let (chunked, view) = self.chosen.region.chunked()?.parts()?;
        let firsts = chunked.first_items(view.runs());
        if firsts.len() != self.chosen.shape.len() {
            return None;
        }
        let axes = self.arranged.axes().iter().zip(&self.chosen.shape).zip(&firsts);
        let mut staying = axes.filter(|((axis, _), _)| !self.reduced[**axis]);
        // chunks along axes before the first one along which they are long are in one band in any
        // case
        let long = staying.find(|((_, len), firsts)| (firsts.len() as u64) < **len);
        let inner: u64 = staying.map(|((_, len), _)| len).product();
        Some(match long {
            Some(((_, len), firsts)) if len * inner > self.width => {
                let ends = firsts.iter().map(|it| it * inner).collect();
                BandEnds { ends, period: len * inner }
            }
            // a band does not divide columns either
            _ => self.ends_of_columns(),
        })
    }

    fn ends_of_columns(&self) -> BandEnds {
        BandEnds { ends: vec![0], period: self.width }
    }

    /// Put the original selection in scratch; returns the input there, and the take of its elements.
    fn keep(
        &self,
        plain: &Chosen,
        input: &mut Input,
        workers: &Workers,
    ) -> Result<(Input, Chosen), Error> {
        let takes = [Take { unit: 1, ..plain.take(0) }];
        let tensor = TensorInfo::new(plain.dtype.clone(), plain.shape.clone(), Order::C, 0);
        let location = input.location.clone();
        let tensors = [tensor.clone()].into_iter().collect();
        let spooled = in_scratch(&location, tensors, plain.bytes(), &takes, workers, |job| {
            job.copy(input, &takes)
        })?;
        let chosen = Chosen::of_whole(&tensor, |axes| axes.then(&self.arranged))?;
        Ok((spooled, chosen))
    }
}

/// The slices of each period after which bands may end, without dividing a chunk or a group of
/// columns.
struct BandEnds {
    ends: Vec<u64>,
    period: u64,
}

impl BandEnds {
    /// Whether there is an end within any `most` slices.
    fn fit(&self, most: u64) -> bool {
        let last = self.ends.last().map_or(0, |end| self.period - end);
        self.ends.array_windows().map(|[end, next]| next - end).chain([last]).all(|it| it <= most)
    }

    /// The end of the band of at most `most` slices that begins with slice `first`; `None` if there
    /// is no such end.
    fn of_band(&self, first: u64, most: u64) -> Option<u64> {
        let last = first.saturating_add(most);
        let period = last / self.period * self.period;
        let before = self.ends.partition_point(|end| period.saturating_add(*end) <= last);
        let end = period + self.ends.get(before.checked_sub(1)?)?;
        Some(end).filter(|end| *end > first)
    }
}

/// Summaries of adjacent slices, to which any number of workers add.
struct Band<'a, S> {
    itemsize: u64,
    len: u64,
    width: u64,
    empty: &'a S,
    slices: Vec<Mutex<S>>,
    /// Columns that no worker uses now, and the group of slices of each.
    idle: Mutex<Vec<(u64, Columns)>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: Fold> Band<'_, S> {
    fn read(
        &self,
        take: &Take,
        range: Range<u64>,
        input: &mut Input,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<(), Error> {
        let look = |offset: u64, bytes: &[u8]| {
            self.add(offset / self.itemsize, bytes);
            Ok(())
        };
        let order = WriteOrder::Any;
        if range == (0..take.bytes()) {
            let takes = std::slice::from_ref(take);
            return scan(order, takes, workers, progress, look, |job| job.copy(input, takes));
        }
        let source = input.spool_watched(progress)?;
        let takes = take.window(range, 0);
        scan(order, &takes, workers, progress, look, |job| {
            job.run(job.sink(), input, source.as_ref(), &takes)
        })
    }

    /// Add elements, from element `element` of the band on.
    fn add(&self, mut element: u64, mut bytes: &[u8]) {
        if self.width > 1 {
            self.add_rows(element, bytes);
            return;
        }
        while !bytes.is_empty() {
            let slice = &self.slices[(element / self.len) as usize];
            let first = element % self.len;
            let items = (self.len - first).min(bytes.len() as u64 / self.itemsize);
            let (now, later) = bytes.split_at((items * self.itemsize) as usize);
            if items >= ALONE {
                let mut alone = self.empty.clone();
                alone.add(now, first);
                locked(slice).merge(alone);
            } else {
                locked(slice).add(now, first);
            }
            bytes = later;
            element += items;
        }
    }

    /// Add elements of alternating slices, from element `element` of the band on.
    fn add_rows(&self, mut element: u64, mut bytes: &[u8]) -> Option<()> {
        let group_len = self.len * self.width;
        let mut empty = self.empty.clone();
        let (numbers, _) = empty.by_columns()?;
        let each = numbers.len();
        let taken = locked(&self.idle).pop();
        let (mut group, mut columns) =
            taken.unwrap_or_else(|| (0, Columns::new(&numbers[0], self.width as usize * each)));
        while !bytes.is_empty() {
            if element / group_len != group {
                self.flush(group, &mut columns);
                group = element / group_len;
            }
            let first = element % group_len;
            let items = (group_len - first).min(bytes.len() as u64 / self.itemsize);
            let (now, later) = bytes.split_at((items * self.itemsize) as usize);
            let reach: Reach<'_> = &|column, look| self.reach(group, column, each, look);
            columns.add(now, first * each as u64, reach);
            bytes = later;
            element += items;
        }
        locked(&self.idle).push((group, columns));
        Some(())
    }

    fn flush(&self, group: u64, columns: &mut Columns) {
        let each = self.empty.clone().by_columns().map_or(1, |(numbers, _)| numbers.len());
        columns.flush(&|column, look| self.reach(group, column, each, look));
    }

    /// Call `look` for the values of a column, `each` of which belong to one element.
    fn reach(&self, group: u64, column: usize, each: usize, look: &mut dyn FnMut(&mut Summary)) {
        let slice = group as usize * self.width as usize + column / each;
        if let Some((numbers, _)) = locked(&self.slices[slice]).by_columns() {
            look(&mut numbers[column % each]);
        }
    }

    /// Take the complete summaries.
    fn summaries(&mut self) -> impl Iterator<Item = S> {
        for (group, mut columns) in std::mem::take(&mut *locked(&self.idle)) {
            self.flush(group, &mut columns);
        }
        let count = (self.width > 1).then_some(self.len);
        self.slices.drain(..).map(move |slice| {
            let mut slice = slice.into_inner().unwrap_or_else(PoisonError::into_inner);
            if let (Some(count), Some((numbers, _))) = (count, slice.by_columns()) {
                numbers.iter_mut().for_each(|summary| summary.count = count);
            }
            slice
        })
    }
}
