//! Tables on standard output: columns as wide as they need, numbers to the right.

use std::borrow::Borrow;

/// How a column's cells stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// The rows as lines, each indented by `indent` spaces; the first row may be a heading.
pub(crate) fn table<const N: usize>(
    rows: &[[impl AsRef<str>; N]],
    align: [Align; N],
    indent: usize,
) -> String {
    let table = Table::of(rows, align, indent);
    rows.iter().map(|row| table.line(row)).collect()
}

/// The columns of a table whose rows are made when they are printed.
pub(crate) struct Table<const N: usize> {
    widths: [usize; N],
    align: [Align; N],
    indent: usize,
    /// The numbers of the columns that are shown, in their order.
    shown: Vec<usize>,
}

impl<const N: usize> Table<N> {
    /// The columns of these rows.
    pub(crate) fn of<C: AsRef<str>>(
        rows: impl IntoIterator<Item = impl Borrow<[C; N]>>,
        align: [Align; N],
        indent: usize,
    ) -> Table<N> {
        let mut widths = [0; N];
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row.borrow()) {
                *width = (*width).max(cell.as_ref().chars().count());
            }
        }
        // a cell beyond this stands out of its column, instead of widening all rows; the widths of
        // format strings, which end at 16 bits, are not used
        widths = widths.map(|width| width.min(MAX_WIDTH));
        Table { widths, align, indent, shown: (0..N).collect() }
    }

    /// Show these columns alone, in this order.
    pub(crate) fn columns(self, shown: Vec<usize>) -> Table<N> {
        Table { shown, ..self }
    }

    /// A row as a line.
    pub(crate) fn line(&self, row: &[impl AsRef<str>; N]) -> String {
        let mut line = " ".repeat(self.indent);
        for &column in &self.shown {
            let (cell, width) = (row[column].as_ref(), self.widths[column]);
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

/// The most characters that a column is padded to.
const MAX_WIDTH: usize = 200;

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
        let (padding, wide) = (" ".repeat(199), &long);
        assert_eq!(of(&[[&long, "1"], ["a", "2"]]), format!(" {wide}  1\n a{padding}  2\n"));
    }
}
