//! Inputs and outputs in memory, for tests of the engine and for the fuzz targets.

use std::ops::Range;
use std::sync::Mutex;

use tslice::sink::{Sink, SinkError, WriteOrder};
use tslice::source::{Advice, Source, SourceError};

/// An input in memory, lent whole or read in windows of `limit` bytes at most, that keeps the ranges
/// it is asked for, and the advice it is given.
pub(crate) struct Bytes {
    pub(crate) data: Vec<u8>,
    limit: Option<u64>,
    /// What it says of each byte.
    pub(crate) is_cached: bool,
    pub(crate) reads_ahead: bool,
    pub(crate) asked: Mutex<Vec<Range<u64>>>,
    pub(crate) advised: Mutex<Vec<(Range<u64>, Advice)>>,
}

impl Bytes {
    pub(crate) fn new(data: Vec<u8>, limit: Option<u64>) -> Bytes {
        Bytes {
            data,
            limit,
            is_cached: true,
            reads_ahead: false,
            asked: Mutex::default(),
            advised: Mutex::default(),
        }
    }
}

impl Source for Bytes {
    fn len(&self) -> u64 {
        self.data.len() as u64
    }

    fn window<'a>(
        &'a self,
        range: Range<u64>,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], SourceError> {
        let bytes = &self.data[range.start as usize..range.end as usize];
        self.asked.lock().unwrap().push(range);
        if self.limit.is_none() {
            return Ok(bytes);
        }
        // not at the front: nobody must assume where in scratch a window lies
        scratch.clear();
        scratch.push(0);
        scratch.extend_from_slice(bytes);
        Ok(&scratch[1..])
    }

    fn window_limit(&self) -> Option<u64> {
        self.limit
    }

    fn is_cached(&self, _at: u64) -> bool {
        self.is_cached
    }

    fn reads_ahead(&self, _at: u64) -> bool {
        self.reads_ahead
    }

    fn advise(&self, range: Range<u64>, advice: Advice) {
        self.advised.lock().unwrap().push((range, advice));
    }
}

/// An output in memory that fails the test if a byte is written twice or out of order.
pub(crate) struct Memory {
    order: WriteOrder,
    bytes: Mutex<Vec<Option<u8>>>,
    next: Mutex<u64>,
}

impl Memory {
    pub(crate) fn new(len: u64, order: WriteOrder) -> Memory {
        Memory { order, bytes: Mutex::new(vec![None; len as usize]), next: Mutex::new(0) }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        let bytes = self.bytes.into_inner().unwrap();
        bytes.into_iter().map(|byte| byte.expect("every byte is written")).collect()
    }
}

impl Sink for Memory {
    fn order(&self) -> WriteOrder {
        self.order
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        if self.order == WriteOrder::Ascending {
            let mut next = self.next.lock().unwrap();
            assert_eq!(*next, offset, "written in order");
            *next += bytes.len() as u64;
        }
        let mut all = self.bytes.lock().unwrap();
        for (place, &byte) in all[offset as usize..].iter_mut().zip(bytes) {
            assert_eq!(place.replace(byte), None, "written once");
        }
        Ok(())
    }
}
