//! Several slices in one file, side by side or each by itself, and several files at once.

use std::path::Path;

use crate::error::{Error, FileName};
use crate::execute::{Progress, Workers};
use crate::handle::file::File;
use crate::handle::output_at;
use crate::handle::slice::Slice;
use crate::job::{
    Along, JoinedSlice, PartNames, SplitFault, Together, Writing, check_together, join_slices,
    merge_slices, write_together,
};
use crate::output::{Prepared, WriteOptions};
use crate::region::Take;
use crate::shape::Order;

/// Slices on their way to one file. Nothing of them has been read.
pub struct JoinedSlices<'a> {
    slices: &'a [Slice],
    how: How,
}

/// What becomes of them.
enum How {
    /// One tensor, in which they are side by side.
    Joined { axis: i64, along: Along },
    /// A tensor each.
    Merged,
}

/// NumPy's `concatenate`: slices joined along an axis that they have; a negative one counts from the end.
/// The shapes must agree on all other axes, and the dtypes be one, byte order aside.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = |name: &str| folder.path().join(name);
/// # use tslice::dtype::{DType, Endian, Scalar};
/// # let u8 = DType::Scalar(Scalar::U8, Endian::Little);
/// # let header = tslice::format::npy::header(&u8, &[2, 2], Default::default())?;
/// # std::fs::write(path("a.npy"), [&header[..], &[1, 2, 3, 4]].concat())?;
/// # std::fs::write(path("b.npy"), [&header[..], &[5, 6, 7, 8]].concat())?;
/// let a = tslice::open(path("a.npy"))?.only()?.all();
/// let b = tslice::open(path("b.npy"))?.only()?.slice("[1:]")?;
/// tslice::concatenate(&[a, b], 0).write(path("both.npy"))?;
/// let both = tslice::open(path("both.npy"))?.only()?.all();
/// assert_eq!((both.shape(), both.read::<u8>()?), (&[3, 2][..], vec![1, 2, 3, 4, 7, 8]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn concatenate(slices: &[Slice], axis: i64) -> JoinedSlices<'_> {
    JoinedSlices { slices, how: How::Joined { axis, along: Along::Existing } }
}

/// NumPy's `stack`: slices of one shape joined along a new axis; a negative one counts from the end.
///
/// ```no_run
/// let frames = ["0.npy", "1.npy"].map(|path| Ok(tslice::open(path)?.only()?.all()));
/// let frames: Vec<_> = frames.into_iter().collect::<Result<_, tslice::Error>>()?;
/// tslice::stack(&frames, 0).write("frames.npy")?;
/// # Ok::<(), tslice::Error>(())
/// ```
pub fn stack(slices: &[Slice], axis: i64) -> JoinedSlices<'_> {
    JoinedSlices { slices, how: How::Joined { axis, along: Along::New } }
}

/// Slices as the tensors of one file, in their order, each with the name of its tensor
/// ([`Slice::named`] gives it another one) or the stem of its file. A folder (`"model/"`) is written in shards of
/// [`WriteOptions::shard_size`]. Of the metadata of all files the output has the union.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = |name: &str| folder.path().join(name);
/// # use tslice::dtype::{DType, Endian, Scalar};
/// # let f32 = DType::Scalar(Scalar::F32, Endian::Little);
/// # let header = tslice::format::npy::header(&f32, &[2], Default::default())?;
/// # std::fs::write(path("a.npy"), [&header[..], &[0; 8]].concat())?;
/// use tslice::{Casting, Slice, WriteOptions};
///
/// let a = tslice::open(path("a.npy"))?.only()?;
/// tslice::merge(&[a.all(), a.slice(1)?.named("last")]).write(path("both.safetensors"))?;
///
/// // a checkpoint to bfloat16, in shards
/// let file = tslice::open(path("both.safetensors"))?;
/// let bf16 = tslice::parse_dtype("bfloat16")?;
/// let cast = |tensor: tslice::Tensor| tensor.all().cast(&bf16, Casting::SameKind);
/// let tensors: Vec<Slice> = file.tensors().map(cast).collect::<Result<_, _>>()?;
/// let shards = WriteOptions::default().shard_size(5_000_000_000);
/// tslice::merge(&tensors).write_with(path("model/"), &shards)?;
/// assert_eq!(tslice::open(path("model/"))?.tensors().count(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn merge(slices: &[Slice]) -> JoinedSlices<'_> {
    JoinedSlices { slices, how: How::Merged }
}

impl JoinedSlices<'_> {
    /// Write all to a new file, whose name tells the format. The file appears when it is complete.
    ///
    /// # Errors
    /// [`JoinFault`](crate::job::JoinFault) for slices that do not fit together,
    /// [`MergeFault`](crate::job::MergeFault) for two of one name; those of [`Slice::write`].
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.write_with(path, &WriteOptions::default())
    }

    /// Write all with options: another format, a file that is replaced, a name.
    ///
    /// # Errors
    /// As [`write`](JoinedSlices::write), and options that do not apply to the format.
    pub fn write_with(&self, path: impl AsRef<Path>, options: &WriteOptions) -> Result<(), Error> {
        let output = output_at(path.as_ref(), options)?;
        let slices = self.slices.iter().map(|slice| slice.to_join(options.order));
        let slices: Vec<_> = slices.collect::<Result<_, _>>()?;
        match self.how {
            How::Joined { axis, along } => join_slices(&slices, axis, along, &output),
            How::Merged => merge_slices(&slices, &output),
        }
    }
}

impl Slice {
    fn to_join(&self, order: Order) -> Result<JoinedSlice<'_>, Error> {
        let File { input, source, .. } = self.tensor.file.as_ref();
        let (tensor, becomes) = (self.tensor.info(), self.becomes());
        let region = self.region(order).map_err(|cause| self.failed(cause))?;
        Ok(JoinedSlice { input, source, tensor, becomes, region })
    }
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
/// # use tslice::dtype::{DType, Endian, Scalar};
/// # let u8 = DType::Scalar(Scalar::U8, Endian::Little);
/// # let header = tslice::format::npy::header(&u8, &[2, 2], Default::default())?;
/// # std::fs::write(path("a.npy"), [&header[..], &[1, 2, 3, 4]].concat())?;
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
    check_together(&outputs)?;
    write_together(&mut outputs, &Progress::default())
}

/// Slices on their way to files.
struct Outputs<'a> {
    names: PartNames,
    slices: &'a [Slice],
    options: &'a WriteOptions,
}

impl Together for Outputs<'_> {
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
        let takes = takes.into_iter().map(|take| (at, take)).collect();
        Ok((prepared, takes))
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
