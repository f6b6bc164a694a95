//! The text of a long header, which is checked while it is read.

use std::io::{ErrorKind, Read};
use std::{io, str};

use super::SafetensorsError;
use crate::format::error::FormatError;

/// How much is read at a time, in bytes.
const PIECE: usize = 64 << 10;

/// A text of known length, of which only what is UTF-8 is handed on.
pub(super) struct Utf8Text<'r> {
    input: &'r mut dyn Read,
    /// How long the text is, and how much of it was read, in bytes.
    len: u64,
    read: u64,
    buffer: Vec<u8>,
    /// What of the buffer is valid, and not handed on yet; what follows is a character of which a
    /// part is missing.
    at: usize,
    valid: usize,
    fault: Option<Utf8Fault>,
}

/// Why no more is handed on.
enum Utf8Fault {
    CutShort,
    Encoding(u64),
    Io(io::Error),
}

impl<'r> Utf8Text<'r> {
    /// The next `len` bytes of `input`.
    pub(super) fn new(input: &'r mut dyn Read, len: u64) -> Utf8Text<'r> {
        Utf8Text { input, len, read: 0, buffer: Vec::new(), at: 0, valid: 0, fault: None }
    }

    /// Read what is left, and say what is wrong with the text, if anything is. That it is cut short
    /// is the reason for all else.
    pub(super) fn finish(&mut self) -> Result<(), FormatError> {
        loop {
            self.at = self.valid;
            if !self.fill() {
                break;
            }
        }
        match self.fault.take() {
            None => Ok(()),
            Some(Utf8Fault::Io(error)) => Err(error.into()),
            Some(Utf8Fault::Encoding(at)) => {
                io::copy(&mut Read::take(&mut *self.input, self.len - self.read), &mut io::sink())
                    .map(|skipped| self.read += skipped)?;
                if self.read < self.len {
                    return Err(self.cut_short());
                }
                Err(SafetensorsError::Encoding(at as usize).into())
            }
            Some(Utf8Fault::CutShort) => Err(self.cut_short()),
        }
    }

    fn cut_short(&self) -> FormatError {
        FormatError::HeaderCutShort { expected: self.len, found: self.read }
    }

    /// Read more, where all that is valid was handed on. False at the end, or for a fault.
    fn fill(&mut self) -> bool {
        self.buffer.drain(..self.valid);
        (self.at, self.valid) = (0, 0);
        while self.fault.is_none() && self.valid == 0 && self.read < self.len {
            let most = (self.len - self.read).min(PIECE as u64);
            match Read::take(&mut *self.input, most).read_to_end(&mut self.buffer) {
                Ok(0) => self.fault = Some(Utf8Fault::CutShort),
                Ok(count) => self.read += count as u64,
                Err(error) => self.fault = Some(Utf8Fault::Io(error)),
            }
            self.valid = match str::from_utf8(&self.buffer) {
                Ok(_) => self.buffer.len(),
                Err(error) => {
                    let valid = error.valid_up_to();
                    let is_last = self.read == self.len || self.fault.is_some();
                    if self.fault.is_none() && (error.error_len().is_some() || is_last) {
                        let rest = (self.buffer.len() - valid) as u64;
                        self.fault = Some(Utf8Fault::Encoding(self.read - rest));
                    }
                    valid
                }
            };
        }
        self.valid > 0
    }
}

impl Read for Utf8Text<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.at == self.valid && !self.fill() {
            // the fault itself is told by `finish`
            return if self.fault.is_some() { Err(ErrorKind::InvalidData.into()) } else { Ok(0) };
        }
        let count = buf.len().min(self.valid - self.at);
        buf[..count].copy_from_slice(&self.buffer[self.at..self.at + count]);
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
            fillers in prop::collection::vec(0..3 * PIECE, 9),
            (drop, missing) in (1usize..100_000, prop_oneof![Just(0u64), 1..9u64]),
        ) {
            let mut bytes = Vec::new();
            for (part, filler) in parts.iter().zip(fillers) {
                bytes.extend(*part);
                bytes.resize(bytes.len() + filler, b' ');
            }
            let mut drops = Drops(&bytes, drop);
            let len = bytes.len() as u64 + missing;
            let mut text = Utf8Text::new(&mut drops, len);
            let mut got = Vec::new();
            let outcome = text.read_to_end(&mut got);
            let told = text.finish();
            prop_assert_eq!(outcome.is_ok(), told.is_ok());
            match str::from_utf8(&bytes) {
                _ if missing > 0 => {
                    let cut = matches!(told, Err(FormatError::HeaderCutShort { expected, found })
                        if expected == len && found == bytes.len() as u64);
                    prop_assert!(cut, "{told:?}");
                }
                Ok(_) => prop_assert_eq!(&got, &bytes),
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
