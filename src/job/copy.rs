//! The copy job: regions of an input are copied to an output.
//!
//! A pipe is read in one pass if its regions follow each other. Otherwise it is copied to scratch first. The same holds for
//! a deflated member of an archive.

use std::io::ErrorKind;
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, FileName};
use crate::execute::{ExecuteError, FillError, Progress, Transfer, Workers};
use crate::formats::raw;
use crate::input::{
    Bytes, Contents, DeflatedMember, Input, Location, StoredMember, Summed, failed_stream, finish,
};
use crate::job::overwrite;
use crate::output::Prepared;
use crate::output::layout::OutputLayout;
use crate::plan::Plan;
use crate::region::{Gathered, GatheredList, ReadBy, ReadFor, RegionPieces, Take};
use crate::sink::{Draft, ScratchSink, Sink, SinkError, WriteOrder};
use crate::source::{Forward, PreadSource, Source};
use crate::tensor::Tensors;
use crate::{execute, source};

/// The number of takes given to the executor at once: each has some 300 bytes there.
const RUN_TAKES: usize = 1 << 13;

pub(super) enum WriteTarget<'a> {
    Draft(Box<dyn Draft + 'a>),
    /// A sink for elements alone: they are scanned, or the caller puts the output in place.
    Sink(&'a dyn Sink),
}

/// An output that is being written. If it is dropped, the previous file stays.
pub(crate) struct Writing<'a> {
    /// The name of the output, where it is a file or a stream.
    name: Option<FileName>,
    target: WriteTarget<'a>,
    workers: Workers,
    progress: &'a Progress,
    /// The bytes of the output that are not elements, where they are written at the end.
    layout: Option<&'a dyn OutputLayout>,
}

impl<'a> Writing<'a> {
    /// Create the output, and write all bytes that are not elements. If blocks of the input may be shared or holes made,
    /// they are written at the end, since the first write allocates space.
    pub(crate) fn begin(
        prepared: &'a Prepared,
        input: &Input,
        takes: &[Take],
        progress: &'a Progress,
    ) -> Result<Writing<'a>, Error> {
        let lists = takes.iter().flat_map(|take| take.region.lists());
        overwrite::check(&prepared.output.destination, [input], lists)?;
        let has_holes = || input.random().is_some_and(|source| source.has_holes());
        let shares = takes.iter().any(|take| take.may_share(input)) || has_holes();
        Writing::of_output(prepared, shares, takes, progress)
    }

    /// Create an output that is known to overwrite no input.
    pub(crate) fn of_output<'t>(
        prepared: &'a Prepared,
        shares: bool,
        takes: impl IntoIterator<Item = &'t Take>,
        progress: &'a Progress,
    ) -> Result<Writing<'a>, Error> {
        let target = WriteTarget::Draft(prepared.create(shares)?);
        let name = Some(FileName::from(&prepared.output.destination));
        let layout = Some(prepared.layout.as_ref());
        let workers = prepared.output.options.workers.clone();
        let mut job = Writing { name, target, workers, progress, layout };
        job.check(takes)?;
        if !shares || job.sink().order() == WriteOrder::Ascending {
            job.write_headers()?;
        }
        Ok(job)
    }

    fn write_headers(&mut self) -> Result<(), Error> {
        let layout = self.layout.take();
        let written = layout.map_or(Ok(()), |layout| {
            layout.write_headers(&|at, bytes| self.sink().write_at(at, bytes))
        });
        written.map_err(|error| self.failed_sink(error))
    }

    pub(crate) fn into_sink(
        sink: &'a dyn Sink,
        takes: &[Take],
        workers: &Workers,
        progress: &'a Progress,
    ) -> Result<Writing<'a>, Error> {
        let job = Writing::elements(None, WriteTarget::Sink(sink), workers, progress);
        job.check(takes)?;
        Ok(job)
    }

    /// Write elements alone, to an output that has all other bytes.
    pub(super) fn elements(
        name: Option<FileName>,
        target: WriteTarget<'a>,
        workers: &Workers,
        progress: &'a Progress,
    ) -> Writing<'a> {
        let workers = workers.clone();
        Writing { name, target, workers, progress, layout: None }
    }

    fn execute(&self, transfers: &[Transfer<'_>], sink: &dyn Sink) -> Result<(), ExecuteError> {
        execute::run(transfers, sink, &self.workers, self.progress)
    }

    /// Check all indices first, if copying would not check them, or if written bytes cannot be taken back.
    pub(crate) fn check<'t>(&self, takes: impl IntoIterator<Item = &'t Take>) -> Result<(), Error> {
        let is_atomic = self.sink().is_atomic();
        takes.into_iter().try_for_each(|take| check_indices(take, &self.workers, is_atomic))
    }

    pub(crate) fn sink(&self) -> &dyn Sink {
        match &self.target {
            WriteTarget::Draft(draft) => draft.as_ref(),
            WriteTarget::Sink(sink) => *sink,
        }
    }

    /// Copy, and check that the whole input was there.
    pub(crate) fn copy(&self, input: &mut Input, takes: &[Take]) -> Result<(), Error> {
        self.copy_some(input, takes)?;
        match &mut input.bytes {
            Bytes::Stream(stream) => finish(&input.location, stream, &input.contents),
            Bytes::Random(_) => Ok(()),
        }
    }

    /// Copy some of the takes: a pipe is read no further than they need.
    pub(crate) fn copy_some(&self, input: &mut Input, takes: &[Take]) -> Result<(), Error> {
        if let Bytes::Stream(stream) = &mut input.bytes
            && let Some(plans) = forward(takes)
        {
            let location = &input.location;
            let contents = &input.contents;
            for (take, plan) in takes.iter().zip(&plans) {
                self.forward(stream, take, plan).map_err(|error| match error.into_source() {
                    Ok(error) => failed_stream(location, stream, contents, error),
                    Err(error) => self.failed(location, error),
                })?;
            }
            return Ok(());
        }
        let source = input.spool_watched(self.progress)?;
        self.copy_random(input, source.as_ref(), takes)
    }

    /// Copy from an input whose bytes come in any order.
    pub(crate) fn copy_random(
        &self,
        input: &Input,
        source: &dyn Source,
        takes: &[Take],
    ) -> Result<(), Error> {
        // what can be inflated in one pass needs no scratch
        let streamed = |take: &Take| {
            let member = input.container.deflated.get(take.shard.checked_sub(1)?)?;
            Some((member, take.forward(member.start)?))
        };
        let mut rest = takes;
        while let Some((first, others)) = rest.split_first() {
            if let Some((member, plan)) = streamed(first) {
                self.inflate(&input.location, member, first, &plan)?;
                rest = others;
                continue;
            }
            // the others in a few runs of the executor, so that not all are planned, nor in
            // scratch, at once
            let together = rest.iter().take(RUN_TAKES).skip(1);
            let is_next = |take: &&Take| !take.region.is_spooled() && streamed(take).is_none();
            let more =
                if first.region.is_spooled() { 0 } else { together.take_while(is_next).count() };
            let count = 1 + more;
            self.run(self.sink(), input, source, &rest[..count])?;
            rest = &rest[count..];
        }
        Ok(())
    }

    /// Copy from a deflated member while it is inflated.
    fn inflate(
        &self,
        location: &Location,
        member: &DeflatedMember,
        take: &Take,
        plan: &Plan,
    ) -> Result<(), Error> {
        let mut stream = member.bytes.stream();
        self.forward(&mut stream, take, plan).map_err(|error| self.failed(location, error))?;
        stream.finish().map_err(|error| Error::file(location, error))
    }

    fn forward(
        &self,
        stream: &mut dyn Forward,
        take: &Take,
        plan: &Plan,
    ) -> Result<(), ExecuteError> {
        let sink = self.sink();
        let conversion = take.conversion;
        let at = take.at;
        execute::run_forward(stream, plan, conversion, sink, at, self.progress)
    }

    pub(crate) fn run(
        &self,
        sink: &dyn Sink,
        input: &Input,
        source: &dyn Source,
        takes: &[Take],
    ) -> Result<(), Error> {
        let location = &input.location;
        let prepared = takes.iter().map(|take| self.pieces(location, take, source));
        let prepared: Vec<_> = prepared.collect::<Result<_, _>>()?;
        let checked = prepared.iter().map(|RegionPieces { pieces, copied }| {
            let range = pieces.range().filter(|_| copied.is_none())?;
            let member = StoredMember::find(&input.container.stored, &range)?;
            Some((Summed::new(pieces.as_ref(), member.bytes), member))
        });
        let checked: Vec<Option<(Summed<'_>, &StoredMember)>> = checked.collect();
        let prepared = prepared.iter().zip(&checked);
        let transfers = takes.iter().zip(prepared).map(|(take, (prepared, checked))| {
            let pieces = prepared.pieces.as_ref();
            Transfer {
                source: prepared.copied.as_deref().unwrap_or(source),
                pieces: checked.as_ref().map_or(pieces, |(summed, _)| summed),
                conversion: take.conversion,
                at: take.at,
            }
        });
        let transfers: Vec<Transfer<'_>> = transfers.collect();
        let outcome = self.execute(&transfers, sink);
        // a truncated input is the cause of any other error; where ranges are read by position and
        // nothing is put in place, each read has reported it
        let is_read = |transfer: &Transfer<'_>| transfer.pieces.range().is_some();
        let is_told = outcome.is_ok() && transfers.iter().all(is_read);
        if !is_told || matches!(self.target, WriteTarget::Draft(_)) {
            source.verify().map_err(|error| Error::file(location, error))?;
        }
        takes.iter().try_for_each(|take| GatheredList::verify_all(take.region.lists()))?;
        outcome.map_err(|error| match error {
            ExecuteError::Fill { transfer, .. } => {
                self.failed_take(location, &takes[transfer], error)
            }
            error => self.failed(location, error),
        })?;
        let is_damaged = |(summed, member): &&(Summed<'_>, &StoredMember)| {
            summed.crc().is_some_and(|crc| crc != member.crc)
        };
        match checked.iter().flatten().find(is_damaged) {
            Some((_, member)) => Err(input.damaged(member)),
            None => Ok(()),
        }
    }

    /// Copy with all threads from a source whose errors name their files.
    pub(crate) fn transfer(
        &self,
        source: &dyn Source,
        transfers: &[Transfer<'_>],
    ) -> Result<(), Error> {
        let outcome = self.execute(transfers, self.sink());
        source.verify()?;
        outcome.map_err(|error| failed_run(error, None, self.name.clone()))
    }

    fn pieces<'t>(
        &self,
        location: &Location,
        take: &'t Take,
        source: &dyn Source,
    ) -> Result<RegionPieces<'t>, Error> {
        let to = match self.sink().order() {
            WriteOrder::Ascending => ReadFor::Stream,
            WriteOrder::Any if take.unit == take.conversion.unit() => ReadFor::Position(take.at),
            // a scan has no blocks to share
            WriteOrder::Any => ReadFor::Look,
        };
        let Take { conversion, unit, .. } = *take;
        let workers = &self.workers;
        let progress = self.progress;
        let by = ReadBy { source, conversion, unit, to, workers, progress };
        take.region.pieces(&by).map_err(|error| self.failed_take(location, take, error))
    }

    /// The error of copying a take: of several lists, the first one with a bad position is named.
    fn failed_take(&self, location: &Location, take: &Take, error: ExecuteError) -> Error {
        let ExecuteError::Fill { transfer, error } = error else {
            return self.failed(location, error);
        };
        match error {
            FillError::Position(_)
                if let Some(gathered) = take.region.gathered()
                    && gathered.lists.len() > 1
                    && let Err(error) = check_lists(take, gathered, &self.workers) =>
            {
                error
            }
            FillError::Position(_) | FillError::Indices { .. } => take.region.failed(error.into()),
            error => self.failed(location, ExecuteError::Fill { transfer, error }),
        }
    }

    fn failed(&self, input: &Location, error: ExecuteError) -> Error {
        failed_run(error, Some(&input.into()), self.name.clone())
    }

    pub(crate) fn failed_sink(&self, error: SinkError) -> Error {
        failed_sink(self.name.clone(), error)
    }

    pub(crate) fn commit(self) -> Result<(), Error> {
        let name = self.name.clone();
        let committed = self.into_draft()?.map_or(Ok(()), |draft| draft.commit());
        committed.map_err(|error| failed_sink(name, error))
    }

    /// The output, complete and not put in place; `None` where the caller puts it in place.
    pub(super) fn into_draft(mut self) -> Result<Option<Box<dyn Draft + 'a>>, Error> {
        self.write_headers()?;
        match self.target {
            WriteTarget::Draft(draft) => Ok(Some(draft)),
            WriteTarget::Sink(_) => Ok(None),
        }
    }
}

/// Scan the elements of takes, read as `copy` reads them: `look` gets ranges that divide no
/// element, each with its position, in this order.
pub(crate) fn scan(
    order: WriteOrder,
    takes: &[Take],
    workers: &Workers,
    progress: &Progress,
    look: impl Fn(u64, &[u8]) -> Result<(), Error> + Send + Sync,
    copy: impl FnOnce(&Writing<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let sink = LookSink { order, look, failed: Mutex::default() };
    let copied = Writing::into_sink(&sink, takes, workers, progress).and_then(|job| copy(&job));
    let failed = sink.failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    // this error was the cause of the other
    failed.map_or(copied, Err)
}

struct LookSink<F> {
    order: WriteOrder,
    look: F,
    failed: Mutex<Option<Error>>,
}

impl<F: Fn(u64, &[u8]) -> Result<(), Error> + Send + Sync> Sink for LookSink<F> {
    fn order(&self) -> WriteOrder {
        self.order
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        (self.look)(offset, bytes).map_err(|error| {
            self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            SinkError::Io(ErrorKind::Other.into())
        })
    }
}

/// The plans that read all takes in one pass of a stream, if that is possible.
pub(crate) fn forward(takes: &[Take]) -> Option<Vec<Plan>> {
    let plans: Option<Vec<Plan>> = takes.iter().map(|take| take.forward(0)).collect();
    plans.filter(|plans| ascend(plans))
}

/// Whether the bytes of each plan lie after those of the plans before it.
fn ascend(plans: &[Plan]) -> bool {
    let plans = plans.iter().filter(|plan| plan.bytes() > 0);
    plans.map(|plan| plan.input().byte_bounds()).is_sorted_by(|a, b| a.end <= b.start)
}

/// About how many bytes of an input come through the network for takes of it. Chunks, whose lengths only their servers
/// know, are not counted.
pub fn network_bytes(input: &Input, takes: &[Take]) -> u64 {
    let source = input.random().filter(|it| it.is_remote() && !it.is_empty());
    source.map_or(0, |_| takes.iter().map(Take::fetched).sum())
}

/// The bytes of scratch needed to copy takes of an input that is not a pipe to a file.
pub fn temporary_bytes(input: &Input, takes: &[Take], workers: &Workers) -> Result<u64, Error> {
    let Some(source) = input.random() else { return Ok(0) };
    let source = source.as_ref();
    let progress = &Progress::default();
    let mut all = 0_u64;
    for take in takes {
        let Take { conversion, unit, at, .. } = *take;
        let to = ReadFor::Position(at);
        let by = ReadBy { source, conversion, unit, to, workers, progress };
        let route = take.region.route(&by).map_err(|error| take.region.failed(error))?;
        all = all.saturating_add(route.temporary_bytes());
    }
    Ok(all)
}

/// Check all indices of a take. Where the output `is_atomic`, check only those that copying would
/// not check, or would check in another order.
pub(super) fn check_indices(take: &Take, workers: &Workers, is_atomic: bool) -> Result<(), Error> {
    let Some(gathered) = take.region.gathered() else { return Ok(()) };
    if is_atomic && gathered.gather.checks_itself() {
        return Ok(());
    }
    check_lists(take, gathered, workers)
}

fn check_lists(take: &Take, gathered: &Gathered, workers: &Workers) -> Result<(), Error> {
    let checked = gathered.gather.check(&gathered.sources(), workers);
    checked.map_err(|error| take.region.failed(error))
}

/// The error of copying bytes of an input to an output.
pub(crate) fn failed_run(
    error: ExecuteError,
    input: Option<&FileName>,
    output: Option<FileName>,
) -> Error {
    match error {
        ExecuteError::Fill { error: FillError::Source(error), .. } => Error::of_file(input, error),
        ExecuteError::Sink(error) => failed_sink(output, error),
        error => error.into(),
    }
}

pub(crate) fn failed_sink(name: Option<FileName>, error: SinkError) -> Error {
    match (name, error) {
        // one of several outputs: its own name is better
        (_, SinkError::File { path, error }) => Error::file(path.as_path(), *error),
        (Some(name), error) => Error::file(name, error),
        (None, error) => error.into(),
    }
}

/// An input of these tensors, which `copy` writes to a scratch file of `len` bytes; `location` is
/// named in errors.
pub(crate) fn in_scratch(
    location: &Location,
    tensors: Tensors,
    bytes: u64,
    takes: &[Take],
    workers: &Workers,
    copy: impl FnOnce(&Writing<'_>) -> Result<(), Error>,
) -> Result<Input, Error> {
    let bytes = source::Opened::Random(Box::new(written_to_scratch(bytes, takes, workers, copy)?));
    Ok(Input::of_file(location, bytes, Contents::of(&raw::FORMAT, tensors)))
}

/// The scratch file of `len` bytes that `copy` writes.
pub(crate) fn written_to_scratch(
    bytes: u64,
    takes: &[Take],
    workers: &Workers,
    copy: impl FnOnce(&Writing<'_>) -> Result<(), Error>,
) -> Result<PreadSource, Error> {
    let (sink, file) = ScratchSink::new(bytes)?;
    copy(&Writing::into_sink(&sink, takes, workers, &Progress::default())?)?;
    Ok(PreadSource::new(file, 0, bytes))
}
