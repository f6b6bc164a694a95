//! Several outputs of one job, which are filled together and appear together.

use std::ops::Range;

use super::copy::{Writing, failed_sink};
use crate::error::Error;
use crate::execute::{Progress, Workers};
use crate::output::Prepared;
use crate::output::layout::OutputLayout;
use crate::region::Take;
use crate::sink::{Destination, SeveralSinks, Targets, WriteOrder};

/// Outputs that are filled and put in place together.
pub(crate) trait OutputSet {
    fn count(&self) -> u64;

    fn workers(&self) -> &Workers;

    /// One output, and what is taken for it, each with the index of its source.
    fn part(&self, number: u64) -> Result<(Prepared, Vec<(usize, Take)>), Error>;

    /// Copy what is taken of a source; `is_last` if the source is not read again.
    fn copy(
        &mut self,
        job: &Writing<'_>,
        source: usize,
        takes: &[Take],
        is_last: bool,
    ) -> Result<(), Error>;
}

pub(crate) fn check_outputs(outputs: &dyn OutputSet) -> Result<u64, Error> {
    let mut targets = Targets::default();
    let mut bytes = 0u64;
    for number in 0..outputs.count() {
        let (prepared, _) = outputs.part(number)?;
        prepared.check_among(&mut targets)?;
        bytes = bytes.saturating_add(prepared.bytes);
    }
    Ok(bytes)
}

pub(crate) fn write_outputs(outputs: &mut dyn OutputSet, progress: &Progress) -> Result<(), Error> {
    let count = outputs.count();
    let workers = outputs.workers().clone();
    let batch = SeveralSinks::batch(count);
    let mut sinks = SeveralSinks::new(true);
    for first in (0..count).step_by(batch.max(1) as usize) {
        let end = count.min(first.saturating_add(batch));
        let Batch { groups, layouts } = Batch::create(outputs, first..end, &mut sinks)?;
        let job = Writing::into_sink(&sinks, &[], &workers, progress)?;
        for (source, takes) in &groups {
            outputs.copy(&job, *source, takes, end == count)?;
        }
        // after the blocks that the outputs share with the input
        for (base, layout) in layouts {
            let write = |at: u64, bytes: &[u8]| job.sink().write_at(base + at, bytes);
            layout.write_headers(&write).map_err(|error| job.failed_sink(error))?;
        }
        drop(job);
        if end < count {
            sinks.park().map_err(|error| failed_sink(None, error))?;
        }
    }
    sinks.commit().map_err(|error| failed_sink(None, error))
}

struct Batch {
    /// The takes of the outputs, in their order; neighbours of one source are grouped.
    groups: Vec<(usize, Vec<Take>)>,
    /// The layout of each output, with its position in the job, where bytes that are not elements
    /// are written last.
    layouts: Vec<(u64, Box<dyn OutputLayout>)>,
}

impl Batch {
    fn create(
        outputs: &dyn OutputSet,
        numbers: Range<u64>,
        sinks: &mut SeveralSinks,
    ) -> Result<Batch, Error> {
        let mut batch = Batch { groups: vec![(0, Vec::new())], layouts: Vec::new() };
        for number in numbers {
            let (prepared, takes) = outputs.part(number)?;
            let output = &prepared.output;
            let sink = prepared.create(true)?;
            let in_order = sink.order() == WriteOrder::Ascending;
            if in_order {
                let written = prepared.layout.write_headers(&|at, bytes| sink.write_at(at, bytes));
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
                batch.layouts.push((base, prepared.layout));
            }
        }
        Ok(batch)
    }
}

fn extent(prepared: &Prepared) -> u64 {
    let ends = prepared.tensor_offsets().map(|(tensor, start)| start.saturating_add(tensor.bytes));
    prepared.layout.size().unwrap_or(0).max(ends.max().unwrap_or(0))
}
