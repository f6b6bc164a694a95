//! Tensors side by side in one output: what np.concatenate and np.stack make.
//!
//! Along the joined axis the output has a number of *rows*, one for each position on the axes
//! before that axis (a single row where it is the outermost). A row of the output holds a row of
//! each member, in order:
//!
//! ```text
//!   member a    aaa aaa         row 0       row 1
//!   member b    bb bb      ──►  aaa bb c    aaa bb c
//!   member c    c c
//! ```
//!
//! A member is any strided [`Runs`], or what other [`Pieces`] make: its dense bytes, or a range of them,
//! are its rows, one after the other. A [`Join`] cuts the *output* into pieces and fills each from all
//! members that it touches, so that what is written is long however short the rows of the members are. Its
//! rows may be a stretch of longer ones: more members than can be open at a time are joined by several,
//! one beside the other.
//!
//! ```
//! use tslice::execute::{Conversion, Pieces, ReadFrom};
//! use tslice::join::{Join, JoinMember};
//! use tslice::runs::Runs;
//! use tslice::source::MemorySource;
//! let member = |offset, run| JoinMember::of_runs(Runs { offset, axes: vec![], run }, 1);
//! let join = Join::new(vec![member(0, 6), member(6, 4)], 2, 5, 1);
//! let mut out = [0; 10];
//! let source = MemorySource(b"abcdefghij".to_vec());
//! join.fill(0, &mut ReadFrom { source: &source, scratch: &mut Vec::new() }, &mut out)?;
//! assert_eq!(&out, b"abcghdefij");
//! # Ok::<(), tslice::execute::FillError>(())
//! ```

use std::cell::Cell;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::execute::pack::{pack, swap_bytes};
use crate::execute::unpack;
use crate::execute::{
    FillError, LONG_JOINED_ROW, Pieces, ReadFrom, VisitRange, needs_of_pieces, read_pieces,
    read_range, split_first, visit_ranges,
};
use crate::plan::{PIECE_BYTES, stretches};
use crate::runs::{Axis, Runs, coalesce};

/// The cost of opening a member, in bytes that could be copied meanwhile.
const OPEN_BYTES: u64 = 64 << 10;

/// The approximate number of members that a piece may touch, so that several workers open members.
const MEMBERS: u64 = 8;

pub struct JoinMember<'a> {
    bytes: MemberBytes<'a>,
    /// The range of the member's bytes that is joined.
    range: Range<u64>,
    swap_width: usize,
}

/// The bytes of a member, in the order of the output.
enum MemberBytes<'a> {
    Runs(Runs),
    /// Ranges of the output of other pieces, in order.
    Pieces(Box<dyn Pieces + 'a>),
}

impl<'a> JoinMember<'a> {
    /// Strided bytes. If `swap_width` is more than 1, every `swap_width` bytes are reversed: the byte order differs
    /// from the other members'.
    pub fn of_runs(runs: Runs, swap_width: usize) -> JoinMember<'a> {
        JoinMember {
            range: 0..runs.bytes(),
            bytes: MemberBytes::Runs(runs.coalesced()),
            swap_width,
        }
    }

    /// The bytes that other pieces make, which must be ranges in the order of the output.
    pub fn of_pieces(pieces: Box<dyn Pieces + 'a>) -> JoinMember<'a> {
        JoinMember { range: 0..pieces.bytes(), bytes: MemberBytes::Pieces(pieces), swap_width: 1 }
    }

    /// A range of the member's bytes, which divides no bytes that are reversed together.
    #[must_use]
    pub fn within(self, range: Range<u64>) -> JoinMember<'a> {
        JoinMember { range, ..self }
    }

    fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// The ranges of the source that a range of the member's dense bytes needs.
    fn needs(&self, range: Range<u64>, gap: u64, visit: VisitRange<'_>) -> Result<(), FillError> {
        match &self.bytes {
            MemberBytes::Runs(runs) => runs.split(range, &mut |runs| {
                visit_ranges(&stretches(runs, gap), visit);
                Ok(())
            }),
            MemberBytes::Pieces(pieces) => needs_of_pieces(pieces.as_ref(), range, gap, visit),
        }
    }
}

/// Neighbouring members of a joined tensor, as [`Pieces`].
pub struct Join<'a> {
    members: Vec<JoinMember<'a>>,
    /// The position of each member in a row, and the end of the last one, in bytes.
    starts: Vec<u64>,
    rows: u64,
    row_stride: u64,
    partition: JoinPieces,
    /// Buffers that no worker uses at the moment.
    buffers: Mutex<Vec<Vec<u8>>>,
}

/// The division of the output into pieces.
#[derive(Clone, Copy, Debug)]
enum JoinPieces {
    Rows(u64),
    Bytes(u64),
}

impl<'a> Join<'a> {
    /// Put members of `rows` rows each side by side, in rows of the output that begin `row_stride`
    /// bytes apart. No piece divides `unit` bytes, nor bytes that are swapped.
    ///
    /// The bytes of each member must be a multiple of `rows`. Pieces come in the order of the output
    /// if `row_stride` is the length of a row, and if there is one row.
    pub fn new(members: Vec<JoinMember<'a>>, rows: u64, row_stride: u64, unit: u64) -> Join<'a> {
        let mut starts = vec![0];
        let mut joined = Vec::with_capacity(members.len());
        let mut unit = unit.max(1);
        for member in members.into_iter().filter(|member| member.bytes() > 0) {
            let row = member.bytes() / rows.max(1);
            starts.push(starts[joined.len()] + row);
            unit = unit.max(member.swap_width as u64);
            joined.push(member);
        }
        let row = starts[joined.len()];
        let piece = match rows {
            // as many pieces as all workers need to open files
            1 => (row / (joined.len() as u64).max(1) * MEMBERS).clamp(1, PIECE_BYTES),
            _ => PIECE_BYTES,
        };
        let partition = match piece.checked_div(row) {
            Some(0) => JoinPieces::Bytes((piece / unit * unit).max(unit)),
            Some(count) => JoinPieces::Rows(count),
            None => JoinPieces::Rows(1),
        };
        Join { members: joined, starts, rows, row_stride, partition, buffers: Mutex::default() }
    }

    fn row_bytes(&self) -> u64 {
        self.starts[self.members.len()]
    }

    fn read(
        &self,
        member: &JoinMember<'_>,
        range: Range<u64>,
        from: &mut ReadFrom<'_>,
        out: &mut [u8],
    ) -> Result<(), FillError> {
        let range = member.range.start + range.start..member.range.start + range.end;
        match &member.bytes {
            MemberBytes::Runs(runs) => read_range(runs, range, from, out)?,
            MemberBytes::Pieces(pieces) => {
                read_pieces(pieces.as_ref(), range.start, from, out)?;
            }
        }
        swap_bytes(out, member.swap_width);
        Ok(())
    }

    fn fill_range(
        &self,
        row: u64,
        range: Range<u64>,
        from: &mut ReadFrom<'_>,
        out: &mut [u8],
    ) -> Result<(), FillError> {
        let mut rest = out;
        self.each_member(row, range, &mut |member, range| {
            let now = split_first(&mut rest, range.end - range.start);
            self.read(member, range, from, now)
        })
    }

    /// The members that hold a range of the bytes of one row, each with the range of its dense bytes.
    fn each_member<V>(&self, row: u64, range: Range<u64>, visit: &mut V) -> Result<(), FillError>
    where
        V: FnMut(&JoinMember<'_>, Range<u64>) -> Result<(), FillError>,
    {
        let mut number = self.starts.partition_point(|&start| start <= range.start) - 1;
        let mut at = range.start;
        while at < range.end {
            let start = self.starts[number];
            let end = self.starts[number + 1];
            let until = end.min(range.end);
            let first = row * (end - start) + (at - start);
            visit(&self.members[number], first..first + (until - at))?;
            (at, number) = (until, number + 1);
        }
        Ok(())
    }

    /// Fill `out` with whole rows, each member's rows at once: to a buffer, and from there to their
    /// positions.
    fn fill_rows(
        &self,
        rows: Range<u64>,
        from: &mut ReadFrom<'_>,
        out: &mut [u8],
    ) -> Result<(), FillError> {
        let count = (rows.end - rows.start) as usize;
        let row_bytes = self.row_bytes() as usize;
        let lens = || self.starts.windows(2).map(|pair| (pair[1] - pair[0]) as usize);
        let first = self.starts[1] as usize;
        let equal = lens().all(|len| len == first);
        let mut buffer = self.buffer();
        let needed = lens().max().unwrap_or(0) * count;
        let needed = if equal { out.len() } else { needed };
        if buffer.len() < needed {
            buffer.resize(needed, 0);
        }
        let of_rows = |len: usize| rows.start * len as u64..rows.end * len as u64;
        if equal {
            let blocks = buffer[..out.len()].chunks_exact_mut(first * count);
            for (member, block) in self.members.iter().zip(blocks) {
                self.read(member, of_rows(first), from, block)?;
            }
            let block = (first * count) as i64;
            let axes = [
                Axis { len: count as u64, stride: first as i64 },
                Axis { len: self.members.len() as u64, stride: block },
            ];
            if !weave(self.members.len(), first, &buffer[..out.len()], out) {
                let (axes, run) = coalesce(&axes, first as u64);
                pack(&axes, run, &buffer, 0, out);
            }
        } else {
            for ((member, len), &start) in self.members.iter().zip(lens()).zip(&self.starts) {
                let block = &mut buffer[..len * count];
                self.read(member, of_rows(len), from, block)?;
                let cells = Cell::from_mut(&mut *out).as_slice_of_cells();
                let axes = [Axis { len: count as u64, stride: row_bytes as i64 }];
                unpack(&axes, len as u64, block, cells, start as usize);
            }
        }
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
        Ok(())
    }

    fn buffer(&self) -> Vec<u8> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }
}

impl Pieces for Join<'_> {
    fn bytes(&self) -> u64 {
        self.rows * self.row_bytes()
    }

    fn count(&self) -> u64 {
        match self.partition {
            _ if self.bytes() == 0 => 0,
            JoinPieces::Rows(most) => self.rows.div_ceil(most),
            JoinPieces::Bytes(most) => self.rows * self.row_bytes().div_ceil(most),
        }
    }

    fn output(&self, number: u64) -> Runs {
        let row_bytes = self.row_bytes();
        let row_stride = self.row_stride;
        match self.partition {
            JoinPieces::Rows(most) => {
                let first = number * most;
                let rows = most.min(self.rows - first);
                if row_bytes == row_stride {
                    return Runs::contiguous(first * row_stride, rows * row_bytes);
                }
                let axes = vec![Axis { len: rows, stride: row_stride as i64 }];
                Runs { offset: (first * row_stride) as i64, axes, run: row_bytes }
            }
            JoinPieces::Bytes(most) => {
                let in_row = row_bytes.div_ceil(most);
                let start = number % in_row * most;
                let offset = number / in_row * row_stride + start;
                Runs::contiguous(offset, most.min(row_bytes - start))
            }
        }
    }

    fn fill(&self, number: u64, from: &mut ReadFrom<'_>, out: &mut [u8]) -> Result<(), FillError> {
        match (self.partition, self.members.as_slice()) {
            (JoinPieces::Bytes(most), _) => {
                let in_row = self.row_bytes().div_ceil(most);
                let start = number % in_row * most;
                let range = start..start + out.len() as u64;
                self.fill_range(number / in_row, range, from, out)
            }
            (JoinPieces::Rows(most), [only]) => {
                let start = number * most * self.row_bytes();
                self.read(only, start..start + out.len() as u64, from, out)
            }
            (JoinPieces::Rows(most), members) => {
                let rows = number * most..self.rows.min((number + 1) * most);
                if self.row_bytes() < LONG_JOINED_ROW * members.len() as u64 {
                    return self.fill_rows(rows, from, out);
                }
                for (row, out) in rows.zip(out.chunks_exact_mut(self.row_bytes() as usize)) {
                    self.fill_range(row, 0..self.row_bytes(), from, out)?;
                }
                Ok(())
            }
        }
    }

    fn needs(&self, number: u64, gap: u64, visit: VisitRange<'_>) -> Result<(), FillError> {
        let rows = match self.partition {
            JoinPieces::Bytes(most) => {
                let in_row = self.row_bytes().div_ceil(most);
                let start = number % in_row * most;
                let range = start..self.row_bytes().min(start + most);
                return self.each_member(number / in_row, range, &mut |member, range| {
                    member.needs(range, gap, visit)
                });
            }
            JoinPieces::Rows(most) => number * most..self.rows.min((number + 1) * most),
        };
        for (member, pair) in self.members.iter().zip(self.starts.windows(2)) {
            let len = pair[1] - pair[0];
            member.needs(rows.start * len..rows.end * len, gap, visit)?;
        }
        Ok(())
    }

    fn work(&self) -> u64 {
        self.bytes() + self.members.len() as u64 * OPEN_BYTES
    }
}

/// Interleave the items of a few blocks, as channels that become pixels. Returns false, with
/// nothing done, for more blocks, or items of other sizes, for which [`pack`] is as fast.
fn weave(members: usize, item: usize, blocks: &[u8], out: &mut [u8]) -> bool {
    let weave = match (members, item) {
        (2, 1) => weave_items::<2, 1>,
        (3, 1) => weave_items::<3, 1>,
        (4, 1) => weave_items::<4, 1>,
        (2, 2) => weave_items::<2, 2>,
        (3, 2) => weave_items::<3, 2>,
        (4, 2) => weave_items::<4, 2>,
        (2, 4) => weave_items::<2, 4>,
        (3, 4) => weave_items::<3, 4>,
        (2, 8) => weave_items::<2, 8>,
        _ => return false,
    };
    weave(blocks, out);
    true
}

/// Interleave the items of `MEMBERS` blocks of equal length, `SIZE` bytes each.
fn weave_items<const MEMBERS: usize, const SIZE: usize>(blocks: &[u8], out: &mut [u8]) {
    let groups = out.as_chunks_mut::<SIZE>().0.as_chunks_mut::<MEMBERS>().0;
    let items = blocks.as_chunks::<SIZE>().0;
    let count = groups.len();
    let members: [&[[u8; SIZE]]; MEMBERS] =
        std::array::from_fn(|member| &items[member * count..][..count]);
    for (at, group) in groups.iter_mut().enumerate() {
        for (item, member) in group.iter_mut().zip(members) {
            *item = member[at];
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::source::MemorySource;

    #[test]
    fn woven_items_are_those_of_the_plain_way() {
        for (members, item) in
            (1..6usize).flat_map(|members| [1usize, 2, 3, 4, 8].map(|item| (members, item)))
        {
            for count in [0, 1, 7, 100] {
                let bytes = members * item * count;
                let blocks: Vec<u8> = (0..bytes).map(|at| (at * 31 + at / 256) as u8).collect();
                let mut out = vec![0; bytes];
                if weave(members, item, &blocks, &mut out) {
                    let mut plain: Vec<u8> = Vec::new();
                    for at in 0..count {
                        for member in 0..members {
                            plain.extend(&blocks[(member * count + at) * item..][..item]);
                        }
                    }
                    assert_eq!(out, plain, "{members} members, items of {item} bytes, {count}");
                }
            }
        }
    }

    proptest! {
        /// Parts of random row lengths, some swapped, some read backwards, the first rows left out:
        /// compared with nested loops.
        #[test]
        fn rows_stand_side_by_side(
            lens in prop::collection::vec((0u64..5, any::<bool>(), any::<bool>()), 1..7),
            wide in prop_oneof![Just(1u64), Just(40), Just(3000)],
            rows in 0u64..40,
            skipped in 0u64..3,
            gap in 0u64..3,
        ) {
            let unit = 2;
            let skipped = skipped.min(rows);
            let mut bytes = Vec::new();
            let mut members = Vec::new();
            let mut expected = vec![Vec::new(); rows as usize];
            for &(len, swapped, backwards) in &lens {
                let row = len * unit * wide;
                let offset = bytes.len() as i64;
                let made: Vec<u8> = (0..row * rows).map(|at| (at * 7 + at / 256 + len) as u8).collect();
                bytes.extend(&made);
                let axis = if backwards && rows > 0 { (offset + (row * (rows - 1)) as i64, -(row as i64)) } else { (offset, row as i64) };
                let axes = vec![Axis { len: rows, stride: axis.1 }];
                let swap_width = if swapped { unit as usize } else { 1 };
                let runs = Runs { offset: axis.0, axes, run: row };
                members.push(JoinMember::of_runs(runs, swap_width).within(row * skipped..row * rows));
                for (number, expected) in expected.iter_mut().enumerate() {
                    let from = if backwards { rows as usize - 1 - number } else { number };
                    let mut one = made[from * row as usize..][..row as usize].to_vec();
                    swap_bytes(&mut one, swap_width);
                    expected.extend(one);
                }
            }
            let rows = rows - skipped;
            let expected = &expected[skipped as usize..];
            let row_bytes = expected.first().map_or(0, Vec::len) as u64;
            let row_stride = row_bytes + gap;
            let join = Join::new(members, rows, row_stride, unit);
            let mut out = vec![0xaa; (rows * row_stride) as usize];
            let source = MemorySource(bytes);
            let mut scratch = Vec::new();
            let mut ends = 0;
            for number in 0..join.count() {
                let to = join.output(number);
                prop_assert!(to.run % unit == 0);
                prop_assert!(gap > 0 && rows > 1 || to.offset == ends);
                ends = to.offset + to.bytes() as i64;
                let mut piece = vec![0; to.bytes() as usize];
                let from = &mut ReadFrom { source: &source, scratch: &mut scratch };
                join.fill(number, from, &mut piece).unwrap();
                for (at, piece) in to.starts().zip(piece.chunks_exact(to.run as usize)) {
                    let at = at as usize;
                    out[at..at + piece.len()].copy_from_slice(piece);
                }
            }
            let mut wanted = vec![0xaa; out.len()];
            for (number, row) in expected.iter().enumerate() {
                wanted[number * row_stride as usize..][..row.len()].copy_from_slice(row);
            }
            prop_assert!(out == wanted);
        }
    }
}
