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

use std::collections::BTreeMap;
use std::ops::Range;

use super::input::Input;
use super::output::Prepared;
use super::take::Take;

/// The blocks that are reckoned with, in bytes.
const BLOCK_BYTES: u64 = 4096;

/// Headers stay multiples of this many bytes, as `.safetensors` has them.
const HEADER_BYTES: u64 = 8;

/// What is gained must be so many bytes at least: a small file stays as short as it is.
const MIN_BYTES: u64 = 1 << 20;

impl Prepared {
    /// Make headers longer where the format has spaces behind them, so that as many bytes as can be
    /// have the same place in a block as in the input; move the takes, which are all of the output.
    pub fn align(&mut self, input: &Input, takes: &mut [Take]) {
        let grown = self.frame.grow(&|file| missing(input, takes, file));
        let moved = |at: u64| {
            let before = grown.iter().filter(|(from, _)| *from <= at);
            at + before.map(|(_, bytes)| bytes).sum::<u64>()
        };
        self.starts.iter_mut().for_each(|start| *start = moved(*start));
        takes.iter_mut().for_each(|take| take.at = moved(take.at));
    }
}

/// By how much the elements of a file of the output (its range in the positions of the output) are
/// to be moved.
fn missing(input: &Input, takes: &[Take], file: &Range<u64>) -> u64 {
    let mut gains: BTreeMap<u64, u64> = BTreeMap::new();
    let first = takes.partition_point(|take| take.at < file.start);
    for take in takes[first..].iter().take_while(|take| take.at < file.end) {
        let Some(range) = take.range() else { continue };
        let Some(place) = input.place_in_file(take.part, range.start) else { continue };
        // both less than 2^63
        let missing = (place as i64 - (take.at - file.start) as i64).rem_euclid(BLOCK_BYTES as i64);
        *gains.entry(missing as u64).or_default() += range.end - range.start;
    }
    gains.retain(|missing, gain| missing % HEADER_BYTES == 0 && *gain >= MIN_BYTES);
    // of two that gain as much, the shorter
    let best = gains.into_iter().rev().max_by_key(|(_, gain)| *gain);
    best.map_or(0, |(missing, _)| missing)
}
