//! Appending rows to a `.npy` file, in place.
//!
//! The file is the first input of a join, and becomes its result. The new elements are written first, after the existing
//! elements. Last, the header is overwritten by a header of the same length. A reader finds the old array until then, also
//! after a kill. After an error, or a signal that can be caught, the file is truncated to its old length.

use std::ops::Range;
use std::path::Path;

use super::copy::{WriteTarget, Writing};
use super::copying::{Copying, OutputRange};
use super::{Job, OutputKind, Planned};
use crate::dtype::DType;
use crate::error::{Error, Fault};
use crate::execute::Progress;
use crate::formats::{self, npy};
use crate::input::{Format, Location, OpenOptions};
use crate::shape::Order;
use crate::sink::{Growth, Hold, InPlaceFile, Sink, SinkError, SinkResult};
use crate::tensor::TensorInfo;

pub struct Appending<'a> {
    copying: Copying<'a>,
    path: &'a Path,
    /// The file, locked against other runs that append; `None` for a dry run.
    file: Option<InPlaceFile>,
    /// The array before rows are appended.
    old: TensorInfo,
    /// The header of the result, as long as the header of the file.
    header: Vec<u8>,
    fsync: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum AppendFault {
    #[error("rows can only be appended to a .npy, not to format {0}")]
    Format(&'static Format),
    #[error("another process is appending to the file")]
    Held,
    #[error("the file was replaced while it was being opened")]
    Replaced,
    #[error("the array is in Fortran order: rows cannot be appended")]
    Fortran,
    #[error("rows are appended along axis 0")]
    Axis,
    #[error("the array has dtype {old}, the new rows have {new}")]
    DType { old: DType, new: DType },
    #[error("{0} bytes follow the array, as after a killed run or several np.save")]
    Following(u64),
    #[error("the header of {0} bytes has no room for the new shape")]
    NoRoom(u64),
}

impl Fault for AppendFault {}

impl<'a> Appending<'a> {
    /// Open the file, and lock it until it is closed, so that its contents stay what was read.
    pub fn hold(path: &Path) -> Result<InPlaceFile, Error> {
        let file = InPlaceFile::open(path).map_err(|error| Error::file(path, error))?;
        match file.hold() {
            Hold::Alone | Hold::NoLocks => Ok(file),
            Hold::Refused => Err(Error::file(path, AppendFault::Held)),
        }
    }

    /// A join along the first axis whose first input is the file `path`, and whose output is the
    /// same file. With `force`, bytes that follow the array are overwritten.
    pub fn new(
        copying: Copying<'a>,
        path: &'a Path,
        file: Option<InPlaceFile>,
        force: bool,
        fsync: bool,
    ) -> Result<Appending<'a>, Error> {
        let location = Location::Path(path.to_owned());
        let input = formats::open(&location, &OpenOptions::default())?;
        let failed = |fault: AppendFault| Error::file(path, fault);
        if input.contents.format != &npy::FORMAT {
            return Err(failed(AppendFault::Format(input.contents.format)));
        }
        let old = input.contents.tensors.at(0);
        if let Some(file) = &file
            && let Some(source) = input.random()
        {
            let id = file.id().map_err(|error| Error::file(path, error))?;
            let ranges = source.file_ranges(0..1).map_err(|error| Error::file(path, error))?;
            if ranges.iter().any(|range| Some(range.file) != id) {
                return Err(failed(AppendFault::Replaced));
            }
        }
        if old.order() == Order::F && old.shape.len() > 1 {
            return Err(failed(AppendFault::Fortran));
        }
        if let Some((bytes, _)) = input.following().filter(|_| !force) {
            return Err(failed(AppendFault::Following(bytes)));
        }
        let header = copying.header_in_place(&old).map_err(failed)?;
        Ok(Appending { copying, path, file, old, header, fsync })
    }

    /// The range of the output that is new, and the position where the output's elements begin.
    fn new_range(&self) -> (Range<u64>, u64) {
        let prepared = &self.copying.prepared;
        let start = prepared.tensor_offsets().next().map_or(0, |(_, start)| start);
        (start + self.old.bytes()..start + prepared.bytes, start)
    }

    fn write_rows(&mut self, file: &Growth<'_>, progress: &Progress) -> Result<(), Error> {
        let (range, start) = self.new_range();
        if range.is_empty() {
            return Ok(());
        }
        let Copying { prepared, assembly, .. } = &mut self.copying;
        let sink = AppendSink { file, start, data_start: self.old.data().start };
        let workers = prepared.output.options.workers.clone();
        let target = WriteTarget::Sink(&sink);
        let job = Writing::elements(Some(self.path.into()), target, &workers, progress);
        assembly.copy(&OutputRange { prepared, range }, &job)
    }

    /// Write the header with the new number of rows.
    fn write_header(&self, file: &InPlaceFile) -> SinkResult<()> {
        file.write_at(0, &self.header)?;
        file.cut(self.header.len() as u64 + self.copying.prepared.bytes)
    }
}

impl Copying<'_> {
    /// The header of the result, as long as the header of the file that it replaces.
    fn header_in_place(&self, old: &TensorInfo) -> Result<Vec<u8>, AppendFault> {
        let result = self.prepared.tensors.only().ok_or(AppendFault::Axis)?;
        if result.dtype != old.dtype {
            return Err(AppendFault::DType { old: old.dtype.clone(), new: result.dtype });
        }
        if result.shape.get(1..) != old.shape.get(1..) || result.shape.len() != old.shape.len() {
            return Err(AppendFault::Axis);
        }
        let room = old.data().start;
        npy::header_within(&old.dtype, &result.shape, room).ok_or(AppendFault::NoRoom(room))
    }
}

impl Job for Appending<'_> {
    fn bytes(&self) -> u64 {
        let (range, _) = self.new_range();
        range.end - range.start
    }

    fn looked_at(&self) -> Result<u64, Error> {
        self.copying.looked_at()
    }

    fn look(&mut self, progress: &Progress) -> Result<(), Error> {
        self.copying.look(progress)
    }

    fn left_uncast(&self) -> usize {
        self.copying.left_uncast()
    }

    fn check(&mut self) -> Result<(), Error> {
        self.copying.check()
    }

    fn describe(&mut self) -> Result<Vec<Planned>, Error> {
        let bytes = self.bytes();
        let planned = Planned::new(&self.copying.prepared, 0);
        Ok(vec![Planned { kind: OutputKind::InPlace, bytes, size: None, ..planned }])
    }

    fn network_bytes(&mut self) -> Result<u64, Error> {
        self.copying.network_bytes()
    }

    fn write(&mut self, progress: &Progress) -> Result<(), Error> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let path = self.path;
        let failed = |error: SinkError| Error::file(path, error);
        let growth = file.grow_from(self.old.data().end).map_err(failed)?;
        self.write_rows(&growth, progress)?;
        file.sync(self.fsync).map_err(failed)?;
        growth.keep(|| self.write_header(&file)).map_err(failed)?;
        file.finish(self.fsync).map_err(failed)
    }
}

/// A sink that writes after the array of a file. Callers write at positions of the output, whose header has another
/// length.
struct AppendSink<'a> {
    file: &'a Growth<'a>,
    /// The positions where the elements begin in the output, and in the file.
    start: u64,
    data_start: u64,
}

impl Sink for AppendSink<'_> {
    fn is_atomic(&self) -> bool {
        false
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> SinkResult<()> {
        self.file.write_at(offset - self.start + self.data_start, bytes)
    }

    fn settle(&self, range: Range<u64>, wait: bool) -> SinkResult<()> {
        let in_file = |at: u64| at - self.start + self.data_start;
        self.file.settle(in_file(range.start)..in_file(range.end), wait)
    }
}
