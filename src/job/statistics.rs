//! Statistics of a selection, in one parallel pass.

use std::sync::{Mutex, PoisonError};

use crate::dtype::DType;
use crate::error::{Error, Fault};
use crate::execute::{Progress, Workers};
use crate::input::Input;
use crate::job::chosen::Chosen;
use crate::job::copy::Writing;
use crate::sink::{Sink, SinkError};
use crate::statistics::Statistics;

impl Chosen {
    /// The statistics of its elements.
    ///
    /// # Errors
    /// [`StatisticsFault`]; an input that fails or is cut short, positions that are out of range.
    pub fn statistics(
        &self,
        input: &mut Input,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<Statistics, Error> {
        let empty = match self.dtype {
            DType::Scalar(scalar, endian) => Statistics::new(scalar, endian),
            DType::Npy(_) | DType::Blocks(_) => None,
        };
        let empty = &empty.ok_or_else(|| StatisticsFault(self.dtype.clone()))?;
        let (takes, itemsize) = ([self.take(0)], self.dtype.item_bits() / 8);
        let sink = StatisticsSink { empty, itemsize, idle: Mutex::default() };
        Writing::into_sink(&sink, &takes, workers, progress)?.copy(input, &takes)?;
        let mut all = empty.clone();
        let idle = sink.idle.into_inner().unwrap_or_else(PoisonError::into_inner);
        idle.into_iter().for_each(|part| all.merge(part));
        Ok(all)
    }
}

/// Elements that have no statistics.
#[derive(Debug, thiserror::Error)]
#[error("statistics are of real numbers, and the dtype is {0}")]
pub struct StatisticsFault(pub DType);

impl Fault for StatisticsFault {}

/// A sink that keeps statistics of what it is given.
struct StatisticsSink<'a> {
    empty: &'a Statistics,
    itemsize: u64,
    /// Statistics that no worker is adding to now: as many as there are workers.
    idle: Mutex<Vec<Statistics>>,
}

impl Sink for StatisticsSink<'_> {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        let StatisticsSink { empty, itemsize, idle } = self;
        let taken = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut own = taken.unwrap_or_else(|| (*empty).clone());
        own.add(bytes, offset / itemsize);
        idle.lock().unwrap_or_else(PoisonError::into_inner).push(own);
        Ok(())
    }
}
