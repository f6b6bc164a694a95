//! The places between which processors copy slowly.
//!
//! Kernels and C libraries copy long strings by one instruction of the processor (`rep movsb`). On AMD's
//! Zen 3 it is five to thirty times slower where the destination lies 1 to 31 bytes further in its page
//! than the source in its own. Memory that `malloc` maps begins 16 bytes into a page, blocks of a file at
//! the beginning of one: without care the slow case is the usual one.

use std::ops::RangeInclusive;

/// A page of memory, in bytes.
pub(crate) const PAGE: usize = 4096;

/// How many bytes further in its page a destination is slow.
const SLOW: RangeInclusive<usize> = 1..=31;

/// How far to move memory that lies at a slow place, in bytes: a cache line.
pub(crate) const STEP: usize = 64;

/// Whether the processor may take long to copy many bytes from one place to another, told by addresses or
/// by positions in a file, whose pages are those of memory.
pub(crate) fn is_slow(from: usize, to: usize) -> bool {
    SLOW.contains(&(to.wrapping_sub(from) % PAGE))
}
