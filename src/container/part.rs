//! One output in parts, each written by a process of its own.
//!
//! The bytes of the elements of all tensors are one space: the file from the first element to the
//! end of the last. It is cut evenly, at multiples of 4096 bytes of the file, so that no two
//! machines write to one block. An element that is converted on the way is not divided: it belongs
//! to the part after the cut.
//!
//! ```text
//!   file    header│ tensor a      │ tensor b  │     4096 bytes a block
//!           ──────┼───┬───┬───┬───┼───┬───┬───┤
//!   parts         │ 0     │ 1     │ 2     │ 3 │
//! ```

use std::fmt::Write;
use std::fs::Metadata;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::{ContainerError, FileName};
use super::fault::PartFault;
use super::input::Input;
use super::job::Job;
use super::output::{Output, Prepared};
use super::take::{GatheredList, Region, Take};
use crate::execute::Progress;
use crate::plan::{Plan, Tiling};
use crate::sink::{
    Begun, Destination, Fingerprint, FixedFrame, InputId, JobRecord, Part, PartSink, PartsError,
};
use crate::source::Source;

/// Parts begin at multiples of so many bytes of the file.
const BLOCK_BYTES: u64 = 4096;

/// An output that is cut into parts.
pub struct Parts<'a> {
    output: &'a Output,
    takes: &'a [Take],
    count: u64,
    path: &'a Path,
    frame: FixedFrame<'a>,
    /// Bytes of the whole output, and of its elements.
    len: u64,
    total: u64,
    /// From the first element to the end of the last.
    span: Range<u64>,
}

impl<'a> Parts<'a> {
    /// Cut an output into `count` parts, at least one.
    ///
    /// # Errors
    /// [`PartFault::NotFixed`], [`PartFault::Compressed`]; an output that is no file.
    pub fn new(
        output: &'a Output,
        prepared: &'a Prepared,
        takes: &'a [Take],
        count: u64,
    ) -> Result<Parts<'a>, ContainerError> {
        let failed = |cause| ContainerError::file(&output.destination, cause);
        let Destination::Path(path) = &output.destination else {
            return Err(output.failed(PartsError::NotAFile.into()));
        };
        let (Some(frame), Some(len)) = (prepared.frame.fixed(), prepared.frame.size()) else {
            return Err(failed(match output.options.deflate {
                true => PartFault::Compressed,
                false => PartFault::NotFixed(output.format.name),
            }));
        };
        let end = takes.last().map_or(0, |take| take.at + take.bytes());
        let span = takes.first().map_or(0, |take| take.at)..end;
        let total = prepared.bytes;
        Ok(Parts { output, takes, count: count.max(1), path, frame, len, total, span })
    }

    /// Where part `index` begins in the file; where the last one ends, for `index` = `count`.
    fn cut(&self, index: u64) -> u64 {
        let Range { start, end } = self.span;
        match index {
            0 => start,
            index if index >= self.count => end,
            index => {
                let share = u128::from(end - start) * u128::from(index) / u128::from(self.count);
                let at = start + share as u64;
                (at - at % BLOCK_BYTES).max(start)
            }
        }
    }

    /// The bytes of the file from the beginning of part `index` to its end. In an archive, headers
    /// of members may lie among them.
    pub fn range(&self, index: u64) -> Range<u64> {
        self.cut(index)..self.cut(index + 1)
    }

    /// What part `index` takes.
    fn takes(&self, index: u64) -> Vec<Take> {
        let range = self.range(index);
        let first = self.takes.partition_point(|take| take.at + take.bytes() <= range.start);
        let near = self.takes[first..].iter().take_while(|take| take.at < range.end);
        near.flat_map(|take| take.within(&range)).collect()
    }

    /// Bytes of elements that part `index` writes.
    pub fn bytes(&self, index: u64) -> u64 {
        self.takes(index).iter().map(Take::bytes).sum()
    }

    /// About how many bytes of the input part `index` reads, in whole cache lines.
    pub fn reads(&self, index: u64) -> u64 {
        let reads = |take: Take| match &take.region {
            Region::View(view) => Plan::tiled(view, take.unit(), Tiling::MAPPED).reads(),
            Region::Gather(_) | Region::Fields(_) => take.bytes(),
        };
        self.takes(index).into_iter().map(reads).sum()
    }

    /// Write part `index`, unless it is complete. Whoever completes the last part puts the output
    /// in place.
    ///
    /// # Errors
    /// [`PartFault`]; those of [`write()`](super::write()).
    pub fn write(
        &self,
        index: u64,
        input: &mut Input,
        progress: &Progress,
    ) -> Result<(), ContainerError> {
        let inputs = self.inputs(input)?;
        let takes = self.takes(index);
        let bytes = takes.iter().map(Take::bytes).sum();
        let work = self.fingerprint()?;
        let job = JobRecord::new(self.count, self.len, ids(&inputs), work.to_string());
        let begun = PartSink::begin(
            self.path,
            Part { index, count: self.count },
            &job,
            self.frame,
            (self.range(index), bytes, self.total),
            self.output.sink_options(),
        );
        let Begun::Part(sink) = begun.map_err(|error| self.output.failed(error))? else {
            return Ok(());
        };
        let name = Some(FileName::from(&self.output.destination));
        let job = Job::elements(name, sink, &takes, self.output.options.threads, progress)?;
        job.copy(input, &takes)?;
        for (path, id) in &inputs {
            let changed = || ContainerError::file(path.as_path(), PartFault::Changed);
            let now =
                path.metadata().map_err(|error| ContainerError::file(path.as_path(), error))?;
            if input_id(path, &now) != *id {
                return Err(changed());
            }
        }
        job.commit()
    }

    /// All files that are read, as they are now.
    fn inputs(&self, input: &Input) -> Result<Vec<(PathBuf, InputId)>, ContainerError> {
        let mut files = match input.files() {
            Some(files) => files,
            None => return Err(ContainerError::file(&input.location, PartFault::NotAFile)),
        };
        files.extend(self.takes.iter().flat_map(|take| take.region.lists()).filter_map(list_file));
        files.dedup();
        let output = self.path.metadata().ok();
        let id = |path: PathBuf| {
            let failed = |fault| ContainerError::file(path.as_path(), fault);
            let found =
                path.metadata().map_err(|error| ContainerError::file(path.as_path(), error))?;
            if !found.is_file() {
                return Err(failed(PartFault::NotAFile));
            }
            if output.as_ref().is_some_and(|it| (it.dev(), it.ino()) == (found.dev(), found.ino()))
            {
                return Err(failed(PartFault::InputIsOutput));
            }
            let id = input_id(&path, &found);
            Ok((path, id))
        };
        files.into_iter().map(id).collect()
    }

    /// A number for all that decides the bytes of the output, but for the bytes of the input.
    fn fingerprint(&self) -> Result<Fingerprint, ContainerError> {
        let mut work = Fingerprint::default();
        // never fails
        let _ = write!(work, "{:?}", self.frame);
        for take in self.takes {
            let _ = write!(work, "{:?}", (take.part, take.conversion, take.at));
            identify(&take.region, &mut work);
            for list in take.region.lists() {
                if list_file(list).is_none() {
                    add_bytes(&mut work, list.source.as_ref())?;
                }
            }
        }
        Ok(work)
    }
}

/// Add all that a region is, but for the bytes of its lists.
fn identify(region: &Region, work: &mut Fingerprint) {
    // never fails
    let _ = match region {
        Region::View(view) => write!(work, "{view:?}"),
        Region::Gather(gathered) => write!(work, "{}", gathered.gather.identity()),
        Region::Fields(fields) => {
            let (parts, window) = fields.parts();
            parts.for_each(|part| identify(part, work));
            write!(work, "{window:?}")
        }
    };
}

impl Take {
    /// Bytes of the output.
    fn bytes(&self) -> u64 {
        self.conversion.output_bytes(self.region.bytes())
    }

    /// What goes to a range of the output.
    fn within(&self, range: &Range<u64>) -> Vec<Take> {
        let (bytes, conversion) = (self.bytes(), self.conversion);
        let cut = |at: u64| match at.saturating_sub(self.at).min(bytes) {
            within if within == bytes => self.region.bytes(),
            within => conversion.input_bytes(within),
        };
        let window = cut(range.start)..cut(range.end);
        let take = |region, at| Take { region, at, ..*self };
        let mut at = self.at + conversion.output_bytes(window.start);
        match &self.region {
            _ if window.is_empty() => Vec::new(),
            Region::View(view) => {
                let takes = view.split(window).into_iter().map(|view| {
                    let start = at;
                    at += conversion.output_bytes(view.bytes());
                    take(Region::View(view), start)
                });
                takes.collect()
            }
            Region::Fields(fields) => vec![take(Region::Fields(fields.within(window)), at)],
            Region::Gather(gathered) => {
                let mut gathered = gathered.clone();
                gathered.gather = gathered.gather.within(window);
                vec![take(Region::Gather(gathered), at)]
            }
        }
    }
}

/// The file of an index tensor.
fn list_file(list: &GatheredList) -> Option<PathBuf> {
    match &list.file {
        Some(FileName::Path(path)) => Some(path.clone()),
        _ => None,
    }
}

/// Add all bytes of indices that have no file of their own.
fn add_bytes(work: &mut Fingerprint, indices: &dyn Source) -> Result<(), ContainerError> {
    let mut scratch = Vec::new();
    let limit = indices.window_limit().unwrap_or(u64::MAX).clamp(1, 1 << 20);
    let mut start = 0;
    while start < indices.len() {
        let end = (start + limit).min(indices.len());
        work.add(indices.window(start..end, &mut scratch)?);
        start = end;
    }
    Ok(())
}

fn ids(inputs: &[(PathBuf, InputId)]) -> Vec<InputId> {
    inputs.iter().map(|(_, id)| id.clone()).collect()
}

fn input_id(path: &Path, found: &Metadata) -> InputId {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    InputId { name, size: found.size(), mtime: (found.mtime(), found.mtime_nsec()) }
}
