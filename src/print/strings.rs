//! Strings and plain bytes as Python's `repr` spells them.

use std::fmt::Write;

use crate::dtype::{CodePoints, Endian};

/// The bytes of an `S` element, without its padding.
pub(super) fn without_padding(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &bytes[..end]
}

/// The code points of a `U` element, without its padding.
pub(super) fn code_points(
    bytes: &[u8],
    endian: Endian,
) -> impl Iterator<Item = u32> + Clone + use<'_> {
    let points = bytes.chunks_exact(4).map(move |point| endian.bits(point) as u32);
    let len = points.clone().collect::<Vec<_>>().iter().rposition(|&point| point != 0);
    points.take(len.map_or(0, |last| last + 1))
}

/// Append an `S` element as `b'text'`.
pub(super) fn write_bytes(out: &mut String, bytes: &[u8]) {
    let bytes = without_padding(bytes);
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { b'"' } else { b'\'' };
    out.push('b');
    out.push(char::from(quote));
    for &byte in bytes {
        match byte {
            b'\t' => out.push_str("\\t"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\\' => out.push_str("\\\\"),
            _ if byte == quote => out.extend(['\\', char::from(quote)]),
            b' '..=b'~' => out.push(char::from(byte)),
            // writing to a string cannot fail
            _ => drop(write!(out, "\\x{byte:02x}")),
        }
    }
    out.push(char::from(quote));
}

/// Append a `U` element as `'text'`.
pub(super) fn write_unicode(out: &mut String, bytes: &[u8], endian: Endian) {
    let codes = code_points(bytes, endian);
    let holds = |quote: char| codes.clone().any(|code| code == u32::from(quote));
    let points = CodePoints::new(holds('\''), holds('"'));
    out.push(points.quote());
    codes.for_each(|code| points.write(out, code));
    out.push(points.quote());
}

/// Append a `V` element, all its bytes as escapes.
pub(super) fn write_void(out: &mut String, bytes: &[u8]) {
    out.push_str("b'");
    for byte in bytes {
        // writing to a string cannot fail
        let _ = write!(out, "\\x{byte:02X}");
    }
    out.push('\'');
}
