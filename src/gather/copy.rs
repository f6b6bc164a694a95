//! Copying slabs from offsets: out of a map, or with reads that take neighbours together.

use super::DROPPED;
use crate::execute::{pack::pack, read_runs};
use crate::runs::{Runs, byte_bounds};
use crate::source::{Source, SourceError};

/// Neighbours closer than this are read together, in bytes.
const NEAR: u64 = 1024;

/// Copy the slabs at `offsets` of a file, whose bytes from `start` on are `input`, one after the
/// other to `out`, which they fill; zeros for [`DROPPED`]. Each is like `slab`, but for its offset.
pub(super) fn copy_rows(input: &[u8], start: u64, offsets: &[u64], slab: &Runs, out: &mut [u8]) {
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

/// The same from a source that reads: each slab by itself, but that those near each other in the
/// file are read together.
pub(super) fn read_rows(
    source: &dyn Source,
    offsets: &[u64],
    slab: &Runs,
    scratch: &mut Vec<u8>,
    out: &mut [u8],
) -> Result<(), SourceError> {
    let Some(slab_bytes) = out.len().checked_div(offsets.len()) else { return Ok(()) };
    let place = |row: u32| row as usize * slab_bytes..(row as usize + 1) * slab_bytes;
    let mut rows: Vec<(u64, u32)> = offsets.iter().copied().zip(0..).collect();
    rows.sort_unstable();
    let there = rows.partition_point(|&(offset, _)| offset != DROPPED);
    for &(_, row) in &rows[there..] {
        out[place(row)].fill(0);
    }
    let bounds = byte_bounds(&slab.axes, slab.run);
    let limit = source.window_limit().unwrap_or(u64::MAX);
    if (bounds.end - bounds.start) as u64 > limit {
        for &(offset, row) in &rows[..there] {
            let slab = Runs { offset: offset as i64, ..slab.clone() };
            read_runs(&slab, source, scratch, &mut out[place(row)])?;
        }
        return Ok(());
    }
    let mut rest = &rows[..there];
    while let Some(&(first, _)) = rest.first() {
        let start = first.wrapping_add_signed(bounds.start);
        let end_of = |offset: u64| offset.wrapping_add_signed(bounds.end);
        let mut end = end_of(first);
        let mut count = 1;
        while let Some(&(offset, _)) = rest.get(count)
            && offset.wrapping_add_signed(bounds.start) <= end.saturating_add(NEAR)
            && end_of(offset) - start <= limit
        {
            end = end_of(offset);
            count += 1;
        }
        let (now, later) = rest.split_at(count);
        let window = source.window(start..end, scratch)?;
        for &(offset, row) in now {
            let first = (offset - start) as usize;
            pack(&slab.axes, slab.run, window, first, &mut out[place(row)]);
        }
        rest = later;
    }
    Ok(())
}
