//! An output in chunks: a sink that takes elements at their positions, in any order, and writes
//! each chunk when its last byte has come.
//!
//! Elements wait in scratch, one after the other in C order. The worker that writes the last byte
//! of a chunk encodes it, while its bytes are in the page cache: as many chunks at a time as there
//! are workers.

use std::cell::Cell;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{cut_chunk, grid, in_order};
use crate::execute::{ReadFrom, read_runs, unpack};
use crate::runs::{Runs, index_of};
use crate::sink::{Draft, FileTree, PlacedOutputs, Replaced, ScratchSink, Sink, SinkError};
use crate::source::{Source, open_spooled};
use crate::tensor::EncodeChunks;

pub struct ChunkedTensor {
    encoder: Box<dyn EncodeChunks>,
    shape: Vec<u64>,
    item: u64,
    /// The position of the first byte, and the number of bytes.
    start: u64,
    bytes: u64,
    /// The number of axes up to the last one that chunks divide, and the bytes of a step along that
    /// one.
    divided: usize,
    run: u64,
    /// The bytes of each chunk that are missing.
    missing: Vec<AtomicU64>,
}

pub struct ChunkSink {
    folder: Box<dyn FileTree>,
    tensors: Vec<ChunkedTensor>,
    /// The range of the positions, in whole chunks.
    range: Range<u64>,
    came: AtomicU64,
    /// The written bytes, from the beginning of that range on.
    scratch: ScratchSink,
    spooled: Box<dyn Source>,
}

impl ChunkedTensor {
    /// A tensor of that shape, whose elements have `item` bytes and begin at position `start`;
    /// `None` if the chunks do not fit it.
    pub fn new(
        encoder: Box<dyn EncodeChunks>,
        shape: &[u64],
        item: u64,
        start: u64,
    ) -> Option<ChunkedTensor> {
        let chunk = encoder.chunk_shape();
        if chunk.len() != shape.len() || chunk.contains(&0) {
            return None;
        }
        let bytes = shape.iter().try_fold(item, |bytes, len| bytes.checked_mul(*len))?;
        let cut = (0..shape.len()).rev().find(|&axis| chunk[axis] < shape[axis]);
        let divided = cut.map_or(0, |axis| axis + 1);
        let run = shape[divided..].iter().product::<u64>() * item;
        let missing = (0..grid(shape, chunk).product()).map(|number| {
            let lens = cut_chunk(shape, chunk, &index_of(grid(shape, chunk), number));
            AtomicU64::new(lens.iter().product::<u64>() * item)
        });
        let missing = missing.collect();
        let shape = shape.to_vec();
        Some(ChunkedTensor { encoder, shape, item, start, bytes, divided, run, missing })
    }

    /// Note that a range of its bytes was written; `complete` gets the number of each chunk that is
    /// then complete.
    fn arrived(
        &self,
        range: Range<u64>,
        complete: &mut dyn FnMut(u64) -> Result<(), SinkError>,
    ) -> Result<(), SinkError> {
        let mut position = range.start;
        let chunk = self.encoder.chunk_shape();
        while position < range.end {
            // the chunk, and the bytes left in it from here on
            let mut rest = position / self.run;
            let mut number = 0;
            let mut step = 1;
            let mut end = range.end;
            for axis in (0..self.divided).rev() {
                let index = rest % self.shape[axis];
                rest /= self.shape[axis];
                number += index / chunk[axis] * step;
                step *= self.shape[axis].div_ceil(chunk[axis]);
                if axis + 1 == self.divided {
                    let next = (index / chunk[axis] + 1) * chunk[axis];
                    let more = next.min(self.shape[axis]) - index;
                    end = end.min((position / self.run + more) * self.run);
                }
            }
            let came = end - position;
            if self.missing[number as usize].fetch_sub(came, Ordering::AcqRel) == came {
                complete(number)?;
            }
            position = end;
        }
        Ok(())
    }
}

impl ChunkSink {
    /// Write these tensors, which follow each other, in a folder: their chunks that lie in a range
    /// of positions.
    pub fn new(
        folder: Box<dyn FileTree>,
        tensors: Vec<ChunkedTensor>,
        range: Range<u64>,
    ) -> Result<ChunkSink, SinkError> {
        let bytes = range.end - range.start;
        let (scratch, file) = ScratchSink::new(bytes)?;
        let spooled = open_spooled(file, bytes).map_err(failed)?;
        Ok(ChunkSink { folder, tensors, range, came: AtomicU64::new(0), scratch, spooled })
    }

    fn write_chunk(&self, tensor: &ChunkedTensor, number: u64) -> Result<(), SinkError> {
        let chunk = tensor.encoder.chunk_shape();
        let at = index_of(grid(&tensor.shape, chunk), number);
        let lens = cut_chunk(&tensor.shape, chunk, &at);
        let firsts = at.iter().zip(chunk).map(|(at, len)| at * len);
        let items: Vec<Range<u64>> =
            firsts.zip(&lens).map(|(first, len)| first..first + len).collect();
        let mut elements = in_order(&tensor.shape, tensor.item);
        elements.offset = tensor.start as i64 - self.range.start as i64;
        let runs = elements.part(&items).coalesced();
        let mut bytes = vec![0; runs.bytes() as usize];
        let from = &mut ReadFrom { source: self.spooled.as_ref(), scratch: &mut Vec::new() };
        read_runs(&runs, from, &mut bytes).map_err(failed)?;
        if lens != chunk {
            // the rest of a chunk beyond the tensor is zeros
            let whole = in_order(chunk, tensor.item);
            let mut padded = vec![0; whole.bytes() as usize];
            let cells = Cell::from_mut(&mut padded[..]).as_slice_of_cells();
            let items: Vec<Range<u64>> = lens.iter().map(|&len| 0..len).collect();
            let Runs { axes, run, .. } = whole.part(&items).coalesced();
            unpack(&axes, run, &bytes, cells, 0);
            bytes = padded;
        }
        match tensor.encoder.encode(&at, bytes) {
            Ok(Some(file)) => self.folder.write(&file.name, &file.bytes),
            Ok(None) => Ok(()),
            Err(reason) => Err(failed(reason)),
        }
    }
}

fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> SinkError {
    SinkError::Io(io::Error::other(error))
}

impl Sink for ChunkSink {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        let count = bytes.len() as u64;
        let len = self.range.end;
        let end = offset.checked_add(count).filter(|end| *end <= len);
        let Some(end) = end.filter(|_| offset >= self.range.start) else {
            return Err(SinkError::OutOfBounds { offset, count, len });
        };
        self.scratch.write_at(offset - self.range.start, bytes)?;
        self.came.fetch_add(count, Ordering::AcqRel);
        let first = self.tensors.partition_point(|tensor| tensor.start + tensor.bytes <= offset);
        for tensor in self.tensors[first..].iter().take_while(|tensor| tensor.start < end) {
            let from = offset.max(tensor.start) - tensor.start;
            let to = (end - tensor.start).min(tensor.bytes);
            tensor.arrived(from..to, &mut |number| self.write_chunk(tensor, number))?;
        }
        Ok(())
    }
}

impl Draft for ChunkSink {
    fn seal(&mut self) -> Result<(), SinkError> {
        let written = self.came.load(Ordering::Acquire);
        let len = self.range.end - self.range.start;
        if written == len { Ok(()) } else { Err(SinkError::Incomplete { written, len }) }
    }

    fn place(self: Box<Self>, _: Replaced) -> Result<PlacedOutputs, SinkError> {
        self.folder.place()
    }
}
