//! The names of a table's columns: the cells of its first line, or a comment before it with as many names.

use std::collections::HashSet;
use std::sync::Arc;

use super::cells::Cells;
use super::{MAX_NAMES, TextPosition};
use crate::dtype::{DType, Field, NpyType, Structure};
use crate::element::trimmed;
use crate::formats::text::TextFault;
use crate::input::asked_names;
use crate::tensor::shortened;

/// The first line of a table, and the comments before it.
#[derive(Clone, Default)]
pub(super) struct NameLine {
    delimiter: Option<u8>,
    /// The names of the columns that are read, unless all are.
    fields: Option<String>,
    cells: Vec<String>,
    cells_len: usize,
    /// The names in each comment, with its line.
    comments: Vec<(u64, Vec<String>)>,
    /// The open comment, where it may hold names.
    comment: Option<Vec<u8>>,
    comments_len: usize,
}

/// The columns of a table, found at the end of its first line.
pub(super) struct Named {
    /// The dtype of rows whose cells are fields.
    pub(super) structure: DType,
    /// The columns of the fields, from 1.
    pub(super) columns: Vec<u64>,
    /// The cells of the first line, where it is a row.
    pub(super) row: Option<Vec<String>>,
}

impl NameLine {
    pub(super) fn new(delimiter: Option<u8>, fields: Option<String>) -> NameLine {
        NameLine { delimiter, fields, ..NameLine::default() }
    }

    /// Hold a cell of the line.
    pub(super) fn hold(&mut self, position: TextPosition, text: &str) -> Result<(), TextFault> {
        // an empty cell takes memory too
        self.cells_len += text.len().max(1);
        if self.cells_len > MAX_NAMES {
            return Err(TextFault::LongNames { position });
        }
        self.cells.push(text.to_owned());
        Ok(())
    }

    pub(super) fn begin_comment(&mut self) {
        // an empty comment takes memory too
        self.comments_len += 1;
        self.comment = Some(Vec::new());
    }

    pub(super) fn hold_comment(&mut self, part: &[u8]) {
        self.comments_len = self.comments_len.saturating_add(part.len());
        match &mut self.comment {
            Some(comment) if self.comments_len <= MAX_NAMES => comment.extend_from_slice(part),
            _ => self.comment = None,
        }
    }

    pub(super) fn end_comment(&mut self, line: u64) {
        let comment = self.comment.take().and_then(|comment| String::from_utf8(comment).ok());
        if let Some(comment) = comment {
            self.comments.push((line, names_in(&comment, self.delimiter)));
        }
    }

    /// The names of some columns of the line, which are counted from 1. They are in a comment, where the line is a
    /// row.
    pub(super) fn end(
        self,
        line: u64,
        mut columns: Vec<u64>,
        cells: &Cells,
    ) -> Result<Named, TextFault> {
        let cell = |column: u64| trimmed(&self.cells[column as usize - 1]);
        if self.cells.iter().all(|cell| trimmed(cell).is_empty()) {
            return Err(cells.empty_cell(TextPosition { line, column: 1 }));
        }
        let number = columns.iter().copied().find(|&column| cells.holds_number(cell(column)));
        let mut comments = self.comments.iter();
        let comment = comments.find(|(_, names)| names.len() == self.cells.len());
        let comment = comment.filter(|_| number.is_some() || cells.reader.are_strings());
        if let (None, Some(column)) = (comment, number) {
            let text = shortened(cell(column)).into_owned();
            return Err(TextFault::NumberInNames { position: TextPosition { line, column }, text });
        }
        let is_row = comment.is_some();
        let (line, texts) = comment.map_or((line, &self.cells), |(line, names)| (*line, names));
        let mut names = Vec::new();
        let mut seen = HashSet::new();
        for &column in &columns {
            let name = name(trimmed(&texts[column as usize - 1]), column);
            if !seen.insert(name.clone()) {
                let position = TextPosition { line, column };
                return Err(TextFault::NameTwice { position, name: shortened(&name).into_owned() });
            }
            names.push(name);
        }
        if let Some(asked) = &self.fields {
            let asked = asked_names(&names, asked)?;
            names = asked.iter().map(|&number| names[number].clone()).collect();
            columns = asked.iter().map(|&number| columns[number]).collect();
        }
        let structure = structure(names, cells.reader.dtype())?;
        Ok(Named { structure, columns, row: is_row.then_some(self.cells) })
    }
}

/// The name of a column by its text, which may be quoted; NumPy's, where it is empty.
fn name(text: &str, column: u64) -> String {
    let quoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    match quoted.unwrap_or(text) {
        "" => format!("f{}", column - 1),
        name => name.to_owned(),
    }
}

/// The dtype of rows whose cells, of one dtype, have names.
fn structure(names: Vec<String>, dtype: &DType) -> Result<DType, TextFault> {
    let width = dtype.item_bits() / 8;
    let itemsize = width.checked_mul(names.len() as u64).ok_or(TextFault::TooLarge)?;
    let field = |(name, number): (String, u64)| {
        let (dtype, offset) = (dtype.clone(), number * width);
        let (shape, nesting) = (Vec::new(), Vec::new());
        Field { name, is_named: true, title: None, dtype, shape, nesting, offset }
    };
    let fields = names.into_iter().zip(0..).map(field).collect();
    Ok(DType::Npy(NpyType::Structure(Arc::new(Structure { fields, itemsize }))))
}

/// The names in a comment, `# x y`.
fn names_in(comment: &str, delimiter: Option<u8>) -> Vec<String> {
    let comment = comment.trim_start_matches('#');
    match delimiter {
        Some(byte) => comment.split(char::from(byte)).map(trimmed).map(str::to_owned).collect(),
        None => comment.split_whitespace().map(str::to_owned).collect(),
    }
}
