//! What an index does to each axis: a row each, as asked and as resolved.

use serde_json::{Value, json};
use tslice::index::resolve::{AxisSelection, ListPositions, SelectedList, Selection};
use tslice::index::{Item, List, SpannedExpr};
use tslice::shape::AsTuple;

use crate::cli::report::in_one_line;

/// An axis of the source, or a new one.
pub(super) struct AxisRow<'a> {
    pick: &'a AxisSelection,
    axis: Option<usize>,
    /// Its length; none of a new axis.
    size: Option<u64>,
    /// The item that it belongs to, as it was written; none where the index says nothing of it.
    asked: Option<&'a str>,
    /// The list that it is taken by.
    list: Option<ListOf<'a>>,
}

/// A list of the index, and its item.
struct ListOf<'a> {
    list: &'a SelectedList,
    item: Option<&'a Item>,
}

/// The axes of a selection that `spanned` became, in the order of the index.
pub(super) fn axis_rows<'a>(
    spanned: &'a SpannedExpr,
    selection: &'a Selection,
) -> Vec<AxisRow<'a>> {
    let items = items(spanned, selection);
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

/// The item of each axis of a selection.
fn items(spanned: &SpannedExpr, selection: &Selection) -> Vec<Option<usize>> {
    let items = spanned.expr.items.iter().enumerate();
    let taken = |number: usize, item: &Item| match item {
        Item::Ellipsis => 0,
        Item::Integer(_) | Item::Slice(_) | Item::NewAxis => 1,
        Item::List(_) => {
            let list = selection.lists.iter().find(|list| list.item == number);
            list.map_or(0, |list| list.axes.len())
        }
    };
    let known: usize = items.clone().map(|(number, item)| taken(number, item)).sum();
    let others = selection.axes.len().saturating_sub(known);
    let all = items.flat_map(|(number, item)| {
        let count = if matches!(item, Item::Ellipsis) { others } else { taken(number, item) };
        std::iter::repeat_n(Some(number), count)
    });
    // without an ellipsis the index says nothing of the last axes
    all.chain(std::iter::repeat_n(None, others)).take(selection.axes.len()).collect()
}

/// The most characters of an item that are shown.
const MOST_CHARACTERS: usize = 40;

impl AxisRow<'_> {
    /// The names of the cells.
    pub(super) fn heading() -> [String; 5] {
        ["axis", "size", "asked", "resolved", "length"].map(str::to_owned)
    }

    /// The axis, its size, what was asked, what that means, how long the result is.
    pub(super) fn cells(&self) -> [String; 5] {
        let axis = self.axis.map_or_else(|| "new".to_owned(), |axis| axis.to_string());
        let size = self.size.map_or_else(|| "-".to_owned(), |size| size.to_string());
        [axis, size, self.asked(), self.resolved(), self.length()]
    }

    /// The item, shortened in the middle.
    fn asked(&self) -> String {
        let mut asked = in_one_line(self.asked.unwrap_or("-"));
        if asked.len() > MOST_CHARACTERS {
            let last = asked.len() - (MOST_CHARACTERS / 2 - 3);
            asked.splice(MOST_CHARACTERS / 2..last, "...".chars());
        }
        asked.into_iter().collect()
    }

    /// The positions that are taken.
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

    /// How long the axis of the result is; `-` where there is none.
    fn length(&self) -> String {
        match self.pick {
            AxisSelection::NewAxis => "1".to_owned(),
            AxisSelection::Index { .. } => "-".to_owned(),
            AxisSelection::Range { len, .. } => len.to_string(),
            AxisSelection::List { axis, .. } => match &self.list {
                // a mask of several axes stands for the first
                Some(ListOf { list, .. }) if list.axes.start == *axis => match &list.shape[..] {
                    [len] => len.to_string(),
                    shape => AsTuple(shape).to_string().replace(' ', ""),
                },
                _ => "-".to_owned(),
            },
        }
    }

    /// The same for programs.
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
            _ => String::new(),
        };
        let axes = &self.list.axes;
        let (first, last) = (axes.start, axes.end - 1);
        match self.is_mask() {
            true if first == last => format!("where the mask{file} is true"),
            true => format!("where the mask{file} of axes {first} to {last} is true"),
            false => format!("positions of the list{file}"),
        }
    }
}
