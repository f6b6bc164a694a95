//! Headers made longer, so that tensors have the same offset in a block as in the input, where the
//! file system can share them.
//!
//! ```text
//!   input   │ header │ a         │ b          │     blocks begin at multiples of 4096 bytes
//!   output  │ header,  spaces │ b          │       b begins at the same offset of a block in both
//! ```
//!
//! The length of a header depends only on the input's header and on the selection, so that the bytes of the output are the
//! same on any file system.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::input::Input;
use crate::output::Prepared;
use crate::region::Take;
use crate::sink::BLOCK_BYTES;

/// The unit of header lengths: `.safetensors` aligns headers so.
const HEADER_BYTES: u64 = 8;

/// The fewest bytes that must be gained: a header is not made longer for less.
pub(super) const MIN_BYTES: u64 = 1 << 20;

/// A range of an input that goes to the output unchanged.
pub(super) struct UnchangedRange {
    /// The position in the output, in bytes.
    pub(super) at: u64,
    offset: u64,
    bytes: u64,
}

impl UnchangedRange {
    pub(super) fn of_takes<'t>(
        input: &'t Input,
        takes: &'t [Take],
    ) -> impl Iterator<Item = UnchangedRange> + use<'t> {
        takes.iter().filter_map(|take| {
            let range = take.range()?;
            let offset = input.offset_in_file(take.shard, range.start)?;
            Some(UnchangedRange { at: take.at, offset, bytes: range.end - range.start })
        })
    }
}

impl Prepared {
    /// Make headers longer where the format allows spaces after them, so that as many bytes as
    /// possible have the same offset in a block as in the input; move the takes, which cover the
    /// whole output.
    pub(crate) fn align(&mut self, input: &Input, takes: &mut [Take]) {
        let grown = self.grow(UnchangedRange::of_takes(input, takes).collect());
        for take in takes {
            let before = grown.iter().filter(|(from, _)| *from <= take.at);
            take.at += before.map(|(_, bytes)| bytes).sum::<u64>();
        }
    }

    /// Make headers longer for ranges of any number of inputs. Returns the positions from which on bytes have moved, and
    /// by how many bytes.
    pub(super) fn grow(&mut self, mut ranges: Vec<UnchangedRange>) -> Vec<(u64, u64)> {
        ranges.sort_unstable_by_key(|range| range.at);
        self.layout.grow(&|file| missing(&ranges, file))
    }
}

/// The number of bytes by which the elements of one file of the output (its range in the positions
/// of the output) should move.
fn missing(ranges: &[UnchangedRange], file: &Range<u64>) -> u64 {
    let mut gains: BTreeMap<u64, u64> = BTreeMap::new();
    let first = ranges.partition_point(|range| range.at < file.start);
    for range in ranges[first..].iter().take_while(|range| range.at < file.end) {
        // both less than 2^63
        let missing =
            (range.offset as i64 - (range.at - file.start) as i64).rem_euclid(BLOCK_BYTES as i64);
        *gains.entry(missing as u64).or_default() += range.bytes;
    }
    gains.retain(|missing, gain| missing % HEADER_BYTES == 0 && *gain >= MIN_BYTES);
    // the shorter of two that gain as much
    let best = gains.into_iter().rev().max_by_key(|(_, gain)| *gain);
    best.map_or(0, |(missing, _)| missing)
}
