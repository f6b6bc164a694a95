//! Announcements of coming reads, for a source that makes requests.
//!
//! Each read of a remote source costs a round trip, so the reads of later pieces must be on their way
//! while earlier pieces are copied. A `Feed` walks over the ranges that the pieces need, in order,
//! merges them to requests, and announces as many as the source has use for, before a piece begins. A
//! dry run [counts](announced) them by the same steps.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::{FillError, Transfer};
use crate::source::remote::{Merger, NEAR};
use crate::source::{Advice, Source};

pub(super) struct Feed<'a> {
    transfers: &'a [Transfer<'a>],
    /// The number of the first piece of each transfer, counted through all transfers.
    starts: &'a [u64],
    pieces: u64,
    state: Mutex<FeedState>,
}

#[derive(Default)]
struct FeedState {
    next: u64,
    /// The last piece whose ranges are in the merger.
    last: u64,
    requests: Requests,
}

/// The ranges that pieces need, merged to requests.
#[derive(Default)]
struct Requests {
    merger: Merger,
    /// The transfer of the ranges in the merger.
    transfer: usize,
}

impl Requests {
    /// Continue with another transfer: a request has one source.
    fn turn_to(
        &mut self,
        transfers: &[Transfer<'_>],
        transfer: usize,
        ask: &mut dyn FnMut(&dyn Source, Range<u64>),
    ) {
        if !std::ptr::addr_eq(transfers[self.transfer].source, transfers[transfer].source) {
            self.flush(transfers, ask);
        }
        self.transfer = transfer;
    }

    /// Add the ranges that a piece of a transfer needs; `ask` gets each complete request of a source.
    fn push(
        &mut self,
        transfers: &[Transfer<'_>],
        transfer: usize,
        piece: u64,
        ask: &mut dyn FnMut(&dyn Source, Range<u64>),
    ) -> Result<(), FillError> {
        self.turn_to(transfers, transfer, ask);
        let Transfer { source, pieces, .. } = &transfers[transfer];
        if source.request_gap().is_none() {
            return Ok(());
        }
        pieces.needs(piece, NEAR, &mut |range| {
            let file_end = source.file_end(range.start);
            self.merger.push(range, file_end, &mut |request| ask(*source, request));
        })
    }

    fn flush(&mut self, transfers: &[Transfer<'_>], ask: &mut dyn FnMut(&dyn Source, Range<u64>)) {
        if let Some(transfer) = transfers.get(self.transfer) {
            self.merger.flush(&mut |request| ask(transfer.source, request));
        }
    }
}

impl<'a> Feed<'a> {
    pub(super) fn new(
        transfers: &'a [Transfer<'a>],
        starts: &'a [u64],
        pieces: u64,
    ) -> Option<Feed<'a>> {
        let asks = |transfer: &Transfer<'_>| transfer.source.request_gap().is_some();
        let state = Mutex::default();
        transfers.iter().any(asks).then_some(Feed { transfers, starts, pieces, state })
    }

    /// Announce the ranges for piece `number`, unless they were announced, and for later pieces.
    pub(super) fn before(&self, number: u64) {
        let announce = &mut |source: &dyn Source, request| source.advise(request, Advice::WillNeed);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.next < self.pieces {
            let piece = state.next;
            let transfer = self.starts.partition_point(|&start| start <= piece) - 1;
            if piece > number && !self.transfers[transfer].source.is_hungry() {
                break;
            }
            state.next = piece + 1;
            state.last = piece;
            let local = piece - self.starts[transfer];
            // the fault of a piece is reported when it is filled
            let _ = state.requests.push(self.transfers, transfer, local, announce);
        }
        if state.last <= number || state.next >= self.pieces {
            state.requests.flush(self.transfers, announce);
        }
    }
}
