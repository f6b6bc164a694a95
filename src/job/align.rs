//! Headers made longer, so that tensors have the same place in a block as in the input, where the
//! file system can share them.
//!
//! ```text
//!   input   │ header │ a         │ b          │     blocks begin at multiples of 4096 bytes
//!   output  │ header,  spaces │ b          │       b begins at the same place of a block in both
//! ```
//!
//! How long depends on nothing but the header of the input and what is taken of it, so that the bytes
//! of the output are the same on any file system.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use crate::execute::SHARED_BYTES;
use crate::format::{Format, TensorInfo, npy};
use crate::input::{Bytes, Input};
use crate::job::copying::TakenInput;
use crate::output::Prepared;
use crate::region::{Region, Take};
use crate::shape::Order;
use crate::sink::{self, BLOCK_BYTES};
use crate::source::FileId;

/// Headers stay multiples of this many bytes, as `.safetensors` has them.
const HEADER_BYTES: u64 = 8;

/// What is gained must be so many bytes at least: a small file stays as short as it is.
pub(super) const MIN_BYTES: u64 = 1 << 20;

/// A range of an input that goes to the output as it is.
pub(super) struct PlacedRange {
    /// Where it goes in the output, in bytes.
    pub(super) at: u64,
    place: u64,
    bytes: u64,
}

impl PlacedRange {
    pub(super) fn of_takes<'t>(
        input: &'t Input,
        takes: &'t [Take],
    ) -> impl Iterator<Item = PlacedRange> + use<'t> {
        takes.iter().filter_map(|take| {
            let range = take.range()?;
            let place = input.place_in_file(take.part, range.start)?;
            Some(PlacedRange { at: take.at, place, bytes: range.end - range.start })
        })
    }
}

impl Prepared {
    /// Make headers longer where the format has spaces behind them, so that as many bytes as can be
    /// have the same place in a block as in the input; move the takes, which are all of the output, in its order.
    pub(crate) fn align(&mut self, inputs: &mut [TakenInput<'_>]) {
        let ranges = inputs.iter().flat_map(|of| PlacedRange::of_takes(&of.input, &of.takes));
        let grown = self.grow(&Vec::from_iter(ranges));
        for take in inputs.iter_mut().flat_map(|of| &mut of.takes) {
            let before = grown.iter().filter(|(from, _)| *from <= take.at);
            take.at += before.map(|(_, bytes)| bytes).sum::<u64>();
        }
    }

    /// The same for ranges of any number of inputs, in the order of the output: from which positions on
    /// everything has moved, and by how much.
    pub(super) fn grow(&mut self, ranges: &[PlacedRange]) -> Vec<(u64, u64)> {
        self.frame.grow(&|file| missing(ranges, file))
    }
}

/// How many bytes of an output would be shared with the input: `None` where the file systems of the
/// two share none, or not with each other.
pub fn shared_bytes(prepared: &Prepared, input: &Input, takes: &[Take]) -> Option<u64> {
    let Bytes::Random(source) = &input.bytes else { return None };
    let starts = prepared.frame.shared_files();
    let mut possible: HashMap<FileId, bool> = HashMap::new();
    let mut bytes = 0;
    for take in takes {
        let start = starts[..starts.partition_point(|start| *start <= take.at)].last();
        let (Some(start), Some(range)) = (start, take.range()) else { continue };
        let Some((file, from)) = source.file(range.clone()) else { continue };
        let Ok(Some(id)) = FileId::of(file) else { continue };
        let probe = || sink::can_share(&prepared.output.destination, file);
        if *possible.entry(id).or_insert_with(probe) {
            let range = from..from + (range.end - range.start);
            bytes += sink::shared_len(&range, take.at - start);
        }
    }
    (bytes > 0).then_some(bytes)
}

/// How many bytes of a region of a tensor an output of the input's own format has at the same place
/// in a block, so that they can be shared where the file system does that.
pub fn shareable_bytes(
    input: &Input,
    tensor: &TensorInfo,
    region: &dyn Region,
    shape: &[u64],
) -> u64 {
    let Some(view) = region.strided() else { return 0 };
    let range = view.range().filter(|range| range.end - range.start >= SHARED_BYTES);
    let Some(range) = range else { return 0 };
    let Some(place) = input.place_in_file(tensor.part(), range.start) else { return 0 };
    let len = range.end - range.start;
    let at = match input.contents.format {
        Format::Npy => npy::header(&tensor.dtype, shape, Order::C).map_or(1, |it| it.len() as u64),
        Format::Safetensors | Format::Sharded if len >= MIN_BYTES && place % HEADER_BYTES == 0 => {
            place
        }
        _ => return 0,
    };
    sink::shared_len(&(place..place + len), at)
}

/// By how much the elements of a file of the output (its range in the positions of the output) are
/// to be moved.
fn missing(ranges: &[PlacedRange], file: &Range<u64>) -> u64 {
    let mut gains: BTreeMap<u64, u64> = BTreeMap::new();
    let first = ranges.partition_point(|range| range.at < file.start);
    for range in ranges[first..].iter().take_while(|range| range.at < file.end) {
        // both less than 2^63
        let missing =
            (range.place as i64 - (range.at - file.start) as i64).rem_euclid(BLOCK_BYTES as i64);
        *gains.entry(missing as u64).or_default() += range.bytes;
    }
    gains.retain(|missing, gain| missing % HEADER_BYTES == 0 && *gain >= MIN_BYTES);
    // of two that gain as much, the shorter
    let best = gains.into_iter().rev().max_by_key(|(_, gain)| *gain);
    best.map_or(0, |(missing, _)| missing)
}
