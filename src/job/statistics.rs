//! Statistics of a selection, in one parallel pass.

use std::sync::{Arc, Mutex, PoisonError};

use crate::dtype::DType;
use crate::error::{Cause, Error, Fault};
use crate::execute::{Conversion, Progress, Workers};
use crate::index::IndexExpr;
use crate::index::resolve::Rules;
use crate::input::{Input, Transform};
use crate::job::copy::{Writing, scan};
use crate::region::{Lists, OpenIndex, Region, RegionReader, Take};
use crate::runs::index_of;
use crate::shape::{self, Arrangement, Order, Transposition};
use crate::sink::WriteOrder;
use crate::statistics::Statistics;
use crate::tensor::TensorInfo;

impl Chosen {
    /// Whether it is a range of bytes, and nothing else.
    pub(super) fn is_whole_bytes(&self) -> bool {
        let bytes = shape::byte_count(&self.shape, self.dtype.item_bits());
        let range = self.region.strided().and_then(|view| view.range());
        range.is_some_and(|range| Some(range.end - range.start) == bytes)
    }

    /// Read its bytes as elements.
    pub(super) fn see_bytes(&mut self, byte: &DType) {
        self.shape = vec![self.region.bytes()];
        self.axes = vec![None];
        self.dtype = byte.clone();
    }

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
        let takes = [self.take(0)];
        let itemsize = self.dtype.item_bits() / 8;
        // statistics that no worker uses now: at most one for each worker
        let idle = Mutex::new(Vec::new());
        let locked = || idle.lock().unwrap_or_else(PoisonError::into_inner);
        let look = |offset: u64, bytes: &[u8]| {
            let taken = locked().pop();
            let mut own: Statistics = taken.unwrap_or_else(|| empty.clone());
            own.add(bytes, offset / itemsize);
            locked().push(own);
            Ok(())
        };
        let copy = |job: &Writing<'_>| job.copy(input, &takes);
        scan(WriteOrder::Any, &takes, workers, progress, look, copy)?;
        let mut all = empty.clone();
        let idle = idle.into_inner().unwrap_or_else(PoisonError::into_inner);
        idle.into_iter().for_each(|part| all.merge(part));
        Ok(all)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("statistics are of real numbers, and the dtype is {0}")]
pub struct StatisticsFault(pub DType);

impl Fault for StatisticsFault {}

/// The elements of a tensor that an index selects, to be read once.
pub struct Chosen {
    pub name: Option<String>,
    pub dtype: DType,
    pub shape: Vec<u64>,
    /// For each axis, the axis of the tensor that it comes from, if any.
    pub(super) axes: Vec<Option<usize>>,
    pub(super) region: Arc<dyn Region>,
    shard: usize,
}

impl Chosen {
    /// The selections of an index in the tensors with these numbers, with their axes transposed, in
    /// C order; `transform` says what the tensors are read as.
    pub fn all(
        input: &mut Input,
        numbers: &[usize],
        transform: &Transform,
        index: OpenIndex<'_>,
        transpose: &Transposition,
    ) -> Result<Vec<Chosen>, Error> {
        each_tensor(input, numbers, transform, |tensor| {
            Ok(Chosen::of(tensor, index, transpose, Order::C)?)
        })
    }

    pub fn whole(input: &mut Input) -> Result<Vec<Chosen>, Error> {
        let numbers = Vec::from_iter(0..input.contents.tensors.len());
        each_tensor(input, &numbers, &Transform::default(), |tensor| {
            Ok(Chosen::of_whole(tensor, |axes| axes)?)
        })
    }

    /// All elements of a tensor, with its axes put in order by `then`.
    pub(super) fn of_whole(
        tensor: &TensorInfo,
        then: impl FnOnce(Arrangement) -> Arrangement,
    ) -> Result<Chosen, Cause> {
        let (expr, lists) = (&IndexExpr::default(), &Lists::default());
        let index = OpenIndex { expr, rules: Rules::default(), lists };
        Chosen::arranged(tensor, index, &Transposition::None, Order::C, then)
    }

    /// The selection of an index in a tensor, with its axes transposed, in this memory order.
    pub(super) fn of(
        tensor: &TensorInfo,
        index: OpenIndex<'_>,
        transpose: &Transposition,
        order: Order,
    ) -> Result<Chosen, Cause> {
        Chosen::arranged(tensor, index, transpose, order, |axes| axes)
    }

    /// The selection of an index in a tensor, with its axes transposed, then put in order by
    /// `then`.
    pub(super) fn arranged(
        tensor: &TensorInfo,
        index: OpenIndex<'_>,
        transpose: &Transposition,
        order: Order,
        then: impl FnOnce(Arrangement) -> Arrangement,
    ) -> Result<Chosen, Cause> {
        let selection = index.resolve(tensor)?;
        let axes = then(OpenIndex::arrange(tensor, &selection, transpose)?);
        let region = index.lists.region(tensor, &selection, &axes.in_memory(order))?;
        let name = tensor.name.clone();
        let dtype = tensor.dtype.clone();
        let shard = tensor.shard();
        let shape = axes.shape().to_vec();
        let axes = axes.of_whole_axes(&selection.source_axes());
        Ok(Chosen { name, dtype, shape, axes, region, shard })
    }

    pub fn bytes(&self) -> u64 {
        self.region.bytes()
    }

    /// A reader of its [elements](crate::print::Elements), to print them. A pipe is copied to
    /// scratch.
    pub fn elements<'a, E: From<Error>>(
        &'a self,
        input: &mut Input,
    ) -> Result<impl FnMut(u64, &mut [u8]) -> Result<(), E> + use<'a, E>, Error> {
        let reader = RegionReader::of_few(input, self.region.as_ref())?;
        let mut scratch = Vec::new();
        Ok(move |start: u64, out: &mut [u8]| Ok(reader.read(start, &mut scratch, out)?))
    }

    /// The take of its bytes to position `at`; no piece divides elements.
    pub(super) fn take(&self, at: u64) -> Take {
        let take = Take::new(self.shard, Arc::clone(&self.region), Conversion::None, at);
        Take { unit: (self.dtype.item_bits() / 8).max(1), ..take }
    }
}

/// Call `choose` for each of these tensors, read as `transform` says.
pub(super) fn each_tensor<T>(
    input: &mut Input,
    numbers: &[usize],
    transform: &Transform,
    choose: impl Fn(&TensorInfo) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    input.transform(transform, numbers)?;
    let several = numbers.len() > 1;
    let tensors = numbers.iter().map(|&number| input.contents.tensors.at(number));
    let choose = |tensor: TensorInfo| {
        choose(&tensor).map_err(|error| error.of_tensor(tensor.name.as_deref(), several))
    };
    tensors.map(choose).collect()
}

/// The index of an element of a shape, by its number in C order.
pub fn position_of(shape: &[u64], number: u64) -> Vec<u64> {
    index_of(shape.iter().map(|&len| len.max(1)), number)
}
