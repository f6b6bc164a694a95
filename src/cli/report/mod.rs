//! All that is said: messages with carets and hints, tables, progress, the exit status.

mod errors;
mod failure;
mod foreign;
mod json;
mod misuse;
mod peers;
mod progress;
mod table;

pub(crate) use errors::{choosing, of_flag};
pub(crate) use failure::{
    Exit, Failure, counted, fail_in_json, human_bytes, in_one_line, plain, quoted,
};
pub(crate) use json::{Json, percent_encoded};
pub(crate) use misuse::{did_you_mean, failure as misuse, misplaced, quote, with_blanks};
pub(crate) use progress::watch;
pub(crate) use table::{
    Align, SortKey, Table, print, print_by, print_raw, sort_rows, table, terminal_columns,
};
