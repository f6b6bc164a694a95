//! `tslice merge INPUT...`: the tensors of several files in one.

use tslice::input::{Location, Transform};
use tslice::job::{Copying, MergeOptions, NewName, NumberedRename, Precedence};

use super::join::SHARD_BYTES;
use super::{index, input, output, part};
use crate::cli::args::{CopyArgs, MergeArgs};
use crate::cli::report::Failure;

pub(super) fn run(args: &MergeArgs) -> Result<(), Failure> {
    let CopyArgs { from, field, cast, to } = &args.through;
    let Some(share) = part::share(to)? else { return Ok(()) };
    let workers = output::workers(to.threads);
    let locations = input::locations(&args.inputs)?;
    let output = output::open(to, locations.first().unwrap_or(&Location::Stdin), &workers)?;
    let output = output.in_shards(SHARD_BYTES);
    let options = MergeOptions {
        open: input::options_of_several(from, field.field.as_deref(), &workers)?,
        renames: numbered_renames(args, locations.len())?,
        wins: match (args.first, args.last) {
            (true, _) => Some(Precedence::First),
            (false, true) => Some(Precedence::Last),
            (false, false) => None,
        },
        transform: Transform {
            fields: field.field.clone(),
            scaling: index::scaling(cast),
            ..Transform::default()
        },
        casts: index::casts(cast)?,
        group: None,
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
    is_number.then(|| (number, NewName { text: text.to_owned(), old, in_table: name.in_table }))
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
