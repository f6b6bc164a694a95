//! Outputs that appear together: all are written before the first is put in place.

use std::ops::Range;

use crate::error::Error;
use crate::execute::{Progress, Workers};
use crate::job::copy::{Writing, failed_sink};
use crate::output::Prepared;
use crate::output::layout::Frame;
use crate::region::Take;
use crate::sink::{Destination, SeveralSinks, Targets, WriteOrder};

/// What fills several outputs.
pub(crate) trait Together {
    /// How many outputs there are.
    fn count(&self) -> u64;

    /// The threads that work.
    fn workers(&self) -> &Workers;

    /// One output, and what is taken for it, each with the number of its source.
    fn part(&self, number: u64) -> Result<(Prepared, Vec<(usize, Take)>), Error>;

    /// Copy what is taken of a source; `is_last` where it is not read again.
    fn copy(
        &mut self,
        job: &Writing<'_>,
        source: usize,
        takes: &[Take],
        is_last: bool,
    ) -> Result<(), Error>;
}

/// Check all outputs. Returns the bytes of their elements.
pub(crate) fn check_together(outputs: &dyn Together) -> Result<u64, Error> {
    let (mut targets, mut bytes) = (Targets::default(), 0u64);
    for number in 0..outputs.count() {
        let (prepared, _) = outputs.part(number)?;
        prepared.check_among(&mut targets)?;
        bytes = bytes.saturating_add(prepared.bytes);
    }
    Ok(bytes)
}

/// Write all outputs, some at a time.
pub(crate) fn write_together(outputs: &mut dyn Together, progress: &Progress) -> Result<(), Error> {
    let (count, workers) = (outputs.count(), outputs.workers().clone());
    let batch = SeveralSinks::batch(count);
    let mut sinks = SeveralSinks::default();
    let mut first = 0;
    while first < count {
        let end = count.min(first.saturating_add(batch));
        let Batch { groups, frames } = Batch::create(outputs, first..end, &mut sinks)?;
        let open = sinks.open();
        let job = Writing::into_sink(&open, &[], &workers, progress)?;
        for (source, takes) in &groups {
            outputs.copy(&job, *source, takes, end == count)?;
        }
        // after the blocks that the outputs share with the input
        for (base, frame) in frames {
            let write = |at: u64, bytes: &[u8]| job.sink().write_at(base + at, bytes);
            frame.write_headers(&write).map_err(|error| job.failed_sink(error))?;
        }
        drop(job);
        if end < count {
            sinks.park().map_err(|error| failed_sink(None, error))?;
        }
        first = end;
    }
    sinks.commit().map_err(|error| failed_sink(None, error))
}

/// Outputs that are written at the same time.
struct Batch {
    /// What is taken for them, in their order: neighbours of one source together.
    groups: Vec<(usize, Vec<Take>)>,
    /// What is not elements of each, and where it begins in the job, where it is written last.
    frames: Vec<(u64, Box<dyn Frame>)>,
}

impl Batch {
    /// Create some of the outputs.
    fn create(
        outputs: &dyn Together,
        numbers: Range<u64>,
        sinks: &mut SeveralSinks,
    ) -> Result<Batch, Error> {
        let mut batch = Batch { groups: vec![(0, Vec::new())], frames: Vec::new() };
        for number in numbers {
            let (prepared, takes) = outputs.part(number)?;
            let (output, sink) = (&prepared.output, prepared.create(true)?);
            let in_order = sink.order() == WriteOrder::Ascending;
            if in_order {
                let written = prepared.frame.write_headers(&|at, bytes| sink.write_at(at, bytes));
                written.map_err(|error| output.failed(error))?;
            }
            let path = match &output.destination {
                Destination::Path(path) => path.clone(),
                Destination::Stdout => Default::default(),
            };
            let base = sinks.push(path, sink, extent(&prepared));
            let base = base.map_err(|error| output.failed(error))?;
            for (source, take) in takes {
                let take = Take { at: base + take.at, ..take };
                match batch.groups.last_mut() {
                    Some((same, takes)) if *same == source => takes.push(take),
                    _ => batch.groups.push((source, vec![take])),
                }
            }
            if !in_order {
                batch.frames.push((base, prepared.frame));
            }
        }
        Ok(batch)
    }
}

/// The positions that an output takes.
fn extent(prepared: &Prepared) -> u64 {
    let ends = prepared.places().map(|(tensor, start)| start.saturating_add(tensor.bytes));
    prepared.frame.size().unwrap_or(0).max(ends.max().unwrap_or(0))
}
