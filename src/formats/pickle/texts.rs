//! Bytes and texts of a pickle. From protocol 3 on, and in protocols 1 and 2 of Python 2, bytes are stored as they are.
//! In other pickles they are stored as texts, which are decoded.

use std::io::BufRead;

use super::ops::{EARLY, MAX_KEY_BYTES, damaged};
use crate::error::Cause;

/// Bytes of a pickle.
#[derive(Debug)]
pub(crate) struct PickleBytes {
    /// The bytes as characters of Latin-1, if they are few.
    pub(crate) key: Option<Box<str>>,
    pub(crate) location: BytesLocation,
    pub(crate) len: u64,
}

/// The location of bytes of a pickle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BytesLocation {
    /// In the pickle, from this position of its source on.
    Pickle(u64),
    /// In the decoded bytes, from this position on.
    Decoded(u64),
    /// Not decoded: there are too many bytes.
    Undecoded,
}

/// How a text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextForm {
    /// A byte is a character.
    Bytes,
    Utf8,
    /// Latin-1 with `\uXXXX` and `\UXXXXXXXX`: a text of protocol 0.
    Escaped,
    /// With `\xXX`, `\n` and such: the bytes of Python 2 in protocol 0.
    Quoted,
}

/// The characters of a UTF-8 text, up to the first that is not in Latin-1.
pub(crate) struct Characters<'a> {
    text: &'a mut dyn BufRead,
    left: u64,
    form: TextForm,
    /// The byte after the last character, if it was read already.
    held: Option<u8>,
    buffer: [u8; 512],
    at: usize,
    filled: usize,
}

/// The mark of a code that is not a character.
const NO_CHARACTER: u32 = u32::MAX;

impl<'a> Characters<'a> {
    /// The characters of the next `len` bytes.
    pub(crate) fn new(text: &'a mut dyn BufRead, len: u64, form: TextForm) -> Characters<'a> {
        Characters { text, left: len, form, held: None, buffer: [0; 512], at: 0, filled: 0 }
    }

    /// The next character; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<u32>, Cause> {
        let Some(byte) = self.byte()? else { return Ok(None) };
        let character = match (self.form, byte) {
            (TextForm::Utf8, 0..0x80) | (TextForm::Bytes, _) => byte.into(),
            (TextForm::Utf8, 0xc2 | 0xc3) => match self.byte()? {
                Some(low @ 0x80..0xc0) => (byte << 6 | low & 0x3f).into(),
                _ => NO_CHARACTER,
            },
            (TextForm::Utf8, _) => NO_CHARACTER,
            (TextForm::Escaped | TextForm::Quoted, b'\\') => self.escaped()?,
            (TextForm::Escaped | TextForm::Quoted, _) => byte.into(),
        };
        Ok(Some(character))
    }

    /// The character after a backslash.
    fn escaped(&mut self) -> Result<u32, Cause> {
        let is_quoted = self.form == TextForm::Quoted;
        let digits = match (is_quoted, self.byte()?) {
            (false, Some(b'u')) => 4,
            (false, Some(b'U')) => 8,
            (true, Some(b'x')) => 2,
            (true, Some(b'n')) => return Ok(b'\n'.into()),
            (true, Some(b'r')) => return Ok(b'\r'.into()),
            (true, Some(b't')) => return Ok(b'\t'.into()),
            (true, Some(byte @ (b'\\' | b'\'' | b'"'))) => return Ok(byte.into()),
            (true, _) => return Ok(NO_CHARACTER),
            // a backslash that stands for itself
            (false, byte) => {
                self.held = byte;
                return Ok(b'\\'.into());
            }
        };
        let mut number = 0;
        for _ in 0..digits {
            let digit = self.byte()?.and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else { return Ok(NO_CHARACTER) };
            number = number << 4 | digit;
        }
        Ok(number)
    }

    fn byte(&mut self) -> Result<Option<u8>, Cause> {
        if let Some(held) = self.held.take() {
            return Ok(Some(held));
        }
        if self.at == self.filled {
            let most = self.left.min(self.buffer.len() as u64) as usize;
            if most == 0 {
                return Ok(None);
            }
            self.at = 0;
            self.filled = self.text.read(&mut self.buffer[..most])?;
            self.left -= self.filled as u64;
            if self.filled == 0 {
                return Err(damaged(EARLY));
            }
        }
        self.at += 1;
        Ok(self.buffer.get(self.at - 1).copied())
    }
}

/// Bytes that were written as texts, one after the other.
#[derive(Debug)]
pub(crate) struct Decoded {
    bytes: Vec<u8>,
    /// The most bytes that may be decoded.
    most: usize,
    /// Whether there were more bytes than that.
    is_full: bool,
}

impl Decoded {
    pub(crate) fn new(most: usize) -> Decoded {
        Decoded { bytes: Vec::new(), most, is_full: false }
    }

    /// Decode a text, and return the location of its bytes: `Undecoded` for a text that is not Latin-1.
    pub(crate) fn add(
        &mut self,
        text: &mut dyn BufRead,
        len: u64,
        form: TextForm,
    ) -> Result<PickleBytes, Cause> {
        let nowhere = PickleBytes { key: None, location: BytesLocation::Undecoded, len: 0 };
        // the most bytes of a character
        let longest = match form {
            TextForm::Bytes => 1,
            TextForm::Utf8 => 2,
            TextForm::Quoted => 4,
            TextForm::Escaped => 10,
        };
        if self.is_full || len / longest > (self.most - self.bytes.len()) as u64 {
            return Ok(nowhere);
        }
        if self.bytes.capacity() == 0 && self.bytes.try_reserve_exact(self.most).is_err() {
            self.is_full = true;
            return Ok(nowhere);
        }
        let start = self.bytes.len();
        let mut characters = Characters::new(text, len, form);
        while let Some(character) = characters.next()? {
            let byte = u8::try_from(character).ok();
            let is_full = self.bytes.len() == self.most;
            let Some(byte) = byte.filter(|_| !is_full) else {
                self.bytes.truncate(start);
                self.is_full |= is_full;
                return Ok(nowhere);
            };
            self.bytes.push(byte);
        }
        let len = (self.bytes.len() - start) as u64;
        let key = (len <= MAX_KEY_BYTES)
            .then(|| self.bytes[start..].iter().copied().map(char::from).collect());
        Ok(PickleBytes { key, location: BytesLocation::Decoded(start as u64), len })
    }

    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        self.bytes.shrink_to_fit();
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_of_latin1_are_bytes() {
        let all: Vec<u8> = (0..=255).collect();
        let text: String = all.iter().copied().map(char::from).collect();
        let mut decoded = Decoded::new(1000);
        let add = |decoded: &mut Decoded, text: &str| {
            decoded.add(&mut text.as_bytes(), text.len() as u64, TextForm::Utf8).unwrap()
        };
        assert_eq!(add(&mut decoded, "é").len, 1);
        // no character of Latin-1
        assert_eq!(add(&mut decoded, "aĀ").location, BytesLocation::Undecoded);
        let bytes = add(&mut decoded, &text);
        assert_eq!((bytes.location, bytes.len), (BytesLocation::Decoded(1), 256));
        assert_eq!(decoded.into_bytes()[1..], all);
    }
}
