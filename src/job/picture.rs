//! Selections as pictures: read row by row, by several threads, and written as `.png`.

use std::io;
use std::io::Write;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::statistics::Chosen;
use crate::cast::{Cast, Casting};
use crate::dtype::{DType, Endian, Scalar};
use crate::error::{Error, Fault};
use crate::execute::{Progress, Workers};
use crate::input::Input;
use crate::job::overwrite;
use crate::job::statistics::StatisticsFault;
use crate::picture::{Colours, Sheet};
use crate::region::RegionReader;
use crate::sink;
use crate::sink::{Destination, Sink, SinkError, SinkOptions};

const ELEMENTS_AT_ONCE: u64 = 1 << 16;

/// The size in bytes of the rows of pixels that are made at a time.
const BAND_BYTES: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    Value(f64),
    /// A percentile of the elements.
    Percentile(f64),
}

impl Chosen {
    /// The numbers at both ends of the colours; found in one pass over the elements, if they depend
    /// on them.
    pub fn colour_range(
        &self,
        input: &mut Input,
        asked: Option<[Bound; 2]>,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<(f64, f64), Error> {
        if let Some([Bound::Value(low), Bound::Value(high)]) = asked {
            return Ok((low, high));
        }
        let statistics = self.statistics(input, workers, progress);
        let statistics = statistics.map_err(|error| match error.cause.downcast_ref() {
            Some(StatisticsFault(dtype)) => PictureFault::DType(dtype.clone()).into(),
            None => error,
        })?;
        let (least, greatest) = statistics.finite_range().unwrap_or((0.0, 1.0));
        let bound = |bound| match bound {
            Bound::Value(value) => value,
            Bound::Percentile(part) => {
                // an infinite end would give all finite elements one colour
                statistics.quantiles(&[part / 100.0])[0].value.clamp(least, greatest)
            }
        };
        Ok(asked.map_or((least, greatest), |[low, high]| (bound(low), bound(high))))
    }
}

pub struct Drawing<'a> {
    reader: RegionReader<'a>,
    dtype: DType,
    sheet: Sheet,
    colours: Colours,
    workers: Workers,
    /// Whether numbers were clipped to the range of colours.
    is_clipped: AtomicBool,
}

impl<'a> Drawing<'a> {
    /// Draw a selection on this sheet. A pipe is copied to a temporary file.
    pub fn new(
        input: &mut Input,
        chosen: &'a Chosen,
        sheet: Sheet,
        colours: Colours,
        workers: Workers,
    ) -> Result<Drawing<'a>, Error> {
        let reader = RegionReader::new(input, chosen.region.as_ref())?;
        let is_clipped = AtomicBool::new(false);
        Ok(Drawing { reader, dtype: chosen.dtype.clone(), sheet, colours, workers, is_clipped })
    }

    /// Whether numbers that were drawn are beyond the range of colours.
    pub fn is_clipped(&self) -> bool {
        self.is_clipped.load(Ordering::Relaxed)
    }

    /// The bytes of a pixel: of RGB, or of RGBA.
    pub fn pixel_bytes(&self) -> usize {
        self.sheet.pixel_bytes()
    }

    /// Draw the picture: several threads make rows of pixels, and `row` gets the rows in order.
    pub fn draw(
        &self,
        progress: &Progress,
        mut row: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let double = DType::Scalar(Scalar::F64, Endian::Little);
        let cast = Cast::new(&self.dtype, &double, Casting::Safe)
            .or_else(|_| Cast::new(&self.dtype, &double, Casting::SameKind))
            .map_err(|_| PictureFault::DType(self.dtype.clone()))?;
        let row_bytes = self.sheet.width() as usize * self.sheet.pixel_bytes();
        let band = (BAND_BYTES / row_bytes.max(1)).max(self.workers.count());
        let height = self.sheet.height();
        for first in (0..height).step_by(band) {
            let rows = (height - first).min(band as u64) as usize;
            let paint = |number: usize| self.paint(first + number as u64, &cast, progress);
            for painted in self.workers.each(rows, paint)? {
                row(&painted)?;
            }
        }
        Ok(())
    }

    fn paint(&self, y: u64, cast: &Cast, progress: &Progress) -> Result<Vec<u8>, Error> {
        let itemsize = cast.input_bytes() as u64;
        let mut scratch = Vec::new();
        let mut block = Vec::new();
        let mut doubles = Vec::new();
        self.sheet.paint(y, &self.colours, |range: Range<u64>, take: &mut dyn FnMut(f64)| {
            let mut at = range.start;
            while at < range.end {
                let count = ELEMENTS_AT_ONCE.min(range.end - at);
                block.resize((count * itemsize) as usize, 0);
                doubles.resize(count as usize * 8, 0);
                self.reader.read(at * itemsize, &mut scratch, &mut block)?;
                cast.run(&mut block, &mut doubles);
                let values = doubles.as_chunks::<8>().0.iter().map(|it| f64::from_le_bytes(*it));
                if values.clone().any(|value| self.sheet.is_clipped(value)) {
                    self.is_clipped.store(true, Ordering::Relaxed);
                }
                values.for_each(&mut *take);
                progress.add(count * itemsize);
                at += count;
            }
            Ok(())
        })
    }

    /// Write the picture as a `.png`, which appears when it is complete; `input` is the location of the tensor.
    pub fn write_png(
        &self,
        input: &Input,
        destination: &Destination,
        options: SinkOptions,
        progress: &Progress,
    ) -> Result<(), Error> {
        overwrite::check(destination, [input], [])?;
        let failed = |error: SinkError| Error::file(destination, error);
        let sink = sink::create(destination, options).map_err(failed)?;
        let mut written = SinkWriter { sink: sink.as_ref(), at: 0, error: None };
        let outcome = self.encode(&mut written, progress);
        if let Some(error) = written.error {
            return Err(failed(error));
        }
        outcome?;
        sink.commit().map_err(failed)
    }

    pub fn check_png(destination: &Destination, options: SinkOptions) -> Result<(), Error> {
        sink::check(destination, options).map_err(|error| Error::file(destination, error))
    }

    fn encode(&self, written: &mut SinkWriter<'_>, progress: &Progress) -> Result<(), Error> {
        let encoding = |error: png::EncodingError| PictureFault::Encoding(error.to_string());
        let width = self.sheet.width() as u32;
        let height = self.sheet.height() as u32;
        let mut encoder = png::Encoder::new(written, width, height);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_color(match self.sheet.pixel_bytes() {
            4 => png::ColorType::Rgba,
            _ => png::ColorType::Rgb,
        });
        let mut writer = encoder.write_header().map_err(encoding)?;
        let mut stream = writer.stream_writer().map_err(encoding)?;
        self.draw(progress, |row| {
            let written = stream.write_all(row);
            Ok(written.map_err(|error| PictureFault::Encoding(error.to_string()))?)
        })?;
        stream.finish().map_err(encoding)?;
        Ok(writer.finish().map_err(encoding)?)
    }
}

struct SinkWriter<'a> {
    sink: &'a dyn Sink,
    at: u64,
    error: Option<SinkError>,
}

impl Write for SinkWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Err(error) = self.sink.write_at(self.at, bytes) {
            self.error.get_or_insert(error);
            return Err(io::ErrorKind::Other.into());
        }
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug, thiserror::Error)]
pub enum PictureFault {
    #[error("a picture shows real numbers, and the dtype is {0}")]
    DType(DType),
    #[error("the picture cannot be encoded: {0}")]
    Encoding(String),
}

impl Fault for PictureFault {}
