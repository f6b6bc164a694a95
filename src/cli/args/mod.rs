//! What a user may type: all of clap, but for its errors (`report/misuse.rs`).

mod alone;
mod axis;
mod choice;
mod cli;
mod diff;
mod edit;
mod gather;
mod help;
mod index;
mod input;
mod inspect;
mod join;
mod manual;
mod merge;
mod normalize;
mod output;
mod part;
mod result;
mod size;
mod slice;
mod split;
mod unquoted;
mod view;

pub(crate) use alone::COMMANDS;
pub(crate) use axis::AxisArg;
pub(crate) use cli::{Command, Shell, TopicArgs};
pub(crate) use diff::DiffArgs;
pub(crate) use edit::{AssignArgs, EditArgs, ScatterArgs};
pub(crate) use gather::GatherArgs;
pub(crate) use help::{Told, command, help, told};
pub(crate) use index::{IndexArgs, StridedArgs};
pub(crate) use input::{CheckpointArgs, InputArgs};
pub(crate) use inspect::{ExplainArgs, InfoArgs, InfoColumn};
pub(crate) use join::{InputsArgs, JoinArgs};
pub(crate) use merge::MergeArgs;
pub(crate) use normalize::{SLICE, insert_slice, normalize};
pub(crate) use output::{FormatArgs, Lengths, MetadataArg, MetadataArgs, OutputArgs};
pub(crate) use part::PartArg;
pub(crate) use result::{CastArgs, ThroughArgs, TransposeArgs};
pub(crate) use slice::SliceArgs;
pub(crate) use split::SplitArgs;
pub(crate) use unquoted::{PartedList, unquoted};
pub(crate) use view::{Column, PictureArgs, StatsArgs, ValuesArgs, ViewArgs};

/// The list with blanks in a command line, program name first.
pub(crate) fn parted_list(args: &[std::ffi::OsString]) -> Option<PartedList> {
    cli::parted_list_of(&command(), args)
}

/// Parse a command line, program name first.
///
/// # Errors
///
/// What is to be printed in place of work: a usage error, the help, the version.
pub(crate) fn parse(args: &[std::ffi::OsString]) -> Result<Command, clap::Error> {
    match alone::parse_alone(args) {
        Some(command) => Ok(command),
        None => cli::parse_by_all(args),
    }
}
