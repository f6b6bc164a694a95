//! A file for each subcommand, an outline of its job; and shared code: the index (`index`), inputs
//! (`input`) and outputs (`output`).

use tslice::job::Along;

use super::args::{Command, help};
use super::complete::script;
use super::report::{Exit, Failure, print_raw};

mod assign;
mod diff;
mod digest;
mod edit;
mod equivalents;
mod explain;
mod gather;
mod index;
mod info;
mod input;
mod join;
mod listing;
mod man;
mod merge;
mod operand;
mod output;
mod part;
mod picture;
mod scatter;
mod slice;
mod split;
mod stats;
mod stats_tables;
mod tensors;
mod tree;
mod view;

pub(crate) fn run(command: &Command) -> Result<Exit, Failure> {
    let outcome = match command {
        Command::Slice(args) => slice::run(args),
        Command::Gather(args) => gather::run(args),
        Command::Scatter(args) => scatter::run(args),
        Command::Assign(args) => assign::run(args),
        Command::Concat(args) => join::run(args, Along::Existing),
        Command::Stack(args) => join::run(args, Along::New),
        Command::Merge(args) => merge::run(args),
        Command::Split(args) => split::run(args),
        Command::Info(args) => return info::run(args),
        Command::View(args) => view::run(args),
        Command::Diff(args) => return diff::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Completions { shell } => print_raw(script(*shell)),
        Command::Help(args) => print_raw(&help(args.topic.as_deref(), true)),
        Command::Man(args) => man::run(args),
    };
    outcome.map(|()| Exit::Done)
}
