//! Pieces of the rows that a sorted list names along an axis of a tensor in chunks.
//!
//! A piece has the listed items of a box of chunks. It goes to the output without scratch, and each chunk with a
//! listed item is decoded once.

use std::ops::Range;

use crate::chunked::{ChunkPieces, Chunked};
use crate::execute::{FillError, Pieces, ReadFrom, VisitRange};
use crate::gather::{SortedList, copy_rows};
use crate::runs::Runs;
use crate::source::{keep_spare, spare_bytes};

pub(super) struct ListedPieces {
    /// The pieces of all items between the first listed one and the last.
    boxes: ChunkPieces,
    axis: usize,
    listed: Vec<u64>,
    output: Runs,
    work: u64,
}

/// If fewer than one chunk in so many has listed items, rows are gathered one by one.
const SPARSE: u64 = 64;

impl ListedPieces {
    /// `None` if few of the chunks between the first listed item and the last have listed items.
    pub(super) fn new(
        chunked: &Chunked,
        list: SortedList,
        is_written: bool,
    ) -> Option<ListedPieces> {
        let SortedList { between, axis, listed } = list;
        let named = chunked.with_items(&between, axis, &listed)?;
        let work = chunked.bytes_of(&named);
        if chunked.work(&between) / SPARSE > work {
            return None;
        }
        let mut output = between.clone();
        output.axes[axis].len = listed.len() as u64;
        let output = output.dense();
        let boxes = ChunkPieces::new(chunked, &between, Some(named), is_written);
        Some(ListedPieces { boxes, axis, listed, output, work })
    }

    /// The items of a box along each axis, and the part of the list that lies in it.
    fn items(&self, number: u64) -> (Vec<Range<u64>>, Range<u64>) {
        let items = self.boxes.items(number);
        let of_axis = &items[self.axis];
        let before = |end| self.listed.partition_point(|item| *item < end) as u64;
        let listed = before(of_axis.start)..before(of_axis.end);
        (items, listed)
    }
}

impl Pieces for ListedPieces {
    fn bytes(&self) -> u64 {
        self.output.bytes()
    }

    fn count(&self) -> u64 {
        self.boxes.count()
    }

    fn output(&self, number: u64) -> Runs {
        let (mut items, listed) = self.items(number);
        if listed.is_empty() {
            return Runs::contiguous(0, 0);
        }
        items[self.axis] = listed;
        self.output.part(&items).coalesced()
    }

    fn fill(&self, number: u64, from: &mut ReadFrom<'_>, out: &mut [u8]) -> Result<(), FillError> {
        if out.is_empty() {
            return self.boxes.fill(number, from, out);
        }
        let (items, listed) = self.items(number);
        let mut all = spare_bytes(self.boxes.output(number).bytes() as usize);
        self.boxes.fill(number, from, &mut all)?;
        let Range { start, end } = items[self.axis];
        let inner = items[self.axis + 1..].iter().map(|items| items.end - items.start);
        let item = Runs::contiguous(0, inner.product::<u64>() * self.output.run);
        let listed = &self.listed[listed.start as usize..listed.end as usize];
        let offsets: Vec<u64> = listed.iter().map(|at| (at - start) * item.run).collect();
        let rows = all.chunks_exact(((end - start) * item.run) as usize);
        for (row, out) in rows.zip(out.chunks_exact_mut(offsets.len() * item.run as usize)) {
            copy_rows(row, 0, &offsets, &item, out);
        }
        keep_spare(all);
        Ok(())
    }

    fn needs(&self, number: u64, gap: u64, visit: VisitRange<'_>) -> Result<(), FillError> {
        self.boxes.needs(number, gap, visit)
    }

    fn work(&self) -> u64 {
        self.work.max(self.bytes())
    }
}
