//! RegionBytes any range of a region: what looks at elements in another order than that of a copy.

use std::sync::Arc;

use crate::error::Error;
use crate::execute::{
    Conversion, ExecuteError, FillError, Pieces, Progress, ReadFrom, Workers, read_pieces,
    read_range,
};
use crate::input::{Input, Location, failed_source};
use crate::region::contract::{ReadBy, ReadFor, Region, RegionPieces};
use crate::runs::Runs;
use crate::source::Source;

/// Reads ranges of the bytes that a copy of a region would write, and no more than they need.
pub struct RegionReader<'a> {
    location: Location,
    source: Arc<dyn Source>,
    bytes: RegionBytes<'a>,
}

/// How ranges are found.
enum RegionBytes<'a> {
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
    pub fn new(input: &mut Input, region: &'a dyn Region) -> Result<RegionReader<'a>, Error> {
        let source = input.spool()?;
        RegionReader::of(input.location(), source, region)
    }

    /// Prepare to read a region of the input at a location, whose bytes are those of `source`.
    ///
    /// # Errors
    /// An index tensor that cannot be read, a temporary file that cannot be written.
    pub(crate) fn of(
        location: &Location,
        mut source: Arc<dyn Source>,
        region: &'a dyn Region,
    ) -> Result<RegionReader<'a>, Error> {
        let bytes = match region.strided() {
            Some(view) => RegionBytes::Runs(view.runs().coalesced()),
            None => {
                let (conversion, to) = (Conversion::None, ReadFor::Memory);
                let workers = &Workers::new(1);
                let (of, progress) = (source.as_ref(), &Progress::default());
                let by = ReadBy { source: of, conversion, unit: 1, to, workers, progress };
                let pieces = region.pieces(&by).map_err(|error| match error {
                    ExecuteError::Fill { error, .. } => region.failed_fill(error),
                    error => error.into(),
                })?;
                let RegionPieces { pieces, copied } = pieces;
                if let Some(copied) = copied {
                    source = Arc::from(copied);
                }
                RegionBytes::Pieces(pieces)
            }
        };
        Ok(RegionReader { location: location.clone(), source, bytes })
    }

    /// Fill `out` with the bytes from position `start` of the region on; `scratch` is for what must
    /// be read.
    ///
    /// # Errors
    /// An input that fails or is cut short, positions that are out of range.
    pub fn read(&self, start: u64, scratch: &mut Vec<u8>, out: &mut [u8]) -> Result<(), Error> {
        let source = self.source.as_ref();
        let from = &mut ReadFrom { source, scratch };
        let outcome = match &self.bytes {
            RegionBytes::Runs(runs) => {
                let range = start..start + out.len() as u64;
                read_range(runs, range, from, out).map_err(FillError::from)
            }
            RegionBytes::Pieces(pieces) => read_pieces(pieces.as_ref(), start, from, out),
        };
        // an input that was cut short is the reason for whatever else went wrong
        source.verify().map_err(|error| failed_source(&self.location, error))?;
        outcome.map_err(|error| match error {
            FillError::Source(error) => failed_source(&self.location, error),
            error => ExecuteError::Fill { transfer: 0, error }.into(),
        })
    }
}
