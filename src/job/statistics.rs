//! Statistics of a region, in one parallel pass.

use std::sync::{Arc, Mutex, PoisonError};

use crate::error::ContainerError;
use crate::execute::{Conversion, Progress, Workers};
use crate::input::Input;
use crate::job::copy::Writing;
use crate::region::{Region, Take};
use crate::sink::{Sink, SinkError, WriteOrder};
use crate::statistics::Statistics;

/// Add the elements of a region, each of `itemsize` bytes, to `empty` statistics, with at most
/// `threads` workers; the region lies in a part of the input.
///
/// # Errors
/// An input that fails or is cut short, positions that are out of range.
pub fn statistics(
    input: &mut Input,
    (region, part): (&Arc<dyn Region>, usize),
    (empty, itemsize): (&Statistics, usize),
    workers: &Workers,
    progress: &Progress,
) -> Result<Statistics, ContainerError> {
    let conversion = Conversion::Whole { width: itemsize };
    let takes = [Take { part, region: Arc::clone(region), conversion, at: 0 }];
    let shared = Shared { empty, itemsize: itemsize as u64, idle: Mutex::default() };
    let job = Writing::into_sink(Box::new(StatisticsSink(&shared)), &takes, workers, progress)?;
    job.copy(input, &takes)?;
    drop(job);
    let mut all = empty.clone();
    let idle = shared.idle.into_inner().unwrap_or_else(PoisonError::into_inner);
    idle.into_iter().for_each(|part| all.merge(part));
    Ok(all)
}

/// What the workers share.
struct Shared<'a> {
    empty: &'a Statistics,
    itemsize: u64,
    /// Statistics that no worker is adding to now: as many as there are workers.
    idle: Mutex<Vec<Statistics>>,
}

/// A sink that keeps statistics of what it is given.
struct StatisticsSink<'a>(&'a Shared<'a>);

impl Sink for StatisticsSink<'_> {
    fn order(&self) -> WriteOrder {
        WriteOrder::Any
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        let Shared { empty, itemsize, idle } = self.0;
        let taken = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut own = taken.unwrap_or_else(|| (*empty).clone());
        own.add(bytes, offset / itemsize);
        idle.lock().unwrap_or_else(PoisonError::into_inner).push(own);
        Ok(())
    }

    fn commit(self: Box<Self>) -> Result<(), SinkError> {
        Ok(())
    }
}
