//! Copying slabs from offsets: out of a map, or with reads that take neighbours together.

use std::ops::Range;

use super::DROPPED;
use super::row_block::RowBlock;
use crate::execute::{ReadFrom, pack::pack, read_runs, split_first};
use crate::runs::Runs;
use crate::source::SourceError;

/// Neighbours closer than this are read together, in bytes.
const NEAR: u64 = 1024;

/// Copy the rows of a block of a file, whose bytes from `start` on are `input`, one after the other
/// to `out`, which they fill; zeros for [`DROPPED`]. Each row is like `slab`, but for its offset.
pub(super) fn copy_rows(input: &[u8], start: u64, block: &RowBlock, slab: &Runs, out: &mut [u8]) {
    match block.single_rows() {
        Some(offsets) => copy_single_rows(input, start, offsets, slab, out),
        None => copy_stretches(input, start, block, slab, out),
    }
}

/// Copy neighbours together.
fn copy_stretches(input: &[u8], start: u64, block: &RowBlock, slab: &Runs, out: &mut [u8]) {
    let (slab_bytes, mut rest) = (slab.bytes(), out);
    for (offset, rows) in block.stretches() {
        let now = split_first(&mut rest, rows * slab_bytes);
        if offset == DROPPED {
            now.fill(0);
            continue;
        }
        let Runs { offset, axes, run } = block.runs(slab, offset, rows);
        let first = offset as usize - start as usize;
        match axes.is_empty() {
            true => now.copy_from_slice(&input[first..][..run as usize]),
            false => pack(&axes, run, input, first, now),
        }
    }
}

/// Copy each row by itself.
fn copy_single_rows(input: &[u8], start: u64, offsets: &[u64], slab: &Runs, out: &mut [u8]) {
    let run = slab.run;
    if !slab.axes.is_empty() {
        let slab_bytes = out.len() / offsets.len().max(1);
        for (row, &offset) in out.chunks_exact_mut(slab_bytes.max(1)).zip(offsets) {
            match offset {
                DROPPED => row.fill(0),
                offset => pack(&slab.axes, run, input, (offset - start) as usize, row),
            }
        }
        return;
    }
    match run {
        1 => copy_items::<1>(input, start, offsets, out),
        2 => copy_items::<2>(input, start, offsets, out),
        4 => copy_items::<4>(input, start, offsets, out),
        8 => copy_items::<8>(input, start, offsets, out),
        16 => copy_items::<16>(input, start, offsets, out),
        _ => {
            for (row, &offset) in out.chunks_exact_mut(run as usize).zip(offsets) {
                match offset {
                    DROPPED => row.fill(0),
                    offset => row.copy_from_slice(&input[(offset - start) as usize..][..row.len()]),
                }
            }
        }
    }
}

/// Items whose size the compiler knows: moves instead of calls.
fn copy_items<const SIZE: usize>(input: &[u8], start: u64, offsets: &[u64], out: &mut [u8]) {
    for (item, &offset) in out.as_chunks_mut::<SIZE>().0.iter_mut().zip(offsets) {
        match offset {
            DROPPED => *item = [0; SIZE],
            offset => item.copy_from_slice(&input[(offset - start) as usize..][..SIZE]),
        }
    }
}

/// Fill `out` with the rows of a block, each stretch read by itself.
pub(super) fn read_long_rows(
    from: &mut ReadFrom<'_>,
    block: &RowBlock,
    slab: &Runs,
    out: &mut [u8],
) -> Result<(), SourceError> {
    let (slab_bytes, mut rest) = (slab.bytes(), out);
    for (offset, rows) in block.stretches() {
        let now = split_first(&mut rest, rows * slab_bytes);
        match (offset, block.runs(slab, offset, rows)) {
            (DROPPED, _) => now.fill(0),
            (_, Runs { offset, axes, run }) if axes.is_empty() => {
                from.source.read(offset as u64..offset as u64 + run, from.scratch, now)?;
            }
            (_, runs) => read_runs(&runs, from, now)?,
        }
    }
    Ok(())
}

/// Fill `out` with the rows of a block from a source that reads: each stretch by itself, but those near
/// each other in the file are read together.
pub(super) fn read_rows(
    from: &mut ReadFrom<'_>,
    block: &RowBlock,
    slab: &Runs,
    out: &mut [u8],
) -> Result<(), SourceError> {
    let slab_bytes = slab.bytes();
    let place = |first: u32, rows: u32| {
        let start = u64::from(first) * slab_bytes;
        start as usize..(start + u64::from(rows) * slab_bytes) as usize
    };
    let mut stretches = Vec::new();
    let mut first = 0;
    for (offset, rows) in block.stretches() {
        let rows = rows as u32;
        match offset {
            DROPPED => out[place(first, rows)].fill(0),
            offset => stretches.push((offset, first, rows)),
        }
        first += rows;
    }
    stretches.sort_unstable();
    let bounds_of = |offset: u64, rows: u32| {
        let bounds = block.runs(slab, offset, u64::from(rows)).byte_bounds();
        bounds.start as u64..bounds.end as u64
    };
    let limit = from.source.window_limit().unwrap_or(u64::MAX);
    let mut rest = &stretches[..];
    while let Some(&(offset, first, rows)) = rest.first() {
        let Range { start, mut end } = bounds_of(offset, rows);
        if end - start > limit {
            let runs = block.runs(slab, offset, u64::from(rows));
            read_runs(&runs, from, &mut out[place(first, rows)])?;
            rest = &rest[1..];
            continue;
        }
        let mut count = 1;
        while let Some(&(offset, _, rows)) = rest.get(count) {
            let next = bounds_of(offset, rows);
            if next.start > end.saturating_add(NEAR) || next.end.max(end) - start > limit {
                break;
            }
            end = end.max(next.end);
            count += 1;
        }
        let (now, later) = rest.split_at(count);
        let window = from.window(start..end)?;
        for &(offset, first, rows) in now {
            let Runs { offset, axes, run } = block.runs(slab, offset, u64::from(rows));
            let from = (offset as u64 - start) as usize;
            pack(&axes, run, window, from, &mut out[place(first, rows)]);
        }
        rest = later;
    }
    Ok(())
}
