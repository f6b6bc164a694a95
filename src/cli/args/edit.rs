//! The shared arguments of `assign` and `scatter`: where the changed file is written.

use std::path::PathBuf;

use clap::Args;

use super::output::MetadataArgs;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Write the output")]
pub(crate) struct EditArgs {
    #[command(flatten)]
    pub(crate) destination: DestinationArgs,
    #[command(flatten)]
    pub(crate) metadata: MetadataArgs,
    /// Replace the output if it exists
    #[arg(short, long, conflicts_with = "in_place")]
    pub(crate) force: bool,
    /// Wait until the disk has the output
    #[arg(long)]
    pub(crate) fsync: bool,
    /// Number of threads [default: one a core]
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Check everything, print what would be written, write nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// With --dry-run: print JSON
    #[arg(long, requires = "dry_run")]
    pub(crate) json: bool,
    /// Show no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// A changed copy, or the file itself.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct DestinationArgs {
    /// The file to write, a copy of TARGET with the change in it
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Change TARGET itself
    #[arg(long)]
    pub(crate) in_place: bool,
}
