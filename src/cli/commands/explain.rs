//! `tslice explain`: what an index means, in the words of NumPy and of StridedSlice.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tslice::dtype::{DType, Endian, Scalar};
use tslice::error::Error;
use tslice::execute::{Conversion, OutOfCore, Workers};
use tslice::format::TensorInfo;
use tslice::index::resolve::Selection;
use tslice::index::strided_slice::StridedSlice;
use tslice::input::Input;
use tslice::job;
use tslice::permutation::Permutation;
use tslice::plan::{Reading, Way};
use tslice::region::{Region, Take};
use tslice::shape::{self, AsTuple, Order};
use tslice::source::IoMode;
use tslice::source::remote::mask_secrets;

use super::axis_rows::{AxisRow, axis_rows};
use super::equivalents::{Equivalents, masks};
use super::index::{Index, list};
use super::input;
use super::output::network;
use super::{planned, result};
use crate::cli::args::{ExplainArgs, unquoted};
use crate::cli::report::{Align, Failure, Json, counted, print, quote, table};

/// Explain an index against the shape of a file's tensor or a bare one.
pub(super) fn run(args: &ExplainArgs) -> Result<(), Failure> {
    let workers = Workers::default();
    let field = args.field.field.clone();
    let (index, shape, input, tensor) = match shape_alone(args) {
        Some(shape) => {
            refuse_files(args)?;
            let index = Index::parse(args.input.as_deref(), &args.index)?;
            let lengths = list("--shape", shape)?.into_iter();
            let shape =
                lengths.map(input::length("--shape", "an axis")).collect::<Result<_, _>>()?;
            (index.open_lists(args.from.io, &workers, false)?, shape, None, None)
        }
        None => {
            let path = args.input.as_deref().map(Path::new);
            let path = path.ok_or_else(|| Failure::usage("an input is needed, or --shape"))?;
            let index = Index::parse(args.text.as_deref(), &args.index)?;
            let index = index.open(args.from.io, &workers, false, "INPUT", path)?;
            let options = input::options(&args.from, args.field.field.as_deref())?;
            let mut input = tslice::input::open(&input::location(path), &options)?;
            let tensor = input.tensor_fields(&args.from.tensor, field.as_deref())?;
            (index, tensor.element_shape(), Some(input), Some(tensor))
        }
    };
    // without a file, the bytes of a tensor in C order whose elements are bytes
    let dtype = DType::Scalar(Scalar::U8, Endian::Little);
    let bytes = TensorInfo::new(dtype, shape.clone(), Order::C, 0);
    let taken = tensor.as_ref().unwrap_or(&bytes);
    // what is read may be counted in blocks, what is shown is in elements
    let stored = index.resolve(taken)?;
    let selection = index.resolve_shape(&shape)?;
    let transpose = result::transposition(&args.transpose)?
        .of_axes(selection.shape().len())
        .map_err(Error::from)?;
    let region = index.lists.region(taken, &stored, &transpose, Order::C);
    let region = region.map_err(Failure::new);
    let (region, network, plan) = match (&input, &tensor, &field) {
        (Some(input), Some(tensor), None) => {
            let region = region?;
            let take = [Take::new(tensor.part(), Arc::clone(&region), Conversion::None, 0)];
            let plan = job::out_of_core(input, &take, &workers)?;
            (Some(region), network(|| job::announced(input, &take))?, plan)
        }
        _ => (region.ok(), None, None),
    };
    let result = transpose.permute(&selection.shape());
    let stored = transpose.permute(&stored.shape());
    let explained = Explained {
        index,
        shape,
        input,
        tensor,
        field,
        selection,
        transpose,
        result,
        stored,
        region,
        network,
        plan,
    };
    let text = if args.json { format!("{}\n", Json(&explained.json())) } else { explained.text() };
    print(&mask_secrets(&text))
}

/// The shape that stands in place of a file: with --dtype it is that of a file of raw bytes.
fn shape_alone(args: &ExplainArgs) -> Option<&String> {
    args.from.raw.shape.as_ref().filter(|_| args.from.raw.dtype.is_none())
}

/// Refuse what asks for something of a file, where there is none.
fn refuse_files(args: &ExplainArgs) -> Result<(), Failure> {
    if args.text.is_some() {
        let failure = Failure::usage("with --shape there is no file: give INDEX alone");
        let words = args.input.iter().chain(&args.text).map(String::as_str);
        return Err(failure.hint_if(unquoted(words).map(|index| quote(&index))));
    }
    let (from, raw) = (&args.from, &args.from.raw);
    let flags = [
        (!from.tensor.is_empty(), "-t"),
        (!from.exclude.is_empty(), "--exclude"),
        (from.read_as.is_some(), "--as"),
        (from.io != IoMode::Auto, "--io"),
        (raw.offset.is_some(), "--offset"),
        (raw.input_order.is_some(), "--input-order"),
        (args.field.field.is_some(), "--field"),
    ];
    if let Some((_, flag)) = flags.into_iter().find(|(is_given, _)| *is_given) {
        let message = format!("{flag} has no effect: with --shape there is no file");
        return Err(Failure::usage(message));
    }
    if args.input.is_some() && args.index.strided.begin.is_some() {
        return Err(Failure::usage("the argument INDEX cannot be used with --begin"));
    }
    Ok(())
}

/// What is described.
#[derive(Clone, Copy)]
enum Side {
    Input,
    Output,
}

struct Explained {
    index: Index,
    shape: Vec<u64>,
    input: Option<Input>,
    tensor: Option<TensorInfo>,
    /// The fields that are taken of it before the index is applied.
    field: Option<String>,
    selection: Selection,
    /// The order of the axes of the result.
    transpose: Permutation,
    /// The shape of the result.
    result: Vec<u64>,
    /// The same in blocks, where elements are stored in such.
    stored: Vec<u64>,
    /// The bytes that are taken; `None` where that cannot be.
    region: Option<Arc<dyn Region>>,
    /// The requests that a copy of the selection takes, in words, where the input is remote.
    network: Option<String>,
    /// The plan of a copy of the selection to a file, where it does not fit in memory.
    plan: Option<OutOfCore>,
}

impl Explained {
    fn text(&self) -> String {
        let mut rows = vec![["index".to_owned(), self.index.spanned.text.clone()]];
        let mut row = |name: &str, value: String| rows.push([name.to_owned(), value]);
        match StridedSlice::from_expr(&self.index.spanned.expr) {
            Ok(strided) => {
                row("begin", comma_list(&strided.begin));
                row("end", comma_list(&strided.end));
                row("strides", comma_list(&strided.strides));
                for (name, mask) in masks(&strided) {
                    row(&name.replace('_', "-"), mask.to_string());
                }
            }
            Err(error) => row("StridedSlice", error.to_string()),
        }
        if !self.transpose.is_identity() {
            row("transpose", comma_list(self.transpose.axes()));
        }
        if let Some(field) = &self.field {
            row("field", field.clone());
        }
        row("input", self.described(Side::Input));
        row("output", self.described(Side::Output));
        if let Some(reading) = self.reading() {
            row("runs", self.runs(&reading));
            if reading.way != Way::Nothing {
                row("touched", self.touched(&reading));
            }
            row("read", way(reading.way));
        }
        if let Some(plan) = &self.plan {
            row("plan", planned::out_of_core(plan));
        }
        if let Some(network) = &self.network {
            row("network", network.clone());
        }
        if let Some(bytes) = self.shareable() {
            row("shared", format!("{bytes} bytes, where the file system shares blocks"));
        }
        let mut text = table(&rows, [Align::Left; 2], 0);
        let axes = axis_rows(&self.index.spanned, &self.selection);
        if !axes.is_empty() {
            let cells = axes.iter().map(AxisRow::cells);
            let rows: Vec<_> = std::iter::once(AxisRow::heading()).chain(cells).collect();
            let (left, right) = (Align::Left, Align::Right);
            text.push('\n');
            text.push_str(&table(&rows, [left, right, left, left, right], 0));
        }
        text.push('\n');
        text.push_str(&table(&self.equivalents().rows(), [Align::Left; 2], 0));
        text
    }

    /// What other libraries call it.
    fn equivalents(&self) -> Equivalents {
        let Index { spanned, rules, .. } = &self.index;
        Equivalents::new(&spanned.expr, rules.keepdims, &self.selection, &self.transpose)
    }

    /// How many bytes an output of the same format can share with the file, if any.
    fn shareable(&self) -> Option<u64> {
        let (input, tensor) = (self.input.as_ref()?, self.tensor.as_ref()?);
        let region = self.region.as_deref()?;
        let bytes = job::shareable_bytes(input, tensor, region, &self.stored);
        (bytes > 0).then_some(bytes)
    }

    /// How it is read; `None` where that cannot be.
    fn reading(&self) -> Option<Reading> {
        self.region.as_ref()?.reading()
    }

    /// So many bytes or, without a file, elements.
    fn amount(&self, count: u64) -> String {
        counted(count, if self.tensor.is_some() { "byte" } else { "element" })
    }

    /// The contiguous runs, and how long they are.
    fn runs(&self, reading: &Reading) -> String {
        match reading.run_bytes {
            _ if reading.runs == 0 => "none".to_owned(),
            Some(bytes) => format!("{} of {}", reading.runs, self.amount(bytes)),
            None => {
                let mean = reading.used as f64 / reading.runs as f64;
                let unit = if self.tensor.is_some() { "bytes" } else { "elements" };
                format!("{} of {mean:.1} {unit} on average", reading.runs)
            }
        }
    }

    /// What of the input is touched, and how much of that is used.
    fn touched(&self, reading: &Reading) -> String {
        let most = if reading.way == Way::Gather { "at most " } else { "" };
        let part = 100.0 * reading.used as f64 / reading.touched.max(1) as f64;
        match reading.touched == reading.used {
            true => format!("{most}{}, all used", self.amount(reading.touched)),
            false => format!(
                "{most}{}, {} used ({part:.2$} %)",
                self.amount(reading.touched),
                reading.used,
                usize::from(part < 9.95),
            ),
        }
    }

    /// A shape, with dtype and bytes where they are known.
    fn described(&self, side: Side) -> String {
        let shape = AsTuple(self.shape_of(side));
        match self.tensor.as_ref().and_then(|tensor| Some((tensor, self.bytes(tensor, side)?))) {
            Some((tensor, bytes)) => {
                format!("shape {shape}, dtype {}, {bytes} bytes", tensor.dtype)
            }
            None => format!("shape {shape}"),
        }
    }

    fn shape_of(&self, side: Side) -> &[u64] {
        match side {
            Side::Input => &self.shape,
            Side::Output => &self.result,
        }
    }

    fn bytes(&self, tensor: &TensorInfo, side: Side) -> Option<u64> {
        let items = match side {
            Side::Input => &tensor.shape,
            Side::Output => &self.stored,
        };
        shape::byte_count(items, tensor.dtype.item_bits())
    }

    fn json(&self) -> Value {
        let mut value = json!({
            "index": self.index.spanned.text,
            "input": { "shape": self.shape },
            "output": { "shape": self.result },
            "equivalents": self.equivalents().json(),
        });
        if let Some(field) = &self.field {
            value["field"] = json!(field);
        }
        if !self.transpose.is_identity() {
            value["transpose"] = json!(self.transpose.axes());
        }
        if let Some(tensor) = &self.tensor {
            for (name, side) in [("input", Side::Input), ("output", Side::Output)] {
                value[name]["dtype"] = tensor.dtype.to_string().into();
                value[name]["bytes"] = self.bytes(tensor, side).into();
            }
        }
        let axes = axis_rows(&self.index.spanned, &self.selection);
        value["axes"] = axes.iter().map(AxisRow::json).collect();
        if let Some(reading) = self.reading() {
            value["reading"] = json!({
                "way": reading.way.name(),
                "unit": if self.tensor.is_some() { "bytes" } else { "elements" },
                "runs": reading.runs,
                "run_length": reading.run_bytes,
                "touched": reading.touched,
                "used": reading.used,
            });
        }
        planned::add_out_of_core(&mut value, self.plan.as_ref());
        if let Some(bytes) = self.shareable() {
            value["shareable_bytes"] = bytes.into();
        }
        if let Ok(strided) = StridedSlice::from_expr(&self.index.spanned.expr) {
            value["begin"] = json!(strided.begin);
            value["end"] = json!(strided.end);
            value["strides"] = json!(strided.strides);
            for (name, mask) in masks(&strided) {
                value[name] = mask.into();
            }
        }
        value
    }
}

/// How the input is gone over.
fn way(way: Way) -> String {
    let how = match way {
        Way::Nothing => return "nothing".to_owned(),
        Way::Streaming => "from front to back, a pipe in one pass",
        Way::Strided => "by position, in the order of the output; a pipe is kept in a file first",
        Way::Relayout => "in boxes, as the axes change their order; a pipe is kept in a file first",
        Way::Gather => "by position, as the lists name them; a pipe is kept in a file first",
    };
    format!("{}: {how}", way.name())
}

fn comma_list<T: ToString>(values: &[T]) -> String {
    values.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}
