//! `tslice concat INPUT...` and `tslice stack INPUT...`: files into one.

use std::path::Path;

use tslice::index::resolve::Rules;
use tslice::input::{Location, OpenOptions};
use tslice::job::{Along, Copying, JoinOptions, MergeOptions, NewName, NumberedRename, Precedence};

use super::super::args::MergeArgs;
use super::index::Index;
use super::{index, input, output, part};
use crate::cli::args::{JoinArgs, ThroughArgs};
use crate::cli::report::Failure;

pub(super) fn run(args: &JoinArgs, along: Along) -> Result<(), Failure> {
    let ThroughArgs { from, field, cast, to } = &args.through;
    let Some(share) = part::share(to)? else { return Ok(()) };
    let rules = Rules { keepdims: args.keepdims, outer: args.outer, block: None };
    let index = Index::of_text(args.index.as_deref(), rules)?;
    if let Some(list) = &args.inputs.names.files_from {
        index.refuse_stdin("--files-from", list)?;
    }
    let workers = output::workers(to.threads);
    let locations = input::locations(&args.inputs)?;
    let output = output::open(to, locations.first().unwrap_or(&Location::Stdin), &workers)?;
    if locations.contains(&Location::Stdin) {
        index.refuse_stdin("INPUT", Path::new("-"))?;
    }
    let index = index.open_lists(from.io, &workers, to.quiet)?;
    let options = JoinOptions {
        along,
        axes: input::axes(&args.axis)?,
        open: OpenOptions {
            rest: args.keep_rest,
            ..input::options_of_several(from, field.field.as_deref(), &workers)?
        },
        seen: index::seen(Some(field), &args.reshape)?,
        index: index.of_job(),
        casts: index::casts(cast)?,
        workers,
    };
    let failed = |error| index.failure(error);
    let mut job = Copying::join(&locations, options, output).map_err(failed)?;
    output::run(&mut job, to, &share, failed)
}

/// Bytes per shard of a folder without --shard-size: what save_pretrained writes.
const SHARD_BYTES: u64 = 5_000_000_000;

pub(super) fn run_merge(args: &MergeArgs) -> Result<(), Failure> {
    let ThroughArgs { from, field, cast, to } = &args.through;
    let Some(share) = part::share(to)? else { return Ok(()) };
    let workers = output::workers(to.threads);
    let locations = input::locations(&args.inputs)?;
    let output = output::open(to, locations.first().unwrap_or(&Location::Stdin), &workers)?;
    let output = output.in_shards(SHARD_BYTES);
    let mut open = input::options_of_several(from, field.field.as_deref(), &workers)?;
    // a pattern must match in one of the inputs, not in each
    let patterns = std::mem::take(&mut open.tensors);
    let exclude = std::mem::take(&mut open.exclude);
    let options = MergeOptions {
        open,
        patterns,
        exclude,
        renames: numbered_renames(args, locations.len())?,
        wins: match (args.first, args.last) {
            (true, _) => Some(Precedence::First),
            (false, true) => Some(Precedence::Last),
            (false, false) => None,
        },
        fields: field.field.clone(),
        casts: index::casts(cast)?,
        workers,
    };
    let mut job = Copying::merge(&locations, options, output)?;
    output::run(&mut job, to, &share, Failure::from)
}

/// Split `N:OLD=NEW`.
fn numbered(name: &NewName) -> Option<(&str, NewName)> {
    let (number, text) = name.text.split_once(':')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let old = match name.old {
        Some(old) => Some(old.checked_sub(number.len() + 1)?),
        None => None,
    };
    is_number.then(|| (number, NewName { text: text.to_owned(), old }))
}

/// New names for tensors of all `count` inputs or of one.
fn numbered_renames(args: &MergeArgs, count: usize) -> Result<Vec<NumberedRename>, Failure> {
    let names = input::renames(&args.rename, args.rename_from.as_deref())?;
    let one = |name: NewName| {
        let Some((number, of_one)) = numbered(&name) else {
            return Ok(NumberedRename { input: None, name });
        };
        let input = number.parse().ok().filter(|&number: &usize| number < count);
        let last = count.saturating_sub(1);
        let wrong = || {
            let text = &name.text;
            Failure::usage(format_args!("--rename {text}: inputs are numbered from 0 to {last}"))
        };
        Ok(NumberedRename { input: Some(input.ok_or_else(wrong)?), name: of_one })
    };
    names.into_iter().map(one).collect()
}
