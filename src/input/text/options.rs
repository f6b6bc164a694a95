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
    /// Whether fields are to be taken, which a table has by the names in its first line.
    pub fields: bool,
}
