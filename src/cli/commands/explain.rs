//! `tslice explain`: the meaning of an index, in the words of NumPy and of StridedSlice.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tslice::dtype::{DType, Endian, Scalar};
use tslice::error::Error;
use tslice::execute::{Conversion, Workers};
use tslice::index::resolve::{AxisSelection, ListPositions, SelectedList, Selection};
use tslice::index::strided_slice::StridedSlice;
use tslice::index::{Item, List, SpannedExpr};
use tslice::input::{Input, Transform};
use tslice::job;
use tslice::plan::{Reading, Way};
use tslice::region::{OpenIndex, Region, Take};
use tslice::shape::{self, Arrangement, AsTuple, Order, Permutation};
use tslice::source::IoMode;
use tslice::source::remote::mask_secrets;
use tslice::tensor::TensorInfo;

use super::super::report::in_one_line;
use super::equivalents::{Equivalents, masks};
use super::index::{self, Index, list};
use super::input;
use super::output::{self, network};
use crate::cli::args::{ExplainArgs, IndexArgs, unquoted};
use crate::cli::report::{Align, Failure, Json, counted, print, quote, table};

pub(super) fn run(args: &ExplainArgs) -> Result<(), Failure> {
    let explained = explain(args, &Workers::default())?;
    let text = if args.json { format!("{}\n", Json(&explained.json())) } else { explained.text() };
    print(&mask_secrets(&text))
}

struct IndexedShape {
    index: Index,
    shape: Vec<u64>,
    /// `None` if a shape is given in place of a file.
    tensor: Option<(Input, TensorInfo)>,
}

fn indexed_shape(
    args: &ExplainArgs,
    transform: &Transform,
    workers: &Workers,
) -> Result<IndexedShape, Failure> {
    if let Some(shape) = shape_alone(args) {
        refuse_files(args)?;
        let index = IndexArgs { text: args.input.clone(), ..args.index.clone() };
        let index = Index::parse(&index)?;
        let lengths = list("--shape", shape)?.into_iter();
        let shape = lengths.map(input::length("--shape", "an axis"));
        let mut shape = shape.collect::<Result<Vec<u64>, _>>()?;
        if let Some(other) = &transform.shape {
            shape = other.of(&shape).map_err(Failure::new)?;
        }
        let index = index.open_lists(&args.from, workers, false)?;
        return Ok(IndexedShape { index, shape, tensor: None });
    }
    let path = args.input.as_deref().map(Path::new);
    let path = path.ok_or_else(|| Failure::usage("an input is needed, or --shape"))?;
    let index = Index::parse(&args.index)?;
    let index = index.open(&args.from, workers, false, "INPUT", path)?;
    let options = input::options(&args.from, transform.fields.as_deref(), workers)?;
    let mut input = tslice::formats::open(&input::location(path), &options)?;
    let tensor = input.transformed_tensor(&args.from.tensor, transform)?;
    Ok(IndexedShape { index, shape: tensor.element_shape(), tensor: Some((input, tensor)) })
}

fn explain(args: &ExplainArgs, workers: &Workers) -> Result<Explained, Failure> {
    let transform = index::transform(Some(&args.field), &args.index.reshape, None)?;
    let IndexedShape { index, shape, tensor } = indexed_shape(args, &transform, workers)?;
    let (input, tensor) = tensor.unzip();
    // without a file, positions are explained as the bytes of a tensor of bytes in C order
    let dtype = DType::Scalar(Scalar::U8, Endian::Little);
    let bytes = TensorInfo::new(dtype, shape.clone(), Order::C, 0);
    let taken = tensor.as_ref().unwrap_or(&bytes);
    // reading may count in blocks; elements are shown
    let stored = index.resolve(taken)?;
    let selection = index.resolve_elements(taken)?;
    let transpose = index::transposition(&args.transpose)?;
    let names = taken.dimension_names(&selection.source_axes());
    let arranged = transpose.of(&selection.shape(), &names).map_err(Error::from)?;
    let in_file = OpenIndex::arrange(taken, &stored, &transpose).map_err(Error::from)?;
    let region = index.lists.region(taken, &stored, &in_file.in_memory(Order::C));
    let region = region.map_err(Failure::new);
    let (region, network, temporary_bytes) = match (&input, &tensor, &transform.fields) {
        (Some(input), Some(tensor), None) => {
            let region = region?;
            let take = [Take::new(tensor.shard(), Arc::clone(&region), Conversion::None, 0)];
            let temporary_bytes = job::temporary_bytes(input, &take, workers)?;
            (Some(region), network(job::network_bytes(input, &take)), temporary_bytes)
        }
        _ => (region.ok(), None, 0),
    };
    let stored = in_file.shape().to_vec();
    Ok(Explained {
        index,
        shape,
        tensor,
        transform,
        selection,
        rearrange: args.transpose.rearrange.clone(),
        arranged,
        stored,
        region,
        network,
        temporary_bytes,
    })
}

/// The shape given in place of a file; with --dtype, --shape is about a file of raw bytes.
fn shape_alone(args: &ExplainArgs) -> Option<&String> {
    args.from.raw.shape.as_ref().filter(|_| args.from.raw.dtype.is_none())
}

fn refuse_files(args: &ExplainArgs) -> Result<(), Failure> {
    if args.index.text.is_some() {
        let failure = Failure::usage("with --shape there is no file: give INDEX alone");
        let words = args.input.iter().chain(&args.index.text).map(String::as_str);
        return Err(failure.hint_if(unquoted(words).map(|index| quote(&index))));
    }
    let from = &args.from;
    let raw = &args.from.raw;
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

#[derive(Clone, Copy)]
enum Side {
    Input,
    Output,
}

struct Explained {
    index: Index,
    shape: Vec<u64>,
    tensor: Option<TensorInfo>,
    transform: Transform,
    selection: Selection,
    rearrange: Option<String>,
    arranged: Arrangement,
    /// The shape of the result, in blocks if elements are stored in blocks.
    stored: Vec<u64>,
    /// The bytes that are read; `None` if these are not known, for a bare shape or for fields.
    region: Option<Arc<dyn Region>>,
    network: Option<String>,
    temporary_bytes: u64,
}

impl Explained {
    fn text(&self) -> String {
        let mut text = table(&self.rows(), [Align::Left; 2], 0);
        let axes = axis_rows(&self.index.spanned, &self.selection, &self.names());
        if !axes.is_empty() {
            let cells = axes.iter().map(AxisRow::cells);
            let rows: Vec<_> = std::iter::once(AxisRow::heading()).chain(cells).collect();
            let left = Align::Left;
            let right = Align::Right;
            text.push('\n');
            text.push_str(&table(&rows, [left, right, left, left, right], 0));
        }
        let calls = self.equivalents().rows();
        if !calls.is_empty() {
            text.push('\n');
            text.push_str(&table(&calls, [Align::Left; 2], 0));
        }
        text
    }

    fn rows(&self) -> Vec<[String; 2]> {
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
        if let Some(pattern) = &self.rearrange {
            row("rearrange", pattern.clone());
        } else if let Some(order) = self.transposed() {
            row("transpose", comma_list(order.axes()));
        }
        if let Some(field) = &self.transform.fields {
            row("field", field.clone());
        }
        if self.transform.shape.is_some() {
            row("reshape", AsTuple(&self.shape).to_string());
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
        if let Some(files) = output::temporary_files(self.temporary_bytes) {
            row("by way of", files);
        }
        if let Some(network) = &self.network {
            row("network", network.clone());
        }
        rows
    }

    fn equivalents(&self) -> Equivalents {
        let Index { spanned, rules, .. } = &self.index;
        Equivalents::new(&spanned.expr, rules.keepdims)
    }

    /// The names of the axes of the tensor.
    fn names(&self) -> Vec<Option<String>> {
        let all = |tensor: &TensorInfo| {
            tensor.dimension_names(&Vec::from_iter((0..tensor.shape.len()).map(Some)))
        };
        self.tensor.as_ref().map(all).unwrap_or_default()
    }

    fn transposed(&self) -> Option<Permutation> {
        self.arranged.permutation().filter(|order| !order.is_identity())
    }

    fn reading(&self) -> Option<Reading> {
        self.region.as_ref()?.reading()
    }

    /// Without a file, `count` is of elements.
    fn amount(&self, count: u64) -> String {
        counted(count, if self.tensor.is_some() { "byte" } else { "element" })
    }

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

    fn touched(&self, reading: &Reading) -> String {
        let most = if reading.way == Way::Gather { "at most " } else { "" };
        let part = 100.0 * reading.used as f64 / reading.touched.max(1) as f64;
        if reading.touched == reading.used {
            format!("{most}{}, all used", self.amount(reading.touched))
        } else {
            format!(
                "{most}{}, {} used ({part:.2$} %)",
                self.amount(reading.touched),
                reading.used,
                usize::from(part < 9.95),
            )
        }
    }

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
            Side::Output => self.arranged.shape(),
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
            "output": { "shape": self.arranged.shape() },
            "equivalents": self.equivalents().json(),
        });
        if let Some(field) = &self.transform.fields {
            value["field"] = json!(field);
        }
        if self.transform.shape.is_some() {
            value["reshape"] = json!(self.shape);
        }
        if let Some(pattern) = &self.rearrange {
            value["rearrange"] = json!(pattern);
        } else if let Some(order) = self.transposed() {
            value["transpose"] = json!(order.axes());
        }
        if let Some(tensor) = &self.tensor {
            for (name, side) in [("input", Side::Input), ("output", Side::Output)] {
                value[name]["dtype"] = tensor.dtype.to_string().into();
                value[name]["bytes"] = self.bytes(tensor, side).into();
            }
        }
        let axes = axis_rows(&self.index.spanned, &self.selection, &self.names());
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
        if self.temporary_bytes > 0 {
            value["temporary_bytes"] = self.temporary_bytes.into();
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

fn way(way: Way) -> String {
    let how = match way {
        Way::Nothing => return "nothing".to_owned(),
        Way::Streaming => "from front to back, a pipe in one pass",
        Way::Strided => "by position, in the order of the output; a pipe is first stored in a file",
        Way::Relayout => {
            "in boxes, as the axes change their order; a pipe is first stored in a file"
        }
        Way::Gather => "by position, as the lists name them; a pipe is first stored in a file",
    };
    format!("{}: {how}", way.name())
}

fn comma_list<T: ToString>(values: &[T]) -> String {
    values.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

pub(super) struct AxisRow<'a> {
    pick: &'a AxisSelection,
    axis: Option<usize>,
    /// `None` for a new axis.
    size: Option<u64>,
    /// The index's item for the axis, as it was typed; `None` if the index does not mention the
    /// axis.
    asked: Option<&'a str>,
    list: Option<ListOf<'a>>,
}

struct ListOf<'a> {
    list: &'a SelectedList,
    item: Option<&'a Item>,
}

fn axis_rows<'a>(
    spanned: &'a SpannedExpr,
    selection: &'a Selection,
    names: &[Option<String>],
) -> Vec<AxisRow<'a>> {
    let item_of = |name: &String| spanned.expr.names.iter().position(|it| it == name);
    let items = match spanned.expr.names.is_empty() {
        true => selection.items(&spanned.expr),
        false => names.iter().map(|name| name.as_ref().and_then(item_of)).collect(),
    };
    let row = |(pick, item): (&'a AxisSelection, Option<usize>)| {
        let (axis, list) = match *pick {
            AxisSelection::NewAxis => (None, None),
            AxisSelection::Index { axis, .. } | AxisSelection::Range { axis, .. } => {
                (Some(axis), None)
            }
            AxisSelection::List { axis, list } => (Some(axis), selection.lists.get(list)),
        };
        let size = axis.and_then(|axis| selection.source_shape.get(axis).copied());
        let list = list.map(|list| ListOf { list, item: spanned.expr.items.get(list.item) });
        let span = item.and_then(|item| spanned.spans.get(item));
        let asked = span.and_then(|it| spanned.text.get(it.clone()));
        AxisRow { pick, axis, size, asked, list }
    };
    selection.axes.iter().zip(items).map(row).collect()
}

const MOST_CHARACTERS: usize = 40;

impl AxisRow<'_> {
    pub(super) fn heading() -> [String; 5] {
        ["axis", "size", "asked", "resolved", "length"].map(str::to_owned)
    }

    pub(super) fn cells(&self) -> [String; 5] {
        let axis = self.axis.map_or_else(|| "new".to_owned(), |axis| axis.to_string());
        let size = self.size.map_or_else(|| "-".to_owned(), |size| size.to_string());
        [axis, size, self.asked(), self.resolved(), self.length()]
    }

    fn asked(&self) -> String {
        let mut asked = in_one_line(self.asked.unwrap_or("-"));
        if asked.len() > MOST_CHARACTERS {
            let last = asked.len() - (MOST_CHARACTERS / 2 - 3);
            asked.splice(MOST_CHARACTERS / 2..last, "...".chars());
        }
        asked.into_iter().collect()
    }

    fn resolved(&self) -> String {
        match *self.pick {
            AxisSelection::NewAxis => "new axis".to_owned(),
            AxisSelection::Index { at, .. } => format!("position {at}"),
            AxisSelection::Range { len, step: 1, .. } if Some(len) == self.size => {
                "whole".to_owned()
            }
            AxisSelection::Range { len: 0, .. } => "nothing".to_owned(),
            AxisSelection::Range { start, len: 1, .. } => format!("position {start}"),
            AxisSelection::Range { start, step, len, .. } => {
                let last = start as i64 + step * (len as i64 - 1);
                let by = if step == 1 { String::new() } else { format!(" by {step}") };
                format!("positions {start} to {last}{by}")
            }
            AxisSelection::List { .. } => self.list.as_ref().map(ListOf::text).unwrap_or_default(),
        }
    }

    /// The length of the axis in the result; `-` if it is not in it.
    fn length(&self) -> String {
        match self.pick {
            AxisSelection::NewAxis => "1".to_owned(),
            AxisSelection::Index { .. } => "-".to_owned(),
            AxisSelection::Range { len, .. } => len.to_string(),
            AxisSelection::List { axis, .. } => match &self.list {
                // of the axes of a mask, the first stands for all
                Some(ListOf { list, .. }) if list.axes.start == *axis => match &list.shape[..] {
                    [len] => len.to_string(),
                    shape => AsTuple(shape).to_string().replace(' ', ""),
                },
                _ => "-".to_owned(),
            },
        }
    }

    pub(super) fn json(&self) -> Value {
        let mut value = json!({ "axis": self.axis, "size": self.size, "asked": self.asked });
        match *self.pick {
            AxisSelection::NewAxis => value["length"] = 1.into(),
            AxisSelection::Index { at, .. } => {
                value["position"] = at.into();
                value["length"] = Value::Null;
            }
            AxisSelection::Range { start, step, len, .. } => {
                value["start"] = start.into();
                value["step"] = step.into();
                value["length"] = len.into();
            }
            AxisSelection::List { .. } => {
                let Some(of) = &self.list else { return value };
                let kind = if of.is_mask() { "mask" } else { "list" };
                let axes = Vec::from_iter(of.list.axes.clone());
                value[kind] = json!({ "axes": axes, "shape": of.list.shape });
            }
        }
        value
    }
}

impl ListOf<'_> {
    fn is_mask(&self) -> bool {
        let is_typed = matches!(self.item, Some(Item::List(List::Mask(_))));
        is_typed || self.list.positions == ListPositions::Mask
    }

    fn text(&self) -> String {
        let file = match self.item {
            Some(Item::List(List::File(file))) => format!(" {file}"),
            Some(Item::List(List::Shuffle(_))) => {
                return "positions in random order".to_owned();
            }
            _ => String::new(),
        };
        let axes = &self.list.axes;
        let first = axes.start;
        let last = axes.end - 1;
        if matches!(self.list.positions, ListPositions::Others(_)) {
            let file = file.replacen('~', "", 1);
            format!("all positions except those in the list{file}")
        } else if !self.is_mask() {
            format!("positions of the list{file}")
        } else if first == last {
            format!("where the mask{file} is true")
        } else {
            format!("where the mask{file} of axes {first} to {last} is true")
        }
    }
}
