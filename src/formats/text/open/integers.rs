//! An index tensor as text: integers separated by white space or commas, a row a line.
//!
//! ```text
//! # row, column          the shape is (2, 2): a number a line, or one line, has one axis
//! 0, 5
//! 47, -1
//! ```
//!
//! The text is read once, from beginning to end, and stored as 64-bit integers: in memory where
//! there are few, in a scratch file where there are many.

use super::TXT;
use super::pieces::{MARK, TextParser, keep};
use crate::dtype::{DType, Endian, Scalar};
use crate::error::{Error, faults};
use crate::formats::LOOK_LEN;
use crate::formats::recognise::{foreign, unknown};
use crate::input::{Contents, Input, RecognisedFile};
use crate::shape::Order;
use crate::source::Opened;
use crate::tensor::{TensorInfo, Tensors};

/// The longest number, in characters.
const LONGEST: usize = 64;

/// Read a whole text; `first` are the first bytes of the file.
pub(crate) fn open_integers(file: RecognisedFile<'_>, first: &[u8]) -> Result<Input, Error> {
    let RecognisedFile { location, mut bytes, options, progress } = file;
    if !is_plain(first) {
        return Err(unknown(foreign(location, &mut bytes, LOOK_LEN)).into());
    }
    let mut parser = IntegersParser::default();
    let integers = keep(&mut bytes, &mut parser, &options.workers, progress)?;
    let dtype = DType::Scalar(Scalar::I64, Endian::Little);
    let tensor = TensorInfo::new(dtype, parser.shape(), Order::C, 0);
    let contents = Contents::of(&TXT, Tensors::from_iter([tensor]));
    Ok(Input::of_file(location, Opened::Random(integers), contents))
}

/// Whether a text can begin with these bytes: ASCII characters, after a byte order mark or without.
pub(super) fn is_plain(first: &[u8]) -> bool {
    let first = first.strip_prefix(MARK).unwrap_or(first);
    first.iter().all(|byte| matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' '..=b'~'))
}

/// The state of the parser between two bytes of a text.
#[derive(Debug, Default)]
pub(crate) struct IntegersParser {
    word: Vec<u8>,
    before: Before,
    lines: u64,
    in_comment: bool,
    found: u64,
    /// The number of integers in the first line that has any.
    columns: u64,
    rows: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Before {
    #[default]
    Nothing,
    Number,
    Comma,
}

impl TextParser for IntegersParser {
    type Fault = IntegersFault;

    /// Parse text, and append each integer in 8 bytes, little-endian.
    fn parse(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<(), IntegersFault> {
        for &byte in text {
            match byte {
                b'\n' => {
                    self.end(out)?;
                    self.lines += 1;
                    self.in_comment = false;
                }
                _ if self.in_comment => {}
                b'#' => {
                    self.end_word(out)?;
                    self.in_comment = true;
                }
                b' ' | b'\t' | b'\r' | b'\x0b' | b'\x0c' => self.end_word(out)?,
                b',' => {
                    self.end_word(out)?;
                    if self.before != Before::Number {
                        return Err(IntegersFault::Missing { line: self.lines + 1 });
                    }
                    self.before = Before::Comma;
                }
                _ if self.word.len() == LONGEST => return Err(self.not_an_integer()),
                _ => self.word.push(byte),
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), IntegersFault> {
        self.end_word(out)?;
        let line = self.lines + 1;
        let found = self.found;
        if self.before == Before::Comma {
            return Err(IntegersFault::Missing { line });
        }
        if found > 0 {
            if self.rows == 0 {
                self.columns = found;
            } else if found != self.columns {
                return Err(IntegersFault::Ragged { line, found, expected: self.columns });
            }
            self.rows += 1;
        }
        self.before = Before::Nothing;
        self.found = 0;
        Ok(())
    }

    fn fork(&self, _lines: &[u8]) -> Option<IntegersParser> {
        let is_in_line = !self.word.is_empty() || self.found > 0 || self.in_comment;
        let knows_columns = self.rows > 0 && !is_in_line;
        // the first row decides the length of all rows
        let known = IntegersParser { rows: 1, columns: self.columns, ..IntegersParser::default() };
        knows_columns.then_some(known)
    }

    fn join(&mut self, fork: IntegersParser) {
        self.lines += fork.lines;
        self.rows += fork.rows - 1;
    }
}

impl IntegersParser {
    fn end_word(&mut self, out: &mut Vec<u8>) -> Result<(), IntegersFault> {
        if self.word.is_empty() {
            return Ok(());
        }
        let text = std::str::from_utf8(&self.word).map_err(|_| self.not_an_integer())?;
        let number: i64 = text.parse().map_err(|_| self.not_an_integer())?;
        out.extend(number.to_le_bytes());
        self.word.clear();
        self.before = Before::Number;
        self.found += 1;
        Ok(())
    }

    fn not_an_integer(&self) -> IntegersFault {
        let line = self.lines + 1;
        let text = String::from_utf8_lossy(&self.word).into_owned();
        let digits = text.strip_prefix(['-', '+']).unwrap_or(&text);
        let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if is_integer {
            IntegersFault::TooLarge { line, text }
        } else {
            IntegersFault::NotAnInteger { line, text }
        }
    }

    pub(crate) fn shape(&self) -> Vec<u64> {
        match (self.rows, self.columns) {
            (0 | 1, columns) => vec![columns],
            (rows, 1) => vec![rows],
            (rows, columns) => vec![rows, columns],
        }
    }
}

/// Why a text is not an index tensor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntegersFault {
    #[error("line {line}: '{text}' is not an integer")]
    NotAnInteger { line: u64, text: String },
    #[error("line {line}: {text} does not fit into 64 bits")]
    TooLarge { line: u64, text: String },
    #[error("line {line}: a number is missing beside a comma")]
    Missing { line: u64 },
    #[error("line {line} holds {found} numbers, earlier lines hold {expected}")]
    Ragged { line: u64, found: u64, expected: u64 },
}

faults!(Damaged: IntegersFault);

#[cfg(test)]
mod tests {
    use super::*;

    /// Read a text in chunks of `chunk` bytes.
    fn read_by(text: &[u8], chunk: usize) -> Result<(Vec<u64>, Vec<i64>), IntegersFault> {
        let mut parser = IntegersParser::default();
        let mut out = Vec::new();
        text.chunks(chunk).try_for_each(|chunk| parser.parse(chunk, &mut out))?;
        parser.end(&mut out)?;
        let numbers = out.as_chunks().0.iter().map(|&bytes| i64::from_le_bytes(bytes));
        Ok((parser.shape(), numbers.collect()))
    }

    fn read(text: &str) -> Result<(Vec<u64>, Vec<i64>), IntegersFault> {
        let whole = read_by(text.as_bytes(), usize::MAX);
        assert_eq!(read_by(text.as_bytes(), 1), whole, "{text:?}");
        whole
    }

    #[test]
    fn rows_make_two_axes() {
        for (text, shape, numbers) in [
            ("1\n2\n3\n", vec![3], vec![1, 2, 3]),
            ("1 2 3", vec![3], vec![1, 2, 3]),
            ("1,2\n3,4\n", vec![2, 2], vec![1, 2, 3, 4]),
            ("1 , 2\r\n+3\t-4\r\n\r\n", vec![2, 2], vec![1, 2, 3, -4]),
            ("# perm\n 7 # the last\n\n0#\n", vec![2], vec![7, 0]),
            ("  \n# nothing\n", vec![0], vec![]),
            ("-9223372036854775808 9223372036854775807", vec![2], vec![i64::MIN, i64::MAX]),
        ] {
            assert_eq!(read(text), Ok((shape, numbers)), "{text:?}");
        }
    }

    #[test]
    fn errors_name_the_line() {
        let says = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(says("1\n2.5\n"), "line 2: '2.5' is not an integer");
        assert_eq!(says("1 2\n3\n"), "line 2 holds 1 numbers, earlier lines hold 2");
        assert_eq!(says("1,,2\n"), "line 1: a number is missing beside a comma");
        assert_eq!(says("# a\n1,2,\n"), "line 2: a number is missing beside a comma");
        assert_eq!(says(",1"), "line 1: a number is missing beside a comma");
        assert_eq!(
            says("9223372036854775808"),
            "line 1: 9223372036854775808 does not fit into 64 bits"
        );
        assert_eq!(says("-"), "line 1: '-' is not an integer");
        assert_eq!(says("é"), "line 1: 'é' is not an integer");
        assert!(says(&"9".repeat(1_000_000)).len() < 120);
    }
}
