//! The instructions (opcodes) of a pickle, of protocols 0 to 5, as Python's `pickletools` documents them. Extensions, and
//! buffers outside the pickle, are refused.

use std::io::{self, BufRead, Read};
use std::ops::Range;
use std::rc::Rc;

use super::items::SharedKind;
use super::texts::{BytesLocation, Characters, PickleBytes, TextForm};
use super::value::PickleValue;
use super::{MAX_PICKLE, PickleError};
use crate::error::Cause;
use crate::source::{Reader, Source};

/// The values that an instruction takes off the stack.
#[derive(Debug)]
pub(crate) enum Operands {
    Last(usize),
    /// All that stand behind the last mark.
    ToMark,
}

#[derive(Debug)]
pub(crate) enum PickleOp {
    Push(PickleValue),
    Mark,
    /// Drop the last value, or the last mark.
    Pop,
    PopMark,
    Dup,
    Tuple(Operands),
    /// A list, or a dict, of all that stands behind the mark.
    MarkList,
    MarkDict,
    Append(Operands),
    SetItems(Operands),
    Get(u32),
    Put(u32),
    /// Put under the next number.
    Memoize,
    Global {
        module: String,
        name: String,
    },
    /// A global whose module and name are the last values.
    StackGlobal,
    /// Call a class of Python 2 with what stands behind the mark.
    Instance {
        module: String,
        name: String,
    },
    /// An object whose class comes first on the stack.
    Object,
    /// Call a function; `keywords` where a dict of these is the last value.
    Call {
        keywords: bool,
    },
    /// Set the state of the value before the last one.
    Build,
    /// The value of an identifier: a storage.
    Persistent,
    Stop,
    /// The protocol, the length of a frame.
    Nothing,
}

/// The longest text that can be a key, or a name, in bytes.
const MAX_TEXT: u64 = 1 << 20;

/// The module whose objects have elements behind them.
const JOBLIB: &str = "joblib.numpy_pickle";

/// The longest text of Python 2 that can be a key, or a name, in bytes: longer ones are elements.
const MAX_BYTE_TEXT: usize = 256;

/// The most bytes that can be a key.
pub(crate) const MAX_KEY_BYTES: u64 = 64;

/// The instructions of a pickle in a range of a source, which may end before that.
pub(crate) struct PickleOps<'s> {
    source: &'s dyn Source,
    reader: Reader<'s>,
    end: u64,
    /// How many bytes may be read, besides those that are passed over.
    left: u64,
    /// Whether Python 2 wrote it, by one of the instructions read so far: bytes may be texts.
    pub(crate) is_python2: bool,
}

impl<'s> PickleOps<'s> {
    pub(crate) fn new(source: &'s dyn Source, range: Range<u64>) -> PickleOps<'s> {
        let reader = Reader::at(source, range.start);
        PickleOps { source, reader, end: range.end, left: MAX_PICKLE, is_python2: false }
    }

    /// The position in the source of the next instruction.
    pub(crate) fn position(&self) -> u64 {
        self.reader.position()
    }

    /// A long text that was passed over.
    pub(crate) fn text_at(&self, position: u64) -> Reader<'s> {
        Reader::at(self.source, position)
    }

    pub(crate) fn next_op(&mut self) -> Result<PickleOp, Cause> {
        let code = self.bytes::<1>()?[0];
        self.is_python2 |= matches!(code, b'S' | b'T' | b'U');
        Ok(match code {
            0x80 => self.nothing(1)?,
            0x95 => self.nothing(8)?,
            b'N' => PickleOp::Push(PickleValue::None),
            0x88 => PickleOp::Push(PickleValue::Bool(true)),
            0x89 => PickleOp::Push(PickleValue::Bool(false)),
            b'I' | b'L' | b'J' | b'K' | b'M' | 0x8a | 0x8b => PickleOp::Push(self.integer(code)?),
            b'F' => {
                let float = self.line()?.parse().map_err(|_| damaged("a float is not a number"))?;
                PickleOp::Push(PickleValue::Float(float))
            }
            b'G' => PickleOp::Push(PickleValue::Float(f64::from_be_bytes(self.bytes()?))),
            b'X' | 0x8c | 0x8d => PickleOp::Push(self.text(code)?),
            b'V' => PickleOp::Push(self.text_line(TextForm::Escaped)?),
            b'S' => PickleOp::Push(self.text_line(TextForm::Quoted)?),
            b'T' | b'U' | b'B' | b'C' | 0x8e | 0x96 => PickleOp::Push(self.byte_values(code)?),
            b')' => PickleOp::Tuple(Operands::Last(0)),
            b']' | 0x8f => PickleOp::Push(PickleValue::Empty(SharedKind::List)),
            b'}' => PickleOp::Push(PickleValue::Empty(SharedKind::Dict)),
            b'(' => PickleOp::Mark,
            b'0' => PickleOp::Pop,
            b'1' => PickleOp::PopMark,
            b'2' => PickleOp::Dup,
            0x85..=0x87 => PickleOp::Tuple(Operands::Last(usize::from(code - 0x84))),
            b't' => PickleOp::Tuple(Operands::ToMark),
            b'l' | 0x91 => PickleOp::MarkList,
            b'd' => PickleOp::MarkDict,
            b'a' => PickleOp::Append(Operands::Last(1)),
            b'e' | 0x90 => PickleOp::Append(Operands::ToMark),
            b's' => PickleOp::SetItems(Operands::Last(2)),
            b'u' => PickleOp::SetItems(Operands::ToMark),
            b'h' => PickleOp::Get(self.bytes::<1>()?[0].into()),
            b'j' => PickleOp::Get(u32::from_le_bytes(self.bytes()?)),
            b'g' => PickleOp::Get(self.number()?),
            b'p' => PickleOp::Put(self.number()?),
            b'q' => PickleOp::Put(self.bytes::<1>()?[0].into()),
            b'r' => PickleOp::Put(u32::from_le_bytes(self.bytes()?)),
            0x94 => PickleOp::Memoize,
            b'c' => match (self.line()?, self.line()?) {
                (module, _) if module == JOBLIB => return Err(PickleError::Joblib.into()),
                (module, name) => PickleOp::Global { module, name },
            },
            b'i' => PickleOp::Instance { module: self.line()?, name: self.line()? },
            b'o' => PickleOp::Object,
            0x93 => PickleOp::StackGlobal,
            b'R' | 0x81 => PickleOp::Call { keywords: false },
            0x92 => PickleOp::Call { keywords: true },
            b'b' => PickleOp::Build,
            b'Q' => PickleOp::Persistent,
            b'P' => {
                self.line()?;
                PickleOp::Push(PickleValue::Plain)
            }
            0x97 | 0x98 => return Err(PickleError::OutOfBand.into()),
            b'.' => PickleOp::Stop,
            other => return Err(PickleError::Opcode(other).into()),
        })
    }

    fn integer(&mut self, code: u8) -> Result<PickleValue, Cause> {
        Ok(match code {
            b'J' => PickleValue::Int(i32::from_le_bytes(self.bytes()?).into()),
            b'K' => PickleValue::Int(self.bytes::<1>()?[0].into()),
            b'M' => PickleValue::Int(u16::from_le_bytes(self.bytes()?).into()),
            // the lowest byte first, the top bit is the sign
            0x8a | 0x8b => {
                let len = match code {
                    0x8a => u64::from(self.bytes::<1>()?[0]),
                    _ => u32::from_le_bytes(self.bytes()?).into(),
                };
                if len > 8 {
                    self.skip(len)?;
                    return Ok(PickleValue::Plain);
                }
                let bytes = self.take(len)?;
                let sign = if bytes.last().is_some_and(|last| last & 0x80 != 0) { 0xff } else { 0 };
                let mut whole = [sign; 8];
                whole[..bytes.len()].copy_from_slice(&bytes);
                PickleValue::Int(i64::from_le_bytes(whole))
            }
            _ => match (code, self.line()?.as_str()) {
                (b'I', "00") => PickleValue::Bool(false),
                (b'I', "01") => PickleValue::Bool(true),
                (_, digits) => match digits.trim_end_matches('L').parse() {
                    Ok(number) => PickleValue::Int(number),
                    Err(_) => PickleValue::Plain,
                },
            },
        })
    }

    /// A text; one that is too long for a name is passed over, and so is one that is none in UTF-8.
    fn text(&mut self, code: u8) -> Result<PickleValue, Cause> {
        let len = self.len(code)?;
        if len > MAX_TEXT {
            let start = self.position();
            self.skip(len)?;
            return Ok(PickleValue::LongText { start, len, form: TextForm::Utf8 });
        }
        let text = String::from_utf8(self.take(len)?);
        if text.as_ref().is_ok_and(|text| text == JOBLIB) {
            return Err(PickleError::Joblib.into());
        }
        Ok(text.map_or(PickleValue::Plain, |text| PickleValue::Text(Rc::from(text))))
    }

    /// Bytes; those that Python 2 wrote are a text where they can be a name.
    fn byte_values(&mut self, code: u8) -> Result<PickleValue, Cause> {
        let len = self.len(code)?;
        let location = BytesLocation::Pickle(self.position());
        let is_text = matches!(code, b'T' | b'U');
        let most = if is_text { MAX_BYTE_TEXT as u64 } else { MAX_KEY_BYTES };
        let key = if len <= most {
            let bytes = self.take(len)?;
            if let Some(text) = std::str::from_utf8(&bytes).ok().filter(|_| is_text) {
                return Ok(PickleValue::Text(text.into()));
            }
            let is_key = len <= MAX_KEY_BYTES;
            is_key.then(|| bytes.into_iter().map(char::from).collect())
        } else {
            self.skip(len)?;
            None
        };
        Ok(PickleValue::Bytes(Rc::new(PickleBytes { key, location, len })))
    }

    /// A text of protocol 0, which ends with its line; one of Python 2 stands in quotes.
    fn text_line(&mut self, form: TextForm) -> Result<PickleValue, Cause> {
        let mut start = self.position();
        let (line, mut len) = self.any_line()?;
        let is_quoted = form == TextForm::Quoted;
        if is_quoted {
            start += 1;
            len = len.checked_sub(2).ok_or_else(|| damaged("a text has no quotes"))?;
        }
        let long = PickleValue::LongText { start, len, form };
        let Some(line) = line else { return Ok(long) };
        let mut text = &line[usize::from(is_quoted)..];
        let mut characters = Characters::new(&mut text, len, form);
        let mut whole = Vec::new();
        while let Some(character) = characters.next()? {
            match (form, char::from_u32(character), u8::try_from(character)) {
                (TextForm::Quoted, _, Ok(byte)) if whole.len() < MAX_BYTE_TEXT => whole.push(byte),
                (TextForm::Quoted, ..) => return Ok(long),
                (_, Some(character), _) => {
                    whole.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                (_, None, _) => return Ok(PickleValue::Plain),
            }
        }
        Ok(String::from_utf8(whole).map_or(long, |text| PickleValue::Text(text.into())))
    }

    /// The length of a text or of bytes, by the instruction.
    fn len(&mut self, code: u8) -> Result<u64, Cause> {
        Ok(match code {
            0x8c | b'U' | b'C' => self.bytes::<1>()?[0].into(),
            b'X' | b'T' | b'B' => u32::from_le_bytes(self.bytes()?).into(),
            _ => u64::from_le_bytes(self.bytes()?),
        })
    }

    fn nothing(&mut self, len: u64) -> Result<PickleOp, Cause> {
        self.skip(len)?;
        Ok(PickleOp::Nothing)
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Cause> {
        let mut bytes = [0; N];
        self.spend(N as u64)?;
        self.reader.read_exact(&mut bytes).map_err(early)?;
        Ok(bytes)
    }

    fn take(&mut self, len: u64) -> Result<Vec<u8>, Cause> {
        let mut bytes = Vec::new();
        self.spend(len)?;
        (&mut self.reader).take(len).read_to_end(&mut bytes)?;
        if (bytes.len() as u64) < len { Err(damaged(EARLY)) } else { Ok(bytes) }
    }

    fn skip(&mut self, len: u64) -> Result<(), Cause> {
        self.check_room(len)?;
        self.reader.skip(len);
        Ok(())
    }

    /// A name or a number that ends with its line.
    fn line(&mut self) -> Result<String, Cause> {
        let line = self.any_line()?.0.ok_or_else(|| damaged("a name is too long"))?;
        String::from_utf8(line).map_err(|_| damaged("a name is not UTF-8"))
    }

    /// A line, unless it is too long for a name, and its length.
    fn any_line(&mut self) -> Result<(Option<Vec<u8>>, u64), Cause> {
        let mut line = Vec::new();
        let start = self.position();
        let room = self.end.saturating_sub(start);
        (&mut self.reader).take(MAX_TEXT.min(room)).read_until(b'\n', &mut line)?;
        self.left = self.left.saturating_sub(line.len() as u64);
        if line.pop_if(|last| *last == b'\n').is_some() {
            let len = line.len() as u64;
            return Ok((Some(line), len));
        }
        loop {
            let left = room.saturating_sub(self.position() - start);
            let piece = self.reader.fill_buf()?;
            let most = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let end = piece[..most].iter().position(|&byte| byte == b'\n');
            self.reader.consume(end.map_or(most, |end| end + 1));
            match end {
                Some(_) => return Ok((None, self.position() - start - 1)),
                None if most == 0 => return Err(damaged(EARLY)),
                None => {}
            }
        }
    }

    /// A number of the memo.
    fn number(&mut self) -> Result<u32, Cause> {
        self.line()?.parse().map_err(|_| damaged("a number of the memo is not a number"))
    }

    /// Count bytes that are read.
    fn spend(&mut self, len: u64) -> Result<(), Cause> {
        self.check_room(len)?;
        self.left = self.left.checked_sub(len).ok_or(PickleError::Long(MAX_PICKLE))?;
        Ok(())
    }

    fn check_room(&self, len: u64) -> Result<(), Cause> {
        let room = self.end.saturating_sub(self.position());
        if len > room { Err(damaged(EARLY)) } else { Ok(()) }
    }
}

pub(crate) const EARLY: &str = "it ends too early";

fn early(error: io::Error) -> Cause {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => damaged(EARLY),
        _ => error.into(),
    }
}

pub(crate) fn damaged(what: &'static str) -> Cause {
    PickleError::Damaged(what).into()
}
