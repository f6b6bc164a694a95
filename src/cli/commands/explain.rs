//! `tslice explain`: what an index means, in the words of NumPy and of StridedSlice.

use std::path::Path;

use serde_json::{Value, json};
use tslice::container::layout_of;
use tslice::format::Tensor;
use tslice::index::resolve::{AxisSelection, ListPositions, Selection};
use tslice::index::strided_slice::{StridedSlice, parse_list};
use tslice::index::{Item, List};
use tslice::permutation::Permutation;
use tslice::plan::{Plan, Tiling};
use tslice::shape::{self, AsTuple};
use tslice::view::View;

use super::equivalents::{Equivalents, masks};
use super::index::Index;
use super::input;
use super::transpose::Transpose;
use crate::cli::args::ExplainArgs;
use crate::cli::report::{Align, Failure, human_bytes, print, table};

/// Explain an index against the shape of a file's tensor or a bare one.
pub(super) fn run(args: &ExplainArgs) -> Result<(), Failure> {
    let (index, shape, tensor) = match &args.shape {
        Some(shape) => {
            if args.text.is_some() {
                return Err(Failure::usage("with --shape there is no file: give INDEX alone"));
            }
            if !args.from.tensor.is_empty() {
                return Err(Failure::usage("-t has no effect: with --shape there is no file"));
            }
            if args.input.is_some() && args.index.strided.begin.is_some() {
                return Err(Failure::usage("the argument INDEX cannot be used with --begin"));
            }
            let index = Index::parse(args.input.as_deref(), &args.index)?;
            let shape = parse_shape(shape)?;
            (index.open(args.from.io, ("INPUT", Path::new("")))?, shape, None)
        }
        None => {
            let Some(path) = &args.input else {
                return Err(Failure::usage("an input is needed, or --shape"));
            };
            let index = Index::parse(args.text.as_deref(), &args.index)?;
            let index = index.open(args.from.io, ("INPUT", path.as_ref()))?;
            let input = input::open(path.as_ref(), args.from.io)?;
            let tensor = input.tensor(&args.from.tensor)?.clone();
            (index, tensor.shape.clone(), Some(tensor))
        }
    };
    let selection = index.resolve(&shape)?;
    let transpose = Transpose::parse(&args.transpose)?.permutation(selection.shape().len())?;
    let explained = Explained { index, shape, tensor, selection, transpose };
    print(&if args.json { format!("{}\n", explained.json()) } else { explained.text() })
}

fn parse_shape(text: &str) -> Result<Vec<u64>, Failure> {
    let list = parse_list(text).map_err(|error| {
        Failure::usage(format_args!("--shape: {error}")).at(text, error.span.clone())
    })?;
    list.into_iter()
        .map(|len| {
            u64::try_from(len)
                .map_err(|_| Failure::usage(format_args!("--shape: {len} is no length of an axis")))
        })
        .collect()
}

struct Explained {
    index: Index,
    shape: Vec<u64>,
    tensor: Option<Tensor>,
    selection: Selection,
    /// The order of the axes of the result.
    transpose: Permutation,
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
        let result = self.result();
        if !self.transpose.is_identity() {
            row("transpose", comma_list(self.transpose.axes()));
        }
        row("input", self.described(&self.shape));
        row("output", self.described(&result));
        if let Some(plan) = self.plan() {
            let (pattern, pieces) = (plan.pattern(), plan.pieces());
            let (reads, writes) = (human_bytes(plan.reads()), human_bytes(plan.bytes()));
            row("plan", format!("{pattern}, pieces {pieces}, reads {reads}, writes {writes}"));
        }
        let mut text = table(&rows, [Align::Left; 2], 0);
        let meanings = self.meanings();
        if !meanings.is_empty() {
            text.push('\n');
            text.push_str(&table(&meanings, [Align::Left; 2], 0));
        }
        text.push('\n');
        text.push_str(&table(&self.equivalents().rows(), [Align::Left; 2], 0));
        text
    }

    /// The shape of the result.
    fn result(&self) -> Vec<u64> {
        self.transpose.permute(&self.selection.shape())
    }

    /// What other libraries call it.
    fn equivalents(&self) -> Equivalents {
        let Index { spanned, rules, .. } = &self.index;
        Equivalents::new(&spanned.expr, rules.keepdims, &self.selection, &self.transpose)
    }

    /// How a mapped file would be copied to a new one; lists are gathered instead.
    fn plan(&self) -> Option<Plan> {
        let tensor = self.tensor.as_ref()?;
        if !self.selection.lists.is_empty() {
            return None;
        }
        let view = View::permuted(&layout_of(tensor), &self.selection, &self.transpose).ok()?;
        Some(Plan::tiled(&view, 1, Tiling::MAPPED))
    }

    /// A shape, with dtype and bytes where they are known.
    fn described(&self, shape: &[u64]) -> String {
        let bytes = |tensor: &Tensor| shape::byte_count(shape, tensor.dtype.item_bits());
        match self.tensor.as_ref().and_then(|tensor| Some((tensor, bytes(tensor)?))) {
            Some((tensor, bytes)) => {
                format!("shape {}, dtype {}, {bytes} bytes", AsTuple(shape), tensor.dtype)
            }
            None => format!("shape {}", AsTuple(shape)),
        }
    }

    /// What each step of the selection does to which axis.
    fn meanings(&self) -> Vec<[String; 2]> {
        let size = |axis: usize| format!("axis {axis} (size {})", self.shape[axis]);
        let meaning = |pick: &AxisSelection| match pick {
            AxisSelection::Index { axis, at } => {
                [size(*axis), format!("position {at}, the axis goes")]
            }
            AxisSelection::Range { axis, start, step: 1, len } if *len == self.shape[*axis] => {
                let _ = start;
                [size(*axis), "whole".to_owned()]
            }
            AxisSelection::Range { axis, len: 0, .. } => [size(*axis), "nothing".to_owned()],
            AxisSelection::Range { axis, start, len: 1, .. } => {
                [size(*axis), format!("position {start}")]
            }
            AxisSelection::Range { axis, start, step, len } => {
                let last = *start as i64 + step * (*len as i64 - 1);
                let by = if *step == 1 { String::new() } else { format!(" by {step}") };
                [size(*axis), format!("positions {start} to {last}{by}, {len} of them")]
            }
            AxisSelection::List { axis, list } => [size(*axis), self.list(*list)],
            AxisSelection::NewAxis => ["new axis".to_owned(), "of size 1".to_owned()],
        };
        self.selection.axes.iter().map(meaning).collect()
    }

    /// Where the positions on an axis come from.
    fn list(&self, number: usize) -> String {
        let list = &self.selection.lists[number];
        let item = self.index.spanned.expr.items.get(list.item);
        let file = match item {
            Some(Item::List(List::File(file))) => format!(" {file}"),
            _ => String::new(),
        };
        let is_mask = match item {
            Some(Item::List(List::Mask(_))) => true,
            _ => list.positions == ListPositions::Mask,
        };
        match (is_mask, list.axes.len()) {
            (true, 1) => format!("where the mask{file} is true, {} positions", list.shape[0]),
            (true, _) => format!(
                "where the mask{file} of axes {} to {} is true, {} positions",
                list.axes.start,
                list.axes.end - 1,
                list.shape[0]
            ),
            (false, _) => format!("positions of the list{file}, of shape {}", AsTuple(&list.shape)),
        }
    }

    fn json(&self) -> Value {
        let mut value = json!({
            "index": self.index.spanned.text,
            "input": { "shape": self.shape },
            "output": { "shape": self.result() },
            "equivalents": self.equivalents().json(),
        });
        if !self.transpose.is_identity() {
            value["transpose"] = json!(self.transpose.axes());
        }
        if let Some(tensor) = &self.tensor {
            for (side, shape) in [("input", &self.shape), ("output", &self.result())] {
                value[side]["dtype"] = tensor.dtype.to_string().into();
                value[side]["bytes"] = shape::byte_count(shape, tensor.dtype.item_bits()).into();
            }
        }
        if let Some(plan) = self.plan() {
            value["plan"] = json!({
                "pattern": plan.pattern().to_string(),
                "pieces": plan.pieces(),
                "run": plan.input().run,
                "reads": plan.reads(),
                "writes": plan.bytes(),
            });
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

fn comma_list<T: ToString>(values: &[T]) -> String {
    values.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}
