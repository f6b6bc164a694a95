//! Tables on standard output: columns as wide as they need, numbers to the right.

use std::fmt::Write;

/// How a column's cells stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// The rows as lines, each indented by `indent` spaces; the first row may be a heading.
pub(crate) fn table<const N: usize>(
    rows: &[[String; N]],
    align: [Align; N],
    indent: usize,
) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = " ".repeat(indent);
        for ((cell, width), align) in row.iter().zip(widths).zip(align) {
            // writing to a string cannot fail
            let _ = match align {
                Align::Left => write!(line, "{cell:width$}  "),
                Align::Right => write!(line, "{cell:>width$}  "),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
