//! The arguments of the command line, parsed by clap. clap's errors are worded in `report/misuse.rs`.

mod assign;
mod cli;
mod diff;
mod edit;
mod explain;
mod gather;
mod help;
mod info;
mod input;
mod join;
mod manual;
mod merge;
mod normalize;
mod output;
mod parsers;
mod scatter;
mod slice;
mod split;
mod view;

pub(crate) use assign::AssignArgs;
pub(crate) use cli::{COMMANDS, Command, Shell, TopicArgs, parse};
pub(crate) use diff::DiffArgs;
pub(crate) use edit::EditArgs;
pub(crate) use explain::ExplainArgs;
pub(crate) use gather::GatherArgs;
pub(crate) use help::{HelpOrVersion, command, help, text_of};
pub(crate) use info::{InfoArgs, InfoColumn};
pub(crate) use input::{CheckpointArgs, InputArgs};
pub(crate) use join::{InputsArgs, JoinArgs};
pub(crate) use merge::MergeArgs;
pub(crate) use normalize::{PartedList, SLICE, insert_slice, normalize, parted_list, unquoted};
pub(crate) use output::{FormatArgs, Lengths, MetadataArg, MetadataArgs, OutputArgs};
pub(crate) use parsers::{AxisArg, Part, PartArg};
pub(crate) use scatter::ScatterArgs;
pub(crate) use slice::{
    CastArgs, CopyArgs, FieldArgs, IndexArgs, ReshapeArgs, ScalingArgs, SliceArgs, StridedArgs,
    TransposeArgs,
};
pub(crate) use split::SplitArgs;
pub(crate) use view::{Column, PictureArgs, StatsArgs, ValuesArgs, ViewArgs};
