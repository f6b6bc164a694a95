//! The JSON of a long header, passed on piece by piece, as far as it is valid UTF-8.

use std::io;
use std::io::Read;

use super::SafetensorsError;
use crate::error::Cause;
use crate::formats::FormatError;

/// The bytes that are read at a time.
const PIECE: u64 = 64 << 10;

/// The text of known length that follows the length of a header.
pub(super) struct JsonText<'r> {
    /// The bytes of the text that were not read yet.
    input: io::Take<&'r mut dyn Read>,
    len: u64,
    buffer: Vec<u8>,
    /// The part of the buffer that was not passed on yet; what follows is the beginning of a character.
    at: usize,
    valid: usize,
    /// Why no more is passed on.
    fault: Option<Cause>,
}

impl<'r> JsonText<'r> {
    /// The next `len` bytes of `input`.
    pub(super) fn new(input: &'r mut dyn Read, len: u64) -> JsonText<'r> {
        let input = input.take(len);
        JsonText { input, len, buffer: Vec::new(), at: 0, valid: 0, fault: None }
    }

    /// Read the rest, and return the fault of the text, if any. A text that is cut short is reported
    /// first.
    pub(super) fn finish(mut self) -> Result<(), Cause> {
        while self.fill() {}
        self.fault.map_or(Ok(()), Err)
    }

    /// Read more, after all valid bytes were passed on. Returns false at the end, or for a fault.
    fn fill(&mut self) -> bool {
        self.buffer.drain(..self.valid);
        (self.at, self.valid) = (0, 0);
        let is_left = |text: &Self| text.input.limit() > 0 || !text.buffer.is_empty();
        while self.fault.is_none() && self.valid == 0 && is_left(self) {
            self.fault = self.read_piece().err();
        }
        self.valid > 0
    }

    fn read_piece(&mut self) -> Result<(), Cause> {
        let count = self.input.by_ref().take(PIECE).read_to_end(&mut self.buffer)?;
        let read = self.len - self.input.limit();
        let checked = str::from_utf8(&self.buffer);
        self.valid = checked.map_or_else(|error| error.valid_up_to(), str::len);
        let is_damaged = checked.is_err_and(|error| count == 0 || error.error_len().is_some());
        if is_damaged {
            io::copy(&mut self.input, &mut io::sink())?;
        }
        match self.input.limit() {
            left if left > 0 && (count == 0 || is_damaged) => {
                let expected = 8 + self.len;
                Err(FormatError::HeaderCutShort { expected, found: expected - left }.into())
            }
            _ if is_damaged => {
                let rest = self.buffer.len() - self.valid;
                Err(SafetensorsError::Encoding(read as usize - rest).into())
            }
            _ => Ok(()),
        }
    }
}

impl Read for JsonText<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        // at a fault the text just ends: `finish` reports the fault
        if self.at == self.valid {
            self.fill();
        }
        let count = (&self.buffer[self.at..self.valid]).read(buf)?;
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bytes that come a few at a time.
    struct Drops<'a>(&'a [u8], usize);

    impl Read for Drops<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let most = buf.len().min(self.1);
            self.0.read(&mut buf[..most])
        }
    }

    const PARTS: &[&[u8]] =
        &[b"a", "é".as_bytes(), "€".as_bytes(), "🌍".as_bytes(), b"\xff", b"\xe2\x82"];

    proptest! {
        #[test]
        fn what_is_valid_comes_through(
            parts in prop::collection::vec(
                prop::sample::select(PARTS),
                0..9,
            ),
            fillers in prop::collection::vec(0..3 * PIECE as usize, 9),
            (drop, missing) in (1usize..100_000, prop_oneof![Just(0u64), 1..9u64]),
        ) {
            let mut bytes = Vec::new();
            for (part, filler) in parts.iter().zip(fillers) {
                bytes.extend(*part);
                bytes.resize(bytes.len() + filler, b' ');
            }
            let mut drops = Drops(&bytes, drop);
            let len = bytes.len() as u64 + missing;
            let mut text = JsonText::new(&mut drops, len);
            let mut got = Vec::new();
            text.read_to_end(&mut got).unwrap();
            let told = text.finish();
            match str::from_utf8(&bytes) {
                _ if missing > 0 => {
                    let cut = told.unwrap_err();
                    let is_cut = matches!(cut.downcast_ref(),
                        Some(&FormatError::HeaderCutShort { expected, found })
                        if expected == 8 + len && found == 8 + bytes.len() as u64);
                    prop_assert!(is_cut, "{cut:?}");
                }
                Ok(_) => {
                    prop_assert_eq!(&got, &bytes);
                    prop_assert!(told.is_ok());
                }
                Err(error) => {
                    let at = error.valid_up_to();
                    let told = told.unwrap_err().to_string();
                    prop_assert!(told.ends_with(&format!("not UTF-8, at byte {at}")), "{told}");
                    prop_assert_eq!(&got, &bytes[..at]);
                }
            }
        }
    }
}
