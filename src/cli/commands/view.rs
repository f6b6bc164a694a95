//! `tslice view INPUT [INDEX]`: look at values.

use tslice::internals::input::Input;
use tslice::internals::job::Chosen;
use tslice::internals::print::{self, PrintOptions};

use super::index::Index;
use super::{input, output, picture, result, stats};
use crate::cli::args::{ValuesArgs, ViewArgs};
use crate::cli::report::{Failure, print};

/// Show the selected elements of each tensor.
pub(super) fn run(args: &ViewArgs) -> Result<(), Failure> {
    let index = Index::parse(args.text.as_deref(), &args.index)?;
    let workers = output::workers(args.threads);
    let index = index.open(args.from.io, &workers, args.quiet, "INPUT", &args.input)?;
    let transpose = result::transposition(&args.transpose)?;
    let options = input::options(&args.from)?;
    let mut input = input::open_watched(&input::location(&args.input), &options, args.quiet)?;
    let draws = args.picture.output.is_some() || args.picture.image;
    let numbers = input.find(&args.from.tensor).map_err(|error| error.of_several(!draws))?;
    let fields = args.field.field.as_deref();
    let chosen = Chosen::all(&mut input, &numbers, fields, index.of_job(), &transpose);
    let chosen = chosen.map_err(|error| index.failure(error))?;
    if args.stats.stats {
        return stats::run(&mut input, &chosen, args, &workers);
    }
    if draws {
        return picture::run(&mut input, &chosen, args, workers);
    }
    output::spool(&mut input, args.quiet)?;
    for (number, chosen) in chosen.iter().enumerate() {
        if number > 0 {
            print("\n")?;
        }
        show_values(&mut input, chosen, &args.values)?;
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
    let mut options = PrintOptions::default();
    options.threshold = if args.full { u64::MAX } else { options.threshold };
    options.edge = args.edge.map_or(options.edge, u64::from);
    options.precision = args.precision.unwrap_or(options.precision);
    let mut pending = String::new();
    print::print(dtype, shape, &options, &mut chosen.elements(input)?, &mut |part| {
        pending.push_str(part);
        match pending.len() >= BUFFER_BYTES {
            true => print(&std::mem::take(&mut pending)),
            false => Ok(()),
        }
    })?;
    pending.push_str(&format!("\n{}\n", stats::title(chosen)));
    print(&pending)
}

/// How much text is written at a time.
const BUFFER_BYTES: usize = 64 << 10;
