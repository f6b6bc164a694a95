//! A table of cells: rows of csv, tsv and txt, by the rules of np.loadtxt.
//!
//! ```text
//! # made by me        left out, as are empty lines
//! time, value         names, which hold no number
//! 0, 0.5
//! 1, nan              the shape is (2, 2)
//! ```

use std::collections::HashSet;
use std::mem;
use std::sync::Arc;

use super::columns::ChosenColumns;
use super::pieces::TextParser;
use super::{CellRemedy, MAX_CELL, MAX_NAMES, TextPosition, WIDE, is_wide};
use crate::dtype::{DType, Field, NpyType, Structure};
use crate::element::{CellReader, ElementError, trimmed};
use crate::formats::text::TextFault;
use crate::input::{TextOptions, asked_names};
use crate::tensor::shortened;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Separator,
    Comment,
    NewLine,
    Return,
    /// A double quote, in tables whose cells may be quoted.
    Quote,
}

/// The position of the parser relative to quotes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    Outside,
    Inside,
    /// After a quote in quoted text: it ends the text, or begins a pair of quotes that stands for one quote.
    Behind,
}

/// The kind of the lines with cells, as far as it is known.
#[derive(Clone, Copy)]
enum TablePhase {
    /// The kind of the first line is not known yet: it has only empty cells so far.
    Unknown,
    /// The current line holds the names.
    Names,
    Rows,
}

/// The state of the parser between two bytes of a table.
pub(super) struct TableParser {
    cells: CellReader,
    kinds: [Kind; 256],
    /// Whether the names are wanted, as fields.
    with_names: bool,
    skip: u64,
    phase: TablePhase,
    fields: Option<String>,
    /// The chosen columns, unless all are read.
    chosen: Option<ChosenColumns>,
    /// The cells of the first line, where names are wanted.
    first: Vec<String>,
    first_len: usize,
    /// The names in comments before the first line, each with its line.
    comments: Vec<(u64, Vec<String>)>,
    /// The open comment, where it may hold names.
    comment: Option<Vec<u8>>,
    comments_len: usize,
    names: Vec<String>,
    names_len: usize,
    seen: HashSet<String>,
    /// The beginning of an open cell, from earlier pieces of the text.
    cell: Vec<u8>,
    column: u64,
    /// Whether the line has an open cell: after a delimiter there always is one.
    is_open: bool,
    in_comment: bool,
    after_return: bool,
    quoting: Quoting,
    /// Whether the cell began with a quote.
    was_quoted: bool,
    /// The first cell of the first line that looks like a number: then the line holds no names.
    suspect: Option<(TextPosition, String)>,
    missing: Vec<String>,
    delimiter: Option<u8>,
    lines: u64,
    rows: u64,
    columns: Option<u64>,
    /// Whether a cell is an integer that is not exact as float64.
    has_wide: bool,
}

/// The kind of each byte, in a table with this delimiter, or white space.
fn kinds(delimiter: Option<u8>, is_quoted: bool) -> [Kind; 256] {
    let mut kinds = [Kind::Plain; 256];
    if is_quoted {
        kinds[usize::from(b'"')] = Kind::Quote;
    }
    match delimiter {
        Some(byte) => kinds[usize::from(byte)] = Kind::Separator,
        None => b" \t\x0b\x0c\x1c\x1d\x1e\x1f"
            .iter()
            .for_each(|&byte| kinds[usize::from(byte)] = Kind::Separator),
    }
    kinds[usize::from(b'#')] = Kind::Comment;
    kinds[usize::from(b'\n')] = Kind::NewLine;
    kinds[usize::from(b'\r')] = Kind::Return;
    kinds
}

impl TableParser {
    /// A parser of a table with this delimiter, or white space, which skips the first lines.
    pub(super) fn new(
        cells: CellReader,
        delimiter: Option<u8>,
        options: &TextOptions,
        is_quoted: bool,
    ) -> Self {
        let skip = options.skip_rows.unwrap_or(0);
        let with_names = options.names || options.fields.is_some();
        // any cell is a valid string: only the options say that there are names
        let has_rows_only = cells.are_strings() && !with_names;
        let phase = if has_rows_only { TablePhase::Rows } else { TablePhase::Unknown };
        TableParser {
            cells,
            kinds: kinds(delimiter, is_quoted),
            with_names,
            skip,
            phase,
            fields: options.fields.clone(),
            chosen: options.columns.clone().map(ChosenColumns::new),
            first: Vec::new(),
            first_len: 0,
            comments: Vec::new(),
            comment: None,
            comments_len: 0,
            names: Vec::new(),
            names_len: 0,
            seen: HashSet::new(),
            cell: Vec::new(),
            column: 0,
            is_open: false,
            in_comment: false,
            after_return: false,
            quoting: Quoting::Outside,
            was_quoted: false,
            suspect: None,
            missing: options.missing.clone(),
            delimiter,
            lines: 0,
            rows: 0,
            columns: None,
            has_wide: false,
        }
    }

    /// The dtype and the shape, after all was read: axes of length 1 are dropped.
    pub(super) fn found(&self) -> Result<(DType, Vec<u64>), TextFault> {
        if self.rows == 0 {
            return Err(TextFault::NoRows { strings: self.cells.are_strings() });
        }
        let (dtype, columns) = match (self.with_names, &self.chosen) {
            (true, _) => (self.structure()?, 1),
            (false, Some(chosen)) => (self.cells.dtype().clone(), chosen.len() as u64),
            (false, None) => (self.cells.dtype().clone(), self.columns.unwrap_or(1)),
        };
        Ok((dtype, [self.rows, columns].into_iter().filter(|&len| len != 1).collect()))
    }

    /// Whether integers were read as floats that are not exact.
    pub(super) fn rounds(&self) -> bool {
        self.has_wide && self.cells.hold_nan()
    }

    /// The dtype of rows whose cells are fields.
    fn structure(&self) -> Result<DType, TextFault> {
        let dtype = self.cells.dtype();
        let width = dtype.item_bits() / 8;
        let count = self.names.len() as u64;
        let itemsize = width.checked_mul(count).ok_or(TextFault::TooLarge)?;
        let field = |(name, number): (&String, u64)| Field {
            name: name.clone(),
            is_named: true,
            title: None,
            dtype: dtype.clone(),
            shape: Vec::new(),
            nesting: Vec::new(),
            offset: number * width,
        };
        let fields = self.names.iter().zip(0..).map(field).collect();
        Ok(DType::Npy(NpyType::Structure(Arc::new(Structure { fields, itemsize }))))
    }

    fn position(&self, column: u64) -> TextPosition {
        TextPosition { line: self.lines + 1, column }
    }

    /// Handle a quote after `part` of a cell: it begins quoted text, ends it, or is a character of the cell.
    fn quote(&mut self, part: &[u8]) -> Result<(), TextFault> {
        // blanks belong to a string, but not to a number
        let is_blank = |byte: &u8| !self.cells.are_strings() && matches!(byte, b' ' | b'\t');
        let is_first = self.cell.iter().chain(part).all(is_blank);
        match self.quoting {
            Quoting::Inside => {
                self.hold(part)?;
                self.quoting = Quoting::Behind;
            }
            Quoting::Behind if part.is_empty() => {
                self.hold(b"\"")?;
                self.quoting = Quoting::Inside;
            }
            Quoting::Outside if is_first && !self.was_quoted => {
                self.cell.clear();
                self.is_open = true;
                self.was_quoted = true;
                self.quoting = Quoting::Inside;
            }
            _ => {
                self.hold(part)?;
                self.hold(b"\"")?;
                self.quoting = Quoting::Outside;
            }
        }
        Ok(())
    }

    /// Store the beginning of a cell.
    fn hold(&mut self, part: &[u8]) -> Result<(), TextFault> {
        if self.cell.len() + part.len() > MAX_CELL {
            return Err(TextFault::TooLong { position: self.position(self.column + 1) });
        }
        self.cell.extend_from_slice(part);
        Ok(())
    }

    fn end_cell(&mut self, last: &[u8], out: &mut Vec<u8>) -> Result<(), TextFault> {
        if self.cell.is_empty() && last.len() <= MAX_CELL {
            return self.take(last, out);
        }
        self.hold(last)?;
        let mut cell = mem::take(&mut self.cell);
        self.take(&cell, out)?;
        cell.clear();
        self.cell = cell;
        Ok(())
    }

    /// Take a cell; without a delimiter, Unicode's white space may divide it into several.
    fn take(&mut self, cell: &[u8], out: &mut Vec<u8>) -> Result<(), TextFault> {
        if self.delimiter.is_none()
            && !cell.is_ascii()
            && let Ok(text) = str::from_utf8(cell)
        {
            let mut cells = text.split_whitespace();
            return cells.try_for_each(|cell| self.take_one(cell.as_bytes(), out));
        }
        self.take_one(cell, out)
    }

    #[inline(always)]
    fn take_one(&mut self, cell: &[u8], out: &mut Vec<u8>) -> Result<(), TextFault> {
        self.column += 1;
        self.was_quoted = false;
        let position = self.position(self.column);
        if let Some(expected) = self.columns.filter(|&columns| self.column > columns) {
            return Err(TextFault::LongRow { position, expected });
        }
        let text = str::from_utf8(cell).map_err(|_| TextFault::NotUtf8 { position })?;
        let is_row = matches!(self.phase, TablePhase::Rows);
        if self.with_names && !is_row {
            self.first_len += text.len();
            if self.first_len > MAX_NAMES {
                return Err(TextFault::LongNames { position });
            }
            self.first.push(text.to_owned());
            return Ok(());
        }
        if !is_row && self.chosen.is_some() && self.suspect.is_none() && self.is_suspect(text) {
            self.suspect = Some((position, text.to_owned()));
        }
        match &mut self.chosen {
            Some(chosen) => chosen.hold(position, text),
            None if is_row => self.element(position, text, out),
            None => self.name(position, trimmed(text), out),
        }
    }

    #[inline]
    fn element(
        &mut self,
        position: TextPosition,
        text: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), TextFault> {
        // where NaN is not an element, the cell itself is refused
        if self.is_missing(text) && self.cells.push("nan", out).is_some() {
            return Ok(());
        }
        self.has_wide = self.has_wide || text.len() > WIDE && is_wide(trimmed(text));
        self.cells.push(text, out).ok_or_else(|| match trimmed(text) {
            "" => self.empty_cell(position),
            _ => self.refused(position, text),
        })
    }

    fn empty_cell(&self, position: TextPosition) -> TextFault {
        TextFault::EmptyCell { position, may_be_nan: self.cells.hold_nan() }
    }

    fn is_missing(&self, text: &str) -> bool {
        let is_text = self.cells.are_strings();
        !is_text && self.missing.iter().any(|word| word == trimmed(text))
    }

    /// The error for a cell that is not an element.
    fn refused(&self, position: TextPosition, text: &str) -> TextFault {
        let error = self.cells.refusal(text, &shortened(text));
        let is_word = matches!(error, ElementError::NotANumber(_));
        let remedy = if is_word { self.remedy(position, trimmed(text)) } else { None };
        TextFault::Cell { position, error, remedy }
    }

    /// A way to read the table in which this cell is not a number.
    fn remedy(&self, position: TextPosition, text: &str) -> Option<CellRemedy> {
        let parted = |delimiter: &char| {
            let mut parts = text.split(*delimiter).map(trimmed).filter(|part| !part.is_empty());
            text.contains(*delimiter) && parts.all(|part| self.cells.is_number(part))
        };
        let own = self.delimiter.map(char::from);
        let others = [';', '\t', ',', ' ', '|'].into_iter();
        let is_boolean = ["TRUE", "FALSE"].iter().any(|word| text.eq_ignore_ascii_case(word));
        match others.filter(|other| own != Some(*other)).find(parted) {
            // where another delimiter splits the cell, commas are decimal commas: around the cell or in it
            Some(_) if own == Some(',') && position.column > 1 => Some(CellRemedy::Points),
            Some(',') if own.is_some() && text.matches(',').count() == 1 => {
                Some(CellRemedy::Points)
            }
            Some(delimiter) => Some(CellRemedy::Delimiter(delimiter)),
            None if stands_for_none(text) => {
                self.cells.hold_nan().then(|| CellRemedy::Missing(text.to_owned()))
            }
            None if is_boolean => Some(CellRemedy::Booleans),
            None => self.columns.filter(|&columns| columns > 1).map(CellRemedy::OtherColumns),
        }
    }

    /// Whether a cell of the first line holds a number.
    fn holds_number(&self, text: &str) -> bool {
        let is_missing = || !text.is_empty() && self.is_missing(text);
        !self.cells.are_strings() && (self.cells.is_number(text) || is_missing())
    }

    /// Whether a cell of the first line is a number, begins like one, or stands for a missing one.
    fn is_suspect(&self, text: &str) -> bool {
        let digits = trimmed(text).trim_start_matches(['+', '-', '.']);
        let begins_as_one = digits.starts_with(|char: char| char.is_ascii_digit());
        begins_as_one || stands_for_none(trimmed(text)) || self.holds_number(text)
    }

    /// Take a cell of the first line. The line holds names, which are skipped, if no cell is a number.
    fn name(
        &mut self,
        position: TextPosition,
        text: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), TextFault> {
        match (self.holds_number(text), &self.phase) {
            (true, TablePhase::Unknown) => {
                self.phase = TablePhase::Rows;
                // the earlier cells are empty
                for column in 1..self.column {
                    self.element(self.position(column), "", out)?;
                }
                self.element(position, text, out)
            }
            (true, _) => Err(match self.suspect.take() {
                Some((position, cell)) => self.refused(position, &cell),
                None => TextFault::NumberInNames { position, text: shortened(text).into_owned() },
            }),
            (false, _) => {
                if self.suspect.is_none() && self.is_suspect(text) {
                    self.suspect = Some((position, text.to_owned()));
                }
                if !text.is_empty() {
                    self.phase = TablePhase::Names;
                }
                Ok(())
            }
        }
    }

    /// End the first line, where names are wanted: they are in this line, or in an earlier comment with as
    /// many names, where the line is a row.
    fn end_first_line(&mut self, found: u64, out: &mut Vec<u8>) -> Result<(), TextFault> {
        let cells = mem::take(&mut self.first);
        let mut columns = match &self.chosen {
            Some(chosen) => chosen.columns(self.lines + 1, found)?,
            None => (1..=found).collect(),
        };
        let cell = |column: u64| trimmed(&cells[column as usize - 1]);
        if cells.iter().all(|cell| trimmed(cell).is_empty()) {
            return Err(self.empty_cell(self.position(1)));
        }
        let number = columns.iter().copied().find(|&column| self.holds_number(cell(column)));
        let mut comments = mem::take(&mut self.comments).into_iter();
        let comment = comments.find(|(_, names)| names.len() == cells.len());
        let comment = comment.filter(|_| number.is_some() || self.cells.are_strings());
        if let (None, Some(column)) = (&comment, number) {
            let text = shortened(cell(column)).into_owned();
            return Err(TextFault::NumberInNames { position: self.position(column), text });
        }
        for &column in &columns {
            match &comment {
                Some((line, names)) => {
                    let position = TextPosition { line: *line, column };
                    self.keep_name(position, &names[column as usize - 1])?;
                }
                None => self.keep_name(self.position(column), cell(column))?,
            }
        }
        if let Some(asked) = &self.fields {
            let asked = asked_names(&self.names, asked)?;
            self.names = asked.iter().map(|&number| self.names[number].clone()).collect();
            columns = asked.iter().map(|&number| columns[number]).collect();
        }
        if self.chosen.is_some() || self.fields.is_some() {
            let numbers = columns.iter().map(|&column| column as i64 - 1).collect();
            self.chosen = Some(ChosenColumns::new(numbers));
        }
        if comment.is_some() {
            for &column in &columns {
                self.element(self.position(column), &cells[column as usize - 1], out)?;
            }
            self.rows += 1;
        }
        self.phase = TablePhase::Rows;
        self.columns = Some(found);
        self.seen = HashSet::new();
        Ok(())
    }

    /// End a line of which only some columns are read.
    fn end_chosen(
        &mut self,
        chosen: &ChosenColumns,
        found: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), TextFault> {
        let columns = chosen.columns(self.lines + 1, found)?;
        let is_first = !matches!(self.phase, TablePhase::Rows);
        self.phase = TablePhase::Rows;
        let is_named = |text: &str| !text.is_empty() && !self.holds_number(text);
        let has_names = is_first && self.suspect.is_none();
        if has_names && chosen.cells().map(trimmed).all(is_named) {
            return Ok(());
        }
        for (column, text) in columns.into_iter().zip(chosen.cells()) {
            self.element(self.position(column), text, out)?;
        }
        self.rows += 1;
        Ok(())
    }

    fn keep_name(&mut self, position: TextPosition, text: &str) -> Result<(), TextFault> {
        let quoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let name = match quoted.unwrap_or(text) {
            "" => format!("f{}", position.column - 1),
            name => name.to_owned(),
        };
        self.names_len += name.len();
        if self.names_len > MAX_NAMES {
            return Err(TextFault::LongNames { position });
        }
        if !self.seen.insert(name.clone()) {
            return Err(TextFault::NameTwice { position, name: shortened(&name).into_owned() });
        }
        self.names.push(name);
        Ok(())
    }

    fn end_cells(&mut self, last: &[u8], out: &mut Vec<u8>) -> Result<(), TextFault> {
        self.quoting = Quoting::Outside;
        if self.is_open || !self.cell.is_empty() || !last.is_empty() {
            self.end_cell(last, out)?;
        }
        self.is_open = false;
        Ok(())
    }

    fn end_line(&mut self, out: &mut Vec<u8>) -> Result<(), TextFault> {
        let found = mem::take(&mut self.column);
        let is_row = matches!(self.phase, TablePhase::Rows);
        match (self.phase, self.columns) {
            _ if found == 0 => {}
            _ if self.with_names && !is_row => self.end_first_line(found, out)?,
            (TablePhase::Rows, Some(expected)) if found < expected => {
                let position = self.position(found + 1);
                return Err(TextFault::ShortRow { position, expected });
            }
            (phase, _) => match (self.chosen.take(), phase) {
                (Some(mut chosen), _) => {
                    self.end_chosen(&chosen, found, out)?;
                    chosen.end_row();
                    self.chosen = Some(chosen);
                }
                (None, TablePhase::Unknown) => return Err(self.empty_cell(self.position(1))),
                (None, TablePhase::Names) => {
                    if let Some((position, cell)) = self.suspect.take() {
                        return Err(self.refused(position, &cell));
                    }
                    self.phase = TablePhase::Rows;
                    self.columns = Some(found);
                }
                (None, TablePhase::Rows) => {
                    self.columns = Some(found);
                    self.rows += 1;
                }
            },
        }
        self.lines += 1;
        self.in_comment = false;
        Ok(())
    }

    /// End a line after this part of a cell, or of skipped text.
    fn new_line(&mut self, last: &[u8], out: &mut Vec<u8>) -> Result<(), TextFault> {
        if self.skip > 0 {
            self.skip -= 1;
            self.lines += 1;
            return Ok(());
        }
        if self.in_comment {
            self.comment(last);
            self.end_comment();
        } else {
            self.end_cells(last, out)?;
        }
        self.end_line(out)
    }

    /// Begin a comment, which may hold names if it has a line of its own before the first line.
    fn begin_comment(&mut self) {
        self.in_comment = true;
        let is_row = matches!(self.phase, TablePhase::Rows);
        self.comment = (self.with_names && !is_row && self.column == 0).then(Vec::new);
    }

    fn comment(&mut self, part: &[u8]) {
        self.comments_len = self.comments_len.saturating_add(part.len());
        match &mut self.comment {
            Some(comment) if self.comments_len <= MAX_NAMES => comment.extend_from_slice(part),
            _ => self.comment = None,
        }
    }

    fn end_comment(&mut self) {
        let comment = self.comment.take().and_then(|comment| String::from_utf8(comment).ok());
        if let Some(comment) = comment {
            self.comments.push((self.lines + 1, names_in(&comment, self.delimiter)));
        }
    }

    /// The number of bytes that end no cell; in a comment or skipped line, no line.
    fn plain(&self, text: &[u8]) -> Option<usize> {
        let ends = |byte: &u8| self.kinds[usize::from(*byte)];
        if self.quoting == Quoting::Inside {
            return text.iter().position(|&byte| byte == b'"');
        }
        if self.in_comment || self.skip > 0 {
            return text.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        }
        text.iter().position(|byte| ends(byte) != Kind::Plain)
    }
}

impl TextParser for TableParser {
    type Fault = TextFault;

    fn parse(&mut self, mut text: &[u8], out: &mut Vec<u8>) -> Result<(), TextFault> {
        loop {
            if mem::take(&mut self.after_return)
                && let [b'\n', rest @ ..] = text
            {
                text = rest;
            }
            let is_skipped = self.in_comment || self.skip > 0;
            let Some(at) = self.plain(text) else {
                if self.quoting == Quoting::Behind && !text.is_empty() {
                    self.quoting = Quoting::Outside;
                }
                if self.in_comment {
                    self.comment(text);
                }
                return if is_skipped { Ok(()) } else { self.hold(text) };
            };
            let (cell, rest) = text.split_at(at);
            let kind = self.kinds[usize::from(rest[0])];
            text = &rest[1..];
            if kind != Kind::Quote && (at > 0 || self.quoting == Quoting::Behind) {
                self.quoting = Quoting::Outside;
            }
            match kind {
                Kind::Quote => self.quote(cell)?,
                Kind::Separator if self.delimiter.is_some() => {
                    self.quoting = Quoting::Outside;
                    self.end_cell(cell, out)?;
                    self.is_open = true;
                }
                Kind::Separator => self.end_cells(cell, out)?,
                Kind::Comment => {
                    self.end_cells(cell, out)?;
                    self.begin_comment();
                }
                Kind::NewLine | Kind::Return | Kind::Plain => {
                    self.new_line(cell, out)?;
                    // the text is used up, and the next piece may begin with the rest of this line end
                    self.after_return = kind == Kind::Return;
                    if text.is_empty() {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), TextFault> {
        if self.skip > 0 {
            return Ok(());
        }
        if self.quoting == Quoting::Inside {
            return Err(TextFault::OpenQuote { position: self.position(self.column + 1) });
        }
        if !self.in_comment {
            self.end_cells(&[], out)?;
        }
        self.end_line(out)
    }

    fn fork(&self, lines: &[u8]) -> Option<TableParser> {
        let is_quoted = self.kinds[usize::from(b'"')] == Kind::Quote;
        let knows_rows = self.columns.is_some() || self.chosen.is_some();
        let is_in_rows = matches!(self.phase, TablePhase::Rows) && knows_rows;
        let is_in_line = self.is_open || self.column > 0 || !self.cell.is_empty();
        let is_outside = self.quoting == Quoting::Outside && !self.in_comment && self.skip == 0;
        // a quoted cell may continue in the next piece
        if !is_in_rows || is_in_line || !is_outside || is_quoted && lines.contains(&b'"') {
            return None;
        }
        let options = TextOptions { missing: self.missing.clone(), ..TextOptions::default() };
        let cells = self.cells.clone();
        let fork = TableParser::new(cells, self.delimiter, &options, is_quoted);
        let chosen = self.chosen.clone();
        Some(TableParser { phase: self.phase, columns: self.columns, chosen, ..fork })
    }

    fn join(&mut self, fork: TableParser) {
        self.lines += fork.lines;
        self.rows += fork.rows;
        self.has_wide |= fork.has_wide;
    }
}

/// Whether a word stands for a missing number, or one that does not fit in its column.
fn stands_for_none(text: &str) -> bool {
    let is_of = |char: char| !text.is_empty() && text.chars().all(|it| it == char);
    matches!(text, "NA" | "N/A" | "n/a" | "NULL" | "null" | "?") || is_of('-') || is_of('*')
}

/// The names in a comment, `# x y`.
fn names_in(comment: &str, delimiter: Option<u8>) -> Vec<String> {
    let comment = comment.trim_start_matches('#');
    match delimiter {
        Some(byte) => comment.split(char::from(byte)).map(trimmed).map(str::to_owned).collect(),
        None => comment.split_whitespace().map(str::to_owned).collect(),
    }
}
