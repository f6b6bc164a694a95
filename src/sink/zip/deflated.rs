//! A zip archive of deflated members, as `np.savez_compressed` writes it. Callers write the same bytes
//! at the same positions as to a [`ZipSink`](super::ZipSink), but in order.
//!
//! ```text
//!   taken    │ head │ data ...            │ head │ data ...
//!   written  │ local header │ deflated .. │ local header │ deflated .. │ directory │ end
//! ```
//!
//! The length of a deflated member is known at its end. Its local header is written then, if the
//! inner sink can be written at any position; else CRC and sizes follow the member.
//!
//! Every block of a member is deflated by itself, and ends at a whole byte. So many workers deflate at the same time;
//! only the results are appended in order. The ends of blocks do not depend on the caller's writes: equal input gives
//! equal bytes.

use std::sync::{Arc, Mutex, PoisonError};

use flate2::{Compress, Compression, FlushCompress};

use super::{LOCAL, MemberHeader, Method, ZipLayout, write_directory};
use crate::crc::shifted;
use crate::sink::{
    Draft, PlacedOutputs, PreparedWrite, Replaced, Sink, SinkError, SinkResult, WriteOrder,
    end_within,
};

/// The bytes of a member's data that are deflated together.
const BLOCK: usize = 128 << 10;

/// An empty last block in deflate's format, after the other blocks of a member.
const LAST_BLOCK: [u8; 2] = [3, 0];

pub struct DeflatedZipSink {
    inner: Box<dyn Draft>,
    layout: Arc<ZipLayout>,
    state: Mutex<DeflateState>,
}

#[derive(Default)]
struct DeflateState {
    /// The offset of the archive's next byte.
    written: u64,
    done: Vec<FinishedMember>,
    /// The open member, number `done.len()`.
    open: Option<OpenMember>,
}

struct FinishedMember {
    start: u64,
    stored: u64,
    crc: u32,
}

struct OpenMember {
    /// The offset of the member's local header.
    start: u64,
    /// The bytes of data that the caller wrote.
    taken: u64,
    /// The deflated bytes that were written.
    stored: u64,
    crc: u32,
    /// The bytes of an incomplete block.
    block: Vec<u8>,
}

/// A write to a member's data, deflated as far as possible.
struct DeflatedPiece<'a> {
    number: usize,
    offset: u64,
    len: u64,
    /// The contribution to the member's CRC.
    crc: u32,
    /// The end of a block that began in an earlier write.
    first: &'a [u8],
    /// The whole blocks, deflated.
    blocks: Vec<u8>,
    /// The beginning of a block that ends in a later write.
    last: &'a [u8],
}

impl DeflatedZipSink {
    /// Write an archive to `inner`, which must be created without a length.
    pub fn new(inner: Box<dyn Draft>, layout: Arc<ZipLayout>) -> SinkResult<DeflatedZipSink> {
        layout.check_order(inner.as_ref())?;
        Ok(DeflatedZipSink { inner, layout, state: Mutex::default() })
    }

    fn record(&self, number: usize, done: &FinishedMember) -> MemberHeader<'_> {
        let &FinishedMember { start, stored, crc } = done;
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
        let deflated = deflate(member.head)?;
        self.append(&mut state.written, &deflated)?;
        let stored = deflated.len() as u64;
        let crc = shifted(crc32fast::hash(member.head), member.data_len());
        state.open = Some(OpenMember { start, taken: 0, stored, crc, block: Vec::new() });
        Ok(())
    }

    /// Deflate a write at a position of the archive, as far as it holds whole blocks.
    fn deflated<'a>(
        &self,
        number: usize,
        offset: u64,
        bytes: &'a [u8],
    ) -> SinkResult<DeflatedPiece<'a>> {
        let data = self.layout.member(number).data;
        let len = bytes.len() as u64;
        let end = end_within(offset, len, data.end)?;
        let crc = shifted(crc32fast::hash(bytes), data.end - end);
        let at = offset - data.start;
        let begun = (at.next_multiple_of(BLOCK as u64) - at).min(len) as usize;
        let (first, bytes) = bytes.split_at(begun);
        let is_end = end == data.end;
        let cut = if is_end { bytes.len() } else { bytes.len() - bytes.len() % BLOCK };
        let (whole, last) = bytes.split_at(cut);
        let blocks = deflate(whole)?;
        Ok(DeflatedPiece { number, offset, len, crc, first, blocks, last })
    }

    fn write(&self, piece: &DeflatedPiece<'_>) -> SinkResult<()> {
        let DeflatedPiece { number, offset, .. } = *piece;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.advance(&mut state, number)?;
        let data = self.layout.member(number).data;
        let DeflateState { written, done, open } = &mut *state;
        match open {
            Some(open) if done.len() == number && data.start + open.taken == offset => {
                open.crc ^= piece.crc;
                open.taken += piece.len;
                open.block.extend(piece.first);
                if open.block.len() == BLOCK || data.start + open.taken == data.end {
                    self.append_deflated(written, &mut open.stored, &deflate(&open.block)?)?;
                    open.block.clear();
                }
                self.append_deflated(written, &mut open.stored, &piece.blocks)?;
                open.block.extend(piece.last);
                Ok(())
            }
            open => {
                let taken = open.as_ref().map_or(0, |open| open.taken);
                let expected = self.layout.data().nth(done.len()).unwrap_or(data.end) + taken;
                Err(SinkError::OutOfOrder { expected, offset })
            }
        }
    }

    fn end(&self, state: &mut DeflateState, open: OpenMember) -> SinkResult<()> {
        let OpenMember { start, taken, mut stored, crc, .. } = open;
        let number = state.done.len();
        let len = self.layout.member(number).data_len();
        if taken != len {
            return Err(SinkError::Incomplete { written: taken, len });
        }
        self.append_deflated(&mut state.written, &mut stored, &LAST_BLOCK)?;
        let done = FinishedMember { start, stored, crc };
        let record = self.record(number, &done);
        self.append(&mut state.written, &record.descriptor())?;
        if !self.layout.forward {
            self.inner.write_at(start, &record.local(0))?;
        }
        state.done.push(done);
        Ok(())
    }

    /// Write the next deflated bytes of a member.
    fn append_deflated(&self, written: &mut u64, stored: &mut u64, bytes: &[u8]) -> SinkResult<()> {
        *stored += bytes.len() as u64;
        self.append(written, bytes)
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

    fn prepare<'a>(&'a self, offset: u64, bytes: &'a [u8]) -> PreparedWrite<'a> {
        let found = self.layout.find(offset).filter(|_| !bytes.is_empty());
        let piece = found.map(|number| self.deflated(number, offset, bytes)).transpose();
        Box::new(move || piece?.map_or(Ok(()), |piece| self.write(&piece)))
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> SinkResult<()> {
        self.prepare(offset, bytes)()
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

    fn place(self: Box<Self>, replaced: Replaced) -> SinkResult<PlacedOutputs> {
        self.inner.place(replaced)
    }
}

/// Deflate bytes in blocks, each of which can be inflated alone.
fn deflate(bytes: &[u8]) -> SinkResult<Vec<u8>> {
    /// The free room that a flush needs to finish a block.
    const ROOM: usize = 64;
    let mut deflated = Vec::new();
    if bytes.is_empty() {
        return Ok(deflated);
    }
    let mut compress = Compress::new(Compression::default(), false);
    for block in bytes.chunks(BLOCK) {
        compress.reset();
        loop {
            let left = &block[compress.total_in() as usize..];
            deflated.reserve(left.len() + ROOM);
            compress
                .compress_vec(left, &mut deflated, FlushCompress::Sync)
                .map_err(|error| SinkError::Io(error.into()))?;
            if deflated.len() < deflated.capacity() {
                break;
            }
        }
    }
    Ok(deflated)
}
