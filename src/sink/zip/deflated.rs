//! A zip archive of deflated members, as `np.savez_compressed` writes it. Callers write the same bytes
//! at the same positions as to a [`ZipSink`](super::ZipSink), but in order.
//!
//! ```text
//!   taken    │ head │ data ...            │ head │ data ...
//!   written  │ local header │ deflated .. │ local header │ deflated .. │ directory │ end
//! ```
//!
//! The length of a deflated member is known at its end. Its local header is written then, if the
//! inner sink can be written at any position; else CRC and sizes follow the member. The compressor
//! gets blocks of a fixed length, however the caller cut its writes, so that equal input gives equal
//! bytes.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use crc32fast::Hasher;
use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::{LOCAL, MemberHeader, Method, ZipLayout, write_directory};
use crate::sink::{Draft, Old, Placed, Sink, SinkError, SinkResult, WriteOrder, end_within};

/// How many bytes are deflated at a time.
const DEFLATED_AT_ONCE: usize = 1 << 18;

/// An archive of deflated members that is being written.
pub struct DeflatedZipSink {
    inner: Box<dyn Draft>,
    layout: Arc<ZipLayout>,
    state: Mutex<DeflateState>,
}

#[derive(Default)]
struct DeflateState {
    /// Where the next byte of the archive goes.
    written: u64,
    done: Vec<Done>,
    /// The member that is being written, number `done.len()`.
    open: Option<OpenMember>,
}

struct Done {
    start: u64,
    stored: u64,
    crc: u32,
}

struct OpenMember {
    /// Where its local header begins.
    start: u64,
    /// Bytes of its data that the caller wrote.
    taken: u64,
    /// Deflated bytes that were written.
    stored: u64,
    crc: Hasher,
    /// Bytes that wait for a full block.
    block: Vec<u8>,
    encoder: DeflateEncoder<Vec<u8>>,
}

impl DeflatedZipSink {
    /// Write an archive to `inner`, which must be created without a length.
    pub fn new(inner: Box<dyn Draft>, layout: Arc<ZipLayout>) -> SinkResult<DeflatedZipSink> {
        layout.check_order(inner.as_ref())?;
        Ok(DeflatedZipSink { inner, layout, state: Mutex::default() })
    }

    fn record(&self, number: usize, done: &Done) -> MemberHeader<'_> {
        let &Done { start, stored, crc } = done;
        MemberHeader { crc, stored, start, ..self.layout.header(number, Method::Deflated) }
    }

    /// End the members before member `number`, and begin those up to it.
    fn advance(&self, state: &mut DeflateState, number: usize) -> SinkResult<()> {
        loop {
            let current = state.done.len();
            if let Some(open) = state.open.take_if(|_| current < number) {
                self.end(state, open)?;
            } else if state.open.is_none() && current < self.layout.count() {
                self.begin(state)?;
            } else {
                return Ok(());
            }
        }
    }

    fn begin(&self, state: &mut DeflateState) -> SinkResult<()> {
        let number = state.done.len();
        let start = state.written;
        let member = self.layout.member(number);
        if self.layout.forward {
            // the header is written before the deflated size is known, so both sizes are 0
            let header = self.layout.header(number, Method::Deflated);
            let unknown = MemberHeader { size: 0, stored: 0, ..header };
            self.append(&mut state.written, &unknown.local(0))?;
        } else {
            state.written += LOCAL + member.name.len() as u64;
        }
        let encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        let crc = Hasher::new();
        let block = Vec::with_capacity(DEFLATED_AT_ONCE);
        let open =
            state.open.insert(OpenMember { start, taken: 0, stored: 0, crc, block, encoder });
        self.deflate(&mut state.written, open, member.head)
    }

    fn deflate(
        &self,
        written: &mut u64,
        open: &mut OpenMember,
        mut bytes: &[u8],
    ) -> SinkResult<()> {
        open.crc.update(bytes);
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(DEFLATED_AT_ONCE - open.block.len()));
            open.block.extend(now);
            bytes = later;
            if open.block.len() == DEFLATED_AT_ONCE {
                open.encoder.write_all(&open.block).map_err(SinkError::Io)?;
                open.block.clear();
                let deflated = open.encoder.get_mut();
                self.append(written, deflated)?;
                open.stored += deflated.len() as u64;
                deflated.clear();
            }
        }
        Ok(())
    }

    fn end(&self, state: &mut DeflateState, open: OpenMember) -> SinkResult<()> {
        let OpenMember { start, taken, mut stored, crc, block, mut encoder } = open;
        let number = state.done.len();
        let len = self.layout.member(number).data_len();
        if taken != len {
            return Err(SinkError::Incomplete { written: taken, len });
        }
        encoder.write_all(&block).map_err(SinkError::Io)?;
        let last = encoder.finish().map_err(SinkError::Io)?;
        self.append(&mut state.written, &last)?;
        stored += last.len() as u64;
        let done = Done { start, stored, crc: crc.finalize() };
        let record = self.record(number, &done);
        self.append(&mut state.written, &record.descriptor())?;
        if !self.layout.forward {
            self.inner.write_at(start, &record.local(0))?;
        }
        state.done.push(done);
        Ok(())
    }

    /// Write the next bytes of the archive.
    fn append(&self, written: &mut u64, bytes: &[u8]) -> SinkResult<()> {
        self.inner.write_at(*written, bytes)?;
        *written += bytes.len() as u64;
        Ok(())
    }
}

impl Sink for DeflatedZipSink {
    fn order(&self) -> WriteOrder {
        WriteOrder::Ascending
    }

    fn is_atomic(&self) -> bool {
        self.inner.is_atomic()
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> SinkResult<()> {
        let found = self.layout.find(offset).filter(|_| !bytes.is_empty());
        let Some(number) = found else { return Ok(()) };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        self.advance(state, number)?;
        let data = self.layout.member(number).data;
        let count = bytes.len() as u64;
        end_within(offset, count, data.end)?;
        let DeflateState { written, done, open } = state;
        match open {
            Some(open) if done.len() == number && data.start + open.taken == offset => {
                open.taken += count;
                self.deflate(written, open, bytes)
            }
            open => {
                let taken = open.as_ref().map_or(0, |open| open.taken);
                let expected = self.layout.data().nth(done.len()).unwrap_or(data.end) + taken;
                Err(SinkError::OutOfOrder { expected, offset })
            }
        }
    }
}

impl Draft for DeflatedZipSink {
    fn seal(&mut self) -> SinkResult<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.advance(&mut state, self.layout.count())?;
        let records = state.done.iter().enumerate().map(|(number, done)| self.record(number, done));
        write_directory(&|at, bytes| self.inner.write_at(at, bytes), records, state.written)?;
        drop(state);
        self.inner.seal()
    }

    fn park(&mut self) -> SinkResult<()> {
        self.inner.park()
    }

    fn place(self: Box<Self>, old: Old) -> SinkResult<Placed> {
        self.inner.place(old)
    }
}
