//! What a job is going to read, told to a source that must ask for it.
//!
//! Behind a network a read costs a round trip, so that the reads of later pieces must be on their way
//! while earlier ones are copied. A [`Feed`] walks over the ranges that the pieces need, in their order,
//! merges them to requests, and announces as many as the source has use for, before a piece begins.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::{ExecuteError, FillError, Transfer};
use crate::source::remote::Merger;
use crate::source::{Advice, Source};

/// How far the requests of a job are announced.
pub(super) struct Feed<'a> {
    transfers: &'a [Transfer<'a>],
    /// The number of the first piece of each transfer, and of all pieces.
    starts: &'a [u64],
    pieces: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The next piece to announce.
    next: u64,
    merger: Merger,
    /// The piece whose ranges the merger holds back, and its transfer.
    last: u64,
    transfer: usize,
}

impl<'a> Feed<'a> {
    /// Nothing announced yet; `None` where no source has use for it.
    pub(super) fn new(
        transfers: &'a [Transfer<'a>],
        starts: &'a [u64],
        pieces: u64,
    ) -> Option<Feed<'a>> {
        let asks = |transfer: &Transfer<'_>| transfer.source.request_gap().is_some();
        let state = Mutex::default();
        transfers.iter().any(asks).then_some(Feed { transfers, starts, pieces, state })
    }

    /// Announce what piece `number` needs, unless it was, and what later ones do.
    pub(super) fn before(&self, number: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.next < self.pieces {
            let piece = state.next;
            let index = self.starts.partition_point(|&start| start <= piece) - 1;
            let Transfer { source, pieces, .. } = &self.transfers[index];
            if piece > number && !source.is_hungry() {
                break;
            }
            if !is_same(self.transfers[state.transfer].source, *source) {
                self.flush(&mut state);
            }
            (state.next, state.last, state.transfer) = (piece + 1, piece, index);
            let Some(gap) = source.request_gap() else { continue };
            let announce = &mut |request| source.advise(request, Advice::WillNeed);
            // what is wrong with a piece is told when it is filled
            let _ = pieces.needs(piece - self.starts[index], gap, &mut |range| {
                let file_end = source.file_end(range.start);
                state.merger.push(range, file_end, announce);
            });
        }
        if state.last <= number || state.next >= self.pieces {
            self.flush(&mut state);
        }
    }

    /// Announce what the merger holds back.
    fn flush(&self, state: &mut State) {
        let source = self.transfers[state.transfer].source;
        state.merger.flush(&mut |request| source.advise(request, Advice::WillNeed));
    }
}

fn is_same(one: &dyn Source, other: &dyn Source) -> bool {
    std::ptr::addr_eq(one, other)
}

/// The requests that a job would make, where its sources must be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Announced {
    /// How many.
    pub requests: u64,
    /// Bytes of their answers.
    pub bytes: u64,
}

/// Count the requests for the elements of a job, by the same steps in which they are made.
///
/// # Errors
/// An index that names no position, index tensors that cannot be read.
pub fn announced(transfers: &[Transfer<'_>]) -> Result<Announced, ExecuteError> {
    let mut all = Announced::default();
    let mut merger = Merger::default();
    let mut count = |request: Range<u64>| {
        all.requests += 1;
        all.bytes += request.end - request.start;
    };
    for (number, transfer) in transfers.iter().enumerate() {
        let before = number.checked_sub(1).map(|before| transfers[before].source);
        if before.is_some_and(|before| !is_same(before, transfer.source)) {
            merger.flush(&mut count);
        }
        let Some(gap) = transfer.source.request_gap() else { continue };
        let failed = |error: FillError| ExecuteError::Fill { transfer: number, error };
        for piece in 0..transfer.pieces.count() {
            let visit = &mut |range: Range<u64>| {
                let file_end = transfer.source.file_end(range.start);
                merger.push(range, file_end, &mut count);
            };
            transfer.pieces.needs(piece, gap, visit).map_err(failed)?;
        }
    }
    merger.flush(&mut count);
    Ok(all)
}
