//! Announcements of coming reads, for a source that makes requests.
//!
//! Each read of a remote source costs a round trip, so the reads of later pieces must be on their way
//! while earlier pieces are copied. A `Feed` walks over the ranges that the pieces need, in order,
//! merges them to requests, and announces as many as the source has use for, before a piece begins.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::{JobPieces, Transfer};
use crate::source::remote::{Merger, NEAR};
use crate::source::{Advice, Source};

pub(super) struct Feed<'a> {
    job: &'a JobPieces<'a>,
    state: Mutex<FeedState>,
}

#[derive(Default)]
struct FeedState {
    next: u64,
    /// The last piece whose ranges are in the merger.
    last: u64,
    merger: Merger,
    /// The transfer of the ranges in the merger.
    transfer: usize,
}

impl<'a> Feed<'a> {
    pub(super) fn new(job: &'a JobPieces<'a>) -> Option<Feed<'a>> {
        let asks = |transfer: &Transfer<'_>| transfer.source.is_remote();
        job.transfers.iter().any(asks).then(|| Feed { job, state: Mutex::default() })
    }

    /// Announce the ranges for piece `number`, unless they were announced, and for later pieces.
    pub(super) fn before(&self, number: u64) {
        let state = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let JobPieces { transfers, count, .. } = self.job;
        while state.next < *count {
            let piece = state.next;
            let (transfer, local) = self.job.find(piece);
            let Transfer { source, pieces, .. } = &transfers[transfer];
            if piece > number && !source.is_hungry() {
                break;
            }
            // a request has one source
            if !std::ptr::addr_eq(transfers[state.transfer].source, *source) {
                self.flush(state);
            }
            state.next = piece + 1;
            state.last = piece;
            state.transfer = transfer;
            if source.is_remote() {
                // the fault of a piece is reported when it is filled
                let _ = pieces.needs(local, NEAR, &mut |range| {
                    let file_end = source.file_end(range.start);
                    state.merger.push(range, file_end, &mut announce_to(*source));
                });
            }
        }
        if state.last <= number || state.next >= *count {
            self.flush(state);
        }
    }

    fn flush(&self, state: &mut FeedState) {
        if let Some(transfer) = self.job.transfers.get(state.transfer) {
            state.merger.flush(&mut announce_to(transfer.source));
        }
    }
}

fn announce_to(source: &dyn Source) -> impl FnMut(Range<u64>) {
    |request| source.advise(request, Advice::WillNeed)
}
