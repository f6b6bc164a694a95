//! What is said of a text.

use crate::format::TextFormat;

/// What a caller can say about a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// The format; without it the name of the file tells it.
    pub format: Option<TextFormat>,
    /// The byte between the cells of a table; without it that of the format.
    pub delimiter: Option<u8>,
    /// How many lines of a table are skipped at its beginning.
    pub skip_rows: Option<u64>,
    /// Cells of a table that are read as NaN; an empty one stands for the empty cell.
    pub missing: Vec<String>,
    /// Whether the first line of a table names the fields of a structured dtype.
    pub names: bool,
    /// The fields that are to be taken, as [`Input::take_fields`](crate::input::Input::take_fields) has them: a
    /// table has fields by the names in its first line, and only these are read.
    pub fields: Option<String>,
    /// The columns of a table that are read, from 0 on, in this order; negative ones count from the end.
    pub columns: Option<Vec<i64>>,
}
