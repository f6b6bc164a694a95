//! Reading any range of a region: what looks at elements in another order than that of a copy.

use std::ops::Range;
use std::sync::Arc;

use super::error::ContainerError;
use super::input::{Input, Location, failed_source};
use super::take::Region;
use crate::execute::{ExecuteError, FillError, Pieces, read_runs};
use crate::runs::Runs;
use crate::source::Source;

/// Reads ranges of the bytes that a copy of a region would write, and no more than they need.
pub struct RegionReader<'a> {
    location: Location,
    source: Arc<dyn Source>,
    bytes: Reading<'a>,
}

/// How ranges are found.
enum Reading<'a> {
    /// Strided bytes.
    Runs(Runs),
    /// Positions that an index tensor names: whole pieces are gathered.
    Pieces(Box<dyn Pieces + 'a>),
}

impl<'a> RegionReader<'a> {
    /// Prepare to read a region of an input. A pipe is copied to a temporary file.
    ///
    /// # Errors
    /// A pipe or an index tensor that cannot be read.
    pub fn new(input: &mut Input, region: &'a Region) -> Result<RegionReader<'a>, ContainerError> {
        let source = input.spool()?;
        let bytes = match region {
            Region::View(view) => Reading::Runs(view.runs().coalesced()),
            Region::Gather(gathered) => {
                let pieces = gathered.gather.clone().with(&gathered.sources(), 1);
                Reading::Pieces(Box::new(pieces.map_err(|error| region.failed_fill(error))?))
            }
            Region::Fields(fields) => Reading::Pieces(fields.pieces()),
        };
        let location = input.location().clone();
        Ok(RegionReader { location, source, bytes })
    }

    /// Fill `out` with the bytes from position `start` of the region on; `scratch` is for what must
    /// be read.
    ///
    /// # Errors
    /// An input that fails or is cut short, positions that are out of range.
    pub fn read(
        &self,
        start: u64,
        scratch: &mut Vec<u8>,
        out: &mut [u8],
    ) -> Result<(), ContainerError> {
        let range = start..start + out.len() as u64;
        let source = self.source.as_ref();
        let outcome = match &self.bytes {
            Reading::Runs(runs) => read_range(runs, range, source, scratch, out),
            Reading::Pieces(pieces) => gather_range(pieces.as_ref(), range, source, scratch, out),
        };
        // an input that was cut short is the reason for whatever else went wrong
        source.verify().map_err(|error| failed_source(&self.location, error))?;
        outcome.map_err(|error| match error {
            FillError::Source(error) => failed_source(&self.location, error),
            error => ExecuteError::Fill { transfer: 0, error }.into(),
        })
    }
}

fn read_range(
    runs: &Runs,
    range: Range<u64>,
    source: &dyn Source,
    scratch: &mut Vec<u8>,
    out: &mut [u8],
) -> Result<(), FillError> {
    let mut done = 0;
    runs.split(range, &mut |part: Runs| {
        let bytes = part.bytes() as usize;
        read_runs(&part, source, scratch, &mut out[done..done + bytes])?;
        done += bytes;
        Ok(())
    })
}

/// Gather the pieces that a range lies in, and take what is asked for of them.
fn gather_range(
    pieces: &dyn Pieces,
    range: Range<u64>,
    source: &dyn Source,
    scratch: &mut Vec<u8>,
    out: &mut [u8],
) -> Result<(), FillError> {
    // the pieces of a gather are ranges that ascend: find the last that begins at or before
    let start_of = |number: u64| pieces.output(number).offset as u64;
    let (mut low, mut high) = (0, pieces.count());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if start_of(middle) <= range.start { low = middle } else { high = middle }
    }
    let mut piece = Vec::new();
    for number in low..pieces.count() {
        let (start, bytes) = (start_of(number), pieces.output(number).bytes());
        if start >= range.end {
            break;
        }
        piece.resize(bytes as usize, 0);
        pieces.fill(number, source, scratch, &mut piece)?;
        let from = range.start.max(start);
        let to = range.end.min(start + bytes);
        out[(from - range.start) as usize..(to - range.start) as usize]
            .copy_from_slice(&piece[(from - start) as usize..(to - start) as usize]);
    }
    Ok(())
}
