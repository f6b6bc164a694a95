//! Strings and plain bytes as Python's `repr` spells them.

use std::fmt::Write;
use std::ops::Range;

use super::element::{CHUNK, PrintedItem, Words};
use crate::dtype::{CodePoints, Endian};

/// Visit a range of an element in pieces of a multiple of 4 bytes, until `visit` returns `false`.
fn each_chunk<I: PrintedItem>(
    item: &mut I,
    range: Range<u64>,
    mut visit: impl FnMut(&[u8]) -> Result<bool, I::Error>,
) -> Result<(), I::Error> {
    let mut at = range.start;
    while at < range.end {
        let len = CHUNK.min(range.end - at);
        if !visit(item.bytes(at, len)?)? {
            break;
        }
        at += len;
    }
    Ok(())
}

/// Cut off the padding of a string: zeros at its end, in characters of `unit` bytes.
fn without_padding<I: PrintedItem>(
    item: &mut I,
    range: Range<u64>,
    unit: u64,
) -> Result<Range<u64>, I::Error> {
    let mut end = range.end;
    while end > range.start {
        let len = CHUNK.min(end - range.start);
        let bytes = item.bytes(end - len, len)?;
        if let Some(last) = bytes.iter().rposition(|&byte| byte != 0) {
            let used = end - len + last as u64 + 1 - range.start;
            return Ok(range.start..range.start + used.next_multiple_of(unit));
        }
        end -= len;
    }
    Ok(range.start..range.start)
}

fn code_points(bytes: &[u8], endian: Endian) -> impl Iterator<Item = u32> + use<'_> {
    bytes.chunks_exact(4).map(move |point| endian.bits(point) as u32)
}

/// Append an `S` element as `b'text'`.
pub(super) fn write_bytes<I: PrintedItem>(
    words: &mut Words<'_, I::Error>,
    item: &mut I,
    range: Range<u64>,
) -> Result<(), I::Error> {
    let range = without_padding(item, range, 1)?;
    let mut single = false;
    let mut double = false;
    each_chunk(item, range.clone(), |bytes| {
        single |= bytes.contains(&b'\'');
        double |= bytes.contains(&b'"');
        Ok(!double)
    })?;
    let points = CodePoints::new(single, double);
    words.text.extend(['b', points.quote()]);
    each_chunk(item, range, |bytes| {
        bytes.iter().for_each(|&byte| points.write_byte(&mut words.text, byte));
        words.go_on()
    })?;
    words.text.push(points.quote());
    Ok(())
}

/// Append a `U` element as `'text'`.
pub(super) fn write_unicode<I: PrintedItem>(
    words: &mut Words<'_, I::Error>,
    item: &mut I,
    range: Range<u64>,
    endian: Endian,
) -> Result<(), I::Error> {
    let range = without_padding(item, range, 4)?;
    let mut single = false;
    let mut double = false;
    each_chunk(item, range.clone(), |bytes| {
        single |= code_points(bytes, endian).any(|code| code == u32::from('\''));
        double |= code_points(bytes, endian).any(|code| code == u32::from('"'));
        Ok(!double)
    })?;
    let points = CodePoints::new(single, double);
    words.text.push(points.quote());
    each_chunk(item, range, |bytes| {
        code_points(bytes, endian).for_each(|code| points.write(&mut words.text, code));
        words.go_on()
    })?;
    words.text.push(points.quote());
    Ok(())
}

/// Append a `U` element without quotes or escapes.
pub(super) fn write_plain<I: PrintedItem>(
    words: &mut Words<'_, I::Error>,
    item: &mut I,
    range: Range<u64>,
    endian: Endian,
) -> Result<(), I::Error> {
    let range = without_padding(item, range, 4)?;
    let replaced = |code| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    each_chunk(item, range, |bytes| {
        words.text.extend(code_points(bytes, endian).map(replaced));
        words.go_on()
    })
}

/// Append a `V` element, with every byte escaped.
pub(super) fn write_void<I: PrintedItem>(
    words: &mut Words<'_, I::Error>,
    item: &mut I,
    range: Range<u64>,
) -> Result<(), I::Error> {
    words.text.push_str("b'");
    each_chunk(item, range, |bytes| {
        for byte in bytes {
            // writing to a string cannot fail
            let _ = write!(words.text, "\\x{byte:02X}");
        }
        words.go_on()
    })?;
    words.text.push('\'');
    Ok(())
}
