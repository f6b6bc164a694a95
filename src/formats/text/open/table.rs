//! A table of cells: rows of csv, tsv and txt, by the rules of np.loadtxt.
//!
//! ```text
//! # made by me        left out, as are empty lines
//! time, value         names, which hold no number
//! 0, 0.5
//! 1, nan              the shape is (2, 2)
//! ```

use std::mem;

use super::cells::Cells;
use super::columns::ChosenColumns;
use super::names::{NameLine, Named};
use super::pieces::TextParser;
use super::{MAX_CELL, TextPosition};
use crate::dtype::DType;
use crate::element::{CellReader, trimmed};
use crate::formats::text::TextFault;
use crate::input::TextOptions;
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
#[derive(Clone)]
pub(super) struct TableParser {
    cells: Cells,
    kinds: [Kind; 256],
    skip: u64,
    phase: TablePhase,
    /// The line of names, where names are wanted, until it ended.
    names: Option<NameLine>,
    /// The dtype of rows whose columns have names.
    structure: Option<DType>,
    /// The chosen columns, unless all are read.
    chosen: Option<ChosenColumns>,
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
    lines: u64,
    rows: u64,
}

/// The kind of each byte, in a table with this delimiter, or white space.
fn kinds(delimiter: Option<u8>, is_quoted: bool) -> [Kind; 256] {
    let is_space = |byte: u8| b" \t\x0b\x0c\x1c\x1d\x1e\x1f".contains(&byte);
    std::array::from_fn(|byte| match byte as u8 {
        b'\n' => Kind::NewLine,
        b'\r' => Kind::Return,
        b'#' => Kind::Comment,
        byte if delimiter.map_or_else(|| is_space(byte), |it| it == byte) => Kind::Separator,
        b'"' if is_quoted => Kind::Quote,
        _ => Kind::Plain,
    })
}

impl TableParser {
    /// A parser of a table with this delimiter, or white space, which skips the first lines.
    pub(super) fn new(
        reader: CellReader,
        delimiter: Option<u8>,
        options: &TextOptions,
        is_quoted: bool,
    ) -> Self {
        let missing = options.missing.clone();
        let with_names = options.names || options.fields.is_some();
        // any cell is a valid string: only the options say that there are names
        let has_rows_only = reader.are_strings() && !with_names;
        let phase = if has_rows_only { TablePhase::Rows } else { TablePhase::Unknown };
        TableParser {
            cells: Cells { reader, delimiter, missing, columns: None, has_wide: false },
            kinds: kinds(delimiter, is_quoted),
            skip: options.skip_rows.unwrap_or(0),
            phase,
            names: with_names.then(|| NameLine::new(delimiter, options.fields.clone())),
            structure: None,
            chosen: options.columns.clone().map(ChosenColumns::new),
            cell: Vec::new(),
            column: 0,
            is_open: false,
            in_comment: false,
            after_return: false,
            quoting: Quoting::Outside,
            was_quoted: false,
            suspect: None,
            lines: 0,
            rows: 0,
        }
    }

    /// The dtype and the shape, after all was read: axes of length 1 are dropped.
    pub(super) fn found(&self) -> Result<(DType, Vec<u64>), TextFault> {
        if self.rows == 0 {
            return Err(TextFault::NoRows { strings: self.cells.reader.are_strings() });
        }
        let dtype = self.structure.as_ref().unwrap_or(self.cells.reader.dtype()).clone();
        let columns = match (&self.structure, &self.chosen) {
            (Some(_), _) => 1,
            (None, Some(chosen)) => chosen.len() as u64,
            (None, None) => self.cells.columns.unwrap_or(1),
        };
        Ok((dtype, [self.rows, columns].into_iter().filter(|&len| len != 1).collect()))
    }

    /// Whether integers were read as floats that are not exact.
    pub(super) fn rounds(&self) -> bool {
        self.cells.has_wide && self.cells.reader.hold_nan()
    }

    fn position(&self, column: u64) -> TextPosition {
        TextPosition { line: self.lines + 1, column }
    }

    /// Handle a quote after `part` of a cell: it begins quoted text, ends it, or is a character of the cell.
    fn quote(&mut self, part: &[u8]) -> Result<(), TextFault> {
        // blanks belong to a string, but not to a number
        let is_blank = |byte: &u8| !self.cells.reader.are_strings() && matches!(byte, b' ' | b'\t');
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
        if self.cells.delimiter.is_none()
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
        if let Some(expected) = self.cells.columns.filter(|&columns| self.column > columns) {
            return Err(TextFault::LongRow { position, expected });
        }
        let text = str::from_utf8(cell).map_err(|_| TextFault::NotUtf8 { position })?;
        if let Some(names) = &mut self.names {
            return names.hold(position, text);
        }
        let is_row = matches!(self.phase, TablePhase::Rows);
        if !is_row && self.chosen.is_some() {
            self.suspect(position, text);
        }
        match &mut self.chosen {
            Some(chosen) => chosen.hold(position, text),
            None if is_row => self.cells.push(position, text, out),
            None => self.name(position, trimmed(text), out),
        }
    }

    /// Hold a cell of the first line, if it is the first one that looks like a number.
    fn suspect(&mut self, position: TextPosition, text: &str) {
        if self.suspect.is_none() && self.cells.is_suspect(text) {
            self.suspect = Some((position, text.to_owned()));
        }
    }

    /// Take a cell of the first line. The line holds names, which are skipped, if no cell is a number.
    fn name(
        &mut self,
        position: TextPosition,
        text: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), TextFault> {
        match (self.cells.holds_number(text), &self.phase) {
            (true, TablePhase::Unknown) => {
                self.phase = TablePhase::Rows;
                // the earlier cells are empty
                for column in 1..self.column {
                    self.cells.push(self.position(column), "", out)?;
                }
                self.cells.push(position, text, out)
            }
            (true, _) => Err(match self.suspect.take() {
                Some((position, cell)) => self.cells.refused(position, &cell),
                None => TextFault::NumberInNames { position, text: shortened(text).into_owned() },
            }),
            (false, _) => {
                self.suspect(position, text);
                if !text.is_empty() {
                    self.phase = TablePhase::Names;
                }
                Ok(())
            }
        }
    }

    /// End the first line, where names are wanted. It is a row, where the names are in a comment.
    fn end_first_line(
        &mut self,
        names: NameLine,
        found: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), TextFault> {
        let line = self.lines + 1;
        let columns = match &self.chosen {
            Some(chosen) => chosen.columns(line, found)?,
            None => (1..=found).collect(),
        };
        let Named { structure, columns, row } = names.end(line, columns, &self.cells)?;
        self.structure = Some(structure);
        let is_all = columns.iter().copied().eq(1..=found);
        let numbers = || columns.iter().map(|&column| column as i64 - 1).collect();
        self.chosen = (!is_all).then(|| ChosenColumns::new(numbers()));
        if let Some(cells) = row {
            for &column in &columns {
                self.cells.push(self.position(column), &cells[column as usize - 1], out)?;
            }
            self.rows += 1;
        }
        self.phase = TablePhase::Rows;
        self.cells.columns = Some(found);
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
        let is_named = |text: &str| !text.is_empty() && !self.cells.holds_number(text);
        let has_names = is_first && self.suspect.is_none();
        if has_names && chosen.cells().map(trimmed).all(is_named) {
            return Ok(());
        }
        for (column, text) in columns.into_iter().zip(chosen.cells()) {
            self.cells.push(self.position(column), text, out)?;
        }
        self.rows += 1;
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
        if found > 0 {
            self.end_cells_of_line(found, out)?;
        }
        self.lines += 1;
        self.in_comment = false;
        Ok(())
    }

    /// End a line of `found` cells: names, or a row.
    fn end_cells_of_line(&mut self, found: u64, out: &mut Vec<u8>) -> Result<(), TextFault> {
        if let Some(names) = self.names.take() {
            return self.end_first_line(names, found, out);
        }
        if let Some(expected) = self.cells.columns.filter(|&expected| found < expected) {
            return Err(TextFault::ShortRow { position: self.position(found + 1), expected });
        }
        if let Some(mut chosen) = self.chosen.take() {
            self.end_chosen(&chosen, found, out)?;
            chosen.end_row();
            self.chosen = Some(chosen);
            return Ok(());
        }
        match self.phase {
            TablePhase::Unknown => return Err(self.cells.empty_cell(self.position(1))),
            TablePhase::Names => {
                if let Some((position, cell)) = self.suspect.take() {
                    return Err(self.cells.refused(position, &cell));
                }
                self.phase = TablePhase::Rows;
            }
            TablePhase::Rows => self.rows += 1,
        }
        self.cells.columns = Some(found);
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
            if let Some(names) = &mut self.names {
                names.hold_comment(last);
                names.end_comment(self.lines + 1);
            }
        } else {
            self.end_cells(last, out)?;
        }
        self.end_line(out)
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
                if let Some(names) = self.names.as_mut().filter(|_| self.in_comment) {
                    names.hold_comment(text);
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
                Kind::Separator if self.cells.delimiter.is_some() => {
                    self.quoting = Quoting::Outside;
                    self.end_cell(cell, out)?;
                    self.is_open = true;
                }
                Kind::Separator => self.end_cells(cell, out)?,
                Kind::Comment => {
                    self.end_cells(cell, out)?;
                    self.in_comment = true;
                    // a comment that has a line of its own may hold names
                    if let Some(names) = self.names.as_mut().filter(|_| self.column == 0) {
                        names.begin_comment();
                    }
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
        let knows_rows = self.cells.columns.is_some() || self.chosen.is_some();
        let is_in_rows = matches!(self.phase, TablePhase::Rows) && knows_rows;
        let is_in_line = self.is_open || self.column > 0 || !self.cell.is_empty();
        let is_outside = self.quoting == Quoting::Outside && !self.in_comment && self.skip == 0;
        // a quoted cell may continue in the next piece
        if !is_in_rows || is_in_line || !is_outside || is_quoted && lines.contains(&b'"') {
            return None;
        }
        Some(TableParser { lines: 0, rows: 0, ..self.clone() })
    }

    fn join(&mut self, fork: TableParser) {
        self.lines += fork.lines;
        self.rows += fork.rows;
        self.cells.has_wide |= fork.cells.has_wide;
    }
}
