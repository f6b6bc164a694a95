//! `tslice view INPUT [INDEX]`: look at values.

use tslice::input::{Input, OpenOptions};
use tslice::print::{self, Elements, PrintOptions};
use tslice::region::RegionReader;

use super::chosen::Chosen;
use super::index::Index;
use super::transpose;
use super::{input, output, picture, stats};
use crate::cli::args::{ValuesArgs, ViewArgs};
use crate::cli::report::{Failure, print};

/// Show the selected elements of each tensor.
pub(super) fn run(args: &ViewArgs) -> Result<(), Failure> {
    let index = Index::parse(args.text.as_deref(), &args.index)?;
    let workers = output::workers(args.threads);
    let index = index.open(args.from.io, &workers, args.quiet, ("INPUT", &args.input))?;
    let transpose = transpose::parse(&args.transpose)?;
    let fields = args.field.field.clone();
    let options = OpenOptions { fields, ..input::options(&args.from)? };
    let mut input = input::open_watched(&input::location(&args.input), &options, args.quiet)?;
    let draws = args.picture.output.is_some() || args.picture.image;
    let numbers = input.find(&args.from.tensor).map_err(|error| error.of_several(!draws))?;
    let chosen = Chosen::all(&input, numbers, (&index, &transpose))?;
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
    let Chosen { dtype, shape, region, .. } = chosen;
    if !print::can_print(dtype) {
        let message = format!("values of dtype {dtype} cannot be printed");
        return Err(Failure::new(message).hint("`tslice info` shows what is in the file"));
    }
    let mut options = PrintOptions::default();
    options.threshold = if args.full { u64::MAX } else { options.threshold };
    options.edge = args.edge.map_or(options.edge, u64::from);
    options.precision = args.precision.unwrap_or(options.precision);
    let reader = RegionReader::new(input, region.as_ref())?;
    let mut elements = Values::new(reader);
    let mut pending = String::new();
    print::print(dtype, shape, &options, &mut elements, &mut |part| {
        pending.push_str(part);
        if pending.len() >= BUFFER_BYTES {
            print(&std::mem::take(&mut pending))?;
        }
        Ok(())
    })?;
    pending.push_str(&format!("\n{}\n", chosen.title()));
    print(&pending)
}

/// How much text is written at a time.
const BUFFER_BYTES: usize = 64 << 10;

/// The elements of a region.
pub(super) struct Values<'a> {
    reader: RegionReader<'a>,
    scratch: Vec<u8>,
}

impl<'a> Values<'a> {
    pub(super) fn new(reader: RegionReader<'a>) -> Values<'a> {
        Values { reader, scratch: Vec::new() }
    }
}

impl Elements for Values<'_> {
    type Error = Failure;

    fn read(&mut self, start: u64, len: usize, out: &mut Vec<u8>) -> Result<(), Failure> {
        out.resize(len, 0);
        Ok(self.reader.read(start, &mut self.scratch, out)?)
    }
}
