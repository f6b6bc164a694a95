//! Tables on standard output: columns as wide as their cells, numbers to the right.
//!
//! **Why no package.** `comfy-table` brings two more packages for these few lines, `tabled` a dozen;
//! their one advantage is the width of East Asian characters in names.

use std::borrow::{Borrow, Cow};
use std::cmp::Ordering;
use std::io;
use std::io::{BufWriter, Write};

use tslice::dtype::is_printable;
use tslice::sink;
use tslice::sink::Destination;
use tslice::tensor::printable;

use super::failure::{Failure, plain};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Format rows as lines, indented by `indent` spaces; the first row may be a heading.
pub(crate) fn table<const N: usize>(
    rows: &[[impl AsRef<str>; N]],
    align: [Align; N],
    indent: usize,
) -> String {
    let table = Table::of(rows, align, indent);
    rows.iter().map(|row| table.line(row)).collect()
}

/// The columns of a table whose rows are formatted when they are printed.
pub(crate) struct Table<const N: usize> {
    widths: [usize; N],
    align: [Align; N],
    indent: usize,
    /// Numbers of the columns to show, in order.
    shown: Vec<usize>,
}

impl<const N: usize> Table<N> {
    /// Make columns as wide as these rows need.
    pub(crate) fn of<C: AsRef<str>>(
        rows: impl IntoIterator<Item = impl Borrow<[C; N]>>,
        align: [Align; N],
        indent: usize,
    ) -> Table<N> {
        let mut table = Table { widths: [0; N], align, indent, shown: (0..N).collect() };
        rows.into_iter().for_each(|row| table.widen(row.borrow()));
        table
    }

    /// Make columns as wide as this row needs, too. A very long cell stands out of its column, instead of widening all
    /// rows.
    pub(crate) fn widen(&mut self, row: &[impl AsRef<str>; N]) {
        for (width, cell) in self.widths.iter_mut().zip(row) {
            *width = (*width).max(cell.as_ref().chars().count().min(MAX_WIDTH));
        }
    }

    pub(crate) fn columns(self, shown: Vec<usize>) -> Table<N> {
        Table { shown, ..self }
    }

    pub(crate) fn line(&self, row: &[impl AsRef<str>; N]) -> String {
        // a name may be as long as a header: a line that grew would hold it twice
        let cells =
            self.shown.iter().map(|&column| row[column].as_ref().len() + self.widths[column] + 2);
        let mut line = String::with_capacity(self.indent + cells.sum::<usize>() + 1);
        line.extend(std::iter::repeat_n(' ', self.indent));
        for &column in &self.shown {
            let cell = row[column].as_ref();
            let width = self.widths[column];
            let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
            match self.align[column] {
                Align::Left => line.extend([cell, padding.as_str(), "  "]),
                Align::Right => line.extend([padding.as_str(), cell, "  "]),
            }
        }
        line.truncate(line.trim_end().len());
        line.push('\n');
        line
    }
}

const MAX_WIDTH: usize = 200;

/// The key by which rows are sorted: texts and plain shapes ascend, all else descends, `None` comes
/// last.
pub(crate) enum SortKey<'a> {
    Text(Cow<'a, str>),
    Shape(Vec<u64>),
    LargestShape(Vec<u64>),
    Amount(u64),
    Number(Option<f64>),
}

impl SortKey<'_> {
    pub(crate) fn order(&self, other: &SortKey<'_>) -> Ordering {
        match (self, other) {
            (SortKey::Text(one), SortKey::Text(other)) => one.cmp(other),
            (SortKey::Shape(one), SortKey::Shape(other)) => one.cmp(other),
            (SortKey::LargestShape(one), SortKey::LargestShape(other)) => other.cmp(one),
            (SortKey::Amount(one), SortKey::Amount(other)) => other.cmp(one),
            (SortKey::Number(Some(one)), SortKey::Number(Some(other))) => other.total_cmp(one),
            (SortKey::Number(one), SortKey::Number(other)) => other.is_some().cmp(&one.is_some()),
            // never: the keys of one column are of one kind
            _ => Ordering::Equal,
        }
    }
}

/// Sort rows, given by their numbers; rows of equal keys keep their order. Keys are made for each
/// comparison: there may be a million rows, and no memory for as many keys.
pub(crate) fn sort_rows<'a>(rows: &mut [usize], key: impl Fn(usize) -> SortKey<'a>) {
    rows.sort_by(|&one, &other| key(one).order(&key(other)));
}

/// Control characters that are not escaped: NumPy prints them unchanged in a string without axes.
const ENDS: [char; 2] = ['\n', '\t'];

/// Print lines on standard output, with escapes for characters that are not printable.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    if text.chars().all(|char| is_printable(char) || ENDS.contains(&char)) {
        return print_raw(text);
    }
    let shown = text.split_inclusive(ENDS).fold(String::new(), |mut shown, cell| {
        let (cell, end) = cell.split_at(cell.trim_end_matches(ENDS).len());
        shown.push_str(&printable(cell));
        shown.push_str(end);
        shown
    });
    print_raw(&shown)
}

/// Print on standard output unchanged, for a terminal or a shell.
pub(crate) fn print_raw(text: &str) -> Result<(), Failure> {
    print_by(|out| out.write_all(text.as_bytes()))
}

pub(crate) fn print_by(
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    // Rust's runtime opens `/dev/null` in place of a closed stream, and writing would succeed
    sink::check(&Destination::Stdout, sink::SinkOptions::default()).map_err(Failure::new)?;
    let mut stdout = BufWriter::with_capacity(64 << 10, sink::Waiting(io::stdout()));
    let written = write(&mut stdout).and_then(|()| stdout.flush());
    written.map_err(|error| {
        let quiet = error.kind() == io::ErrorKind::BrokenPipe;
        let message = format!("standard output: {}", plain(&error));
        Failure { quiet, ..Failure::new(message) }
    })
}

/// The width of the terminal on standard output, or else what `COLUMNS` says, or 80.
pub(crate) fn terminal_columns() -> u64 {
    let asked = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|&columns| columns > 0);
    match sink::terminal_columns() {
        0 => asked().unwrap_or(80),
        columns => columns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: &[[&str; 2]]) -> String {
        let rows: Vec<_> = rows.iter().map(|row| row.map(str::to_owned)).collect();
        table(&rows, [Align::Left, Align::Right], 1)
    }

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        assert_eq!(of(&[["name", "n"], ["é", "10"]]), " name   n\n é     10\n");
    }

    #[test]
    fn columns_are_shown_as_asked() {
        let rows = [["name", "n"], ["x", "10"]];
        let table = Table::of(rows, [Align::Left, Align::Right], 0).columns(vec![1, 0, 1]);
        assert_eq!(rows.map(|row| table.line(&row)).concat(), " n  name   n\n10  x     10\n");
    }

    #[test]
    fn a_cell_may_have_any_length() {
        let long = "x".repeat(70_000);
        let padding = " ".repeat(199);
        let wide = &long;
        assert_eq!(of(&[[&long, "1"], ["a", "2"]]), format!(" {wide}  1\n a{padding}  2\n"));
    }
}
