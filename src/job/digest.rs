//! Digests of tensors, the same in every format: BLAKE3 of dtype, shape and elements in C order,
//! little-endian.
//!
//! Elements stored in that form are hashed where they are, in windows, by all threads. Elements in another order of axes
//! are first put in order in scratch, if there is room: reading rows from all over the file is slow. Chunks, elements in
//! other byte orders, and members of archives (whose checksums are verified) are hashed as they come from the engine.

use std::convert::Infallible;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::digest::{Digest, Hasher, Windows};
use crate::dtype::{DType, Endian, NpyType, Step, walk};
use crate::error::Error;
use crate::execute::{
    Conversion, FillError, NullSink, Pieces, Progress, ReadFrom, Transfer, VisitRange, Workers, run,
};
use crate::input::{Input, StoredMember};
use crate::job::copy::{Writing, failed_run, scan, written_to_scratch};
use crate::region::{Region, Take};
use crate::runs::Runs;
use crate::shape::Order;
use crate::sink::{WriteOrder, scratch_fits};
use crate::source::Source;
use crate::tensor::TensorInfo;

/// The digests of the tensors with these numbers. A pipe is stored in scratch.
pub fn digests(
    input: &mut Input,
    numbers: &[usize],
    workers: &Workers,
    progress: &Progress,
) -> Result<Vec<Digest>, Error> {
    let source = input.spool_watched(progress)?;
    let input = &*input;
    let mut digests = Vec::with_capacity(numbers.len());
    let mut windowed = Vec::new();
    for (at, &number) in numbers.iter().enumerate() {
        let tensor = input.contents.tensors.at(number);
        let region = whole(&tensor)
            .map_err(|error| error.of_tensor(tensor.name.as_deref(), numbers.len() > 1))?;
        digests.push(match plain_range(input, &tensor, region.as_ref()) {
            Some(range) => {
                windowed.push((at, HashWindows::new(head(&tensor), range, progress)));
                Digest::from_bytes([0; 32])
            }
            None => {
                let of = ReorderedTensor {
                    input,
                    source: source.as_ref(),
                    tensor: &tensor,
                    workers,
                    progress,
                };
                if of.is_scattered(region.as_ref()) {
                    of.copied(region)?
                } else {
                    of.coming(region)?
                }
            }
        });
    }
    hash(input, source.as_ref(), &windowed, workers, progress)?;
    for (at, of) in windowed {
        digests[at] = of.windows.finish();
    }
    Ok(digests)
}

fn whole(tensor: &TensorInfo) -> Result<Arc<dyn Region>, Error> {
    Ok(<dyn Region>::whole(tensor, Order::C)?)
}

/// The size in bytes below which scattered elements stay in the caches of a processor.
const SCATTERED: u64 = 4 << 20;

/// The bytes that are hashed before the elements.
fn head(tensor: &TensorInfo) -> Vec<u8> {
    let shape: Vec<String> = tensor.element_shape().iter().map(u64::to_string).collect();
    format!("{}\n{}\n", name(&tensor.dtype), shape.join(",")).into_bytes()
}

/// The name of a dtype without byte orders, in fields too.
fn name(dtype: &DType) -> String {
    let name = dtype.type_name();
    match dtype {
        DType::Npy(NpyType::Structure(_)) => {
            ["'<", "'>", "'|"].iter().fold(name, |name, order| name.replace(order, "'"))
        }
        _ => name.trim_start_matches(['<', '>', '|']).to_owned(),
    }
}

/// The range of the source with the elements as they are hashed, if there is one and nothing must
/// be checked.
fn plain_range(input: &Input, tensor: &TensorInfo, region: &dyn Region) -> Option<Range<u64>> {
    let range = region.strided()?.range()?;
    let is_checked = StoredMember::find(&input.container.stored, &range).is_some();
    let is_plain = tensor.shard() == 0 && !is_checked && !has_big_endian(&tensor.dtype);
    is_plain.then_some(range)
}

/// The number of bytes that are reversed together to make an item without fields little-endian; 1
/// if nothing changes.
fn swap_width(dtype: &DType) -> usize {
    match dtype {
        DType::Scalar(_, Endian::Big) => dtype.swap_width(),
        DType::Npy(NpyType::Unicode(_, Endian::Big)) => 4,
        DType::Npy(NpyType::Time(_, Endian::Big, _)) => 8,
        DType::Npy(NpyType::LongDouble(Endian::Big) | NpyType::ComplexLongDouble(Endian::Big)) => {
            16
        }
        _ => 1,
    }
}

fn has_big_endian(dtype: &DType) -> bool {
    match dtype.structure() {
        Some(structure) => structure.fields.iter().any(|field| has_big_endian(&field.dtype)),
        None => swap_width(dtype) > 1,
    }
}

/// Make the fields of elements little-endian.
fn swap_fields(dtype: &DType, bytes: &mut [u8]) {
    for element in bytes.chunks_exact_mut((dtype.item_bits() / 8).max(1) as usize) {
        let Ok(()) = walk::<Infallible>(dtype, &mut |step| {
            if let Step::Leaf { dtype, offset, count, .. } = step {
                let width = swap_width(dtype);
                let start = offset as usize;
                let len = (dtype.item_bits() / 8 * count) as usize;
                element[start..start + len].chunks_exact_mut(width).for_each(<[u8]>::reverse);
            }
            Ok(())
        });
    }
}

/// A tensor whose elements are hashed where they lie.
struct HashWindows<'a> {
    head: Vec<u8>,
    range: Range<u64>,
    /// Windows over the head and the elements after it.
    windows: Windows,
    progress: &'a Progress,
}

impl HashWindows<'_> {
    fn new(head: Vec<u8>, range: Range<u64>, progress: &Progress) -> HashWindows<'_> {
        let windows = Windows::new(head.len() as u64 + (range.end - range.start));
        HashWindows { head, range, windows, progress }
    }

    /// The bytes of the head in a window, and the range of the source after them.
    fn window(&self, number: u64) -> (&[u8], Range<u64>) {
        let Range { start, end } = self.windows.range(number);
        let head = self.head.len() as u64;
        let of_head = &self.head[start.min(head) as usize..end.min(head) as usize];
        let in_head = |at: u64| self.range.start + at.saturating_sub(head);
        (of_head, in_head(start)..in_head(end))
    }
}

impl Pieces for HashWindows<'_> {
    fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    fn count(&self) -> u64 {
        self.windows.count()
    }

    fn output(&self, _number: u64) -> Runs {
        Runs::contiguous(0, 0)
    }

    fn fill(&self, number: u64, from: &mut ReadFrom<'_>, _: &mut [u8]) -> Result<(), FillError> {
        let (head, range) = self.window(number);
        self.progress.add(range.end - range.start);
        self.windows.add(number, &[head, from.window(range)?]);
        Ok(())
    }

    fn needs(&self, number: u64, _gap: u64, visit: VisitRange<'_>) -> Result<(), FillError> {
        visit(self.window(number).1);
        Ok(())
    }

    fn range(&self) -> Option<Range<u64>> {
        Some(self.range.clone())
    }
}

fn hash(
    input: &Input,
    source: &dyn Source,
    windowed: &[(usize, HashWindows<'_>)],
    workers: &Workers,
    progress: &Progress,
) -> Result<(), Error> {
    let mut transfers = Vec::with_capacity(windowed.len());
    for (_, pieces) in windowed {
        transfers.push(Transfer { source, pieces, conversion: Conversion::None, at: 0 });
    }
    let outcome = run(&transfers, &NullSink, workers, progress);
    source.verify().map_err(|error| Error::file(&input.location, error))?;
    outcome.map_err(|error| failed_run(error, Some(&(&input.location).into()), None))
}

/// A tensor whose elements are put in order before they are hashed.
struct ReorderedTensor<'a> {
    input: &'a Input,
    source: &'a dyn Source,
    tensor: &'a TensorInfo,
    workers: &'a Workers,
    progress: &'a Progress,
}

impl ReorderedTensor<'_> {
    /// Whether neighbours lie so far apart that scratch saves time, and there is room for scratch.
    fn is_scattered(&self, region: &dyn Region) -> bool {
        let is_scattered = region.strided().is_some_and(|view| view.range().is_none());
        is_scattered
            && region.bytes() >= SCATTERED
            && !self.is_swapped_by_field()
            && scratch_fits(region.bytes()).unwrap_or(false)
    }

    fn is_swapped_by_field(&self) -> bool {
        let dtype = &self.tensor.dtype;
        dtype.structure().is_some() && has_big_endian(dtype)
    }

    fn take(&self, region: Arc<dyn Region>) -> Take {
        let TensorInfo { dtype, .. } = self.tensor;
        let conversion = Conversion::swap_bytes(swap_width(dtype));
        let take = Take::new(self.tensor.shard(), region, conversion, 0);
        let unit = if self.is_swapped_by_field() { dtype.item_bits() / 8 } else { take.unit };
        Take { unit, ..take }
    }

    fn copied(&self, region: Arc<dyn Region>) -> Result<Digest, Error> {
        let ReorderedTensor { input, source, workers, progress, .. } = *self;
        let bytes = region.bytes();
        let takes = [self.take(region)];
        let copied = written_to_scratch(bytes, &takes, workers, |job| {
            job.copy_random(input, source, &takes)
        })?;
        let all = [(0, HashWindows::new(head(self.tensor), 0..bytes, progress))];
        hash(input, &copied, &all, workers, progress)?;
        let [(_, of)] = all;
        Ok(of.windows.finish())
    }

    /// Hash elements in the order of the engine.
    fn coming(&self, region: Arc<dyn Region>) -> Result<Digest, Error> {
        let ReorderedTensor { input, source, tensor, workers, progress } = *self;
        let takes = [self.take(region)];
        let mut hasher = Hasher::new();
        hasher.update(&head(tensor));
        let hasher = Mutex::new(hasher);
        let locked = || hasher.lock().unwrap_or_else(PoisonError::into_inner);
        let look = |_: u64, bytes: &[u8]| {
            if self.is_swapped_by_field() {
                let mut swapped = bytes.to_vec();
                swap_fields(&tensor.dtype, &mut swapped);
                locked().update(&swapped);
            } else {
                locked().update(bytes);
            }
            Ok(())
        };
        let copy = |job: &Writing<'_>| job.copy_random(input, source, &takes);
        scan(WriteOrder::Ascending, &takes, workers, progress, look, copy)?;
        Ok(locked().finalize())
    }
}
