//! Several slices written together: joined, as the tensors of one file, or to a file each.

use std::path::Path;

use super::output_at;
use super::slice::Slice;
use crate::error::{Error, FileName};
use crate::execute::{Progress, Workers};
use crate::job::{
    Along, HeldSlice, OutputSet, PartNames, SplitFault, Writing, check_outputs, join_slices,
    merge_slices, write_outputs,
};
use crate::output::{Prepared, WriteOptions};
use crate::region::Take;

/// NumPy's `concatenate`, written to a new file, whose name gives the format: slices joined along an axis that they
/// have; a negative one counts from the end. The shapes must agree on all other axes, and the dtypes be one, byte
/// order aside. The file appears when it is complete.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = |name: &str| folder.path().join(name);
/// # tslice::tensor("", &[2, 2], vec![1u8, 2, 3, 4])?.all().write(path("a.npy"))?;
/// # tslice::tensor("", &[2, 2], vec![5u8, 6, 7, 8])?.all().write(path("b.npy"))?;
/// let a = tslice::open(path("a.npy"))?.only()?.all();
/// let b = tslice::open(path("b.npy"))?.only()?.slice("[1:]")?;
/// tslice::write_concatenated(path("both.npy"), &[a, b], 0, &Default::default())?;
/// let both = tslice::open(path("both.npy"))?.only()?.all();
/// assert_eq!((both.shape(), both.read::<u8>()?), (&[3, 2][..], vec![1, 2, 3, 4, 7, 8]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`JoinFault`](crate::job::JoinFault) for slices that do not fit together; those of [`Slice::write_with`].
pub fn write_concatenated(
    path: impl AsRef<Path>,
    slices: &[Slice],
    axis: i64,
    options: &WriteOptions,
) -> Result<(), Error> {
    let output = output_at(path.as_ref(), options)?;
    join_slices(&held(slices, options)?, axis, Along::Existing, &output)
}

/// NumPy's `stack`, written to a new file as by [`write_concatenated`]: slices of one shape joined along a new axis.
///
/// ```no_run
/// let frames = ["0.npy", "1.npy"].map(|path| Ok(tslice::open(path)?.only()?.all()));
/// let frames: Vec<_> = frames.into_iter().collect::<Result<_, tslice::Error>>()?;
/// tslice::write_stacked("frames.npy", &frames, 0, &Default::default())?;
/// # Ok::<(), tslice::Error>(())
/// ```
///
/// # Errors
/// As [`write_concatenated`].
pub fn write_stacked(
    path: impl AsRef<Path>,
    slices: &[Slice],
    axis: i64,
    options: &WriteOptions,
) -> Result<(), Error> {
    let output = output_at(path.as_ref(), options)?;
    join_slices(&held(slices, options)?, axis, Along::New, &output)
}

/// Write slices as the tensors of one new file, in their order, each with the name of its tensor
/// ([`Slice::named`] gives it another one) or the stem of its file. A folder (`"model/"`) is written in shards of
/// [`WriteOptions::shard_size`]. Of the metadata of all files the output has the union.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = |name: &str| folder.path().join(name);
/// # tslice::tensor("", &[2], vec![0f32; 2])?.all().write(path("a.npy"))?;
/// use tslice::{Casting, Slice, WriteOptions};
///
/// let a = tslice::open(path("a.npy"))?.only()?;
/// let slices = [a.all(), a.slice(1)?.named("last")];
/// tslice::write_merged(path("both.safetensors"), &slices, &WriteOptions::default())?;
///
/// // a checkpoint to bfloat16, in shards
/// let file = tslice::open(path("both.safetensors"))?;
/// let bf16 = tslice::parse_dtype("bfloat16")?;
/// let cast = |tensor: tslice::Tensor| tensor.all().cast(&bf16, Casting::SameKind);
/// let tensors: Vec<Slice> = file.tensors().map(cast).collect::<Result<_, _>>()?;
/// let shards = WriteOptions::default().shard_size(5_000_000_000);
/// tslice::write_merged(path("model/"), &tensors, &shards)?;
/// assert_eq!(tslice::open(path("model/"))?.tensors().count(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`MergeFault`](crate::job::MergeFault) for two of one name; those of [`Slice::write_with`].
pub fn write_merged(
    path: impl AsRef<Path>,
    slices: &[Slice],
    options: &WriteOptions,
) -> Result<(), Error> {
    let output = output_at(path.as_ref(), options)?;
    merge_slices(&held(slices, options)?, &output)
}

/// What the slices take, in the memory order of an output.
fn held<'a>(slices: &'a [Slice], options: &WriteOptions) -> Result<Vec<HeldSlice<'a>>, Error> {
    let held = slices.iter().map(|slice| {
        let input = &slice.tensor.file.input;
        let region = slice.region(options.order).map_err(|cause| slice.failed(cause))?;
        Ok(HeldSlice { input, tensor: slice.tensor.info(), change: slice.change(), region })
    });
    held.collect()
}

/// Write each slice to a file of its own, whose number from 0 stands where `pattern` has `{}`, or `{:04}`
/// for four digits. The files appear together, when all are complete; on any error, none does.
///
/// ```
/// use tslice::WriteOptions;
/// use tslice::job::Cuts;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = |name: &str| folder.path().join(name);
/// # tslice::tensor("", &[2, 2], vec![1u8, 2, 3, 4])?.all().write(path("a.npy"))?;
/// let rows = tslice::open(path("a.npy"))?.only()?.all().split(0, &Cuts::Every(1))?;
/// tslice::write_all(path("row-{:02}.npy"), &rows, &WriteOptions::default())?;
/// assert_eq!(tslice::open(path("row-01.npy"))?.only()?.all().read::<u8>()?, [3, 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`SplitFault::NoPlace`] for a pattern without a place for the number; those of [`Slice::write`].
pub fn write_all(
    pattern: impl AsRef<Path>,
    slices: &[Slice],
    options: &WriteOptions,
) -> Result<(), Error> {
    let names = PartNames::parse(pattern.as_ref())
        .ok_or_else(|| Error::file(FileName::from(pattern.as_ref()), SplitFault::NoPlace))?;
    let mut outputs = Outputs { names, slices, options };
    check_outputs(&outputs)?;
    write_outputs(&mut outputs, &Progress::watched(&options.watcher))
}

struct Outputs<'a> {
    names: PartNames,
    slices: &'a [Slice],
    options: &'a WriteOptions,
}

impl OutputSet for Outputs<'_> {
    fn count(&self) -> u64 {
        self.slices.len() as u64
    }

    fn workers(&self) -> &Workers {
        &self.options.workers
    }

    fn part(&self, number: u64) -> Result<(Prepared, Vec<(usize, Take)>), Error> {
        let output = output_at(&self.names.path(number), self.options)?;
        let at = number as usize;
        let (prepared, takes) = self.slices[at].prepare(&output)?;
        Ok((prepared, takes.into_iter().map(|take| (at, take)).collect()))
    }

    fn copy(
        &mut self,
        job: &Writing<'_>,
        source: usize,
        takes: &[Take],
        _: bool,
    ) -> Result<(), Error> {
        self.slices.get(source).map_or(Ok(()), |slice| slice.copy(job, takes))
    }
}
