//! Text as an input: tables (csv, tsv, txt) by the rules of np.loadtxt, and nested lists of JSON.
//!
//! The text is read once, in pieces, and its elements are kept as bytes ([`parsed`](crate::input::parsed)):
//! what is opened is a tensor like that of raw bytes. Nothing in the first bytes of a text tells that it is
//! one: its name does, or who opens it.

mod columns;
mod fault;
mod json;
mod open;
mod options;
mod table;

pub use fault::{TextFault, TextPlace};
pub(super) use open::open;
pub use options::TextOptions;

/// The most bytes of a cell.
const MAX_CELL: usize = 1 << 20;

/// The most bytes of all names of columns.
const MAX_NAMES: usize = 256 << 10;

/// The most bytes of the cells of a row that are held until it ends.
const MAX_ROW: usize = 16 << 20;
