//! What a user may type: all of clap, but for its errors (`report/misuse.rs`).

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
mod parsers;
mod slice;
mod view;

pub(crate) use cli::{COMMANDS, Command, Shell, TopicArgs, parse, parted_list_of};
pub(crate) use diff::DiffArgs;
pub(crate) use edit::{AssignArgs, EditArgs, ScatterArgs};
pub(crate) use gather::GatherArgs;
pub(crate) use help::{Told, command, help, told};
pub(crate) use input::{CheckpointArgs, InputArgs};
pub(crate) use inspect::{ExplainArgs, InfoArgs, InfoColumn};
pub(crate) use join::{InputsArgs, JoinArgs, MergeArgs, SplitArgs};
pub(crate) use normalize::{PartedList, SLICE, insert_slice, normalize, unquoted};
pub(crate) use output::{FormatArgs, Lengths, MetadataArg, MetadataArgs, OutputArgs};
pub(crate) use parsers::{AxisArg, Part, PartArg};
pub(crate) use slice::{
    CastArgs, FieldArgs, IndexArgs, ReshapeArgs, SliceArgs, StridedArgs, ThroughArgs, TransposeArgs,
};
pub(crate) use view::{Column, PictureArgs, StatsArgs, ValuesArgs, ViewArgs};
