//! `tslice view INPUT [INDEX]`: print values.

use std::path::{Path, PathBuf};

use tslice::dtype::stored_by_numpy;
use tslice::element::check_held;
use tslice::execute::Workers;
use tslice::input::Input;
use tslice::job::{AllSlices, Chosen, Reduced, Reducing, SlicesOptions};
use tslice::output::Output;
use tslice::print;
use tslice::print::PrintOptions;
use tslice::sink::Destination;
use tslice::statistics::Reduction;

use super::index::Index;
use super::output::Dry;
use super::part::Share;
use super::{index, input, output, picture, stats, stats_tables, tensors};
use crate::cli::args::{PictureArgs, StatsArgs, ValuesArgs, ViewArgs};
use crate::cli::report::{Failure, print, watch};

pub(super) fn run(args: &ViewArgs) -> Result<(), Failure> {
    if let Some(fault) = args.fault() {
        return Err(Failure::usage(fault));
    }
    let index = Index::parse(&args.index)?;
    let workers = output::workers(args.threads);
    let files = match (&args.stats.files_from, &args.input) {
        (Some(list), _) => {
            index.refuse_stdin("--files-from", list)?;
            input::listed(list, args.stats.null)?
        }
        (None, path) => path.iter().cloned().collect(),
    };
    if files.iter().any(|path| path == Path::new("-")) {
        index.refuse_stdin("INPUT", Path::new("-"))?;
    }
    let index = index.open_lists(&args.from, &workers, args.quiet)?;
    let transpose = index::transposition(&args.transpose)?;
    let transform = index::transform(Some(&args.field), &args.index.reshape, None)?;
    let options = input::options(&args.from, transform.fields.as_deref(), &workers)?;
    let StatsArgs { stats, reduce, sort, axis, .. } = &args.stats;
    let axes = axis.as_deref().map(|text| index::axes("--axis", text)).transpose()?;
    let slices = SlicesOptions {
        transform: &transform,
        index: index.of_job(),
        transpose: &transpose,
        axes: axes.as_deref(),
    };
    let failed = |error| index.failure(error);
    if args.stats.files_from.is_some() {
        return stats_tables::of_files(&files, &options, &slices, &index, args, &workers);
    }
    let path = files.first().map_or(Path::new("-"), PathBuf::as_path);
    let mut input = input::open_watched(&input::location(path), &options, args.quiet)?;
    let is_of_one = !args.draws();
    let numbers = input.find(&args.from.tensor).map_err(|error| error.of_several(is_of_one))?;
    tensors::note_packed(tensors::of_numbers(&input, &numbers));
    if let Some(how) = *reduce {
        return reduced(input, &numbers, &slices, how, &index, args, workers);
    }
    let as_table = numbers.len() > 1 || !sort.is_empty();
    if *stats && (as_table || axes.is_some()) {
        if numbers.len() > 1 {
            // read once for each tensor, so a pipe is copied to a file
            output::spool(&mut input, args.quiet)?;
        }
        let all = AllSlices::new(&mut input, &numbers, slices).map_err(failed)?;
        return match axes {
            Some(_) => stats_tables::of_slices(&mut input, &all, args, &workers),
            None => stats_tables::of_tensors(&mut input, &all, args, &workers),
        };
    }
    let chosen = Chosen::all(&mut input, &numbers, &transform, index.of_job(), &transpose);
    let chosen = chosen.map_err(failed)?;
    if let ([chosen], true) = (chosen.as_slice(), *stats) {
        return stats::run(&mut input, chosen, args, &workers);
    }
    if args.draws() {
        return picture::run(&mut input, &chosen, args, workers);
    }
    output::spool(&mut input, args.quiet)?;
    show_all(&mut input, &chosen, &args.values)
}

fn reduced(
    input: Input,
    numbers: &[usize],
    slices: &SlicesOptions<'_>,
    how: Reduction,
    index: &Index,
    args: &ViewArgs,
    workers: Workers,
) -> Result<(), Failure> {
    let failed = |error| index.failure(error);
    let keepdims = args.index.keepdims;
    if args.draws() || args.picture.output.is_none() {
        let reduced = Reduced::new(input, numbers, slices, how, keepdims).map_err(failed)?;
        return show_reduced(reduced, index, args, workers);
    }
    let output = reduced_output(args, &workers)?;
    let mut job = Reducing::new(input, numbers, slices, how, keepdims, &output).map_err(failed)?;
    let dry = Dry::of(args.picture.dry_run, false);
    output::perform(&mut job, &Share::Whole, dry, args.quiet, failed)
}

fn show_reduced(
    reduced: Reduced,
    index: &Index,
    args: &ViewArgs,
    workers: Workers,
) -> Result<(), Failure> {
    let bytes = reduced.bytes();
    let results = watch(bytes, args.quiet, |progress| reduced.into_input(&workers, progress));
    let mut results = results.map_err(|error| index.failure(error))?;
    let chosen = Chosen::whole(&mut results)?;
    if args.draws() {
        return picture::run(&mut results, &chosen, args, workers);
    }
    show_all(&mut results, &chosen, &args.values)
}

fn reduced_output(args: &ViewArgs, workers: &Workers) -> Result<Output, Failure> {
    let PictureArgs { output, force, fsync, dry_run, .. } = &args.picture;
    let options = output::of_format(&args.format, &args.metadata)?;
    let options = options.force(*force).fsync(*fsync).workers(workers);
    let target = output.as_deref().map_or(Destination::Stdout, output::target);
    let output = Output::new(target, options)?;
    if !dry_run && !output.format().is_text {
        output::refuse_terminal(output.destination())?;
    }
    Ok(output)
}

fn show_all(input: &mut Input, all: &[Chosen], args: &ValuesArgs) -> Result<(), Failure> {
    for (number, chosen) in all.iter().enumerate() {
        if number > 0 {
            print("\n")?;
        }
        show_values(input, chosen, args)?;
    }
    Ok(())
}

/// Print the values, and below them the name, the shape and the dtype.
fn show_values(input: &mut Input, chosen: &Chosen, args: &ValuesArgs) -> Result<(), Failure> {
    let Chosen { dtype, shape, .. } = chosen;
    if !print::can_print(dtype) {
        let message = format!("values of dtype {dtype} cannot be printed");
        return Err(
            Failure::new(message).hint("`tslice INPUT -t NAME -o NAME.bin` writes the bytes")
        );
    }
    check_held(dtype).map_err(Failure::new)?;
    // blocks are printed as the bytes that NumPy would have for them
    let printed = dtype.blocks().and_then(|_| stored_by_numpy(dtype)).unwrap_or(dtype.clone());
    let mut options = PrintOptions::default();
    options.threshold = if args.full { u64::MAX } else { options.threshold };
    options.edge = args.edge.map_or(options.edge, u64::from);
    options.precision = args.precision.unwrap_or(options.precision);
    let mut pending = String::new();
    print::print(dtype, shape, &options, &mut chosen.elements(input)?, &mut |part| {
        pending.push_str(part);
        if pending.len() >= BUFFER_BYTES { print(&std::mem::take(&mut pending)) } else { Ok(()) }
    })?;
    pending.push_str(&format!("\n{}\n", stats::title(chosen.name.as_ref(), shape, &printed)));
    print(&pending)
}

const BUFFER_BYTES: usize = 64 << 10;
