//! The instructions of a pickle, one after the other, as the documentation of Python's `pickletools` lists
//! them: those that torch.save writes in protocols 1 to 5. The others are refused by their number.

use std::io::{self, BufRead, Read};
use std::rc::Rc;

use crate::format::error::FormatError;

use super::error::TorchError;
use super::value::PickleValue;

/// An instruction.
#[derive(Debug)]
pub(super) enum PickleOp {
    /// Push this.
    Push(PickleValue),
    EmptyTuple,
    EmptyList,
    EmptyDict,
    Mark,
    /// Drop the last value, or the last mark.
    Pop,
    PopMark,
    Dup,
    /// A tuple of the last values.
    Tuple(usize),
    /// Of all that stand behind the mark: a tuple, a list, a dict.
    MarkTuple,
    MarkList,
    MarkDict,
    Append,
    Appends,
    SetItem,
    SetItems,
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
    /// Call a function; `keywords` where a dict of these is the last value.
    Call {
        keywords: bool,
    },
    /// Set the state of the value before the last one.
    Build,
    /// What an identifier stands for: a storage.
    Persistent,
    Stop,
    /// The protocol, the length of a frame.
    Nothing,
}

/// The longest text that can be a key, or a name, in bytes.
const MAX_TEXT: u64 = 1 << 20;

/// A reader of instructions.
pub(super) struct PickleOps<R>(pub(super) R);

impl<R: BufRead> PickleOps<R> {
    /// The next one.
    pub(super) fn next_op(&mut self) -> Result<PickleOp, FormatError> {
        let code = self.bytes::<1>()?[0];
        Ok(match code {
            0x80 => self.nothing(1)?,
            0x95 => self.nothing(8)?,
            b'N' => PickleOp::Push(PickleValue::None),
            0x88 => PickleOp::Push(PickleValue::Bool(true)),
            0x89 => PickleOp::Push(PickleValue::Bool(false)),
            b'I' | b'L' | b'J' | b'K' | b'M' | 0x8a | 0x8b => PickleOp::Push(self.integer(code)?),
            b'F' => {
                let float = self.line()?.parse().map_err(|_| damaged("a float is none"))?;
                PickleOp::Push(PickleValue::Float(float))
            }
            b'G' => PickleOp::Push(PickleValue::Float(f64::from_be_bytes(self.bytes()?))),
            b'X' | b'T' | 0x8c | b'U' | 0x8d => PickleOp::Push(self.text(code)?),
            b'B' | b'C' | 0x8e | 0x96 => {
                let len = self.len(code)?;
                self.skip(len)?;
                PickleOp::Push(PickleValue::Plain)
            }
            b')' => PickleOp::EmptyTuple,
            b']' | 0x8f => PickleOp::EmptyList,
            b'}' => PickleOp::EmptyDict,
            b'(' => PickleOp::Mark,
            b'0' => PickleOp::Pop,
            b'1' => PickleOp::PopMark,
            b'2' => PickleOp::Dup,
            0x85..=0x87 => PickleOp::Tuple(usize::from(code - 0x84)),
            b't' => PickleOp::MarkTuple,
            b'l' | 0x91 => PickleOp::MarkList,
            b'd' => PickleOp::MarkDict,
            b'a' => PickleOp::Append,
            b'e' | 0x90 => PickleOp::Appends,
            b's' => PickleOp::SetItem,
            b'u' => PickleOp::SetItems,
            b'h' => PickleOp::Get(self.bytes::<1>()?[0].into()),
            b'j' => PickleOp::Get(u32::from_le_bytes(self.bytes()?)),
            b'q' => PickleOp::Put(self.bytes::<1>()?[0].into()),
            b'r' => PickleOp::Put(u32::from_le_bytes(self.bytes()?)),
            0x94 => PickleOp::Memoize,
            b'c' => PickleOp::Global { module: self.line()?, name: self.line()? },
            0x93 => PickleOp::StackGlobal,
            b'R' | 0x81 => PickleOp::Call { keywords: false },
            0x92 => PickleOp::Call { keywords: true },
            b'b' => PickleOp::Build,
            b'Q' => PickleOp::Persistent,
            b'.' => PickleOp::Stop,
            other => return Err(TorchError::Opcode(other).into()),
        })
    }

    fn integer(&mut self, code: u8) -> Result<PickleValue, FormatError> {
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

    /// A text; one that is too long for a name, or none in UTF-8, is passed over.
    fn text(&mut self, code: u8) -> Result<PickleValue, FormatError> {
        let len = self.len(code)?;
        if len > MAX_TEXT {
            self.skip(len)?;
            return Ok(PickleValue::Plain);
        }
        let text = String::from_utf8(self.take(len)?);
        Ok(text.map_or(PickleValue::Plain, |text| PickleValue::Text(Rc::from(text))))
    }

    /// The length of a text or of bytes, by the instruction.
    fn len(&mut self, code: u8) -> Result<u64, FormatError> {
        Ok(match code {
            0x8c | b'U' | b'C' => self.bytes::<1>()?[0].into(),
            b'X' | b'T' | b'B' => u32::from_le_bytes(self.bytes()?).into(),
            _ => u64::from_le_bytes(self.bytes()?),
        })
    }

    fn nothing(&mut self, len: u64) -> Result<PickleOp, FormatError> {
        self.skip(len)?;
        Ok(PickleOp::Nothing)
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes).map_err(early)?;
        Ok(bytes)
    }

    fn take(&mut self, len: u64) -> Result<Vec<u8>, FormatError> {
        let mut bytes = Vec::new();
        (&mut self.0).take(len).read_to_end(&mut bytes)?;
        if (bytes.len() as u64) < len { Err(damaged(EARLY)) } else { Ok(bytes) }
    }

    fn skip(&mut self, len: u64) -> Result<(), FormatError> {
        let skipped = io::copy(&mut (&mut self.0).take(len), &mut io::sink())?;
        if skipped < len { Err(damaged(EARLY)) } else { Ok(()) }
    }

    /// A text that ends with its line.
    fn line(&mut self) -> Result<String, FormatError> {
        let mut line = Vec::new();
        (&mut self.0).take(MAX_TEXT).read_until(b'\n', &mut line)?;
        match line.pop() {
            Some(b'\n') => String::from_utf8(line).map_err(|_| damaged("a name is not UTF-8")),
            _ => Err(damaged(EARLY)),
        }
    }
}

const EARLY: &str = "it ends too early";

fn early(error: io::Error) -> FormatError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => damaged(EARLY),
        _ => error.into(),
    }
}

pub(super) fn damaged(what: &'static str) -> FormatError {
    TorchError::Damaged(what).into()
}
