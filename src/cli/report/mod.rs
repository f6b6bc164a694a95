//! All that is printed: messages with carets and hints, tables, progress, the exit status.

mod chosen;
mod errors;
mod failure;
mod foreign;
mod joins;
mod misuse;
mod peers;
mod progress_bar;
mod table;

pub(crate) use chosen::choosing;
pub(crate) use errors::of_flag;
pub(crate) use failure::{
    Exit, Failure, Json, counted, fail_in_json, human_bytes, in_one_line, percent_encoded, plain,
    quoted,
};
pub(crate) use joins::{hint_in_append, hint_in_group};
pub(crate) use misuse::{did_you_mean, failure as misuse, misplaced, quote};
pub(crate) use progress_bar::watch;
pub(crate) use table::{
    Align, SortKey, Table, print, print_by, print_raw, sort_rows, table, terminal_columns,
};
