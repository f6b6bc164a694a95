//! All that is said: messages with carets and hints, tables, progress, the exit status.

mod errors;
mod exit;
mod failure;
mod foreign;
mod json;
mod misuse;
mod nearest;
mod peers;
mod percent;
mod progress;
mod shell;
mod sort;
mod stdout;
mod table;

pub(crate) use errors::{choosing, of_flag};
pub(crate) use exit::Exit;
pub(crate) use failure::{Failure, counted, fail_in_json, human_bytes, in_one_line, plain};
pub(crate) use json::Json;
pub(crate) use misuse::{failure as misuse, misplaced, quote, with_blanks};
pub(crate) use nearest::did_you_mean;
pub(crate) use percent::percent_encoded;
pub(crate) use progress::watch;
pub(crate) use shell::quoted;
pub(crate) use sort::{SortKey, sort_rows};
pub(crate) use stdout::{print, print_by, print_raw, terminal_columns};
pub(crate) use table::{Align, Table, table};
