//! `tslice view INPUT [INDEX]`: look at values.

use tslice::format::npy;
use tslice::input::Input;
use tslice::job::{AllSlices, Chosen, Reduced, Reducing, SlicesOptions};
use tslice::output::Output;
use tslice::print;
use tslice::print::PrintOptions;
use tslice::sink::Destination;

use super::index::{Index, list};
use super::output::Dry;
use super::part::Share;
use super::{index, input, output, picture, said, stats, tables};
use crate::cli::args::{PictureArgs, ValuesArgs, ViewArgs};
use crate::cli::report::{Failure, print, watch};

/// Show the selected elements of each tensor.
pub(super) fn run(args: &ViewArgs) -> Result<(), Failure> {
    if let Some(fault) = args.fault() {
        return Err(Failure::usage(fault));
    }
    let index = Index::parse(args.text.as_deref(), &args.index)?;
    let workers = output::workers(args.threads);
    let index = index.open(args.from.io, &workers, args.quiet, "INPUT", &args.input)?;
    let transpose = index::transposition(&args.transpose)?;
    let options = input::options(&args.from, args.field.field.as_deref())?;
    let mut input = input::open_watched(&input::location(&args.input), &options, args.quiet)?;
    let reduces = args.stats.reduce.is_some();
    let draws = args.draws();
    let numbers = input.find(&args.from.tensor).map_err(|error| error.of_several(!draws))?;
    let fields = args.field.field.as_deref();
    if args.stats.stats || reduces {
        said::note_packed(&input, &numbers);
    }
    let axes = args.stats.axis.as_deref().map(|text| list("--axis", text)).transpose()?;
    let index_of_job = index.of_job();
    let transpose = &transpose;
    let slices = SlicesOptions { fields, index: index_of_job, transpose, axes: axes.as_deref() };
    if let Some(how) = args.stats.reduce
        && (draws || args.picture.output.is_none())
    {
        let reduced = Reduced::new(input, &numbers, &slices, how, args.index.keepdims);
        let reduced = reduced.map_err(|error| index.failure(error))?;
        let bytes = reduced.bytes();
        let results = watch(bytes, args.quiet, |progress| reduced.into_input(&workers, progress));
        let mut results = results.map_err(|error| index.failure(error))?;
        let chosen = Chosen::whole(&results)?;
        if draws {
            return picture::run(&mut results, &chosen, args, workers);
        }
        return show_all(&mut results, &chosen, &args.values);
    }
    if let Some(how) = args.stats.reduce {
        let PictureArgs { output, force, fsync, dry_run, .. } = &args.picture;
        let options = output::of_format(&args.format, &args.metadata)?;
        let options = options.force(*force).fsync(*fsync).workers(&workers);
        let target = output.as_deref().map_or(Destination::Stdout, output::target);
        let output = Output::new(target, options)?;
        if !dry_run && !output.format().is_text {
            output::refuse_terminal(output.destination())?;
        }
        let job = Reducing::new(input, &numbers, &slices, how, args.index.keepdims, &output);
        let mut job = job.map_err(|error| index.failure(error))?;
        let advised = |error| index.failure(error);
        return output::perform(
            &mut job,
            &Share::Whole,
            Dry::of(*dry_run, false),
            args.quiet,
            advised,
        );
    }
    let as_table = numbers.len() > 1 || !args.stats.sort.is_empty();
    if args.stats.stats && (as_table || axes.is_some()) {
        if numbers.len() > 1 {
            // a pipe is kept in a file, as it is read once for each tensor
            output::spool(&mut input, args.quiet)?;
        }
        let all = AllSlices::new(&mut input, &numbers, slices);
        let all = all.map_err(|error| index.failure(error))?;
        return match axes {
            Some(_) => tables::of_slices(&mut input, &all, args, &workers),
            None => tables::of_tensors(&mut input, &all, args, &workers),
        };
    }
    let chosen = Chosen::all(&mut input, &numbers, fields, index_of_job, transpose);
    let chosen = chosen.map_err(|error| index.failure(error))?;
    if let ([chosen], true) = (chosen.as_slice(), args.stats.stats) {
        return stats::run(&mut input, chosen, args, &workers);
    }
    if draws {
        return picture::run(&mut input, &chosen, args, workers);
    }
    output::spool(&mut input, args.quiet)?;
    show_all(&mut input, &chosen, &args.values)
}

/// Print the values of each, with an empty line between them.
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
        return Err(Failure::new(message).hint("`tslice info` shows what is in the file"));
    }
    // blocks are printed as the bytes that an array of NumPy has of them
    let printed = dtype.blocks().and_then(|_| npy::stored_dtype(dtype)).unwrap_or(dtype.clone());
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

/// How much text is written at a time.
const BUFFER_BYTES: usize = 64 << 10;
