//! A pattern of names as a regular expression.

use std::collections::HashSet;
use std::fmt::Write;

use super::{PatternError, Piece, closing_brace, name_of};

/// The deepest nesting of braces.
const MAX_BRACES: usize = 30;

/// The unread rest of a pattern, and the regular expression of what was read.
pub(super) struct Parser<'p> {
    text: &'p str,
    at: usize,
    pub(super) regex: String,
    pub(super) pieces: Vec<Piece<'p>>,
    /// The number of pieces so far, with those within others.
    piece_count: usize,
    carries: bool,
    pub(super) escapes: bool,
}

impl<'p> Parser<'p> {
    pub(super) fn new(text: &'p str, carries: bool) -> Parser<'p> {
        let regex = String::new();
        let pieces = Vec::new();
        Parser { text, at: 0, regex, pieces, piece_count: 0, carries, escapes: false }
    }

    fn rest(&self) -> &'p str {
        &self.text[self.at..]
    }

    /// Parse to the end or, within braces, to the comma or brace that ends a pattern there. Returns
    /// its text, if it is literal text and nothing else.
    pub(super) fn sequence(&mut self, depth: usize) -> Result<Option<String>, PatternError> {
        let first_piece = self.piece_count;
        let mut text = String::new();
        while let Some(char) = self.rest().chars().next() {
            if depth > 0 && matches!(char, ',' | '}') {
                break;
            }
            let start = self.at;
            self.at += char.len_utf8();
            match char {
                '*' => self.piece(depth, start, None, |it| {
                    it.regex.push_str(".*?");
                    Ok(Vec::new())
                })?,
                '?' => self.piece(depth, start, None, |it| {
                    it.regex.push('.');
                    Ok(Vec::new())
                })?,
                '[' if is_text_in_brackets(self.rest()) => self.literal('[', &mut text),
                '[' => self.piece(depth, start, None, Parser::class)?,
                '{' if depth == MAX_BRACES => {
                    let reason = format!("braces nested deeper than {MAX_BRACES} levels");
                    return Err(PatternError::new(reason));
                }
                '{' => {
                    let name = name_of(self.rest());
                    self.piece(depth, start, name, |it| it.braces(depth + 1, name))?;
                }
                '}' => return Err(PatternError::new("a '}' without a '{'")),
                '\\' => {
                    let next = self.rest().chars().next();
                    let next = next.ok_or_else(|| PatternError::new("a '\\' at the end"))?;
                    self.at += next.len_utf8();
                    self.escapes = true;
                    self.literal(next, &mut text);
                }
                char => self.literal(char, &mut text),
            }
        }
        Ok((self.piece_count == first_piece).then_some(text))
    }

    /// Parse a piece that begins at `start`; `name` is the name of the piece.
    fn piece(
        &mut self,
        depth: usize,
        start: usize,
        name: Option<&'p str>,
        read: impl FnOnce(&mut Self) -> Result<Vec<String>, PatternError>,
    ) -> Result<(), PatternError> {
        let captured = self.carries && depth == 0;
        self.regex.push_str(if captured { "(" } else { "(?:" });
        let texts = read(self)?;
        self.regex.push(')');
        self.piece_count += 1;
        let whole = &self.text[start..self.at];
        let piece = Piece { whole, name, texts };
        if name.is_some() && self.pieces.iter().any(|other| other.is_same(&piece)) {
            return Err(PatternError::new(format!("{whole} occurs twice")));
        }
        let mut seen = HashSet::new();
        if let Some(twice) = piece.texts.iter().find(|text| name.is_some() && !seen.insert(*text)) {
            return Err(PatternError::new(format!("{twice:?} occurs twice in {whole}")));
        }
        if depth == 0 {
            self.pieces.push(piece);
        }
        Ok(())
    }

    fn literal(&mut self, char: char, text: &mut String) {
        text.push(char);
        if matches!(char, '\\' | '.' | '+' | '*' | '?' | '(' | ')' | '|' | '[' | ']' | '{' | '}')
            || matches!(char, '^' | '$' | '#' | '&' | '-' | '~')
        {
            self.regex.push('\\');
        }
        self.regex.push(char);
    }

    /// Parse the text in braces, after the opening one. Returns its texts, if it is a list of texts
    /// and nothing else.
    fn braces(&mut self, depth: usize, name: Option<&str>) -> Result<Vec<String>, PatternError> {
        if let Some(name) = name {
            self.at += name.len() + 1;
            if self.text[..self.at].ends_with('}') {
                self.regex.push_str("[^.]+?");
                return Ok(Vec::new());
            }
            if self.rest().starts_with("*}") {
                self.at += 2;
                self.regex.push_str("[0-9]+");
                return Ok(Vec::new());
            }
        }
        let mut texts = Vec::new();
        let mut words = 0;
        loop {
            let rest = self.rest();
            let word = &rest[..rest.find(['{', '}', ',']).unwrap_or(rest.len())];
            words += 1;
            match word.split_once("..") {
                Some((first, last)) => {
                    self.numbers(word, first, last)?;
                    self.at += word.len();
                }
                None => texts.extend(self.sequence(depth)?),
            }
            let end = self.rest().chars().next();
            self.at += usize::from(end.is_some());
            match end {
                Some(',') => self.regex.push('|'),
                Some('}') if texts.len() < words => return Ok(Vec::new()),
                Some('}') => return Ok(texts),
                Some(_) => {
                    let reason = format!("{word}: a range must be alone between commas");
                    return Err(PatternError::new(reason));
                }
                None => return Err(PatternError::new("a '{' without a '}'")),
            }
        }
    }

    /// The numbers from one to another, in either order.
    fn numbers(&mut self, word: &str, first: &str, last: &str) -> Result<(), PatternError> {
        let number = |text: &str| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u64>().ok().filter(|_| digits)
        };
        let (Some(one), Some(other)) = (number(first), number(last)) else {
            let is_letters =
                |text: &str| text.len() == 1 && text.as_bytes()[0].is_ascii_alphabetic();
            let mut error =
                PatternError::new(format!("{word}: a range is of numbers, written {{0..11}}"));
            if is_letters(first) && is_letters(last) {
                error.hint = Some(format!("[{first}-{last}] matches letters"));
            }
            return Err(error);
        };
        let low = one.min(other);
        let high = one.max(other);
        let is_padded = |text: &str| text.len() > 1 && text.starts_with('0');
        if is_padded(first) || is_padded(last) {
            let width = first.len().max(last.len());
            let [low, high] = [low, high].map(|number| format!("{number:0width$}"));
            self.of_one_length(low.as_bytes(), high.as_bytes());
            return Ok(());
        }
        let shortest = low.to_string().len();
        let longest = high.to_string().len();
        for len in shortest..=longest {
            if len > shortest {
                self.regex.push('|');
            }
            let least = format!("1{}", "0".repeat(len - 1));
            let from = if len == shortest { low.to_string() } else { least };
            let to = if len == longest { high.to_string() } else { "9".repeat(len) };
            self.of_one_length(from.as_bytes(), to.as_bytes());
        }
        Ok(())
    }

    /// The numbers between two numbers with the same number of digits.
    fn of_one_length(&mut self, low: &[u8], high: &[u8]) {
        let ([first, low_rest @ ..], [last, high_rest @ ..]) = (low, high) else { return };
        let open = |byte: u8, rest: &[u8]| rest.iter().all(|&digit| digit == byte);
        if first == last {
            self.regex.push(char::from(*first));
            return self.of_one_length(low_rest, high_rest);
        }
        let nines = vec![b'9'; low_rest.len()];
        let zeros = vec![b'0'; low_rest.len()];
        let whole_low = open(b'0', low_rest);
        let whole_high = open(b'9', high_rest);
        let from = if whole_low { *first } else { first + 1 };
        let to = if whole_high { *last } else { last - 1 };
        self.regex.push_str("(?:");
        if !whole_low {
            self.regex.push(char::from(*first));
            self.of_one_length(low_rest, &nines);
            self.regex.push('|');
        }
        if from <= to {
            let from = char::from(from);
            let to = char::from(to);
            // writing to a string does not fail
            let _ = write!(self.regex, "[{from}-{to}][0-9]{{{}}}|", low_rest.len());
        }
        if whole_high {
            self.regex.pop();
        } else {
            self.regex.push(char::from(*last));
            self.of_one_length(&zeros, high_rest);
        }
        self.regex.push(')');
    }

    /// Parse a class of characters, after its bracket.
    fn class(&mut self) -> Result<Vec<String>, PatternError> {
        let start = self.at - 1;
        let negated = self.rest().starts_with(['!', '^']);
        self.at += usize::from(negated);
        let inside = self.rest();
        // a bracket at the beginning is a character
        let first = inside.chars().next().map_or(0, char::len_utf8);
        let end = inside[first..].find(']').map(|at| first + at);
        let end = end.ok_or_else(|| PatternError::new("a '[' without a ']'"))?;
        let inside = &inside[..end];
        self.at += end + 1;
        if let Some(numbers) = meant_as_numbers(inside) {
            let class = &self.text[start..self.at];
            let reason = format!("{class} is a class of characters, not of numbers");
            let meant = [&self.text[..start], &numbers, self.rest()].concat();
            let hint = (!negated).then(|| format!("{numbers} matches numbers: '{meant}'"));
            return Err(PatternError { hint, ..PatternError::new(reason) });
        }
        self.regex.push_str(if negated { "[^" } else { "[" });
        let mut chars = inside.chars().peekable();
        while let Some(low) = chars.next() {
            let mut ahead = chars.clone();
            let high = match (ahead.next(), ahead.next()) {
                (Some('-'), Some(high)) => {
                    chars = ahead;
                    high
                }
                _ => low,
            };
            if low > high {
                return Err(PatternError::new(format!(
                    "{low}-{high} is not a range of characters"
                )));
            }
            // writing to a string does not fail
            let _ = write!(self.regex, r"\x{{{:x}}}-\x{{{:x}}}", low as u32, high as u32);
        }
        self.regex.push(']');
        Ok(Vec::new())
    }
}

/// Whether brackets are literal text, by what follows the first one: an integer alone, a `*`,
/// braces.
fn is_text_in_brackets(rest: &str) -> bool {
    let digits = rest.strip_prefix('-').unwrap_or(rest);
    let behind = digits.trim_start_matches(|char: char| char.is_ascii_digit());
    let is_integer = behind.len() < digits.len() && behind.starts_with(']');
    let is_in_braces = rest.starts_with('{')
        && closing_brace(rest).is_some_and(|at| rest[at + 1..].starts_with(']'));
    is_integer || rest.starts_with("*]") || is_in_braces
}

/// The pattern of numbers that a class such as `0-11` or `8,9` was probably meant to be.
fn meant_as_numbers(inside: &str) -> Option<String> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mut words = Vec::new();
    let mut long = false;
    for word in inside.split(',').map(str::trim) {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        if !is_number(first) || !is_number(last) {
            return None;
        }
        long |= first.len() > 1 || last.len() > 1;
        words.push(word.replacen('-', "..", 1));
    }
    (long || words.len() > 1).then(|| format!("{{{}}}", words.join(",")))
}
