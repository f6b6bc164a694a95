//! What a user may type: all of clap, but for its errors (`report/misuse.rs`).

mod alone;
mod cli;
mod diff;
mod edit;
mod gather;
mod help;
mod input;
mod inspect;
mod join;
mod manual;
mod normalize;
mod output;
mod slice;
mod values;
mod view;

pub(crate) use alone::COMMANDS;
pub(crate) use cli::{Command, Shell, TopicArgs};
pub(crate) use diff::DiffArgs;
pub(crate) use edit::{AssignArgs, EditArgs, ScatterArgs};
pub(crate) use gather::GatherArgs;
pub(crate) use help::{Told, command, help, told};
pub(crate) use input::{CheckpointArgs, InputArgs};
pub(crate) use inspect::{ExplainArgs, InfoArgs, InfoColumn};
pub(crate) use join::{InputsArgs, JoinArgs, MergeArgs, SplitArgs};
pub(crate) use normalize::{PartedList, SLICE, insert_slice, normalize, unquoted};
pub(crate) use output::{FormatArgs, Lengths, MetadataArg, MetadataArgs, OutputArgs};
pub(crate) use slice::{CastArgs, IndexArgs, SliceArgs, StridedArgs, ThroughArgs, TransposeArgs};
pub(crate) use values::{AxisArg, Part, PartArg};
pub(crate) use view::{Column, PictureArgs, StatsArgs, ValuesArgs, ViewArgs};

/// Find a list with blanks in a command line, program name first.
pub(crate) fn parted_list(args: &[std::ffi::OsString]) -> Option<PartedList> {
    cli::parted_list_of(&command(), args)
}

/// Parse a command line, program name first. `Err` also has what to print instead of work: the
/// help, or the version.
pub(crate) fn parse(args: &[std::ffi::OsString]) -> Result<Command, clap::Error> {
    match alone::parse_alone(args) {
        Some(command) => Ok(command),
        None => cli::parse_by_all(args),
    }
}
