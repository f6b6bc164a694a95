//! `tslice INPUT [INDEX]`: the main job.

use tslice::error::Error;
use tslice::input::{OpenOptions, SelectFault};
use tslice::job::{Copying, Select, SliceOptions};
use tslice::sink::Destination;

use super::index::Index;
use super::{index, input, output, part};
use crate::cli::args::SliceArgs;
use crate::cli::report::Failure;

pub(super) fn run(args: &SliceArgs) -> Result<(), Failure> {
    let Some(share) = part::share(&args.to)? else { return Ok(()) };
    let mut index = Index::parse(&args.index)?;
    // without -t, the tensors that have one of the dimensions are taken
    index.rules.passes_over = args.from.tensor.is_empty();
    let workers = output::workers(args.to.threads);
    let index = index.open(&args.from, &workers, args.to.quiet, "INPUT", &args.input)?;
    let options = SliceOptions {
        select: Select {
            patterns: args.from.tensor.clone(),
            whole: args.takes_whole_tensors(),
            keep_rest: args.keep_rest,
            renames: input::renames(&args.rename, args.rename_from.as_deref())?,
        },
        transform: index::transform(Some(&args.field), &args.index.reshape, Some(&args.cast))?,
        index: index.of_job(),
        transpose: index::transposition(&args.transpose)?,
        casts: index::casts(&args.cast)?,
    };
    let output = output::open(&args.to, &input::location(&args.input), &workers)?;
    let field = args.field.field.as_deref();
    let open = OpenOptions { rest: args.keep_rest, ..input::options(&args.from, field, &workers)? };
    let input = input::open_watched(&input::location(&args.input), &open, args.to.quiet)?;
    let to_npy = *output.destination() == Destination::Stdout && !output.format().holds_several;
    let mut job = Copying::slice(input, &options, output).map_err(|error| {
        let suggestion = suggestion(&error, &options.select, to_npy);
        let failure = index.failure(error);
        match (suggestion, &failure.hint) {
            (Some(Suggestion::Also(hint)), Some(names)) => {
                let both = format!("{names}; {hint}");
                failure.hint(both)
            }
            (Some(Suggestion::Instead(hint) | Suggestion::Also(hint)), _) => failure.hint(hint),
            (None, _) => failure,
        }
    })?;
    output::run(&mut job, &args.to, &share, |error| index.failure(error))
}

enum Suggestion {
    /// Replaces the hint of the error.
    Instead(&'static str),
    /// Follows the names of the tensors in the file.
    Also(&'static str),
}

/// The probable meaning of a command whose tensors cannot be chosen.
fn suggestion(error: &Error, select: &Select, to_npy: bool) -> Option<Suggestion> {
    let fault = error.cause.downcast_ref()?;
    match fault {
        SelectFault::NotNamed { excludes: true, .. } => None,
        SelectFault::NotNamed { .. } if to_npy && select.whole => {
            Some(Suggestion::Also("--to safetensors writes all"))
        }
        SelectFault::NotNamed { .. } if to_npy => {
            Some(Suggestion::Also("-t '*' --to safetensors writes all"))
        }
        SelectFault::HoldsOne { .. } if to_npy => {
            Some(Suggestion::Instead("--to safetensors holds several"))
        }
        _ => None,
    }
}
