//! What of NumPy's print options can be changed.

/// NumPy's print options; the others have NumPy's defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintOptions {
    /// The most digits behind the point of a float.
    pub precision: u16,
    /// Arrays of more elements are shortened; `u64::MAX` prints all.
    pub threshold: u64,
    /// How many items of a shortened axis are shown at each end.
    pub edge: u64,
    /// Characters a line.
    pub line_width: usize,
}

impl Default for PrintOptions {
    fn default() -> PrintOptions {
        PrintOptions { precision: 8, threshold: 1000, edge: 3, line_width: 75 }
    }
}
