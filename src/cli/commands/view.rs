//! `tslice view INPUT [INDEX]`: look at values.

use tslice::container::{self, ContainerError, Input, OpenOptions, Region, RegionReader};
use tslice::dtype::DType;
use tslice::format::Tensor;
use tslice::print::{self, Elements, PrintOptions};
use tslice::shape::{AsTuple, Order};

use super::index::Index;
use super::input;
use crate::cli::args::{ValuesArgs, ViewArgs};
use crate::cli::report::{Failure, print, printable};

/// Show the selected elements of each tensor.
pub(super) fn run(args: &ViewArgs) -> Result<(), Failure> {
    let index = Index::parse(args.text.as_deref(), &args.index)?;
    let options = OpenOptions {
        io: args.from.io.into(),
        raw: input::raw(&args.raw)?,
        tensors: args.from.tensor.clone(),
        ..OpenOptions::default()
    };
    let mut input = container::open(&input::location(&args.input), &options)?;
    let chosen: Vec<Chosen> = choose(&input, &args.from.tensor, &index)?;
    for (number, chosen) in chosen.iter().enumerate() {
        if number > 0 {
            print("\n")?;
        }
        show_values(&mut input, chosen, &args.values)?;
    }
    Ok(())
}

/// What is looked at of one tensor.
struct Chosen {
    name: Option<String>,
    dtype: DType,
    shape: Vec<u64>,
    region: Region,
}

/// The tensors of the patterns, the index applied to each.
fn choose(input: &Input, patterns: &[String], index: &Index) -> Result<Vec<Chosen>, Failure> {
    let numbers = input.find(patterns)?;
    let several = numbers.len() > 1;
    let choose = |number: usize| {
        let tensor: &Tensor = &input.contents().tensors[number];
        let of_tensor = |failure: Failure| match &tensor.name {
            Some(name) if several => failure.of_tensor(name),
            _ => failure,
        };
        let selection = index.resolve(&tensor.shape).map_err(of_tensor)?;
        let region = Region::of(tensor, &selection, Order::C);
        Ok(Chosen {
            name: tensor.name.clone(),
            dtype: tensor.dtype.clone(),
            shape: selection.shape(),
            region: region.map_err(|error| of_tensor(Failure::new(error)))?,
        })
    };
    numbers.into_iter().map(choose).collect()
}

/// Print the values, and below them the name, the shape and the dtype.
fn show_values(input: &mut Input, chosen: &Chosen, args: &ValuesArgs) -> Result<(), Failure> {
    let Chosen { name, dtype, shape, region } = chosen;
    if !print::can_print(dtype) {
        let message = format!("values of dtype {dtype} cannot be printed");
        return Err(Failure::new(message).hint("`tslice info` shows what is in the file"));
    }
    let mut options = PrintOptions::default();
    options.threshold = if args.full { u64::MAX } else { options.threshold };
    options.edge = args.edge.map_or(options.edge, u64::from);
    options.precision = args.precision.unwrap_or(options.precision);
    let itemsize = dtype.item_bits() / 8;
    let mut elements = Values { reader: RegionReader::new(input, region)?, itemsize };
    let mut pending = String::new();
    print::print(dtype, shape, &options, &mut elements, &mut |part| {
        pending.push_str(part);
        if pending.len() >= BUFFER_BYTES {
            print(&std::mem::take(&mut pending))?;
        }
        Ok(())
    })?;
    let name = name.as_ref().map_or_else(String::new, |name| format!("{}, ", printable(name)));
    pending.push_str(&format!("\n{name}shape {}, dtype {dtype}\n", AsTuple(shape)));
    print(&pending)
}

/// How much text is written at a time.
const BUFFER_BYTES: usize = 64 << 10;

/// The elements of a region.
struct Values<'a> {
    reader: RegionReader<'a>,
    itemsize: u64,
}

impl Elements for Values<'_> {
    type Error = Failure;

    fn read(&mut self, first: u64, count: u64, out: &mut Vec<u8>) -> Result<(), Failure> {
        out.resize((count * self.itemsize) as usize, 0);
        let read: Result<(), ContainerError> = self.reader.read(first * self.itemsize, out);
        Ok(read?)
    }
}
